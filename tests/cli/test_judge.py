"""``rag-contract judge`` as users meet it: exit codes, output, files; the model is the stand-in."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.builders import golden, write_jsonl
from tests.judge_server import Fault, JudgeServer
from tests.process import COMMAND, Ended, files_in, on_a_terminal, spawn

KEY = "sk-a-long-secret-0123456789"
CONTEXT = "Returns are accepted within 30 days of delivery. Refunds take five days."


CLAIMS = "reference_claims (`claims` writes them)"
PATTERNS = "forbidden_claims, forbidden_elements or must_not_contain"


def workspace(folder: Path, queries: int = 2) -> Path:
    claims = ["Refunds take five days.", "Refunds take a year."]
    write_jsonl(folder / "golden.jsonl", [golden(f"q{at}", reference_claims=claims) for at in range(queries)])
    rows = [{"query_id": f"q{at}", "results": [], "retrieved_contexts": [CONTEXT]} for at in range(queries)]
    write_jsonl(folder / "current_run.jsonl", rows)
    return folder


def environ(folder: Path, **more: str) -> dict[str, str]:
    nothing = {"OPENAI_API_KEY": "", "RAG_CONTRACT_JUDGE_KEY": "", "RAG_CONTRACT_JUDGE_URL": ""}
    return {**nothing, "XDG_STATE_HOME": str(folder.parent / f"{folder.name} state"), **more}


def judge(folder: Path, server: JudgeServer | str, *argv: str, **more: str) -> Ended:
    url = server if isinstance(server, str) else server.openai
    options = ("--model", "toy", "--judge-url", url, *argv)
    return spawn("judge", *options, cwd=folder, environ=environ(folder, **more))


def rows(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "judgments.jsonl").read_text().splitlines()]


def test_what_it_says_when_all_is_judged(tmp_path: Path) -> None:
    with JudgeServer() as server:
        ended = judge(workspace(tmp_path), server, "--price-in", "1000", "--price-out", "0")
    tokens = [sum(row[name] for row in rows(tmp_path)) for name in ("tokens_in", "tokens_out")]
    cost = f"4 calls, 0 cached, {tokens[0]:,} tokens in, {tokens[1]:,} out, {tokens[0] / 1000:.4f} USD"
    assert ended == (0, f"{cost}\njudged 4 items in judgments.jsonl\n", "")


def test_a_model_that_takes_no_temperature_is_said_to_vary(tmp_path: Path) -> None:
    with JudgeServer(refuses=["temperature", "seed", "json_schema"]) as server:
        ended = judge(workspace(tmp_path), server)
    varies = "the endpoint takes no temperature and no seed: verdicts vary more from one call to the next"
    assert (ended.code, ended.err) == (0, f"warning: {varies}\n")


def test_what_it_says_when_verdicts_lack(tmp_path: Path) -> None:
    with JudgeServer("lazy") as server:
        ended = judge(workspace(tmp_path), server)
    assert ended.code == 2
    assert "error: judgments.jsonl: 4 of 4 items have no verdict; the same command asks again" in ended.err
    assert "error: compromised: 4, because the judge failed its controls, such as: The judge failed its" in ended.err


def test_a_budget_that_is_spent_is_exit_code_2_and_the_same_command_goes_on(tmp_path: Path) -> None:
    with JudgeServer() as server:
        ended = judge(workspace(tmp_path, 5), server, "--votes", "1", "--max-calls", "3")
        assert ended.code == 2
        assert "4 of 10 items have no verdict" in ended.err
        assert "error: budget: 3 calls were made, as many as --max-calls allows" in ended.err
        assert judge(tmp_path, server, "--votes", "1").out.startswith("2 calls, 6 cached, ")


def test_the_key_is_in_no_output_whatever_the_server_says(tmp_path: Path) -> None:
    with JudgeServer(key="another") as server:
        ended = judge(workspace(tmp_path), server, RAG_CONTRACT_JUDGE_KEY=KEY)
    assert ended.code == 2
    assert "answered 401: wrong key: Bearer ***; is the key in RAG_CONTRACT_JUDGE_KEY (for" in ended.err
    with JudgeServer(lambda _: json.dumps({"verdicts": [{"reason": KEY}]}), key=KEY) as server:
        ended = judge(tmp_path, server, RAG_CONTRACT_JUDGE_KEY=KEY)
    assert KEY[3:12] not in ended.err + ended.out
    assert not [name for name, data in files_in(tmp_path).items() if KEY[3:12].encode() in data]


def test_the_endpoint_is_not_read_from_a_file_of_the_workspace(tmp_path: Path) -> None:
    workspace(tmp_path)
    with JudgeServer() as theirs, JudgeServer() as server:
        (tmp_path / "ragcontract.yml").write_text(f"judge:\n  base_url: {theirs.openai}\n")
        (tmp_path / ".env").write_text(f"RAG_CONTRACT_JUDGE_URL={theirs.openai}\n")
        (tmp_path / ".netrc").write_text("machine 127.0.0.1 login x password secret-word\n")
        judge(tmp_path, server, RAG_CONTRACT_JUDGE_KEY=KEY, HOME=str(tmp_path))
        assert theirs.came == []
        assert {came.headers.get("authorization") for came in server.came} <= {f"Bearer {KEY}"}


def test_the_address_may_be_in_the_environment(tmp_path: Path) -> None:
    with JudgeServer() as server:
        given = environ(tmp_path, RAG_CONTRACT_JUDGE_URL=server.openai)
        assert spawn("judge", "--model", "toy", cwd=workspace(tmp_path), environ=given).code == 0


def test_without_a_key_openai_is_not_called_and_nothing_changes(tmp_path: Path) -> None:
    before = files_in(workspace(tmp_path))
    ended = spawn("judge", "--model", "toy", cwd=tmp_path, environ=environ(tmp_path))
    assert (ended.code, ended.out) == (2, ""), "what was not asked has no cost"
    assert "4 of 4 items have no verdict" in ended.err
    assert "`check --judgments` replays the existing judgments" in ended.err
    assert ended.err.startswith("error: no_key: api.openai.com wants a key; set RAG_CONTRACT_JUDGE_KEY")
    assert files_in(tmp_path) == before


def test_a_dry_run_asks_nothing(tmp_path: Path) -> None:
    before = files_in(workspace(tmp_path))
    with JudgeServer() as server:
        ended = judge(tmp_path, server, "--dry-run")
    lines = ended.out.splitlines()
    assert lines[:3] == ["items      4; 0 are known", "to judge   4", "calls      2; up to 6 with further votes"]
    assert (server.came, files_in(tmp_path)) == ([], before)


def test_everything_that_is_wrong_is_said_at_once(tmp_path: Path) -> None:
    ended = judge(workspace(tmp_path), "nowhere", "--votes", "2", "--deadline", "soon")
    assert (ended.code, ended.out, ended.err.count("error: ")) == (2, "", 3)


def test_a_contract_in_which_nothing_is_to_be_judged_is_an_error(tmp_path: Path) -> None:
    write_jsonl(workspace(tmp_path) / "golden.jsonl", [golden()])
    ended = judge(tmp_path, "http://127.0.0.1:9")
    assert ended.code == 2
    assert "no golden query with a row in the run has anything to judge: reference_claims" in ended.err


@pytest.mark.parametrize(
    ("tasks", "wanted"),
    [
        ("", f"{CLAIMS}, criteria, or {PATTERNS}"),
        ("criteria", "criteria"),
        ("confirmation", PATTERNS),
        ("attribution criteria", f"{CLAIMS}, or criteria"),
    ],
)
def test_what_nothing_to_judge_lacks_is_that_of_the_tasks(tmp_path: Path, tasks: str, wanted: str) -> None:
    write_jsonl(workspace(tmp_path) / "golden.jsonl", [golden()])
    ended = judge(tmp_path, "http://127.0.0.1:9", *(arg for task in tasks.split() for arg in ("--task", task)))
    assert ended.err == f"error: golden.jsonl: no golden query with a row in the run has anything to judge: {wanted}\n"


def test_a_folder_that_is_not_there_is_refused_before_anything_is_asked(tmp_path: Path) -> None:
    before = files_in(workspace(tmp_path))
    with JudgeServer() as server:
        ended = judge(tmp_path, server, "--judgments", "no/such/judgments.jsonl")
        assert (ended.code, ended.out, server.came) == (2, "", [])
        assert "no/such/judgments.jsonl: there is no folder no/such, and everything would be judged" in ended.err
        assert files_in(tmp_path) == before
        (tmp_path / "no" / "such").mkdir(parents=True)
        assert judge(tmp_path, server, "--judgments", "no/such/judgments.jsonl").code == 0


@pytest.mark.parametrize(
    "name", ["golden.jsonl", "ragcontract.yml", "current_run.jsonl", "labels.jsonl", "other.jsonl"]
)
def test_the_judgments_overwrite_nothing_else(tmp_path: Path, name: str) -> None:
    (workspace(tmp_path) / "ragcontract.yml").write_text("k: 5\n")
    for other in ("labels.jsonl", "other.jsonl"):
        (tmp_path / other).write_bytes((tmp_path / "golden.jsonl").read_bytes())
    before = files_in(tmp_path)
    ended = judge(tmp_path, "http://127.0.0.1:9", "--judgments", name)
    assert (ended.code, files_in(tmp_path)) == (2, before), ended


def test_the_judgments_may_not_overwrite_an_input(tmp_path: Path) -> None:
    ended = judge(workspace(tmp_path), "http://127.0.0.1:9", "--judgments", "golden.jsonl")
    assert "golden.jsonl: is an input" in ended.err


def test_the_judgments_are_kept_in_a_file(tmp_path: Path) -> None:
    ended = judge(workspace(tmp_path), "http://127.0.0.1:9", "--judgments", "/dev/null")
    assert (ended.code, ended.err) == (2, "error: /dev/null: is not a file, so it cannot hold judgments\n")


def test_a_terminal_shows_how_far_it_is_and_a_pipe_does_not(tmp_path: Path) -> None:
    with JudgeServer() as server:
        assert judge(workspace(tmp_path), server).err == ""
        options = ("--model", "toy", "--judge-url", server.openai, "--refresh")
        shown = on_a_terminal("judge", *options, cwd=tmp_path, environ=environ(tmp_path))
    assert shown.code == 0
    assert "judging" in shown.out
    assert "2/2" in shown.out


def test_a_judging_that_is_interrupted_keeps_what_it_has(tmp_path: Path) -> None:
    workspace(tmp_path, 200)
    with JudgeServer(seconds=0.05) as server:
        options = ["judge", "--model", "toy", "--judge-url", server.openai, "--votes", "1"]
        process = subprocess.Popen(
            [*COMMAND, *options],
            cwd=tmp_path,
            env={**os.environ, **environ(tmp_path)},
            stderr=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        while len(server.asked) < 20:
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate()
        assert process.returncode == 130
        assert "items are judged; the same command asks for the others" in err
        had = len(rows(tmp_path)) // 2
        server.seconds = 0
        assert judge(tmp_path, server, "--votes", "1").code == 0
    assert had >= 20 - 8
    assert len(server.asked) == len(set(server.asked)) == 200


@pytest.mark.parametrize("api", ["openai", "ollama"])
def test_both_apis_are_spoken(tmp_path: Path, api: str) -> None:
    with JudgeServer() as server:
        url = server.openai if api == "openai" else server.origin
        assert judge(workspace(tmp_path), url, "--judge-api", api).code == 0
    assert {came.path for came in server.came} == {"/v1/chat/completions" if api == "openai" else "/api/chat"}


def test_what_rules_flag_and_criteria_are_judged_beside_claims(tmp_path: Path) -> None:
    query = golden("q0", forbidden_claims=["year"], criteria=["Says: five days"], reference_claims=["Five days."])
    write_jsonl(tmp_path / "golden.jsonl", [query])
    row = {
        "results": [],
        "retrieved_contexts": [CONTEXT],
        "response": "Refunds take five days. They never take a year.",
    }
    write_jsonl(tmp_path / "current_run.jsonl", [{"query_id": "q0", **row}])
    with JudgeServer() as server:
        assert judge(tmp_path, server, "--task", "criteria").out.startswith("1 call, ")
        assert judge(tmp_path, server).out.endswith("judged 3 items in judgments.jsonl\n")
    assert {(one["task"], one["item"], one["verdict"]) for one in rows(tmp_path)} == {
        ("attribution", "claim:1", True),
        ("confirmation", "forbidden_claims:1", "denies_or_reports_absence"),
        ("criteria", "criterion:1", True),
    }


def test_it_is_no_error_that_no_rule_flags_anything(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "golden.jsonl", [golden("q0", forbidden_claims=["year"])])
    write_jsonl(tmp_path / "current_run.jsonl", [{"query_id": "q0", "results": [], "response": "In five days."}])
    ended = judge(tmp_path, "http://127.0.0.1:9/v1")
    assert (ended.code, ended.out.splitlines()[-1]) == (0, "nothing to judge; wrote judgments.jsonl")


def test_the_configuration_says_which_model_is_asked_and_how_but_not_where(tmp_path: Path) -> None:
    text = "judge: {model: toy, votes: 1, confirm: all, max_age_days: 3}\n"
    (workspace(tmp_path) / "ragcontract.yml").write_text(text)
    with JudgeServer() as server:
        ended = spawn("judge", "--judge-url", server.openai, cwd=tmp_path, environ=environ(tmp_path))
        assert ended.code == 0, ended.err
        made = rows(tmp_path)[0]["judge"]
        assert (made["model"], made["votes"], made["confirm"]) == ("toy", 1, "all")
        other = judge(tmp_path, server, "--votes", "3", "--confirm", "failures")
        assert other.code == 0, other.err
        assert {(row["judge"]["votes"], row["judge"]["confirm"]) for row in rows(tmp_path)} >= {(3, "failures")}


def test_what_is_judged_is_replayed_by_a_check_byte_for_byte_and_asks_nothing(tmp_path: Path) -> None:
    workspace(tmp_path)
    with JudgeServer() as server:
        assert judge(tmp_path, server).code == 0
    reports = []
    for _ in range(2):
        ended = spawn("check", "--judgments", "judgments.jsonl", cwd=tmp_path, environ=environ(tmp_path))
        assert "Context recall (judged)  0.50" in ended.out, ended.err
        report = json.loads((tmp_path / "report.json").read_text())
        reports.append({name: value for name, value in report.items() if name != "created_at"})
    assert reports[0] == reports[1]
    (task,) = reports[0]["judge"]["tasks"]
    assert [query["passed"] for query in task["queries"]] == [1, 1]


def test_a_server_that_knows_no_such_address_or_model_is_said_first_and_what_to_look_at(tmp_path: Path) -> None:
    with JudgeServer(faults=[Fault(status=404, content={"error": {"message": "no such model"}})]) as server:
        ended = judge(workspace(tmp_path), server)
    assert ended.code == 2
    assert ended.err.startswith(f"error: http_error: {server.openai}/chat/completions answered 404: no such model; ")
    assert "does the server have this --model, and is --judge-url the address that it wants" in ended.err
