"""The one comment of a contract: how it is found again, and when it is left alone."""

from typing import Any

import pytest
import requests

from ragcontract.core import bounds
from ragcontract.github.comment import Draft, Posted, post
from ragcontract.github.context import GitHubError, Token
from ragcontract.github.http import Client, Http
from ragcontract.github.marker import State, head
from ragcontract.github.pull_request import PullRequest
from ragcontract.github.settings import CommentWhen
from ragcontract.net.pacing import Timing
from tests.github.standin import ACTIONS_BOT, TOKEN, Fault, GitHub, Sent

NOT_ALLOWED = "Resource not accessible by integration"
URL = "https://github.com/octo/app/pull/7#issuecomment-1"


def draft(
    content: str = "all is well",
    *,
    name: str = "",
    state: State = "pass",
    run: tuple[int, int] = (100, 1),
    at: str = "",
    contract: str = "",
) -> Draft:
    def body(max_bytes: int, before: State | None) -> str:
        was = "" if before == state else f" (was {before})"
        return f"{content}{was}, written {at or run}"[:max_bytes]

    return Draft(name=name, state=state, run=run, content=content, contract=contract, body=body)


def written(github: GitHub, what: Draft, when: CommentWhen = "always", *, commit: str = "", **rest: Any) -> Posted:
    http = Http(requests.Session(), Token(TOKEN), seconds=60, timing=Timing(sleep=lambda _seconds: None))
    client = Client(http, api_url=github.url, graphql_url=github.graphql_url, repository="octo/app")
    return post(client, PullRequest(7, commit), what, when, **rest)


def test_the_first_is_created_with_its_marker_in_front(github: GitHub) -> None:
    assert written(github, draft(name="docs", state="fail")) == Posted("created", URL)
    marker, body = github.bodies()[0].split("\n")
    assert marker.startswith("<!-- rag-contract name=docs run=100.1 state=fail content=")
    assert marker.endswith(" -->")
    assert body == "all is well (was None), written (100, 1)"


def test_a_later_one_updates_it_and_knows_what_it_said(github: GitHub) -> None:
    written(github, draft(state="fail"))
    assert written(github, draft("fixed", run=(101, 1))) == Posted("updated", URL)
    assert "fixed (was fail" in github.bodies()[0]


@pytest.mark.parametrize("later", [(101, 1), (100, 2)])
def test_a_newer_runs_comment_is_not_overwritten_by_an_older_run_that_ends_later(
    github: GitHub, later: tuple[int, int]
) -> None:
    written(github, draft("new", run=later))
    assert written(github, draft("old", run=(100, 1))) == Posted("newer", URL)
    assert "new" in github.bodies()[0]


def test_a_second_attempt_overwrites_the_first(github: GitHub) -> None:
    written(github, draft("first", run=(100, 1)))
    assert written(github, draft("second", run=(100, 2))).written == "updated"


def test_run_numbers_are_compared_as_numbers(github: GitHub) -> None:
    written(github, draft("first", run=(99, 9)))
    assert written(github, draft("second", run=(100, 10))).written == "updated"
    assert written(github, draft("third", run=(100, 11))).written == "updated"


def test_the_same_body_is_not_sent_again(github: GitHub) -> None:
    written(github, draft(at="noon"))
    sent = len(github.writes())
    again = draft("all is well (was None)", at="noon", run=(101, 1))
    assert written(github, again).written == "updated"
    assert written(github, again).written == "unchanged"
    assert len(github.writes()) == sent + 1


def test_on_change_leaves_what_says_the_same_alone(github: GitHub) -> None:
    written(github, draft(at="noon"), "on-change")
    assert written(github, draft(at="midnight", run=(101, 1)), "on-change") == Posted("unchanged", URL)
    assert "noon" in github.bodies()[0]
    assert written(github, draft(at="midnight", run=(101, 1)), "always").written == "updated"


@pytest.mark.parametrize("change", [{"content": "worse"}, {"state": "fail"}])
def test_on_change_writes_what_says_something_else(github: GitHub, change: dict[str, Any]) -> None:
    written(github, draft(), "on-change")
    assert written(github, draft(**change), "on-change").written == "updated"


def test_on_failure_begins_with_a_failure_only(github: GitHub) -> None:
    assert written(github, draft(), "on-failure") == Posted("not-needed")
    assert written(github, draft(state="error"), "on-failure").written == "created"
    assert written(github, draft("fixed", run=(101, 1)), "on-failure").written == "updated"
    assert "fixed (was error" in github.bodies()[0]


def test_each_name_has_its_own(github: GitHub) -> None:
    for name in ("a", "a b", "a b=run=9.9", "ab", ""):
        assert written(github, draft(name=name)).written == "created"
    for name in ("", "ab", "a b", "a"):
        assert written(github, draft("again", name=name)).written == "updated"


@pytest.mark.parametrize("name", ["-->", "<b>", "x state=fail run=999.1", "line\nbreak", "é✅", "\udcff", "n" * 90_000])
def test_no_name_ends_the_marker_or_fills_the_comment(github: GitHub, name: str) -> None:
    marker = head(name)
    assert "\n" not in marker
    assert ">" not in marker
    assert len(marker) < 400
    assert written(github, draft(name=name)).written == "created"
    assert written(github, draft("again", name=name)).written == "updated"
    assert len(github.comments) == 1


@pytest.mark.parametrize(
    ("body", "login"),
    [
        ("<!-- rag-contract name= run=1.1 state=pass content=0 -->\nx", "impostor"),
        ("<!-- rag-contract name= run=1.1 state=pass content=0 -->\nx", "github-actions"),
        ("hello\n<!-- rag-contract name= run=1.1 state=pass content=0 -->", ACTIONS_BOT),
        ("> <!-- rag-contract name= run=1.1 state=pass content=0 -->", ACTIONS_BOT),
        ("<!-- rag-contract name=other run=1.1 state=pass content=0 -->", ACTIONS_BOT),
        ("<!-- rag-contract-else name= -->", ACTIONS_BOT),
    ],
)
def test_what_only_looks_like_its_comment_is_left_alone(github: GitHub, body: str, login: str) -> None:
    github.add_comment(body, login=login)
    assert written(github, draft()).written == "created"
    assert github.bodies()[0] == body
    assert written(github, draft("again")).written == "updated"
    assert github.bodies()[0] == body


@pytest.mark.parametrize("rest", ["-->", "run= state= -->", "run=x.y state=odd -->", "run=99999 -->", ""])
def test_its_own_marker_in_an_unknown_shape_counts_as_older(github: GitHub, rest: str) -> None:
    github.add_comment(f"<!-- rag-contract name= {rest}", login=ACTIONS_BOT)
    assert written(github, draft()).written == "updated"
    assert "was None" in github.bodies()[0]


def test_comments_in_odd_shapes_are_passed_by(github: GitHub) -> None:
    marker = "<!-- rag-contract name= -->"
    bot = {"login": ACTIONS_BOT}
    odd = [None, 7, {}, {"id": 1, "body": None, "user": None}, {"id": "1", "body": marker, "user": bot}]
    github.faults = [Fault(method="GET", status=200, answer=odd)]
    assert written(github, draft()).written == "created"


def marked(run: int, state: str = "pass") -> str:
    return f"<!-- rag-contract name= run={run}.1 state={state} content=0 -->"


@pytest.mark.parametrize(
    ("runs", "left"), [((100, 101), 2), ((101, 100), 1), ((101, 101), 1), ((100, 103, 102), 2), ((200, 100), 1)]
)
def test_of_several_that_a_race_made_that_of_the_newest_run_stays_and_the_others_go(
    github: GitHub, runs: tuple[int, ...], left: int
) -> None:
    for run in runs:
        github.add_comment(marked(run), login=ACTIONS_BOT)
    github.add_comment(marked(300), login="impostor")
    posted = written(github, draft(run=(110, 1)))
    assert posted.written == ("newer" if max(runs) > 110 else "updated")
    assert [comment["id"] for comment in github.comments] == [left, len(runs) + 1]


@pytest.mark.parametrize(("other", "outcome"), [(101, "newer"), (99, "created"), (100, "updated")])
def test_a_comment_that_another_first_run_makes_meanwhile_is_seen(github: GitHub, other: int, outcome: str) -> None:
    def meanwhile(sent: Sent) -> None:
        if sent.method == "POST" and "comments" in sent.path:
            github.add_comment(marked(other), login=ACTIONS_BOT)

    github.meanwhile = meanwhile
    assert written(github, draft(run=(100, 1))).written == outcome
    assert len(github.comments) == 1
    assert f"run={max(other, 100)}.1" in github.bodies()[0]


def test_a_spare_comment_that_cannot_be_deleted_stops_nothing(github: GitHub) -> None:
    for run in (100, 101):
        github.add_comment(marked(run), login=ACTIONS_BOT)
    github.faults = [Fault(method="DELETE", status=403)]
    assert written(github, draft(run=(102, 1))).written == "updated"
    assert "run=102.1" in github.bodies()[1]


def test_a_list_that_lags_behind_the_post_makes_no_second_comment(github: GitHub) -> None:
    github.faults = [Fault(method="GET", status=200, answer=[])]
    assert written(github, draft()) == Posted("created", URL)
    assert len(github.comments) == 1


def test_a_second_look_that_fails_takes_nothing_back(github: GitHub) -> None:
    github.meanwhile = lambda sent: github.faults.extend(
        [Fault(method="GET", status=500)] if sent.method == "POST" and "comments" in sent.path else []
    )
    assert written(github, draft()) == Posted("created", URL)


@pytest.mark.parametrize("knows_authors", [True, False])
def test_a_login_that_graphql_writes_differently_leaves_one_comment_after_three_runs(
    github: GitHub, *, knows_authors: bool
) -> None:
    github.viewer_login, github.knows_authors = "github-actions", knows_authors
    planted = [github.add_comment(marked(1), login=login) for login in ("impostor", "github-actions-x")]
    for number in range(3):
        written(github, draft(f"run {number}", state="fail", run=(100 + number, 1)))
    assert [comment["body"] for comment in planted] == [marked(1)] * 2
    (ours,) = [comment for comment in github.comments if comment["user"]["login"] == ACTIONS_BOT]
    assert "run 2" in ours["body"]
    assert len(github.comments) == 3
    if knows_authors:
        assert ours["id"] == 3
        written(github, draft("fixed", run=(103, 1)))
        assert "fixed (was fail)" in ours["body"]


def test_nobody_is_asked_about_the_authors_of_comments_where_all_are_ours(github: GitHub) -> None:
    for number in range(3):
        written(github, draft(run=(100 + number, 1)))
    assert sum("graphql" in request for request in github.requests) == 3


def test_a_comment_that_others_have_marked_is_asked_about_once_an_author(github: GitHub) -> None:
    for login in ("impostor", "impostor", "another"):
        github.add_comment(marked(999), login=login)
    planted = github.bodies()
    assert written(github, draft()).written == "created"
    assert github.bodies()[:3] == planted
    asked = [sent.body["variables"]["ids"] for sent in github.sent if "viewerDidAuthor" in str(sent.body)]
    assert asked == [["IC_2", "IC_3"]]


@pytest.mark.parametrize("answer", [{"errors": [{"message": "x"}]}, [], {"data": {"nodes": {"id": 1}}}, "x", None])
def test_where_github_does_not_say_who_wrote_a_comment_it_is_left_alone(github: GitHub, answer: Any) -> None:
    github.add_comment(marked(999), login="impostor")

    def only_nodes(sent: Sent) -> None:
        github.faults = [Fault(path="graphql", status=200, answer=answer or {})] if "nodes" in str(sent.body) else []

    github.meanwhile = only_nodes
    assert written(github, draft()).written == "created"
    assert github.bodies()[0] == marked(999)


def test_an_older_run_whose_login_is_written_differently_leaves_the_newer_comment(github: GitHub) -> None:
    github.viewer_login, github.knows_authors = "github-actions", False
    written(github, draft("new", run=(200, 1)))
    assert written(github, draft("old", run=(100, 1))) == Posted("newer", URL)
    assert [body.partition("\n")[2][:3] for body in github.bodies()] == ["new"]


def test_the_result_is_written_before_spare_comments_are_deleted_each_in_one_try(github: GitHub) -> None:
    for run in range(100, 110):
        github.add_comment(marked(run), login=ACTIONS_BOT)
    github.faults = [Fault(method="DELETE", status=503, headers={"Retry-After": "60"})]
    heard: list[int] = []
    posted = written(github, draft(run=(200, 1)), on_written=lambda _posted: heard.append(len(github.writes())))
    assert posted.written == "updated"
    assert heard == [1, 1]  # written, and seen to be there
    assert [request.split()[0] for request in github.writes()] == ["PATCH"] + ["DELETE"] * 9
    github.faults = []
    assert written(github, draft(run=(201, 1))).written == "updated"
    assert len(github.comments) == 1


@pytest.mark.parametrize("run", ["99999999999.1", f"{10**18 - 1}.1", "9" * 5_000 + ".1", f"1.{'9' * 5_000}", "٣٣٣.1"])
def test_a_run_that_somebody_wrote_into_our_comment_silences_no_later_run(github: GitHub, run: str) -> None:
    github.add_comment(f"<!-- rag-contract name= run={run} state=fail content=0 -->", login=ACTIONS_BOT)
    assert written(github, draft()).written == "updated"
    assert "run=100.1" in github.bodies()[0]


def test_a_run_up_to_a_billion_above_ours_is_newer_and_one_more_is_none(github: GitHub) -> None:
    github.add_comment(marked(100 + bounds.RUN_AHEAD), login=ACTIONS_BOT)
    assert written(github, draft()).written == "newer"
    github.comments[0]["body"] = marked(101 + bounds.RUN_AHEAD)
    assert written(github, draft()).written == "updated"


A, B, C = "a" * 16, "b" * 16, "c" * 16


@pytest.mark.parametrize("worse", ["fail", "error"])
@pytest.mark.parametrize("pass_first", [True, False])
def test_of_two_contracts_of_one_run_without_names_the_worse_stays(
    github: GitHub, worse: State, *, pass_first: bool
) -> None:
    green, red = draft("green", contract=A), draft("red", state=worse, contract=B)
    first, second = (green, red) if pass_first else (red, green)
    assert written(github, first) == Posted("created", URL)
    assert written(github, second) == Posted("updated" if pass_first else "outranked", URL, clash=True)
    assert "\nred" in github.bodies()[0]
    assert written(github, draft("next", run=(101, 1), contract=A)) == Posted("updated", URL)


@pytest.mark.parametrize("other", ["", A, B])
def test_of_two_results_of_one_attempt_the_worse_stays_whatever_they_are_of(github: GitHub, other: str) -> None:
    written(github, draft("red", state="fail", contract=A))
    assert written(github, draft("green", contract=other)) == Posted("outranked", URL, clash=True)
    assert "\nred" in github.bodies()[0]


def test_the_next_attempt_of_a_contract_replaces_its_own_result_alone(github: GitHub) -> None:
    for contract in (A, B):
        written(github, draft(f"red {contract}", state="fail", contract=contract))
    assert written(github, draft("green", contract=A, run=(100, 2))) == Posted("outranked", URL, clash=True)
    assert written(github, draft("green", contract=B, run=(100, 2))) == Posted("updated", URL)


def test_a_late_result_of_an_earlier_attempt_counts_unless_its_contract_has_a_later_one(github: GitHub) -> None:
    written(github, draft("green", contract=A, run=(100, 2)))
    assert written(github, draft("red", state="fail", contract=A)).written == "newer"
    assert written(github, draft("red", state="fail", contract=B)) == Posted("updated", URL, clash=True)
    assert written(github, draft("green", contract=A, run=(100, 3))).written == "outranked"


def test_of_more_red_contracts_than_the_marker_has_room_for_none_is_forgotten_in_this_run(github: GitHub) -> None:
    contracts = [f"{number:016x}" for number in range(bounds.COMMENT_RESULTS + 3)]
    for attempt, state in ((1, "fail"), (2, "pass")):
        for contract in contracts:
            written(github, draft(contract, state=state, contract=contract, run=(100, attempt)))  # type: ignore[arg-type]
        assert f"\n{contracts[0]}" in github.bodies()[0]
    assert " state=fail " in github.bodies()[0]
    assert written(github, draft("green", run=(101, 1))) == Posted("updated", URL)


def test_a_full_comment_has_room_for_all_that_its_marker_may_note(github: GitHub) -> None:
    name = "n" * bounds.COMMENT_NAME

    def body(max_bytes: int, _before: State | None) -> str:
        return "x" * max_bytes

    written(github, Draft(name=name, state="fail", run=(10**17, 10**8), content="", contract=A, body=body))
    for number in range(bounds.COMMENT_RESULTS + 1):
        written(github, draft(name=name, state="error", contract=f"{number:016x}", run=(10**17, 10**8)))
    marker, _, text = github.bodies()[0].partition("\n")
    assert marker.count(".error.") == bounds.COMMENT_RESULTS
    assert len(marker) < bounds.MARKER
    assert "x" * 60_000 in text


def test_a_worse_result_that_another_job_writes_at_the_same_time_is_noticed_after_the_write(github: GitHub) -> None:
    written(github, draft("before", run=(99, 1)))

    def other_job(sent: Sent) -> None:  # which has read the comment before ours was written
        if sent.method == "GET" and github.writes()[-1].startswith("PATCH") and len(github.writes()) == 2:
            github.comments[0]["body"] = theirs

    theirs = f"<!-- rag-contract name= run=100.1 state=pass content=0 contract={B} -->\ngreen"
    github.meanwhile = other_job
    assert written(github, draft("red", state="fail", contract=A)) == Posted("updated", URL, clash=True)
    assert "\nred" in github.bodies()[0]
    assert len(github.writes()) == 3


def test_a_list_that_lags_behind_an_update_is_not_answered_with_another(github: GitHub) -> None:
    written(github, draft("before", run=(99, 1)))
    github.faults = [Fault(method="GET", status=200, answer=[dict(github.comments[0])])]
    assert written(github, draft("after")) == Posted("updated", URL)
    assert len(github.writes()) == 2


@pytest.mark.parametrize(
    "others", ["x", f"{B}.1", f"{B}.1.bad.0", f"{B}.{10**9}.fail.0", f"{B}.1.fail.{'0' * 99}", "," * 500]
)
def test_results_that_nobody_wrote_so_are_not_believed(github: GitHub, others: str) -> None:
    marker = f"<!-- rag-contract name= run=100.1 state=pass content=0 contract={A} others={others} -->"
    github.add_comment(marker, login=ACTIONS_BOT)
    assert written(github, draft("green", contract=A, run=(100, 2))) == Posted("updated", URL)


def test_contracts_that_say_the_same_do_not_clash(github: GitHub) -> None:
    written(github, draft("red", state="fail", contract=A))
    assert not written(github, draft("red", state="fail", contract=B)).clash


def test_two_contracts_that_create_their_comments_at_once_leave_the_worse(github: GitHub) -> None:
    def other_job(sent: Sent) -> None:
        if sent.method == "POST" and "comments" in sent.path:
            github.meanwhile = lambda _sent: None
            written(github, draft("red", state="fail", contract=B))

    github.meanwhile = other_job
    assert written(github, draft("green", contract=A)) == Posted("outranked", URL, clash=True)
    assert [body.partition("\n")[2][:3] for body in github.bodies()] == ["red"]


OLD, NEW = "a" * 40, "b" * 40


@pytest.mark.parametrize("when", ["always", "on-change", "on-failure"])
def test_a_run_of_an_older_commit_writes_nothing(github: GitHub, when: CommentWhen) -> None:
    github.add_pull(7, sha=NEW)
    assert written(github, draft(state="fail"), when, commit=OLD) == Posted("outdated")
    assert written(github, draft(state="fail"), when, commit=NEW) == Posted("created", URL)
    assert written(github, draft("late", run=(101, 1)), when, commit=OLD) == Posted("outdated", URL)
    assert "late" not in github.bodies()[0]


def test_a_run_that_left_the_comment_alone_is_not_overwritten_by_an_older_one(github: GitHub) -> None:
    github.add_pull(7, sha=NEW)
    written(github, draft("first", run=(100, 1)), "on-change", commit=NEW)
    assert written(github, draft("first", run=(102, 1)), "on-change", commit=NEW).written == "unchanged"
    assert written(github, draft("late", run=(101, 1)), "on-change", commit=OLD).written == "outdated"


def test_a_token_that_may_not_look_at_the_pull_request_may_comment(github: GitHub) -> None:
    github.faults = [Fault(method="GET", path="/pulls/7$", status=403, message=NOT_ALLOWED)]
    assert written(github, draft(), commit=OLD).written == "created"


def test_a_look_at_the_pull_request_that_fails_is_reported(github: GitHub) -> None:
    github.faults = [Fault(method="GET", path="/pulls/7$", status=502)]
    with pytest.raises(GitHubError, match="502"):
        written(github, draft(), commit=OLD)


def test_a_post_that_was_received_is_found_and_not_sent_again(github: GitHub) -> None:
    github.faults = [Fault(method="POST", path="^/repos", kind="do and drop")]
    assert written(github, draft()).url == URL
    assert [request.split()[0] for request in github.requests][:4] == ["POST", "GET", "POST", "GET"]
    assert not any(request.startswith("POST") for request in github.requests[4:])
    assert len(github.comments) == 1


@pytest.mark.parametrize("fault", [{"kind": "drop"}, {"kind": "half"}, {"status": 502}, {"kind": "not json"}])
def test_a_post_that_was_not_received_is_looked_for_and_then_sent_again(github: GitHub, fault: dict[str, Any]) -> None:
    github.faults = [Fault(method="POST", path="^/repos", times=1, **fault)]
    assert written(github, draft()).written == "created"
    assert [request.split()[0] for request in github.requests] == ["POST", "GET", "POST", "GET", "POST", "GET"]


def test_a_lost_post_that_cannot_be_looked_for_is_not_sent_again_and_is_what_is_reported(github: GitHub) -> None:
    def break_down(sent: Sent) -> None:
        if sent.method == "POST" and "graphql" not in sent.path:
            github.faults.append(Fault(method="GET", status=403, message="and now this"))

    github.faults = [Fault(method="POST", path="^/repos", status=502, message="lost")]
    github.meanwhile = break_down
    with pytest.raises(GitHubError, match="GitHub answered 502: lost"):
        written(github, draft())
    assert len(github.writes()) == 1


def test_a_post_that_is_never_received_is_given_up(github: GitHub) -> None:
    github.faults = [Fault(method="POST", path="^/repos", status=503)]
    with pytest.raises(GitHubError, match="503"):
        written(github, draft())
    assert len(github.writes()) == bounds.COMMENT_TRIES


def test_a_post_of_which_only_the_last_try_arrives_is_found(github: GitHub) -> None:
    github.faults = [
        Fault(method="POST", path="^/repos", times=bounds.COMMENT_TRIES - 1, status=502),
        Fault(method="POST", path="^/repos", kind="do and drop"),
    ]
    assert written(github, draft()).url == URL
    assert len(github.comments) == 1


@pytest.mark.parametrize("status", [429, 502])
def test_after_a_wait_an_update_looks_again_before_it_overwrites(github: GitHub, status: int) -> None:
    written(github, draft("first", run=(99, 1)))

    def newer_run(sent: Sent) -> None:
        if sent.method == "PATCH":
            github.comments[0]["body"] = marked(200) + "\nnewer"

    github.meanwhile = newer_run
    github.faults = [Fault(method="PATCH", times=1, status=status, headers={"Retry-After": "1"})]
    assert written(github, draft("late", run=(100, 1))).written == "newer"
    assert "newer" in github.bodies()[0]


@pytest.mark.parametrize("status", [404, 410])
def test_a_comment_that_is_deleted_between_the_look_and_the_update_is_made_anew(github: GitHub, status: int) -> None:
    written(github, draft("first", run=(99, 1)))

    def delete(sent: Sent) -> None:
        if sent.method == "PATCH":
            github.comments.clear()

    github.meanwhile = delete
    github.faults = [Fault(method="PATCH", status=status)]
    assert written(github, draft("second")).written == "created"
    assert "second" in github.bodies()[0]


def test_a_comment_that_is_there_is_heard_of_before_the_look_after_it(github: GitHub) -> None:
    heard: list[Posted] = []
    written(github, draft(), on_written=heard.append)
    assert heard == [Posted("created", URL)] * 2


def test_the_body_gets_what_room_the_marker_leaves(github: GitHub) -> None:
    def body(max_bytes: int, _before: State | None) -> str:
        return "x" * max_bytes

    written(github, Draft(name="docs", state="pass", run=(1, 1), content="", body=body))
    assert len(github.bodies()[0].encode()) == bounds.COMMENT < 65_536
