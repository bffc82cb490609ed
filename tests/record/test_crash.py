"""A recording that is killed loses nothing: the same command goes on, and the run is the same in the end."""

from pathlib import Path

from tests.record.crash import crash


def test_a_run_is_the_same_however_often_its_recording_was_killed(tmp_path: Path) -> None:
    came = crash(tmp_path, queries=100, kills=6, seed=7)
    assert came.kills == 6
    assert came.again == []
    assert not came.differs
    assert came.left == []
    assert came.asked <= 100 + 4 * 6  # those that were under way when it was killed
