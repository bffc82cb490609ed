"""What `rag-contract judge label` shows: an item with the texts to judge it by, and which keys there are."""

import re
import shutil
import sys
import textwrap
from collections.abc import Sequence

import click

from ragcontract.cli.console import say
from ragcontract.cli.keyboard import Keyboard
from ragcontract.core import bounds
from ragcontract.core.numbers import count
from ragcontract.core.text import shorten, visible
from ragcontract.judge.label_sample import LabelsFile, Unlabelled
from ragcontract.runs.judged_texts import Task

NARROWEST, INDENT = 20, "  "
# What is asked, and what y and n mean. They are the words of the judge's own instructions.
QUESTIONS: dict[Task, str] = {
    "attribution": "Do these texts support the claim? [y]es, [n]o or only in part, [s]kip, [q]uit",
    "confirmation": "Does the response say so, without support in these texts? [y]es, [n]o, [s]kip, [q]uit",
    "criteria": "Does the response meet the criterion? [y]es, [n]o or only in part, [s]kip, [q]uit",
}
NAMES: dict[Task, str] = {"attribution": "Claim", "confirmation": "Flagged", "criteria": "Criterion"}


def ask_all(items: Sequence[Unlabelled], file: LabelsFile, labeler: str | None) -> int:
    """Show each item and write each answer at once; returns how many were given."""
    answered = 0
    width = max(NARROWEST, shutil.get_terminal_size().columns - 1)
    with Keyboard(sys.stdin) as keyboard:
        try:
            for number, one in enumerate(items, 1):
                say(f"\n{number:,} of {count(len(items), 'item')}\n\n" + shown(one, width))
                key = _key(keyboard, QUESTIONS[one.case.task], width)
                if key == "q":
                    break
                if key in {"y", "n"}:
                    file.add(one.row(label=key == "y", labeler=labeler))
                    answered += 1
        except EOFError:
            say("\n")
    return answered


def _key(keyboard: Keyboard, prompt: str, width: int) -> str:
    while True:
        say("\n".join(textwrap.wrap(prompt, width)) + (" " if keyboard.is_terminal else "\n"))
        key = keyboard.key()
        if keyboard.is_terminal:
            say(f"{visible(key)}\n")
        if key in {"y", "n", "s", "q"}:
            return key


def shown(one: Unlabelled, width: int) -> str:
    """Return an item and its texts; nothing in a text acts on the terminal."""
    case = one.case
    parts = [_part("Question", case.question, width)]
    if case.task != "criteria" or case.contexts:
        parts += [_part(f"Text {rank}", text, width) for rank, text in enumerate(case.contexts, 1)]
        parts += [] if case.contexts else ["No text was retrieved.\n"]
    if case.response is not None:
        parts.append(_part("Response", case.response, width))
    if case.reference is not None:
        parts.append(_part("Reference", case.reference, width))
    why = f" ({one.item.why})" if one.item.why else ""
    return "".join([*parts, _part(NAMES[case.task], f"{one.item.text}{why}", width)])


def _part(name: str, text: str, width: int) -> str:
    """Return a text under its name, line by line without blank ones; other control characters are escaped."""
    lines = [
        line
        for paragraph in re.split(r"\s*\n", shorten(text.strip(), bounds.LABEL_WHOLE))
        for line in textwrap.wrap(visible(paragraph), width, initial_indent=INDENT, subsequent_indent=INDENT)
    ]
    return f"{click.style(name, bold=True)}\n" + "".join(f"{line}\n" for line in lines)
