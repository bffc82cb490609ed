from pathlib import Path

import pytest
import requests

from ragcontract.github.context import GitHubError, Token
from ragcontract.github.http import Client, Http
from ragcontract.net.pacing import Timing
from tests.github.standin import TOKEN, Fault, GitHub


def client_of(github: GitHub, token: str = TOKEN) -> Client:
    http = Http(requests.Session(), Token(token), seconds=60, timing=Timing(sleep=lambda _seconds: None))
    return Client(http, api_url=github.url, graphql_url=github.graphql_url, repository="octo/app")


def test_the_login_is_asked_of_graphql_because_a_workflows_token_may_not_ask_rest(github: GitHub) -> None:
    assert client_of(github).login() == "github-actions[bot]"
    assert github.requests == ["POST /graphql"]


def test_comments_come_from_all_pages(github: GitHub) -> None:
    for number in range(230):
        github.add_comment(str(number), login="a")
    github.add_comment("another pull request's", login="a", issue=8)
    assert [comment["body"] for comment in client_of(github).comments(7)] == [str(n) for n in range(230)]
    assert len(github.requests) == 3


def test_a_netrc_does_not_replace_the_token(github: GitHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "netrc").write_text("default login somebody password else\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    assert client_of(github).login() == "github-actions[bot]"


def test_a_refusal_gives_status_and_reason_and_not_the_token(github: GitHub) -> None:
    with pytest.raises(GitHubError, match=r"^GitHub answered 401: Bad credentials$") as raised:
        client_of(github, "wrong-token").login()
    assert raised.value.status == 401


def test_a_viewer_who_is_not_named_is_an_error(github: GitHub) -> None:
    github.faults = [Fault(status=200)]
    with pytest.raises(GitHubError, match="does not say who"):
        client_of(github).login()


def test_a_redirect_is_not_followed_with_the_token(github: GitHub) -> None:
    github.faults = [Fault(status=301, message="Moved Permanently")]
    with pytest.raises(GitHubError, match="301"):
        client_of(github).create_comment(7, "hello")


def test_no_connection_is_an_error_without_a_status() -> None:
    with GitHub() as github:
        client = client_of(github)
    with pytest.raises(GitHubError, match="could not be reached") as raised:
        client.login()
    assert raised.value.status is None
