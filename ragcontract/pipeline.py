"""What rag-contract does, on one screen: read, score, judge, report. Start here.

Everything between reading the files and delivering the text is pure; the clock and the progress display are handed in.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from msgspec import Struct

from ragcontract.contract.config import LoadedConfig, read_config
from ragcontract.contract.golden_file import read_golden
from ragcontract.core.errors import InputError
from ragcontract.core.numbers import count
from ragcontract.evaluation.scored import Elsewhere, Retrieval, Scored, score_baseline, score_run
from ragcontract.files.opening import Progress, no_progress, resolve
from ragcontract.files.problems import Diagnostics
from ragcontract.judging.preconditions import can_be_judged, first_file, hold_together, named, too_steep
from ragcontract.judging.verdict import judge, without_judging
from ragcontract.judging.waivers import with_waivers
from ragcontract.metrics.formulas import LARGEST_EXPONENT, metrics_at
from ragcontract.metrics.ranking import Scorer
from ragcontract.model import Detail, Report
from ragcontract.reports.build import Checked, build_report, checked
from ragcontract.runs.run_file import RunRows
from ragcontract.runs.stored import BaselineFile, StoredBaseline, read_baseline

Clock = Callable[[], datetime]


class Paths(Struct, frozen=True, kw_only=True):
    """Where the inputs are: paths or globs. None is what was not given.

    With ``repeats`` a run may have several rows a query, which are averaged.
    """

    golden: Sequence[str]
    run: Sequence[str]
    baseline: Sequence[str] | None = None
    config: str | None = None
    repeats: bool = False


class Kept(Struct, kw_only=True):
    """What is held besides scores, for those who ask: the stored baseline; by query id the document ids of each row."""

    doc_ids: dict[str, list[list[str]]] = {}
    baseline: BaselineFile | None = None


class Update(Struct, frozen=True, kw_only=True):
    """A run that is to follow on the ``stored`` baseline: the verdict on it, its scores and its document ids."""

    report: Report
    scored: Scored
    doc_ids: dict[str, list[list[str]]]
    stored: BaselineFile


def check(
    paths: Paths,
    *,
    clock: Clock,
    k: int | None = None,
    progress: Progress = no_progress,
    run: Retrieval | None = None,
    elsewhere: Elsewhere | None = None,
) -> Report:
    """Judge a run against its contract; raises :class:`~ragcontract.core.errors.InputError` if it cannot be judged.

    A ``run`` that is at hand takes the place of the files of ``paths.run``, and so do runs ``elsewhere``.
    """
    return check_for_files(paths, clock=clock, k=k, progress=progress, run=run, elsewhere=elsewhere).report


def check_for_files(
    paths: Paths,
    *,
    clock: Clock,
    k: int | None = None,
    progress: Progress = no_progress,
    run: Retrieval | None = None,
    elsewhere: Elsewhere | None = None,
    detail: Detail | None = None,
) -> Checked:
    """Judge as :func:`check` does, and have the queries ready that ``report.json`` is to list."""
    scored, warnings = read_and_score(paths, k=k, progress=progress, judged=True, rows=run, elsewhere=elsewhere)
    return _judged(scored, warnings, clock(), detail)


def _judged(scored: Scored, warnings: list[str], now: datetime, detail: Detail | None = None) -> Checked:
    judgement, about_waivers = with_waivers(judge(scored, warnings), scored, now.astimezone(UTC).date())
    return checked(scored, judgement, [*warnings, *about_waivers], now, detail)


def compare(
    paths: Paths,
    *,
    clock: Clock,
    k: int | None = None,
    progress: Progress = no_progress,
    elsewhere: Elsewhere | None = None,
) -> Report:
    """Report the same numbers as :func:`check` without judging them: no gates, no rules, always a pass."""
    scored, warnings = read_and_score(paths, k=k, progress=progress, elsewhere=elsewhere)
    return build_report(scored, without_judging(scored), warnings, clock())


def good_run(
    paths: Paths, *, k: int | None = None, progress: Progress = no_progress
) -> tuple[Scored, dict[str, list[list[str]]], list[str]]:
    """Read a run that is to become the baseline: its scores, the document ids of a query's rows, and the warnings.

    Raises :class:`~ragcontract.core.errors.InputError` if it does not cover the golden set, whatever the config says.
    """
    kept = Kept()
    scored, warnings = read_and_score(paths, k=k, progress=progress, keep=kept)
    _covers_all(scored, warnings)
    return scored, kept.doc_ids, warnings


def update(paths: Paths, *, clock: Clock, k: int | None = None, progress: Progress = no_progress) -> Update:
    """Judge a run as :func:`check` does that is to follow on the stored baseline; each file is read once.

    Raises :class:`~ragcontract.core.errors.InputError` where :func:`check` or :func:`good_run` would.
    """
    kept = Kept()
    scored, warnings = read_and_score(paths, k=k, progress=progress, keep=kept, judged=True)
    _covers_all(scored, warnings)
    if kept.baseline is None:
        raise InputError(["there is no stored baseline to update"], warnings=warnings)
    report = _judged(scored, warnings, clock()).report
    return Update(report=report, scored=scored, doc_ids=kept.doc_ids, stored=kept.baseline)


def _covers_all(scored: Scored, warnings: list[str]) -> None:
    if scored.run.missing:
        missing = count(len(scored.run.missing), "golden query")
        raise InputError(
            [f"{first_file(scored.run)}: lacks {missing} ({named(scored.run.missing)}), so it can be no baseline"],
            warnings=warnings,
        )


def read_and_score(
    paths: Paths,
    *,
    k: int | None = None,
    progress: Progress = no_progress,
    keep: Kept | None = None,
    judged: bool = False,
    rows: Retrieval | None = None,
    elsewhere: Elsewhere | None = None,
) -> tuple[Scored, list[str]]:
    """Read all inputs and score both sides; returns the scores and the warnings.

    The run's document ids and the stored baseline are not held, unless ``keep`` is given to put them in. Raises
    :class:`~ragcontract.core.errors.InputError` with everything that is wrong with any of the files; where the gates
    are to be ``judged``, a limit on a drop without a baseline is among it.
    """
    diagnostics = Diagnostics()
    config = read_config(paths.config, diagnostics) if paths.config is not None else LoadedConfig()
    metrics = metrics_at(k or config.config.k)
    if judged:
        can_be_judged(config, metrics, diagnostics, has_baseline=paths.baseline is not None)

    apart_from_rows = diagnostics.problems
    golden = read_golden(resolve(paths.golden, diagnostics), diagnostics, progress)
    steep = too_steep(golden.queries.values(), config)
    gain = "linear" if steep else config.config.gain  # to go on; nothing comes of it
    scorer = Scorer(metrics, config.config.rank_by, gain)
    largest = max(metric.k for metric in metrics)
    if elsewhere is not None:
        run = elsewhere.score_run(golden.queries, scorer, largest, diagnostics)
    else:
        if rows is None:
            files = resolve(paths.run, diagnostics)
            held = keep.doc_ids if keep else None
            rows = RunRows(files, diagnostics, progress, keep=held, golden=golden.queries, repeats=paths.repeats)
        run = score_run(rows, golden.queries, scorer, largest)
    rows_are_good = diagnostics.problems == apart_from_rows
    baseline = None
    if paths.baseline is not None:
        apart_from_baseline = diagnostics.problems
        if elsewhere is not None:
            baseline = elsewhere.score_baseline(golden.queries, scorer, largest, diagnostics)
        if baseline is None:
            files = resolve(paths.baseline, diagnostics)
            before = read_baseline(files, diagnostics, progress, golden=golden.queries, repeats=paths.repeats)
            baseline = None if before is None else score_baseline(before, golden.queries, scorer)
            if keep and isinstance(before, StoredBaseline) and diagnostics.problems == apart_from_baseline:
                keep.baseline = before.whole()
        if diagnostics.problems > apart_from_baseline:
            baseline = None

    for query in steep:
        diagnostics.problem(
            f"{query.location}: relevance", f"has a grade over {LARGEST_EXPONENT:.0f}, too much for `gain: exponential`"
        )
    scored = Scored.of(golden, run, baseline, config, metrics)
    if rows_are_good:  # bad rows are left out, so what lacks might be there
        hold_together(scored, diagnostics)
    diagnostics.raise_problems()
    return scored, diagnostics.warnings
