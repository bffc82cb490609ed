"""Limits that recorded runs suggest: how large they are, which runs they would have failed, and what they miss."""

import hashlib
import json
import random
import re
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from ragcontract.history.folder import Folder
from tests.builders import as_jsonl, golden, run, stored_query, write_jsonl
from tests.history.entries import FIRST, RUN, new_entry
from tests.history.repository import commits, git, without_ci
from tests.process import rag_contract

QUERIES = 400
STORE = ("--history", "history")
OURS = "# ours\nk: 5\nper_query:\n  enforce_must_include: false\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Go to a folder with a contract; each of its questions wants a document of its own."""
    without_ci(monkeypatch)
    monkeypatch.chdir(tmp_path)
    write_jsonl(Path("golden.jsonl"), [golden(f"q{n}", f"d{n}") for n in range(QUERIES)])
    Path("ragcontract.yml").write_text(OURS)


def record(rights: Sequence[int], hours: float = 24, branch: str = "main") -> list[str]:
    """Record runs that find the documents of so many questions; return their commits, as reports show them."""
    commits, first = [], RUN + 1_000 * len(list(Path().glob("history/entries/*/*/*")))
    for number, right in enumerate(rights):
        rows = [stored_query(f"q{n}", f"d{n}" if n < right else "x") for n in range(QUERIES)]
        results = as_jsonl(*sorted(rows, key=lambda row: str(row["id"]))).encode()
        commit = hashlib.sha256(f"{branch}{number}".encode()).hexdigest()[:12]
        source = {"commit": f"{commit:0<40}", "branch": branch, "run_id": first + number}
        at = FIRST + timedelta(hours=hours * number)
        entry = new_entry(at=at, commit=commit, run=first + number, results=results, source=source)
        Folder("history").add(entry)
        commits.append(commit[:7])
    return commits


def noise(runs: int, around: float = 320, deviation: float = 4, seed: int = 1) -> list[int]:
    """Return how many documents each run finds, if that varies by chance."""
    dice = random.Random(seed)
    return [round(dice.gauss(around, deviation)) for _ in range(runs)]


def suggested(*options: str) -> tuple[str, dict[str, Any]]:
    """Return what is printed, and the configuration in it."""
    ended = rag_contract("suggest", *STORE, *options)
    assert (ended.code, ended.err) == (0, ""), ended
    text, _, config = ended.out.partition("history:last-pass\n")
    return text, yaml.safe_load(config)


def test_limits_are_so_many_times_the_noise_that_about_one_good_run_a_year_fails() -> None:
    rights = noise(200)
    record(rights)
    text, limits = suggested()
    deviation = np.std(rights, ddof=1) / QUERIES
    assert re.search(rf"\nMRR@5 +200 +{np.mean(rights) / QUERIES:.4f} +{deviation:.4f} ", text)
    drop, level = limits["fail_on"].pop("mrr_drop_gt"), limits["history"].pop("mrr_drop_gt")
    assert limits["fail_on"] == {"mode": "strict", "recall_drop_gt": drop}
    assert 4.5 * deviation < drop < 5.2 * deviation
    assert 3.9 * deviation < level < 4.6 * deviation

    runs = np.random.default_rng(7).normal(0, deviation, (200_000, 31))
    falls = np.mean(runs[:, 29] - runs[:, 30] > drop)
    levels = np.lib.stride_tricks.sliding_window_view(runs[:, :30], 5, axis=1).mean(axis=2).max(axis=1)
    both = falls + np.mean(levels - runs[:, 30] > level)
    assert 365 * both < 1, "of a run a day, for one of two metrics that vary together"


def test_a_branch_with_more_runs_gets_wider_limits() -> None:
    record(noise(60))
    _, daily = suggested()
    record(noise(60), hours=6, branch="busy")
    _, busy = suggested("--branch", "busy")
    for section in ("fail_on", "history"):
        assert daily[section]["mrr_drop_gt"] < busy[section]["mrr_drop_gt"] < 1.2 * daily[section]["mrr_drop_gt"]


def test_runs_that_do_not_vary_get_the_loss_of_one_query() -> None:
    record([320] * 12)
    text, limits = suggested()
    assert (
        "MRR@5: these runs do not vary, so the limits are the loss of one query, the one with the largest weight\n"
        in text
    )
    loss = 1 / QUERIES
    assert limits["fail_on"]["mrr_drop_gt"] == limits["history"]["mrr_drop_gt"] == loss


def test_the_loss_of_the_query_with_the_largest_weight_breaks_no_limit() -> None:
    write_jsonl(Path("golden.jsonl"), [golden(f"q{n}", f"d{n}", weight=5 if n == 7 else 1) for n in range(QUERIES)])
    record([320, 320, 320, 321] * 5)
    _, limits = suggested()
    assert limits["history"]["mrr_drop_gt"] == 0.013  # 5 / 404, rounded up


def test_a_change_for_the_worse_is_no_noise_and_is_caught() -> None:
    before, after = noise(30), noise(30, around=290, seed=2)
    commits = record([*before, *after])
    text, limits = suggested()
    of_parts = np.sqrt((np.var(before, ddof=1) * 29 + np.var(after, ddof=1) * 29) / 58) / QUERIES
    assert f" {of_parts:.4f} " in text
    assert limits["fail_on"]["mrr_drop_gt"] < 6 * of_parts
    change = f"{np.mean(before) / QUERIES:.2f} → {np.mean(after) / QUERIES:.2f}"
    assert f"MRR@5: caught: {change} at {commits[30]} (2026-12-21), by fail_on and history\n" in text
    assert "would have given: none in 60 runs over 59 days\n" in text


def test_a_change_that_the_limits_are_too_wide_for_is_missed() -> None:
    commits = record([316, 324] * 15 + [308, 316] * 15)  # two standard deviations
    text, _ = suggested()
    assert f"MRR@5: missed: 0.80 → 0.78 at {commits[30]} (2026-12-21)\n" in text
    assert "caught" not in text
    assert "would have given: none in" in text


def test_an_improvement_is_neither_caught_nor_missed() -> None:
    record([*noise(30), *noise(30, around=350, seed=2)])
    text, _ = suggested()
    assert "These runs have no change for the worse.\n" in text


@pytest.mark.parametrize(
    ("hours", "said"),
    [
        (24, "1 in 40 runs over 39 days, 9 a year\n"),
        (6, "1 in 40 runs over 10 days; fewer than 14 days do not show how many that is a year\n"),
    ],
)
def test_a_run_that_fails_without_a_change_is_a_false_alarm(hours: float, said: str) -> None:
    record([*[320] * 20, 200, *[320] * 19], hours=hours)
    text, _ = suggested()
    assert f"False alarms that these limits would have given: {said}" in text


def test_noise_gives_no_more_false_alarms_than_promised() -> None:
    number = 0
    for seed in range(4):
        record(noise(150, seed=seed), branch=f"seed{seed}")
        text, _ = suggested("--branch", f"seed{seed}")
        alarms = re.search(r"given: (\w+) in 150 runs", text)
        assert alarms
        number += 0 if alarms[1] == "none" else int(alarms[1])
    assert number <= 4  # 1.6 are promised, of 600 days


def test_long_after_a_change_the_loss_counts_as_accepted() -> None:
    """Otherwise each of the next 30 runs would be a false alarm."""
    record([*[320] * 20, *[280] * 20])
    text, _ = suggested()
    assert "would have given: none in 40 runs" in text
    assert text.count("caught") == 2  # of two metrics


@pytest.mark.parametrize(
    ("runs", "said"), [(0, "has no entries yet"), (11, "MRR@5: 11 runs of the 12 that limits need have a value")]
)
def test_with_few_runs_it_says_how_many_there_are(runs: int, said: str) -> None:
    record([320] * runs)
    Path("history").mkdir(exist_ok=True)
    ended = rag_contract("suggest", *STORE)
    assert ended.code == 2
    assert said in ended.err
    assert ("'docs' on main has no metric with the 12 runs that limits need\n" in ended.err) == bool(runs)


def test_runs_of_other_questions_do_not_count() -> None:
    record([320] * 20)
    write_jsonl(Path("golden.jsonl"), [golden(f"other{n}", f"d{n}") for n in range(QUERIES)])
    ended = rag_contract("suggest", *STORE)
    assert ended.code == 2
    assert "'docs' on main has no metric with the 12 runs that limits need\n" in ended.err
    assert "MRR@5: 0 runs of the 12 that limits need have a value" in ended.err
    assert "20 recorded runs" in ended.err


def test_what_is_written_is_a_contract_that_a_check_applies() -> None:
    rights = noise(40)
    record(rights)
    _, limits = suggested()
    ended = rag_contract("suggest", *STORE, "--write")
    assert (ended.code, ended.out.splitlines()[-1]) == (0, "wrote the limits into ragcontract.yml")
    text = Path("ragcontract.yml").read_text()
    assert text.startswith(OURS)
    written = yaml.safe_load(text)
    assert {name: written[name] for name in ("fail_on", "history")} == limits

    def check(right: int) -> int:
        rows = [run(f"q{n}", f"d{n}" if n < right else "x") for n in range(QUERIES)]
        write_jsonl(Path("current_run.jsonl"), rows)
        return rag_contract("check", *STORE, "--branch", "main", "--name", "docs", "--baseline", "baseline.jsonl").code

    write_jsonl(Path("baseline.jsonl"), [run(f"q{n}", f"d{n}" if n < 320 else "x") for n in range(QUERIES)])
    git("init", "-q", "-b", "main")  # it contains no recorded commit, so limits on levels are skipped
    commits(1, "main")
    assert check(320) == 0
    assert check(310) == 0
    assert check(290) == 1


def test_a_metric_of_which_less_is_better_gets_limits_on_rises() -> None:
    metric = "metrics: {cost: {from: scores, better: lower, scale: [0, 100]}}\n"
    Path("ragcontract.yml").write_text(OURS + metric)
    for number, cost in enumerate([30.0, 30.5] * 10 + [70.0, 70.5] * 10):
        rows = [run(f"q{n}", scores={"cost": cost}) for n in range(5)]
        write_jsonl(Path("golden.jsonl"), [golden(f"q{n}") for n in range(5)])
        write_jsonl(Path("current_run.jsonl"), rows)
        commit = f"{number:012x}"
        assert rag_contract("baseline", "--force").code == 0
        head = json.loads(Path("baseline.json").read_text())
        results = as_jsonl(*head.pop("queries")).encode()
        at, source = (
            FIRST + timedelta(days=number),
            {"commit": f"{commit:0<40}", "branch": "main", "run_id": RUN + number},
        )
        Folder("history").add(
            new_entry(at=at, commit=commit, run=RUN + number, results=results, source=source, head=head)
        )
    text, limits = suggested()
    assert limits["fail_on"]["cost_rise_gt"] == limits["history"]["cost_rise_gt"] == 20  # the loss of a query
    assert "cost: caught: 30.25 → 70.25 at 0000000 (2026-12-11), by fail_on and history\n" in text


def test_an_id_without_a_day_of_the_calendar_is_no_bug() -> None:
    record([320] * 12)
    text = "20261199T203000Z-3f9c1a2b4d5e-1-1"
    Folder("history").add(new_entry(id=text, run=1, at=FIRST + timedelta(days=12)))
    assert "12 runs over 11 days" in suggested()[0]


def test_runs_that_vary_as_much_as_they_could_lose_get_no_limit() -> None:
    record(noise(30, around=60, deviation=20))
    ended = rag_contract("suggest", *STORE, "--write")
    assert "MRR@5: its runs vary so much that no run could break a limit\n" in ended.out
    assert ended.out.endswith("there is no limit to write\n")
    assert Path("ragcontract.yml").read_text() == OURS


def test_of_several_branches_it_asks_for_one() -> None:
    record([320] * 12)
    record([320] * 12, branch="other")
    ended = rag_contract("suggest", *STORE)
    assert ended.code == 2
    assert "has entries from several branches (main, other); name one with --branch" in ended.err


def test_limits_that_exist_are_named_instead_of_repeated() -> None:
    record([320] * 12)
    Path("ragcontract.yml").write_text(OURS + "history: {mrr_drop_gt: 0.5}\n")
    assert (
        "# exists already, so change it there, or use --write: history (ragcontract.yml:5)"
        in rag_contract("suggest", *STORE).out
    )


def test_a_stricter_limit_in_the_configuration_is_named() -> None:
    record([320] * 12)
    Path("ragcontract.yml").write_text(OURS + "fail_on: {mrr_drop_gt: 0.001, recall_drop_gt: 0.5}\n")
    text, _ = suggested()
    assert "fail_on.mrr_drop_gt is 0.001 in the configuration, which is stricter than 0.0025\n" in text
    assert text.count("stricter") == 1


def test_the_printed_check_names_the_contract() -> None:
    record([320] * 12)
    assert (
        "Check with: rag-contract check --history history --name docs --baseline" in rag_contract("suggest", *STORE).out
    )


@pytest.mark.parametrize("option", ["--run", "--scores"])
def test_recorded_runs_and_run_files_are_not_combined(option: str) -> None:
    ended = rag_contract("suggest", *STORE, option, "good.jsonl")
    assert ended.code == 2
    assert "--history takes recorded runs, so it cannot be combined with --run or --scores" in ended.err


def test_a_history_in_the_environment_does_not_replace_the_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    record([320] * 12)
    monkeypatch.setenv("RAG_CONTRACT_HISTORY", "history")
    write_jsonl(Path("good.jsonl"), [run(f"q{n}", f"d{n}") for n in range(QUERIES)])
    assert "One run cannot show" in rag_contract("suggest", "--run", "good.jsonl").out
