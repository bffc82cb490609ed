"""Replays judgments: finds those on a case, and refuses those that somebody edited.

A judgment on other texts has another key, so it is not found. The words that a judge quotes must be in the text that it
names, both when it replies and when its judgment is replayed.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import islice

from msgspec import Struct

from ragcontract.answers.metric_options import CannotScoreError
from ragcontract.answers.normalising import normalised
from ragcontract.core import bounds
from ragcontract.core.config_sections import JudgeSettings, Task
from ragcontract.core.ids import as_id
from ragcontract.core.numbers import beginning, count, more
from ragcontract.core.phrase import Message, Place, private
from ragcontract.core.safe_text import shorten, visible
from ragcontract.judgments.items import (
    AskedJudge,
    JudgeCase,
    is_failure,
    is_proven_by_context,
    keys_of,
    sent_contexts,
)
from ragcontract.judgments.judgments_file import Judgment

JUDGE = "`rag-contract judge`"
OF_K = "the texts are those of the first k results"


class Replay:
    """The judgments that count, by query: those of the judge that the configuration names, or of any."""

    def __init__(
        self,
        judgments: Iterable[Judgment],
        settings: JudgeSettings,
        *,
        fingerprint: str | None = None,
        located: Callable[[Judgment], Place] = lambda _: "",
    ) -> None:
        """Index judgments. With the ``fingerprint`` of a calibrated judge, only its judgments count.

        ``located`` returns the location of a judgment.
        """
        self._located = located
        self._wanted = _wanted(settings)
        self._of_queries: dict[tuple[Task, str], _OfQuery] = {}
        self._others: dict[AskedJudge, None] = {}
        self._uncalibrated: set[tuple[Task, str]] = set()
        self._first: dict[tuple[Task, str], Judgment] = {}  # the first judgment that counts, by task and fingerprint
        for judgment in judgments:
            if fingerprint is not None and judgment.votes and judgment.fingerprint != fingerprint:
                self._uncalibrated.add((judgment.task, as_id(judgment.query_id)))
            elif all(getattr(judgment.judge, name) == value for name, value in self._wanted.items()):
                of_query = self._of_queries.setdefault((judgment.task, as_id(judgment.query_id)), _OfQuery({}, {}))
                of_query.by_key[judgment.key] = judgment
                of_query.judges[judgment.judge] = None
            else:
                self._others[judgment.judge] = None

    def judgments(self, case: JudgeCase) -> tuple[Judgment, ...] | str:
        """Return a judgment with a verdict for each item, in order; or why an item has none, and what to do."""
        of_query = self._of_queries.get((case.task, case.query_id))
        if of_query is None:
            none = f"has no judgments on its {_items(case)}{self._by_others()}; run {JUDGE}"
            return self._of_another(case) or none
        if len(of_query.judges) > bounds.JUDGES:
            return f"has judgments of more than {bounds.JUDGES} judges; keep those of one"
        complete, partial = [], list[tuple[Judgment | None, ...]]()
        for keys in keys_of(case, of_query.judges):
            judgments = tuple(map(of_query.by_key.get, keys))
            judged = tuple(judgment for judgment in judgments if judgment is not None and judgment.status == "ok")
            if len(judged) == len(judgments):
                complete.append(judged)
            elif any(judgments):
                partial.append(judgments)
        if len(complete) == 1:
            return self._fault(case, complete[0]) or complete[0]
        if complete:
            return f"has judgments of {_judges([judgments[0].judge for judgments in complete])}; {_name_one(complete)}"
        if others := self._of_another(case):
            return others
        if not partial:
            why = f"because its {_texts(case)} have changed since, or k has (without retrieved_contexts, {OF_K})"
            return f"has no judgments, {why}; run {JUDGE} again"
        return Message.of(_unjudged(case, max(partial, key=_verdicts)), f"; run {JUDGE} again")

    def _fault(self, case: JudgeCase, judgments: Sequence[Judgment | None]) -> str | None:
        """Return why judgments on a case do not count; None if they do.

        One of them was edited, or was asked for in another way than one with its fingerprint, which has neither the
        name by which the model was asked for nor its instructions.
        """
        if edit := edited(case, judgments):
            judgment, why = edit
            name = shorten(visible(judgment.item), bounds.NAME)
            is_known = any(judgment.item == item.name for item in case.items)  # whoever edits it may write anything
            item = name if is_known else private(name)
            rest = f" that no judge made: {self._located(judgment)}: {why}; run {JUDGE} again"
            return Message.quoting("has a judgment on ", item, rest)
        for voted in (judgment for judgment in judgments if judgment is not None and judgment.votes):
            first = self._first.setdefault((voted.task, voted.fingerprint), voted)
            for field in ("model", "instructions"):
                values = [getattr(asked.judge, field) for asked in (voted, first)]
                if values[0] != values[1]:
                    here, there = (repr(shorten(visible(value), bounds.NAME)) for value in values)
                    return (
                        f"has a judgment of another judge: {self._located(voted)}: judge.{field}: is {here}, and "
                        f"{there} at {self._located(first)}, which has the same fingerprint; keep those of one judge, "
                        f"or run {JUDGE} with --refresh"
                    )
        return None

    def partly(self, case: JudgeCase) -> dict[str, Judgment]:
        """Return those items of a case that have a verdict, with their judgments; none if there are several judges."""
        of_query = self._of_queries.get((case.task, case.query_id))
        if of_query is None:
            return {}
        by_judge = (tuple(map(of_query.by_key.get, keys)) for keys in keys_of(case, of_query.judges))
        judged = [judgments for judgments in by_judge if _verdicts(judgments)]
        if len(judged) != 1 or self._fault(case, judged[0]):
            return {}
        pairs = zip(case.items, judged[0], strict=True)
        return {item.name: judgment for item, judgment in pairs if judgment is not None and judgment.status == "ok"}

    def fingerprints(self, task: Task, query_ids: Collection[str]) -> frozenset[str]:
        """Return the judges of these queries: those of the last replies on each query. An item may need no reply."""
        fingerprints = set()
        for (of, query_id), of_query in self._of_queries.items():
            voted = [judgment for judgment in of_query.by_key.values() if judgment.status == "ok" and judgment.votes]
            if of == task and query_id in query_ids and voted:
                last = max(judgment.at for judgment in voted)
                fingerprints |= {judgment.fingerprint for judgment in voted if judgment.at == last}
        return frozenset(fingerprints)

    def _of_another(self, case: JudgeCase) -> str:
        """Return a message if another judge than the calibrated one judged the case; empty if not."""
        if (case.task, case.query_id) not in self._uncalibrated:
            return ""
        why = f"has judgments on its {_items(case)} by another judge than the one that was calibrated"
        return f"{why}; run {JUDGE} with --refresh, and `rag-contract judge calibrate`"

    def _by_others(self) -> str:
        if not self._others:
            return ""
        wanted = ", ".join(
            f"{name}: {shorten(visible(str(value)), bounds.NAME)}" for name, value in self._wanted.items()
        )
        return f" by the judge that ragcontract.yml names ({wanted}), only by {_judges(self._others)}"


class Evidence:
    """The texts of a case that a judge may quote, which are those that were sent to it, each normalised once."""

    def __init__(self, contexts: Mapping[int, str], answer: str | None) -> None:
        self._texts: dict[int | None, str] = dict(contexts.items())  # by their ids; the answer has none
        if answer is not None:
            self._texts[None] = answer
        self._normal: dict[int | None, str | None] = {}

    def fault(self, quote: object, context: object = None, *, of_context: bool = False) -> str | None:
        """Return what is wrong with a quote from the answer or, with ``of_context``, from a context; None if nothing.

        ``context`` is the id of the text that is named beside the quote.
        """
        if of_context and context is None:
            return "it names no context"
        source = context if of_context else None
        if not isinstance(quote, str) or not quote.strip():
            return "it has no quote"
        if len(quote) > bounds.EVIDENCE:
            return f"its quote has more than {bounds.EVIDENCE:,} characters"
        if isinstance(source, bool) or not isinstance(source, int | None) or source not in self._texts:
            return "its context is not the id of a text"
        if source not in self._normal:
            try:
                self._normal[source] = normalised(self._texts[source])
            except CannotScoreError:  # too long to be compared, so no quote is in it
                self._normal[source] = None
        text, words = self._normal[source], normalised(quote)
        if text is None or not words or words not in text:
            return "its quote is not in the text that it names, letter by letter"
        if len(words) < bounds.EVIDENCE_LEAST and words != text:
            return f"its quote has less than {bounds.EVIDENCE_LEAST} characters"
        return None


def edited(case: JudgeCase, judgments: Iterable[Judgment | None]) -> tuple[Judgment, str] | None:
    """Return the first judgment on the items of a case that somebody edited, with what is wrong in it.

    A judgment in favour of the application is refused if its proof is not in the texts.
    """
    evidence = Evidence(sent_contexts(case), case.response)
    for item, judgment in zip(case.items, judgments, strict=True):
        if judgment is None:
            continue
        if judgment.item != item.name:
            return judgment, f"item: its key is that of {item.name!r}"
        if judgment.verdict is None or is_failure(judgment.verdict):
            continue
        of_context = is_proven_by_context(case.task, judgment.verdict)
        if wrong := evidence.fault(judgment.quote, judgment.context, of_context=of_context):
            return judgment, f"quote: is not a proof, because {wrong}"
    return None


class _OfQuery(Struct, frozen=True):
    """The judgments on a query at one task, and the judges that made them."""

    by_key: dict[str, Judgment]
    judges: dict[AskedJudge, None]


def _wanted(settings: JudgeSettings) -> dict[str, str | int]:
    """Return what the configuration requires of the judge."""
    wanted = {"model": settings.model, "votes": settings.votes, "confirm": settings.confirm}
    return {name: value for name, value in wanted.items() if value is not None}


def _items(case: JudgeCase) -> str:
    return {"attribution": "reference_claims", "confirmation": "flagged texts", "criteria": "criteria"}[case.task]


def _texts(case: JudgeCase) -> str:
    """Return the names of the texts on which a judgment on a case depends."""
    answer = "" if case.task == "attribution" else ", answer"
    reference = ", reference" if case.reference is not None else ""
    return f"{_items(case)}{reference}, question{answer} or retrieved texts"


def _verdicts(judgments: Sequence[Judgment | None]) -> int:
    return sum(1 for judgment in judgments if judgment is not None and judgment.status == "ok")


def _unjudged(case: JudgeCase, judgments: Sequence[Judgment | None]) -> str:
    """Return which items have no verdict, and why the first of them has none."""
    without = [
        (item.name, judgment)
        for item, judgment in zip(case.items, judgments, strict=True)
        if judgment is None or judgment.status != "ok"
    ]
    _, first = without[0]
    names = beginning([name for name, _ in without])
    start = f"has no verdict on {len(without)} of {count(len(judgments), 'item')}: {names}"
    if first is None:
        return start
    return Message.quoting(f"{start} ({first.status}: ", private(shorten(visible(first.reason), bounds.VALUE)), ")")


def _judges(judges: Collection[AskedJudge]) -> str:
    named = list(dict.fromkeys(map(_named, islice(judges, bounds.JUDGES))))
    return " and ".join(named[: bounds.NAMES]) + more(len(named), bounds.NAMES, form=" and {}")


def _named(judge: AskedJudge) -> str:
    model, host = (shorten(visible(text), bounds.NAME) for text in (judge.model, judge.host))
    return f"{model!r} at {host} ({count(judge.votes, 'vote')}, confirm: {judge.confirm})"


def _name_one(complete: Sequence[Sequence[Judgment]]) -> str:
    judges = [judgments[0].judge for judgments in complete]
    names = [name for name in ("model", "votes", "confirm") if len({getattr(judge, name) for judge in judges}) > 1]
    if not names:
        return f"keep those of one, or ask again with {JUDGE} --refresh and a new file"
    return f"say which one counts: {' or '.join(f'judge.{name}' for name in names)} in ragcontract.yml"
