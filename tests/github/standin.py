"""A stand-in for GitHub's API on this machine: it keeps comments, serves them in pages, and knows who may do what."""

import json
import re
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

TOKEN = "ghs_" + "standin0" * 4
ACTIONS_BOT = "github-actions[bot]"
MAX_BODY = 65_536
Answer = tuple[int, Any]


class GitHub:
    """One repository, ``octo/app``. Use it as a context manager; ``url`` is its API's address."""

    def __init__(self, *, login: str = ACTIONS_BOT) -> None:
        self.login = login
        self.comments: list[dict[str, Any]] = []
        self.requests: list[str] = []
        self.refuse: Callable[[str, str], Answer | None] = lambda _method, _path: None
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def add_comment(self, body: str, *, login: str, issue: int = 7) -> dict[str, Any]:
        number = len(self.comments) + 1
        url = f"https://github.example/octo/app/pull/{issue}#issuecomment-{number}"
        comment = {"id": number, "issue": issue, "body": body, "user": {"login": login}, "html_url": url}
        self.comments.append(comment)
        return comment

    def bodies(self) -> list[str]:
        return [comment["body"] for comment in self.comments]

    def answer(self, method: str, target: str, body: Any) -> Answer:
        path, query = urlsplit(target).path, parse_qs(urlsplit(target).query)
        if refused := self.refuse(method, path):
            return refused
        if (method, path) == ("POST", "/graphql"):
            return (200, {"data": {"viewer": {"login": self.login}}}) if "viewer" in body["query"] else (400, {})
        if match := re.fullmatch(r"/repos/octo/app/issues/(\d+)/comments", path):
            issue = int(match[1])
            if method == "GET":
                return 200, self._page(issue, query)
            if method == "POST":
                return self._valid(body) or (201, self.add_comment(body["body"], login=self.login, issue=issue))
        if (match := re.fullmatch(r"/repos/octo/app/issues/comments/(\d+)", path)) and method == "PATCH":
            comment = self.comments[int(match[1]) - 1]
            if comment["user"]["login"] != self.login:
                return 403, {"message": "Resource not accessible by integration"}
            if invalid := self._valid(body):
                return invalid
            comment["body"] = body["body"]
            return 200, comment
        return 404, {"message": "Not Found"}

    def _page(self, issue: int, query: dict[str, list[str]]) -> list[dict[str, Any]]:
        size, page = int(query.get("per_page", ["30"])[0]), int(query.get("page", ["1"])[0])
        assert size <= 100
        found = [comment for comment in self.comments if comment["issue"] == issue]
        return found[(page - 1) * size : page * size]

    @staticmethod
    def _valid(body: Any) -> Answer | None:
        if set(body) != {"body"} or not isinstance(body["body"], str) or not 0 < len(body["body"]) <= MAX_BODY:
            return 422, {"message": "Validation Failed"}
        return None

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        github = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_any(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                body = json.loads(self.rfile.read(length) or b"null")
                github.requests.append(f"{self.command} {self.path}")
                if self.headers["Authorization"] != f"Bearer {TOKEN}":
                    status, answer = 401, {"message": "Bad credentials"}
                elif not self.headers["User-Agent"].startswith("rag-contract/"):
                    status, answer = 403, {"message": "Request forbidden by administrative rules"}
                else:
                    status, answer = github.answer(self.command, self.path, body)
                self.reply(status, answer)

            def reply(self, status: int, answer: Any) -> None:
                data = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                if isinstance(answer, list) and len(answer) == 100:
                    page = int(parse_qs(urlsplit(self.path).query).get("page", ["1"])[0]) + 1
                    path = urlsplit(self.path).path
                    self.send_header("Link", f'<{github.url}{path}?per_page=100&page={page}>; rel="next"')
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do_PATCH = handle_any  # noqa: N815 (http.server's names)

            def log_message(self, *_: Any) -> None:
                """Keep the test's output clean."""

        return Handler
