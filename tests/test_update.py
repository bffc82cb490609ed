"""``baseline --update``: judged like a check, refused with the old file untouched, or stored with a reason."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ragcontract import __version__, pipeline
from ragcontract.pipeline import Inputs, Outcome
from tests.builders import as_jsonl, golden, good_workspace, run, write_jsonl
from tests.process import files_in, rag_contract
from tests.report.ranked import without_bounds

BROKEN = [run("q1", "x", "doc1"), run("q2", "x")]
IDS = st.lists(st.sampled_from(["doc1", "doc2", "x", "y"]), unique=True, max_size=4)


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A contract that holds, with a baseline made of its run."""
    monkeypatch.chdir(good_workspace(tmp_path))
    Path("baseline.json").unlink()
    assert rag_contract("baseline").code == 0
    return tmp_path


def returned(*rows: dict[str, Any]) -> None:
    """Let the retriever return something else."""
    Path("current_run.jsonl").write_text(as_jsonl(*rows))


def stored() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path("baseline.json").read_bytes())
    return found


def test_a_broken_contract_is_refused_and_nothing_is_written(workspace: Path) -> None:
    returned(*BROKEN)
    before = files_in(workspace)
    ended = rag_contract("baseline", "--update")
    assert (ended.code, ended.err) == (1, "")
    assert files_in(workspace) == before
    for said in (
        "Worse (2)\n  q2  What about q2?\n    doc2: 1 -> missing\n    Retrieved, top 5:\n",
        "\n  q1  What about q1?\n    doc1: 1 -> 2\n",
        "2 worse, 0 better, 0 the same\n",
        "FAIL q2 (new)\n  Expected doc2 in top 5\n",
        "MRR@5        1.00 -> 0.25  -0.75  FAIL  allowed drop 0.10\n",
        "FAIL  1 of 2 queries broken, new; 1 limit broken\n",
        "\nrefused: baseline.json is left unchanged. ",
        '--accept-regressions "reason"\n',
    ):
        assert said in without_bounds(ended.out)


def test_what_was_judged_before_stays_so_and_what_is_retrieved_since_was_judged_by_nobody() -> None:
    assert [query.get("pool") for query in stored()["queries"]] == [None, None]
    returned(run("q1", "doc1", "new"), run("q2", "doc2"))
    assert rag_contract("baseline", "--update").code == 0
    assert [query.get("pool") for query in stored()["queries"]] == [["doc1"], None]
    returned(run("q1", "doc1", "newer"), run("q2", "doc2", "new"))
    assert rag_contract("baseline", "--update").code == 0
    assert [query.get("pool") for query in stored()["queries"]] == [["doc1"], ["doc2"]]
    returned(run("q1", "doc1"), run("q2", "doc2", "new"))
    assert rag_contract("baseline", "--update").code == 0
    assert [query.get("pool") for query in stored()["queries"]] == [None, ["doc2"]]
    assert rag_contract("baseline", "--force").code == 0
    assert [query.get("pool") for query in stored()["queries"]] == [None, None]


def test_a_question_that_is_new_or_changed_is_judged_by_what_it_returns_first() -> None:
    Path("golden.jsonl").write_text(as_jsonl(golden("q1", "doc1"), {**golden("q2", "doc2"), "query": "Another?"}))
    returned(run("q1", "doc1", "new"), run("q2", "doc2", "new"))
    assert rag_contract("baseline", "--update").code == 0
    assert [query.get("pool") for query in stored()["queries"]] == [["doc1"], None]


def test_a_broken_contract_is_stored_with_the_reason_and_what_was_broken() -> None:
    returned(*BROKEN)
    ended = rag_contract("baseline", "--update", "--accept-regressions", " the new index ")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.endswith(
        "\nbaseline of 2 queries in baseline.json, with 2 failed checks accepted: the new index\n"
    )
    found = stored()
    assert [query["doc_ids"] for query in found["queries"]] == [["x", "doc1"], ["x"]]
    assert found["accepted"] == [
        {
            "reason": "the new index",
            "at": found["created_at"],
            "by_version": __version__,
            "failed": 2,
            "failed_checks": [
                "fail_on.mrr_drop_gt: MRR@5 fell by 0.75, allowed drop 0.10",
                "q2: expected doc2 in top 5; found: missing from top 5 (was rank 1)",
            ],
        }
    ]


WAIVER = "waivers: [{gate: fail_on.mrr_drop_gt, reason: a new index, owner: ann, expires: 2099-12-31}]\n"


def test_a_drop_that_is_waived_is_not_forgotten_without_a_reason(workspace: Path) -> None:
    returned(run("q1", "x", "doc1"), run("q2", "x", "doc2"))
    with Path("ragcontract.yml").open("a") as config:
        config.write(WAIVER)
    assert rag_contract("check").code == 0
    before = files_in(workspace)
    ended = rag_contract("baseline", "--update")
    assert (ended.code, files_in(workspace)) == (1, before)
    assert "\nrefused: baseline.json is left unchanged: what is waived (fail_on.mrr_drop_gt) would be" in ended.out
    ended = rag_contract("baseline", "--update", "--accept-regressions", "it is better for long questions")
    assert ended.code == 0
    assert ended.out.endswith(", with 1 failed check accepted: it is better for long questions\n")
    (accepted,) = stored()["accepted"]
    assert accepted["failed"] == 1
    assert accepted["failed_checks"] == [
        "fail_on.mrr_drop_gt: MRR@5 fell by 0.50, allowed drop 0.10 (waived until 2099-12-31, ann: a new index)"
    ]


def test_a_waived_rule_needs_no_reason_as_it_fails_again_by_itself() -> None:
    returned(run("q1", "doc1"), run("q2", "doc2", "x"))
    write_jsonl(Path("golden.jsonl"), [golden("q1", "doc1"), golden("q2", "doc2", forbidden_doc_ids=["x"])])
    with Path("ragcontract.yml").open("a") as config:
        config.write(WAIVER.replace("gate: fail_on.mrr_drop_gt", "query: q2"))
    assert rag_contract("baseline", "--update").code == 0
    assert "accepted" not in stored()


def test_what_was_accepted_is_shown_by_the_next_check() -> None:
    returned(*BROKEN)
    rag_contract("baseline", "--update", "--accept-regressions", "new\x1b | <b>@me")
    assert rag_contract("check").code == 1  # the drop is accepted, the broken rule of q2 is not
    report = json.loads(Path("report.json").read_bytes())
    assert [gate["status"] for gate in report["gates"]] == ["pass"]
    assert report["inputs"]["baseline"]["accepted"] == stored()["accepted"]
    inputs = Path("report.md").read_text().partition("<summary>Inputs</summary>")[2]
    at = stored()["created_at"]
    assert (
        f"The baseline accepted regressions (`{at}`, 2 failed checks): new\\\\x1b &#124; &lt;b&gt;@&#8203;me\n"
        in inputs
    )


def test_a_report_without_acceptances_says_nothing_of_them() -> None:
    assert rag_contract("check").code == 0
    assert "accepted" not in stored()
    assert "accepted" not in json.loads(Path("report.json").read_bytes())["inputs"]["baseline"]
    assert "accepted" not in Path("report.md").read_text()


def test_of_acceptances_the_last_twenty_are_stored() -> None:
    returned(*BROKEN)
    for number in range(22):
        assert rag_contract("baseline", "--update", "--accept-regressions", f"reason {number}").code == 0
    returned(run("q1", "doc1"), run("q2", "doc2"))
    assert rag_contract("baseline", "--update").code == 0
    assert [one["reason"] for one in stored()["accepted"]] == [f"reason {number}" for number in range(2, 22)]
    rag_contract("check")
    assert "reason 21 (19 earlier acceptances in `report.json`)" in Path("report.md").read_text()


def test_the_first_hundred_failed_checks_are_stored_and_all_are_counted() -> None:
    write_jsonl(Path("golden.jsonl"), [golden(f"q{n}") for n in range(150)])
    returned(*(run(f"q{n}", "doc1") for n in range(150)))
    assert rag_contract("baseline", "--force").code == 0
    returned(*(run(f"q{n}", "x") for n in range(150)))
    assert rag_contract("baseline", "--update", "--accept-regressions", "why").code == 0
    (accepted,) = stored()["accepted"]
    assert (accepted["failed"], len(accepted["failed_checks"])) == (151, 100)


def test_a_contract_that_holds_is_stored_with_what_changed() -> None:
    Path("ragcontract.yml").write_text("k: 5\nfail_on:\n  mrr_drop_gt: 0.5\n")
    returned(run("q1", "x", "doc1"), run("q2", "doc2"))
    ended = rag_contract("baseline", "--update")
    assert ended.code == 0
    assert "doc1: 1 -> 2" in ended.out
    assert ended.out.endswith("\nbaseline of 2 queries in baseline.json\n")
    assert stored()["queries"][0]["doc_ids"] == ["x", "doc1"]
    assert "accepted" not in stored()


def test_a_reason_is_not_stored_where_nothing_is_broken() -> None:
    returned(run("q1", "doc1", "x"), run("q2", "doc2"))
    ended = rag_contract("baseline", "--update", "--accept-regressions", "why")
    assert (ended.code, "accepted" in stored()) == (0, False)
    assert ended.out.endswith("; nothing is broken, so no reason is stored\n")


@pytest.mark.parametrize("more", [(), ("--accept-regressions", "why")])
def test_a_baseline_that_would_not_change_is_left_as_it_is(more: tuple[str, ...], workspace: Path) -> None:
    text = Path("baseline.json").read_text().replace(stored()["created_at"], "2026-01-01T00:00:00+00:00")
    Path("baseline.json").write_text(text.replace(__version__, "0.9"))
    before = files_in(workspace)
    ended = rag_contract("baseline", "--update", *more)
    assert (ended.code, files_in(workspace)) == (0, before)
    assert ended.out.endswith("\nnothing changed: baseline.json is left unchanged\n")


def test_queries_that_came_went_and_changed_are_listed() -> None:
    rows = [golden("q1", "doc1", "more"), golden("q2", "doc2") | {"query": "Else?"}, golden("q3"), golden("q4")]
    write_jsonl(Path("golden.jsonl"), rows[:2] + rows[3:])
    returned(run("q1", "doc1", "more"), run("q2", "doc2"), run("q4"))
    ended = rag_contract("baseline", "--update")
    assert "New (1)\n  q4\n\nWith another question (1)\n  q2\n\n" in ended.out
    changed = "1 question changed (q2), 1 query relabelled (q1: 1 → 2 documents)"
    assert f"Contract changed since the baseline: {changed}\n" in ended.out
    write_jsonl(Path("golden.jsonl"), rows[:2])
    returned(run("q1", "doc1", "more"), run("q2", "doc2"))
    out = rag_contract("baseline", "--update").out
    assert "Gone (1)\n  q4\n" in out
    assert "Contract changed since the baseline: 1 query removed\n" in out
    assert "relabelled" not in out


def forget_the_contract() -> None:
    """Make the baseline one of an older rag-contract, which remembers nothing of the contract."""
    old = stored()
    del old["contract"]
    for query in old["queries"]:
        del query["expects"]
    Path("baseline.json").write_text(json.dumps(old))


def test_what_changed_since_an_older_baseline_is_known_in_part() -> None:
    forget_the_contract()
    write_jsonl(Path("golden.jsonl"), [golden("q1", "doc1", "more"), golden("q2", "doc2", must_rank_at_most=3)])
    returned(run("q1", "doc1", "more"), run("q2", "doc2"))
    out = rag_contract("baseline", "--update").out
    assert "With other relevant documents (1)\n  q1\n" in out
    forget_the_contract()
    write_jsonl(Path("golden.jsonl"), [golden("q1", "doc1", "more"), golden("q2", "doc2")])
    out = rag_contract("baseline", "--update").out
    assert "The golden set has other rules, weights, tags or grades than the baseline's.\n" in out
    assert "Contract changed" not in out


def test_a_change_of_rules_alone_is_reported() -> None:
    write_jsonl(Path("golden.jsonl"), [golden("q1", must_rank_at_most=3), golden("q2", "doc2")])
    ended = rag_contract("baseline", "--update")
    assert "Contract changed since the baseline: 1 rule added (q1)\n" in ended.out
    assert ended.out.endswith("\nbaseline of 2 queries in baseline.json\n")
    assert "Contract changed since the baseline" not in rag_contract("baseline", "--update").out


def test_the_fingerprint_of_another_version_says_nothing() -> None:
    forget_the_contract()
    text = Path("baseline.json").read_text().replace(stored()["golden_sha256"], "0" * 64)
    Path("baseline.json").write_text(text.replace(__version__, "0.9"))
    assert "The golden set has" not in rag_contract("baseline", "--update").out


def test_the_cut_off_is_the_one_given() -> None:
    assert "MRR@2" in rag_contract("baseline", "--update", "--k", "2").out
    assert stored()["k"] == [2]


REFUSED = {
    "no baseline": (
        ("--update", "--out", "new.json"),
        "there is no baseline to update; leave --update out to make one",
    ),
    "standard output": (("--update", "--out", "/dev/stdout"), "there is no baseline to update"),
    "a run": (("--update", "--out", "base.jsonl"), "a file with this name is read as a run"),
    "a reason without --update": (("--accept-regressions", "why"), "--accept-regressions needs --update"),
    "an empty reason": (("--update", "--accept-regressions", " \n"), "say why the regressions are accepted"),
    "an invisible reason": (
        ("--update", "--accept-regressions", "\u200b \u2800"),
        "say why the regressions are accepted",
    ),
}


@pytest.mark.parametrize(("options", "said"), REFUSED.values(), ids=REFUSED.keys())
def test_what_cannot_be_updated(options: tuple[str, ...], said: str, workspace: Path) -> None:
    before = files_in(workspace)
    ended = rag_contract("baseline", *options)
    assert (ended.code, ended.out) == (2, "")
    assert said in ended.err
    assert files_in(workspace) == before


@pytest.mark.parametrize("more", [(), ("--accept-regressions", "why")])
def test_what_is_no_baseline_or_no_whole_run_is_not_replaced(more: tuple[str, ...], workspace: Path) -> None:
    with Path("ragcontract.yml").open("a") as file:
        file.write("missing_queries: zero\n")
    returned(run("q1"))
    before = files_in(workspace)
    ended = rag_contract("baseline", "--update", *more)
    assert (ended.code, files_in(workspace)) == (2, before)
    assert "so it cannot be a baseline" in ended.err
    returned(run("q1"), run("q2"))
    Path("baseline.json").write_text('{"accepted": [{"reason": ""}], "format_version": 1}')
    before = files_in(workspace)
    ended = rag_contract("baseline", "--update", *more)
    assert (ended.code, files_in(workspace)) == (2, before)
    assert "accepted[0].reason: expected text that is not empty" in ended.err


def test_with_force_a_broken_run_replaces_the_baseline_and_forgets() -> None:
    returned(*BROKEN)
    assert rag_contract("baseline", "--update", "--accept-regressions", "why").code == 0
    returned(run("q1", "y"), run("q2", "y"))
    ended = rag_contract("baseline", "--force")
    assert (ended.code, ended.out.splitlines()[0]) == (0, "baseline of 2 queries in baseline.json")
    assert "accepted" not in stored()


def test_the_reason_and_names_cannot_act_on_a_terminal() -> None:
    returned(*BROKEN)
    ended = rag_contract("baseline", "--update", "--accept-regressions", "a\x1b[31m\n::error::b\udcff ##[c]")
    assert ended.code == 0
    assert "accepted: a\\x1b[31m\\n::error::b\\udcff ##\\x5bc]\n" in ended.out
    assert stored()["accepted"][0]["reason"] == "a\x1b[31m\n::error::b\\udcff ##[c]"


def test_a_baseline_that_changes_while_it_is_read_is_refused(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check = pipeline.check

    def meanwhile(request: Inputs, *, now: datetime) -> Outcome:
        outcome = check(request, now=now)
        with Path("baseline.json").open("a") as file:
            file.write(" ")
        return outcome

    monkeypatch.setattr(pipeline, "check", meanwhile)
    returned(run("q1", "doc1", "x"), run("q2", "doc2"))
    before = files_in(workspace)
    ended = rag_contract("baseline", "--update")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == "error: baseline.json: it changed while it was read; run again\n"
    assert files_in(workspace) == before | {"baseline.json": before["baseline.json"] + b" "}


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(first=IDS, second=IDS, limit=st.sampled_from([0, 0.3, 0.6, 1]))
def test_an_update_is_refused_where_a_check_fails(first: list[str], second: list[str], limit: float) -> None:
    good = [run("q1", "doc1"), run("q2", "doc2")]
    returned(*good)
    Path("ragcontract.yml").write_text(f"fail_on:\n  mrr_drop_gt: {limit}\n")
    assert rag_contract("baseline", "--force").code == 0
    rows = [
        {"query_id": name, "results": [{"doc_id": d} for d in ids]} for name, ids in (("q1", first), ("q2", second))
    ]
    returned(*rows)
    before = Path("baseline.json").read_bytes()
    code = rag_contract("check").code
    assert rag_contract("baseline", "--update").code == code
    after = Path("baseline.json").read_bytes()
    assert (after == before) == (code == 1 or (first, second) == (["doc1"], ["doc2"]))
    if code == 1:
        assert rag_contract("baseline", "--update", "--accept-regressions", "why").code == 0
        assert [one["reason"] for one in stored()["accepted"]] == ["why"]
    assert [query["doc_ids"] for query in stored()["queries"]] == [first, second]


@pytest.mark.parametrize("wrong", [{"metrics": "x"}, {"ranks": {"doc1": -3}}])
def test_what_only_an_update_reads_of_the_old_baseline_is_reported_too(wrong: dict[str, Any], workspace: Path) -> None:
    old = stored()
    old["queries"][0] |= wrong
    Path("baseline.json").write_text(json.dumps(old, indent=2))
    before = files_in(workspace)
    ended = rag_contract("baseline", "--update")
    assert ended.code == 2
    assert f"queries[0].{next(iter(wrong))}" in ended.err
    assert files_in(workspace) == before
