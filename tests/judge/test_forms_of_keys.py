"""Each form of the judge's key that the page on security lists is in nothing that ``judge`` writes or prints."""

import json
from pathlib import Path

import pytest

from tests.builders import golden, write_jsonl
from tests.judge_characters import Asked, honest
from tests.judge_server import Fault, JudgeServer
from tests.process import files_in, spawn
from tests.secret_forms import forms_of, pieces_in

KEY = 'sk/own"for<nobody>+42=Zz~and/more&'
FORMS = [form for forms in forms_of(KEY).values() for form in forms]


@pytest.mark.parametrize("status", [200, 400])
@pytest.mark.parametrize("form", dict.fromkeys(FORMS))
def test_no_piece_of_a_key_that_a_server_echoes_is_printed_or_written(form: str, status: int, tmp_path: Path) -> None:
    write_jsonl(tmp_path / "golden.jsonl", [golden("q1", "doc1", criteria=["Says that returns are free."])])
    row = {"query_id": "q1", "results": [{"doc_id": "doc1", "text": "Returns are free."}], "response": "Free."}
    write_jsonl(tmp_path / "current_run.jsonl", [row])
    refused = Fault(status=400, content={"error": {"message": f"bad {form} here"}})
    faults = [refused] * 9 if status == 400 else []

    def echoing(asked: Asked) -> str:
        return honest(asked).replace("Its words", json.dumps(f"I saw {form} there. Its words")[1:-1])

    with JudgeServer(echoing, faults=faults, mark=form) as server:
        environ = {"RAG_CONTRACT_JUDGE_KEY": KEY, "XDG_STATE_HOME": str(tmp_path / "state")}
        options = ("--judge-url", server.openai, "--model", "m", "--retries", "0")
        ended = spawn("judge", *options, cwd=tmp_path, environ=environ)
    assert server.came, ended
    written = [data.decode(errors="replace") for data in files_in(tmp_path).values()]
    for text in (ended.out, ended.err, *written):
        assert pieces_in(text, form) == []
    assert "***" in "".join((ended.err, *written)) or "no verdict" in ended.err  # a reply that is no JSON any more
