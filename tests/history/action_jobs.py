"""Jobs of the action with a history: the events that start them, and what they ask of the stand-in for GitHub."""

import json
import re
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field

from ragcontract.history.entry import Entry
from tests import scenarios
from tests.github.standin import GitHub, Sent
from tests.process import files_in
from tests.runner import Event, InProcess, Result, Runner

BRANCH = "rag-contract-history"
IN_BRANCH = {"history": "branch", "name": "docs"}
QUERY, COMMIT = r"repository\(owner", "createCommitOnBranch"  # what GraphQL is asked for a history only
APP: dict[str, Any] = {"repository": {"default_branch": "main"}}
REPORTS = ("report.md", "report.json", "junit.xml")


class Job(Struct, frozen=True, kw_only=True):
    """What starts a job: the event, and what the runner says of it."""

    name: str = "push"
    event: Event = field(default_factory=lambda: APP)
    ref: str = "refs/heads/main"
    sha: str = ""  # empty for the runner's own

    def run(self, runner: Runner, inputs: Mapping[str, str] = IN_BRANCH, **more: Any) -> Result:
        environ = {"GITHUB_REF": self.ref, "GITHUB_REF_NAME": self.ref.removeprefix("refs/heads/")}
        environ |= {"GITHUB_SHA": self.sha} if self.sha else {}
        return runner.run(inputs, event=self.event, name=self.name, **({"environ": environ} | more))


def push(sha: str = "", branch: str = "main") -> Job:
    """Return the job of a push."""
    return Job(sha=sha, ref=f"refs/heads/{branch}")


def pull_request(sha: str = "", base: str = "main", head: str = "octo/app", name: str = "pull_request") -> Job:
    """Return the job of a pull request, which checks out its merge with the base branch."""
    pull = {"number": 7, "head": {"sha": "b" * 40, "repo": {"full_name": head}}, "base": {"ref": base}}
    return Job(name=name, event=APP | {"number": 7, "pull_request": pull}, ref="refs/pull/7/merge", sha=sha)


def merge_group(sha: str = "", base_sha: str = "", base: str = "main") -> Job:
    """Return the job of a merge queue."""
    group = {"head_sha": sha, "base_ref": f"refs/heads/{base}", "base_sha": base_sha}
    ref = f"refs/heads/gh-readonly-queue/{base}/pr-7-{'c' * 40}"
    return Job(name="merge_group", event=APP | {"merge_group": group}, ref=ref, sha=sha)


def recorded(
    runner: InProcess, sha: str = "", scenario: Callable[[Path], None] = scenarios.passing, **more: Any
) -> Result:
    """Let a job of the branch main record a check, a minute later than the last."""
    scenario(runner.workspace)
    runner.now += timedelta(minutes=1)
    result = push(sha).run(runner, **more)
    assert "history-entry" in result.outputs, result.log
    return result


def entries(github: GitHub, branch: str = BRANCH) -> list[Entry]:
    """Return the entries in the branch, by their runs."""
    files = [data for path, data in github.repository.files(branch).items() if path.startswith("entries/")]
    read = [msgspec.json.decode(data, type=Entry) for data in files]
    return sorted(read, key=lambda entry: (entry.source.run_id or 0, entry.source.run_attempt))


def is_of_history(sent: Sent) -> bool:
    """Return whether a request is about a history, not about the pull request or its comment."""
    asked = re.search(f"{QUERY}|{COMMIT}", json.dumps(sent.body))
    return bool(asked or "/git/" in sent.path or "/commits?" in sent.path)


def writes(sent: Sent) -> bool:
    """Return whether a request changes the history."""
    return is_of_history(sent) and (COMMIT in json.dumps(sent.body) or (sent.method == "POST" and "/git/" in sent.path))


def report_of(runner: Runner) -> dict[str, Any]:
    """Return report.json."""
    report: dict[str, Any] = json.loads((runner.workspace / "report.json").read_bytes())
    return report


def notes_of(runner: Runner) -> list[str]:
    """Return what the report says about the history itself, such as that it could not be read."""
    notes: list[str] = report_of(runner)["history"].get("notes", [])
    return notes


def messages(result: Result, level: str) -> list[str]:
    """Return the messages of a level at the job."""
    return [one.message for one in result.annotations if one.level == level]


def all_said(runner: Runner, result: Result) -> dict[str, str]:
    """Return all that a job leaves behind for people, but for the log."""
    files = {name: data.decode() for name, data in files_in(runner.workspace).items()}
    comments = {f"comment {number}": body for number, body in enumerate(runner.github.bodies())}
    return files | {"summary": result.summary} | comments
