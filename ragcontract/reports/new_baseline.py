"""Writes a known-good run as ``baseline.json``: one query per line, so that diffs are easy to read."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

import msgspec
from msgspec.structs import asdict, replace

from ragcontract.contract.past_contract import past_contract
from ragcontract.core import bounds
from ragcontract.core.finding import sentence
from ragcontract.core.first_ids import first_of, pool_of
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.ids import Id
from ragcontract.core.metric import Family
from ragcontract.core.rule import Violation
from ragcontract.core.scores import ranks_by_id
from ragcontract.core.text import encodable
from ragcontract.files.json_document import document
from ragcontract.judging.contract_changes import contract_changes
from ragcontract.judging.evaluated import Evaluation
from ragcontract.judging.gate_report import COMPARING, GateReport
from ragcontract.metrics.judged_share import JudgedShare
from ragcontract.reports.build import TOOL
from ragcontract.reports.report import Report
from ragcontract.runs.past import Replaced, expected_of
from ragcontract.runs.stored import FORMAT_VERSION, Accepted, BaselineFile, BaselineQuery

LEFT_OUT: dict[str, object] = {
    "repeats": [],
    "broken": {},
    "pool": None,
}  # an empty pool is one in which nothing was judged


def render(evaluation: Evaluation, now: datetime, replaces: Replaced | None = None) -> Iterator[bytes]:
    """Render the baseline file for the run of an evaluation, which must have retained the document ids."""
    return _written(_head(evaluation, now, (), replaces), _queries(evaluation))


def baseline_of(evaluation: Evaluation, now: datetime, accepted: Sequence[Accepted] = ()) -> BaselineFile:
    """Return the content of the file that replaces the evaluation's baseline, with the last 20 of ``accepted``."""
    replaces = replaced_by(evaluation, accepted)
    return replace(_head(evaluation, now, accepted, replaces), queries=list(_queries(evaluation)))


def _head(
    evaluation: Evaluation, now: datetime, accepted: Sequence[Accepted], replaces: Replaced | None
) -> BaselineFile:
    """Return the content of the baseline file without its queries."""
    contract, aggregates, stored = evaluation.contract, evaluation.aggregates, _stored(evaluation)
    return BaselineFile(
        format_version=FORMAT_VERSION,
        created_at=now.isoformat(timespec="seconds"),
        created_by=TOOL,
        golden_sha256=fingerprint(contract.queries.values()),
        k=sorted(contract.config_file.cutoffs),
        versions=evaluation.run.versions,
        metrics={key: aggregates.comparisons[key].current for key in stored},
        tags={tag: {key: of_tag[key].current for key in stored} for tag, of_tag in sorted(aggregates.tags.items())},
        accepted=list(accepted[-bounds.ACCEPTED :]),
        latency=evaluation.run.latency,
        fingerprints=_fingerprints(contract.every_family),
        contract=past_contract(contract.config_file),
        replaces=replaces,
        runs=evaluation.run.runs,
        queries=[],
    )


def _fingerprints(families: Iterable[Family]) -> dict[str, str]:
    """Return how metrics were computed, by their keys; of a judged one, by all who judged."""
    prints = {metric.key: metric.fingerprint for family in families for metric in family.metrics}
    for family in families:
        if isinstance(family, JudgedShare):
            prints[family.metric.key] = family.stored_fingerprint()
    return {key: found for key, found in prints.items() if found}


def _stored(evaluation: Evaluation) -> list[str]:
    """Return the keys of the metrics that are stored; those about labels and changes depend on the baseline before."""
    return [metric.key for metric in evaluation.contract.metrics if not metric.diagnostic]


def replaced_by(evaluation: Evaluation, accepted: Sequence[Accepted] = ()) -> Replaced | None:
    """Return the record of the stored baseline that the run was compared with, and is to replace; None without one.

    ``accepted`` are the acceptances of the new baseline.
    """
    baseline = evaluation.baseline
    if baseline is None or baseline.stored is None:
        return None
    compared = evaluation.aggregates.comparisons
    changes = contract_changes(evaluation, cutoff=True)
    return Replaced(
        sha256=baseline.files[0].sha256,
        created_at=baseline.stored.created_at,
        shared=len(baseline.scores),
        runs=baseline.runs,
        metrics={key: compared[key].baseline for key in _stored(evaluation)},
        metrics_shared={key: compared[key].current_shared for key in _stored(evaluation)},
        accepted=list(accepted[-1:]) != baseline.stored.accepted[-1:] and bool(accepted),
        contract_changes=None
        if changes is None
        else [replace(change, items=change.items[: bounds.CHANGED_ITEMS]) for change in changes],
    )


def encode(file: BaselineFile) -> Iterator[bytes]:
    """Encode a baseline file, one query per line."""
    return _written(replace(file, queries=[]), file.queries)


def _written(head: BaselineFile, queries: Iterable[BaselineQuery]) -> Iterator[bytes]:
    return document(head, {"queries": map(_row, queries)})


def _row(query: BaselineQuery) -> dict[str, Any]:
    """Omit empty ``repeats`` and ``broken`` and a ``pool`` of the first k, to keep the lines short."""
    return {name: value for name, value in asdict(query).items() if value != LEFT_OUT.get(name, ...)}


def acceptance(report: Report, reason: str) -> Accepted:
    """Return the record of a broken contract that is accepted as the baseline for a ``reason``."""
    failed = [
        f"{check.id if check.query_id is None else check.query_id}: {check.message}" for check in report.failed_checks
    ]
    waived = {gate.id for gate in waived_changes(report)}
    failed += [
        f"{finding.ids[0]}: {sentence(finding)} ({finding.why})"
        for finding in report.findings
        if finding.kind == "gate" and finding.ids[0] in waived
    ]
    return Accepted(
        reason=encodable(reason),
        at=report.created_at,
        by_version=report.tool.version,
        failed=len(failed),
        # Several rules that one cause breaks say the same.
        failed_checks=[*dict.fromkeys(failed)][: bounds.FAILED_CHECKS],
    )


def waived_changes(report: Report) -> list[GateReport]:
    """Return the waived gates on changes; with this run as the baseline, they would hold even without the waiver."""
    return [gate for gate in report.gates if gate.status == "waived" and gate.kind in COMPARING]


def is_same(stored: BaselineFile, new: BaselineFile) -> bool:
    """Return whether two baselines are equal except for their time, creator, and the baseline before."""
    return new == replace(stored, created_at=new.created_at, created_by=new.created_by, replaces=new.replaces)


def _queries(evaluation: Evaluation) -> Iterator[BaselineQuery]:
    run, stored = evaluation.run, _stored(evaluation)
    for query in evaluation.contract.queries.values():
        rows, metrics = run.doc_ids.get(query.id, []), evaluation.metrics(run, query.id)
        yield BaselineQuery(
            id=query.id,
            query=query.query,
            doc_ids=[*rows[0]] if rows else [],
            repeats=[[*row] for row in rows[1:]],
            ranks=ranks_by_id(query.relevant_doc_ids, run.scores[query.id].ranks),
            metrics={key: metrics[key] for key in stored},
            pool=_pool(evaluation, query.id, rows),
            expects=expected_of(query),
            broken=_broken(run.violations.get(query.id, ())),
        )


def _pool(evaluation: Evaluation, query_id: str, rows: Sequence[Sequence[str]]) -> list[Id] | None:
    """Return the judged pool that the baseline before has for a query; None if it has none, or if a reader finds it.

    What this run returned first is no part of it: nobody has judged that since.
    """
    before = evaluation.baseline.pools.get(query_id) if evaluation.baseline else None
    if before is None:
        return None
    ranking, pool = evaluation.contract.ranking, pool_of(before)
    k = ranking.k
    first = {doc_id for row in rows for doc_id in first_of(row, k, by_document=ranking.by_document)}
    return None if pool == first else [*sorted(pool)]


def _broken(violations: Iterable[Violation]) -> dict[str, list[str]]:
    """Return the causes of violations by rule, which are digests: a baseline has no texts."""
    found: dict[str, set[str]] = {}
    for one in violations:
        found.setdefault(one.rule, set()).update(one.causes)
    return {rule: sorted(causes) for rule, causes in sorted(found.items())}


def fingerprint(queries: Iterable[GoldenQuery]) -> str:
    """Return a hash of the golden queries that ignores order, files, formatting and explicit defaults."""
    rows = sorted(msgspec.json.encode(_meaning(query), order="sorted") for query in queries)
    return hashlib.sha256(b"\n".join(rows)).hexdigest()


def _meaning(query: GoldenQuery) -> dict[str, Any]:
    """Return the fields that have a value of their own: a field that later versions add changes no fingerprint."""
    empty = asdict(GoldenQuery(id="", query="", relevant_doc_ids=(), location=query.location))
    return {name: value for name, value in asdict(query).items() if value != empty[name]}
