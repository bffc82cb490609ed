"""Whether the words that a judge quotes are in the text that it names: when it replies, and when that is replayed."""

from collections.abc import Iterable, Mapping

from ragcontract.answers.cannot_score import CannotScoreError
from ragcontract.answers.normalising import normalised
from ragcontract.core import bounds
from ragcontract.runs.judged_texts import Case, Task, Verdict, is_failure, is_proven_by_context, sent_contexts
from ragcontract.runs.judgments import Judgment


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
