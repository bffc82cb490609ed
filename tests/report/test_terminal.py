"""What a terminal shows."""

import click
import msgspec
import pytest
from msgspec.structs import replace

from ragcontract.report import markdown
from ragcontract.report.record import Report
from ragcontract.report.terminal import aligned, check_text, diff_text, score_text
from tests.records import Rows, query, report

NASTY = "\x1b[31m100% [bold]\n{x} \u202e"
SHOWN = r"\x1b[31m100% [bold]\n{x} \u202e"


def test_a_broken_query_says_what_was_expected_and_what_was_found() -> None:
    queries = [query("refund_policy", "doc_refund_policy", must_rank_at_most=3)]
    made = report(queries, {"refund_policy": ["a", "b", "c", "d", "e"]}, {"refund_policy": ["doc_refund_policy"]})
    assert click.unstyle(check_text(made)).startswith(
        "FAIL refund_policy (new)\n  Expected doc_refund_policy in top 3\n  Found: missing from top 5 (was rank 1)\n\n"
    )


def test_a_whole_check() -> None:
    queries = [query("good", "A"), query("leak", "A", forbidden_doc_ids=("F",)), query("lost", "A", "B")]
    now = {"good": ["x", "A"], "leak": ["A", "F"], "lost": ["x"]}
    before = {"good": ["A"], "leak": ["A"], "lost": ["A", "B"]}
    config = {"fail_on": {"mrr_drop_gt": 0.1}, "minimums": {"recall_at_k": 0.5}}
    assert click.unstyle(check_text(report(queries, now, before, config))) == (
        "FAIL leak (new)\n"
        "  Expected no F in the results\n"
        "  Found: rank 2 (was not there)\n"
        "\n"
        "FAIL lost (new)\n"
        "  Expected A and B in top 5\n"
        "  Found: A missing from top 5 (was rank 1), B missing from top 5 (was rank 2)\n"
        "\n"
        "MRR@5        1.00 -> 0.50  -0.50  FAIL  allowed drop 0.10\n"
        "Recall@5     1.00 -> 0.67  -0.33  PASS  minimum 0.50\n"
        "Precision@5  0.27 -> 0.13  -0.13  -\n"
        "HitRate@5    1.00 -> 0.67  -0.33  -\n"
        "nDCG@5       1.00 -> 0.54  -0.46  -\n"
        "MAP@5        1.00 -> 0.50  -0.50  -\n"
        "The run has at most 2 results a query, so Recall@5 is Recall@2; export at least 5, or lower k.\n"
        "\n"
        "FAIL  2 of 3 queries broken, all new; 1 limit broken\n"
    )


def test_a_pass_without_a_baseline() -> None:
    assert click.unstyle(check_text(report([query("q", "A")], {"q": ["A"]}))) == (
        "MRR@5        1.00  -\n"
        "Recall@5     1.00  -\n"
        "Precision@5  0.20  -\n"
        "HitRate@5    1.00  -\n"
        "nDCG@5       1.00  -\n"
        "MAP@5        1.00  -\n"
        "The run has at most 1 result a query, so Recall@5 is Recall@1; export at least 5, or lower k.\n"
        "\n"
        "PASS  1 query holds; no limits are set\n"
    )


def test_statuses_are_coloured() -> None:
    passed = check_text(report([query("q", "A")], {"q": ["A"]}, config={"minimums": {"mrr_at_k": 0.5}}))
    failed = check_text(report([query("q", "A")], {"q": ["x"]}))
    assert passed.count(click.style("PASS", fg="green", bold=True)) == 2
    assert failed.count(click.style("FAIL", fg="red", bold=True)) == 2
    assert click.style("q", bold=True) in failed


def test_what_comes_from_files_is_made_visible_and_printed_as_it_is() -> None:
    queries = [query(NASTY, NASTY + "1", NASTY + "4", forbidden_doc_ids=(NASTY + "2",), tags=(NASTY,), query=NASTY)]
    before = Rows(docs={NASTY: [NASTY + "1"], NASTY + "gone": []}, name="b", versions={"index_version": [NASTY]})
    now = Rows(docs={NASTY: [NASTY + "2"]}, name="r", versions={"index_version": [NASTY + "3"]})
    made = report(queries, now, before)
    shown = click.unstyle(check_text(made))
    assert f"FAIL {SHOWN} (new)\n  Expected no {SHOWN}2 in the results\n" in shown
    assert f"  Expected {SHOWN}1 and {SHOWN}4 in top 5\n" in shown
    assert (
        f"  Found: {SHOWN}1 missing from top 5 (was rank 1), {SHOWN}4 missing from top 5 (was missing too)\n" in shown
    )
    moved = click.unstyle(diff_text(made))
    assert f"  {SHOWN}  {SHOWN}\n    {SHOWN}1: 1 -> missing\n" in moved
    assert f"  {SHOWN}gone\n" in moved
    assert f"  index_version: {SHOWN} -> {SHOWN}3\n" in moved
    assert f"{SHOWN}  1 " in score_text(made)
    for text in (shown, moved, score_text(made)):
        assert "\x1b" not in text
        assert "\u202e" not in text


def test_a_limited_tag_has_a_row_with_its_name_made_visible() -> None:
    config = {"tags": {NASTY: {"minimums": {"mrr_at_k": 0.9}}, "eu": {"minimums": {"map_at_k": 1}}}}
    shown = click.unstyle(check_text(report([query("q", "A", tags=(NASTY, "eu"))], {"q": ["x", "A"]}, config=config)))
    lines = shown.splitlines()
    assert [line.split("  ")[0] for line in lines[5:8]] == ["MAP@5", "MAP@5 eu", f"MRR@5 {SHOWN}"]
    assert lines[6].endswith("  0.50  FAIL  minimum 1.00")
    assert lines[7].endswith("  0.50  FAIL  minimum 0.90")
    assert lines[-1] == "FAIL  2 limits broken; no query is broken"


def test_the_note_on_shared_queries_stands_under_the_table() -> None:
    text = click.unstyle(check_text(report([query("q", "A")], {"q": ["A"]}, {"q": ["A"], "gone": ["A"]})))
    assert "MAP@5        1.00 -> 1.00  0.00  -\nCompared over the 1 query" in text


def test_a_diff() -> None:
    queries = [query(name, "A", "B", query=f"{name}? " + "x" * 100) for name in ("same", "down", "up", "lost")]
    now = {"same": ["A"], "down": ["x", "A"], "up": ["A", "B"], "lost": ["x"], "new": ["A"], "other": ["A"]}
    before = Rows(
        docs={"same": ["A"], "down": ["A"], "up": ["A", "x", "B"], "lost": ["A"], "gone": [], "other": []},
        name="b",
        questions={one.id: one.query for one in queries} | {"other": "Something else?"},
        versions={"index_version": ["1"]},
    )
    run = Rows(docs=now, name="r", versions={"index_version": ["2"]})
    queries += [query("new", "A"), query("other", "A")]
    found = click.unstyle(diff_text(report(queries, run, before)))
    cut = "x" * 74 + "…"
    assert found.startswith(
        f"Worse (2)\n  lost  lost? {cut[1:]}\n    A: 1 -> missing\n"
        "    Retrieved, top 5:\n       before        now\n    1  A (relevant)  x\n"
        f"  down  down? {cut[1:]}\n    A: 1 -> 2\n"
        "    Retrieved, top 5:\n       before        now\n    1  A (relevant)  x\n    2                A (relevant)\n\n"
        f"Better (1)\n  up  up? xx{cut[1:]}\n    B: 3 -> 2\n\n"
        "New (1)\n  new\n\n"
        "With another question (1)\n  other\n\n"
        "Gone (1)\n  gone\n\n"
        "Versions that changed\n  index_version: 1 -> 2\n\n"
        "MRR@5 "
    )
    assert found.endswith("\n\n2 worse, 1 better, 1 the same\n")


def test_a_diff_judges_nothing() -> None:
    made = report([query("q", "A")], {"q": ["A"]}, {"q": ["A"]}, {"minimums": {"mrr_at_k": 0.5}})
    assert diff_text(made) == (
        "MRR@5        1.00 -> 1.00  0.00\n"
        "Recall@5     1.00 -> 1.00  0.00\n"
        "Precision@5  0.20 -> 0.20  0.00\n"
        "HitRate@5    1.00 -> 1.00  0.00\n"
        "nDCG@5       1.00 -> 1.00  0.00\n"
        "MAP@5        1.00 -> 1.00  0.00\n"
        "The run has at most 1 result a query, so Recall@5 is Recall@1; export at least 5, or lower k.\n"
        "\n"
        "0 worse, 0 better, 1 the same\n"
    )
    assert diff_text(report([query("q", "A")], {"q": ["A"]})) == ""


def test_scores_overall_and_by_tag() -> None:
    queries = [query("q1", "A", tags=("policy",)), query("q2", "A", tags=("policy", "eu")), query("q3")]
    assert score_text(report(queries, {"q1": ["A"], "q2": ["x", "A"], "q3": []})) == (
        "        queries  MRR@5   Recall@5  Precision@5  HitRate@5  nDCG@5  MAP@5\n"
        "all     3        0.7500  1.0000    0.2000       1.0000     0.8155  0.7500\n"
        "eu      1        0.5000  1.0000    0.2000       1.0000     0.6309  0.5000\n"
        "policy  2        0.7500  1.0000    0.2000       1.0000     0.8155  0.7500\n"
        "\n"
        "The run has at most 2 results a query, so Recall@5 is Recall@2; export at least 5, or lower k.\n"
        "\n"
        "1 query without relevant documents is left out of the means.\n"
    )


@pytest.mark.parametrize(("queries", "words"), [(1, None), (2, "1 query without"), (3, "2 queries without")])
def test_unanswerable_queries_are_counted(queries: int, words: str | None) -> None:
    asked = [query("q0", "A"), *(query(f"q{number}") for number in range(1, queries))]
    text = score_text(report(asked, {"q0": ["A"]}))
    assert (words in text) if words else ("without" not in text)


def test_columns_are_as_wide_as_their_widest_cell() -> None:
    assert list(aligned([["a", "bb", "c"], ["aaa", "b", ""]])) == ["a    bb  c", "aaa  b"]


def old_and_new() -> Report:
    """Return a report on queries of which one is broken anew and two were broken already."""
    queries = [query(name, "A") for name in ("was", "is", "too", "fine", "fixed")]
    now = {"was": ["x"], "is": ["x"], "too": ["x"], "fine": ["A"], "fixed": ["A"]}
    before = {"was": ["x"], "is": ["A"], "too": ["x"], "fine": ["A"], "fixed": ["x"]}
    return report(queries, now, before)


def test_beside_new_failures_those_of_the_baseline_are_one_line() -> None:
    lines = click.unstyle(check_text(old_and_new())).splitlines()
    assert [line for line in lines if line.startswith("FAIL")] == [
        "FAIL is (new)",
        "FAIL 2 already in the baseline: was, too",
        "FAIL  3 of 5 queries broken: 1 new, 2 already in the baseline; 1 fixed",
    ]


def test_without_new_failures_those_of_the_baseline_are_listed() -> None:
    made = report([query("was", "A")], {"was": ["x"]}, {"was": ["y"]})
    assert click.unstyle(check_text(made)).startswith("FAIL was (already in the baseline)\n  Expected A in top 5\n")


def test_a_rank_below_the_top_k_was_no_hit() -> None:
    made = report([query("q", "A")], {"q": ["x"]}, {"q": [*"bcdefgh", "A"]})
    assert "  Found: missing from top 5 (was missing too)\n" in click.unstyle(check_text(made))
    assert "`A`: still missing" in markdown.render(made)


def test_the_likeliest_cause_stands_above_the_verdict_and_the_others_above_it() -> None:
    causes = [
        {"kind": "vanished", "phrase": ["Gone: ", {"name": "a\x1b"}], "share": 1.0},
        {"kind": "versions", "phrase": ["Changed."]},
        {"kind": "labels", "phrase": ["Labels."], "share": 0.1},
    ]
    made = msgspec.convert(msgspec.to_builtins(old_and_new()) | {"causes": causes}, Report)
    lines = click.unstyle(check_text(made)).splitlines()
    assert lines[-5:-1] == ["  Changed.", "  Labels.", "", "Gone: a\\x1b"]
    assert lines[-6] == "Less likely causes"
    unlikely = click.unstyle(check_text(replace(made, causes=made.causes[2:]))).splitlines()
    assert unlikely[-4:-1] == ["Possible causes", "  Labels.", ""]


def test_a_rule_may_look_further_than_k() -> None:
    queries = [query("q", "A", must_rank_at_most=6)]
    made = report(queries, {"q": list("bcdefghi")}, {"q": [*"bcde", "A"]}, {"k": 3})
    assert "`A`: was rank 5, now missing" in markdown.render(made)
