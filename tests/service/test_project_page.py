"""The page of a project: when quality moved, which commit moved it, and for which queries; and its golden queries."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from sqlalchemy import select, update

from ragcontract.history.entry import NewEntry
from ragcontract.service.database import Database
from ragcontract.service.tables import projects, trends
from ragcontract.service.trends import MetricTrend, Trend, TrendRun
from ragcontract.service.web.pages.project import chart_of
from tests.builders import as_jsonl, golden
from tests.history.entries import FIRST
from tests.history.trends import LIMITS, commit_of, contract, ids_of, results_at, run_at, runs_of
from tests.report.html.parsed import Parsed
from tests.service.conftest import HOSTILE
from tests.service.served import Served
from tests.service.test_trends import contract_blob, sent, settled

IDS = ids_of()
DAY = timedelta(days=1)
SHOWN = HOSTILE.replace("\u202e", "\\u202e")  # as people see it


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    contract(tmp_path)
    return tmp_path


def page_of(served: Served, path: str = "/p/docs", *, key: str | None = None, **params: Any) -> Parsed:
    """Return a page of the service."""
    answer = served.client.get(path, headers={"Authorization": f"Bearer {key or served.key}"}, params=params or None)
    assert answer.status_code == 200, answer.text
    return Parsed(answer.content)


def short(number: int) -> str:
    return commit_of(number)[:7]


def charts(page: Parsed) -> list[str]:
    """Return the text alternatives of the charts."""
    return [attrs["aria-label"] or "" for tag, attrs in page.elements if tag == "svg" and attrs.get("role") == "img"]


def links(page: Parsed) -> list[str]:
    return [attrs["href"] or "" for tag, attrs in page.elements if tag == "a"]


def noted(monkeypatch: pytest.MonkeyPatch, days: float) -> None:
    """Show pages as if it were so many days after the first run."""
    at = int((FIRST + days * DAY).timestamp() * 1000)
    monkeypatch.setattr("ragcontract.service.web.pages.project.now_ms", lambda: at)


def test_the_first_sentence_names_the_commit_since_which_it_is_worse(served: Served) -> None:
    numbers = sent(served, runs_of(30, losses={21: IDS[:5]}), contract_blob())
    settled(served)
    page = page_of(served, days="all")
    says = f"Worse since {short(21)} (2026-12-02): MRR@5 1.000 → 0.840; 5 queries are ranked differently."
    assert f"docs Broken since {short(21)} (2026-12-02): " in page.text
    assert f"{says} Newest run of main: ✕ fail at {short(29)}, 2026-12-06 08:30 UTC" in page.text
    assert {f"/runs/{numbers[21]}", f"/runs/{numbers[29]}", "/p/docs/query?id=question-04"} <= {*links(page)}
    points = page.text.partition("Change points")[2].partition("Newest runs")[0]
    assert f"✕ Worse since {short(21)} (2026-12-02): MRR@5 1.000 → 0.840 without a change, these runs do not" in points
    assert [name for name in IDS if f"{name} MRR@5 1.000 → 0.200 What about {name}?" in points] == IDS[:5]


def test_a_run_without_a_commit_has_its_number_in_charts() -> None:
    runs = [TrendRun(7, "a", 0, None), TrendRun(8, "b", 1, commit_of(8))]
    chart = chart_of(runs, MetricTrend(label="MRR@5"), [1.0, 0.5])
    assert [point.commit for point in chart.points] == ["run 7", short(8)]


def test_a_loss_that_was_made_up_for_is_a_change_point_but_no_loss(served: Served) -> None:
    entries = runs_of(40, losses={10: IDS[:5]})[:25] + runs_of(40, losses={})[25:]
    sent(served, entries, contract_blob())
    settled(served)
    page = page_of(served, days="all")
    assert "docs No lasting loss was found in 40 runs. Newest run of main: ✓ pass at" in page.text
    points = page.text.partition("Change points")[2]
    assert f"✓ Better since {short(25)} (" in points.partition(f"✕ Worse since {short(10)} (")[0]


def test_all_losses_that_stand_are_named(served: Served) -> None:
    sent(served, runs_of(60, losses={15: IDS[:2], 33: IDS[4:7], 50: IDS[10:12]}), contract_blob())
    settled(served)
    text = page_of(served, days="all").text
    assert f"Worse since {short(50)} (" in text
    before = f"{short(33)} (2026-12-08), {short(15)} (2026-11-29)"
    assert f"Losses before that, which were not made up for: {before}." in text


def test_few_runs_say_nothing(served: Served) -> None:
    sent(served, runs_of(3, losses={2: IDS}), contract_blob())
    settled(served)
    text = page_of(served, days="all").text
    assert "Too early to tell a loss from noise: that takes 12 runs with a mean, and there are 3." in text


def test_the_charts_are_of_the_chosen_days(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    sent(served, runs_of(100, losses={70: IDS[:5]}, hours=24), contract_blob())
    settled(served)
    noted(monkeypatch, 99.5)
    lengths = {days: charts(page_of(served, days=days))[0].partition(", ")[0] for days in ("7", "30", "90", "all")}
    numbers = (("7", 7), ("30", 30), ("90", 90), ("all", 100))
    assert lengths == {days: f"MRR@5 in {number} runs" for days, number in numbers}
    page = page_of(served)
    assert charts(page)[0].startswith("MRR@5 in 90 runs, 2026-12-01 to 2027-02-28; first 1.000, last 0.840")
    assert charts(page)[0].endswith(f"it changed at {short(70)}")
    assert "it changed" not in charts(page_of(served, days="7"))[0]
    chosen = [attrs["href"] for tag, attrs in page.elements if tag == "a" and "aria-current" in attrs]
    assert chosen == ["/p/docs", "/p/docs?days=90"]
    assert all(f"/p/docs?days={days}" in links(page) for days in ("7", "30", "90", "all"))
    noted(monkeypatch, 400)
    assert "No run with a mean in the last 7 days. 100 runs of main" in page_of(served, days="7").text


def test_other_days_are_refused(served: Served) -> None:
    sent(served, runs_of(1, losses={}), contract_blob())
    answer = served.client.get("/p/docs?days=8", headers={"Authorization": f"Bearer {served.key}"})
    assert answer.status_code == 422


def test_limits_and_the_level_are_drawn(served: Served) -> None:
    sent(served, runs_of(30, losses={21: IDS[:5]}), contract_blob())
    settled(served)
    page = page_of(served, days="all")
    assert "minimum 0.70 limit 0.950 (0.05 below the best level) best level 1.000" in page.text
    lines = [attrs["class"] for tag, attrs in page.elements if tag == "line"]
    assert (lines.count("limit"), lines.count("level"), lines.count("change")) == (2, 2, 1)


def test_a_run_that_has_no_mean_is_no_gap(served: Served) -> None:
    entries = runs_of(14, losses={})
    dirty = run_at(5, entries[5].results, mean=1.0, source={"dirty": True})
    sent(served, [*entries[:5], dirty, *entries[6:]], contract_blob())
    settled(served)
    page = page_of(served, days="all")
    assert charts(page)[0].startswith("MRR@5 in 13 runs")
    assert "14 runs of main, scored again by today's golden queries" in page.text


def test_the_newest_runs_of_the_branch_are_listed(served: Served) -> None:
    entries = runs_of(14, losses={}, summary="The contract holds")
    numbers = sent(served, entries, contract_blob())
    other = served.add(run_at(20, None, source={"branch": "feature"}, summary="not of the branch"))
    settled(served)
    page = page_of(served, days="all")
    table = page.text.partition("Summary")[2].partition("All runs")[0]
    assert table.count("✓ pass The contract holds") == 10
    assert table.split()[:3] == ["2026-11-28", "08:30", short(13)]
    assert f"/runs/{numbers[4]}" in links(page)
    assert f"/runs/{numbers[3]}" not in links(page)
    assert f"/runs/{other}" not in links(page)
    assert "/p/docs/runs" in links(page)


def test_until_runs_are_scored_again_the_recorded_means_are_shown(database: Database) -> None:
    idle = Served(database)  # its thread does not run
    sent(idle, runs_of(3, losses={2: IDS[:5]}), contract_blob())
    page = page_of(idle)
    assert "Not known yet: the runs are being scored again. Reload this page in a moment." in page.text
    assert f"mrr_at_5 2026-11-22 20:30 {short(2)} ✕ fail 0.840 2026-11-22 08:30" in page.text
    assert page.having("hx-trigger", "every 3s") == 1
    with Served(database) as served:
        settled(served)
        page = page_of(served)
        assert "Too early to tell" in page.text
        assert not any("hx-trigger" in attrs for _, attrs in page.elements)


def test_the_page_asks_for_a_trend_that_is_missing(served: Served, database: Database) -> None:
    sent(served, runs_of(14, losses={}), contract_blob())
    settled(served)
    database.write(lambda connection: connection.execute(trends.delete()))
    assert "Not known yet" in page_of(served).text
    while "No lasting loss was found in 14 runs" not in page_of(served).text:
        pass


def test_an_old_trend_is_shown_with_a_note(database: Database) -> None:
    entries = runs_of(15, losses={})
    with Served(database) as served:
        sent(served, entries[:14], contract_blob())
        settled(served)
    idle = Served(database)
    sent(idle, entries[14:], contract_blob())
    text = page_of(idle, days="all").text
    assert "No lasting loss was found in 14 runs." in text
    assert "The newest runs, or a changed contract, are being scored. Reload this page in a moment." in text


def test_a_trend_of_an_older_version_is_shown(served: Served, database: Database) -> None:
    """It lacks the limits, and which losses stand."""
    sent(served, runs_of(30, losses={21: IDS[:5]}), contract_blob())
    settled(served)
    with database.read() as connection:
        body = msgspec.json.decode(connection.execute(select(trends.c.body)).scalar_one())
    body["runs"] = [run[:4] for run in body["runs"]]
    for of_metric in body["metrics"].values():
        del of_metric["limits"]
        for change in of_metric["changes"]:
            del change["moved"], change["stands"]
    old = msgspec.json.encode(body).decode()
    database.write(lambda connection: connection.execute(update(trends).values(body=old)))
    msgspec.json.decode(old, type=Trend)
    assert f"Worse since {short(21)} (2026-12-02): MRR@5 1.000" in page_of(served, days="all").text


def test_a_project_without_a_run_says_how_to_send_them(served: Served, database: Database) -> None:
    row = {"slug": "docs", "name": "docs", "secret": "x", "created_at": 0}
    database.write(lambda connection: connection.execute(projects.insert().values(row)))
    page = page_of(served)
    assert "docs No run is recorded yet. Send runs from CI: rag-contract history add --history ADDRESS" in page.text
    assert "The service has no golden queries of this project" in page_of(served, "/p/docs/queries").text


def test_without_golden_queries_the_means_are_as_they_were_recorded(served: Served) -> None:
    sent(served, runs_of(30, losses={21: IDS[:5]}))
    settled(served)
    text = page_of(served, days="all").text
    assert f"Worse since {short(21)} (2026-12-02): MRR@5 1.000 → 0.840" in text
    assert "The means are as they were recorded: no contract is known" in text
    assert "The service has none: no contract is known" in text
    text = page_of(served, "/p/docs/queries").text
    assert "The service has no golden queries of this project: no contract is known" in text
    assert "Send a run of the default branch with rag-contract history add, in the CI job" in text


def hostile_runs() -> tuple[list[NewEntry], bytes]:
    """Return runs, with their contract, in which every text wants out."""
    names = [HOSTILE, "q1"]
    ranks = [dict.fromkeys(names, 1 if number < 20 else 4) for number in range(30)]
    results = [results_at(each).replace(b"What about", b"What of") for each in ranks]
    rows = [golden(name, f"{name}.md", query=f"What of {name}?", tags=[HOSTILE]) for name in names]
    entries = [
        run_at(number, each, mean=0.5, summary=HOSTILE, source={"branch": HOSTILE}, failed=[HOSTILE])
        for number, each in enumerate(results)
    ]
    return entries, contract_blob(as_jsonl(*rows), LIMITS)


@pytest.mark.parametrize("path", ["/p/docs?days=all", "/p/docs/queries", f"/p/docs/queries?q={HOSTILE[:20]}"])
def test_hostile_texts_are_texts(served: Served, path: str) -> None:
    entries, blob = hostile_runs()
    sent(served, entries, blob)
    settled(served)
    page = page_of(served, path)
    assert SHOWN in page.source
    assert "\u202e" not in page.source
    assert not [text for _, _, text in page.raw if text]
    assert len([tag for tag, _ in page.elements if tag == "script"]) == 1


@pytest.mark.parametrize("path", ["/p/docs", "/p/docs/queries", "/p/docs/query?id=question-00"])
def test_a_key_of_another_project_sees_nothing(served: Served, path: str) -> None:
    sent(served, [*runs_of(2, losses={}), *runs_of(2, losses={}, contract="other")], contract_blob())
    settled(served)
    key = served.new_key("read", project="other")
    headers = {"Authorization": f"Bearer {key}"}
    assert served.client.get(path.replace("docs", "other"), headers=headers).status_code == 200
    assert served.client.get(path, headers=headers).status_code == 404


def test_golden_queries_are_listed_with_what_is_broken(served: Served) -> None:
    rows = [golden(name, f"{name}.md", "more.md", tags=["billing"]) for name in IDS]
    entries = runs_of(14, losses={10: IDS[:5]})
    numbers = sent(served, entries, contract_blob(as_jsonl(*rows)))
    page = page_of(served, "/p/docs/queries")
    assert f"25 queries, as run {short(13)} had them, 2026-11-28 08:30 UTC." in page.text
    assert "They are edited in git, not here: change golden.jsonl" in page.text
    assert f"/runs/{numbers[13]}" in links(page)
    assert "question-04 What about question-04? billing 2 ✕ broken" in page.text
    assert "question-05 What about question-05? billing 2 not broken" in page.text
    assert "/p/docs/query?id=question-24" in links(page)


def test_golden_queries_are_searched_in_ids_and_questions(served: Served) -> None:
    rows = [golden("Alpha", query="How to pay?"), golden("beta", query="Is ALPHA free?"), golden("gamma", query="x")]
    sent(served, runs_of(1, losses={}), contract_blob(as_jsonl(*rows)))
    page = page_of(served, "/p/docs/queries", q=" alpha ")
    assert "2 queries found" in page.text
    assert [link for link in links(page) if "query?" in link] == ["/p/docs/query?id=Alpha", "/p/docs/query?id=beta"]
    assert "No query has “delta” in its id or its question." in page_of(served, "/p/docs/queries", q="delta").text


def test_many_golden_queries_are_on_pages(served: Served) -> None:
    rows = [golden(f"q{number:03}", query=f"What {number}?") for number in range(250)]
    sent(served, runs_of(1, losses={}), contract_blob(as_jsonl(*rows)))
    first, second, last = (page_of(served, "/p/docs/queries", q="what", page=page) for page in (1, 2, 9))
    assert "250 queries found, page 1 of 3" in first.text
    assert "/p/docs/queries?q=what&page=2" in links(first)
    assert not any("page=0" in link for link in links(first))
    shown = [[link for link in links(page) if "query?" in link] for page in (first, second, last)]
    assert [len(each) for each in shown] == [100, 100, 50]
    assert (shown[1][0], shown[2][-1]) == ("/p/docs/query?id=q100", "/p/docs/query?id=q249")
    assert {"/p/docs/queries?q=what&page=1", "/p/docs/queries?q=what&page=3"} <= {*links(second)}
    assert "page=4" not in "".join(links(last))


def test_the_golden_queries_of_a_mounted_folder_are_said_to_be_mounted(database: Database, folder: Path) -> None:
    home = folder / "projects/docs"
    home.mkdir(parents=True)
    contract(home)
    (home / "project.yml").write_text("name: Docs\n")
    with Served(database, projects=folder / "projects") as served:
        sent(served, runs_of(2, losses={}), contract_blob(as_jsonl(golden("other"))))
        page = page_of(served, "/p/docs/queries")
        assert "25 queries, from the folder that is mounted for this project." in page.text
        assert "25 golden queries: the questions" in page_of(served).text
