"""The options of a recording as users write them, and the settings that are made from them.

:func:`settled` reads the questions and settles all paths before any code of the target runs, because that code may
change the current folder.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.core.errors import OutputError
from ragcontract.core.nearest import nearest
from ragcontract.core.numbers import is_within
from ragcontract.core.run import VERSION_FIELDS
from ragcontract.core.safe_text import shorten
from ragcontract.core.version import __version__
from ragcontract.files.git import Commit, commit_of
from ragcontract.files.paths import AnchoredPath, existing_files
from ragcontract.files.writing import check_outputs
from ragcontract.net.secrets import Secrets, of_environment, wrong_names
from ragcontract.record.golden_questions import Questions, Selection, read_questions
from ragcontract.record.interface import Surroundings
from ragcontract.record.recording_journal import Header, path_beside
from ragcontract.record.run_rows import refuse_output
from ragcontract.record.sources import Sources
from ragcontract.record.target import Target
from ragcontract.runs.readers import is_journal

OnFailure = Literal["stop", "leave-out", "keep-retrieval"]
TOP = 10
SECONDS = {"s": 1, "min": 60}
# The least and the most of each number.
WHOLE = {
    "top": (1, bounds.RECORDED_TOP),
    "concurrency": (1, bounds.CONCURRENCY),
    "retries": (0, bounds.RETRIES),
    "repeats": (1, bounds.ROUNDS),
    "warmup": (0, bounds.ROUNDS),
    "limit": (1, bounds.RANK),
    "stream_answer_chars": (0, bounds.ANSWER),
}
LEAST_SECONDS = {"timeout": 0.001, "connect_timeout": 0.001, "progress_every_seconds": 0}


class RecordOptions(Struct, frozen=True, kw_only=True):
    """The options as users write them; None where they wrote nothing."""

    golden: Sequence[str]
    out: str | None = None
    top: int = TOP
    concurrency: int | None = None
    rate: str | None = None  # as `5/s` or `300/min`
    timeout: float = 30
    connect_timeout: float = 10
    retries: int = 2
    repeats: int = 1
    warmup: int = 0
    tags: Sequence[str] = ()
    queries: Sequence[str] = ()
    limit: int | None = None
    on_failure: OnFailure = "stop"
    versions: Mapping[str, str] = {}
    doc_id: str | None = None
    secrets: Sequence[str] = ()  # names of environment variables
    fresh: bool = False
    watch_files: Sequence[str] = ()
    offline: bool = False
    isolate: bool = False

    def wrong(self, environ: Mapping[str, str]) -> list[tuple[str, str]]:
        """Return the names of the fields that are wrong, each with the problem."""
        numbers = {name: getattr(self, name) for name in self.__struct_fields__ if name in {*WHOLE, *LEAST_SECONDS}}
        problems = wrong_numbers(numbers)
        if self.rate is not None and rate_of(self.rate) is None:
            problems.append(("rate", f"expected a rate such as 5/s or 300/min, found {self.rate!r}"))
        if self.on_failure not in get_args(OnFailure):
            known = ", ".join(map(repr, get_args(OnFailure)))
            problems.append(("on_failure", f"expected {known}, found {self.on_failure!r}"))
        problems += [("versions", problem) for problem in wrong_versions(self.versions)]
        return problems + [("secrets", problem) for problem in wrong_names(self.secrets, environ)]

    @property
    def partial(self) -> bool:
        """Whether questions whose answer failed get a row with what was retrieved."""
        return self.on_failure == "keep-retrieval"

    @property
    def calls_per_second(self) -> float | None:
        """How many calls a second are allowed; None for no limit."""
        return None if self.rate is None else rate_of(self.rate)

    def surroundings(self, environ: Mapping[str, str], sources: Sources) -> Surroundings:
        """Return what a system is made with beside its own options."""
        return Surroundings(
            sources=sources,
            secrets=self.known(environ),
            doc_id=self.doc_id,
            seconds=self.timeout,
            connect_seconds=self.connect_timeout,
            offline=self.offline,
            isolate=self.isolate,
            environ=environ,
        )

    def known(self, environ: Mapping[str, str]) -> Secrets:
        return of_environment(self.secrets, environ)


class RecordSettings(Struct, frozen=True, kw_only=True):
    """The options of a recording, with its inputs and outputs, settled before any code of the target runs."""

    options: RecordOptions
    questions: Questions
    commit: Commit | None  # that is checked out
    out: AnchoredPath | None = None  # None for a run in memory
    journal: AnchoredPath | None = None  # None for a run in memory
    sources: Sources  # finds the files that the answers depend on
    outputs: tuple[AnchoredPath, ...] = ()  # all files that are written

    def refuse_inputs(self, files: Iterable[Path]) -> None:
        """Raise OutputError if an output is one of these files, or one that the answers depend on."""
        if problems := check_outputs(self.outputs, [*files, *self.sources.files]):
            raise OutputError(problems)

    @property
    def version(self) -> str | None:
        """The commit that is recorded, as a version."""
        return None if self.commit is None else str(self.commit)

    def header(self, target: Target) -> Header:
        return Header(
            target=target.name,
            target_sha256=target.sha256,
            git=self.version,
            top=self.options.top,
            repeats=self.options.repeats,
            tool=__version__,
            doc_id=self.options.doc_id,
            watch=" ".join(self.options.watch_files) or None,
            versions=" ".join(f"{name}={value}" for name, value in sorted(self.options.versions.items())) or None,
        )


def settled(options: RecordOptions, *further: AnchoredPath, folder: Path = Path()) -> RecordSettings:
    """Read the questions, the watched files and the commit of a folder.

    ``further`` are outputs beside the run. Raises InputError or OutputError if the recording cannot succeed.
    """
    questions = read_questions(options.golden, Selection(tags=options.tags, ids=options.queries, limit=options.limit))
    files = existing_files(options.golden)[0]
    out = None if options.out is None else AnchoredPath(options.out)
    if options.out is not None:
        refuse_output(options.out, files)
    typed = [*([] if out is None else [out]), *further]
    if names := [path for path in typed if is_journal(Path(path))]:
        raise OutputError([f"{path}: has the name of a journal; write to another file" for path in names])
    journal = None if options.out is None else path_beside(options.out)
    settings = RecordSettings(
        options=options,
        questions=questions,
        commit=commit_of(folder, () if options.out is None else (options.out,)),
        out=out,
        journal=journal,
        sources=Sources(Path(), options.watch_files),
        outputs=(*typed, *([] if journal is None else [journal])),
    )
    settings.refuse_inputs(map(Path, files))
    return settings


def wrong_numbers(numbers: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the names of the numbers that are wrong, each with the problem; None is skipped."""
    wrong = []
    for name, value in numbers.items():
        if value is None:
            continue
        whole = name in WHOLE
        least, most = WHOLE[name] if whole else (LEAST_SECONDS[name], bounds.CALL_SECONDS)
        if not is_within(value, least, most, whole=whole):
            expected = "a whole number of" if whole else "seconds,"
            wrong.append((name, f"expected {expected} {least:,} to {most:,}, found {value!r}"))
    return wrong


def rate_of(text: str) -> float | None:
    """Return the calls per second that ``5/s`` or ``300/min`` allows; None if the text is not a rate."""
    match = re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?) ?/ ?(s|min)", text)
    number = float(match[1]) if match else math.nan
    return number / SECONDS[match[2]] if match and 0 < number <= bounds.RATE else None


def wrong_versions(versions: Mapping[str, str]) -> list[str]:
    """Return what is wrong with the versions that a user named."""
    wrong = []
    for name, value in versions.items():
        if name not in VERSION_FIELDS:
            near = nearest(name, VERSION_FIELDS)
            meant = f"did you mean {near!r}?" if near else f"the versions are {', '.join(VERSION_FIELDS)}"
            wrong.append(f"{shorten(name, bounds.NAME)}: is not a version of a run; {meant}")
        elif not 1 <= len(value) <= bounds.ID:
            wrong.append(f"{name}: expected text of 1 to {bounds.ID:,} characters")
    return wrong
