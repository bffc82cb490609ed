"""``mode: post-comment``: posts the comment from a second workflow for a check whose token could not write.

The artifact with ``report.json`` comes from a run of untrusted code. The pull request is therefore taken from the
event, never from the file. The file is validated and rendered like any report. All text in it is escaped, and nothing
in it is executed.
"""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ragcontract.core import bounds
from ragcontract.core.errors import ExitCode, InputError
from ragcontract.files.schema import shown
from ragcontract.github import runner_output
from ragcontract.github.acceptance import look, notice, remark
from ragcontract.github.comment import Draft
from ragcontract.github.context import Context, GitHubError, number_at, text_at
from ragcontract.github.delivery import Renderer, World, draft_of, post_comment, renderer_of
from ragcontract.github.files import in_container, in_repository, is_linked, outside, wrong_folder
from ragcontract.github.pull_request import NoPullRequest, PullRequest, changed_here, of_workflow_run
from ragcontract.github.runner_output import annotation, minute
from ragcontract.github.settings import ActionSettings
from ragcontract.report.json_report import read, refusing_inconsistent
from ragcontract.report.markdown import Layout
from ragcontract.report.record import ErrorReport, Report

if TYPE_CHECKING:
    from ragcontract.github.http import Client

BAREST = Layout(rows=0, folds=False, inputs=False, trend=False)


def relay(context: Context, settings: ActionSettings, world: World) -> int:
    """Post the report as the contract's comment on the pull request; returns exit code 0, 2 or 4."""
    try:
        path = _file(settings, context)
        report = read(path)
        _refuse_another_commit(report, text_at(context.event, "workflow_run", "head_sha"), path)
        render = renderer_of(report, settings.name)
        _refuse_unrenderable(render, path)
    except InputError as error:
        world.stdout.write(runner_output.of_problems(error, lambda location: in_repository(location, context)))
        return error.exit_code
    if settings.accept_label and isinstance(report, Report) and report.verdict == "fail":
        acceptance, settings = look(
            lambda client: _pull_request(context, client, settings, report), context, settings, world
        )
        if acceptance:
            world.stdout.write(notice(acceptance))
            render = renderer_of(report, settings.name, remark=remark(acceptance))
    origin, when = _origin(context), f"Posted {minute(world.clock())}"

    def draft(client: "Client", pull_request: PullRequest) -> Draft:
        # The paths in the report are those of the first workflow.
        here = changed_here(client, pull_request, report, context, other_workflow=True)
        noted = partial(render, replaced_here=here.baseline, judged_here=here.judgments)
        return draft_of(report.verdict, noted, origin, settings, when=when, contract=report.contract)

    commented = post_comment(
        lambda client: _pull_request(context, client, settings, report),
        draft,
        context,
        settings,
        world,
    )
    if commented or not settings.comment_required:
        return ExitCode.PASS
    world.stdout.write(annotation("error", "comment-required is true and the comment could not be posted"))
    return ExitCode.NO_COMMENT


def _pull_request(
    context: Context, client: "Client", settings: ActionSettings, report: Report | ErrorReport
) -> PullRequest | NoPullRequest:
    """Return the pull request; raises :class:`GitHubError` if the event is not ``workflow_run``.

    The report's own number only chooses among the pull requests from the branch that the workflow ran for.
    """
    if context.event_name != "workflow_run":
        raise GitHubError(f"mode post-comment needs the event workflow_run, and this is {context.event_name!r}")
    return of_workflow_run(
        context, client, (settings.pull_request, report.source.pull_request if report.source else None)
    )


def _file(settings: ActionSettings, context: Context) -> Path:
    """Return the path of the report. An artifact may contain symbolic links, so a path through a link is refused."""
    folder = in_container(settings.working_directory, context)
    problem = wrong_folder(folder, context)
    if settings.problems or problem:
        raise InputError([*settings.problems, *([problem] if problem else [])])
    path = Path(folder) / in_container(settings.report_json, context)
    if problems := outside([str(path)], context):
        raise InputError(problems)
    if is_linked(str(path), context):
        raise InputError([f"{path}: is behind a symbolic link, which is not followed"])
    return path


def _refuse_another_commit(report: Report | ErrorReport, commit: str, path: Path) -> None:
    """Raise :class:`InputError` if the report is not of the commit that the first workflow ran for.

    Such a report was in the repository, or left in the folder by an earlier run, and the check did not replace it.
    """
    reported = report.source.commit if report.source else None
    if commit and reported != commit:
        what = f"is {shown(reported)}, but" if reported else "is missing, and"
        advice = (
            "upload the report that the action writes in that run, and remove an older one before (rm -f report.json)"
        )
        raise InputError([f"{path}: source.commit: {what} the first workflow ran for {commit}; {advice}"])


def _refuse_unrenderable(render: Renderer, path: Path) -> None:
    """Raise :class:`InputError` if the parts of a report are inconsistent, as in no report of a check."""
    with refusing_inconsistent(path):
        render(Layout())
        size = len(render(BAREST).encode())
    if size > bounds.REPORT_SHORTEST:
        raise InputError([f"{path}: its shortest form is too long for a comment"])


def _origin(context: Context) -> Context:
    """Return the context of the run that wrote the file, for the footer's link and to detect older runs."""

    def number(name: str) -> int:
        return number_at(context.event, "workflow_run", name) or 0

    return replace(
        context,
        run=(number("id"), number("run_attempt")),
        run_number=str(number("run_number") or ""),
        sha=text_at(context.event, "workflow_run", "head_sha"),
    )
