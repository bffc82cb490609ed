"""Applications that are instrumented with OpenInference, recorded as they are: rows equal those of the adapters."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ragcontract import record_run
from tests.builders import golden, write_jsonl
from tests.process import Ended, rag_contract
from tests.record.frameworks.needed import need
from tests.record.free_port import free_port

pytestmark = pytest.mark.record

QUESTIONS = {"refund": "How do I get a refund, my money back?", "sso": "Which plan does single sign-on need?"}
ROOT = Path(__file__).parents[3]
APPS = "tests.record.instrumented.apps"


@pytest.fixture(autouse=True)
def _workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need("openinference")
    monkeypatch.chdir(tmp_path)
    write_jsonl(tmp_path / "golden.jsonl", [golden(name, query=text) for name, text in QUESTIONS.items()])


@contextmanager
def served(name: str, spans_to: int) -> Iterator[int]:
    """Start the application; yields its port."""
    program = [sys.executable, "-W", "ignore", "-m", "tests.record.instrumented.service", name, "0"]
    environ = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{spans_to}",
        "OTEL_BSP_SCHEDULE_DELAY": "50",
    }
    process = subprocess.Popen(program, cwd=ROOT, env=environ, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield int(process.stdout.readline().split()[1])
    finally:
        process.kill()
        process.communicate()


def recorded(name: str, **traces: Any) -> list[dict[str, Any]]:
    """Record the application over HTTP, with its spans, and return the rows."""
    listen = free_port()
    with served(name, listen) as port:
        target = {
            "http": {
                "url": f"http://127.0.0.1:{port}/",
                "json": {"question": "{query}"},
                "response": {"answer": "answer"},
            },
            "traces": {"listen": f"127.0.0.1:{listen}", "wait": 60, **traces},
        }
        Path("record.yml").write_text(json.dumps(target))
        ended = rag_contract("record", "record.yml", "--timeout", "100", "--fresh")
    assert ended == Ended(0, "recorded 2 answers in current_run.jsonl\n", ended.err)
    return [json.loads(line) for line in Path("current_run.jsonl").read_text().splitlines()]


def by_adapter(kind: str, name: str) -> list[dict[str, Any]]:
    """Return the rows of the framework's own target."""
    Path("adapter.yml").write_text(json.dumps({kind: {"object": f"{APPS}:{name}"}}))
    rows = record_run("adapter.yml", golden=Path("golden.jsonl")).rows
    assert isinstance(rows, dict)
    return [{"query_id": query_id, **row} for query_id, row in rows.items()]


def without(rows: list[dict[str, Any]], *names: str) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if name not in names} for row in rows]


@pytest.mark.parametrize("name", ["chain", "agent"])
def test_an_application_of_langchain_has_the_rows_of_the_adapter(name: str) -> None:
    rows, adapters = recorded(name), by_adapter("langchain", name)
    # A model that is no service's has a name in what it returns, and none in its spans.
    assert without(rows, "latency_ms") == without(adapters, "latency_ms", "llm_model")
    assert rows[0]["results"][0]["doc_id"] == "refund_policy"
    assert [call["name"] for call in rows[0]["tool_calls"]] == (["search", "add"] if name == "agent" else [])


def test_an_application_of_llamaindex_has_the_rows_of_the_adapter() -> None:
    rows, adapters = recorded("engine"), by_adapter("llamaindex", "engine")
    assert without(rows, "latency_ms", "tool_calls") == without(adapters, "latency_ms")
    assert [row["tool_calls"] for row in rows] == [[], []]  # spans show that no tools were called; an engine does not
    assert rows[1]["results"][0]["doc_id"] == "sso_setup"
    assert rows[1]["embedding_model"] == "toy-embedding-2"
