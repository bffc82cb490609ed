"""What a terminal shows."""

import click
import pytest

from ragcontract.report.terminal import aligned, check_text, diff_text, score_text
from tests.records import Rows, query, report
from tests.report.ranked import without_bounds

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
    assert without_bounds(click.unstyle(check_text(report(queries, now, before, config)))) == (
        "FAIL leak (new)\n"
        "  Expected no F in the results\n"
        "  Found: rank 2 (was not there)\n"
        "\n"
        "FAIL lost (new)\n"
        "  Expected A and B in top 5\n"
        "  Found: A missing from top 5 (was rank 1), B missing from top 5 (was rank 2)\n"
        "\n"
        "MRR@5        1.00 -> 0.50  -0.50, at worst #  FAIL  allowed drop 0.10\n"
        "Recall@5     1.00 -> 0.67  -0.33                  PASS  minimum 0.50\n"
        "Precision@5  0.27 -> 0.13  -0.13                  -\n"
        "HitRate@5    1.00 -> 0.67  -0.33                  -\n"
        "nDCG@5       1.00 -> 0.54  -0.46                  -\n"
        "MAP@5        1.00 -> 0.50  -0.50                  -\n"
        "The run has at most 2 results a query, so Recall@5 is Recall@2; export at least 5, or lower k.\n"
        "\n"
        "FAIL  MRR@5 fell by 0.50, allowed drop 0.10; 2 of 3 queries broken, all new\n"
        "50% of the top 5 are documents that nobody has judged; the drop may be missing labels "
        "(MRR@5 is 0.50, at most 1.00 if they were relevant): rag-contract unjudged lists what to judge first\n"
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
        "PASS  nothing broken in 1 query; no gates are set\n"
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
    assert lines[-1] == f"FAIL  {SHOWN}: MRR@5 is 0.50, minimum 0.90 (and 1 more gate broken: eu: minimum of MAP@5)"


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
