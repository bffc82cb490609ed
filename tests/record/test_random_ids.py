"""Ids that no golden query can name are noticed: those that are random each time, and documents in place of chunks."""

from pathlib import Path

import pytest

from tests.builders import golden, run, write_jsonl
from tests.process import Ended, spawn

APP = """
import uuid
NEW = [str(uuid.uuid4()) for _ in range(9)]  # as an index that is built with each start
NAMESPACE = uuid.NAMESPACE_URL
ONE, OTHER = "3f2b8c9e-1d4a-4b6f-8a7c-5e9d0f1a2b3c", "9a8b7c6d-5e4f-4a3b-8c2d-1e0f9a8b7c6d"
class Search:
    asked = 0
    def run(self, query):
        Search.asked += 1
        return {returned}
find = Search()
"""
WARNING = (
    "warning: ids of documents look like random UUIDs, and differ from those of before (as for query 'q1'); "
    "no golden query can name them, so say with --doc-id where a result names its document\n"
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_jsonl(Path("golden.jsonl"), [golden("q1"), golden("q2")])
    return tmp_path


def record(returned: str, *argv: str) -> Ended:
    Path("app.py").write_text(APP.format(returned=returned))
    ended = spawn("record", "app.py:find", *argv, cwd=Path.cwd())
    assert ended.code == 0, ended.err
    return ended


PARTS = ['["doc-" + NEW[0]]', '[one + "_0" for one in NEW]', '["docs/" + NEW[0] + ".md#3"]', '["é" + NEW[0].upper()]']


@pytest.mark.parametrize("out", ["current_run.jsonl", "runs/run.jsonl.gz"])
@pytest.mark.parametrize(
    "returned", ["NEW", '[one.replace("-", "").upper() for one in NEW]', '["urn:uuid:" + NEW[0]]', *PARTS]
)
def test_ids_that_differ_from_those_of_the_run_that_is_overwritten_are_a_warning(returned: str, out: str) -> None:
    assert record(returned, "--out", out).err == ""
    assert record(returned, "--out", out).err == WARNING


def test_ids_that_differ_between_rounds_are_a_warning() -> None:
    assert record("NEW", "--repeats", "2").err == ""
    Path("current_run.jsonl").unlink()
    assert record("[str(uuid.uuid4()), 'other']", "--repeats", "2").err == WARNING


@pytest.mark.parametrize(
    "returned",
    [
        "['a', 'b'][Search.asked % 2 :]",
        "[str(uuid.uuid5(NAMESPACE, NEW[0]))]",
        "[ONE, OTHER][Search.asked % 2 :]",
        "[str(uuid.uuid4())] if 'q1' in query else [ONE]",
        "[]",
        "['3f2b8c9e-1d4a-4b6f-8a7c']",
        "['doc-' + ONE]",
        "['sha256:' + ''.join(NEW[:2]).replace('-', '')]",
    ],
)
def test_other_ids_are_none(returned: str) -> None:
    assert record(returned, "--repeats", "2").err == ""
    assert record(returned, "--repeats", "2").err == ""


@pytest.mark.parametrize("before", [b"\0\xff", b'{}\n[]\n{"query_id": 7, "results": 8}\n', b""])
def test_what_is_overwritten_need_not_be_a_run(before: bytes) -> None:
    Path("current_run.jsonl").write_bytes(before)
    assert record("NEW").err == ""


def test_a_run_of_other_queries_says_nothing() -> None:
    write_jsonl(Path("current_run.jsonl"), [run("q9", "3f2b8c9e-1d4a-4b6f-8a7c-5e9d0f1a2b3c")])
    assert record("NEW").err == ""


CHUNKS = """
class Chunk:
    def __init__(self, name, file):
        self.id, self.page_content, self.metadata = name, "text", {"source": file, "section": {"name": name}}
def find(query):
    return [Chunk("guide#start", "guide.md"), Chunk("guide#end", "guide.md")]
"""


def test_golden_queries_that_name_chunks_are_a_warning_where_documents_are_recorded() -> None:
    write_jsonl(Path("golden.jsonl"), [golden("q1", "guide#end"), golden("q2", "TODO")])
    Path("app.py").write_text(CHUNKS)
    ended = spawn("record", "app.py:find", cwd=Path.cwd())
    assert ended.err == (
        "warning: the golden queries name ids of chunks ('guide#end'), and the recorded doc_id is 'guide.md'; "
        "return these as doc_id (`--doc-id chunk_id` if a framework makes the results), or name documents\n"
    )
    for expression in ("id", "chunk_id", "metadata.section.name"):
        ended = spawn("record", "app.py:find", "--doc-id", expression, "--fresh", cwd=Path.cwd())
        assert (ended.code, ended.err) == (0, "")
        assert '"doc_id":"guide#end"' in Path("current_run.jsonl").read_text()
    ended = spawn("record", "app.py:find", "--doc-id", "metadata.source.name", "--fresh", cwd=Path.cwd())
    assert (ended.code, "names no document under metadata.source.name" in ended.err) == (2, True)


def test_a_golden_file_that_names_any_recorded_document_names_documents() -> None:
    write_jsonl(Path("golden.jsonl"), [golden("q1", "guide#end", "guide.md"), golden("q2", "other")])
    Path("app.py").write_text(CHUNKS)
    assert spawn("record", "app.py:find", cwd=Path.cwd()).err == ""


NODES = """
class Node:
    def __init__(self, name):
        self.node_id, self.ref_doc_id, self.metadata, self.text = name, "guide.md", {}, "text"
class Found:
    def __init__(self, name):
        self.node, self.score = Node(name), 0.5
def find(query):
    return [Found("n1"), Found("n2")]
"""


def test_the_ids_of_nodes_can_be_recorded_in_place_of_their_documents() -> None:
    write_jsonl(Path("golden.jsonl"), [golden("q1", "n2")])
    Path("app.py").write_text(NODES)
    assert "the recorded doc_id is 'guide.md'" in spawn("record", "app.py:find", cwd=Path.cwd()).err
    ended = spawn("record", "app.py:find", "--doc-id", "chunk_id", "--fresh", cwd=Path.cwd())
    assert (ended.code, ended.err) == (0, "")
    assert '"doc_id":"n2"' in Path("current_run.jsonl").read_text()


def test_a_result_that_names_its_chunk_keeps_that_name() -> None:
    write_jsonl(Path("golden.jsonl"), [golden("q1", "ch1")])
    Path("app.py").write_text(
        "def find(query):\n    return [{'id': 'c1', 'chunk_id': 'ch1', 'metadata': {'source': 's1'}, 'text': 't'}]\n"
    )
    ended = spawn("record", "app.py:find", "--doc-id", "chunk_id", cwd=Path.cwd())
    assert (ended.code, ended.err) == (0, "")
    assert '"doc_id":"ch1"' in Path("current_run.jsonl").read_text()
