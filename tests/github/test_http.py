"""HTTP as GitHub asks for it: when to wait, when to give up, and where the token never goes."""

import io
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Any

import pytest
import requests

from ragcontract.core import bounds
from ragcontract.github.context import GitHubError, Token, within
from ragcontract.github.http import Client, GitHubAnswer, Http
from ragcontract.net.pacing import Timing
from tests.github.standin import TOKEN, Fault, GitHub
from tests.local_server import LocalServer, QuietHandler

NOW = 1_800_000_000.0


class Calls:
    """A client whose waiting takes no time but counts."""

    def __init__(self, github: GitHub, *, seconds: float = 150, token: str = TOKEN) -> None:
        self.waits: list[float] = []
        timing = Timing(monotonic=lambda: sum(self.waits), now=lambda: NOW + sum(self.waits), sleep=self.waits.append)
        self.http = Http(requests.Session(), Token(token), seconds=seconds, timing=timing)
        self.url = github.url
        self.client = Client(self.http, api_url=github.url, graphql_url=github.graphql_url, repository="octo/app")

    def get(self) -> GitHubAnswer:
        return self.http.call("GET", f"{self.url}/repos/octo/app/issues/7/comments")

    def fails(self) -> GitHubError:
        with pytest.raises(GitHubError) as raised:
            self.get()
        return raised.value


def once(**fault: Any) -> list[Fault]:
    return [Fault(method="GET", times=1, **fault)]


@pytest.mark.parametrize("status", [403, 429, 503])
def test_it_waits_as_long_as_retry_after_says(github: GitHub, status: int) -> None:
    github.faults = once(status=status, headers={"Retry-After": "7"})
    calls = Calls(github)
    assert calls.get().content == []
    assert calls.waits == [7]


@pytest.mark.parametrize("status", [403, 429])
def test_with_no_request_left_it_waits_for_the_reset(github: GitHub, status: int) -> None:
    headers = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(int(NOW) + 42)}
    github.faults = once(status=status, headers=headers)
    calls = Calls(github)
    assert calls.get().content == []
    assert calls.waits == [43]


def test_retry_after_goes_before_the_reset(github: GitHub) -> None:
    headers = {"Retry-After": "3", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(int(NOW) + 42)}
    github.faults = once(status=403, headers=headers)
    calls = Calls(github)
    calls.get()
    assert calls.waits == [3]


def test_a_reset_that_is_past_is_tried_at_once(github: GitHub) -> None:
    github.faults = once(status=403, headers={"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "5"})
    calls = Calls(github)
    calls.get()
    assert calls.waits == [1]


def test_a_reset_does_not_matter_while_requests_remain(github: GitHub) -> None:
    headers = {"X-RateLimit-Remaining": "9", "X-RateLimit-Reset": str(int(NOW) + 42)}
    github.faults = once(status=403, headers=headers)
    calls = Calls(github)
    assert calls.fails().status == 403
    assert calls.waits == []


SECONDARY = "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."


@pytest.mark.parametrize("fault", [{"status": 403, "message": SECONDARY}, {"status": 429}])
def test_a_secondary_limit_is_waited_out_for_a_minute_and_then_for_longer(
    github: GitHub, fault: dict[str, Any]
) -> None:
    github.faults = [Fault(times=2, **fault)]
    calls = Calls(github, seconds=600)
    assert calls.get().content == []
    assert calls.waits == [60, 120]


@pytest.mark.parametrize(
    "headers", [{}, {"Retry-After": "60"}, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(int(NOW) + 3600)}]
)
def test_a_wait_beyond_the_deadline_is_given_up_at_once(github: GitHub, headers: dict[str, str]) -> None:
    github.faults = [Fault(status=403, message=SECONDARY, headers=headers)]
    calls = Calls(github, seconds=30)
    error = calls.fails()
    assert calls.waits == []
    assert error.status == 403
    assert str(error).startswith("GitHub answered 403: You have exceeded a secondary rate limit.")
    assert "the next try would come after the 30 seconds that github-timeout allows" in str(error)


@pytest.mark.parametrize("value", ["soon", "nan", "inf", "-5", "", "Wed, 21 Oct 2026 07:28:00 GMT"])
def test_a_wait_that_is_no_number_of_seconds_harms_nothing(github: GitHub, value: str) -> None:
    github.faults = once(status=429, headers={"Retry-After": value, "X-RateLimit-Remaining": "0"})
    calls = Calls(github)
    assert calls.get().content == []
    assert calls.waits == [60]


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 422, 301, 302, 307])
def test_an_answer_that_will_not_change_is_not_asked_for_again(github: GitHub, status: int) -> None:
    github.faults = [Fault(status=status, message="no")]
    calls = Calls(github)
    error = calls.fails()
    assert (error.status, str(error), error.maybe_done) == (status, f"GitHub answered {status}: no", False)
    assert len(github.requests) == 1


@pytest.mark.parametrize(
    "fault", [{"status": 500}, {"status": 502}, {"status": 503}, {"status": 504}, {"kind": "drop"}, {"kind": "half"}]
)
def test_what_broke_on_the_way_is_tried_again_after_growing_waits(github: GitHub, fault: dict[str, Any]) -> None:
    github.faults = [Fault(times=4, **fault)]
    calls = Calls(github)
    assert calls.get().content == []
    longest = [1, 2, 4, 8]
    assert all(most / 2 <= wait <= most for wait, most in zip(calls.waits, longest, strict=True))


def test_waits_are_not_all_of_the_same_length(github: GitHub) -> None:
    waits = set()
    for _ in range(3):
        github.faults = [*github.faults, *once(status=500)]
        calls = Calls(github)
        calls.get()
        waits |= set(calls.waits)
    assert len(waits) > 1


def test_it_gives_up_after_some_tries(github: GitHub) -> None:
    github.faults = [Fault(status=500)]
    error = Calls(github).fails()
    assert error.status == 500
    assert len(github.requests) == bounds.TRIES


@pytest.mark.parametrize("fault", [{"status": 502}, {"kind": "drop"}, {"kind": "half"}, {"kind": "do and drop"}])
def test_a_post_that_may_have_been_received_is_not_sent_again_but_waited_for(
    github: GitHub, fault: dict[str, Any]
) -> None:
    github.faults = [Fault(path="^/repos", **fault)]
    calls = Calls(github)
    with pytest.raises(GitHubError) as raised:
        calls.client.create_comment(7, "hello")
    assert raised.value.maybe_done
    assert len(github.writes()) == 1
    assert len(calls.waits) == 1


def test_a_post_that_was_limited_was_not_carried_out_and_is_left_after_the_wait_to_look_first(github: GitHub) -> None:
    github.faults = [Fault(method="POST", times=1, status=403, headers={"Retry-After": "1"})]
    calls = Calls(github)
    with pytest.raises(GitHubError, match="403") as raised:
        calls.client.create_comment(7, "hello")
    assert (raised.value.try_again, raised.value.maybe_done, raised.value.denied) == (True, False, False)
    assert calls.waits == [1.0]


def test_a_connection_that_was_refused_was_no_post() -> None:
    with GitHub() as github:
        calls = Calls(github)
    with pytest.raises(GitHubError, match=r"GitHub could not be reached \(ConnectionError\)") as raised:
        calls.client.create_comment(7, "hello")
    assert (raised.value.try_again, raised.value.maybe_done) == (True, False)
    assert len(calls.waits) == 1


@pytest.mark.parametrize("kind", ["hang", "drip"])
def test_a_server_that_does_not_end_its_answer_is_left(github: GitHub, kind: Any) -> None:
    github.faults = [Fault(kind=kind)]
    http = Http(requests.Session(), Token(TOKEN), seconds=60, timing=Timing())
    with pytest.raises(GitHubError, match=r"within the 0\.5 seconds of github-timeout"):
        within(0.5, lambda: http.call("GET", github.url))


def test_looking_up_a_name_for_ever_is_left_too() -> None:
    started = Event()

    def look_up() -> None:  # as getaddrinfo may
        started.set()
        Event().wait(30)

    with pytest.raises(GitHubError, match=r"within the 0\.2 seconds"):
        within(0.2, look_up)
    assert started.is_set()


def test_what_ends_in_time_is_returned_or_raised_as_it_is() -> None:
    assert within(60, lambda: 7) == 7

    def fail() -> None:
        raise TimeoutError("its own")

    with pytest.raises(TimeoutError, match="its own"):
        within(60, fail)


def test_nothing_is_sent_after_the_end(github: GitHub) -> None:
    calls = Calls(github, seconds=10)
    calls.waits.append(11)
    assert "within the 10 seconds" in str(calls.fails())
    assert github.requests == []


def test_a_redirect_takes_the_token_nowhere(github: GitHub) -> None:
    with GitHub() as other:
        github.faults = [Fault(status=307, headers={"Location": f"{other.url}/steal"})]
        assert Calls(github).fails().status == 307
        assert other.requests == []


def test_a_next_page_on_another_host_is_not_asked_for(github: GitHub) -> None:
    with GitHub() as other:
        link = f'<{other.url}/repos/octo/app/issues/7/comments?page=2>; rel="next"'
        github.faults = [Fault(status=200, answer=[{"id": 1}], headers={"Link": link})]
        with pytest.raises(GitHubError, match="another host"):
            list(Calls(github).client.comments(7))
        assert other.requests == []


def test_a_next_page_that_is_the_same_page_ends(github: GitHub) -> None:
    link = f'<{github.url}/repos/octo/app/issues/7/comments?per_page=100>; rel="next"'
    github.faults = [Fault(status=200, answer=[{"id": 1}], headers={"Link": link})]
    assert len(list(Calls(github).client.comments(7))) == 1


def test_every_request_has_what_github_asks_for(github: GitHub) -> None:
    calls = Calls(github)
    calls.client.login()
    list(calls.client.comments(7))
    calls.client.create_comment(7, "x")
    calls.client.update_comment(1, "y")
    assert len(github.sent) == 4
    for sent in github.sent:
        assert sent.headers["Accept"] == "application/vnd.github+json"
        assert sent.headers["X-GitHub-Api-Version"] == "2022-11-28"
        assert sent.headers["User-Agent"].startswith("rag-contract/")
        assert sent.headers["Authorization"] == f"Bearer {TOKEN}"
    assert "per_page=100" in github.sent[1].path
    assert github.most_at_once == 1


@pytest.mark.parametrize("answer", ["x", 7, None, {"message": {"a": [1]}}, {"message": "a\n::error::b\x1b" * 99}])
def test_an_error_gives_its_reason_in_one_short_line(github: GitHub, answer: Any) -> None:
    github.faults = [Fault(status=422, answer=answer or {})]
    reported = str(Calls(github).fails())
    assert reported.startswith("GitHub answered 422: ")
    assert reported.isprintable()
    assert len(reported) < 250


ECHOES = {
    "whole": TOKEN,
    "in a header": f'"Authorization: Bearer {TOKEN}"',
    "cut off": TOKEN[:20],
    "its end": TOKEN[-20:],
    "in an address": f"https://x-access-token:{TOKEN}@github.com/octo/app",
    "in base 64": b64encode(f"x-access-token:{TOKEN}".encode()).decode(),
    "in hexadecimal": TOKEN.encode().hex(),
}


@pytest.mark.parametrize("echo", ECHOES.values(), ids=ECHOES)
def test_an_error_that_echoes_the_token_is_reported_without_it(github: GitHub, echo: str) -> None:
    github.faults = [Fault(status=422, message=f"{'x ' * 90}bad credentials {echo} of octo")]
    reported = str(Calls(github).fails())
    assert "bad credentials" in reported
    assert not any(echo[at : at + 12] in reported for at in range(len(echo) - 12))


def test_no_text_of_an_answer_has_the_token(github: GitHub) -> None:
    row = {"html_url": f"https://github.com/{TOKEN}", TOKEN: [TOKEN, 1, None, {"a": f"x {TOKEN}"}]}
    github.faults = [Fault(status=200, answer=[row])]
    assert list(Calls(github).client.comments(7)) == [{"html_url": "***", "***": ["***", 1, None, {"a": "x ***"}]}]


def test_a_next_page_with_the_token_in_its_address_is_not_asked_for(github: GitHub) -> None:
    link = f'<{github.url}/repos/octo/app/issues/7/comments?token={TOKEN}>; rel="next"'
    github.faults = [Fault(status=200, answer=[], headers={"Link": link})]
    with pytest.raises(GitHubError, match="another host"):
        list(Calls(github).client.comments(7))
    assert len(github.requests) == 1


def test_an_error_nested_beyond_all_measure_is_an_error_like_others(github: GitHub) -> None:
    class Session(requests.Session):
        def request(self, *args: Any, **kwargs: Any) -> requests.Response:
            response = super().request(*args, **kwargs)
            response.raw = io.BytesIO(b"[" * 200_000)
            return response

    github.faults = [Fault(status=422)]
    http = Http(Session(), Token(TOKEN), seconds=60, timing=Timing())
    with pytest.raises(GitHubError, match="GitHub answered 422: Unprocessable"):
        http.call("GET", github.url)


@pytest.mark.parametrize(
    "answer", [[], {}, {"data": None}, {"data": {"viewer": None}}, {"data": {"viewer": {"login": None}}}, "x", 7]
)
def test_a_viewer_in_a_wrong_shape_is_nobody(github: GitHub, answer: Any) -> None:
    github.faults = [Fault(status=200, answer=answer)]
    with pytest.raises(GitHubError, match="does not say who"):
        Calls(github).client.login()


GRAPHQL_LIMIT = {"errors": [{"type": "RATE_LIMITED", "message": "API rate limit already exceeded for installation"}]}
GRAPHQL_BROKEN = {"data": None, "errors": [{"message": "Something went wrong while executing your query."}]}


@pytest.mark.parametrize(
    ("answer", "headers", "waits"),
    [
        (GRAPHQL_LIMIT, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(int(NOW) + 42)}, [43]),
        (GRAPHQL_LIMIT, {"Retry-After": "7"}, [7]),
        ({"errors": [{"message": SECONDARY}]}, {}, [60]),
        (GRAPHQL_LIMIT, {}, None),
        (GRAPHQL_BROKEN, {}, None),
    ],
)
def test_an_error_that_graphql_answers_as_a_success_is_tried_again(
    github: GitHub, answer: Any, headers: dict[str, str], waits: list[float] | None
) -> None:
    github.faults = [Fault(path="graphql", times=1, status=200, answer=answer, headers=headers)]
    calls = Calls(github)
    assert calls.client.login() == "github-actions[bot]"
    assert calls.waits == waits if waits else 0.5 <= calls.waits[0] <= 1


def test_an_error_of_graphql_that_does_not_end_is_reported_with_its_reason(github: GitHub) -> None:
    github.faults = [Fault(path="graphql", status=200, answer=GRAPHQL_BROKEN)]
    with pytest.raises(
        GitHubError, match="does not say who the token belongs to: Something went wrong while"
    ) as raised:
        Calls(github).client.login()
    assert not raised.value.denied
    assert len(github.requests) == bounds.TRIES


def test_a_permission_that_graphql_misses_is_not_asked_for_again(github: GitHub) -> None:
    answer = {"data": None, "errors": [{"type": "FORBIDDEN", "message": "Resource not accessible by integration"}]}
    github.faults = [Fault(path="graphql", status=200, answer=answer)]
    with pytest.raises(GitHubError, match="Resource not accessible") as raised:
        Calls(github).client.login()
    assert raised.value.denied
    assert len(github.requests) == 1


@pytest.mark.parametrize("fault", [{"kind": "not json"}, {"status": 200, "answer": {"message": "x"}}])
def test_a_list_that_is_another_answer_at_first_is_asked_for_again(github: GitHub, fault: dict[str, Any]) -> None:
    github.add_comment("x", login="a")
    github.faults = once(**fault)
    calls = Calls(github)
    assert [comment["body"] for comment in calls.client.comments(7)] == ["x"]
    assert len(calls.waits) == 1


def test_what_is_deleted_in_one_try_is_not_waited_for(github: GitHub) -> None:
    github.faults = [Fault(method="DELETE", status=503, headers={"Retry-After": "1"})]
    calls = Calls(github)
    with pytest.raises(GitHubError, match="503"):
        calls.client.delete_comment(1)
    assert (len(github.requests), calls.waits) == (1, [])


@pytest.mark.parametrize("answer", [{}, "x", 7, True])
def test_a_list_in_a_wrong_shape_is_an_error(github: GitHub, answer: Any) -> None:
    github.faults = [Fault(status=200, answer=answer)]
    with pytest.raises(GitHubError, match="not the list"):
        list(Calls(github).client.comments(7))


@pytest.mark.parametrize("answer", [[], "x", 7, {}, {"id": "1"}])
def test_a_written_comment_in_a_wrong_shape_is_an_error_and_may_be_done(github: GitHub, answer: Any) -> None:
    github.faults = [Fault(status=201, answer=answer)]
    with pytest.raises(GitHubError, match="not the comment") as raised:
        Calls(github).client.create_comment(7, "x")
    assert raised.value.maybe_done


def test_an_enterprise_servers_prefix_stays() -> None:
    with GitHub(enterprise=True) as github:
        for number in range(101):
            github.add_comment(str(number), login="a")
        client = Calls(github).client
        assert client.login() == "github-actions[bot]"
        assert len(list(client.comments(7))) == 101
    assert [sent.path.partition("?")[0] for sent in github.sent] == [
        "/api/graphql",
        "/api/v3/repos/octo/app/issues/7/comments",
        "/api/v3/repos/octo/app/issues/7/comments",
    ]


class Proxy(LocalServer):
    """Notes what it is asked to fetch, and answers with a login."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        asked = self.asked

        class Handler(QuietHandler):
            def do_POST(self) -> None:  # noqa: N802 (http.server's name)
                asked.append(self.path)
                data = b'{"data": {"viewer": {"login": "by proxy"}}}'
                self.send_response(200)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

        super().__init__(Handler)


@pytest.fixture
def proxy(monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    with Proxy() as found:
        for name in ("HTTP_PROXY", "http_proxy"):
            monkeypatch.setenv(name, found.origin)
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
        yield found


def test_a_proxy_is_used(github: GitHub, proxy: Proxy) -> None:
    assert Calls(github).client.login() == "by proxy"
    assert proxy.asked == [github.graphql_url]
    assert github.requests == []


def test_a_host_without_a_proxy_is_asked_itself(github: GitHub, proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    assert Calls(github).client.login() == "github-actions[bot]"
    assert proxy.asked == []


def test_a_proxy_that_is_not_there_is_reported(github: GitHub, proxy: Proxy) -> None:
    proxy.close()
    with pytest.raises(GitHubError, match=r"could not be reached \(ProxyError\)") as raised:
        Calls(github).client.create_comment(7, "x")
    assert not raised.value.maybe_done


def test_an_own_bundle_of_certificates_is_used(github: GitHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    class Session(requests.Session):
        def send(self, request: requests.PreparedRequest, **kwargs: Any) -> requests.Response:
            asked.append(kwargs["verify"])
            return super().send(request, **kwargs)

    bundle = tmp_path / "ours.pem"
    bundle.touch()
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(bundle))
    Http(Session(), Token(TOKEN), seconds=60, timing=Timing()).call(
        "POST", github.graphql_url, body={"query": "query { viewer { login } }"}
    )
    assert asked == [str(bundle)]
