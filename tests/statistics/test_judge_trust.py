"""A judged gate counts only with a good calibration of the same judge; each reason against it is said."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from ragcontract.core.config_sections import LabelCounts, Task
from ragcontract.core.errors import InputError
from ragcontract.judgments.calibration import (
    FORMAT_VERSION,
    Calibration,
    CalibrationFile,
    calibrated,
    checked_calibrations,
    cohen_kappa,
    why_not,
    write_calibration,
)
from tests.runs.judgment_lines import AT

GOOD = (45, 5, 5, 45)
LABEL_MORE = "label more items, and run `rag-contract judge calibrate` again"
BETTER_JUDGE = "ask another model, and calibrate that"
OTHER_JUDGE = "calibrate the judge that is asked, or ask the one that was calibrated"


def calibration(table: tuple[int, int, int, int] = GOOD, **fields: Any) -> Calibration:
    counts = LabelCounts(tp=table[0], fp=table[1], fn=table[2], tn=table[3])
    return calibrated("attribution", counts, **{"fingerprint": "m", "at": AT, **fields})


def reasons(one: Calibration | None, *fingerprints: str, days: float = 0) -> tuple[str, ...]:
    calibrations: dict[Task, Calibration] = {} if one is None else {"attribution": one}
    now = AT + timedelta(days=days)
    return why_not(calibrations, "attribution", fingerprints=fingerprints or ("m",), now=now)


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
        ((20, 2, 2, 25), {}, f"it has 49 labelled items with a verdict, and at least 50 are needed; {LABEL_MORE}"),
        ((9, 0, 0, 50), {}, f"people said yes of 9 items, and at least 10 are needed; {LABEL_MORE}"),
        ((50, 0, 0, 9), {}, f"people said no of 9 items, and at least 10 are needed; {LABEL_MORE}"),
        ((159, 41, 41, 159), {}, f"kappa is 0.59, and at least 0.60 is needed; {BETTER_JUDGE}"),
        ((8, 5, 2, 35), {}, f"kappa may be as low as 0.39, and at least 0.40 is needed; {LABEL_MORE}"),
        (GOOD, {"unjudged": 6}, f"5.66% of the labelled items have no verdict, and at most 5% may; {BETTER_JUDGE}"),
    ],
)
def test_each_lack_is_refused_with_its_reason(table: Any, fields: dict[str, Any], reason: str) -> None:
    assert reasons(calibration(table, **fields)) == (reason,)


def test_a_calibration_of_another_judge_does_not_count() -> None:
    assert reasons(calibration(), "n") == (f"it was made with another judge (m) than the judgments (n); {OTHER_JUDGE}",)
    assert reasons(calibration(), "m", "n", "o") == (
        f"it was made with another judge (m) than the judgments (n and 1 other); {OTHER_JUDGE}",
    )


def test_an_old_calibration_does_not_count_and_neither_does_one_of_the_future() -> None:
    assert reasons(calibration(), days=91) == (
        "it is 91 days old, and at most 90 count; run `rag-contract judge calibrate` again",
    )
    assert reasons(calibration(), days=90.1)[0].startswith("it is 91 days old, and at most 90 count")
    assert reasons(calibration(), days=-1) == ("it is from the future (2026-11-22); is the clock right?",)


@pytest.mark.parametrize("table", [(60, 0, 0, 0), (0, 0, 0, 60), (50, 0, 10, 0)])
def test_labels_that_are_all_alike_say_nothing(table: Any) -> None:
    assert reasons(calibration(table))[-1] == (
        f"people said the same of all items, so that kappa says nothing; {LABEL_MORE}"
    )


def test_without_a_calibration_nothing_counts() -> None:
    assert reasons(None) == (
        (
            "there is no calibration for attribution; label some items, run `rag-contract judge calibrate`, "
            "and name its file with --calibration (in the action, the input calibration)"
        ),
    )


def test_a_calibration_of_other_tasks_is_not_asked_for_again() -> None:
    others: dict[Task, Calibration] = {"criteria": calibration(), "confirmation": calibration()}
    found = why_not(others, "attribution", fingerprints=["m"], now=AT)
    assert found == (
        (
            "the calibration is of confirmation and criteria, and there is none for attribution; label items of it, "
            "too, and run `rag-contract judge calibrate` again"
        ),
    )


def test_more_labels_do_not_help_a_judge_that_is_wrong() -> None:
    found = reasons(calibration((30, 20, 20, 30)))
    assert [reason.partition(",")[0] for reason in found] == ["kappa is 0.20", "kappa may be as low as 0.04"]
    assert found[-1].endswith(BETTER_JUDGE)


def test_what_to_do_about_several_reasons_is_said_once() -> None:
    found = reasons(calibration((9, 0, 0, 9)))
    assert ["; " in reason for reason in found] == [False, False, True]
    assert found[-1].endswith(LABEL_MORE)


def test_all_reasons_are_said_at_once() -> None:
    bad = calibration((3, 5, 5, 15), unjudged=10)
    assert len(reasons(bad, "n", days=91)) == 7


@pytest.mark.parametrize("field", ["n", "tpr", "tpr_low", "tnr", "tnr_low", "kappa", "kappa_low"])
def test_a_number_that_was_edited_by_hand_is_refused_when_it_is_read(field: str, tmp_path: Path) -> None:
    path = str(tmp_path / "c.json")
    for value in (200 if field == "n" else 0.99, *([] if field == "n" else [None])):
        edited = replace(calibration(), **{field: value})
        write_calibration(path, CalibrationFile(format_version=FORMAT_VERSION, calibrations=(edited,)))
        with pytest.raises(InputError) as refused:
            checked_calibrations(path)
        (problem,) = refused.value.problems
        shown = "null" if value is None else value
        assert problem.startswith(f"{path}: calibrations[0].{field}: is {shown}, but its counts make that ")
        assert problem.endswith("; make it with `rag-contract judge calibrate`")


def test_a_calibration_as_it_was_made_is_read(tmp_path: Path) -> None:
    path, made = str(tmp_path / "c.json"), [calibration(), calibration((50, 0, 0, 0))]
    made[1] = replace(made[1], task="criteria")
    write_calibration(path, CalibrationFile(format_version=FORMAT_VERSION, calibrations=tuple(made)))
    assert checked_calibrations(path) == {one.task: one for one in made}


def test_a_name_that_would_act_on_a_terminal_is_shown_as_an_escape() -> None:
    assert r"\x1b[31m" in reasons(calibration(), "\x1b[31mn")[0]


def test_the_numbers_follow_from_the_counts() -> None:
    one = calibration()
    kappa = cohen_kappa(one.counts)
    assert kappa is not None
    assert (one.n, one.tpr, one.tnr, one.kappa, one.kappa_low) == (100, 0.9, 0.9, kappa.value, kappa.low)
    assert [one.tpr_low, one.tnr_low] == pytest.approx([0.80846] * 2, abs=1e-5)
