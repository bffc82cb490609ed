"""The one comment that a contract has on a pull request."""

import hashlib
import re
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Literal
from urllib.parse import quote

from msgspec import Struct

from ragcontract.github.context import number_at, text_at
from ragcontract.github.failure import GitHubError
from ragcontract.github.pull_request import PullRequest
from ragcontract.github.settings import CommentWhen

if TYPE_CHECKING:
    from ragcontract.github.client import Client

MAX_BODY = 65_000  # GitHub takes 65,536 characters; counted in bytes, which are never fewer
MAX_CHECKS = 5
MAX_NAME = 300

State = Literal["pass", "fail", "error", "unknown"]
Written = Literal["created", "updated", "unchanged", "newer", "outdated", "not-needed"]


class Draft(Struct, frozen=True, kw_only=True):
    """What a run wants to say. ``body`` takes how many bytes it may have and the state of the comment it replaces.

    ``content`` is what the body says without its foot: where it is the same, nothing has changed.
    """

    name: str
    state: State
    run: tuple[int, int]
    content: str
    body: Callable[[int, State | None], str]

    def marker(self) -> str:
        """Return the hidden first line by which a contract finds its own comment again, and tells which is newer."""
        digest = hashlib.sha256(self.content.encode()).hexdigest()[:16]
        return f"{head(self.name)} run={self.run[0]}.{self.run[1]} state={self.state} content={digest} -->"


class Posted(Struct, frozen=True):
    """What became of the comment, and its address where there is one."""

    written: Written
    url: str = ""


class _Found(Struct, frozen=True, kw_only=True):
    id: int
    url: str
    body: str
    run: tuple[int, int]
    state: State | None


def head(name: str) -> str:
    """Return how the marker of a contract begins; a name cannot end it early, nor leave no room for the rest."""
    written = quote(name, safe="", errors="surrogateescape")
    if len(written) > MAX_NAME:
        written = f"sha256%3A{hashlib.sha256(written.encode()).hexdigest()}"
    return f"<!-- rag-contract name={written}"


def post(
    client: "Client",
    pull_request: PullRequest,
    draft: Draft,
    when: CommentWhen,
    on_created: Callable[[Posted], object] = lambda _posted: None,
) -> Posted:
    """Update the contract's comment, or create it; raises :class:`GitHubError`.

    Its own comments are those that begin with the contract's marker *and* are by the token's owner: anybody can write
    the marker. A comment by a newer run, or about a newer commit, is left to that. Before anything is sent again, the
    comments are looked at again, for GitHub may have received it, or another run may have written meanwhile; and of two
    that a race of first runs made, all runs keep the same one. ``on_created`` hears of a new comment at once: it is
    there, whatever becomes of the look after it.
    """
    login = client.login()
    created: Posted | None = None
    lost: GitHubError | None = None
    missed: int | None = None
    for _ in range(MAX_CHECKS):
        try:
            found = _own(client, pull_request.number, draft.name, login)
        except GitHubError as error:
            if created:
                return created
            raise lost or error from error
        if created and (not found or found.url == created.url):
            return created
        try:
            posted = _write(client, pull_request, draft, when, found)
        except GitHubError as error:
            gone = found is not None and error.status in {404, 410} and found.id != missed  # deleted since the look
            missed = found.id if found else None
            if not (error.try_again or error.maybe_done or gone):
                raise
            lost = error
            continue
        if posted.written != "created":
            return posted
        created = posted
        on_created(posted)  # and look again: another run may have created one at the same time
    if created:
        return created
    return _arrived(client, pull_request.number, draft, login) or _give_up(lost)


def _arrived(client: "Client", pull_request: int, draft: Draft, login: str) -> Posted | None:
    """Return the comment if the last try made it after all."""
    with suppress(GitHubError):
        found = _own(client, pull_request, draft.name, login)
        if found and found.run == draft.run:
            return Posted("updated", found.url)
    return None


def _give_up(lost: GitHubError | None) -> Posted:
    raise lost or GitHubError("the comment was not tried")


def _write(
    client: "Client", pull_request: PullRequest, draft: Draft, when: CommentWhen, found: _Found | None
) -> Posted:
    marker = draft.marker()
    body = f"{marker}\n{draft.body(MAX_BODY - len(marker.encode()) - 1, found.state if found else None)}"
    if found is None and when == "on-failure" and draft.state == "pass":
        return Posted("not-needed")
    if found and found.run > draft.run:
        return Posted("newer", found.url)
    if found and (found.body == body or (when == "on-change" and _content(found.body) == _content(body))):
        return Posted("unchanged", found.url)
    if _is_outdated(client, pull_request):
        return Posted("outdated", found.url if found else "")
    if found is None:
        return Posted("created", text_at(client.create_comment(pull_request.number, body), "html_url"))
    return Posted("updated", text_at(client.update_comment(found.id, body), "html_url") or found.url)


def _is_outdated(client: "Client", pull_request: PullRequest) -> bool:
    """Tell whether the pull request has moved on. The marker cannot say so where a newer run left the comment alone."""
    if not pull_request.commit:
        return False
    try:
        newest = client.head_of(pull_request.number)
    except GitHubError as error:
        if error.denied:  # a token that may comment, but not look
            return False
        raise
    return newest not in {"", pull_request.commit}


def _own(client: "Client", pull_request: int, name: str, login: str) -> _Found | None:
    """Return the contract's comment: of several the newest run's, and of that the oldest. The others are deleted."""
    own = [
        _Found(id=number, url=text_at(comment, "html_url"), body=body, run=_run(body), state=_state(body))
        for comment in client.comments(pull_request)
        if (number := number_at(comment, "id"))
        and text_at(comment, "user", "login") == login
        and (body := text_at(comment, "body")).startswith(f"{head(name)} ")
    ]
    kept = max(own, key=lambda found: (found.run, -found.id), default=None)
    for spare in own:
        if spare is not kept:
            with suppress(GitHubError):  # another run deleted it, or the next one will
                client.delete_comment(spare.id)
    return kept


def _field(body: str, name: str) -> str:
    match = re.match(rf"<!-- rag-contract [^>]*\b{name}=([\w.]+)", body)
    return match[1] if match else ""


def _run(body: str) -> tuple[int, int]:
    number, _, attempt = _field(body, "run").partition(".")
    return (int(number), int(attempt)) if number.isdecimal() and attempt.isdecimal() else (0, 0)


def _state(body: str) -> State | None:
    states: dict[str, State] = {"pass": "pass", "fail": "fail", "error": "error", "unknown": "unknown"}
    return states.get(_field(body, "state"))


def _content(body: str) -> str:
    return f"{_field(body, 'state')} {_field(body, 'content')}"
