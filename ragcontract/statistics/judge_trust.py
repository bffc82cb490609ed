"""Whether gates on what a judge said count: only with a calibration of this judge against people, and a good one."""

from collections.abc import Collection, Iterator
from datetime import datetime, timedelta

from ragcontract.core import bounds
from ragcontract.core.label_counts import LabelCounts
from ragcontract.core.numbers import SAME, count, digits_beside, fixed, percent
from ragcontract.core.text import shorten, visible
from ragcontract.runs.calibration import Calibration
from ragcontract.runs.judged_texts import Task
from ragcontract.statistics.agreement import cohen_kappa, wilson

# What a judged gate needs, to count. With 100 labels, half of them yes, a judge that is right nine times of ten always
# gets through, and one that is right seven times of ten hardly ever: docs/judge.md has the odds.
ENOUGH_LABELS, ENOUGH_OF_EACH = 50, 10
GOOD_KAPPA, GOOD_LOW = 0.6, 0.4
TOLERATED_UNJUDGED = 0.05
VALID_DAYS = 90


def calibrated(
    task: Task,
    counts: LabelCounts,
    *,
    fingerprint: str,
    at: datetime,
    unjudged: int = 0,
    self_agreement: float | None = None,
) -> Calibration:
    """Return a calibration, with what follows from its counts."""
    kappa, tpr, tnr = cohen_kappa(counts), wilson(counts.tp, counts.yes), wilson(counts.tn, counts.no)
    return Calibration(
        task=task,
        fingerprint=fingerprint,
        at=at,
        n=counts.n,
        counts=counts,
        unjudged=unjudged,
        tpr=tpr.value if tpr else None,
        tpr_low=tpr.low if tpr else None,
        tnr=tnr.value if tnr else None,
        tnr_low=tnr.low if tnr else None,
        kappa=kappa.value if kappa else None,
        kappa_low=kappa.low if kappa else None,
        self_agreement=self_agreement,
    )


def why_not(
    calibration: Calibration | None, task: Task, *, fingerprints: Collection[str], now: datetime
) -> tuple[str, ...]:
    """Return all reasons why gates on what a judge said do not count; none if they do.

    ``fingerprints`` are those of the judgments that the gates are about. Each reason completes "the judge is not
    calibrated: …".
    """
    if calibration is None:
        return (f"there is no calibration for {task}; label some items and run `rag-contract judge calibrate`",)
    return (*_of_whom_and_when(calibration, fingerprints, now), *_of_labels(calibration), *_of_agreement(calibration))


def _of_whom_and_when(calibration: Calibration, fingerprints: Collection[str], now: datetime) -> Iterator[str]:
    if others := sorted(set(fingerprints) - {calibration.fingerprint}):
        then, today = _shown(calibration.fingerprint), _shown(others[0])
        more = f" and {count(len(others) - 1, 'other')}" if len(others) > 1 else ""
        yield f"it was made with another judge ({then}) than the judgments ({today}{more})"
    age = now - calibration.at
    if age > timedelta(days=VALID_DAYS):
        days = max(age.days, VALID_DAYS + 1)  # a part of a day more than allowed is shown as more
        yield f"it is {days} days old, and at most {VALID_DAYS} count; run `rag-contract judge calibrate` again"
    if age < timedelta(0):
        yield f"it is from the future ({calibration.at:%Y-%m-%d}); is the clock right?"


def _of_labels(calibration: Calibration) -> Iterator[str]:
    counts = calibration.counts
    if counts.n < ENOUGH_LABELS:
        yield f"it has {count(counts.n, 'labelled item')} with a verdict, and at least {ENOUGH_LABELS} are needed"
    for said, number in (("yes", counts.yes), ("no", counts.no)):
        if number < ENOUGH_OF_EACH:
            yield f"people said {said} of {count(number, 'item')}, and at least {ENOUGH_OF_EACH} are needed"
    labelled = counts.n + calibration.unjudged
    if labelled and (share := calibration.unjudged / labelled) > TOLERATED_UNJUDGED + SAME:
        yield f"{percent(share)} of the labelled items have no verdict, and at most {percent(TOLERATED_UNJUDGED)} may"


def _of_agreement(calibration: Calibration) -> Iterator[str]:
    kappa = cohen_kappa(calibration.counts)
    if kappa is None:
        yield "people said the same of all items, so that kappa says nothing"
    else:
        if kappa.value < GOOD_KAPPA - SAME:
            yield f"kappa is {_beside(kappa.value, GOOD_KAPPA)}, and at least {fixed(GOOD_KAPPA, 2)} is needed"
        if kappa.low < GOOD_LOW - SAME:
            low = _beside(kappa.low, GOOD_LOW)
            yield f"kappa may be as low as {low}, and at least {fixed(GOOD_LOW, 2)} is needed; label more items"
    for name in ("n", "tpr", "tpr_low", "tnr", "tnr_low", "kappa", "kappa_low"):
        given, computed = getattr(calibration, name), getattr(_computed(calibration), name)
        if given != computed and (given is None or computed is None or abs(given - computed) > SAME):
            yield f"its {name} is {given}, but its counts make that {computed}"


def _computed(calibration: Calibration) -> Calibration:
    one = calibration
    return calibrated(one.task, one.counts, fingerprint=one.fingerprint, at=one.at)


def _beside(value: float, limit: float) -> str:
    return fixed(value, digits_beside(value, limit))


def _shown(fingerprint: str) -> str:
    return shorten(visible(fingerprint), bounds.VALUE)
