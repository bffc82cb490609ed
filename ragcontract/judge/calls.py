"""One call of a judge: what is asked about some items of a case, and what its reply says of them."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

from msgspec import Struct

from ragcontract.answers.evidence import Evidence
from ragcontract.core import bounds
from ragcontract.core.text import printable_json, shorten
from ragcontract.judge.controls import Controls, controls_of
from ragcontract.judge.interface import Ask, Dice, Model, NoReply, Reply, Settings
from ragcontract.judge.reply_json import ReplyFault, listed, object_of, writable
from ragcontract.judge.tasks import NONCE, VERDICT_TASKS, Instructions
from ragcontract.runs.judged_texts import Case, Task, Verdict, is_failure, is_proven_by_context, sent_contexts

AGAIN_TEMPERATURE = 0.7  # of every vote but the first
TOO_LONG = "too_long: "  # why there is no reply on texts that are longer than is sent, or than the model can read


class Vote(Struct, frozen=True, kw_only=True):
    """What one call says of one item; of a positive verdict, with the words that prove it and where they are from."""

    verdict: Verdict
    quote: str | None = None
    context: int | None = None
    reason: str = ""


class Call(Struct, frozen=True, kw_only=True):
    """What is asked, and what the ids in its reply stand for: items of the case, by number, and controls."""

    ask: Ask
    task: Task
    items: Mapping[int, int]
    controls: Mapping[int, Verdict]


class Read(Struct, frozen=True, kw_only=True):
    """What a reply says: votes and faults by the number of the item; nothing of a ``compromised`` one counts."""

    votes: Mapping[int, Vote] = {}
    faults: Mapping[int, str] = {}
    compromised: bool = False


def call_on(
    case: Case, numbers: Sequence[int], dice: Dice, settings: Settings, *, vote: int = 0, fault: str = ""
) -> Call:
    """Return a call about these items of a case; ``vote`` is 0 for the first one, ``fault`` what was wrong before."""
    task = VERDICT_TASKS[case.task]
    controls = controls_of(case, dice)
    asked: list[tuple[str, str, int | None, Verdict | None]] = [
        (case.items[number].text, case.items[number].why, number, None) for number in numbers
    ]
    for control in controls.items:
        asked.insert(dice.randrange(len(asked) + 1), (control.text, control.why, None, control.expected))
    data = _data(case, controls)
    data[task.items] = [
        {"id": at, "text": text, **({"why": why} if case.task == "confirmation" else {})}
        for at, (text, why, _, _) in enumerate(asked, 1)
    ]
    return Call(
        ask=ask_of(task.instructions, data, dice, settings, vote=vote, fault=fault),
        task=case.task,
        items={at: number for at, (_, _, number, _) in enumerate(asked, 1) if number is not None},
        controls={at: expected for at, (_, _, _, expected) in enumerate(asked, 1) if expected is not None},
    )


def ask_of(
    instructions: Instructions, data: dict[str, Any], dice: Dice, settings: Settings, *, vote: int = 0, fault: str = ""
) -> Ask:
    """Return what is sent: all data in one JSON object, its names behind a nonce that only the system message has.

    Characters that nobody sees are escaped, so that a text says to the judge what it says to a reader.
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


def _data(case: Case, controls: Controls) -> dict[str, Any]:
    data: dict[str, Any] = {"question": case.question}
    if case.contexts or case.task != "criteria":
        data["contexts"] = [{"id": at, "text": text} for at, text in sent_contexts(case).items()]
    if case.task != "attribution":
        data["response"] = controls.response
    if case.task == "criteria" and case.reference is not None:
        data["reference"] = case.reference
    return data


def reply_to(ask: Ask, model: Model) -> Reply | str:
    """Return the reply, or why there is none; what is too long is not sent."""
    if len(ask.user) > bounds.JUDGED_TEXT:
        return f"{TOO_LONG}the texts have more than {bounds.JUDGED_TEXT:,} characters"
    try:
        return model.ask(ask)
    except NoReply as error:
        return shorten(writable(f"{error.kind}: {error}"), bounds.JUDGED_BECAUSE)


def read_reply(call: Call, reply: Reply, evidence: Evidence) -> Read:
    """Return what a reply says of each item; raises :class:`ReplyFault` if nothing in it can be relied on."""
    verdicts = _by_id(call, listed(object_of(reply), "verdicts"))
    field, allowed = VERDICT_TASKS[call.task].field, VERDICT_TASKS[call.task].verdicts
    for at, expected in call.controls.items():
        if not _is_one_of(found := verdicts[at].get(field), allowed):
            raise ReplyFault(f"has no allowed value of {field!r} for id {at}")
        if found != expected:
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


def _by_id(call: Call, found: list[dict[str, Any]]) -> dict[int, dict[str, Any]]:
    """Return the verdicts by their ids; raises :class:`ReplyFault` unless they are those asked for, each once."""
    asked = {*call.items, *call.controls}
    ids = [one.get("id") for one in found]
    if any(type(at) is not int for at in ids) or len(ids) != len(asked) or set(ids) != asked:
        raise ReplyFault(f"did not have each id from 1 to {len(asked)} exactly once, as a whole number")
    return {one["id"]: one for one in found}


def _vote(found: dict[str, Any], task: Task, evidence: Evidence) -> Vote | str:
    """Return the vote in one verdict, or what is wrong with it; only those against the application need no proof."""
    field, allowed = VERDICT_TASKS[task].field, VERDICT_TASKS[task].verdicts
    verdict, quote, context, reason = (found.get(name) for name in (field, "quote", "context", "reason"))
    if not _is_one_of(verdict, allowed):
        return f"its {field!r} is none of {json.dumps(allowed)}"
    if not isinstance(reason, str):
        return "it has no reason"
    wrong = evidence.fault_of_proof(task, verdict, quote, context)
    if wrong and not is_failure(verdict):
        return wrong
    return Vote(
        verdict=verdict,
        quote=None if wrong else writable(str(quote)),
        context=None if wrong or not is_proven_by_context(task, verdict) else context,
        reason=shorten(writable(reason), bounds.JUDGED_BECAUSE),
    )


def _is_one_of(value: object, allowed: tuple[Verdict, ...]) -> TypeGuard[Verdict]:
    """Return whether a value is a verdict; 1 is not true."""
    return isinstance(value, bool | str) and value in allowed
