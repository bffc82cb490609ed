"""The model of the metrics on answers: modes, labels, contexts, tools, similarity and declared scores."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tests.model import texts, tools
from tests.model.answers import MODES, Scale, Settings, actual_mode
from tests.model.workspace import CannotJudgeError, Row

WORDS = re.compile(r"\w+")
LOWER_IS_BETTER = ("false_answer_rate", "over_refusal_rate")
SWITCHED_ON_BY_LIMITS = ("context_recall_ids", "rouge_l", "exact_match")
BUILT_IN = (
    *("mode_accuracy", *LOWER_IS_BETTER, "label_accuracy", "context_recall_text"),
    *tools.TOOL_METRICS,
    *SWITCHED_ON_BY_LIMITS,
)


def scales(config: Row) -> dict[str, Scale]:
    """Return the scales of all metrics on answers, the declared scores included."""
    result = {name: Scale(higher=name not in LOWER_IS_BETTER) for name in BUILT_IN}
    for name, options in (config.get("metrics") or {}).items():
        if options.get("from") == "scores":
            low, high = options.get("scale", (0, 1))
            result[name] = Scale(low=low, high=high, higher=options.get("better", "higher") == "higher")
    return result


def answer_metrics(
    golden: Row, row: Row | None, settings: Settings, options: Mapping[str, Any], wanted: set[str], *, strict: bool
) -> dict[str, float]:
    """Return the metrics on one answer; ``wanted`` are those that a limit or the configuration names.

    Unless ``strict``, a metric for which the row lacks something is left out.
    """
    families: list[Callable[[], dict[str, float]]] = [
        lambda: _modes(golden, row, settings),
        lambda: _labels(golden, row),
        lambda: _tools(golden, row, dict(options)),
        lambda: _contexts(golden, row, options),
        lambda: _similarity(golden, row, settings, wanted & {"rouge_l", "exact_match"}),
    ]
    values: dict[str, float] = {}
    for family in families:
        try:
            values |= family()
        except CannotJudgeError:
            if strict:
                raise
    return values


def _modes(golden: Row, row: Row | None, settings: Settings) -> dict[str, float]:
    values: dict[str, float] = {}
    expected = golden.get("expected_mode")
    if expected is not None:
        mode = actual_mode(row, settings)
        values["mode_accuracy"] = float(mode == expected)
        if expected == "abstain":
            values["false_answer_rate"] = float(mode != "abstain")
        else:
            values["over_refusal_rate"] = float(mode not in MODES or mode == "abstain")
    return values


def _labels(golden: Row, row: Row | None) -> dict[str, float]:
    label = golden.get("expected_label")
    return {} if label is None else {"label_accuracy": float(actual_label(row) == label)}


def actual_label(row: Row | None) -> str | None:
    """Return the label that an application chose; none where it failed."""
    if row is None:
        return None
    if row.get("label") is None and row.get("error") is None:
        raise CannotJudgeError("no label")
    return row.get("label")


def macro_f1(pairs: Sequence[tuple[str, str | None]]) -> float | None:
    """Return the mean F1 of all labels that were expected or found."""
    classes = {label for pair in pairs for label in pair if label is not None}
    scores = []
    for label in classes:
        right = sum(expected == found == label for expected, found in pairs)
        wrong = sum((expected == label) + (found == label) for expected, found in pairs)
        scores.append(2 * right / wrong)
    return sum(scores) / len(scores) if scores else None


def _tools(golden: Row, row: Row | None, options: dict[str, Any]) -> dict[str, float]:
    if golden.get("reference_tool_calls") is None:
        return {}
    if row is None or (row.get("error") is not None and row.get("tool_calls") is None):
        return dict.fromkeys(tools.TOOL_METRICS, 0.0)
    wanted = tools.read_calls({"tool_calls": golden["reference_tool_calls"]}, "reference_tool_calls")
    return tools.tool_metrics(wanted, tools.read_calls(row, "tool metrics"), options)


def _contexts(golden: Row, row: Row | None, options: Mapping[str, Any]) -> dict[str, float]:
    references = golden.get("reference_contexts")
    return {} if references is None else {"context_recall_text": _context_recall(references, row, options)}


def _context_recall(references: Sequence[str], row: Row | None, options: Mapping[str, Any]) -> float:
    if row is None:
        return 0.0
    retrieved = row.get("retrieved_contexts")
    if retrieved is None:
        if row.get("results") or ("results" not in row and row.get("error") is None):  # none of them has a text
            raise CannotJudgeError("no retrieved_contexts")
        return 0.0
    threshold = (options.get("context_recall_text") or {}).get("threshold", 0.5)
    covered = [_coverage(reference, retrieved) >= threshold for reference in references]
    return sum(covered) / len(covered) if retrieved else 0.0


def _coverage(reference: str, retrieved: Sequence[str]) -> float:
    words = WORDS.findall(reference.casefold())
    size = min(3, len(words))
    found = {sequence for text in retrieved for sequence in _sequences(WORDS.findall(text.casefold()), size)}
    wanted = set(_sequences(words, size))
    return len(wanted & found) / len(wanted)


def _sequences(words: Sequence[str], size: int) -> list[tuple[str, ...]]:
    return [tuple(words[start : start + size]) for start in range(len(words) - size + 1)]


def _similarity(golden: Row, row: Row | None, settings: Settings, wanted: set[str]) -> dict[str, float]:
    if golden.get("reference") is None or not wanted:
        return {}
    if row is not None and "response" not in row and row.get("error") is None:
        raise CannotJudgeError("no response")
    if row is None or row.get("error") is not None or not row.get("response"):
        return dict.fromkeys(wanted, 0.0)
    response, reference = str(row["response"]), str(golden["reference"])
    form = _normalised if settings.reading.normalise else str
    equal = form(response) == form(reference)
    values = {"rouge_l": _rouge_l(response, reference), "exact_match": float(equal)}
    return {name: values[name] for name in wanted}


def _normalised(text: str) -> str:
    return texts.plain(texts.written(text)).casefold()


def _rouge_l(response: str, reference: str) -> float:
    one, other = WORDS.findall(response.lower()), WORDS.findall(reference.lower())
    common = tools.longest_common(one, other)
    return 2 * common / (len(one) + len(other)) if common else 0.0
