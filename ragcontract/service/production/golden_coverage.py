"""Which production questions the contract is near to, and which documents it has.

A question is covered if its nearest golden query is as near as golden queries are to each other: at least as near as
nine in ten of them are to the nearest other one.
"""

from collections.abc import Callable, Collection

from ragcontract.core import bounds
from ragcontract.core.golden import GoldenQuery
from ragcontract.service.production.question_similarity import Questions
from ragcontract.service.production.sketches import document_hash

FAR = 0.1  # the share of golden queries that are farther from the nearest other one
FEWEST = 10  # golden queries; of fewer, how near they are to each other says nothing


class GoldenSet:
    """The golden queries of a contract, to compare questions and documents with."""

    def __init__(self, queries: Collection[GoldenQuery], turn: Callable[[], None] = lambda: None) -> None:
        """``turn`` is called after each query, so that whoever compares many can let others work."""
        self.documents = [document_hash(doc_id) for query in queries for doc_id in documents_of(query)]
        texts = [query.query for query in queries][: bounds.MONITOR_GOLDEN]
        self._questions, self._known = Questions(texts), dict[str, bool]()
        self.is_enough = len(texts) >= FEWEST
        self.least = 0.0  # the likeness of a question that is covered, at least
        if self.is_enough:
            likenesses = []
            for place, text in enumerate(texts):
                others = (near.likeness for near in self._questions.nearest(text, 2) if near.place != place)
                likenesses.append(next(others, 0.0))
                turn()
            self.least = sorted(likenesses)[int(FAR * len(likenesses))]

    def covers(self, question: str, digest: str) -> bool:
        """Return whether a golden query is near to a question; what is known of its digest is not computed again."""
        if digest not in self._known:
            if len(self._known) >= bounds.MONITOR_QUESTIONS:
                self._known.clear()
            nearest = self._questions.nearest(question, 1)
            self._known[digest] = bool(nearest) and nearest[0].likeness >= self.least
        return self._known[digest]


def documents_of(query: GoldenQuery) -> Collection[str]:
    """Return the documents that a golden query names."""
    return {*query.relevant_doc_ids, *query.forbidden_doc_ids, *(query.relevance or ())}
