"""Labelling by a person: reads questions and candidates, asks which documents are relevant, shows the screen.

``Interview`` knows nothing of terminals and files: both are handed in. ``init --from-run`` reads the same questions.
"""

import shutil
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import click
from msgspec import Struct
from msgspec.structs import replace

from ragcontract.cli.console import progress_over, say, warn
from ragcontract.cli.interactive import NARROWEST, Keyboard, room, text_lines
from ragcontract.contract import defaults
from ragcontract.contract.config import Config
from ragcontract.contract.golden_file import contract_warnings
from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.safe_text import shorten, visible
from ragcontract.files.problems import Collector
from ragcontract.labelling.labels import NOT_RELEVANT, Candidate, GoldenRows, Labels, Question, read_golden_rows
from ragcontract.labelling.sheet import Sheet, left_out, nothing_to_label, read_pool, sheet_of


def read_sheet(
    golden_path: str | None, asked: Sequence[str], runs: Sequence[str], top: int, *, may_add: bool, config: Config
) -> tuple[GoldenRows, Sheet]:
    """Return the rows of the golden file, if one is named and exists, and the questions to label; prints the warnings.

    The ``config`` says which documents are relevant, and which fields are allowed. If the golden file has rows, the
    questions of the runs are added only with ``may_add``. Raises :class:`InputError` with all problems, or if there is
    nothing to label.
    """
    golden, problems = GoldenRows(defaults.GOLDEN, b"", {}, config.relevance_level), Collector()
    if golden_path is not None:
        level, own = config.relevance_level, config.allow_fields
        golden, of_golden = read_golden_rows(golden_path, must_exist=False, level=level, allow_fields=own)
        problems.include(of_golden)
    with progress_over(runs) as progress:
        pool = read_pool(runs, top, problems, progress)
    all_problems = problems.collected()
    all_problems.raise_if_any()
    sheet = sheet_of(golden, asked, replace(pool, questions={}) if golden.queries and not may_add else pool)
    if problem := nothing_to_label(sheet):
        raise InputError([f"{runs[0]}: {problem}"])
    to_label = set(contract_warnings(golden.queries.values()))
    warn([*(warning for warning in all_problems.warnings if warning not in to_label), *left_out(sheet, golden.path)])
    return golden, sheet


class Step(Struct, frozen=True, kw_only=True):
    """What is asked next."""

    number: int
    question: Question
    candidate: Candidate | None  # whether it is relevant; None to ask whether no document answers the question


class Screen(Protocol):
    """Shows questions, and returns answers."""

    def ask(self, step: Step, *, is_new: bool, total: int, decided: int) -> str:
        """Show a step and return a key; ``is_new`` if another question was shown before it. Raises EOFError."""

    def help(self, step: Step) -> None:
        """Show what the keys mean in a step."""

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
    """Walks through questions. After each answer, ``save`` gets the labels of all questions that changed."""

    def __init__(self, questions: Sequence[Question], save: Callable[[Mapping[str, Labels]], None]) -> None:
        self._questions = sorted(questions, key=_is_only_incomplete)
        self._save = save
        self.labels = {question.id: question.labels for question in questions}
        self._skipped: dict[str, frozenset[str | None]] = {}
        self._history: list[_Before] = []
        self._at = 0

    def run(self, screen: Screen) -> None:
        """Ask until everything is decided or skipped, or the user leaves with the key q or the end of input.

        All answers so far are saved, whatever interrupts it.
        """
        shown: int | None = None
        try:
            while step := self._next():
                key = screen.ask(step, is_new=shown != step.number, total=len(self._questions), decided=self.decided)
                shown = step.number
                if key == "q":
                    return
                if not self._answer(step, key, screen):
                    screen.help(step)
        except EOFError:
            return
        finally:
            self._save(self.changed)

    @property
    def decided(self) -> int:
        return sum(question.is_decided(self.labels[question.id]) for question in self._questions)

    @property
    def changed(self) -> dict[str, Labels]:
        return {
            question.id: self.labels[question.id]
            for question in self._questions
            if self.labels[question.id] != question.labels
        }

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
        """Apply an answer; returns False if the key has no meaning."""
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
                rest = {candidate.doc_id: NOT_RELEVANT for candidate in question.undecided(labels)}
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
    """Return whether a question has a relevant document and undecided ones; such questions come last."""
    return bool(question.labels.relevant) and not question.is_decided(question.labels)


INDENT, FURTHER = " " * 4, " " * 2  # of a document, and of the further lines of a question
REPEATED, LEAST = 2, 3  # lines: of the question above each further document, and of a text at least
BETWEEN = 3  # lines: the id of a new question, a blank one, and the id of the document
SHARE = 3  # the beginning of a new question is repeated if it takes more than a third of the terminal
KEYS = {
    "y": "yes, it answers the question",
    "n": "no, it does not",
    "s": "skip: ask again another time",
    "x": "no to all other documents of this question",
    "a": "add a relevant document that is not listed, by its id",
    "b": "back to the answer before",
    "q": "quit; all answers are saved, and the next run goes on here",
}
KEYS_OF_NOTHING = {
    "y": "yes, no document answers it",
    "n": "no: ask again another time",
    **{key: KEYS[key] for key in "abq"},
}
RELEVANT = "Relevant? [y]es, [n]o, [s]kip, [x] no to the rest, [a]dd id, [b]ack, [q]uit"
NOTHING = (
    "No document is relevant so far. Is it right that no document answers this question? "
    "[y]es, [n]o (ask again another time), [a]dd id, [b]ack, [q]uit"
)


class LabelScreen:
    """A terminal of some size, or a pipe; everything from a file is shown without control characters."""

    def __init__(self, keyboard: Keyboard) -> None:
        self._keyboard = keyboard

    @property
    def _columns(self) -> int:
        return max(NARROWEST, shutil.get_terminal_size().columns - 1)

    def ask(self, step: Step, *, is_new: bool, total: int, decided: int) -> str:
        """Show the question, whole if it is new, and the document; return the key that is pressed.

        A text has as many lines as keep the beginning of the question in view when the key is pressed.
        """
        prompt = RELEVANT if step.candidate else NOTHING
        lines = shutil.get_terminal_size().lines
        above = self._question(step.question.text, bounds.LABEL_LINES)
        if is_new:
            say(f"\nQuestion {step.number:,} of {total:,}, {decided:,} decided\n")
            say(click.style(_together(above), bold=True) + self._cut(f"({step.question.id})"))
        say("\n")
        if not is_new or len(above) > lines // SHARE:
            above = self._question(f"Q: {step.question.text}", REPEATED)
            say(click.style(_together(above), bold=True))
        if step.candidate:
            room = lines - len(above) - BETWEEN - len(self._wrapped(prompt))
            say(self._document(step.candidate, max(LEAST, room)))
        return self._key(prompt)

    def _key(self, prompt: str) -> str:
        self._prompt(prompt)
        try:
            key = self._keyboard.key()
        except (EOFError, KeyboardInterrupt):
            self._end_of_line("")
            raise
        self._end_of_line(key)
        return key

    def _prompt(self, prompt: str) -> None:
        lines = "\n".join(self._wrapped(prompt))
        say(f"{lines} " if self._keyboard.is_terminal else f"{lines}\n")

    def _wrapped(self, prompt: str) -> list[str]:
        return textwrap.wrap(prompt, self._columns)

    def _end_of_line(self, key: str) -> None:
        """Show the key, which a terminal does not do by itself."""
        if self._keyboard.is_terminal:
            say(f"{visible(key)}\n")

    def _question(self, text: str, most: int) -> list[str]:
        """Return a question in lines, of which only the first is at the margin."""
        shown = shorten(text.strip(), bounds.LABEL_TEXT)
        first, *further = text_lines(shown, self._columns, FURTHER, most=most) or [""]
        return [first.lstrip(), *further]

    def _document(self, candidate: Candidate, most: int) -> str:
        score = "" if candidate.score is None else f", score {candidate.score:.4g}"
        about = f"  rank {candidate.rank:,}{score}"
        name = shorten(visible(candidate.doc_id), room(candidate.doc_id, self._columns - len(about)))
        text = text_lines(candidate.text, self._columns, INDENT, most=most)
        return f"{click.style(name, bold=True)}{about}\n{_together(text)}"

    def _cut(self, line: str) -> str:
        return f"{shorten(visible(line), room(line, self._columns))}\n"

    def help(self, step: Step) -> None:
        keys = KEYS if step.candidate else KEYS_OF_NOTHING
        say("".join(f"  {key}  {meaning}\n" for key, meaning in keys.items()))

    def line(self, prompt: str) -> str:
        self._prompt(prompt)
        return self._keyboard.line()

    def say(self, text: str) -> None:
        say(f"{visible(text)}\n")


def _together(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
