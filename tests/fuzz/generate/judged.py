"""What a judge says, what people say of the same, and how well both agree; most of it contradicts nothing."""

from typing import Any

from tests.fuzz.generate.by_schema import fitting, schema, value
from tests.fuzz.generate.values import DATES, Maker, question

WORDS = ("asserts_unsupported", "denies_or_reports_absence", "supported_by_context")
JUDGE = {"protocol": 1, "instructions": "x", "model": "m", "host": "h.example", "votes": 3, "confirm": "failures"}


def judgments(maker: Maker) -> list[Any]:
    """Return judgments on items of golden queries."""
    return [_judgment(maker, query_id) for query_id in maker.queries for _ in range(maker.random.randint(0, 2))]


def _judgment(maker: Maker, query_id: str | int) -> dict[str, Any]:
    at = "2026-01-30T03:04:05Z" if maker.chance(0.8) else _time(maker)
    row: dict[str, Any] = fitting(maker, "judgments") | {"query_id": query_id, "at": at}
    if "session" in row:
        row["session"] = at
    row |= {"key": f"{maker.random.getrandbits(256):064x}", "item": f"claim:{maker.whole(1, 9)}", "votes": []}
    if maker.chance(maker.oddness / 3):
        return row
    verdict: Any = maker.pick(WORDS if row["task"] == "confirmation" else (True, False))
    fails = verdict in {WORDS[0], False}
    row |= {"judge": dict(JUDGE), "verdict": verdict, "votes": [verdict] * (2 if fails else 1), "status": "ok"}
    if not fails:
        row |= {"quote": maker.text() or "x", "context": maker.whole(1, 5)}
    if maker.chance(0.2):
        row |= {"status": maker.pick(("unsure", "compromised", "failed")), "verdict": None, "votes": [None]}
    return row


def labels(maker: Maker) -> list[Any]:
    """Return labels of items; those of some tasks need a response."""
    rows = []
    for number, query_id in enumerate(maker.queries):
        row: dict[str, Any] = fitting(maker, "labels") | {"question": question(query_id), "text": f"Item {number}."}
        if row["task"] != "attribution" and not maker.chance(maker.oddness):
            row["response"] = maker.text()
        rows.append(row)
    return rows


def calibration(maker: Maker) -> dict[str, Any]:
    """Return calibrations for some tasks, each of which has one."""
    definitions = schema("calibration")["$defs"]
    made = [
        value(maker, definitions["Calibration"], definitions, "", 1) | {"task": task, "at": _time(maker)}
        for task in maker.some(["attribution", "confirmation", "criteria"], 3) or ["attribution"]
    ]
    return {"format_version": 1, "calibrations": list({one["task"]: one for one in made}.values())}


def _time(maker: Maker) -> str:
    return f"{maker.pick(DATES)}T03:04:05{maker.pick(('Z', '+00:00', '-12:30', '+23:59'))}"
