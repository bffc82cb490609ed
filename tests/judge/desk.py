"""A judging into a file, against a server that stands in for a model's."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from ragcontract.judge.endpoint import find_endpoint
from ragcontract.judge.interface import VoteSettings
from ragcontract.judge.judging_run import JudgingOutcome, judge_cases
from ragcontract.judge.judging_session import JudgingSettings
from ragcontract.judgments.items import Item, JudgeCase

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
CONTEXT = "Returns are accepted within 30 days of delivery. Refunds take five days."


def a_case(number: int, *claims: str) -> JudgeCase:
    """Return an attribution: its claims, or one that is supported and one that is not."""
    texts = claims or ("Refunds take five days.", f"Refund {number} takes a year.")
    items = tuple(Item(name=f"claim:{at}", text=text) for at, text in enumerate(texts, 1))
    return JudgeCase(
        task="attribution", query_id=f"q{number}", question=f"How {number}?", items=items, contexts=(CONTEXT,)
    )


def cases(number: int) -> list[JudgeCase]:
    return [a_case(at) for at in range(number)]


class Desk:
    """A folder with a judgments file, and a judge at an address."""

    def __init__(self, folder: Path, url: str) -> None:
        self.file = folder / "judgments.jsonl"
        self.journal = folder / ".judgments.jsonl.journal"
        self.settings = JudgingSettings(
            path=str(self.file),
            model="toy",
            endpoint=find_endpoint(url, None, {}),
            settings=VoteSettings(votes=1),
            environ={"XDG_STATE_HOME": str(folder / "state")},
            clock=lambda: NOW,
        )

    def judge(self, wanted: Sequence[JudgeCase], **given: Any) -> JudgingOutcome:
        return judge_cases(wanted, replace(self.settings, **given))

    def rows(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.file.read_text().splitlines()]
