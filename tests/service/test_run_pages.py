"""The pages of a run: why it failed, what changed since the last pass, and how it compares with another run."""

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from sqlalchemy import insert

from ragcontract.history.entry import EntryGate, NewEntry, encode
from ragcontract.service.tables import runs
from tests.history.entries import new_entry
from tests.history.trends import commit_of, contract, ids_of, results_at, run_at
from tests.service.conftest import HOSTILE
from tests.service.served import Served
from tests.service.visiting import Page, Pages, assert_harmless, hostile_runs, text_of

IDS = ids_of()
HELD = dict.fromkeys(IDS, 1)


@pytest.fixture
def pages(served: Served) -> Pages:
    return Pages(served.client, served.key)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    contract(tmp_path)
    return tmp_path


def contract_blob() -> bytes:
    texts = {"golden": [Path("golden.jsonl").read_text()], "config": Path("ragcontract.yml").read_text()}
    return json.dumps(texts).encode()


def add(served: Served, number: int, ranks: dict[str, int] | None = None, **fields: Any) -> int:
    """Send a run in which the relevant documents have these ranks, with the contract; return its id."""
    new = run_at(number, results_at(ranks) if ranks else None, **fields)
    return served.add(new, golden=served.send_blob(contract_blob(), "golden"), default_branch=True)


def answer_of(page: Page) -> str:
    """Return the sentence that answers the question of the page."""
    part = page.markup.partition('<p class="answer')[2].partition(">")[2].partition("</p>")[0]
    return " ".join(text_of(part).split())


def test_a_run_shows_what_its_report_shows(served: Served, pages: Pages, checked_run: tuple[NewEntry, bytes]) -> None:
    new, report = checked_run
    number = served.add(new, report=served.send_blob(report, "report"))
    page = pages.get(f"/runs/{number}")
    of_report = Page(served.request("GET", f"/runs/{number}/report.html").content)
    assert page.data() == of_report.data()
    main = of_report.markup.partition("<main>\n")[2].partition("</main>")[0]
    assert main.strip() in page.markup
    headline = of_report.markup.partition('<p class="headline">')[2].partition("</p>")[0]
    assert f'<p class="headline">{headline}</p>' in page.markup
    scripts = [attributes["src"] for tag, attributes in page.elements if tag == "script" and "src" in attributes]
    assert [(src or "").partition("?")[0] for src in scripts] == ["/static/htmx.min.js", "/static/report.js"]
    assert_harmless(page)
    for name in ("report.html", "report.json", "baseline.json"):
        assert f"/api/v1/runs/{number}/{name}" in page.links


@pytest.mark.usefixtures("folder")
def test_what_changed_since_the_last_pass_is_the_answer(served: Served, pages: Pages) -> None:
    first = add(served, 0, HELD, mean=1.0, tolerated=[IDS[4]])
    add(served, 1, HELD, failed=IDS[:2])
    add(served, 2, HELD, source={"branch": "topic"})
    last = add(served, 3, HELD, mean=0.9, failed=[IDS[0], IDS[7]])
    page = pages.get(f"/runs/{last}")
    assert answer_of(page).startswith("2 queries newly broken , 1 not broken any more since run 1 (")
    assert "of main . MRR@5 1.000 → 0.900" in answer_of(page)
    assert {f"/runs/{first}", f"/runs/{last}/compare/last-pass"} <= {*page.links}
    queries = [link for link in page.links if "/query?" in link]
    assert queries == [f"/p/docs/query?id={query}" for query in (IDS[0], IDS[7], IDS[4])]
    between = f"https://github.com/org/app/compare/{commit_of(0):0<40}...{commit_of(3):0<40}"
    assert between in page.links
    passing = pages.get(f"/runs/{first}")
    assert answer_of(passing).startswith("There is nothing to compare with: no earlier run of main passed.")


@pytest.mark.usefixtures("folder")
def test_a_run_without_report_and_its_comparison_say_the_same(served: Served, pages: Pages) -> None:
    add(served, 0, HELD)
    last = add(served, 1, HELD, failed=IDS[:1])
    compared = pages.get(f"/runs/{last}/compare/last-pass")
    assert answer_of(pages.get(f"/runs/{last}")).startswith("1 query newly broken since run 1 (")
    assert answer_of(compared).startswith("1 query newly broken since run 1 (")
    assert "not recorded" in compared.rows("/query?id=")[IDS[0]]
    assert "1 query was recorded as broken without the rules, so it counts as broken" in compared.text


@pytest.mark.usefixtures("folder")
def test_a_query_that_is_no_longer_tolerated_is_not_newly_broken(served: Served, pages: Pages) -> None:
    add(served, 0, HELD, tolerated=IDS[:1])
    last = add(served, 1, HELD, failed=IDS[:1])
    page = pages.get(f"/runs/{last}")
    assert answer_of(page).startswith("1 query is not tolerated any more , none newly broken since run 1")
    assert [link for link in page.links if "/query?" in link] == [f"/p/docs/query?id={IDS[0]}"]


@pytest.mark.usefixtures("folder")
def test_other_inputs_than_those_of_the_last_pass_are_named(served: Served, pages: Pages) -> None:
    add(served, 0, HELD)
    new = run_at(1, results_at(HELD), failed=IDS[:1])
    golden = replace(new.entry.inputs.golden, sha256=["a" * 64])
    entry = replace(new.entry, inputs=replace(new.entry.inputs, golden=golden))
    last = served.add(NewEntry(entry=entry, content=encode(entry), results=new.results))
    assert "Changed as well: the golden queries." in answer_of(pages.get(f"/runs/{last}"))


@pytest.mark.usefixtures("folder")
def test_broken_queries_that_an_entry_left_out_are_not_called_new(served: Served, pages: Pages) -> None:
    new = run_at(0, results_at(HELD), tolerated=IDS[:1])
    entry = replace(new.entry, broken=replace(new.entry.broken, queries=2))
    served.add(NewEntry(entry=entry, content=encode(entry), results=new.results), default_branch=True)
    last = add(served, 1, HELD, failed=IDS[:2])
    assert "the numbers may be too large" in pages.get(f"/runs/{last}").text


GATES = [
    EntryGate(id="a", metric="mrr_at_5", kind="minimum", limit=0.7, now=0.91, status="pass"),
    EntryGate(
        id="b", metric="mrr_at_5", kind="relative_drop", tag="refund", limit=0.1, before=0.9, now=0.5, status="fail"
    ),
    EntryGate(id="c", metric="other", kind="odd", limit="x", status="unheard of", waived=HOSTILE),
    EntryGate(id="d", kind="latency", limit=200, now=250.0, status="waived", waived="until Monday"),
]


@pytest.mark.usefixtures("folder")
def test_the_limits_are_those_of_that_day(served: Served, pages: Pages) -> None:
    page = pages.get(f"/runs/{add(served, 0, HELD, mean=0.91, gates=GATES)}")
    assert [" ".join(text_of(row).split()) for row in page.markup.split("<tr>")[2:]][:3] == [
        "MRR@5 of refund ✕ fail drop 10% 0.900 0.500",
        "d ○ waived until Monday maximum 200 ms 250.000",
        "MRR@5 ✓ pass minimum 0.70 0.910",
    ]
    assert "unheard of" in page.text
    assert_harmless(page)


@pytest.mark.usefixtures("folder")
def test_a_run_without_its_report_shows_what_its_entry_has(served: Served, pages: Pages) -> None:
    number = add(served, 0, failed=IDS[:2], tolerated=IDS[2:3], summary="2 of 25 queries broken")
    page = pages.get(f"/runs/{number}")
    assert "Contract docs broken" in page.text
    assert "2 of 25 queries broken" in page.text
    assert [link for link in page.links if "/query?" in link] == [f"/p/docs/query?id={query}" for query in IDS[:3]]
    assert "The run was sent without its report" in page.text
    assert not [link for link in page.links if link.startswith("/api/")]
    assert "data" not in [attributes.get("id") for _, attributes in page.elements]


def test_a_run_without_a_verdict_says_why(served: Served, pages: Pages) -> None:
    served.add(new_entry())
    row = {"project_id": 1, "key": "x", "origin": "service", "state": "failed", "created_at": 1}
    row |= {"problem": f"the worker died 3 times {HOSTILE}", "log": f"first\n{HOSTILE}\x1b[0m"}
    number = served.database.write(
        lambda connection: connection.execute(insert(runs).values(row).returning(runs.c.id)).scalar_one()
    )
    page = pages.get(f"/runs/{number}")
    assert f"Run {number}: no verdict" in page.text
    assert "the worker died 3 times" in page.text
    assert "first\n<script>alert(1)</script>" in page.source
    assert_harmless(page)
    assert "run 2 has no results" in pages.get(f"/runs/{number}/compare/1").text


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"accepted": True}, "A label on the pull request accepted that the contract is broken."),
        ({"source": {"dirty": True}}, "Files were changed, so the commit is not what ran."),
    ],
)
def test_a_pass_that_does_not_count_says_why(
    fields: dict[str, Any], sentence: str, served: Served, pages: Pages
) -> None:
    assert sentence in pages.get(f"/runs/{add(served, 0, HELD, **fields)}").text


def test_a_report_that_cannot_be_rendered_leaves_the_rest_of_the_page(
    served: Served, pages: Pages, checked_run: tuple[NewEntry, bytes]
) -> None:
    new, report = checked_run
    broken = json.loads(report)
    broken["tags"] = {}
    broken["metrics"] = {}
    number = served.add(new, report=served.send_blob(json.dumps(broken).encode(), "report"))
    page = pages.get(f"/runs/{number}")
    assert "The report of this run cannot be shown: report.json" in page.text
    assert f"/api/v1/runs/{number}/report.json" in page.links


LOST = HELD | {IDS[3]: 6, IDS[5]: 6}


@pytest.mark.usefixtures("folder")
def test_two_runs_are_compared_query_by_query(served: Served, pages: Pages) -> None:
    first = add(served, 0, HELD | {IDS[8]: 6})
    add(served, 1, HELD, source={"branch": "topic"})
    before = add(served, 2, LOST, failed=IDS[3:4])
    last = add(served, 3, LOST, failed=IDS[3:4])
    page = pages.get(f"/runs/{last}/compare/last-pass")
    start = "2 queries newly broken , 1 holds again since run 1 ("
    assert answer_of(page).startswith(start)
    assert answer_of(page).endswith("of the 25 queries that both runs have and today's contract asks.")
    assert [link for link in page.links if "/query?" in link] == [
        f"/p/docs/query?id={IDS[number]}" for number in (3, 5, 8)
    ]
    assert f"must_include {IDS[3]}.md 1 {IDS[3]}.md missing" in page.text
    assert "3 queries that the runs disagree about" in page.text
    assert f"/runs/{last}/compare/{before}" in page.links
    assert answer_of(pages.get(f"/runs/{last}/compare/{first}")) == answer_of(page)
    again = pages.get(f"/runs/{last}/compare/{before}")
    assert answer_of(again).startswith(f"No query is newly broken since run {before} (")
    assert f"/runs/{last}/compare/{first}" in again.links


@pytest.mark.usefixtures("folder")
def test_a_newer_contract_compares_the_runs_again(served: Served, pages: Pages) -> None:
    add(served, 0, HELD)
    last = add(served, 1, LOST, failed=IDS[3:4])
    assert "2 queries newly broken" in answer_of(pages.get(f"/runs/{last}/compare/last-pass"))
    contract(Path(), queries=4)
    add(served, 2, HELD)
    assert "1 query newly broken" in answer_of(pages.get(f"/runs/{last}/compare/last-pass"))


@pytest.mark.usefixtures("folder")
def test_what_cannot_be_compared_is_a_sentence_with_links_that_help(served: Served, pages: Pages) -> None:
    without = add(served, 0)
    page = pages.get(f"/runs/{without}/compare/last-pass")
    assert "There is nothing to compare with: no earlier run of main passed." in page.text
    first, last = add(served, 1, HELD), add(served, 2, LOST)
    page = pages.get(f"/runs/{last}/compare/{without}")
    assert "These runs cannot be compared: " in page.text
    assert f"/runs/{last}/compare/{first}" in page.links


@pytest.mark.usefixtures("folder")
def test_runs_of_other_projects_are_not_found(served: Served, pages: Pages) -> None:
    own, other = add(served, 0, HELD), served.add(run_at(1, results_at(HELD), contract="other"))
    key = served.new_key("read", project="other")
    for path in (
        f"/runs/{own}",
        f"/runs/{own}/compare/{own}",
        f"/runs/{other}/compare/{own}",
        f"/runs/{own}/compare/last-pass",
    ):
        assert "There is no such run" in pages.get(path, 404, key).text
    assert "The other run is of another project" in pages.get(f"/runs/{own}/compare/{other}", 404).text
    for path in ("/runs/99", f"/runs/{own}/compare/x", f"/runs/{own}/compare/{'9' * 50}"):
        assert "There is no such run" in pages.get(path, 404).text


def test_what_senders_call_things_stays_text(served: Served, pages: Pages) -> None:
    report = hostile_runs(served)
    for path in ("/runs/1", "/runs/2", "/runs/2/compare/last-pass", "/runs/2/compare/1"):
        page = pages.get(path)
        assert_harmless(page)
        assert "<script>alert(1)</script>" in page.text
    page = pages.get("/runs/2")
    assert "CI job javascript:alert(1)" in page.text
    assert {query["i"] for query in page.data()["queries"]} == {query.id for query in report.queries}
