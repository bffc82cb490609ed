"""Pairs to judge as text: a table, lines to tick, or JSON lines; and what labels can do for each broken limit."""

from collections.abc import Iterator, Mapping

import msgspec
from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.numbers import SAME, count, percent, signed
from ragcontract.core.text import shorten, visible
from ragcontract.labelling.checklist import OPEN, item, quoted_id
from ragcontract.labelling.labels import Candidate
from ragcontract.labelling.unjudged_pairs import Outlook, UnjudgedPair, UnjudgedPairs

MOVE_DIGITS = 4
NEARLY_CERTAIN = 0.99
HEAD = """\
# Documents that nobody has judged, those that can change the verdict first. Between the brackets, write
# x if a document answers its question, - if it does not, or a grade such as 2. Those with ? stay open.
"""
THEN = "# Then: rag-contract label --ticked FILE{golden}\n"
Queries = Mapping[str, GoldenQuery]
Texts = Mapping[tuple[str, str], Candidate]


class PairLine(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A pair as a line of JSON."""

    query_id: str
    query: str
    doc_id: str
    rank: int | None = None
    baseline_rank: int | None = None
    score: float | None = None
    text: str = ""
    limit: str
    move: float
    share: float = 0.0
    chance: float


def table(found: UnjudgedPairs, texts: Texts) -> list[list[str]]:
    """Return the cells of a table; the texts of documents are a column if the run has any."""
    has_texts = any(candidate.text for candidate in texts.values())
    cells = [["query", "document", "rank", "if relevant", "chance", *(["text"] if has_texts else [])]]
    for pair in found.pairs:
        text = _text(texts.get((pair.query_id, pair.doc_id)), bounds.TERMINAL_RESULT)
        cells.append(
            [
                visible(shorten(pair.query_id, bounds.TERMINAL_RESULT)),
                visible(shorten(pair.doc_id, bounds.TERMINAL_RESULT)),
                _rank(pair),
                _effect(pair),
                _chance(pair),
                *([text] if has_texts else []),
            ]
        )
    return cells


def _rank(pair: UnjudgedPair) -> str:
    return f"{pair.rank:,}" if pair.rank is not None else f"baseline {pair.baseline_rank:,}"


def _effect(pair: UnjudgedPair) -> str:
    if abs(pair.move) <= SAME:
        return "-"
    share = f", {percent(pair.share, 0)} of what it lacks" if pair.share else ""
    return f"{pair.label} {signed(pair.move, MOVE_DIGITS)}{share}"


def _chance(pair: UnjudgedPair) -> str:
    """Return the chance as text, never 100 %: an estimate decides about no document."""
    return percent(min(pair.chance, NEARLY_CERTAIN), 0)


def _text(candidate: Candidate | None, length: int) -> str:
    return visible(shorten(candidate.text, length)) if candidate else ""


def lines_to_tick(found: UnjudgedPairs, queries: Queries, texts: Texts, golden: str) -> Iterator[str]:
    """Yield a file to tick: the pairs by question, in the order of the first pair of each; the summary is a comment."""
    yield HEAD
    yield THEN.format(golden=golden)
    by_query: dict[str, list[UnjudgedPair]] = {}
    for pair in found.pairs:
        by_query.setdefault(pair.query_id, []).append(pair)
    for query_id, pairs in by_query.items():
        question = visible(shorten(queries[query_id].query, bounds.CANDIDATE_TEXT))
        yield f"\n## {quoted_id(query_id)}\nQ: {question}\n"
        for pair in pairs:
            candidate = texts.get((query_id, pair.doc_id))
            yield item(candidate or Candidate(doc_id=pair.doc_id, rank=pair.rank or pair.baseline_rank or 1), OPEN)
    if by_query:
        yield "\n"
    yield from (f"# {line}\n" for line in summary(found))


def json_lines(found: UnjudgedPairs, queries: Queries, texts: Texts) -> Iterator[str]:
    """Yield a line of JSON for each pair."""
    for pair in found.pairs:
        candidate = texts.get((pair.query_id, pair.doc_id))
        line = PairLine(
            query_id=pair.query_id,
            query=queries[pair.query_id].query,
            doc_id=pair.doc_id,
            rank=pair.rank,
            baseline_rank=pair.baseline_rank,
            score=candidate.score if candidate else None,
            text=candidate.text if candidate else "",
            limit=pair.limit,
            move=pair.move,
            share=pair.share,
            chance=pair.chance,
        )
        yield msgspec.json.encode(line).decode() + "\n"


def summary(found: UnjudgedPairs) -> list[str]:
    """Return how many documents are open, and what they can do for the broken limits, a sentence each."""
    lines = [_size(found)]
    if not found.total:
        return lines
    if len(found.pairs) < found.total:
        lines.append(f"The first {len(found.pairs):,} of {found.total:,} are listed; --top lists more.")
    lines += map(_outlook, found.outlooks)
    if not found.outlooks:
        lines.append("No limit on a ranking metric is broken; what would move a metric most comes first.")
    return lines


def _size(found: UnjudgedPairs) -> str:
    where = f"in the top {found.k} of {count(found.queries, 'query')} with relevant documents"
    if not found.total:
        return f"Nothing to judge: every document {where} is judged."
    size = f"Nobody has judged {found.of_run:,} of the {count(found.documents, 'document')} {where}"
    before = found.total - found.of_run
    return f"{size}, and {before:,} more that the baseline has there." if before else f"{size}."


def _outlook(outlook: Outlook) -> str:
    report = outlook.report
    which = f" (tag {visible(shorten(report.tag, bounds.NAME))})" if report.tag is not None else ""
    said = f"{report.message}{which}"
    if outlook.least is None:
        return f"{said}: labels alone cannot bring it within its limit, even if all of these are relevant."
    return f"{said}: at least {outlook.least:,} of these must be relevant to bring it within its limit."
