"""A judging that is killed loses nothing: the same command goes on, and what comes of it is the same in the end."""

from pathlib import Path

from tests.judge.crash import CONCURRENCY, crash


def test_judgments_are_the_same_however_often_the_judging_was_killed(tmp_path: Path) -> None:
    came = crash(tmp_path, queries=40, kills=6, seed=7)
    assert came.kills >= 5
    assert came.again == 0
    assert not came.differs
    assert came.left == []
    assert came.reports == []
    assert came.asked <= came.needed + CONCURRENCY * came.kills  # those that were under way when it was killed
