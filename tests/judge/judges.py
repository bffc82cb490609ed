"""Models in process: scripted ones, one that reads what it is asked and answers by the letters, and one that obeys."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from msgspec import Struct

from ragcontract.core.config_sections import Task
from ragcontract.judge.interface import Ask, NoReply, Reply
from ragcontract.judgments.items import Item, JudgeCase

DENIAL = re.compile(r"\b(no|not|nothing|never)\b", re.IGNORECASE)
GOOD = {"supported": True, "met": True, "verdict": "denies_or_reports_absence"}
BAD = {"supported": False, "met": False, "verdict": "asserts_unsupported"}
Verdict = dict[str, Any]


class Asked(Struct, frozen=True):
    """What a model reads in an ask: the data without their nonce, the items, and the field of a verdict."""

    data: dict[str, Any]
    items: list[dict[str, Any]]
    field: str


def read(ask: Ask) -> Asked:
    """Return what is asked, by the names without the nonce, which all of them must have."""
    named = json.loads(ask.user)
    nonces = {name.partition("_")[0] for name in named}
    assert len(nonces) == 1, f"one nonce, not {nonces}"
    data = {name.partition("_")[2]: value for name, value in named.items()}
    for name, field in (("claims", "supported"), ("criteria", "met"), ("flagged", "verdict")):
        if name in data:
            return Asked(data, data[name], field)
    return Asked(data, [], "")


def honest(asked: Asked) -> list[Verdict]:
    """Return what a careful reader says who takes texts by the letter."""
    judged = {"supported": _attributed, "met": _met, "verdict": _confirmed}[asked.field]
    return [{"id": item["id"], "reason": "read", **judged(item["text"], asked.data)} for item in asked.items]


def _attributed(claim: str, data: dict[str, Any]) -> Verdict:
    for context in data["contexts"]:
        if claim in context["text"]:
            return {"quote": _passage(context["text"], claim), "context": context["id"], "supported": True}
    return {"quote": None, "context": None, "supported": False}


def _met(criterion: str, data: dict[str, Any]) -> Verdict:
    words = criterion.rpartition(": ")[2]
    met = words in data["response"]
    return {"quote": _passage(data["response"], words) if met else None, "met": met}


def _confirmed(flagged: str, data: dict[str, Any]) -> Verdict:
    line = next(line for line in data["response"].split("\n") if flagged in line)
    for context in data["contexts"]:
        if flagged in context["text"]:
            found = {"quote": _passage(context["text"], flagged), "context": context["id"]}
            return {**found, "verdict": "supported_by_context"}
    denies = DENIAL.search(line)
    return {
        "quote": line[:500],
        "context": None,
        "verdict": "denies_or_reports_absence" if denies else "asserts_unsupported",
    }


def _passage(text: str, words: str) -> str:
    """Return the words, with so much around them that they can be a quote."""
    at = text.index(words)
    return text[max(0, at - 8) : at + len(words) + 8]


def all_of(asked: Asked, verdict: dict[str, Any], *, but: Callable[[str], bool] = lambda _: False) -> list[Verdict]:
    """Return the same verdict for all items, each with a quote that is there; the opposite for those excepted."""
    contexts = [one for one in asked.data.get("contexts", []) if one["text"].strip()]
    from_context = asked.field == "supported"
    text = contexts[0]["text"] if from_context else asked.data["response"]
    proof = {"quote": text[:40] if len(text) > 40 else text, "context": contexts[0]["id"] if from_context else None}
    opposite = BAD if verdict is GOOD else GOOD
    return [
        {
            "id": item["id"],
            **proof,
            "reason": "",
            asked.field: (opposite if but(item["text"]) else verdict)[asked.field],
        }
        for item in asked.items
    ]


def as_reply(verdicts: Sequence[Verdict], **fields: Any) -> Reply:
    return Reply(text=json.dumps({"verdicts": list(verdicts)}), **{"model": "m-2026", **fields})


class Model:
    """A model whose replies are given, one after the other, or made of what it is asked, which it keeps."""

    name = "m"
    host = "models.example"

    def __init__(self, *replies: Callable[[Ask], Reply | str] | Reply | str | NoReply) -> None:
        self.asked: list[Ask] = []
        self._replies = replies

    def ask(self, ask: Ask) -> Reply:
        self.asked.append(ask)
        reply = self._replies[min(len(self.asked), len(self._replies)) - 1]
        if isinstance(reply, NoReply):
            raise reply
        if not isinstance(reply, Reply | str):
            reply = reply(ask)
        return Reply(text=reply, model="m-2026") if isinstance(reply, str) else reply


def honestly(ask: Ask) -> Reply:
    return as_reply(honest(read(ask)), tokens_in=100, tokens_out=30)


def always(verdict: dict[str, Any]) -> Callable[[Ask], Reply]:
    return lambda ask: as_reply(all_of(read(ask), verdict))


def changed(change: Callable[[list[Verdict]], Any]) -> Callable[[Ask], Reply]:
    """Return a model's reply that is honest but for a change."""

    def reply(ask: Ask) -> Reply:
        verdicts = honest(read(ask))
        change(verdicts)
        return as_reply(verdicts)

    return reply


RETURNS = "Returns are accepted within 30 days of delivery. Bring the receipt, please."
SHOES = "Shoes that were worn are not taken back."


def case(task: Task = "attribution", *items: str, **fields: Any) -> JudgeCase:
    """Return a case with these items; by default, one of each verdict."""
    usual: dict[Task, tuple[dict[str, Any], tuple[str, ...]]] = {
        "attribution": ({"contexts": (RETURNS, SHOES)}, ("within 30 days", "a refund in cash")),
        "criteria": ({"response": "You have 30 days. I am happy to help."}, ("Says: 30 days", "Says: the receipt")),
        "confirmation": (
            {"response": "It costs $499.\nThe salary is not mentioned.\nYou have 30 days.", "contexts": (RETURNS,)},
            ("$499", "salary", "30 days"),
        ),
    }
    data, texts = usual[task]
    return JudgeCase(
        task=task,
        query_id=fields.pop("query_id", "q1"),
        question=fields.pop("question", "How long can I return an item?"),
        items=tuple(
            Item(name=f"item:{at}", text=text, why="forbidden" if task == "confirmation" else "")
            for at, text in enumerate(items or texts, 1)
        ),
        **{**data, **fields},
    )


TASKS: tuple[Task, ...] = ("attribution", "criteria", "confirmation")


def real(asked: Asked, judged: JudgeCase) -> Iterator[dict[str, Any]]:
    """Yield the items of an ask that are no controls."""
    texts = {item.text for item in judged.items}
    return (item for item in asked.items if item["text"] in texts)
