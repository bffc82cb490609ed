import pytest

from benchmarks import tools
from benchmarks.results import Target, targets
from benchmarks.rounds import Samples
from tests.benchmarks.builders import results, sample


@pytest.mark.parametrize(
    ("value", "least", "verdict"),
    [
        (4.0, False, "met"),
        (5.0, False, "**missed** by 25%"),
        (12.0, False, "**missed**, 3.0 times off"),
        (4.0, True, "met"),
        (3.2, True, "**missed** by 25%"),
        (None, True, "not measured"),
    ],
)
def test_a_target_is_met_or_missed_by_so_much(value: float | None, least: bool, verdict: str) -> None:
    assert Target(what="", limit=4, value=value, least=least).verdict == verdict


def test_the_targets_are_taken_from_what_was_measured() -> None:
    values = [target.value for target in targets(results())]
    assert values == [
        pytest.approx(value)
        for value in (0.101 / 0.1, 1.1 / 0.5, 50.1 / 1.1, 50.1 / 1.1, 1.1 / 2.1, 510 / 20, 1, 0.11e9 / (1 << 30))
    ] + [pytest.approx((1.0 - 0.4) / (0.8 - 0.3)), pytest.approx(100)]


def test_what_was_not_measured_is_said_and_not_met() -> None:
    few = results(sizes=(100, 10_000))
    values = [target.value for target in targets(few)]
    assert [value is None for value in values] == [False, True, True, True, True, True, True, True, False, False]


def test_ratios_are_of_rounds_not_of_medians() -> None:
    found = results(sizes=(100_000,))
    rounds: Samples = {tools.OURS: [sample(1), sample(10), sample(1)], tools.FLOOR: [sample(0.5), sample(1), sample(1)]}
    found.samples["100000"].update(rounds)
    assert [target.value for target in targets(found)][1] == 2
