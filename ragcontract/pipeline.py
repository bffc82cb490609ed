"""What rag-contract does, on one screen: read, score, judge, report. Start here.

Everything between reading the files and delivering the text is pure; the clock and the progress display are handed in.
"""

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime

from msgspec import Struct

from ragcontract.errors import InputError
from ragcontract.inputs.baseline import BaselineFile, StoredBaseline, read_baseline
from ragcontract.inputs.config import LoadedConfig, read_config
from ragcontract.inputs.diagnostics import Diagnostics
from ragcontract.inputs.files import Progress, no_progress, resolve
from ragcontract.inputs.golden import read_golden
from ragcontract.inputs.run import RunRows
from ragcontract.judging import gates as limits
from ragcontract.judging import latency
from ragcontract.judging.rules import never_satisfiable
from ragcontract.judging.verdict import judge, without_judging
from ragcontract.judging.waivers import with_waivers
from ragcontract.model import Detail, GoldenQuery, Report
from ragcontract.numbers import count
from ragcontract.reports.build import Checked, build_report, checked
from ragcontract.scoring.metrics import LARGEST_EXPONENT, MetricAtK, metrics_at
from ragcontract.scoring.ranking import Scorer
from ragcontract.scoring.scored import (
    Elsewhere,
    Retrieval,
    Scored,
    ScoredRun,
    score_baseline,
    score_run,
)

Clock = Callable[[], datetime]
NAMED = 3


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
    """Judge a run against its contract; raises :class:`~ragcontract.errors.InputError` if it cannot be judged.

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

    Raises :class:`~ragcontract.errors.InputError` if it does not cover the golden set, whatever the config says.
    """
    kept = Kept()
    scored, warnings = read_and_score(paths, k=k, progress=progress, keep=kept)
    _covers_all(scored, warnings)
    return scored, kept.doc_ids, warnings


def update(paths: Paths, *, clock: Clock, k: int | None = None, progress: Progress = no_progress) -> Update:
    """Judge a run as :func:`check` does that is to follow on the stored baseline; each file is read once.

    Raises :class:`~ragcontract.errors.InputError` where :func:`check` or :func:`good_run` would.
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
            [f"{_first_file(scored.run)}: lacks {missing} ({_named(scored.run.missing)}), so it can be no baseline"],
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
    :class:`~ragcontract.errors.InputError` with everything that is wrong with any of the files; where the gates are to
    be ``judged``, a limit on a drop without a baseline is among it.
    """
    diagnostics = Diagnostics()
    config = read_config(paths.config, diagnostics) if paths.config is not None else LoadedConfig()
    metrics = metrics_at(k or config.config.k)
    if judged:
        _can_be_judged(config, metrics, diagnostics, has_baseline=paths.baseline is not None)

    apart_from_rows = diagnostics.problems
    golden = read_golden(resolve(paths.golden, diagnostics), diagnostics, progress)
    steep = _too_steep(golden.queries.values(), config)
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
            if keep and isinstance(before, StoredBaseline):
                keep.baseline = before.file
        if diagnostics.problems > apart_from_baseline:
            baseline = None

    for query in steep:
        diagnostics.problem(
            f"{query.place}: relevance", f"has a grade over {LARGEST_EXPONENT:.0f}, too much for `gain: exponential`"
        )
    scored = Scored.of(golden, run, baseline, config, metrics)
    if rows_are_good:  # bad rows are left out, so what lacks might be there
        _hold_together(scored, diagnostics)
    diagnostics.raise_problems()
    return scored, diagnostics.warnings


def _can_be_judged(
    config: LoadedConfig, metrics: Sequence[MetricAtK], diagnostics: Diagnostics, *, has_baseline: bool
) -> None:
    """Say which limits no run could be held against."""

    def problem(gate_id: str, message: str) -> None:
        diagnostics.problem(f"{config.files[0].path}:{config.lines[gate_id]}", message)

    gates: dict[str, limits.Limit] = {gate.id: gate for gate in limits.gates_of(config.config, metrics)}
    gates |= {gate.id: gate for gate in latency.gates_of(config.config)}
    for gate_id in limits.limits_set(config.config):
        if gate_id not in gates:
            cutoffs = ", ".join(str(k) for k in sorted({metric.k for metric in metrics}))
            problem(gate_id, f"{gate_id} cannot be judged: k is {cutoffs}")
        elif gates[gate_id].compares and not has_baseline:
            problem(gate_id, gates[gate_id].cannot(limits.NO_BASELINE))


def _too_steep(queries: Iterable[GoldenQuery], config: LoadedConfig) -> list[GoldenQuery]:
    """Return the queries with a grade that would overflow as an exponent."""
    if config.config.gain == "linear":
        return []
    return [query for query in queries if max((query.relevance or {}).values(), default=0) > LARGEST_EXPONENT]


def _hold_together(scored: Scored, diagnostics: Diagnostics) -> None:
    """Say what is wrong between files that are each well-formed."""
    queries, run, baseline, config = scored.golden.queries, scored.run, scored.baseline, scored.config.config
    if config.missing_queries == "error":
        for query_id in run.missing:
            diagnostics.problem(
                _first_file(run),
                f"has no row for golden query {query_id!r} ({queries[query_id].place}); "
                "export it again, or have such queries scored 0 with `missing_queries: zero` in the config",
            )
    elif run.missing:
        diagnostics.warning(
            f"{_first_file(run)}: no row for {count(len(run.missing), 'golden query')}, scored 0: {_named(run.missing)}"
        )
    if run.unknown:
        unknown = len(run.unknown) + run.more_unknown
        diagnostics.warning(
            f"{_first_file(run)}: {count(unknown, 'row')} for no golden query, left out: {_named(run.unknown, unknown)}"
        )
    duplicates = run.duplicates
    if config.rank_by == "documents" and duplicates.short:
        diagnostics.warning(
            f"{_first_file(run)}: {count(duplicates.short, 'row')} with fewer than {scored.k} distinct documents, as "
            f"some are there more than once: {_named(duplicates.named, duplicates.short)}; export more results"
        )
    if run.latency is not None and run.unmeasured and any(latency.gates_of(config)):
        rows = run.latency.rows + run.unmeasured
        diagnostics.warning(
            f"{_first_file(run)}: {run.unmeasured:,} of {count(rows, 'row')} without latency_ms, "
            "which the limits on latency leave out"
        )
    if baseline is not None and not baseline.scores:
        common = (
            "ids in common with the golden file, but no question"
            if baseline.changed
            else "no query in common with the golden file"
        )
        diagnostics.problem(baseline.files[0].path, f"has {common}; make it anew with `rag-contract baseline`")
    if config.per_query.enforce_must_include:
        for warning in never_satisfiable(queries.values(), scored.k):
            diagnostics.warning(warning)


def _named(query_ids: Sequence[str], of: int = 0) -> str:
    """Name the first queries, of so many where ``query_ids`` are not all."""
    more = max(of, len(query_ids)) - NAMED
    rest = f" and {more} more" if more > 0 else ""
    return ", ".join(repr(query_id) for query_id in query_ids[:NAMED]) + rest


def _first_file(run: ScoredRun) -> str:
    return run.files[0].path + (f" (and {count(len(run.files) - 1, 'more file')})" if len(run.files) > 1 else "")
