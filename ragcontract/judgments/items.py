"""Cases of items to judge, and the keys of their judgments.

Asking a judge and replaying its judgments both build cases from a contract and a run. Equal texts make equal cases, and
equal cases have equal keys on every machine. A judgment on other texts, or by another judge, has another key.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated

from msgspec import UNSET, Meta, Struct

from ragcontract.core import bounds
from ragcontract.core.config_sections import Confirm, Confirmed, JudgeVerdict, Task
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.run import RunRow, lacks_results

ASSERTS: Confirmed = "asserts_unsupported"
WITHOUT = ", without "  # at the end of a fingerprint, before the parameters that an endpoint refused


class Item(Struct, frozen=True, kw_only=True):
    """One text to judge."""

    name: str  # in the judgments file, such as claim:3
    text: str
    why: str = ""  # why a rule flagged it, if one did


class JudgeCase(Struct, frozen=True, kw_only=True):
    """One task for one query: the items to judge, and the texts to judge them by."""

    task: Task
    query_id: str
    question: str
    items: tuple[Item, ...]
    contexts: tuple[str, ...] = ()  # the retrieved texts, best first
    response: str | None = None  # None if the task has none
    reference: str | None = None  # None if the task has none


class AskedJudge(Struct, frozen=True, kw_only=True):
    """Which judge is asked, and how, as far as that is known before the first reply."""

    protocol: Annotated[int, Meta(ge=1, description="The version of the protocol.")]
    # The digest covers all that a task has beside its data: rules, the schema of the reply, temperatures.
    instructions: Annotated[str, Meta(max_length=bounds.JUDGE_NAME, description="A digest of the task's instructions.")]
    model: Annotated[str, Meta(max_length=bounds.JUDGE_NAME, description="The model, as it was asked for.")]
    host: Annotated[str, Meta(max_length=bounds.JUDGE_NAME, description="The host of its endpoint.")]
    votes: Annotated[int, Meta(ge=1, le=bounds.VOTES, description="How often at most an item is judged; odd.")]
    confirm: Annotated[Confirm, Meta(description="Whether only failures are asked again, or all items.")]


def attribution_case(query: GoldenQuery, row: RunRow, k: int) -> JudgeCase | str | None:
    """Return the case of a query's claims; None if it has no claims; or why its texts are not known.

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
    return JudgeCase(task="attribution", query_id=query.id, question=query.query, items=items, contexts=contexts)


def criteria_case(query: GoldenQuery, row: RunRow, k: int) -> JudgeCase | str | None:
    """Return the case of a query's criteria; None if it has no criteria; or why its answer is not known.

    The retrieved texts are part of the case if they are known. A criterion does not need them.
    """
    criteria = (query.answer and query.answer.criteria) or ()
    if query.answer is None or not criteria:
        return None
    if row.response is UNSET and row.error is None:
        return "has no response, which its criteria need; export it, as null if there was none"
    contexts = contexts_of(row, k)
    return JudgeCase(
        task="criteria",
        query_id=query.id,
        question=query.query,
        items=tuple(Item(name=f"criterion:{criterion.id}", text=criterion.text) for criterion in criteria),
        contexts=() if isinstance(contexts, str) else contexts,
        response=row.response if isinstance(row.response, str) and row.error is None else "",
        reference=query.answer.reference,
    )


def contexts_of(row: RunRow, k: int) -> tuple[str, ...] | str:
    """Return the retrieved texts: ``retrieved_contexts``, or else those of the first ``k`` results.

    If a result has no text, return why the texts are not known. A row with neither field has retrieved nothing.
    """
    if row.retrieved_contexts is not None:
        return tuple(row.retrieved_contexts)
    texts = [result.text for result in row.results[:k]]
    if None in texts:
        return f"has no text in results[{texts.index(None)}]; a judge needs it, or retrieved_contexts"
    return tuple(text for text in texts if text is not None)


def keys_of(case: JudgeCase, judges: Iterable[AskedJudge]) -> Iterator[tuple[str, ...]]:
    """Yield the keys of the items' judgments, for each judge: SHA-256, in hex, of all that is asked, whom, and how.

    All items of the case are part of each key, because they are asked together. Each key has the text of its own item
    as well, because names can change places. The id of the query is not part of a key.
    """
    texts = _digest(
        {
            "task": case.task,
            "question": case.question,
            "items": [[item.text, item.why] for item in case.items],
            "contexts": case.contexts,
            "response": case.response,
            "reference": case.reference,
        }
    )
    for judge in judges:
        whom = {name: getattr(judge, name) for name in judge.__struct_fields__}
        items = ([item.name, item.text, item.why] for item in case.items)
        yield tuple([_digest({"judge": whom, "texts": texts, "item": item}) for item in items])


def asked_how(judge: AskedJudge) -> str:
    """Return the part of a fingerprint that says where and how a judge was asked. It follows the model that replied."""
    votes = f"{judge.votes} votes on {'failures' if judge.confirm == 'failures' else 'everything'}"
    return f" at {judge.host}, protocol {judge.protocol}, {'1 vote' if judge.votes == 1 else votes}"


def sent_contexts(case: JudgeCase) -> dict[int, str]:
    """Return the contexts that are sent, by their ranks, which are their ids. Blank contexts are not sent."""
    return {rank: text for rank, text in enumerate(case.contexts, 1) if text.strip()}


def known_without_a_judge(case: JudgeCase) -> str:
    """Return why all items of a case fail without asking a judge; empty if a judge is asked.

    A claim is not supported if nothing was retrieved, and a criterion is not met if there is no response.
    """
    if case.task == "attribution":
        return "" if sent_contexts(case) else "Nothing was retrieved."
    return "There is no response." if case.task == "criteria" and not (case.response or "").strip() else ""


def is_proven_by_context(task: Task, verdict: JudgeVerdict) -> bool:
    """Return whether the quote for a verdict is from a retrieved text, whose rank is named, and not from the answer."""
    return task == "attribution" or verdict == "supported_by_context"


def label_of(verdict: JudgeVerdict) -> bool:
    """Return a verdict as the label of a person: whether the item is supported, met, or asserted without support."""
    return verdict if isinstance(verdict, bool) else verdict == ASSERTS


def is_failure(verdict: JudgeVerdict) -> bool:
    """Return whether a verdict speaks against the application."""
    return not verdict if isinstance(verdict, bool) else verdict == ASSERTS


def settled(votes: Sequence[JudgeVerdict | None], most: int, confirm: Confirm) -> JudgeVerdict | None:
    """Return the verdict that votes have settled; None if they have not. A withheld vote is None.

    With ``confirm: failures``, the first vote decides unless it speaks against the application. Otherwise, a verdict
    needs more than half of the votes that there may be at ``most``.
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
    # All that is not ASCII is escaped, lone surrogates as well, so that each text has one form.
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
