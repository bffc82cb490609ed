"""Opens the store of a history by the name that a user gave it.

A name is the path of a folder, or ``github:`` for a branch: of this repository, or as ``github:owner/name@branch``, or
the address of a team service. It comes from an option, the environment or an input of the action, never from
``ragcontract.yml``, which a pull request can change.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.lines import Line
from ragcontract.core.safe_text import clipped
from ragcontract.files.git import git
from ragcontract.github.context import SERVICE_KEY, Context, GitHubError, Token
from ragcontract.github.pull_request import connect
from ragcontract.github.settings import HISTORY_BRANCH
from ragcontract.history.folder import Folder
from ragcontract.history.interface import NotReachableError, Store
from ragcontract.net.pacing import Timing

if TYPE_CHECKING:
    import requests

    from ragcontract.github.http import Client
    from ragcontract.history.branch import Branch
    from ragcontract.history.service_store import ServiceStore

BRANCH_STORE: "Line[type[Branch]]" = Line(home="ragcontract.history.branch:Branch")  # which loads requests
SERVICE_STORE: "Line[type[ServiceStore]]" = Line(home="ragcontract.history.service_store:ServiceStore")
SESSION: "Line[type[requests.Session]]" = Line(home="requests:Session")
TOKENS = ("GITHUB_TOKEN", "GH_TOKEN")  # the variables that may have the token
EXPECTED = "a folder, github: for a branch of this repository, or https://… of a team service"
_ON_GITHUB = "github:"
_ADDRESS = re.compile(r"([a-z][a-z0-9+.-]*)://(?:[^/?#]*@)?([^/?#]*)", re.IGNORECASE)
_HOST = re.compile(r"[a-z0-9-]+(\.[a-z0-9-]+)*((\.[a-z0-9-]+){2}|:[0-9]+)(/|$)", re.IGNORECASE)
_REPOSITORY = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}/(?!\.{1,2}$)[A-Za-z0-9._-]{1,100}")
# Stricter than git, so that a branch needs no quoting in a URL or a message.
_BRANCH = re.compile(
    r"(?=.{1,200}$)(?!.*\.\.)(?!.*\.lock(/|$))[A-Za-z0-9_][A-Za-z0-9._-]*(/[A-Za-z0-9_][A-Za-z0-9._-]*)*"
)


def open_store(name: str, environ: Mapping[str, str], *, seconds: float = bounds.TIMEOUT_DEFAULT) -> Store:
    """Return the store that a user named; raises InputError if the name cannot be that of a store.

    A folder does not need to exist. All calls to GitHub or to a team service take at most ``seconds``. ``environ`` has
    the token or the key.
    """
    if not name.strip():
        raise InputError([f"history: has no name; name {EXPECTED}"])
    if name.lower().startswith(_ON_GITHUB):
        repository, branch = branch_named(name)
        of = repository or repository_here(environ)
        shown = name if repository else f"{_ON_GITHUB}{of}"  # a message that starts with it has one colon
        return BRANCH_STORE.load()(client_for(environ, of, seconds=seconds), repository=of, branch=branch, name=shown)
    if is_service(name):
        return SERVICE_STORE.load()(name, environ.get(SERVICE_KEY, "").strip(), seconds=seconds, timing=Timing())
    if address := _ADDRESS.match(name):
        scheme, host = address.groups()  # without what may be secret in it
        raise InputError([f"{scheme}://{host}: is not a store of a history; name {EXPECTED}"])
    if problem := like_an_address(name):
        raise InputError([f"history: {problem}"])
    if "\0" in name:
        raise InputError([f"history {name!r}: a path cannot contain a NUL character"])
    return Folder(name)


def branch_named(name: str) -> tuple[str, str]:
    """Return the repository, such as org/app, and the branch that ``github:`` and what follows it names.

    The repository is empty for the one in which the command runs. Raises InputError if the name is none of a branch.
    """
    repository, at, branch = name[len(_ON_GITHUB) :].partition("@")
    if not repository and not at:
        return "", HISTORY_BRANCH
    if not _REPOSITORY.fullmatch(repository):
        raise InputError([f"{name}: {repository!r} is not a repository; expected github: or github:owner/name@branch"])
    if at and not is_branch_name(branch):
        expected = "expected github:owner/name@branch"
        raise InputError([f"{name}: {branch!r} is not a valid name for a history branch; {expected}"])
    return repository, branch or HISTORY_BRANCH


def is_branch_name(branch: str) -> bool:
    """Return whether a branch may have a history: letters, digits, and ``._-`` in parts between slashes."""
    return bool(_BRANCH.fullmatch(branch)) and not branch.endswith(".")


def is_service(name: str) -> bool:
    """Return whether the name of a store is the address of a team service."""
    return name.lower().startswith(("https://", "http://"))


def like_an_address(name: str) -> str:
    """Return what is wrong with the address of a service that lacks https://; empty for any other name.

    As the path of a folder it would work, and what is recorded would be lost with the job.
    """
    if not _HOST.match(name) or os.path.lexists(name):
        return ""
    begin = "begin the address of a team service with https://, or the path of a folder with ./"
    return f"{clipped(name, bounds.VALUE)}: {begin}"


def is_folder(name: str) -> bool:
    """Return whether the name of a store is the path of a folder."""
    return not name.lower().startswith(_ON_GITHUB) and not _ADDRESS.match(name)


def client_for(environ: Mapping[str, str], repository: str, *, seconds: float) -> "Client":
    """Return a client for GitHub with the token in the environment; raises InputError without one."""
    token = next((environ[name] for name in TOKENS if environ.get(name)), "")
    if not token:
        raise NotReachableError([f"history: GitHub needs a token that may read {repository}; set {TOKENS[0]}"])
    if not re.fullmatch("[!-~]+", token.strip()):
        raise InputError([f"history: {TOKENS[0]} has a space or a character in it that no token has"])
    context = replace(Context.from_environ(environ), token=Token(token.strip()), repository=repository)
    try:
        return connect(context, SESSION.load(), Timing(), seconds=seconds)
    except GitHubError as error:
        raise InputError([f"history: {error}"]) from error


def repository_here(environ: Mapping[str, str], folder: Path = Path()) -> str:
    """Return the repository on GitHub in which a command runs, as ``org/app``; raises InputError if that is unknown."""
    remote = (git(folder, "remote", "get-url", "origin") or b"").decode(errors="replace").strip()
    match = re.search(r"github\.com[:/]([^/]+/[^/]+?)(?:\.git)?/?$", remote)
    repository = environ.get("GITHUB_REPOSITORY") or (match[1] if match else "")
    if not _REPOSITORY.fullmatch(repository):
        neither = "neither GITHUB_REPOSITORY nor the git remote names one"
        raise NotReachableError([f"github: cannot find the repository: {neither}; use github:owner/name"])
    return repository
