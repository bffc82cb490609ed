"""What golden rows expect of answers: texts, patterns, tool calls, modes, turns and rules of every type.

Most values can be judged, so that what is behind the first look at a contract is reached; odd ones come with the
oddness of the case. :mod:`.said` makes the answers.
"""

import json
from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any

from tests.fuzz.generate.values import Maker

Fields = dict[str, Any]

WORDS = (
    *("30 days", "refund", "$499", "Größe", "GRÖSSE", "not specified", "“thirty” days", "—", "返金", "ﬁne", "a"),
    *("the context does not say", "**bold**", "[link](https://x.example)", "order 1234", "\u200bzero", "I", "doc0"),
    *("e\u0301", "é"),
)
PATTERNS = (
    *(r"\d+ days", r"\$\s?\d", r"(a+)+$", r"no .* (is |was )?(mentioned|said)", r"\brefund\b", r"[^\W\d]+", "(?i)x"),
    *("a|b", r"\p{Han}", r"x{1,100}", "^$", "5$", "(?:x)?5", "x.*", r"\S\d", r"\W", r"a[\s\S]*", r"\Qa.b\E", "(?m)^a$"),
    *("[[:alpha:]]", r"\u00e9", r"\x{1F600}", "[]a]", "a{1,2}", "(?P<x>a)(b)?", r"\A\s*\Z", "(?s)a.", r"[\D\S]x"),
    *(r"\x{200B}", "ſ", "é|e\u0301"),
)
NO_PATTERNS = (
    *("(", "(?!x)", r"\1", "a**", "[z-a]", "x{1001}", "(x{100}){100}", r"\C", "\\", "(?<=a)b", "(?>a)", r"\p{No"),
    *(
        "a|",
        "x{0,100}",
        "$",
        "(?:)",
        ".*",
        r"\S",
        r"[\s\S]*",
        "a{,2}",
        "(?s).",
        r"[\D\S]",
        "\u200b",
        r"\bé",
        r"\p{L}\b",
    ),
)
TOOLS = ("get_order", "refund", "search", "Größe")
CHECKS = ("grounded", "polite")
SCORES = ("faithfulness", "toxicity")  # higher is better for the first, lower for the second
SCHEMAS: tuple[Any, ...] = (
    *(True, False, {}, {"type": "object", "required": ["a"]}, {"type": ["array", "null"]}, {"const": 1.0}),
    *({"properties": {"a": {"type": "string", "pattern": r"^\d+$"}}, "additionalProperties": False}, {"not": {}}),
    *({"items": {"$ref": "#"}, "maxItems": 3}, {"$defs": {"x": {"$ref": "#/$defs/x"}}, "$ref": "#/$defs/x"}),
    *({"uniqueItems": True, "contains": {"minimum": 2}, "minContains": 0}, {"multipleOf": 0.1, "maximum": 1e300}),
    *({"patternProperties": {"^x{3}": False, ".": {"minLength": 1}}, "propertyNames": {"maxLength": 9}},),
    *({"if": {"type": "string"}, "then": {"minLength": 2}, "else": {"oneOf": [True, {"type": "object"}]}},),
    *({"dependentRequired": {"a": ["b"]}, "dependentSchemas": {"b": {"maxProperties": 1}}}, {"enum": [1]}),
    *({"prefixItems": [True, False]}, {"allOf": [{}]}),
)
NO_SCHEMAS: tuple[Any, ...] = (
    *({"type": "text"}, {"$ref": "https://x.example"}, {"$ref": "#/$defs/none"}, {"pattern": "(?!x)"}),
    *({"unevaluatedProperties": False}, {"minLength": -1}, {"properties": []}, {"$ref": 3}, {"typ": "object"}),
)


def sought_text(maker: Maker) -> str:
    """Return a text to search for."""
    return maker.odd_text() if maker.chance(maker.oddness) else maker.pick(WORDS)


def pattern(maker: Maker) -> str:
    """Return a pattern, seldom one that is none."""
    if maker.chance(maker.oddness / 3):
        return maker.pick((*NO_PATTERNS, maker.odd_text()))
    return maker.pick(PATTERNS) + (maker.pick(PATTERNS[:8]) if maker.chance(0.1) else "")


def matcher(maker: Maker, *, single: bool = False) -> Fields:
    """Return a text or a pattern with its options, or alternatives."""
    options = {"ignore_case": maker.chance(0.5)} if maker.chance(0.4) else {}
    shape = maker.random.random()
    if shape < 0.15 and not single:
        return {"any": [bare_or_matcher(maker, single=True) for _ in range(maker.pick((1, 2, 3)))]}
    if shape < 0.55:
        return {"text": sought_text(maker), **options, **({"word": maker.chance(0.7)} if maker.chance(0.4) else {})}
    return {"regex": pattern(maker), **options, **({"dot_all": True} if maker.chance(0.2) else {})}


def bare_or_matcher(maker: Maker, *, patterns: bool = False, single: bool = False) -> Any:
    """Return what is searched for: a bare text, read as a pattern in some fields, or a matcher."""
    if maker.chance(0.5):
        return matcher(maker, single=single)
    return pattern(maker) if patterns else sought_text(maker)


def different(maker: Maker, make: Callable[[Maker], Any], most: int = 3) -> list[Any]:
    """Return one to ``most`` values, no two of which are the same."""
    made: dict[str, Any] = {}
    for _ in range(maker.random.randint(1, most)):
        one = make(maker)
        made.setdefault(repr(one), one)
    return list(made.values())


def arguments(maker: Maker, *, sought: bool = False) -> Fields:
    """Return the arguments of a tool call; some of those that a rule seeks are patterns."""
    values: tuple[Any, ...] = ("1234", 1, 1.0, True, None, ["a", {"b": 1}], {"z": 1, "a": 2}, "refund", 2**53 + 1)
    made: Fields = {name: maker.pick(values) for name in maker.some(("id", "query", "ünïcode", "n"), 3)}
    if sought and maker.chance(0.3):
        made["id"] = {"regex": pattern(maker)}
    if maker.chance(maker.oddness):
        made[maker.odd_text()] = maker.anything()
    return made


def call(maker: Maker) -> Fields:
    """Return a tool call in any of the forms in which they are exported."""
    name, made = maker.pick(TOOLS), arguments(maker)
    written: Any = made if maker.chance(0.6) else json.dumps(made)
    if maker.chance(0.4):
        return {"id": "call_1", "type": "function", "function": {"name": name, "arguments": written}}
    given = {maker.pick(("arguments", "args", "input_parameters")): written} if maker.chance(0.8) else {}
    return {maker.pick(("name", "name", "tool")): name, **given}


def _texts(maker: Maker) -> Fields:
    texts = different(maker, sought_text)
    options = {"ignore_case": maker.chance(0.5), "word": maker.chance(0.5)} if maker.chance(0.3) else {}
    return {maker.pick(("value", "value", "any")): texts, **options} if maker.chance(0.7) else {"value": texts[0]}


def _regex(maker: Maker) -> Fields:
    return {"pattern": pattern(maker), **({"dot_all": True, "ignore_case": False} if maker.chance(0.2) else {})}


def _tool(maker: Maker) -> Fields:
    sought = {"arguments": arguments(maker, sought=True)} if maker.chance(0.5) else {}
    return {"tool": maker.pick(TOOLS), **sought}


def _json_schema(maker: Maker) -> Fields:
    return {"schema": deepcopy(maker.pick(NO_SCHEMAS if maker.chance(maker.oddness / 3) else SCHEMAS))}


def _counts(maker: Maker) -> Fields:
    return maker.pick(({}, {}, {"at_least": 2}, {"at_most": 1}, {"at_least": 1, "at_most": 3}))


RULES: Mapping[str, Callable[[Maker], Fields]] = {
    "must_contain": _texts,
    "must_not_contain": _texts,
    "regex_must_match": _regex,
    "regex_must_not_match": _regex,
    "must_refuse": lambda _: {},
    "must_not_refuse": lambda _: {},
    "json_schema": _json_schema,
    "code_parses": lambda maker: maker.pick(
        (*({"language": name} for name in ("python", "json", "yaml", "sql")), {"language": "sql", "dialect": "mysql"})
    ),
    "must_not_leak": lambda maker: maker.pick(({}, {"kinds": ["email", "key"]}, {"allowed": ["a@example.org"]})),
    "max_chars": lambda maker: {"value": maker.pick((1, 20, 300, (1 << 20) - 1))},
    "must_cite": lambda _: {},
    "must_call_tool": lambda maker: {**_tool(maker), **_counts(maker)},
    "must_not_call_tool": _tool,
    "tool_arguments_valid": lambda _: {},
    "check": lambda maker: {"name": maker.pick(CHECKS)},
    "custom": lambda maker: {"plugin": "None", "options": arguments(maker)},
    "min_score": lambda maker: {"metric": SCORES[0], "value": maker.number(0.01, 0.5)},
    "max_score": lambda maker: {"metric": SCORES[1], "value": maker.number(0.5, 0.99)},
    "max_hallucination_risk": lambda maker: {"threshold": maker.number(0.01, 0.5)},
    "composite": lambda maker: {"minimum": maker.number(0.01, 0.5), "metrics": [*SCORES][: maker.pick((1, 2))]},
}
OF_TURNS = tuple(RULES)[:12]  # what is judged turn by turn
WITHOUT_PLUGIN = tuple(name for name in RULES if name != "custom")  # which nothing that is fuzzed names


def rules(maker: Maker, types: tuple[str, ...], most: int = 3) -> list[Fields]:
    """Return rules of these types."""

    def rule(maker: Maker) -> Fields:
        one = "custom" if maker.chance(maker.oddness / 10) else maker.pick(types)
        return {"type": one, **RULES[one](maker)}

    made = different(maker, rule, most)
    refusals = [one for one in made if one["type"] in {"must_refuse", "must_not_refuse"}]
    contradict = len({one["type"] for one in refusals}) > 1 and not maker.chance(maker.oddness)
    return [one for one in made if not contradict or one not in refusals[1:]]


def elements(maker: Maker) -> Fields:
    """Return claims and elements, with what belongs to them."""
    fields: Fields = {}
    if maker.chance(0.4):
        fields["forbidden_claims"] = different(maker, lambda maker: bare_or_matcher(maker, patterns=True))
        if maker.chance(0.4):
            fields["allowed_phrases"] = different(maker, lambda maker: bare_or_matcher(maker, patterns=True))
    if maker.chance(0.4):
        fields["required_elements"] = different(maker, bare_or_matcher)
        if maker.chance(0.4):
            fields["min_required"] = maker.random.randint(1, len(fields["required_elements"]))
    if maker.chance(0.3):
        fields["forbidden_elements"] = different(maker, bare_or_matcher)
    if maker.chance(0.2):
        fields["answer_must_include"] = different(maker, sought_text)
    return fields


def turns(maker: Maker, count: int) -> list[Fields]:
    """Return the turns of a conversation, of which the first has a rule."""
    made: list[Fields] = []
    for number in range(count):
        turn: Fields = {"query": f"turn {number}"}
        if not made or maker.chance(0.4):
            turn |= {"rules": rules(maker, OF_TURNS, 2)} | (elements(maker) if maker.chance(0.3) else {})
        made.append(turn)
    return made


def references(maker: Maker) -> Fields:
    """Return what is compared with a good answer."""
    makes: Mapping[str, Callable[[], Any]] = {
        "reference": lambda: " ".join(different(maker, sought_text)),
        "reference_claims": lambda: different(maker, statement),
        "reference_contexts": lambda: different(maker, lambda maker: f"{sought_text(maker)} of the plan"),
        "reference_tool_calls": lambda: [call(maker) for _ in range(maker.pick((0, 1, 2)))],
        "criteria": lambda: different(maker, statement),
        "expected_mode": lambda: maker.pick(("trustworthy", "disputed", "abstain")),
        "expected_label": lambda: maker.pick(("billing", "other")),
        "tier": lambda: maker.pick(maker.tiers),
    }
    wanted = [name for name in makes if name in maker.expected and (name != "tier" or maker.tiers)]
    return {name: makes[name]() for name in wanted if maker.chance(0.9)}


def statement(maker: Maker) -> str:
    """Return a text that says something, as a judge needs it."""
    return f"It says {sought_text(maker)}"


def expected_answer(maker: Maker, query_id: str | int) -> Fields:
    """Return the fields of a golden row about its answer; at least one."""
    if maker.chance(0.1):
        return {**elements(maker), "expected_mode": "abstain", "as_evaluated": "fitz-gov-4.1.0"}
    fields = references(maker)
    if count := maker.turns.get(str(query_id), 0):
        return {**fields, "turns": turns(maker, count)}
    fields |= elements(maker)
    if maker.chance(0.7) or not fields.keys() - {"tier"}:
        fields["rules"] = rules(maker, WITHOUT_PLUGIN)
    return fields
