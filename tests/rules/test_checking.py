"""must_cite, json_schema, check and custom."""

from pathlib import Path
from typing import Any

import pytest

from tests.builders import Row
from tests.rules.answers import broken, refusal, rule, says

SOURCES = {"results": [{"doc_id": "doc_refunds"}, {"doc_id": "a b"}, {"doc_id": 7}]}


@pytest.mark.parametrize(
    "answer",
    ["30 days [1].", "30 days [1][3]", "[1, 3]", "[1-3]", "[^2]", "see doc_refunds.", "(doc_refunds)", "[a b]", "[7]"],
)
def test_an_answer_cites_what_was_retrieved(tmp_path: Path, answer: str) -> None:
    assert broken(tmp_path, rule("must_cite"), says(answer, **SOURCES)) == []


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ("30 days", "expected a citation: [1], or the id of a retrieved document; found: 30 days"),
        ("30 days [doc_sso] (2026) [2026]", "expected a citation: [1], or the id"),
        ("doc_refunds_old", "expected a citation: [1], or the id"),
        ("30 days [4]", "expected citations up to [3]; found: [4] in 30 days [4]"),
        ("30 days [1] and [2, 9]", "expected citations up to [3]; found: [9] in"),
        ("30 days [0]", "expected citations up to [3]; found: [0] in"),
    ],
)
def test_a_citation_points_to_something(tmp_path: Path, answer: str, found: str) -> None:
    (finding,) = broken(tmp_path, rule("must_cite"), says(answer, **SOURCES))
    assert finding.startswith(f"fail must_cite: {found}")


NOWHERE = (
    *(
        "[1; 99]",
        "[ 99 ]",
        "[99, p. 3]",
        "[1, 99, pp. 3-4]",
        "[1 and 99]",
        "[1 & 99]",
        "[1/99]",
        "[1,99,]",
        "[1—99]",
        "[1−99]",
        "[1‒99]",
        "[1 99]",
    ),
    *("[1,\n99]", "[**99**]", "[`99`]", r"\[99\]", "［99］", "【99】", "【99†source】", "［９９］", "[٩٩]", "[[99]]"),
    *(f"[{'1, ' * 22}99]", f"[1{' ' * 3000}, 99]", "[9<b>9</b>]", "[9\u200b9]", "[9&#57;]", "&#91;99]", "[^1, ^99]"),
    *("<b>[99]</b>", "<p>See [99]</p>", "[99](http://x)", "**[99]**", "| [99] |", "> [99]"),
)


SOURCE_9 = (
    *(
        "[#9]",
        "[Source 9]",
        "[source: 9]",
        "[Sources 1, 9]",
        "[Source 1, Source 9]",
        "[Doc 1; Doc 9]",
        "[doc9]",
        "[ref_9]",
    ),
    *(
        "[citation:9]",
        "[cite: 1, 9]",
        "[Document #9]",
        "[Source 9: Returns policy]",
        "[Ref. 9, p. 3]",
        "【Source 9】",
        "[№ 9]",
    ),
    *(
        "**[Source 9]**",
        "[Sou<b>rce</b> 9]",
        "[Quelle 9]",
        "[source_id: 9]",
        "[source: doc 9]",
        "[Document(s) 1, 9]",
        "[search result 9]",
        "[来源9]",
        "[1, Source 9]",
        "[Context 9 (terms)]",
    ),
)


@pytest.mark.parametrize("citation", SOURCE_9)
def test_a_number_after_a_word_for_a_source_points_to_something(tmp_path: Path, citation: str) -> None:
    (finding,) = broken(tmp_path, rule("must_cite"), says(f"30 days {citation}. Also [1].", **SOURCES))
    assert finding.startswith("fail must_cite: expected citations up to [3]; found: [9] in ")
    assert broken(tmp_path, rule("must_cite"), says(f"30 days {citation.replace('9', '3')}.", **SOURCES)) == []


def test_the_second_number_of_an_assistants_citation_counts_the_texts_from_zero(tmp_path: Path) -> None:
    saw = {"retrieved_contexts": ["one", "two"], "results": []}
    for honest in (
        "30 days【4:1†source】.",
        "30 days 【12:0†terms.pdf】",
        "30 days [0:1†source]",
        "30 days 【4:0】",
        "At [12:30] [1]",
    ):
        assert broken(tmp_path, rule("must_cite"), says(honest, **saw)) == []
    for nowhere in ("【4:7†source】", "【4:7】", "[4:7†source]", "【4:\u200b7†source】", "[ 4 : 7 † source ]"):
        (finding,) = broken(tmp_path, rule("must_cite"), says(f"30 days [1]. 5 euros {nowhere}.", **saw))
        assert finding.startswith("fail must_cite: expected citations up to [4:1]; found: [4:7] in ")


def test_a_number_in_what_looks_like_an_id_is_none(tmp_path: Path) -> None:
    """The id of a document that was not retrieved cites nothing."""
    saw: Row = {"results": [{"doc_id": "doc_1"}, {"doc_id": "doc_7"}]}
    assert "expected a citation: [1]" in broken(tmp_path, rule("must_cite"), says("30 days [doc_2].", **saw))[0]
    for honest in (
        "30 days [doc_7].",
        "30 days [doc_1], not [doc_9]",
        "See [#9](https://example.com/9) [2]",
        "[Step 9] [1]",
    ):
        assert broken(tmp_path, rule("must_cite"), says(honest, **saw)) == []


@pytest.mark.parametrize(
    "note",
    [
        "[^1]: Returns policy",
        "[^a]: doc_refunds",
        "> [^1]: Returns\n> policy",
        "[^1]: Returns\n\n    See [1]",
        "[^1]: See [^1].",
        "[^1]: See [^2]\n[^2]: Terms",
    ],
)
def test_a_note_that_nothing_refers_to_cites_nothing(tmp_path: Path, note: str) -> None:
    (finding,) = broken(tmp_path, rule("must_cite"), says(f"Items can be returned.\n\n{note}", **SOURCES))
    assert finding.startswith("fail must_cite: expected a citation: [1]")
    if "doc_refunds" in note:
        assert broken(tmp_path, rule("must_cite"), says(f"Items can be returned.[^a]\n\n{note}", **SOURCES)) == []


@pytest.mark.parametrize("citation", NOWHERE)
def test_a_number_that_points_to_nothing_is_found_however_it_is_written(tmp_path: Path, citation: str) -> None:
    (finding,) = broken(tmp_path, rule("must_cite"), says(f"30 days {citation}. Also [1].", **SOURCES))
    assert finding.startswith("fail must_cite: expected citations up to [3]; found: [99] in ")


@pytest.mark.parametrize(
    "answer",
    [
        *(
            "30 days <!-- [1] -->",
            "30 days <!-- doc_refunds -->",
            "30 days <!-- <a href='doc_refunds'>x</a>",
            "30 days.\n\n[1]: http://x",
            "[9999]",
        ),
        *("`[1]`", "```\nlist[1]\n\nlist[2]\n```", "~~~\n[1]\n~~~"),
        *("30 days <style>[1]</style>", "30 days <a title='[1]'>here</a>"),
    ],
)
def test_what_a_page_does_not_show_and_code_cite_nothing(tmp_path: Path, answer: str) -> None:
    (finding,) = broken(tmp_path, rule("must_cite"), says(answer, **SOURCES))
    assert finding.startswith("fail must_cite: expected a citation: [1]")


@pytest.mark.parametrize(
    "answer",
    [
        *("In [2026], `list[9]` [1].", "```\nlist[9]\n\nlist[8]\n```\nSee [1]", "``list[9]`` [1] and `x"),
        *("Costs [$99] [1]", "[1] takes 1.5 days [2.5]", "- 30 days [1]\n- [3]", "30 days [1, 2 and 3]", "[1, p. 99]"),
        *("30 days[1](http://x).", "30 days [1].\n\n[1]: http://x", "30 days 【1†source】", "**30 days** [**2**]"),
        *("<p>30 days [1]</p>", "<p>30 days<sup>[1]</sup></p>", "<p>doc_refunds</p>", "`doc_refunds`"),
        *(
            "30 days.[^1]\n\n[^1]: Returns policy",
            "30 days.[^A]\n\n[^a]: doc_refunds",
            "30 days\n\n[1]: Returns policy",
        ),
        *("<a href='doc_refunds'>terms</a>", "[terms](doc_refunds)"),
    ],
)
def test_honest_citations_count(tmp_path: Path, answer: str) -> None:
    assert broken(tmp_path, rule("must_cite"), says(answer, **SOURCES)) == []


def test_numbers_count_what_the_model_saw(tmp_path: Path) -> None:
    saw = {"retrieved_contexts": ["one"], **SOURCES}
    assert broken(tmp_path, rule("must_cite"), says("x [1]", **saw)) == []
    assert len(broken(tmp_path, rule("must_cite"), says("x [2]", **saw))) == 1
    assert "no citation of a text" in broken(tmp_path, rule("must_cite"), says("x [1]", results=[]))[0]


SCHEMA = {"type": "object", "required": ["days"], "properties": {"days": {"type": "integer"}}}


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ('{"days": 30}', None),
        ('```json\n{"days": 30}\n```', None),
        ('{"days": "30"}', '[…] JSON that fits the schema: type: "integer"; found: at days: "30"'),
        ("{}", '[…] JSON that fits the schema: required: ["days"]; found: {}'),
        ("30 days", "expected JSON that fits the schema; found: an answer that is not JSON ("),
    ],
)
def test_an_answer_fits_its_schema(tmp_path: Path, answer: str, found: str | None) -> None:
    findings = broken(tmp_path, rule("json_schema", schema=SCHEMA), says(answer))
    if found is None:
        assert findings == []
    else:
        assert findings[0].startswith(found.replace("[…]", "expected").join(["fail json_schema: ", ""]))


@pytest.mark.parametrize(
    "answer",
    [
        '{"a": 2, "a": 1}',
        '{"a": 1, "\\u0061": 1}',
        '```json\n{"a": 1, "b": [{"a": 1, "a": 1}]}\n```',
        '[{"a": "}", "a": 1}]',
    ],
)
def test_a_key_twice_in_an_object_fits_no_schema(tmp_path: Path, answer: str) -> None:
    found = "fail json_schema: expected each key once in an object; found: the key a twice: some programs read"
    assert broken(tmp_path, rule("json_schema", schema=True), says(answer))[0].startswith(found)
    once = '{"a": {"a": 1}, "b": [{"a": 1}, {"a": 1}], "c": "a\\": \\"a\\":"}'
    assert broken(tmp_path, rule("json_schema", schema=True), says(once)) == []


def test_a_schema_that_is_wrong_cannot_be_judged(tmp_path: Path) -> None:
    found = refusal(tmp_path, rule("json_schema", schema={"$ref": "https://example.com"}), says("1"))
    assert found[0].startswith('golden.jsonl:1: rules[0].schema: refers to "https://example.com"; only schemas in it')


@pytest.mark.parametrize(
    ("checks", "found"),
    [
        ({"polite": True}, None),
        ({"polite": {"passed": True, "reason": "kind"}}, None),
        ({"polite": False}, "it failed"),
        ({"polite": {"passed": False}}, "it failed"),
        ({"polite": {"passed": False, "reason": "rude"}}, "it failed: rude"),
    ],
)
def test_what_other_code_checked(tmp_path: Path, checks: Row, found: str | None) -> None:
    expected = [] if found is None else [f"fail check: expected the check polite to pass; found: {found}"]
    assert broken(tmp_path, rule("check", name="polite"), {"checks": checks}) == expected


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ({}, "has no check 'polite' in checks; export it as true, false"),
        ({"checks": {"kind": True}}, "has no check 'polite' in checks"),
        ({"checks": {"polite": {"passed": "yes"}}}, "has a check 'polite' whose passed is neither true nor false"),
    ],
)
def test_a_check_that_is_not_there_cannot_be_judged(tmp_path: Path, row: Row, why: str) -> None:
    (found,) = refusal(tmp_path, rule("check", name="polite"), row)
    assert f'query "q" {why}' in found


class Polite:
    """A plugin that wants a word, and can misbehave."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def evaluate(self, output: str, tool_calls: list[Any], rule: dict[str, Any]) -> Any:
        self.seen.append((output, tool_calls, rule))
        if output == "raise":
            raise ValueError("no such tone")
        return None if output == "nothing" else ("please" in output, "no please")


ASKED = rule("custom", plugin="Polite", options={"tone": "kind"})


def test_a_plugin_decides(tmp_path: Path) -> None:
    plugin = Polite()
    calls = [{"function": {"name": "look", "arguments": '{"a": 1}'}}, {"name": "wait", "args": {"s": 2}}]
    calls += [{"tool": "go", "input_parameters": {"to": "x"}}, {"name": "stop", "arguments": "none"}]
    assert broken(tmp_path, ASKED, says("please", tool_calls=calls), plugins=(plugin,)) == []
    assert plugin.seen[0] == (
        "please",
        [
            {"name": "look", "tool": "look", "arguments": {"a": 1}, "args": {"a": 1}},
            {"name": "wait", "tool": "wait", "arguments": {"s": 2}, "args": {"s": 2}},
            {"name": "go", "tool": "go", "arguments": {"to": "x"}, "args": {"to": "x"}},
            {"name": "stop", "tool": "stop", "arguments": "none", "args": "none"},
        ],
        {"type": "custom", "plugin": "Polite", "tone": "kind"},
    )
    assert broken(tmp_path, ASKED, says("now"), plugins=(Polite(),)) == [
        "fail custom: expected the plugin Polite to accept it; found: no please"
    ]


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ("raise", "cannot be judged by the plugin 'Polite', which failed: ValueError: no such tone"),
        ("nothing", "cannot be judged by the plugin 'Polite', which must return (bool, str)"),
    ],
)
def test_a_plugin_that_does_not_decide_breaks_nothing(tmp_path: Path, answer: str, why: str) -> None:
    (found,) = refusal(tmp_path, ASKED, says(answer), plugins=(Polite(),))
    assert f'query "q" {why}' in found


def test_without_its_plugin_a_query_cannot_be_judged(tmp_path: Path) -> None:
    (found,) = refusal(tmp_path, ASKED, says("please"))
    assert "needs the plugin 'Polite'; name it with `--plugin module:Class`, or export `checks`" in found
