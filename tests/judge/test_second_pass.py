"""Each row of the table of docs/guides/judge.md on fitz-gov's second pass, over real sockets."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ragcontract.judge.chat_model import USUAL_CONTEXT
from tests.builders import golden, write_jsonl
from tests.judge_characters import honest
from tests.judge_server import JudgeServer
from tests.process import Ended, rag_contract, spawn
from tests.runner import ROOT

PAGE = (ROOT / "docs" / "guides" / "judge.md").read_text()
TABLE = PAGE.partition("| fitz-gov 4.1.0 | here |\n")[2].partition("\n\n")[0]
CONTEXTS = ["Returns are accepted within 30 days.", "The basic plan costs $20."]
DENIED, ASSERTED, SUPPORTED = "No text says that it costs $499.", "It costs $499.", "The basic plan costs $20."


def workspace(folder: Path, answer: str = DENIED) -> Path:
    query = golden("q1", query="What does it cost?", forbidden_claims=[r"\$\d+"])
    write_jsonl(folder / "golden.jsonl", [query])
    row = {"query_id": "q1", "results": [], "retrieved_contexts": CONTEXTS, "response": answer}
    write_jsonl(folder / "current_run.jsonl", [row])
    return folder


def judge(folder: Path, server: JudgeServer | str, *argv: str, model: str = "qwen2.5:14b") -> Ended:
    url = server if isinstance(server, str) else server.origin
    nothing = {"OPENAI_API_KEY": "", "RAG_CONTRACT_JUDGE_KEY": "", "RAG_CONTRACT_JUDGE_URL": ""}
    environ = {**nothing, "XDG_STATE_HOME": str(folder.parent / f"{folder.name} state")}
    options = (
        "--task",
        "confirmation",
        "--model",
        model,
        "--judge-url",
        url,
        "--judge-api",
        "ollama",
        "--retries",
        "0",
    )
    return spawn("judge", *options, *argv, cwd=folder, environ=environ)


def judged(folder: Path) -> dict[str, Any]:
    (line,) = (folder / "judgments.jsonl").read_text().splitlines()
    found: dict[str, Any] = json.loads(line)
    return found


def test_every_option_of_fitz_gov_has_its_row() -> None:
    options = {"llm_validation", "llm_model", "llm_base_url", "timeout", "temperature"}
    options |= {"cache_ttl_days", "cache_enabled", "cache_dir", "on_error"}
    assert {name for name in options if f"`{name}" not in TABLE} == set()


def test_without_a_judge_what_patterns_find_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(workspace(tmp_path))
    assert rag_contract("check").code == 1


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        (DENIED, "denies_or_reports_absence"),
        (ASSERTED, "asserts_unsupported"),
        (SUPPORTED, "supported_by_context"),
    ],
)
def test_what_is_flagged_is_judged_by_all_contexts(tmp_path: Path, answer: str, verdict: str) -> None:
    with JudgeServer() as server:
        assert judge(workspace(tmp_path, answer), server).code == 0
        assert [context["text"] for context in _asked(server)["contexts"]] == CONTEXTS
    assert judged(tmp_path)["verdict"] == verdict


def test_an_answer_in_which_nothing_is_flagged_is_not_sent(tmp_path: Path) -> None:
    with JudgeServer() as server:
        assert judge(workspace(tmp_path, "It is free."), server).code == 0
        assert server.came == []


def test_another_model_is_asked_anew_by_its_whole_name(tmp_path: Path) -> None:
    with JudgeServer() as server:
        for model in ("qwen2.5:14b", "qwen2.5:7b", "qwen2.5:14b"):
            assert judge(workspace(tmp_path), server, model=model).code == 0
        assert [came.body["model"] for came in server.came] == ["qwen2.5:14b", "qwen2.5:7b"]


def test_ollama_is_asked_over_its_own_api_with_room_for_all_texts(tmp_path: Path) -> None:
    with JudgeServer() as server:
        judge(workspace(tmp_path), server)
        (came,) = server.came
    assert came.path == "/api/chat"
    assert came.body["options"]["temperature"] == 0
    assert 2048 < came.body["options"]["num_ctx"] <= USUAL_CONTEXT


def test_what_is_asserted_is_asked_again_and_only_that(tmp_path: Path) -> None:
    with JudgeServer() as server:
        judge(workspace(tmp_path, ASSERTED), server)
        assert [came.body["options"]["temperature"] for came in server.came] == [0, 0.7]
    assert judged(tmp_path)["votes"] == ["asserts_unsupported"] * 2
    with JudgeServer() as server:
        judge(tmp_path, server, "--votes", "1")
        assert len(server.came) == 1


def test_a_slow_model_is_given_up_after_the_timeout(tmp_path: Path) -> None:
    with JudgeServer(seconds=20) as server:
        ended = judge(workspace(tmp_path), server, "--timeout", "0.2")
    assert (ended.code, "failed: 1, because there was no reply" in ended.err) == (2, True)


def test_a_judgment_is_reused_for_seven_days(tmp_path: Path) -> None:
    with JudgeServer() as server:
        judge(workspace(tmp_path), server)
        for days, calls in ((0, 1), (6.9, 1), (7.1, 2), (-1, 3)):
            at = (datetime.now(UTC) - timedelta(days=days)).replace(microsecond=0)
            write_jsonl(
                tmp_path / "judgments.jsonl", [{**judged(tmp_path), "at": at.isoformat().replace("+00:00", "Z")}]
            )
            assert judge(tmp_path, server).code == 0
            assert len(server.came) == calls
        judge(tmp_path, server, "--refresh")
        assert len(server.came) == calls + 1
        judge(tmp_path, server, "--judgments", "other.jsonl")
        assert len(server.came) == calls + 2


@pytest.mark.parametrize("character", ["garbage", "two"])
def test_a_reply_that_is_not_one_json_value_is_no_verdict(tmp_path: Path, character: str) -> None:
    with JudgeServer(character) as server:
        assert judge(workspace(tmp_path), server).code == 2
    assert (judged(tmp_path)["status"], judged(tmp_path)["verdict"]) == ("unsure", None)


@pytest.mark.parametrize("word", ["true_violation", "FALSE_POSITIVE", "VIOLATION", ""])
def test_a_verdict_in_other_words_is_no_verdict(tmp_path: Path, word: str) -> None:
    def in_other_words(asked: Any) -> str:
        return honest(asked).replace("denies_or_reports_absence", word)

    with JudgeServer(in_other_words) as server:
        assert judge(workspace(tmp_path), server).code == 2
        assert len(server.came) == 2
    assert judged(tmp_path)["verdict"] is None


def test_without_a_model_the_exit_code_is_2_and_the_file_stays(tmp_path: Path) -> None:
    with JudgeServer() as server:
        judge(workspace(tmp_path), server)
    before = (tmp_path / "judgments.jsonl").read_bytes()
    ended = judge(tmp_path, "http://127.0.0.1:9", "--refresh")
    assert ended.code == 2
    assert "1 of 1 items have no verdict" in ended.err
    assert (tmp_path / "judgments.jsonl").read_bytes() == before


def test_what_is_too_long_for_the_model_is_not_sent(tmp_path: Path) -> None:
    with JudgeServer() as server:
        ended = judge(workspace(tmp_path, DENIED + " x" * 30_000), server, "--max-context", "4096")
        assert server.came == []
    assert (ended.code, "too_long" in ended.err) == (2, True)


def _asked(server: JudgeServer) -> dict[str, Any]:
    return {name.partition("_")[2]: value for name, value in json.loads(server.asked[0]).items()}
