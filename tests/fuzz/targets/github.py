"""A session that answers as GitHub does, and as ``answers.json`` says where that has something else to say.

It runs in the process, a thousand times as fast as the stand-in over HTTP, and remembers what no client may do.
"""

import json
from typing import Any

import requests
from requests.structures import CaseInsensitiveDict

API = "https://api.github.com"
MARKER = "<!-- rag-contract name="
MOST_CALLS = 4_000  # within the 3,600 seconds that github-timeout allows, of which each call here takes one
LONGEST_BODY = 65_536


class Session:
    """What the action uses of ``requests.Session``."""

    def __init__(self, script: Any) -> None:
        """Take the state and the answers from a decoded ``answers.json``, whatever is in it."""
        script = script if isinstance(script, dict) else {}
        self.auth: Any = None
        self.headers: dict[str, str] = {}
        self.clock = 0.0
        self.faults: list[str] = []
        self._login = script.get("login")
        comments = [one for one in _list(script.get("comments")) if isinstance(one, dict)]
        self._comments = list({str(one.get("id")): one for one in comments}.values())
        self._pulls = _list(script.get("pulls"))
        self._events = _list(script.get("events"))
        self._activities = _list(script.get("activities"))
        self._answers = _list(script.get("answers"))
        self._calls = 0
        self._made = 10**6
        self._has_lied = False

    def request(
        self, method: str, url: str, json: Any = None, timeout: Any = None, *, allow_redirects: bool = True
    ) -> requests.Response:
        """Answer one request."""
        self._calls += 1
        self.clock += 1
        if self._calls > MOST_CALLS:
            self.faults.append("requests without end")
            raise requests.ConnectionError
        if not url.startswith(f"{API}/") or allow_redirects or timeout is None:
            self.faults.append("a request to another host, with redirects, or without a timeout")
        self._see_body(json)
        scripted = self._answers.pop(0) if self._answers else None
        if isinstance(scripted, dict):
            self._has_lied = True
            return _scripted(scripted)
        return self._truth(method, url.removeprefix(API).partition("?")[0].strip("/").split("/"), json)

    def _see_body(self, body: Any) -> None:
        if isinstance(body, dict) and "body" in body:
            text = str(body["body"])
            if len(text.encode(errors="surrogatepass")) > LONGEST_BODY:
                self.faults.append("a comment over GitHub's limit")
            if not text.startswith(MARKER):
                self.faults.append("a comment without a marker")

    def _truth(self, method: str, path: list[str], body: Any) -> requests.Response:
        if path == ["graphql"]:
            return response(200, {"data": {"viewer": {"login": self._login}}})
        if method == "GET" and path[-1] == "comments":
            return response(200, self._comments)
        lists = {"pulls": self._pulls, "events": self._events, "activity": self._activities}
        if method == "GET" and path[-1] in lists:
            return response(200, lists[path[-1]])
        if method == "GET":
            number = next((one for one in self._pulls if isinstance(one, dict)), None)
            return response(200, number) if number else response(404, {"message": "Not Found"})
        if method == "POST":
            self._made += 1
            made = {"id": self._made, "user": {"login": self._login}, "html_url": f"{API}/c/{self._made}", **body}
            self._comments.append(made)
            return response(201, made)
        return self._change(method, path[-1], body)

    def _change(self, method: str, comment_id: str, body: Any) -> requests.Response:
        found = next((one for one in self._comments if str(one.get("id")) == comment_id), None)
        if found is None:
            return response(404, {"message": "Not Found"})
        user = found.get("user")
        is_own = isinstance(user, dict) and user.get("login") == self._login
        if not is_own and not self._has_lied:  # of an answer that is not true, a client can only believe all
            self.faults.append(f"{method} of a foreign comment")
        if not str(found.get("body")).startswith(MARKER) and not self._has_lied:
            self.faults.append(f"{method} of a comment that is no report")
        if method == "DELETE":
            self._comments.remove(found)
            return response(204, None)
        return response(200, found | (body or {}))


def _list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list) else []


def _scripted(script: dict[str, Any]) -> requests.Response:
    if "raise" in script:
        error = getattr(requests.exceptions, str(script["raise"]), None)
        raise error if isinstance(error, type) and issubclass(error, Exception) else requests.ConnectionError
    status = script.get("status")
    headers = script.get("headers")
    text = script["text"] if isinstance(script.get("text"), str) else json.dumps(script.get("body"))
    return response(status if isinstance(status, int) else 200, text, headers if isinstance(headers, dict) else {})


def response(status: int, body: Any, headers: dict[str, Any] | None = None) -> requests.Response:
    """Return an answer; text is sent as it is, everything else as JSON."""
    made = requests.Response()
    made.status_code = status
    made._content = (body if isinstance(body, str) else json.dumps(body)).encode(errors="surrogatepass")
    made.headers = CaseInsensitiveDict({str(name): str(value) for name, value in (headers or {}).items()})
    made.encoding = "utf-8"
    return made
