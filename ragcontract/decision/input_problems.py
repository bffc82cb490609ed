"""Problems and warnings about several inputs, each of which is valid on its own. Problems prevent a verdict.

Queries may lack a declared score or a metric of the baseline. Rows may have an error where they should have results,
because an export that failed is not a bad retriever. A stored baseline may have computed a metric in another way.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from ragcontract.contract.warnings import never_passing
from ragcontract.core import bounds
from ragcontract.core.gate import Gate
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.id_forms import difference, matches, most_common
from ragcontract.core.metric import Metric
from ragcontract.core.nearest import NearNames
from ragcontract.core.numbers import as_written, count, more
from ragcontract.core.phrase import Location, Place, render
from ragcontract.decision.evaluated import Evaluation
from ragcontract.decision.gate_report import named
from ragcontract.decision.gates import in_another_way, observe
from ragcontract.decision.policy import judge_problems
from ragcontract.evaluation.observations import (
    FailedRows,
    Latencies,
    OtherQuestions,
    PatternIds,
    RepeatedResults,
    ScoreGaps,
    UnknownQueries,
    UnreadChecks,
)
from ragcontract.evaluation.side import Side
from ragcontract.evaluation.source import Inputs, file_of_both, is_entry
from ragcontract.files.mistaken import without_swapped
from ragcontract.files.problems import Collector, Problems, without_values
from ragcontract.rules.ranks import ForbiddenDocs

# Latencies below so many milliseconds are probably seconds if a limit, or the baseline, is so many times as high.
SECONDS_BELOW, FAR_ABOVE = 2, 20
EXPORT = "export it in `scores` of the run rows, or give a scores file with --scores"


def all_problems(evaluation: Evaluation, inputs: Inputs, now: datetime) -> Problems:
    """Return all problems and warnings of all inputs: contract, limits, run, baseline, scores and judgments."""
    contract, baseline, judge = evaluation.contract, evaluation.baseline, evaluation.judge
    of_sides = evaluation.run.problems + (baseline.problems if baseline else Problems())
    of_scores = evaluation.scores_files.problems if evaluation.scores_files else Problems()
    of_rows, of_judge = of_scores + of_sides, judge.problems if judge else Problems()
    if inputs.no_answers:  # rows, scores files and judgments quote answers and documents
        of_rows, of_judge = without_values(of_rows), without_values(of_judge)
    problems = without_swapped(contract.problems + contract.limit_problems + of_rows) + of_judge
    problems += judge_problems(evaluation, now) + input_problems(evaluation, complete=inputs.store)
    if contract.with_gates and not problems and (path := file_of_both(evaluation.run, baseline)):
        why = "is the run itself, so that nothing could ever have got worse; name a run that is known to be good"
        problems += Problems(problems=(f"{path}: the baseline {why}",))
    return problems


def input_problems(evaluation: Evaluation, *, complete: bool = False) -> Problems:
    """Return the problems and warnings that depend on several inputs.

    What an invalid row may explain is not reported. With invalid run rows, no query counts as missing and no mean is
    known. With invalid golden rows, no run row counts as unknown. With ``complete``, the run must cover the whole
    golden set whatever the configuration says, because it is to become a baseline.
    """
    problems = Collector()
    run, baseline = evaluation.run, evaluation.baseline
    all_golden = not evaluation.contract.golden.problems
    if not run.problems:
        _missing(evaluation, problems, complete=complete)
    if not run.problems and not (evaluation.scores_files and evaluation.scores_files.problems):
        problems.include(_lacking_scores(evaluation, complete=complete))
    problems.include(_failed_rows(evaluation, complete=complete))
    if not run.problems and all_golden:
        for warning in (
            *_warnings(evaluation, complete=complete),
            *_unread_scores(evaluation),
            *_partly_compared(evaluation),
            *_without_results(evaluation),
            *_incomparable(evaluation),
        ):
            problems.warning(warning)
    partial = evaluation.contract.scope is not None  # the baseline may be older than these queries
    if all_golden and not partial and baseline and not baseline.problems and not baseline.scores:
        common = (
            "ids in common with the golden file, but no question"
            if baseline.rows.changed
            else "no query in common with the golden file"
        )
        path = baseline.files[0].path
        again = "recreate it with `rag-contract baseline --force`"
        advice = "give each contract a name of its own" if is_entry(path) else again
        problems.problem(path, f"has {common}; {advice}")
    contract = evaluation.contract
    for gate in contract.gates if all_golden else ():
        if gate.id in contract.impossible or not _is_known(gate, evaluation):
            continue
        if unjudged := _unjudged_before(gate, evaluation):
            problems.problem(gate.location, f"{gate.id} cannot be judged: {unjudged}")
        elif (observed := observe(gate, evaluation)).amount is None:
            problems.problem(gate.location, f"{gate.id} cannot be judged: {observed.why}")
    for warning in never_passing(contract.queries, contract.config, contract.k):
        problems.warning(warning)
    return problems.collected()


def _lacking_scores(evaluation: Evaluation, *, complete: bool) -> Problems:
    """Return the problems about scores that queries of the run lack; with ``missing_scores: zero``, warnings.

    With ``complete``, the run must have all scores, because it is to become a baseline.
    """
    problems = Collector()
    run, config = evaluation.run, evaluation.contract.config
    for metric in evaluation.contract.metrics:
        query_ids = run.observed(ScoreGaps).lacking.get(metric.key)
        if not query_ids:
            continue
        having = _having(evaluation, metric)
        if config.missing_scores == "error":
            problems.problem(*_refused(evaluation, metric, query_ids, having))
            continue
        lacking = f"{len(query_ids):,} of {count(having, 'query')}"
        if complete:
            why = f"lacks the score {metric.key!r} of {lacking} ({named(query_ids)}), so it cannot be a baseline"
            problems.problem(run.name, why)
        else:
            worst = f"counted as {metric.worst:g}"
            problems.warning(f"{run.name}: no score {metric.key!r} for {lacking}, {worst}: {named(query_ids)}")
    return problems.collected()


def _failed_rows(evaluation: Evaluation, *, complete: bool) -> Problems:
    """Return the problem of a baseline that has rows with errors, and a warning about such rows of the run.

    With ``complete``, they are a problem of the run as well, because it is to become a baseline. The warning leaves out
    queries whose broken rules fail anyway.
    """
    problems = Collector()
    run, baseline = evaluation.run, evaluation.baseline
    failed, failed_before = run.observed(FailedRows), baseline.observed(FailedRows) if baseline else ()
    if baseline and failed_before and not baseline.problems:
        problems.problem(
            baseline.name,
            f"{_failed(failed_before)}, so it cannot be the baseline; record them again, or leave these rows out",
        )
    if not failed or run.problems:
        return problems.collected()
    if complete:
        problems.problem(run.name, f"{_failed(failed)}, so it cannot be a baseline; record them again")
    elif passing := _passing(run, evaluation):
        problems.warning(
            f"{run.name}: {_failed(passing)}, which count as if nothing was found or answered; record them again"
        )
    return problems.collected()


def _partly_compared(evaluation: Evaluation) -> Iterator[str]:
    """Yield a warning for each limit on a change of a metric that the baseline lacks for some queries.

    The limit leaves these queries out. If no query can be compared, the limit cannot be judged, which is a problem.
    """
    run, baseline = evaluation.run, evaluation.baseline
    if baseline is None:
        return
    compared = {gate.quantity.key: gate for gate in evaluation.contract.gates if gate.compares}
    unscored = baseline.observed(ScoreGaps).lacking
    ids = list(evaluation.contract.queries)
    for number, family in enumerate(evaluation.aggregates.families):
        if not number or not compared.keys() & family.keys:  # the first is of rankings, which all rows have
            continue
        sides = list(zip(ids, run.values(number, ids), baseline.values(number, ids), strict=True))
        having = [query_id for query_id, now, before in sides if now and before is not None]
        lacking = [query_id for query_id, now, before in sides if now and before == ()]
        if not lacking or len(lacking) == len(having):
            continue
        for key in family.keys:
            if (gate := compared.get(key)) and not unscored.get(key):  # otherwise, such a limit is refused
                which = f"{len(lacking):,} of {count(len(having), 'query')}, which {gate.id} leaves out"
                yield f"{baseline.name}: no {gate.quantity.label} for {which}: {named(lacking)}"


def _without_results(evaluation: Evaluation) -> Iterator[str]:
    """Yield a warning if the baseline says nothing of the documents of some queries, which name them since."""
    baseline = evaluation.baseline
    if baseline is not None and (query_ids := tuple(baseline.rows.without_results)):
        several = len(query_ids) > 1
        which = f"{count(len(query_ids), 'query')} that name{'' if several else 's'} documents since"
        yield (
            f"{baseline.name}: no results of {which}, so {'their' if several else 'its'} documents are not compared: "
            f"{named(query_ids)}; `rag-contract baseline --update` stores those of a good run"
        )


def _incomparable(evaluation: Evaluation) -> Iterator[str]:
    """Yield a warning for each metric that the baseline computed in another way, for example with another judge.

    A limit on the change of such a metric cannot be judged. That is a problem, which is reported for the limit.
    """
    contract = evaluation.contract
    limited = {gate.quantity.key for gate in contract.gates if gate.compares}
    for side in (evaluation.run, evaluation.baseline):
        if side is None or side.stored is None:
            continue
        head, incomparable = side.stored.head, side.stored.incomparable - limited
        for metric in contract.metrics:
            if metric.key in incomparable and head.metrics.get(metric.key) is not None:
                how = in_another_way(metric, head)
                yield f"{side.name}: {metric.label} {how}, so a change of it says nothing"


def _unread_scores(evaluation: Evaluation) -> Iterator[str]:
    """Yield warnings about scores that no metric reads, and about rows of scores files without a golden query."""
    run, scores_files = evaluation.run, evaluation.scores_files
    declared = NearNames(evaluation.contract.config_file.declared)
    yield from _undeclared(run.name, run.observed(ScoreGaps).undeclared, declared)
    yield from _unread_checks(run.name, run.observed(UnreadChecks))
    if scores_files is None:
        return
    file = scores_files.files[0].path if scores_files.files else "the scores file"
    yield from _undeclared(file, scores_files.undeclared, declared)
    yield from _unread_checks(file, scores_files.unread_checks)
    if scores_files.unknown_rows:
        unknown = named(scores_files.unknown, scores_files.unknown_rows)
        yield f"{file}: {count(scores_files.unknown_rows, 'row')} for no golden query, left out: {unknown}"


def no_patterns(patterns: Mapping[str, Location]) -> str:
    """Return a warning about forbidden ids that look like patterns; ``patterns`` has the location of each."""
    location = next(iter(patterns.values()))
    return (
        f"{location}: forbidden_doc_ids: {named([*patterns])} occurs nowhere else; ids are compared exactly, and are "
        "not patterns or lists: name each document, or add what is an id to per_query.different_documents"
    )


def _missing(evaluation: Evaluation, problems: Collector, *, complete: bool) -> None:
    run, queries = evaluation.run, evaluation.contract.queries
    if not run.rows.missing:
        return
    if evaluation.contract.config.missing_queries == "error":
        problems.problem(run.name, _without_rows(run, queries))
        return
    missing = count(len(run.rows.missing), "golden query")
    if complete:
        problems.problem(run.name, f"lacks {missing} ({named(run.rows.missing)}), so it cannot be a baseline")
    else:
        problems.warning(f"{run.name}: no row for {missing}, scored 0: {named(run.rows.missing)}")


def _without_rows(run: Side, queries: Mapping[str, GoldenQuery]) -> str:
    """Return which golden queries have no row, the cause if the ids of the run show it, and what to do."""
    missing = run.rows.missing
    if len(missing) == len(queries) > 1:
        which = f"any of the {len(queries):,} golden queries"
    else:
        first = [f"{query_id!r} ({queries[query_id].location})" for query_id in missing[: bounds.LISTED]]
        others = more(len(missing), len(first), form=" and {}")
        several = f"{len(missing):,} of {len(queries):,} golden queries:" if len(missing) > 1 else "golden query"
        which = f"{several} {', '.join(first)}{others}"
    advice = "export it again, or have such queries scored 0 with `missing_queries: zero` in the config"
    return f"has no row for {which}; {_other_query_ids(run, queries) or advice}"


def _other_query_ids(run: Side, queries: Mapping[str, GoldenQuery]) -> str | None:
    """Return how the query ids of a run differ from those of the golden queries without a row; None if unknown."""
    missing = run.rows.missing[: bounds.COMPARED_IDS]
    unknown = run.observed(UnknownQueries).listed
    if not missing or not unknown:
        return None
    example, matched = most_common(matches(missing, unknown))
    if example and matched * 2 >= len(missing):
        has = "it has it" if len(run.rows.missing) == 1 else f"it has {matched:,} of them"
        return f"{has} {render(difference(example), repr)}: write query_id as the golden row's id is written"
    if len(run.rows.missing) < len(queries):
        return None
    questions = {query.query for query in queries.values()}
    if questions.issuperset(unknown[: bounds.NAMES]):
        return "its query_id is the question; write the golden row's id"
    return f"its query ids are {named(unknown)}; is it the run of another golden file?"


def _warnings(evaluation: Evaluation, *, complete: bool) -> Iterator[str]:
    run, contract = evaluation.run, evaluation.contract
    refused = run.rows.missing and contract.config.missing_queries == "error"
    unknown = run.observed(UnknownQueries)
    if unknown.listed and not (refused and _other_query_ids(run, contract.queries)):
        several = len(unknown.listed) + unknown.more
        yield f"{run.name}: {count(several, 'row')} for no golden query, left out: {named(unknown.listed, several)}"
    patterns = run.observed(PatternIds)
    never = evaluation.baseline.observed(PatternIds) if evaluation.baseline else patterns
    patterns = {doc_id: at for doc_id, at in patterns.items() if doc_id in never}
    if patterns and ForbiddenDocs in contract.rules:
        yield no_patterns(patterns)
    for side in (run, evaluation.baseline):
        if side and (asked := side.observed(OtherQuestions)):
            conversations = f"{count(len(asked), 'conversation')} with other questions than the golden turns"
            advice = "record it again" if side is run else "not compared"
            yield f"{side.name}: {conversations}, {advice}: {named(asked)}"
    duplicates = run.observed(RepeatedResults)
    if contract.config.rank_by == "documents" and duplicates.short:
        yield (
            f"{run.name}: {count(duplicates.short, 'row')} with fewer than {contract.k} distinct documents, as some "
            f"are there more than once: {named(duplicates.named, duplicates.short)}; export more results"
        )
    gates = contract.config_file.gates if complete else contract.gates  # a baseline will be compared under all of them
    on_latency = [gate for gate in gates if gate.quantity.unit == "ms"]
    if run.latency and (limit := _far_above(run.latency.max_ms, on_latency)):
        allowed = f"{limit.id} is {as_written(limit.limit)} ms"
        yield f"{run.name}: every latency_ms is below {SECONDS_BELOW}, and {allowed}: are these seconds?"
    elif run.latency and (before := _far_below(run.latency.p95_ms, evaluation.baseline, on_latency)):
        yield (
            f"{run.name}: p95 of latency_ms is {as_written(run.latency.p95_ms)}, and {as_written(before)} in the "
            "baseline: are these seconds?"
        )
    for side, concerned in ((run, bool(on_latency)), (evaluation.baseline, any(gate.compares for gate in on_latency))):
        if side and concerned and side.latency and side.observed(Latencies).unmeasured:
            rows = count(side.latency.rows + side.observed(Latencies).unmeasured, "row")
            share = f"{side.observed(Latencies).unmeasured:,} of {rows}"
            yield f"{side.name}: {share} without latency_ms, which the limits on latency leave out"


def _far_above(slowest: float, gates: Iterable[Gate]) -> Gate | None:
    """Return the first limit in milliseconds that is so far above all latencies that they may be seconds."""
    if slowest >= SECONDS_BELOW:
        return None
    return next((gate for gate in gates if not gate.relative and gate.limit >= FAR_ABOVE * slowest), None)


def _far_below(p95: float, baseline: Side | None, gates: Iterable[Gate]) -> float | None:
    """Return the baseline's 95th percentile if a limit compares the run's with it, which is far below; else None."""
    if baseline is None or baseline.latency is None or not any(gate.compares for gate in gates):
        return None
    before = baseline.latency.p95_ms
    return before if before > 0 and before >= FAR_ABOVE * p95 else None


def _is_known(gate: Gate, evaluation: Evaluation) -> bool:
    """Return whether the sides that a gate reads were evaluated without problems."""
    run, baseline = evaluation.run, evaluation.baseline if gate.compares else None
    if run.problems or not run.scores or (baseline and baseline.problems):
        return False
    # A baseline without any query in common is a problem of its own, unless only some tags are checked.
    return baseline is None or bool(baseline.scores) or evaluation.contract.scope is not None


def _unjudged_before(gate: Gate, evaluation: Evaluation) -> str:
    """Return a problem if a baseline that is a run has no judgments for queries that a limit compares; empty if not.

    Leaving them out would be a way past the limit, because the less is judged, the more passes.
    """
    baseline, queries = evaluation.baseline, evaluation.contract.queries
    if baseline is None or not gate.compares:
        return ""
    lacking = baseline.observed(ScoreGaps).lacking.get(gate.quantity.key, ())
    query_ids = [query_id for query_id in lacking if gate.tag is None or gate.tag in queries[query_id].tags]
    if not query_ids:
        return ""
    which = f"{baseline.name} has no {gate.quantity.label} for {count(len(query_ids), 'query')}: {named(query_ids)}"
    return f"{which}; judge that run, too, with `rag-contract judge` into another file, and name both with --judgments"


def _refused(evaluation: Evaluation, metric: Metric, query_ids: Sequence[str], having: int) -> tuple[Place, str]:
    """Return the location of a limit on the score, or of its declaration, and why it cannot be judged."""
    contract = evaluation.contract
    gate = next((gate for gate in contract.gates if gate.quantity.key == metric.key), None)
    location = gate.location if gate else contract.config_file.locations.of("metrics", metric.key)
    what = f"{gate.id} cannot be judged" if gate else f"metrics.{metric.key}"
    if len(query_ids) == having:
        none = "the only query has no" if having == 1 else f"none of the {having:,} queries has any"
        return location, f"{what}: {none} such score; {EXPORT}"
    has, them = ("has", "it") if len(query_ids) == 1 else ("have", "them")
    which = f"{len(query_ids):,} of {count(having, 'query')} {has} no such score ({named(query_ids)})"
    return location, f"{what}: {which}; missing_scores: zero counts {them} as {metric.worst:g}"


def _having(evaluation: Evaluation, metric: Metric) -> int:
    """Return how many golden queries have a metric, or should have it."""
    families = (family for family in evaluation.aggregates.families if metric.key in family.keys)
    return sum(group.count for family in families for group in family.groups if group.now)


def _passing(run: Side, evaluation: Evaluation) -> list[str]:
    """Return the queries with errors that break no rule, or only rules for which only new failures count."""
    contract, violations = evaluation.contract, evaluation.violations

    def breaks(query_id: str) -> bool:
        return contract.queries[query_id].severity == "error" and any(
            not violation.warns and not (violation.in_baseline and violation.rule in contract.only_new)
            for violation in violations.get(query_id, ())
        )

    return [query_id for query_id in run.observed(FailedRows) if not breaks(query_id)]


def _failed(query_ids: Sequence[str]) -> str:
    return f"has rows with an error for {count(len(query_ids), 'query')} ({named(query_ids)})"


def _undeclared(where: str, names: Sequence[str], declared: NearNames) -> Iterator[str]:
    near = {name: meant for name in names if (meant := declared.nearest(name))}
    for name, meant in near.items():
        yield f"{where}: scores has {name!r}, which no metric reads; did you mean {meant!r}?"
    if others := ", ".join(repr(name) for name in names if name not in near):
        yield f"{where}: scores has {others}, which no metric reads; declare it under metrics in ragcontract.yml"


def _unread_checks(where: str, checks: Mapping[str, int]) -> Iterator[str]:
    for name, rows in checks.items():
        yield (
            f"{where}: checks has {name!r}, which failed in {count(rows, 'row')} of queries without a rule `check` "
            "that reads it; add one to their golden rows"
        )
