"""A good run as ``baseline.json``: one query a line, so that a change to it reads well in a diff."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec
from msgspec.structs import asdict, replace

from ragcontract.core.text import encodable
from ragcontract.evaluation.scored import Scored
from ragcontract.files.json_document import document
from ragcontract.judging.words import told
from ragcontract.model import COMPARING, Accepted, GateReport, GoldenQuery, Report
from ragcontract.reports.build import TOOL
from ragcontract.reports.queries import query_metrics, relevant_ranks
from ragcontract.runs.stored import FORMAT_VERSION, BaselineFile, BaselineQuery
from ragcontract.statistics.aggregate import by_tag, means

MAX_ACCEPTED = 20
MAX_FAILED_CHECKS = 100


def render(scored: Scored, doc_ids: Mapping[str, list[list[str]]], now: datetime) -> Iterator[bytes]:
    """Render the run in ``scored`` with all the ``doc_ids`` it returned: by query id, a list a row."""
    return _written(_head(scored, now, ()), _queries(scored, doc_ids))


def baseline_of(
    scored: Scored, doc_ids: Mapping[str, list[list[str]]], now: datetime, accepted: Sequence[Accepted] = ()
) -> BaselineFile:
    """Return what the file is to hold; of what was ``accepted`` the last 20."""
    return replace(_head(scored, now, accepted), queries=list(_queries(scored, doc_ids)))


def _head(scored: Scored, now: datetime, accepted: Sequence[Accepted]) -> BaselineFile:
    """Return all but the queries."""
    return BaselineFile(
        format_version=FORMAT_VERSION,
        created_at=now.isoformat(timespec="seconds"),
        created_by=TOOL,
        golden_sha256=fingerprint(scored.golden.queries.values()),
        k=sorted({metric.k for metric in scored.metrics}),
        versions=scored.run.versions,
        metrics=means(scored.groups, scored.metrics),
        tags={tag: means(groups, scored.metrics) for tag, groups in by_tag(scored.groups).items()},
        accepted=list(accepted[-MAX_ACCEPTED:]),
        latency=scored.run.latency,
        queries=[],
    )


def encode(file: BaselineFile) -> Iterator[bytes]:
    """Write the file out, a query a line."""
    return _written(replace(file, queries=[]), file.queries)


def _written(head: BaselineFile, queries: Iterable[BaselineQuery]) -> Iterator[bytes]:
    return document(head, {"queries": map(_row, queries)})


def _row(query: BaselineQuery) -> BaselineQuery | dict[str, Any]:
    """Leave out the repeats where there are none, as there rarely are: it is a line a query."""
    return query if query.repeats else {name: value for name, value in asdict(query).items() if name != "repeats"}


def acceptance(report: Report, reason: str) -> Accepted:
    """Return what is stored of a broken contract that becomes the baseline for a ``reason``."""
    failed = [
        f"{check.id if check.query_id is None else check.query_id}: {check.message}" for check in report.failed_checks
    ]
    failed += [f"{gate.id}: {told(gate)} (waived {gate.waived})" for gate in waived_drops(report)]
    return Accepted(
        reason=encodable(reason),
        at=report.created_at,
        by_version=report.tool.version,
        failed=len(failed),
        failed_checks=failed[:MAX_FAILED_CHECKS],
    )


def waived_drops(report: Report) -> list[GateReport]:
    """Return the waived limits on changes: with the run as the baseline they would hold, also once the waiver ends."""
    return [gate for gate in report.gates if gate.status == "waived" and gate.kind in COMPARING]


def is_same(stored: BaselineFile, new: BaselineFile) -> bool:
    """Tell whether two baselines differ in nothing but when and by which version they were made."""
    return new == replace(stored, created_at=new.created_at, created_by=new.created_by)


def _queries(scored: Scored, doc_ids: Mapping[str, list[list[str]]]) -> Iterator[BaselineQuery]:
    keys = [metric.key for metric in scored.metrics]
    for query in scored.golden.queries.values():
        score, rows = scored.run.scores[query.id], doc_ids.get(query.id, [])
        yield BaselineQuery(
            id=query.id,
            query=query.query,
            doc_ids=[*rows[0]] if rows else [],
            repeats=[[*row] for row in rows[1:]],
            ranks=relevant_ranks(query, score),
            metrics=query_metrics(score, keys),
        )


def fingerprint(queries: Iterable[GoldenQuery]) -> str:
    """Hash what the golden queries say, whatever their order, files, layout and spelling of defaults."""
    rows = sorted(msgspec.json.encode({**asdict(query), "location": None}, order="sorted") for query in queries)
    return hashlib.sha256(b"\n".join(rows)).hexdigest()
