"""Where a check ran: the commit, the branch and the CI job, from the CI's variables, else from git."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from ragcontract.core import bounds
from ragcontract.core.safe_text import encodable
from ragcontract.files.git import branch_of, commit_of
from ragcontract.history.entry import Recorded, is_commit

# Variables of CI systems: GitHub Actions, GitLab, Jenkins. The first that is set counts.
COMMIT = ("GITHUB_SHA", "CI_COMMIT_SHA", "GIT_COMMIT")
BRANCH = ("GITHUB_HEAD_REF", "GITHUB_REF_NAME", "CI_COMMIT_BRANCH", "CI_COMMIT_REF_NAME", "GIT_BRANCH")
REPOSITORY = ("GITHUB_REPOSITORY", "CI_PROJECT_PATH")
EVENT = ("GITHUB_EVENT_NAME", "CI_PIPELINE_SOURCE")
URL = ("CI_JOB_URL", "BUILD_URL")
BASE = ("GITHUB_BASE_REF", "CI_MERGE_REQUEST_TARGET_BRANCH_NAME", "CHANGE_TARGET")
REMOTE = "origin/"  # as Jenkins writes a branch


def origin_of(
    environ: Mapping[str, str], folder: Path, outputs: Sequence[str] = (), branch: str | None = None
) -> Recorded:
    """Return the origin of a check that ran in a folder; ``branch`` is the one that a user named.

    Changes of ``outputs``, such as the run, do not make a commit dirty.
    """
    commit = commit_of(folder, outputs)
    on_github = environ.get("GITHUB_ACTIONS") == "true"
    repository, sha = _first(environ, REPOSITORY), _first(environ, COMMIT)
    run_id = _number(environ.get("GITHUB_RUN_ID", "")) if on_github else None
    server = environ.get("GITHUB_SERVER_URL", "https://github.com")
    url = f"{server}/{repository}/actions/runs/{run_id}" if run_id else _first(environ, URL)
    named = branch or _first(environ, BRANCH) or branch_of(folder)
    return Recorded(
        repository=repository,
        commit=sha if sha and is_commit(sha) else commit.sha if commit else None,
        branch=None if named is None else named.removeprefix(REMOTE),
        run_url=url,
        event=_first(environ, EVENT),
        run_id=run_id,
        run_attempt=(_number(environ.get("GITHUB_RUN_ATTEMPT", "")) or 1) if on_github else 1,
        dirty=bool(commit and commit.dirty),
    )


def base_branch(environ: Mapping[str, str]) -> str | None:
    """Return the branch that the pull request of this CI job goes into; None if there is none."""
    return _first(environ, BASE)


def _first(environ: Mapping[str, str], names: Sequence[str]) -> str | None:
    value = next((environ[name] for name in names if environ.get(name)), None)
    return None if value is None else encodable(value)


def _number(text: str) -> int | None:
    return int(text) if text.isdecimal() and text.isascii() and 0 < len(text) <= bounds.RUN_DIGITS else None
