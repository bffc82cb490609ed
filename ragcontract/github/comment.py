"""Creates and updates a contract's comment on a pull request; there is at most one."""

import hashlib
import re
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Literal
from urllib.parse import quote

from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.github.context import number_at, text_at
from ragcontract.github.failure import GitHubError
from ragcontract.github.pull_request import PullRequest
from ragcontract.github.settings import CommentWhen

if TYPE_CHECKING:
    from ragcontract.github.client import Client


State = Literal["pass", "fail", "error", "unknown"]
Written = Literal["created", "updated", "unchanged", "newer", "outdated", "not-needed"]


class Draft(Struct, frozen=True, kw_only=True):
    """The comment that a run wants to post.

    ``body`` renders it; its arguments are the maximum size in bytes and the state of the comment that it replaces.
    ``content`` is the text without the footer, to find out whether anything changed.
    """

    name: str
    state: State
    run: tuple[int, int]
    content: str
    body: Callable[[int, State | None], str]

    def marker(self) -> str:
        """Return the hidden first line, which identifies the contract's comment and the run that wrote it."""
        digest = hashlib.sha256(self.content.encode()).hexdigest()[:16]
        return f"{head(self.name)} run={self.run[0]}.{self.run[1]} state={self.state} content={digest} -->"


class Posted(Struct, frozen=True):
    """The result of posting a comment, and the URL of the comment if there is one."""

    written: Written
    url: str = ""


class _Found(Struct, frozen=True, kw_only=True):
    id: int
    url: str
    body: str
    run: tuple[int, int]
    state: State | None


def head(name: str) -> str:
    """Return the start of a contract's marker; the name is escaped, and hashed if it is too long."""
    written = quote(name, safe="", errors="surrogateescape")
    if len(written) > bounds.COMMENT_NAME:
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

    A comment is the contract's own if it begins with the contract's marker *and* its author is the token's owner, since
    anyone can write the marker. A comment by a newer run is not changed, and nothing is written once the pull request
    has a newer commit. Before a retry, the comments are read again, because GitHub may have received the first request,
    or another run may have commented meanwhile. If two first runs each created a comment, all runs delete the same one.
    ``on_created`` is called immediately after a comment is created, even if reading the comments again then fails.
    """
    login = client.login()
    created: Posted | None = None
    lost: GitHubError | None = None
    missed: int | None = None
    for _ in range(bounds.COMMENT_TRIES):
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
            gone = found is not None and error.status in {404, 410} and found.id != missed  # deleted since it was read
            missed = found.id if found else None
            if not (error.try_again or error.maybe_done or gone):
                raise
            lost = error
            continue
        if posted.written != "created":
            return posted
        created = posted
        on_created(posted)  # and check again: another run may have created one at the same time
    if created:
        return created
    return _arrived(client, pull_request.number, draft, login) or _give_up(lost)


def _arrived(client: "Client", pull_request: int, draft: Draft, login: str) -> Posted | None:
    """Return the comment if the last attempt succeeded despite its error."""
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
    body = f"{marker}\n{draft.body(bounds.COMMENT - len(marker.encode()) - 1, found.state if found else None)}"
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
    """Return whether the pull request has a newer commit. The marker is not enough: a newer run may not comment."""
    if not pull_request.commit:
        return False
    try:
        newest = client.head_of(pull_request.number)
    except GitHubError as error:
        if error.denied:  # a token that may comment but not read pull requests
            return False
        raise
    return newest not in {"", pull_request.commit}


def _own(client: "Client", pull_request: int, name: str, login: str) -> _Found | None:
    """Return the contract's comment, or None. Of several, keeps the newest run's oldest comment, deletes the others."""
    own = [
        _Found(id=number, url=text_at(comment, "html_url"), body=body, run=_run(body), state=_state(body))
        for comment in client.comments(pull_request)
        if (number := number_at(comment, "id"))
        and text_at(comment, "user", "login") == login
        and (body := text_at(comment, "body")).startswith(f"{head(name)} ")
    ]
    newest = max(own, key=lambda found: (found.run, -found.id), default=None)
    for spare in own:
        if spare is not newest:
            with suppress(GitHubError):  # another run deleted it, or the next one will
                client.delete_comment(spare.id)
    return newest


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
