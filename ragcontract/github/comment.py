"""The one comment that a contract has on a pull request."""

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from ragcontract.github.client import Client

MAX_BODY_BYTES = 65_000  # GitHub takes 65,536 characters
ROW_LIMITS = (100, 50, 20, 10, 5, 2, 0)

Render = Callable[[int], str]


def marker(name: str) -> str:
    """Return the hidden first line by which a contract finds its own comment again."""
    return f"<!-- rag-contract name={quote(name, safe='')} -->"


def fitting(render: Render, max_bytes: int) -> str:
    """Render with as many rows a table as fit; ``render`` takes the number of rows."""
    bodies = (render(rows) for rows in ROW_LIMITS)
    return next((body for body in bodies if len(body.encode()) <= max_bytes), render(0))


def post(client: Client, repository: str, pull_request: int, *, name: str, render: Render, create: bool) -> str | None:
    """Update the contract's comment, or create it, and return its address; None where ``create`` is off and none is.

    Its own comment is one that begins with the contract's marker *and* is by the token's owner: anybody can write the
    marker. Raises :class:`~ragcontract.github.client.GitHubError`.
    """
    head = marker(name) + "\n"
    body = head + fitting(render, MAX_BODY_BYTES - len(head.encode()))
    own = _own(client, repository, pull_request, head.strip())
    if own is not None:
        answer = client.update_comment(repository, int(own["id"]), body)
    elif create:
        answer = client.create_comment(repository, pull_request, body)
    else:
        return None
    return str(answer.get("html_url", ""))


def _own(client: Client, repository: str, pull_request: int, head: str) -> dict[str, Any] | None:
    login = client.login()
    for comment in client.comments(repository, pull_request):
        user = comment.get("user") or {}
        if str(comment.get("body") or "").startswith(head) and user.get("login") == login:
            return comment
    return None
