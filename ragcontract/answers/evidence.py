"""Whether the words that a judge quotes are in the text that it names: when it replies, and when that is replayed."""

from collections.abc import Mapping, Sequence

from ragcontract.answers.cannot_score import CannotScoreError
from ragcontract.answers.normalising import normalised
from ragcontract.core import bounds
from ragcontract.runs.judged_texts import Case, is_failure, sent_contexts
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

    def _text(self, source: int | None) -> str | None:
        if source not in self._normal:
            try:
                self._normal[source] = normalised(self._texts[source])
            except CannotScoreError:  # too long to be compared: nothing is found in it
                self._normal[source] = None
        return self._normal[source]


def evidence_of(case: Case) -> Evidence:
    """Return the texts of a case that may be quoted."""
    return Evidence(sent_contexts(case), None if case.task == "attribution" else case.response or "")


def unproven(case: Case, judgments: Sequence[Judgment]) -> str | None:
    """Return which of the judgments on a case has no proof in its texts, and why; None if none lacks it.

    Whoever writes a judgments file by hand can write any quote; a reviewer reads it in the report as one of the text.
    """
    evidence = evidence_of(case)
    for one in judgments:
        if one.verdict is None or is_failure(one.verdict):
            continue
        from_context = case.task == "attribution" or one.verdict == "supported_by_context"
        if wrong := evidence.fault(one.quote, one.context if from_context else None):
            return f"has a judgment on {one.item} that cannot count: {wrong}"
    return None
