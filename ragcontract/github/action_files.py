"""Finds the files that the action reads and writes, and refuses those that a pull request must not lead it to."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from ragcontract.contract import defaults
from ragcontract.contract.defaults import InputPaths
from ragcontract.core.errors import InputError
from ragcontract.core.numbers import count
from ragcontract.files.patterns import existing_files
from ragcontract.files.writing import check_outputs
from ragcontract.github.access import can_be_replaced, is_linked, is_special, outside, unsafe_output, wrong_folder
from ragcontract.github.context import Context
from ragcontract.github.paths import in_container
from ragcontract.github.settings import Settings

BODY = "comment-body-file"


class ActionFiles(Struct, frozen=True, kw_only=True):
    """The paths of the inputs and of the reports, and the problems with them.

    ``reports`` are the paths of the requested formats by the names of their inputs. ``on_error`` are those of them that
    may be written even if there are problems with other paths. ``body`` is the file for the comment's Markdown; None if
    it is not requested or must not be written. ``found`` are the input files, ``linked`` those of them that are reached
    through a link.
    """

    inputs: InputPaths
    reports: dict[str, str]
    on_error: dict[str, str]
    body: str | None = None
    found: tuple[str, ...] = ()
    linked: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


def find_files(settings: Settings, context: Context) -> ActionFiles:
    """Return the files of a check; accesses nothing outside the workspace."""
    folder = in_container(settings.working_directory, context)
    if problem := wrong_folder(folder, context):
        return ActionFiles(inputs=InputPaths(golden=[], run=[]), reports={}, on_error={}, problems=(problem,))
    inputs = _inputs(settings, context, folder)
    wanted = {
        "report-md": settings.report_md,
        "report-json": settings.report_json,
        "junit": settings.junit,
        "report-html": settings.report_html,
        "report-v2": settings.report_v2,
        BODY: settings.comment_body_file,
    }
    outputs = {name: str(Path(folder) / in_container(path, context)) for name, path in wanted.items() if path}
    found, _ = existing_files([path for path in inputs.all if not outside([path], context)])
    linked = tuple(path for path in found if is_linked(path, context))
    plain = [path for path in found if path not in linked]  # through a link, a report could be made an input
    may_be_written = {name: path for name, path in outputs.items() if _may_be_written(name, outputs, plain, context)}
    problems = [*_problems_of_inputs(settings, inputs, found, context), *_problems_of_outputs(outputs, found, context)]
    return ActionFiles(
        inputs=inputs,
        reports={name: path for name, path in outputs.items() if name != BODY},
        on_error={name: path for name, path in may_be_written.items() if name != BODY},
        body=may_be_written.get(BODY),
        found=tuple(found),
        linked=linked,
        problems=tuple(dict.fromkeys(problems)),
    )


def _inputs(settings: Settings, context: Context, folder: str) -> InputPaths:
    def mapped(paths: tuple[str, ...]) -> list[str]:
        return [in_container(path, context) for path in paths]

    return defaults.find_inputs(
        golden=mapped(settings.golden),
        run=mapped(settings.run),
        scores=mapped(settings.scores),
        judgments=mapped(settings.judgments),
        calibration=in_container(settings.calibration, context) if settings.calibration else None,
        baseline=mapped(settings.baseline),
        config=in_container(settings.config, context) if settings.config else None,
        folder=folder,
    )


def _problems_of_inputs(
    settings: Settings, inputs: InputPaths, found: Sequence[str], context: Context
) -> Iterator[str]:
    if problems := outside(dict.fromkeys(inputs.all), context):
        yield from problems
        return
    yield from outside(found, context)
    for name, paths, named in (
        ("golden", inputs.golden, settings.golden),
        ("run", inputs.run, settings.run),
        ("baseline", inputs.baseline or (), settings.baseline),
        ("config", [inputs.config] if inputs.config else (), settings.config),
    ):
        for path in paths if not named else ():
            if is_linked(path, context):
                yield f"{path}: is a symbolic link, or behind one; to follow it, name it with the input {name}"
    of_rows = (*inputs.run, *inputs.scores, *inputs.judgments)
    for path in found:
        if is_special(path):
            yield f"{path}: is not a regular file; write the {'rows' if path in of_rows else 'content'} to a file"


def _problems_of_outputs(outputs: Mapping[str, str], found: Sequence[str], context: Context) -> Iterator[str]:
    if problems := outside(dict.fromkeys(outputs.values()), context):
        yield from problems
        return
    unsafe = [problem for path in outputs.values() if (problem := unsafe_output(path, context))]
    yield from unsafe or check_outputs(outputs.values(), found)


def _may_be_written(name: str, outputs: Mapping[str, str], found: Sequence[str], context: Context) -> bool:
    """Return whether an output may be written, whatever is wrong with others.

    It must not be the path of an input or a report. If it is that of the comment's body as well, the report is written.
    """
    path = outputs[name]
    reports = [other for key, other in outputs.items() if key not in {name, BODY}]
    if can_be_replaced(path, context):
        return path not in reports
    if outside([path], context) or unsafe_output(path, context):
        return False
    others = [other for other in reports if not outside([other], context)]
    return not check_outputs([path], [*found, *others])


def without_content(error: InputError, files: ActionFiles) -> InputError:
    """Return the error without anything that its messages could quote from files that are reached through a link.

    The workflow named the link, but a pull request can make it lead to any file of the workspace, and messages about
    one file may quote another. Of every message only the file and the line remain.
    """
    if not files.linked:
        return error
    why = f"no details are shown, because {files.linked[0]} is a symbolic link, or behind one"
    problems = dict.fromkeys(f"{_file_and_line(problem, files)}: is not valid; {why}" for problem in error.problems)
    return InputError(list(problems), more=error.more + len(error.problems) - len(problems))


def _file_and_line(problem: str, files: ActionFiles) -> str:
    for path in sorted(files.found, key=len, reverse=True):  # a path may begin with another one
        if at := re.match(rf"{re.escape(path)}(:\d+)?: ", problem):
            return at[0].removesuffix(": ")
    return "the input"


def without_warnings(warnings: Sequence[str], files: ActionFiles) -> list[str]:
    """Return the warnings of a check, or one that counts them if they could quote what is behind a link."""
    if not files.linked or not warnings:
        return list(warnings)
    return [f"{count(len(warnings), 'warning')} not shown, because {files.linked[0]} is a symbolic link, or behind one"]
