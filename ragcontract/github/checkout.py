"""Whether the commit that is checked out is the one that comment and reports name."""

import re
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.core.phrase import Name, Phrase
from ragcontract.github.context import Context, at, number_at, text_at
from ragcontract.github.files import GIT

OF_BASE = ("pull_request_target", "workflow_run")  # the runner checks out the base branch, if nothing else is named
OWN_COMMIT = ("pull_request", "merge_group")
COMMIT = re.compile(r"[0-9a-f]{40,64}")
OF_PULL = "ref: ${{ github.event.pull_request.head.sha }}"
BASE = "the pull request's base"
SAME_NAME = "a branch that has the name of the pull request's base"
REF = {"pull_request_target": OF_PULL, "workflow_run": "ref: ${{ github.event.workflow_run.head_sha }}"}


class Head(Struct, frozen=True):
    """What a repository has checked out."""

    commit: str
    branch: str  # empty if the commit was checked out without one


def about_checkout(folder: Path, context: Context, named: int | None) -> Iterator[Phrase]:
    """Yield a warning if a pull request's result is reported, and the event's commit or the base is checked out.

    ``folder`` has the contract, and ``named`` is the pull request that an input names. What a checkout without a
    ``.git`` has is not known.
    """
    head = _checked_out(folder, context.workspace)
    if head is None:
        return
    commit = head.commit
    there = ("but this result is of ", Name(context.commit[:12]), "; check that out with ")
    unless = ", unless the run was made of it"
    if context.event_name in OF_BASE and commit == context.sha != context.commit:
        here = ("The checkout is ", Name(commit[:12]), f", as for every {context.event_name} without a ref, ")
        yield (*here, *there, Name(REF[context.event_name]), unless)
    elif whose := _of_base(head, context):
        here = ("The checkout is ", Name(commit[:12]), f" of {whose}, ")
        yield (*here, *there, Name(OF_PULL), unless)
    elif _is_of_default_branch(context, named) and commit == context.sha:
        here = ("The checkout is ", Name(commit[:12]), " of the default branch, ")
        about = f"but this result is reported on #{named}, which the input pull-request names; check it out with "
        yield (*here, about, Name(f"ref: refs/pull/{named}/head"))


def _of_base(head: Head, context: Context) -> str:
    """Return whose commit is checked out if it is that of the base of the event's pull request, or of its branch.

    The result is empty if it is neither. If the pull request's own branch, of a fork, has the same name, it may be that
    one in an older or a newer state.
    """
    base, own = (at(context.event, "pull_request", side) for side in ("base", "head"))
    if head.commit == context.commit:
        return ""
    if head.commit == text_at(base, "sha"):
        return BASE
    if not head.branch or head.branch != text_at(base, "ref"):
        return ""
    return BASE if text_at(own, "ref") != head.branch else SAME_NAME


def _is_of_default_branch(context: Context, named: int | None) -> bool:
    """Return whether an event that is not about a pull request, but reports on one, has the default branch's commit."""
    if named is None or named == number_at(context.event, "pull_request", "number") or context.event_name in OWN_COMMIT:
        return False
    return text_at(context.event, "repository", "default_branch") in {"", context.branch}


def _checked_out(folder: Path, workspace: Path) -> Head | None:
    """Return what the repository in the workspace that has a folder has checked out; None if it is not known."""
    inside = folder.resolve()
    for above in (inside, *inside.parents):
        if (above / GIT).is_dir():
            return _head(above / GIT)
        if above == workspace.resolve():
            break
    return None


def _head(git: Path) -> Head | None:
    head = _text(git / "HEAD")
    ref = head.removeprefix("ref: ")
    if ref == head:
        return Head(head, "") if COMMIT.fullmatch(head) else None
    if not re.fullmatch(r"refs/[^\0]+", ref) or ".." in ref:
        return None
    loose = _text(git / ref)
    packed = dict(line.split(" ", 1)[::-1] for line in _text(git / "packed-refs").splitlines() if " " in line)
    commit = loose or packed.get(ref, "")
    return Head(commit, ref.removeprefix("refs/heads/")) if COMMIT.fullmatch(commit) else None


def _text(path: Path) -> str:
    try:
        if not path.is_file() or path.stat().st_size > bounds.REPORT:
            return ""
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
