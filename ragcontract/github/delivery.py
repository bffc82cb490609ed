"""Delivers a check to GitHub: log, outputs, summary, comment. Nothing here can change a verdict."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.core.safe_text import printable, visible
from ragcontract.files.streams import Writable
from ragcontract.files.writing import write_files
from ragcontract.github import runner_output
from ragcontract.github.comment import Draft, Posted, post
from ragcontract.github.context import Context, GitHubError, within
from ragcontract.github.files import in_repository, make_room, owned_like_workspace
from ragcontract.github.marker import State, contract_of
from ragcontract.github.pull_request import NoPullRequest, PullRequest, changed_here, connect, find
from ragcontract.github.runner_output import Level, annotation, append_summary, fitting, foot, set_outputs, when_checked
from ragcontract.github.settings import ActionSettings
from ragcontract.net.pacing import Timing
from ragcontract.report import markdown, terminal
from ragcontract.report.formats import FORMATS
from ragcontract.report.markdown import NO_REMARK, Layout, Remark
from ragcontract.report.record import ErrorReport, Report

if TYPE_CHECKING:
    import requests

    from ragcontract.github.http import Client


ADVICE = (
    "The job needs `permissions: pull-requests: write`. A pull request from a fork never has it, and one by Dependabot "
    "only if the workflow asks for it: the summary of this job has the whole report, and docs/guides/github-action.md "
    "shows how a second workflow posts the comment"
)
CLASH = (
    "Two results of this workflow run have the same name and differ: the comment shows the worse one. Give each "
    "contract, each job of a matrix and each step that checks a name of its own with the input name"
)

RESULTS = {
    "created": "Comment posted:",
    "updated": "Comment updated:",
    "unchanged": "The comment is up to date:",
    "newer": "A newer run has commented already, so this one leaves it as it is:",
    "outranked": "Another check of this workflow run has commented under the same name, with a result at least as bad:",
    "outdated": "No comment: the pull request has a newer commit by now, which this run has not seen",
    "not-needed": "No comment: nothing is broken, and there is no earlier comment",
}


class Renderer(Protocol):
    """Renders a report as Markdown; see :func:`ragcontract.report.markdown.render`."""

    def __call__(
        self,
        layout: Layout,
        *,
        recovered: bool = False,
        replaced_here: bool | None = None,
        judged_here: Sequence[str] | None = (),
    ) -> str:
        """Return the Markdown for this layout."""


def renderer_of(report: Report | ErrorReport, name: str, advice: str = "", remark: Remark = NO_REMARK) -> Renderer:
    """Return the renderer of a report on the contract of this name.

    ``advice`` is added to a report on an error, ``remark`` to one on a verdict.
    """

    def render(
        layout: Layout,
        *,
        recovered: bool = False,
        replaced_here: bool | None = None,
        judged_here: Sequence[str] | None = (),
    ) -> str:
        if isinstance(report, Report):
            return markdown.render(
                report,
                name=name,
                layout=layout,
                recovered=recovered,
                remark=remark,
                replaced_here=replaced_here,
                judged_here=judged_here,
            )
        return markdown.render_error(report, name=name, max_rows=layout.rows, advice=advice)

    return render


class Delivery(Struct, frozen=True, kw_only=True):
    """The content to deliver: log, outputs, rendered report, and the exit code."""

    exit_code: int
    state: State
    log: str
    outputs: dict[str, str]
    render: Renderer
    report: Report | None = None
    accepted: bool = False  # the contract is broken, and the exit code is 0 because a label accepts that


class World(Struct, frozen=True, kw_only=True):
    """The external dependencies of a delivery, which tests replace."""

    stdout: Writable
    clock: Callable[[], datetime]
    session: "Callable[[], requests.Session]"
    timing: Timing


def log_of(report: Report, level: Level, context: Context, outputs: Mapping[str, str]) -> str:
    """Return the report for the job's log, with the reasons as annotations of this level.

    The log refers to the first report among the step's ``outputs``.
    """
    file = next((outputs[form.name] for form in FORMATS if form.name in outputs), "")
    shown = printable(terminal.without_colours(terminal.check_text(report, file)))
    return shown + runner_output.of_report(report, level, partial(in_repository, context=context))


def deliver(
    delivery: Delivery, context: Context, settings: ActionSettings, world: World, *, body_file: str | None = None
) -> bool:
    """Write log, outputs, summary and comment; returns False if a comment was expected and could not be posted.

    Failures are reported as warnings. ``body_file`` is the file to write the comment's Markdown to, if any.
    """
    if body_file:
        attempt(world, "The comment's body file", lambda: _body_file(body_file, delivery, context, world))
    world.stdout.write(delivery.log)
    attempt(world, "The outputs", lambda: outputs(context, delivery.outputs))
    attempt(world, "The summary", lambda: _summary(context, delivery))
    if settings.comment == "never":
        return True

    def draft(client: "Client", pull_request: PullRequest) -> Draft:
        report = delivery.report
        here = changed_here(client, pull_request, report, context)
        render = partial(delivery.render, replaced_here=here.baseline, judged_here=here.judgments)
        when = when_checked(report, world.clock())
        return draft_of(delivery.state, render, context, settings, when=when)

    return post_comment(
        lambda client: find(context, client, settings.pull_request),
        draft,
        context,
        settings,
        world,
    )


def post_comment(
    find_pull_request: "Callable[[Client], PullRequest | NoPullRequest]",
    draft: "Callable[[Client, PullRequest], Draft]",
    context: Context,
    settings: ActionSettings,
    world: World,
) -> bool:
    """Post the comment, log the result and set the output; returns False if a comment could not be posted."""

    def talk() -> Posted | NoPullRequest:
        client = connect(context, world.session, world.timing, seconds=settings.github_timeout)
        pull_request = find_pull_request(client)
        if isinstance(pull_request, NoPullRequest):
            return pull_request
        return post(client, pull_request, draft(client, pull_request), settings.comment, settled.append)

    settled: list[Posted] = []
    try:
        posted = within(settings.github_timeout, talk)
    except Exception as error:  # noqa: BLE001 (the network can fail in any way; the verdict does not depend on it)
        if not settled:
            world.stdout.write(_refusal(error))
            return False
        posted = settled[-1]
    if isinstance(posted, NoPullRequest):
        world.stdout.write(printable(f"No comment: {visible(posted.reason)}.\n"))
        return True
    world.stdout.write(printable(f"{RESULTS[posted.written]} {visible(posted.url)}".rstrip() + "\n"))
    if posted.clash:
        world.stdout.write(annotation("warning", CLASH))
    if posted.url:
        attempt(world, "The output comment-url", lambda: outputs(context, {"comment-url": posted.url}))
    return True


def attempt(world: World, what: str, send: Callable[[], object]) -> bool:
    """Call ``send`` and return whether it succeeded; a failure is logged as a warning about ``what``."""
    try:
        send()
    except Exception as error:  # noqa: BLE001 (a failed delivery must not change the verdict)
        world.stdout.write(annotation("warning", f"{what} could not be delivered ({type(error).__name__}: {error})"))
        return False
    return True


def outputs(context: Context, values: Mapping[str, str]) -> None:
    """Set the step's outputs, if there is a runner to read them."""
    if context.output_file:
        set_outputs(context.output_file, values)


def _summary(context: Context, delivery: Delivery) -> None:
    if context.summary_file:
        append_summary(context.summary_file, fitting(delivery.render, bounds.SUMMARY))


def _body_file(path: str, delivery: Delivery, context: Context, world: World) -> None:
    text = f"{fitting(delivery.render, bounds.COMMENT_FILE)}\n{when_checked(delivery.report, world.clock())}\n"
    make_room(path)
    with owned_like_workspace([path], context):
        write_files({path: text.encode()})


def draft_of(
    state: State,
    render: Renderer,
    context: Context,
    settings: ActionSettings,
    *,
    when: str,
    contract: str = "",
) -> Draft:
    """Return the comment on a verdict; its footer has ``when`` the verdict was reached, and the run.

    ``contract`` is the name of the contract in a report from another workflow run.
    """
    tail = foot(context, when)

    def body(max_bytes: int, before: State | None) -> str:
        recovered = state == "pass" and before in {"fail", "error"}
        return fitting(partial(render, recovered=recovered), max_bytes - len(tail.encode())) + tail

    return Draft(
        name=settings.name,
        state=state,
        run=context.run,
        content=render(Layout(inputs=False, trend=False)),  # which differ for each run
        contract=contract_of(context, settings, contract),
        body=body,
    )


def _refusal(error: Exception) -> str:
    """Return the annotation for a failed comment: a notice with advice if the token may not write, else a warning."""
    message = "The comment could not be posted"
    if not isinstance(error, GitHubError):
        return annotation("warning", f"{message} ({type(error).__name__}: {error})")
    if error.denied:
        return annotation("notice", f"{message}: {error}. {ADVICE}")
    return annotation("warning", f"{message}: {error}")
