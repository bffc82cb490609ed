"""Answers to requests that fail: a page for a browser, and a problem of RFC 9457 for a program."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from litestar import Request, Response
from litestar.types import Scope

from ragcontract.core import bounds
from ragcontract.core.safe_text import encodable, shorten
from ragcontract.service.web import problem_details
from ragcontract.service.web.authentication import header
from ragcontract.service.web.pages.page_frame import environment
from ragcontract.service.web.parameters import API
from ragcontract.service.web.problem_details import problem_of

HTML = "text/html"
ADVICE: Mapping[int, str] = {  # what a person can do
    401: "Log in first.",
    403: "If you need this for your work, ask an administrator for another role.",
    404: "The address may be mistyped, or what was there was deleted, or you may not see it.",
    405: "Open the page from a link of the service.",
    413: "Send less at once.",
    429: "The service answers again in a few seconds. Wait, then load the page again.",
    500: "Load the page again. If that does not help, ask an administrator to look for this time in the log.",
    503: "Load the page again in a few seconds. If that does not help, ask an administrator to look at the log.",
}


def wants_page(scope: Scope) -> bool:
    """Return whether a request is that of a browser for a page."""
    return not scope["path"].startswith(f"{API}/") and HTML in (header(scope, b"accept") or "")


def answer(request: "Request[Any, Any, Any]", error: Exception) -> "Response[bytes]":
    """Return the answer to a request that failed."""
    if not wants_page(request.scope):
        return problem_details.answer(request, error)
    failed = problem_of(request, error)
    page = environment().get_template("problem.html")
    content = page.render(
        asker=request.scope.get("user"),
        project=None,
        here="",
        advice=ADVICE.get(failed.status, ""),
        title=HTTPStatus(failed.status).phrase,
        detail=shorten(encodable(failed.detail), bounds.MESSAGE),
        problems=[shorten(encodable(text), bounds.MESSAGE) for text in failed.problems[: bounds.PROBLEMS]],
    )
    return Response(content.encode(), status_code=failed.status, media_type=HTML, headers=failed.headers)
