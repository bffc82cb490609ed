"""The connection to GitHub, opened where it is needed: a job that asks and posts nothing does not load requests."""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from ragcontract.github.context import Context
from ragcontract.github.failure import GitHubError
from ragcontract.http.timing import Timing

if TYPE_CHECKING:
    import requests

    from ragcontract.github.client import Client


def connect(context: Context, session: "Callable[[], requests.Session]", timing: Timing, *, seconds: float) -> "Client":
    """Return a client whose calls take at most ``seconds`` together; raises :class:`GitHubError`.

    A token that is not a valid header value is refused: an error that quotes the header would reveal it.
    """
    if not context.token:
        raise GitHubError("there is no github-token")
    if not re.fullmatch("[!-~]+", context.token.value):
        raise GitHubError("the input github-token has a space or a character in it that no token has")
    from ragcontract.github.client import Client
    from ragcontract.github.http import Http

    http = Http(session(), context.token, seconds=seconds, timing=timing)
    return Client(http, api_url=context.api_url, graphql_url=context.graphql_url, repository=context.repository)
