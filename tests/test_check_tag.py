"""``check --tag``: one contract for a quick run of some queries and for a nightly run of all of them."""

import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from ragcontract import InputError, check
from tests.builders import golden, run, stored_query, write_baseline, write_jsonl
from tests.github.standin import GitHub
from tests.process import Ended, rag_contract
from tests.runner import InProcess

CONFIG = """
fail_on: {mrr_drop_gt: 0.01}
minimums: {recall_at_k: 0.95}
latency: {p95_ms: 10}
tags:
  smoke: {minimums: {recall_at_k: 0.4}}
  billing: {minimums: {recall_at_k: 0.9}}
"""
NOTE = (
    "Checked only: 2 queries with the tag smoke, and its limits. Not checked: 2 queries and 4 gates "
    "(fail_on.mrr_drop_gt, minimums.recall_at_k, tags.billing.minimums.recall_at_k, latency.p95_ms).\n"
)


@pytest.fixture(autouse=True)
def contract(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write four golden queries, of which two are for smoke runs, and a run of these two."""
    monkeypatch.chdir(tmp_path)
    rows = [
        golden("refunds", "doc1", tags=["smoke"]),
        golden("sso", "doc2", tags=["smoke", "billing"]),
        golden("invoices", "doc3", tags=["billing"]),
        golden("shipping", "doc4"),
    ]
    write_jsonl(tmp_path / "golden.jsonl", rows)
    write_jsonl(tmp_path / "current_run.jsonl", [run("refunds", "doc1"), run("sso", "doc2")])
    (tmp_path / "ragcontract.yml").write_text(CONFIG)
    return tmp_path


def smoke(*options: str) -> Ended:
    return rag_contract("check", "--tag", "smoke", *options)


def read_report() -> dict[str, Any]:
    report: dict[str, Any] = json.loads(Path("report.json").read_text())
    return report


def test_only_the_queries_with_the_tag_need_a_row_and_only_its_limits_are_judged() -> None:
    assert rag_contract("check").code == 2  # the other queries have no row, and the drop no baseline
    ended = smoke()
    assert (ended.code, ended.err) == (0, "")
    assert [gate["id"] for gate in read_report()["gates"]] == ["tags.smoke.minimums.recall_at_k"]
    assert [query["id"] for query in read_report()["queries"]] == ["refunds", "sso"]


def test_a_rule_and_a_limit_of_the_tag_still_break_the_contract(contract: Path) -> None:
    write_jsonl(contract / "current_run.jsonl", [run("refunds", "x"), run("sso", "x")])
    ended = smoke()
    assert ended.code == 1
    assert "FAIL  2 of 2 queries broken; 1 limit broken" in ended.out


def test_a_limit_on_a_drop_needs_a_query_with_the_tag_that_the_baseline_has_too(contract: Path) -> None:
    (contract / "ragcontract.yml").write_text("tags: {smoke: {fail_on: {mrr_drop_gt: 0.05}}}\n" + RANKS_OFF)
    write_jsonl(contract / "current_run.jsonl", [run("refunds", "x"), run("sso", "x")])
    write_jsonl(contract / "before.jsonl", [run("of_another_contract", "z")])
    ended = smoke("--baseline", "before.jsonl")
    assert ended.code == 2
    assert "tags.smoke.fail_on.mrr_drop_gt cannot be judged: no query with the tag 'smoke'" in ended.err
    assert "is in both the run and the baseline" in ended.err


def test_rows_of_other_golden_queries_are_ignored_and_those_of_none_are_not(contract: Path) -> None:
    rows = [run("refunds", "doc1"), run("sso", "doc2"), run("invoices", "x"), run("of_nobody", "x")]
    write_jsonl(contract / "current_run.jsonl", rows)
    ended = smoke()
    assert ended.code == 0
    assert ended.err == "warning: current_run.jsonl: 1 row for no golden query, left out: 'of_nobody'\n"
    assert read_report()["metrics"]["recall_at_5"]["current"] == 1.0


def test_every_report_says_below_the_verdict_what_was_not_judged() -> None:
    ended = smoke("--report-html", "report.html")
    assert ended.out.endswith(NOTE + "PASS  2 queries and 1 limit hold\n")
    assert read_report()["scope"] == {
        "tags": ["smoke"],
        "queries_not_judged": ["invoices", "shipping"],
        "gates_not_judged": [
            "fail_on.mrr_drop_gt",
            "minimums.recall_at_k",
            "tags.billing.minimums.recall_at_k",
            "latency.p95_ms",
        ],
    }
    markdown = Path("report.md").read_text().splitlines()
    assert markdown[0].startswith("### ✅ ")
    assert markdown[2].startswith(
        "Checked only: 2 queries with the tag `smoke`, and its limits. Not checked: 2 queries"
    )
    assert "Checked only: 2 queries with the tag" in Path("report.html").read_text().partition("<main>")[0]
    properties = ET.parse("junit.xml").iter("property")
    assert {one.get("name"): one.get("value") for one in properties}["scope"] == NOTE.strip()


def test_without_a_tag_nothing_is_said_about_one(contract: Path) -> None:
    rows = [run(name, doc) for name, doc in zip(("refunds", "sso", "invoices", "shipping"), DOCS, strict=True)]
    write_jsonl(contract / "current_run.jsonl", rows)
    (contract / "ragcontract.yml").unlink()
    assert "Checked only" not in rag_contract("check").out
    assert read_report()["scope"] is None
    assert "Checked only" not in Path("report.md").read_text() + Path("junit.xml").read_text()


DOCS = ("doc1", "doc2", "doc3", "doc4")


def test_several_tags_add_up(contract: Path) -> None:
    write_jsonl(contract / "current_run.jsonl", [run("refunds", "doc1"), run("sso", "doc2"), run("invoices", "doc3")])
    ended = rag_contract("check", "--tag", "smoke", "billing")
    assert ended.code == 0
    assert "Checked only: 3 queries with the tags smoke or billing, and the limits of these tags." in ended.out
    assert [gate["tag"] for gate in read_report()["gates"]] == ["smoke", "billing"]


def test_means_of_other_tags_are_left_out_because_not_all_of_their_queries_are_judged() -> None:
    smoke()
    assert list(read_report()["tags"]) == ["smoke"]
    assert read_report()["queries"][1]["tags"] == ["smoke", "billing"]


def test_a_tag_that_no_query_has_cannot_be_judged_and_the_nearest_is_named() -> None:
    ended = rag_contract("check", "--tag", "smok")
    assert (ended.code, ended.err) == (2, "error: tag 'smok': no golden query has it; did you mean 'smoke'?\n")
    ended = rag_contract("check", "--tag", "", "--tag", "zzz")
    assert ended.err.splitlines() == [
        "error: tag '': no golden query has it; name a tag that one has",
        "error: tag 'zzz': no golden query has it; name a tag that one has",
    ]


@pytest.mark.parametrize("options", [[], ["--tag", "billing"], ["--tag", "smoke"]])
def test_limits_of_a_tag_that_no_query_has_are_refused_whatever_is_judged(contract: Path, options: list[str]) -> None:
    docs = zip(("refunds", "sso", "invoices", "shipping"), DOCS, strict=True)
    write_jsonl(contract / "current_run.jsonl", [run(name, doc) for name, doc in docs])
    (contract / "ragcontract.yml").write_text("tags:\n  Billing: {minimums: {recall_at_k: 1}}\n")
    why = "no golden query has the tag 'Billing'; did you mean 'billing'?"
    message = f"error: ragcontract.yml:2: tags.Billing.minimums.recall_at_k cannot be judged: {why}\n"
    assert rag_contract("check", *options) == (2, "", message)
    with pytest.raises(InputError, match="no golden query has the tag 'Billing'"):
        check(golden="golden.jsonl", run="current_run.jsonl", config="ragcontract.yml", tags=options[1:])


@pytest.mark.parametrize("options", [[], ["--tag", "smoke"]])
@pytest.mark.parametrize(("tag", "advice"), [("Billing", "; did you mean 'billing'?"), ("zzz", "")])
def test_a_tag_of_a_score_that_no_query_has_is_refused_whatever_is_judged(
    contract: Path, tag: str, advice: str, options: list[str]
) -> None:
    """Its queries would have no score, and a limit on it would hold whatever they got."""
    docs = zip(("refunds", "sso", "invoices", "shipping"), DOCS, strict=True)
    rows = [run(name, doc, scores={"toxicity": 0.9 if name == "invoices" else 0}) for name, doc in docs]
    write_jsonl(contract / "current_run.jsonl", rows)
    declared = f"metrics:\n  toxicity: {{from: scores, better: lower, tags: [smoke, {tag}]}}\n"
    (contract / "ragcontract.yml").write_text(f"{declared}maximums: {{toxicity: 0.1}}\n")
    ended = rag_contract("check", *options)
    why = f"metrics.toxicity.tags: no golden query has the tag '{tag}'{advice}"
    assert (ended.code, ended.err.splitlines()[0]) == (2, f"error: ragcontract.yml:2: {why}")
    (contract / "ragcontract.yml").write_text(f"{declared.replace(tag, 'billing')}maximums: {{toxicity: 0.1}}\n")
    assert rag_contract("check").code == 1


def test_of_limits_elsewhere_only_the_tag_must_be_there() -> None:
    Path("ragcontract.yml").write_text("k: 5\ntags:\n  billing: {fail_on: {mrr_drop_gt: 0.1}}\n")
    assert smoke().code == 0  # the limit has no baseline, but the queries with its tag are not judged


def test_a_baseline_of_all_queries_serves_those_with_the_tag(contract: Path) -> None:
    docs = zip(("refunds", "sso", "invoices"), DOCS, strict=False)
    write_baseline(contract / "baseline.json", *(stored_query(name, doc) for name, doc in docs))
    (contract / "ragcontract.yml").write_text("tags: {smoke: {fail_on: {mrr_drop_gt: 0.1}}}\n")
    write_jsonl(contract / "current_run.jsonl", [run("refunds", "doc1"), run("sso", "x")])
    ended = smoke()
    assert ended.code == 1
    assert "-0.50  FAIL  allowed drop" in ended.out
    assert (read_report()["inputs"]["baseline"]["shared"], read_report()["inputs"]["baseline"]["gone"]) == (2, [])


def test_a_baseline_that_is_older_than_the_tagged_queries_is_no_error(contract: Path) -> None:
    write_baseline(contract / "baseline.json", stored_query("shipping", "doc4"))
    assert smoke().code == 0


def test_the_latency_of_all_queries_is_not_compared_with_that_of_some(contract: Path) -> None:
    latency = {"rows": 4, "p50_ms": 1.0, "p95_ms": 1.0, "max_ms": 1.0}
    write_baseline(contract / "baseline.json", stored_query("refunds", "doc1"), latency=latency)
    write_jsonl(
        contract / "current_run.jsonl", [run("refunds", "doc1", latency_ms=5), run("sso", "doc2", latency_ms=5)]
    )
    smoke()
    assert read_report()["latency"]["current"]["rows"] == 2
    assert read_report()["latency"]["baseline"] is None


def test_a_waiver_for_what_is_not_judged_is_not_called_useless(contract: Path) -> None:
    waivers = [{"query": "shipping"}, {"gate": "minimums.recall_at_k"}, {"query": "refunds"}]
    listed = [json.dumps({**one, "reason": "r", "owner": "o", "expires": "2999-01-01"}) for one in waivers]
    (contract / "ragcontract.yml").write_text(CONFIG + f"waivers: [{', '.join(listed)}]\n")
    assert smoke().err == ""


def test_validate_says_whether_the_tag_could_be_judged() -> None:
    assert rag_contract("validate").code == 2
    ended = rag_contract("validate", "--tag", "smoke")
    assert ended.out.startswith("valid: 2 golden queries (2 with relevant documents), 2 run rows")


def test_the_python_api_judges_a_tag_as_the_command_does() -> None:
    report = check(golden="golden.jsonl", run="current_run.jsonl", config="ragcontract.yml", tags="smoke")
    smoke()
    assert report.verdict == "pass"
    assert report.scope is not None
    assert report.scope.queries_not_judged == read_report()["scope"]["queries_not_judged"]
    with pytest.raises(InputError, match="tag 'smok'"):
        check(golden="golden.jsonl", run="current_run.jsonl", tags=["smoke", "smok"])


def test_the_action_judges_a_tag_and_its_comment_says_so(tmp_path: Path, github: GitHub) -> None:
    runner = InProcess(tmp_path / "job", github)
    for name in ("golden.jsonl", "current_run.jsonl", "ragcontract.yml"):
        (runner.workspace / name).write_bytes((tmp_path / name).read_bytes())
    assert runner.run({"tag": "smoke\n"}).exit_code == 0
    assert "Checked only: 2 queries with the tag `smoke`, and its limits." in github.bodies()[0]
    assert "input" not in runner.run({"tag": "smok"}).log.partition("tag 'smok'")[0]


def test_two_tags_of_one_contract_in_one_job_do_not_replace_each_others_comment(tmp_path: Path, github: GitHub) -> None:
    runner = InProcess(tmp_path / "job", github)
    write_jsonl(runner.workspace / "golden.jsonl", [golden("q1", tags=["a"]), golden("q2", tags=["b"])])
    write_jsonl(runner.workspace / "current_run.jsonl", [run("q1", "x"), run("q2", "doc1")])
    assert runner.run({"tag": "a"}).exit_code == 1
    result = runner.run({"tag": "b"})
    assert result.exit_code == 0
    assert "broken" in github.bodies()[0].splitlines()[1]
    assert any("name" in annotation.message for annotation in result.annotations)


def test_a_hostile_tag_is_text_in_every_report(contract: Path) -> None:
    tag = "<img src=x>`|\n## \x1b[31m @all ]]>"
    write_jsonl(contract / "golden.jsonl", [golden("q1", tags=[tag])])
    write_jsonl(contract / "current_run.jsonl", [run("q1")])
    (contract / "ragcontract.yml").unlink()
    ended = rag_contract("check", "--tag", tag, "--report-html", "report.html")
    assert ended.code == 0
    assert "the tag <img src=x>`|\\n## \\x1b[31m @all ]]>, and its limits.\n" in ended.out
    assert "<img" not in Path("report.html").read_text()
    markdown = Path("report.md").read_text().split("\n\n")[1]
    assert "\n" not in markdown
    assert "@all" not in markdown
    assert "<img" not in markdown
    assert next(iter(ET.parse("junit.xml").iter("testsuite"))) is not None


@pytest.mark.parametrize("verdict", ["PASS", "FAIL"])
def test_quiet_prints_the_verdict_only_and_writes_the_whole_report(verdict: str, contract: Path) -> None:
    rows = [run("refunds", "doc1"), run("sso", "doc2" if verdict == "PASS" else "x")]
    write_jsonl(contract / "current_run.jsonl", rows)
    loud = smoke()
    whole = report_without_time()
    quiet = smoke("--quiet")
    assert quiet.out.splitlines() == loud.out.splitlines()[-2:]
    assert quiet.out.splitlines()[-1].startswith(verdict)
    assert quiet.code == loud.code
    assert report_without_time() == whole


def report_without_time() -> str:
    text = Path("report.md").read_text()
    created_at = re.findall(r"`\d{4}-\d\d-\d\dT\S+`", text)
    assert len(created_at) == 1
    return text.replace(created_at[0], "")


def test_quiet_hides_neither_warnings_nor_errors(contract: Path) -> None:
    write_jsonl(contract / "current_run.jsonl", [run("refunds"), run("sso", "doc2"), run("of_nobody")])
    assert "of_nobody" in smoke("--quiet").err
    assert "of_nobody" in rag_contract("validate", "--tag", "smoke", "--quiet").err
    (contract / "current_run.jsonl").unlink()
    assert "no such file" in smoke("--quiet").err


def test_a_quiet_validate_prints_nothing_if_all_is_well() -> None:
    assert rag_contract("validate", "--tag", "smoke", "--quiet") == Ended(0, "", "")


LIKE = {
    "case": "Billing",
    "a blank": "billing ",
    "a line end": "billing\n",
    "an invisible character": "bil\u200bling",
    "wide letters": "ｂｉｌｌｉｎｇ",
    "a separator": "bill-ing",
}


@pytest.fixture
def like(request: pytest.FixtureRequest) -> str:
    """Give a query of a tag with a limit, which it breaks, another form of the tag."""
    tag = str(LIKE[request.param])
    write_jsonl(Path("golden.jsonl"), [golden("a", "doc1", tags=["billing"]), golden("b", "doc2", tags=[tag])])
    write_jsonl(Path("current_run.jsonl"), [run("a", "doc1"), run("b", "x")])
    return tag


OTHER_TAG = 'is another tag than "billing", which the configuration or --tag names'
RANKS_OFF = "per_query: {enforce_must_include: false}\n"


@pytest.mark.parametrize("like", LIKE, indirect=True)
def test_a_tag_that_is_like_one_with_a_limit_is_named(like: str) -> None:
    Path("ragcontract.yml").write_text(RANKS_OFF + "tags: {billing: {minimums: {mrr_at_k: 0.9}}}\n")
    ended = rag_contract("check")
    assert (ended.code, ended.err.count(OTHER_TAG)) == (0, 1)
    assert any(OTHER_TAG in warning for warning in read_report()["warnings"])
    assert rag_contract("lint", "--without-run", "--strict").code == 1
    assert "golden.jsonl:2: tags: " in ended.err
    write_jsonl(
        Path("golden.jsonl"), [golden("a", "doc1", tags=["billing"]), golden("b", "doc2", tags=[like, "billing"])]
    )
    ended = rag_contract("check")
    assert (ended.code, OTHER_TAG in ended.err) == (1, False)  # it has the tag itself, too


NAMING = {
    "a waiver": "waivers: [{tag: billing, reason: r, owner: o, expires: 2099-01-01}]\n",
    "a score": "metrics: {faithful: {from: scores, tags: [billing]}}\n",
    "the command": "",
}


@pytest.mark.parametrize("like", ["case"], indirect=True)
@pytest.mark.parametrize("config", NAMING.values(), ids=NAMING.keys())
def test_a_tag_that_is_like_one_that_anything_names_is_named(config: str, like: str) -> None:
    Path("ragcontract.yml").write_text(RANKS_OFF + config)
    scored = run("a", "doc1", scores={"faithful": 1})
    write_jsonl(Path("current_run.jsonl"), [scored, run("b", "x")])
    ended = rag_contract("check", *(() if config else ("--tag", "billing")))
    assert (ended.code, ended.err.count(OTHER_TAG)) == (0, 1)
    assert repr(like).strip("'") in ended.err


def test_tags_that_both_have_limits_and_other_tags_are_not_named() -> None:
    rows = [golden("a", "doc1", tags=["billing", "B-2"]), golden("b", "doc2", tags=["Billing", "b2"])]
    write_jsonl(Path("golden.jsonl"), rows)
    write_jsonl(Path("current_run.jsonl"), [run("a", "doc1"), run("b", "doc2")])
    both = "tags: {billing: {minimums: {mrr_at_k: 0.9}}, Billing: {minimums: {mrr_at_k: 0.8}}}\n"
    for config in (both, RANKS_OFF):
        Path("ragcontract.yml").write_text(config)
        ended = rag_contract("check")
        assert (ended.code, "another tag" in ended.err) == (0, False)
