"""The page on recording: its files about frameworks do what it says, with the frameworks themselves."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from scripts.docs import block
from tests.builders import golden, write_jsonl
from tests.process import Ended, rag_contract
from tests.recipes.apps.toy_corpus import CHUNKS, embed
from tests.record.frameworks.needed import need
from tests.record.frameworks.toy_store import fill, opened
from tests.runner import ROOT

pytestmark = pytest.mark.record

PAGE = (ROOT / "docs" / "guides" / "record.md").read_text()
QUESTIONS = {
    "refund": ("How do I get a refund, my money back?", "refund_policy"),
    "sso": ("How do I upload the metadata of our identity provider?", "sso_setup"),
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the current folder, with golden queries."""
    need("chromadb")
    monkeypatch.chdir(tmp_path)
    rows = [golden(name, doc_id, must_rank_at_most=1) for name, (_, doc_id) in QUESTIONS.items()]
    write_jsonl(tmp_path / "golden.jsonl", [row | {"query": QUESTIONS[row["id"]][0]} for row in rows])
    return tmp_path


def recorded(target: str) -> list[dict[str, Any]]:
    """Record a file of the page, let `check` judge the run, and return its rows."""
    Path(target).write_text(block(PAGE, target))
    ended = rag_contract("record", target)
    assert ended.code == 0, ended.err
    judged = rag_contract("check", "--k", "5")
    assert judged.code == 0, judged.out + judged.err
    return rows()


def rows() -> list[dict[str, Any]]:
    """Return the rows of the run."""
    return [json.loads(line) for line in Path("current_run.jsonl").read_text().splitlines()]


def app(folder: Path, name: str, attribute: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put an application into the folder."""
    monkeypatch.delitem(__import__("sys").modules, "my_app", raising=False)
    (folder / "my_app.py").write_text(f"from tests.record.frameworks.apps.{name} import {attribute}\n")


def test_an_agent_is_recorded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app(folder, "langchain_app", "agent", monkeypatch)
    from tests.record.frameworks.apps.langchain_app import agent, retriever

    for row in recorded("langchain.yml"):
        query = QUESTIONS[row["query_id"]][0]
        own = agent.invoke({"messages": [("user", query)]}, {"configurable": {"thread_id": query}})["messages"]
        assert [one["text"] for one in row["results"]] == [one.page_content for one in retriever.invoke(query)]
        assert row["response"] == own[-1].content
        assert row["tool_calls"] == [{"name": one["name"], "arguments": one["args"]} for one in own[1].tool_calls]
        assert row["llm_model"] == "toy-1"


def test_an_object_is_a_target_as_it_is(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app(folder, "langchain_app", "retriever as found", monkeypatch)
    ended = rag_contract("record", "my_app:found")
    assert ended.code == 0, ended.err
    assert [row["results"][0]["doc_id"] for row in rows()] == ["refund_policy", "sso_setup"]
    assert rows()[0]["embedding_model"] == "toy-embedding-1"


def test_a_query_engine_is_recorded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app(folder, "llamaindex_app", "query_engine as engine", monkeypatch)
    from tests.record.frameworks.apps.llamaindex_app import query_engine

    for row in recorded("llamaindex.yml"):
        own = query_engine.query(QUESTIONS[row["query_id"]][0])
        assert [(one["chunk_id"], one["score"]) for one in row["results"]] == [
            (one.node_id, one.score) for one in own.source_nodes
        ]
        assert (row["response"], row["embedding_model"]) == (own.response, "toy-embedding-2")


def test_a_collection_is_recorded(folder: Path) -> None:
    fill(opened(folder / "made").create_collection("help", metadata={"hnsw:space": "cosine"}, embedding_function=None))
    shutil.copytree(folder / "made", folder / "chroma_db")
    (folder / "embed.py").write_text(
        "from tests.recipes.apps.toy_corpus import embed as vector\n\n\n"
        "def embed(texts):\n    return [vector(text) for text in texts]\n"
    )
    for row in recorded("chroma.yml"):
        wanted = embed(QUESTIONS[row["query_id"]][0])
        products = {
            f"chunk-{number}": sum(a * b for a, b in zip(wanted, embed(text), strict=True))
            for number, (_, text) in enumerate(CHUNKS)
        }
        found = {one["chunk_id"]: one["score"] for one in row["results"]}
        assert found == pytest.approx(products, abs=1e-5)
        assert [one["score"] for one in row["results"]] == sorted(found.values(), reverse=True)
        assert row["index_version"].endswith(":6")


def test_a_wrong_model_ends_the_recording_before_the_first_question(folder: Path) -> None:
    fill(opened(folder / "made").create_collection("help", embedding_function=None))
    shutil.copytree(folder / "made", folder / "chroma_db")
    (folder / "embed.py").write_text("def embed(texts):\n    return [[1.0, 2.0] for text in texts]\n")
    Path("chroma.yml").write_text(block(PAGE, "chroma.yml"))
    ended: Ended = rag_contract("record", "chroma.yml")
    assert ended.code == 2
    assert "cannot be asked with this embedding" in ended.err
    assert not Path("current_run.jsonl").exists()
