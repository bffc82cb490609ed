"""Creates and updates a contract's comment on a pull request; there is at most one."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.github.context import number_at, text_at
from ragcontract.github.failure import GitHubError
from ragcontract.github.marker import Marker, Run, State, digest, head, line
from ragcontract.github.pull_request import PullRequest
from ragcontract.github.settings import CommentWhen

if TYPE_CHECKING:
    from ragcontract.github.client import Client, Json

BEST_FIRST: tuple[State | None, ...] = (None, "pass", "unknown", "error", "fail")

Written = Literal["created", "updated", "unchanged", "newer", "outranked", "outdated", "not-needed"]


class Draft(Struct, frozen=True, kw_only=True):
    """The comment that a run wants to post.

    ``body`` renders it; its arguments are the maximum size in bytes and the state of the comment that it replaces.
    ``content`` is the text without the footer, to find out whether anything changed. ``contract`` distinguishes the
    contracts of one run that have one name: see :func:`~ragcontract.github.identity.contract_of`.
    """

    name: str
    state: State
    run: Run
    content: str
    contract: tuple[str, str] = ("", "")
    body: Callable[[int, State | None], str]

    @property
    def marker(self) -> Marker:
        """The fields of the hidden first line."""
        content = digest(self.content)
        return Marker(run=self.run, state=self.state, content=content, contract=self.contract)

    def text(self, before: State | None) -> str:
        """Return the whole comment, which replaces one of the state ``before``."""
        marker = line(self.name, self.marker)
        return f"{marker}\n{self.body(bounds.COMMENT - len(marker.encode()) - 1, before)}"


class Posted(Struct, frozen=True):
    """The result of posting a comment, and the URL of the comment if there is one.

    ``clash``: another contract's check in the same run has commented under the same name, with another result.
    """

    written: Written
    url: str = ""
    clash: bool = False


class _Found(Struct, frozen=True, kw_only=True):
    id: int
    url: str
    body: str
    marker: Marker


def post(
    client: "Client",
    pull_request: PullRequest,
    draft: Draft,
    when: CommentWhen,
    on_written: Callable[[Posted], object] = lambda _posted: None,
) -> Posted:
    """Update the contract's comment, or create it; raises :class:`GitHubError`.

    A comment by a newer run is not changed, nor a worse one on another contract by the same run, and nothing is written
    once the pull request has a newer commit. Before a retry, the comments are read again, because GitHub may have
    received the first request, or another run may have commented meanwhile. If there are several comments, as after two
    first runs at the same time, all runs keep the same one. The others are deleted last, each in one try, since the
    result must not wait for them. ``on_written`` is called with the result immediately, even if a later request fails.
    """
    comments = _Comments(client, pull_request, draft)
    created: Posted | None = None
    lost: GitHubError | None = None
    missed: int | None = None
    for _ in range(bounds.COMMENT_TRIES):
        try:
            own = comments.own()
        except GitHubError as error:
            if created:
                return created
            raise lost or error from error
        found = own[0] if own else None
        try:
            posted = comments.write(own, when)
        except GitHubError as error:
            gone = found is not None and error.status in {404, 410} and found.id != missed  # deleted since it was read
            missed = found.id if found else None
            if not (error.try_again or error.maybe_done or gone):
                raise
            lost = error
            continue
        on_written(posted)
        if posted.written != "created" or created:
            comments.delete(own[1:])
            return posted
        created = posted  # and check again: another run may have created one at the same time
    return created or comments.arrived() or _give_up(lost)


def _give_up(lost: GitHubError | None) -> Posted:
    raise lost or GitHubError("the comment was not tried")


class _Comments:
    """The comments on a pull request that belong to a draft's contract.

    A comment does if it begins with the contract's marker *and* the token's owner wrote it, since anyone can write the
    marker. GraphQL says who the owner is. The author that GitHub names for a comment may be written differently, so
    GitHub is also asked about each other author of such a comment, and the author of a comment just created is the
    owner in any case.
    """

    def __init__(self, client: "Client", pull_request: PullRequest, draft: Draft) -> None:
        self._client = client
        self._pull_request = pull_request
        self._draft = draft
        self._owners = {client.login()}
        self._others: set[str] = set()
        self._created: _Found | None = None

    def own(self) -> list[_Found]:
        """Return the contract's comments; the first is the one to keep: of the newest run, the worst, the oldest."""
        start = f"{head(self._draft.name)} "
        marked = [
            comment
            for comment in self._client.comments(self._pull_request.number)
            if text_at(comment, "body").startswith(start) and number_at(comment, "id")
        ]
        self._ask_about_authors(marked)
        own = [self._found(comment) for comment in marked if text_at(comment, "user", "login") in self._owners]
        if self._created and self._created.id not in {one.id for one in own}:  # the list may lag behind
            own.append(self._created)
        return sorted(own, key=lambda one: (one.marker.run, BEST_FIRST.index(one.marker.state), -one.id), reverse=True)

    def write(self, own: Sequence[_Found], when: CommentWhen) -> Posted:
        """Create the comment, update the first of ``own``, or leave it as it is."""
        found = own[0] if own else None
        clash = any(one.marker.clashes(self._draft.marker) for one in own)
        if found and self._created and found.id == self._created.id:
            return Posted("created", found.url, clash)
        body = self._draft.text(found.marker.state if found else None)
        written = self._decide(found, body, when)
        if written == "created":
            return Posted(written, self._create(body).url)
        url = found.url if found else ""
        if written == "updated" and found:
            url = text_at(self._client.update_comment(found.id, body), "html_url") or url
        return Posted(written, url, clash)

    def delete(self, spares: Sequence[_Found]) -> None:
        """Delete comments, as far as that works: another run may have done it, or the next one will."""
        for spare in spares:
            with suppress(GitHubError):
                self._client.delete_comment(spare.id)

    def arrived(self) -> Posted | None:
        """Return the comment if the last attempt succeeded despite its error."""
        with suppress(GitHubError):
            for found in self.own()[:1]:
                if found.marker.run == self._draft.run and found.marker.says(self._draft.marker):
                    return Posted("updated", found.url)
        return None

    def _create(self, body: str) -> _Found:
        answer = self._client.create_comment(self._pull_request.number, body)
        self._owners |= {login for login in [text_at(answer, "user", "login")] if login}
        self._created = self._found(answer | {"body": body})
        return self._created

    def _decide(self, found: _Found | None, body: str, when: CommentWhen) -> Written:
        if found is None and when == "on-failure" and self._draft.state == "pass":
            return "not-needed"
        if found and found.marker.run > self._draft.run:
            return "newer"
        if found and (found.body == body or (when == "on-change" and found.marker.says(self._draft.marker))):
            return "unchanged"
        if found and found.marker.clashes(self._draft.marker) and not self._is_worse_than(found):
            return "outranked"
        if self._is_outdated():
            return "outdated"
        return "updated" if found else "created"

    def _is_worse_than(self, found: _Found) -> bool:
        return BEST_FIRST.index(self._draft.state) > BEST_FIRST.index(found.marker.state)

    def _is_outdated(self) -> bool:
        """Return whether the pull request has a newer commit. The marker is not enough: a newer run may not comment."""
        if not self._pull_request.commit:
            return False
        try:
            newest = self._client.head_of(self._pull_request.number)
        except GitHubError as error:
            if error.denied:  # a token that may comment but not read pull requests
                return False
            raise
        return newest not in {"", self._pull_request.commit}

    def _ask_about_authors(self, marked: "Sequence[Json]") -> None:
        """Ask which authors of marked comments are the token's owner, by one comment of each."""
        unknown = {
            text_at(comment, "user", "login"): text_at(comment, "node_id")
            for comment in marked
            if text_at(comment, "user", "login") not in self._owners | self._others
        }
        asked = dict(list(unknown.items())[: bounds.AUTHORS])
        if asked:
            with suppress(GitHubError):  # they are not the owner, as far as anyone knows
                confirmed = self._client.written_by_viewer(list(asked.values()))
                self._owners |= {login for login, node in asked.items() if login and node in confirmed}
        self._others |= set(asked) - self._owners

    def _found(self, comment: "Json") -> _Found:
        body = text_at(comment, "body")
        return _Found(
            id=number_at(comment, "id") or 0,
            url=text_at(comment, "html_url"),
            body=body,
            marker=Marker.of(body, self._draft.run),
        )
