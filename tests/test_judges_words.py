"""What reports show of a judge: all that it said of claims, criteria and flagged texts, what it cost, and no more.

Its words are as hostile as what it read: they are escaped in every place.
"""

import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from ragcontract.judge.run_cases import TASKS
from ragcontract.judgments.judgments_file import Judgment, read_judgments, write_judgments
from tests.builders import write_jsonl
from tests.github.standin import GitHub
from tests.judge_server import Fault, JudgeServer
from tests.judged_checks import BOTH
from tests.judgment_files import CONTEXT, fingerprint_of, write_good_calibration
from tests.process import Ended, rag_contract, spawn
from tests.runner import InProcess

HOSTILE = (
    "<img src=x onerror=alert(1)> | **@team** </details> `|` ]]> ::error::pwned %0A::set-output name=x::y "
    "\u202e \x1b[31m \r\n::add-mask::x [x](http://evil.example) #1 $x$"
)
SUPPORTED, ASSERTED, DENIED = "The plan costs $20.", "It costs $700.", "No text says that it costs $499."
CONTEXTS = [CONTEXT, SUPPORTED]
LIMITS = "minimums: {context_recall: 0.1, criteria_met: 0.1}\n"
HTML = ("--report-html", "report.html")
OUTPUTS = ("report.md", "report.json", "report.html", "junit.xml")


@pytest.fixture(name="folder")
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(name="server")
def one_server() -> Iterator[JudgeServer]:
    with JudgeServer() as server:
        yield server


def workspace(folder: Path, *answers: str, config: str = "", words: str = "", **fields: Any) -> None:
    """Write a contract and a run; all texts that are retrieved or answered end with some words, which can be quoted."""
    asked = {
        "query": "What does it cost?",
        "reference_claims": ["Refunds take five days.", "Refunds take a year."],
        "criteria": ["It costs $700.", {"id": "tone", "text": "Is polite."}],
        "forbidden_claims": [r"\$\d+"],
        "severity": "warn",
        **fields,
    }
    write_jsonl(folder / "golden.jsonl", [{"id": f"q{at}", **asked} for at in range(len(answers))])
    contexts = [f"{one} {words}".strip() for one in CONTEXTS]
    said = [f"{one} {words}".strip() for one in answers]
    rows = [{"query_id": f"q{at}", "retrieved_contexts": contexts, "response": one} for at, one in enumerate(said)]
    write_jsonl(folder / "current_run.jsonl", rows)
    (folder / "ragcontract.yml").write_text(config or "judge: {second_pass: true}\n")


def judge(folder: Path, server: JudgeServer, *argv: str) -> Ended:
    environ = {"RAG_CONTRACT_JUDGE_KEY": "", "OPENAI_API_KEY": "", "XDG_STATE_HOME": str(folder / "state")}
    ended = spawn("judge", "--model", "toy", "--judge-url", server.openai, *argv, cwd=folder, environ=environ)
    assert ended.code == 0, ended
    return ended


def judgments(folder: Path) -> list[Judgment]:
    return list(read_judgments([str(folder / "judgments.jsonl")]).by_key.values())


def calibrate(folder: Path) -> None:
    (fingerprint,) = {one.fingerprint for one in judgments(folder) if one.votes}
    write_good_calibration(folder, tasks=TASKS, fingerprint=fingerprint)


def check(*argv: str, code: int = 0) -> Ended:
    ended = rag_contract("check", *argv)
    assert ended.code == code, ended
    return ended


def of_judge(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "report.json").read_text())["judge"]
    return found


def flagged(folder: Path) -> dict[str, Any]:
    (found,) = [task for task in of_judge(folder)["tasks"] if task["task"] == "confirmation"]
    return dict(found)


def test_of_each_flagged_text_the_report_says_whether_it_stands_and_why(folder: Path, server: JudgeServer) -> None:
    workspace(folder, DENIED, f"{SUPPORTED} {ASSERTED}", "It is free.")
    judge(folder, server)
    calibrate(folder)
    check(*BOTH, *HTML)
    task = flagged(folder)
    assert (task["judgments"], task["unjudged"], task["why_not"], round(task["kappa"], 2)) == (3, 0, [], 0.9)
    assert [(query["id"], query["passed"], query["of"]) for query in task["queries"]] == [("q0", 1, 1), ("q1", 0, 2)]
    items = [item for query in task["queries"] for item in query["items"]]
    assert [(item["text"], item["verdict"], item["stands"]) for item in items] == [
        ("$499", "denies_or_reports_absence", False),
        ("$20", "supported_by_context", True),
        ("$700", "asserts_unsupported", True),
    ]
    assert [item.get("quote") for item in items] == [DENIED, SUPPORTED, ASSERTED]
    assert [item.get("context") for item in items] == [None, 2, None]
    markdown = (folder / "report.md").read_text()
    assert "**`q0`** 1 of 1 flagged text cleared" in markdown
    dollar = "<span>$</span>"
    assert f"| {dollar}499 | ✅ not asserted: “No text says that it costs {dollar}499.”; " in markdown
    assert f"| {dollar}20 | ❌ supported, but not cleared: text 2: “The plan costs {dollar}20.”; " in markdown
    assert f"| {dollar}700 | ❌ asserted without support: “It costs {dollar}700.”; " in markdown
    page = (folder / "report.html").read_text()
    assert "✓ $499" in page
    assert f"stands: asserted without support: “{ASSERTED}”; " in page


def test_what_an_uncalibrated_judge_says_of_flagged_texts_is_shown_and_clears_nothing(
    folder: Path, server: JudgeServer
) -> None:
    workspace(folder, DENIED, config="judge: {second_pass: true, uncalibrated: advisory}\n")
    judge(folder, server)
    check(*BOTH[:2])
    task = flagged(folder)
    (item,) = task["queries"][0]["items"]
    assert (item["verdict"], item["stands"], task["kappa"]) == ("denies_or_reports_absence", True, None)
    assert "Nothing is cleared: there is no calibration for confirmation" in (folder / "report.md").read_text()
    config = "judge: {second_pass: true, uncalibrated: advisory}\n"
    workspace(folder, ASSERTED, config=config, criteria=None, reference_claims=None)
    assert "its flagged texts, question, answer or retrieved texts have changed since" in check(*BOTH[:2], code=2).err


def test_a_flagged_text_without_a_verdict_is_counted_where_it_may_stand(folder: Path, server: JudgeServer) -> None:
    workspace(folder, DENIED)
    judge(folder, server)
    calibrate(folder)
    stands = "judge: {second_pass: true, unconfirmed: stands}\n"
    kept = [one for one in judgments(folder) if one.task == "confirmation"]
    workspace(folder, DENIED, ASSERTED, config=stands, criteria=None, reference_claims=None)
    write_judgments("judgments.jsonl", kept)
    check(*BOTH)
    task = flagged(folder)
    assert task["unjudged"] == 1
    assert task["queries"][1]["items"] == [
        {"item": "forbidden_claims:1", "text": "$700", "verdict": None, "stands": True}
    ]
    markdown = (folder / "report.md").read_text()
    assert "- Unjudged: 1.\n" in markdown
    assert "700 | ❌ no verdict |" in markdown


def test_the_report_says_what_judgments_cost_and_which_were_cached(folder: Path) -> None:
    workspace(folder, DENIED)
    prices = ("--price-in", "2", "--price-out", "8")
    with JudgeServer(faults=[Fault(status=500)]) as server:
        said = judge(folder, server, *prices).out
        calls, tokens_in, tokens_out = _cost(said)
        assert "(1 sent again)" in said
        check(*BOTH[:2], code=2)
        workspace(folder, DENIED, config="k: 5\n")
        check(*BOTH[:2])
        first = of_judge(folder)
        (folder / "ragcontract.yml").write_text("judge: {second_pass: true, uncalibrated: advisory}\n")
        check(*BOTH[:2])
        found = of_judge(folder)
        assert (found["calls"], found["retried"], found["compromised"], found["cached"]) == (calls, 1, 0, 0)
        assert (found["tokens_in"], found["tokens_out"]) == (tokens_in, tokens_out)
        assert found["usd"] == pytest.approx((2 * tokens_in + 8 * tokens_out) / 1e6)
        assert first["calls"] < calls
        time_passes(folder)
        workspace(folder, DENIED, ASSERTED, config="judge: {second_pass: true, uncalibrated: advisory}\n")
        assert f"{found['judgments']} cached" in judge(folder, server, *prices).out
    check(*BOTH[:2])
    again = of_judge(folder)
    assert (again["cached"], again["judgments"]) == (found["judgments"], 2 * found["judgments"])
    assert f", {found['judgments']} cached. Nothing was asked" in (folder / "report.md").read_text()


@pytest.mark.parametrize(
    ("refuses", "said"),
    [
        ([], ""),
        (["json_schema"], ""),
        (["temperature"], "The model takes no temperature: verdicts vary more"),
        (["temperature", "seed", "json_schema"], "The model takes no temperature and no seed: verdicts vary more"),
    ],
)
def test_the_report_says_what_makes_verdicts_vary(folder: Path, refuses: list[str], said: str) -> None:
    workspace(folder, DENIED, config="judge: {second_pass: true, uncalibrated: advisory}\n")
    with JudgeServer(refuses=refuses) as server:
        judge(folder, server)
    check(*BOTH[:2], "--report-html", "report.html")
    for name in ("report.md", "report.html"):
        text = (folder / name).read_text()
        assert said in text if said else "verdicts vary" not in text


def _cost(said: str) -> tuple[int, int, int]:
    found = re.search(r"([\d,]+) calls.* ([\d,]+) tokens in, ([\d,]+) out", said)
    assert found, said
    calls, tokens_in, tokens_out = (int(one.replace(",", "")) for one in found.groups())
    return calls, tokens_in, tokens_out


def time_passes(folder: Path) -> None:
    """Have all judgments be from an earlier judging."""
    before = timedelta(minutes=9)
    sooner = [
        replace(one, at=one.at - before, session=one.session and one.session - before) for one in judgments(folder)
    ]
    write_judgments(str(folder / "judgments.jsonl"), sooner)


def test_a_judgment_on_the_same_answer_of_two_rows_is_counted_once(folder: Path, server: JudgeServer) -> None:
    workspace(folder, DENIED, config="judge: {second_pass: true, uncalibrated: advisory}\n")
    judge(folder, server)
    check(*BOTH[:2])
    once = of_judge(folder)
    run = folder / "current_run.jsonl"
    run.write_text(2 * run.read_text())
    check(*BOTH[:2], "--repeats")
    twice = of_judge(folder)
    assert [one["judgments"] for one in (once, twice)] == [once["judgments"]] * 2
    assert once["tokens_in"] == twice["tokens_in"]


def test_without_prices_no_money_is_named(folder: Path, server: JudgeServer) -> None:
    workspace(folder, DENIED, config="k: 5\n")
    judge(folder, server)
    check(*BOTH[:2])
    assert of_judge(folder)["usd"] is None
    assert "USD" not in (folder / "report.md").read_text()


def test_a_reply_that_failed_its_controls_is_counted(folder: Path) -> None:
    lazy_once: list[Any] = []

    def lazy_at_first(asked: Any) -> str:
        from tests.judge_characters import CHARACTERS

        lazy_once.append(asked)
        return CHARACTERS["lazy" if len(lazy_once) == 1 else "honest"](asked)

    workspace(folder, "It is free.", config="k: 5\n")
    with JudgeServer(lazy_at_first) as server:
        judge(folder, server, "--concurrency", "1")
    check(*BOTH[:2])
    found = of_judge(folder)
    assert found["compromised"] == 1
    assert f"({found['retried']} retried, 1 compromised)" in (folder / "report.md").read_text()


def with_words(folder: Path, words: str, **fields: Any) -> None:
    """Have the judge say this of everything."""
    said = [
        replace(one, quote=one.quote and words, reason=words, **fields) if one.votes else one
        for one in judgments(folder)
    ]
    said = [replace(one, fingerprint=fingerprint_of(one.model or one.judge.model, one.judge)) for one in said]
    write_judgments(str(folder / "judgments.jsonl"), said)


def test_the_words_of_a_judge_are_escaped_in_all_sections(folder: Path, server: JudgeServer) -> None:
    workspace(folder, f"{ASSERTED} {SUPPORTED}", words=HOSTILE)
    judge(folder, server)
    with_words(folder, HOSTILE, model=HOSTILE)
    calibrate(folder)
    ended = check(*BOTH, *HTML, "--junit", "junit.xml")
    for name in ("report.md", "report.html", "junit.xml"):
        text = (folder / name).read_text()
        assert "<img" not in text
        assert "\u202e" not in text
        assert "\x1b" not in text
    markdown = (folder / "report.md").read_text()
    # The model, two claims, two criteria, two flagged texts with quote and reason; and what was said and seen.
    assert markdown.count("alert(1)") >= 9
    assert not re.search(r"^::", markdown, re.MULTILINE)
    for acting in ("</details> `", "**@", "[x](http", "@team", "://evil", "#1 "):
        assert acting not in markdown
    assert (folder / "report.html").read_text().count("&lt;img") >= 6
    ET.fromstring((folder / "junit.xml").read_text())
    assert "\x1b[31m" not in ended.out + ended.err


def test_no_word_of_an_unjudged_item_is_a_command_to_the_runner(tmp_path: Path, github: GitHub) -> None:
    runner = InProcess(tmp_path, github)
    workspace(runner.workspace, ASSERTED, config=LIMITS)
    with JudgeServer() as server:
        judge(runner.workspace, server)
    with_words(runner.workspace, HOSTILE, status="unsure", verdict=None, votes=(None,))
    result = runner.run({"judgments": "judgments.jsonl"})
    assert result.exit_code == 2
    assert "has no verdict on" in result.log
    assert not re.search(r"^::(set-output|add-mask)|^::error::pwned", result.log, re.MULTILINE)
    assert "\x1b" not in result.log
    for body in github.bodies():
        assert "<img" not in body
        assert "**@" not in body


def test_without_answers_nothing_of_what_was_answered_or_said_is_shown(folder: Path, server: JudgeServer) -> None:
    secret = "A secret."
    workspace(folder, f"{secret} It costs $700.", DENIED, words=secret, forbidden_claims=[r"secret.*\$\d+"])
    judge(folder, server)
    calibrate(folder)
    with_words(folder, secret)
    check(*BOTH, *HTML, "--junit", "junit.xml")
    assert sum(secret in (folder / name).read_text() for name in OUTPUTS) >= 3
    ended = check(*BOTH, *HTML, "--junit", "junit.xml", "--no-answers")
    assert "secret" not in ended.out + ended.err.replace("secret.*", "")
    shown = {name: (folder / name).read_text() for name in OUTPUTS}
    assert [name for name, text in shown.items() if secret in text or "$700" in text.replace("It costs $700", "")] == []
    (item,) = flagged(folder)["queries"][0]["items"]
    assert item == {"item": "forbidden_claims:1", "verdict": "asserts_unsupported", "stands": True}
    assert "| forbidden\\_claims:1 | ❌ asserted without support |" in shown["report.md"]
    with_words(folder, secret, status="unsure", verdict=None, votes=(None,))
    assert secret not in check(*BOTH, "--no-answers", code=2).err


def test_of_several_flagged_texts_only_those_without_a_verdict_are_unjudged(folder: Path, server: JudgeServer) -> None:
    stands = "judge: {second_pass: true, unconfirmed: stands}\n"
    two = [r"\$4\d+", r"\$7\d+"]
    workspace(folder, f"{DENIED} {ASSERTED}", config=stands, criteria=None, reference_claims=None, forbidden_claims=two)
    judge(folder, server)
    calibrate(folder)
    nothing: dict[str, Any] = {"verdict": None, "votes": (), "quote": None, "status": "unsure"}
    said = [replace(one, **nothing) if one.verdict == "asserts_unsupported" else one for one in judgments(folder)]
    write_judgments("judgments.jsonl", said)
    check(*BOTH)
    task = flagged(folder)
    assert (task["judgments"], task["unjudged"]) == (1, 1)
    items = task["queries"][0]["items"]
    assert [(item["text"], item["verdict"], item["stands"]) for item in items] == [
        ("$499", "denies_or_reports_absence", False),
        ("$700", None, True),
    ]
