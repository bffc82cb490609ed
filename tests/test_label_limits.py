"""Limits on precision, recall and F1 of single labels, from files to the verdict."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.builders import Row, write_jsonl
from tests.process import Ended, rag_contract

EXPECTED = ("pay", "pay", "pay", "cancel", "cancel", "other things")
GOOD = ("pay", "pay", "pay", "cancel", "cancel", "other things")
NEVER_CANCEL = ("pay", "pay", "pay", "pay", "pay", "other things")


def golden(*labels: str) -> list[Row]:
    return [{"id": f"q{at}", "query": f"Question {at}", "expected_label": label} for at, label in enumerate(labels)]


def rows(*labels: str | None) -> list[Row]:
    return [
        {"query_id": f"q{at}", "label": label} if label else {"query_id": f"q{at}", "error": "down"}
        for at, label in enumerate(labels)
    ]


class Folder:
    """A folder with a contract, in which runs are stored and checked."""

    def __init__(self, path: Path, expected: tuple[str, ...] = EXPECTED) -> None:
        self.path = path
        self.expect(*expected)

    def expect(self, *labels: str) -> None:
        write_jsonl(self.path / "golden.jsonl", golden(*labels))

    def store(self, *labels: str | None) -> list[Row]:
        """Store a baseline and return its queries."""
        write_jsonl(self.path / "run.jsonl", rows(*labels))
        made = rag_contract("baseline", "--run", "run.jsonl", "--force")
        assert made.code == 0, made.err
        queries: list[Row] = json.loads((self.path / "baseline.json").read_text())["queries"]
        return queries

    def checked(self, config: str, *labels: str | None) -> Ended:
        """Check a run with these labels."""
        (self.path / "ragcontract.yml").write_text(config)
        write_jsonl(self.path / "run.jsonl", rows(*labels))
        reports = ("--report-json", "report.json", "--report-md", "report.md", "--report-html", "report.html")
        return rag_contract("check", "--run", "run.jsonl", *reports)

    def check(self, config: str, *labels: str | None, code: int | None = None) -> dict[str, Any]:
        """Return report.json of a run with these labels."""
        done = self.checked(config, *labels)
        assert done.code == code or code is None, done.out + done.err
        made: dict[str, Any] = json.loads((self.path / "report.json").read_text())
        return made

    def refused(self, config: str, *labels: str | None) -> str:
        """Return what is said of a check that cannot be judged."""
        done = self.checked(config, *labels)
        assert done.code == 2, done.out + done.err
        return done.err


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    monkeypatch.chdir(tmp_path)
    return Folder(tmp_path)


def gates(report: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {gate["id"]: (gate["status"], gate["message"]) for gate in report["gates"]}


def test_each_label_has_minimums_of_its_own(folder: Folder) -> None:
    config = """minimums:
  label_precision: {pay: 0.7, other things: 1}
  label_recall: {pay: 1, cancel: 0.5}
  label_f1: {cancel: 0.6}
"""
    report = folder.check(config, "pay", "pay", "pay", "pay", "cancel", "other things", code=0)
    assert gates(report) == {
        "minimums.label_precision.pay": ("pass", "Label precision of pay is 0.75, minimum 0.70"),
        "minimums.label_precision.other things": ("pass", "Label precision of other things is 1.00, minimum 1.00"),
        "minimums.label_recall.pay": ("pass", "Label recall of pay is 1.00, minimum 1.00"),
        "minimums.label_recall.cancel": ("pass", "Label recall of cancel is 0.50, minimum 0.50"),
        "minimums.label_f1.cancel": ("pass", "Label F1 of cancel is 0.67, minimum 0.60"),
    }
    lines = [gate["location"].rpartition(":")[2] for gate in report["gates"]]
    assert lines == ["2", "2", "3", "3", "4"]


def test_a_label_that_is_never_chosen_breaks_each_of_its_minimums(folder: Folder) -> None:
    config = "minimums: {label_precision: {cancel: 0.1}, label_recall: {cancel: 0.1}, label_f1: {cancel: 0.1}}\n"
    report = folder.check(config, *NEVER_CANCEL, code=1)
    assert [status for status, _ in gates(report).values()] == ["fail"] * 3


def test_a_failed_row_has_no_label(folder: Folder) -> None:
    report = folder.check("minimums: {label_recall: {pay: 0.9}}\n", None, *GOOD[1:], code=1)
    assert gates(report)["minimums.label_recall.pay"][1] == "Label recall of pay is 0.67, minimum 0.90"
    assert report["labels"]["per_label"]["pay"]["precision"] == 1.0


def test_every_report_shows_the_labels_worst_first(folder: Folder) -> None:
    report = folder.check("k: 5\n", "pay", "pay", "pay", "<b>odd</b>", "cancel", "other things")
    assert report["labels"]["per_label"] == {
        "<b>odd</b>": {"precision": 0.0, "recall": 0.0, "f1": 0.0, "support": 0},
        "cancel": {"precision": 1.0, "recall": 0.5, "f1": pytest.approx(2 / 3), "support": 2},
        "other things": {"precision": 1.0, "recall": 1.0, "f1": 1.0, "support": 1},
        "pay": {"precision": 1.0, "recall": 1.0, "f1": 1.0, "support": 3},
    }
    markdown, html = ((folder.path / f"report.{ending}").read_text() for ending in ("md", "html"))
    table = markdown.partition("4 labels, macro F1 0.67")[2].partition("</details>")[0]
    assert [line.split("|")[1].strip() for line in table.splitlines() if line.startswith("| `")] == [
        *("`cancel`", "`other things`", "`pay`", "`<b>odd</b>`"),
    ]
    assert 'id="labels-title"' in html
    assert "<b>odd" not in html


def test_a_drop_is_from_the_stored_baseline_over_the_queries_of_both(folder: Folder) -> None:
    assert [query["labels"] for query in folder.store(*GOOD)] == [[label] for label in GOOD]
    config = 'fail_on: {label_recall_drop_gt: {cancel: 0.4, pay: "10%"}, label_precision_drop_gt: {pay: 0.2}}\n'
    folder.expect(*EXPECTED, "cancel", "cancel")  # of which the baseline knows nothing
    report = folder.check(config, "pay", "pay", "pay", "pay", "cancel", "other things", "pay", "pay", code=1)
    assert gates(report) == {
        "fail_on.label_precision_drop_gt.pay": (
            "fail",
            "Label precision of pay fell by 0.25, allowed drop 0.20",
        ),
        "fail_on.label_recall_drop_gt.cancel": ("fail", "Label recall of cancel fell by 0.50, allowed drop 0.40"),
        "fail_on.label_recall_drop_gt.pay": ("pass", "Label recall of pay did not fall, allowed drop 10%"),
    }
    assert "1.00 → 0.50 (-0.50)<br>allowed drop 0.40" in (folder.path / "report.md").read_text()
    assert "allowed drop 10% (0.10)" in (folder.path / "report.md").read_text()


@pytest.mark.usefixtures("folder")
def test_a_baseline_that_is_a_run_is_compared_as_well(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "before.jsonl", rows(*GOOD))
    write_jsonl(tmp_path / "run.jsonl", rows(*NEVER_CANCEL))
    (tmp_path / "ragcontract.yml").write_text("fail_on: {label_f1_drop_gt: {cancel: 0.5}}\n")
    done = rag_contract("check", "--run", "run.jsonl", "--baseline", "before.jsonl")
    assert (done.code, "Label F1 of cancel  1.00 -> 0.00  -1.00" in done.out) == (1, True), done.out


def test_a_stored_label_is_judged_by_what_is_expected_today(folder: Folder) -> None:
    folder.store(*GOOD)
    folder.expect("cancel", *EXPECTED[1:])
    report = folder.check("fail_on: {label_recall_drop_gt: {cancel: 0.01}}\n", *GOOD, code=0)
    assert gates(report)["fail_on.label_recall_drop_gt.cancel"][1].startswith("Label recall of cancel did not fall")


def test_a_baseline_has_no_label_that_the_contract_does_not_name(folder: Folder) -> None:
    stored = folder.store("pay", "a secret of Ann", "pay", "cancel", "cancel", "pay")
    assert [query.get("labels") for query in stored] == [["pay"], [None], ["pay"], ["cancel"], ["cancel"], ["pay"]]
    assert "Ann" not in (folder.path / "baseline.json").read_text()


def test_a_label_that_only_new_queries_expect_has_not_fallen(folder: Folder) -> None:
    folder.expect("pay", "pay")
    folder.store("pay", "pay")
    folder.expect("pay", "pay", "cancel")
    problem = folder.refused("fail_on: {label_recall_drop_gt: {cancel: 0.1}}\n", "pay", "pay", "pay")
    assert "the baseline has no labels of queries that expect this one" in problem


def test_an_older_baseline_without_labels_cannot_be_compared(folder: Folder) -> None:
    folder.store(*GOOD)
    path = folder.path / "baseline.json"
    path.write_text(path.read_text().replace('"labels":', '"other":'))
    problem = folder.refused("fail_on: {label_recall_drop_gt: {cancel: 0.1}}\n", *GOOD)
    assert "fail_on.label_recall_drop_gt.cancel cannot be judged: the baseline has no labels" in problem
    assert "rag-contract baseline --force" in problem


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        (
            "minimums: {label_recall: {cancl: 0.5}}",
            "minimums.label_recall.cancl cannot be judged: no golden query expects the label 'cancl'; did you mean 'c",
        ),
        ("minimums: {label_f1: 0.5}", "minimums.label_f1: expected limits by label, as {cancel: 0.9}, found 0.5"),
        ("minimums: {label_f1: {}}", "minimums.label_f1: expected limits by label, as {cancel: 0.9}, found {}"),
        ("minimums: {label_f1: {pay: 2}}", "minimums.label_f1.pay: expected a fraction from 0 to 1"),
        ("minimums: {label_f1: {pay: null}}", "minimums.label_f1.pay: "),
        ('minimums: {label_f1: {pay: "10%"}}', "minimums.label_f1.pay: expected a fraction from 0 to 1"),
        ("tags: {a: {minimums: {label_f1: {pay: 1}}}}", "is about all queries; it cannot be limited by tag"),
        ("tags: {a: {fail_on: {label_f1_drop_gt: {pay: 1}}}}", "is about all queries; it cannot be limited by tag"),
    ],
)
def test_a_limit_that_cannot_be_meant_is_refused(folder: Folder, config: str, problem: str) -> None:
    assert problem in folder.refused(f"{config}\n", *GOOD)


def test_a_limit_of_a_label_can_be_waived(folder: Folder) -> None:
    config = """minimums: {label_recall: {cancel: 0.5}}
waivers: [{gate: minimums.label_recall.cancel, reason: r, owner: o, expires: 2999-12-31}]
"""
    assert gates(folder.check(config, *NEVER_CANCEL, code=0))["minimums.label_recall.cancel"][0] == "waived"


def test_a_lowered_minimum_of_a_label_is_a_weaker_contract(folder: Folder) -> None:
    (folder.path / "ragcontract.yml").write_text("minimums: {label_recall: {cancel: 0.5}}\n")
    folder.store(*GOOD)
    report = folder.check("minimums: {label_recall: {cancel: 0.4}}\n", *GOOD, code=0)
    (change,) = report["inputs"]["baseline"]["contract_changes"]
    assert (change["kind"], change["items"][0]["id"]) == ("limits_weakened", "minimums.label_recall.cancel")


@pytest.mark.usefixtures("folder")
def test_lint_finds_a_limit_that_every_run_keeps(tmp_path: Path) -> None:
    (tmp_path / "ragcontract.yml").write_text("minimums: {label_recall: {cancel: 0}, label_f1: {pay: 0.5}}\n")
    done = rag_contract("lint")
    assert "minimums.label_recall.cancel: every run keeps to 0" in done.out + done.err
    assert "label_f1" not in done.out + done.err
