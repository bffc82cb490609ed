"""The model of the rules on answers: what each wants of a row, and what was wrong where it is broken."""

import dataclasses
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import jsonschema

from tests.model import texts, tools
from tests.model.workspace import CannotJudgeError, Row

Wrong = frozenset[str]
HOLDS: Wrong = frozenset()
FIELDS = ("answer_must_include", "forbidden_claims", "required_elements", "forbidden_elements", "expected_mode")
ABOUT_TEXT = frozenset(
    {
        *FIELDS[:4],
        *("must_contain", "must_not_contain", "regex_must_match", "regex_must_not_match", "must_refuse"),
        *("must_not_refuse", "json_schema", "max_chars", "must_cite"),
    }
)
ON_TOOLS = frozenset({"must_call_tool", "must_not_call_tool", "tool_arguments_valid"})
ON_SCORES = frozenset({"min_score", "max_score", "max_hallucination_risk", "composite"})
MODES = ("trustworthy", "disputed", "abstain")
NUMBERS = re.compile(r"\[(?:\^|#|Source )?(\d{1,3}(?:\s*[-,]\s*\d{1,3})*)\]")
UNREAD = re.compile(r"<!--.*?-->|```.*?```|`[^`]*`", re.DOTALL)  # comments and code, which cite nothing
FENCED = re.compile(r"\s*```[a-z]*\n(.*?)\n?```\s*", re.DOTALL)


@dataclasses.dataclass(frozen=True)
class Scale:
    """The lowest and the highest value of a metric, and which way is better."""

    low: float = 0.0
    high: float = 1.0
    higher: bool = True

    @property
    def worst(self) -> float:
        """The value that counts where nothing was measured."""
        return self.low if self.higher else self.high


@dataclasses.dataclass(frozen=True)
class Settings:
    """What the configuration says of answers."""

    reading: texts.Reading = dataclasses.field(default_factory=texts.Reading)
    phrases: Sequence[str] = ()
    built_in: bool = True
    phrases_are_enough: bool = False
    missing_modes: str = "error"
    composite: Row | None = None
    scales: Mapping[str, Scale] = dataclasses.field(default_factory=dict)
    enforced: Mapping[str, bool | str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Rule:
    """A rule on the answer of one query; ``place`` tells rules of one name apart."""

    name: str
    place: int
    content: Any = dataclasses.field(compare=False)


NO_TEXTS = {"None", "null", "undefined", "nan", "NaN", "nil", "object_Object"}
LIST_MARKS = re.compile(r"^\s*(?:[-*+#]|[0-9]+[.)])\s+", re.MULTILINE)
NO_REFUSALS = ("none", "null", "undefined", "nan", "false", "no", "0", "n/a", "[object object]")


def rules_of(golden: Row, settings: Settings) -> list[Rule]:
    """Return the rules on the answer that a golden row has, those that are turned off included."""
    rules = [Rule(name, -1, golden[name]) for name in FIELDS if golden.get(name) is not None]
    rules += [Rule(rule["type"], place, rule) for place, rule in enumerate(golden.get("rules") or [])]
    names = {rule.name for rule in rules}
    if "must_not_refuse" in names and ("must_refuse" in names or golden.get("expected_mode") == "abstain"):
        raise CannotJudgeError("must_not_refuse contradicts must_refuse or the mode abstain")
    _check_contents(golden, rules, settings)
    if settings.composite is not None:
        rules.append(Rule("composite", -2, settings.composite))
    return rules


def _check_contents(golden: Row, rules: Sequence[Rule], settings: Settings) -> None:
    if (golden.get("min_required") or 0) > len(golden.get("required_elements") or []):
        raise CannotJudgeError("min_required is more than there are elements")
    if golden.get("allowed_phrases") is not None and golden.get("forbidden_claims") is None:
        raise CannotJudgeError("allowed_phrases without forbidden_claims")
    for listed in (golden[name] for name in FIELDS[:4] if golden.get(name) is not None):
        _check_list(listed)
    for rule in rules:
        if rule.name in ("must_contain", "must_not_contain"):
            if ("value" in rule.content) == ("any" in rule.content):
                raise CannotJudgeError("neither or both of value and any")
            _check_list(rule.content.get("value", rule.content.get("any")))
        elif rule.name == "must_call_tool":
            at_most = rule.content.get("at_most")
            if at_most is not None and at_most < rule.content.get("at_least", 1):
                raise CannotJudgeError("at_most is less than at_least")
        elif rule.name in ON_SCORES:
            _check_metrics(rule, settings)


def _check_list(listed: str | Sequence[Any]) -> None:
    if not isinstance(listed, str):
        texts_of_it = [json.dumps(item, sort_keys=True) for item in listed]
        if not texts_of_it or len(set(texts_of_it)) < len(texts_of_it):
            raise CannotJudgeError("an empty list, or a text twice")


def _check_metrics(rule: Rule, settings: Settings) -> None:
    wants_higher = {"min_score": True, "max_hallucination_risk": True, "max_score": False}.get(rule.name)
    for metric in metrics_of(rule):
        if metric not in settings.scales:
            raise CannotJudgeError(f"{rule.name} of the unknown metric {metric}")
        if wants_higher is not None and settings.scales[metric].higher != wants_higher:
            raise CannotJudgeError(f"{rule.name} of {metric}, which is better the other way")


def metrics_of(rule: Rule) -> list[str]:
    """Return the metrics that a rule on scores names."""
    if rule.name == "max_hallucination_risk":
        return ["faithfulness"]
    return list(rule.content["metrics"]) if rule.name == "composite" else [rule.content["metric"]]


@dataclasses.dataclass(frozen=True)
class Answer:
    """One row, as the rules of a query read it; ``row`` is none where the run has none."""

    golden: Row
    row: Row | None
    values: Mapping[str, float]
    settings: Settings
    strict: bool = True  # whether what is missing cannot be judged; in a baseline that is a run, it is not compared

    @property
    def text(self) -> str:
        """The text of the answer."""
        return str((self.row or {}).get("response") or "")


def broken_rules(rules: Sequence[Rule], answer: Answer) -> tuple[dict[Rule, Wrong], set[Rule]]:
    """Return what is wrong by broken rule, and those of them that only warn.

    A row of a baseline that is a run, and that lacks what one of the rules reads, is compared by none of them.
    """
    try:
        return _broken_rules(rules, answer)
    except CannotJudgeError:
        if answer.strict:
            raise
        return {}, set()


def _broken_rules(rules: Sequence[Rule], answer: Answer) -> tuple[dict[Rule, Wrong], set[Rule]]:
    wrong: dict[Rule, Wrong] = {}
    enforced = answer.settings.enforced
    cut_off = Rule("answered", -4, None)
    if any(rule.name in ABOUT_TEXT for rule in rules) and enforced.get("answered", True):
        if _unanswered(rules, answer):
            failed = (answer.row or {}).get("error") is not None
            wrong[Rule("answered", -3, None)] = frozenset({"error" if failed else "blank"})
        if (answer.row or {}).get("finish_reason") == "length":
            wrong[cut_off] = frozenset({"cut off"})
    for rule in rules:
        if enforced.get(rule.name, True):
            what = _wrong(rule, answer)
            if what:
                wrong[rule] = what
    weak = {rule for rule in wrong if rule.name == "must_refuse" and _only_phrases_could_show(answer)}
    weak |= {cut_off} & wrong.keys()
    return wrong, weak


def _unanswered(rules: Sequence[Rule], answer: Answer) -> bool:
    row = answer.row
    if row is None or row.get("error") is not None:
        return True
    if "response" not in row:
        raise CannotJudgeError("no response")
    blank = not _says_something(answer)
    refused = any(rule.name == "must_refuse" for rule in rules) and _refused_by_field(row)
    return blank and not refused


def _says_something(answer: Answer) -> bool:
    wants_json = any(rule["type"] == "json_schema" for rule in answer.golden.get("rules") or [])
    if words := _words_for_nothing(answer.text):
        return _words_for_nothing(answer.golden.get("reference") or "") == words or (
            wants_json and _is_json(answer.text)
        )
    return texts.says_something(answer.text) or (wants_json and _is_container(answer.text))


def _words_for_nothing(text: str) -> set[str]:
    """Return the words of a text if it has only such as are written for a missing one."""
    page = LIST_MARKS.sub("", texts.shown(text).replace("[object Object]", "object_Object"))
    words = {*filter(None, re.split(r"[\s\"',()\[\]]+", page))}
    return words if words <= NO_TEXTS else set()


def _refused_by_field(row: Row) -> bool:
    refusal = (row.get("refusal") or "").strip()
    return bool(refusal and refusal.casefold() not in NO_REFUSALS) or row.get("finish_reason") == "content_filter"


def _refused(answer: Answer) -> bool:
    row, settings = answer.row or {}, answer.settings
    if _refused_by_field(row) or row.get("mode") == "abstain":
        return True
    return texts.refusal_phrase(answer.text, settings.phrases, settings.reading, built_in=settings.built_in)


def _only_phrases_could_show(answer: Answer) -> bool:
    row, settings = answer.row, answer.settings
    if row is None or not answer.text.strip():
        return False
    return row.get("mode") is None and not settings.phrases and not settings.phrases_are_enough


def _wrong(rule: Rule, answer: Answer) -> Wrong:
    """Return what is wrong with an answer by one rule; nothing where it holds."""
    if rule.name in ON_TOOLS:
        return _wrong_tools(rule, answer)
    if rule.name in ON_SCORES:
        return _wrong_score(rule, answer)
    if rule.name == "expected_mode":
        return _wrong_mode(rule, answer)
    if rule.name == "check":
        return _wrong_check(rule, answer)
    if answer.row is not None and "response" not in answer.row and answer.row.get("error") is None:
        raise CannotJudgeError("no response")
    return _wrong_text(rule, answer)


def _wrong_text(rule: Rule, answer: Answer) -> Wrong:
    reading, text, content = answer.settings.reading, answer.text, rule.content
    match rule.name:
        case "answer_must_include":
            return frozenset(item for item in content if not texts.shows(text, item, reading))
        case "required_elements":
            missing = [item for item in content if not texts.matches(text, item, reading)]
            enough = len(content) - len(missing) >= (answer.golden.get("min_required") or len(content))
            return HOLDS if enough else _named(missing)
        case "forbidden_elements":
            return _named([item for item in content if texts.matches(text, item, reading, forbidden=True)])
        case "forbidden_claims":
            allowed = answer.golden.get("allowed_phrases") or []
            return _named([item for item in content if texts.claimed(text, item, allowed, reading)])
        case "must_contain" | "must_not_contain":
            return _wrong_contents(rule, text, reading)
        case "json_schema":
            return _wrong_json(text, content["schema"])
        case "must_cite":
            return _wrong_citations(answer)
        case _:
            return _broken_if(_breaks(rule, answer), rule)


def _named(items: Sequence[Any]) -> Wrong:
    return frozenset(json.dumps(item, sort_keys=True) for item in items)


def _broken_if(broken: bool, rule: Rule) -> Wrong:
    return frozenset({rule.name}) if broken else HOLDS


def _wrong_contents(rule: Rule, text: str, reading: texts.Reading) -> Wrong:
    content = rule.content
    options = {name: content[name] for name in ("ignore_case", "word") if name in content}
    listed = content.get("value", content.get("any"))
    wanted = [listed] if isinstance(listed, str) else listed
    forbidden = rule.name == "must_not_contain"
    finds = texts.contains if forbidden else texts.shows
    found = [item for item in wanted if finds(text, item, reading, **options)]
    if forbidden:
        return frozenset(found)
    if "any" in content:
        return HOLDS if found else frozenset({"none of them"})
    return frozenset(wanted) - frozenset(found)


def _breaks(rule: Rule, answer: Answer) -> bool:
    """Whether a rule that is broken as a whole is broken."""
    text, content = answer.text, rule.content
    match rule.name:
        case "regex_must_match" | "regex_must_not_match":
            options = {name: content[name] for name in ("ignore_case", "dot_all") if name in content}
            forbidden = rule.name == "regex_must_not_match"
            pattern = texts.pattern(content["pattern"], **options)
            searched = texts.searched(text, answer.settings.reading, content["pattern"]) if forbidden else [text]
            return forbidden == any(pattern.search(single) is not None for single in searched)
        case "must_refuse":
            return not _refused(answer)
        case "must_not_refuse":
            return _refused(answer)
        case "max_chars":
            return len(text) > int(content["value"])
    raise AssertionError(f"no model of {rule.name}")


def _wrong_json(text: str, schema: Any) -> Wrong:
    try:
        value = _json(text)
    except ValueError:
        return frozenset({"no JSON"})
    fits = jsonschema.Draft202012Validator(schema).is_valid(value)
    return HOLDS if fits else frozenset({"does not fit"})


def _json(text: str) -> Any:
    fenced = FENCED.fullmatch(text)
    return json.loads(fenced[1] if fenced else text, object_pairs_hook=_without_doubles)


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a key twice")
    return dict(pairs)


def _is_container(text: str) -> bool:
    return _is_json(text) and isinstance(_json(text), list | dict)


def _is_json(text: str) -> bool:
    try:
        _json(text)
    except ValueError:
        return False
    return True


def _wrong_citations(answer: Answer) -> Wrong:
    row = answer.row or {}
    documents = [str(result["doc_id"]) for result in row.get("results") or []]
    contexts = row.get("retrieved_contexts")
    size = len(documents) if contexts is None else len(contexts)
    read = UNREAD.sub(" ", answer.text)
    numbers = [int(number) for found in NUMBERS.finditer(read) for number in _numbers(found[1])]
    if any(not 1 <= number <= size for number in numbers):
        return frozenset({"a number of nothing"})
    exact = texts.Reading(normalise=False)
    named = any(texts.contains(answer.text, item, exact, ignore_case=False, word=True) for item in documents)
    return HOLDS if numbers or named else frozenset({"no citation"})


def _numbers(listed: str) -> list[str]:
    """Return the numbers that a citation names, those within a range included."""
    numbers = []
    for part in listed.split(","):
        ends = [int(end) for end in part.split("-")]
        numbers += [str(number) for number in range(ends[0], ends[-1] + 1)]
    return numbers


def _wrong_tools(rule: Rule, answer: Answer) -> Wrong:
    if answer.row is None:
        return frozenset({"no row"})
    calls = tools.read_calls(answer.row, rule.name)
    if rule.name == "tool_arguments_valid":
        return frozenset(call.name for call in calls if call.arguments is None)
    return tools.wrong_calls(rule.content, calls)


def _wrong_mode(rule: Rule, answer: Answer) -> Wrong:
    mode = actual_mode(answer.row, answer.settings)
    failed = answer.row is not None and answer.row.get("error") is not None
    silent = rule.content != "abstain" and "response" in (answer.row or {}) and not _says_something(answer)
    if mode == rule.content and not silent:
        return HOLDS
    return frozenset({"no answer" if failed or mode in {None, rule.content} else rule.name})


def actual_mode(row: Row | None, settings: Settings) -> str | None:
    """Return the mode in which an application answered; none where it failed."""
    if row is None or row.get("error") is not None:
        return None
    mode = row.get("mode")
    if mode is None and settings.missing_modes == "error":
        raise CannotJudgeError("no mode")
    if mode is not None and mode not in MODES:
        raise CannotJudgeError("an unknown mode")
    return mode


def _wrong_check(rule: Rule, answer: Answer) -> Wrong:
    if answer.row is None:
        return frozenset({"no row"})
    outcome = (answer.row.get("checks") or {}).get(rule.content["name"])
    passed = outcome.get("passed") if isinstance(outcome, dict) else outcome
    if not isinstance(passed, bool):
        raise CannotJudgeError("no check")
    return _broken_if(not passed, rule)


def _wrong_score(rule: Rule, answer: Answer) -> Wrong:
    scales, values = answer.settings.scales, answer.values
    if rule.name == "composite":
        present = [metric for metric in rule.content["metrics"] if metric in values]
        if not present:
            return HOLDS
        if len(present) < len(rule.content["metrics"]):
            raise CannotJudgeError("composite of metrics of which some are missing")
        shares = [share(values[metric], scales[metric]) for metric in present]
        return _broken_if(sum(shares) / len(shares) < rule.content["minimum"] - 1e-9, rule)
    (metric,) = metrics_of(rule)
    if metric not in values:
        raise CannotJudgeError(f"no {metric}")
    if rule.name == "max_score":
        return _broken_if(values[metric] > rule.content["value"] + 1e-9, rule)
    limit = rule.content["value"] if rule.name == "min_score" else rule.content.get("threshold", 0.7)
    return _broken_if(values[metric] < limit - 1e-9, rule)


def share(value: float, scale: Scale) -> float:
    """Return a value mapped to 0…1, with 1 for the best."""
    part = (value - scale.low) / (scale.high - scale.low)
    return part if scale.higher else 1 - part
