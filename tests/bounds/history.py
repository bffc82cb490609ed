"""Limits on a history: what is read of an entry and of a result set, and what a killed writer leaves."""

import os

from ragcontract.history.copying import Copied, copy
from ragcontract.history.entry import NewEntry
from ragcontract.history.folder import Folder
from tests.bounds.lab import Case, Cases, Lab
from tests.history.entries import RUN, new_entry


def copied(lab: Lab, *entries: NewEntry) -> Copied:
    """Copy a history of these entries to a new folder."""
    source = Folder(str(lab.folder / "source"))
    for entry in entries:
        source.add(entry)
    return copy(source, Folder(str(lab.folder / "target")))


def an_entry(lab: Lab, size: int) -> bool:
    entry = new_entry()
    result = copied(lab, NewEntry(entry=entry.entry, content=entry.content.ljust(size)))
    assert result.entries + result.faulty == 1
    return result.entries == 1


def a_result_set(lab: Lab, size: int) -> bool:
    result = copied(lab, new_entry(results=b"x" * size))
    assert result.entries == 1
    assert result.result_sets + result.faulty == 1
    return result.result_sets == 1


def a_leftover(lab: Lab, seconds: int) -> bool:
    folder = Folder(str(lab.folder / "history"))
    folder.add(new_entry())
    leftover = lab.folder / "history" / ".rag-contract-0123456789abcdef.tmp"
    leftover.touch()
    now = leftover.stat().st_mtime  # the next entry is younger, and within the minute
    os.utime(leftover, (now - seconds + 60, now - seconds + 60))
    folder.add(new_entry(run=RUN + 1))
    return leftover.exists()


CASES: Cases = {
    "ENTRY": Case(an_entry),
    "RESULT_SET": Case(a_result_set),
    "UNFINISHED": Case(a_leftover, past=lambda seconds: seconds + 120),
}
