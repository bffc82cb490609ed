"""What is settled before any code of the target runs, because that code may change the current folder."""

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from ragcontract.files.anchored_path import AnchoredPath
from ragcontract.files.patterns import existing_files
from ragcontract.record.git_commit import Commit, commit_of
from ragcontract.record.golden_questions import Questions, Selection, read_questions
from ragcontract.record.loop.journal import path_beside
from ragcontract.record.run_rows import refuse_output
from ragcontract.record.sources import Sources


class Beginning(Struct, frozen=True, kw_only=True):
    """The questions, where the run and its journal are written, and the commit that is checked out.

    A run in memory has neither of the two files. ``sources`` finds the files that the answers depend on, of which
    ``watch`` are the patterns of those that somebody named.
    """

    questions: Questions
    commit: Commit | None
    out: AnchoredPath | None = None
    journal: AnchoredPath | None = None
    sources: Sources
    watch: tuple[str, ...] = ()


def begun(
    golden: Sequence[str],
    out: str | None,
    selection: Selection,
    *,
    folder: Path = Path(),
    watch: Sequence[str] = (),
) -> Beginning:
    """Read the questions, the watched files and the commit of a folder.

    Raises InputError or OutputError if nothing can come of a recording.
    """
    questions = read_questions(golden, selection)
    if out is not None:
        refuse_output(out, existing_files(golden)[0])
    return Beginning(
        questions=questions,
        commit=commit_of(folder, () if out is None else (out,)),
        out=None if out is None else AnchoredPath(out),
        journal=None if out is None else path_beside(out),
        sources=Sources(Path(), watch),
        watch=tuple(watch),
    )
