"""`history page`: whether it got worse, since which commit, and for which queries."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from ragcontract.history.entry import EntryGate, NewEntry, encode
from tests.browser import Browser
from tests.builders import golden, write_jsonl
from tests.history.entries import RUN
from tests.history.trends import URL, commit_of, contract, ids_of, results_at, run_at, runs_of, stored
from tests.process import Ended, rag_contract
from tests.report.html.parsed import HOSTILE, Parsed

IDS = ids_of()
PAGE = ("history", "page", "--history", "history")
SIZE = 2_000_000


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    contract(tmp_path)
    return tmp_path


@pytest.fixture
def browser(browser: Browser) -> Iterator[Browser]:
    """Return the browser; unlike a report, the page has no data of its own to load either."""
    yield browser
    assert all(url.startswith(("file:", "about:")) for url in browser.requests)


def page_of(entries: Iterable[NewEntry], *options: str) -> Parsed:
    """Store entries and return the page on them."""
    stored(Path(), entries)
    ended = rag_contract(*PAGE, *options)
    assert ended == Ended(0, "wrote history.html\n", "")
    return Parsed(Path("history.html").read_bytes())


def changed_entry(new: NewEntry, **fields: object) -> NewEntry:
    entry = replace(new.entry, **fields)
    return NewEntry(entry=entry, content=encode(entry), results=new.results if entry.results else None)


def without_results(new: NewEntry) -> NewEntry:
    return changed_entry(new, results=None, no_results="it is too large", metrics={})


def without_contract() -> None:
    """Delete the files of the contract."""
    for name in ("golden.jsonl", "ragcontract.yml"):
        Path(name).unlink()


def answer(page: Parsed) -> str:
    """Return the first sentences of a page, up to what it is of."""
    return page.text.partition("rag-contract 1.0.0.dev0 ")[2].partition(" recorded run")[0]


def charts(page: Parsed) -> list[str]:
    """Return the text alternatives of the charts."""
    return [attrs["aria-label"] or "" for tag, attrs in page.elements if tag == "svg" and attrs.get("role") == "img"]


def short(number: int) -> str:
    return commit_of(number)[:7]


@pytest.mark.parametrize(("runs", "noise"), [(30, 0.0), (60, 0.1), (300, 0.1)])
def test_the_first_sentence_names_the_commit_since_which_it_is_worse(runs: int, noise: float) -> None:
    at = runs * 2 // 3
    page = page_of(runs_of(runs, losses={at: IDS[:5]}, noise=noise))
    assert f"Worse since {short(at)} (" in answer(page)
    assert re.search(r"MRR@5 (0\.9\d\d|1\.000) → 0\.[78]\d\d", answer(page))
    points = page.text.partition("Change points")[2].partition("Without a change,")[0]
    assert sorted(set(re.findall(r"question-\d\d(?= MRR@5)", points))) == IDS[:5]


def test_in_noise_the_queries_show_at_which_run_it_was() -> None:
    """The means alone are two runs off."""
    page = page_of(runs_of(300, losses={100: IDS[:2], 240: IDS[5:9]}, noise=0.3))
    points = page.text.partition("Change points")[2].partition("Without a change,")[0]
    assert re.findall(r"([0-9a-f]{7}) \(", points) == [short(240), short(100)]
    assert sorted(re.findall(r"question-\d\d(?= MRR@5)", points)) == [*IDS[:2], *IDS[5:9]]
    assert f"it changed at {short(100)}, {short(240)}" in charts(page)[0]


def test_without_noise_nothing_is_left_to_chance() -> None:
    page = page_of(runs_of(30, losses={21: IDS[:3]}))
    assert answer(page).endswith(
        f"Worse since {short(21)} (2026-12-02). MRR@5 1.000 → 0.904. There, the results of 3 of 25 queries changed. 30"
    )
    assert f"{short(21)} (2026-12-02) MRR@5 1.000 → 0.904 without a change, these runs do not vary" in page.text
    assert "question-00 MRR@5 1.000 → 0.200 What about question-00? question-01" in page.text


def test_losses_that_were_not_made_up_for_are_all_named_the_newest_first() -> None:
    page = page_of(runs_of(60, losses={15: IDS[:2], 33: IDS[4:7], 50: IDS[10:12]}))
    assert f"Worse since {short(50)} (" in answer(page)
    assert re.search(
        rf"Losses before that, which were not made up for: {short(33)} \([-\d]+\), {short(15)} \([-\d]+\)\.", page.text
    )
    for at, ids in ((15, IDS[:2]), (33, IDS[4:7]), (50, IDS[10:12])):
        point = page.text.partition("Change points")[2].partition(f"{short(at)} (")[2].partition("other ranks")[2]
        assert re.findall(r"question-\d\d(?= MRR)", point)[: len(ids)] == ids


def test_a_loss_that_was_made_up_for_is_no_loss() -> None:
    entries = runs_of(40, losses={10: IDS[:5]})[:25]
    entries += runs_of(40, losses={})[25:]
    text = answer(page_of(entries))
    assert "No lasting loss was found in 40 runs." in text
    assert re.search(rf"At {short(25)} \([-\d]+\), the results of 5 of 25 queries changed for the last time\.", text)


def test_a_metric_where_lower_is_better_gets_worse_when_it_rises() -> None:
    entries = []
    for number, new in enumerate(runs_of(20, losses={})):
        metric = replace(
            new.entry.metrics["mrr_at_5"], value=0.2 + 0.3 * (number > 9), better="lower", label="Toxicity"
        )
        entries.append(changed_entry(new, metrics={"toxicity": replace(metric, status="pass")}))
    without_contract()
    assert f"Worse since {short(10)} (2026-11-26). Toxicity 0.200 → 0.500." in answer(page_of(entries))


@pytest.mark.parametrize("runs", [1, 3, 11])
def test_few_runs_are_shown_without_a_judgement(runs: int) -> None:
    page = page_of(runs_of(runs, losses={2: IDS[:3]}))
    assert "Too early to tell a loss from noise: that takes 12 runs with a mean" in answer(page)
    assert f"there {'is' if runs == 1 else 'are'} {runs}." in answer(page)
    assert ("The newest run failed, with 3 broken queries." in answer(page)) == (runs > 2)
    changed = f"At {short(2)} (2026-11-22), the results of 3 of 25 queries changed for the last time."
    assert (changed in answer(page)) == (runs > 2)
    assert len(charts(page)) == 2


def test_new_questions_are_no_change_of_the_retriever() -> None:
    """The runs before them are compared over the questions that all have."""
    entries = runs_of(30, losses={})
    few = [
        run_at(number, results_at(dict.fromkeys(IDS[:22], 1)), mean=1.0) if number < 15 else new
        for number, new in enumerate(entries)
    ]
    page = page_of(few)
    assert "No lasting loss was found in 30 runs." in answer(page)
    assert "Scored again by the 22 that all runs have of today's 25 golden queries." in page.text


def test_without_golden_files_the_recorded_means_are_shown_and_the_page_says_so() -> None:
    without_contract()
    page = page_of(runs_of(30, losses={21: IDS[:3]}))
    assert f"Worse since {short(21)} (2026-12-02). MRR@5 1.000 → 0.904. There, the results changed." in answer(page)
    assert "The means are those that were recorded, of runs with the newest run's golden queries." in page.text


def test_recorded_means_under_other_golden_queries_are_left_out() -> None:
    without_contract()
    entries = runs_of(30, losses={})
    other = replace(entries[0].entry.head, golden_sha256="1" * 64)
    page = page_of([changed_entry(new, head=other) if count < 10 else new for count, new in enumerate(entries)])
    assert "No lasting loss was found in 20 runs." in answer(page)


def test_golden_files_of_another_contract_are_not_used() -> None:
    write_jsonl(Path("golden.jsonl"), [golden("other", "doc")])
    page = page_of(runs_of(30, losses={21: IDS[:3]}))
    assert "The means are those that were recorded" in page.text
    assert "30 recorded runs left out: with them, all runs would share less than 80% of today's 1 query" in page.text
    assert f"Worse since {short(21)}" in answer(page)


def test_several_contracts_are_sections_of_one_page() -> None:
    entries = [*runs_of(30, losses={21: IDS[:3]}), *runs_of(5, losses={}, contract="faq")]
    page = page_of(entries)
    assert "History of 2 contracts" in page.text
    assert "docs, worse" in page.text
    assert page.text.count("The means are those that were recorded") == 2
    one = page_of([], "--contract", "docs")
    assert "History of docs" in one.text
    assert "Scored again by today's 25 golden queries." in one.text
    assert "faq" not in one.text


def test_golden_files_of_several_contracts_are_refused() -> None:
    stored(Path(), [*runs_of(2, losses={}), *runs_of(2, losses={}, contract="faq")])
    ended = rag_contract(*PAGE, "--golden", "golden.jsonl")
    assert ended.code == 2
    assert "--golden and --config are those of one contract; name it with --contract" in ended.err


def test_only_runs_of_the_branch_count() -> None:
    entries = runs_of(20, losses={})
    entries += [
        changed_entry(new, source=replace(new.entry.source, branch="try")) for new in runs_of(30, losses={0: IDS})[20:]
    ]
    assert "No lasting loss was found in 20 runs." in answer(page_of(entries, "--branch", "main"))
    ended = rag_contract(*PAGE)
    assert ended.code == 2
    assert "has entries from several branches (main, try); name one with --branch" in ended.err
    assert "History has" not in ended.out


def test_runs_without_a_value_leave_a_gap() -> None:
    entries = runs_of(20, losses={})
    gaps = {4, 5, 12}
    page = page_of([without_results(new) if count in gaps else new for count, new in enumerate(entries)])
    line = next(attrs["d"] or "" for tag, attrs in page.elements if tag == "path")
    assert line.count("M") == 3
    assert line.count("M") + line.count("L") == 17
    assert charts(page)[0].startswith("MRR@5 in 20 runs, 2026-11-21 to 2026-12-01; first 1.000, last 1.000")


def test_runs_of_changed_files_are_only_in_the_table() -> None:
    entries = runs_of(20, losses={})
    dirty = changed_entry(entries[3], source=replace(entries[3].entry.source, dirty=True))
    page = page_of([*entries[:3], dirty, *entries[4:]])
    assert "1 run of a dirty working tree, only in the table of runs." in page.text
    assert charts(page)[0].startswith("MRR@5 in 19 runs")
    assert "pass, from a dirty working tree" in page.text


def test_todays_limits_and_the_best_level_are_lines() -> None:
    page = page_of(runs_of(30, losses={25: IDS[:5]}))
    assert "minimum 0.70 limit 0.950 (0.05 below the best level) best level 1.000 30 values" in page.text
    lines = [attrs for tag, attrs in page.elements if tag == "line" and attrs["class"] in {"limit", "level"}]
    assert [line["class"] for line in lines[:3]] == ["limit", "limit", "level"]
    heights = [float(line["y1"] or "") for line in lines[:3]]
    assert heights[0] > heights[1] > heights[2]  # from the top


def test_a_limit_far_away_does_not_flatten_the_chart() -> None:
    page = page_of(runs_of(5, losses={}))
    assert "minimum 0.70 (not in the chart)" in page.text


def test_recorded_limits_are_lines_without_golden_files() -> None:
    without_contract()
    gate = EntryGate(id="g", metric="mrr_at_5", kind="minimum", limit=0.97, status="pass")
    page = page_of(changed_entry(new, gates=[gate]) for new in runs_of(5, losses={}))
    assert "minimum 0.97 best level" in page.text


def test_the_runs_say_where_results_changed_and_lead_to_ci() -> None:
    page = page_of(runs_of(6, losses={2: IDS[:2], 4: IDS[2:3]}))
    listed = page.text.partition("The last 6 runs")[2]
    rows = re.findall(r":30 ([0-9a-f]{7}) (?:pass|fail) [\d.]+ [\d.]+ (\d+)( \d+ of 25)?", listed)
    assert [commit for commit, _, _ in rows] == [short(number) for number in (5, 4, 3, 2, 1, 0)]
    assert [broken for _, broken, _ in rows] == ["3", "3", "2", "2", "0", "0"]
    assert [changed for _, _, changed in rows] == ["", " 1 of 25", "", " 2 of 25", "", ""]
    links = {attrs["href"] for tag, attrs in page.elements if tag == "a"}
    assert links == {URL.format(RUN + number) for number in range(6)}


def test_the_queries_that_failed_most_often_come_first() -> None:
    page = page_of(runs_of(6, losses={2: IDS[:1], 4: IDS[2:3]}))
    failed = page.text.partition("Last failed at")[2].partition("The last 6 runs")[0]
    assert failed.strip() == (f"question-00 4 of 6 {short(5)} (2026-11-24) question-02 2 of 6 {short(5)} (2026-11-24)")


def test_a_chart_of_many_runs_keeps_the_extremes_and_the_ends() -> None:
    without_contract()
    means = {0: 0.6, 1_001: 0.1, 1_500: 0.9, 1_999: 0.7}
    gap = range(400, 600)
    page = page_of(
        run_at(number, None, mean=None if number in gap else means.get(number, 0.5), hours=1) for number in range(2_000)
    )
    table = page.text.partition("values as a table")[2].partition("The last 200 runs")[0]
    rows = re.findall(r"[\d-]{10} [\d:]{5} ([0-9a-f]{7}) (0\.\d00) pass", table)
    assert len(rows) <= 500
    assert {(short(number), f"{mean:.3f}") for number, mean in means.items()} <= set(rows)
    assert (rows[0][0], rows[-1][0]) == (short(1_999), short(0))
    line = next(attrs["d"] or "" for tag, attrs in page.elements if tag == "path")
    assert line.count("M") == 2


def test_ten_thousand_runs_are_a_page_of_less_than_two_megabytes() -> None:
    page = page_of(runs_of(10_000, losses={3_333: IDS[:4], 6_666: IDS[5:7]}, noise=0.3, hours=1))
    assert Path("history.html").stat().st_size < SIZE
    assert f"Worse since {short(6_666)} (" in answer(page)
    assert f"Losses before that, which were not made up for: {short(3_333)} (" in page.text
    assert [tag for tag, _ in page.elements].count("circle") + [tag for tag, _ in page.elements].count("rect") <= 1_000
    assert "The last 200 runs, of 10,000" in page.text


HOSTILE_URLS = (
    "javascript:alert(1)",
    "JavaScript:alert(1)//https://a",
    "data:text/html,<script>alert(1)</script>",
    "https://a.example/\"onclick='alert(1)'",
    "https://a.example/\njavascript:alert(1)",
    " https://a.example/",
    "//a.example/x",
    HOSTILE,
)


def hostile_runs() -> list[NewEntry]:
    """Return runs in which every text wants out."""
    entries = runs_of(16, losses={10: IDS[:3]}, contract=HOSTILE)
    for number, new in enumerate(entries):
        source = replace(new.entry.source, branch=HOSTILE, run_url=HOSTILE_URLS[number % len(HOSTILE_URLS)])
        names = [HOSTILE + name for name in new.entry.failed]
        metrics = {"mrr_at_5": replace(new.entry.metrics["mrr_at_5"], label=HOSTILE)}
        entries[number] = changed_entry(new, source=source, failed=names, metrics=metrics, summary=HOSTILE)
    return entries


@pytest.mark.parametrize("has_golden", [True, False])
def test_nothing_from_an_entry_becomes_an_element_an_attribute_or_a_link(*, has_golden: bool) -> None:
    if has_golden:
        write_jsonl(Path("golden.jsonl"), [golden(name, f"{name}.md") for name in IDS])
    else:
        without_contract()
    page = page_of(hostile_runs())
    names = {tag for tag, _ in page.elements}
    assert names.isdisjoint({"img", "script", "iframe", "object", "embed", "base", "foreignObject", "animate"})
    assert not any(name.startswith("on") for _, attrs in page.elements for name in attrs)
    links = {attrs["href"] for tag, attrs in page.elements if tag == "a"}
    assert links == {HOSTILE_URLS[3]}
    source = Path("history.html").read_text(encoding="utf-8")
    assert not any(character in source for character in "\x1b\u202e\u2028")
    assert r"\x1b[31m" in page.text


def test_the_page_says_in_its_policy_that_it_loads_nothing() -> None:
    page = page_of(runs_of(3, losses={}))
    policy = next(attrs["content"] or "" for _, attrs in page.elements if "http-equiv" in attrs)
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "script-src" not in policy


@pytest.mark.parametrize("which", ["few", "lost", "many", "hostile"])
def test_in_a_browser_the_page_fits_and_nothing_is_asked_for(browser: Browser, which: str) -> None:
    entries = {
        "few": lambda: runs_of(1, losses={}),
        "lost": lambda: runs_of(60, losses={15: IDS[:2], 33: IDS[4:7], 50: IDS[10:12]}, noise=0.1),
        "many": lambda: [*runs_of(600, losses={300: IDS[:3]}), *runs_of(3, losses={}, contract="faq")],
        "hostile": hostile_runs,
    }[which]()
    page_of(entries)
    for on in (True, False):
        for width in (900, 400, 320):
            for scheme in ("light", "dark"):
                browser.scripts(on=on)
                browser.resize(width, 900)
                browser.media(scheme=scheme)
                browser.open(Path("history.html").resolve())
                browser.scripts(on=True)  # those of the page are off, if any
                assert browser.js("document.documentElement.scrollWidth") <= width
                assert browser.js("document.querySelectorAll('svg.area').length") >= 1
                assert browser.js("document.querySelector('.answer').getBoundingClientRect().bottom") < 900


def test_a_chart_is_an_image_with_a_sentence_for_a_screen_reader(browser: Browser) -> None:
    page_of(runs_of(30, losses={21: IDS[:3]}))
    browser.open(Path("history.html").resolve())
    images = [name for role, name in browser.accessible() if role == "image"]
    when = "30 runs, 2026-11-21 to 2026-12-06"
    assert images == [
        f"MRR@5 in {when}; first 1.000, last 0.904, lowest 0.904, highest 1.000; it changed at {short(21)}",
        f"Recall@5 in {when}; first 1.000, last 1.000, lowest 1.000, highest 1.000",
    ]
    browser.js("document.querySelector('.trend details').open = true")
    assert browser.js("document.querySelectorAll('.trend:first-child tbody tr').length") == 30
    browser.media("print")
    assert browser.paper().startswith(b"%PDF")


def test_an_input_is_never_overwritten() -> None:
    stored(Path(), runs_of(3, losses={}))
    before = Path("golden.jsonl").read_bytes()
    ended = rag_contract(*PAGE, "--out", "golden.jsonl")
    assert ended.code == 2
    assert Path("golden.jsonl").read_bytes() == before


def test_a_history_without_runs_has_no_page() -> None:
    Path("history").mkdir()
    ended = rag_contract(*PAGE)
    assert ended.code == 2
    assert "history: has no entries yet" in ended.err
    assert not Path("history.html").exists()


def test_faulty_golden_files_are_reported() -> None:
    stored(Path(), runs_of(3, losses={}))
    Path("golden.jsonl").write_text("{", encoding="utf-8")
    ended = rag_contract(*PAGE)
    assert ended.code == 2
    assert "golden.jsonl:1" in ended.err
    assert not Path("history.html").exists()


def test_a_result_set_that_is_gone_or_wrong_is_a_gap_with_a_note() -> None:
    entries = runs_of(20, losses={7: IDS[:1], 8: IDS[1:2]})
    stored(Path(), entries)
    digests = [new.entry.results.sha256 for new in entries[7:9] if new.entry.results]
    results = [Path(f"history/results/{name[:2]}/{name}.jsonl") for name in digests]
    results[0].unlink()
    results[1].write_bytes(b"[]")
    page = page_of([])
    assert "2 result sets of recorded runs cannot be read: history:2026" in page.text
    assert "its result set was changed; delete it from the store" in page.text
    line = next(attrs["d"] or "" for tag, attrs in page.elements if tag == "path")
    assert line.count("M") + line.count("L") == 7


@pytest.mark.parametrize("content", [b'{"id":"question-00"}\n', results_at({IDS[0]: 1}) * 2, b'{"id":[[[[\n'])
def test_a_result_set_that_somebody_wrote_is_a_gap_with_a_note(content: bytes) -> None:
    entries = runs_of(5, losses={})
    entries[2] = run_at(2, content)
    page = page_of(entries)
    assert "1 result set of recorded runs cannot be read: history:20261122" in page.text
    assert "its result set is not one of rag-contract; delete it from the store" in page.text
    assert charts(page)[0].startswith("MRR@5 in 5 runs")


def test_queries_without_a_metric_are_not_missing_in_a_run() -> None:
    """The page says over how many queries all runs are compared, whether they have the metrics or not."""
    queries = [golden(name, f"{name}.md") for name in IDS[1:]]
    nothing_is_relevant = golden(IDS[0]) | {"relevant_doc_ids": []}
    write_jsonl(Path("golden.jsonl"), [nothing_is_relevant, *queries])
    page = page_of(runs_of(3, losses={}))
    assert "Scored again by today's 25 golden queries." in page.text
