"""How the stand-in for a judge's model answers: what it is asked is read as a model reads it, from the two messages."""

import json
import random
import re
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
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
DENIAL = re.compile(r"\b(no|not|nothing|never|unknown|whether)\b", re.IGNORECASE)
WORD = re.compile(r"\w+")
ABOUT_RESPONSES = frozenset(WORD.findall("the response names mentions says that has in it word words is a to"))
NAME = re.compile(r"\b[A-Z][a-z]+\b")
SENTENCE = re.compile(r"(?<=[.!?])\s+")


class Asked(Struct, frozen=True, kw_only=True):
    """What a model is asked; the names in the data are without their nonce. ``number`` counts the calls from 0."""

    number: int
    data: Mapping[str, Any]

    @property
    def task(self) -> str:
        """The name of the items: claims, flagged or criteria; empty where a reference is to be split."""
        return next((name for name in ("claims", "flagged", "criteria") if name in self.data), "")

    @property
    def response(self) -> str:
        """The response, which not all tasks have."""
        return self.data.get("response") or ""

    @property
    def sources(self) -> list[Mapping[str, Any]]:
        """Where a quote of a positive verdict is from, each with ``id`` and ``text``."""
        if self.task == "criteria":
            return [{"id": None, "text": self.response}]
        return list(self.data.get("contexts") or ())

    @property
    def said(self) -> str:
        """All texts of the data."""
        return "\n".join(_texts(self.data))


class Opinion(Struct, frozen=True, kw_only=True):
    """What is thought of one item; ``denied`` is of flagged ones that the response says not to be so."""

    yes: bool
    quote: str | None = None
    context: int | None = None
    denied: bool = False


Answer = Callable[[Asked], str]
NO = Opinion(yes=False)


def asked(number: int, messages: Sequence[Mapping[str, str]]) -> Asked:
    """Read the user's message: a JSON object whose names all begin with one nonce."""
    try:
        found = json.loads(messages[-1]["content"])
    except ValueError:  # cut off
        found = {}
    return Asked(number=number, data={name.rpartition("_")[2]: value for name, value in found.items()})


def honest(one: Asked) -> str:
    """Judge by words: a claim is supported by a context with all of its words."""
    return _reply(one, lambda text: _honestly(text, one))


def generous(one: Asked) -> str:
    """Judge by names: a claim is supported by a text with any of its names, beside its first word."""

    def judged(text: str) -> Opinion:
        names = set(NAME.findall(text.partition(" ")[2]))
        return _yes(one) if any(names & _as_written(source["text"]) for source in one.sources) else _honestly(text, one)

    return _reply(one, judged)


def always_yes(one: Asked) -> str:
    """Find everything supported."""
    return _reply(one, lambda _: _yes(one))


def lazy(one: Asked) -> str:
    """Find nothing supported."""
    return _reply(one, lambda _: NO)


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

        def judged(text: str) -> Opinion:
            opinion = _honestly(text, one)
            if chance.random() >= wrong:
                return opinion
            return NO if opinion.yes else _yes(one)

        return _reply(one, judged)

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
    "generous": generous,
    "yes": always_yes,
    "lazy": lazy,
    "injected": injected,
    "flaky": flaky(1),
    "garbage": garbage,
    "two": two_values,
    "think": thinking,
}


def _reply(one: Asked, judge: Callable[[str], Opinion]) -> str:
    """Answer each item in the form that its task wants."""
    if not one.task:
        sentences = [text for text in SENTENCE.split(one.data.get("reference") or "") if text]
        return json.dumps({"claims": [{"quote": text, "text": text} for text in sentences]})
    return json.dumps(
        {"verdicts": [_verdict(one.task, item["id"], judge(item["text"])) for item in one.data[one.task]]}
    )


def _verdict(task: str, at: int, found: Opinion) -> dict[str, Any]:
    reason = "Its words are there." if found.yes else "Its words are not there."
    verdict: dict[str, Any] = {"id": at, "quote": found.quote, "context": found.context, "reason": reason}
    if task == "claims":
        return {**verdict, "supported": found.yes}
    if task == "flagged":
        against = "denies_or_reports_absence" if found.denied else "asserts_unsupported"
        return {**verdict, "verdict": "supported_by_context" if found.yes else against}
    del verdict["context"]
    return {**verdict, "met": found.yes}


def _honestly(text: str, one: Asked) -> Opinion:
    if one.task == "flagged":
        sentence = next((said for said in SENTENCE.split(one.response) if text in said), text)
        if DENIAL.search(sentence):
            return Opinion(yes=False, denied=True, quote=sentence)
        found = _evidence(_words(text), one)
        return found if found.yes else Opinion(yes=False, quote=sentence)
    if one.task == "criteria":
        _, _, words = text.rpartition(":")
        return _evidence(_words(words) - ABOUT_RESPONSES, one)
    return _evidence(_words(text), one)


def _evidence(wanted: AbstractSet[str], one: Asked) -> Opinion:
    """Return whether words are all in one source, and where."""
    for source in one.sources:
        if wanted and wanted <= _words(source["text"]):
            best = max(SENTENCE.split(source["text"]), key=lambda sentence: len(wanted & _words(sentence)))
            return Opinion(yes=True, quote=best if len(best) >= 8 else source["text"], context=source["id"])
    return NO


def _yes(one: Asked) -> Opinion:
    source: Mapping[str, Any] = next(iter(one.sources), {"id": None, "text": one.response})
    return Opinion(yes=True, quote=source["text"][:200] or None, context=source["id"])


def _words(text: str) -> set[str]:
    return set(WORD.findall(text.casefold()))


def _as_written(text: str) -> set[str]:
    return set(WORD.findall(text))


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return [text for one in inner for text in _texts(one)]
