"""There is an answer: every query with a rule about its answer is checked for that, too."""

from pathlib import Path

import pytest

from ragcontract.core.finding import sentence
from tests.builders import Row, golden, run, write_jsonl
from tests.process import rag_contract
from tests.rules.answers import broken, decided, refusal, rule, says

ASKED = rule("max_chars", value=100)
CUT_OFF = "warn answered: expected a complete answer; found: an answer that was cut off: finish_reason is max_tokens"


@pytest.mark.parametrize(
    ("answered", "found"),
    [
        (says("yes"), []),
        (says(None), ["fail answered: expected an answer; found: null"]),
        (says(""), ["fail answered: expected an answer; found: an empty response"]),
        (says(" \n"), ["fail answered: expected an answer; found: an empty response"]),
        (says("\u200b \u00ad\ufeff"), ["fail answered: expected an answer; found: an empty response"]),
        (says("\u200bok"), []),
        (says("yes", error="timeout"), ["fail answered: expected an answer; found: the error timeout"]),
        ({"error": "timeout"}, ["fail answered: expected an answer; found: the error timeout"]),
        ({"error": " "}, ["fail answered: expected an answer; found: an error"]),
        (
            says("ye", finish_reason="length"),
            ["warn answered: expected a complete answer; found: an answer that was cut off: finish_reason is length"],
        ),
        (
            says("ye", finish_reason="LENGTH"),
            ["warn answered: expected a complete answer; found: an answer that was cut off: finish_reason is LENGTH"],
        ),
        (
            says("ye", finish_reason="max_tokens"),
            [CUT_OFF],
        ),
        (says("yes", finish_reason="stop"), []),
    ],
)
def test_a_query_with_a_rule_about_its_answer_is_answered(tmp_path: Path, answered: Row, found: list[str]) -> None:
    assert broken(tmp_path, ASKED, answered) == found


@pytest.mark.parametrize(
    "reason",
    [
        "length", "model_length", "MAX_TOKENS_EXCEEDED", "FinishReason.MAX_TOKENS", "max_new_tokens", "ERROR_LIMIT",
        "context_length_exceeded", "incomplete", "error", "ERROR", "FinishReason.ERROR", "abort", "aborted", "failed",
        "cancelled", "timeout", "in_progress", "pause_turn", "insufficient_system_resource", "malformed_model_output",
    ],
)  # fmt: skip
def test_an_answer_that_a_limit_or_an_error_ended_is_a_warning(tmp_path: Path, reason: str) -> None:
    assert broken(tmp_path, ASKED, says("Five da", finish_reason=reason)) == [CUT_OFF.replace("max_tokens", reason)]


@pytest.mark.parametrize("reason", ["error", "abort", "failed", "incomplete", "model_length", "MAX_TOKENS_EXCEEDED"])
def test_a_check_warns_of_an_answer_that_was_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reason: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write_jsonl(Path("golden.jsonl"), [golden(**ASKED)])
    write_jsonl(Path("current_run.jsonl"), [run(response="Five da", finish_reason=reason)])
    assert "; 1 to warn" in rag_contract("check", "--report-json", "report.json").out
    assert f"an answer that was cut off: finish_reason is {reason}" in Path("report.json").read_text()


@pytest.mark.parametrize(
    "reason",
    ["stop", "end_turn", "eos_token", "stop_sequence", "COMPLETE", "STOP", "FinishReason.STOP", "no_error", ""],
)
def test_an_answer_that_the_model_ended_is_complete(tmp_path: Path, reason: str) -> None:
    assert broken(tmp_path, ASKED, says("Five days.", finish_reason=reason)) == []


@pytest.mark.parametrize(
    "response",
    [
        *(
            ".",
            "-",
            "…",
            "?",
            "!?",
            "**",
            "***",
            "---",
            "# ",
            "> ",
            "- ",
            "* * *",
            "~~~",
            "===",
            "|",
            "| | |\n|---|---|",
        ),
        *("```\n```", "```python\n\n```", "~~~ text\n~~~", "``", "` `", "```\n\u200b\n```", "[](https://example.com)"),
        *(
            "![](chart.png)",
            "<br>",
            "<br/>\n",
            "<p></p>",
            '<div class="answer"></div>',
            "<!-- no answer -->",
            "<b></b>",
        ),
        *(
            "<style>p {}</style>",
            "&nbsp;",
            "&#160;&zwnj;",
            "&amp;nbsp;",
            "\u2063",
            "\ufe0f",
            "\u3164",
            "\x07",
            "\u2800",
        ),
        *("\ufffd", "\ufffc", "─────", "\u0301", "\ue000", "[]", "{}", '""', "\\", "**\u200b**"),
    ],
)
def test_what_says_nothing_is_no_answer(tmp_path: Path, response: str) -> None:
    (found,) = broken(tmp_path, ASKED, says(response))
    assert found.startswith("fail answered: expected an answer; found: ")
    assert found.endswith(("an empty response", ", which has no letter, digit or symbol"))


WRITTEN_FOR_NOTHING = (
    "None", " None\n", "null", "NULL", "undefined", "nan", "NaN", "nil", "<nil>", "<NA>", "[object Object]",
    "No\u200bne", "<p>None</p>", "**None**", "`null`", '"null"', "'None'", "“None”", "None\nNone", "- None\n- NaN",
    "# nil",
    "[object Object],[object Object]", ", ".join(["[object Object]"] * 99), "N<b>one</b>", "&#78;one",
    "<!-- x -->\nnull",
    "```\nundefined\n```", "[None, None]", "['None']", "(null)", "| NaN |", "`<nil>`", "nan nan",
    "1. None", "None/None", "None - NaN", "{null}", "[None](https://x.org)",
)  # fmt: skip


@pytest.mark.parametrize("response", WRITTEN_FOR_NOTHING)
def test_what_programs_write_for_nothing_is_no_answer(tmp_path: Path, response: str) -> None:
    found = broken(tmp_path, ASKED, says(response))
    assert [line for line in found if "programs write for a missing text" in line], found


@pytest.mark.parametrize(
    "response",
    [
        "No",
        "no",
        "0",
        "none",
        "None.",
        "None of them",
        "false",
        "n/a",
        "Nan",
        "None None of",
        "null: 5",
        "nullNone",
        "# None 5",
        "1. None of",
        "42.",
    ],
)
def test_a_short_answer_is_one(tmp_path: Path, response: str) -> None:
    assert broken(tmp_path, ASKED, says(response)) == []


def test_a_word_for_nothing_is_the_answer_where_the_golden_query_says_so(tmp_path: Path) -> None:
    assert broken(tmp_path, ASKED | {"reference": "null"}, says("null")) == []
    assert broken(tmp_path, ASKED | {"reference": "null"}, says("`null`")) == []
    assert broken(tmp_path, ASKED | {"reference": "`null`"}, says('"null"')) == []
    assert broken(tmp_path, ASKED | {"reference": "null"}, says("undefined")) != []
    assert broken(tmp_path, ASKED | {"reference": "null, I think"}, says("null")) != []
    schema = {"type": "json_schema", "schema": {"type": ["string", "null"]}}
    for answer in ("null", '"None"', '```json\n"null"\n```'):
        assert broken(tmp_path, {"rules": [schema]}, says(answer)) == []


@pytest.mark.parametrize(
    "response",
    [
        *(
            "Yes",
            "42",
            "n",
            "½",
            "Ⅷ",
            "é",
            "はい",
            "是",
            "نعم",
            "हाँ",
            "👍",
            "❤️",
            "🇩🇪",
            "1️⃣",
            "∅",
            "→",
            "≤",
            "°",
            "$",
            "€",
            "✓",
        ),
        *("**Yes**", "- a", "# A", "`x`", "`<br>`", "```\nx\n```", "```html\n<br>\n```", "<b>Yes</b>", "[a](b)"),
        *("![a chart](chart.png)", "<https://example.com>", "&eacute;", "&#x1F44D;", "\u200bok", "<!-- no --> yes"),
        *("<p>\n<b>7</b></p>", "¯\\_(ツ)_/¯", "(a)", "a < b", "<3"),
    ],
)
def test_a_letter_a_digit_or_a_symbol_is_an_answer(tmp_path: Path, response: str) -> None:
    assert broken(tmp_path, ASKED, says(response)) == []


@pytest.mark.parametrize(("response", "found"), [("[]", 0), ("```json\n{}\n```", 0), ('""', 1), ("-", 1), ("[", 1)])
def test_empty_json_is_an_answer_where_a_schema_decides(tmp_path: Path, response: str, found: int) -> None:
    findings = broken(tmp_path, rule("json_schema", schema={"type": ["array", "object"]}), says(response))
    assert len([one for one in findings if "answered" in one]) == found
    turn: Row = {"query": "Which?", **rule("json_schema", schema=True)}
    messages = [{"role": "user", "content": "Which?"}, {"role": "assistant", "content": response}]
    assert len(broken(tmp_path, {"turns": [turn]}, {"messages": messages})) == found


FORBIDDEN = rule("must_not_contain", value="password")


@pytest.mark.parametrize(
    ("response", "alphabets"),
    [
        ("Your p\u0430ssword is out.", "Latin and Cyrillic"),
        ("Your p\u200b\u0430ssword is out.", "Latin and Cyrillic"),
        ("Your p<b>\u0430</b>ssword is out.", "Latin and Cyrillic"),
        ("Your passw\u03bfrd is out.", "Latin and Greek"),
        ("Your p\u0430ssw\u03bfrd is out.", "Latin and Greek and Cyrillic"),
        ("Your \uff50\u0430ssword is out.", "Latin and Cyrillic"),
        ("Your \u0440\u0430\u0455\u0455w\u043erd is out.", "Latin and Cyrillic"),
        ("Your passw\u0585rd is out.", "Latin and Armenian"),
        ("\u0412\u0430\u0448 \u043f\u0430\u0440\u03bf\u043b\u044c", "Greek and Cyrillic"),
    ],
)
def test_a_word_of_several_alphabets_is_a_warning_where_a_text_is_forbidden(
    tmp_path: Path, response: str, alphabets: str
) -> None:
    (found,) = broken(tmp_path, FORBIDDEN, says(response))
    assert found.startswith("warn answered: expected letters of one alphabet in each word; found: ")
    assert f"which has {alphabets} letters, so a rule that forbids the word it looks like misses it" in found
    assert decided(tmp_path, FORBIDDEN, says(response)).verdict == "pass"
    for asked in (
        {"forbidden_claims": ["x"]},
        {"forbidden_elements": ["x"]},
        rule("regex_must_not_match", pattern="x"),
    ):
        assert len(broken(tmp_path, asked, says(response))) == 1
    assert broken(tmp_path, ASKED, says(response)) == [], "nothing is forbidden"


@pytest.mark.parametrize(
    "response",
    [
        "Größe, naïve, Łódź, Ελλάδα, Москва, Երևան, 日本, 한국",
        "Tシャツ, Web版, SNSを使う, 漢字かなカナ, 카페A동, ㄅ注音漢字, ใช้PDFได้, לWhatsApp, PDFفایل",
        "10 kΩ, 5 μm, 5 \u00b5m, Δt, πr², TNFα, NFκB, hν, λx",
        "Вы получите API-ключ от OpenAI за 5 €.",
        "p\u0301assw\u00f6rd, ｐａｓｓ, 𝐩𝐚𝐬𝐬",
    ],
)
def test_honest_words_cause_no_warning(tmp_path: Path, response: str) -> None:
    assert broken(tmp_path, FORBIDDEN, says(response)) == []


def test_a_row_without_the_field_cannot_be_judged(tmp_path: Path) -> None:
    assert refusal(tmp_path, ASKED, {}) == [
        (
            'run.jsonl:1: query "q" has no response, which rules about its answer need; '
            "export it, as null if there was none"
        )
    ]


def test_an_error_is_quoted_and_cut(tmp_path: Path) -> None:
    (found,) = broken(tmp_path, ASKED, says(None, error="x" * 500))
    assert len(found.rpartition(" ")[2]) in {79, 80}


def test_a_refusal_apart_from_the_text_answers_where_one_is_wanted(tmp_path: Path) -> None:
    refused = says(None, refusal="I will not.")
    assert broken(tmp_path, rule("must_refuse"), refused) == []
    assert broken(tmp_path, rule("must_refuse"), says(None, finish_reason="content_filter")) == []
    assert broken(tmp_path, rule("must_refuse"), says(None, mode="abstain")) == [
        "fail answered: expected an answer; found: null"
    ]
    assert broken(tmp_path, ASKED, refused) == ["fail answered: expected an answer; found: null"]


def test_it_can_be_turned_off(tmp_path: Path) -> None:
    assert broken(tmp_path, ASKED, says(""), "per_query: {enforce_answered: false}\n") == []


def test_a_row_about_documents_needs_no_answer(tmp_path: Path) -> None:
    assert broken(tmp_path, {"relevant_doc_ids": []}, {"results": []}) == []


TEXTS: Row = {"answer_must_include": ["30 days"], "required_elements": ["delivery"]}


@pytest.mark.parametrize(
    ("answered", "found"),
    [(says(None), "null"), (says(" "), "an empty response"), ({"error": "down"}, "the error down")],
)
def test_without_an_answer_there_is_one_finding_for_all_that_it_lacks(
    answered: Row, found: str, tmp_path: Path
) -> None:
    kinds: list[Row] = [{"type": "must_refuse"}, {"type": "must_cite"}, {"type": "max_chars", "value": 9}]
    kinds += [{"type": "json_schema", "schema": True}, {"type": "regex_must_match", "pattern": "x"}]
    asked = TEXTS | {"rules": kinds}
    assert broken(tmp_path, asked, answered) == [f"fail answered: expected an answer; found: {found}"]
    [finding] = decided(tmp_path, asked, answered).findings
    of_rules = ("must_refuse", "must_cite", "json_schema", "regex_must_match")
    assert finding.ids == ("answered", *of_rules, "answer_must_include", "required_elements")


def test_an_error_is_one_finding_also_for_the_mode_and_the_tools_that_it_prevented(tmp_path: Path) -> None:
    asked = TEXTS | {"expected_mode": "trustworthy", "rules": [{"type": "must_call_tool", "tool": "get_order"}]}
    assert broken(tmp_path, asked, {"error": "down"}) == ["fail answered: expected an answer; found: the error down"]


def test_each_turn_without_an_answer_is_a_finding(tmp_path: Path) -> None:
    turns = [{"query": "Hello?", **TEXTS}, {"query": "And?", **TEXTS}]
    said = [{"role": "user", "content": "Hello?"}, {"role": "user", "content": "And?"}]
    assert broken(tmp_path, {"turns": turns}, {"messages": said}) == [
        "fail answered: expected in turn 1 (messages[0]): an answer; found: null",
        "fail answered: expected in turn 2 (messages[1]): an answer; found: null",
    ]


def test_what_was_answered_is_in_quotation_marks_except_where_it_has_a_style(tmp_path: Path) -> None:
    [finding] = decided(tmp_path, TEXTS, says("Soon after delivery.")).findings
    assert sentence(finding) == 'expected 30 days; found: "Soon after delivery."'
    assert sentence(finding, "`{}`".format, marks="") == "expected `30 days`; found: `Soon after delivery.`"
