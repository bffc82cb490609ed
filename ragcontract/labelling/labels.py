"""What is decided about the documents of a question, and the questions that are still to be labelled."""

from collections.abc import Mapping
from typing import Self

from msgspec import Struct
from msgspec.structs import replace

from ragcontract.core.golden import PLACEHOLDER, RELEVANT_GRADE, GoldenQuery

NOT_RELEVANT = 0


class Labels(Struct, frozen=True, kw_only=True):
    """The grades of documents, relevant from the ``level`` of the config, without the placeholder of ``init``.

    ``unanswerable`` is true once it is decided that nothing answers the question.
    """

    grades: Mapping[str, float] = {}
    unanswerable: bool = False
    level: float = RELEVANT_GRADE

    @property
    def relevant(self) -> list[str]:
        """The ids of the relevant documents."""
        return [doc_id for doc_id, grade in self.grades.items() if grade >= self.level]

    def graded(self, grades: Mapping[str, float]) -> Self:
        """Return these labels with more grades, or other ones; a relevant document answers the question."""
        return replace(self, grades={**self.grades, **grades}, unanswerable=False)

    def relevance(self) -> dict[str, float]:
        """Return the field ``relevance`` of a golden row.

        Without a relevant document, it has the placeholder, because a row without any would mean that nothing answers
        the question.
        """
        missing = not self.unanswerable and not self.relevant
        grades = {**self.grades, **({PLACEHOLDER: self.level} if missing else {})}
        return {doc_id: int(grade) if grade == int(grade) else grade for doc_id, grade in grades.items()}


def labels_of(query: GoldenQuery, level: float = RELEVANT_GRADE) -> Labels:
    """Return the labels in a golden row; documents without a grade that are relevant have that of the level."""
    grades = dict.fromkeys(query.relevant_doc_ids, float(level)) if query.relevance is None else query.relevance
    labelled = {doc_id: grade for doc_id, grade in grades.items() if doc_id != PLACEHOLDER}
    return Labels(grades=labelled, unanswerable=not query.answerable, level=level)


class Candidate(Struct, frozen=True, kw_only=True, gc=False):
    """A retrieved document: its best rank, the score there, and the start of its text (empty if the run has none)."""

    doc_id: str
    rank: int
    score: float | None = None
    text: str = ""


class Question(Struct, frozen=True, kw_only=True):
    """A question and the documents to judge for it, best first; ``labels`` are those of the golden file.

    ``can_be_unanswerable`` is false if a rule of its row needs a relevant document.
    """

    id: str
    text: str
    candidates: tuple[Candidate, ...]
    labels: Labels = Labels()
    can_be_unanswerable: bool = True

    def undecided(self, labels: Labels) -> list[Candidate]:
        """Return the candidates without a grade; none if nothing answers the question."""
        if labels.unanswerable:
            return []
        return [candidate for candidate in self.candidates if candidate.doc_id not in labels.grades]

    def is_decided(self, labels: Labels) -> bool:
        """Return whether all candidates have a grade and one document is relevant, or nothing answers the question."""
        return labels.unanswerable or (bool(labels.relevant) and not self.undecided(labels))
