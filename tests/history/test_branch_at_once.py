"""Many jobs record in one branch at the same time: no entry is lost, none is there twice."""

import pytest

from tests.github.standin import Fault, GitHub
from tests.history.entries import runs
from tests.history.jobs_at_once import BRANCH, Recorded, recorded_at_once
from tests.needs import require

ANY = 10  # of so many calls, one goes wrong
CALLS_A_JOB = 15
FAULTS = {
    "nothing": [],
    "a tenth of calls is answered 502": [Fault(every=ANY, status=502)],
    "a tenth of answers is lost after the work": [Fault(every=ANY, kind="do and drop")],
    "both": [Fault(every=ANY, status=502), Fault(every=ANY, kind="do and drop")],
    "every second commit's answer is lost": [Fault(every=2, body="createCommitOnBranch", kind="do and drop")],
}


def record_runs(github: GitHub, number: int) -> Recorded:
    """Record runs at the same time, and compare the commits of the branch with the runs."""
    entries = runs(number, hours=1)
    recorded = recorded_at_once(github, entries)
    commits = github.repository.history(BRANCH)
    assert recorded.added == ["added"] * number
    assert sorted(commits[0].files) == ["README.md"]
    assert all(not commit.deleted for commit in commits)
    of_entries = [[path for path in commit.added if path.startswith("entries/")] for commit in commits[1:]]
    assert sorted(of_entries) == sorted([entry.path] for entry in entries)  # each of them in a commit of its own
    contents = github.repository.files(BRANCH)
    assert {entry.path: entry.content for entry in entries}.items() <= contents.items()
    assert {entry.results for entry in entries} <= set(contents.values())
    return recorded


@pytest.mark.parametrize("faults", FAULTS.values(), ids=FAULTS.keys())
def test_20_jobs_record_at_once(github: GitHub, faults: list[Fault]) -> None:
    require("npm")
    github.faults = faults
    recorded = record_runs(github, 20)
    assert recorded.calls <= 20 * CALLS_A_JOB


def test_40_jobs_record_at_once_within_the_time_for_github(github: GitHub) -> None:
    require("npm")
    recorded = record_runs(github, 40)
    assert max(recorded.seconds) < 150
