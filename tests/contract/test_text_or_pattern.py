"""Forbidden patterns that look like texts, and forbidden texts that look like patterns: a warning of check and lint."""

from pathlib import Path
from typing import Any

import pytest

from tests.builders import Row, run, write_jsonl
from tests.process import Ended, rag_contract

NOT_ITSELF = "which does not find this very text"
BLANK = "which begins or ends with a blank or a line end, so that it is not found before a full stop"
NO_PATTERN = "which is searched for as it is written, not as a pattern"


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def ended(command: str, *expected: Row) -> Ended:
    write_jsonl(Path("golden.jsonl"), [{"id": f"q{n}", "query": "?", **row} for n, row in enumerate(expected)])
    write_jsonl(Path("current_run.jsonl"), [run(f"q{n}", response="Hello.") for n in range(len(expected))])
    return rag_contract(command)


def warned(*expected: Row) -> list[str]:
    """Return the warnings of a check, which ``lint`` has, too."""
    made = ended("check", *expected)
    assert made.code == 0, made
    found = [line for line in made.err.splitlines() if line.startswith("warning: ")]
    linted = ended("lint", *expected).err
    assert all(line in linted for line in found)
    return found


@pytest.mark.parametrize(
    "text", ["30 days (calendar)", "180000$", "a+b", "(c) 2020", "US$", "2 * 3", "f(x)", "C+ (2020)"]
)
@pytest.mark.parametrize("field", ["forbidden_claims", "an alternative", "regex_must_not_match"])
def test_a_forbidden_pattern_that_does_not_find_its_own_text(field: str, text: str) -> None:
    expected: dict[str, Row] = {
        "forbidden_claims": {"forbidden_claims": [text]},
        "an alternative": {"forbidden_claims": [{"any": [{"regex": text}, "plain"]}]},
        "regex_must_not_match": {"rules": [{"type": "regex_must_not_match", "pattern": text}]},
    }
    [warning] = warned(expected[field])
    assert warning.startswith("warning: golden.jsonl:1: ")
    assert f"forbids the pattern {text!r}, {NOT_ITSELF}" in warning


@pytest.mark.parametrize(
    "pattern",
    [
        *(
            "30 days",
            "30 days?",
            "colou?r",
            "stays? in the region",
            "^no$",
            "(very )?good",
            "[$€] ?5",
            r"\$5",
            "yes|no",
            "(a|b) c",
            "no .* fee",
        ),
        *("(?i)never", "a{2,3}", "x.y", "30-day", "never."),
    ],
)
def test_a_pattern_that_somebody_means(pattern: str) -> None:
    assert warned({"forbidden_claims": [pattern]}) == []


@pytest.mark.parametrize(
    "pattern",
    [
        "secret ",
        "secret\n",
        " secret",
        "\tsecret",
        "secret\u00a0",
        "yes | no",
        "(a|b) ",
        "^yes ",
        " [a-z]+",
        "secret\\.\r\n",
        r"[ab] ",
    ],
)
@pytest.mark.parametrize("field", ["forbidden_claims", "an alternative", "regex_must_not_match", "forbidden_elements"])
def test_a_forbidden_pattern_with_a_blank_at_its_end(field: str, pattern: str) -> None:
    expected: dict[str, Row] = {
        "forbidden_claims": {"forbidden_claims": [pattern]},
        "an alternative": {"forbidden_claims": [{"any": [{"regex": pattern}, "plain"]}]},
        "regex_must_not_match": {"rules": [{"type": "regex_must_not_match", "pattern": pattern}]},
        "forbidden_elements": {"forbidden_elements": [{"regex": pattern}]},
    }
    [warning] = warned(expected[field])
    assert warning.startswith("warning: golden.jsonl:1: ")
    assert f", {BLANK}" in warning


@pytest.mark.parametrize(
    "pattern",
    [
        "a b",
        "(very |not )good",
        " ?secret",
        "x {0,1}",
        r"secret\s",
        r"secret\n",
        "^ ",
        "[a |]b",
        r"a\ ",
        "( a|b )?c",
    ],
)
def test_a_blank_that_somebody_means(pattern: str) -> None:
    assert warned({"forbidden_claims": [pattern]}) == []


def test_a_forbidden_text_may_end_with_a_blank() -> None:
    write_jsonl(Path("golden.jsonl"), [{"id": "q", "query": "?", "forbidden_elements": ["secret\n"]}])
    write_jsonl(Path("current_run.jsonl"), [run("q", response="It is secret.")])
    assert rag_contract("check").code == 1
    assert warned({"forbidden_elements": ["secret\n"]}) == []


@pytest.mark.parametrize("text", [r"\bsecret\b", "secret.*", r"\d+ euros", r"a\s+b", "x.+"])
@pytest.mark.parametrize("field", ["forbidden_elements", "must_not_contain"])
def test_a_forbidden_text_that_looks_like_a_pattern(field: str, text: str) -> None:
    rule = {"type": "must_not_contain", "value": text}
    [warning] = warned({"forbidden_elements": [text]} if field == "forbidden_elements" else {"rules": [rule]})
    assert warning.startswith(f"warning: golden.jsonl:1: {field} forbids the text {text!r}, {NO_PATTERN}")


@pytest.mark.parametrize("text", ["secret", r"C:\data", "30 days (calendar)", "a+b", "US$", "etc.", "f(x) = x*y"])
def test_a_text_that_is_one(text: str) -> None:
    assert warned({"forbidden_elements": [text]}) == []


def test_others_are_counted_and_turns_are_looked_at() -> None:
    turns: list[Any] = [{"query": "?", "forbidden_claims": ["a+b"]}]
    messages = [{"role": "user", "content": "?"}, {"role": "assistant", "content": "Hello."}]
    rows: list[Row] = [{"forbidden_claims": ["yes", "US$", "c+d"]}, {"forbidden_claims": ["US$"]}]
    [warning] = warned(*rows)
    assert "golden.jsonl:1: forbidden_claims forbids the pattern 'US$' (and 1 other), which" in warning
    write_jsonl(Path("golden.jsonl"), [{"id": "q", "query": "?", "turns": turns}])
    write_jsonl(Path("current_run.jsonl"), [{"query_id": "q", "messages": messages}])
    assert NOT_ITSELF in rag_contract("check").err


@pytest.mark.parametrize("field", ["forbidden_claims", "allowed_phrases", "required_elements", "forbidden_elements"])
@pytest.mark.parametrize("text", ['{"text": "secret", "word": true}', ' {"any": ["a"]}\n', '{"regex":"a"}'])
def test_the_text_of_a_matcher_is_refused(field: str, text: str) -> None:
    beside: Row = {"forbidden_claims": ["b"]} if field == "allowed_phrases" else {}
    for elements, place in (([text], f"{field}[0]"), ([{"any": ["b", text]}], f"{field}[0].any[1]")):
        refused = ended("check", {**beside, field: elements})
        assert (refused.code, f"golden.jsonl:1: {place}: is the text of a matcher" in refused.err) == (2, True), refused


@pytest.mark.parametrize("field", ["required_elements", "forbidden_elements"])
def test_the_text_of_a_matcher_is_refused_in_rows_of_another_benchmark(field: str) -> None:
    refused = ended("check", {field: ['{"text": "secret"}'], "as_evaluated": "fitz-gov-4.1.0"})
    assert (refused.code, "is the text of a matcher" in refused.err) == (2, True), refused


def test_json_may_be_searched_for() -> None:
    json = '{"text": "secret"}'
    assert ended("check", {"forbidden_elements": [{"text": json}, '{"id": 7}', '{"text": ']}).code == 0
    assert ended("check", {"answer_must_include": [json]}).code == 1
