"""must_contain, must_not_contain, max_chars, and the patterns of regex_must_match and regex_must_not_match."""

from pathlib import Path

import pytest

from ragcontract.core import bounds
from tests.builders import Row
from tests.rules.answers import broken, refusal, rule, says

ANSWER = "You have **30\u00a0days** from delivery.\nAsk for No refund."


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        (rule("must_contain", value="30 Days"), []),
        (rule("must_contain", value=["30 days", "delivery"]), []),
        (rule("must_contain", any=["31 days", "30 days"]), []),
        ({"answer_must_include": ["30 days", "delivery"]}, []),
        (rule("must_contain", value="day", word=True), ["must_contain: expected day"]),
        (rule("must_contain", value="30 Days", ignore_case=False), ["must_contain: expected 30 Days"]),
        (rule("must_contain", value=["30 days", "x", "z"]), ["must_contain: expected x, z"]),
        (rule("must_contain", any=["x", "z"]), ["must_contain: expected any of x, z"]),
        ({"answer_must_include": ["30 days", "x"]}, ["answer_must_include: expected x"]),
        (rule("regex_must_match", pattern=r"\d+\s+days"), []),
        (rule("regex_must_match", pattern="days.*refund", dot_all=True), []),
        (rule("regex_must_match", pattern="days.*refund"), ["regex_must_match: expected a match of days.*refund"]),
        (rule("regex_must_match", pattern="YOU", ignore_case=False), ["regex_must_match: expected a match of YOU"]),
        (rule("max_chars", value=200), []),
    ],
)
def test_what_an_answer_must_have(tmp_path: Path, asked: Row, found: list[str]) -> None:
    begins = "; found: You have **30 days** from delivery. Ask for No refund."
    assert broken(tmp_path, asked, says(ANSWER)) == [f"fail {one}{begins}" for one in found]


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        (rule("must_not_contain", value="31 days"), []),
        (rule("must_not_contain", value="day", word=True), []),
        (rule("must_not_contain", value=["31 days", "no refund"]), ["must_not_contain: expected no no refund"]),
        (
            rule("must_not_contain", any=["30 days", "refund"]),
            ["must_not_contain: expected no 30 days", "must_not_contain: expected no refund"],
        ),
        (rule("regex_must_not_match", pattern=r"\d\d\d"), []),
        (rule("regex_must_not_match", pattern=r"\bno\b"), [r"regex_must_not_match: expected no match of \bno\b"]),
    ],
)
def test_what_an_answer_must_not_have(tmp_path: Path, asked: Row, found: list[str]) -> None:
    quoted = "; found: You have **30 days** from delivery. Ask for No refund."
    assert broken(tmp_path, asked, says(ANSWER)) == [f"fail {one}{quoted}" for one in found]


def test_the_quote_is_around_what_matters(tmp_path: Path) -> None:
    answer = "a " * 100 + "It costs $499 a year." + " b" * 100
    (found,) = broken(tmp_path, rule("regex_must_not_match", pattern=r"\$\d+"), says(answer))
    quote = found.partition("found: ")[2]
    assert len(quote) <= bounds.EXCERPT
    assert quote[0] == quote[-1] == "…"
    assert "It costs $499 a year." in quote


def test_an_answer_may_be_too_long(tmp_path: Path) -> None:
    found = broken(tmp_path, rule("max_chars", value=5), says("123456"))
    assert found == ["fail max_chars: expected at most 5 characters; found: 6 characters"]
    assert broken(tmp_path, rule("max_chars", value=5), says("12345")) == []


def test_texts_are_compared_as_they_are_where_the_config_says_so(tmp_path: Path) -> None:
    asked = rule("must_contain", value="30 days")
    assert broken(tmp_path, asked, says("**30** days")) == []
    assert len(broken(tmp_path, asked, says("**30** days"), "answers: {normalise: false}\n")) == 1


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        (
            rule("must_contain"),
            "rules[0]: expected exactly one of value (all of these) and any (one of these), found neither",
        ),
        (rule("must_contain", value="a", any=["b"]), "rules[0]: expected exactly one of value"),
        (rule("must_contain", any=[]), "rules[0].any: is empty; give at least one text"),
        (rule("must_contain", value=""), "rules[0].value: expected text of 1 to 2,000 characters"),
        (rule("must_contain", value=["a", "a"]), "rules[0].value[1]: repeats value[0]; leave one of them out"),
        (rule("must_not_contain", value="** "), "rules[0].value: has no characters left"),
        (rule("must_contain", value="a", wrod=True), "rules[0].wrod: unknown key; did you mean 'word'?"),
        (rule("must_contian", value="a"), 'found "must_contian"; did you mean "must_contain"?'),
        (rule("must_not_be", value="a"), 'rules[0].type: expected "must_contain" or "must_not_contain" or '),
        ({"rules": [{"value": "a"}]}, "rules[0].type: is missing"),
        (
            rule("regex_must_match", pattern="(?=a)"),
            "rules[0].pattern: is not an RE2 pattern (invalid perl operator: (?=)",
        ),
        (rule("max_chars", value=0), "rules[0].value: expected a whole number from 1 to 1,048,575, found 0"),
    ],
)
def test_a_rule_that_says_nothing_cannot_be_judged(tmp_path: Path, asked: Row, problem: str) -> None:
    (found, *_) = refusal(tmp_path, asked, says("a"))
    assert found.startswith("golden.jsonl:1: rules[0]")
    assert problem in found


def test_the_largest_answer_is_searched(tmp_path: Path) -> None:
    hostile = "no refund mentioned (" * (bounds.ANSWER // 21)
    asked = {
        "rules": [
            {"type": "must_contain", "value": "the end", "word": True},
            {"type": "regex_must_not_match", "pattern": "no .* (is |was )?(mentioned at all|specified)"},
            {"type": "must_refuse"},
            {"type": "must_cite"},
            {"type": "json_schema", "schema": {}},
        ],
        "forbidden_claims": ["no (refund.*guaranteed|.* end)"],
        "allowed_phrases": ["no .* mentioned"],
        "required_elements": [{"any": ["the end", {"regex": r"(\w+\s?)*\($"}]}],
    }
    found = broken(tmp_path, asked, says(hostile), "answers: {refusal: phrases}\n")
    assert {one.split()[1] for one in found} == {"must_contain:", "must_refuse:", "must_cite:", "json_schema:"}


def test_a_longer_one_cannot_be_judged(tmp_path: Path) -> None:
    (problem,) = refusal(tmp_path, rule("max_chars", value=5), says("x" * (bounds.ANSWER + 1)))
    assert "response: expected text of at most 1,048,576 characters" in problem
