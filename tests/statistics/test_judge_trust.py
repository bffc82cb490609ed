"""A judged gate counts only with a good calibration of the same judge; each reason against it is said."""

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from ragcontract.core.label_counts import LabelCounts
from ragcontract.runs.calibration import Calibration
from ragcontract.statistics.agreement import cohen_kappa
from ragcontract.statistics.judge_trust import calibrated, why_not
from tests.runs.judgment_lines import AT

GOOD = (45, 5, 5, 45)


def calibration(table: tuple[int, int, int, int] = GOOD, **fields: Any) -> Calibration:
    counts = LabelCounts(tp=table[0], fp=table[1], fn=table[2], tn=table[3])
    return calibrated("attribution", counts, **{"fingerprint": "m", "at": AT, **fields})


def reasons(one: Calibration | None, *fingerprints: str, days: float = 0) -> tuple[str, ...]:
    return why_not(one, "attribution", fingerprints=fingerprints or ("m",), now=AT + timedelta(days=days))


@pytest.mark.parametrize(
    ("table", "fields"),
    [
        (GOOD, {}),
        ((20, 3, 3, 24), {}),  # 50 labels
        ((10, 1, 0, 41), {}),  # 10 of one label
        (GOOD, {"unjudged": 5}),  # 4.8 %
        ((40, 10, 10, 40), {}),  # kappa 0.6
    ],
)
def test_a_good_calibration_of_the_same_judge_counts(table: Any, fields: dict[str, Any]) -> None:
    assert reasons(calibration(table, **fields)) == ()
    assert reasons(calibration(table, **fields), days=90) == ()


@pytest.mark.parametrize(
    ("table", "fields", "reason"),
    [
        ((20, 2, 2, 25), {}, "it has 49 labelled items with a verdict, and at least 50 are needed"),
        ((9, 0, 0, 50), {}, "people said yes of 9 items, and at least 10 are needed"),
        ((50, 0, 0, 9), {}, "people said no of 9 items, and at least 10 are needed"),
        ((159, 41, 41, 159), {}, "kappa is 0.59, and at least 0.60 is needed"),
        ((8, 5, 2, 35), {}, "kappa may be as low as 0.39, and at least 0.40 is needed; label more items"),
        (GOOD, {"unjudged": 6}, "5.66% of the labelled items have no verdict, and at most 5% may"),
    ],
)
def test_each_lack_is_refused_with_its_reason(table: Any, fields: dict[str, Any], reason: str) -> None:
    assert reasons(calibration(table, **fields)) == (reason,)


def test_a_calibration_of_another_judge_does_not_count() -> None:
    assert reasons(calibration(), "n") == ("it was made with another judge (m) than the judgments (n)",)
    assert reasons(calibration(), "m", "n", "o") == (
        "it was made with another judge (m) than the judgments (n and 1 other)",
    )


def test_an_old_calibration_does_not_count_and_neither_does_one_of_the_future() -> None:
    assert reasons(calibration(), days=91) == (
        "it is 91 days old, and at most 90 count; run `rag-contract judge calibrate` again",
    )
    assert reasons(calibration(), days=90.1)[0].startswith("it is 91 days old, and at most 90 count")
    assert reasons(calibration(), days=-1) == ("it is from the future (2026-11-22); is the clock right?",)


@pytest.mark.parametrize("table", [(60, 0, 0, 0), (0, 0, 0, 60), (50, 0, 10, 0)])
def test_labels_that_are_all_alike_say_nothing(table: Any) -> None:
    assert "people said the same of all items, so that kappa says nothing" in reasons(calibration(table))


def test_without_a_calibration_nothing_counts() -> None:
    assert reasons(None) == (
        "there is no calibration for attribution; label some items and run `rag-contract judge calibrate`",
    )


def test_all_reasons_are_said_at_once() -> None:
    bad = calibration((3, 5, 5, 15), unjudged=10)
    assert len(reasons(bad, "n", days=91)) == 7


@pytest.mark.parametrize("field", ["n", "tpr", "tpr_low", "tnr", "tnr_low", "kappa", "kappa_low"])
def test_a_number_that_was_edited_by_hand_does_not_count(field: str) -> None:
    edited = replace(calibration(), **{field: 0.99 if field != "n" else 200})
    assert [reason for reason in reasons(edited) if reason.startswith(f"its {field} is ")]
    assert reasons(replace(calibration(), kappa=None)) == ("its kappa is None, but its counts make that 0.8",)


def test_a_name_that_would_act_on_a_terminal_is_shown_as_an_escape() -> None:
    assert r"\x1b[31m" in reasons(calibration(), "\x1b[31mn")[0]


def test_the_numbers_follow_from_the_counts() -> None:
    one = calibration()
    kappa = cohen_kappa(one.counts)
    assert kappa is not None
    assert (one.n, one.tpr, one.tnr, one.kappa, one.kappa_low) == (100, 0.9, 0.9, kappa.value, kappa.low)
    assert [one.tpr_low, one.tnr_low] == pytest.approx([0.80846] * 2, abs=1e-5)
