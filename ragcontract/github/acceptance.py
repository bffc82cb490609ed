"""Accepts a broken contract by a label on the pull request: the verdict stays, only the job's outcome changes.

A label counts only if a person set it after the newest push, by the times that GitHub's servers recorded. Whoever makes
a commit writes its dates, and the order of a pull request's commits follows them, so neither says when a commit was
pushed. A workflow run or a check of a commit can be older than its push to this branch, because the commit was pushed
to another branch, or to this one, before. The list of a branch's activities has the server's time of each push and the
commit that it left. Its newest entry must have left the checked commit, so a list that lags behind accepts nothing. A
forced push can return a branch to a commit that the list already has. It is also an event of the pull request, and is
looked for there too.

If GitHub does not answer, nothing is accepted, and the job fails as without the label.
"""

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from ragcontract.core import bounds
from ragcontract.core.errors import ExitCode
from ragcontract.core.safe_text import clipped
from ragcontract.github.context import Context, GitHubError, at, number_at, text_at, within
from ragcontract.github.delivery import Delivery, World, log_of, renderer_of
from ragcontract.github.pull_request import NoPullRequest, PullRequest, connect, find
from ragcontract.github.runner_output import annotation, minute
from ragcontract.github.settings import ActionSettings
from ragcontract.report.markdown import Remark, code, text

if TYPE_CHECKING:
    from ragcontract.github.http import Client


LOGIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")  # underscores only in the logins of managed users
REPOSITORY = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*/(?!\.{1,2}$)[A-Za-z0-9._-]+")
SET_AGAIN = "Remove the label and set it again."
PULLS = "The job needs `permissions: pull-requests: read`."
CONTENTS = "The job needs `permissions: contents: read`, and cannot read the pushes to a private fork."
RUN_AGAIN = "Run the job again."
OTHER_BASE = "it was set before the pull request got another base branch"
OUTDATED_BY = {
    "head_ref_force_pushed": "it was set before the newest push",
    # The base branch may change while the commit stays the same: by the author, or by GitHub once the branch is merged
    # and deleted. The label accepted another merge.
    "base_ref_changed": OTHER_BASE,
    "automatic_base_change_succeeded": OTHER_BASE,
}

T = TypeVar("T")


class Accepted(Struct, frozen=True, kw_only=True):
    """A label that accepts a broken contract. Person and time come from GitHub's API, not from the event's file."""

    label: str
    login: str  # without @
    when: datetime


class Refused(Struct, frozen=True, kw_only=True):
    """A label that does not count."""

    label: str
    reason: str  # a clause about the label
    advice: str  # a sentence on what to do


Acceptance = Accepted | Refused


def ask(client: "Client", pull_request: PullRequest, checked: str, label: str) -> Acceptance | None:
    """Ask GitHub whether ``label`` accepts the commit ``checked``; None if the pull request does not carry it."""
    try:
        pull = _read(PULLS, lambda: client.pull(pull_request.number))
        if not any(_is(entry, label) for entry in _list(at(pull, "labels"))):
            return None
        _is_newest(pull, checked)
        when, login = _set(_events(client, pull_request.number), label)
        _is_after_newest_push(client, pull, checked, when)
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
    event = max(own, key=lambda entry: (_time(entry, "created_at"), number_at(entry, "id") or 0), default=None)
    if text_at(event, "event") != "labeled":
        raise _NoLabelError("GitHub does not say who set it", SET_AGAIN)
    login, when = text_at(event, "actor", "login"), _time(event, "created_at")
    if at(event, "performed_via_github_app") is not None or login.endswith("[bot]"):
        raise _NoLabelError("a bot or an app set it", "A person has to remove the label and set it again.")
    if text_at(event, "actor", "type") != "User" or not LOGIN.fullmatch(login):
        raise _NoLabelError("no person set it", "A person has to remove the label and set it again.")
    for name, reason in OUTDATED_BY.items():
        if any(_time(event, "created_at") >= when for event in events if text_at(event, "event") == name):
            raise _NoLabelError(reason, SET_AGAIN)
    return when, login


def _is_newest(pull: Any, checked: str) -> None:
    if not checked or text_at(pull, "head", "sha") != checked:
        reason = f"the judged commit {checked[:12]} is not the newest one of the pull request"
        raise _NoLabelError(reason, "The run for the newest commit decides.")


def _is_after_newest_push(client: "Client", pull: Any, checked: str, when: datetime) -> None:
    repository, branch = text_at(pull, "head", "repo", "full_name"), text_at(pull, "head", "ref")
    if not REPOSITORY.fullmatch(repository) or not branch:
        raise _NoLabelError("the repository of the pull request's branch cannot be read", "It may have been deleted.")
    activities = _read(CONTENTS, lambda: client.activities(repository, branch))
    pushes = [
        (_time(activity, "timestamp"), text_at(activity, "after")) for activity in activities if _on(activity, branch)
    ]
    newest = max((time for time, _ in pushes), default=None)
    if newest is None or (newest, checked) not in pushes:
        raise _NoLabelError(f"GitHub does not list the push of the commit {checked[:12]} as the newest", RUN_AGAIN)
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
    """Return the answer to a call; ``needed`` is the advice if GitHub refuses it."""
    try:
        return call()
    except GitHubError as error:
        advice = needed if error.denied else RUN_AGAIN
        raise _NoLabelError(f"it could not be read: {error}", advice) from error


def _is(entry: Any, label: str) -> bool:
    return text_at(entry, "name").casefold() == label.casefold()  # no two labels on GitHub differ in case only


def _on(activity: Any, branch: str) -> bool:
    return text_at(activity, "ref") == f"refs/heads/{branch}"


def _time(entry: Any, name: str) -> datetime:
    """Return a time, which GitHub gives to the second and in UTC."""
    value = text_at(entry, name)
    try:
        return datetime.strptime(value, "%Y-%m-%dT%H:%M:%S%z").astimezone(UTC)
    except (OverflowError, ValueError):
        shown = clipped(value, bounds.VALUE)
        raise _NoLabelError(f"GitHub gives a time that cannot be read ({shown!r})", RUN_AGAIN) from None


def _list(value: Any) -> "list[Any]":
    return value if isinstance(value, list) else []


QUEUE = "a merge queue judges a commit of its own, which nobody has labelled"
STAYS = "The verdict stays fail; the job does not fail."


def accept(
    delivery: Delivery, context: Context, settings: ActionSettings, world: World
) -> tuple[Delivery, ActionSettings]:
    """Return the delivery with what the label changes (exit code, log, outputs, rendered report), and the settings.

    Only a broken contract that would fail the job can be accepted, and never input that cannot be judged.
    """
    report = delivery.report
    if not settings.accept_label or delivery.exit_code != ExitCode.BROKEN or report is None:
        return delivery, settings
    acceptance, settings = look(lambda client: find(context, client, settings.pull_request), context, settings, world)
    if acceptance is None:
        return delivery, settings
    delivery = replace(delivery, render=renderer_of(report, settings.name, remark=remark(acceptance)))
    if isinstance(acceptance, Refused):
        return replace(delivery, log=delivery.log + notice(acceptance)), settings
    log, outputs = log_of(report, "warning", context, delivery.outputs), {"accepted-by": acceptance.login}
    accepted = replace(
        delivery,
        exit_code=ExitCode.PASS,
        log=log + notice(acceptance),
        outputs=delivery.outputs | outputs,
        accepted=True,
    )
    return accepted, settings


def look(
    find_pull_request: "Callable[[Client], PullRequest | NoPullRequest]",
    context: Context,
    settings: ActionSettings,
    world: World,
) -> tuple[Acceptance | None, ActionSettings]:
    """Return whether the label accepts the checked commit, None if it is not set, and the settings with the time left.

    It takes at most half of ``github-timeout``. The rest is for the comment, which must not stay outdated.
    """
    seconds, label, start = settings.github_timeout / 2, settings.accept_label, world.timing.monotonic()

    def talk() -> Acceptance | None:
        if context.event_name == "merge_group":
            return Refused(label=label, reason=QUEUE, advice="")
        client = connect(context, world.session, world.timing, seconds=seconds)
        pull_request = find_pull_request(client)
        if isinstance(pull_request, NoPullRequest):
            return None
        return ask(client, pull_request, pull_request.commit or context.commit, label)

    try:
        acceptance = within(seconds, talk)
    except Exception as error:  # noqa: BLE001 (the network can fail in any way, and then nothing is accepted)
        reason = str(error) if isinstance(error, GitHubError) else f"{type(error).__name__}: {error}"
        acceptance = Refused(label=label, reason=f"it could not be read: {reason}", advice="")
    left = settings.github_timeout - int(world.timing.monotonic() - start)
    return acceptance, replace(settings, github_timeout=max(1, left))


def notice(acceptance: Acceptance) -> str:
    """Return the annotation: a notice that the contract is accepted, or a warning that the label does not count."""
    name = _short(acceptance.label)
    if isinstance(acceptance, Accepted):
        by = f"by @{acceptance.login} at {minute(acceptance.when)}"
        return annotation("notice", f"Accepted by label {name!r}, {by}. {STAYS}")
    message = f"The label {name!r} does not count: {acceptance.reason}. {acceptance.advice}".rstrip()
    return annotation("warning", message)


def remark(acceptance: Acceptance) -> Remark:
    """Return the same for the report in Markdown; as code, the login does not make GitHub notify the person."""
    name = code(_short(acceptance.label))
    if isinstance(acceptance, Accepted):
        by = f"by {code(f'@{acceptance.login}')} at {minute(acceptance.when)}"
        return Remark(status="Accepted by label", markdown=f"Accepted by label {name}, {by}. {STAYS}")
    sentence = text(f"does not count: {clipped(acceptance.reason, bounds.MARKDOWN_LINE)}. {acceptance.advice}".rstrip())
    return Remark(markdown=f"The label {name} {sentence}")


def _short(label: str) -> str:
    return clipped(label, bounds.MARKDOWN_NAME)
