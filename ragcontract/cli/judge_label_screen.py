"""The screens on which a person labels what a judge is asked: an item, and the texts to judge it by, nearest first.

What is nearest is found by the words that an item and a text share, never by what a judge said.
"""

import math
import re
import shutil
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence

import click
from msgspec import Struct
from msgspec.structs import replace

from ragcontract.cli.console import say
from ragcontract.cli.interactive import NARROWEST, Keyboard, text_lines
from ragcontract.core import bounds
from ragcontract.core.config_sections import Task
from ragcontract.core.numbers import count
from ragcontract.core.safe_text import shorten, visible
from ragcontract.judge.calibration_run import LabelsFile, Unlabelled

# The questions, and what y and n mean, in the words of the judge's own instructions.
QUESTIONS: dict[Task, str] = {
    "attribution": "Do these texts support the claim? [y]es, [n]o or only in part",
    "confirmation": "Does the response say so, without support in these texts? [y]es, [n]o",
    "criteria": "Does the response meet the criterion? [y]es, [n]o or only in part",
}
OTHER_KEYS, MORE = "[s]kip, [b]ack, [q]uit", "[m]ore, "
NAMES: dict[Task, str] = {"attribution": "Claim", "confirmation": "Flagged", "criteria": "Criterion"}
NEAREST: dict[Task, str] = {
    "attribution": "nearest to the claim",
    "confirmation": "nearest to the flagged words",
    "criteria": "nearest to the criterion",
}
INDENT, MARK = "  ", "> "
QUESTION_LINES, ITEM_LINES, LEAST = 3, 5, 3  # of each screen: the question, the item, and at least of the texts
PASSAGE, BEFORE = 3, 2  # lines of a passage, and those that are shown before it
GAIN = 1.1  # how much nearer a longer passage is, or a later one
COMMON = 2  # words that a passage shares with the item at least, unless the item has fewer
# A character of a script without blanks between words is a word.
WORD = re.compile(r"[\u0e00-\u0e7f\u2e80-\ua4cf\uf900-\ufaff]|[^\W\u0e00-\u0e7f\u2e80-\ua4cf\uf900-\ufaff]+")


class Part(Struct, frozen=True, kw_only=True):
    """A text of an item, in lines."""

    name: str
    lines: list[str]


class Passage(Struct, frozen=True, kw_only=True):
    """The lines of a text that share most words with an item."""

    text: int  # which of the texts
    lines: range
    weight: float


class LabelSession:
    """Asks about one item after the other. Each label is written at once, and the last ones can be taken back."""

    def __init__(self, items: Sequence[Unlabelled], file: LabelsFile, labeler: str | None) -> None:
        self._items, self._file, self._labeler = items, file, labeler
        self._answers: list[bool] = []  # for each item before the next one, whether it was labelled, not skipped
        self._news = ""  # what the last answer has changed

    @property
    def added(self) -> int:
        """The number of labels that were added and not taken back."""
        return sum(self._answers)

    def run(self, keyboard: Keyboard) -> None:
        """Ask until all is answered, or the person leaves with the key q or the end of the input."""
        try:
            while len(self._answers) < len(self._items):
                if (key := self._asked(keyboard)) == "q":
                    return
                self._answer(key, self._items[len(self._answers)])
        except EOFError:
            say("\n")
            return
        say(self._news and f"{self._news}\n")

    def _asked(self, keyboard: Keyboard) -> str:
        """Show the next item, one screen after the other, and return a key that answers it."""
        at = len(self._answers)
        size = shutil.get_terminal_size()
        width = max(NARROWEST, size.columns - 1)
        place = f"{at + 1:,} of {count(len(self._items), 'item')}"
        news, self._news = self._news, ""
        screens = screens_of(self._items[at], place, news, width, min(size.lines, bounds.LABEL_SCREEN))
        number = 0
        while True:
            screen, prompt = screens[number]
            say(screen)
            keys = {"y", "n", "s", "b", "q"} | ({"m"} if len(screens) > 1 else set())
            while (key := _key(keyboard, prompt)) not in keys:
                pass
            if key != "m":
                return key
            number = (number + 1) % len(screens)

    def _answer(self, key: str, item: Unlabelled) -> None:
        if key == "b" and not self._answers:
            self._news = "this is the first answer"
        elif key == "b":
            if self._answers[-1]:
                self._file.take_back()
                last = self._items[len(self._answers) - 1].case.task
                self._news = f"The last label is taken back. {self._file.needed(last)}"
            self._answers.pop()
        elif key == "s":
            self._answers.append(False)
        else:
            self._file.add(item.row(label=key == "y", labeler=self._labeler))
            self._answers.append(True)
            self._news = self._file.needed(item.case.task)


def _key(keyboard: Keyboard, prompt: str) -> str:
    say(prompt + (" " if keyboard.is_terminal else "\n"))
    try:
        key = keyboard.key()
    except (EOFError, KeyboardInterrupt):
        say("\n" if keyboard.is_terminal else "")
        raise
    if keyboard.is_terminal:
        say(f"{visible(key)}\n")
    return key


def screens_of(unlabelled: Unlabelled, place: str, news: str, width: int, height: int) -> list[tuple[str, str]]:
    """Return the screens of an item, each with its prompt: the question, as many texts as fit, and the item."""
    case = unlabelled.case
    why = f" ({unlabelled.item.why})" if unlabelled.item.why else ""
    question = _part("Question", case.question, width)
    item = _part(NAMES[case.task], f"{unlabelled.item.text}{why}", width)
    whole = [part for part, most in ((item, ITEM_LINES), (question, QUESTION_LINES)) if len(part.lines) > most]
    head, foot = _lines(_short(question, QUESTION_LINES)), _lines(_short(item, ITEM_LINES))
    above = ["", *(textwrap.wrap(news, width) if news else [])]
    alone, among = (textwrap.wrap(f"{QUESTIONS[case.task]}, {more}{OTHER_KEYS}", width) for more in ("", MORE))
    room = max(LEAST, height - len([*above, place, *head, *foot, *among]))
    pages = list(_pages([*_texts(unlabelled, width, room), *whole], room)) or [[]]
    screens = []
    for number, page in enumerate(pages, 1):
        at = f"; screen {number:,} of {len(pages):,}" if len(pages) > 1 else ""
        lines = [*above, place + at, *head, *page, *foot]
        screens.append(("".join(f"{line}\n" for line in lines), "\n".join(among if at else alone)))
    return screens


def _texts(unlabelled: Unlabelled, width: int, room: int) -> list[Part]:
    """Return what an item is judged by: the response if there is one, the retrieved texts, and the reference."""
    case = unlabelled.case
    response = [] if case.response is None else [_part("Response", case.response, width)]
    contexts = [_part(f"Text {rank}", text, width) for rank, text in enumerate(case.contexts, 1)]
    parts = _nearest_first([response, contexts], unlabelled, width, room)
    if case.task != "criteria" and not case.contexts:
        parts.append(Part(name="No text was retrieved.", lines=[]))
    return parts if case.reference is None else [*parts, _part("Reference", case.reference, width)]


def _part(name: str, text: str, width: int) -> Part:
    return Part(name=name, lines=text_lines(shorten(text.strip("\r\n"), bounds.LABEL_WHOLE), width, INDENT))


def _short(part: Part, most: int) -> Part:
    return part if len(part.lines) <= most else replace(part, lines=[*part.lines[: most - 1], f"{INDENT}…"])


def _lines(part: Part) -> list[str]:
    return [click.style(part.name, bold=True), *part.lines]


def _nearest_first(groups: Sequence[Sequence[Part]], unlabelled: Unlabelled, width: int, room: int) -> list[Part]:
    """Return the parts of all groups, but first the part of each that has its nearest passage, which is marked.

    These have equal shares of the first screen. A part that does not fit into its share begins just before its passage.
    What follows, and then what is before that, comes behind the first parts of all groups.
    """
    passages = [nearest_passage([part.lines for part in group], unlabelled.item.text) for group in groups]
    shares = sum(passage is not None for passage in passages)
    ahead: list[Part] = []
    behind: list[Part] = []
    for group, passage in zip(groups, passages, strict=True):
        if passage is None:
            behind += group
            continue
        part = group[passage.text]
        most = max(room // shares - 1, len(passage.lines))  # without its name
        shown = _lines_around(passage.lines, len(part.lines), most)
        start = f", from line {shown.start + 1:,}" if shown.start else ""
        name = shorten(f"{part.name}{start} ({MARK}{NEAREST[unlabelled.case.task]})", width)
        lines = [_marked(line) if row in passage.lines else line for row, line in enumerate(part.lines)]
        ahead.append(Part(name=name, lines=lines[shown.start : shown.stop]))
        rest = Part(name=f"{part.name}, from line {shown.stop + 1:,}", lines=lines[shown.stop :])
        beginning = Part(name=f"{part.name}, its beginning", lines=lines[: shown.start])
        behind += [piece for piece in (rest, beginning) if piece.lines]
        behind += [other for other in group if other is not part]
        room -= len(shown) + 1
        shares -= 1
    return [*ahead, *behind]


def _lines_around(passage: range, lines: int, most: int) -> range:
    """Return all of so many lines if they are not too many, or else those from just before a passage on."""
    begin = 0 if lines <= most else max(0, passage.start - min(BEFORE, most - len(passage)))
    return range(begin, min(lines, begin + most))


def _marked(line: str) -> str:
    """Return a line of a text with a mark at the margin, where no text is."""
    return click.style(MARK + line.removeprefix(INDENT), bold=True)


def nearest_passage(texts: Sequence[Sequence[str]], item: str) -> Passage | None:
    """Return the few lines that share most words with an item; None if none share enough.

    A word counts the less, the more lines have it. A longer passage has to be nearer by a tenth.
    """
    words = frozenset(WORD.findall(item.casefold()))
    shared = [[words.intersection(WORD.findall(line.casefold())) for line in text] for text in texts]
    lines_with = Counter(word for text in shared for line in text for word in line)
    best = Passage(text=0, lines=range(0), weight=0)
    for length in range(1, PASSAGE + 1):
        for text, lines in enumerate(shared):
            for start in range(len(lines) - length + 1):
                together = frozenset[str]().union(*lines[start : start + length])
                weight = sum(1 / math.sqrt(lines_with[word]) for word in sorted(together))
                if len(together) >= min(COMMON, len(words)) and weight > best.weight * GAIN:
                    best = Passage(text=text, lines=range(start, start + length), weight=weight)
    return best if best.weight else None


def _pages(parts: Sequence[Part], room: int) -> Iterator[list[str]]:
    """Yield screens of at most so many lines. A part that goes on in the next one has its name there, too."""
    page: list[str] = []
    for part in parts:
        if page and len(page) + min(len(part.lines), 1) >= room:
            yield page
            page = []
        page.append(click.style(part.name, bold=True))
        for line in part.lines:
            if len(page) == room:
                yield page
                page = [click.style(f"{part.name.partition(' (')[0]}, continued", bold=True)]
            page.append(line)
    if page:
        yield page
