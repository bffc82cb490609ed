"""Whether the words that a judge quotes are in the text that it names: when it replies, and when that is replayed.

Finds what a judge said of a case in judgments files. A judgment on other texts is none: its key is another one.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TypeAlias

from msgspec import Struct

from ragcontract.answers.metric_options import CannotScoreError
from ragcontract.answers.normalising import normalised
from ragcontract.core import bounds
from ragcontract.core.ids import as_id
from ragcontract.core.judge_settings import JudgeSettings, Task, Verdict
from ragcontract.core.numbers import count
from ragcontract.core.safe_text import shorten, visible
from ragcontract.judgments.items import (
    AskedJudge,
    Case,
    digest_of_texts,
    is_failure,
    is_proven_by_context,
    keys_of,
    sent_contexts,
)
from ragcontract.judgments.judgments_file import Judgment


class Evidence:
    """The texts that a judge may quote, each normalised once: contexts by their ids, and a response or reference."""

    def __init__(self, contexts: Mapping[int, str], said: str | None) -> None:
        """Use the texts of one case."""
        self._texts: dict[int | None, str] = dict(contexts.items())
        if said is not None:
            self._texts[None] = said
        self._normal: dict[int | None, str | None] = {}

    def fault(self, quote: object, source: object) -> str | None:
        """Return what is wrong with a quote from a context, or from what was said (None); None if it is there."""
        if not isinstance(quote, str) or not quote.strip():
            return "it has no quote"
        if len(quote) > bounds.EVIDENCE:
            return f"its quote has more than {bounds.EVIDENCE:,} characters"
        if isinstance(source, bool) or not isinstance(source, int | None) or source not in self._texts:
            return "its context is not the id of a text"
        text, words = self._text(source), normalised(quote)
        if text is None or not words or words not in text:
            return "its quote is not in the text that it names, letter by letter"
        if len(words) < bounds.EVIDENCE_LEAST and words != text:
            return f"its quote has less than {bounds.EVIDENCE_LEAST} characters"
        return None

    def fault_of_proof(self, task: Task, verdict: Verdict, quote: object, context: object) -> str | None:
        """Return what is wrong with the quote that is to prove a verdict, from the context that is named, if any."""
        if not is_proven_by_context(task, verdict):
            return self.fault(quote, None)
        return "it names no context" if context is None else self.fault(quote, context)

    def _text(self, source: int | None) -> str | None:
        if source not in self._normal:
            try:
                self._normal[source] = normalised(self._texts[source])
            except CannotScoreError:  # too long to be compared: nothing is found in it
                self._normal[source] = None
        return self._normal[source]


def evidence_of(case: Case) -> Evidence:
    """Return the texts that a judge of a case may quote: those that were sent to it."""
    return Evidence(sent_contexts(case), None if case.task == "attribution" else case.response or "")


def edited(case: Case, said: Iterable[Judgment | None]) -> tuple[Judgment, str] | None:
    """Return the first judgment on the items of a case that somebody edited, with what is wrong in it.

    A judge's reply in favour of the application is refused if its proof is not in the texts.
    """
    evidence = evidence_of(case)
    for item, one in zip(case.items, said, strict=True):
        if one is None:
            continue
        if one.item != item.name:
            return one, f"item: its key is that of {item.name!r}"
        if one.verdict is None or is_failure(one.verdict):
            continue
        if wrong := evidence.fault_of_proof(case.task, one.verdict, one.quote, one.context):
            return one, f"quote: is no proof, because {wrong}"
    return None


# Returns one of the judgments on a case that somebody edited, and what is wrong in it.
Edited: TypeAlias = Callable[[Case, Iterable[Judgment | None]], tuple[Judgment, str] | None]
JUDGE = "`rag-contract judge`"
OF_K = "the texts are those of the first k results"


class _OfQuery(Struct, frozen=True):
    """The judgments on a query at one task, by their keys, and the judges that made them."""

    by_key: dict[str, Judgment]
    judges: dict[AskedJudge, None]

    def by_judge(self, case: Case) -> Iterator[tuple[Judgment | None, ...]]:
        """Yield what each judge said of the items of a case, in their order; None where it said nothing."""
        texts = digest_of_texts(case)
        for judge in self.judges:
            yield tuple(map(self.by_key.get, keys_of(case, judge, texts)))


class Replay:
    """The judgments that count, by query: those of the judge that the configuration names, or of any."""

    def __init__(
        self,
        judgments: Iterable[Judgment],
        settings: JudgeSettings,
        *,
        fingerprint: str | None = None,
        edited: Edited = lambda _case, _said: None,
        located: Callable[[Judgment], str] = lambda _: "",
    ) -> None:
        """Index judgments; with a ``fingerprint``, only those of the judge that was calibrated count.

        ``edited`` returns one that no judge made, ``located`` where one stands.
        """
        self._edited, self._located = edited, located
        self._wanted = _wanted(settings)
        self._found: dict[tuple[Task, str], _OfQuery] = {}
        self._others: dict[AskedJudge, None] = {}
        self._uncalibrated: set[tuple[Task, str]] = set()
        self._used: dict[Task, set[str]] = {}
        self._first: dict[tuple[Task, str], Judgment] = {}  # that counts, by task and fingerprint
        for judgment in judgments:
            if fingerprint is not None and judgment.votes and judgment.fingerprint != fingerprint:
                self._uncalibrated.add((judgment.task, as_id(judgment.query_id)))
            elif all(getattr(judgment.judge, name) == value for name, value in self._wanted.items()):
                of_query = self._found.setdefault((judgment.task, as_id(judgment.query_id)), _OfQuery({}, {}))
                of_query.by_key[judgment.key] = judgment
                of_query.judges[judgment.judge] = None
            else:
                self._others[judgment.judge] = None

    def said(self, case: Case) -> tuple[Judgment, ...] | str:
        """Return a judgment with a verdict for each item, in their order; or why there is none, and what to do."""
        of_query = self._found.get((case.task, case.query_id))
        if of_query is None:
            none = f"has no judgments on its {_items(case)}{self._by_others()}; run {JUDGE}"
            return self._of_another(case) or none
        if len(of_query.judges) > bounds.JUDGES:
            return f"has judgments of more than {bounds.JUDGES} judges; keep those of one"
        complete, partial = [], list[tuple[Judgment | None, ...]]()
        for found in of_query.by_judge(case):
            judged = tuple(one for one in found if one is not None and one.status == "ok")
            if len(judged) == len(found):
                complete.append(judged)
            elif any(found):
                partial.append(found)
        if len(complete) == 1:
            said = self._proven(case, complete[0])
            if not isinstance(said, str):
                self._used.setdefault(case.task, set()).update(one.fingerprint for one in said if one.votes)
            return said
        if complete:
            return f"has judgments of {_judges([said[0].judge for said in complete])}; {_name_one(complete)}"
        if others := self._of_another(case):
            return others
        if not partial:
            why = f"because its {_texts(case)} have changed since, or k has (without retrieved_contexts, {OF_K})"
            return f"has no judgments, {why}; run {JUDGE} again"
        return f"{_unjudged(case, max(partial, key=_verdicts))}; run {JUDGE} again"

    def _proven(self, case: Case, said: tuple[Judgment, ...]) -> tuple[Judgment, ...] | str:
        """Return judgments, unless one of them was edited: no judge is taken at its word without its proof."""
        if not (found := self._edited(case, said)):
            return self._of_other_parts(said) or said
        one, why = found
        name = shorten(visible(one.item), bounds.NAME)
        return f"has a judgment on {name} that no judge made: {self._located(one)}: {why}; run {JUDGE} again"

    def _of_other_parts(self, said: Iterable[Judgment]) -> str | None:
        """Return that a judgment was asked for otherwise than one with its fingerprint; None if none was.

        A fingerprint says who replied. It has neither the name by which that model was asked nor its instructions.
        """
        for one in said:
            if not one.votes:
                continue
            first = self._first.setdefault((one.task, one.fingerprint), one)
            for field in ("model", "instructions"):
                values = [getattr(judgment.judge, field) for judgment in (one, first)]
                if values[0] != values[1]:
                    here, there = (repr(shorten(visible(value), bounds.NAME)) for value in values)
                    return (
                        f"has a judgment of another judge: {self._located(one)}: judge.{field}: is {here}, and {there} "
                        f"at {self._located(first)}, which has the same fingerprint; keep those of one judge, or run "
                        f"{JUDGE} with --refresh"
                    )
        return None

    def partly(self, case: Case) -> dict[str, Judgment]:
        """Return the judgments with a verdict that there are, by item; none if several judges made them."""
        of_query = self._found.get((case.task, case.query_id))
        judged = [found for found in of_query.by_judge(case) if _verdicts(found)] if of_query else []
        if len(judged) != 1 or self._edited(case, judged[0]) or self._of_other_parts(filter(None, judged[0])):
            return {}
        pairs = zip(case.items, judged[0], strict=True)
        return {item.name: one for item, one in pairs if one is not None and one.status == "ok"}

    def fingerprints(self, task: Task, query_ids: Collection[str]) -> frozenset[str]:
        """Return who judged these queries, by the last replies on each; what needed no reply has none."""
        found = set()
        for (of, query_id), of_query in self._found.items():
            voted = [one for one in of_query.by_key.values() if one.status == "ok" and one.votes]
            if of == task and query_id in query_ids and voted:
                last = max(one.at for one in voted)
                found |= {one.fingerprint for one in voted if one.at == last}
        return frozenset(found)

    def _of_another(self, case: Case) -> str:
        """Return that there are judgments of a judge that is not calibrated; empty if there are none."""
        if (case.task, case.query_id) not in self._uncalibrated:
            return ""
        why = f"has judgments on its {_items(case)} by another judge than the one that was calibrated"
        return f"{why}; run {JUDGE} with --refresh, and `rag-contract judge calibrate`"

    def used(self, task: Task) -> frozenset[str]:
        """Return who said what was asked for up to now: of all rows of a run that has several, and of a baseline."""
        return frozenset(self._used.get(task, ()))

    def _by_others(self) -> str:
        if not self._others:
            return ""
        wanted = ", ".join(
            f"{name}: {shorten(visible(str(value)), bounds.NAME)}" for name, value in self._wanted.items()
        )
        return f" by the judge that ragcontract.yml names ({wanted}), only by {_judges(self._others)}"


def _wanted(settings: JudgeSettings) -> dict[str, str | int]:
    """Return what the configuration says of the judge that counts."""
    wanted = {"model": settings.model, "votes": settings.votes, "confirm": settings.confirm}
    return {name: value for name, value in wanted.items() if value is not None}


def _items(case: Case) -> str:
    return {"attribution": "reference_claims", "confirmation": "flagged texts", "criteria": "criteria"}[case.task]


def _texts(case: Case) -> str:
    """Return what a judgment on a case depends on."""
    answer = "" if case.task == "attribution" else ", answer"
    reference = ", reference" if case.reference is not None else ""
    return f"{_items(case)}{reference}, question{answer} or retrieved texts"


def _verdicts(found: Sequence[Judgment | None]) -> int:
    return sum(1 for one in found if one is not None and one.status == "ok")


def _unjudged(case: Case, found: Sequence[Judgment | None]) -> str:
    """Return which items have no verdict, and why the first of them has none."""
    without = [
        (item.name, one) for item, one in zip(case.items, found, strict=True) if one is None or one.status != "ok"
    ]
    names = ", ".join(name for name, _ in without[: bounds.NAMES]) + (", …" if len(without) > bounds.NAMES else "")
    _, first = without[0]
    why = f" ({first.status}: {shorten(visible(first.reason), bounds.VALUE)})" if first else ""
    return f"has no verdict on {len(without)} of {count(len(found), 'item')}: {names}{why}"


def _judges(judges: Collection[AskedJudge]) -> str:
    named = list(dict.fromkeys(map(_named, islice(judges, bounds.JUDGES))))
    more = f" and {len(named) - bounds.NAMES} more" if len(named) > bounds.NAMES else ""
    return " and ".join(named[: bounds.NAMES]) + more


def _named(judge: AskedJudge) -> str:
    model, host = (shorten(visible(one), bounds.NAME) for one in (judge.model, judge.host))
    return f"{model!r} at {host} ({count(judge.votes, 'vote')}, confirm: {judge.confirm})"


def _name_one(complete: Sequence[Sequence[Judgment]]) -> str:
    judges = [said[0].judge for said in complete]
    names = [name for name in ("model", "votes", "confirm") if len({getattr(judge, name) for judge in judges}) > 1]
    if not names:
        return f"keep those of one, or ask again with {JUDGE} --refresh and a new file"
    return f"say which one counts: {' or '.join(f'judge.{name}' for name in names)} in ragcontract.yml"
