"""The exporters of examples/recipes, with the libraries that users have: the run is one that `check` judges.

They run in an environment of their own, which `make test-recipes` sets up.
"""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.builders import golden, write_jsonl
from tests.process import spawn
from tests.recipes.elasticsearch_standin import elasticsearch
from tests.runner import ROOT

RECIPES = ROOT / "examples" / "recipes"
APPS = Path(__file__).parent / "apps"
PYTHON = ROOT / "build" / "recipes" / "bin" / "python"
QUESTIONS = {
    "refund": ("How do I get a refund, my money back?", "refund_policy"),
    "sso": ("Which plan does single sign-on need?", "sso_setup"),
    "limit": ("How many requests per minute does the API allow?", "rate_limits"),
}
CHUNKED = ("langchain", "llama_index", "chroma")

pytestmark = pytest.mark.recipes


@pytest.fixture
def address() -> Iterator[str]:
    with elasticsearch("help-2026-01") as url:
        yield url


def export(library: str, folder: Path, address: str = "") -> list[dict[str, Any]]:
    """Run the recipe beside an application and golden queries, as a user would, and return the rows of the run."""
    if not PYTHON.exists():
        (pytest.fail if os.environ.get("CI") else pytest.skip)(
            "the libraries are not installed: run `make test-recipes`"
        )
    shutil.copy(APPS / "toy_corpus.py", folder)
    shutil.copy(APPS / f"{library}_app.py", folder / "my_app.py")
    shutil.copy(RECIPES / f"{library}_export.py", folder / "export_retrieval_run.py")
    rows = [golden(name, doc_id, must_rank_at_most=1) for name, (_, doc_id) in QUESTIONS.items()]
    write_jsonl(folder / "golden.jsonl", [row | {"query": QUESTIONS[row["id"]][0]} for row in rows])
    environ = {"ELASTICSEARCH_URL": address, "HOME": str(folder)}
    ended = spawn("export_retrieval_run.py", cwd=folder, command=(str(PYTHON),), environ=environ)
    assert ended.code == 0, ended.err
    return [json.loads(line) for line in (folder / "current_run.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("library", [*CHUNKED, "elasticsearch"])
def test_the_run_holds_a_contract_over_the_documents_that_the_library_finds(
    library: str, tmp_path: Path, address: str
) -> None:
    rows = export(library, tmp_path, address)
    assert [row["query_id"] for row in rows] == list(QUESTIONS)
    assert all(row["results"] for row in rows)
    ended = spawn("check", cwd=tmp_path)
    assert ended.code == 0, ended.err + ended.out


@pytest.mark.parametrize("library", CHUNKED)
def test_a_result_names_its_document_and_beside_it_its_chunk(library: str, tmp_path: Path) -> None:
    results = [result for row in export(library, tmp_path) for result in row["results"]]
    assert {result["doc_id"] for result in results} <= {"refund_policy", "sso_setup", "rate_limits", "pricing"}
    chunks: dict[str, set[str]] = {}
    for result in results:
        chunks.setdefault(result["doc_id"], set()).add(result["chunk_id"])
    assert len(chunks["refund_policy"]) > 1, "several chunks of one document"
    assert not set(chunks) & set().union(*chunks.values())


def test_elasticsearch_gives_scores_the_duration_and_the_index(tmp_path: Path, address: str) -> None:
    for row in export("elasticsearch", tmp_path, address):
        assert (row["latency_ms"], row["index_version"]) == (3, "help-2026-01")
        scores = [result["score"] for result in row["results"]]
        assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize("library", [*CHUNKED, "elasticsearch"])
def test_an_exporter_has_about_ten_lines(library: str) -> None:
    lines = (RECIPES / f"{library}_export.py").read_text().splitlines()
    assert len([line for line in lines if line and not line.startswith('"""')]) <= 10
