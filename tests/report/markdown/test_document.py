"""The report on a pull request: what it says, and that nothing from a file can change what it is."""

import re
from html import unescape
from typing import Any

import pytest
from hypothesis import given, settings
from msgspec.structs import replace

from ragcontract.core import bounds
from ragcontract.core.phrase import Name, Phrase
from ragcontract.core.run import SourceFile
from ragcontract.core.safe_text import encodable, shorten, visible
from ragcontract.report.build import error_report
from ragcontract.report.markdown import Layout, render, render_error
from ragcontract.report.record import ErrorReport, Report
from ragcontract.runs.baseline_file import Tool
from tests.records import NOW, Rows, query, report
from tests.report.everything import everything, untrusted
from tests.report.markdown.test_gfm import NASTY, nasty
from tests.report.page import Page
from tests.report.ranked import without_bounds


def failing(**config: Any) -> Report:
    queries = [
        query("refund_policy", "doc_refund_policy", must_rank_at_most=3, tags=("policy",), query="Refunds?"),
        query("secret", "A", forbidden_doc_ids=("F", "G"), tags=("policy", "eu")),
        query("fine", "A"),
        query("up", "A"),
    ]
    now = {"refund_policy": ["x"], "secret": ["A", "F"], "fine": ["A"], "up": ["A"]}
    before = {"refund_policy": ["doc_refund_policy"], "secret": ["A"], "fine": ["A"], "up": ["x", "A"], "gone": ["A"]}
    return report(queries, now, before, {"fail_on": {"mrr_drop_gt": 0.1, "recall_drop_gt": "50%"}, **config})


def headline(markdown: str) -> str:
    return markdown.splitlines()[0]


def unusable(*problems: str, more: int = 0, warnings: tuple[str, ...] = ()) -> ErrorReport:
    return error_report(problems, more, warnings, NOW)


def test_the_verdict_and_why_is_the_first_line() -> None:
    assert headline(render(failing())) == ("### ❌ 2 of 4 queries broken, all new; 1 limit broken")
    passing = report([query("q", "A")], {"q": ["A"]})
    assert headline(render(passing)) == "### ✅ 1 query holds; no limits are set"


def test_a_name_sets_contracts_apart() -> None:
    assert headline(render(failing(), name="docs_en")).startswith(r"### ❌ docs\_en — 2 of 4 queries")
    assert headline(render_error(unusable("x"), name="docs")) == (
        "### ⚠️ Retrieval contract docs could not be judged: 1 problem"
    )


def test_the_metric_table() -> None:
    metrics = Page(without_bounds(render(failing()))).tables[0]
    assert metrics == [
        ["Metric", "Status", "Baseline → current, and limit"],
        ["MRR@5", "❌ fail", "0.88 → 0.75 (-0.12)allowed drop 0.10"],
        ["Recall@5", "✅ pass", "1.00 → 0.75 (-0.25)allowed drop 50% (0.50)"],
    ]


def test_metrics_without_a_limit_are_folded_below_those_with_one() -> None:
    page = Page(render(failing()))
    assert page.tables[1] == [
        ["Metric", "Baseline → current"],
        ["Precision@5", "0.20 → 0.15 (-0.05)"],
        ["HitRate@5", "1.00 → 0.75 (-0.25)"],
        ["nDCG@5", "0.91 → 0.75 (-0.16)"],
        ["MAP@5", "0.88 → 0.75 (-0.12)"],
    ]
    assert page.prose.index("4 metrics without a limit") < page.prose.index("Precision@5")
    assert page.tags.index("details") < page.tags.index("summary") < len(page.tags)


def test_where_nothing_is_limited_all_metrics_are_in_the_open() -> None:
    page = Page(render(report([query("q", "A")], {"q": ["A"]})))
    assert page.tables[0][0] == ["Metric", "Current"]
    assert len(page.tables[0]) == 7
    assert "without a limit" not in page.text


def test_the_mean_over_all_queries_has_a_row_where_a_minimum_counts_them() -> None:
    queries = [query("old", "A"), query("new", "A")]
    made = report(queries, {"old": ["A"], "new": []}, {"old": ["A"]}, {"minimums": {"mrr_at_k": 0.9}})
    assert Page(render(made)).tables[0][1:] == [["MRR@5, all 2 queries", "❌ fail", "0.50minimum 0.90"]]


def with_limited_tags(value: str) -> Page:
    low, high = {"minimums": {"mrr_at_k": 0.1}}, {"minimums": {"mrr_at_k": 0.9}}
    queries = [query("q", "A", tags=(value,)), query("p", "A", tags=(value + "2",))]
    config = {"tags": {value + "2": low, value: high}}
    return Page(render(report(queries, {"q": ["x", "A"], "p": ["A"]}, config=config)))


@pytest.mark.parametrize("value", ["x", *(value[: bounds.TAG - 1] for value in NASTY)])
def test_a_limited_tag_has_a_row_and_its_name_is_code(value: str) -> None:
    page = with_limited_tags(value)
    assert page.tables[0][1:] == [
        [f"MRR@5 of {shorten(visible(value), 80)}", "❌ fail", "0.50minimum 0.90"],
        [f"MRR@5 of {shorten(visible(value + '2'), 80)}", "✅ pass", "1.00minimum 0.10"],
    ]
    assert page.tags == with_limited_tags("plain").tags
    assert page.text.startswith("❌ 1 limit broken; no query is broken")
    assert page.links() == []


@pytest.mark.parametrize("max_rows", [0, 1, 2, 3])
def test_of_many_limited_tags_the_worst_are_shown(max_rows: int) -> None:
    worst_first = ["t2", "t0", "t1"]
    limits = {f"t{number}": {"minimums": {"mrr_at_k": low}} for number, low in enumerate([0.5, 0.1, 0.9])}
    queries = [query("q", "A", tags=("t0", "t1", "t2"))]
    made = report(queries, {"q": ["A"]}, config={"tags": limits})
    page = Page(render(made, layout=Layout(rows=max_rows)))
    assert [row[0] for row in page.tables[0] if " of " in row[0]] == [
        f"MRR@5 of {tag}" for tag in worst_first[:max_rows]
    ]
    assert (f"… and {3 - max_rows} more limited mean" in page.text) == (max_rows < 3)


def test_the_broken_queries() -> None:
    assert Page(render(failing())).broken == [
        "What about secret? secret\nF is forbidden: now rank 2",
        "Refunds? refund_policy\ndoc_refund_policy: was rank 1, now missing",
    ]


@pytest.mark.parametrize(
    ("query_id", "question", "shown"),
    [
        ("refund_policy", "Can I get my money back?", "Can I get my money back? refund_policy"),
        ("can-i-get-my-money-back", "Can I get my money back?", "Can I get my money back?"),
        ("can-i-get-my", "Can I get my money back?", "Can I get my money back? can-i-get-my"),  # too short to be sure
        ("Can I get my money back?", "Can I get my money back?", "Can I get my money back?"),
        ("c", "Can I get my money back?", "Can I get my money back? c"),
        ("can-i-get-my-money-back-2", "Can I get my money back?", "Can I get my money back? can-i-get-my-money-back-2"),
        ("q17", "17?", "17? q17"),
    ],
)
def test_a_query_is_named_by_its_question_and_by_an_id_that_says_more(query_id: str, question: str, shown: str) -> None:
    made = report([query(query_id, "A", query=question)], {query_id: ["x"]}, {query_id: ["A"]})
    page = Page(render(made))
    _, worse, *_ = page.tables
    assert page.broken[0].splitlines()[0] == shown
    assert worse[1][0] == shown.replace("? ", "?")


def test_the_parts_that_are_folded() -> None:
    now = Rows(docs={"refund_policy": ["x"], "new": ["A"]}, name="run.jsonl", versions={"embedding_model": ["e5@2"]})
    before = Rows(docs={"refund_policy": ["D"], "gone": []}, name="base.jsonl", versions={"embedding_model": ["e5@1"]})
    queries = [query("refund_policy", "D", tags=("policy",)), query("new", "A", tags=("policy",))]
    made = report(queries, now, before, {}, warnings=["golden.jsonl:3: odd"], tests_all=True)
    page = Page(without_bounds(render(made)))
    summaries = [part for part in page.prose if part.startswith(("Rank", "Broken", "1 tag", "1 warning", "Inputs"))]
    assert summaries == [
        "Broken queries",
        "Rank changes: 1 worse, 1 new, 1 gone",
        "1 tag",
        "1 warning",
        "Inputs",
    ]
    assert "\nChanged since the baseline: embedding model  → " in page.text
    _, worse, tags, noise, overlap, inputs = page.tables
    assert overlap == [["Least overlap", "Overlap", "RBO"], ["refund_policy", "0.00", "0.00"]]
    assert worse == [
        ["Query", "Documents, rank before → now"],
        ["What about refund_policy?refund_policy", "D 1 → missing"],
    ]
    assert tags == [
        ["Tag", "Queries", "MRR@5", "Recall@5", "Precision@5", "HitRate@5", "nDCG@5", "MAP@5"],
        ["policy", "1 of 2", *["0.00 (-1.00)"] * 2, "0.00 (-0.20)", *["0.00 (-1.00)"] * 3],
    ]
    assert noise[:2] == [
        ["Metric", "Change", "Interval", "Better / same / worse", "p", "Limit on the change"],
        ["MRR@5", "-1.00", "-1.00 to #", "0 / 0 / 1", "0.25", "no limit"],
    ]
    assert inputs == [
        ["", "File", ""],
        ["golden", "golden.jsonl (sha256 cdcdcdcdcdcd)", "2 queries, 2 with relevant documents"],
        ["run", "run.jsonl (sha256 abababababab)", "2 queries"],
        ["baseline", "base.jsonl (sha256 abababababab)", "2 queries, 1 shared, its contract is not known"],
        ["config", "ragcontract.yml (sha256 efefefefefef)", "0 gates"],
    ]
    assert page.items == ["golden.jsonl:3: odd"]
    assert "New" in page.prose
    assert "Gone" in page.prose
    assert "k = 5 · rag-contract 1.0.0.dev0 · " in page.text
    assert "<code>2026-07-01T12:00:00+00:00</code>" in page.html


def test_without_a_baseline_nothing_is_compared() -> None:
    page = Page(render(report([query("q", "A", tags=("t",))], {"q": ["x"]})))
    metrics, tags, inputs = page.tables
    assert metrics[:2] == [["Metric", "Current"], ["MRR@5", "0.00"]]
    assert page.broken == ["What about q? q\nA: missing"]
    assert tags[1] == ["t", "1", *["0.00"] * 6]
    assert inputs[3:] == [
        ["baseline", "", "none given: nothing was compared"],
        ["config", "", "none given: rules on, no gates"],
    ]
    assert "since the baseline" not in page.text
    assert "Rank changes" not in page.text


def test_inputs_in_several_files_and_of_another_day() -> None:
    before = Rows(docs={"q1": ["A"]}, name="baseline.json", created_at="2026-06-01T00:00:00+00:00")
    made = report([query("q1", "A"), query("q2")], {"q1": ["A"]}, before)
    files = [SourceFile(path=f"run-{number}.jsonl", sha256="ab" * 32) for number in range(3)]
    read = replace(made.inputs, run=replace(made.inputs.run, files=files))
    inputs = Page(render(replace(made, inputs=read))).tables[-1]
    assert inputs[1][2] == "2 queries, 1 with relevant documents"
    assert inputs[2] == ["run", "run-0.jsonl (sha256 abababababab) and 2 more files", "1 query, 1 missing"]
    assert inputs[3][2] == "1 query, 1 shared, made 2026-06-01T00:00:00+00:00, its contract is not known"


def test_a_tag_that_has_not_changed_is_not_said_to() -> None:
    page = Page(render(report([query("q", "A", tags=("t",))], {"q": ["A"]}, {"q": ["A"]})))
    assert page.tables[1][1] == ["t", "1", "1.00", "1.00", "0.20", "1.00", "1.00", "1.00"]


def test_a_query_that_is_new_has_no_before() -> None:
    made = report([query("q", "A"), query("new", "A")], {"q": ["A"], "new": ["x"]}, {"q": ["A"]})
    assert Page(render(made)).broken == ["What about new? new\nA: missing"]


def test_several_findings_of_a_query_stand_under_its_name() -> None:
    made = report([query("q", "A", "B", must_rank_at_most=1)], {"q": ["x", "A"]}, {"q": ["B", "A"]})
    findings = [
        "A: still rank 2; B: was rank 1, now missing; one of them wanted in top 1",
        "B: was rank 1, now missing",
    ]
    assert Page(render(made)).broken == ["\n".join(["What about q? q", *findings])]


def test_long_lists_are_cut() -> None:
    docs = [f"doc{number}" for number in range(8)]
    made = report([query("q", *docs, query="y" * 100)], {"q": []}, {"q": docs}, {"k": 8})
    page = Page(render(made))
    _, worse = page.tables[1]
    title, line = page.broken[0].splitlines()
    assert title == "y" * 59 + "… q"
    assert line.startswith("doc0: was rank 1, now missing; doc1: ")
    assert line.endswith("doc4: was rank 5, now missing; …")
    assert worse[1].endswith("doc4 5 → missing, 3 more")


@pytest.mark.parametrize(("max_rows", "shown"), [(0, 0), (1, 1), (3, 3), (4, 4), (100, 4)])
def test_tables_are_cut_and_the_rest_is_counted(max_rows: int, shown: int) -> None:
    queries = [query(f"q{number}", "A", tags=(f"t{number}",)) for number in range(4)]
    now = {asked.id: ["x"] for asked in queries} | {"other": []}
    before = {asked.id: ["A"] for asked in queries} | {f"gone{number}": ["A"] for number in range(4)}
    made = report(queries, now, before, warnings=["w"] * 4, tests_all=True)
    page = Page(render(made, layout=Layout(rows=max_rows)))
    rows = [len(table) - 1 for table in page.tables]
    assert rows == ([6, shown, shown, 6, shown, 4] if shown else [6, 6, 4])
    assert len(page.broken) == shown
    rest = 4 - shown
    counted = re.findall(r"(\w+) more ?(broken|quer|tag|)", page.text)
    assert counted == [(str(rest), noun) for noun in ("broken", "quer", "", "tag", "")] * (rest > 0)
    assert page.items == ["w"] * shown + [f"… and {rest} more"] * (rest > 0)


def test_without_folds_there_are_none() -> None:
    page = Page(render(failing(), layout=Layout(folds=False)))
    assert "details" in Page(render(failing())).tags
    assert "details" not in page.tags
    assert [table[0][0] for table in page.tables] == ["Metric"]
    assert len(page.broken) == 2


def test_what_cannot_be_judged_says_every_problem() -> None:
    page = Page(render_error(unusable("golden.jsonl:1: id: is missing", "x" * 600)))
    assert page.text.startswith("⚠️ Retrieval contract could not be judged: 2 problems")
    assert page.items == ["golden.jsonl:1: id: is missing", "x" * 499 + "…"]
    assert "No verdict was reached." in page.text
    assert Page(render_error(unusable("a", "b", "c"), max_rows=1)).items == ["a", "… and 2 more"]


def hostile(value: str) -> tuple[Report, str]:
    """Return a report that has ``value`` wherever a file can put text, and the contract's name."""
    asked = [
        query(value, value + "1", value + "2", forbidden_doc_ids=(value + "3",), tags=(value,), query=value),
        query(value + "new", value, query=value),
        query(value + "better", value, query=value),
        query(value + "changed", value, query=value),
    ]
    now = {value: [value + "3"], value + "new": [value], value + "better": [value], value + "changed": [value]}
    before = {
        value: [value + "1", value + "2"],
        value + "better": [value + "other", value],
        value + "changed": [],
        value + "gone": [],
    }
    questions = dict.fromkeys(before, value) | {value + "changed": value + "?"}
    versions = {"embedding_model": [value], "index_version": [value, value + "1"]}
    older = {"embedding_model": [value + "0"], "index_version": [value + "0"]}
    baseline = Rows(docs=before, name=value, versions=older, questions=questions, created_at=value)
    config = {"fail_on": {"mrr_drop_gt": 0.1}, "minimums": {"recall_at_k": 0.1}}
    run = Rows(docs=now, name=value, versions=versions)
    return report(asked, run, baseline, config, warnings=[value, value], path=value), value


PLAIN = Page(render(hostile("plain")[0], name="plain"))
UNUSABLE = Page(render_error(unusable("plain", "plain", warnings=("plain",)), name="plain"))


def test_a_plain_report_has_every_part() -> None:
    assert PLAIN.tags.count("table") == PLAIN.tags.count("/table") == 7 + 2
    assert PLAIN.tags.count("details") == PLAIN.tags.count("/details") == 6 + 2
    assert {"a", "img", "script", "input"} & set(PLAIN.tags) == set()
    assert PLAIN.links() == UNUSABLE.links() == []


@pytest.mark.parametrize("value", NASTY)
def test_a_nasty_report_has_the_same_parts(value: str) -> None:
    check(value)


@given(nasty)
def test_any_report_has_the_same_parts(value: str) -> None:
    check(value)


def check(value: str) -> None:
    made, name = hostile(value)
    page = Page(render(made, name=name))
    assert page.tags == PLAIN.tags
    assert page.links() == []
    written = visible(value)
    assert f"❌ {shorten(written, 100)} — 1 of 4 queries broken, new; 1 limit broken" in page.text.replace("\n", "")
    worse, _, tags, _, _, inputs = page.tables[2:]
    identifier, older = shorten(written, 80), shorten(written + "0", 80)
    path = visible(encodable(value))
    assert worse[1][0].strip(" ") == shorten(written, 60).strip(" ")
    assert f"{shorten(written + '3', 80)} is forbidden: now rank 1" in page.broken[0]
    assert tags[1][0] == identifier
    both = shorten(f"{written}, {written}1", 80)
    assert page.items[:1] == [
        f"The run's rows disagree about the index version: {identifier}, {shorten(written + '1', 80)}",
    ]
    changed = f"Changed since the baseline: embedding model {older} → {identifier}, index version {older} → {both}"
    assert changed in without_tags(page.html)
    assert inputs[1][1] == f"{shorten(path, 80)} (sha256 cdcdcdcdcdcd)"
    assert stripped(page.items[-2:]) == [shorten(path, 500).strip(" ")] * 2

    error = Page(render_error(unusable(value, value, warnings=(value,)), name=name))
    assert error.tags == UNUSABLE.tags
    assert error.links() == []
    assert stripped(error.items) == [shorten(path, 500).strip(" ")] * 3


def without_tags(html: str) -> str:
    return unescape(re.sub(r"<[^>]*>", "", html))


def stripped(items: list[str]) -> list[str]:
    return [item.strip(" ") for item in items]


def test_problems_that_are_not_named_are_counted_and_warnings_stand_below() -> None:
    page = Page(render_error(unusable("a", "b", more=3, warnings=("odd",)), max_rows=1))
    assert page.text.startswith("⚠️ Retrieval contract could not be judged: 5 problems")
    assert page.items == ["a", "… and 4 more", "odd"]
    assert "1 warning" in page.prose


EVERYTHING = everything()


def downloaded(value: str) -> Page:
    """Render a report that somebody else wrote: ``value`` stands in every text of it, also in those that we write."""
    made = untrusted(EVERYTHING, lambda text: f"{value}{text}")
    return Page(render(made, name=value))


DOWNLOADED = downloaded("plain")


def test_a_plain_report_of_somebody_else_has_every_part() -> None:
    ours = Page(render(EVERYTHING))
    assert len(DOWNLOADED.tables) == len(ours.tables) == 14
    assert len(DOWNLOADED.retrieved) == len(ours.retrieved) == 8
    assert len(DOWNLOADED.answered) == len(ours.answered) == 8
    assert DOWNLOADED.tags.count("details") == 14
    assert DOWNLOADED.links() == []
    cells = {cell for table in DOWNLOADED.tables for row in table for cell in row}
    assert {"plainMRR@10", "plainp95 latency", "plainminimums.map_at_k", "❌ plainIt is said there."} <= cells
    assert any(cell.endswith("plainquestion-001") for cell in cells)
    assert DOWNLOADED.text.startswith("❌ plain — 6 of 12 queries broken, all new; 7 limits broken; 1 tier skipped")


@pytest.mark.parametrize("value", NASTY)
def test_a_nasty_report_of_somebody_else_has_the_same_parts(value: str) -> None:
    check_downloaded(value)


@settings(max_examples=30)
@given(nasty.map(lambda text: text[:300]))  # the headline has room for all of its names
def test_any_report_of_somebody_else_has_the_same_parts(value: str) -> None:
    check_downloaded(value)


def check_downloaded(value: str) -> None:
    page = downloaded(value)
    assert page.tags == DOWNLOADED.tags
    assert page.links() == []
    assert cut_up(value).tags == CUT_UP.tags
    assert cut_up(value).links() == []
    error = untrusted_error(value)
    assert error.tags == UNTRUSTED_ERROR.tags
    assert error.links() == []


def cut_up(value: str) -> Page:
    """Render a report whose sentences come letter by letter, so that no part of them looks like anything."""

    def letters(phrase: Phrase) -> Phrase:
        return tuple(letter for part in phrase for letter in (value if isinstance(part, str) else (part, value)))

    findings = [
        replace(one, expected=letters(one.expected), found=letters(one.found), found_now=letters(one.found_now))
        for one in EVERYTHING.findings
    ]
    return Page(render(replace(EVERYTHING, findings=findings)))


CUT_UP = cut_up("plain")


def untrusted_error(value: str) -> Page:
    made = error_report([f"{value}1", f"{value}2"], 1, [value], NOW)
    tool = Tool(name=value, version=value)
    return Page(render_error(replace(made, tool=tool, created_at=value, problems=[value, value]), name=value))


UNTRUSTED_ERROR = untrusted_error("plain")


def test_what_was_retrieved_counts_no_broken_query_that_retrieves_nothing() -> None:
    made = failing()
    answered = replace(made.queries[0], id="answered", retrieved=None, baseline_retrieved=None)
    assert "more broken" not in render(replace(made, queries=[*made.queries, answered]))


def test_a_rank_of_a_report_of_somebody_else_is_no_commit() -> None:
    made = failing()
    (finding,) = [one for one in made.findings if one.query_id == "refund_policy"]
    findings = [replace(finding, ranks=(1234567,), ranks_before=(7654321,))]
    queries = [replace(each, ranks={"D": 1234567}, baseline_ranks={"D": 7654321}) for each in made.queries]
    assert Page(render(replace(made, findings=findings, queries=queries))).links() == []


def test_of_many_documents_of_one_finding_the_first_are_named() -> None:
    made = failing()
    (finding,) = [one for one in made.findings if one.query_id == "refund_policy"]
    names = tuple(Name(f"doc{number}") for number in range(1_000))
    many = replace(finding, expected=(*names, " in top 5"), ranks=(None,) * 1_000, ranks_before=(2,))
    line = Page(render(replace(made, findings=[many]))).broken[1].splitlines()[1]
    assert line.startswith("doc0: was rank 2, now missing; doc1: still missing; doc2: ")
    assert line.endswith("doc4: still missing; …")
