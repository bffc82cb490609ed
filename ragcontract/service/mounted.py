"""The projects that an operator mounts: a folder for each contract, with a ``project.yml``.

The folder is untrusted: links in it are not followed, and only regular files are opened. The folder itself may be a
link, because the operator named it.
"""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct
from sqlalchemy import Connection

from ragcontract.answers.regexes import PatternError, compiled
from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.numbers import mebibytes
from ragcontract.core.phrase import Location
from ragcontract.core.safe_text import encodable, visible
from ragcontract.files import yaml_tree
from ragcontract.files.opening import UTF8_BOM, read_problem, read_regular
from ragcontract.files.problems import Collector, Problem
from ragcontract.files.schema import Mismatch, mismatches
from ragcontract.history.entry import is_folder_name
from ragcontract.net.secrets import NAME
from ragcontract.service.projects_and_runs import add_project
from ragcontract.service.tables import projects

FILE, RECORD = "project.yml", "record.yml"
REDACTED = ("email", "phone", "card", "iban", "key")
_NOT_REGULAR = "is a link, or no regular file, which is not read; put the file itself there"
IS_NAME = "lower-case letters, digits, dots, hyphens and underscores, 60 at most"

Share = Annotated[float, Meta(ge=0, le=1)]


class Sampling(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The shares of interactions that become candidates."""

    ok: Share = 0.2
    error: Share = 1.0
    flagged: Share = 1.0


class Flags(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When an interaction is flagged."""

    latency_ms: Literal["auto"] | Annotated[float, Meta(ge=0)] = "auto"
    confidence_lt: Share | None = None


class ProjectFile(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What ``project.yml`` says; every key is optional."""

    name: Annotated[str, Meta(min_length=1, max_length=bounds.PROJECT_NAME)] | None = None
    python: Annotated[str, Meta(pattern=r"^/[^\0\n]*$", title="an absolute path")] | None = None
    secrets: list[Annotated[str, Meta(pattern=f"^({NAME})$", title="the name of an environment variable")]] = []
    schedule: (
        Annotated[str, Meta(pattern=r"^([01][0-9]|2[0-3]):[0-5][0-9]$", title='a time of day as "03:00", UTC')] | None
    ) = None
    timeout: Annotated[int, Meta(ge=1, le=bounds.PROJECT_TIMEOUT)] = 3_600
    sampling: Sampling = Sampling()
    flag: Flags = Flags()
    redact: Annotated[tuple[str, ...], Meta(max_length=bounds.PROJECT_PATTERNS)] = REDACTED
    keep_days: Annotated[int, Meta(ge=1, le=bounds.SERVICE_DAYS)] = 60
    keep_runs: Annotated[int, Meta(ge=0, le=bounds.SERVICE_RUNS)] | None = None  # None: what `serve` was started with


class MountedProject(Struct, frozen=True, kw_only=True):
    """A project that the operator mounted."""

    slug: str  # the name of its folder, which is that of the contract
    folder: Path
    file: ProjectFile

    @property
    def name(self) -> str:
        return self.file.name or self.slug

    @property
    def can_run(self) -> bool:
        """Whether it says how its system is asked, so that the service can record and check it."""
        path = self.folder / RECORD
        return os.path.isfile(path) and not os.path.islink(path)  # noqa: PTH113, PTH114 (they raise nothing)


def mounted_projects(folder: Path) -> list[MountedProject]:
    """Read the projects in a folder, sorted by name.

    Raises :class:`InputError` with everything that is wrong with all of them.
    """
    problems = Collector()
    read = [_project(path, problems) for path in folders_in(folder)]
    mounted = [project for project in read if project is not None]
    problems.collected().raise_if_any()
    if len(mounted) > bounds.MOUNTED_PROJECTS:
        raise InputError([f"{visible(str(folder))}: has more than {bounds.MOUNTED_PROJECTS:,} projects"])
    return mounted


def project_in(folder: Path, slug: str) -> MountedProject | None:
    """Read a project in a folder as it is now; None if it is not there.

    Raises :class:`InputError` with everything that is wrong with it; its paths are within the folder.
    """
    path, problems = folder / slug, Collector()
    try:
        if not path.is_dir() and not path.is_symlink():
            return None
        project = _project(path, problems)
        problems.collected().raise_if_any()
    except OSError as error:
        raise InputError([f"{encodable(slug)}: {read_problem(error)}"]) from error
    except InputError as error:
        raise InputError([text.removeprefix(encodable(f"{folder}/")) for text in error.problems]) from error
    return project


def project_file(folder: Path | None, slug: str) -> ProjectFile:
    """Return what a project's file says; the defaults if it has none, or one that cannot be read."""
    try:
        project = None if folder is None else project_in(folder, slug)
    except InputError:
        project = None
    return ProjectFile() if project is None else project.file


def folders_in(folder: Path) -> list[Path]:
    """Return what could be projects in a folder, sorted by name; raises InputError if it cannot be read."""
    try:
        with os.scandir(folder) as items:
            return sorted(folder / item.name for item in items if not item.name.startswith("."))
    except (OSError, ValueError) as error:  # ValueError: a NUL byte in the name
        raise InputError([f"{visible(str(folder))}: {read_problem(error)}"]) from error


def content_of(folder: Path, name: str, limit: int) -> bytes | None:
    """Read a file of a mounted project; None if there is none. Raises :class:`InputError`, which names the file."""
    if folder.is_symlink():
        raise InputError([f"{folder.name}: {_NOT_REGULAR}"])
    try:
        data = read_regular(folder / name, limit)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError([f"{name}: {read_problem(error)}"]) from error
    if data is None or len(data) > limit:
        raise InputError([f"{name}: {_wrong_kind(data, limit)}"])
    return data


def _wrong_kind(data: bytes | None, limit: int) -> str:
    return _NOT_REGULAR if data is None else f"is larger than {mebibytes(limit)}"


def _project(path: Path, problems: Collector) -> MountedProject | None:
    """Read a project; None if anything is wrong with it, which is among the problems then."""
    if why := _why_not_a_project(path):
        problems.problem(encodable(str(path)), why)
        return None
    file = _project_file(path / FILE, problems)
    return None if file is None else MountedProject(slug=path.name, folder=path, file=file)


def _why_not_a_project(path: Path) -> str:
    if path.is_symlink():
        return "is a link, which is not followed; mount the folder itself"
    if not path.is_dir():
        return f"is not a folder; each project has a folder of its own, with {FILE} in it"
    if not is_folder_name(path.name):
        return f"is not the name of a contract's folder ({IS_NAME}); rename it"
    return ""


def _project_file(path: Path, problems: Collector) -> ProjectFile | None:
    """Read a ``project.yml``; None if anything is wrong with it, which is among the problems then."""
    place = encodable(str(path))
    try:
        data = read_regular(path, bounds.CONFIG)
    except FileNotFoundError:
        problems.problem(place, "no such file; write at least `name:` and how the project is called")
        return None
    except OSError as error:
        problems.problem(place, read_problem(error))
        return None
    if data is None or len(data) > bounds.CONFIG:
        problems.problem(place, _wrong_kind(data, bounds.CONFIG))
        return None
    if not data.strip():
        problems.problem(place, "is empty; write at least `name:` and how the project is called")
        return None
    document = yaml_tree.load(data.removeprefix(UTF8_BOM), texts={"name", "python", "schedule", "redact", "secrets"})
    value = yaml_tree.without_nulls(document.value)
    file, wrong = _converted(value)
    faults = [(problem.line, Mismatch(problem.path, problem.message)) for problem in document.problems]
    faults += [(document.line(mismatch.path), mismatch) for mismatch in wrong]
    for line, mismatch in sorted(dict.fromkeys(faults), key=lambda fault: fault[0]):
        problems.add(Problem.of(Location(place, line), mismatch))
    return None if faults else file


def _converted(value: Any) -> tuple[ProjectFile | None, list[Mismatch]]:
    if value is None:  # it is no YAML
        return None, []
    try:
        file = msgspec.convert(value, ProjectFile)
    except msgspec.ValidationError as error:
        return None, mismatches(value, ProjectFile) or [Mismatch((), str(error))]
    return file, [*_wrong_patterns(file.redact)]


def _wrong_patterns(patterns: Sequence[str]) -> Iterator[Mismatch]:
    known = ", ".join(REDACTED)
    for place, pattern in enumerate(patterns):
        if pattern not in REDACTED:
            try:
                compiled(pattern)
            except PatternError as error:
                yield Mismatch(("redact", place), f"is none of {known}, and {error}")


def write_mounted(connection: Connection, mounted: Sequence[MountedProject], now: int) -> None:
    """Add mounted projects, or update them; a job of :meth:`Database.write`.

    How much a project keeps is in the database, so that a service without the folder deletes nothing else.
    """
    for project in mounted:
        add_project(connection, project.slug, project.name, now)
        file = project.file
        values = {"name": project.name, "keep_runs": file.keep_runs, "keep_days": file.keep_days}
        connection.execute(projects.update().where(projects.c.slug == project.slug).values(values))
