"""Copying a history to another store, and pruning it."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.history.copy_and_prune import Copied, copy, prune
from ragcontract.history.entry import NewEntry
from ragcontract.history.folder import Folder
from ragcontract.history.interface import Added
from tests.history.entries import FIRST, RUN, digest, id_of, new_entry, results_of, runs


@pytest.fixture
def source(tmp_path: Path) -> Folder:
    return Folder(str(tmp_path / "source"))


@pytest.fixture
def target(tmp_path: Path) -> Folder:
    return Folder(str(tmp_path / "target"))


def stored(folder: Folder) -> dict[str, bytes | None]:
    """Return all entries and result sets of a store."""
    entries = {
        f"{contract}/{name}": content
        for contract in folder.contracts()
        for name, content in folder.read(contract, folder.ids(contract, folder.months(contract))).items()
    }
    return entries | {sha256: folder.results(sha256) for sha256 in folder.result_sets()}


def copied(**counts: int) -> Copied:
    """Return the counts of a copy in which nothing was left out."""
    return Copied(
        **{"entries": 0, "result_sets": 0, "present": 0, "other_versions": 0, "faulty": 0, **counts}, warnings=()
    )


def add_all(folder: Folder, *entries: NewEntry) -> None:
    for entry in entries:
        folder.add(entry)


def test_everything_is_copied_byte_by_byte_and_only_once(source: Folder, target: Folder) -> None:
    again = new_entry("help", run=RUN + 50, results=results_of("d0"))
    add_all(source, *runs(40), *runs(3, ""), again, new_entry("help", run=RUN + 51))
    assert copy(source, target) == copied(entries=45, result_sets=40)
    assert stored(target) == stored(source)
    assert copy(source, target) == copied(present=45)
    assert copy(target, source) == copied(present=45)


def test_entries_written_by_a_later_version_keep_their_unknown_fields(source: Folder, target: Folder) -> None:
    entry = new_entry()
    later = NewEntry(entry=entry.entry, content=entry.content.replace(b"{", b'{"new_field": [1],', 1))
    source.add(later)
    copy(source, target)
    assert target.read("docs", [id_of(entry)]) == {entry.entry.id: later.content}


def test_only_what_the_target_lacks_is_copied(source: Folder, target: Folder) -> None:
    entries = runs(10)
    add_all(source, *entries)
    add_all(target, *entries[:4], *runs(2, "help"))
    assert copy(source, target) == copied(entries=6, result_sets=6, present=4)
    assert stored(target).keys() > stored(source).keys()


def test_a_copy_that_was_stopped_goes_on_without_gaps(
    source: Folder, target: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries = runs(bounds.ENTRIES_AT_ONCE * 2)
    add_all(source, *entries)
    add, added = target.add, iter(range(100))

    def stopped(new: NewEntry) -> Added:
        if next(added, None) is None:
            raise KeyboardInterrupt
        return add(new)

    monkeypatch.setattr(target, "add", stopped)
    with pytest.raises(KeyboardInterrupt):
        copy(source, target)
    monkeypatch.undo()
    assert target.ids("docs", target.months("docs")) == [id_of(entry) for entry in reversed(entries[:100])]
    assert copy(source, target) == copied(entries=100, result_sets=100, present=100)


def test_results_that_only_the_target_lost_are_copied_again(source: Folder, target: Folder) -> None:
    entries = runs(5)
    add_all(source, *entries)
    copy(source, target)
    target.delete_results([digest(entries[1].results)])
    assert copy(source, target) == copied(result_sets=1, present=5)
    assert stored(target) == stored(source)


def test_entries_whose_results_were_pruned_are_copied_without(source: Folder, target: Folder) -> None:
    add_all(source, *runs(5))
    prune(source, 2)
    assert copy(source, target) == copied(entries=5, result_sets=2)
    assert stored(target) == stored(source)


def file_of(folder: Folder, new: NewEntry) -> Path:
    return Path(folder.name) / new.path


def results_file(folder: Folder, new: NewEntry) -> Path:
    sha256 = digest(new.results)
    return Path(folder.name) / "results" / sha256[:2] / f"{sha256}.jsonl"


SPOILED: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "cut off": (lambda data: data[:100], "is not an entry of a history"),
    "empty": (lambda _: b"", "is not an entry of a history"),
    "no JSON": (lambda _: b"\0\xff", "is not an entry of a history"),
    "deep": (lambda _: b"[" * 100_000, "is not an entry of a history"),
    "too large": (lambda data: data.ljust(bounds.ENTRY + 1), "is larger than 256 KiB"),
    "of another contract": (lambda data: data.replace(b'"docs"', b'"help"'), "belongs to another file"),
    "of another time": (lambda data: data.replace(b'"id": "2026', b'"id": "2025'), "belongs to another file"),
    "with a path": (lambda data: data.replace(b'"id": "2026', b'"id": "../2026'), "belongs to another file"),
    "with a digest that is a path": (
        lambda data: re.sub(rb'("sha256": ")[0-9a-f]{64}', rb"\1../../../../etc/passwd", data),
        "is not an entry of a history",
    ),
}


@pytest.mark.parametrize(("spoil", "reason"), SPOILED.values(), ids=SPOILED.keys())
def test_a_faulty_entry_is_left_out_and_named(
    source: Folder, target: Folder, spoil: Callable[[bytes], bytes], reason: str
) -> None:
    good, bad = runs(2)
    add_all(source, good, bad)
    file_of(source, bad).write_bytes(spoil(bad.content))
    for present in (0, 1):
        found = copy(source, target)
        assert (found.entries, found.present, found.faulty) == (1 - present, present, 1)
        (warning,) = found.warnings
        assert warning.startswith(f"{bad.path}: {reason}" if "belongs" not in reason else f"{bad.path}: its id or ")
        assert reason in warning
        assert warning.endswith("; it was not copied")
    assert stored(target).keys() == {f"docs/{good.entry.id}", digest(good.results)}


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"x", "has another SHA-256 than its name says"),
        (b"", "has another SHA-256 than its name says"),
        (b"x" * (bounds.RESULT_SET + 1), "is larger than 8 MiB, the limit for a result set"),
    ],
)
def test_faulty_results_are_left_out_and_named(source: Folder, target: Folder, data: bytes, reason: str) -> None:
    bad, good = runs(2)
    twin = new_entry("help", results=bad.results)
    add_all(source, bad, good, twin)
    file = results_file(source, bad)
    file.write_bytes(data)
    found = copy(source, target)
    assert (found.entries, found.result_sets, found.faulty) == (3, 1, 1)
    assert found.warnings == (f"{file.relative_to(source.name)}: {reason}; it was not copied",)
    assert target.result_sets() == {digest(good.results)}
    file.write_bytes(bad.results or b"")
    assert copy(source, target) == copied(result_sets=1, present=3)


def test_entries_of_later_versions_are_counted(source: Folder, target: Folder) -> None:
    good, *others = runs(3)
    add_all(source, good, *others)
    for other in others:
        file_of(source, other).write_bytes(other.content.replace(b'"schema_version": 1', b'"schema_version": 2'))
    found = copy(source, target)
    assert (found.entries, found.other_versions, found.faulty) == (1, 2, 0)
    assert found.warnings == ("2 entries were written by a newer rag-contract, and not copied",)


def test_an_entry_whose_place_is_taken_is_left_out_and_the_others_are_copied(source: Folder, target: Folder) -> None:
    entries = runs(3)
    add_all(source, *entries)
    target.add(new_entry(at=FIRST.replace(hour=3), run=RUN))
    found = copy(source, target)
    assert (found.entries, found.faulty) == (2, 1)
    assert found.warnings[0].startswith(f"{entries[0].path}: this run has already recorded another check")
    assert len(target.result_sets()) == 2


def test_a_conflict_takes_no_results_from_other_entries(source: Folder, target: Folder) -> None:
    first, second = new_entry(results=results_of("d1")), new_entry("help", results=results_of("d1"))
    add_all(source, first, second)
    target.add(new_entry(at=FIRST.replace(hour=3)))
    copy(source, target)
    assert target.result_sets() == {digest(results_of("d1"))}


def test_of_many_faulty_entries_the_first_are_named(source: Folder, target: Folder) -> None:
    entries = runs(bounds.PROBLEMS + 7)
    add_all(source, *entries)
    for entry in entries:
        file_of(source, entry).write_bytes(b"x")
    found = copy(source, target)
    assert found.faulty == len(entries)
    assert len(found.warnings) == bounds.PROBLEMS + 1
    assert found.warnings[-1] == "… and 7 more files that were not copied"


def test_the_results_of_the_newest_entries_of_each_contract_are_kept(source: Folder) -> None:
    docs, help_ = runs(10), [new_entry("help", run=RUN + 90, results=results_of("h")), new_entry("help", run=RUN + 91)]
    add_all(source, *docs, *help_)
    assert prune(source, 3) == 7
    assert source.result_sets() == {digest(entry.results) for entry in (*docs[-3:], help_[0])}
    assert len(stored(source)) == 12 + 4
    assert prune(source, 3) == 0


def test_results_that_an_old_and_a_new_entry_share_are_kept(source: Folder) -> None:
    entries = [new_entry(at=FIRST.replace(hour=hour), run=RUN + hour, results=results_of("d1")) for hour in range(5)]
    add_all(source, *entries)
    assert prune(source, 1) == 0


def test_results_that_no_entry_names_are_deleted(source: Folder) -> None:
    (entry,) = runs(1)
    source.add(entry)
    orphan = results_file(source, new_entry(results=b"x"))
    orphan.parent.mkdir(exist_ok=True)
    orphan.write_bytes(b"x")
    assert prune(source, 200) == 1
    assert source.result_sets() == {digest(entry.results)}


def test_an_empty_store_has_nothing_to_prune(source: Folder) -> None:
    assert prune(source, 200) == 0
    assert not Path(source.name).exists()


UNREADABLE = {
    **{name: (spoil, "no result set is deleted, because it may need any") for name, (spoil, _) in SPOILED.items()},
    "of a later version": (
        lambda data: data.replace(b'"schema_version": 1', b'"schema_version": 2'),
        "was written by a newer rag-contract; use that one; no result set is deleted",
    ),
}


@pytest.mark.parametrize(("spoil", "reason"), UNREADABLE.values(), ids=UNREADABLE.keys())
def test_nothing_is_deleted_if_a_new_entry_cannot_be_read(
    source: Folder, spoil: Callable[[bytes], bytes], reason: str
) -> None:
    entries = runs(5)
    add_all(source, *entries)
    file_of(source, entries[3]).write_bytes(spoil(entries[3].content))
    with pytest.raises(InputError, match=rf"^{re.escape(entries[3].path)}: .*{reason}$"):
        prune(source, 2)
    assert len(source.result_sets()) == 5
    assert prune(source, 1) == 4


def test_an_entry_that_disappears_meanwhile_stops_a_prune(source: Folder) -> None:
    class Fleeting(Folder):
        def read(self, *_: object) -> dict[str, bytes]:
            return {}

    add_all(source, *runs(3))
    with pytest.raises(InputError, match="was deleted meanwhile, so no result set is deleted; run the command again"):
        prune(Fleeting(source.name), 2)
    assert len(source.result_sets()) == 3
