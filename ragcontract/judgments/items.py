"""What is judged, and the key of a judgment: a judgment on other texts, or by another judge, is no judgment.

Whoever asks a model builds cases from a contract and a run, and so does whoever replays judgments: equal texts have
equal keys, on every machine.

The cases of a query that are made of its golden row and its run row alone: claims, and criteria.

Whoever asks a judge makes them, and so does whoever replays its judgments: equal texts make equal cases.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Annotated

from msgspec import UNSET, Meta, Struct

from ragcontract.core import bounds
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.judge_settings import Confirm, Confirmed, Task, Verdict
from ragcontract.core.run import RunRow, lacks_results

ASSERTS: Confirmed = "asserts_unsupported"


class Item(Struct, frozen=True, kw_only=True):
    """One thing to judge: its name in the judgments file (``claim:3``), its text, and why it is asked, if flagged."""

    name: str
    text: str
    why: str = ""


class Case(Struct, frozen=True, kw_only=True):
    """One task for one query: the items to judge, and the texts to judge them by.

    ``contexts`` are the retrieved texts, best first. ``response`` and ``reference`` are None where the task has none.
    """

    task: Task
    query_id: str
    question: str
    items: tuple[Item, ...]
    contexts: tuple[str, ...] = ()
    response: str | None = None
    reference: str | None = None


class AskedJudge(Struct, frozen=True, kw_only=True):
    """Who is asked, and how, as far as that is known before the first reply.

    ``instructions`` is a digest of all that a task has beside its data: rules, the schema of the reply, temperatures.
    """

    protocol: Annotated[int, Meta(ge=1, description="The version of the protocol.")]
    instructions: Annotated[str, Meta(max_length=bounds.JUDGE_NAME, description="A digest of the task's instructions.")]
    model: Annotated[str, Meta(max_length=bounds.JUDGE_NAME, description="The model, as it was asked for.")]
    host: Annotated[str, Meta(max_length=bounds.JUDGE_NAME, description="The host of its endpoint.")]
    votes: Annotated[int, Meta(ge=1, le=bounds.VOTES, description="How often at most an item is judged; odd.")]
    confirm: Annotated[Confirm, Meta(description="Whether only failures are asked again, or all items.")]


WITHOUT = ", without "  # before what an endpoint did not take, at the end of a fingerprint


def asked_how(judge: AskedJudge) -> str:
    """Return the part of a fingerprint that says where and how was asked; before it stands who replied."""
    votes = f"{judge.votes} votes on {'failures' if judge.confirm == 'failures' else 'everything'}"
    return f" at {judge.host}, protocol {judge.protocol}, {'1 vote' if judge.votes == 1 else votes}"


def keys_of(case: Case, judge: AskedJudge, texts: str = "") -> Iterator[str]:
    """Yield the key of each item's judgment: SHA-256, in hex, over all that is asked and who is asked how.

    All items of the case are part of each key, because they are asked together; each has its own text in its key again,
    because names can change places. The id of the query is no part. ``texts`` is the digest of what all keys have, if
    it is known already.
    """
    texts = texts or digest_of_texts(case)
    whom = {name: getattr(judge, name) for name in judge.__struct_fields__}
    for item in case.items:
        yield _digest({"judge": whom, "texts": texts, "item": [item.name, item.text, item.why]})


def digest_of_texts(case: Case) -> str:
    """Return a digest of all that is asked."""
    return _digest(
        {
            "task": case.task,
            "question": case.question,
            "items": [[item.text, item.why] for item in case.items],
            "contexts": case.contexts,
            "response": case.response,
            "reference": case.reference,
        }
    )


def sent_contexts(case: Case) -> dict[int, str]:
    """Return the contexts that are sent, by their ids, which are ranks: those that have any words."""
    return {rank: text for rank, text in enumerate(case.contexts, 1) if text.strip()}


def known_without_a_judge(case: Case) -> str:
    """Return why all items of a case fail without a judge being asked; empty if one is.

    Nothing supports a claim if nothing was retrieved, and no response meets no criterion.
    """
    if case.task == "attribution":
        return "" if sent_contexts(case) else "Nothing was retrieved."
    return "There is no response." if case.task == "criteria" and not (case.response or "").strip() else ""


def is_proven_by_context(task: Task, verdict: Verdict) -> bool:
    """Return whether a quote for a verdict is from a retrieved text, whose rank is named; if not, from the answer."""
    return task == "attribution" or verdict == "supported_by_context"


def label_of(verdict: Verdict) -> bool:
    """Return a verdict as a person labels the same item: supported, met, or asserted without support."""
    return verdict if isinstance(verdict, bool) else verdict == ASSERTS


def is_failure(verdict: Verdict) -> bool:
    """Return whether a verdict speaks against the application."""
    return not verdict if isinstance(verdict, bool) else verdict == ASSERTS


def settled(votes: Sequence[Verdict | None], most: int, confirm: Confirm) -> Verdict | None:
    """Return the verdict that votes have settled, of at most so many; None if they have not. None is a withheld vote.

    With ``confirm: failures``, the first vote decides unless it speaks against the application. Every other verdict
    needs more than half of all votes that there may be.
    """
    first = votes[0] if votes else None
    if first is not None and (most == 1 or (confirm == "failures" and not is_failure(first))):
        return first
    if most == 1 or (confirm == "failures" and first is None):
        return None
    cast = [vote for vote in votes if vote is not None]
    for against in (True, False):
        side = [vote for vote in cast if is_failure(vote) == against]
        if len(side) > most // 2:
            return Counter(side).most_common(1)[0][0]
    return None


def _digest(value: object) -> str:
    # Escapes stand for all that is not ASCII, lone surrogates too: each text has one form.
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def attribution_case(query: GoldenQuery, row: RunRow, k: int) -> Case | str | None:
    """Return the claims of a query; None if it has none, or why its texts are not known.

    The texts are ``retrieved_contexts``, or else those of the first ``k`` results.
    """
    claims = (query.answer and query.answer.reference_claims) or ()
    if not claims:
        return None
    if row.retrieved_contexts is None and lacks_results(row):
        return "has neither retrieved_contexts nor results; a judge needs what was retrieved"
    contexts = contexts_of(row, k)
    if isinstance(contexts, str):
        return contexts
    items = tuple(Item(name=f"claim:{number}", text=text) for number, text in enumerate(claims, 1))
    return Case(task="attribution", query_id=query.id, question=query.query, items=items, contexts=contexts)


def criteria_case(query: GoldenQuery, row: RunRow, k: int) -> Case | str | None:
    """Return the criteria of a query; None if it has none, or why its answer is not known.

    The retrieved texts are part of the case where they are known; a criterion need not be about them.
    """
    criteria = (query.answer and query.answer.criteria) or ()
    if query.answer is None or not criteria:
        return None
    if row.response is UNSET and row.error is None:
        return "has no response, which its criteria need; export it, as null if there was none"
    contexts = contexts_of(row, k)
    return Case(
        task="criteria",
        query_id=query.id,
        question=query.query,
        items=tuple(Item(name=f"criterion:{one.id}", text=one.text) for one in criteria),
        contexts=() if isinstance(contexts, str) else contexts,
        response=row.response if isinstance(row.response, str) and row.error is None else "",
        reference=query.answer.reference,
    )


def contexts_of(row: RunRow, k: int) -> tuple[str, ...] | str:
    """Return what was retrieved: ``retrieved_contexts``, or else the texts of the first ``k`` results, if all have one.

    Returns why not otherwise; nothing was retrieved where a row has neither.
    """
    if row.retrieved_contexts is not None:
        return tuple(row.retrieved_contexts)
    texts = [result.text for result in row.results[:k]]
    if None in texts:
        return f"has no text in results[{texts.index(None)}]; a judge needs it, or retrieved_contexts"
    return tuple(text for text in texts if text is not None)
