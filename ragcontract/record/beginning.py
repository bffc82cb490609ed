"""What is settled before any code of the target runs, because that code may change the current folder."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import Struct

from ragcontract.core.errors import OutputError
from ragcontract.files.anchored_path import AnchoredPath
from ragcontract.files.patterns import existing_files
from ragcontract.files.writing import check_outputs
from ragcontract.record.git_commit import Commit, commit_of
from ragcontract.record.golden_questions import Questions, Selection, read_questions
from ragcontract.record.loop.journal import path_beside
from ragcontract.record.run_rows import refuse_output
from ragcontract.record.sources import Sources
from ragcontract.runs.journal_name import is_journal


class Beginning(Struct, frozen=True, kw_only=True):
    """The questions, where the run and its journal are written, and the commit that is checked out.

    A run in memory has neither of the two files. ``outputs`` are all files that are written. ``sources`` finds the
    files that the answers depend on, of which ``watch`` are the patterns of those that somebody named.
    """

    questions: Questions
    commit: Commit | None
    out: AnchoredPath | None = None
    journal: AnchoredPath | None = None
    sources: Sources
    watch: tuple[str, ...] = ()
    outputs: tuple[AnchoredPath, ...] = ()

    def refuse_inputs(self, files: Iterable[Path]) -> None:
        """Raise OutputError if a file that is written is one of these, or one that the answers depend on."""
        if problems := check_outputs(self.outputs, [*files, *self.sources.files]):
            raise OutputError(problems)


def begun(
    golden: Sequence[str],
    out: str | None,
    selection: Selection,
    *,
    folder: Path = Path(),
    watch: Sequence[str] = (),
    further: Sequence[AnchoredPath] = (),
) -> Beginning:
    """Read the questions, the watched files and the commit of a folder; ``further`` are outputs beside the run.

    Raises InputError or OutputError if nothing can come of a recording.
    """
    questions = read_questions(golden, selection)
    files = existing_files(golden)[0]
    if out is not None:
        refuse_output(out, files)
    typed = [*([] if out is None else [AnchoredPath(out)]), *further]
    if names := [path for path in typed if is_journal(Path(path))]:
        raise OutputError([f"{path}: has the name of a journal; write to another file" for path in names])
    beginning = Beginning(
        questions=questions,
        commit=commit_of(folder, () if out is None else (out,)),
        out=None if out is None else AnchoredPath(out),
        journal=None if out is None else path_beside(out),
        sources=Sources(Path(), watch),
        watch=tuple(watch),
        outputs=(*typed, *([] if out is None else [path_beside(out)])),
    )
    beginning.refuse_inputs(map(Path, files))
    return beginning
