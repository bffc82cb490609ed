"""Writes what this version stores: ``python -m tests.compat.write tests/compat/NAME``, for ``test_compat.py`` to read.

Write a folder when a format changes, and keep the older ones: they are what users have.
"""

import json
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.builders import write_jsonl
from tests.judge_server import JudgeServer
from tests.process import spawn

JUDGE_PORT = 27441  # the address is part of what a judge is, so that those who read the files need the same one
CONTEXT = "Returns are accepted within 30 days of delivery. Refunds take five days."
JUDGMENTS = ("--judgments", "judgments.jsonl", "--calibration", "judge-calibration.json")

GOLDEN: dict[str, list[dict[str, Any]]] = {
    "documents": [
        {"id": "q1", "query": "Which one?", "relevant_doc_ids": ["A", "B"], "tags": ["shop"], "must_rank_at_most": 1},
        {"id": "q2", "query": "Which other?", "relevance": {"C": 2, "D": 1}, "weight": 2, "forbidden_doc_ids": ["X"]},
        {"id": "q3", "query": "Which old one?", "relevant_doc_ids": ["E"], "tags": ["shop"]},
    ],
    "answers": [
        {"id": "q1", "query": "How long?", "reference_claims": ["Refunds take five days."], "relevant_doc_ids": ["A"]},
        {"id": "q2", "query": "And how?", "reference_claims": ["Refunds take a year."], "forbidden_claims": ["never"]},
        {
            "id": "q3",
            "query": "Order 7?",
            "answer_must_include": ["30 days"],
            "rules": [{"type": "must_call_tool", "tool": "get_order", "arguments": {"id": 7}}],
        },
        {
            "id": "q4",
            "query": "In two steps",
            "turns": [
                {"query": "Can I return it?", "rules": [{"type": "must_contain", "value": "30 days"}]},
                {"query": "Thanks", "rules": [{"type": "must_not_contain", "value": "sorry"}]},
            ],
        },
    ],
}
CONFIG = {
    "documents": """\
k: [1, 5]
minimums: {recall_at_5: 0.9}
fail_on: {mrr_drop_gt: 0.1}
tags: {shop: {minimums: {hitrate_at_5: 0.4}}}
waivers:
  - {query: q3, reason: the index is rebuilt, owner: shop, expires: 2200-01-01}
""",
    "answers": "k: 5\nminimums: {context_recall: 0.9, pass_rate: 0.8}\nper_query: {fail_on: new}\n",
}


def results(*doc_ids: str) -> list[dict[str, Any]]:
    """Return results that all have the same text."""
    return [{"doc_id": doc_id, "text": CONTEXT} for doc_id in doc_ids]


def answers(reply: str, *, tool: str = "get_order") -> list[dict[str, Any]]:
    """Return the run of an application that says the same about two of the queries."""
    call = {"name": tool, "arguments": {"id": 7}}
    return [
        {"query_id": "q1", "results": results("A", "B"), "response": reply},
        {"query_id": "q2", "results": results("A"), "response": "You get it back."},
        {"query_id": "q3", "results": [], "response": reply, "tool_calls": [call]},
        {
            "query_id": "q4",
            "messages": [
                {"role": "user", "content": "Can I return it?"},
                {"role": "assistant", "content": reply},
                {"role": "user", "content": "Thanks"},
                {"role": "assistant", "content": "You are welcome."},
            ],
        },
    ]


def documents(q1: list[str], q2: list[str]) -> list[dict[str, Any]]:
    """Return a run that does not find what the third query asks for."""
    found = {"q1": q1, "q2": q2, "q3": ["Z"]}
    return [{"query_id": name, "results": results(*doc_ids), "latency_ms": 12.5} for name, doc_ids in found.items()]


RUNS = {  # the good one, and the one to check
    "documents": (documents(["A", "B"], ["C", "D"]), documents(["B"], ["X", "D"])),
    "answers": (answers("Within 30 days."), answers("Ask them.", tool="get_refund")),
}
APPLICATION = """\
from pathlib import Path


def find(query: str) -> dict[str, object]:
    if "last" in query and not Path("up").exists():
        raise ValueError("is down")
    return {"results": [{"doc_id": "A"}, {"doc_id": "B"}], "response": f"About {query}"}
"""


def judge_options(server: JudgeServer) -> tuple[str, ...]:
    """Return what names the judge."""
    return ("--model", "toy", "--judge-url", server.openai, "--votes", "1")


def state(folder: Path) -> dict[str, str]:
    """Return the environment of a machine that keeps its state, such as the key of journals, in the folder."""
    return {"XDG_STATE_HOME": str(folder / "state"), "OPENAI_API_KEY": "", "RAG_CONTRACT_JUDGE_KEY": ""}


def command(folder: Path, *argv: str, code: int = 0) -> None:
    """Run a command that ends with this exit code."""
    ended = spawn(*argv, cwd=folder, environ=state(folder))
    if ended.code != code:
        sys.exit(f"{argv}: exit code {ended.code}\n{ended.out}{ended.err}")


def write_checks(folder: Path, server: JudgeServer) -> None:
    """Write the baselines and reports of a contract over documents and of one over answers, with what a judge said."""
    for name, (good, current) in RUNS.items():
        own = folder / name
        own.mkdir()
        write_jsonl(own / "golden.jsonl", GOLDEN[name])
        (own / "ragcontract.yml").write_text(CONFIG[name])
        write_jsonl(own / "current_run.jsonl", good)
        judgments: tuple[str, ...] = ()
        if name == "answers":
            write_labels(own)
            command(own, "judge", "calibrate", *judge_options(server))
            command(own, "judge", *judge_options(server))
            judgments = JUDGMENTS
        command(own, "baseline", *judgments)
        write_jsonl(own / "current_run.jsonl", current)
        command(own, "check", "--baseline", "baseline.json", "--report-json", "report.json", *judgments, code=1)
        for other in ("report.md", "junit.xml"):
            (own / other).unlink()
        shutil.rmtree(own / "state", ignore_errors=True)


def write_labels(folder: Path) -> None:
    """Write labels with which a limit on what the judge says counts."""
    texts = {True: "Refunds take five days.", False: "Refunds take a year."}
    question = {"task": "attribution", "question": "How long?"}
    rows = [
        {**question, "contexts": [f"{CONTEXT} Number {at}."], "text": text, "label": label, "labeler": "ann"}
        for at in range(30)
        for label, text in texts.items()
    ]
    write_jsonl(folder / "labels.jsonl", rows)


def write_recording(folder: Path) -> None:
    """Write the journal of a recording that did not end, and the run that it would have become."""
    own = folder / "recording"
    own.mkdir()
    (own / "app.py").write_text(APPLICATION)
    write_jsonl(own / "golden.jsonl", [{"id": f"q{at}", "query": f"Number {at}?"} for at in range(3)])
    with (own / "golden.jsonl").open("a") as golden:
        golden.write(json.dumps({"id": "q3", "query": "The last?"}) + "\n")
    command(own, "record", "app.py:find", code=2)
    shutil.copytree(own, ended := folder / "ended")
    (ended / "up").touch()
    command(ended, "record", "app.py:find")
    shutil.move(ended / "current_run.jsonl", own / "expected_run.jsonl")
    shutil.rmtree(ended)


def write_judging(folder: Path, server: JudgeServer) -> None:
    """Write the journal of a judging that did not end, and the key that it is sealed with."""
    own = folder / "judging"
    own.mkdir()
    rows = [{"id": f"q{at}", "query": f"{at}?", "reference_claims": ["Refunds take five days."]} for at in range(4)]
    write_jsonl(own / "golden.jsonl", rows)
    write_jsonl(own / "current_run.jsonl", [{"query_id": row["id"], "results": results("A")} for row in rows])
    command(own, "judge", *judge_options(server), "--max-calls", "3", "--concurrency", "1", code=2)
    (own / "judgments.jsonl").unlink(missing_ok=True)


def main() -> None:
    """Write all of it into a new folder."""
    with TemporaryDirectory() as outside:  # of a checkout, whose commit would be in the journal of a recording
        folder = Path(outside) / "stored"
        folder.mkdir()
        with JudgeServer(port=JUDGE_PORT) as server:
            write_checks(folder, server)
            write_judging(folder, server)
        write_recording(folder)
        shutil.move(folder, sys.argv[1])


if __name__ == "__main__":
    main()
