"""A stand-in for GitHub's API on this machine.

It keeps comments, serves them in pages, knows who may do what, and refuses every request that GitHub's own description
of its API does not allow. ``faults`` script what goes wrong, and when.
"""

import json
import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from types import TracebackType
from typing import Any, Literal
from urllib.parse import parse_qs, urlsplit

from msgspec import Struct

from tests.github.graphql_schema import RefusedError, execute
from tests.github.openapi import Description, description
from tests.github.repository import Repository
from tests.local_server import LocalServer, QuietHandler
from tests.needs import here

TOKEN = "ghs_" + "standin0" * 4
ACTIONS_BOT = "github-actions[bot]"
MAX_BODY = 65_536
NOW = "2026-01-02T00:00:00Z"
Answer = tuple[int, Any]
Kind = Literal["answer", "drop", "do and drop", "half", "hang", "drip", "not json"]


class Fault(Struct, frozen=True, kw_only=True):
    """Something that goes wrong with calls of ``method`` to a path that matches, ``times`` times."""

    method: str = ".*"
    path: str = ".*"
    times: int = 10**6
    kind: Kind = "answer"
    status: int = 500
    message: str = "something is wrong"
    headers: dict[str, str] = {}
    answer: Any = None  # instead of an object with the message
    body: str = ""  # a pattern that the request's body, as JSON, must contain
    every: int = 1  # it goes wrong with each of so many matching calls only, the last of them first


class Sent(Struct, frozen=True, kw_only=True):
    """A request as it came."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any


class GitHub(LocalServer):
    """One repository, ``octo/app``. Use it as a context manager; ``url`` is its API's address."""

    def __init__(self, *, login: str = ACTIONS_BOT, enterprise: bool = False, may_write: bool = True) -> None:
        self.login = login
        self.viewer_login = login  # as GraphQL writes it
        self.knows_authors = True  # whether GraphQL says who wrote a comment
        self.may_write = may_write
        self.comments: list[dict[str, Any]] = []
        self._made = 0
        self.pulls: list[dict[str, Any]] = []
        self.events: list[dict[str, Any]] = []  # of pull requests, whose number is in their address
        self.activities: dict[str, list[dict[str, Any]]] = {}  # by repository, newest first
        self.repository = Repository()  # its git data
        self.files: list[str] = []  # what each pull request changes
        self.renamed: dict[str, str] = {}  # the earlier names of some of them
        self.added: list[str] = []  # those of them that are new
        self.requests: list[str] = []
        self.refused: list[str] = []
        self.faults: list[Fault] = []
        self.sent: list[Sent] = []
        self.meanwhile: Callable[[Sent], object] = lambda _sent: None  # what others do before an answer is made
        self.most_at_once = 0
        self._at_once = 0
        self._lock = threading.Lock()
        self.turn = threading.Lock()  # one request changes what there is at a time
        self._uses: dict[int, int] = {}
        self._prefix = "/api/v3" if enterprise else ""
        self._graphql = "/api/graphql" if enterprise else "/graphql"
        self._description: Description = description("enterprise" if enterprise else "github.com")
        super().__init__(self._handler())

    @property
    def url(self) -> str:
        return self.origin + self._prefix

    @property
    def graphql_url(self) -> str:
        return self.origin + self._graphql

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        assert not self.refused, self.refused

    def add_comment(self, body: str, *, login: str, issue: int = 7) -> dict[str, Any]:
        self._made += 1
        number = self._made
        api = f"https://api.github.com/repos/octo/app/issues/comments/{number}"
        comment = {
            "id": number,
            "node_id": f"IC_{number}",
            "url": api,
            "html_url": f"https://github.com/octo/app/pull/{issue}#issuecomment-{number}",
            "issue_url": f"https://api.github.com/repos/octo/app/issues/{issue}",
            "body": body,
            "user": _user(login),
            "created_at": NOW,
            "updated_at": NOW,
            "author_association": "NONE",
        }
        self.comments.append(comment)
        return comment

    def add_pull(
        self,
        number: int,
        *,
        sha: str,
        head: str = "octo/app",
        branch: str = "topic",
        base: str = "main",
        state: str = "open",
    ) -> None:
        """Add a pull request in the few fields that are read; the description's full object has hundreds."""
        owner = head.partition("/")[0]
        pull = {"number": number, "state": state, "head": {"sha": sha, "ref": branch, "repo": {"full_name": head}}}
        self.pulls.append(pull | {"base": {"ref": base}, "label": f"{owner}:{branch}", "labels": []})

    def push(self, sha: str, *, at: str, number: int = 7, activity: str = "push") -> None:
        """Let somebody push a commit to the branch of a pull request."""
        head = next(pull["head"] for pull in self.pulls if pull["number"] == number)
        done = {"before": head["sha"], "after": sha, "ref": f"refs/heads/{head['ref']}", "timestamp": at}
        ids = {"id": len(self.activities) + 1, "node_id": "PSH_1", "activity_type": activity, "actor": _user("ann")}
        self.activities.setdefault(head["repo"]["full_name"], []).insert(0, ids | done)
        head["sha"] = sha
        if activity == "force_push":
            self._add_event(number, "head_ref_force_pushed", "ann", at)

    def change_base(self, branch: str, *, at: str, number: int = 7, automatic: bool = False) -> None:
        """Let somebody choose another base branch for a pull request, or GitHub, once the old one is deleted."""
        next(pull["base"] for pull in self.pulls if pull["number"] == number)["ref"] = branch
        self._add_event(number, "automatic_base_change_succeeded" if automatic else "base_ref_changed", "ann", at)

    def set_label(self, name: str, *, at: str, by: str = "ann", number: int = 7, **fields: Any) -> None:
        """Let somebody set a label on a pull request; ``fields`` replace those of the event."""
        next(pull["labels"] for pull in self.pulls if pull["number"] == number).append({"name": name})
        self._add_event(number, "labeled", by, at, label={"name": name, "color": "0e8a16"}, **fields)

    def remove_label(self, name: str, *, at: str, by: str = "ann", number: int = 7) -> None:
        """Let somebody remove a label from a pull request."""
        next(pull["labels"] for pull in self.pulls if pull["number"] == number).remove({"name": name})
        self._add_event(number, "unlabeled", by, at, label={"name": name, "color": "0e8a16"})

    def _add_event(self, number: int, event: str, login: str, when: str, **fields: Any) -> None:
        url = f"https://api.github.com/repos/octo/app/issues/{number}/events/{len(self.events) + 1}"
        ids = {"id": len(self.events) + 1, "node_id": "EV_1", "url": url, "event": event}
        rest = {"commit_id": None, "commit_url": None, "performed_via_github_app": None}
        self.events.append(ids | rest | {"actor": _user(login), "created_at": when} | fields)

    @contextmanager
    def one_more(self) -> Iterator[None]:
        """Count how many requests are answered at the same time."""
        with self._lock:
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            yield
        finally:
            with self._lock:
                self._at_once -= 1

    def writes(self) -> list[str]:
        """Return the requests that would change something."""
        return [request for request in self.requests if "graphql" not in request and not request.startswith("GET")]

    def bodies(self) -> list[str]:
        return [comment["body"] for comment in self.comments]

    def fault(self, sent: Sent, *, done: bool) -> Fault | None:
        """Return what goes wrong with a request before, or once it is ``done``."""
        with self._lock:
            for number, fault in enumerate(self.faults):
                used = self._uses.get(number, 0)
                if (
                    (fault.kind == "do and drop") == done
                    and used < fault.times * fault.every
                    and re.fullmatch(fault.method, sent.method)
                    and re.search(fault.path, sent.path)
                    and (not fault.body or re.search(fault.body, json.dumps(sent.body)))
                ):
                    self._uses[number] = used + 1
                    if (used + 1) % fault.every == 0:
                        return fault
            return None

    def answer(self, method: str, target: str, body: Any) -> Answer:
        if (method, target) == ("POST", self._graphql):
            return self._query(body)
        if not target.startswith(self._prefix):
            return 404, {"message": "Not Found"}
        target = target.removeprefix(self._prefix)
        if refused := self._description.refuses(method, target, body):
            self.refused.append(f"{method} {target}: {refused}")
            return 422, {"message": "Validation Failed"}
        status, found = self._do(method, urlsplit(target).path, parse_qs(urlsplit(target).query), body)
        if re.search(r"/(comments|events|activity|git|statuses)\b|/commits\?", target):
            mismatch = self._description.mismatch_of_answer(method, target, status, found)
            assert not mismatch or status in {403, 404, 422}, mismatch
        return status, found

    def _query(self, body: Any) -> Answer:
        if not here("npm"):
            return self._query_without_schema(body)
        executed = execute(
            body, {**self.repository.roots(), "viewer": {"login": self.viewer_login}, "nodes": self._nodes}
        )
        if executed.invalid:
            self.refused.append(executed.invalid)
        return 200, executed.answer

    def _nodes(self, _info: Any, ids: list[str]) -> list[Any]:
        authors = {comment["node_id"]: comment["user"]["login"] for comment in self.comments}
        if not self.knows_authors:
            raise RefusedError("", "Field 'viewerDidAuthor' doesn't exist on type 'IssueComment'")
        return [
            {"__typename": "IssueComment", "id": one, "viewerDidAuthor": authors[one] == self.login}
            if one in authors
            else None
            for one in ids
        ]

    def _query_without_schema(self, body: Any) -> Answer:
        if "viewerDidAuthor" not in body["query"]:
            known = "viewer" in body["query"]
            return (200, {"data": {"viewer": {"login": self.viewer_login}}}) if known else (400, {})
        if not self.knows_authors:
            return 200, {"errors": [{"message": "Field 'viewerDidAuthor' doesn't exist on type 'IssueComment'"}]}
        authors = {comment["node_id"]: comment["user"]["login"] for comment in self.comments}
        ids = body["variables"]["ids"]
        nodes = [{"id": one, "viewerDidAuthor": authors[one] == self.login} if one in authors else None for one in ids]
        return 200, {"data": {"nodes": nodes}}

    def _do(self, method: str, path: str, query: dict[str, list[str]], body: Any) -> Answer:
        routes: list[tuple[str, Callable[[str], Answer]]] = [
            (r"/issues/(\d+)/comments", lambda issue: self._comments(method, int(issue), query, body)),
            (r"/issues/comments/(\d+)", lambda number: self._comment(method, int(number), body)),
            (r"/issues/(\d+)/events", lambda issue: (200, _page(self._events_of(issue), query))),
            (r"/commits/(\w+)/pulls", lambda sha: (200, _page(self._pulls(sha=sha), query))),
            (r"/pulls/\d+/files()", lambda _: (200, _page(list(map(self._file, self.files)), query))),
            (r"/pulls/(\d+)", lambda number: _first(self._pulls(number=int(number)))),
            (r"/pulls()", lambda _: (200, _page(self._pulls(label=query["head"][0], state=query["state"][0]), query))),
        ]
        if (of_git := self.repository.rest(method, path, query, body)) is not None:
            return of_git
        for route, answer in routes:
            if match := re.fullmatch(f"/repos/octo/app{route}", path):
                return answer(match[1])
        if match := re.fullmatch("/repos/([^/]+/[^/]+)/activity", path):
            return self._activity(match[1], query["ref"][0], query)
        return 404, {"message": "Not Found"}

    def _file(self, name: str) -> dict[str, str]:
        if name in self.renamed:
            return {"filename": name, "status": "renamed", "previous_filename": self.renamed[name]}
        return {"filename": name, "status": "added" if name in self.added else "modified"}

    def _events_of(self, issue: str) -> list[dict[str, Any]]:
        return [event for event in self.events if f"/issues/{issue}/events/" in event["url"]]

    def _activity(self, repository: str, ref: str, query: dict[str, list[str]]) -> Answer:
        if repository not in self.activities:
            return 404, {"message": "Not Found"}
        return 200, _page([one for one in self.activities[repository] if one["ref"] == ref], query)

    def _comments(self, method: str, issue: int, query: dict[str, list[str]], body: Any) -> Answer:
        if method == "GET":
            found = [comment for comment in self.comments if comment["issue_url"].endswith(f"/{issue}")]
            return 200, _page(found, query)
        return self._unwritable(body) or (201, self.add_comment(body["body"], login=self.login, issue=issue))

    def _comment(self, method: str, number: int, body: Any) -> Answer:
        status, comment = _first([comment for comment in self.comments if comment["id"] == number])
        if status != 200:
            return status, comment
        if refused := self._unwritable(body, comment["user"]["login"]):
            return refused
        if method == "DELETE":
            self.comments.remove(comment)
            return 204, None
        comment["body"] = body["body"]
        return 200, comment

    def _pulls(self, *, sha: str | None = None, **fields: Any) -> list[dict[str, Any]]:
        return [
            pull
            for pull in self.pulls
            if sha in {None, pull["head"]["sha"]} and all(pull[name] == value for name, value in fields.items())
        ]

    def _unwritable(self, body: Any, author: str | None = None) -> Answer | None:
        if not self.may_write or author not in {None, self.login}:
            return 403, {"message": "Resource not accessible by integration"}
        if body is not None and not 0 < len(body["body"]) <= MAX_BODY:
            return 422, {"message": "Validation Failed"}
        return None

    def _handler(self) -> type[BaseHTTPRequestHandler]:  # noqa: C901 (one small method a kind of fault)
        github = self

        class Handler(QuietHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True  # or each answer waits 40 ms for the other side's acknowledgement

            def handle_any(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                body = json.loads(self.rfile.read(length)) if length else None
                github.requests.append(f"{self.command} {self.path}")
                sent = Sent(method=self.command, path=self.path, headers=dict(self.headers.items()), body=body)
                github.sent.append(sent)
                with github.one_more():
                    self.take(sent)

            def take(self, sent: Sent) -> None:
                github.meanwhile(sent)
                if fault := github.fault(sent, done=False):
                    self.go_wrong(fault)
                    return
                with github.turn:
                    answer = self.checked(sent.body)
                if github.fault(sent, done=True):
                    self.drop()
                else:
                    self.reply(*answer)

            def checked(self, body: Any) -> Answer:
                if self.headers["Authorization"] != f"Bearer {TOKEN}":
                    return 401, {"message": "Bad credentials"}
                if not self.headers["User-Agent"].startswith("rag-contract/"):
                    return 403, {"message": "Request forbidden by administrative rules"}
                if self.headers["X-GitHub-Api-Version"] != "2022-11-28":
                    github.refused.append("no API version")
                return github.answer(self.command, self.path, body)

            def go_wrong(self, fault: Fault) -> None:
                if fault.kind == "answer":
                    answer = {"message": fault.message} if fault.answer is None else fault.answer
                    self.reply(fault.status, answer, fault.headers)
                elif fault.kind == "not json":
                    self.send("<html>Whoa there!</html>", 200, {})
                elif fault.kind == "hang":
                    github.stop.wait(30)
                    self.drop()
                elif fault.kind == "half":
                    self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 9000\r\n\r\n[{")
                    self.drop()
                elif fault.kind == "drip":
                    self.wfile.write(b"HTTP/1.1 200 OK\r\n")
                    for number in range(300):
                        if github.stop.wait(0.1):
                            break
                        self.wfile.write(f"X-Slow-{number}: 1\r\n".encode())
                else:
                    self.drop()

            def drop(self) -> None:
                self.close_connection = True
                self.wfile.flush()
                self.connection.shutdown(socket.SHUT_RDWR)

            def reply(self, status: int, answer: Any, headers: dict[str, str] | None = None) -> None:
                extra = dict(headers or {})
                if isinstance(answer, list) and len(answer) == 100:
                    page = int(parse_qs(urlsplit(self.path).query).get("page", ["1"])[0]) + 1
                    base = re.sub(r"[?&]page=\d+", "", self.path)
                    extra["Link"] = f'<http://{self.headers["Host"]}{base}&page={page}>; rel="next"'
                self.send(json.dumps(answer), status, extra)

            def send(self, text: str, status: int, headers: dict[str, str]) -> None:
                data = b"" if status == 204 else text.encode()
                self.send_response(status)
                for name, value in {"Content-Length": str(len(data)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do_PATCH = do_DELETE = handle_any  # noqa: N815 (http.server's names)

        return Handler


def _first(found: list[dict[str, Any]]) -> Answer:
    return (200, found[0]) if found else (404, {"message": "Not Found"})


def _page(rows: list[dict[str, Any]], query: dict[str, list[str]]) -> list[dict[str, Any]]:
    size, page = int(query.get("per_page", ["30"])[0]), int(query.get("page", ["1"])[0])
    return rows[(page - 1) * size : page * size]


def _user(login: str) -> dict[str, Any]:
    api = f"https://api.github.com/users/{login}"
    links = (
        "followers",
        "following",
        "gists",
        "starred",
        "subscriptions",
        "organizations",
        "repos",
        "events",
        "received_events",
    )
    return {
        "login": login,
        "id": 1,
        "node_id": "U_1",
        "avatar_url": "https://avatars.githubusercontent.com/u/1",
        "gravatar_id": "",
        "url": api,
        "html_url": f"https://github.com/{login}",
        "type": "Bot" if login.endswith("[bot]") else "User",
        "site_admin": False,
        **{f"{name}_url": f"{api}/{name}" for name in links},
    }
