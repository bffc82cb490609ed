"""Asks, document by document, what is relevant. Knows nothing of terminals and files: both are handed in."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from ragcontract.core import bounds
from ragcontract.labelling.labels import NOT_RELEVANT, Candidate, Labels, Question


class Step(Struct, frozen=True, kw_only=True):
    """What is asked next: whether a candidate is relevant or, with None, whether nothing answers the question."""

    number: int
    question: Question
    candidate: Candidate | None


class Screen(Protocol):
    """Shows what is asked, and returns what is answered."""

    def ask(self, step: Step, *, is_new: bool, total: int, decided: int) -> str:
        """Show a step and return a key; ``is_new`` if another question was shown before it. Raises EOFError."""

    def help(self) -> None:
        """Show what the keys mean."""

    def line(self, prompt: str) -> str:
        """Return a line of text. Raises EOFError."""

    def say(self, text: str) -> None:
        """Show a sentence."""


class _Before(Struct, frozen=True, kw_only=True):
    """The state before an answer, for going back."""

    at: int
    labels: Labels
    skipped: frozenset[str | None]


class Interview:
    """Walks through questions. After each answer, ``save`` gets the labels of all questions that have any."""

    def __init__(self, questions: Sequence[Question], save: Callable[[Mapping[str, Labels]], None]) -> None:
        """Store the questions; ``labels`` starts with those that they have."""
        self._questions = sorted(questions, key=_is_only_incomplete)
        self._save = save
        self.labels = {question.id: question.labels for question in questions}
        self._skipped: dict[str, frozenset[str | None]] = {}
        self._history: list[_Before] = []
        self._at = 0

    def run(self, screen: Screen) -> None:
        """Ask until all is decided or skipped, or the user leaves: with the key q or the end of input.

        Whatever interrupts it, the answers given so far are saved.
        """
        shown: int | None = None
        try:
            while step := self._next():
                key = screen.ask(step, is_new=shown != step.number, total=len(self._questions), decided=self.decided)
                shown = step.number
                if key == "q":
                    return
                if not self._answer(step, key, screen):
                    screen.help()
        except EOFError:
            return
        finally:
            self._save(self.changed)

    @property
    def decided(self) -> int:
        """The number of questions that are decided."""
        return sum(question.is_decided(self.labels[question.id]) for question in self._questions)

    @property
    def changed(self) -> dict[str, Labels]:
        """The labels that are not those which the questions had."""
        return {one.id: self.labels[one.id] for one in self._questions if self.labels[one.id] != one.labels}

    def _next(self) -> Step | None:
        while self._at < len(self._questions):
            question = self._questions[self._at]
            labels, skipped = self.labels[question.id], self._skipped.get(question.id, frozenset())
            left = question.undecided(labels)
            for candidate in left:
                if candidate.doc_id not in skipped:
                    return Step(number=self._at + 1, question=question, candidate=candidate)
            is_open = not (left or labels.unanswerable or labels.relevant or None in skipped)
            if is_open and question.can_be_unanswerable:
                return Step(number=self._at + 1, question=question, candidate=None)
            self._at += 1
        return None

    def _answer(self, step: Step, key: str, screen: Screen) -> bool:
        """Apply an answer; return whether the key means anything."""
        question, candidate = step.question, step.candidate
        labels = self.labels[question.id]
        match key, candidate:
            case "b", _:
                self._back(screen)
            case "a", _:
                if doc_id := self._asked_id(screen):
                    self._decide(question, labels.graded({doc_id: labels.level}))
            case "s", _:
                self._skip(question, candidate.doc_id if candidate else None)
            case "n", None:
                self._skip(question, None)
            case "y", None:
                self._decide(question, replace(labels, unanswerable=True))
            case "y", Candidate(doc_id=doc_id):
                self._decide(question, labels.graded({doc_id: labels.level}))
            case "n", Candidate(doc_id=doc_id):
                self._decide(question, labels.graded({doc_id: NOT_RELEVANT}))
            case "x", Candidate():
                rest = {one.doc_id: NOT_RELEVANT for one in question.undecided(labels)}
                self._decide(question, labels.graded({name: rest[name] for name in self._not_skipped(question, rest)}))
            case _:
                return False
        return True

    def _not_skipped(self, question: Question, doc_ids: Mapping[str, int]) -> list[str]:
        skipped = self._skipped.get(question.id, frozenset())
        return [doc_id for doc_id in doc_ids if doc_id not in skipped]

    def _asked_id(self, screen: Screen) -> str | None:
        doc_id = screen.line("Id of a relevant document (empty for none):").strip()
        if len(doc_id) > bounds.ID:
            screen.say(f"an id has at most {bounds.ID:,} characters")
            return None
        return doc_id or None

    def _remember(self, question: Question) -> None:
        skipped = self._skipped.get(question.id, frozenset())
        self._history.append(_Before(at=self._at, labels=self.labels[question.id], skipped=skipped))

    def _decide(self, question: Question, labels: Labels) -> None:
        self._remember(question)
        self.labels[question.id] = labels
        self._save(self.changed)

    def _skip(self, question: Question, doc_id: str | None) -> None:
        self._remember(question)
        self._skipped[question.id] = self._skipped.get(question.id, frozenset()) | {doc_id}

    def _back(self, screen: Screen) -> None:
        if not self._history:
            screen.say("this is the first answer")
            return
        before = self._history.pop()
        question = self._questions[before.at]
        self._at = before.at
        self.labels[question.id] = before.labels
        self._skipped[question.id] = before.skipped
        self._save(self.changed)


def _is_only_incomplete(question: Question) -> bool:
    """Return whether some documents are undecided, but one that is relevant is known: it is asked about last."""
    return bool(question.labels.relevant) and not question.is_decided(question.labels)
