"""Where a check ran: the commit, the branch and the CI job, from the CI's variables, else from git."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from ragcontract.core.safe_text import encodable
from ragcontract.files.git import branch_of, commit_of
from ragcontract.github.context import Context
from ragcontract.history.commits import CheckContext, Commits, reachable_by_git
from ragcontract.history.entry import Origin, is_commit

# Variables of CI systems: GitHub Actions, GitLab, Jenkins. The first that is set counts.
COMMIT = ("GITHUB_SHA", "CI_COMMIT_SHA", "GIT_COMMIT")
BRANCH = ("GITHUB_HEAD_REF", "GITHUB_REF_NAME", "CI_COMMIT_BRANCH", "CI_COMMIT_REF_NAME", "GIT_BRANCH")
REPOSITORY = ("GITHUB_REPOSITORY", "CI_PROJECT_PATH")
EVENT = ("GITHUB_EVENT_NAME", "CI_PIPELINE_SOURCE")
URL = ("CI_JOB_URL", "BUILD_URL")
BASE = ("GITHUB_BASE_REF", "CI_MERGE_REQUEST_TARGET_BRANCH_NAME", "CHANGE_TARGET")
DEFAULT_BRANCH = ("CI_DEFAULT_BRANCH",)
USUAL_DEFAULTS = {"main", "master"}
PULL_REQUESTS = {"pull_request", "pull_request_target"}
REMOTE = "origin/"  # as Jenkins writes a branch


def origin_of(
    environ: Mapping[str, str], folder: Path, outputs: Sequence[str] = (), branch: str | None = None
) -> Origin:
    """Return the origin of a check that ran in a folder; ``branch`` is the one that a user named.

    Changes of ``outputs``, such as the run, do not make a commit dirty.
    """
    commit = commit_of(folder, outputs)
    job, sha = _github_job(environ), _first(environ, COMMIT)
    run_id, run_attempt = job.run
    named = encodable(branch) if branch else _first(environ, BRANCH) or branch_of(folder)
    return Origin(
        repository=_first(environ, REPOSITORY),
        commit=sha if sha and is_commit(sha) else commit.sha if commit else None,
        branch=None if named is None else named.removeprefix(REMOTE),
        run_url=job.run_url or _first(environ, URL),
        event=_first(environ, EVENT),
        run_id=run_id or None,
        run_attempt=run_attempt or 1,
        dirty=bool(commit and commit.dirty),
    )


def is_default_branch(environ: Mapping[str, str], branch: str | None) -> bool:
    """Return whether a branch is the repository's default branch; a pull request may be from a branch named like it."""
    default = _first(environ, DEFAULT_BRANCH)
    return _first(environ, BASE) is None and branch in ({default} if default else USUAL_DEFAULTS)


def check_context(environ: Mapping[str, str], folder: Path, branch: str | None) -> CheckContext:
    """Return the check that asks a history, with the commits that git knows; ``branch`` is one that a user named."""
    base = _first(environ, BASE)
    merge_queue = environ.get("GITHUB_EVENT_NAME") == "merge_group"
    target = base or (_target_of_queue(environ) if merge_queue else None)
    wanted = encodable(branch or "") or target or _first(environ, DEFAULT_BRANCH)
    merged = environ.get("GITHUB_EVENT_NAME") in PULL_REQUESTS

    def tip(commits: Commits) -> str | None:
        if target:
            is_merge = merged and commits.newest == environ.get("GITHUB_SHA")
            return commits.base_of_merge if is_merge else None
        own = _first(environ, BRANCH) or branch_of(folder)
        return commits.newest if wanted is None or (own or "").removeprefix(REMOTE) == wanted else None

    return CheckContext(
        branch=wanted,
        is_pull_request=bool(base) or merge_queue,
        run_id=_github_job(environ).run[0] or None,
        commits=lambda: reachable_by_git(folder),
        tip=tip,
    )


def _target_of_queue(environ: Mapping[str, str]) -> str | None:
    """Return the branch that a merge queue merges into, by the name of the queue's own branch."""
    match = re.fullmatch(r"(?:refs/heads/)?gh-readonly-queue/(.+)/pr-\d+-[0-9a-f]+", environ.get("GITHUB_REF", ""))
    return match[1] if match else None


def _first(environ: Mapping[str, str], names: Sequence[str]) -> str | None:
    value = next((environ[name] for name in names if environ.get(name)), None)
    return None if value is None else encodable(value)


def _github_job(environ: Mapping[str, str]) -> Context:
    """Return the job of GitHub Actions; one without a run elsewhere, whatever its variables are set to."""
    return Context.from_environ(environ if environ.get("GITHUB_ACTIONS") == "true" else {})
