"""Progress is a bar on a terminal and a line now and then in a pipe."""

import io
import os
import pty
import re
import shutil
from contextlib import suppress
from typing import Any

import pytest

from ragcontract.record.events import End, Event, RecordingProgress, Start
from ragcontract.record.watching import Bar, Lines, duration, line_of, progress_shown

START = Start(target="search.py:find", total=1000, kept=0)
END = End(done=1000, failed=0, retried=3, written=True, failures={})


def progress(done: int, **fields: Any) -> RecordingProgress:
    return RecordingProgress(
        **{
            "done": done,
            "total": 1000,
            "retried": 3,
            "failed": 0,
            "rate": 8.14,
            "p95_ms": 210.4,
            "seconds_left": 72,
            **fields,
        }
    )


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def shown_at(*times: float, every: float = 10) -> list[str]:
    """Return the lines for progress at some times."""
    stream, clock = io.StringIO(), Clock()
    lines = progress_shown(every, stream, clock)
    assert isinstance(lines, Lines)
    lines(START)
    for number, clock.now in enumerate(times, 1):
        lines(progress(number))
    lines(END)
    lines.close()
    return stream.getvalue().splitlines()


def test_a_line_says_how_far_it_is() -> None:
    assert line_of(progress(412)) == "412/1000 asked, 3 retried, 0 failed, 8.1/s, p95 210 ms, about 1 min left"


def test_a_line_leaves_out_what_is_not_known() -> None:
    assert line_of(progress(0, p95_ms=None, seconds_left=None)) == "0/1000 asked, 3 retried, 0 failed, 8.1/s"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (59, "59 s"), (60, "1 min"), (7_140, "119 min"), (7_200, "2.0 h"), (99_000, "27.5 h")],
)
def test_a_time_is_said_in_the_unit_of_people(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_a_pipe_gets_a_line_every_so_often() -> None:
    lines = shown_at(1, 9.9, 10, 11, 19.9, 20, 45, 46, 55)
    assert [line.partition("/")[0] for line in lines] == ["3", "6", "7", "9"]


def test_a_short_recording_writes_no_line() -> None:
    assert shown_at(1, 2, 3) == []


@pytest.mark.parametrize("every", [0, -1])
def test_it_can_be_switched_off(every: float) -> None:
    assert progress_shown(every, io.StringIO()) is None


def test_a_pipe_whose_reader_has_left_is_ignored() -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as stream:
        clock = Clock()
        lines = progress_shown(1, stream, clock)
        assert lines is not None
        clock.now = 2
        lines(progress(1))


def on_a_terminal(*events: Event) -> str:
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w") as stream:
        bar = progress_shown(10, stream)
        assert isinstance(bar, Bar)
        for event in events:
            bar(event)
        bar.close()
    shown = b""
    with suppress(OSError):  # at the end; before, a terminal hands over what it has so far
        while part := os.read(ours, 65_536):
            shown += part
    os.close(ours)
    return shown.decode()


def test_a_terminal_has_a_bar() -> None:
    shown = on_a_terminal(START, progress(412), progress(1000, seconds_left=0), END)
    assert "asking" in shown
    assert "412/1000  3 retried, 8.1/s, about 1 min left" in shown
    assert "1000/1000" in shown
    assert shown.endswith("\n")


def test_a_bar_fits_into_a_line() -> None:
    """A line that is wider than the terminal would stay, and another one follow with each event."""
    shown = on_a_terminal(START, progress(412, failed=1), progress(1000, failed=1, seconds_left=None))
    lines = re.sub(r"\x1b\[[?0-9]*[a-zA-Z]", "", shown).replace("\r", "\n").splitlines()
    assert max(len(line.rstrip()) for line in lines) <= shutil.get_terminal_size().columns


def test_a_bar_ends_its_line_when_the_recording_breaks_off() -> None:
    assert on_a_terminal(START, progress(412)).endswith("\n")


def test_there_is_no_bar_for_nothing() -> None:
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w") as stream:
        bar = progress_shown(10, stream)
        assert bar is not None
        bar(Start(target="t", total=0, kept=0))
        bar(progress(0))
        bar.close()
        stream.write("end")
    assert os.read(ours, 99) == b"end"
    os.close(ours)
