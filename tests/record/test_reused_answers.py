"""Answers of an earlier recording are reused only if nothing has changed that they depend on."""

import importlib
import json
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from ragcontract import InputError, record_run
from tests.builders import golden, write_jsonl
from tests.process import Ended, spawn

APP = """
import time
from pathlib import Path
HERE = Path.cwd()
{top}
def find(query):
    {inside}
    if "q4" in query and not (HERE / "up").exists():
        {then}
        raise ValueError("is down")
    return [kw.answer()]
"""
AT_ONCE = {"top": "import kw", "inside": "pass"}
LATE = {"top": "", "inside": "import kw"}
KW = "def answer(): return 'doc1'\n"
OTHER = "def answer(): return 'doc2'\n"
REUSED = "warning: 3 of 4 answers reused from an earlier recording (--fresh asks again)\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with an application of two modules, which cannot answer the last question yet."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")  # edits within a second would go unnoticed by Python
    write_jsonl(Path("golden.jsonl"), [golden(f"q{number}") for number in range(1, 5)])
    Path("app.py").write_text(APP.format(**AT_ONCE, then="pass"))
    Path("kw.py").write_text(KW)
    return tmp_path


def record(*argv: str, target: str = "app.py:find") -> Ended:
    return spawn("record", target, *argv, cwd=Path.cwd())


def found() -> list[str]:
    """Return the documents of the run."""
    return [json.loads(line)["results"][0]["doc_id"] for line in Path("current_run.jsonl").read_text().splitlines()]


def interrupted(*argv: str, **how: str) -> None:
    """Record all questions but the last, for which the application is up the next time."""
    ended = record(*argv, **how)
    assert (ended.code, "1 of 4 questions failed" in ended.err) == (2, True), ended.err
    Path("up").touch()


HOW: Sequence[tuple[str, ...]] = [(), ("--isolate",)]


@pytest.mark.parametrize("how", HOW, ids=["here", "isolated"])
@pytest.mark.parametrize("imports", [AT_ONCE, LATE], ids=["at once", "late"])
def test_a_module_that_has_changed_is_named(imports: dict[str, str], how: tuple[str, ...]) -> None:
    Path("app.py").write_text(APP.format(**imports, then="pass"))
    interrupted(*how)
    Path("kw.py").write_text(OTHER)
    for further in ((), ("--plan",)):
        ended = record(*how, *further)
        assert (ended.code, ended.out) == (2, "")
        has = "has 3 answers of a recording that did not end, but the module kw (kw.py) has changed"
        assert ended.err == (
            f"error: .current_run.jsonl.journal: {has}; undo that to go on, or throw them away with --fresh\n"
        )
    assert record(*how, "--fresh").err == ""
    assert found() == ["doc2"] * 4


@pytest.mark.parametrize("how", HOW, ids=["here", "isolated"])
def test_without_a_change_answers_are_reused_and_that_is_said(how: tuple[str, ...]) -> None:
    interrupted(*how)
    ended = record(*how)
    assert (ended.code, ended.out, ended.err) == (0, "recorded 4 answers in current_run.jsonl\n", REUSED)


def test_a_change_that_is_undone_is_none() -> None:
    interrupted()
    Path("kw.py").write_text(OTHER)
    assert record().code == 2
    Path("kw.py").write_text(KW)
    assert (record().code, found()) == (0, ["doc1"] * 4)


@pytest.mark.parametrize("how", HOW, ids=["here", "isolated"])
def test_a_change_while_the_module_is_in_use_counts(how: tuple[str, ...]) -> None:
    """The answers are those of the module as it was imported, and not of the file as it is in the end."""
    changes = "(HERE / 'kw.py').write_text((HERE / 'other').read_text())"
    Path("app.py").write_text(APP.format(top=f"import kw\n{changes}", inside="pass", then="pass"))
    Path("other").write_text(OTHER)
    interrupted(*how)
    ended = record(*how)
    assert (ended.code, "kw.py) was changed while it was in use, or could not be read" in ended.err) == (2, True)


def test_a_module_that_is_gone_or_found_elsewhere_has_changed() -> None:
    Path("lib").mkdir()
    Path("kw.py").rename("lib/kw.py")
    top = "import sys\nsys.path.append('lib')\ntry: import kw\nexcept ImportError: pass"
    Path("app.py").write_text(APP.format(top=top, inside="pass", then="pass"))
    interrupted()
    Path("kw.py").write_text(OTHER)
    assert "but the module kw was lib/kw.py and is kw.py; undo" in record().err
    Path("kw.py").unlink()
    Path("lib/kw.py").rename("lib/kw2.py")
    assert "but the module kw (lib/kw.py) cannot be read any more; undo" in record().err
    Path("lib/kw2.py").rename("lib/kw.py")
    assert record().err == REUSED


def test_code_beside_the_project_counts_and_what_is_installed_does_not(folder: Path) -> None:
    environment = folder / "env" / "lib" / "python3" / "site-packages"
    other = folder / "env" / "share"
    for path in (environment, other, folder / "src"):
        path.mkdir(parents=True)
    (folder / "env" / "pyvenv.cfg").touch()
    (environment / "installed.py").write_text("VERSION = 1\n")
    (other / "shared.py").write_text("VERSION = 1\n")
    shutil.move("kw.py", "src/kw.py")
    paths = [str(environment), str(other), str(folder / "src")]
    Path("work").mkdir()
    shutil.move("golden.jsonl", "work/golden.jsonl")
    os.chdir("work")
    top = f"import sys\nsys.path += {paths}\nimport kw, installed, shared"
    Path("app.py").write_text(APP.format(top=top, inside="pass", then="pass"))
    interrupted()
    (environment / "installed.py").write_text("VERSION = 2\n")
    (other / "shared.py").write_text("VERSION = 2\n")
    (folder / "src" / "kw.py").write_text(OTHER)
    assert "but the module kw (../src/kw.py) has changed; undo" in record().err
    (folder / "src" / "kw.py").write_text(KW)
    assert record().err == REUSED


@pytest.mark.parametrize("how", HOW, ids=["here", "isolated"])
def test_watched_files_that_have_changed_are_named(how: tuple[str, ...]) -> None:
    Path("prompts").mkdir()
    for name in ("a.txt", "b.yml", "c.yml"):
        Path("prompts", name).write_text(name)
    watch = ("--watch", "prompts/*.txt", "prompts/[bc].yml", *how)
    interrupted(*watch)
    Path("prompts/a.txt").write_text("other")
    Path("prompts/b.yml").unlink()
    Path("prompts/new.txt").touch()
    ended = record(*watch)
    differs = "prompts/a.txt has changed, prompts/b.yml cannot be read any more, prompts/new.txt is new"
    assert f"but {differs}; undo that to go on" in ended.err
    assert "but --watch was 'prompts/*.txt prompts/[bc].yml' and is none" in record(*how).err
    Path("prompts/a.txt").write_text("a.txt")
    Path("prompts/b.yml").write_text("b.yml")
    Path("prompts/new.txt").unlink()
    assert record(*watch).err == REUSED


def test_answers_of_another_chosen_version_are_not_reused() -> None:
    interrupted("--set", "index_version=1")
    ended = record("--set", "index_version=2")
    assert (ended.code, "but --set was 'index_version=1' and is 'index_version=2'" in ended.err) == (2, True), ended
    assert record("--set", "index_version=1").err == REUSED


def test_a_watched_file_that_changes_while_it_is_in_use_ends_the_recording() -> None:
    Path("prompt.txt").write_text("a")
    then = "(HERE / 'prompt.txt').write_text('b'); time.sleep(1.5); (HERE / 'prompt.txt').write_text('a')"
    Path("app.py").write_text(APP.format(**AT_ONCE, then=then))
    ended = record("--watch", "prompt.txt")
    problem = "prompt.txt: changed while it was in use, so the answers are of two versions; ask all of them again"
    assert (ended.code, ended.err) == (2, f"error: {problem} with --fresh\n")
    Path("up").touch()
    again = record("--watch", "prompt.txt")
    assert (again.code, "prompt.txt was changed while it was in use" in again.err) == (2, True)


@pytest.mark.parametrize("how", HOW, ids=["here", "isolated"])
@pytest.mark.parametrize(
    ("change", "file"),
    [
        ("(HERE / 'prompts/a.txt').write_text('other')", "prompts/a.txt"),
        ("(HERE / 'prompts/a.txt').unlink()", "prompts/a.txt"),
        ("(HERE / 'prompts/b.txt').write_text('new')", "prompts/b.txt"),
        ("import os; os.chdir('/'); (HERE / 'prompts/b.txt').write_text('new')", "prompts/b.txt"),
    ],
)
def test_a_watched_file_that_changes_at_the_end_of_a_short_recording_is_noticed(
    change: str, file: str, how: tuple[str, ...]
) -> None:
    Path("prompts").mkdir()
    for name in ("a", "c"):
        Path(f"prompts/{name}.txt").write_text(name)
    Path("up").touch()
    Path("app.py").write_text(APP.format(top="import kw", inside=f"if 'q4' in query: {change}", then="pass"))
    ended = record("--watch", "prompts/*.txt", *how)
    assert (ended.code, f"error: {file}: changed while it was in use" in ended.err) == (2, True), ended
    assert not Path("current_run.jsonl").exists()
    again = record("--watch", "prompts/*.txt", *how)
    assert (again.code, "undo that to go on, or throw them away with --fresh" in again.err) == (2, True), again


def test_what_a_recording_writes_itself_is_no_new_file(folder: Path) -> None:
    Path("up").touch()
    (folder / "[out]").mkdir()
    (folder / "[out]/a[1].txt").write_text("a")
    (folder / "[out]/a1.txt").write_text("a")
    assert record("--watch", "[out]/a[1].txt", "[[]out]/*", "--stream-out", "[out]/stream.jsonl").code == 0


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("prompts/*.txt", "prompts/*.txt: no file matches this pattern"),
        ("prompt.txt", "prompt.txt: no such file"),
        (".", ".: is a folder"),
        ("/dev/zero", "/dev/zero: cannot be read"),
    ],
)
def test_watched_files_must_be_there(pattern: str, why: str) -> None:
    ended = record("--watch", pattern)
    assert (ended.code, ended.err.startswith(f"error: --watch: {why}")) == (2, True), ended.err


def test_a_line_that_a_disk_lost_does_not_hide_what_answers_depend_on(folder: Path) -> None:
    interrupted()
    journal = folder / ".current_run.jsonl.journal"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(b"\0\n" if line.startswith(b'{"sources"') else line for line in lines))
    Path("kw.py").write_text(OTHER)
    assert record().code == 0
    assert found() == ["doc2"] * 4


def test_from_python_a_module_counts_as_it_was_imported(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "in_python.py").write_text("import kw_in_python\ndef find(query): return kw_in_python.answer(query)\n")
    fails = "def answer(query):\n    if 'q4' in query: 1 / 0\n    return ['{}']\n"
    (folder / "kw_in_python.py").write_text(fails.format("doc1"))
    monkeypatch.syspath_prepend(str(folder))
    with pytest.raises(InputError, match="1 of 4 questions failed"):
        record_run("in_python.py:find", golden="golden.jsonl", out="run.jsonl")
    with pytest.raises(InputError, match="1 of 4 questions failed"):
        record_run("in_python.py:find", golden="golden.jsonl", out="run.jsonl")
    (folder / "kw_in_python.py").write_text(fails.format("doc2"))
    with pytest.raises(InputError, match=r"the module kw_in_python \(kw_in_python.py\) has changed"):
        record_run("in_python.py:find", golden="golden.jsonl", out="run.jsonl")
    with pytest.raises(InputError, match="1 of 4 questions failed"):
        record_run("in_python.py:find", golden="golden.jsonl", out="run.jsonl", fresh=True)
    with pytest.raises(InputError, match=r"the module kw_in_python \(kw_in_python.py\) has changed"):
        record_run("in_python.py:find", golden="golden.jsonl", out="run.jsonl")


def test_from_python_a_module_that_was_changed_after_its_import_is_of_an_unknown_version(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is written, imported and recorded in one process, as in a notebook."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.syspath_prepend(str(folder))
    code = "def find(query):\n    if 'q4' in query: 1 / 0\n    return ['{}']\n"
    for name, changed in (("same", False), ("changed", True)):
        path = folder / f"{name}_later.py"
        path.write_text(code.format("doc1"))
        module = importlib.import_module(f"{name}_later")
        if changed:
            path.write_text(code.format("another"))
        with pytest.raises(InputError, match="1 of 4 questions failed"):
            record_run(module.find, golden="golden.jsonl", out=f"{name}.jsonl")
        expected = "later.py. was changed while it was in use" if changed else "1 of 4 questions failed"
        with pytest.raises(InputError, match=expected):
            record_run(module.find, golden="golden.jsonl", out=f"{name}.jsonl")
        sys.modules.pop(f"{name}_later")


def test_modules_of_another_checkout_of_the_project_are_a_warning(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for side in ("base", "head"):
        package = folder / side / "src" / "shop"
        package.mkdir(parents=True)
        (folder / side / ".git").mkdir()
        (package / "__init__.py").write_text("def answer(): return 'doc1'\n")
        (folder / side / "search.py").write_text("import shop\ndef find(query): return [shop.answer()]\n")
        shutil.copy("golden.jsonl", side)
    monkeypatch.setenv("PYTHONPATH", str(folder / "head" / "src"))
    ended = {side: spawn("record", "search.py:find", cwd=folder / side) for side in ("base", "head")}
    assert [one.code for one in ended.values()] == [0, 0]
    assert "1 file of another checkout of this repository" in ended["base"].err
    assert "../head/src/shop/__init__.py;" in ended["base"].err
    assert ended["head"].err == ""
    shutil.rmtree(folder / "base" / "src")  # another project, which the base does not have
    assert spawn("record", "search.py:find", cwd=folder / "base").err == ""
