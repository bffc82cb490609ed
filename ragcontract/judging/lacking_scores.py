"""Says which queries lack a declared score or a metric of the baseline, and which scores are not read."""

from collections.abc import Iterator, Mapping, Sequence

from ragcontract.core.metric import Metric
from ragcontract.core.nearest import NearNames
from ragcontract.core.numbers import count
from ragcontract.files.problems import Collector, Problems
from ragcontract.judging.evaluated import Evaluation
from ragcontract.judging.id_lists import named

EXPORT = "export it in `scores` of the run rows, or give a scores file with --scores"


def lacking_scores(evaluation: Evaluation, *, complete: bool = False) -> Problems:
    """Return the problems, or with ``missing_scores: zero`` the warnings, about scores that queries of the run lack.

    With ``complete``, the run must have all of them; a baseline requires this.
    """
    problems = Collector()
    run, config = evaluation.run, evaluation.contract.config
    for metric in evaluation.contract.metrics:
        query_ids = run.lacking.get(metric.key)
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
    return problems.found()


def _refused(evaluation: Evaluation, metric: Metric, query_ids: Sequence[str], having: int) -> tuple[str, str]:
    """Return the location of a limit on the score, or else of its declaration, and why it cannot be judged."""
    contract = evaluation.contract
    gate = next((gate for gate in contract.gates if gate.quantity.key == metric.key), None)
    location = gate.location if gate else contract.config_file.locations.of("metrics", metric.key)
    what = f"{gate.id} cannot be judged" if gate else f"metrics.{metric.key}"
    if len(query_ids) == having:
        return location, f"{what}: {_none(having)} such score; {EXPORT}"
    has = "has" if len(query_ids) == 1 else "have"
    which = f"{len(query_ids):,} of {count(having, 'query')} {has} no such score ({named(query_ids)})"
    return location, f"{what}: {which}; missing_scores: zero counts {_them(query_ids)} as {metric.worst:g}"


def _none(having: int) -> str:
    return "the only query has no" if having == 1 else f"none of the {having:,} queries has any"


def _them(query_ids: Sequence[str]) -> str:
    return "it" if len(query_ids) == 1 else "them"


def _having(evaluation: Evaluation, metric: Metric) -> int:
    """Return how many golden queries have a metric, or should have it."""
    families = (family for family in evaluation.aggregates.families if metric.key in family.keys)
    return sum(group.count for family in families for group in family.groups if group.now)


def unread_scores(evaluation: Evaluation) -> Iterator[str]:
    """Yield warnings about scores that no metric reads, and about rows of scores files without a golden query."""
    run, given = evaluation.run, evaluation.given
    declared = NearNames(evaluation.contract.config_file.declared)
    yield from _undeclared(run.name, run.undeclared, declared)
    yield from _unread_checks(run.name, run.unread_checks)
    if given is None:
        return
    file = given.files[0].path if given.files else "the scores file"
    yield from _undeclared(file, given.undeclared, declared)
    yield from _unread_checks(file, given.unread_checks)
    if given.unknown_rows:
        unknown = named(given.unknown, given.unknown_rows)
        yield f"{file}: {count(given.unknown_rows, 'row')} for no golden query, left out: {unknown}"


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


def partly_compared(evaluation: Evaluation) -> Iterator[str]:
    """Yield a warning for each limit on a change of a metric that the baseline lacks for queries that have it now.

    Such a limit says nothing about them. Where no query can be compared, it cannot be judged, which is a problem.
    """
    run, baseline = evaluation.run, evaluation.baseline
    if baseline is None:
        return
    compared = {gate.quantity.key: gate for gate in evaluation.contract.gates if gate.compares}
    ids = list(evaluation.contract.queries)
    for number, family in enumerate(evaluation.aggregates.families):
        sides = list(zip(ids, run.values(number, ids), baseline.values(number, ids), strict=True))
        having = [query_id for query_id, now, before in sides if now and before is not None]
        lacking = [query_id for query_id, now, before in sides if now and before == ()]
        if not lacking or len(lacking) == len(having):
            continue
        for key in family.keys:
            if (gate := compared.get(key)) and not baseline.lacking.get(key):  # such a limit is refused
                which = f"{len(lacking):,} of {count(len(having), 'query')}, which {gate.id} leaves out"
                yield f"{baseline.name}: no {gate.quantity.label} for {which}: {named(lacking)}"
