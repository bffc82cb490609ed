"""How the stand-in for a judge's model answers: what it is asked is read as a model reads it, from the two messages."""

import json
import random
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

# What an obedient model does what it says, wherever in the data it stands.
ORDERS = re.compile(
    r"ignore|disregard|override|forget (all|the|your)|system ?(:|prompt|message)|you (must|are now|will)"
    r"|new instructions?|mark (all|every|this|each)|\"?(supported|met|verdict)\"?\s*(:|=|is|to)|as supported"
    r"|answer (yes|true)|judge:",
    re.IGNORECASE,
)
AGAINST = re.compile(r"false|not supported|unsupported|\bno\b|asserts_unsupported|fail", re.IGNORECASE)
WORD = re.compile(r"\w+")
SENTENCE = re.compile(r"(?<=[.!?])\s+")


class Asked(Struct, frozen=True, kw_only=True):
    """What a model is asked; the names in the data are without their nonce. ``number`` counts the calls from 0."""

    number: int
    data: Mapping[str, Any]

    @property
    def sources(self) -> list[Mapping[str, Any]]:
        """Where a quote may come from, each with ``id`` and ``text``: the contexts, or the response."""
        return list(self.data.get("contexts") or ()) or [{"id": None, "text": self.data.get("response") or ""}]

    @property
    def said(self) -> str:
        """All texts of the data."""
        return "\n".join(_texts(self.data))


Answer = Callable[[Asked], str]


def asked(number: int, messages: Sequence[Mapping[str, str]]) -> Asked:
    """Read the user's message: a JSON object whose names all begin with one nonce."""
    try:
        found = json.loads(messages[-1]["content"])
    except ValueError:
        found = {}
    return Asked(number=number, data={name.rpartition("_")[2]: value for name, value in found.items()})


def honest(one: Asked) -> str:
    """Judge by words: a claim is supported by a context with all of its words."""
    return _verdicts(one, lambda text: _evidence(text, one))


def always_yes(one: Asked) -> str:
    """Find everything supported."""
    return _verdicts(one, lambda _: (True, *_first_words(one)))


def lazy(one: Asked) -> str:
    """Find nothing supported."""
    return _verdicts(one, lambda _: (False, None, None))


def injected(one: Asked) -> str:
    """Do what the data say, if they say anything; be honest otherwise."""
    order = ORDERS.search(one.said)
    if not order:
        return honest(one)
    around = one.said[max(0, order.start() - 80) : order.end() + 80]
    return lazy(one) if AGAINST.search(around) else always_yes(one)


def flaky(seed: int, wrong: float = 0.3) -> Answer:
    """Return a model that is honest, but takes each item for its contrary at a rate."""

    def answer(one: Asked) -> str:
        chance = random.Random(f"{seed} {one.number}")

        def judged(text: str) -> tuple[bool, str | None, int | None]:
            supported, quote, context = _evidence(text, one)
            if chance.random() >= wrong:
                return supported, quote, context
            return (False, None, None) if supported else (True, *_first_words(one))

        return _verdicts(one, judged)

    return answer


def garbage(_: Asked) -> str:
    """Answer with what is no JSON."""
    return "Sure! Here is what I think: all of it is fine, {more or less"


def two_values(one: Asked) -> str:
    """Answer twice, first otherwise than meant."""
    return f"{always_yes(one)}\n{honest(one)}"


def thinking(one: Asked) -> str:
    """Think aloud, with JSON in it, and answer then."""
    return f'<think>Perhaps {{"verdicts": []}}? No.</think>\n{honest(one)}'


CHARACTERS: Mapping[str, Answer] = {
    "honest": honest,
    "yes": always_yes,
    "lazy": lazy,
    "injected": injected,
    "flaky": flaky(1),
    "garbage": garbage,
    "two": two_values,
    "think": thinking,
}


def _verdicts(one: Asked, judge: Callable[[str], tuple[bool, str | None, int | None]]) -> str:
    """Answer each item in the form that its task wants."""
    if "reference" in one.data and not {"claims", "flagged", "criteria"} & set(one.data):
        return json.dumps({"claims": [text for text in SENTENCE.split(one.data["reference"]) if text]})
    for name in ("claims", "flagged", "criteria"):
        if name in one.data:
            return json.dumps({"verdicts": [_verdict(name, item, *judge(item["text"])) for item in one.data[name]]})
    return "{}"


def _verdict(name: str, item: Mapping[str, Any], yes: bool, quote: str | None, context: int | None) -> dict[str, Any]:
    reason = "Its words are there." if yes else "Its words are not there."
    known = {"id": item["id"], "quote": quote, "context": context, "reason": reason}
    if name == "claims":
        return {**known, "supported": yes}
    if name == "flagged":
        return {**known, "verdict": "supported_by_context" if yes else "asserts_unsupported"}
    return {"id": item["id"], "quote": quote, "reason": reason, "met": yes}


def _evidence(text: str, one: Asked) -> tuple[bool, str | None, int | None]:
    """Return whether a text's words are all in one context (or, of a criterion, in the response), and where."""
    wanted = _words(text)
    for source in one.sources:
        if wanted and wanted <= _words(source["text"]):
            sentences = SENTENCE.split(source["text"])
            best = max(sentences, key=lambda sentence: len(wanted & _words(sentence)))
            return True, best if len(best) >= 8 else source["text"], source["id"]
    return False, None, None


def _first_words(one: Asked) -> tuple[str | None, int | None]:
    source = one.sources[0]
    return source["text"][:200] or None, source["id"]


def _words(text: str) -> set[str]:
    return set(WORD.findall(text.casefold()))


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return [text for one in inner for text in _texts(one)]
