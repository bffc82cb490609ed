"""Judgments as tests write them."""

from datetime import UTC, datetime
from typing import Any

from ragcontract.judgments.items import AskedJudge, asked_how
from ragcontract.judgments.judgments_file import Judgment

JUDGE = AskedJudge(protocol=1, instructions="abc", model="m", host="models.example", votes=3, confirm="failures")
AT = datetime(2026, 11, 22, 12, tzinfo=UTC)


def judgment(key: int = 1, **fields: Any) -> Judgment:
    """Return a judgment on a claim that is supported; its key is a number."""
    usual: dict[str, Any] = {
        "task": "attribution",
        "query_id": "q1",
        "item": "claim:1",
        "verdict": True,
        "quote": "within 30 days",
        "context": 1,
        "votes": (True,),
        "status": "ok",
        "fingerprint": f"{fields.get('model') or JUDGE.model}{asked_how(fields.get('judge', JUDGE))}",
        "judge": JUDGE,
        "at": AT,
    }
    return Judgment(key=f"{key:064x}", **{**usual, **fields})
