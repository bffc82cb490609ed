"""Which pull request an event is about. What the events do to the comment is in ``tests/test_events.py``."""

from typing import Any

import msgspec
import pytest
import requests

from ragcontract.github.context import Context, GitHubError, Token
from ragcontract.github.http import Client, Http
from ragcontract.github.pull_request import NoPullRequest, PullRequest, find, of_workflow_run
from ragcontract.net.pacing import Timing
from tests.github.standin import TOKEN, Fault, GitHub

SHA, OTHER = "a" * 40, "b" * 40


def client_of(github: GitHub) -> Client:
    http = Http(requests.Session(), Token(TOKEN), seconds=60, timing=Timing(sleep=lambda _seconds: None))
    return Client(http, api_url=github.url, graphql_url=github.graphql_url, repository="octo/app")


def context(name: str, event: dict[str, Any], problem: str | None = None) -> Context:
    start = Context.from_environ({"GITHUB_EVENT_NAME": name, "GITHUB_SHA": OTHER})
    return msgspec.structs.replace(start, event=event, event_problem=problem)


def found(github: GitHub, name: str, event: dict[str, Any], named: int | None = None) -> PullRequest | NoPullRequest:
    return find(context(name, event), client_of(github), named)


def workflow_run(**run: Any) -> dict[str, Any]:
    head = {"head_repository": {"full_name": "fork/app"}, "head_branch": "topic", "head_sha": SHA, "pull_requests": []}
    return {"workflow_run": head | run}


def test_the_number_that_was_given_wins_over_everything(github: GitHub) -> None:
    assert found(github, "pull_request", {"pull_request": {"number": 7}}, named=9) == PullRequest(9)
    assert find(context("x", {}, problem="unreadable"), client_of(github), 9) == PullRequest(9)


@pytest.mark.parametrize("name", ["pull_request", "pull_request_target", "pull_request_review"])
def test_a_pull_requests_own_event_says_its_number(github: GitHub, name: str) -> None:
    event = {"pull_request": {"number": 7, "head": {"sha": SHA}}}
    assert found(github, name, event) == found(github, name, event, named=7) == PullRequest(7, SHA)
    assert found(github, name, {"pull_request": {"number": 7}}) == PullRequest(7)
    assert github.requests == []


@pytest.mark.parametrize("name", ["push", "pull_request", "workflow_run"])
def test_an_event_that_cannot_be_read_is_a_failure_and_not_about_no_pull_request(github: GitHub, name: str) -> None:
    with pytest.raises(GitHubError, match="unreadable"):
        find(context(name, {}, problem="unreadable"), client_of(github), None)
    with pytest.raises(GitHubError, match="unreadable"):
        of_workflow_run(context(name, {}, problem="unreadable"), client_of(github))


@pytest.mark.parametrize("number", ["7", -7, True, None, 1.5])
def test_a_pull_requests_event_without_its_number_is_a_failure(github: GitHub, number: Any) -> None:
    with pytest.raises(GitHubError, match="no pull request's number"):
        found(github, "pull_request", {"pull_request": {"number": number}})


def test_a_push_is_about_the_open_pull_request_of_its_commit(github: GitHub) -> None:
    github.add_pull(3, sha=SHA, state="closed")
    github.add_pull(4, sha=SHA)
    github.add_pull(5, sha=OTHER)
    assert found(github, "push", {"after": SHA}) == PullRequest(4, SHA)
    assert github.requests == [f"GET /repos/octo/app/commits/{SHA}/pulls?per_page=100"]


def test_the_push_of_an_annotated_tag_is_about_the_tags_commit(github: GitHub) -> None:
    github.add_pull(4, sha=SHA)
    assert found(github, "push", {"after": OTHER, "head_commit": {"id": SHA}}) == PullRequest(4, SHA)
    deleted = {"after": "0" * 40, "head_commit": {"id": SHA}}
    assert found(github, "push", deleted) == NoPullRequest("the push left no commit")


def test_a_push_that_does_not_say_its_commit_is_about_the_runs(github: GitHub) -> None:
    github.add_pull(5, sha=OTHER)
    assert found(github, "push", {}) == PullRequest(5, OTHER)


def test_of_pull_requests_built_on_each_other_the_one_that_ends_with_the_commit_is_it(github: GitHub) -> None:
    def pull(number: int, sha: str) -> dict[str, Any]:
        return {"number": number, "state": "open", "head": {"sha": sha}}

    github.faults = [Fault(path="/commits/", status=200, answer=[pull(3, OTHER), pull(4, SHA), pull(5, OTHER)])]
    assert found(github, "push", {"after": SHA}) == PullRequest(4, SHA)


@pytest.mark.parametrize("pulls", [[], [{"state": "open"}], [{"number": "4", "state": "open"}], ["x", None, 4]])
def test_a_push_without_an_open_pull_request_is_about_none(github: GitHub, pulls: list[Any]) -> None:
    github.faults = [Fault(path="/commits/", status=200, answer=pulls)]
    assert found(github, "push", {"after": SHA}) == NoPullRequest(f"no open pull request has the commit {'a' * 12}")


@pytest.mark.parametrize("after", ["0" * 40, "main", "../../user"])
def test_a_push_of_no_commit_asks_nobody(github: GitHub, after: str) -> None:
    assert found(github, "push", {"after": after}) == NoPullRequest("the push left no commit")
    assert github.requests == []


def test_a_workflow_run_is_about_the_pull_request_whose_head_it_ran_for(github: GitHub) -> None:
    github.add_pull(3, sha=SHA, head="fork/other")
    github.add_pull(4, sha=SHA, head="fork/app", branch="another")
    github.add_pull(5, sha=SHA, head="fork/app", state="closed")
    github.add_pull(6, sha=SHA, head="fork/app")
    assert found(github, "workflow_run", workflow_run()) == PullRequest(6, SHA)
    assert github.requests == ["GET /repos/octo/app/pulls?state=open&head=fork%3Atopic&per_page=100"]


def test_a_branch_may_be_called_anything(github: GitHub) -> None:
    branch = "fix/#1&state=closed ü%2F"
    github.add_pull(6, sha=SHA, head="fork/app", branch=branch)
    assert found(github, "workflow_run", workflow_run(head_branch=branch)) == PullRequest(6, SHA)


def test_a_workflow_run_for_a_commit_that_is_no_longer_the_newest_is_about_none(github: GitHub) -> None:
    github.add_pull(6, sha=OTHER, head="fork/app")
    none = found(github, "workflow_run", workflow_run())
    assert none == NoPullRequest(f"no open pull request has {'a' * 12} of fork/app as its newest commit (any more)")


@pytest.mark.parametrize(
    "run",
    [
        {"head_repository": None},
        {"head_branch": None},
        {"head_sha": "HEAD"},
        {"head_sha": 7},
        {"head_sha": SHA + "/../x"},
    ],
)
def test_a_workflow_run_without_a_whole_head_is_about_none(github: GitHub, run: dict[str, Any]) -> None:
    none = found(github, "workflow_run", workflow_run(**run))
    assert none == NoPullRequest("the event does not say which commit the workflow ran for")
    assert github.requests == []


def two_of_one_branch(github: GitHub) -> None:
    for number, base in ((7, "main"), (6, "release"), (8, "old")):
        github.add_pull(number, sha=SHA, head="fork/app", base=base)


@pytest.mark.parametrize(
    ("listed", "preferred", "number"),
    [([6], (8,), 6), ([1, 6], (), 6), ([], (8,), 8), ([], (None, 7), 7), ([], (1, 7, 8), 7), ([6, 7], (7,), 7)],
)
def test_of_several_pull_requests_from_one_branch_it_is_the_events_and_then_the_preferred(
    github: GitHub, listed: list[int], preferred: tuple[int | None, ...], number: int
) -> None:
    two_of_one_branch(github)
    event = workflow_run(pull_requests=[{"number": one} for one in listed])
    found = of_workflow_run(context("workflow_run", event), client_of(github), preferred)
    assert found == PullRequest(number, SHA)


@pytest.mark.parametrize("listed", [[], [6, 7], [1], None, ["6"], [None]])
def test_of_several_pull_requests_from_one_branch_none_is_guessed(github: GitHub, listed: Any) -> None:
    two_of_one_branch(github)
    event = workflow_run(pull_requests=listed and [{"number": one} for one in listed])
    with pytest.raises(GitHubError, match="the pull requests #6 and #7 and #8 have the same branch and commit"):
        of_workflow_run(context("workflow_run", event), client_of(github), (1, None))
    assert found(github, "workflow_run", event, named=7) == PullRequest(7)


@pytest.mark.parametrize(("default", "number"), [("main", 7), ("release", 6), ("another", 6), (None, 6)])
def test_a_push_to_a_branch_of_several_pull_requests_is_about_the_one_into_the_default_branch_or_the_oldest(
    github: GitHub, default: str | None, number: int
) -> None:
    two_of_one_branch(github)
    event = {"after": SHA, "repository": {"default_branch": default}}
    assert found(github, "push", event) == PullRequest(number, SHA)


def test_what_the_event_lists_as_pull_requests_is_not_believed(github: GitHub) -> None:
    github.add_pull(6, sha=SHA, head="fork/app")
    event = workflow_run(pull_requests=[{"number": 1}])
    assert of_workflow_run(context("workflow_run", event), client_of(github)) == PullRequest(6, SHA)


def test_a_merge_group_leaves_its_pull_requests_alone(github: GitHub) -> None:
    none = found(github, "merge_group", {"merge_group": {"head_sha": SHA}})
    assert isinstance(none, NoPullRequest)
    assert "merge group" in none.reason


def test_other_events_are_about_none_and_name_the_way_out(github: GitHub) -> None:
    none = found(github, "schedule", {"schedule": "0 4 * * *"})
    assert none == NoPullRequest(
        "the event 'schedule' is not about a pull request (the input pull-request can name one)"
    )
