"""The git data of the stand-in, and GraphQL over GitHub's schema: wrong queries must be refused, and ids be git's."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ragcontract.github.context import GitHubError
from tests.github.standin import Fault, GitHub
from tests.github.test_client import client_of
from tests.needs import require


@pytest.fixture
def lenient() -> Iterator[GitHub]:
    require("npm")
    with GitHub() as standin:
        yield standin
        standin.refused.clear()  # here it is the point to be refused


WRONG: dict[str, tuple[str, dict[str, Any], str]] = {
    "an unknown field": ("query { viewer { nickname } }", {}, "Cannot query field 'nickname' on type 'User'"),
    "an unknown argument": ('query { repository(owner: "a", nam: "b") { id } }', {}, "Unknown argument 'nam'"),
    "a missing variable": ("query($ids: [ID!]!) { nodes(ids: $ids) { id } }", {}, "'$ids' of required type"),
    "a variable of another type": (
        "query($ids: [ID!]!) { nodes(ids: $ids) { id } }",
        {"ids": [{}]},
        "got invalid value",
    ),
    "a field that this type lacks": (
        'query { repository(owner: "a", name: "b") { object(expression: "x") { text } } }',
        {},
        "Cannot query field 'text' on type 'GitObject'",
    ),
    "no query": ("viewer", {}, "Syntax Error"),
}


@pytest.mark.parametrize(("query", "variables", "why"), WRONG.values(), ids=WRONG.keys())
def test_a_query_that_the_schema_does_not_allow_is_refused_and_remembered(
    lenient: GitHub, query: str, variables: dict[str, Any], why: str
) -> None:
    with pytest.raises(GitHubError):
        client_of(lenient).graphql(query, variables, tries=1)
    assert why in lenient.refused[0]


def test_an_answer_that_the_schema_does_not_allow_is_the_stand_ins_mistake(lenient: GitHub) -> None:
    lenient.viewer_login = None  # type: ignore[assignment]
    with pytest.raises(GitHubError):
        client_of(lenient).graphql("query { viewer { login } }", {}, tries=1)
    assert "Cannot return null for non-nullable field User.login" in lenient.refused[0]


def git(folder: Path, *arguments: str, given: bytes = b"") -> str:
    return subprocess.run(["git", *arguments], cwd=folder, input=given, capture_output=True, check=True).stdout.decode()


def test_files_trees_and_commits_have_the_ids_that_git_gives_them(github: GitHub, tmp_path: Path) -> None:
    files = {"a/b/c": b"1", "a.b": b"2", "a-b": b"3", "z": b""}
    head = github.repository.commit("main", files)
    git(tmp_path, "init", "-q")
    for path, content in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(content)
    git(tmp_path, "add", "-A")
    tree = git(tmp_path, "write-tree").strip()
    person = "github-actions[bot] <bot@example.org> 1800000000 +0000"
    commit = f"tree {tree}\nauthor {person}\ncommitter {person}\n\na commit".encode()
    assert git(tmp_path, "hash-object", "-t", "commit", "--stdin", given=commit).strip() == head
    listed = git(tmp_path, "ls-files", "-s").splitlines()
    assert sorted(line.split()[1] for line in listed) == sorted(github.repository.commits[head].files.values())


def test_a_commit_on_a_head_that_moved_is_stale(github: GitHub) -> None:
    require("npm")
    old = github.repository.commit("main", {"a": b""})
    new = github.repository.commit("main", {"b": b""})
    commit = {
        "branch": {"repositoryNameWithOwner": "octo/app", "branchName": "main"},
        "expectedHeadOid": old,
        "message": {"headline": "x"},
        "fileChanges": {"additions": [{"path": "c", "contents": "eA=="}]},
    }
    mutation = "mutation($input: CreateCommitOnBranchInput!) { createCommitOnBranch(input: $input) { commit { oid } } }"
    with pytest.raises(GitHubError, match="Expected branch to point to") as raised:
        client_of(github).graphql(mutation, {"input": commit})
    assert raised.value.kind == "STALE_DATA"
    assert raised.value.retry_after is None
    made = client_of(github).graphql(mutation, {"input": commit | {"expectedHeadOid": new}})
    assert github.repository.branches["main"] == made["createCommitOnBranch"]["commit"]["oid"]
    assert github.repository.history("main")[-1].added == {"c"}
    assert github.repository.files("main")["c"] == b"x"


def test_a_status_is_set(github: GitHub) -> None:
    status = {"state": "success", "context": "rag-contract/release", "description": "docs passed"}
    client_of(github).create_status("a" * 40, **status)  # type: ignore[arg-type]
    assert github.repository.statuses == [("a" * 40, status)]


@pytest.mark.parametrize("content", [b"", b"\0\xff" * 100, b"x" * 8_000_000], ids=len)
def test_a_file_is_read_as_it_is(github: GitHub, content: bytes) -> None:
    github.repository.commit("main", {"a": content})
    [sha] = github.repository.commits[github.repository.branches["main"]].files.values()
    assert client_of(github).blob(sha) == content


@pytest.mark.parametrize(
    "answer", [{}, {"content": "x", "encoding": "base64"}, {"content": "", "encoding": "none"}, []]
)
def test_a_file_in_a_wrong_shape_is_an_error(github: GitHub, answer: Any) -> None:
    github.faults = [Fault(status=200, answer=answer)]
    with pytest.raises(GitHubError, match="is not the file it should be"):
        client_of(github).blob("a" * 40)
