"""Calibrates a judge: it judges what people have labelled, as it judges anything, twice."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from msgspec import Struct

from ragcontract.core.errors import InputError
from ragcontract.core.label_counts import LabelCounts
from ragcontract.files.rewriting import file_digest, in_turn, require_unchanged
from ragcontract.http.stopping import Stop
from ragcontract.judge.chat_model import ChatModel
from ragcontract.judge.expected_cost import Expected, expected_cost
from ragcontract.judge.journal_key import journal_key
from ragcontract.judge.judge_identity import query_keys
from ragcontract.judge.judging_run import JudgingSettings, copied_journal, judge_lacking, open_model
from ragcontract.judge.judging_session import Judged, Lacking, Progress, lacking
from ragcontract.judge.judgment_cache import Cache, by_key
from ragcontract.judge.judgment_journal import JudgmentJournal, open_journal, path_beside
from ragcontract.judge.labelled_items import Labelled
from ragcontract.judge.spending import Spending, Spent
from ragcontract.runs.calibration import FORMAT_VERSION, Calibration, CalibrationFile, write_calibration
from ragcontract.runs.judged_texts import Task, label_of
from ragcontract.runs.judgments import Judgment, QueryKey
from ragcontract.statistics.judge_trust import calibrated

PASSES = 2


class CalibrationOutcome(Struct, frozen=True, kw_only=True):
    """What came of calibrating; without a ``file``, nothing is written, because it ended early: see the last pass."""

    passes: tuple[Judged, ...]
    spent: Spent
    file: CalibrationFile | None = None


def calibrate(
    labelled: Labelled,
    judging: JudgingSettings,
    *,
    passes: int = PASSES,
    stop: Stop | None = None,
    watch: Callable[[Progress], object] = lambda _: None,
) -> CalibrationOutcome:
    """Judge labelled items, compare, and write the calibration; what was judged before an early end is not asked again.

    Nothing is reused but that. Raises InputError if the endpoint does not answer as one judge, or OutputError, also if
    another program has changed the file meanwhile.
    """
    read = file_digest(judging.path)
    spending = Spending(judging.budget)
    model = open_model(judging, spending)
    done: list[Judged] = []
    stop = stop or Stop()
    try:
        for number in range(1, passes + 1):
            done.append(_pass(number, labelled, judging, model=model, spending=spending, stop=stop, watch=watch))
            if done[-1].over is not None or done[-1].error is not None:
                return CalibrationOutcome(passes=tuple(done), spent=spending.spent)
    finally:
        model.close()
    try:
        calibrations = tuple(_calibrations(labelled, judging, model, [one.found for one in done]))
    except InputError:  # only other replies could help
        _forget(judging, passes)
        raise
    file = CalibrationFile(format_version=FORMAT_VERSION, calibrations=calibrations)
    with in_turn(judging.path):
        write_calibration(judging.path, file, before=partial(require_unchanged, judging.path, read))
    _forget(judging, passes)
    return CalibrationOutcome(passes=tuple(done), spent=spending.spent, file=file)


def expected_calibration(
    labelled: Labelled, judging: JudgingSettings, *, passes: int = PASSES
) -> tuple[Lacking, Expected]:
    """Return what all passes would ask, and what they would cost at least; sends nothing and writes nothing."""
    model = open_model(judging, Spending())
    each = [
        lacking(labelled.cases, model, judging.settings, _cache(judging, copied_journal(path, judging)))
        for path in (_journal_path(judging, number) for number in range(1, passes + 1))
    ]
    model.close()
    to_ask = Lacking(
        wanted=tuple(key for one in each for key in one.wanted),
        cached=tuple(judgment for one in each for judgment in one.cached),
        cases=tuple(case for one in each for case in one.cases),
    )
    return to_ask, expected_cost(to_ask, model, judging.settings)


def _cache(judging: JudgingSettings, journal: JudgmentJournal | None) -> Cache:
    """Return the judgments of a pass that did not end; no others are reused."""
    unfinished = by_key(journal.judgments) if journal else {}
    return Cache(now=judging.clock(), unfinished=unfinished, max_age_days=judging.max_age_days)


def _pass(
    number: int,
    labelled: Labelled,
    judging: JudgingSettings,
    *,
    model: ChatModel,
    spending: Spending,
    stop: Stop,
    watch: Callable[[Progress], object],
) -> Judged:
    """Judge everything; other passes have other dice, so they are asked otherwise."""
    path = _journal_path(judging, number)
    journal = open_journal(path, key=journal_key(judging.environ), refresh=judging.refresh, option="--out")
    try:
        to_ask = lacking(labelled.cases, model, judging.settings, _cache(judging, journal))
        return judge_lacking(to_ask, judging, model, journal, spending, stop=stop, watch=watch)
    finally:
        journal.close(remove=False)


def _forget(judging: JudgingSettings, passes: int) -> None:
    """Delete the journals."""
    for number in range(1, passes + 1):
        _journal_path(judging, number).unlink(missing_ok=True)


def _journal_path(judging: JudgingSettings, number: int) -> Path:
    path = Path(judging.path)
    return path_beside(path.with_name(f"{path.name}.{number}"))


def _calibrations(
    labelled: Labelled, judging: JudgingSettings, model: ChatModel, found: Sequence[Mapping[QueryKey, Judgment]]
) -> Iterator[Calibration]:
    of_task: dict[Task, list[tuple[QueryKey, bool]]] = {}
    for case, labels in zip(labelled.cases, labelled.labels, strict=True):
        keys = query_keys(case, judging.settings, model)
        of_task.setdefault(case.task, []).extend(zip(keys, labels, strict=True))
    for task, items in sorted(of_task.items()):
        first = [(said, label) for key, label in items if (said := _said(found[0], key)) is not None]
        cells = Counter(first)
        counts = LabelCounts(tp=cells[True, True], fp=cells[True, False], fn=cells[False, True], tn=cells[False, False])
        yield calibrated(
            task,
            counts,
            fingerprint=_fingerprint(task, [found[0][key] for key, _ in items]),
            at=judging.clock(),
            unjudged=len(items) - len(first),
            self_agreement=_self_agreement(found, [key for key, _ in items]),
        )


def _said(found: Mapping[QueryKey, Judgment], key: QueryKey) -> bool | None:
    """Return what the judge says, as people say it; None without a verdict."""
    verdict = found[key].verdict if key in found else None
    return None if verdict is None else label_of(verdict)


def _self_agreement(found: Sequence[Mapping[QueryKey, Judgment]], keys: Sequence[QueryKey]) -> float | None:
    """Return the share of items on which the first two passes say the same; None if there is nothing to compare."""
    pairs = [tuple(_said(one, key) for one in found[:PASSES]) for key in keys]
    both = [pair for pair in pairs if len(pair) == PASSES and None not in pair]
    return sum(one == other for one, other in both) / len(both) if both else None


def _fingerprint(task: Task, judgments: Sequence[Judgment]) -> str:
    """Return the fingerprint of all replies; raises InputError if there are several, or none."""
    asked = [one for one in judgments if one.model]
    prints = sorted({one.fingerprint for one in asked or judgments})
    if len(prints) > 1:
        several = "; ".join(prints[:PASSES])
        raise InputError(
            [f"{task}: the endpoint answered as several judges, which one file cannot stand for: {several}"]
        )
    return prints[0]
