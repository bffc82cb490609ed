"""Questions to label, and a person who presses keys without a terminal."""

from collections.abc import Iterable, Mapping

from ragcontract.cli.label_screen import Interview, Step
from ragcontract.labelling.labels import Candidate, Labels, Question


def question(name: str = "q1", *doc_ids: str, **fields: object) -> Question:
    """Return a question for which ``doc_ids`` (``a`` and ``b`` if none is named) were returned."""
    candidates = tuple(Candidate(doc_id=one, rank=rank) for rank, one in enumerate(doc_ids or ("a", "b"), start=1))
    return Question(id=name, text=f"What about {name}?", candidates=candidates, **fields)  # type: ignore[arg-type]


class Person:
    """Gives the answers one after the other, lines included, and then leaves; remembers what was asked."""

    def __init__(self, answers: Iterable[str]) -> None:
        self._answers = iter(answers)
        self.asked: list[str] = []
        self.said: list[str] = []
        self.helped = 0

    def _next(self) -> str:
        for answer in self._answers:
            if answer == "^C":
                raise KeyboardInterrupt
            return answer
        raise EOFError

    def ask(self, step: Step, *, is_new: bool, total: int, decided: int) -> str:
        what = step.candidate.doc_id if step.candidate else "nothing?"
        head = f"{step.number}/{total}, {decided} decided: " if is_new else ""
        self.asked.append(f"{head}{step.question.id} {what}")
        return self._next()

    def help(self, step: Step) -> None:  # noqa: ARG002
        self.helped += 1

    def line(self, prompt: str) -> str:
        self.asked.append(prompt)
        return self._next()

    def say(self, text: str) -> None:
        self.said.append(text)


def interviewed(*questions: Question, answers: Iterable[str]) -> tuple[Interview, Person, list[Mapping[str, Labels]]]:
    """Ask a person; returns what was saved after each answer, too."""
    saved: list[Mapping[str, Labels]] = []
    interview = Interview(questions, saved.append)
    person = Person(answers)
    interview.run(person)
    return interview, person, saved
