"""The page on recording, for those who come from run_eval_rag: each of its flags has an equivalent, which works."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonseq.decode import JSONSeqDecoder

from ragcontract.record.target import schema
from scripts.docs import block
from tests.net.service import Reply, Service
from tests.process import rag_contract
from tests.runner import ROOT

PAGE = (ROOT / "docs" / "guides" / "record.md").read_text()
FLAGS = [
    *("root", "db", "collection", "cases", "k", "meta-field", "embed-backend", "embed-model", "device", "base-url"),
    *("timeout", "connect-timeout", "trust-env", "llm-model", "context-max-chars", "max-tokens", "temperature"),
    *("stream-out", "stream-format", "progress-every-seconds", "stream-answer-chars", "out"),
]
RETRIEVER = """
def retrieve(query, top):
    found = [{"id": "c1", "text": "Returns are accepted within 30 days.", "metadata": {"source": "returns.md"}}]
    return {"results": [{"doc_id": one["metadata"]["source"], **one, "chunk_id": one.pop("id")} for one in found][:top]}
"""
MODELS = {"data": [{"id": "bge-m3-embedding"}, {"id": "qwen-7b"}, {"id": "qwen-7b-instruct"}]}
ANSWER = {
    "model": "qwen-7b-instruct",
    "choices": [{"message": {"content": "Within 30 days."}, "finish_reason": "stop"}],
}


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    """The example's files in an empty folder, with a model that answers, and Python code in place of Chroma."""
    monkeypatch.chdir(tmp_path)
    Path("cases.jsonl").write_text(block(PAGE, "cases.jsonl"))
    Path("search.py").write_text(RETRIEVER)
    target = yaml.safe_load(block(PAGE, "run_eval_rag.yml"))
    del target["chroma"]
    with Service(Reply(content=ANSWER), at={"/v1/models": Reply(content=MODELS)}) as service:
        target["chat"]["base_url"] = f"{service.url}/v1"
        Path("run_eval_rag.yml").write_text(json.dumps({"python": {"object": "search.py:retrieve"}, **target}))
        yield service


def commands() -> list[list[str]]:
    """Return the arguments of the example's commands."""
    lines = block(PAGE, "run_eval_rag.sh").replace("\\\n", " ").splitlines()
    return [line.split()[1:] for line in lines]


def equivalents() -> dict[str, str]:
    """Return what stands for each flag in the table."""
    table = PAGE.partition("| run_eval_rag | here |")[2]
    return dict(re.findall(r"^\| `--([a-z-]+)` \| (.+) \|$", table, re.MULTILINE))


def test_every_flag_has_an_equivalent() -> None:
    assert list(equivalents()) == FLAGS


def test_every_equivalent_exists_and_is_in_the_example() -> None:
    keys = schema()["$defs"]
    example = yaml.safe_load(block(PAGE, "run_eval_rag.yml"))
    used = {argument for argv in commands() for argument in argv if argument.startswith("--")}
    helps = {name: rag_contract(name, "--help").out for name in ("record", "check")}
    for flag, here in equivalents().items():
        for option in re.findall(r"`(?:check )?(--[a-z0-9-]+)`", here):
            assert option in helps["check" if f"check {option}" in here else "record"], flag
            assert option in used or option == "--doc-id", flag
        for kind, key in re.findall(r"`(chroma|chat)\.([a-z_]+)`", here):
            assert key in keys[kind]["properties"], flag
            assert key in example[kind], flag


def test_the_file_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("run_eval_rag.yml").write_text(block(PAGE, "run_eval_rag.yml"))
    Path("cases.jsonl").write_text(block(PAGE, "cases.jsonl"))
    ended = rag_contract(*commands()[0], "--plan")
    assert (ended.code, ended.err) == (0, "")


def test_the_commands_record_and_judge(model: Service) -> None:
    recording, checking = commands()
    assert rag_contract(*recording).code == 0
    assert rag_contract(*checking).code == 0
    sent: Any = model.requests[-1].json
    assert (sent["model"], sent["max_tokens"], sent["temperature"]) == ("qwen-7b-instruct", 256, 0.0)
    report = json.loads(Path("eval_rag_report.json").read_text())
    [case] = report["data"]["cases"]
    assert (report["schema_version"], report["summary"]["overall_status_label"]) == (2, "PASS")
    assert (case["passed"], case["llm_call_ok"], case["answer"]) == (True, True, "Within 30 days.")
    assert case["context_chars"] == len("[1] source=returns.md\nReturns are accepted within 30 days.")
    assert json.loads(Path("record.json").read_text())["llm"]["model_arg"] == "auto"


def test_a_model_that_refuses_leaves_the_retrieval_and_the_details_of_its_answer(model: Service) -> None:
    model.replies = [Reply(status=400, content={"error": "no such model"})]
    recording, checking = commands()
    assert rag_contract(*recording).code == 0
    assert rag_contract(*checking).code == 1
    [case] = json.loads(Path("eval_rag_report.json").read_text())["data"]["cases"]
    assert (case["passed"], case["llm_call_ok"], case["error_detail"]["status_code"]) == (False, False, 400)
    assert "no such model" in case["error_detail"]["response_snippet"]


@pytest.mark.usefixtures("model")
def test_another_programs_parser_reads_the_stream() -> None:
    assert rag_contract(*commands()[0]).code == 0
    with Path("events.json-seq").open(encoding="utf-8", newline="") as stream:
        events = list(JSONSeqDecoder().decode(stream))
    assert [one["event"] for one in events if one["event"] != "progress"] == ["start", "case", "end"]
    [case] = [one for one in events if one["event"] == "case"]
    assert (case["query_id"], case["response"]) == ("refunds", "Within 30 days.")
