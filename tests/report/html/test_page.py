"""The HTML report: what the file contains. How a browser shows it is in test_in_browser.py."""

import re
from itertools import product
from pathlib import Path

import pytest
from msgspec.structs import replace

from ragcontract.core.numbers import signed
from ragcontract.report import markdown, terminal
from ragcontract.report.html import page as html
from ragcontract.report.html.elements import STATUS
from ragcontract.report.metric_table import table_rows
from ragcontract.schemas import schema_of
from ragcontract.statistics.significance import Noise
from tests.builders import good_workspace
from tests.process import rag_contract
from tests.records import query, report
from tests.report.everything import REASON, everything
from tests.report.html.parsed import Parsed, parsed
from tests.report.ranked import without_bounds

STYLE = (Path(html.__file__).parent / "assets" / "page.css").read_text()


def test_the_headline_the_metrics_and_the_broken_queries_are_there_without_a_script() -> None:
    page = parsed(
        report(
            [query("lost", "A"), query("found", "B")],
            {"lost": ["x", "y"], "found": ["B"]},
            {"lost": ["A"], "found": ["B"]},
            {"fail_on": {"mrr_drop_gt": 0.1}},
        )
    )
    text = without_bounds(page.text)
    assert "Retrieval contract broken 1 of 2 queries broken, new; 1 limit broken" in text
    assert (
        "MRR@5 ✕ fail before 1.00 → now 0.50 (-0.50) Limit allowed drop 0.10 Interval # to # "
        "over its limit; other questions may be within it Chance p 0.25 > 0.05 for a drop "
        "Queries 0 better, 1 the same, 1 worse"
    ) in text
    assert "What about lost?" in text
    assert "A: was rank 1, now missing" in text
    assert "1 more query can be seen with JavaScript enabled" in text


def test_a_contract_that_holds_is_said_to() -> None:
    page = parsed(report([query("q", "A")], {"q": ["A"]}))
    assert "Retrieval contract holds" in page.text
    assert "1 query" in page.text
    assert page.data()["compared"] is False


def test_bounds_are_shown_where_there_are_any() -> None:
    made = report([query("q", "A")], {"q": ["x", "A"]}, {"q": ["A"]})
    noise = Noise(bounds=(-0.61, -0.39), p_value=0.0123, wins=1, ties=2, losses=3)
    metrics = made.metrics | {"mrr_at_5": replace(made.metrics["mrr_at_5"], noise=noise)}
    text = parsed(replace(made, metrics=metrics)).text
    assert "Interval -0.61 to -0.39 Chance p 0.012 for a drop" in text
    assert "Queries 1 better, 2 the same, 3 worse" in text


def cards(page: Parsed) -> int:
    return page.having("class", "card ")


def test_there_is_a_card_for_each_row_of_the_metric_table_and_each_tier() -> None:
    made = everything()
    page = parsed(made)
    assert cards(page) == len(table_rows(made)) + len(made.tiers or []) == 17
    text = page.text
    assert "HitRate@1" in text
    assert "Precision@3" not in text  # only what has a limit, of smaller cut-offs
    assert "Recall@10 of billing ✕ fail before" in text
    assert "p95 latency ✕ fail before 120 ms → now 180 ms (+60 ms) Limit allowed 150 ms, allowed increase 10%" in text


def test_a_smaller_cut_off_has_its_noise_as_well() -> None:
    made = everything(300)
    noise = made.metrics["recall_at_3"].noise
    assert noise
    text = parsed(made).text
    card = text[text.index("Recall@3 ✕ fail before") :][:300]
    assert f"{noise.wins:,} better, {noise.ties:,} the same, {noise.losses:,} worse" in card
    digits = table_rows(made)[0].digits
    assert f"Interval {signed(noise.bounds[0], digits)} to {signed(noise.bounds[1], digits)}" in card
    assert "Chance p " in card


def test_what_is_waived_says_so_and_why() -> None:
    text = parsed(everything()).text
    assert "MAP@10, all 12 queries ○ waived" in text
    assert "Waived until 2026-12-31, @search: The index is rebuilt, see #41" in text


def test_tolerated_queries_have_their_status_and_the_reason() -> None:
    made = everything(300)
    rows = parsed(made).data()["queries"]
    for status, why in (("warn", "severity warn"), ("waived", "waived until 2026-12-31, @legal: New contracts")):
        reported = [query.id for query in made.queries if query.status == status]
        listed = [row for row in rows if row.get("s") == status]
        assert sorted(row["i"] for row in listed) == sorted(reported) != []
        assert all(why in row["y"] and row["f"] for row in listed)
    states = [row.get("s", "pass") for row in rows]
    assert states == sorted(states, key={"fail": 0, "warn": 1, "waived": 1, "pass": 2}.__getitem__)
    few = parsed(everything()).text
    assert "! warn" in few
    assert "severity warn" in few


def test_a_broken_query_with_a_waived_rule_is_listed_once() -> None:
    waived = {"query": "both", "rule": "forbidden_docs", "reason": "r", "owner": "o", "expires": "2026-12-31"}
    made = report(
        [query("both", "A", forbidden_doc_ids=("B",)), query("fine", "C")],
        {"both": ["B"], "fine": ["C"]},
        config={"waivers": [waived]},
    )
    assert {finding.status for finding in made.findings} == {"fail", "waived"}
    page = parsed(made)
    assert page.having("class", "question") == 1
    assert "1 more query can be seen" in page.text


def test_drift_repeats_and_accepted_regressions_are_said() -> None:
    text = parsed(everything()).text
    assert "The run's rows disagree about the index version: 8, 9" in text
    assert "Changed since the baseline: embedding model e5-large@1 → e5-large@2, index version 8 → 8, 9" in text
    assert "update it with rag-contract baseline --update" in text
    assert "`" not in text
    assert "The baseline was made with k = 5 and is compared here at k = 10" in text
    assert "Means over 3 exports of each query; standard deviation of one export's means: MRR@10 0.01" in text
    assert f"2 failed checks: {REASON}" in text


def test_many_tags_with_limits_are_folded() -> None:
    tags = [f"t{number:02}" for number in range(15)]
    config = {"tags": {tag: {"minimums": {"mrr_at_k": 0.5}} for tag in tags}}
    page = parsed(report([query("q", "A", tags=tuple(tags))], {"q": ["x"]}, config=config))
    assert cards(page) == 6 + 15
    assert "3 more limited means of tags, 3 broken" in page.text


@pytest.mark.parametrize("labels", [STATUS, markdown.STATUS, terminal.STATUS])
def test_every_status_has_a_label_in_every_report(labels: dict[str, str]) -> None:
    records = schema_of("report")["$defs"]
    names = ("MetricReport", *(["QueryReport"] if labels is not markdown.STATUS else []))
    assert {status for name in names for status in records[name]["properties"]["status"]["enum"]} == labels.keys()


def test_the_data_is_what_was_reported_and_worst_first() -> None:
    made = report(
        [query("fine", "A"), query("slipped", "B", must_rank_at_most=9), query("lost", "C", tags=("t",), weight=2.0)],
        {"fine": ["A"], "slipped": ["x", "B"], "lost": ["x"]},
        {"fine": ["A"], "slipped": ["B"], "lost": ["C"]},
    )
    data = parsed(made).data()
    assert [row["i"] for row in data["queries"]] == ["lost", "slipped", "fine"]
    lost, slipped, fine = data["queries"]
    assert (lost["d"], lost["t"], lost["w"], lost["c"]) == ([["C", 0, 0, 1]], [0], 2.0, -1.0)
    assert lost["f"] == [[["C"], ": was rank 1, now missing"]]
    assert (slipped["m"][0], slipped["b"][0], slipped["c"]) == (0.5, 1.0, -0.5)
    assert {"f", "c", "w", "t", "v"}.isdisjoint(fine)


@pytest.mark.parametrize("size", [0, 1, 11, 201])
def test_tags_are_folded_and_counted(size: int) -> None:
    made = report([query("q", "A", tags=tuple(f"t{number}" for number in range(size)))], {"q": ["A"]})
    page = parsed(made)
    assert sum("data-tag" in attributes for _, attributes in page.elements) == min(size, 200)
    assert ("more tag" in page.text) == (size > 10)
    assert ("… and 1 more tag." in page.text) == (size > 200)


def test_tags_are_in_the_order_of_the_other_reports() -> None:
    # The first metric of "lost" fell by a third, its recall by all.
    queries = [query("lost", "A", tags=("lost",)), query("first", "A", tags=("first",))]
    made = report(queries, {"lost": [], "first": ["x", "A"]}, {"lost": ["x", "x", "A"], "first": ["A"]})
    page, other = html.render(made).decode(), markdown.render(made)
    assert page.index('data-tag="1">lost') < page.index('data-tag="0">first')
    assert other.index("| `lost` | 1 |") < other.index("| `first` | 1 |")


def test_only_the_first_hundred_broken_queries_are_rows_of_the_page_itself() -> None:
    made = report([query(f"q{number}", "A") for number in range(150)], {f"q{number}": ["x"] for number in range(150)})
    page = parsed(made)
    assert page.having("class", "question") == 100
    assert "50 more queries can be seen with JavaScript enabled" in page.text
    assert len(page.data()["queries"]) == 150


def test_a_set_that_nothing_answers_has_a_page_too() -> None:
    assert "1 query holds" in parsed(report([query("q")], {"q": ["x"]}, {"q": ["x"]})).text


def test_the_page_offers_only_what_the_report_has() -> None:
    ranked, unranked = [query("q", "A")], [query("q", forbidden_doc_ids=("x",))]
    compared, alone = parsed(report(ranked, {"q": ["x"]}, {"q": ["A"]})), parsed(report(ranked, {"q": ["x"]}))
    of_answers = parsed(report(unranked, {"q": ["x"]}, {"q": ["x"]}))
    for page, offers, column in (
        (compared, 1, "Broken rules and ranks"),
        (alone, 0, "Broken rules and ranks"),
        (of_answers, 0, "Broken rules"),
    ):
        assert [page.having("value", "worse"), page.having("value", "better")] == [offers, offers]
        assert page.having("data-label", column) == 1


def colours(scheme: str) -> dict[str, str]:
    roots = re.findall(r":root \{(.*?)\}", STYLE, re.DOTALL)
    made: dict[str, str] = {}
    for root in {"light": roots[:1], "dark": roots[:2], "print": [roots[0], roots[2]]}[scheme]:
        made |= dict(re.findall(r"--([\w-]+): (#\w+)", root))
    return made


def luminance(colour: str) -> float:
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    parts = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark", "print"])
def test_every_text_contrasts_with_its_ground(scheme: str) -> None:
    named = colours(scheme)
    pairs = [*product(["text", "muted", "accent", "bad", "good"], ["page", "surface", "raised"])]
    for text, ground in [
        *pairs,
        ("bad", "bad-surface"),
        ("good", "good-surface"),
        *product(["warn", "text"], ["warn-surface"]),
    ]:
        assert contrast(named[text], named[ground]) >= 4.5, (text, ground)
    for mark, ground in [("bar", "surface"), ("muted", "page"), ("accent", "page"), ("bad", "surface")]:
        assert contrast(named[mark], named[ground]) >= 3, (mark, ground)


def test_check_writes_the_page_where_it_is_asked_to_and_only_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(good_workspace(tmp_path))
    assert rag_contract("check").code == 0
    assert not list(tmp_path.rglob("*.html"))
    assert rag_contract("check", "--report-html", "out/report.html").code == 0
    assert (tmp_path / "out/report.html").read_bytes().startswith(b"<!doctype html>")


def test_the_page_is_not_written_over_an_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(good_workspace(tmp_path))
    ended = rag_contract("check", "--report-html", "golden.jsonl")
    assert ended.code == 2
    assert "golden.jsonl: is an input" in ended.err
