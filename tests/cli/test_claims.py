"""``rag-contract claims`` as users meet it; the model is the stand-in, which takes each sentence for a claim."""

import gzip
import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

from tests.builders import golden, write_jsonl
from tests.judge_characters import CHARACTERS
from tests.judge_server import Fault, JudgeServer
from tests.process import COMMAND, Ended, files_in, spawn

REFERENCE = "Refunds take five days. Returns are free."


def claims(folder: Path, server: JudgeServer, *argv: str) -> Ended:
    given = {"XDG_STATE_HOME": str(folder.parent / "state"), "OPENAI_API_KEY": "", "RAG_CONTRACT_JUDGE_KEY": ""}
    options = ("--model", "toy", "--judge-url", server.openai, *argv)
    return spawn("claims", *options, cwd=folder, environ=given)


def rows(folder: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (folder / "golden.jsonl").read_text().splitlines()]


def test_each_reference_is_split_into_its_claims(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "golden.jsonl", [golden(f"q{at}", reference=REFERENCE) for at in range(3)])
    with JudgeServer() as server:
        ended = claims(tmp_path, server)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith("3 calls, ")
    assert ended.out.endswith("wrote 6 claims of 3 references into golden.jsonl; read them\n")
    assert [row["reference_claims"] for row in rows(tmp_path)] == [["Refunds take five days.", "Returns are free."]] * 3
    assert list(files_in(tmp_path)) == ["golden.jsonl"]


def test_everything_else_stays_as_it_is_byte_for_byte(tmp_path: Path) -> None:
    path = tmp_path / "golden.jsonl"
    kept = b'{"id":"a","query":"?",   "relevant_doc_ids":["d"] }\n\n{"id": "b", "query": "?", "reference_claims": ["x"]'
    path.write_bytes(kept + b', "reference": "x"}\n{"id":"c","query":"?","reference":"Ol\xc3\xa1 mundo."}\n')
    with JudgeServer() as server:
        assert claims(tmp_path, server).code == 0
    line = '{"id":"c","query":"?","reference":"Olá mundo.","reference_claims":["Olá mundo."]}\n'
    assert path.read_bytes() == kept + b', "reference": "x"}\n' + line.encode()


def test_the_model_is_the_one_that_the_configuration_names(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "golden.jsonl", [golden("q1", reference=REFERENCE)])
    (tmp_path / "ragcontract.yml").write_text("judge: {model: named}\n")
    with JudgeServer() as server:
        assert spawn("claims", "--judge-url", server.openai, cwd=tmp_path).code == 0
    assert [came.body["model"] for came in server.came] == ["named"]


def test_where_there_is_nothing_to_split_nothing_is_asked(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "golden.jsonl", [golden()])
    with JudgeServer() as server:
        ended = claims(tmp_path, server)
    assert ended == (0, "golden.jsonl: no reference without reference_claims\n", "")
    assert server.came == []


def test_a_dry_run_says_what_it_would_cost(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "golden.jsonl", [golden(reference=REFERENCE)])
    before = files_in(tmp_path)
    with JudgeServer() as server:
        ended = claims(tmp_path, server, "--dry-run")
    assert ended.out.startswith("1 reference to split: 1 call, about ")
    assert (files_in(tmp_path), server.came) == (before, [])


def test_a_reference_that_is_not_split_is_exit_code_2_and_the_others_are_written(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "golden.jsonl", [golden(f"q{at}", reference=REFERENCE) for at in range(4)])
    with JudgeServer() as server:
        ended = claims(tmp_path, server, "--max-calls", "3")
        assert ended.code == 2
        assert "error: golden.jsonl: 1 reference not split; the same command tries again" in ended.err
        assert "error: budget: 3 calls were made" in ended.err
        assert sum("reference_claims" in row for row in rows(tmp_path)) == 3
        assert claims(tmp_path, server).out.startswith("1 call, ")
    assert all("reference_claims" in row for row in rows(tmp_path))


def test_a_judge_that_talks_is_told_apart_from_claims(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "golden.jsonl", [golden(reference=REFERENCE)])
    before = files_in(tmp_path)
    with JudgeServer("garbage") as server:
        ended = claims(tmp_path, server)
    assert ended.code == 2
    assert "query 'q1': unsure: The last reply " in ended.err
    assert files_in(tmp_path) == before


def test_a_key_that_is_refused_ends_it(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "golden.jsonl", [golden(f"q{at}", reference=REFERENCE) for at in range(40)])
    with JudgeServer(faults=[Fault(status=401)] * 40) as server:
        ended = claims(tmp_path, server)
    assert ended.code == 2
    assert "answered 401" in ended.err
    assert len(server.came) == 1


def test_claims_are_written_into_one_file(tmp_path: Path) -> None:
    with JudgeServer() as server:
        assert "name one" in claims(tmp_path, server, "--golden", "a.jsonl", "b.jsonl").err


def test_claims_of_an_odd_file_are_added_and_nothing_else_changes(tmp_path: Path) -> None:
    path = tmp_path / "golden.jsonl"
    lines = [
        b'\xef\xbb\xbf{"mine": {"b": 1.50}, "reference": "It is free.", "id": 7, "query": "\\u00e9\\/"}\r\n',
        b"\r\n",
        b'{"id":"b","query":"?","reference":"It is free.","reference_claims":null,"zz":12345678901234567890}\r\n',
        b'  {"id": "c", "query": "?", "relevant_doc_ids": ["d"]}  \n',
        b'{"reference": "It is free.", "query": "?", "id": "d"}',
    ]
    path.write_bytes(b"".join(lines))
    with JudgeServer() as server:
        ended = claims(tmp_path, server)
        assert (ended.code, len(server.asked)) == (0, 3), ended
        added = path.read_bytes()
        again = claims(tmp_path, server)
        assert again[:2] == (0, "golden.jsonl: no reference without reference_claims\n")
        assert [line.partition(" is not read")[0] for line in again.err.splitlines()] == [
            "warning: golden.jsonl:1: unknown field 'mine'",
            "warning: golden.jsonl:3: unknown field 'zz'",
        ]
        assert (path.read_bytes(), len(server.asked)) == (added, 3)
    split = b'["It is free."]'
    assert added.splitlines(keepends=True) == [
        lines[0].replace(b"}\r\n", b', "reference_claims": ' + split + b"}\r\n"),
        lines[1],
        lines[2].replace(b'"reference_claims":null', b'"reference_claims":' + split),
        lines[3],
        lines[4].replace(b"}", b', "reference_claims": ' + split + b"}"),
    ]


def test_a_file_that_cannot_be_edited_is_not_asked_about(tmp_path: Path) -> None:
    packed = gzip.compress(b'{"id": "a", "query": "?", "reference": "It is free."}\n')
    (tmp_path / "golden.jsonl").write_bytes(packed)
    with JudgeServer() as server:
        ended = claims(tmp_path, server)
    assert (ended.code, ended.err, server.came) == (
        2,
        "error: golden.jsonl: is gzip, which cannot be edited; unpack it first\n",
        [],
    )
    assert (tmp_path / "golden.jsonl").read_bytes() == packed


def test_a_file_that_changes_meanwhile_is_not_overwritten_and_nothing_is_asked_twice(tmp_path: Path) -> None:
    rows_before = [golden(f"q{at}", reference=REFERENCE) for at in range(2)]
    path = write_jsonl(tmp_path / "golden.jsonl", rows_before)

    def edit(ask: Any) -> str:
        write_jsonl(path, [*rows_before, golden("new")])
        return CHARACTERS["honest"](ask)

    with JudgeServer(edit) as server:
        ended = claims(tmp_path, server)
        assert (ended.code, "was changed by another program" in ended.err) == (2, True), ended
        assert rows(tmp_path) == [*rows_before, golden("new")]
        asked = len(server.asked)
        assert claims(tmp_path, server).code == 0
        assert len(server.asked) == asked
    assert [len(row.get("reference_claims", ())) for row in rows(tmp_path)] == [2, 2, 0]  # type: ignore[arg-type]


def test_after_ctrl_c_what_came_is_written(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "golden.jsonl", [golden(f"q{at}", reference=REFERENCE) for at in range(20)])
    with JudgeServer(seconds=0.2) as server:
        options = ("--model", "toy", "--judge-url", server.openai, "--concurrency", "2")
        environ = {**os.environ, "XDG_STATE_HOME": str(tmp_path.parent / "state"), "OPENAI_API_KEY": ""}
        process = subprocess.Popen([*COMMAND, "claims", *options], cwd=tmp_path, env=environ, stderr=subprocess.PIPE)
        while len(server.asked) < 5:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        process.communicate()
        assert process.returncode == 130
        written = sum("reference_claims" in row for row in rows(tmp_path))
        assert 3 <= written < 20
        assert claims(tmp_path, server).code == 0
        assert len(server.asked) <= 20 + 2  # those that were under way
    assert all("reference_claims" in row for row in rows(tmp_path))
