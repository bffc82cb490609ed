"""Context recall, the fraction of the wanted documents or texts that were retrieved, whatever their rank."""

from collections.abc import Iterable, Iterator

from msgspec import Struct

from ragcontract.answers.metric_options import CannotScoreError, NoOptions, NoWordsError, TextRecallOptions
from ragcontract.answers.similarity import RESEMBLING, distance_of, has_words, recall_of_ids, recall_of_texts
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.metric import Complaint, Family, Metric, MetricSettings, Missing, OneMetric, SwitchedOn
from ragcontract.core.run import RunRow, Values, lacks_results

IDS, TEXT = "context_recall_ids", "context_recall_text"
OPTIONS: dict[str, type[Struct]] = {IDS: NoOptions, TEXT: TextRecallOptions}


def context_recall(settings: MetricSettings) -> Iterable[Family]:
    """Return the families of recall by ids and by texts."""
    options = settings.declared.get(TEXT)
    text_options = options if isinstance(options, TextRecallOptions) else TextRecallOptions()
    return [CONTEXT_RECALL_IDS, ContextRecallText(text_options, max(settings.cutoffs))]


def _recall_of_ids(query: GoldenQuery, row: RunRow) -> float | None:
    """Return recall in all results that were exported, without a cut-off."""
    relevant = query.relevant_doc_ids
    return recall_of_ids(row.doc_ids, relevant) if relevant else None


CONTEXT_RECALL_IDS = OneMetric(
    metrics=(Metric(key=IDS, label="Context recall (ids)"),),
    needs=frozenset({"results"}),
    from_ids=True,
    switch=SwitchedOn.BY_LIMIT,
    value=_recall_of_ids,
)


class ContextRecallText:
    """Recall of ``reference_contexts`` in ``retrieved_contexts``, or else in the texts of the first k results."""

    needs = frozenset({"retrieved_contexts", "results.text"})
    from_ids = False
    switch = "reference_contexts"

    def __init__(self, options: TextRecallOptions, k: int) -> None:
        self._options, self._k = options, k
        way = f"{options.measure}, {options.threshold!r}, top {k}"
        self.metrics = (Metric(key=TEXT, label="Context recall (text)", suggested=True, fingerprint=way),)

    def values(self, query: GoldenQuery, row: RunRow) -> Values | Missing:
        """Return the fraction of the reference contexts that were retrieved; 0 if nothing was."""
        if query.answer is None or not query.answer.reference_contexts:
            return ()
        retrieved = self._retrieved(row)
        if isinstance(retrieved, Missing):
            return retrieved
        measure, threshold = self._options.measure, self._options.threshold
        try:
            return (recall_of_texts(retrieved, query.answer.reference_contexts, measure=measure, threshold=threshold),)
        except (NoWordsError, ImportError):
            return ()  # a complaint refuses the contract
        except CannotScoreError as error:
            return Missing(str(error))

    def _retrieved(self, row: RunRow) -> list[str] | Missing:
        if row.retrieved_contexts is not None:
            return row.retrieved_contexts
        if lacks_results(row):
            return Missing(f"has neither retrieved_contexts nor results, which {TEXT} needs; export one of them")
        texts = [result.text for result in row.results[: self._k]]
        if None in texts:
            number = texts.index(None)
            return Missing(f"has no text in results[{number}], which {TEXT} needs; export it, or retrieved_contexts")
        return [text for text in texts if text is not None]

    def complaints(self, queries: Iterable[GoldenQuery]) -> Iterator[Complaint]:
        """Yield complaints about references without words, missing packages, and thresholds that all texts pass."""
        measure, threshold = self._options.measure, self._options.threshold
        if measure != "coverage":
            try:
                distance_of(measure)
            except ImportError as error:
                yield Complaint(option=("metrics", TEXT, "measure"), message=str(error))
            if measure.startswith("jaro") and threshold < RESEMBLING:
                message = f"is low for {measure}: unrelated sentences count as retrieved; set it to 0.9 or more"
                yield Complaint(option=("metrics", TEXT, "threshold"), message=message, warns=True)
            return
        for query in queries:
            for number, text in enumerate((query.answer and query.answer.reference_contexts) or ()):
                if not has_words(text):
                    message = "has no words to search for; give a text with words, or choose another measure for it"
                    yield Complaint(location=query.location.at("reference_contexts", number), message=message)
