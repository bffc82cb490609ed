"""How much code one check goes through: a reader follows few functions in few modules."""

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import pytest

import ragcontract
from ragcontract.cli.main import main
from tests.builders import good_workspace
from tests.test_layout import PACKAGE

Function = tuple[str, str]  # the path of its module, and its qualified name


def functions_of(call: Callable[[], object]) -> set[Function]:
    """Return the functions of the package that a call runs; comprehensions and lambdas are part of their function."""
    functions: set[Function] = set()

    def note(frame: FrameType, event: str, _argument: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(PACKAGE)) and not code.co_name.startswith("<"):
            functions.add((code.co_filename, code.co_qualname))

    earlier = sys.getprofile()
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(earlier)
    return functions


def check_in_python() -> None:
    ragcontract.check(
        golden="golden.jsonl", run="current_run.jsonl", baseline="baseline.json", config="ragcontract.yml"
    )


def check_as_a_command() -> None:
    assert main(["check"]) == 0


@pytest.mark.parametrize(
    ("check", "most_functions", "most_modules"),
    [(check_in_python, 430, 75), (check_as_a_command, 580, 91)],  # the command writes all reports, too
    ids=["python", "command"],
)
def test_a_check_of_two_queries_runs_few_functions(
    check: Callable[[], None], most_functions: int, most_modules: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(good_workspace(tmp_path))
    check()  # the first check of a process imports modules and fills caches
    functions = functions_of(check)
    modules = {path for path, _ in functions}
    assert len(functions) <= most_functions
    assert len(modules) <= most_modules
