import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec
import pytest

from benchmarks import answers, quick, tools
from benchmarks.environments import ROOT
from tests.benchmarks.builders import sample

STORED = {"memory": 2.0, "time": 4.0}


def test_within_the_tolerance_nothing_is_said() -> None:
    assert quick.compare(STORED, {"memory": 2.0 * quick.TOLERANCE, "time": 4.0 / quick.TOLERANCE}) == ([], [])


def test_beyond_the_tolerance_it_is_worse_or_better() -> None:
    worse, better = quick.compare(STORED, {"memory": 2.4, "time": 2.0})
    assert worse == ["memory is 2.40, 1.20 times the stored 2.00"]
    assert better == ["time is 2.00, stored is 4.00"]


def test_a_ratio_that_is_on_one_side_only_is_no_pass() -> None:
    worse, _ = quick.compare({"memory": 2.0, "gone": 1.0}, {"memory": 2.0, "new": 1.0})
    assert worse == [
        "gone is stored, and not measured: store the ratios again",
        "new is not stored: store the ratios again",
    ]


def test_the_stored_ratios_are_those_that_are_measured() -> None:
    one = [sample()]
    small = {tools.OURS: one, quick.LIBRARIES: one}
    large = {tools.OURS: one, tools.FLOOR: one, quick.EVALUATION: one}
    answered = {answers.CHECKED: one, answers.READ: one, quick.EVALUATION: one}
    repeated = {answers.OFTEN: one, answers.ONCE: one}
    measured = quick.ratios(small, large, answered, repeated)
    assert measured.keys() == msgspec.json.decode(quick.STORED.read_bytes()).keys()
    assert set(measured.values()) == {1}


def ratios_of(commit: str) -> dict[str, float]:
    """Return the ratios that a commit stores. A shallow clone lacks the commit before its own."""
    name = quick.STORED.relative_to(ROOT).as_posix()
    done = subprocess.run(["git", "show", f"{commit}:{name}"], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        why = f"{commit} is not here ({done.stderr.strip()}): run `git fetch --deepen=1`"
        (pytest.fail if "GITHUB_ACTIONS" in os.environ else pytest.skip)(why)
    return msgspec.json.decode(done.stdout, type=dict[str, float])


def raised(stored: Mapping[str, float], before: Mapping[str, float]) -> list[str]:
    return [name for name, value in stored.items() if value > before.get(name, value)]


def test_a_ratio_that_is_raised_is_named() -> None:
    assert raised({"time": 4.1, "memory": 1.9, "new": 9.0}, {"time": 4.0, "memory": 2.0, "gone": 1.0}) == ["time"]


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="this is no checkout, so there is no commit to compare with")
@pytest.mark.parametrize("commit", ["HEAD^", "HEAD"])  # of a pull request that GitHub has merged, HEAD^ is the base
def test_stored_ratios_are_only_lowered(commit: str) -> None:
    assert raised(msgspec.json.decode(quick.STORED.read_bytes(), type=dict[str, float]), ratios_of(commit)) == []


def measured_as(*factors: float) -> Callable[[Path], dict[str, float]]:
    stored = msgspec.json.decode(quick.STORED.read_bytes(), type=dict[str, float])
    waiting = iter(factors)

    def take(_: Path) -> dict[str, float]:
        factor = next(waiting)
        return {name: value * factor for name, value in stored.items()}

    return take


@pytest.mark.parametrize(
    ("factors", "code"), [((1.0,), 0), ((1.6, 1.0), 0), ((1.6, 1.6), 1)], ids=["same", "noise", "regression"]
)
def test_what_is_worse_is_measured_again_before_it_fails(
    factors: tuple[float, ...], code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert quick.main(tmp_path, store=False, take=measured_as(*factors)) == code
    assert ("worse: " in capsys.readouterr().err) == bool(code)
