"""The pages on recording: their files about targets do what they say."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
import yaml

from ragcontract.record.events import Counts, QuestionDone
from ragcontract.record.interface import Response
from ragcontract.record.recording import reused
from ragcontract.record.watching import EventStream
from scripts.docs import block
from tests.process import rag_contract, shell, spawn
from tests.record.pages import PAGE
from tests.record.systems import asked, doc_ids, target_of


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write every file of the pages into an empty folder."""
    monkeypatch.chdir(tmp_path)
    shell(block(PAGE, "quickstart files"), cwd=Path())
    for name in ("app.py", "record.yml", "each.yml", "answer.sh", "serve.yml", "serve.py"):
        Path(name).write_text(block(PAGE, name))


@pytest.mark.parametrize("target", ["search.py:retrieve", "record.yml"])
def test_the_function_finds_documents(target: str) -> None:
    assert doc_ids(asked(target_of(Path(), target).system, "How do I log in?", top=1)) == ["doc_login"]


DOCUMENT = """
class Document:
    def __init__(self, page_content, metadata):
        self.page_content = page_content
        self.metadata = metadata


def retriever(query):
    return [{}]
"""


def test_the_document_gets_the_ids_that_the_page_shows(tmp_path: Path) -> None:
    Path("my_app.py").write_text(DOCUMENT.format(block(PAGE, "document").strip()))
    table = PAGE.partition("<!-- tested: doc ids -->")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| `rag-contract (.+)` \| `(.+)` \|$", table, re.MULTILINE)
    assert len(rows) == 2
    for command, doc_id in rows:
        assert spawn(*command.split(), cwd=tmp_path).code == 0
        for row in map(json.loads, Path("current_run.jsonl").read_text().splitlines()):
            assert [result["doc_id"] for result in row["results"]] == [doc_id]


def test_the_file_states_versions() -> None:
    versions = target_of(Path(), "record.yml").system.versions()
    assert versions == {"embedding_model": "all-MiniLM-L6-v2", "index_version": "2026-11-01"}


@pytest.mark.parametrize("isolate", [False, True])
def test_the_object_answers(isolate: bool) -> None:
    system = target_of(Path(), "app.py:App", isolate=isolate).system
    system.setup()
    assert system.versions() == {"index_version": "7"}
    system.teardown()
    system = target_of(Path(), "app.py:App", isolate=isolate).system
    found = msgspec.structs.asdict(asked(system))
    assert (found["results"][0]["doc_id"], found["response"], found["tool_calls"]) == ("doc_refunds", "30 days.", [])


@pytest.mark.parametrize(("file", "found"), [("each.yml", "doc_main"), ("serve.yml", "doc_refunds")])
def test_the_commands_answer(file: str, found: str) -> None:
    assert doc_ids(asked(target_of(Path(), file).system)) == [found]


@pytest.mark.parametrize("name", ["record.yml", "each.yml", "serve.yml"])
def test_the_files_fit_the_schema_that_is_printed(name: str) -> None:
    schema = json.loads(rag_contract("schema", "record").out)
    validator = jsonschema.Draft202012Validator(schema)
    value = yaml.safe_load(Path(name).read_text())
    assert validator.is_valid(value)
    assert not validator.is_valid({**value, "pyhton": {}})
    assert not validator.is_valid({"versions": {"index_version": "7"}})
    assert not validator.is_valid({"python": {"object": "a:b"}, "command": {"each": ["a"]}})
    assert not validator.is_valid({"command": {"each": []}})


def test_the_line_about_reused_answers_is_what_is_written() -> None:
    assert block(PAGE, "reused") == f"warning: {reused(Counts(total=40, kept=39, now=0))}\n"


def test_the_event_is_what_is_written(tmp_path: Path) -> None:
    shown: dict[str, Any] = json.loads(block(PAGE, "event"))
    path = tmp_path / "events.jsonl"
    stream = EventStream(str(path), warn=print, clock=lambda: datetime(2026, 11, 22, 11, 30, tzinfo=UTC))
    response = Response(results=[{"doc_id": "doc_refunds"}])
    stream(QuestionDone(query_id="refund_window", repeat=1, attempts=2, ms=12.3, response=response))
    stream.close()
    assert {**json.loads(path.read_text()), "seq": 3} == shown
