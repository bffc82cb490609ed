"""forbidden_claims with allowed_phrases, required_elements with min_required, forbidden_elements."""

from pathlib import Path

import pytest

from tests.builders import Row
from tests.rules.answers import broken, refusal, says

ANSWER = "The report does not mention a price. Others say it costs $499."


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({"forbidden_claims": [r"\$5\d\d"]}, []),
        (
            {"forbidden_claims": [r"\$\d+", "price"]},
            [r"forbidden_claims: expected no \$\d+", "forbidden_claims: expected no price"],
        ),
        (
            {"forbidden_claims": ["price", {"text": "$49"}], "allowed_phrases": ["not mention .*"]},
            ["forbidden_claims: expected no $49"],
        ),
        ({"forbidden_elements": ["$500", "p.*e"]}, []),
        ({"forbidden_elements": [{"regex": "p.*e"}]}, ["forbidden_elements: expected no p.*e"]),
        ({"forbidden_elements": [{"any": ["free", "$499"]}]}, ["forbidden_elements: expected no free or $499"]),
    ],
)
def test_what_an_answer_must_not_say(tmp_path: Path, asked: Row, found: list[str]) -> None:
    assert broken(tmp_path, asked, says(ANSWER)) == [f"fail {one}; found: {ANSWER}" for one in found]


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({"required_elements": ["price", {"regex": r"\$\d{3}\b"}]}, None),
        ({"required_elements": ["price", "x", "y"], "min_required": 1}, None),
        ({"required_elements": [{"any": ["not specified", "not mention"]}]}, None),
        ({"required_elements": ["x"]}, f"expected x; found: {ANSWER}"),
        (
            {"required_elements": ["price", "x", "z"]},
            f"expected all 3 elements, missing x, z; found: {ANSWER}",
        ),
        (
            {"required_elements": ["price", {"any": ["x", "z"]}, "q"], "min_required": 2},
            f"expected 2 of 3 elements, missing x or z, q; found: {ANSWER}",
        ),
    ],
)
def test_what_an_answer_must_say(tmp_path: Path, asked: Row, found: str | None) -> None:
    expected = [] if found is None else [f"fail required_elements: {found}"]
    assert broken(tmp_path, asked, says(ANSWER)) == expected


def test_all_faults_of_a_row_are_reported_at_once(tmp_path: Path) -> None:
    asked = {
        "forbidden_claims": ["(?<!a)b", {"regex": "["}, "ok", "ok"],
        "allowed_phrases": [r"(a)\1"],
        "required_elements": ["x", {"text": "x", "regex": "y"}],
        "min_required": 3,
        "forbidden_elements": [],
    }
    found = refusal(tmp_path, asked, says("a"))
    assert [problem.partition("golden.jsonl:1: ")[2].partition(": ")[0] for problem in found] == [
        "forbidden_claims[0]",
        "forbidden_claims[1].regex",
        "forbidden_claims[3]",
        "allowed_phrases[0]",
        "required_elements[1]",
        "forbidden_elements",
        "min_required",
    ]
    assert found[0] == (
        "golden.jsonl:1: forbidden_claims[0]: is not an RE2 pattern (invalid perl operator: (?<!); "
        "lookarounds and backreferences are not supported, write two rules instead"
    )
    assert found[-1].endswith("min_required: is 3, more than the 2 in required_elements")


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        ({"allowed_phrases": ["a"]}, "allowed_phrases: needs forbidden_claims, to allow some of them"),
        ({"min_required": 1}, "min_required: needs required_elements, to say how many of them are enough"),
        ({"required_elements": ["a"], "min_required": 0}, "min_required: expected a whole number of at least 1"),
        ({"required_elements": [7]}, "required_elements[0]: expected text of 1 to 2,000 characters or an object"),
        ({"answer_must_include": ["a", "a"]}, "answer_must_include[1]: repeats answer_must_include[0]"),
    ],
)
def test_fields_that_contradict_each_other_cannot_be_judged(tmp_path: Path, asked: Row, problem: str) -> None:
    found = refusal(tmp_path, {"relevant_doc_ids": [], **asked}, says("a", results=[]))
    assert found[0].startswith(f"golden.jsonl:1: {problem}")


def test_a_row_imported_as_evaluated_is_matched_as_the_benchmark_does(tmp_path: Path) -> None:
    imported = {"as_evaluated": "fitz-gov-4.1.0"}
    claims = {"forbidden_claims": [r"\$\d"], "allowed_phrases": ["no .* mentioned"]}
    assert broken(tmp_path, {**imported, **claims}, says("")) == []
    assert broken(tmp_path, {**imported, **claims}, says("no doubt. It costs $4, as mentioned")) == []
    assert len(broken(tmp_path, {**imported, **claims}, says("$4 or $5"))) == 2
    elements = {"required_elements": ["a", "a", "STRASSE"], "min_required": 2}
    assert broken(tmp_path, {**imported, **elements}, says("a, Straße")) == []
    (found,) = broken(tmp_path, {**imported, **elements}, says("Stroße"))
    assert "expected 2 of 3 elements, missing a, a, STRASSE" in found
    assert len(broken(tmp_path, {**imported, "forbidden_elements": ["x", "x"]}, says("X"))) == 1


def test_an_imported_row_still_needs_its_response(tmp_path: Path) -> None:
    imported = {"as_evaluated": "fitz-gov-4.1.0", "forbidden_claims": ["a"]}
    assert "has no response" in refusal(tmp_path, imported, {})[0]
