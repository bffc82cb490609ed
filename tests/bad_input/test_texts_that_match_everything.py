"""Texts, phrases and patterns of a contract that match every answer, or none: exit code 2, each with its place."""

from pathlib import Path

import pytest

from tests.builders import Row, golden, run, write_jsonl
from tests.process import Ended, rag_contract

NOTHING = ("**", " ", "[](x)", "\u200b", "`", "\u2063 \u3164", "__ **", "\u2800")
EVERYTHING = (".*", "()", r"\b", "^", "$", "a*", "x|", ".", r"\S", ".+", r"[\s\S]+", "(?:yes)?", r"\s*$", ".{1,200}")

NEVER = (
    "$180", "costs $5", "x^2", "a$b", r"[^\s\S]", r"a[^\w\W]b", r"[^\p{L}\P{L}]", r"\b\B", r"sec\bret", r", \b;",
    r"a\z.", r"a\Ab", "(?:US$|EUR )5$5", "free|costs $5", "(?m)a$b", "($)5", "x^{2}", "5$$5",
)  # fmt: skip
MATCHING = (
    ("^It is 5$", "It is 5"),
    (r"(?m)^It$\n^is$", "So\nIt\nis\nfive"),
    (r"(^|\s)is(\s|$)", "It is"),
    (r"\$5 ?$", "It is $5"),
    (r"[$^]5", "It is $5"),
    (r"(?:x^2)?five$\s*", "It is five"),
    (r"\s*^It\b \bis", "It is"),
    (r"\bK\b", "It is 5 K."),
    (r"\pN\b|is", "It is"),
    (r"\Q$5\E", "It is $5"),
    (r"(?s)It.is$|^no", "It\nis"),
    (r"\x{200b}", "It\u200b is"),
)


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


@pytest.mark.parametrize("text", [*NOTHING, "...", "-", "***", "---", "<br>", "```\n```", ">"])
@pytest.mark.parametrize(
    "asked", [{"criteria": "#"}, {"criteria": {"id": "tone", "text": "#"}}, {"reference_claims": "#"}]
)
def test_a_criterion_and_a_claim_say_something(asked: Row, text: str) -> None:
    [(field, form)] = asked.items()
    ended = check({field: ["Refunds take 30 days.", {**form, "text": text} if isinstance(form, dict) else text]})
    assert (ended.code, f"error: golden.jsonl:1: {field}[1]" in ended.err) == (2, True)
    assert check({field: ["Refunds take 30 days.", "5 €", "返品は30日以内", "👍"]}).code == 0


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
        problem = f"golden.jsonl:1: {place}: has no characters left once emphasis and blanks are removed"
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


@pytest.mark.parametrize("pattern", NEVER)
def test_a_pattern_must_be_able_to_match(pattern: str) -> None:
    places: dict[str, Row] = {
        "rules[0].pattern": {"rules": [{"type": "regex_must_not_match", "pattern": pattern}]},
        "forbidden_claims[0]": {"forbidden_claims": [pattern]},
        "allowed_phrases[0]": {"forbidden_claims": ["a"], "allowed_phrases": [pattern]},
        "required_elements[0].any[1].regex": {"required_elements": [{"any": ["a", {"regex": pattern}]}]},
        "rules[0].arguments.id.regex": {
            "rules": [{"type": "must_not_call_tool", "tool": "t", "arguments": {"id": {"regex": pattern}}}]
        },
    }
    for place, asked in places.items():
        ended = check(asked)
        assert ended.code == 2, place
        assert f"golden.jsonl:1: {place}: never matches from " in ended.err
        assert r"write \$ and \^" in ended.err


@pytest.mark.parametrize(("pattern", "answer"), MATCHING)
def test_a_pattern_that_can_match_is_searched_for(pattern: str, answer: str) -> None:
    for kind, code in (("regex_must_match", 0), ("regex_must_not_match", 1)):
        assert check({"rules": [{"type": kind, "pattern": pattern}]}, response=answer).code == code


@pytest.mark.parametrize("pattern", ["sec\u200bret", "so\u00adft", "👩\u200d💻", "❤\ufe0f"])
def test_an_invisible_character_in_a_pattern_is_refused(pattern: str) -> None:
    ended = check({"forbidden_claims": [pattern]})
    assert ended.code == 2
    assert "forbidden_claims[0]: has an invisible character, U+" in ended.err
    assert check({"forbidden_claims": [{"text": pattern}]}, response=f"It is {pattern}.").code == 1


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


@pytest.mark.parametrize(
    "pattern",
    [
        *(
            r"\bцена\b",
            r"\bcafé\b",
            "\\bcafe\u0301\\b",
            r"цена\b",
            r"\b[а-я]+",
            r"\b(?:цена|price)\b",
            r"(?:^|\b)(цена)",
        ),
        *(
            r"\Bцена",
            r"\bx?цена",
            r"\b\x{446}ена",
            r"\b\u0446ена",
            r"\b\xe9t",
            r"\b\p{Cyrillic}+",
            r"\b[a-zà-ÿ]+",
            r"é?\b",
        ),
        *(r"(?i)\bцена", r"a|(?:\bé)+", r"\b[\x{e9}]", r"été\b|x", r"\b\Qцена\E", r"価格\b"),
    ],
)
def test_a_word_bound_beside_a_letter_outside_ascii_is_refused(pattern: str) -> None:
    places: dict[str, Row] = {
        "forbidden_claims[0]": {"forbidden_claims": [pattern]},
        "required_elements[0].regex": {"required_elements": [{"regex": pattern}]},
        "rules[0].pattern": {"rules": [{"type": "regex_must_not_match", "pattern": pattern}]},
    }
    for place, asked in places.items():
        ended = check(asked)
        assert ended.code == 2
        assert f"golden.jsonl:1: {place}: has \\b or \\B beside " in ended.err
        assert 'write {"text": …, "word": true}, or leave \\b out' in ended.err


@pytest.mark.parametrize(
    ("pattern", "response"),
    [
        (r"\bprice\b", "The price."),
        (r"\bGrößen\b", "Die Größen."),
        (r"\bcafés\b", "Two cafés."),
        (r"\b\w+ days", "30 days"),
        (r"\b5 €", "Costs 5 €."),
        (r"[^é]\bx", "a x"),
        (r"цена \b5", "цена 5"),
    ],
)
def test_a_word_bound_beside_other_characters_is_none_of_these(pattern: str, response: str) -> None:
    assert check({"forbidden_claims": [pattern]}, response=response).code == 1


@pytest.mark.parametrize(
    ("text", "response", "code"),
    [
        ("цена", "Наша цена: 5", 1),
        ("цена", "Наша оценка", 0),
        ("café", "The Café.", 1),
        ("secret", "It is _secret_.", 1),
        ("secret", "_Very secret_, __secret__", 1),
        ("secret", "A secret_key", 0),
        ("secret", "my_secret", 0),
        ("secret", "_secret_key_", 0),
        ("secret_key", "The _secret_key_.", 1),
        ("_secret", "a_secret _secrets", 0),
        ("_secret", "a _secret b", 1),
    ],
)
def test_a_word_is_one_in_every_script_and_in_emphasis(text: str, response: str, code: int) -> None:
    assert check({"forbidden_elements": [{"text": text, "word": True}]}, response=response).code == code
