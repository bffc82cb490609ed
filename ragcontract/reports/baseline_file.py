"""A good run as ``baseline.json``: one query a line, so that a change to it reads well in a diff."""

import hashlib
from collections.abc import Mapping
from datetime import datetime

import msgspec

from ragcontract.inputs.baseline import FORMAT_VERSION, BaselineFile, BaselineQuery
from ragcontract.model import GoldenQuery
from ragcontract.reports.build import TOOL, query_metrics, relevant_ranks
from ragcontract.scoring.aggregate import by_tag, means
from ragcontract.scoring.scored import Scored


def render(scored: Scored, doc_ids: Mapping[str, list[str]], now: datetime) -> bytes:
    """Render the run in ``scored`` with all the ``doc_ids`` it returned, by query id."""
    queries = list(scored.golden.queries.values())
    file = BaselineFile(
        format_version=FORMAT_VERSION,
        created_at=now.isoformat(timespec="seconds"),
        created_by=TOOL,
        golden_sha256=fingerprint(queries),
        k=sorted({metric.k for metric in scored.metrics}),
        versions=scored.run.versions,
        metrics=means(queries, scored.run.scores, scored.metrics),
        tags={tag: means(tagged, scored.run.scores, scored.metrics) for tag, tagged in by_tag(queries).items()},
        queries=[_query(query, scored, doc_ids.get(query.id, [])) for query in queries],
    )
    head = msgspec.to_builtins(file)
    rows = ",\n    ".join(msgspec.json.encode(row).decode() for row in head.pop("queries"))
    text = msgspec.json.format(msgspec.json.encode(head), indent=2).decode()
    return (text.removesuffix("\n}") + f',\n  "queries": [\n    {rows}\n  ]\n}}\n').encode()


def _query(query: GoldenQuery, scored: Scored, doc_ids: list[str]) -> BaselineQuery:
    score = scored.run.scores[query.id]
    return BaselineQuery(
        id=query.id,
        query=query.query,
        doc_ids=list(doc_ids),
        ranks=relevant_ranks(query, score),
        metrics=query_metrics(score, [metric.key for metric in scored.metrics]),
    )


def fingerprint(queries: list[GoldenQuery]) -> str:
    """Hash what the golden queries say, whatever their order, files, layout and spelling of defaults."""
    rows = sorted(
        msgspec.json.encode({**msgspec.structs.asdict(query), "place": None}, order="sorted") for query in queries
    )
    return hashlib.sha256(b"\n".join(rows)).hexdigest()
