"""The model of golden rows that are refused: rules that a typing error turns off, texts of nothing, idle thresholds."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tests.model import texts
from tests.model.answers import FIELDS, Rule, Scale, metrics_of
from tests.model.workspace import CannotJudgeError, Row

RULE_FIELDS = (
    *FIELDS,
    *("must_rank_at_most", "must_include_any", "forbidden_doc_ids", "relevant_doc_ids"),
    *("allowed_phrases", "min_required", "rules"),
)
RULE_TYPES = (
    *("must_contain", "must_not_contain", "regex_must_match", "regex_must_not_match", "must_refuse"),
    *("must_not_refuse", "json_schema", "max_chars", "must_cite", "must_call_tool", "must_not_call_tool"),
    *("tool_arguments_valid", "min_score", "max_score", "max_hallucination_risk", "composite"),
)
KNOWN = frozenset(
    {
        *RULE_FIELDS,
        *("id", "query", "weight", "tags", "severity", "metadata", "relevance", "expected_label", "reference"),
        *("reference_claims", "reference_contexts", "reference_tool_calls", "criteria", "turns", "tier"),
    }
)
LONG = 8  # letters of a name from which two errors are likely
BOUNDARY_BESIDE_OTHERS = re.compile(r"\\[bB](?=[^\x00-\x7f])|(?<=[^\x00-\x7f])\\[bB]")
ANY_ANSWERS = ("a", "Z", "7")


def check_fields(golden: Row, allowed: Iterable[str]) -> None:
    """Refuse a field that looks like a misspelled rule, and is not listed as one's own."""
    for name in golden.keys() - KNOWN - set(allowed):
        if any(_looks_like(name, known) for known in (*RULE_FIELDS, *RULE_TYPES)):
            raise CannotJudgeError(f"a misspelled rule: {name}")


def _looks_like(name: str, known: str) -> bool:
    parts, known_parts = (re.findall(r"[^\W_]+", one.casefold()) for one in (name, known))
    if len(parts) > len(known_parts) and parts[: len(known_parts)] == known_parts:
        return False
    one, other = (re.sub(r"[\s_-]", "", texts.without_invisible(text)).casefold() for text in (name, known))
    return _errors(one, other) <= (2 if len(other) >= LONG else 1)


def _errors(one: str, other: str) -> int:
    """Return how many typing errors two names are apart: a letter too much, too few, another one, or two swapped."""
    rows = [list(range(len(other) + 1))]
    for i, letter in enumerate(one, start=1):
        row = [i]
        for j, candidate in enumerate(other, start=1):
            best = min(rows[-1][j] + 1, row[-1] + 1, rows[-1][j - 1] + (letter != candidate))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == candidate:
                best = min(best, rows[-2][j - 2] + 1)
            row.append(best)
        rows.append(row)
    return rows[-1][-1]


def check_phrases(phrases: Iterable[str]) -> None:
    """Refuse a phrase of refusal without a letter."""
    if not all(any(character.isalpha() for character in texts.shown(phrase)) for phrase in phrases):
        raise CannotJudgeError("a phrase of refusal without a letter")


def check_contents(golden: Row, rules: Iterable[Rule]) -> None:
    """Refuse texts of which nothing is left, and patterns that match every answer or never match."""
    listed = [(name, golden.get(name) or []) for name in (*FIELDS[:4], "allowed_phrases")]
    matchers = [(item, name) for name, items in listed for item in items]
    for rule in rules:
        if rule.name in ("must_contain", "must_not_contain"):
            value = rule.content.get("value", rule.content.get("any"))
            matchers += [(item, rule.name) for item in ([value] if isinstance(value, str) else value)]
        elif rule.name in ("regex_must_match", "regex_must_not_match"):
            matchers.append(({"regex": rule.content["pattern"]}, rule.name))
    for matcher, name in matchers:
        patterns = name in ("forbidden_claims", "allowed_phrases")
        for text, is_pattern in _single(matcher, bare_is_pattern=patterns):
            _check_single(text, is_pattern=is_pattern)


def _single(matcher: Any, *, bare_is_pattern: bool) -> Iterator[tuple[str, bool]]:
    if isinstance(matcher, str):
        yield matcher, bare_is_pattern
    elif "any" in matcher:
        for item in matcher["any"]:
            yield from _single(item, bare_is_pattern=bare_is_pattern)
    else:
        yield (matcher["regex"], True) if "regex" in matcher else (matcher["text"], False)


def _check_single(text: str, *, is_pattern: bool) -> None:
    if not is_pattern:
        if not texts.plain(texts.written(text)):
            raise CannotJudgeError("a text of which nothing is left")
        return
    if BOUNDARY_BESIDE_OTHERS.search(text):
        raise CannotJudgeError("a boundary beside a letter outside ASCII")
    pattern = texts.pattern(text)
    if pattern.search("") or all(pattern.search(answer) for answer in ANY_ANSWERS):
        raise CannotJudgeError("a pattern that matches every answer")


def check_thresholds(rules: Iterable[Rule], scales: Mapping[str, Scale]) -> None:
    """Refuse thresholds that every value of the scale keeps to."""
    for rule in rules:
        if rule.name in ("min_score", "max_score", "max_hallucination_risk"):
            _check_threshold(rule, scales[metrics_of(rule)[0]])


def _check_threshold(rule: Rule, scale: Scale) -> None:
    if rule.name == "max_score":
        idle = rule.content["value"] >= scale.high
    elif rule.name == "max_hallucination_risk":
        idle = rule.content.get("threshold", 0.7) <= scale.low or (scale.low, scale.high) != (0, 1)
    else:
        idle = rule.content["value"] <= scale.low
    if idle:
        raise CannotJudgeError("a threshold that every value keeps to, or of a scale that does not have it")
