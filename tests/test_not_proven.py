"""A change over its limit that is not shown to be real does not fail and is never silent; passes say what they hide."""

import json
import re
from xml.etree import ElementTree as ET

import pytest
from msgspec.structs import replace

from ragcontract.core.finding import sentence as sentence_of
from ragcontract.github.runner_output import of_report
from ragcontract.report import junit
from ragcontract.report.headline import headline
from ragcontract.report.html import page
from ragcontract.report.markdown import Layout, render
from ragcontract.report.record import Report
from ragcontract.report.terminal import check_text, without_colours
from tests.records import query, rendered, report
from tests.report.page import Page
from tests.report.ranked import found_at, noisy
from tests.runner import ROOT, parse_annotations

WHY = "MRR@5 fell by 0.10, allowed drop 0.05: over its limit, not shown to be real"
FEW = "MRR@5 fell by 0.07, allowed drop 0.05: over its limit, too few queries changed to tell"
HIDDEN = re.compile(
    r"Chance could hide a real drop of (0\.\d+) in (\S+?)( of \S+)? \(limit (0\.\d+)\)(.*?); "
    r"more queries would show (?:it|them)\.?"
)


def few() -> Report:
    """Return a report on 40 queries, of which 3 are lost: over the limit, and as few as are never significant."""
    fail_on = {"mode": "significant", "mrr_drop_gt": 0.05}
    return found_at([*[None] * 3, *[1] * 37], [1] * 40, fail_on=fail_on, per_query={"enforce_must_include": False})


def first_screen(made: Report) -> str:
    """Return what the Markdown report shows before anything that is folded."""
    return render(made).partition("<details>")[0]


def above_the_verdict(made: Report) -> list[str]:
    """Return the lines before the verdict on the terminal."""
    *above, verdict = without_colours(check_text(made)).splitlines()
    assert verdict.startswith("PASS  ")
    return above


@pytest.mark.parametrize(("made", "sentence"), [(noisy(), WHY), (few(), FEW)], ids=["unproven", "too few"])
def test_a_drop_that_is_not_proven_stands_with_its_reason_wherever_people_look(made: Report, sentence: str) -> None:
    assert made.verdict == "pass"
    (finding,) = made.findings
    assert (finding.kind, finding.status, finding.location) == ("gate", made.gates[0].status, "ragcontract.yml:7")
    of_chance = (
        "too few queries changed to tell" if made.gates[0].status == "too_few" else "chance alone explains up to"
    )
    assert any(of_chance in line and "MRR@5" in line for line in above_the_verdict(made))
    assert of_chance in render(made, layout=Layout(folds=False))
    assert of_chance in page.render(made).decode()
    (annotation,) = [one for one in parse_annotations(of_report(made, "error", str)) if one.title != "rag-contract"]
    assert (annotation.level, annotation.file, annotation.line) == ("warning", "ragcontract.yml", "7")
    assert annotation.message.startswith(sentence)
    suite, _ = ET.fromstring(b"".join(junit.render(made)))
    assert [suite.get(name) for name in ("failures", "skipped")] == ["0", "1"]
    (skipped,) = suite.iter("skipped")
    assert str(skipped.get("message")).startswith(sentence.replace(": over", "; over"))
    version_2 = json.loads(rendered(made)["report-v2"])
    (item,) = version_2["items"]
    assert (item["status_label"], version_2["summary"]["overall_status_label"]) == ("WARN", "PASS")
    assert item["message"].startswith(sentence)


def test_the_tables_have_a_word_of_their_own_for_it() -> None:
    words = [("UNPROVEN", "over, not proven"), ("TOO FEW", "over, too few changed")]
    for made, (plain, shown) in zip((noisy(), few()), words, strict=True):
        assert f"  {plain}  allowed drop 0.05" in without_colours(check_text(made))
        assert f"| MRR@5 | ⚠️ {shown}" in render(made)
        assert f"! {shown}" in page.render(made).decode()


def test_the_headline_counts_what_is_not_proven() -> None:
    assert headline(noisy()).endswith(" queries hold; 1 change over the limit, not proven")
    assert headline(few()).endswith(" queries hold; 1 change over the limit, not proven")
    keys = ("recall", "ndcg", "map", "hitrate")
    made = noisy(fail_on={f"{key}_drop_gt": 0.05 for key in keys})
    assert headline(made) == "40 queries hold; 5 changes over the limit, not proven"


def test_nothing_is_explained_away() -> None:
    for made in (noisy(), few()):
        everything = [check_text(made), render(made), page.render(made).decode(), b"".join(junit.render(made)).decode()]
        assert not re.search(r"noise explains|within noise|only noise", "\n".join(everything))


def test_a_pass_names_the_worst_drop_that_it_does_not_exclude() -> None:
    made = found_at([2, *[1] * 39], [1] * 40, fail_on={"mrr_drop_gt": 0.02, "hitrate_drop_gt": 0.02})
    (line,) = [line for line in above_the_verdict(made) if "could hide" in line]
    hidden = HIDDEN.fullmatch(line)
    assert hidden
    assert float(hidden[1]) > float(hidden[4]) == 0.02
    assert line in Page(first_screen(made)).text
    assert line in page.render(made).decode()
    assert "could hide" not in headline(made)


@pytest.mark.parametrize("page", ["guides/choose-limits.md", "reference/rules-and-gates.md"])
def test_the_pages_quote_what_a_pass_says(page: str) -> None:
    text = " ".join((ROOT / "docs" / page).read_text(encoding="utf-8").split())
    assert "could have hidden" not in text
    (quoted,) = re.findall(r'"(Chance [^"]*)"', text)
    assert HIDDEN.fullmatch(quoted)


def test_limits_over_all_queries_come_before_those_on_tags_and_the_others_are_counted() -> None:
    ids = [f"q{number}" for number in range(40)]
    queries = [query(one, "A", tags=("hostile `tag`",) if number < 10 else ()) for number, one in enumerate(ids)]
    now = {one: ["x", "A"] if number == 1 else ["A"] for number, one in enumerate(ids)}
    limit = {"fail_on": {"mrr_drop_gt": 0.02}}
    made = report(
        queries,
        now,
        {one: ["A"] for one in ids},
        limit | {"tags": {"hostile `tag`": {"fail_on": {"mrr_drop_gt": 0.06}}}},
    )
    (line,) = [line for line in above_the_verdict(made) if "could hide" in line]
    assert line.endswith(" in MRR@5 (limit 0.02), and one beyond 1 other limit; more queries would show them.")
    alone = replace(made, gates=[gate for gate in made.gates if gate.tag])
    (line,) = [line for line in Page(first_screen(alone)).text.splitlines() if "could hide" in line]
    assert " in MRR@5 of " in line
    assert line.endswith(" (limit 0.06); more queries would show it.")
    assert "hostile `tag`" not in line  # a name is code, which the text leaves out


def test_a_run_that_is_its_own_baseline_hides_nothing() -> None:
    for mode in ("strict", "significant", "noninferiority"):
        made = found_at([1, 2, None], [1, 2, None], fail_on={"mode": mode, "mrr_drop_gt": 0.01})
        assert made.gates[0].status == "pass"
        assert "could hide" not in render(made) + check_text(made)
        assert "at worst" not in render(made)


def test_a_contract_that_is_broken_says_nothing_of_what_a_pass_may_hide() -> None:
    made = found_at([2, *[1] * 39], [1] * 40, fail_on={"mrr_drop_gt": 0.02}, minimums={"map_at_k": 0.999})
    assert made.verdict == "fail"
    assert "could hide" not in render(made) + check_text(made)


def test_non_inferiority_fails_on_a_drop_that_is_not_excluded_and_says_so() -> None:
    fail_on = {"mode": "noninferiority", "mrr_drop_gt": 0.02}
    made = found_at([2, *[1] * 39], [1] * 40, fail_on=fail_on)
    assert made.verdict == "fail"
    (message,) = [sentence_of(finding) for finding in made.findings]
    found = re.match(r"MRR@5 fell by 0\.01, at most by (0\.\d+), allowed drop 0\.02: more is not excluded", message)
    assert found
    assert float(found[1]) > 0.02
    enough = found_at([2, *[1] * 999], [1] * 1000, fail_on=fail_on)
    assert (enough.verdict, enough.gates[0].certainty) == ("pass", "within")
