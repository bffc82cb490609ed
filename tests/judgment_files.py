"""Judgments and calibration files as a judge would have written them, without asking any."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from ragcontract.core.config_sections import LabelCounts, Task
from ragcontract.judgments.calibration import FORMAT_VERSION, CalibrationFile, calibrated, write_calibration
from ragcontract.judgments.items import AskedJudge, Item, JudgeCase, asked_how, keys_of
from ragcontract.judgments.judgments_file import Judgment, write_judgments
from tests.builders import write_jsonl
from tests.runs.judgment_lines import JUDGE

CONTEXT = "Returns are accepted within 30 days of delivery. Refunds take five days."
TRUE, FALSE = "Refunds take five days.", "Refunds take a year."
NOW = datetime.now(UTC).replace(microsecond=0)


def fingerprint_of(model: str, judge: AskedJudge = JUDGE) -> str:
    """Return the fingerprint of a model that replied, asked as a judge is."""
    return f"{model}{asked_how(judge)}"


FINGERPRINT = fingerprint_of("toy")


def asked(number: int, claims: list[str]) -> dict[str, Any]:
    """Return a golden row that names no documents."""
    return {"id": f"q{number}", "query": f"Question {number}?", "reference_claims": claims}


def judged_workspace(folder: Path, config: str, *claims: list[str], contexts: Iterable[str] = (CONTEXT,)) -> Path:
    """Write a contract over the claims of each query, a run that retrieved the contexts, and a configuration."""
    queries = [asked(at, of) for at, of in enumerate(claims, 1)]
    write_jsonl(folder / "golden.jsonl", queries)
    rows = [{"query_id": query["id"], "results": [], "retrieved_contexts": list(contexts)} for query in queries]
    write_jsonl(folder / "current_run.jsonl", rows)
    (folder / "ragcontract.yml").write_text(config or "k: 5\n")
    return folder


def case_of(query: Mapping[str, Any], contexts: Iterable[str] = (CONTEXT,)) -> JudgeCase:
    """Return what is judged for a golden row."""
    items = tuple(Item(name=f"claim:{at}", text=text) for at, text in enumerate(query["reference_claims"], 1))
    return JudgeCase(
        task="attribution", query_id=query["id"], question=query["query"], items=items, contexts=tuple(contexts)
    )


def judgments_on(case: JudgeCase, *, judge: AskedJudge = JUDGE, **fields: Any) -> list[Judgment]:
    """Return what an honest judge says of a case: it takes texts by the letter."""
    made = []
    for key, item in zip(*keys_of(case, [judge]), case.items, strict=True):
        at = next((rank for rank, text in enumerate(case.contexts, 1) if item.text in text), None)
        said = {"quote": item.text, "context": at} if at else {}
        if case.task == "criteria":
            at = 1 if item.text in (case.response or "") else None
            said = {"quote": item.text} if at else {}
        usual: dict[str, Any] = {
            "verdict": at is not None,
            "votes": (at is not None,) if at else (False, False),
            "status": "ok",
            "reason": "by the letter",
            "model": "toy",
            "fingerprint": fingerprint_of(fields.get("model", "toy"), judge),
            "at": NOW - timedelta(hours=1),
            "tokens_in": 10,
            "tokens_out": 2,
            **said,
        }
        made.append(
            Judgment(
                key=key, task=case.task, query_id=case.query_id, item=item.name, judge=judge, **{**usual, **fields}
            )
        )
    return made


def write_judgments_on(
    folder: Path, *claims: list[str], contexts: Iterable[str] = (CONTEXT,), name: str = "judgments.jsonl", **fields: Any
) -> None:
    """Write the judgments on the claims of each query."""
    queries = [asked(at, of) for at, of in enumerate(claims, 1)]
    made = [one for query in queries for one in judgments_on(case_of(query, contexts), **fields)]
    write_judgments(str(folder / name), made)


def write_good_calibration(
    folder: Path, *, counts: LabelCounts | None = None, tasks: Iterable[Task] = ("attribution",), **fields: Any
) -> None:
    """Write a calibration with which limits count, unless fields say otherwise."""
    given = {"fingerprint": FINGERPRINT, "at": NOW - timedelta(days=1), **fields}
    made = tuple(calibrated(task, counts or LabelCounts(tp=48, fp=2, fn=3, tn=47), **given) for task in tasks)
    path = str(folder / "judge-calibration.json")
    write_calibration(path, CalibrationFile(format_version=FORMAT_VERSION, calibrations=made))
