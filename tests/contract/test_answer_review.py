from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from scripts import docs
from tests.builders import Row
from tests.contract import linting

PAGE = (docs.ROOT / "docs" / "guides" / "answers.md").read_text()


def asks(name: str = "q", query: str = "What about it?", **fields: Any) -> Row:
    return {"id": name, "query": query, **fields}


def findings(folder: Path, *rows: Row, config: Row | None = None) -> list[tuple[str, str]]:
    """Return rule and message of each finding, which the page of answers must have if it is about answers."""
    found = linting.findings(folder, rows, config=config)
    assert all(f"| `{finding.rule}` | " in PAGE for finding in found if finding.rule != "duplicate-question")
    return [(finding.rule, finding.message) for finding in found]


def names(found: Iterable[tuple[str, str]]) -> list[str]:
    return [name for name, _ in found]


def test_nothing_is_odd_about_a_good_contract_of_answers(tmp_path: Path) -> None:
    good = asks(
        "good",
        "How long can I return an item?",
        reference="Within 30 days of delivery.",
        reference_contexts=["Returns are accepted within 30 days of delivery."],
        answer_must_include=["30 days"],
        required_elements=["delivery", {"any": ["return", "days"]}],
        forbidden_claims=[r"\b60 days", {"text": "AI", "word": True}],
        forbidden_elements=["in store only"],
        rules=[{"type": "must_contain", "value": "30", "word": True}, {"type": "must_not_refuse"}],
    )
    unanswerable = asks("unanswerable", relevant_doc_ids=[], expected_mode="abstain", forbidden_claims=[r"\$\d"])
    assert findings(tmp_path, good, unanswerable) == []


SHORT = {
    "a rule": (
        {"rules": [{"type": "must_not_contain", "value": "rape"}]},
        """'q' forbids 'rape' anywhere, also within longer words; add "word": true to the rule""",
    ),
    "an element": (
        {"forbidden_elements": [{"any": ["sorry", {"text": "no"}]}]},
        """'q' forbids 'no' anywhere, also within longer words; write {"text": "no", "word": true}""",
    ),
    "a claim that is a pattern of letters only": (
        {"forbidden_claims": ["yes"]},
        """'q' forbids 'yes' anywhere, also within longer words; write {"text": "yes", "word": true}""",
    ),
}


@pytest.mark.parametrize(("fields", "message"), SHORT.values(), ids=SHORT.keys())
def test_a_short_forbidden_text_is_found_within_words(fields: Row, message: str, tmp_path: Path) -> None:
    assert findings(tmp_path, asks(**fields)) == [("short-text", message)]


NOT_SHORT: list[Row] = [
    {"rules": [{"type": "must_not_contain", "value": "rape", "word": True}]},
    {"rules": [{"type": "must_not_contain", "value": "sorry"}]},
    {"rules": [{"type": "must_not_contain", "value": "$ 5"}]},
    {"rules": [{"type": "must_contain", "value": "yes"}]},
    *({"forbidden_elements": [text]} for text in ("机密", "ひみつ", "ລັບ", "비밀", "سري", "סוד")),
    {"forbidden_claims": [r"\byes\b", {"text": "yes", "word": True}]},
]


@pytest.mark.parametrize("fields", NOT_SHORT, ids=str)
def test_whole_words_longer_texts_and_required_ones_are_no_short_texts(fields: Row, tmp_path: Path) -> None:
    assert findings(tmp_path, asks(**fields)) == []


WORD = '{"type": "must_contain", "value": "30", "word": true}'


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"answer_must_include": ["30 days", "30"]},
            "'q' requires '30', which is also found in 130 and 300; use the rule " + WORD,
        ),
        (
            {"required_elements": ["1,5"]},
            """'q' requires '1,5', which is also found in 11,5 and 1,50; write {"text": "1,5", "word": true}""",
        ),
    ],
)
def test_a_required_number_is_found_within_other_numbers(fields: Row, message: str, tmp_path: Path) -> None:
    assert findings(tmp_path, asks(**fields)) == [("loose-number", message)]


@pytest.mark.parametrize(
    "fields",
    [
        {"answer_must_include": ["30 days"]},
        {"rules": [{"type": "must_contain", "any": ["30", "31"], "word": True}]},
        {"rules": [{"type": "must_not_contain", "value": "30"}]},
        {"required_elements": [{"text": "30", "word": True}, {"regex": "31"}]},
    ],
    ids=str,
)
def test_numbers_with_a_unit_as_words_or_forbidden_ones_are_not_loose(fields: Row, tmp_path: Path) -> None:
    assert findings(tmp_path, asks(**fields)) == []


FORBIDDING: list[Row] = [
    {"forbidden_claims": ["sell .*data"]},
    {"forbidden_claims": [{"text": "Sell Data"}]},
    {"forbidden_elements": ["sell data"]},
    {"rules": [{"type": "must_not_contain", "value": "sell data"}]},
    {"rules": [{"type": "regex_must_not_match", "pattern": "sell .*data"}]},
]


@pytest.mark.parametrize("fields", FORBIDDING, ids=str)
def test_what_is_forbidden_must_not_be_in_the_question_or_the_contexts(fields: Row, tmp_path: Path) -> None:
    [(name, message)] = findings(tmp_path, asks(query="Do you sell data?", **fields))
    assert name == "forbidden-in-question"
    assert message.startswith("'q' forbids what its own question says: expected no ")
    assert '; found: "Do you sell data?"; an answer that repeats the question breaks it' in message
    for field in ("reference_contexts", "reference_claims"):
        [(name, message)] = findings(tmp_path, asks(**{**fields, field: ["Hello.", "We sell data."]}))
        assert name == "forbidden-in-reference"
        assert message.startswith(f"'q' forbids what its {field} say: ")
    assert findings(tmp_path, asks(**fields, reference_contexts=["We sell", "data."])) == []


@pytest.mark.parametrize("place", ["the turn", "its fields", "each turn", "the last turn"])
def test_what_a_turn_forbids_must_not_be_in_its_question(place: str, tmp_path: Path) -> None:
    rule: Row = {"type": "must_not_contain", "value": "sell data"}
    own: dict[str, Row] = {"the turn": {"rules": [rule]}, "its fields": {"forbidden_elements": ["sell data"]}}
    of_row: dict[str, Row] = {"each turn": {"rules": [{**rule, "in": "each"}]}, "the last turn": {"rules": [rule]}}
    first: Row = {"query": "Hello?", "rules": [{"type": "must_not_refuse"}]}
    turns = [first, {"query": "Do you sell data?", **own.get(place, {})}]
    [(name, message)] = findings(tmp_path, asks(turns=turns, **of_row.get(place, {})))
    assert name == "forbidden-in-question"
    assert message.startswith("'q' forbids what turn 2's question says: expected no ")
    turns[1]["query"] = "And now?"
    assert findings(tmp_path, asks(query="Do you sell data?", turns=turns, **of_row.get(place, {}))) == []


def test_what_an_allowed_phrase_excuses_or_a_config_turns_off_is_no_finding(tmp_path: Path) -> None:
    row = asks(query="Do you sell data?", forbidden_claims=["sell data"])
    assert names(findings(tmp_path, row)) == ["forbidden-in-question"]
    assert findings(tmp_path, {**row, "allowed_phrases": ["do you sell data"]}) == []
    assert findings(tmp_path, row, config={"per_query": {"enforce_forbidden_claims": False}}) == []


@pytest.mark.parametrize(
    ("fields", "rule"),
    [
        ({"answer_must_include": ["14 days"]}, "answer_must_include"),
        ({"required_elements": ["14 days"]}, "required_elements"),
        ({"rules": [{"type": "regex_must_match", "pattern": "14"}]}, "regex_must_match"),
        ({"rules": [{"type": "max_chars", "value": 3}]}, "max_chars"),
        ({"forbidden_claims": ["30 days"]}, "forbidden_claims"),
    ],
)
def test_a_reference_must_not_break_the_rules_of_its_own_query(fields: Row, rule: str, tmp_path: Path) -> None:
    [(name, message)] = findings(tmp_path, asks(reference="Within 30 days.", **fields))
    assert name == "reference-breaks-rule"
    assert message.startswith(f"'q' has a reference that breaks {rule}: expected ")
    assert message.endswith("; correct one of them")


def test_a_text_that_is_required_and_forbidden_can_never_be_right(tmp_path: Path) -> None:
    both = asks(answer_must_include=["full refund"], forbidden_elements=["refund"])
    assert findings(tmp_path, both) == [
        (
            "forbidden-and-required",
            "'q' requires and forbids the same: expected no refund; found: \"full refund\"; take one out",
        )
    ]
    either: Row = {"rules": [{"type": "must_contain", "any": ["full refund", "money back"]}]}
    assert findings(tmp_path, asks(forbidden_elements=["refund"], **either)) == []
    some: Row = {"required_elements": ["full refund", "money back"], "min_required": 1}
    assert findings(tmp_path, asks(forbidden_elements=["refund"], **some)) == []


def test_an_element_that_another_contains_is_superfluous(tmp_path: Path) -> None:
    assert findings(tmp_path, asks(required_elements=["30 days", "Within 30 Days"])) == [
        ("repeated-element", "'q' requires '30 days' and 'Within 30 Days', which contains it; leave '30 days' out")
    ]
    assert findings(tmp_path, asks(forbidden_elements=["full refund", "refund"])) == [
        ("repeated-element", "'q' forbids 'refund' and 'full refund', which contains it; leave 'full refund' out")
    ]
    word = {"text": "refund", "word": True}
    assert findings(tmp_path, asks(forbidden_elements=[word, "refunds are made"])) == []


def test_only_so_many_elements_are_compared(tmp_path: Path) -> None:
    texts = [f"element number {number:04}." for number in range(99)]
    shown = ["repeated-element"] * 10
    assert names(findings(tmp_path, asks(required_elements=["number", *texts]))) == shown
    assert findings(tmp_path, asks(required_elements=[*texts, "last one", "number"])) == []


ORDER = {"properties": {"answer": {"type": "string"}}, "required": ["answer"]}


@pytest.mark.parametrize(
    ("schema", "place"),
    [
        (ORDER, ""),
        ({"required": ["answer"]}, ""),
        ({"allOf": [ORDER]}, ""),
        ({"$ref": "#/$defs/order", "$defs": {"order": ORDER}}, ""),
        ({"items": {"type": "string"}, "minItems": 1}, ""),
        ({"minLength": 3}, ""),
        ({"format": "email"}, ""),
        ({"type": "object", "properties": {"order": ORDER}}, "at 'order' "),
        ({"type": "array", "items": {"type": "object", "properties": {"id": {"minimum": 1}}}}, "at 'items.id' "),
        ({"type": "object", "properties": {"o": {"$ref": "#/$defs/o"}}, "$defs": {"o": ORDER}}, "at 'o' "),
    ],
)
def test_a_schema_without_a_type_is_too_loose(tmp_path: Path, schema: Row, place: str) -> None:
    row = asks(rules=[{"type": "json_schema", "schema": schema}])
    message = "'q' has a json_schema that accepts null, texts and numbers, because there is no type "
    expected = f'{message}{place}in its schema; add it, as in "type": "object"'
    assert findings(tmp_path, row) == [("schema-without-type", expected)]


@pytest.mark.parametrize(
    "schema",
    [
        True,
        {},
        {"title": "Any JSON"},
        {"type": "object", **ORDER},
        {"type": ["object", "null"], **ORDER},
        {"allOf": [{"type": "object"}, ORDER]},
        {"$ref": "#/$defs/order", "$defs": {"order": {"type": "object", **ORDER}}},
        {"anyOf": [{"type": "boolean"}, {"type": "null"}, {"type": "string"}, {"type": "number"}]},
        {"enum": ["yes", "no", None]},
        {"type": "object", "properties": {"any": {}, "maybe": {"anyOf": [{"type": "boolean"}, {"type": "null"}]}}},
    ],
)
def test_a_schema_that_names_its_types_is_not(tmp_path: Path, schema: object) -> None:
    assert findings(tmp_path, asks(rules=[{"type": "json_schema", "schema": schema}])) == []


def test_a_refusal_in_a_mode_of_answers_is_doubtful(tmp_path: Path) -> None:
    row = asks(expected_mode="trustworthy", rules=[{"type": "must_refuse"}])
    message = "'q' must refuse, and in the mode trustworthy, which is not a mode of refusals; take one out"
    assert findings(tmp_path, row) == [("refuse-and-answer", message)]
    assert findings(tmp_path, {**row, "expected_mode": "abstain"}) == []


def test_where_answers_are_judged_a_question_that_nothing_answers_says_so(tmp_path: Path) -> None:
    judged = asks("judged", "Who?", expected_mode="trustworthy")
    open_ = asks("open", relevant_doc_ids=[], forbidden_doc_ids=["internal"])
    assert findings(tmp_path, open_) == [], "a contract about documents only has nothing to say of answers"
    [(name, message)] = findings(tmp_path, judged, open_)
    assert name == "no-abstention"
    assert message.startswith("'open' has no relevant documents, and may be answered all the same; add ")
    for says in (
        {"expected_mode": "abstain"},
        {"rules": [{"type": "must_refuse"}]},
        {"answer_must_include": ["Hello"]},
    ):
        assert findings(tmp_path, judged, {**open_, **says}) == []


def test_an_imported_benchmark_is_taken_as_it_is(tmp_path: Path) -> None:
    row = asks(forbidden_claims=["yes"], expected_mode="disputed", rules=[{"type": "must_refuse"}])
    assert len(findings(tmp_path, row)) == 2
    assert findings(tmp_path, {**row, "as_evaluated": "fitz-gov-4.1.0"}) == []


def test_each_turn_is_reviewed_with_its_own_rules(tmp_path: Path) -> None:
    turns = [{"query": "Hello?", "rules": [{"type": "must_not_contain", "value": "no"}]}, {"query": "And?"}]
    rules = [{"type": "must_refuse", "in": "last"}, {"type": "must_cite", "in": "any"}]
    found = findings(tmp_path, asks(turns=turns, rules=rules))
    assert names(found) == ["short-text"]


def test_the_same_question_with_other_expectations_is_to_be_merged(tmp_path: Path) -> None:
    rows = [
        asks("a", expected_mode="abstain"),
        asks("b", expected_mode="abstain"),
        asks("c", answer_must_include=["x"]),
    ]
    found = findings(tmp_path, *rows)
    assert names(found) == ["duplicate-question", "duplicate-question"]
    assert found[0][1].endswith("so it counts twice; remove one")
    assert found[1][1].endswith("they expect different answers: merge them into one row")
