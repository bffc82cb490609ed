"""What `rag-contract label` shows: a question, a document, and which keys there are."""

import shutil
import textwrap
import unicodedata

import click

from ragcontract.cli.console import say
from ragcontract.cli.keyboard import Keyboard
from ragcontract.core import bounds
from ragcontract.core.text import shorten, visible
from ragcontract.labelling.interview import Step
from ragcontract.labelling.labels import Candidate

MARGIN, NARROWEST = 4, 20
INDENT = " " * MARGIN
KEYS = {
    "y": "yes, it answers the question",
    "n": "no, it does not",
    "s": "skip: ask again another time",
    "x": "no to all other documents of this question",
    "a": "add a relevant document that is not listed, by its id",
    "b": "back to the answer before",
    "q": "quit; all answers are saved, and the next run goes on here",
}
HELP = "".join(f"  {key}  {meaning}\n" for key, meaning in KEYS.items())
RELEVANT = "Relevant? [y]es, [n]o, [s]kip, [x] no to the rest, [a]dd id, [b]ack, [q]uit"
NOTHING = (
    "No document is relevant so far. Is it right that no document answers this question? "
    "[y]es, [n]o (ask again another time), [a]dd id, [b]ack, [q]uit"
)


class LabelScreen:
    """A terminal of some width, or a pipe; everything from a file is shown without control characters."""

    def __init__(self, keyboard: Keyboard, columns: int | None = None) -> None:
        """Read keys from a keyboard; the terminal's width is that of now, unless it is given."""
        self._keyboard = keyboard
        self._columns = max(NARROWEST, (columns or shutil.get_terminal_size().columns) - 1)

    def ask(self, step: Step, *, is_new: bool, total: int, decided: int) -> str:
        """Show the question if it is new, and the document; return the key that is pressed."""
        if is_new:
            say(f"\nQuestion {step.number:,} of {total:,}, {decided:,} decided\n")
            say(click.style(self._block(step.question.text, ""), bold=True) + self._cut(f"({step.question.id})"))
        if step.candidate:
            say("\n" + self._document(step.candidate))
            return self._key(RELEVANT)
        say("\n")
        return self._key(NOTHING)

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
        lines = textwrap.fill(prompt, self._columns)
        say(f"{lines} " if self._keyboard.is_terminal else f"{lines}\n")

    def _end_of_line(self, key: str) -> None:
        """Show the key, which a terminal does not do by itself."""
        if self._keyboard.is_terminal:
            say(f"{visible(key)}\n")

    def _document(self, candidate: Candidate) -> str:
        score = "" if candidate.score is None else f", score {candidate.score:.4g}"
        about = f"  rank {candidate.rank:,}{score}"
        name = shorten(visible(candidate.doc_id), self._room(candidate.doc_id, beside=len(about)))
        return f"{click.style(name, bold=True)}{about}\n{self._block(candidate.text, INDENT)}"

    def _block(self, text: str, indent: str) -> str:
        """Return a text in lines of the terminal's width, cut after some of them; nothing for no text."""
        lines = textwrap.wrap(
            visible(shorten(text, bounds.LABEL_TEXT)),
            self._room(text),
            initial_indent=indent,
            subsequent_indent=indent,
            max_lines=bounds.LABEL_LINES,
            placeholder=" …",
        )
        return "".join(f"{line}\n" for line in lines)

    def _cut(self, line: str) -> str:
        return f"{shorten(visible(line), self._room(line))}\n"

    def _room(self, text: str, *, beside: int = 0) -> int:
        """Return how many characters of a text fit into a line; Chinese, Japanese and Korean ones take two columns."""
        is_wide = not text.isascii() and any(unicodedata.east_asian_width(char) in "WF" for char in text)
        return max(self._columns - beside, NARROWEST) // (2 if is_wide else 1)

    def help(self) -> None:
        """Show what the keys mean."""
        say(HELP)

    def line(self, prompt: str) -> str:
        """Return a line of text."""
        self._prompt(prompt)
        return self._keyboard.line()

    def say(self, text: str) -> None:
        """Show a sentence."""
        say(f"{visible(text)}\n")
