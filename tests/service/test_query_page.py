"""The page of a golden query: whether it is flaky or newly broken, its ranks, and what it wants."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from ragcontract.core import bounds
from ragcontract.history.entry import NewEntry, encode
from ragcontract.service.database import Database
from ragcontract.service.query_record import LASTING
from tests.builders import as_jsonl, golden
from tests.history.trends import LIMITS, contract, ids_of, results_at, run_at
from tests.report.html.parsed import Parsed
from tests.service.conftest import HOSTILE
from tests.service.served import Served
from tests.service.test_project_page import SHOWN, links, page_of, short
from tests.service.test_trends import contract_blob, sent, settled

IDS = ids_of()
Q = IDS[0]
GONE = 9  # a rank that no document of a run has


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    contract(tmp_path)
    return tmp_path


def runs_of(states: str, *, names: Iterable[str] = IDS[:12], **fields: Any) -> list[NewEntry]:
    """Return a run for each letter: the first query holds (h), is broken (b), or is not in the run (-)."""
    first, *others = names
    entries = []
    for number, state in enumerate(states):
        ranks = dict.fromkeys(others, 1) | ({} if state == "-" else {first: 1 if state == "h" else GONE})
        failed = [first] if state == "b" else []
        entries.append(run_at(number, results_at(ranks), mean=0.9, failed=failed, hours=1, **fields))
    return entries


def blob_of(*names: str, **fields: Any) -> bytes:
    rows = [golden(name, f"{name}.md", **fields) for name in names or IDS[:12]]
    return contract_blob(as_jsonl(*rows), LIMITS)


def query_page(served: Served, states: str, *, query: str = Q, **fields: Any) -> Parsed:
    """Send runs, and return the page of a query once they are scored again."""
    sent(served, runs_of(states, **fields), blob_of())
    settled(served)
    return page_of(served, "/p/docs/query", id=query)


def answer(page: Parsed) -> str:
    """Return the sentence under the title."""
    return page.text.partition(f"{Q} ")[2].partition(f"{Q} ")[2].partition(f" What about {Q}?")[0]


def bars(page: Parsed) -> str:
    """Return the states of the bars of the picture."""
    letters = {"held": "h", "broken": "b", "absent": "-"}
    return "".join(letters[attrs["class"] or ""] for tag, attrs in page.elements if tag == "rect")


DAY = "(2026-11-21)"
ANSWERS = {
    "h" * 15: "Held in all of its 15 runs.",
    "h": "Held in its only run.",
    "b" * 3: "Broken in all of its 3 runs.",
    "h" * 12 + "bbb": f"Broken since {short(12)} (2026-11-22) (3 runs); held in the 12 runs before.",
    "hbh": f"Holds; broke last at {short(1)} {DAY}, 1 run ago.",
    "bbbhh": f"Holds; broke last at {short(2)} {DAY}, 2 runs ago.",
    "hbhb": f"Flaky: broken in 2 of 4 runs; it broke 2 times. Now it is broken, since {short(3)} {DAY} (1 run).",
    "bhbh": f"Flaky: broken in 2 of 4 runs; it broke 2 times. Now it holds, since {short(3)} {DAY} (1 run).",
    "hbhb" + "b" * (LASTING - 2): (
        f"Flaky: broken in 20 of 22 runs; it broke 2 times. Now it is broken, since {short(3)} {DAY} (19 runs)."
    ),
    "hbhb" + "b" * (LASTING - 1): f"Broken since {short(3)} {DAY} (20 runs); held in the 1 run before.",
    "bhbh" + "h" * (LASTING - 1): f"Holds; broke last at {short(2)} {DAY}, 20 runs ago.",
    "----hhb": f"Broken since {short(6)} (2026-11-22) (1 run); held in the 2 runs before.",
    "hh--": "Held in all of its 2 runs. The newest run does not have it.",
    "b-b-b": "Broken in all of its 3 runs.",
}


@pytest.mark.parametrize("states", ANSWERS, ids=lambda states: f"{states[:8]}-{len(states)}")
def test_the_first_sentence_says_whether_it_is_flaky_or_newly_broken(served: Served, states: str) -> None:
    page = query_page(served, states)
    assert answer(page) == ANSWERS[states]
    assert bars(page) == states


def test_the_definition_stands_on_the_page(served: Served) -> None:
    text = query_page(served, "hb").text
    assert (
        "A query is flaky if it switched between held and broken at least 3 times in the newest 200 runs of main, and "
        "once in its newest 20."
    ) in text


def test_the_runs_of_the_branch_are_listed_the_newest_first(served: Served) -> None:
    numbers = sent(served, runs_of("h" * 20 + "b" * 3), blob_of())
    other = served.add(run_at(70, None, failed=[Q], source={"branch": "feature"}))
    settled(served)
    whole, newest = (page_of(served, "/p/docs/query", id=Q, **rows) for rows in ({"rows": "all"}, {}))
    for page, most in ((whole, 23), (newest, 20)):
        rows = re.findall(r"(2026-11-2\d \d\d:30) ([0-9a-f]{7}) (–|\d) (✕ broken|✓ held) (✓ pass|✕ fail)", page.text)
        assert [commit for _, commit, *_ in rows] == [short(number) for number in reversed(range(23))][:most]
        assert [row[2:] for row in rows] == [("–", "✕ broken", "✕ fail")] * 3 + [("1", "✓ held", "✓ pass")] * (most - 3)
        assert f"/runs/{other}" not in links(page)
    assert "All 23 runs" not in whole.text
    assert "All 23 runs" in newest.text
    assert any(link.startswith("/p/docs/query?id=") and link.endswith("rows=all#newest-runs") for link in links(newest))
    assert {f"/runs/{number}" for number in numbers} <= {*links(whole)}


def test_only_the_newest_runs_are_listed(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "PAGE_ROWS", 15)
    page = query_page(served, "b" * 3 + "h" * 14 + "b")
    assert answer(page) == f"Broken since {short(17)} (2026-11-22) (1 run); held in the 14 runs before."
    assert bars(page) == "h" * 14 + "b"
    sent(served, runs_of("-" * 18 + "b" * 20)[18:], blob_of())
    settled(served)
    assert answer(page_of(served, "/p/docs/query", id=Q)) == "Broken in all of the newest 15 runs."


def test_ranks_are_those_of_all_relevant_documents_in_their_order(served: Served) -> None:
    places = [(1, 3), (2, None), (None, None)]
    entries = []
    for number, ranks in enumerate(places):
        docs = [f"other-{place}.md" for place in range(5)]
        for name, rank in zip(("a.md", "b.md"), ranks, strict=True):
            if rank:
                docs[rank - 1] = name
        row = {"id": "q", "query": "What about q?", "doc_ids": docs, "ranks": {}, "metrics": {}}
        entries.append(run_at(number, as_jsonl(row).encode(), mean=0.5))
    sent(served, entries, contract_blob(as_jsonl(golden("q", "a.md", "b.md")), LIMITS))
    settled(served)
    page = page_of(served, "/p/docs/query", id="q")
    assert re.findall(r"[0-9a-f]{7} ([–\d]+, [–\d]+) ✓ held", page.text) == ["–, –", "2, –", "1, 3"]
    dots = [(attrs["class"], attrs["cy"]) for tag, attrs in page.elements if tag == "circle"]
    assert [kind for kind, _ in dots] == ["rank", "rank", "no-rank"]
    assert float(dots[0][1] or 0) < float(dots[1][1] or 0) < float(dots[2][1] or 0)


def test_a_run_that_came_after_the_trend_has_no_ranks_yet(database: Database) -> None:
    entries = runs_of("hhhb")
    with Served(database) as served:
        sent(served, entries[:2], blob_of())
        settled(served)
    idle = Served(database)  # its thread does not run
    sent(idle, entries[2:], blob_of())
    page = page_of(idle, "/p/docs/query", id=Q)
    assert answer(page) == f"Broken since {short(3)} {DAY} (1 run); held in the 3 runs before."
    assert re.findall(r"[0-9a-f]{7} ([–\d]?) ?(✕ broken|✓ held)", page.text) == [
        ("", "✕ broken"),
        ("", "✓ held"),
        ("1", "✓ held"),
        ("1", "✓ held"),
    ]


def test_without_a_trend_a_golden_query_held_wherever_it_is_not_broken(database: Database) -> None:
    idle = Served(database)
    sent(idle, runs_of("hhb"), blob_of())
    page = page_of(idle, "/p/docs/query", id=Q)
    assert answer(page) == f"Broken since {short(2)} {DAY} (1 run); held in the 2 runs before."
    assert not [tag for tag, _ in page.elements if tag == "circle"]


def tolerated(new: NewEntry) -> NewEntry:
    """Return an entry whose broken queries are known, waived and such."""
    entry = replace(new.entry, failed=[], tolerated=new.entry.failed, verdict="pass")
    return NewEntry(entry=entry, content=encode(entry), results=new.results)


def test_a_broken_query_that_does_not_fail_says_so(served: Served) -> None:
    sent(served, map(tolerated, runs_of("hhb")), blob_of())
    settled(served)
    page = page_of(served, "/p/docs/query", id=Q)
    assert "held in the 2 runs before. It does not fail the contract: it is known, waived, or only warns." in page.text
    sent(served, runs_of("hhbb")[3:], blob_of())
    settled(served)
    assert answer(page_of(served, "/p/docs/query", id=Q)).endswith("held in the 2 runs before.")


def test_the_broken_rules_of_a_run_are_named(served: Served, checked_run: tuple[NewEntry, bytes]) -> None:
    new, report = checked_run
    served.add(new, report=served.send_blob(report, "report"), default_branch=True)
    page = page_of(served, "/p/docs/query", id="q1")
    assert "✕ broken: must_include ✕ fail" in page.text
    assert "Broken in its only run." in page.text


def test_what_is_wanted_comes_from_the_golden_set(served: Served) -> None:
    rules = [{"type": "must_contain", "value": "30 days"}]
    row = golden(Q, "a.md", "b.md", tags=["billing"], must_rank_at_most=2, forbidden_doc_ids=["old.md"], rules=rules)
    rows = as_jsonl(row, golden("empty", relevant_doc_ids=[]))
    sent(served, runs_of("hh"), contract_blob(rows, LIMITS))
    settled(served)
    text = page_of(served, "/p/docs/query", id=Q).text.partition("What is wanted")[2].partition("Newest runs")[0]
    assert text.startswith(" Tags billing Relevant documents a.md b.md Rules forbidden_docs k: 5 must_rank")
    assert "must_rank_at_most rank: 2, k: 5" in text
    assert 'must_contain value: "30 days"' in text
    assert text.endswith("Written in golden.jsonl:1 ")
    assert "Relevant documents none" in page_of(served, "/p/docs/query", id="empty").text


def test_a_query_that_was_removed_is_shown_as_far_as_it_was_broken(served: Served) -> None:
    sent(served, runs_of("hbhb"), blob_of())
    sent(served, runs_of("------hh", names=IDS[1:12])[6:], blob_of(*IDS[1:12]))
    settled(served)
    page = page_of(served, "/p/docs/query", id=Q)
    says = f"No longer in the golden set. It broke last at {short(3)} {DAY}, and is broken in 2 of 6 runs."
    assert says in page.text
    assert page.text.count("not broken, or not in the run ✓ pass") == 4
    assert bars(page) == "-b-b--"


def test_a_query_of_a_project_without_golden_queries_is_shown(served: Served) -> None:
    sent(served, runs_of("hhbh"))
    settled(served)
    page = page_of(served, "/p/docs/query", id=Q)
    assert f"Holds; broke last at {short(2)} {DAY}, 1 run ago." in page.text
    assert bars(page) == "hhbh"


@pytest.mark.parametrize("query", ["unknown", "", "..", "question-0", "\0", "x" * 5_000])
def test_an_unknown_query_is_not_found(served: Served, query: str) -> None:
    sent(served, runs_of("hb"), blob_of())
    headers = {"Authorization": f"Bearer {served.key}", "Accept": "text/html"}
    found = served.client.get("/p/docs/query", headers=headers, params={"id": query})
    assert found.status_code == 404
    assert "Neither the golden set nor a broken query of a recorded run has this id" in Parsed(found.content).text


@pytest.mark.parametrize("name", [HOSTILE, "..", "a/b?c=d&e#f", "x" * 600])
def test_a_query_may_have_any_id(served: Served, name: str) -> None:
    names = [name, "q1"]
    texts = {"tags": [HOSTILE], "relevant_doc_ids": [HOSTILE], "rules": [{"type": "must_contain", "value": HOSTILE}]}
    rows = [golden(each, **texts) for each in names]
    sent(served, runs_of("hb", names=names, source={"branch": HOSTILE}), contract_blob(as_jsonl(*rows), LIMITS))
    settled(served)
    (link,) = [each for each in links(page_of(served, "/p/docs/queries")) if "query?" in each and "id=q1" not in each]
    page = page_of(served, link)
    assert f"Broken since {short(1)} {DAY} (1 run); held in the 1 run before." in page.text
    assert SHOWN in page.source
    assert "\u202e" not in page.source
    assert not [text for _, _, text in page.raw if text]
    assert len([tag for tag, _ in page.elements if tag == "script"]) == 1


@pytest.mark.parametrize("states", ["hbhb", "hhbb"])
def test_a_flaky_query_is_marked_wherever_it_is_listed(served: Served, states: str) -> None:
    numbers = sent(served, runs_of(states), blob_of())
    settled(served)
    is_flaky = states == "hbhb"
    assert ("! flaky" in page_of(served, "/p/docs/queries").text) is is_flaky
    assert (f"{Q} ! flaky" in page_of(served, f"/runs/{numbers[-1]}").text) is is_flaky
    assert (f"Flaky: {Q}" in page_of(served, "/p/docs").text) is is_flaky
