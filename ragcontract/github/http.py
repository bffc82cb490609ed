"""The client for GitHub's REST and GraphQL APIs, with retries by GitHub's rules and a time limit for all calls.

The rules are those of GitHub's documentation: "Best practices for using the REST API", "Rate limits for the REST API".
"""

import json
import logging
import math
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Literal
from urllib.parse import quote, urlsplit

import requests
from msgspec import Struct
from requests.auth import AuthBase

from ragcontract.core import bounds
from ragcontract.core.safe_text import clipped
from ragcontract.github.context import GitHubError, Token, at, number_at, text_at
from ragcontract.net.pacing import Timing, backoff, number, seconds_in
from ragcontract.net.secrets import Redaction
from ragcontract.net.sending import HttpAnswer, HttpCall, Unanswered, send
from ragcontract.net.sessions import prepare

API_VERSION = "2022-11-28"
# "Resource not accessible by integration" (or "by personal access token"), "Must have admin rights to Repository."
DENIALS = ("not accessible", "must have", "permission")
# Types of GraphQL's errors: those that say what the statuses 403 and 404 say, and those that may pass by themselves.
DENIED_KINDS = {"FORBIDDEN", "NOT_FOUND"}
RATE_LIMITED = "RATE_LIMITED"
PASSING_KINDS = {"", RATE_LIMITED, "INTERNAL", "INTERNAL_ERROR", "SERVICE_UNAVAILABLE"}
NO_JSON = object()
log = logging.getLogger(__name__)


class _TokenAuth(AuthBase):
    """Sets the Authorization header."""

    def __init__(self, token: Token) -> None:
        self._token = token

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["Authorization"] = f"Bearer {self._token.value}"
        return request


class GitHubAnswer(Struct, frozen=True, kw_only=True):
    """An answer of GitHub; the token is not in it."""

    content: Any  # decoded; None if it is empty
    next_page: str  # the URL; empty if there is none


class Http:
    """Sends calls one after the other, with retries by GitHub's rules, all within ``seconds`` from now."""

    def __init__(self, session: requests.Session, token: Token, *, seconds: float, timing: Timing) -> None:
        # Redirects are not followed, so that the token is not sent to another host.
        prepare(session, auth=_TokenAuth(token))
        session.headers.update({"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": API_VERSION})
        self._session = session
        self._redact = Redaction(token.value)
        self._timing = timing
        self.allow(seconds)

    def allow(self, seconds: float) -> None:
        """Let the calls from now on take at most so many seconds together."""
        self._seconds = seconds
        self._end = self._timing.monotonic() + seconds

    def call(
        self,
        method: str,
        url: str,
        *,
        body: Any = None,
        problem_with: Callable[[Any], str] = lambda _content: "",
        repeatable: bool = True,
        tries: int = bounds.TRIES,
    ) -> GitHubAnswer:
        """Send a call and return a successful answer; raises :class:`GitHubError`.

        ``problem_with`` describes what is wrong with the content, if anything is. Such an answer, or a page of HTML, is
        treated as a server error. A call that is not ``repeatable`` is sent only once. If it could be retried, the
        error is raised after the wait with ``try_again`` set, so that the caller can first check whether the call was
        carried out.
        """
        attempt = 0
        while True:
            attempt += 1
            try:
                return self._once(method, url, body, problem_with, attempt)
            except GitHubError as failure:
                if failure.retry_after is None or attempt >= tries:
                    raise
                self.wait(failure.retry_after, failure)
                if not repeatable:
                    failure.try_again = True
                    raise

    def _once(self, method: str, url: str, body: Any, problem_with: Callable[[Any], str], attempt: int) -> GitHubAnswer:
        answered = self._send(method, url, body, attempt)
        log.debug("%s %s: %d", method, self._redact.text(url), answered.status)
        try:
            content = self._redact.json(json.loads(answered.content)) if answered.content else None
        except (ValueError, RecursionError):
            content = NO_JSON
        if answered.status >= 300:  # noqa: PLR2004 (redirects are failures too)
            raise self._failure(answered, content, attempt)
        if problem := "is not JSON" if content is NO_JSON else problem_with(content):
            raise self._unexpected(f"GitHub's answer {problem}", answered, content, attempt)
        return GitHubAnswer(content=content, next_page=self._redact.text(answered.next_page))

    def _send(self, method: str, url: str, body: Any, attempt: int) -> HttpAnswer:
        left = self._end - self._timing.monotonic()
        if left <= 0:
            raise GitHubError(f"GitHub did not answer within the {self._seconds:g} seconds of github-timeout")
        call = HttpCall(method=method, url=url, json=body)
        try:
            return send(self._session, call, seconds=left, connect_seconds=bounds.CONNECT, read_seconds=bounds.READ)
        except Unanswered as error:
            if error.kind == "too_large":
                raise GitHubError(f"GitHub answered, but {error}", maybe_done=True) from error
            message = f"GitHub could not be reached ({error.name})"
            raise GitHubError(message, maybe_done=not error.unsent, retry_after=backoff(attempt)) from error

    def wait(self, seconds: float, failure: GitHubError) -> None:
        """Wait before another try; raises ``failure`` with the reason if no time would be left for it."""
        if self._timing.monotonic() + seconds >= self._end:
            message = (
                f"{failure}; the next try would come after the {self._seconds:g} seconds that github-timeout allows"
            )
            raise GitHubError(message, status=failure.status, maybe_done=failure.maybe_done)
        self._timing.sleep(seconds)

    def _failure(self, answered: HttpAnswer, content: Any, attempt: int) -> GitHubError:
        status = answered.status
        message = _reason_in(content) or _shown(self._redact.text(answered.reason)) or "no reason given"
        pause = self._limit(answered, message, attempt)
        kind = "" if pause is None else RATE_LIMITED
        if pause is None and status >= 500:  # noqa: PLR2004
            pause = backoff(attempt)
        return GitHubError(
            f"GitHub answered {status}: {message}",
            status=status,
            maybe_done=status >= 500,  # noqa: PLR2004
            denied=status == 404 or (status == 403 and pause is None and _is_about_permissions(message)),  # noqa: PLR2004
            retry_after=pause,
            kind=kind,
        )

    def _unexpected(self, problem: str, answered: HttpAnswer, content: Any, attempt: int) -> GitHubError:
        reason = _reason_in(content)  # GraphQL answers 200 for its errors too
        kind = text_at(_first_error(content), "type")
        denied = _is_about_permissions(reason) or kind in DENIED_KINDS
        limit = self._limit(answered, reason, attempt)
        passes = limit is not None or (not denied and kind in PASSING_KINDS)
        return GitHubError(
            f"{problem}: {reason}" if reason else problem,
            maybe_done=True,
            denied=denied,
            retry_after=(backoff(attempt) if limit is None else limit) if passes else None,
            kind=kind if limit is None else RATE_LIMITED,
        )

    def _limit(self, answered: HttpAnswer, message: str, attempt: int) -> float | None:
        """Return the seconds to wait that a rate limit asks for; None if the answer is not about a rate limit."""
        status, headers = answered.status, answered.headers
        if 300 <= status < 500 and status not in {403, 429}:  # noqa: PLR2004
            return None
        if (seconds := seconds_in(headers.get("retry-after"), self._timing.now())) is not None:
            return seconds
        if headers.get("x-ratelimit-remaining") == "0":
            reset = number(headers.get("x-ratelimit-reset"))
            if reset is not None:
                return max(reset - self._timing.now(), 0.0) + 1.0
        if status == 429 or "secondary rate limit" in message.lower():  # noqa: PLR2004
            return bounds.LIMITED_PAUSE * float(2 ** (attempt - 1))
        return None


def _is_about_permissions(message: str) -> bool:
    """Return whether a refusal is about a missing permission, not about a locked issue or an archived repository."""
    return any(denial in message.lower() for denial in DENIALS)


def _reason_in(content: Any) -> str:
    """Return the reason in the content of a failure: REST's ``message``, or GraphQL's first error; empty if none."""
    reason = at(content, "message") or at(_first_error(content), "message")
    return "" if reason is None else _shown(str(reason))


def _first_error(content: Any) -> Any:
    """Return the first error in an answer of GraphQL; None if it has none."""
    errors = at(content, "errors")
    return errors[0] if isinstance(errors, list) and errors else None


def _shown(text: str) -> str:
    return clipped(text, bounds.GITHUB_ANSWER)


VIEWER = ("data", "viewer", "login")
Json = dict[str, Any]
CommitState = Literal["error", "failure", "pending", "success"]


class Client:
    """Reads the pull requests of one repository, and reads and writes their comments; sends calls about its git data.

    What it sends to GraphQL is constant text and variables.
    """

    def __init__(self, http: Http, *, api_url: str, graphql_url: str, repository: str) -> None:
        self.http = http
        self._api_url = api_url
        self._repository = f"{api_url}/repos/{repository}"
        self._graphql_url = graphql_url

    def graphql(self, query: str, variables: Json, *, tries: int = bounds.TRIES) -> Json:
        """Send a query or a mutation and return its data; an answer with errors raises :class:`GitHubError`."""
        body = {"query": query, "variables": variables}
        answer = self.http.call("POST", self._graphql_url, body=body, problem_with=_no_data, tries=tries)
        data: Json = answer.content["data"]
        return data

    def login(self) -> str:
        """Return the login of the token's owner, by GraphQL, because ``GET /user`` refuses a workflow's token."""
        query = {"query": "query { viewer { login } }"}
        answer = self.http.call("POST", self._graphql_url, body=query, problem_with=_no_viewer)
        return text_at(answer.content, *VIEWER)

    def written_by_viewer(self, node_ids: Sequence[str]) -> set[str]:
        """Return the GraphQL ids of those comments, of at most 100, that the token's owner wrote; asks only once."""
        query = "query($ids: [ID!]!) { nodes(ids: $ids) { id ... on IssueComment { viewerDidAuthor } } }"
        body = {"query": query, "variables": {"ids": list(node_ids)}}
        nodes = at(self.http.call("POST", self._graphql_url, body=body, tries=1).content, "data", "nodes")
        return {
            text_at(node, "id")
            for node in (nodes if isinstance(nodes, list) else ())
            if at(node, "viewerDidAuthor") is True
        }

    def comments(self, issue: int) -> Iterator[Json]:
        """Yield all comments of an issue or pull request, over all pages."""
        return self._pages(f"/issues/{issue}/comments")

    def events(self, issue: int) -> Iterator[Json]:
        """Yield all events of an issue or pull request, over all pages; comments and commits are not among them."""
        return self._pages(f"/issues/{issue}/events")

    def pull(self, number: int) -> Json:
        """Return a pull request."""
        answer = self.http.call("GET", f"{self._repository}/pulls/{number}", problem_with=_no_object)
        content: Json = answer.content
        return content

    def head_of(self, pull_request: int) -> str:
        """Return the newest commit of a pull request; empty if the answer has none."""
        return text_at(self.pull(pull_request), "head", "sha")

    def activities(self, repository: str, branch: str) -> list[Json]:
        """Return the newest changes of a branch, at most a page; ``repository`` may be a fork."""
        query = f"ref={quote(f'refs/heads/{branch}', safe='')}&direction=desc&per_page={bounds.PAGE}"
        url = f"{self._api_url}/repos/{repository}/activity?{query}"
        rows = self.http.call("GET", url, problem_with=_no_list).content
        return [row for row in rows if isinstance(row, dict)]

    def pulls_of_commit(self, sha: str) -> Iterator[Json]:
        """Yield the pull requests that contain a commit."""
        return self._pages(f"/commits/{sha}/pulls")

    def open_pulls_of_branch(self, owner: str, branch: str) -> Iterator[Json]:
        """Yield the open pull requests from a branch of ``owner``'s repository."""
        return self._pages("/pulls", f"state=open&head={quote(f'{owner}:{branch}', safe='')}&")

    def files_of(self, pull_request: int) -> Iterator[Json]:
        """Yield the files that a pull request changes; GitHub lists at most 3,000. Each page is asked for only once."""
        return self._pages(f"/pulls/{pull_request}/files", tries=1)

    def create_comment(self, issue: int, body: str) -> Json:
        """Post a new comment and return it. It is sent only once: see ``GitHubError.try_again``."""
        url = f"{self._repository}/issues/{issue}/comments"
        return self._write("POST", url, body)

    def update_comment(self, comment_id: int, body: str) -> Json:
        """Replace a comment's body and return the comment. It is sent only once: see ``GitHubError.try_again``."""
        url = f"{self._repository}/issues/comments/{comment_id}"
        return self._write("PATCH", url, body)

    def delete_comment(self, comment_id: int) -> None:
        """Delete a comment, in one try."""
        self.http.call("DELETE", f"{self._repository}/issues/comments/{comment_id}", tries=1)

    def commits(self, sha: str) -> list[tuple[str, list[str]]]:
        """Return the last ``bounds.REACHABLE`` commits that a commit reaches, itself first, each with its parents."""
        pages = math.ceil(bounds.REACHABLE / bounds.PAGE)
        rows = self._pages("/commits", f"sha={quote(sha, safe='')}&", pages=pages)
        return [(text_at(row, "sha"), _parents_of(row)) for row in islice(rows, bounds.REACHABLE)]

    def blob(self, sha: str) -> bytes:
        """Return the content of a file, by the id that git gives it."""
        url = f"{self._repository}/git/blobs/{quote(sha, safe='')}"
        content = self.http.call("GET", url, problem_with=_no_blob).content
        return b64decode(content["content"])

    def create_branch(self, branch: str, files: Mapping[str, str], message: str) -> None:
        """Make a branch with one commit of these texts, by path; answered with 422 if there is one of this name."""
        listed = [{"path": path, "mode": "100644", "type": "blob", "content": text} for path, text in files.items()]
        tree = self._create("/git/trees", {"tree": listed}, "sha")
        commit = self._create("/git/commits", {"message": message, "tree": tree, "parents": []}, "sha")
        self._create("/git/refs", {"ref": f"refs/heads/{branch}", "sha": commit}, "ref")

    def create_status(self, sha: str, *, state: CommitState, context: str, description: str) -> None:
        """Set the status of a commit; the newest one of a context counts."""
        body = {"state": state, "context": context, "description": description}
        self._create(f"/statuses/{quote(sha, safe='')}", body, "state")

    def _create(self, path: str, body: Json, field: str) -> str:
        """Create something and return this field of it. It does no harm to create it twice."""

        def problem(content: Any) -> str:
            return "" if text_at(content, field) else f"has no {field}"

        answer = self.http.call("POST", f"{self._repository}{path}", body=body, problem_with=problem)
        return text_at(answer.content, field)

    def _write(self, method: str, url: str, body: str) -> Json:
        answer = self.http.call(method, url, body={"body": body}, problem_with=_no_comment, repeatable=False)
        content: Json = answer.content
        return content

    def _pages(self, path: str, query: str = "", tries: int = bounds.TRIES, pages: float = math.inf) -> Iterator[Json]:
        url = f"{self._repository}{path}?{query}per_page={bounds.PAGE}"
        seen: set[str] = set()
        while url and url not in seen and len(seen) < pages:
            seen.add(url)
            answer = self.http.call("GET", url, problem_with=_no_list, tries=tries)
            yield from (row for row in answer.content if isinstance(row, dict))
            url = answer.next_page
            if url and urlsplit(url)[:2] != urlsplit(self._repository)[:2]:
                raise GitHubError("GitHub's next page is on another host")


def _no_viewer(content: Any) -> str:
    return "" if text_at(content, *VIEWER) else "does not say who the token belongs to"


def _parents_of(commit: Json) -> list[str]:
    parents = at(commit, "parents")
    return [text_at(parent, "sha") for parent in (parents if isinstance(parents, list) else ())]


def _no_data(content: Any) -> str:
    if at(content, "errors"):
        return "is an error"
    return "" if isinstance(at(content, "data"), dict) else "has no data"


def _no_blob(content: Any) -> str:
    try:
        b64decode(text_at(content, "content"))
    except ValueError:
        return "is not the file it should be"
    return "" if text_at(content, "encoding") == "base64" else "is not the file it should be"


def _no_list(content: Any) -> str:
    return "" if isinstance(content, list) else "is not the list it should be"


def _no_comment(content: Any) -> str:
    return "" if number_at(content, "id") else "is not the comment it should be"


def _no_object(content: Any) -> str:
    return "" if isinstance(content, dict) else "is not the object it should be"
