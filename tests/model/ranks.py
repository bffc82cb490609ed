"""The model of what is retrieved: ranks, the metrics on them, and the rules on documents."""

import dataclasses
import math
from collections.abc import Iterable, Sequence

from tests.model.workspace import CannotJudgeError, Row

RANKING = ("mrr", "recall", "precision", "hitrate", "ndcg", "map")
NOTHING_LEFT = frozenset({"nothing in the top k"})


@dataclasses.dataclass(frozen=True)
class Wanted:
    """What a golden row says of documents."""

    relevant: tuple[str, ...]
    forbidden: frozenset[str]
    grades: dict[str, float] | None
    names_documents: bool

    @property
    def judged(self) -> set[str]:
        """The documents that the row names, in any way."""
        return {*self.relevant, *self.forbidden, *(self.grades or {})}


def ids(values: Iterable[object]) -> list[str]:
    """Return ids as text: a whole number is the same as its digits."""
    return [str(value) for value in values]


def wanted_documents(golden: Row, level: float) -> Wanted:
    """Return which documents a golden row wants, at this relevance level."""
    grades = golden.get("relevance")
    listed = golden.get("relevant_doc_ids")
    relevant = list(dict.fromkeys(ids(listed or [])))
    if grades is not None:
        graded = [doc for doc, grade in grades.items() if grade >= level]
        if listed is not None and set(graded) != set(relevant):
            raise CannotJudgeError("relevance disagrees with relevant_doc_ids")
        relevant = graded
    if golden.get("must_rank_at_most") is not None and not relevant:
        raise CannotJudgeError("must_rank_at_most without a relevant document")
    if golden.get("must_include_any") and not relevant:
        raise CannotJudgeError("must_include_any without a relevant document")
    names = listed is not None or grades is not None or golden.get("forbidden_doc_ids") is not None
    forbidden = frozenset(ids(golden.get("forbidden_doc_ids") or []))
    return Wanted(relevant=tuple(relevant), forbidden=forbidden, grades=grades, names_documents=names)


def returned(row: Row | None, rank_by: str) -> list[str]:
    """Return the documents of a row by rank."""
    documents = ids(result["doc_id"] for result in (row or {}).get("results") or [])
    return list(dict.fromkeys(documents)) if rank_by == "documents" else documents


def first_ranks(documents: Sequence[str]) -> dict[str, int]:
    """Return the first rank of each document, from 1."""
    ranks: dict[str, int] = {}
    for rank, document in enumerate(documents, start=1):
        ranks.setdefault(document, rank)
    return ranks


def condensed(documents: Sequence[str], judged: set[str], known_irrelevant: bool) -> list[str]:
    """Return the list without what nobody has judged, if something is known as not relevant."""
    return [document for document in documents if document in judged] if known_irrelevant else list(documents)


def ranking_metrics(wanted: Wanted, documents: Sequence[str], k: int, gain: str) -> dict[str, float]:
    """Return the ranking metrics of one row at one cut-off."""
    ranks = {document: rank for document, rank in first_ranks(documents).items() if rank <= k}
    hits = sorted(ranks[document] for document in wanted.relevant if document in ranks)
    size = len(wanted.relevant)
    precisions = [(number + 1) / rank for number, rank in enumerate(hits)]
    return {
        f"mrr_at_{k}": 1 / hits[0] if hits else 0.0,
        f"recall_at_{k}": len(hits) / size,
        f"precision_at_{k}": len(hits) / k,
        f"hitrate_at_{k}": 1.0 if hits else 0.0,
        f"ndcg_at_{k}": _ndcg(wanted, ranks, k, gain),
        f"map_at_{k}": sum(precisions) / size,
    }


def _ndcg(wanted: Wanted, ranks: dict[str, int], k: int, gain: str) -> float:
    grades = wanted.grades if wanted.grades is not None else dict.fromkeys(wanted.relevant, 1.0)
    gains = {document: 2**grade - 1 if gain == "exponential" else grade for document, grade in grades.items()}
    reached = sum(gains.get(document, 0.0) / math.log2(rank + 1) for document, rank in ranks.items())
    best = sorted(gains.values(), reverse=True)[:k]
    ideal = sum(value / math.log2(rank + 1) for rank, value in enumerate(best, start=1))
    return reached / ideal


def judged_share(documents: Sequence[str], judged: set[str], k: int) -> float:
    """Return the share of the top k that somebody has judged."""
    top = documents[:k]
    return sum(document in judged for document in top) / len(top) if top else 1.0


def overlap(documents: Sequence[str], before: Sequence[str], k: int) -> float | None:
    """Return the share of the documents of both top k that are in both; none if neither has any."""
    now, then = set(documents[:k]), set(before[:k])
    return len(now & then) / len(now | then) if now | then else None


@dataclasses.dataclass(frozen=True)
class RankRules:
    """The rules on documents of one query, and which of them are on."""

    wanted: Wanted
    at_most: int | None
    any_is_enough: bool
    forbidden_within: int | None
    k: int
    enforced: frozenset[str]

    def names(self) -> set[str]:
        """Return the rules that the query has."""
        rules = set()
        if self.at_most is not None:
            rules.add("must_rank_at_most")
        if self.wanted.relevant:
            rules.add("must_include_any" if self.any_is_enough else "must_include")
        if self.wanted.forbidden:
            rules.add("forbidden_docs")
        return rules & self.enforced

    def broken(self, row: Row | None, rank_by: str) -> dict[str, frozenset[str]]:
        """Return the broken rules, each with the documents that are missing or forbidden."""
        documents = returned(row, rank_by)
        ranks = first_ranks(documents)
        within = {document: rank for document, rank in ranks.items() if rank <= self.k}
        missing = frozenset(self.wanted.relevant) - within.keys()
        searched = documents if self.forbidden_within is None else documents[: self.forbidden_within]
        best = min((ranks[document] for document in self.wanted.relevant if document in ranks), default=None)
        wrong: dict[str, frozenset[str]] = {}
        if self.at_most is not None and (best is None or best > self.at_most):
            wrong["must_rank_at_most"] = NOTHING_LEFT if best is None or best > self.k else frozenset()
        if missing:
            wrong["must_include"] = missing if best is not None and best <= self.k else missing | NOTHING_LEFT
        if len(missing) == len(set(self.wanted.relevant)):
            wrong["must_include_any"] = missing
        if self.wanted.forbidden & set(searched):
            wrong["forbidden_docs"] = self.wanted.forbidden & set(searched)
        return {rule: documents for rule, documents in wrong.items() if rule in self.names()}
