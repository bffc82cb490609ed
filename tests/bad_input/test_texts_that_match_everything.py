"""Texts, phrases and patterns of a contract that match every answer, or none: exit code 2, each with its place."""

from pathlib import Path

import pytest

from tests.builders import Row, golden, run, write_jsonl
from tests.process import Ended, rag_contract

NOTHING = ("**", " ", "[](x)", "\u200b", "`", "\u2063 \u3164", "__ **", "\u2800")
EVERYTHING = (".*", "()", r"\b", "^", "$", "a*", "x|", ".", r"\S", ".+", r"[\s\S]+", "(?:yes)?", r"\s*$", ".{1,200}")


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def check(asked: Row, config: str = "k: 5\n", response: str = "It is 5.") -> Ended:
    write_jsonl(Path("golden.jsonl"), [golden("q", query="Q?", **asked)])
    write_jsonl(Path("current_run.jsonl"), [run("q", response=response)])
    Path("ragcontract.yml").write_text(config)
    return rag_contract("check")


@pytest.mark.parametrize("phrase", [*NOTHING, "?!", "42", "—", "👍"])
def test_a_refusal_phrase_needs_a_letter(phrase: str) -> None:
    config = f'answers:\n  refusal_phrases:\n    - I only know our products\n    - "{phrase}"\n'
    ended = check({"rules": [{"type": "must_refuse"}]}, config)
    assert ended.code == 2
    assert "ragcontract.yml:4: answers.refusal_phrases[1]: expected a text with a letter, found " in ended.err
    assert "write how your application refuses" in ended.err


@pytest.mark.parametrize("phrase", ["non", "いいえ", "Не могу", "**No.**"])
def test_a_refusal_phrase_of_any_language_is_one(phrase: str) -> None:
    config = f'answers: {{refusal_phrases: ["{phrase}"], refusal: phrases}}\n'
    assert check({"rules": [{"type": "must_refuse"}]}, config).code == 1
    assert check({"rules": [{"type": "must_refuse"}]}, config, phrase).code == 0


@pytest.mark.parametrize("text", NOTHING)
def test_a_text_needs_something_to_search_for(text: str) -> None:
    places: dict[str, Row] = {
        "rules[0].value": {"rules": [{"type": "must_contain", "value": text}]},
        "rules[0].any[1]": {"rules": [{"type": "must_not_contain", "any": ["a", text]}]},
        "answer_must_include[0]": {"answer_must_include": [text]},
        "required_elements[0]": {"required_elements": [text]},
        "forbidden_elements[0].any[0]": {"forbidden_elements": [{"any": [text]}]},
        "forbidden_claims[0].text": {"forbidden_claims": [{"text": text}]},
        "allowed_phrases[0].text": {"forbidden_claims": ["a"], "allowed_phrases": [{"text": text}]},
        "reference": {"reference": text},
        "reference_contexts[0]": {"reference_contexts": [text]},
        "reference_claims[0]": {"reference_claims": [text]},
        "turns[0].answer_must_include[0]": {"turns": [{"query": "Q?", "answer_must_include": [text]}]},
    }
    for place, asked in places.items():
        ended = check(asked)
        assert ended.code == 2, place
        problem = f"golden.jsonl:1: {place}: has nothing to search for once markup, blanks and invisible characters"
        assert problem in ended.err, place


@pytest.mark.parametrize("pattern", EVERYTHING)
def test_a_pattern_must_not_match_every_answer(pattern: str) -> None:
    places: dict[str, Row] = {
        "rules[0].pattern": {"rules": [{"type": "regex_must_match", "pattern": pattern, "dot_all": True}]},
        "forbidden_claims[0]": {"forbidden_claims": [pattern]},
        "allowed_phrases[0]": {"forbidden_claims": ["a"], "allowed_phrases": [pattern]},
        "required_elements[0].regex": {"required_elements": [{"regex": pattern}]},
        "required_elements[0].any[1].regex": {"required_elements": [{"any": ["a", {"regex": pattern}]}]},
    }
    for place, asked in places.items():
        ended = check(asked)
        assert ended.code == 2, place
        assert f"golden.jsonl:1: {place}: matches every answer; write what only some answers have" in ended.err


def test_a_pattern_of_blanks_and_invisible_characters_is_refused() -> None:
    for pattern in (" ", "\u200b", "\u00ad"):
        ended = check({"forbidden_claims": [pattern]})
        assert ended.code == 2
        assert "forbidden_claims[0]: has nothing but blanks and invisible characters; write \\s" in ended.err


@pytest.mark.parametrize(
    "pattern",
    [
        r"^[^<>]*$",
        r"^.{1,200}$",
        r"\d",
        r"\w",
        "[a-z]",
        "^It",
        r"5\.$",
        r"[^\x00-\x7f]|5",
        "(?s)^.{5,}$",
        r"^\S+( \S+)*$",
    ],
)
def test_patterns_that_some_answers_do_not_match_are_accepted(pattern: str) -> None:
    assert check({"rules": [{"type": "regex_must_match", "pattern": pattern}]}).code == 0


@pytest.mark.parametrize("text", ["—", "!", "{{", "]]", "<", "*", "_", "|", "~~", "#", "👍", "日", "$"])
def test_punctuation_can_be_forbidden(text: str) -> None:
    asked = {"rules": [{"type": "must_not_contain", "value": text}]}
    assert check(asked).code == 0
    assert check(asked, response=f"It is {text} 5.").code == 1


def test_any_value_of_an_argument_can_be_wanted() -> None:
    asked = {"rules": [{"type": "must_call_tool", "tool": "find", "arguments": {"text": {"regex": ".*"}}}]}
    write_jsonl(Path("golden.jsonl"), [golden("q", query="Q?", **asked)])
    write_jsonl(Path("current_run.jsonl"), [run("q", tool_calls=[{"name": "find", "arguments": {"text": "x"}}])])
    assert rag_contract("check").code == 0
