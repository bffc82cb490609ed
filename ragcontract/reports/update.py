"""The output of ``baseline --update``: what the new baseline accepts, the verdict, and what was written."""

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from ragcontract.core import bounds
from ragcontract.core.ids import as_id
from ragcontract.core.numbers import count
from ragcontract.core.phrase import listed, render
from ragcontract.core.text import clipped, visible
from ragcontract.reports.drift import not_compared
from ragcontract.reports.new_baseline import waived_changes
from ragcontract.reports.rank_changes import rank_changes
from ragcontract.reports.repeats_note import fewer_runs
from ragcontract.reports.report import Report
from ragcontract.reports.terminal import changes, check_text, lists, sizes
from ragcontract.runs.stored import BaselineFile


def update_text(
    report: Report, stored: BaselineFile, new: BaselineFile, *, out: str, reason: str | None, written: bool
) -> str:
    """Render an update of the baseline in ``out``; ``reason`` is why a broken contract is accepted, if it is."""
    ranks = rank_changes(report)
    baseline = report.inputs.baseline
    groups = not_compared(baseline) if baseline else {}
    apart = {query_id for query_ids in groups.values() for query_id in query_ids}
    parts = [*changes(report, ranks), *_golden_changes(stored, new, apart), sizes(ranks)]
    parts += [
        check_text(_without_past(report)).rstrip("\n"),
        _outcome(report, len(new.queries), visible(out), reason, written=written),
        *_fewer_runs(stored, new, written=written),
    ]
    return "\n\n".join(parts) + "\n"


def _without_past(report: Report) -> Report:
    """Return the report without what the stored baseline itself replaced, which is not about this update."""
    if report.inputs.baseline is None:
        return report
    return replace(report, inputs=replace(report.inputs, baseline=replace(report.inputs.baseline, replaces=None)))


def _golden_changes(stored: BaselineFile, new: BaselineFile, apart: set[str]) -> Sequence[str]:
    """Return what else changed in the golden set; the queries in ``apart`` are listed already.

    Only of a baseline that does not remember its contract: for others, it is under the verdict.
    """
    if stored.contract is not None:
        return []
    wanted = {as_id(query.id): query.ranks.keys() for query in stored.queries}
    shared = [(as_id(query.id), query.ranks.keys()) for query in new.queries if as_id(query.id) not in apart]
    if changed := [query_id for query_id, documents in shared if documents != wanted[query_id]]:
        return list(lists({"with other relevant documents": changed}))
    # Another version may hash other fields, so its fingerprint says nothing.
    if apart or stored.golden_sha256 == new.golden_sha256 or stored.created_by != new.created_by:
        return []
    return ["The golden set has other rules, weights, tags or grades than the baseline's."]


def _fewer_runs(stored: BaselineFile, new: BaselineFile, *, written: bool) -> Iterable[str]:
    """Yield that the new baseline is of fewer good runs, so that nobody loses them by accident."""
    if written and (why := fewer_runs(stored.runs, new.runs)):
        yield f"Fewer good runs: {why}"


def _outcome(report: Report, queries: int, out: str, reason: str | None, *, written: bool) -> str:
    drops = waived_changes(report)
    if report.verdict == "pass" and drops and not written:
        ids = render(listed([gate.id for gate in drops], "and"), visible)
        return (
            f"refused: {out} is left unchanged: what is waived ({ids}) would be forgotten. Fix the retriever, or "
            'store the run anyway with --accept-regressions "reason"'
        )
    if report.verdict == "fail" and not written:
        return (
            f"refused: {out} is left unchanged. Fix the retriever or the contract, or store the run anyway "
            'with --accept-regressions "reason"'
        )
    if not written:
        return f"nothing changed: {out} is left unchanged"
    stored = f"baseline of {count(queries, 'query')} in {out}"
    if reason is None:
        return stored
    if report.verdict == "pass" and not drops:
        return f"{stored}; nothing is broken, so no reason is stored"
    checks = count(len(report.failed_checks) + len(drops), "failed check")
    return f"{stored}, with {checks} accepted: {clipped(reason, bounds.TERMINAL_REASON)}"
