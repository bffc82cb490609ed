"""Finds the files that the action reads and writes, and refuses those that a pull request must not lead it to.

A pull request controls the workspace, including its links. Paths are also mapped between the runner, the container and
the repository.
"""

import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from ragcontract.contract.defaults import DEFAULTS, SINGLE
from ragcontract.core.errors import InputError
from ragcontract.core.numbers import count
from ragcontract.core.phrase import Location, Place, location_of
from ragcontract.evaluation.source import Inputs, find_inputs
from ragcontract.files.paths import existing_files
from ragcontract.files.problems import Problem
from ragcontract.files.writing import check_outputs
from ragcontract.github.context import Context
from ragcontract.github.settings import ActionSettings

GIT = ".git"


def outside(paths: Iterable[str], context: Context) -> list[str]:
    """Return a problem for every path that leads, with links resolved, out of the workspace.

    A path in the runner's temporary folder is allowed if it is written as such, but a link must not lead there.
    """
    return [
        f"{path}: leads out of the workspace; the action reads and writes nothing outside of it"
        for path in paths
        if not any(Path(os.path.realpath(path)).is_relative_to(folder) for folder in _allowed(path, context))
    ]


def _allowed(path: str, context: Context) -> list[Path]:
    folders = [context.workspace]
    if context.temporary is not None and Path(os.path.normpath(Path.cwd() / path)).is_relative_to(context.temporary):
        folders.append(context.temporary)
    return [folder.resolve() for folder in folders]


def is_linked(path: str, context: Context) -> bool:
    """Return whether the path is a symbolic link, or leads through one, below the workspace or the temporary folder."""
    return any(map(os.path.islink, _steps(path, context)))  # Path.is_symlink raises if a name is too long


def _steps(path: str, context: Context) -> list[Path]:
    """Return the path, as it is written, and the folders on the way to it from the workspace."""
    full = Path.cwd() / path
    tops = {top for folder in (context.workspace, context.temporary) if folder for top in (folder, folder.resolve())}
    return [step for step in (full, *full.parents) if not any(top.is_relative_to(step) for top in tops)]


def _is_in_git(path: str, context: Context) -> bool:
    return any(step.name.lower() == GIT for step in _steps(path, context))


def is_special(path: str) -> bool:
    """Return whether a path exists and is neither a file nor a folder, so that reading it could block."""
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116 (Path.stat raises if a name has a NUL)
    except (OSError, ValueError):
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def unsafe_output(path: str, context: Context) -> str | None:
    """Return the reason why the action must not write to a path in the workspace, or None."""
    if is_linked(path, context):
        return f"{path}: is a symbolic link, or behind one; the action writes through none, so name another file"
    if _is_in_git(path, context):
        return f"{path}: is in {GIT}; name a file outside of it"
    if is_special(path):
        return f"{path}: is not a regular file; name another file"
    return None


def can_be_replaced(path: str, context: Context) -> bool:
    """Return whether a path in the workspace is a link, a pipe or the like that a file may replace.

    The path must not lead through a link, or be in ``.git``.
    """
    if not _is_in_the_way(path):
        return False
    folder = os.path.dirname(path) or "."  # noqa: PTH120 (Path would remove a final `..`)
    return not (outside([folder], context) or is_linked(folder, context) or _is_in_git(path, context))


def _is_in_the_way(path: str) -> bool:
    return os.path.islink(path) or is_special(path)  # noqa: PTH114 (see is_linked)


def make_room(path: str) -> None:
    """Remove a link, a pipe or the like at a path; files and folders stay."""
    if _is_in_the_way(path):
        os.unlink(path)  # noqa: PTH108 (see above)


def wrong_folder(folder: str, context: Context) -> str | None:
    """Return the problem with the input working-directory, or None."""
    if problems := outside([folder], context):
        return f"input working-directory: {problems[0]}"
    if folder and not os.path.isdir(folder):  # noqa: PTH112 (pathlib raises if a name is too long)
        return f"input working-directory: {folder!r} is not a folder in the workspace"
    return None


def in_container(path: str, context: Context) -> str:
    """Map a path on the runner, such as ``${{ github.workspace }}/run.jsonl``, to the path in the container.

    The runner does this itself for an input with a single path, but not for further lines of an input.
    """
    host = context.host_workspace
    if host and (path == host or path.startswith(f"{host}/")):
        return str(context.workspace) + path[len(host) :]
    return path


def for_next_step(path: str, context: Context) -> str:
    """Return a path relative to the workspace, because other steps do not have the container's /github/workspace."""
    full = Path(os.path.normpath(Path.cwd() / path))
    for workspace in (context.workspace, context.workspace.resolve()):
        if full.is_relative_to(workspace):
            return str(full.relative_to(workspace))
    return str(full)


def in_repository(path: str, context: Context) -> str:
    """Return a path relative to its repository, as annotations need it.

    The repository may be checked out into a subfolder of the workspace. Without one, it is relative to the workspace.
    """
    location = Path(for_next_step(path, context))
    workspace_only = replace(context, temporary=None)
    for folder in location.parents:
        above = context.workspace / folder
        if not outside([str(above)], workspace_only) and os.path.lexists(above / ".git"):
            return str(location.relative_to(folder))
    return str(location)


@contextmanager
def owned_like_workspace(outputs: Iterable[str], context: Context) -> Iterator[None]:
    """Give files written in this context the owner of the workspace: docker actions run as root, later steps do not.

    Folders that are created for them get the same owner, even if writing fails.
    """
    files = [Path(output).resolve() for output in outputs]
    made = sorted({folder for file in files for folder in file.parents if not folder.exists()})
    try:
        yield
    finally:
        if os.geteuid() == 0:
            _hand_over([*made, *files], context.workspace)


def _hand_over(paths: Iterable[Path], workspace: Path) -> None:
    with suppress(OSError):  # the workspace does not exist any more
        owner = workspace.stat()
        for path in paths:
            with suppress(OSError):  # not written, or on a file system without owners
                os.chown(path, owner.st_uid, owner.st_gid)


BODY = "comment-body-file"


class ActionFiles(Struct, frozen=True, kw_only=True):
    """The paths of the inputs and of the reports, and the problems with them."""

    inputs: Inputs
    reports: dict[str, str]  # the paths of the requested formats, by the names of their inputs
    on_error: dict[str, str]  # those of them that may be written even if there are problems with other paths
    body: str | None = None  # the file for the comment's Markdown; None if not requested, or if it must not be written
    existing: tuple[str, ...] = ()  # the input files
    entry: str | None = None  # the name of the entry of a history that is the baseline
    linked: tuple[str, ...] = ()  # those of them that are reached through a link
    problems: tuple[str, ...] = ()


def find_files(settings: ActionSettings, context: Context) -> ActionFiles:
    """Return the files of a check; accesses nothing outside the workspace."""
    folder = in_container(settings.working_directory, context)
    if problem := wrong_folder(folder, context):
        return ActionFiles(inputs=Inputs(), reports={}, on_error={}, problems=(problem,))
    try:
        named, entry = settings.inputs.without_entry()
        inputs, start = _inputs(named, context, folder), []
    except InputError as error:  # there is no contract
        inputs, entry, start = Inputs(), None, error.problems
    wanted = {
        "report-md": settings.report_md,
        "report-json": settings.report_json,
        "junit": settings.junit,
        "report-html": settings.report_html,
        "report-v2": settings.report_v2,
        BODY: settings.comment_body_file,
    }
    outputs = {name: str(Path(folder) / in_container(path, context)) for name, path in wanted.items() if path}
    existing, _ = existing_files([path for path in inputs.all if not outside([path], context)])
    linked = tuple(path for path in existing if is_linked(path, context))
    plain = [path for path in existing if path not in linked]  # through a link, a report could be made an input
    may_be_written = {name: path for name, path in outputs.items() if _may_be_written(name, outputs, plain, context)}
    problems = [
        *start,
        *_problems_of_inputs(inputs, existing, context),
        *_problems_of_outputs(outputs, existing, context),
    ]
    return ActionFiles(
        inputs=inputs,
        reports={name: path for name, path in outputs.items() if name != BODY},
        on_error={name: path for name, path in may_be_written.items() if name != BODY},
        body=may_be_written.get(BODY),
        existing=tuple(existing),
        entry=entry,
        linked=linked,
        problems=tuple(dict.fromkeys(problems)),
    )


def _inputs(named: Inputs, context: Context, folder: str) -> Inputs:
    values = {name: [in_container(path, context) for path in named.paths(name)] for name in (*DEFAULTS, "scores")}
    of_one = {name: next(iter(values[name]), None) for name in SINGLE}
    return find_inputs(replace(named, **values | of_one), folder, list(_ways_up(folder, context)))


def _ways_up(folder: str, context: Context) -> Iterator[Path]:
    """Yield the folders of the workspace that a folder is in, as paths that go up from it."""
    inside = Path(for_next_step(folder, context))
    steps = 0 if inside.is_absolute() else len(inside.parts)
    yield from (Path(folder, *[".."] * number) for number in range(1, steps + 1))


def _problems_of_inputs(inputs: Inputs, existing: Sequence[str], context: Context) -> Iterator[str]:
    if problems := outside(dict.fromkeys(inputs.all), context):
        yield from problems
        return
    yield from outside(existing, context)
    for name in DEFAULTS:
        for path in inputs.paths(name) if name in inputs.unnamed else ():
            if is_linked(path, context):
                yield f"{path}: is a symbolic link, or behind one; to follow it, name it with the input {name}"
    of_rows = (*inputs.paths("run"), *inputs.scores, *inputs.judgments)
    for path in existing:
        if is_special(path):
            yield f"{path}: is not a regular file; write the {'rows' if path in of_rows else 'content'} to a file"


def _problems_of_outputs(outputs: Mapping[str, str], existing: Sequence[str], context: Context) -> Iterator[str]:
    if problems := outside(dict.fromkeys(outputs.values()), context):
        yield from problems
        return
    unsafe = [problem for path in outputs.values() if (problem := unsafe_output(path, context))]
    yield from unsafe or check_outputs(outputs.values(), existing)


def _may_be_written(name: str, outputs: Mapping[str, str], existing: Sequence[str], context: Context) -> bool:
    """Return whether an output may be written even if there are problems with others.

    Its path must not be that of an input or of another report. If the comment's body has the path as well, the report
    is written.
    """
    path = outputs[name]
    reports = [other for key, other in outputs.items() if key not in {name, BODY}]
    if can_be_replaced(path, context):
        return path not in reports
    if outside([path], context) or unsafe_output(path, context):
        return False
    others = [other for other in reports if not outside([other], context)]
    return not check_outputs([path], [*existing, *others])


def without_content(error: InputError, files: ActionFiles) -> InputError:
    """Return the error without what its messages could quote from files that are reached through a link.

    The workflow named the link, but a pull request can make it lead to any file of the workspace, and messages about
    one file may quote another. Only the file and the line of each message remain.
    """
    if not files.linked:
        return error
    why = f"no details are shown, because {files.linked[0]} is a symbolic link, or behind one"
    places = dict.fromkeys(_file_and_line(problem, files) for problem in error.problems)
    problems = [str(Problem(place, f"is not valid; {why}")) for place in places]
    return InputError(problems, more=error.more + len(error.problems) - len(problems))


def _file_and_line(problem: str, files: ActionFiles) -> Place:
    location = location_of(problem)
    if location is not None and location.path in files.existing:
        return Location(location.path, location.line)
    longest_first = sorted(files.existing, key=len, reverse=True)  # a path may begin with another one
    return next((path for path in longest_first if problem.startswith(f"{path}: ")), "the input")


def without_warnings(warnings: Sequence[str], files: ActionFiles) -> list[str]:
    """Return the warnings of a check, or only their number if they could quote what is behind a link."""
    if not files.linked or not warnings:
        return list(warnings)
    return [f"{count(len(warnings), 'warning')} not shown, because {files.linked[0]} is a symbolic link, or behind one"]
