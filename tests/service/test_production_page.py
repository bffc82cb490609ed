"""The page of production and its routes: what changed, what was asked, and where older interactions are found."""

from collections.abc import Iterator
from datetime import datetime
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event, select

from ragcontract.core import bounds
from ragcontract.service.database import DAY, Database, now_ms
from ragcontract.service.tables import accepted_levels, audit
from tests.service.conftest import HOSTILE
from tests.service.production_rows import NOW, add_days, add_interaction_row, add_project_row, add_tallies
from tests.service.served import Served, checked
from tests.service.targets import project
from tests.service.test_playground_page import Visitor, words

PATH = "/p/docs/production"
LIST = "/projects/docs/interactions"
LENGTHS = [45.0] * 40 + [61.0] * 3
ALARMED: dict[str, Any] = {"z": {2: 8.0, 1: 8.0, 0: 8.0}, "alarms": {2: 1}}


@pytest.fixture
def served(database: Database, tmp_path: Path) -> Iterator[Served]:
    file = "name: Docs\nsampling: {ok: 0.05, error: 0.5, flagged: 0.25}\n"
    with Served(database, projects=project(tmp_path / "projects", file=file)) as served:
        served.client.follow_redirects = True
        yield served


@pytest.fixture
def editor(served: Served) -> Visitor:
    return Visitor(served, "editor")


def yesterday() -> int:
    return now_ms() - DAY


def listed(served: Served, limit: int = 3, **params: Any) -> list[str]:
    """Return the questions of all pages."""
    items, cursor = [], None
    for _ in range(1_000):
        page = {"limit": limit, **params} | ({"cursor": cursor} if cursor else {})
        answer = served.request("GET", LIST, params=page)
        assert answer.status_code == 200, answer.text
        assert len(answer.json()["items"]) <= limit
        items += [each["query"] for each in answer.json()["items"]]
        cursor = answer.json()["next"]
        if cursor is None:
            return items
    raise AssertionError("the list has no end")


@pytest.mark.parametrize("searched", [20_000, 5, 1])
def test_interactions_are_found_by_flag_source_and_day(
    searched: int, served: Served, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds, "SCANNED_INTERACTIONS", searched)
    rows: list[tuple[int, int, dict[str, Any]]] = []
    for number in range(24):
        row: dict[str, Any] = {"flags": [0, 1, 4, 16, 5, 0][number % 6], "source": ["web", "api", HOSTILE][number % 3]}
        row["asked_at"] = NOW - number // 4 * DAY // 2  # several at once
        add_interaction_row(database, f"q{number}", **row)
        rows.append((row["asked_at"], number, row))
    add_project_row(database, "other")
    add_interaction_row(database, "of another project", slug="other", flags=31)
    rows.sort(key=lambda each: (each[0], each[1]), reverse=True)
    bits = {"flagged": 31, "error": 1, "empty": 2, "slow": 4, "negative_feedback": 16, "low_confidence": 8}
    for flag, bit in [(None, None), *bits.items()]:
        for source in (None, HOSTILE, "unknown"):
            for day in (None, "2027-01-13", "1999-01-01"):
                begin = None if day is None else day_of(day)
                wanted = [
                    f"q{number}"
                    for at, number, row in rows
                    if (bit is None or row["flags"] & bit)
                    and source in {None, row["source"]}
                    and (begin is None or begin <= at < begin + DAY)
                ]
                named = (("flag", flag), ("source", source), ("day", day))
                params: dict[str, Any] = {name: value for name, value in named if value}
                assert listed(served, **params) == wanted, params


def day_of(day: str) -> int:
    return {"2027-01-13": NOW // DAY * DAY - 2 * DAY}.get(day, 0)


def test_an_interaction_is_told_whole_but_for_its_user(served: Served, database: Database) -> None:
    add_interaction_row(
        database,
        "How?",
        results=[{"doc_id": "d1", "score": 0.5}],
        tags=["a"],
        flags=17,
        response="So.",
        error="e",
        latency_ms=1.5,
        confidence=0.25,
        feedback=-1,
        user_sha="u" * 64,
    )
    (told,) = served.request("GET", LIST).json()["items"]
    assert told.pop("id").startswith("How?")
    assert told == {
        "number": 1,
        "query": "How?",
        "asked_at": NOW,
        "received_at": NOW,
        "source": "web",
        "response": "So.",
        "error": "e",
        "results": [{"doc_id": "d1", "score": 0.5}],
        "latency_ms": 1.5,
        "confidence": 0.25,
        "feedback": -1,
        "flags": ["error", "negative_feedback"],
        "tags": ["a"],
    }
    for params in ({"flag": "bad"}, {"day": "monday"}, {"day": ""}, {"cursor": "e30"}, {"limit": 101}):
        assert checked(served.request("GET", LIST, params=params)) == 422, params


INDEXES = {
    "": "interactions_newest",
    "?flag=flagged": "interactions_flagged",
    "?flag=error": "interactions_error",
    "?flag=empty&day=2027-01-15": "interactions_empty",
    "?flag=slow": "interactions_slow",
    "?flag=low_confidence": "interactions_low_confidence",
    "?flag=negative_feedback": "interactions_negative_feedback",
    "?source=web": "interactions_of_source",
    "?flag=error&source=web": "interactions_error",
    "?flag=error&source=rare": "interactions_of_source",
}


@pytest.mark.parametrize(("query", "index"), INDEXES.items(), ids=str)
def test_a_page_counts_and_sorts_no_interactions(
    query: str, index: str, editor: Visitor, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds, "SCANNED_INTERACTIONS", 20)
    for number in range(60):
        source = "rare" if number == 7 else "web"
        add_interaction_row(database, f"Question {number}?", flags=31 if number % 2 else 0, source=source)
    statements: list[tuple[str, Any]] = []
    event.listen(database.engine, "before_cursor_execute", lambda *args: statements.append((args[2], args[3])))
    editor.get(f"{PATH}{query}")
    of_interactions = [each for each in statements if "FROM interactions" in each[0]]
    assert of_interactions
    plans = []
    for statement, parameters in of_interactions:
        assert "GROUP BY" not in statement
        assert "LIMIT" in statement
        if database.is_sqlite:
            with database.read() as connection:
                plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters).all()
            assert not any("TEMP B-TREE" in step[3] for step in plan)
            plans.append(" ".join(step[3] for step in plan))
    assert not plans or any(f"USING INDEX {index} " in plan for plan in plans), plans


def test_an_alarm_says_what_changed_since_when_and_what_was_usual(editor: Visitor, database: Database) -> None:
    add_days(database, "question_length", LENGTHS, last=yesterday(), **ALARMED)
    add_days(database, "latency_p50", [400.0] * 40, last=yesterday())
    page = editor.get(PATH)
    shown = words(page)
    assert "Not as before: Questions are longer since" in shown
    assert "61 characters, usually 45." in shown
    assert "As before: usually 400." in shown
    assert "If nothing changes, expect a false alarm about every" in shown
    assert shown.index("Question length") < shown.index("Latency, median")
    assert page.markup.count('class="point failed"') == 1
    assert "43 days as a table" in shown


def test_an_alarm_leads_to_what_was_asked_on_its_first_day(editor: Visitor, database: Database) -> None:
    add_days(database, "question_length", LENGTHS, last=yesterday(), **ALARMED)
    add_days(database, "empty_rate", [*[0.05] * 40, 0.3, 0.3, 0.3], last=yesterday(), **ALARMED)
    found = [part.partition('"')[0] for part in editor.get(PATH).markup.split('href="')]
    links = [link for link in found if "day=" in link]
    days = [link.rpartition("day=")[2].partition("#")[0] for link in links]
    assert [link.partition("day=")[0] for link in links] == [f"{PATH}?", f"{PATH}?flag=empty&amp;"]
    for day in days:
        asked_at = int(datetime.fromisoformat(f"{day}T12:00:00Z").timestamp() * 1_000)
        add_interaction_row(database, f"What of {day}?", asked_at=asked_at, flags=2)
    for link, day in zip(links, days, strict=True):
        assert f"What of {day}?" in words(editor.get(unescape(link)))


def test_an_editor_accepts_the_new_level(served: Served, editor: Visitor, database: Database) -> None:
    add_days(database, "question_length", LENGTHS, last=yesterday(), **ALARMED)
    page = editor.get(PATH)
    day = page.markup.partition('name="day" value="')[2].partition('"')[0]
    viewer = Visitor(served, "viewer")
    assert "This is the new level" not in words(viewer.get(PATH))
    viewer.post(f"{PATH}/level", status=403, monitor="question_length", day=day)
    after = words(editor.post(f"{PATH}/level", monitor="question_length", day=day))
    assert "Not as before" not in after
    assert "an-editor accepted the level since" in after
    with database.read() as connection:
        (level,) = connection.execute(select(accepted_levels)).all()
        assert (level.monitor, level.day, level.accepted_by) == ("question_length", int(day), "user:an-editor")
        assert "level.accept" in connection.execute(select(audit.c.action)).scalars().all()
    for form in ({"monitor": "none", "day": day}, {"monitor": "volume", "day": day}):
        editor.post(f"{PATH}/level", status=404, **form)
    editor.post(f"{PATH}/level", status=422, monitor="question_length", day="x")
    editor.post("/p/other/production/level", status=404, monitor="question_length", day=day)


@pytest.mark.parametrize(
    ("days", "why"),
    [
        ({"values": [0.1] * 40, "n": 43}, "Not enough to tell: 43 interactions with feedback on"),
        ({"values": [0.1] * 4, "n": 500}, "with 100 or more to compare"),
    ],
    ids=["few interactions", "few days"],
)
def test_it_says_when_there_is_not_enough_to_tell(
    days: dict[str, Any], why: str, editor: Visitor, database: Database
) -> None:
    untold = dict.fromkeys(range(40))
    add_days(database, "negative_rate", days["values"], n=days["n"], last=yesterday(), z=untold)  # type: ignore[arg-type]
    assert why in words(editor.get(PATH))
    assert "It looks as before" not in words(editor.get(PATH))


def test_all_is_as_before(editor: Visitor, database: Database) -> None:
    add_days(database, "volume", [500.0] * 40, last=yesterday())
    add_days(database, "error_rate", [0.02, 0.03, None] * 20, last=yesterday())
    shown = words(editor.get(PATH))
    assert "It looks as before in all 2 monitors, up to" in shown
    assert "usually 2% to 3%" in shown.partition("Errors")[2], shown.partition("Errors")[2]


def test_what_was_drawn_is_counted_and_the_shares_are_those_of_the_project(editor: Visitor, database: Database) -> None:
    add_tallies(database, now_ms(), received=1_000, sampled=60, golden=20, not_queued=3)
    shown = words(editor.get(PATH))
    assert "Received 1,000 Drawn 60 of these golden already 20 not queued 3" in shown
    assert "Drawn are 5% of the interactions, 50% of those with an error and 25% of the flagged ones" in shown


def test_an_empty_page_shows_how_to_send(editor: Visitor) -> None:
    shown = words(editor.get(PATH))
    assert "Nothing was sent yet" in shown
    assert "/api/v1/projects/docs/interactions" in shown
    assert '"query": "How do I invite a teammate?"' in shown
    assert "None is kept" not in shown


def test_interactions_are_listed_filtered_and_paged(editor: Visitor, database: Database) -> None:
    for number in range(60):
        flags, source = (1 if number % 2 else 0), ("api" if number % 3 else "web")
        add_interaction_row(
            database, f"Question {number}.", asked_at=NOW - number * 1_000, flags=flags, source=source, results=[]
        )
    page = editor.get(PATH)
    assert words(page).index("Question 0.") < words(page).index("Question 1.")
    assert page.markup.count('<li class="interaction">') == bounds.INTERACTIONS_PAGE
    assert "No results." in words(page)
    older = next(link for link in page.links if "cursor=" in link)
    assert "Question 25." in words(editor.get(older))
    filtered = editor.get(f"{PATH}?flag=error&source=api&day=2027-01-15")
    assert "Question 1." in words(filtered)
    assert "Question 3." not in words(filtered)
    for chosen in ('value="error" selected', 'value="api" selected', 'value="2027-01-15"'):
        assert chosen in filtered.markup
    assert "No interaction fits" in words(editor.get(f"{PATH}?flag=slow"))
    for query in ("flag=bad", "day=monday", "cursor=x", "day=2027-99-99", "cursor=" + "x" * 1_000):
        assert 'class="problem" role="alert"' in editor.get(f"{PATH}?{query}", status=422).markup


def test_a_search_that_ended_says_so_and_goes_on(
    editor: Visitor, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds, "SCANNED_INTERACTIONS", 5)
    for number in range(12):
        source = "rare" if number in {0, 1} else "web"
        add_interaction_row(database, f"Question {number}.", asked_at=NOW + number, source="api", flags=1)
        add_interaction_row(database, f"Other {number}.", asked_at=NOW + number, source=source, flags=1)
    page = editor.get(f"{PATH}?flag=error&source=api")
    seen, path = 0, f"{PATH}?flag=error&source=api"
    while path:
        page = editor.get(path)
        seen += page.markup.count('<li class="interaction">')
        path = next((link for link in page.links if "cursor=" in link), "")
        assert not path or "Older ones were not searched yet" in words(page)
    assert seen == 12
    rare = editor.get(f"{PATH}?flag=error&source=rare")
    assert "Question" not in words(rare).partition("What was asked")[2].replace("Questions", "")
    assert rare.markup.count('<li class="interaction">') == 2


def test_hostile_texts_stay_texts(editor: Visitor, database: Database) -> None:
    bad = f"{HOSTILE}\x1b[31m\u2028\n\"'><b>"
    results: list[dict[str, Any]] = [{"doc_id": bad, "score": 0.5}, {"doc_id": [bad]}, {bad: bad}]
    add_interaction_row(database, bad, source=bad, response=bad * 20, error=bad, results=results, tags=[bad], flags=31)
    page = editor.get(PATH)
    assert "<script>alert(1)</script>" in words(page)
    for name in ("flag", "source", "day", "cursor"):
        path = f"{PATH}?{name}=%3Cscript%3Ealert(1)%3C/script%3E%22%E2%80%AE"
        editor.get(path, status=200 if name == "source" else 422)


def test_many_sources_are_typed_not_listed(
    editor: Visitor, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds, "INTERACTION_SOURCES", 3)
    for number in range(4):
        add_interaction_row(database, f"Question {number}.", source=f"source-{number}")
    page = editor.get(f"{PATH}?source=source-3")
    assert '<input name="source" value="source-3"' in page.markup
    assert "Question 3." in words(page)


def test_monitors_are_told_day_by_day(served: Served, database: Database) -> None:
    add_days(database, "question_length", LENGTHS, last=yesterday(), **ALARMED)
    add_days(database, "volume", [500.0] * 3, last=yesterday(), n=50, z={0: None})  # type: ignore[dict-item]
    answer = served.request("GET", "/projects/docs/monitors").json()
    assert [each["monitor"] for each in answer] == ["volume", "question_length"]
    volume, length = answer
    assert volume["why"].startswith("0 weekday") or "with 100 or more" in volume["why"]
    assert length["why"].startswith("Questions are longer since ")
    assert length["days"][-3]["day"] == length["alarm_since"]
    assert [day["alarm"] for day in length["days"][-4:]] == [0, 1, 0, 0]
    (few, _) = served.request("GET", "/projects/docs/monitors", params={"days": 2}).json()
    assert len(few["days"]) <= 2
    assert checked(served.request("GET", "/projects/docs/monitors", params={"days": 0})) == 422


def test_an_alarm_stands_of_however_few_days_a_program_asks(served: Served, database: Database) -> None:
    add_days(database, "question_length", LENGTHS, last=yesterday(), **ALARMED)
    add_days(database, "error_rate", [0.02] * 80, last=yesterday(), z={0: None}, n=500)  # type: ignore[dict-item]
    (errors, whole) = sorted(served.get("/projects/docs/monitors", days=90), key=lambda each: each["monitor"])
    for days in (2, 5, 20):
        (few, length) = sorted(served.get("/projects/docs/monitors", days=days), key=lambda each: each["monitor"])
        assert (length["alarm_since"], length["why"]) == (whole["alarm_since"], whole["why"])
        assert length["days"] == whole["days"][-len(length["days"]) :]
        assert few["why"] == errors["why"]
    assert "usually 45" in whole["why"]


def test_an_old_alarm_stands_and_is_told_with_what_was_usual(editor: Visitor, database: Database) -> None:
    """It is compared with days that the page has no room for."""
    values = [45.0] * 35 + [61.0] * 70
    far = dict.fromkeys(range(70), 8.0)
    add_days(database, "question_length", values, last=yesterday(), z=far, alarms={69: 1})
    sentence = "61 characters, usually 45"
    assert sentence in words(editor.get(PATH))
    assert sentence in words(editor.get("/"))


def test_the_first_page_says_that_production_changed(served: Served, database: Database) -> None:
    add_days(database, "question_length", LENGTHS, last=yesterday(), **ALARMED)
    add_days(database, "volume", [500.0] * 40, last=yesterday(), alarms={30: -1})
    add_days(database, "error_rate", [0.02] * 40 + [0.2] * 3, last=yesterday(), **ALARMED)
    page = Visitor(served, "viewer").get("/")
    assert "Production : Questions are longer since" in words(page)
    assert "usually 45; and 1 further alarm" in words(page)
    assert "fewer" not in words(page)
    assert PATH in page.links


def test_the_page_is_for_whoever_sees_the_project(served: Served) -> None:
    viewer = Visitor(served, "viewer")
    assert {PATH, "/p/docs/candidates"} <= {*viewer.get("/p/docs").links}
    viewer.get("/p/unknown/production", status=404)
