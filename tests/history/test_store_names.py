"""The names by which users open a history."""

import pytest

from ragcontract.core.errors import InputError
from ragcontract.history.folder import Folder
from ragcontract.history.open_store import branch_named, open_store


@pytest.mark.parametrize(
    "name", ["history", "/srv/history", "../history", "C:\\history", "~", "a b", "github", "github/x", "x:github:"]
)
def test_any_path_names_a_folder(name: str) -> None:
    store = open_store(name, {})
    assert isinstance(store, Folder)
    assert store.name == name


WRONG = {
    "": "history: has no name; name a folder, or github: for a branch of this repository",
    "  ": "history: has no name; name a folder, or github: for a branch of this repository",
    "https://rag.example.com/x?y": (
        "https://rag.example.com: needs the team service, which this version does not have; name a folder, or github:"
    ),
    "HTTP://me:secret@rag.example.com": (
        "HTTP://rag.example.com: needs the team service, which this version does not have; name a folder, or github:"
    ),
    "s3://bucket/history": (
        "s3://bucket: is not a store of a history; name a folder, or github: for a branch of this repository"
    ),
    "a\0b": "history 'a\\x00b': a path cannot contain a NUL character",
    "github:org": "github:org: 'org' is not a repository; expected github: or github:owner/name@branch",
    "github:@b": "github:@b: '' is not a repository; expected github: or github:owner/name@branch",
    "github:org/app@": (
        "github:org/app@: '' is not a valid name for a history branch; expected github:owner/name@branch"
    ),
}


@pytest.mark.parametrize(("name", "message"), WRONG.items())
def test_a_name_that_cannot_be_that_of_a_store_is_an_error(name: str, message: str) -> None:
    with pytest.raises(InputError) as raised:
        open_store(name, {})
    assert str(raised.value) == message


BRANCHES = {
    "github:": ("", "rag-contract-history"),
    "github:org/app": ("org/app", "rag-contract-history"),
    "GitHub:org/app@history": ("org/app", "history"),
    "github:org_corp/my.app-1@a/b_c.d": ("org_corp/my.app-1", "a/b_c.d"),
}


@pytest.mark.parametrize(("name", "branch"), BRANCHES.items())
def test_github_names_a_branch(name: str, branch: tuple[str, str]) -> None:
    assert branch_named(name) == branch


NO_BRANCHES = [
    *(
        "a/b/c",
        "a",
        "/a",
        "a/",
        "../x",
        "a/..",
        "a/.",
        "-a/b",
        "a b/c",
        "a/b\n",
        "a/b?x",
        "https://github.com/a/b",
        "a/é",
    ),
    *(
        "a/b@..",
        "a/b@x..y",
        "a/b@/x",
        "a/b@x/",
        "a/b@x//y",
        "a/b@.x",
        "a/b@x/.y",
        "a/b@-x",
        "a/b@x.lock",
        "a/b@x.lock/y",
    ),
    *("a/b@x.", "a/b@x y", "a/b@x~1", "a/b@x^", "a/b@x:y", "a/b@@", "a/b@x\n", "a/b@é", f"a/b@{'x' * 201}", "a/b@{u}"),
]


@pytest.mark.parametrize("name", NO_BRANCHES)
def test_what_github_or_git_would_refuse_names_no_branch(name: str) -> None:
    with pytest.raises(InputError, match=r"expected github:"):
        branch_named(f"github:{name}")
