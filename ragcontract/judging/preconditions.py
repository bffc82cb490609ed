"""What must hold for a verdict to be reached, beyond each file being well-formed; told to the diagnostics."""

from collections.abc import Iterable, Sequence

from ragcontract.contract.config import LoadedConfig
from ragcontract.core.numbers import count
from ragcontract.evaluation.scored import Scored, ScoredRun
from ragcontract.files.problems import Diagnostics
from ragcontract.judging import gates as limits
from ragcontract.judging import latency
from ragcontract.metrics.formulas import LARGEST_EXPONENT, MetricAtK
from ragcontract.model import GoldenQuery
from ragcontract.rules.ranks import never_satisfiable

NAMED = 3


def can_be_judged(
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


def too_steep(queries: Iterable[GoldenQuery], config: LoadedConfig) -> list[GoldenQuery]:
    """Return the queries with a grade that would overflow as an exponent."""
    if config.config.gain == "linear":
        return []
    return [query for query in queries if max((query.relevance or {}).values(), default=0) > LARGEST_EXPONENT]


def hold_together(scored: Scored, diagnostics: Diagnostics) -> None:
    """Say what is wrong between files that are each well-formed."""
    queries, run, baseline, config = scored.golden.queries, scored.run, scored.baseline, scored.config.config
    if config.missing_queries == "error":
        for query_id in run.missing:
            diagnostics.problem(
                first_file(run),
                f"has no row for golden query {query_id!r} ({queries[query_id].location}); "
                "export it again, or have such queries scored 0 with `missing_queries: zero` in the config",
            )
    elif run.missing:
        diagnostics.warning(
            f"{first_file(run)}: no row for {count(len(run.missing), 'golden query')}, scored 0: {named(run.missing)}"
        )
    if run.unknown:
        unknown = len(run.unknown) + run.more_unknown
        diagnostics.warning(
            f"{first_file(run)}: {count(unknown, 'row')} for no golden query, left out: {named(run.unknown, unknown)}"
        )
    duplicates = run.duplicates
    if config.rank_by == "documents" and duplicates.short:
        diagnostics.warning(
            f"{first_file(run)}: {count(duplicates.short, 'row')} with fewer than {scored.k} distinct documents, as "
            f"some are there more than once: {named(duplicates.named, duplicates.short)}; export more results"
        )
    if run.latency is not None and run.unmeasured and any(latency.gates_of(config)):
        rows = run.latency.rows + run.unmeasured
        diagnostics.warning(
            f"{first_file(run)}: {run.unmeasured:,} of {count(rows, 'row')} without latency_ms, "
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


def named(query_ids: Sequence[str], of: int = 0) -> str:
    """Name the first queries, of so many where ``query_ids`` are not all."""
    more = max(of, len(query_ids)) - NAMED
    rest = f" and {more} more" if more > 0 else ""
    return ", ".join(repr(query_id) for query_id in query_ids[:NAMED]) + rest


def first_file(run: ScoredRun) -> str:
    """Name the run by its first file."""
    return run.files[0].path + (f" (and {count(len(run.files) - 1, 'more file')})" if len(run.files) > 1 else "")
