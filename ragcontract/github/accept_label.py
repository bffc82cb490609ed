"""Whether a label accepts the commit that was judged: who set it, and whether it was set after the newest push.

Only what GitHub's servers recorded counts. Whoever makes a commit writes its dates, and the order of a pull request's
commits follows them, so neither says when a commit was pushed. A workflow run or a check of a commit can be older than
its push to this branch: a push of it to another branch, or to this one at an earlier time, makes it so. The list of a
branch's activities has the server's time of each push and the commit that it left. Its newest entry must have left the
judged commit, so a list that lags behind accepts nothing. A forced push, which can return a branch to a commit that the
list already has, is also an event of the pull request, and is looked for there too.
"""

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.core.text import clipped
from ragcontract.github.context import at, number_at, text_at
from ragcontract.github.failure import GitHubError
from ragcontract.github.pull_request import PullRequest

if TYPE_CHECKING:
    from ragcontract.github.client import Client

LOGIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")  # underscores only in the logins of managed users
REPOSITORY = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*/(?!\.{1,2}$)[A-Za-z0-9._-]+")
SET_AGAIN = "Remove the label and set it again."
PULLS = "The job needs `permissions: pull-requests: read`."
CONTENTS = "The job needs `permissions: contents: read`, and cannot read the pushes to a private fork."
RUN_AGAIN = "Run the job again."
OUTDATED_BY = {
    "head_ref_force_pushed": "it was set before the newest push",
    # The author may change it, and the commit stays the same: what was accepted is a merge into another branch.
    "base_ref_changed": "it was set before the pull request got another base branch",
}

T = TypeVar("T")


class Accepted(Struct, frozen=True, kw_only=True):
    """A label that accepts a broken contract. ``login`` has no ``@``; it and ``when`` are GitHub's, not an event's."""

    label: str
    login: str
    when: datetime


class Refused(Struct, frozen=True, kw_only=True):
    """A label that does not count. ``reason`` is a clause about the label, ``advice`` a sentence on what to do."""

    label: str
    reason: str
    advice: str


Acceptance = Accepted | Refused


def ask(client: "Client", pull_request: PullRequest, judged: str, label: str) -> Acceptance | None:
    """Ask GitHub whether ``label`` accepts the commit ``judged``; None if the pull request does not carry it."""
    try:
        pull = _read(PULLS, lambda: client.pull(pull_request.number))
        if not any(_is(one, label) for one in _list(at(pull, "labels"))):
            return None
        _is_newest(pull, judged)
        when, login = _set(_events(client, pull_request.number), label)
        _is_after_newest_push(client, pull, judged, when)
    except _NoLabelError as refusal:
        return Refused(label=label, reason=refusal.reason, advice=refusal.advice)
    return Accepted(label=label, login=login, when=when)


class _NoLabelError(Exception):
    def __init__(self, reason: str, advice: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.advice = advice


def _set(events: "Sequence[Any]", label: str) -> tuple[datetime, str]:
    """Return when the label was last set and the login of the person who set it."""
    own = [event for event in events if text_at(event, "event") in {"labeled", "unlabeled"}]
    own = [event for event in own if _is(at(event, "label"), label)]
    event = max(own, key=lambda one: (_time(one, "created_at"), number_at(one, "id") or 0), default=None)
    if text_at(event, "event") != "labeled":
        raise _NoLabelError("GitHub does not say who set it", SET_AGAIN)
    login, when = text_at(event, "actor", "login"), _time(event, "created_at")
    if at(event, "performed_via_github_app") is not None or login.endswith("[bot]"):
        raise _NoLabelError("a bot or an app set it", "A person has to remove the label and set it again.")
    if text_at(event, "actor", "type") != "User" or not LOGIN.fullmatch(login):
        raise _NoLabelError("no person set it", "A person has to remove the label and set it again.")
    for name, reason in OUTDATED_BY.items():
        if any(_time(one, "created_at") >= when for one in events if text_at(one, "event") == name):
            raise _NoLabelError(reason, SET_AGAIN)
    return when, login


def _is_newest(pull: Any, judged: str) -> None:
    if not judged or text_at(pull, "head", "sha") != judged:
        reason = f"the judged commit {judged[:12]} is not the newest one of the pull request"
        raise _NoLabelError(reason, "The run for the newest commit decides.")


def _is_after_newest_push(client: "Client", pull: Any, judged: str, when: datetime) -> None:
    repository, branch = text_at(pull, "head", "repo", "full_name"), text_at(pull, "head", "ref")
    if not REPOSITORY.fullmatch(repository) or not branch:
        raise _NoLabelError("the repository of the pull request's branch cannot be read", "It may have been deleted.")
    found = _read(CONTENTS, lambda: client.activities(repository, branch))
    pushes = [(_time(one, "timestamp"), text_at(one, "after")) for one in found if _on(one, branch)]
    newest = max((time for time, _ in pushes), default=None)
    if newest is None or (newest, judged) not in pushes:
        raise _NoLabelError(f"GitHub does not list the push of the commit {judged[:12]} as the newest", RUN_AGAIN)
    if when <= newest:
        raise _NoLabelError("it was set before the newest push", SET_AGAIN)


def _events(client: "Client", number: int) -> "list[Any]":
    """Return all events of the pull request: the newest may be among the last."""
    cap = bounds.LABEL_EVENTS
    events = _read(PULLS, lambda: list(islice(client.events(number), cap + 1)))
    if len(events) > cap:
        raise _NoLabelError(
            f"the pull request has more than {cap:,} events, which are not all read", "Open a new pull request."
        )
    return events


def _read(needed: str, call: Callable[[], T]) -> T:
    """Return the answer to a call; ``needed`` is the advice where GitHub refuses it."""
    try:
        return call()
    except GitHubError as error:
        advice = needed if error.denied else RUN_AGAIN
        raise _NoLabelError(f"it could not be read: {error}", advice) from error


def _is(found: Any, label: str) -> bool:
    return text_at(found, "name").casefold() == label.casefold()  # GitHub has no two labels that differ in case only


def _on(activity: Any, branch: str) -> bool:
    return text_at(activity, "ref") == f"refs/heads/{branch}"


def _time(found: Any, name: str) -> datetime:
    """Return a time, which GitHub gives to the second and in UTC."""
    value = text_at(found, name)
    try:
        return datetime.strptime(value, "%Y-%m-%dT%H:%M:%S%z").astimezone(UTC)
    except (OverflowError, ValueError):
        shown = clipped(value, bounds.VALUE)
        raise _NoLabelError(f"GitHub gives a time that cannot be read ({shown!r})", RUN_AGAIN) from None


def _list(value: Any) -> "list[Any]":
    return value if isinstance(value, list) else []
