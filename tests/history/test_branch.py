"""A branch on GitHub as a store: what is in it after each mishap, and what a job is told."""

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.history.entry import EntryId, NewEntry, results_path
from ragcontract.history.interface import README, ConflictError
from tests.github.standin import Fault, GitHub, Sent
from tests.history.entries import FIRST, RUN, digest, id_of, new_entry, results_of, runs
from tests.history.jobs_at_once import BRANCH, Job
from tests.needs import require

COMMIT = "createCommitOnBranch"
ENTRY = new_entry(results=results_of("d1"))


@pytest.fixture(autouse=True)
def _schema() -> None:
    require("npm")


def entries_in(github: GitHub) -> list[str]:
    return sorted(path for path in github.repository.files(BRANCH) if path.startswith("entries/"))


def begin(github: GitHub) -> None:
    github.repository.commit(BRANCH, {"README.md": README.encode()})


def fails(github: GitHub, do: Callable[[Job], object], **options: Any) -> str:
    with pytest.raises(InputError) as raised:
        do(Job(github, **options))
    return str(raised.value)


def add(job: Job) -> str:
    return job.branch.add(ENTRY)


def read(job: Job) -> list[str]:
    return job.branch.contracts()


# Writing


def test_the_first_entry_makes_the_branch_which_has_nothing_of_the_code(github: GitHub) -> None:
    github.repository.commit("main", {"app.py": b""})
    assert add(Job(github)) == "added"
    begun, recorded = github.repository.history(BRANCH)
    assert begun.parents == ()
    assert github.repository.files(BRANCH)["README.md"].decode() == README
    assert recorded.message == "Record docs 3f9c1a2 pass [skip ci]"
    assert recorded.added == {ENTRY.path, f"results/{digest(ENTRY.results)[:2]}/{digest(ENTRY.results)}.jsonl"}
    assert len(github.requests) == 6


def test_an_entry_takes_two_calls_once_there_is_a_branch(github: GitHub) -> None:
    begin(github)
    add(Job(github))
    assert github.requests == ["POST /graphql"] * 2


def test_a_result_set_that_is_there_is_not_sent_again(github: GitHub) -> None:
    add(Job(github))
    Job(github).branch.add(new_entry(run=RUN + 1, results=ENTRY.results))
    added = ["results/" in str(sent.body) for sent in github.sent if COMMIT in str(sent.body)]
    assert added == [True, False]


def test_of_two_jobs_that_make_the_branch_the_second_adds_to_it(github: GitHub) -> None:
    def meanwhile(sent: Sent) -> None:
        if sent.path.endswith("/git/refs"):
            begin(github)

    github.meanwhile = meanwhile
    assert add(Job(github)) == "added"
    assert len(github.repository.history(BRANCH)) == 2
    assert entries_in(github) == [ENTRY.path]


def test_a_head_that_moves_8_times_is_followed(github: GitHub) -> None:
    begin(github)
    others = iter(runs(9)[1:])

    def meanwhile(sent: Sent) -> None:
        if COMMIT in str(sent.body) and (other := next(others, None)):
            github.repository.commit(BRANCH, {other.path: other.content})

    github.meanwhile = meanwhile
    job = Job(github)
    assert add(job) == "added"
    assert len(entries_in(github)) == 9
    assert len(github.requests) == 18
    most = [min(0.5 * 2**number, 15) for number in range(8)]
    assert all(0 <= wait <= longest for wait, longest in zip(job.waits, most, strict=True))


REPEATED = {
    "502": {"status": 502},
    "a page of HTML": {"kind": "not json"},
    "half an answer": {"kind": "half"},
    "no answer": {"kind": "drop"},
    "an error of GraphQL that may pass": {"status": 200, "answer": {"errors": [{"message": "Something went wrong"}]}},
}


@pytest.mark.parametrize("fault", REPEATED.values(), ids=REPEATED.keys())
def test_a_commit_that_fails_is_asked_for_again_after_a_look(github: GitHub, fault: dict[str, Any]) -> None:
    begin(github)
    github.faults = [Fault(body=COMMIT, times=3, **fault)]
    assert add(Job(github)) == "added"
    assert len(github.requests) == 8
    assert entries_in(github) == [ENTRY.path]


def test_a_commit_whose_answer_was_lost_is_found(github: GitHub) -> None:
    begin(github)
    github.faults = [Fault(body=COMMIT, times=1, kind="do and drop")]
    assert add(Job(github)) == "added"
    assert len(github.repository.history(BRANCH)) == 2
    assert len(github.requests) == 3


def test_a_branch_whose_creation_was_lost_is_found(github: GitHub) -> None:
    github.faults = [Fault(path="git/refs", times=1, kind="do and drop")]
    assert add(Job(github)) == "added"
    assert entries_in(github) == [ENTRY.path]


@pytest.mark.parametrize("status", [403, 429])
@pytest.mark.parametrize("call", [COMMIT, "query"])
def test_a_rate_limit_is_waited_out_as_github_says(github: GitHub, status: int, call: str) -> None:
    begin(github)
    github.faults = [Fault(body=call, times=1, status=status, message="slow down", headers={"Retry-After": "7"})]
    job = Job(github)
    assert add(job) == "added"
    assert job.waits == [7]


NEEDS_WRITE = "; the recording job needs `permissions: contents: write`"
NEEDS_READ = "; reading it needs `permissions: contents: read`"
TOO_LATE = "; the next try would come after the 150 seconds that github-timeout allows"
FORBIDDEN = "Resource not accessible by integration"
REFUSED: dict[str, tuple[Fault, str]] = {
    "401": (Fault(status=401, message="Bad credentials"), "github: GitHub answered 401: Bad credentials"),
    "403": (Fault(status=403, message=FORBIDDEN), f"github: GitHub answered 403: {FORBIDDEN}{NEEDS_WRITE}"),
    "403 of an archived repository": (
        Fault(path="git/trees", status=403, message="Repository was archived so is read-only."),
        "github: GitHub answered 403: Repository was archived so is read-only.",
    ),
    "404": (Fault(status=404, message="Not Found"), f"github: GitHub answered 404: Not Found{NEEDS_WRITE}"),
    "409": (
        Fault(path="git/trees", status=409, message="Git Repository is empty."),
        "github: GitHub answered 409: Git Repository is empty.",
    ),
    "422": (
        Fault(path="git/refs", status=422, message="Reference update failed"),
        "github: GitHub answered 422: Reference update failed",
    ),
    "403 in words that 422 has": (
        Fault(path="git/refs", status=403, message="A rule already exists"),
        "github: GitHub answered 403: A rule already exists",
    ),
    "429 for longer than there is time": (
        Fault(body=COMMIT, status=429, message="slow down", headers={"Retry-After": "200"}),
        f"github: GitHub answered 429: slow down{TOO_LATE}",
    ),
    "a page of HTML, always": (
        Fault(kind="not json"),
        "github: GitHub's answer is not JSON",
    ),
    "502, always": (
        Fault(body=COMMIT, status=502, message="Bad Gateway"),
        f"github: GitHub answered 502: Bad Gateway{TOO_LATE}",
    ),
    "a type of error that does not pass": (
        Fault(body=COMMIT, status=200, answer={"errors": [{"type": "UNPROCESSABLE", "message": "No"}]}),
        "github: GitHub's answer is an error: No",
    ),
    "an answer without data": (
        Fault(body=COMMIT, status=200, answer={"data": []}),
        f"github: GitHub's answer has no data{TOO_LATE}",
    ),
}


@pytest.mark.parametrize(("fault", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_what_cannot_be_recorded_is_explained(github: GitHub, fault: Fault, message: str) -> None:
    github.faults = [fault]
    assert fails(github, add) == message
    assert entries_in(github) == []


def test_a_call_that_hangs_ends_with_the_time_for_github(github: GitHub) -> None:
    begin(github)
    github.faults = [Fault(body=COMMIT, kind="hang")]
    assert fails(github, add, seconds=0.5).startswith("github: GitHub could not be reached (")
    assert entries_in(github) == []


def test_a_protected_branch_is_not_written(github: GitHub) -> None:
    begin(github)
    github.repository.protected.add(BRANCH)
    assert fails(github, add) == "github: GitHub's answer is an error: Changes must be made through a pull request."
    assert len(github.requests) == 2


@pytest.mark.parametrize("begun", [True, False])
def test_the_token_of_a_fork_may_only_read(github: GitHub, *, begun: bool) -> None:
    if begun:
        begin(github)
    github.repository.access = "read"
    assert fails(github, add).endswith(f"{FORBIDDEN}{NEEDS_WRITE}")
    assert Job(github).branch.contracts() == []


def test_a_token_that_may_not_read_is_told_what_it_needs(github: GitHub) -> None:
    github.repository.access = "none"
    assert fails(github, read) == f"github: GitHub's answer is an error: {FORBIDDEN}{NEEDS_READ}"


@pytest.mark.parametrize("other", [new_entry(at=FIRST + timedelta(seconds=9)), new_entry(commit="a" * 12)])
def test_two_contracts_of_a_run_with_one_name_are_asked_for_names(github: GitHub, other: NewEntry) -> None:
    add(Job(github))
    with pytest.raises(ConflictError, match=r"already recorded another check .* give each contract of a run its own"):
        Job(github).branch.add(other)
    assert entries_in(github) == [ENTRY.path]


def test_the_second_attempt_of_a_run_is_an_entry_of_its_own(github: GitHub) -> None:
    add(Job(github))
    again = new_entry(at=FIRST + timedelta(hours=1), attempt=2)
    assert Job(github).branch.add(again) == "added"
    assert entries_in(github) == sorted([ENTRY.path, again.path])


def test_at_a_months_end_each_entry_is_in_the_month_of_its_check(github: GitHub) -> None:
    end = FIRST.replace(day=30, hour=23, minute=59, second=59)
    entries = [new_entry(at=end, run=RUN + 1), new_entry(at=end + timedelta(seconds=1), run=RUN + 2)]
    assert [Job(github).branch.add(entry) for entry in entries] == ["added"] * 2
    job = Job(github)
    assert job.branch.months("docs") == ["2026-12", "2026-11"]
    assert job.branch.ids("docs", ["2026-12", "2026-11"]) == [id_of(entry) for entry in reversed(entries)]


# Reading


def test_the_last_20_entries_are_read_with_3_calls(github: GitHub) -> None:
    entries = runs(60)
    github.repository.commit(BRANCH, {entry.path: entry.content for entry in entries})
    store = Job(github).branch
    assert store.contracts() == ["docs"]
    ids = store.ids("docs", store.months("docs")[:2])[:20]
    assert store.read("docs", ids) == {entry.entry.id: entry.content for entry in entries[-20:]}
    assert github.requests == ["POST /graphql"] * 3


def test_an_entry_that_is_named_is_read_with_its_month_only(github: GitHub) -> None:
    entries = runs(60)
    github.repository.commit(BRANCH, {entry.path: entry.content for entry in entries})
    assert Job(github).branch.read("docs", [id_of(entries[7])]) == {entries[7].entry.id: entries[7].content}
    assert len(github.requests) == 3
    assert str(github.sent[1].body).count("entries/docs/2026-") == 1


def test_a_result_set_takes_one_call_beside_the_list_of_all(github: GitHub) -> None:
    for entry in runs(3):
        Job(github).branch.add(entry)
    github.requests.clear()
    store = Job(github).branch
    sets = store.result_sets()
    assert {store.results(name) for name in sets} == {results_of(f"d{number}") for number in range(3)}
    assert github.requests[0] == "POST /graphql"
    assert [request.partition("/git/")[0] for request in github.requests[1:]] == ["GET /repos/octo/app"] * 3


def test_what_is_read_is_of_one_head(github: GitHub) -> None:
    first, second = runs(2)
    Job(github).branch.add(first)
    store = Job(github).branch
    assert store.months("docs") == ["2026-11"]
    Job(github).branch.add(second)
    assert store.ids("docs", ["2026-11"]) == [id_of(first)]
    assert Job(github).branch.ids("docs", ["2026-11"]) == [id_of(second), id_of(first)]


@pytest.mark.parametrize("content", [b'{"a": "\xff"}', b"{\0}", b"", "ä€😀\u2028".encode()])
def test_bytes_that_are_no_text_are_read_as_they_are(github: GitHub, content: bytes) -> None:
    github.repository.commit(BRANCH, {ENTRY.path: content})
    assert Job(github).branch.read("docs", [id_of(ENTRY)]) == {ENTRY.entry.id: content}


def test_a_text_that_is_cut_is_read_singly(github: GitHub) -> None:
    github.repository.largest_text = 100
    github.repository.commit(BRANCH, {ENTRY.path: ENTRY.content})
    assert Job(github).branch.read("docs", [id_of(ENTRY)]) == {ENTRY.entry.id: ENTRY.content}
    assert "GET /repos/octo/app/git/blobs/" in github.requests[-1]


def test_an_entry_that_is_too_large_is_seen_to_be_and_not_fetched(github: GitHub) -> None:
    github.repository.commit(BRANCH, {ENTRY.path: b" " * (1 << 20)})
    [content] = Job(github).branch.read("docs", [id_of(ENTRY)]).values()
    assert len(content) == bounds.ENTRY + 1
    assert len(github.requests) == 2


LARGE = b'{"a": "%s"}' % (b"\x01" * (bounds.ENTRY - 10))  # each of these bytes is six in an answer


def test_many_large_entries_are_read(github: GitHub) -> None:
    entries = runs(24, hours=1)
    github.repository.commit(BRANCH, {entry.path: LARGE for entry in entries})
    store = Job(github).branch
    ids = store.ids("docs", store.months("docs"))
    assert store.read("docs", ids) == dict.fromkeys((entry_id.id for entry_id in ids), LARGE)


HOSTILE = (
    "entries/../2026-11/20261121T203000Z-3f9c1a2b4d5e-1-1.json",
    "entries/UP/2026-11/20261121T203000Z-3f9c1a2b4d5e-1-1.json",
    "entries/docs\n::error::/2026-11/20261121T203000Z-3f9c1a2b4d5e-1-1.json",
    "entries/docs/2026-11",
    "entries/docs/2026-1x/20261121T203000Z-3f9c1a2b4d5e-1-1.json",
    "entries/docs/2026-12/20261121T203000Z-3f9c1a2b4d5e-1-1.json",
    "entries/docs/2026-10/../../x.json",
    "entries/docs/2026-10/20261321T203000Z-3f9c1a2b4d5e-1-1.json",
    "entries/docs/2026-10/20261021T203000Z-3f9c1a2b4d5e-1-1.json/x",
    "entries/docs/2026-10/-1-1.json",
    f"results/ab/{'c' * 64}.jsonl",
    f"results/cc/{'c' * 64}.json",
    f"results/cc/{'C' * 64}.jsonl",
    f"results/dd/{'d' * 64}.jsonl/x",
    "results/x",
    "results",
)


@pytest.mark.parametrize("path", HOSTILE)
def test_names_that_this_program_does_not_give_are_not_looked_at(github: GitHub, path: str) -> None:
    github.repository.commit(BRANCH, {path: b"x"})
    store = Job(github).branch
    for contract in store.contracts():
        assert contract == "docs"
        assert set(store.months(contract)) <= {"2026-10", "2026-12"}
        assert store.ids(contract, ["..", "2026-10", "2026-11", "2026-12"]) == []
    assert store.result_sets() == set()
    assert store.results("../../x") is None
    assert store.ids("..", ["2026-11"]) == []


MONTH = {"name": "2026-11", "type": "tree"}
DOCS = {"name": "docs", "object": {"entries": [MONTH]}}
ANSWERS: tuple[Any, ...] = (
    {},
    {"repository": None},
    {"repository": {"ref": "x", "entries": [1], "results": 7}},
    {"repository": {"ref": {"target": {"oid": "../x"}}, "entries": {"entries": [None, 1, {"name": 1}, DOCS]}}},
    {"repository": {"entries": {"entries": [{"name": "docs", "object": {"entries": [{"name": ["2026-11"]}, {}]}}]}}},
    {"repository": {"results": {"entries": [{"name": "ab", "object": {"entries": [{"name": "ab", "oid": 1}]}}]}}},
)


@pytest.mark.parametrize("data", ANSWERS, ids=json.dumps)
def test_an_answer_in_a_wrong_shape_has_nothing_in_it(github: GitHub, data: Any) -> None:
    github.faults = [Fault(status=200, answer={"data": data})]
    store = Job(github).branch
    assert store.contracts() == []
    assert store.months("docs") == []
    assert store.ids("docs", ["2026-11"]) == []
    assert store.read("docs", [id_of(ENTRY)]) == {}
    assert store.result_sets() == set()


def test_the_id_of_a_content_is_gits_so_that_equal_ones_are_seen(github: GitHub) -> None:
    github.repository.commit(BRANCH, {ENTRY.path: ENTRY.content})
    assert add(Job(github)) == "exists"
    assert [commit.added for commit in github.repository.history(BRANCH)] == [
        {ENTRY.path},
        {results_path(digest(ENTRY.results))},
    ]
    assert add(Job(github)) == "exists"
    assert len(github.repository.history(BRANCH)) == 2, "the result set is there again"


# Pruning


def test_result_sets_are_deleted_100_a_commit_and_entries_stay(github: GitHub) -> None:
    entries = runs(130)
    files = {f"results/{digest(entry.results)[:2]}/{digest(entry.results)}.jsonl": entry.results for entry in entries}
    github.repository.commit(BRANCH, {path: content for path, content in files.items() if content})
    github.repository.commit(BRANCH, {entry.path: entry.content for entry in entries})
    github.faults = [Fault(body=COMMIT, times=1, kind="do and drop"), Fault(body=COMMIT, every=2, times=1, status=502)]
    kept = {digest(entry.results) for entry in entries[-5:]}
    store = Job(github).branch
    store.delete_results([*store.result_sets() - kept, "0" * 64, "../../README"])
    assert store.result_sets() == kept
    assert [len(commit.deleted) for commit in github.repository.history(BRANCH)] == [0, 0, 100, 25]
    assert len(entries_in(github)) == 130


def test_no_result_set_is_deleted_that_a_new_entry_may_have(github: GitHub) -> None:
    entries = runs(2)
    files = {entry.path: entry.content for entry in entries}
    sets = {results_path(digest(entry.results)): entry.results or b"" for entry in entries}
    github.repository.commit(BRANCH, files | sets)
    store = Job(github).branch
    assert store.contracts() == ["docs"]
    github.repository.commit(BRANCH, {"entries/docs/2026-12/new.json": b"recorded meanwhile"})
    with pytest.raises(InputError, match="changed meanwhile; run the command again"):
        store.delete_results([digest(entries[0].results)])
    assert len(store.result_sets()) == 2


def test_pruning_a_history_that_is_not_there_makes_no_branch(github: GitHub) -> None:
    Job(github).branch.delete_results(["0" * 64])
    assert BRANCH not in github.repository.branches


def test_the_branch_of_another_name_is_not_touched(github: GitHub) -> None:
    github.repository.commit("main", {ENTRY.path: b"the code's own"})
    assert Job(github).branch.ids("docs", ["2026-11"]) == []
    add(Job(github))
    assert github.repository.files("main") == {ENTRY.path: b"the code's own"}
    assert EntryId.of(ENTRY.entry.id) == Job(github).branch.ids("docs", ["2026-11"])[0]
