"""Settings and numbers that are probably slips: a warning of `check` and of `lint`, never a silent pass."""

from pathlib import Path

import pytest

from tests.builders import golden, run, write_jsonl
from tests.process import rag_contract


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_jsonl(Path("golden.jsonl"), [golden("q1"), golden("q2")])


def scored(config: str, *values: float) -> str:
    """Return what a check prints of a run with these scores."""
    rows = [run(f"q{number}", scores={"share": value}) for number, value in enumerate(values, 1)]
    write_jsonl(Path("current_run.jsonl"), rows)
    Path("ragcontract.yml").write_text(config)
    ended = rag_contract("check")
    assert ended.code == 0, ended
    return ended.out + ended.err


LOWER = "metrics: {share: {from: scores, scale: [0, 100], better: lower}}\nmaximums: {share: 5}\n"


def test_fractions_on_a_scale_of_percent_are_a_warning() -> None:
    assert "The values of share are all from 0 to 1, but its scale is from 0 to 100" in scored(LOWER, 0.9, 0)


@pytest.mark.parametrize("values", [(0.9, 3), (0, 1), (0, 0), (1, 1)])
def test_counts_and_larger_values_are_none(values: tuple[float, ...]) -> None:
    assert "are all from 0 to 1" not in scored(LOWER, *values)


@pytest.mark.parametrize("scale", ["[0, 1]", "[0, 5]", "[-100, 100]"])
def test_other_scales_are_no_concern(scale: str) -> None:
    config = f"metrics: {{share: {{from: scores, scale: {scale}}}}}\nminimums: {{share: 0.75}}\n"
    shown = scored(config, 1, 1)
    assert "did you mean" not in shown
    assert "are all from 0 to 1" not in shown


def test_a_minimum_that_is_a_fraction_of_its_scale_is_a_warning_of_check_and_lint() -> None:
    config = "metrics: {share: {from: scores, scale: [0, 100]}}\nminimums: {share: 0.75}\n"
    slip = (
        "ragcontract.yml:2: minimums.share is 0.75 on a scale from 0 to 100; if it is a fraction of the scale, write 75"
    )
    assert slip in scored(config, 70, 80)
    ended = rag_contract("lint", "--strict")
    assert (ended.code, slip in ended.err) == (1, True)


@pytest.mark.parametrize(("key", "value"), [("mode", "strict"), ("mode", "significant"), ("alpha", "0.01")])
def test_how_drops_are_judged_without_a_limit_on_a_drop_is_a_warning(key: str, value: str) -> None:
    slip = f"ragcontract.yml:1: fail_on.{key} has no effect, because no limit on a drop or a rise is set"
    assert slip in scored(f"fail_on: {{{key}: {value}}}\nminimums: {{mrr_at_k: 0.5}}\n", 1, 1)
    ended = rag_contract("lint", "--strict")
    assert (ended.code, slip in ended.err) == (1, True)
    Path("ragcontract.yml").write_text(f"fail_on: {{{key}: {value}, mrr_drop_gt: 0.1}}\n")
    assert "has no effect" not in rag_contract("lint").err


@pytest.mark.parametrize(("minimum", "code"), [(0, 1), (0.5, 0)])
def test_a_pass_rate_that_alone_decides_and_never_fails_is_found_by_lint(minimum: float, code: int) -> None:
    Path("ragcontract.yml").write_text(f"per_query: {{fail_on: pass_rate}}\nminimums: {{pass_rate: {minimum}}}\n")
    ended = rag_contract("lint", "--strict")
    assert (ended.code, "[nothing-can-fail]" in ended.out) == (code, bool(code))
