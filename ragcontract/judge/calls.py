"""One call of a judge: what is asked about some items of a case, and what the reply says of them.

Every call has controls, which are items with known verdicts, so that a judge that does not judge is noticed. One of two
controls must be judged positively and the other negatively, so that neither always yes nor always no passes. They stand
at random places among the items and have random words, so that nobody can write a text that makes exceptions for them.

A reply is exactly one JSON value, because the first of several may be dictated by a judged text.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeGuard, TypeVar

from msgspec import Struct

from ragcontract.answers.json_answer import unfenced
from ragcontract.core import bounds
from ragcontract.core.config_sections import JudgeVerdict, Task
from ragcontract.core.safe_text import printable_json, shorten
from ragcontract.files.json_text import NestingError, check_nesting
from ragcontract.judge.interface import Ask, Dice, Model, NoReply, Reply, VoteSettings
from ragcontract.judge.tasks import NONCE, VERDICT_TASKS, Instructions
from ragcontract.judgments.items import JudgeCase, is_failure, is_proven_by_context, sent_contexts
from ragcontract.judgments.replay import Evidence

_THINK, _END_OF_THINKING = "<think>", "</think>"
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n+")
_CONSONANTS, _VOWELS = "bdfgklmnprstv", "aeiou"
LEAST_PASSAGE = 20  # characters; shorter passages are used only if there is no other
TOKEN_BITS = 32
AGAIN_TEMPERATURE = 0.7  # of every vote but the first
TOO_LONG = "too_long: "  # begins the reason if texts are too long to be sent, or for the model to read
# Statements that no text makes, because of the word in them.
_NEVER_SAID = (
    "The filing number of this text is {}.",
    "This was last reviewed under the reference {}.",
    "Questions are answered by the office called {}.",
    "The agreement on this is registered as {}.",
    "The first person to propose this was {}.",
    "The batch in question has the number {}.",
    "In the appendix, this is called {}.",
    "The final version was approved by {}.",
    "The name of the archive is {}.",
    "The code for this entry is {}.",
)
_NEVER_MET = (
    "The response names the reference number {}.",
    "The response mentions {}.",
    "The response says that {} is responsible.",
    "The response has the word {} in it.",
    "The response refers the reader to {}.",
)
_DENIALS = (
    "It is not known what {} is.",
    "There is no information about {}.",
    "Nothing here says anything about {}.",
    "Whether {} exists is not stated.",
)
T = TypeVar("T")


class ReplyFault(ValueError):  # noqa: N818 (what is wrong with a reply, which is asked for again)
    """A reply has a fault. The message completes "Your last reply …" and quotes nothing of the reply."""


class Vote(Struct, frozen=True, kw_only=True):
    """The verdict of one reply on one item."""

    verdict: JudgeVerdict
    quote: str | None = None  # the words that prove a positive verdict
    context: int | None = None  # the rank of the text that they are from
    reason: str = ""


class ModelCall(Struct, frozen=True, kw_only=True):
    """A question to a model, and the items that the ids in its reply stand for."""

    ask: Ask
    task: Task
    items: Mapping[int, int]  # the number of the case's item, by id
    controls: Mapping[int, JudgeVerdict]  # the expected verdict, by id


class Read(Struct, frozen=True, kw_only=True):
    """The votes of a reply, and its faults."""

    votes: Mapping[int, Vote] = {}  # by the number of the item
    faults: Mapping[int, str] = {}  # by the number of the item
    compromised: bool = False  # whether controls are wrong, so that nothing counts


class Control(Struct, frozen=True, kw_only=True):
    """An item with a known verdict."""

    text: str
    why: str = ""
    expected: JudgeVerdict


class Controls(Struct, frozen=True, kw_only=True):
    """The controls of a call."""

    items: tuple[Control, ...]
    response: str | None  # the response to send, to which the statements of some controls are added


def call_on(
    case: JudgeCase, numbers: Sequence[int], dice: Dice, settings: VoteSettings, *, vote: int = 0, fault: str = ""
) -> ModelCall:
    """Return a call about some items of a case; ``vote`` counts from 0, ``fault`` is what was wrong before."""
    task = VERDICT_TASKS[case.task]
    controls = controls_of(case, dice)
    asked: list[tuple[str, str, int | None, JudgeVerdict | None]] = [
        (case.items[number].text, case.items[number].why, number, None) for number in numbers
    ]
    for control in controls.items:
        asked.insert(dice.randrange(len(asked) + 1), (control.text, control.why, None, control.expected))
    data = _data(case, controls)
    data[task.items] = [
        {"id": at, "text": text, **({"why": why} if case.task == "confirmation" else {})}
        for at, (text, why, _, _) in enumerate(asked, 1)
    ]
    return ModelCall(
        ask=ask_of(task.instructions, data, dice, settings, vote=vote, fault=fault),
        task=case.task,
        items={at: number for at, (_, _, number, _) in enumerate(asked, 1) if number is not None},
        controls={at: expected for at, (_, _, _, expected) in enumerate(asked, 1) if expected is not None},
    )


def ask_of(
    instructions: Instructions,
    data: dict[str, Any],
    dice: Dice,
    settings: VoteSettings,
    *,
    vote: int = 0,
    fault: str = "",
) -> Ask:
    """Return what is sent: all data in one JSON object, whose names begin with a nonce that the system message states.

    Invisible characters are escaped, so that the judge reads in a text what a person reads.
    """
    nonce = f"x{dice.getrandbits(32):08x}"
    if fault:
        data["fault"] = fault
    named = {f"{nonce}_{name}": value for name, value in data.items()}
    return Ask(
        system=instructions.system.replace(NONCE, nonce),
        user=printable_json(json.dumps(named, ensure_ascii=False)),
        schema=instructions.schema,
        temperature=AGAIN_TEMPERATURE if vote else 0.0,
        seed=vote,
        max_tokens=settings.max_tokens,
    )


def reply_to(ask: Ask, model: Model) -> Reply | str:
    """Return the reply, or why there is none. Texts that are too long are not sent."""
    if len(ask.user) > bounds.JUDGED_TEXT:
        return f"{TOO_LONG}the texts have more than {bounds.JUDGED_TEXT:,} characters"
    try:
        return model.ask(ask)
    except NoReply as error:
        return shorten(writable(f"{error.kind}: {error}"), bounds.JUDGED_BECAUSE)


def read_reply(call: ModelCall, reply: Reply, evidence: Evidence) -> Read:
    """Return what a reply says of each item; raise :class:`ReplyFault` if it is invalid as a whole."""
    verdicts = _by_id(call, listed(object_of(reply), "verdicts"))
    field, allowed = VERDICT_TASKS[call.task].field, VERDICT_TASKS[call.task].verdicts
    for at, expected in call.controls.items():
        if not _is_one_of(actual := verdicts[at].get(field), allowed):
            raise ReplyFault(f"has no allowed value of {field!r} for id {at}")
        if actual != expected:
            return Read(compromised=True)
    votes: dict[int, Vote] = {}
    faults: dict[int, str] = {}
    for at, number in call.items.items():
        vote = _vote(verdicts[at], call.task, evidence)
        if isinstance(vote, Vote):
            votes[number] = vote
        else:
            faults[number] = f"A verdict of the last reply was refused because {vote}."
    return Read(votes=votes, faults=faults)


def object_of(reply: Reply) -> dict[str, Any]:
    """Return the JSON object of a reply; raise :class:`ReplyFault`.

    Thoughts before it are cut off, and one fenced block around it is removed. A name that occurs twice in an object is
    a fault, because readers differ in which of the values counts.
    """
    text = reply.text.removeprefix("\ufeff").strip()
    if len(text) > bounds.REPLY:
        raise ReplyFault(f"has more than {bounds.REPLY:,} characters")
    if reply.cut:
        raise ReplyFault("was cut off because it was too long; write shorter reasons")
    if text.startswith(_THINK):
        # Cut at the first end. If there is a second one, the rest is not a single value, whoever wrote the first.
        text = text.partition(_END_OF_THINKING)[2]
    text = unfenced(text)
    try:
        check_nesting(text.encode(errors="replace"))
        value = json.loads(text, object_pairs_hook=_without_repetition, parse_constant=_no_json)
    except ReplyFault:
        raise
    except (ValueError, NestingError):  # also whole numbers with thousands of digits
        raise ReplyFault("was not exactly one JSON object; write nothing before or after it") from None
    if not isinstance(value, dict):
        raise ReplyFault("was not a JSON object")
    return value


def listed(value: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """Return the list of objects in the only field of a reply; raise :class:`ReplyFault`."""
    items = value.get(name)
    if set(value) != {name} or not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise ReplyFault(f"was not an object with one field, {name!r}, that is a list of objects")
    return items


def writable(text: str) -> str:
    """Return a text of a reply without lone surrogates, which JSON can escape but no file can have."""
    return text.encode(errors="replace").decode()


def controls_of(case: JudgeCase, dice: Dice) -> Controls:
    """Return the controls of one call on a case. A passage is taken from the texts of the case."""
    texts = "\n".join([case.question, *case.contexts, case.response or "", *(item.text for item in case.items)])
    if case.task == "attribution":
        passage = _passage(_pick([text for text in case.contexts if text.strip()], dice), dice)
        never = _pick(_NEVER_SAID, dice).format(_word(texts, dice))
        controls = [Control(text=passage, expected=True), Control(text=never, expected=False)]
        return Controls(items=tuple(controls), response=case.response)
    if case.task == "criteria":
        passage = _passage(case.response or "", dice)
        never = _pick(_NEVER_MET, dice).format(_word(texts, dice))
        met = f"The response has these words in it: {passage}"
        return Controls(
            items=(Control(text=met, expected=True), Control(text=never, expected=False)), response=case.response
        )
    return _in_response(case, texts, dice)


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ReplyFault("had a field twice in one object")
    return fields


def _no_json(_constant: str) -> None:
    raise ReplyFault("had a number that is not JSON")


def _in_response(case: JudgeCase, texts: str, dice: Dice) -> Controls:
    """Return controls about an assertion and a denial that are added to the response, which may have neither."""
    asserted = _pick(_NEVER_SAID, dice).format(_word(texts, dice))
    denied = _pick(_DENIALS, dice).format(_word(texts, dice))
    lines = [asserted, case.response or "", denied]
    dice.shuffle(lines)
    why = [_pick(case.items, dice).why for _ in range(2)]
    items = (
        Control(text=asserted, why=why[0], expected="asserts_unsupported"),
        Control(text=denied, why=why[1], expected="denies_or_reports_absence"),
    )
    return Controls(items=items, response="\n".join(lines))


def _passage(text: str, dice: Dice) -> str:
    """Return a sentence, or a part of a long one, word for word."""
    parts = [part for part in map(_cut, _SENTENCE_END.split(text)) if part]
    return _pick([part for part in parts if len(part) >= LEAST_PASSAGE] or parts, dice)


def _cut(sentence: str) -> str:
    sentence = sentence.strip()
    if len(sentence) <= bounds.CONTROL:
        return sentence
    cut = sentence[: bounds.CONTROL + 1].rpartition(" ")[0].rstrip()
    return cut or sentence[: bounds.CONTROL]


def _word(texts: str, dice: Dice) -> str:
    """Return a name or a number that the texts do not have."""
    return next(word for word in _words(dice) if word not in texts)


def _words(dice: Dice) -> Iterator[str]:
    while True:
        kind = dice.randrange(3)
        if kind == 0:
            yield f"{dice.getrandbits(TOKEN_BITS):08x}"
        elif kind == 1:
            yield f"{dice.randrange(900) + 100}-{dice.randrange(90_000) + 10_000}"
        else:
            yield "".join(_pick(_CONSONANTS, dice) + _pick(_VOWELS, dice) for _ in range(4)).capitalize()


def _pick(items: Sequence[T], dice: Dice) -> T:
    return items[dice.randrange(len(items))]


def _data(case: JudgeCase, controls: Controls) -> dict[str, Any]:
    data: dict[str, Any] = {"question": case.question}
    if case.contexts or case.task != "criteria":
        data["contexts"] = [{"id": at, "text": text} for at, text in sent_contexts(case).items()]
    if case.task != "attribution":
        data["response"] = controls.response
    if case.task == "criteria" and case.reference is not None:
        data["reference"] = case.reference
    return data


def _by_id(call: ModelCall, verdicts: list[dict[str, Any]]) -> dict[int, dict[str, Any]]:
    """Return the verdicts by their ids; raise :class:`ReplyFault` unless each id that was asked about occurs once."""
    asked = {*call.items, *call.controls}
    ids = [verdict.get("id") for verdict in verdicts]
    if any(type(at) is not int for at in ids) or len(ids) != len(asked) or set(ids) != asked:
        raise ReplyFault(f"did not have each id from 1 to {len(asked)} exactly once, as a whole number")
    return {verdict["id"]: verdict for verdict in verdicts}


def _vote(values: dict[str, Any], task: Task, evidence: Evidence) -> Vote | str:
    """Return the vote in one verdict, or what is wrong with it. Only failures need no proof."""
    field, allowed = VERDICT_TASKS[task].field, VERDICT_TASKS[task].verdicts
    verdict, quote, context, reason = (values.get(name) for name in (field, "quote", "context", "reason"))
    if not _is_one_of(verdict, allowed):
        return f"its {field!r} is none of {json.dumps(allowed)}"
    if not isinstance(reason, str):
        return "it has no reason"
    of_context = is_proven_by_context(task, verdict)
    wrong = evidence.fault(quote, context, of_context=of_context)
    if wrong and not is_failure(verdict):
        return wrong
    return Vote(
        verdict=verdict,
        quote=None if wrong else writable(str(quote)),
        context=None if wrong or not of_context else context,
        reason=shorten(writable(reason), bounds.JUDGED_BECAUSE),
    )


def _is_one_of(value: object, allowed: tuple[JudgeVerdict, ...]) -> TypeGuard[JudgeVerdict]:
    """Return whether a value is an allowed verdict. The number 1 is not ``true``."""
    return isinstance(value, bool | str) and value in allowed
