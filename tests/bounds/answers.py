"""Limits on rules about answers: what they search for, and how much of it."""

from ragcontract.answers import regexes
from ragcontract.answers.allowed import forbidden
from ragcontract.answers.answer_text import Answer
from ragcontract.answers.as_evaluated import forbidden_claims
from ragcontract.answers.json_fit import TooMuchWorkError, first_failure
from ragcontract.answers.matcher_records import Matcher
from ragcontract.answers.regexes import compiled
from tests.bounds.lab import Case, Cases, Lab, accepted, all_of
from tests.builders import golden, run


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


def kept_patterns(lab: Lab, size: int) -> bool:
    empty = compiled("").size
    lab.patch.setattr(regexes, "_CACHE", regexes._Cache())
    first = compiled("a")
    rest = compiled("b" * (size - first.size - empty))
    assert rest.size == size - first.size
    return compiled("a") is first


def cleared(_: Lab, count: int) -> bool:
    answer = Answer("no $5 mentioned. " * count)
    return forbidden(Matcher(regex=r"\$5"), [Matcher(regex="no .* mentioned")], answer) is None


def an_allowed_phrase(_: Lab, size: int) -> bool:
    answer = Answer(f"no {'x' * (size - len('no claim'))}claim")
    return forbidden(Matcher(text="claim"), [Matcher(regex="no x*claim")], answer) is None


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
    "COMPILED": Case(kept_patterns, small=100),
    "CLEARED": Case(cleared),
    "ALLOWED_PHRASE": Case(an_allowed_phrase),
    "MATCHES": Case(matches, small=50),
    "SCHEMA": Case(a_schema),
    "SCHEMA_STEPS": Case(steps, small=100),
}
