"""A client for the few calls to GitHub's REST and GraphQL APIs that are needed."""

from collections.abc import Iterator
from typing import Any

import requests
from requests.auth import AuthBase

from ragcontract import __version__
from ragcontract.github.context import Token
from ragcontract.text import shorten, visible

API_VERSION = "2022-11-28"
PAGE = 100
TIMEOUT = (5, 20)  # seconds to connect, seconds between two bytes


class GitHubError(Exception):
    """A call that did not work: the status is None where no answer came."""

    def __init__(self, message: str, status: int | None = None) -> None:
        """Keep the status beside the message, which never holds the token."""
        super().__init__(message)
        self.status = status


class _TokenAuth(AuthBase):
    """Sets the token last, so that no .netrc of the image or the workspace takes its place."""

    def __init__(self, token: Token) -> None:
        self._token = token

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["Authorization"] = f"Bearer {self._token.value}"
        return request


class Client:
    """Comments of one repository's pull requests."""

    def __init__(self, session: requests.Session, *, api_url: str, graphql_url: str, token: Token) -> None:
        """Use the session for all calls; redirects are not followed, so the token goes nowhere else."""
        session.auth = _TokenAuth(token)
        session.headers.update(
            {
                "Accept": "application/vnd.github+json",
                "User-Agent": f"rag-contract/{__version__}",
                "X-GitHub-Api-Version": API_VERSION,
            }
        )
        self._session = session
        self._api_url = api_url
        self._graphql_url = graphql_url

    def login(self) -> str:
        """Return who the token acts as. ``GET /user`` is refused for a workflow's token; GraphQL's viewer answers."""
        answer = self._call("POST", self._graphql_url, json={"query": "query { viewer { login } }"}).json()
        try:
            return str(answer["data"]["viewer"]["login"])
        except (KeyError, TypeError) as error:
            raise GitHubError("GitHub did not say who the token belongs to") from error

    def comments(self, repository: str, issue: int) -> Iterator[dict[str, Any]]:
        """Yield all comments of an issue or pull request, over all pages."""
        url: str | None = f"{self._api_url}/repos/{repository}/issues/{issue}/comments?per_page={PAGE}"
        while url:
            response = self._call("GET", url)
            yield from response.json()
            url = response.links.get("next", {}).get("url")

    def create_comment(self, repository: str, issue: int, body: str) -> dict[str, Any]:
        """Post a new comment and return it."""
        return self._comment("POST", f"{self._api_url}/repos/{repository}/issues/{issue}/comments", body)

    def update_comment(self, repository: str, comment_id: int, body: str) -> dict[str, Any]:
        """Replace a comment's body and return the comment."""
        return self._comment("PATCH", f"{self._api_url}/repos/{repository}/issues/comments/{comment_id}", body)

    def _comment(self, method: str, url: str, body: str) -> dict[str, Any]:
        comment: dict[str, Any] = self._call(method, url, json={"body": body}).json()
        return comment

    def _call(self, method: str, url: str, **arguments: Any) -> requests.Response:
        try:
            response = self._session.request(method, url, timeout=TIMEOUT, allow_redirects=False, **arguments)
        except requests.RequestException as error:
            raise GitHubError(f"GitHub could not be reached ({type(error).__name__})") from error
        if response.status_code >= 300:  # noqa: PLR2004 (redirects included)
            raise GitHubError(f"GitHub answered {response.status_code}: {_message(response)}", response.status_code)
        return response


def _message(response: requests.Response) -> str:
    try:
        text = str(response.json()["message"])
    except (ValueError, KeyError, TypeError):
        text = response.reason or "no reason given"
    return shorten(visible(text), 200)
