"""A history in a folder: what may lie in it, and what happens where it cannot be read or written."""

import os
import re
import socket
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.history.entry import NewEntry
from ragcontract.history.folder import Folder
from tests.history.entries import FIRST, RUN, digest, id_of, new_entry, results_of, runs
from tests.process import NOBODY, files_in, folder_of_nobody, hand_to_nobody
from tests.small_disks import room_left, small_disk

ENTRY = new_entry(results=results_of("d1"))
MONTH = Path("entries/docs/2026-11")
ENTRY_FILE = MONTH / f"{ENTRY.entry.id}.json"
RESULTS_FILE = Path(f"results/{digest(ENTRY.results)[:2]}/{digest(ENTRY.results)}.jsonl")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "history"


def everything(folder: Folder) -> list[object]:
    """Read all that a folder has."""
    seen: list[object] = [folder.contracts(), folder.result_sets()]
    for contract in {*folder.contracts(), "docs"}:
        ids = folder.ids(contract, [*folder.months(contract), "2026-11"])
        seen += [ids, folder.read(contract, [*ids, id_of(ENTRY)])]
    return [*seen, folder.results(digest(ENTRY.results))]


EMPTY: list[object] = [[], set(), [], {}, None]


def test_a_folder_is_made_when_something_is_added(path: Path) -> None:
    folder = Folder(str(path / "of" / "app"))
    everything(folder)
    assert not path.exists()
    folder.add(ENTRY)
    names = {"README.md", str(ENTRY_FILE), str(RESULTS_FILE)}
    assert {name for name in files_in(path / "of" / "app") if not (path / "of" / "app" / name).is_dir()} == names
    assert "never changes" in (path / "of" / "app" / "README.md").read_text()


def test_a_readme_that_is_there_stays(path: Path) -> None:
    path.mkdir()
    (path / "README.md").write_text("Ours.\n")
    Folder(str(path)).add(ENTRY)
    assert (path / "README.md").read_text() == "Ours.\n"


def test_a_folder_stays_where_it_is_when_the_current_one_changes(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.mkdir()
    monkeypatch.chdir(path)
    folder = Folder("here")
    monkeypatch.chdir("/")
    folder.add(ENTRY)
    assert (path / "here" / ENTRY_FILE).is_file()


def test_files_have_the_mode_that_the_system_gives(path: Path) -> None:
    before = os.umask(0o027)
    try:
        Folder(str(path)).add(ENTRY)
    finally:
        os.umask(before)
    assert stat.S_IMODE((path / ENTRY_FILE).stat().st_mode) == 0o640


def test_the_store_itself_may_be_a_link(path: Path, tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    path.symlink_to(tmp_path / "disk")
    Folder(str(path)).add(ENTRY)
    assert Folder(str(path)).read("docs", [id_of(ENTRY)]) == {ENTRY.entry.id: ENTRY.content}
    assert (tmp_path / "disk" / ENTRY_FILE).is_file()


def test_results_that_were_deleted_come_back_with_their_entry(path: Path) -> None:
    folder = Folder(str(path))
    folder.add(ENTRY)
    folder.delete_results([digest(ENTRY.results)])
    assert folder.add(ENTRY) == "exists"
    assert folder.results(digest(ENTRY.results)) == ENTRY.results


# Files that are not what belongs there.


def link(at: Path, to: Path) -> None:
    at.symlink_to(to)


def relative_link(at: Path, to: Path) -> None:
    at.symlink_to(os.path.relpath(to, at.parent))


def broken_link(at: Path, _: Path) -> None:
    at.symlink_to(at.parent / "missing")


def loop(at: Path, _: Path) -> None:
    at.symlink_to(at)


def pipe(at: Path, _: Path) -> None:
    os.mkfifo(at)


def a_socket(at: Path, _: Path) -> None:
    here = Path.cwd()
    os.chdir(at.parent)  # the path of a socket must be short
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(at.name)
    finally:
        os.chdir(here)


def device(at: Path, _: Path) -> None:
    at.symlink_to("/dev/zero")


def folder_with_a_file(at: Path, _: Path) -> None:
    at.mkdir()
    (at / "x").touch()


KINDS: dict[str, Callable[[Path, Path], None]] = {
    "a link out of the store": link,
    "a relative link": relative_link,
    "a link to nothing": broken_link,
    "a link to itself": loop,
    "a pipe": pipe,
    "a socket": a_socket,
    "a link to a device": device,
    "a folder": folder_with_a_file,
}
FILES = [ENTRY_FILE, RESULTS_FILE]
FOLDERS = [*ENTRY_FILE.parents[:-1], *RESULTS_FILE.parents[:-1]]


def planted(path: Path, what: Path, kind: str) -> Path:
    """Return what lies beside a store in which a file or a folder is replaced by something else."""
    outside = path.parent / "outside"
    Folder(str(outside)).add(ENTRY)
    if what in FILES and kind == "a link out of the store":
        (outside / what).write_bytes(b"secret")
    (path / what).parent.mkdir(parents=True)
    KINDS[kind](path / what, outside / what)
    return outside


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("what", FILES, ids=str)
def test_what_is_not_a_regular_file_is_not_read_and_not_replaced(path: Path, what: Path, kind: str) -> None:
    outside = planted(path, what, kind)
    before = contents(outside), contents(path)
    folder = Folder(str(path))
    assert everything(folder) == ([["docs"], *EMPTY[1:]] if what == ENTRY_FILE else EMPTY)
    with pytest.raises(InputError, match=re.escape(f"{path}/{what}: is not a regular file; delete it")):
        folder.add(ENTRY)
    assert contents(outside) == before[0]
    assert {name: contents(path)[name] for name in before[1]} == before[1]
    assert not [name for name in files_in(path) if name.endswith(".tmp")]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "a folder"])
@pytest.mark.parametrize("what", FOLDERS, ids=str)
def test_what_is_not_a_folder_is_not_entered(path: Path, what: Path, kind: str) -> None:
    outside = planted(path, what, kind)
    before = contents(outside)
    folder = Folder(str(path))
    assert everything(folder) == ([["docs"], *EMPTY[1:]] if what == MONTH else EMPTY)
    with pytest.raises(InputError, match=re.escape(f"{path}/{what}: is not a folder, and links are not followed")):
        folder.add(ENTRY)
    folder.delete_results([digest(ENTRY.results)])
    assert contents(outside) == before


def contents(folder: Path) -> dict[str, bytes | str]:
    """Return what is in a folder, without opening what could block."""
    return {
        str(item.relative_to(folder)): item.read_bytes()
        if stat.S_ISREG(item.lstat().st_mode)
        else f"{stat.S_IFMT(item.lstat().st_mode)}"
        for item in folder.rglob("*")
    }


def test_a_link_in_place_of_results_is_deleted_and_not_what_it_leads_to(path: Path) -> None:
    outside = planted(path, RESULTS_FILE, "a link out of the store")
    Folder(str(path)).delete_results([digest(ENTRY.results)])
    assert not os.path.lexists(path / RESULTS_FILE)
    assert (outside / RESULTS_FILE).read_bytes() == b"secret"


def test_a_huge_file_is_read_only_up_to_the_limit(path: Path) -> None:
    folder = Folder(str(path))
    folder.add(ENTRY)
    for name in FILES:
        (path / name).unlink()
        with (path / name).open("wb") as file:
            file.truncate(1 << 40)
    (content,) = folder.read("docs", [id_of(ENTRY)]).values()
    assert len(content) == bounds.ENTRY + 1
    assert len(folder.results(digest(ENTRY.results)) or b"") == bounds.RESULT_SET + 1


@contextmanager
def without_roots_rights() -> Iterator[None]:
    """Give up the rights of root, to whom no permission is denied, for a while."""
    user = os.geteuid()
    os.seteuid(NOBODY if user == 0 else user)
    try:
        yield
    finally:
        os.seteuid(user)


@pytest.mark.parametrize("what", [*FILES, *FOLDERS], ids=str)
def test_what_cannot_be_read_is_an_error_that_names_it(what: Path) -> None:
    with folder_of_nobody() as place:
        folder = Folder(str(place / "history"))
        folder.add(ENTRY)
        hand_to_nobody(place)
        (place / "history" / what).chmod(0)
        denied = re.escape(f"{place}/history/{what}") + r"\S*: cannot be read \(Permission denied\)"
        with without_roots_rights(), pytest.raises(InputError, match=denied):
            everything(folder)
        (place / "history" / what).chmod(0o700)


def test_a_file_in_place_of_the_store_is_an_error(path: Path) -> None:
    path.write_text("x")
    folder = Folder(str(path))
    for use in (folder.contracts, folder.result_sets, lambda: folder.add(ENTRY)):
        with pytest.raises(InputError, match=r"history: is not a folder, so it cannot have a history"):
            use()


@pytest.mark.parametrize("name", ["x" * 300, "/proc/history", "/dev/null/history"])
def test_a_folder_that_cannot_be_made_is_an_error(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=rf"^{name}\S*: cannot be (read|written) \("):
        Folder(name).add(ENTRY)


def test_on_a_full_disk_nothing_is_half_written(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as mounted:
        if not mounted:
            pytest.skip("no disk can be mounted")
        folder = Folder(str(tmp_path / "disk" / "history"))
        folder.add(ENTRY)
        large = new_entry(run=RUN + 1, results=b"x" * 100_000)
        with room_left(tmp_path / "disk", 40_000), pytest.raises(InputError, match=r"No space left on device"):
            folder.add(large)
        assert folder.ids("docs", ["2026-11"]) == [id_of(ENTRY)]
        assert folder.result_sets() == {digest(ENTRY.results)}
        assert not [name for name in files_in(tmp_path / "disk") if name.endswith(".tmp")]
        assert folder.add(large) == "added"


NO_ENTRIES = [
    "entries/docs/2026-11/notes.txt",
    "entries/docs/2026-11/.rag-contract-0123456789abcdef.tmp",
    f"entries/docs/2026-11/{ENTRY.entry.id}.json.bak",
    f"entries/docs/2026-11/{ENTRY.entry.id}",
    f"entries/docs/2026-11/{ENTRY.entry.id.upper()}.json",
    f"entries/docs/2026-12/{ENTRY.entry.id}.json",  # its name says another month
    f"entries/docs/2026-11x/{ENTRY.entry.id}.json",
    f"entries/docs/{ENTRY.entry.id}.json",
    f"entries/DOCS/2026-11/{ENTRY.entry.id}.json",
    f"entries/.git/2026-11/{ENTRY.entry.id}.json",
    f"entries/docs/2026-11/{ENTRY.entry.id}.json\n",
    "entries/docs/2026-11/２０２６1121T203000Z-3f9c1a2b4d5e-1-1.json",
    f"results/ab/{'f' * 64}.jsonl",
    f"results/ff/{'f' * 63}.jsonl",
    f"results/ff/{'f' * 64}.jsonl.gz",
    f"results/{'f' * 64}.jsonl",
]


@pytest.mark.parametrize("name", NO_ENTRIES)
def test_files_with_other_names_are_not_looked_at(path: Path, name: str) -> None:
    (path / name).parent.mkdir(parents=True)
    (path / name).write_bytes(ENTRY.content)
    folder = Folder(str(path))
    assert not [entry for contract in folder.contracts() for entry in folder.ids(contract, folder.months(contract))]
    assert folder.result_sets() == set()


PIECES = [*"/.-_~\0\n aZ9\\:*", "..", "2026-11", "docs", ENTRY.entry.id]
NAMES = st.lists(st.sampled_from(PIECES), max_size=6).map("".join)


@settings(max_examples=300)
@given(contract=NAMES, month=NAMES, results=NAMES)
def test_no_name_leads_out_of_the_store(tmp_path_factory: pytest.TempPathFactory, **names: str) -> None:
    path = tmp_path_factory.getbasetemp() / "hostile" / "history"
    folder = Folder(str(path))
    folder.add(ENTRY)
    outside = path.parent / "2026-11" / f"{ENTRY.entry.id}.json"
    outside.parent.mkdir(exist_ok=True)
    outside.write_bytes(b"secret")
    folder.months(names["contract"])
    ids = folder.ids(names["contract"], [names["month"]])
    read = folder.read(names["contract"], [*ids, id_of(ENTRY)])
    assert b"secret" not in read.values()
    assert folder.results(names["results"]) is None
    folder.delete_results([names["results"]])
    folder.add(new_entry(names["contract"], at=FIRST + timedelta(days=31)))
    assert sorted(item.name for item in path.parent.iterdir()) == ["2026-11", "history"]
    assert sorted(item.name for item in path.iterdir()) == ["README.md", "entries", "results"]
    assert outside.read_bytes() == b"secret"


# Where there are no hard links, and after writers were killed.


def without_links(monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[Path], object] = lambda _: None) -> None:
    """Stand in for a disk without hard links, which no test can mount."""

    def refuse(_: object, file: Path) -> None:
        meanwhile(file)
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)


def test_without_hard_links_files_are_renamed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_links(monkeypatch)
    folder = Folder(str(path))
    assert [folder.add(ENTRY), folder.add(ENTRY)] == ["added", "exists"]
    assert folder.read("docs", [id_of(ENTRY)]) == {ENTRY.entry.id: ENTRY.content}
    assert folder.results(digest(ENTRY.results)) == ENTRY.results
    assert not [name for name in files_in(path) if name.endswith(".tmp")]


def test_without_hard_links_nothing_is_replaced_either(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_links(monkeypatch, lambda file: file.write_bytes(b"of another writer"))
    with pytest.raises(InputError, match="already exists with different content"):
        Folder(str(path)).add(ENTRY)
    assert (path / ENTRY_FILE).read_bytes() == b"of another writer"


def test_where_the_system_replaces_nothing_the_first_writer_wins(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: Path, target: Path) -> None:
        target.write_bytes(ENTRY.content if target.suffix == ".json" else b"")
        raise FileExistsError(17, "File exists")

    without_links(monkeypatch)
    monkeypatch.setattr(Path, "rename", refuse)
    assert Folder(str(path)).add(ENTRY) == "exists"


@pytest.mark.parametrize("age", [bounds.UNFINISHED + 60, bounds.UNFINISHED - 60])
def test_files_of_killed_writers_are_removed_once_they_are_old(path: Path, age: int) -> None:
    folder = Folder(str(path))
    folder.add(ENTRY)
    leftover, others = path / ".rag-contract-0123456789abcdef.tmp", [path / ".rag-contract-.tmp", path / "x.tmp"]
    now = (path / ENTRY_FILE).stat().st_mtime
    for file in (leftover, *others):
        file.write_bytes(ENTRY.content)
        os.utime(file, (now - age, now - age))
    assert len(folder.ids("docs", ["2026-11"])) == 1
    folder.add(new_entry(run=RUN + 1))
    assert leftover.exists() == (age < bounds.UNFINISHED)
    assert all(file.exists() for file in others)


def test_a_link_that_is_named_like_a_leftover_stays(path: Path, tmp_path: Path) -> None:
    folder = Folder(str(path))
    folder.add(ENTRY)
    victim = tmp_path / "victim"
    victim.write_bytes(b"x")
    os.utime(victim, (0, 0))
    (path / ".rag-contract-0123456789abcdef.tmp").symlink_to(victim)
    folder.add(new_entry(run=RUN + 1))
    assert victim.exists()


def test_the_same_entry_that_another_writer_stores_meanwhile_is_no_other_check(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, scandir = Folder(str(path)), os.scandir
    folder.add(new_entry(run=RUN + 1))

    def meanwhile(listed: Path) -> Iterator[os.DirEntry[str]]:
        (path / ENTRY_FILE).write_bytes(ENTRY.content)
        return scandir(listed)

    monkeypatch.setattr(os, "scandir", meanwhile)
    assert folder.add(ENTRY) == "exists"


# Size


def large_history(path: Path, count: int) -> list[NewEntry]:
    """Write a history of many entries by plain means, and return them."""
    entries = runs(count, hours=2)
    for entry in entries:
        file = path / entry.path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(entry.content)
    return entries


def test_the_newest_entries_of_ten_thousand_are_in_two_folders(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entries = large_history(path, 10_000)
    listed: list[str] = []
    scandir = os.scandir

    def noted(folder: Path) -> Iterator[os.DirEntry[str]]:
        listed.append(str(folder))
        return scandir(folder)

    monkeypatch.setattr(os, "scandir", noted)
    folder = Folder(str(path))
    found: list[object] = []
    for month in folder.months("docs"):
        ids = folder.ids("docs", [month])[: 20 - len(found)]
        found += folder.read("docs", ids).items()
        if len(found) == 20:
            break
    assert found == [(entry.entry.id, entry.content) for entry in reversed(entries[-20:])]
    months = [name for name in listed if re.search(r"\d{4}-\d\d$", name)]
    assert 1 <= len(months) <= 2
    assert len(listed) == len(months) + 1
    listed.clear()
    folder.add(new_entry(at=FIRST + timedelta(hours=20_000), run=RUN - 1))
    assert len([name for name in listed if name.startswith(f"{path}/")]) <= 1
