"""Where the journal of a recording lies: beside the run, for as long as the recording has not ended."""

import os
from pathlib import Path

AGAIN = "run `rag-contract record` again, which goes on where it ended, or delete that file"


def journal_beside(run: str | os.PathLike[str]) -> Path:
    """Return where the journal of a run is; if the run is a link, beside the file that it leads to."""
    path = Path(run)
    path = Path(os.path.realpath(path)) if path.is_symlink() else path
    return path.with_name(f".{path.name}.journal")


def is_journal(path: Path) -> bool:
    """Return whether a file has the name of a journal."""
    return path.name.startswith(".") and path.name.endswith(".journal")


def unfinished(run: str) -> str | None:
    """Return what is wrong with a run whose recording did not end: what is there is of an earlier one."""
    journal = journal_beside(run)
    if not os.path.lexists(journal):
        return None
    return f"may be old: a recording of it did not end, as {journal} shows; {AGAIN}"
