"""Creates and updates a contract's comment on a pull request; there is at most one."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Literal

from msgspec import Struct
from msgspec.structs import replace

from ragcontract.core import bounds
from ragcontract.github.context import GitHubError, number_at, text_at
from ragcontract.github.marker import NO_RUN, Marker, Result, Run, State, digest, head, line, listed, standing
from ragcontract.github.pull_request import PullRequest
from ragcontract.github.settings import CommentWhen

if TYPE_CHECKING:
    from ragcontract.github.http import Client, Json

Written = Literal["created", "updated", "unchanged", "newer", "outranked", "outdated", "not-needed"]


class Draft(Struct, frozen=True, kw_only=True):
    """The comment that a run wants to post."""

    name: str
    state: State
    run: Run
    content: str  # the text without the footer, to find out whether anything changed
    # Distinguishes the contracts of one run that have one name: see marker.contract_of.
    contract: str = ""
    # Renders the comment, given its maximum size in bytes and the state of the comment that it replaces.
    body: Callable[[int, State | None], str]

    def marker(self, others: tuple[Result, ...] = ()) -> Marker:
        """Return the fields of the hidden first line, with the results of other contracts of the run."""
        content = digest(self.content)
        return Marker(run=self.run, state=self.state, content=content, contract=self.contract, others=others)

    def text(self, marker: Marker, before: State | None) -> str:
        """Return the whole comment, which replaces one of the state ``before``."""
        first = line(self.name, marker)
        return f"{first}\n{self.body(bounds.COMMENT - len(first.encode()) - 1, before)}"


class Posted(Struct, frozen=True):
    """The result of posting a comment."""

    written: Written
    url: str = ""  # empty if there is no comment
    clash: bool = False  # another check of this workflow run has commented under the same name, with another result


class _Comment(Struct, frozen=True, kw_only=True):
    id: int
    url: str
    body: str
    marker: Marker


class _Plan(Struct, frozen=True, kw_only=True):
    """What to send, if anything."""

    written: Written
    marker: Marker | None = None  # of the text
    text: str = ""  # the whole comment; empty if nothing is sent


def post(
    client: "Client",
    pull_request: PullRequest,
    draft: Draft,
    when: CommentWhen,
    on_written: Callable[[Posted], object] = lambda _posted: None,
) -> Posted:
    """Update the contract's comment, or create it; raises :class:`GitHubError`.

    A comment by a newer run is not changed. Neither is a worse one of the same workflow run, unless this check replaces
    it. Nothing is written once the pull request has a newer commit. After a write and before a retry, the comments are
    read again, because GitHub may have received the first request, or another job may have commented meanwhile. If
    there are several comments, as after two first runs at the same time, all runs keep the same one. The others are
    deleted last, each in one try, since the result must not wait for them. ``on_written`` is called with the result
    immediately, even if a later request fails.
    """
    comments = _Comments(client, pull_request, draft)
    settled: Posted | None = None
    lost: GitHubError | None = None
    missed: int | None = None
    for _ in range(bounds.COMMENT_TRIES):
        try:
            own = comments.own()
        except GitHubError as error:
            if settled:
                return settled
            raise lost or error from error
        first = own[0] if own else None
        try:
            posted, sent = comments.write(own, when)
        except GitHubError as error:
            # It was deleted since it was read.
            gone = first is not None and error.status in {404, 410} and first.id != missed
            missed = first.id if first else None
            if not (error.try_again or error.maybe_done or gone):
                raise
            lost = error
            continue
        on_written(posted)
        if not sent:
            comments.delete(own[1:])
            return posted
        settled = posted
    return settled or comments.arrived() or _give_up(lost)


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
        self._created: _Comment | None = None
        self._before: State | None = None  # of the comment that the draft replaces
        self._sent: _Plan | None = None
        self._markers: set[Marker] = set()  # of the comment, as it was sent and as it was before

    def own(self) -> list[_Comment]:
        """Return the contract's comments; the first is the one to keep: of the newest run, the worst, the oldest."""
        start = f"{head(self._draft.name)} "
        marked = [
            comment
            for comment in self._client.comments(self._pull_request.number)
            if text_at(comment, "body").startswith(start) and number_at(comment, "id")
        ]
        self._ask_about_authors(marked)
        own = [self._read(comment) for comment in marked if text_at(comment, "user", "login") in self._owners]
        if self._created and self._created.id not in {comment.id for comment in own}:  # the list may lag behind
            own.append(self._created)
        return sorted(
            own,
            key=lambda comment: (
                comment.marker.run[0],
                comment.marker.result.badness,
                comment.marker.run[1],
                -comment.id,
            ),
            reverse=True,
        )

    def write(self, own: Sequence[_Comment], when: CommentWhen) -> tuple[Posted, bool]:
        """Create the comment, update the first of ``own``, or leave it; return the result and whether it was sent."""
        shown = own[0] if own else None
        known = self._results_of_this_run(own)
        mine = self._draft.marker().result
        others = [result for result in standing([*known, mine]) if result != mine]
        clash = any(not result.says(mine) for result in others)
        url = shown.url if shown else ""
        if shown and self._sent and shown.marker in self._markers:  # the list may lag behind
            return Posted(self._sent.written, url, clash), False
        if shown and (self._before is None or shown.marker.result != mine):
            self._before = shown.marker.state
        plan = self._plan(shown, known, others, when)
        if not (plan.text and plan.marker):
            return Posted(plan.written, url, clash and plan.written != "newer"), False
        if self._is_outdated():
            return Posted("outdated", url, clash), False
        url = self._update(shown, plan.text) if shown else self._create(plan.text)
        self._sent, self._markers = plan, {plan.marker, *([shown.marker] if shown else [])}
        return Posted(plan.written, url, clash), True

    def delete(self, spares: Sequence[_Comment]) -> None:
        """Delete comments, as far as that works: another run may have done it, or the next one will."""
        for spare in spares:
            with suppress(GitHubError):
                self._client.delete_comment(spare.id)

    def arrived(self) -> Posted | None:
        """Return the comment if the last attempt succeeded despite its error."""
        with suppress(GitHubError):
            for comment in self.own()[:1]:
                if comment.marker.run == self._draft.run and comment.marker.result == self._draft.marker().result:
                    return Posted("updated", comment.url)
        return None

    def _create(self, body: str) -> str:
        answer = self._client.create_comment(self._pull_request.number, body)
        self._owners |= {login for login in [text_at(answer, "user", "login")] if login}
        self._created = self._read(answer | {"body": body})
        return self._created.url

    def _update(self, comment: _Comment, body: str) -> str:
        return text_at(self._client.update_comment(comment.id, body), "html_url") or comment.url

    def _plan(
        self, comment: _Comment | None, known: Sequence[Result], others: Sequence[Result], when: CommentWhen
    ) -> _Plan:
        """Return what to do; ``known`` are the results of this workflow run so far, ``others`` are of other checks."""
        marker = self._draft.marker(listed(others))
        mine = marker.result
        if comment is None:
            if when == "on-failure" and mine.state == "pass":
                return _Plan(written="not-needed")
            return _Plan(written="created", marker=marker, text=self._draft.text(marker, None))
        later = any(result.may_be_of(mine.contract) and result.attempt > mine.attempt for result in known)
        if later or comment.marker.run[0] > marker.run[0]:
            return _Plan(written="newer")
        if self._outranks(comment.marker.result, others):
            rest = listed(result for result in [*others, mine] if result != comment.marker.result)
            return self._noted("outranked", comment, replace(comment.marker, others=rest))
        text = self._draft.text(marker, self._before)
        if comment.body == text:
            return _Plan(written="unchanged")
        if when == "on-change" and comment.marker.result.says(mine):
            # Unless it is noted, a better result of another job would replace it.
            return self._noted("unchanged", comment, comment.marker if mine.state == "pass" else marker)
        return _Plan(written="updated", marker=marker, text=text)

    def _outranks(self, shown: Result, others: Sequence[Result]) -> bool:
        """Return whether the comment keeps what it shows, because one of ``others`` is worse or came first."""
        mine = self._draft.marker().result
        came_first = shown in others and not shown.may_be_of(mine.contract) and shown.badness == mine.badness
        return came_first or any(result.badness > mine.badness for result in others)

    def _noted(self, written: Written, comment: _Comment, marker: Marker) -> _Plan:
        """Return a plan that changes at most the hidden line, and nothing that people see."""
        if marker == comment.marker:
            return _Plan(written=written)
        shown = comment.body.partition("\n")[2]
        return _Plan(written=written, marker=marker, text=f"{line(self._draft.name, marker)}\n{shown}")

    def _results_of_this_run(self, own: Sequence[_Comment]) -> list[Result]:
        """Return the results of this workflow run that the comments have; none if the run is unknown."""
        same = [comment.marker for comment in own if comment.marker.run[0] == self._draft.run[0] != NO_RUN[0]]
        return [result for marker in same for result in (marker.result, *marker.others) if result.state is not None]

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
        """Ask GitHub which authors of marked comments are the token's owner, by one comment of each."""
        unknown = {
            text_at(comment, "user", "login"): text_at(comment, "node_id")
            for comment in marked
            if text_at(comment, "user", "login") not in self._owners | self._others
        }
        asked = dict(list(unknown.items())[: bounds.AUTHORS])
        if asked:
            with suppress(GitHubError):  # without an answer, they do not count as the owner
                confirmed = self._client.written_by_viewer(list(asked.values()))
                self._owners |= {login for login, node in asked.items() if login and node in confirmed}
        self._others |= set(asked) - self._owners

    def _read(self, comment: "Json") -> _Comment:
        body = text_at(comment, "body")
        return _Comment(
            id=number_at(comment, "id") or 0,
            url=text_at(comment, "html_url"),
            body=body,
            marker=Marker.of(body, self._draft.run),
        )
