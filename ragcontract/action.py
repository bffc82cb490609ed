"""The GitHub Action: check, then deliver. The verdict comes first; no delivery that fails can change it."""

import os
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click
from msgspec import Struct

from ragcontract import defaults, pipeline
from ragcontract.errors import ExitCode, InputError, RagContractError
from ragcontract.github.commands import annotation, append_summary, set_outputs
from ragcontract.github.comment import Render, fitting, post
from ragcontract.github.context import Context
from ragcontract.github.ownership import hand_over, missing_folders
from ragcontract.github.settings import Settings
from ragcontract.inputs.diagnostics import Diagnostics
from ragcontract.inputs.files import resolve
from ragcontract.model import Report
from ragcontract.outputs import check_outputs, write_files
from ragcontract.reports import markdown, terminal
from ragcontract.reports.formats import FORMATS
from ragcontract.text import printable, visible

if TYPE_CHECKING:
    import requests

MAX_SUMMARY_BYTES = 1_000_000  # the runner drops one over 1 MiB


class Outcome(Struct, frozen=True, kw_only=True):
    """What there is to deliver: a verdict's words for every place, and the exit code."""

    exit_code: int
    broken: bool
    log: str
    render: Render
    outputs: dict[str, str]


def main(
    environ: Mapping[str, str], *, clock: pipeline.Clock, session: "Callable[[], requests.Session]", stdout: TextIO
) -> int:
    """Run the action and return its exit code; ``session`` is called when there is something to post."""
    context = Context.from_environ(environ)
    settings = Settings.from_environ(environ)
    try:
        outcome = _check(settings, context, clock)
    except RagContractError as error:
        outcome = _unusable(error, settings.name)
    stdout.write(outcome.log)

    _deliver(lambda: _outputs(context, outcome.outputs), "the outputs", stdout)
    _deliver(lambda: _summary(context, outcome.render), "the summary", stdout)
    _deliver(lambda: _comment(context, settings, outcome, session, stdout), "the comment", stdout)
    return outcome.exit_code


def _check(settings: Settings, context: Context, clock: pipeline.Clock) -> Outcome:
    """Judge and write the report files; raises what the input or the output places make impossible."""
    if settings.problems:
        raise InputError(settings.problems)
    folder = settings.working_directory
    if folder and not Path(folder).is_dir():
        raise InputError([f"input working-directory: {folder!r} is no folder in the workspace"])
    paths = defaults.find_inputs(
        golden=settings.golden, run=settings.run, baseline=settings.baseline, config=settings.config, folder=folder
    )
    places = {"report-md": settings.report_md, "report-json": settings.report_json, "junit": settings.junit}
    outputs = {name: str(Path(folder) / place) for name, place in places.items()}
    inputs = [*paths.golden, *paths.run, *(paths.baseline or []), *([paths.config] if paths.config else [])]
    if problems := check_outputs(outputs.values(), resolve(inputs, Diagnostics())):
        raise InputError(problems)

    report = pipeline.check(paths, clock=clock, k=settings.k)
    new_folders = missing_folders(outputs.values())
    written = write_files({outputs[name]: render(report) for name, render in FORMATS.items()})
    hand_over([*new_folders, *written], context.workspace)
    broken = report.verdict == "fail"
    warnings = "".join(annotation("warning", warning) for warning in report.warnings[:10])
    return Outcome(
        exit_code=ExitCode.BROKEN if broken and settings.enforce else ExitCode.PASS,
        broken=broken,
        log=printable(click.unstyle(terminal.check_text(report))) + warnings,
        render=lambda rows: markdown.render(report, name=settings.name, max_rows=rows),
        outputs=_numbers(report) | {name: _relative(path, context.workspace) for name, path in outputs.items()},
    )


def _numbers(report: Report) -> dict[str, str]:
    k = max(report.k)
    means = {key.removesuffix(f"_at_{k}"): metric.current for key, metric in report.metrics.items()}
    return {
        "verdict": report.verdict,
        **{name: "" if mean is None else str(mean) for name, mean in means.items()},
        "failed-queries": str(sum(query.status == "fail" for query in report.queries)),
    }


def _unusable(error: RagContractError, name: str) -> Outcome:
    lines = error.lines()
    return Outcome(
        exit_code=error.exit_code,
        broken=True,
        log="".join(annotation("error", line) for line in lines[:10])
        + "".join(printable(f"error: {visible(line)}\n") for line in lines[10:]),
        render=lambda rows: markdown.render_unusable(lines, name=name, max_rows=rows),
        outputs={"verdict": "error"},
    )


def _relative(path: str, workspace: Path) -> str:
    """Return a path as the next step can use it: /github/workspace means nothing there."""
    full = Path(os.path.normpath(Path.cwd() / path))
    return str(full.relative_to(workspace)) if full.is_relative_to(workspace) else str(full)


def _outputs(context: Context, outputs: Mapping[str, str]) -> None:
    if context.output_file:
        set_outputs(context.output_file, outputs)


def _summary(context: Context, render: Render) -> None:
    if context.summary_file:
        append_summary(context.summary_file, fitting(render, MAX_SUMMARY_BYTES))


def _comment(
    context: Context,
    settings: Settings,
    outcome: Outcome,
    session: "Callable[[], requests.Session]",
    stdout: TextIO,
) -> None:
    if settings.comment == "never":
        return
    if context.pull_request is None:
        reason = context.no_event or f"the event {context.event_name!r} is not a pull request's"
        stdout.write(printable(f"No comment: {visible(reason)}.\n"))
        return
    if not context.token:
        stdout.write(annotation("warning", "No comment: there is no github-token to post it with."))
        return
    from ragcontract.github.client import Client, GitHubError  # loads requests, which a push does not need

    client = Client(session(), api_url=context.api_url, graphql_url=context.graphql_url, token=context.token)
    create = settings.comment == "always" or outcome.broken
    try:
        url = post(
            client,
            context.repository,
            context.pull_request,
            name=settings.name,
            render=outcome.render,
            create=create,
        )
    except GitHubError as error:
        denied = error.status in {401, 403, 404}
        hint = " The job needs `permissions: pull-requests: write`; a fork's token never has it." if denied else ""
        stdout.write(annotation("warning", f"The comment could not be posted: {error}.{hint}"))
        return
    if url:
        _outputs(context, {"comment-url": url})
    stdout.write(
        printable(f"Comment: {visible(url)}\n" if url else "No comment: nothing is broken and none was there.\n")
    )


def _deliver(send: Callable[[], None], what: str, stdout: TextIO) -> None:
    """Send; whatever keeps it from arriving is said and changes nothing else."""
    try:
        send()
    except Exception as error:  # noqa: BLE001 (the verdict stands whatever happens to its delivery)
        stdout.write(annotation("warning", f"{what} could not be delivered ({type(error).__name__}: {error})"))


def from_runner() -> int:
    """Run the action in the real world: this process's environment, clock, network and output."""

    def session() -> "requests.Session":
        import requests

        return requests.Session()

    return main(os.environ, clock=lambda: datetime.now(UTC), session=session, stdout=sys.stdout)
