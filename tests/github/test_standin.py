"""The stand-in itself: it must refuse what GitHub would, or the tests that talk to it prove nothing."""

from collections.abc import Iterator
from typing import Any

import pytest
import requests

from tests.github.standin import TOKEN, Fault, GitHub
from tests.needs import require

COMMENTS = "/repos/octo/app/issues/7/comments"
GOOD = {"Authorization": f"Bearer {TOKEN}", "User-Agent": "rag-contract/0", "X-GitHub-Api-Version": "2022-11-28"}


@pytest.fixture
def github() -> Iterator[GitHub]:
    with GitHub() as standin:
        yield standin
        standin.refused.clear()  # here it is the point to be refused


def call(github: GitHub, method: str, path: str, body: Any = None, **headers: str) -> requests.Response:
    return requests.request(method, github.url + path, json=body, headers=GOOD | headers, timeout=9)


def test_a_comment_that_was_posted_is_there(github: GitHub) -> None:
    posted = call(github, "POST", COMMENTS, {"body": "hello"})
    assert posted.status_code == 201
    assert call(github, "GET", COMMENTS).json() == [posted.json()]
    assert call(github, "PATCH", "/repos/octo/app/issues/comments/1", {"body": "bye"}).status_code == 200
    assert github.bodies() == ["bye"]


@pytest.mark.parametrize(
    ("method", "path", "body", "why"),
    [
        ("POST", COMMENTS, {"body": "x", "colour": "red"}, "colour"),
        ("POST", COMMENTS, {"body": 1}, "not of type 'string'"),
        ("POST", COMMENTS, {}, "'body' is a required property"),
        ("GET", COMMENTS + "?per_pages=100", None, "unknown query parameter per_pages"),
        ("GET", COMMENTS + "?per_page=many", None, "per_page is no integer"),
        ("GET", COMMENTS, {"body": "x"}, "a body where none belongs"),
        ("GET", "/repos/octo/app/pulls?state=opened", None, "state: 'opened' is not one of"),
        ("GET", "/repos/octo/app/comments-of/7", None, "there is no GET"),
    ],
)
def test_what_the_description_does_not_allow_is_refused_and_remembered(
    github: GitHub, method: str, path: str, body: Any, why: str
) -> None:
    require("npm")
    assert call(github, method, path, body).status_code == 422
    assert why in github.refused[0]


def test_a_client_that_was_refused_anything_fails_its_test() -> None:
    require("npm")
    with pytest.raises(AssertionError, match="unknown query parameter"), GitHub() as github:
        call(github, "GET", COMMENTS + "?x=1")


def test_a_wrong_token_and_a_missing_user_agent_are_turned_away(github: GitHub) -> None:
    assert call(github, "GET", COMMENTS, Authorization="Bearer ghs_other").status_code == 401
    assert call(github, "GET", COMMENTS, **{"User-Agent": "curl"}).status_code == 403
    call(github, "GET", COMMENTS, **{"X-GitHub-Api-Version": "2020-01-01"})
    assert github.refused == ["no API version"]


def test_nobody_writes_without_the_right_to_or_into_anothers_comment(github: GitHub) -> None:
    github.add_comment("mine", login="somebody")
    assert call(github, "PATCH", "/repos/octo/app/issues/comments/1", {"body": "x"}).status_code == 403
    github.may_write = False
    assert call(github, "POST", COMMENTS, {"body": "x"}).status_code == 403
    assert github.bodies() == ["mine"]


@pytest.mark.parametrize("body", ["", "x" * 65_537])
def test_an_empty_and_a_too_long_body_are_refused(github: GitHub, body: str) -> None:
    assert call(github, "POST", COMMENTS, {"body": body}).status_code == 422


def test_pages_are_linked(github: GitHub) -> None:
    for number in range(120):
        github.add_comment(str(number), login="a")
    first = call(github, "GET", COMMENTS + "?per_page=100")
    assert len(first.json()) == 100
    second = requests.get(first.links["next"]["url"], headers=GOOD, timeout=9)
    assert len(second.json()) == 20
    assert "next" not in second.links


def test_the_enterprise_servers_api_has_its_prefix() -> None:
    with GitHub(enterprise=True) as github:
        assert github.url.endswith("/api/v3")
        assert call(github, "GET", COMMENTS).status_code == 200
        root = github.url.removesuffix("/api/v3")
        assert requests.get(root + COMMENTS, headers=GOOD, timeout=9).status_code == 404


@pytest.mark.parametrize("kind", ["drop", "half", "do and drop"])
def test_a_connection_that_breaks_off_is_one(github: GitHub, kind: Any) -> None:
    github.faults = [Fault(kind=kind)]
    with pytest.raises(requests.RequestException):
        call(github, "POST", COMMENTS, {"body": "hello"})
    assert github.bodies() == (["hello"] if kind == "do and drop" else [])
