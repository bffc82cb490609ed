"""A client for the calls to GitHub's REST and GraphQL APIs that the action needs."""

from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import quote, urlsplit

from ragcontract.core import bounds
from ragcontract.github.context import at, number_at, text_at
from ragcontract.github.failure import GitHubError
from ragcontract.github.http import Http

VIEWER = ("data", "viewer", "login")
Json = dict[str, Any]


class Client:
    """Reads the pull requests of one repository, and reads and writes their comments."""

    def __init__(self, http: Http, *, api_url: str, graphql_url: str, repository: str) -> None:
        """Use ``http`` for all calls; ``repository`` is ``owner/name``."""
        self._http = http
        self._api_url = api_url
        self._repository = f"{api_url}/repos/{repository}"
        self._graphql_url = graphql_url

    def login(self) -> str:
        """Return the login of the token's owner. Uses GraphQL, because ``GET /user`` refuses a workflow's token."""
        query = {"query": "query { viewer { login } }"}
        answer = self._http.call("POST", self._graphql_url, body=query, problem_with=_no_viewer)
        return text_at(answer.content, *VIEWER)

    def written_by_viewer(self, node_ids: Sequence[str]) -> set[str]:
        """Return the GraphQL ids of the comments, at most 100, that the token's owner wrote. Asks once."""
        query = "query($ids: [ID!]!) { nodes(ids: $ids) { id ... on IssueComment { viewerDidAuthor } } }"
        body = {"query": query, "variables": {"ids": list(node_ids)}}
        nodes = at(self._http.call("POST", self._graphql_url, body=body, tries=1).content, "data", "nodes")
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
        answer = self._http.call("GET", f"{self._repository}/pulls/{number}", problem_with=_no_object)
        content: Json = answer.content
        return content

    def head_of(self, pull_request: int) -> str:
        """Return the newest commit of a pull request; empty if the answer has none."""
        return text_at(self.pull(pull_request), "head", "sha")

    def activities(self, repository: str, branch: str) -> list[Json]:
        """Return the newest changes of a branch, at most a page; ``repository`` may be another one, as a fork."""
        query = f"ref={quote(f'refs/heads/{branch}', safe='')}&direction=desc&per_page={bounds.PAGE}"
        url = f"{self._api_url}/repos/{repository}/activity?{query}"
        rows = self._http.call("GET", url, problem_with=_no_list).content
        return [row for row in rows if isinstance(row, dict)]

    def pulls_of_commit(self, sha: str) -> Iterator[Json]:
        """Yield the pull requests that contain a commit."""
        return self._pages(f"/commits/{sha}/pulls")

    def open_pulls_of_branch(self, owner: str, branch: str) -> Iterator[Json]:
        """Yield the open pull requests from a branch of ``owner``'s repository."""
        return self._pages("/pulls", f"state=open&head={quote(f'{owner}:{branch}', safe='')}&")

    def files_of(self, pull_request: int) -> Iterator[Json]:
        """Yield the files that a pull request changes, of which GitHub lists 3,000; each page is asked for once."""
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
        self._http.call("DELETE", f"{self._repository}/issues/comments/{comment_id}", tries=1)

    def _write(self, method: str, url: str, body: str) -> Json:
        answer = self._http.call(method, url, body={"body": body}, problem_with=_no_comment, repeatable=False)
        content: Json = answer.content
        return content

    def _pages(self, path: str, query: str = "", tries: int = bounds.TRIES) -> Iterator[Json]:
        url = f"{self._repository}{path}?{query}per_page={bounds.PAGE}"
        seen: set[str] = set()
        while url and url not in seen:
            seen.add(url)
            answer = self._http.call("GET", url, problem_with=_no_list, tries=tries)
            yield from (row for row in answer.content if isinstance(row, dict))
            url = answer.next_page
            if url and urlsplit(url)[:2] != urlsplit(self._repository)[:2]:
                raise GitHubError("GitHub's next page is on another host")


def _no_viewer(content: Any) -> str:
    return "" if text_at(content, *VIEWER) else "does not say who the token belongs to"


def _no_list(content: Any) -> str:
    return "" if isinstance(content, list) else "is not the list it should be"


def _no_comment(content: Any) -> str:
    return "" if number_at(content, "id") else "is not the comment it should be"


def _no_object(content: Any) -> str:
    return "" if isinstance(content, dict) else "is not the object it should be"
