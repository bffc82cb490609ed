"""Every store of a history keeps entries in the same way, whatever it is made of."""

from collections.abc import Callable, Collection, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.history.folder import Folder
from ragcontract.history.interface import ConflictError, Store
from ragcontract.history.service_store import ServiceStore
from ragcontract.service.accounts import Principal
from ragcontract.service.database_store import DatabaseStore
from tests.github.standin import GitHub
from tests.history.entries import FIRST, RUN, digest, id_of, new_entry, results_of, runs
from tests.history.jobs_at_once import Job
from tests.needs import require
from tests.service.conftest import opened_database
from tests.service.running import running

OPENED: dict[str, Callable[[Path, GitHub], Store]] = {
    "folder": lambda path, _github: Folder(str(path / "history")),
    "branch": lambda _path, github: Job(github).branch,
}
IN_DATABASES = ("sqlite", "postgres")
OVER_HTTP = tuple(f"service on {kind}" for kind in IN_DATABASES)


@pytest.fixture(params=[*OPENED, *IN_DATABASES, *OVER_HTTP])
def store(request: pytest.FixtureRequest, tmp_path: Path, github: GitHub) -> Iterator[Store]:
    if request.param in IN_DATABASES:
        with opened_database(request.param, request, tmp_path) as database:
            yield DatabaseStore(database, Principal(actor="user:ana", role="admin"))
    elif request.param in OVER_HTTP:
        kind = request.param.removeprefix("service on ")
        with opened_database(kind, request, tmp_path) as database, running(database) as service:
            yield service.store()
    else:
        if request.param == "branch":
            require("npm")
        yield OPENED[request.param](tmp_path, github)


def delete_results(store: Store, digests: Collection[str]) -> None:
    """Delete result sets, or see that the service keeps them."""
    if isinstance(store, DatabaseStore | ServiceStore):
        with pytest.raises(InputError, match="the service keeps result sets as long as their runs"):
            store.delete_results(digests)
    else:
        store.delete_results(digests)


def test_a_store_that_was_never_written_is_empty(store: Store) -> None:
    entry = new_entry(results=results_of("d1"))
    assert store.contracts() == []
    assert store.months("docs") == []
    assert store.ids("docs", ["2026-11"]) == []
    assert store.read("docs", [id_of(entry)]) == {}
    assert store.results(digest(entry.results)) is None
    assert store.result_sets() == set()
    delete_results(store, [digest(entry.results)])


def test_what_was_added_is_read_byte_by_byte(store: Store) -> None:
    entry = new_entry(results=results_of("d1"))
    assert store.add(entry) == "added"
    assert store.contracts() == ["docs"]
    assert store.months("docs") == ["2026-11"]
    assert store.ids("docs", ["2026-11"]) == [id_of(entry)]
    assert store.read("docs", [id_of(entry)]) == {entry.entry.id: entry.content}
    assert store.results(digest(entry.results)) == entry.results
    assert store.result_sets() == {digest(entry.results)}


def test_an_entry_may_have_no_results(store: Store) -> None:
    entry = new_entry()
    assert store.add(entry) == "added"
    assert store.read("docs", [id_of(entry)]) == {entry.entry.id: entry.content}
    assert store.result_sets() == set()


def test_the_same_entry_is_stored_once(store: Store) -> None:
    entry = new_entry(results=results_of("d1"))
    assert [store.add(entry), store.add(entry)] == ["added", "exists"]
    assert store.ids("docs", ["2026-11"]) == [id_of(entry)]


def test_equal_results_are_stored_once(store: Store) -> None:
    for number in range(3):
        store.add(new_entry(run=RUN + number, results=results_of("d1")))
    assert store.result_sets() == {digest(results_of("d1"))}
    assert len(store.ids("docs", ["2026-11"])) == 3


@pytest.mark.parametrize("run", [RUN, None])
def test_an_entry_never_changes(store: Store, run: int | None) -> None:
    entry = new_entry(run=run, results=results_of("d1"))
    store.add(entry)
    changed = type(entry)(entry=entry.entry, content=entry.content + b" ", results=results_of("d2"))
    with pytest.raises(ConflictError) as raised:
        store.add(changed)
    path = f"entries/docs/2026-11/{entry.entry.id}.json"
    assert str(raised.value) == f"{path}: already exists with different content; entries never change"
    assert store.read("docs", [id_of(entry)]) == {entry.entry.id: entry.content}


def test_two_contracts_of_a_run_that_share_a_name_are_asked_for_names(store: Store) -> None:
    first, second = new_entry(), new_entry(at=FIRST + timedelta(seconds=9))
    store.add(first)
    with pytest.raises(ConflictError) as raised:
        store.add(second)
    assert str(raised.value).startswith(f"entries/docs/2026-11/{second.entry.id}.json: this run has already recorded ")
    assert f" as {first.entry.id}.json; give each contract of a run its own name" in str(raised.value)
    assert store.ids("docs", ["2026-11"]) == [id_of(first)]


LATER = FIRST + timedelta(seconds=9)
NOT_SHARED = {
    "another run": new_entry(at=LATER, run=RUN + 1),
    "a run whose number ends alike": new_entry(at=LATER, run=int(f"9{RUN}")),
    "the next attempt": new_entry(at=LATER, attempt=2),
    "another name": new_entry("help", at=LATER),
    "no name": new_entry("", at=LATER),
}


@pytest.mark.parametrize("other", NOT_SHARED.values(), ids=NOT_SHARED.keys())
def test_other_runs_attempts_and_names_are_recorded(store: Store, other: object) -> None:
    store.add(new_entry())
    assert store.add(other) == "added"  # type: ignore[arg-type]


def test_outside_ci_the_same_report_may_be_of_two_times(store: Store) -> None:
    store.add(new_entry(run=None))
    assert store.add(new_entry(run=None, at=FIRST + timedelta(seconds=9))) == "added"


def test_months_and_entries_come_the_newest_first(store: Store) -> None:
    entries = runs(4, hours=24 * 20)
    for number in (2, 0, 3, 1):
        store.add(entries[number])
    assert store.months("docs") == ["2027-01", "2026-12", "2026-11"]
    assert store.ids("docs", store.months("docs")) == [id_of(entry) for entry in reversed(entries)]
    assert store.ids("docs", ["2026-11", "2027-01"]) == [id_of(entries[3]), id_of(entries[0])]
    assert store.ids("docs", ["2026-10"]) == []


def test_contracts_have_folders_of_their_own(store: Store) -> None:
    for name in ("docs", "", "Läuft das?", "../../etc"):
        store.add(new_entry(name))
    assert store.contracts() == ["_default", "docs", "etc-74ccf3c5", "luftdas-eb3663ff"]
    for folder in store.contracts():
        assert len(store.ids(folder, ["2026-11"])) == 1


def test_entries_of_another_contract_are_not_read(store: Store) -> None:
    docs, help_ = new_entry(), new_entry("help", run=RUN + 1)
    store.add(docs)
    store.add(help_)
    assert store.read("help", [id_of(docs)]) == {}
    assert store.read("docs", [id_of(docs), id_of(help_)]) == {docs.entry.id: docs.content}


def test_more_entries_are_read_than_fit_into_a_call(store: Store) -> None:
    entries = runs(bounds.ENTRIES_AT_ONCE + 1, hours=1)
    for entry in entries:
        store.add(entry)
    assert store.read("docs", [id_of(entry) for entry in entries]) == {
        entry.entry.id: entry.content for entry in entries
    }


def test_result_sets_can_be_deleted_and_entries_stay(store: Store) -> None:
    entries = runs(3)
    for entry in entries:
        store.add(entry)
    delete_results(store, [digest(entries[0].results), digest(entries[1].results), "f" * 64])
    if isinstance(store, DatabaseStore | ServiceStore):
        assert store.result_sets() == {digest(entry.results) for entry in entries}
        return
    assert store.result_sets() == {digest(entries[2].results)}
    assert store.results(digest(entries[0].results)) is None
    assert len(store.ids("docs", store.months("docs"))) == 3


@pytest.mark.parametrize("name", ["..", "../x", "", ".", "/etc", "docs/2026-11", "DOCS", "a" * 61, "x\0", "x\n"])
def test_names_that_no_contract_has_lead_nowhere(store: Store, name: str) -> None:
    store.add(new_entry())
    assert store.months(name) == []
    assert store.ids(name, ["2026-11"]) == []
    assert store.read(name, [id_of(new_entry())]) == {}


@pytest.mark.parametrize("name", ["", "..", "../../docs", "x" * 64, "F" * 64, f"../{'a' * 61}", f"{'a' * 64}\n"])
def test_names_that_no_result_set_has_lead_nowhere(store: Store, name: str) -> None:
    store.add(new_entry(results=results_of("d1")))
    assert store.results(name) is None
    delete_results(store, [name])
    assert store.result_sets() == {digest(results_of("d1"))}


@pytest.mark.parametrize("month", ["", "..", "2026-13x", "2026", "../2026-11", "２０２６-11"])
def test_names_that_no_month_has_lead_nowhere(store: Store, month: str) -> None:
    store.add(new_entry())
    assert store.ids("docs", [month]) == []


def test_an_entry_at_the_end_of_a_month_is_in_that_month(store: Store) -> None:
    last = new_entry(at=datetime(2026, 11, 30, 23, 59, 59, tzinfo=UTC))
    first = new_entry(at=datetime(2026, 12, 1, tzinfo=UTC), run=RUN + 1)
    store.add(last)
    store.add(first)
    assert store.ids("docs", ["2026-11"]) == [id_of(last)]
    assert store.ids("docs", ["2026-12"]) == [id_of(first)]


def test_conflicts_are_errors_of_the_input() -> None:
    assert issubclass(ConflictError, InputError)
