"""Terminal output: printing, colours and the progress bar."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import click

from ragcontract.core import bounds
from ragcontract.core.errors import OutputError
from ragcontract.core.safe_text import printable, printable_json, visible
from ragcontract.files.opening import Progress, no_progress
from ragcontract.files.paths import existing_files
from ragcontract.files.streams import reader_may_leave


def say(text: str, *, err: bool = False) -> None:
    """Print text; in colour only on a terminal, and not with NO_COLOR.

    A closed pipe is ignored. Any other failure to write to standard output, such as a full disk, raises OutputError.
    """
    stream = sys.stderr if err else sys.stdout
    colour = False if os.environ.get("NO_COLOR") else None
    try:
        with reader_may_leave(stream):
            click.echo(printable(text), nl=False, file=stream, color=colour)
    except OSError as error:
        if not err:
            raise OutputError([f"standard output: cannot be written ({error.strerror or error})"]) from error


def say_json(document: str) -> None:
    """Print JSON in which nothing acts on a terminal or a CI runner; it stays equal as JSON."""
    say(printable_json(document))


def warn(warnings: Sequence[str]) -> None:
    """Print warnings to standard error."""
    say("".join(f"warning: {visible(warning)}\n" for warning in warnings), err=True)


@contextmanager
def progress_over(patterns: Sequence[str]) -> Iterator[Progress]:
    """Show a progress bar on a terminal while reading files that have more than ``bounds.PROGRESS`` in total."""
    total = _total_bytes(patterns) if sys.stderr is not None and sys.stderr.isatty() else 0
    if total <= bounds.PROGRESS:
        yield no_progress
        return
    with click.progressbar(length=total, label="reading", file=sys.stderr) as bar:
        yield bar.update


@contextmanager
def share_done(label: str) -> Iterator[Callable[[float], None]]:
    """Show a progress bar on a terminal; what is given is called with the share of the work that is done."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield lambda _: None
        return
    with click.progressbar(length=100, label=label, file=sys.stderr) as bar:
        yield lambda share: bar.update(int(100 * share) - bar.pos)


def _total_bytes(patterns: Sequence[str]) -> int:
    total = 0
    for path in existing_files(patterns)[0]:
        with suppress(OSError):  # deleted since: reading reports it
            total += Path(path).stat().st_size
    return total
