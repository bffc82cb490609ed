"""Limits on what reports show. Reports are made in memory and rendered."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from msgspec.structs import replace

from ragcontract import ContractBroken
from ragcontract import Report as Result
from ragcontract.core.phrase import Name, excerpt
from ragcontract.github.runner_output import when_checked
from ragcontract.report.baseline import update_text
from ragcontract.report.build import error_report
from ragcontract.report.headline import headline
from ragcontract.report.html.elements import WORDS, sentence
from ragcontract.report.markdown import inline, render, render_error
from ragcontract.report.markdown import sentence as markdown_sentence
from ragcontract.report.record import ErrorReport, Report
from ragcontract.report.terminal import aligned, check_text, diff_text
from ragcontract.runs.baseline_contract import PastContract, Replaced
from ragcontract.runs.baseline_file import Accepted, BaselineFile, Tool
from tests.bounds.lab import Case, Cases, Lab, accepted, all_of
from tests.builders import baseline, golden, run, write_jsonl
from tests.process import Ended, rag_contract
from tests.records import NOW as REPORTED
from tests.records import Rows, query, rendered, report
from tests.report.html.parsed import Parsed, parsed

NOW = datetime(2026, 1, 2, tzinfo=UTC)


def broken(count: int = 1, **fields: Any) -> Report:
    """Return a report on queries that find nothing."""
    asked = [query(f"q{number}", "A", **fields) for number in range(count)]
    return report(asked, {one.id: ["x"] for one in asked})


def holding(count: int = 1, **fields: Any) -> Report:
    """Return a report on a contract that holds."""
    asked = [query(f"q{number}", "A") for number in range(count)]
    return report(asked, {one.id: ["A"] for one in asked}, **fields)


def raised(_: Lab, size: int) -> bool:
    message = str(ContractBroken(Result.of(broken(size))))
    return all_of("more finding" not in message, message.count(": expected ") == size)


def wanting(documents: int) -> Report:
    """Return a report on a query that lost all of its documents."""
    wanted = [f"doc{number}" for number in range(documents)]
    return report([query("q", *wanted)], {"q": ["x"]}, {"q": wanted}, {"k": documents})


def forbidden_beside(documents: int) -> Report:
    """Return a report on a query that found all of its documents, and a forbidden one."""
    wanted = [f"doc{number}" for number in range(documents)]
    asked = query("q", *wanted, forbidden_doc_ids=("F",))
    return report([asked], {"q": [*wanted, "F"]}, None, {"k": documents + 1})


def branch(_: Lab, size: int) -> bool:
    since = {"q0": {"commit": "abc1234", "at": "2026-07-01T00:00:00Z"}}
    history = {"branch": "x" * size, "entries": 1, "broken_since": since}
    made = msgspec.convert(msgspec.to_builtins(broken()) | {"history": history}, Report)
    return all_of(*("x" * size in text for text in (render(made), check_text(made), html(made))))


def headline_of(_: Lab, size: int) -> bool:
    made = report([query("q", "A")], {"q": ["x", "A"]}, None, {"minimums": {"mrr_at_k": 0.9}})
    length = size - len("1 limit broken: minimum of ; no query is broken")
    return "x" * length in headline(replace(made, gates=[replace(made.gates[0], label="x" * length)]))


def passages_of(lab: Lab, before: int, text: str) -> list[Any]:
    """Return the first result of a broken query in the page; ``before`` other rows without texts come first."""
    others = [golden(f"other{number}", "A") for number in range(before)]
    rows = [run(query["id"], "A") for query in others]
    write_jsonl(lab.folder / "good.jsonl", [*rows, run("q", "B")])
    now = [*rows, {"query_id": "q", "results": [{"doc_id": "x", "text": text}]}]
    lab.check([*others, golden("q", "B")], now, "", "--baseline", "good.jsonl", "--report-html", "report.html")
    queries = Parsed((lab.folder / "report.html").read_bytes()).data()["queries"]
    (broken_query,) = [each for each in queries if each["i"] == "q"]
    first: list[Any] = broken_query["n"][0]
    return first


def passage(lab: Lab, size: int) -> bool:
    return passages_of(lab, 0, "x" * size)[3:] == ["x" * size]


def rows_without_texts(lab: Lab, count: int) -> bool:
    return passages_of(lab, count, "text")[3:] == ["text"]


def waived(why: int) -> tuple[Report, str]:
    """Return a report on a waived query whose reason, as reports write it, has ``why`` characters; and the reason."""

    def made(reason: str) -> Report:
        waiver = {"query": "q", "reason": reason, "owner": "ann", "expires": "2027-01-01"}
        return report([query("q", "A")], {"q": ["x"]}, None, {"waivers": [waiver]})

    written = made("r").findings[0].why
    reason = "r" * (why - len(written) + 1)
    found = made(reason)
    assert len(found.findings[0].why) == why
    return found, found.findings[0].why


def tagged(count: int, *, limited: bool = False) -> Report:
    """Return a report on a query with many tags; ``limited`` sets a minimum for each of them."""
    names = tuple(f"t{number:03}" for number in range(count))
    limits = {"tags": {name: {"minimums": {"mrr_at_k": 0.1}} for name in names}} if limited else {}
    return report([query("q", "A", tags=names)], {"q": ["A"]}, None, limits)


def all_queries(lab: Lab, size: int) -> bool:
    ids = [f"q{number}" for number in range(size)]
    lab.check(list(map(golden, ids)), list(map(run, ids)))
    return bool(lab.report()["detail"] == "all")


def listed(_: Lab, size: int) -> bool:
    found = wanting(size)
    return all_of(" more" not in check_text(found), " more" not in render(found))


def retrieved_queries(lab: Lab, size: int) -> bool:
    ids = [f"q{number}" for number in range(size)]
    lab.check(list(map(golden, ids)), [run(query_id, "x") for query_id in ids])
    return all("retrieved" in query for query in lab.report()["queries"])


def least_overlap(lab: Lab, size: int) -> bool:
    ids = [f"q{number}" for number in range(size)]
    write_jsonl(lab.folder / "base.jsonl", [run(query_id, "x") for query_id in ids])
    lab.check(list(map(golden, ids)), list(map(run, ids)), "", "--baseline", "base.jsonl")
    return len(lab.report()["least_overlap"]) == size


def rows_of_a_baseline(lab: Lab, size: int) -> bool:
    rows = [run("q1", "doc1"), *[run("q1", "x")] * (size - 1)]
    write_jsonl(lab.folder / "base.jsonl", rows)
    lab.check([golden()], [run("q1", "doc1")], "", "--baseline", "base.jsonl", "--repeats")
    return bool(lab.report()["metrics"]["overlap_at_5"]["current"] == 1 / size)


def retrieved(lab: Lab, size: int) -> bool:
    lab.check([golden()], [run("q1", *(f"x{number}" for number in range(size)))], "", "--k", str(size))
    markdown = (lab.folder / "report.md").read_text()
    return all_of(len(lab.report()["queries"][0]["retrieved"]) == size, f": top {size}</summary>" in markdown)


def terminal_result(lab: Lab, size: int) -> bool:
    name = "x" * size
    write_jsonl(lab.folder / "base.jsonl", [run("q1", "doc1")])
    lab.check([golden()], [run("q1", name)])
    return name in rag_contract("diff", "--baseline", "base.jsonl").out


def summary_line(_: Lab, size: int) -> bool:
    def made(problem: str) -> str:
        return error_report([problem], 0, [], NOW).summary_line

    problem = "p" * (size - len(made("p")) + 1)
    return problem in made(problem)


def compared(lab: Lab, *runs: list[dict[str, Any]]) -> Ended:
    names = [f"run{number}.jsonl" for number, _ in enumerate(runs)]
    for name, rows in zip(names, runs, strict=True):
        write_jsonl(lab.folder / name, rows)
    return rag_contract("compare", *names)


def compared_runs(lab: Lab, size: int) -> bool:
    write_jsonl(lab.folder / "golden.jsonl", [golden()])
    return accepted(compared(lab, *[[run()]] * size), f"found {size}")


def good_runs(lab: Lab, size: int) -> bool:
    write_jsonl(lab.folder / "golden.jsonl", [golden()])
    for number in range(size):
        write_jsonl(lab.folder / f"good-{number}.jsonl", [run()])
    ended = rag_contract("baseline", "--run", "good-*.jsonl", "--force")
    return accepted(ended, "good runs")


def disagreements(lab: Lab, size: int) -> bool:
    ids = [f"q{number}" for number in range(size)]
    write_jsonl(lab.folder / "golden.jsonl", map(golden, ids))
    found = compared(lab, [run(one, "doc1") for one in ids], [run(one, "x") for one in ids])
    assert f"{size} queries that the runs disagree about" in found.out
    return "… and 1 more query." not in found.out


def run_label(lab: Lab, size: int) -> bool:
    write_jsonl(lab.folder / "golden.jsonl", [golden()])
    name = "x" * size
    for path in (f"{name}.jsonl", "other.jsonl"):
        write_jsonl(lab.folder / path, [run()])
    return name in rag_contract("compare", f"{name}.jsonl", "other.jsonl").out


def terminal_why(_: Lab, size: int) -> bool:
    found, why = waived(size + len("waived "))
    return why.removeprefix("waived ") in check_text(found)


def terminal_question(_: Lab, size: int) -> bool:
    question = "q" * size
    before = Rows(docs={"q": ["A"]}, name="baseline.json", questions={"q": question})
    return question in diff_text(report([query("q", "A", query=question)], {"q": ["x"]}, before))


def terminal_reason(_: Lab, size: int) -> bool:

    stored = msgspec.convert(baseline(), BaselineFile)
    text = update_text(broken(), stored, stored, out="baseline.json", reason="r" * size, written=True)
    return "r" * size in text


def rows(_: Lab, size: int) -> bool:
    tool = Tool(name="rag-contract", version="1")
    error = ErrorReport(tool=tool, created_at="", problems=[f"problem {number}" for number in range(size)])
    return all_of("… and " not in render(broken(size)), "… and " not in render_error(error))


def breaking(findings: int) -> Report:
    """Return a report on a query with this many findings."""
    found = broken()
    return replace(found, findings=found.findings * findings)


def markdown_id(_: Lab, size: int) -> bool:
    name = "i" * size
    return f"`{name}`" in render(report([query(name, "A")], {name: ["x"]}))


def html(made: Report) -> str:
    """Return the text of the page without the data in it."""
    return parsed(made).text


def html_id(_: Lab, size: int) -> bool:
    name = "x" * size
    return f"{name} Anything?" in html(report([query(name, "A", query="Anything?")], {name: ["x"]}))


def html_why(_: Lab, size: int) -> bool:
    found, why = waived(size)
    data = rendered(found)["report-html"].decode()
    return all_of(why in html(found), data.count(why) == 2)


def html_reason(_: Lab, size: int) -> bool:
    def made(reason: str) -> Report:
        waiver = {"gate": "minimums.mrr_at_k", "reason": reason, "owner": "ann", "expires": "2027-01-01"}
        config = {"minimums": {"mrr_at_k": 0.9}, "waivers": [waiver]}
        return report([query("q", "A")], {"q": ["x"]}, None, config)

    reason = "r" * (size - len("until 2027-01-01, ann: "))
    return f"Waived until 2027-01-01, ann: {reason} " in html(made(reason))


def folded(_: Lab, size: int) -> bool:
    return "… and 1 more" not in html(holding(warnings=["w"] * size))


def html_tags(count: int) -> tuple[bool, bool]:
    """Return whether all tags are open, and whether all are in the page."""
    text = html(tagged(count))
    return "more tag" not in text, f"t{count - 1:03}" in text


def tag_metrics(lab: Lab, count: int) -> bool:
    """Return whether the table of tags has all of so many metrics."""
    names = [f"score_{number}" for number in range(count - 6)]  # and those on documents
    declared = ", ".join(f"{name}: {{from: scores}}" for name in names)
    config = f"metrics: {{{declared}}}\nminimums: {{recall_at_k: 0.1}}\n"
    lab.check([golden(tags=["t"])], [run(scores=dict.fromkeys(names, 1.0))], config)
    return "more metric" not in (lab.folder / "report.md").read_text()


def baseline_time(_: Lab, size: int) -> bool:
    before = Rows(docs={"q": ["A"]}, name="baseline.json", created_at="x" * size)
    return "x" * size in when_checked(report([query("q", "A")], {"q": ["A"]}, before), NOW)


def replaced(days: int = 0, reason: str = "r") -> Report:
    """Return a report on a baseline that replaced one so many days ago, for a reason."""
    made = (REPORTED - timedelta(days=days)).isoformat()
    before = Rows(
        docs={"q": ["A"]},
        name="baseline.json",
        created_at=made,
        accepted=[Accepted(reason=reason, at=made, failed=1, failed_checks=[])],
        contract=PastContract(),
        replaces=Replaced(sha256="", created_at=made, shared=1, metrics={}, metrics_shared={}, accepted=True),
    )
    return report([query("q", "A")], {"q": ["A"]}, before)


def changed_items(lab: Lab, size: int) -> bool:
    ids = [f"q{number}" for number in range(size)]
    for more in ([], ["--update"]):
        fields = {"must_rank_at_most": 1} if not more else {}
        write_jsonl(lab.folder / "golden.jsonl", [golden(one, **fields) for one in ids])
        write_jsonl(lab.folder / "current_run.jsonl", list(map(run, ids)))
        assert rag_contract("baseline", *more).code == 0
    (removed,) = json.loads((lab.folder / "baseline.json").read_text())["replaces"]["contract_changes"]
    (lab.folder / "baseline.json").unlink()
    assert removed["count"] == size
    return len(removed["items"]) == size


CASES: Cases = {
    "CHANGED_ITEMS": Case(changed_items),
    "REPLACED_DAYS": Case(lambda _, days: "The baseline was replaced" in check_text(replaced(days))),
    "NOTE_REASON": Case(lambda _, size: "x" * size in check_text(replaced(reason="x" * size))),
    "ALL_QUERIES": Case(all_queries, small=20),
    "RAISED": Case(raised),
    "LISTED": Case(listed),
    "LEAST_OVERLAP": Case(least_overlap),
    "BASELINE_ROWS": Case(rows_of_a_baseline, small=5),
    "RETRIEVED_QUERIES": Case(retrieved_queries, small=20),
    "RETRIEVED": Case(retrieved),
    "SUMMARY_LINE": Case(summary_line),
    "TERMINAL_RESULT": Case(terminal_result),
    "COMPARED_RUNS": Case(compared_runs),
    "GOOD_RUNS": Case(good_runs),
    "DISAGREEMENTS": Case(disagreements),
    "RUN_LABEL": Case(run_label),
    "CELL": Case(lambda _, size: next(iter(aligned([["c" * size]]))) == "c" * size),
    "EXCERPT": Case(lambda _, size: excerpt("x" * size).name == "x" * size),
    "TERMINAL_QUERIES": Case(lambda _lab, size: "more broken" not in check_text(broken(size))),
    "TERMINAL_WHY": Case(terminal_why),
    "TERMINAL_QUESTION": Case(terminal_question),
    "TERMINAL_REASON": Case(terminal_reason),
    "ROWS": Case(rows),
    "MARKDOWN_ID": Case(markdown_id),
    "MARKDOWN_QUESTION": Case(lambda _, size: "x" * size in render(broken(query="x" * size))),
    "MARKDOWN_NAME": Case(lambda _, size: "x" * size in render(holding(), name="x" * size)),
    "MARKDOWN_SENTENCE": Case(lambda _, size: markdown_sentence(("x" * size,)) == inline("x" * size) == "x" * size),
    "MARKDOWN_FINDINGS": Case(lambda _, size: "… and 1 more" not in render(breaking(size))),
    "MARKDOWN_LINE": Case(lambda _, size: "x" * size in render(holding(warnings=["x" * size]))),
    "BRANCH": Case(branch),
    "CHANGED_DOCS": Case(lambda _, size: " more |" not in render(wanting(size))),
    "HTML_TEXT": Case(lambda _, size: b"x" * size in rendered(holding(warnings=["x" * size]))["report-html"]),
    "HTML_NOTE": Case(lambda _, size: WORDS["fact"]("x" * size) == "x" * size),
    "HTML_ID": Case(html_id),
    "HTML_NAME": Case(lambda _, size: sentence((Name("x" * size),)) == f"<bdi>{'x' * size}</bdi>"),
    "HTML_QUESTION": Case(lambda _, size: "x" * size in html(broken(query="x" * size))),
    "HTML_WHY": Case(html_why),
    "HTML_REASON": Case(html_reason),
    "HTML_QUERIES": Case(lambda _, size: f"What about q{size - 1}?" in html(broken(size))),
    "HTML_RANKS": Case(lambda _, size: "more" not in html(forbidden_beside(size)).partition("doc0")[2]),
    "OPEN_QUERIES": Case(lambda _, size: "more broken quer" not in render(broken(size))),
    "HEADLINE": Case(headline_of),
    "PASSAGE": Case(passage),
    "ROWS_WITHOUT_TEXTS": Case(rows_without_texts, small=3),
    "HTML_CARDS": Case(lambda _, size: "of tags" not in html(tagged(size, limited=True))),
    "TAG_METRICS": Case(tag_metrics),
    "HTML_OPEN_TAGS": Case(lambda _, size: html_tags(size)[0]),
    "HTML_TAGS": Case(lambda _, size: html_tags(size)[1]),
    "HTML_LINES": Case(folded),
    "BASELINE_TIME": Case(baseline_time),
}
