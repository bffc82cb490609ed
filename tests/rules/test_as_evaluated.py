"""Rules of rows with ``as_evaluated``, which match as fitz-gov does; tests/oracles compares them with it."""

from pathlib import Path
from typing import Any

import pytest

from ragcontract import InputError, check
from tests.builders import write_jsonl

GROUNDING = {"forbidden_claims": [{"regex": r"\$\d"}], "allowed_phrases": [{"regex": "no .* known"}]}
RELEVANCE = {"required_elements": [{"text": "ab"}, {"text": ""}, {"text": "ab"}], "min_required": 3}


def broken(tmp_path: Path, expected: dict[str, Any], *, config: str = "k: 5\n", **row: Any) -> list[str]:
    """Return the rules that a row breaks; without fields, the run lacks it."""
    golden = {"id": "q1", "query": "What?", "as_evaluated": "fitz-gov-4.1.0", **expected}
    other = {"id": "q2", "query": "What else?", "expected_mode": "abstain"}
    (tmp_path / "ragcontract.yml").write_text(config)
    rows = [{"query_id": "q2", "mode": "abstain"}, *([{"query_id": "q1", **row}] if row else [])]
    report = check(
        golden=write_jsonl(tmp_path / "golden.jsonl", [golden, other]),
        run=write_jsonl(tmp_path / "run.jsonl", rows),
        config=tmp_path / "ragcontract.yml",
    )
    return [one.rule for query in report.queries for one in query.violations]


@pytest.mark.parametrize(
    ("expected", "response", "rules"),
    [
        (GROUNDING, "It costs $499.", ["forbidden_claims"]),
        (GROUNDING, "There is no " + "x" * 500 + ". Not so: $499 is known.", []),
        (GROUNDING, "", []),
        (GROUNDING, " \n", []),
        ({"forbidden_claims": []}, "Anything", []),
        (RELEVANCE, "AB", []),
        (RELEVANCE, "**a**b", ["required_elements"]),
        (RELEVANCE, "", ["required_elements"]),
        ({"required_elements": [], "min_required": 1}, "Anything", ["required_elements"]),
        ({"required_elements": [{"text": "STRASSE"}]}, "Straße", ["required_elements"]),
        ({"forbidden_elements": [{"text": "$5"}, {"text": "$5"}]}, "$5", ["forbidden_elements"]),
        ({"forbidden_elements": [{"regex": ""}]}, "", ["forbidden_elements"]),
    ],
)
def test_an_answer_is_matched_as_fitz_gov_matches_it(
    expected: dict[str, Any], response: str, rules: list[str], tmp_path: Path
) -> None:
    assert broken(tmp_path, expected, response=response) == rules


def test_an_application_that_did_not_answer_passes_nothing(tmp_path: Path) -> None:
    assert broken(tmp_path, GROUNDING, response=None) == ["answered"]
    assert broken(tmp_path, GROUNDING, response="", error="timeout") == ["answered"]
    assert broken(tmp_path, GROUNDING, config="missing_queries: zero\n") == ["answered"]
    with pytest.raises(InputError, match="has no response, which rules about its answer need; export it"):
        broken(tmp_path, GROUNDING, mode="abstain")


@pytest.mark.parametrize("kind", ["text", "regex"])
def test_elsewhere_what_is_empty_is_refused(kind: str, tmp_path: Path) -> None:
    empty = {"as_evaluated": None, "forbidden_elements": [{kind: ""}]}
    with pytest.raises(InputError, match=rf"forbidden_elements\[0\]\.{kind}: is empty; give a text or a pattern"):
        broken(tmp_path, empty, response="x")
