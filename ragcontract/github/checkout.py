"""Whether the commit that is checked out is the one that comment and reports name."""

import re
from collections.abc import Iterator
from pathlib import Path

from ragcontract.core import bounds
from ragcontract.core.phrase import Name, Phrase
from ragcontract.github.context import Context, number_at, text_at
from ragcontract.github.files import GIT

OF_BASE = ("pull_request_target", "workflow_run")  # the runner checks out the base branch, if nothing else is named
OWN_COMMIT = ("pull_request", "push", "merge_group")
COMMIT = re.compile(r"[0-9a-f]{40,64}")
REF = {
    "pull_request_target": "${{ github.event.pull_request.head.sha }}",
    "workflow_run": "${{ github.event.workflow_run.head_sha }}",
}


def about_checkout(folder: Path, context: Context, named: int | None) -> Iterator[Phrase]:
    """Yield a warning if the event's commit is checked out, and a pull request's is reported.

    ``folder`` has the contract, and ``named`` is the pull request that an input names. What a checkout without a
    ``.git`` has is not known.
    """
    commit = _checked_out(folder, context.workspace)
    if commit is None:
        return
    base = {context.sha, text_at(context.event, "pull_request", "base", "sha")}
    if context.event_name in OF_BASE and commit in base and commit != context.commit:
        here = ("The checkout is ", Name(commit[:12]), f", as for every {context.event_name} without a ref, ")
        there = ("but this result is of ", Name(context.commit[:12]), "; check that out with ")
        yield (*here, *there, Name(f"ref: {REF[context.event_name]}"), ", unless the run was made of it")
    elif _is_of_default_branch(context, named) and commit == context.sha:
        here = ("The checkout is ", Name(commit[:12]), " of the default branch, ")
        about = f"but this result is reported on #{named}, which the input pull-request names; check it out with "
        yield (*here, about, Name(f"ref: refs/pull/{named}/head"))


def _is_of_default_branch(context: Context, named: int | None) -> bool:
    """Return whether an event that is not about a pull request, but reports on one, has the default branch's commit."""
    if named is None or named == number_at(context.event, "pull_request", "number") or context.event_name in OWN_COMMIT:
        return False
    return text_at(context.event, "repository", "default_branch") in {"", context.branch}


def _checked_out(folder: Path, workspace: Path) -> str | None:
    """Return the commit of the repository in the workspace that has a folder; None if it is not known."""
    inside = folder.resolve()
    for above in (inside, *inside.parents):
        if (above / GIT).is_dir():
            return _head(above / GIT)
        if above == workspace.resolve():
            break
    return None


def _head(git: Path) -> str | None:
    head = _text(git / "HEAD")
    ref = head.removeprefix("ref: ")
    if ref == head:
        return head if COMMIT.fullmatch(head) else None
    if not re.fullmatch(r"refs/[^\0]+", ref) or ".." in ref:
        return None
    loose = _text(git / ref)
    packed = dict(line.split(" ", 1)[::-1] for line in _text(git / "packed-refs").splitlines() if " " in line)
    commit = loose or packed.get(ref, "")
    return commit if COMMIT.fullmatch(commit) else None


def _text(path: Path) -> str:
    try:
        if not path.is_file() or path.stat().st_size > bounds.REPORT:
            return ""
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
