"""Limits on levels: the drop that no single pull request makes, and old runs under today's contract."""

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from ragcontract.statistics.change_points import change_points
from tests.builders import golden, run, write_jsonl
from tests.history.repository import commits, git, new_repository
from tests.process import Ended, rag_contract

START = datetime(2026, 10, 2, 12, tzinfo=UTC)
STORE = ("--history", "history", "--branch", "main")
QUERIES = 200
LEVEL = {"history": {"mrr_drop_gt": 0.075}}
ID = "history.mrr_drop_gt"


@pytest.fixture(autouse=True)
def days(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each check be a day after the one before, in a repository."""
    new_repository(tmp_path, monkeypatch)
    next_commit()
    times: Iterator[datetime] = (START + timedelta(days=number // 2) for number in count())  # a check asks twice
    monkeypatch.setattr("ragcontract.cli.commands.check.clock", lambda: next(times))


def contract(config: dict[str, Any], rows: Sequence[dict[str, Any]] = (), queries: int = QUERIES) -> None:
    """Write a contract; each of its questions wants a document of its own."""
    own = [golden(f"q{number}", f"doc{number}") for number in range(queries)]
    write_jsonl(Path("golden.jsonl"), [*own[: queries - len(rows)], *rows] if rows else own)
    Path("ragcontract.yml").write_text(json.dumps({"per_query": {"enforce_must_include": False}} | config))


def retrieved(right: int, queries: int = QUERIES) -> None:
    """Write a run that finds the documents of the first ``right`` questions, and nothing for the others."""
    rows = [run(f"q{number}", f"doc{number}" if number < right else "other") for number in range(queries)]
    write_jsonl(Path("current_run.jsonl"), rows)


def checked(*options: str) -> Ended:
    """Check the run beside the history."""
    return rag_contract("check", "--name", "docs", *STORE, *options)


def recorded(right: int = QUERIES, *options: str) -> Ended:
    """Check a run and record it as one of main, at a commit of its own; return how the check ended."""
    next_commit()
    retrieved(right)
    ended = checked(*options)
    assert ended.code in {0, 1}, ended
    added = rag_contract("history", "add", *STORE, "--report", "report.json")
    assert added.code == 0, added
    return ended


def report() -> dict[str, Any]:
    """Return report.json."""
    read: dict[str, Any] = json.loads(Path("report.json").read_text())
    return read


def gate() -> dict[str, Any]:
    """Return the limit on the level in the report."""
    (found,) = [gate for gate in report()["gates"] if gate["id"] == ID]
    return dict(found)


def test_a_run_below_the_best_level_fails_with_a_sentence_that_says_since_when() -> None:
    contract(LEVEL)
    for right in (168, 168, 168, 168, 168, 160, 160):
        recorded(right)
    retrieved(150)
    assert checked().code == 1
    level = {"runs": 7, "first": "2026-10-02", "last": "2026-10-06", "queries": 200, "todays": 200}
    assert gate()["kind"] == "level_drop"
    assert (gate()["now"], gate()["before"], gate()["level"]) == (0.75, 0.84, level)
    assert gate()["message"] == (
        "MRR@5 is 0.750; its best level in the last 7 runs was 0.840 (runs of 2 to 6 October 2026), "
        "allowed drop below the best level 0.075"
    )
    retrieved(153)
    assert checked().code == 0  # exactly at the limit


@pytest.mark.parametrize(
    ("limit", "right", "code"),
    [("5%", 160, 0), ("5%", 159, 1), (0.04, 160, 0), (0.04, 159, 1)],
    ids=["at 5%", "below 5%", "at 0.04", "below 0.04"],
)
def test_a_limit_is_absolute_or_of_the_level_and_exactly_at_it_passes(
    limit: float | str, right: int, code: int
) -> None:
    contract({"history": {"mrr_drop_gt": limit}})
    best = 160 / 0.95 if limit == "5%" else 168
    for _ in range(5):
        recorded(round(best))
    retrieved(right)
    ended = checked()
    assert ended.code == code, (ended, gate())
    assert gate()["kind"] == ("relative_level_drop" if limit == "5%" else "level_drop")


def test_metrics_of_which_less_is_better_have_a_limit_on_rises() -> None:
    contract(
        {
            "metrics": {"cost": {"from": "scores", "better": "lower", "scale": [0, 10]}},
            "history": {"cost_rise_gt": 1},
        },
        queries=2,
    )

    def costs(value: float) -> None:
        rows = [run(f"q{number}", f"doc{number}", scores={"cost": value}) for number in range(2)]
        write_jsonl(Path("current_run.jsonl"), rows)

    for value in (4.0, 3.0, 3.0, 3.0, 3.0, 3.0, 5.0):
        next_commit()
        costs(value)
        assert checked().code in {0, 1}
        assert rag_contract("history", "add", *STORE).code == 0
    for value, code in ((4.0, 0), (4.01, 1)):
        costs(value)
        assert checked().code == code
    (limit,) = report()["gates"]
    assert (limit["kind"], limit["before"], limit["now"]) == ("level_rise", 3, 4.01)
    assert limit["message"].startswith(
        "cost is 4.01; its best level in the last 7 runs was 3.00 (runs of 3 to 7 October"
    )


@pytest.mark.parametrize(("runs", "where"), [(0, " ('docs' on main)"), (4, "")])
def test_with_fewer_than_five_runs_the_limit_is_skipped_and_says_so(runs: int, where: str) -> None:
    contract(LEVEL)
    for _ in range(runs):
        recorded()
    retrieved(0)
    assert checked().code == 0
    why = f"history has {runs} of the 5 runs that a level needs{where}"
    assert (gate()["status"], gate()["skipped"]) == ("skipped", why)
    assert f'<skipped message="{why}"' in Path("junit.xml").read_text().replace(' type="skipped"', "")
    assert "skipped" in Path("report.md").read_text()


def test_without_a_history_the_limit_cannot_be_judged() -> None:
    contract(LEVEL)
    retrieved(QUERIES)
    ended = rag_contract("check", "--name", "docs")
    assert ended.code == 2
    assert ended.err == (
        "error: ragcontract.yml:1: history.mrr_drop_gt cannot be judged: "
        "no history is named; name it with --history (in the action, with the input history)\n"
    )


def test_runs_of_other_branches_and_of_dirty_trees_do_not_count() -> None:
    contract(LEVEL)
    for _ in range(5):
        recorded(100)
        retrieved(QUERIES)
        checked()
        assert rag_contract("history", "add", "--history", "history", "--branch", "feature").code == 0
    retrieved(90)
    assert checked().code == 0
    assert gate()["level"]["runs"] == 5


def test_only_the_window_counts_and_only_from_the_day_since() -> None:
    limits = {"mrr_drop_gt": 0.05, "window": 10}
    contract({"history": limits})
    for right in [QUERIES] * 5 + [QUERIES - 30] * 6:
        recorded(right)
    assert (gate()["before"], gate()["status"]) == (1.0, "fail")  # of the last one
    for _ in range(5):
        recorded(QUERIES - 30)
    assert (gate()["before"], gate()["status"], gate()["level"]["runs"]) == (0.85, "pass", 10)
    contract({"history": limits | {"window": 30}})
    retrieved(QUERIES - 30)
    assert checked().code == 1
    contract({"history": limits | {"window": 30, "since": "2026-10-07"}})  # the first day of the worse runs
    assert checked().code == 0
    level = gate()["level"]
    assert (level["runs"], level["first"], level["last"]) == (11, "2026-10-13", "2026-10-17")
    contract({"history": limits | {"window": 30, "since": "2026-10-06"}})
    assert checked().code == 0, "one good run among them is no level"


def test_a_level_is_waived_like_any_limit() -> None:
    waiver = {"gate": ID, "reason": "a smaller index", "owner": "search", "expires": "2027-01-01"}
    contract(LEVEL | {"waivers": [waiver]})
    for _ in range(5):
        recorded()
    retrieved(0)
    assert checked().code == 0
    assert gate()["status"] == "waived"


@pytest.mark.parametrize(
    ("section", "problem"),
    [
        ({"window": 9}, "history.window: expected a whole number from 10 to 100, found 9"),
        ({"window": 101}, "history.window: expected a whole number from 10 to 100, found 101"),
        ({"since": "2026-02-30"}, "history.since: expected a date that exists, found '2026-02-30'"),
        ({"since": "soon"}, 'history.since: expected a date, as 2026-12-31, found "soon" (text)'),
        ({"mrr_drop_gt": "200%"}, 'a percentage of the level, as "5%"'),
        ({"mrr_rise_gt": 0.1}, "higher is better: write history.mrr_drop_gt"),
        ({"mrr_drop": 0.1}, "did you mean 'mrr_drop_gt'"),
    ],
)
def test_a_wrong_section_is_explained(section: dict[str, Any], problem: str) -> None:
    contract({"history": section})
    retrieved(QUERIES)
    ended = checked()
    assert ended.code == 2
    assert problem in ended.err, ended.err


def next_commit() -> None:
    """Add a commit to main, and check it out."""
    commits(1, "main", "main^0" if git("branch", "--list", "main") else "")
    git("reset", "-q", "--hard")


def test_no_pull_request_makes_the_drop_and_the_second_fails_until_the_loss_is_accepted() -> None:
    """Twelve pull requests lose 0.9 of the drop limit each; the level limit is 1.5 times the drop limit."""
    drop, step = {"fail_on": {"mrr_drop_gt": 0.05}}, 9  # of 200 questions: 0.045
    levels = {"history": {"mrr_drop_gt": 0.075}}
    contract(drop)
    for right in [QUERIES] * 5:
        recorded(right, "--baseline", "history:last-pass")
    statuses = []
    for number in range(1, 13):
        contract(drop | levels)
        retrieved(QUERIES - step * number)
        next_commit()
        checked("--baseline", "history:last-pass")
        statuses.append((gate()["status"], next(g["status"] for g in report()["gates"] if g["id"] != ID)))
        contract(drop)
        assert recorded(QUERIES - step * number, "--baseline", "history:last-pass").code == 0
    assert [of_drop for _, of_drop in statuses] == ["pass"] * 12
    assert [of_level for of_level, _ in statuses] == ["pass"] + ["fail"] * 11
    last = datetime.fromisoformat(report()["created_at"]).date()
    contract(drop | {"history": {"mrr_drop_gt": 0.075, "since": str(last)}})
    assert checked("--baseline", "history:last-pass").code == 0


def test_new_and_reworded_questions_are_no_change_of_the_retriever() -> None:
    """Golden files with 20 % new and 10 % reworded questions in the middle of 60 equal runs."""
    queries = 50
    contract(LEVEL, queries=queries)
    rows = [run(f"q{number}", *(["x"] * (number % 3)), f"doc{number}") for number in range(queries)]
    recorded_means = []
    for number in range(60):
        if number == 30:
            new = [golden(f"n{extra}", f"new{extra}") for extra in range(10)]
            old = [golden(f"q{old}", f"doc{old}") for old in range(queries)]
            for row in old[::10]:
                row["query"] = f"Asked otherwise: {row['query']}"
            write_jsonl(Path("golden.jsonl"), [*old, *new])
            rows += [run(f"n{extra}", "other") for extra in range(10)]
        next_commit()
        write_jsonl(Path("current_run.jsonl"), rows)
        ended = checked()
        assert ended.code == 0, ended
        assert rag_contract("history", "add", *STORE).code == 0
        recorded_means.append(report()["metrics"]["mrr_at_5"]["current"])
    past = report()["history"]["metrics"]["mrr_at_5"]
    assert "change_points" not in past
    assert len(set(past["values"])) == 1
    assert [point.position for point in change_points(recorded_means)] == [30]


@pytest.mark.parametrize("command", [("validate",), ("baseline", "--update")], ids=str)
def test_commands_that_know_no_history_skip_the_limit(command: tuple[str, ...]) -> None:
    contract(LEVEL)
    retrieved(QUERIES)
    assert rag_contract("baseline").code == 0
    ended = rag_contract(*command)
    assert ended.code == 0, ended


WHY = {5: "its best level in the last 5 runs was 1.000 (runs of 2 to 6 October 2026)", 4: "history has 4 of the 5 runs"}


@pytest.mark.parametrize(("runs", "why"), WHY.items())
def test_all_reports_say_why(runs: int, why: str) -> None:
    contract(LEVEL)
    for _ in range(runs):
        recorded()
    retrieved(0)
    ended = checked("--report-html", "report.html")
    texts = [ended.out, *(Path(name).read_text() for name in ("report.md", "junit.xml", "report.html"))]
    assert [why in text for text in texts] == [True] * 4


def test_a_name_or_a_branch_that_nothing_is_recorded_for_is_not_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    contract(LEVEL)
    for _ in range(5):
        recorded()
    retrieved(0)
    for name, branch, which in (("mian", "main", "'mian' on main"), ("docs", "mian", "'docs' on mian")):
        why = f"history has 0 of the 5 runs that a level needs ({which})"
        command = ("check", "--name", name, "--history", "history", "--branch", branch)
        assert rag_contract(*command).code == 0
        assert (gate()["status"], gate()["skipped"]) == ("skipped", why)
        assert why in Path("report.md").read_text()
        monkeypatch.setenv("GITHUB_BASE_REF", "main")
        ended = rag_contract(*command)
        monkeypatch.delenv("GITHUB_BASE_REF")
        assert ended.code == 2
        assert f"{ID} cannot be judged: nothing is recorded for {which}: record the base branch first" in ended.err


def test_a_day_from_which_nothing_counts_is_said() -> None:
    contract({"history": {"mrr_drop_gt": 0.1, "since": "2027-01-01"}})
    for _ in range(5):
        recorded()
    assert gate()["skipped"] == "history has 0 of the 5 runs that a level needs ('docs' on main since 2027-01-01)"
    assert "metrics" not in report()["history"]


def test_limits_beside_one_that_is_skipped_are_not_called_skipped() -> None:
    contract(LEVEL | {"minimums": {"mrr_at_k": 0.5}})
    recorded()
    assert "minimum 0.50, allowed drop below the best level 0.075 (skipped)" in Path("report.md").read_text()


def test_only_runs_at_commits_that_the_checked_one_contains_count() -> None:
    """A pull request that started before main got better is not compared with the better main."""
    contract(LEVEL)
    for _ in range(5):
        recorded(150)
    git("branch", "topic")
    for _ in range(5):
        recorded()
    retrieved(150)
    assert checked().code == 1
    git("checkout", "-q", "topic")
    assert checked().code == 0
    assert (gate()["before"], gate()["level"]["runs"]) == (0.75, 5)


def test_a_shallow_clone_does_not_switch_the_limit_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    contract(LEVEL)
    for _ in range(6):
        recorded()
    store = Path("history").resolve()
    files = [Path(name).resolve() for name in ("golden.jsonl", "ragcontract.yml", "current_run.jsonl")]
    git("clone", "-q", "--depth=2", f"file://{Path.cwd()}", str(tmp_path / "shallow"))
    monkeypatch.chdir(tmp_path / "shallow")
    for file in files:
        Path(file.name).write_bytes(file.read_bytes())
    ended = rag_contract("check", "--name", "docs", "--history", str(store), "--branch", "main")
    assert ended.code == 2
    assert f"{ID} cannot be judged: history has 2 runs of 'docs' on main here: this clone is shallow" in ended.err


def test_outside_of_a_repository_the_limit_cannot_be_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    contract(LEVEL)
    retrieved(0)
    monkeypatch.setenv("GIT_DIR", str(tmp_path))
    ended = checked()
    assert ended.code == 2
    assert f"{ID} cannot be judged: history: git shows no commit here" in ended.err


def entry_files() -> list[Path]:
    return sorted(Path().glob("history/entries/docs/*/*.json"))


def test_entries_that_cannot_be_read_do_not_switch_the_limit_off() -> None:
    contract(LEVEL)
    for _ in range(8):
        recorded()
    retrieved(0)
    for path in entry_files()[:4]:
        path.write_text(path.read_text().replace('"schema_version": 1', '"schema_version": 2'))
    ended = checked()
    assert ended.code == 2
    assert f"{ID} cannot be judged: history has 4 runs of 'docs' on main here: history: skipped 4 entries " in ended.err


def test_result_sets_that_are_gone_do_not_switch_the_limit_off() -> None:
    contract(LEVEL)
    for _ in range(6):
        recorded()
    assert rag_contract("history", "prune", "--history", "history", "--keep-results", "1").code == 0
    for path in Path().glob("history/results/*/*"):
        path.unlink()
    retrieved(0)
    assert checked().code == 1, "the means that were recorded are those of today's questions"
    contract(LEVEL, [golden("new", "doc")])
    write_jsonl(Path("current_run.jsonl"), [run(f"q{n}", "other") for n in range(QUERIES - 1)] + [run("new", "x")])
    ended = checked()
    assert ended.code == 2
    assert f"{ID} cannot be judged: 1 result set of recorded runs cannot be read: history:2026" in ended.err


def test_entries_of_other_branches_do_not_switch_the_limit_off(monkeypatch: pytest.MonkeyPatch) -> None:
    contract(LEVEL)
    for number in range(12):
        recorded()
        if number >= 5:
            path = entry_files()[-1]
            path.write_text(path.read_text().replace('"branch": "main"', '"branch": "noise"'))
    retrieved(0)
    monkeypatch.setattr("ragcontract.core.bounds.WINDOW_AMONG", 8)
    ended = checked()
    assert ended.code == 2
    assert "history has 1 run of 'docs' on main here: no more are among the newest 8 entries" in ended.err


def test_the_queries_that_are_compared_are_most_of_todays_and_reports_say_how_many() -> None:
    """Each of ten runs lacks another tenth of the questions: of these, two runs can be compared."""
    contract(LEVEL)
    for _ in range(6):
        recorded()
    rows = [golden(f"q{number}", f"doc{number}") for number in range(QUERIES)]
    for row in rows[:20]:
        row["query"] += "!"
    write_jsonl(Path("golden.jsonl"), rows)
    retrieved(QUERIES - 8)
    assert checked().code == 0
    assert (gate()["level"]["queries"], gate()["level"]["todays"]) == (180, 200)
    assert "MRR@5 is 0.956 over 180 of 200 queries; its best level" in Path("report.md").read_text()
    for tenth in range(10):
        for row in rows:
            row["query"] = row["query"].rstrip("!")
        for row in rows[tenth * 20 : tenth * 20 + 20]:
            row["query"] += "#"
        write_jsonl(Path("golden.jsonl"), rows)
        recorded()
    for row in rows:
        row["query"] = row["query"].rstrip("#")
    write_jsonl(Path("golden.jsonl"), rows)
    retrieved(0)
    checked()
    assert gate()["level"]["queries"] >= 160
    assert "8 recorded runs left out: with them, all runs would share less than 80%" in Path("report.md").read_text()
