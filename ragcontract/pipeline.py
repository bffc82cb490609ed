"""What rag-contract does, on one screen: read, score, judge, report. Start here.

Everything between reading the files and delivering the text is pure; the clock and the progress display are handed in.
"""

from collections.abc import Callable, Sequence
from datetime import datetime

from msgspec import Struct

from ragcontract.errors import InputError
from ragcontract.inputs.baseline import read_baseline
from ragcontract.inputs.config import LoadedConfig, Minimums, read_config
from ragcontract.inputs.diagnostics import Diagnostics
from ragcontract.inputs.files import Progress, no_progress, resolve
from ragcontract.inputs.golden import read_golden
from ragcontract.inputs.run import RunRows
from ragcontract.judging import gates as limits
from ragcontract.judging.rules import never_satisfiable
from ragcontract.judging.verdict import judge, without_judging
from ragcontract.model import Report
from ragcontract.numbers import count
from ragcontract.reports.build import build_report
from ragcontract.scoring.metrics import metrics_at
from ragcontract.scoring.scored import Scored, ScoredRun, score_baseline, score_run

Clock = Callable[[], datetime]
NAMED = 3


class Paths(Struct, frozen=True, kw_only=True):
    """Where the inputs are: paths or globs. None is what was not given."""

    golden: Sequence[str]
    run: Sequence[str]
    baseline: Sequence[str] | None = None
    config: str | None = None


def check(paths: Paths, *, clock: Clock, k: int | None = None, progress: Progress = no_progress) -> Report:
    """Judge a run against its contract; raises :class:`~ragcontract.errors.InputError` if it cannot be judged."""
    scored, warnings = read_and_score(paths, k=k, progress=progress, judged=True)
    return build_report(scored, judge(scored, warnings), warnings, clock())


def compare(paths: Paths, *, clock: Clock, k: int | None = None, progress: Progress = no_progress) -> Report:
    """Report the same numbers as :func:`check` without judging them: no gates, no rules, always a pass."""
    scored, warnings = read_and_score(paths, k=k, progress=progress)
    return build_report(scored, without_judging(scored), warnings, clock())


def good_run(
    paths: Paths, *, k: int | None = None, progress: Progress = no_progress
) -> tuple[Scored, dict[str, list[str]], list[str]]:
    """Read a run that is to become the baseline: its scores, its document ids by query, and the warnings.

    Raises :class:`~ragcontract.errors.InputError` if it does not cover the golden set, whatever the config says.
    """
    doc_ids: dict[str, list[str]] = {}
    scored, warnings = read_and_score(paths, k=k, progress=progress, keep=doc_ids)
    if scored.run.missing:
        missing = count(len(scored.run.missing), "golden query")
        raise InputError(
            [f"{_first_file(scored.run)}: lacks {missing} ({_named(scored.run.missing)}), so it can be no baseline"],
            warnings=warnings,
        )
    return scored, doc_ids, warnings


def read_and_score(
    paths: Paths,
    *,
    k: int | None = None,
    progress: Progress = no_progress,
    keep: dict[str, list[str]] | None = None,
    judged: bool = False,
) -> tuple[Scored, list[str]]:
    """Read all inputs and score both sides; returns the scores and the warnings.

    The run's document ids are not held, unless ``keep`` is given to put them in. Raises
    :class:`~ragcontract.errors.InputError` with everything that is wrong with any of the files; where the gates are to
    be ``judged``, a limit on a drop without a baseline is among it.
    """
    diagnostics = Diagnostics()
    config = read_config(paths.config, diagnostics) if paths.config is not None else LoadedConfig()
    metrics, rank_by = metrics_at(k or config.config.k), config.config.rank_by
    if judged and paths.baseline is None:
        for gate in limits.gates_of(config.config.fail_on, Minimums(), metrics):
            place = f"{config.files[0].path}:{config.lines[gate.id]}"
            diagnostics.problem(place, limits.why_not(gate, has_baseline=False))

    apart_from_rows = diagnostics.problems
    golden = read_golden(resolve(paths.golden, diagnostics), diagnostics, progress)
    rows = RunRows(resolve(paths.run, diagnostics), diagnostics, progress, keep=keep)
    run = score_run(rows, golden.queries, metrics, rank_by)
    rows_are_good = diagnostics.problems == apart_from_rows
    baseline = None
    if paths.baseline is not None:
        apart_from_baseline = diagnostics.problems
        baseline_rows = read_baseline(resolve(paths.baseline, diagnostics), diagnostics, progress)
        if baseline_rows is not None:
            baseline = score_baseline(baseline_rows, golden.queries, metrics, rank_by)
        if diagnostics.problems > apart_from_baseline:
            baseline = None

    scored = Scored(golden=golden, metrics=metrics, run=run, baseline=baseline, config=config)
    if rows_are_good:  # bad rows are left out, so what lacks might be there
        _hold_together(scored, diagnostics)
    diagnostics.raise_problems()
    return scored, diagnostics.warnings


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
        diagnostics.warning(
            f"{_first_file(run)}: {count(len(run.unknown), 'row')} for no golden query, left out: {_named(run.unknown)}"
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


def _named(query_ids: Sequence[str]) -> str:
    rest = f" and {len(query_ids) - NAMED} more" if len(query_ids) > NAMED else ""
    return ", ".join(repr(query_id) for query_id in query_ids[:NAMED]) + rest


def _first_file(run: ScoredRun) -> str:
    return run.files[0].path + (f" (and {count(len(run.files) - 1, 'more file')})" if len(run.files) > 1 else "")
