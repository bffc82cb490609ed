"""Code that changes the current folder moves none of the files that a recording reads and writes."""

import json
import os
from pathlib import Path

import pytest

from ragcontract import RunWriter, check, record_run
from tests.builders import golden, write_jsonl
from tests.process import Ended, files_in, rag_contract, spawn

CODE = {
    "when it is imported": "os.chdir('elsewhere')\ndef find(query): return [answer()]",
    "when it is made": "class find:\n"
    "    def __init__(self): os.chdir('elsewhere')\n"
    "    def run(self, query): return [answer()]",
    "when it is set up": "class Find:\n"
    "    def setup(self): os.chdir('elsewhere')\n"
    "    def run(self, query): return [answer()]\nfind = Find()",
    "in each call": "def find(query):\n    os.chdir(HERE / 'elsewhere')\n    return [answer()]",
    "when it is torn down": "class Find:\n"
    "    def run(self, query): return [answer()]\n"
    "    def teardown(self): os.chdir('elsewhere')\nfind = Find()",
}
HEAD = """
import os
from pathlib import Path
HERE = Path.cwd()
def answer():
    from kw import answer
    return answer()
"""
OUTPUTS = ("--out", "runs/new.jsonl", "--details", "details.json", "--stream-out", "events.jsonl")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder whose run of before is good, and another one into which code may go."""
    (tmp_path / "work" / "elsewhere").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "work")
    write_jsonl(Path("golden.jsonl"), [golden("q1", "doc1")])
    write_jsonl(Path("current_run.jsonl"), [{"query_id": "q1", "results": [{"doc_id": "doc1"}]}])
    write_jsonl(Path("elsewhere/golden.jsonl"), [golden("q9", "doc1")])
    Path("ragcontract.yml").write_text("minimums: {recall_at_k: 1}\n")
    Path("kw.py").write_text("def answer(): return 'other'\n")
    Path("elsewhere/kw.py").write_text("def answer(): return 'doc1'\n")
    return Path.cwd()


def record(code: str, *argv: str) -> Ended:
    """Record code as a process of its own, whose current folder may change."""
    Path("app.py").write_text(f"{HEAD}{code}\n")
    return spawn("record", "app.py:find", *argv, cwd=Path.cwd())


@pytest.mark.parametrize("how", [(), ("--isolate",)], ids=["here", "isolated"])
@pytest.mark.parametrize("code", CODE.values(), ids=list(CODE))
def test_the_run_is_where_it_was_wanted(code: str, how: tuple[str, ...], folder: Path) -> None:
    before = files_in(folder / "elsewhere")
    ended = record(code, *how)
    assert (ended.code, ended.out, ended.err) == (0, "recorded 1 answer in current_run.jsonl\n", "")
    assert "other" in Path("current_run.jsonl").read_text()
    assert rag_contract("check").code == 1
    assert {name for name in files_in(folder / "elsewhere") if "pyc" not in name} == set(before)
    assert not Path(".current_run.jsonl.journal").exists()


@pytest.mark.parametrize("code", CODE.values(), ids=list(CODE))
def test_all_other_files_are_where_they_were_wanted(code: str, folder: Path) -> None:
    ended = record(code, *OUTPUTS)
    assert (ended.code, ended.out) == (0, "recorded 1 answer in runs/new.jsonl\n")
    assert json.loads(Path("details.json").read_text())["written"] is True
    assert '"event":"end"' in Path("events.jsonl").read_text()
    assert len(Path("runs/new.jsonl").read_text().splitlines()) == 1
    assert sorted(os.listdir("runs")) == ["new.jsonl"]  # noqa: PTH208
    assert "new.jsonl" not in "".join(files_in(folder / "elsewhere"))


def test_a_recording_that_ends_early_goes_on() -> None:
    write_jsonl(Path("golden.jsonl"), [golden("q1", "doc1"), golden("q2", "doc1")])
    code = (
        "os.chdir('elsewhere')\n"
        "def find(query):\n"
        "    with open(HERE / 'asked', 'a') as file: file.write(query)\n"
        "    return ['doc1'] if 'q1' in query or (HERE / 'up').exists() else 1 / 0"
    )
    ended = record(code)
    assert ended.code == 2
    assert "the others are in .current_run.jsonl.journal, and the same command" in ended.err
    Path("up").touch()
    assert record(code).code == 0
    assert Path("asked").read_text() == "What about q1?What about q2?What about q2?"
    assert rag_contract("check").code == 0


def test_what_has_changed_in_the_target_is_still_noticed() -> None:
    code = "os.chdir('elsewhere')\ndef find(query, attempt): return ['doc1'] if 'q1' in query else 1 / 0"
    write_jsonl(Path("golden.jsonl"), [golden("q1", "doc1"), golden("q2", "doc1")])
    assert record(code).code == 2
    ended = record(code.replace("doc1", "doc2"))
    assert ended.code == 2
    assert "but the content of the target has changed" in ended.err


def test_a_file_of_a_target_may_be_elsewhere_and_its_code_go_elsewhere_still() -> None:
    Path("rag").mkdir()
    Path("rag/app.py").write_text(f"{HEAD}os.chdir('elsewhere')\ndef find(query): return [answer()]\n")
    Path("rag/record.yml").write_text("python: {object: 'app.py:find'}")
    assert spawn("record", "rag/record.yml", *OUTPUTS, cwd=Path.cwd()).code == 0
    assert "other" in Path("runs/new.jsonl").read_text()


def test_messages_name_files_as_they_were_typed() -> None:
    Path("runs").touch()
    ended = record("os.chdir('elsewhere')\ndef find(query): return ['doc1']", "--out", "./runs/new.jsonl")
    assert ended.err == "error: ./runs/new.jsonl: cannot be written: " + f"{Path.cwd()}/runs is a file, not a folder\n"
    taken = "os.chdir('elsewhere')\n    (HERE / 'new.jsonl').mkdir()"
    ended = record(f"def find(query):\n    {taken}\n    return ['doc1']", "--out", "./new.jsonl")
    assert (ended.code, ended.err) == (2, "error: ./new.jsonl: is a folder; name a file in it\n")


def test_a_run_from_python_is_where_it_was_wanted(folder: Path) -> None:
    def find(_query: str) -> list[str]:
        os.chdir(folder / "elsewhere")
        return ["doc2"]

    recording = record_run(find, golden="golden.jsonl", out="current_run.jsonl")
    assert recording.rows == str(folder / "current_run.jsonl")
    config = folder / "ragcontract.yml"
    assert check(golden=folder / "golden.jsonl", run=str(recording.rows), config=config).verdict == "fail"


def test_a_writer_writes_where_it_was_made_for(folder: Path) -> None:
    writer = RunWriter("new.jsonl")
    os.chdir("elsewhere")
    with writer:
        writer.write("q1", ["doc1"])
    assert (folder / "new.jsonl").is_file()


def test_a_folder_that_was_deleted_is_an_input_that_cannot_be_read(folder: Path) -> None:
    (folder / "gone").mkdir()
    os.chdir("gone")
    (folder / "gone").rmdir()
    ended = rag_contract("record", "app.py:find", "--golden", str(folder / "golden.jsonl"))
    assert ended.code == 2
