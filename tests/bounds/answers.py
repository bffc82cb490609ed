"""Limits on rules about answers: what they search for, and how much of it."""

import json

from ragcontract.answers import regexes
from ragcontract.answers.allowed_phrases import forbidden, forbidden_claims
from ragcontract.answers.answer_text import Answer
from ragcontract.answers.json_fit import TooMuchWorkError, first_failure
from ragcontract.answers.regexes import compiled
from ragcontract.core.config_sections import Matcher
from tests.bounds.lab import Case, Cases, Lab, accepted, all_of
from tests.builders import Row, golden, run

OVERHEAD = compiled("a").size - 1  # instructions beside those of the characters


def a_pattern(lab: Lab, size: int) -> bool:
    found = [
        lab.check([golden(**fields)], [run(response="a")])
        for fields in (
            {"forbidden_claims": ["x" * size]},
            {"required_elements": [{"text": "x" * size}]},
            {"rules": [{"type": "must_contain", "value": "x" * size}]},
            {"rules": [{"type": "regex_must_match", "pattern": "x" * size}]},
            {"rules": [{"type": "check", "name": "x" * size}]},
        )
    ]
    known = ("has no check", "2,000 characters")
    assert all(ended.code in {0, 1} or any(why in ended.err for why in known) for ended in found)
    return all_of(*(known[1] not in ended.err for ended in found))


def a_program(lab: Lab, size: int) -> bool:
    """Search with a pattern of so many instructions, by a rule and in a schema."""
    pattern = "a" * (size - OVERHEAD)
    refused = f"makes {size:,} instructions, expected at most"
    rules = {"type": "regex_must_match", "pattern": pattern}, {"type": "json_schema", "schema": {"pattern": pattern}}
    return all_of(*(accepted(lab.check([golden(rules=[one])], [run(response="1")]), refused) for one in rules))


def a_search(lab: Lab, size: int) -> bool:
    """Search with a pattern of ten instructions, in an answer and in JSON."""
    pattern, text = "a" * (10 - OVERHEAD), "b" * (size // 10)
    ended = lab.check([golden(rules=[{"type": "regex_must_not_match", "pattern": pattern}])], [run(response=text)])
    try:
        fits = first_failure(text, {"not": {"pattern": pattern}}) is None
    except TooMuchWorkError:
        fits = False
    return all_of(accepted(ended, "too long to search for 'aaaaaa'"), fits)


def normal_form(lab: Lab, size: int) -> bool:
    """Compare a text with ligatures of three letters: by a rule, by metrics, and as a context."""
    text = "a" * (size - 3_000) + "ﬃ" * 1_000
    refused = "once ligatures and the like are expanded for a comparison"
    trials: list[tuple[Row, Row, str]] = [
        (golden(rules=[{"type": "must_not_contain", "value": "b"}]), run(response=text), ""),
        (golden(reference="b"), run(response=text), "minimums: {rouge_l: 0}\n"),
        (golden(reference="b"), run(response=text), "minimums: {exact_match: 0}\n"),
        (golden(reference_contexts=["b"]), run(retrieved_contexts=[text]), "minimums: {context_recall_text: 0}\n"),
        (golden(answer_must_include=[text]), run(response=""), ""),
    ]
    return all_of(*(accepted(lab.check([query], [row], config), refused) for query, row, config in trials))


def texts_of_a_row(lab: Lab, count: int) -> bool:
    """Search for texts of a rule, alternatives and patterns of fields, all together so many."""
    fields: Row = {
        "rules": [{"type": "must_not_contain", "value": [f"text {number}" for number in range(count - 4)]}],
        "forbidden_elements": [{"any": ["x", "y"]}],
        "forbidden_claims": ["z"],
        "allowed_phrases": ["not z"],
    }
    return accepted(lab.check([golden(**fields)], [run(response="a")]), "rules: search the answer for")


def phrases_of_refusals(lab: Lab, count: int) -> bool:
    phrases = [f"I refuse {number}" for number in range(count)]
    ended = lab.check(
        [golden(rules=[{"type": "must_not_refuse"}])], [run(response="a")], f"answers: {{refusal_phrases: {phrases}}}\n"
    )
    return accepted(ended, "phrases, found")


def violations_of_a_row(lab: Lab, count: int) -> bool:
    texts = [f"text {number}" for number in range(count + 1)]
    rules = [{"type": "must_not_contain", "value": texts}]
    assert lab.check([golden(rules=rules)], [run(response=" ".join(texts[:-1]))]).code == 1
    return "not listed" not in json.dumps(lab.report())


def kept_patterns(lab: Lab, size: int) -> bool:
    empty = compiled("").size
    lab.patch.setattr(regexes, "_CACHE", regexes._Cache())
    first = compiled("a")
    rest = compiled("b" * (size - first.size - empty))
    assert rest.size == size - first.size
    return compiled("a") is first


def cleared(_: Lab, count: int) -> bool:
    answer = Answer("no $5 mentioned. " * count)
    return not list(forbidden(Matcher(regex=r"\$5"), [Matcher(regex="no .* mentioned")], answer))


def an_allowed_phrase(_: Lab, size: int) -> bool:
    answer = Answer(f"no {'x' * (size - len('no claim'))}claim")
    return not list(forbidden(Matcher(text="claim"), [Matcher(regex="no x*claim")], answer))


def matches(_: Lab, count: int) -> bool:
    return len(forbidden_claims([Matcher(regex="a")], (), "a" * count)) == count


def a_schema(lab: Lab, size: int) -> bool:
    schema = {"description": "x" * (size - len('{"description":""}'))}
    ended = lab.check([golden(rules=[{"type": "json_schema", "schema": schema}])], [run(response="1")])
    return accepted(ended, "rules[0].schema: is longer than 20,000 bytes")


def steps(_: Lab, count: int) -> bool:
    try:
        return first_failure([1] * (count - 2), {"items": True}) is None
    except TooMuchWorkError:
        return False


CASES: Cases = {
    "PATTERN": Case(a_pattern),
    "PROGRAM": Case(a_program, small=200),
    "SEARCHED": Case(a_search, small=2_000, past=lambda product: product + 10),
    "NORMAL": Case(normal_form, small=5_000),
    "TEXTS": Case(texts_of_a_row, small=20),
    "REFUSAL_PHRASES": Case(phrases_of_refusals),
    "VIOLATIONS": Case(violations_of_a_row, small=20, past=lambda count: count + 2),
    "COMPILED": Case(kept_patterns, small=100),
    "CLEARED": Case(cleared),
    "ALLOWED_PHRASE": Case(an_allowed_phrase),
    "MATCHES": Case(matches, small=50),
    "SCHEMA": Case(a_schema),
    "SCHEMA_STEPS": Case(steps, small=100),
}
