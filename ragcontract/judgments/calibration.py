"""The calibration of a judge: the file ``judge-calibration.json``, and whether limits on its judgments count.

They count only with a good calibration of this judge against people, whose yes or no on the same items are labels. The
agreement is Cohen's kappa with its standard error, and the rates at which the judge is right.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import datetime, timedelta
from math import sqrt
from typing import Annotated, TypeAlias

import msgspec
from msgspec import Meta, Struct

from ragcontract.core import bounds
from ragcontract.core.config_sections import Count, LabelCounts, Task
from ragcontract.core.errors import InputError
from ragcontract.core.numbers import SAME, count, digits_beside, fixed, percent
from ragcontract.core.phrase import Location, Message
from ragcontract.core.run import Moment
from ragcontract.core.safe_text import shorten, visible
from ragcontract.files.json_lines import UNDECODABLE, explained
from ragcontract.files.json_text import JsonLocator, check_nesting, doubled_key, fault, malformed
from ragcontract.files.opening import READ_ERRORS, read_problem, read_within
from ragcontract.files.problems import Problem
from ragcontract.files.writing import document, write_files

Z_90 = 1.6448536269514722  # standard errors of a 90 % interval, and of a 95 % bound on one side
# What the calibration of a judge needs. With 100 labels, half of them yes, a judge that is right nine times out of ten
# always passes, and a judge that is right seven times out of ten hardly ever does; docs/guides/judge.md has the odds.
ENOUGH_LABELS, ENOUGH_OF_EACH = 50, 10
GOOD_KAPPA, GOOD_LOW = 0.6, 0.4
TOLERATED_UNJUDGED = 0.05
VALID_DAYS = 90
Why: TypeAlias = tuple[str, str]  # a reason, and what to do about it, which may be empty
CALIBRATE = "run `rag-contract judge calibrate`"
LABEL_MORE, BETTER_JUDGE = f"label more items, and {CALIBRATE} again", "ask another model, and calibrate that"
OTHER_JUDGE = "calibrate the judge that is asked, or ask the one that was calibrated"
FORMAT_VERSION = 1
REMAKE = "make it with `rag-contract judge calibrate`"
Share = Annotated[float, Meta(ge=0, le=1)]


class Calibration(Struct, frozen=True, kw_only=True):
    """How well a judge agreed with people at one task. Rates and kappa are for readers; they follow from ``counts``."""

    task: Annotated[Task, Meta(description="What was judged.")]
    fingerprint: Annotated[str, Meta(max_length=bounds.FINGERPRINT, description="Who judged, and how.")]
    at: Annotated[Moment, Meta(description="When.")]
    n: Annotated[Count, Meta(description="The labelled items that have a verdict.")]
    counts: LabelCounts
    unjudged: Annotated[Count, Meta(description="The labelled items that have none.")] = 0
    tpr: Annotated[Share | None, Meta(description="How often the judge says yes where people do.")] = None
    tpr_low: Annotated[Share | None, Meta(description="The lower end of its 90 % interval (Wilson).")] = None
    tnr: Annotated[Share | None, Meta(description="How often the judge says no where people do.")] = None
    tnr_low: Annotated[Share | None, Meta(description="The lower end of its 90 % interval (Wilson).")] = None
    kappa: Annotated[Annotated[float, Meta(ge=-1, le=1)] | None, Meta(description="Cohen's kappa.")] = None
    kappa_low: Annotated[float | None, Meta(description="The lower end of its 90 % interval.")] = None
    self_agreement: Annotated[
        Share | None, Meta(description="How often the judge says the same of an item when it is asked again.")
    ] = None


class _Head(Struct, frozen=True, kw_only=True):
    format_version: int


class CalibrationFile(Struct, frozen=True, kw_only=True):
    """The whole file: one calibration for each task that was labelled."""

    format_version: int
    calibrations: Annotated[tuple[Calibration, ...], Meta(min_length=1)]


def write_calibration(path: str, file: CalibrationFile, before: Callable[[], None] = lambda: None) -> None:
    """Write the file, whole or not at all, and not if ``before`` raises anything; raise OutputError."""
    write_files({path: document(file, {})}, before)


def read_calibration(path: str) -> CalibrationFile:
    """Return the content of the file; raise InputError with everything that is wrong with it."""
    try:
        data, _ = read_within(bounds.CALIBRATION, path)
    except READ_ERRORS as error:
        raise InputError([f"{path}: {read_problem(error)}"]) from error
    if not data.strip():
        raise InputError([f"{path}: is empty; {REMAKE}"])
    try:
        check_nesting(data)
        version = msgspec.json.decode(data, type=_Head).format_version
        if version != FORMAT_VERSION:
            what = f"has format version {version}, and this rag-contract reads version {FORMAT_VERSION}"
            raise InputError([f"{path}: {what}; {REMAKE}"])
        file = msgspec.json.decode(data, type=CalibrationFile)
        if (key := doubled_key(data)) is not None:
            raise InputError([Message.of(f"{path}: ", fault(key), f"; {REMAKE}")])
    except UNDECODABLE as error:
        raise InputError(list(_problems(data, path, error))) from error
    tasks = [calibration.task for calibration in file.calibrations]
    if twice := sorted({task for task in tasks if tasks.count(task) > 1}):
        raise InputError([f"{path}: has two calibrations for {task!r}; {REMAKE}" for task in twice])
    return file


def _problems(data: bytes, path: str, error: Exception) -> Iterator[str]:
    """Yield everything that is wrong with a file that cannot be decoded, each with its line."""
    locator = JsonLocator(data.decode(errors="replace")) if isinstance(error, msgspec.ValidationError) else None
    for mismatch in explained(data, error, CalibrationFile):
        line = locator.line(mismatch.path) if locator else malformed(data, error)[0]
        yield str(Problem.of(Location(path, line), mismatch))


def labels_needed(task: Task, *, yes: int, no: int) -> str:
    """Return how many more labels a calibration needs at least, and of which kind."""
    lacking = {"yes": max(0, ENOUGH_OF_EACH - yes), "no": max(0, ENOUGH_OF_EACH - no)}
    more = max(ENOUGH_LABELS - yes - no, sum(lacking.values()))
    if more <= 0:
        return f"A calibration of {task} has all the labels that it needs."
    kinds = " and ".join(f"{number} {kind}" for kind, number in lacking.items() if number)
    return f"A calibration of {task} needs {count(more, 'more label')}{kinds and f', among them at least {kinds}'}."


def why_not(
    calibrations: Mapping[Task, Calibration], task: Task, *, fingerprints: Collection[str], now: datetime
) -> tuple[str, ...]:
    """Return all reasons why limits on judgments do not count, with what to do; none if they count.

    ``calibrations`` are those of the calibration file, ``fingerprints`` those of the judgments. Each reason completes
    "the judge is not calibrated: …".
    """
    calibration = calibrations.get(task)
    if calibration is None:
        return (_no_calibration(task, calibrations),)
    reasons = [
        *_of_whom_and_when(calibration, fingerprints, now),
        *_of_labels(calibration),
        *_of_agreement(calibration),
    ]
    following = [advice for _, advice in reasons[1:]]  # consecutive reasons with the same advice have it once
    pairs = zip(reasons, [*following, ""], strict=False)  # no advice follows the last reason
    return tuple(f"{why}; {advice}" if advice and advice != after else why for (why, advice), after in pairs)


def checked_calibrations(path: str) -> dict[Task, Calibration]:
    """Return the calibrations of a file by task; raise InputError, also if numbers contradict the counts."""
    file = read_calibration(path)
    problems = [
        f"{path}: calibrations[{at}].{why}; {REMAKE}"
        for at, calibration in enumerate(file.calibrations)
        for why in contradictions(calibration)
    ]
    if problems:
        raise InputError(problems)
    return {calibration.task: calibration for calibration in file.calibrations}


def contradictions(calibration: Calibration) -> Iterator[str]:
    """Yield a message for each number that does not follow from the counts, because somebody edited it."""
    for name in ("n", "tpr", "tpr_low", "tnr", "tnr_low", "kappa", "kappa_low"):
        stated, computed = getattr(calibration, name), getattr(_computed(calibration), name)
        if stated != computed and (stated is None or computed is None or abs(stated - computed) > SAME):
            yield f"{name}: is {_json(stated)}, but its counts make that {_json(computed)}"


def calibrated(
    task: Task,
    counts: LabelCounts,
    *,
    fingerprint: str,
    at: datetime,
    unjudged: int = 0,
    self_agreement: float | None = None,
) -> Calibration:
    """Return a calibration, with the rates and the kappa that follow from its counts."""
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


class Kappa(Struct, frozen=True):
    """Cohen's kappa and its standard error."""

    value: float
    error: float

    @property
    def low(self) -> float:
        return self.value - Z_90 * self.error


def cohen_kappa(counts: LabelCounts) -> Kappa | None:
    """Return how much of the agreement is beyond chance: 1 is all of it, 0 none, below 0 less than chance.

    None if people say the same of all items. Every judge then agrees as often as chance, and kappa says nothing.

    Cohen, *A Coefficient of Agreement for Nominal Scales*, Educational and Psychological Measurement 20 (1960). The
    standard error is that of Fleiss, Cohen and Everitt, *Large Sample Standard Errors of Kappa and Weighted Kappa*,
    Psychological Bulletin 72 (1969), for a kappa that is not 0.
    """
    n = counts.n
    if not counts.yes or not counts.no:
        return None
    cells = ((counts.tp / n, counts.fp / n), (counts.fn / n, counts.tn / n))  # by the judge, by people
    judge = [sum(row) for row in cells]
    people = [sum(column) for column in zip(*cells, strict=True)]
    observed = cells[0][0] + cells[1][1]
    chance = sum(of_judge * other for of_judge, other in zip(judge, people, strict=True))
    value = (observed - chance) / (1 - chance)
    agreeing = sum(
        cells[at][at] * ((1 - chance) - (judge[at] + people[at]) * (1 - observed)) ** 2 for at in range(len(cells))
    )
    differing = sum(cells[at][1 - at] * (judge[1 - at] + people[at]) ** 2 for at in range(len(cells)))
    variance = agreeing + (1 - observed) ** 2 * differing - (observed * chance - 2 * chance + observed) ** 2
    return Kappa(value, sqrt(max(0.0, variance) / n) / (1 - chance) ** 2)


class Rate(Struct, frozen=True):
    """A share, with the bounds of its 90 % interval."""

    value: float
    low: float
    high: float


def wilson(successes: int, of: int) -> Rate | None:
    """Return a share and its score interval; None if there are no items.

    Wilson, *Probable Inference, the Law of Succession, and Statistical Inference*, Journal of the American Statistical
    Association 22 (1927). The interval stays within 0 and 1, and holds for shares near them and for few items, too.
    """
    if not of:
        return None
    share, z2 = successes / of, Z_90**2 / of
    middle = (share + z2 / 2) / (1 + z2)
    half = Z_90 * sqrt(share * (1 - share) / of + z2 / (4 * of)) / (1 + z2)
    return Rate(share, max(0.0, min(share, middle - half)), min(1.0, max(share, middle + half)))


def rogan_gladen(observed: float, counts: LabelCounts) -> float | None:
    """Return the estimated share of items that people would say yes to, from 0 to 1.

    ``observed`` is the share that the judge says yes to. Rogan and Gladen, *Estimating Prevalence from the Results of a
    Screening Test*, American Journal of Epidemiology 107 (1978). None for a judge that is not better than chance, or
    whose rates are not known.
    """
    if not counts.yes or not counts.no:
        return None
    right_yes, right_no = counts.tp / counts.yes, counts.tn / counts.no
    if right_yes + right_no <= 1:
        return None
    return min(1.0, max(0.0, (observed + right_no - 1) / (right_yes + right_no - 1)))


def _no_calibration(task: Task, others: Collection[Task]) -> str:
    if others:
        what = f"the calibration is of {' and '.join(sorted(others))}, and there is none for {task}"
        return f"{what}; label items of it, too, and {CALIBRATE} again"
    name = "name its file with --calibration (in the action, the input calibration)"
    return f"there is no calibration for {task}; label some items, {CALIBRATE}, and {name}"


def _of_whom_and_when(calibration: Calibration, fingerprints: Collection[str], now: datetime) -> Iterator[Why]:
    if others := sorted(set(fingerprints) - {calibration.fingerprint}):
        then, today = _shown(calibration.fingerprint), _shown(others[0])
        more = f" and {count(len(others) - 1, 'other')}" if len(others) > 1 else ""
        yield f"it was made with another judge ({then}) than the judgments ({today}{more})", OTHER_JUDGE
    age = now - calibration.at
    if age > timedelta(days=VALID_DAYS):
        days = max(age.days, VALID_DAYS + 1)  # a part of a day more than allowed is shown as more
        yield f"it is {days} days old, and at most {VALID_DAYS} count", f"{CALIBRATE} again"
    if age < timedelta(0):
        yield f"it is from the future ({calibration.at:%Y-%m-%d})", "is the clock right?"


def _of_labels(calibration: Calibration) -> Iterator[Why]:
    counts = calibration.counts
    if counts.n < ENOUGH_LABELS:
        has = f"it has {count(counts.n, 'labelled item')} with a verdict"
        yield f"{has}, and at least {ENOUGH_LABELS} are needed", LABEL_MORE
    for label, number in (("yes", counts.yes), ("no", counts.no)):
        if number < ENOUGH_OF_EACH:
            yield (
                f"people said {label} of {count(number, 'item')}, and at least {ENOUGH_OF_EACH} are needed",
                LABEL_MORE,
            )
    labelled = counts.n + calibration.unjudged
    if labelled and (share := calibration.unjudged / labelled) > TOLERATED_UNJUDGED + SAME:
        lack = f"{percent(share)} of the labelled items have no verdict"
        yield f"{lack}, and at most {percent(TOLERATED_UNJUDGED)} may", BETTER_JUDGE


def _of_agreement(calibration: Calibration) -> Iterator[Why]:
    kappa = cohen_kappa(calibration.counts)
    if kappa is None:
        yield "people said the same of all items, so that kappa says nothing", LABEL_MORE
        return
    advice = LABEL_MORE  # narrows the interval, and does not make a judge better
    if kappa.value < GOOD_KAPPA - SAME:
        what, advice = f"kappa is {_beside(kappa.value, GOOD_KAPPA)}", BETTER_JUDGE
        yield f"{what}, and at least {fixed(GOOD_KAPPA, 2)} is needed", advice
    if kappa.low < GOOD_LOW - SAME:
        low = _beside(kappa.low, GOOD_LOW)
        yield f"kappa may be as low as {low}, and at least {fixed(GOOD_LOW, 2)} is needed", advice


def _computed(calibration: Calibration) -> Calibration:
    return calibrated(calibration.task, calibration.counts, fingerprint=calibration.fingerprint, at=calibration.at)


def _beside(value: float, limit: float) -> str:
    return fixed(value, digits_beside(value, limit))


def _json(value: float | None) -> str:
    return "null" if value is None else f"{value:.10g}"


def _shown(fingerprint: str) -> str:
    return shorten(visible(fingerprint), bounds.VALUE)
