"""The trend of limited metrics in reports: one line each, from what the entries of the branch have recorded."""

import json
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests import scenarios
from tests.builders import golden, run, write_jsonl
from tests.github.relayed import assert_contained, everything, nothing_posted, relayed, said
from tests.github.standin import GitHub
from tests.history.action_jobs import APP, IN_BRANCH, Job, is_of_history, pull_request, recorded, report_of
from tests.history.repository import git, new_repository
from tests.needs import require
from tests.process import rag_contract
from tests.runner import InProcess

NOW = datetime(2026, 11, 28, 12, tzinfo=UTC)
FIRST = datetime(2026, 10, 2, 20, 30, tzinfo=UTC)
CONFIG = "minimums: {mrr_at_k: 0.1}\n"
Change = Callable[[dict[str, Any]], object]
Json = dict[str, Any]


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run whose MRR is 0.80."""
    new_repository(tmp_path, monkeypatch)
    git("commit", "-qm", "first", "--allow-empty")
    monkeypatch.setattr("ragcontract.cli.commands.check.clock", lambda: NOW)
    monkeypatch.setattr("ragcontract.cli.commands.history.clock", lambda: NOW)
    Path("ragcontract.yml").write_text(CONFIG)
    write_jsonl(Path("golden.jsonl"), [golden(f"q{number}", "doc", tags=["t"]) for number in range(5)])
    write_jsonl(Path("current_run.jsonl"), [run(f"q{number}", "doc" if number else "x") for number in range(5)])


def check(*options: str) -> str:
    """Check with the history; return what the terminal shows."""
    ended = rag_contract("check", "--name", "docs", "--history", "../history", "--branch", "main", *options)
    assert ended.code == 1, ended
    return ended.out


def past(*values: float | None, change: Change = lambda _: None, days: float = 1) -> None:
    """Record a run for each of these means of MRR@5, the oldest first; ``change`` edits each entry."""
    assert rag_contract("check", "--name", "docs").code == 1
    ended = rag_contract("history", "add", "--history", "../history")
    path = Path("../history") / ended.out.split()[-1]
    entry = json.loads(path.read_text())
    path.unlink()
    for number, value in enumerate(values):
        at, commit = FIRST + timedelta(days=days * number), f"{number:07}" + "a" * 33
        entry["metrics"]["mrr_at_5"]["value"] = value
        entry |= {"id": f"{at:%Y%m%dT%H%M%SZ}-{commit[:12]}-{number + 1}-1", "created_at": at.isoformat()}
        entry["source"] |= {"commit": commit, "dirty": False}
        change(entry)
        to = path.parents[1] / f"{at:%Y-%m}" / f"{entry['id']}.json"
        to.parent.mkdir(exist_ok=True)
        to.write_text(json.dumps(entry))


def lines(text: str) -> list[str]:
    """Return the lines on trends in a text, without marks of Markdown."""
    return re.findall(r"^(\S+@5(?: on \S+)?, last \d+ run.*)$", text.replace("`", ""), re.MULTILINE)


def reported() -> Json:
    history: Json = json.loads(Path("report.json").read_text())["history"]
    return history


LINES: dict[str, tuple[Sequence[float | None], str]] = {
    "a fall below all of them": ([0.9, 0.9, 0.85], "3 runs: ██▁ 0.90 → 0.85; this run 0.80, the lowest of these runs"),
    "a fall to where it was": (
        [0.78, 0.79, 0.9],
        "3 runs: ▁▂█ 0.78 → 0.90; this run 0.80, the lowest since 2026-10-03",
    ),
    "as low as an earlier run": ([0.8, 0.9], "2 runs: ▁█ 0.80 → 0.90; this run 0.80, the lowest since 2026-10-02"),
    "as low as the last run": ([0.9, 0.8], "2 runs: █▁ 0.90 → 0.80; this run 0.80"),
    "better than the last run": ([0.6, 0.7], "2 runs: ▁█ 0.60 → 0.70; this run 0.80"),
    "no change at all": ([0.8] * 4, "4 runs: 0.80; this run 0.80"),
    "a small change": ([0.806, 0.804], "2 runs: ▅▄ 0.806 → 0.804; this run 0.800, the lowest of these runs"),
    "a run without a mean": ([0.9, None, 0.9], "2 runs: 0.90; this run 0.80, the lowest of these runs"),
    "older than what is shown": (
        [0.7, *[0.9] * 29],
        "20 runs: 0.90; this run 0.80, the lowest since 2026-10-02",
    ),
    "a step": (
        [*[0.9] * 8, *[0.8] * 8],
        "16 runs: ████████▁▁▁▁▁▁▁▁ 0.90 → 0.80, lower since 0000008; this run 0.80",
    ),
    "a step up": (
        [*[0.7] * 8, *[0.8] * 8],
        "16 runs: ▁▁▁▁▁▁▁▁████████ 0.70 → 0.80, higher since 0000008; this run 0.80",
    ),
    "two steps": (
        [*[0.7] * 6, *[0.9] * 6, *[0.8] * 6],
        "18 runs: ▁▁▁▁▁▁██████▅▅▅▅▅▅ 0.70 → 0.80, lower since 0000012; this run 0.80",
    ),
    "a step and a fall": (
        [*[0.9] * 8, *[0.85] * 8],
        "16 runs: ████████▁▁▁▁▁▁▁▁ 0.90 → 0.85; this run 0.80, the lowest of these runs",
    ),
    "a step before what is shown": ([*[0.9] * 8, *[0.8] * 20], "20 runs: 0.80; this run 0.80"),
}


@pytest.mark.usefixtures("repository")
@pytest.mark.parametrize(("values", "line"), LINES.values(), ids=LINES.keys())
def test_a_line_says_how_a_limited_metric_was_on_the_branch(values: Sequence[float | None], line: str) -> None:
    past(*values)
    expected = [f"MRR@5 on main, last {line}"]
    assert lines(check("--report-html", "report.html")) == expected
    assert lines(Path("report.md").read_text()) == expected
    assert expected[0] in re.sub("<[^>]*>", "", Path("report.html").read_text())
    assert expected[0] in re.sub("&#([0-9]+);", lambda code: chr(int(code[1])), Path("junit.xml").read_text())
    assert reported()["metrics"].keys() == {"mrr_at_5"}


@pytest.mark.usefixtures("repository")
@pytest.mark.parametrize("values", [[], [0.9], [None, 0.9]])
def test_with_fewer_than_two_means_there_is_no_line(values: Sequence[float | None]) -> None:
    past(*values)
    assert "last 1 run" not in check()
    assert lines(Path("report.md").read_text()) == []


@pytest.mark.usefixtures("repository")
def test_where_lower_is_better_the_highest_is_named() -> None:
    past(0.9, 0.7)
    check()
    report = json.loads(Path("report.json").read_text())
    report["metrics"]["mrr_at_5"]["better"] = "lower"
    Path("report.json").write_text(json.dumps(report))
    ended = rag_contract("render", "report.json", "--format", "text")
    assert lines(ended.out) == [
        "MRR@5 on main, last 2 runs: █▁ 0.90 → 0.70; this run 0.80, the highest since 2026-10-02"
    ]


@pytest.mark.usefixtures("repository")
def test_the_report_has_values_level_noise_and_change_points() -> None:
    past(*[0.9] * 8, *[0.8] * 52)
    check()
    history = reported()
    metric = history["metrics"]["mrr_at_5"]
    assert (metric["values"], metric["now"], history.get("failed")) == ([0.8] * 50, 0.8, metric["ids"])
    assert (metric["level"], metric["sigma"]) == (0.8, 0.0)
    assert "change_points" not in metric


NOT_TODAYS: dict[str, Callable[[], object]] = {
    "other golden files": lambda: write_jsonl(
        Path("golden.jsonl"), [golden(f"q{number}", "doc", tags=["t"], query="?") for number in range(5)]
    ),
    "another setting of scores": lambda: Path("ragcontract.yml").write_text(f"{CONFIG}missing_queries: zero\n"),
    "no limit": lambda: Path("ragcontract.yml").write_text("k: 5\n"),
}


@pytest.mark.usefixtures("repository")
@pytest.mark.parametrize("change", NOT_TODAYS.values(), ids=NOT_TODAYS.keys())
def test_runs_that_cannot_be_compared_are_left_out(change: Callable[[], object]) -> None:
    past(0.9, 0.7)
    change()
    assert lines(check()) == []
    assert reported() == {"branch": "main", "entries": 2} | {
        name: value for name, value in reported().items() if name == "broken_since"
    }


@pytest.mark.usefixtures("repository")
def test_a_setting_that_moves_no_mean_leaves_the_trend() -> None:
    past(0.9, 0.7)
    Path("ragcontract.yml").write_text(f"{CONFIG}fail_on: {{mode: significant}}\n")
    assert len(lines(check())) == 1


OTHER_ENTRIES: dict[str, Change] = {
    "from a dirty working tree": lambda entry: entry["source"].update(dirty=True),
    "of another branch": lambda entry: entry["source"].update(branch="topic"),
    "computed in another way": lambda entry: entry["head"].update(fingerprints={"mrr_at_5": "x"}),
    "beyond any scale": lambda entry: entry["metrics"]["mrr_at_5"].update(value=1e300),
}


@pytest.mark.usefixtures("repository")
@pytest.mark.parametrize("change", OTHER_ENTRIES.values(), ids=OTHER_ENTRIES.keys())
def test_entries_that_do_not_count_are_left_out(change: Change) -> None:
    past(0.9, 0.7, change=change)
    assert lines(check()) == []
    assert "metrics" not in reported()


@pytest.mark.usefixtures("repository")
def test_limits_of_tags_have_no_trend() -> None:
    Path("ragcontract.yml").write_text(f"{CONFIG}tags: {{t: {{minimums: {{recall_at_k: 0.1}}}}}}\n")
    past(0.9, 0.7)
    assert [line[:5] for line in lines(check())] == ["MRR@5"]
    assert lines(check("--tag", "t")) == []


@pytest.mark.usefixtures("repository")
def test_at_most_three_metrics_have_a_line_in_the_order_of_the_report() -> None:
    names = ("map_at_k", "ndcg_at_k", "recall_at_k", "mrr_at_k")
    Path("ragcontract.yml").write_text(json.dumps({"minimums": dict.fromkeys(names, 0.1)}))
    past(0.9, 0.7)
    assert [line.partition(" ")[0] for line in lines(check())] == ["MRR@5", "Recall@5", "nDCG@5"]
    assert [*reported()["metrics"]] == ["mrr_at_5", "recall_at_5", "ndcg_at_5", "map_at_5"]


@pytest.fixture
def runner(tmp_path: Path, github: GitHub) -> InProcess:
    """Two recorded runs of main, of which the second found less."""
    require("npm")
    runner = InProcess(tmp_path, github)
    (runner.workspace / "ragcontract.yml").write_text(CONFIG)
    recorded(runner, run=1)
    recorded(runner, scenario=scenarios.failing, run=2)
    github.add_pull(7, sha="b" * 40)
    github.sent.clear()
    return runner


LINE = "MRR@5 on `main`, last 2 runs: █▁ 1.00 → 0.50; this run 0.50"


def second_workflow(runner: InProcess) -> None:
    run = {"head_repository": {"full_name": "octo/app"}, "head_branch": "topic", "head_sha": "b" * 40}
    posting = Job(name="workflow_run", event=APP | {"workflow_run": run})
    assert posting.run(runner, {"mode": "post-comment", "name": "docs"}, run=901).exit_code == 0


def test_comment_second_workflow_summary_and_report_have_the_same_line(runner: InProcess, github: GitHub) -> None:
    result = pull_request().run(runner, IN_BRANCH, run=900)
    first = [*filter(is_of_history, github.sent)]
    shown = [github.bodies()[0], result.summary, (runner.workspace / "report.md").read_text()]
    github.comments.clear()
    github.sent.clear()
    second_workflow(runner)
    assert not [*filter(is_of_history, github.sent)]
    for text in (*shown, github.bodies()[0]):
        assert text.splitlines().count(LINE) == 1
    assert len(first) <= 6


def test_a_comment_is_not_written_again_because_main_has_run(runner: InProcess, github: GitHub) -> None:
    on_change = IN_BRANCH | {"comment": "on-change"}
    pull_request().run(runner, on_change, run=900)
    recorded(runner, scenario=scenarios.failing, run=3)
    before = github.bodies()
    result = pull_request().run(runner, on_change, run=901)
    assert len(report_of(runner)["history"]["metrics"]["mrr_at_5"]["values"]) == 3
    assert "The comment is up to date" in result.log
    assert len(before) == len(github.bodies())
    assert LINE in github.bodies()[0]


def hostile(github: GitHub, runner: InProcess, **fields: Any) -> Any:
    github.add_pull(8, sha="c" * 40, head="stranger/app")
    what = everything()
    what["history"]["metrics"]["mrr_at_5"] |= fields
    return relayed(runner, what)


REFUSED = {
    "more values than a check writes": {"values": [0.5] * 51},
    "more runs than a check writes": {"ids": ["x"] * 51},
    "a value beyond any scale": {"values": [1e300, -1e300]},
    "a mean of today beyond any scale": {"now": 1e10},
    "a value that is no number": {"values": [float("nan"), 0.5]},
    "an infinite value": {"values": [float("inf"), 0.5]},
}


@pytest.mark.parametrize("fields", REFUSED.values(), ids=REFUSED.keys())
def test_the_second_workflow_refuses_what_no_check_writes(tmp_path: Path, github: GitHub, fields: Json) -> None:
    runner = InProcess(tmp_path, github)
    nothing_posted(runner, hostile(github, runner, **fields), "report.json")


STRANGE = {
    "ids that are not ids": {"ids": ["x" * 70_000, "[a](b)", "20261301Tx"]},
    "fewer ids than values": {"ids": []},
    "a change point of another run": {
        "change_points": [{"id": "x", "commit": None, "at": "", "before": 1, "after": 0}]
    },
}


@pytest.mark.parametrize("fields", STRANGE.values(), ids=STRANGE.keys())
def test_the_second_workflow_shows_nothing_but_text(tmp_path: Path, github: GitHub, fields: Json) -> None:
    for point in fields.get("change_points", []):
        point["p_value"] = None
    result = hostile(github, InProcess(tmp_path, github), **fields)
    assert result.exit_code == 0, result.log
    assert_contained(said(github.bodies()[0]))
    assert len(github.bodies()[0]) < 10_000
