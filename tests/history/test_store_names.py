"""The names by which users open a history."""

from pathlib import Path

import pytest

from ragcontract.core.errors import InputError
from ragcontract.history.folder import Folder
from ragcontract.history.open_store import EXPECTED, branch_named, open_store

PATHS = ["history", "/srv/history", "../history", "C:\\history", "~", "a b", "github", "github/x", "x:github:"]
NO_HOSTS = ["history.d", "v1.2", "data/rag.example.com", "./rag.example.com", "./localhost:8000"]


@pytest.mark.parametrize("name", [*PATHS, *NO_HOSTS])
def test_any_path_names_a_folder(name: str) -> None:
    store = open_store(name, {})
    assert isinstance(store, Folder)
    assert store.name == name


WRONG = {
    "": f"history: has no name; name {EXPECTED}",
    "  ": f"history: has no name; name {EXPECTED}",
    "https://rag.example.com/x?y": (
        "https://rag.example.com: paths are added to the address; leave out what begins with ? or #"
    ),
    "https://rag.example.com#y": (
        "https://rag.example.com: paths are added to the address; leave out what begins with ? or #"
    ),
    "https://me:secret@rag.example.com/x": (
        "https://rag.example.com: has a user name or a password in it; give the key in RAG_CONTRACT_TOKEN"
    ),
    "https://secret@rag.example.com": (
        "https://rag.example.com: has a user name or a password in it; give the key in RAG_CONTRACT_TOKEN"
    ),
    "HTTP://rag.example.com": "HTTP://rag.example.com: would get the key without encryption; use https://",
    "http://127.0.0.1.example.com": (
        "http://127.0.0.1.example.com: would get the key without encryption; use https://"
    ),
    "https://": "https://: is not an address such as https://rag.example.com",
    "https://me:secret@": "https://: is not an address such as https://rag.example.com",
    "https://a b/c?secret": "https://a b: is not an address such as https://rag.example.com",
    "https://rag.example.com:x/secret": (
        "https://rag.example.com:x: is not an address such as https://rag.example.com"
    ),
    "https://rag.example.com/a\n": "https://rag.example.com: is not an address such as https://rag.example.com",
    "https://[secret": "https://[secret: is not an address such as https://rag.example.com",
    **{
        name: f"history: {name}: begin the address of a team service with https://, or the path of a folder with ./"
        for name in ("rag.example.com", "RAG.example.com/api/v1", "localhost:8000", "rag:8000/docs", "10.0.0.7")
    },
    "s3://bucket/history": f"s3://bucket: is not a store of a history; name {EXPECTED}",
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


KEY = f"rc_1a2b3c4d_{'x' * 43}"


@pytest.mark.parametrize(
    "name",
    [
        *(
            "https://rag.example.com",
            "HTTPS://RAG.example.com:8443/base/",
            "http://localhost:8000",
            "http://[::1]:8000",
        ),
        *("http://127.0.0.1:8000/base", "https://rag.example.com/api/v1"),
    ],
)
def test_an_address_names_a_service(name: str) -> None:
    assert open_store(name, {"RAG_CONTRACT_TOKEN": f" {KEY}\n"}).name == name


WRONG_KEYS = [
    "",
    " ",
    "secret",
    KEY[:-1],
    f"{KEY}x",
    f"rc 1a2b3c4d_{'x' * 43}",
    f"{KEY}\n{KEY}",
    f"Bearer {KEY}",
    f"{KEY[:-1]}é",
]


@pytest.mark.parametrize("key", WRONG_KEYS)
def test_a_service_needs_a_key_which_no_message_quotes(key: str) -> None:
    with pytest.raises(InputError) as raised:
        open_store("https://rag.example.com", {"RAG_CONTRACT_TOKEN": key})
    message = str(raised.value)
    assert "RAG_CONTRACT_TOKEN" in message
    assert "`rag-contract service token add NAME --scope read --scope record` makes one" in message
    assert not key.strip() or key.strip() not in message


def test_a_folder_that_is_there_may_be_named_as_a_host_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rag.example.com").mkdir()
    assert isinstance(open_store("rag.example.com", {}), Folder)


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
