"""Finds the pull request that an event is about."""

import re
from typing import TYPE_CHECKING

from msgspec import Struct

from ragcontract.github.context import Context, at, number_at, text_at
from ragcontract.github.failure import GitHubError

if TYPE_CHECKING:
    from ragcontract.github.client import Client


class PullRequest(Struct, frozen=True):
    """The number of a pull request and its commit that was judged; empty if unknown."""

    number: int
    commit: str = ""


class NoPullRequest(Struct, frozen=True):
    """There is no pull request; ``reason`` is a clause for the log."""

    reason: str


def find(context: Context, client: "Client", named: int | None) -> PullRequest | NoPullRequest:
    """Return the pull request in ``named`` (the input) or else the event's; raises :class:`GitHubError`.

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
        return _of_commit(client, commit or after)
    if context.event_name == "workflow_run":
        return of_workflow_run(context, client)
    if context.event_name == "merge_group":
        return NoPullRequest("a merge group is judged in the queue; its pull requests keep their own comments")
    return NoPullRequest(
        f"the event {context.event_name!r} is not about a pull request (the input pull-request can name one)"
    )


def of_workflow_run(context: Context, client: "Client") -> PullRequest | NoPullRequest:
    """Return the open pull request whose newest commit the triggering workflow ran for.

    It is found by head repository, branch and commit, because ``workflow_run.pull_requests`` is empty for forks.
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
    for pull in client.open_pulls_of_branch(head.partition("/")[0], branch):
        same = text_at(pull, "head", "sha") == sha and text_at(pull, "head", "repo", "full_name") == head
        if same and (number := number_at(pull, "number")):
            return PullRequest(number, sha)
    return NoPullRequest(f"no open pull request has {sha[:12]} of {head} as its newest commit (any more)")


def _no_problem_with(context: Context) -> None:
    # An error, not NoPullRequest: it is unknown whether there is one, and a required comment must not be skipped.
    if context.event_problem:
        raise GitHubError(context.event_problem)


def _of_commit(client: "Client", sha: str) -> PullRequest | NoPullRequest:
    if not re.fullmatch(r"[0-9a-f]{40,64}", sha) or not sha.strip("0"):
        return NoPullRequest("the push left no commit")
    pulls = [pull for pull in client.pulls_of_commit(sha) if pull.get("state") == "open" and number_at(pull, "number")]
    # A commit is also part of pull requests that build on it. The one that has it as newest commit takes precedence.
    pulls.sort(key=lambda pull: text_at(pull, "head", "sha") != sha)
    if pulls:
        return PullRequest(int(pulls[0]["number"]), sha)
    return NoPullRequest(f"no open pull request has the commit {sha[:12]}")
