from pathlib import Path

import pytest

from benchmarks import robust03
from ragcontract.core.errors import InputError
from tests.benchmarks import real_runs


def test_a_folder_of_runs_is_read_to_a_depth(tmp_path: Path) -> None:
    real_runs.write(tmp_path)
    assert robust03.read(tmp_path, 3) == real_runs.robust()
    assert robust03.read(tmp_path, 1).systems["first"]["007"] == ["a"]
    assert real_runs.robust().relevant("007") == {"a": 1, "b": 2, "c": 1, "d": 1}


def test_a_folder_without_runs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has no runs"):
        robust03.read(tmp_path, 3)


@pytest.mark.parametrize("argv", [[], ["nowhere"], ["a", "b"]])
def test_a_command_says_what_folder_it_needs(argv: list[str]) -> None:
    with pytest.raises(
        SystemExit, match=r"usage: python -m benchmarks\.some FOLDER, where FOLDER is examples/robust03"
    ):
        robust03.from_command_line(argv, "benchmarks.some", 3)
