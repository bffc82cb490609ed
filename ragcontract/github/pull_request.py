"""Finds the pull request that an event is about, and whether it changes the baseline or judgments.

No file of the checkout says what a pull request changes, so GitHub is asked. The connection is opened only where it is
needed: a job that asks and posts nothing does not load requests.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.evaluation.source import is_entry
from ragcontract.github.context import Context, GitHubError, at, number_at, text_at
from ragcontract.github.files import in_repository
from ragcontract.net.pacing import Timing
from ragcontract.report.record import ErrorReport, Report

if TYPE_CHECKING:
    import requests

    from ragcontract.github.http import Client


class PullRequest(Struct, frozen=True):
    """A pull request and its commit that was checked."""

    number: int
    commit: str = ""  # empty if unknown


class NoPullRequest(Struct, frozen=True):
    """There is no pull request."""

    reason: str  # a clause for the log


def find(context: Context, client: "Client", named: int | None) -> PullRequest | NoPullRequest:
    """Return the pull request that is ``named`` by the input, or else the event's; raises :class:`GitHubError`.

    What is not in the event is requested from GitHub, never read from a file that a pull request could have written.
    """
    own = number_at(context.event, "pull_request", "number")
    if named is not None and named != own:
        return PullRequest(named)
    if own:
        return PullRequest(own, text_at(context.event, "pull_request", "head", "sha"))
    _no_problem_with(context)
    if context.event_name.startswith("pull_request"):
        raise GitHubError("the event's file has no pull request's number")
    if context.event_name == "push":
        after = text_at(context.event, "after") or context.sha
        # After the push of an annotated tag, `after` is the tag object, not the commit; after a deletion, it is zeros.
        commit = text_at(context.event, "head_commit", "id") if after.strip("0") else ""
        return _of_commit(context, client, commit or after)
    if context.event_name == "workflow_run":
        return of_workflow_run(context, client)
    if context.event_name == "merge_group":
        return NoPullRequest("a merge group is checked in the queue; its pull requests keep their own comments")
    return NoPullRequest(
        f"the event {context.event_name!r} is not about a pull request (the input pull-request can name one)"
    )


def of_workflow_run(
    context: Context, client: "Client", preferred: Sequence[int | None] = ()
) -> PullRequest | NoPullRequest:
    """Return the open pull request whose newest commit the triggering workflow ran for; raises :class:`GitHubError`.

    It is found by head repository, branch and commit, because ``workflow_run.pull_requests`` is empty for forks. If a
    branch has several pull requests, with different bases, it is the one that the event lists, or else the first of
    ``preferred`` among them. These numbers may come from an untrusted file.
    """
    _no_problem_with(context)
    run = at(context.event, "workflow_run")
    head, branch, sha = (
        text_at(run, "head_repository", "full_name"),
        text_at(run, "head_branch"),
        text_at(run, "head_sha"),
    )
    if not (head and branch and re.fullmatch(r"[0-9a-f]{40,64}", sha)):
        return NoPullRequest("the event does not say which commit the workflow ran for")
    numbers = [
        number
        for pull in client.open_pulls_of_branch(head.partition("/")[0], branch)
        if text_at(pull, "head", "sha") == sha and text_at(pull, "head", "repo", "full_name") == head
        if (number := number_at(pull, "number"))
    ]
    if not numbers:
        return NoPullRequest(f"no open pull request has {sha[:12]} of {head} as its newest commit (any more)")
    return PullRequest(_one_of(numbers, run, preferred), sha)


def _one_of(candidates: Sequence[int], run: Any, preferred: Sequence[int | None]) -> int:
    """Return the pull request that a workflow ran for, of several from one branch; raises :class:`GitHubError`."""
    events = at(run, "pull_requests")
    listed = [number_at(event, "number") for event in events] if isinstance(events, list) else []
    of_event = [number for number in candidates if number in listed]
    wanted = next((number for number in preferred if number in candidates), None)
    for numbers in (candidates, of_event, [number for number in candidates if number == wanted]):
        if len(numbers) == 1:
            return numbers[0]
    names = " and ".join(f"#{number}" for number in sorted(candidates))
    raise GitHubError(
        f"the pull requests {names} have the same branch and commit, and nothing says which of them the workflow ran "
        "for; the input pull-request can name it"
    )


def _no_problem_with(context: Context) -> None:
    # An error, not NoPullRequest: it is unknown whether there is one, and a required comment must not be skipped.
    if context.event_problem:
        raise GitHubError(context.event_problem)


def _of_commit(context: Context, client: "Client", sha: str) -> PullRequest | NoPullRequest:
    if not re.fullmatch(r"[0-9a-f]{40,64}", sha) or not sha.strip("0"):
        return NoPullRequest("the push left no commit")
    pulls = [pull for pull in client.pulls_of_commit(sha) if pull.get("state") == "open" and number_at(pull, "number")]
    if not pulls:
        return NoPullRequest(f"no open pull request has the commit {sha[:12]}")
    # A commit is also part of pull requests that build on it, so the one that has it as newest commit takes precedence.
    # A branch may have several, and a push is about all of them. The one into the default branch, else the oldest, has
    # the comment, so that all runs choose the same one.
    default = text_at(context.event, "repository", "default_branch")
    first = min(
        pulls,
        key=lambda pull: (
            text_at(pull, "head", "sha") != sha,
            text_at(pull, "base", "ref") != default,
            int(pull["number"]),
        ),
    )
    return PullRequest(int(first["number"]), sha)


class ChangedHere(Struct, frozen=True, kw_only=True):
    """The inputs of a check that a pull request changes; None where that is not known."""

    baseline: bool | None = None  # whether it replaces the baseline
    judgments: tuple[str, ...] | None = ()  # the files of judgments, and the calibration, that it adds or changes


class _Listed(Struct, frozen=True, kw_only=True):
    """Which of the wanted files a pull request changes."""

    statuses: Mapping[str, str]  # by path
    complete: bool  # whether all wanted files were found, or all files of the pull request were listed


def changed_here(
    client: "Client",
    pull_request: PullRequest,
    report: Report | ErrorReport | None,
    context: Context,
    *,
    other_workflow: bool = False,
) -> ChangedHere:
    """Return which inputs the pull request changes.

    Its files are listed once, and each page is asked for once, because a comment without the answer is better than no
    comment. With ``other_workflow``, the check ran in another workflow, and its folders are not known here. Then
    judgments are looked for by the names of their files, and a baseline that is not found may still be changed.
    """
    if not isinstance(report, Report):
        return ChangedHere()
    of_baseline, of_judge = _baseline(report, context), _judgments(report, context, other_workflow=other_workflow)
    wanted = of_baseline | of_judge.keys()
    if not wanted:
        return ChangedHere()
    listed = _listed(client, pull_request, wanted, names=frozenset(of_judge) if other_workflow else frozenset())
    unknown = not listed.complete or other_workflow
    judgments = tuple([path for name, path in of_judge.items() if name in listed.statuses])
    return ChangedHere(
        baseline=_replaced(report, of_baseline, listed) or (None if unknown or not of_baseline else False),
        judgments=judgments or (None if of_judge and not listed.complete else ()),
    )


def _listed(client: "Client", pull_request: PullRequest, wanted: set[str], names: frozenset[str]) -> _Listed:
    """Return which of the ``wanted`` files the pull request changes; the folders of ``names`` do not matter."""
    statuses: dict[str, str] = {}
    try:
        for number, file in enumerate(client.files_of(pull_request.number), 1):
            path, status = text_at(file, "filename"), text_at(file, "status")
            statuses |= {
                name: status for name in (path, PurePosixPath(path).name) if name in wanted and name in {path, *names}
            }
            if len(statuses) == len(wanted):
                return _Listed(statuses=statuses, complete=True)
            if number >= bounds.PULL_REQUEST_FILES:
                return _Listed(statuses=statuses, complete=False)
    except GitHubError:
        return _Listed(statuses=statuses, complete=False)
    return _Listed(statuses=statuses, complete=True)


def _baseline(report: Report, context: Context) -> set[str]:
    baseline = report.inputs.baseline
    files = baseline.files if baseline else []
    return {in_repository(file.path, context) for file in files if not is_entry(file.path)}


def _replaced(report: Report, files: set[str], listed: _Listed) -> bool:
    """Return whether the pull request replaces the baseline.

    A new file counts only if its content says that it replaced a baseline. A changed file counts even without that,
    because a baseline that is made by hand, or after the older one was deleted, does not say so.
    """
    changed = [listed.statuses[path] for path in files if path in listed.statuses]
    says_so = report.inputs.baseline is not None and bool(report.inputs.baseline.replaces)
    return any(says_so or status != "added" for status in changed)


def _judgments(report: Report, context: Context, *, other_workflow: bool) -> dict[str, str]:
    """Return the paths of the judgments files and the calibration in the report, by their names on GitHub."""
    judgments = report.inputs.judgments
    if judgments is None:
        return {}
    paths = [*(file.path for file in judgments.files), *([judgments.calibration] if judgments.calibration else [])]
    return {PurePosixPath(path).name if other_workflow else in_repository(path, context): path for path in paths}


def connect(context: Context, session: "Callable[[], requests.Session]", timing: Timing, *, seconds: float) -> "Client":
    """Return a client whose calls take at most ``seconds`` together; raises :class:`GitHubError`.

    A token that is not a valid header value is refused: an error that quotes the header would reveal it.
    """
    if not context.token:
        raise GitHubError("there is no github-token")
    if not re.fullmatch("[!-~]+", context.token.value):
        raise GitHubError("the input github-token has a space or a character in it that no token has")
    from ragcontract.github.http import Client, Http

    http = Http(session(), context.token, seconds=seconds, timing=timing)
    return Client(http, api_url=context.api_url, graphql_url=context.graphql_url, repository=context.repository)
