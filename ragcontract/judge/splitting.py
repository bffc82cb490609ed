"""Splitting a reference into claims, once: what is in the golden file is then the same for every judge and check."""

from typing import Any, Literal

from msgspec import Struct

from ragcontract.answers.evidence import Evidence
from ragcontract.answers.normalising import normalised
from ragcontract.core import bounds
from ragcontract.judge.calls import ask_of, reply_to
from ragcontract.judge.interface import Dice, Model, Reply, Settings
from ragcontract.judge.reply_json import ReplyFault, listed, object_of, writable
from ragcontract.judge.tasks import CLAIMS

TRIES = 2


class Split(Struct, frozen=True, kw_only=True):
    """The claims of a reference, in its order; if it is not ``ok``, there are none, and ``reason`` says why."""

    status: Literal["ok", "unsure", "failed"]
    claims: tuple[str, ...] = ()
    reason: str = ""


def split_reference(question: str, reference: str, model: Model, settings: Settings, dice: Dice) -> Split:
    """Return the claims that a model splits a reference into, each from words that are in the reference."""
    evidence = Evidence({}, reference)
    fault = ""
    for _ in range(TRIES):
        data: dict[str, Any] = {"question": question, "reference": reference}
        ask = ask_of(CLAIMS, data, dice, settings, fault=fault)
        reply = reply_to(ask, model)
        if isinstance(reply, str):
            return Split(status="failed", reason=reply)
        try:
            return Split(status="ok", claims=_claims(reply, evidence))
        except ReplyFault as error:
            fault = f"The last reply {error}."
    return Split(status="unsure", reason=fault)


def _claims(reply: Reply, evidence: Evidence) -> tuple[str, ...]:
    """Return the claims in a reply; raises :class:`ReplyFault`."""
    found: dict[str, str] = {}
    for item in listed(object_of(reply), "claims"):
        text = item.get("text")
        if not isinstance(text, str) or not text.strip() or len(text) > bounds.EVIDENCE:
            raise ReplyFault(f"had a claim that is no text of 1 to {bounds.EVIDENCE:,} characters")
        if wrong := evidence.fault(item.get("quote"), None):
            raise ReplyFault(f"had a claim that was refused because {wrong}")
        if (same := normalised(text)) in found:
            raise ReplyFault("had a claim twice")
        found[same] = writable(text.strip())
    if not 1 <= len(found) <= bounds.REFERENCE_CLAIMS:
        raise ReplyFault(f"had {len(found)} claims; expected 1 to {bounds.REFERENCE_CLAIMS}")
    return tuple(found.values())
