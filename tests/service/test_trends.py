"""A metric over time, as the service answers: as it was recorded, and scored again under the contract of today."""

import json
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from sqlalchemy import Connection, select

from ragcontract import pipeline
from ragcontract.core import bounds
from ragcontract.decision.evaluated import plan_of
from ragcontract.evaluation.source import Inputs
from ragcontract.history.contract_entries import entries_of
from ragcontract.history.entry import NewEntry, encode
from ragcontract.history.folder import Folder
from ragcontract.history.page_runs import runs_on_page
from ragcontract.service.database import Database
from ragcontract.service.known_contract import KnownContract, contract_of
from ragcontract.service.tables import trends
from ragcontract.service.trends import compute
from tests.builders import as_jsonl, golden, write_jsonl
from tests.history.trends import commit_of, contract, ids_of, results_at, run_at, runs_of, stored
from tests.process import rag_contract
from tests.service.served import Served

IDS = ids_of()
Json = dict[str, Any]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    contract(tmp_path)
    return tmp_path


def contract_blob(golden_rows: str | None = None, config: str | None = None) -> bytes:
    """Return what CI sends as the contract of a day: that of the current folder, or other texts."""
    rows = Path("golden.jsonl").read_text() if golden_rows is None else golden_rows
    return json.dumps(
        {"golden": [rows], "config": Path("ragcontract.yml").read_text() if config is None else config}
    ).encode()


def sent(served: Served, entries: Iterable[NewEntry], blob: bytes | None = None) -> list[int]:
    """Send entries of the default branch, with the contract if there is one; return the ids of their runs."""
    params = {"golden": served.send_blob(blob, "golden")} if blob is not None else {}
    return [served.add(new, default_branch=True, **params) for new in entries]


def settled(served: Served, slug: str = "docs", **params: Any) -> Json:
    """Return a metric once nothing is being computed."""
    while (answer := served.get(f"/projects/{slug}/metrics", days=3_650, **params))["state"] == "computing":
        time.sleep(0.02)
    assert isinstance(answer, dict)
    return answer


def values(points: Iterable[Json]) -> list[float | None]:
    return [point["value"] for point in points]


def test_a_planted_change_is_named_with_its_commit_and_its_queries(served: Served) -> None:
    numbers = sent(served, runs_of(30, losses={21: IDS[:5]}), contract_blob())
    answer = settled(served, metric="mrr_at_5")
    (change,) = answer["changes"]
    assert (change["run"], change["commit"][:12], change["worse"]) == (numbers[21], commit_of(21), True)
    assert (change["before"], change["after"], change["p_value"]) == (1, pytest.approx(0.84), None)
    assert [(each["id"], each["before"], each["after"]) for each in change["queries"]] == [
        (name, 1, 0.2) for name in IDS[:5]
    ]
    assert (answer["level"], answer["sigma"], answer["why"]) == (1, pytest.approx(0), None)
    assert [point["run"] for point in answer["rescored"]] == numbers
    assert answer["rescored"][0]["commit"][:12] == commit_of(0)


@pytest.mark.parametrize("key", ["mrr_at_5", "recall_at_5"])
def test_what_is_scored_again_is_what_the_page_of_a_history_has(served: Served, folder: Path, key: str) -> None:
    entries = runs_of(40, losses={15: IDS[:2], 30: IDS[4:11]}, noise=0.3)
    relevant = {name: [f"{name}-other-0.md"] * (number % 2) for number, name in enumerate(IDS[2:])}
    write_jsonl(Path("golden.jsonl"), [golden(name, f"{name}.md", *others) for name, others in relevant.items()])
    sent(served, entries, contract_blob())
    inputs = Inputs(golden=["golden.jsonl"], config="ragcontract.yml", awaits_baseline=True)
    loaded = pipeline.load(inputs)
    of_page = runs_on_page(
        entries_of(Folder(stored(folder, entries)), "docs"), "main", (loaded, plan_of(loaded, inputs))
    )
    answer = settled(served, metric=key)
    assert values(answer["rescored"]) == [*of_page.series[key].values]
    assert len(set(values(answer["rescored"]))) > 5
    assert answer["level"] == of_page.level(key)
    page = rag_contract("history", "page", "--history", "history", "--contract", "docs")
    assert page.code == 0, page
    html = Path("history.html").read_text()
    assert answer["changes"]
    for change in answer["changes"]:
        assert change["commit"][:7] in html


def test_a_new_run_is_part_of_the_trend(served: Served) -> None:
    *before, last = runs_of(13, losses={})
    sent(served, before, contract_blob())
    assert len(settled(served)["rescored"]) == 12
    sent(served, [last], contract_blob())
    assert len(settled(served)["rescored"]) == 13


def test_a_run_that_comes_late_is_part_of_the_trend(served: Served) -> None:
    entries = runs_of(13, losses={})
    sent(served, entries[:5] + entries[6:], contract_blob())
    assert len(settled(served)["rescored"]) == 12
    (late,) = sent(served, [entries[5]], contract_blob())
    assert settled(served)["rescored"][5]["run"] == late


def test_a_result_set_that_comes_after_its_run_is_part_of_the_trend(served: Served) -> None:
    *before, last = runs_of(13, losses={12: IDS[:5]})
    sent(served, before, contract_blob())
    assert served.post(last, without_results=True).status_code == 201
    assert values(settled(served)["rescored"])[-2:] == [1, None]
    sent(served, [last])
    assert values(settled(served)["rescored"])[-2:] == [1, pytest.approx(0.84)]


def test_what_is_added_while_a_trend_is_computed_is_not_lost(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries = runs_of(14, losses={}, noise=0.3)  # so that each has a result set of its own
    idle = Served(database)  # its thread does not run
    sent(idle, entries[:5] + entries[7:], contract_blob())
    assert idle.post(entries[5], without_results=True).status_code == 201
    late: list[NewEntry] = entries[5:7]

    def contract_meanwhile(connection: Connection, project_id: int, of_mounted: Path | None) -> KnownContract:
        if late:
            sent(idle, [late.pop()])
        return contract_of(connection, project_id, of_mounted)

    monkeypatch.setattr("ragcontract.service.trends.contract_of", contract_meanwhile)
    assert [compute(database, 1, None) for _ in range(3)] == [False, False, True]
    assert None not in values(idle.get("/projects/docs/metrics", days=3_650)["rescored"])
    assert compute(database, 1, None)


def test_a_run_of_a_pull_request_is_not(served: Served) -> None:
    sent(served, runs_of(12, losses={}), contract_blob())
    new = run_at(20, results_at(dict.fromkeys(IDS, 5)), mean=0.2, source={"branch": "feature"})
    served.add(new, golden=served.send_blob(contract_blob(config="k: 1\n"), "golden"))
    answer = settled(served)
    assert (len(answer["rescored"]), len(answer["recorded"]), answer["branch"]) == (12, 12, "main")
    assert answer["metric"] == "mrr_at_5"


def test_trends_that_are_missing_or_old_are_computed_at_the_start(database: Database) -> None:
    entries = runs_of(14, losses={})
    with Served(database) as served:
        sent(served, entries[:12], contract_blob())
        settled(served)
    idle = Served(database)  # its thread does not run
    numbers = sent(idle, [*entries[12:], *runs_of(5, losses={}, contract="other")], contract_blob())
    newest = {numbers[1], numbers[-1]}
    with Served(database) as served:  # nobody asks, which would have them computed as well
        while newest_in_trends(database) != newest:
            time.sleep(0.02)
        assert len(settled(served)["rescored"]) == 14
        assert len(settled(served, "other")["rescored"]) == 5


def newest_in_trends(database: Database) -> set[int]:
    with database.read() as connection:
        return {*connection.execute(select(trends.c.run_id)).scalars()}


def test_while_it_is_computed_the_answer_says_so(database: Database) -> None:
    idle = Served(database)
    sent(idle, runs_of(3, losses={}), contract_blob())
    answer = idle.get("/projects/docs/metrics", days=3_650)
    assert (answer["state"], answer["rescored"], answer["level"]) == ("computing", None, None)
    assert answer["why"] == "the runs are being scored again; ask again in a moment"
    assert values(answer["recorded"]) == [1, 1, 1]


def test_without_a_contract_the_recorded_means_have_a_level_and_change_points(served: Served) -> None:
    sent(served, runs_of(30, losses={21: IDS[:5]}))
    answer = settled(served)
    assert (answer["rescored"], answer["state"], answer["level"]) == (None, "current", 1)
    assert answer["why"].startswith("no contract is known")
    assert [change["commit"][:12] for change in answer["changes"]] == [commit_of(21)]


def test_a_contract_that_fits_no_run_is_named_as_the_reason(served: Served) -> None:
    sent(served, runs_of(12, losses={}), contract_blob(as_jsonl(golden("another", "x.md"))))
    answer = settled(served)
    assert (answer["rescored"], answer["why"][:48]) == (None, "no recorded run has queries and results that fit")


def test_a_mounted_contract_comes_before_that_of_ci(database: Database, folder: Path) -> None:
    home = folder / "projects/docs"
    home.mkdir(parents=True)
    contract(home, config="k: 3\nminimums:\n  mrr_at_k: 0.7\n")
    (home / "project.yml").write_text("name: Docs\n")
    with Served(database, projects=folder / "projects") as served:
        sent(served, runs_of(12, losses={6: IDS[:5]}), contract_blob())
        assert values(settled(served, metric="mrr_at_3")["rescored"])[-1] == pytest.approx(0.8)
        contract(home, config="k: 1\nminimums:\n  mrr_at_k: 0.7\n")  # the operator pulls
        assert settled(served, metric="mrr_at_1")["why"] is None
        (home / "golden.jsonl").unlink()
        (home / "golden.jsonl").symlink_to(folder / "golden.jsonl")
        answer = settled(served)
        assert answer["rescored"] is None
        assert answer["why"].startswith("the contract cannot be read: golden.jsonl: is a link, or no regular file")


def tagged(new: NewEntry, **values_of_tag: float) -> NewEntry:
    """Return an entry that has a metric of a tag."""
    entry = replace(new.entry, head=replace(new.entry.head, tags={"billing": values_of_tag}))
    return NewEntry(entry=entry, content=encode(entry), results=new.results)


def test_the_metric_of_a_tag_is_as_it_was_recorded(served: Served) -> None:
    sent(served, [tagged(new, mrr_at_5=0.25) for new in runs_of(3, losses={})], contract_blob())
    answer = settled(served, metric="mrr_at_5", tag="billing")
    assert (values(answer["recorded"]), answer["rescored"]) == ([0.25] * 3, None)
    assert (answer["why"], answer["tags"]) == ("only the means over all queries are scored again", ["billing"])


def test_only_the_last_days_are_answered(served: Served) -> None:
    sent(
        served,
        [run_at(-2 * 365 * 2, results_at(dict.fromkeys(IDS, 1)), mean=0.5), *runs_of(2, losses={})],
        contract_blob(),
    )
    assert len(settled(served)["rescored"]) == 3
    answer = served.get("/projects/docs/metrics", days=30)
    assert (len(answer["rescored"]), values(answer["recorded"])) == (2, [1, 1])


@pytest.mark.parametrize(
    ("path", "status", "detail"),
    [
        (
            "/projects/docs/metrics?metric=mrr_at_7",
            404,
            "no run has the metric 'mrr_at_7'; the newest run has mrr_at_5",
        ),
        ("/projects/docs/metrics?tag=x%00y", 404, r"no run has the tag 'x\x00y'; the newest run has none"),
        ("/projects/docs/metrics?days=0", 422, "the request is not valid"),
        ("/projects/docs/metrics?days=3651", 422, "the request is not valid"),
        ("/projects/other/metrics", 404, "there is no such project, or the key may not see it"),
    ],
)
def test_what_cannot_be_answered_is_explained(served: Served, path: str, status: int, detail: str) -> None:
    sent(served, [run_at(1, results_at(dict.fromkeys(IDS, 1)), mean=1.0)])
    settled(served)
    answer = served.request("GET", path)
    assert answer.status_code == status
    assert answer.json()["detail"].startswith(detail)


def test_a_project_without_metrics_says_so(served: Served) -> None:
    sent(served, [run_at(1, None)])
    answer = served.request("GET", "/projects/docs/metrics")
    assert (answer.status_code, answer.json()["detail"]) == (404, "the project has no run with a metric yet")


def test_a_key_of_another_project_sees_nothing(served: Served) -> None:
    sent(served, [*runs_of(2, losses={}), *runs_of(2, losses={}, contract="other")])
    key = served.new_key("read", project="other")
    assert served.status("/projects/other/metrics", key=key) == 200
    assert served.status("/projects/docs/metrics", key=key) == 404
    assert served.status("/projects/docs/metrics", key=served.new_key("record")) == 403


def test_the_memory_of_a_trend_is_bounded_by_the_queries_of_the_contract(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds, "SERVICE_TREND_QUERIES", 15 * len(IDS))
    sent(served, runs_of(20, losses={}), contract_blob())
    answer = settled(served)
    assert (len(answer["rescored"]), len(answer["recorded"])) == (15, 20)
