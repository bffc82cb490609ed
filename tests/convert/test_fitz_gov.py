"""Cases of fitz-gov become golden queries; how these are judged is compared with fitz-gov in tests/oracles."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ragcontract.core import bounds
from tests.convert.builders import Converted
from tests.convert.builders import converted as run_convert
from tests.process import files_in, rag_contract

CASE = {
    "id": "t0_price",
    "query": "What does a return cost?",
    "contexts": ["Items can be returned within 30 days."],
    "expected_mode": "trustworthy",
}
TAGS = {
    "difficulty": "medium",
    "domain": "unknown",
    "query_type": "unknown",
    "source_type": "single",
    "reasoning_type": "unknown",
    "evidence_pattern": "unknown",
}


def case(**fields: Any) -> dict[str, Any]:
    """Return a case with these fields; None for a field that it lacks."""
    return {name: value for name, value in {**CASE, **fields}.items() if value is not None}


def write(path: Path, *cases: Mapping[str, Any], **fields: Any) -> Path:
    """Write a file of cases."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({**fields, "cases": cases}, indent=1))
    return path


def converted(folder: Path, *paths: Path, as_evaluated: bool = True) -> Converted:
    """Return the golden rows of files or folders, the problems and the warnings."""
    cases = [option for path in paths or [folder] for option in ("--cases", str(path))]
    return run_convert("fitz-gov", "golden", folder, *cases, *([] if as_evaluated else ["--no-as-evaluated"]))


def expected(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a golden row expects of the answer."""
    others = {"id", "query", "tier", "as_evaluated", "tags", "metadata"}
    return {name: value for name, value in row.items() if name not in others}


@pytest.mark.parametrize("category", ["abstention", "dispute", "trustworthy_hedged", "trustworthy_direct"])
def test_of_a_case_about_the_mode_only_the_mode_is_compared(category: str, tmp_path: Path) -> None:
    about = case(expected_mode="abstain", forbidden_claims=["x"], required_elements=["y"], forbidden_elements=["z"])
    (row,), *said = converted(tmp_path, write(tmp_path / f"{category}.json", about))
    assert said == [[], []]
    assert expected(row) == {"expected_mode": "abstain"}


def test_of_a_case_about_grounding_only_the_claims_are_compared(tmp_path: Path) -> None:
    settings = {"use_regex": True, "allowed_phrases": ["not said", "no .* said"]}
    about = case(forbidden_claims=[r"\$\d"], required_elements=["y"], forbidden_elements=["z"])
    (row,), *said = converted(tmp_path, write(tmp_path / "grounding.json", about, evaluation_config=settings))
    assert said == [[], []]
    assert expected(row) == {
        "forbidden_claims": [{"regex": r"\$\d"}],
        "allowed_phrases": [{"regex": "not said"}, {"regex": "no .* said"}],
    }


def test_of_a_case_about_relevance_only_the_elements_are_compared(tmp_path: Path) -> None:
    about = case(forbidden_claims=["x"], required_elements=["a", "A", "a", ""], forbidden_elements=["z"])
    hopeless = case(id="b", required_elements=["a"], evaluation_config={"min_required": 2})
    (row, other), *said = converted(tmp_path, write(tmp_path / "relevance.json", about, hopeless))
    assert said == [[], []]
    assert expected(row) == {
        "required_elements": [{"text": "a"}, {"text": "A"}, {"text": "a"}, {"text": ""}],
        "min_required": 1,
        "forbidden_elements": [{"text": "z"}],
    }
    assert expected(other) == {"required_elements": [{"text": "a"}], "min_required": 2}


def test_a_case_that_expects_nothing_stays_a_case(tmp_path: Path) -> None:
    rows, _, warnings = converted(
        tmp_path,
        write(tmp_path / "grounding.json", case(id="g"), evaluation_config={"allowed_phrases": ["x"]}),
        write(tmp_path / "relevance.json", case(id="r"), evaluation_config={"min_required": 0}),
    )
    assert warnings == [
        (
            "grounding.json:8: 2 cases ('g', 'r') of grounding or relevance without claims or elements to look for: "
            "every answer passes; name forbidden_claims, required_elements or forbidden_elements"
        )
    ]
    assert list(map(expected, rows)) == [{"forbidden_claims": []}, {"forbidden_elements": []}]


@pytest.mark.parametrize(
    ("cases", "warnings"),
    [
        (
            {"cases": [case(forbidden_claim=["x"]), case(id="b", forbidden_claim=["x"])]},
            [
                "grounding.json:1: unknown field 'forbidden_claim' is not read; did you mean 'forbidden_claims'?",
                (
                    "grounding.json:1: 2 cases ('t0_price', 'b') of grounding or relevance without claims or elements "
                    "to look for: every answer passes; name forbidden_claims, required_elements or forbidden_elements"
                ),
            ],
        ),
        (
            {"cases": [case(forbidden_claims=["x"], Required_Elements=["y"], must_not_say=["z"])]},
            [
                "grounding.json:1: unknown field 'Required_Elements' is not read; did you mean 'required_elements'?",
                "grounding.json:1: unknown field 'must_not_say' is not read; fitz-gov has no such field",
            ],
        ),
        (
            {"cases": [case(forbidden_claims=["x"], evaluation_config={"use_regexp": True})]},
            ["grounding.json:1: unknown field 'use_regexp' is not read; did you mean 'use_regex'?"],
        ),
        (
            {"evaluation_confg": {"use_regex": True}, "cases": [case(forbidden_claims=["x"])]},
            ["grounding.json:1: unknown field 'evaluation_confg' is not read; did you mean 'evaluation_config'?"],
        ),
    ],
)
def test_a_field_that_fitz_gov_has_not_is_a_warning_once(
    cases: dict[str, Any], warnings: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("grounding.json").write_text(json.dumps(cases))
    code, _, err = rag_contract("convert", "--from", "fitz-gov", "--cases", "grounding.json", "--golden-out", "g.jsonl")
    assert (code, err.splitlines()) == (0, [f"warning: {warning}" for warning in warnings])


def test_many_fields_that_fitz_gov_has_not_are_counted(tmp_path: Path) -> None:
    made_up = {f"field {number}": 1 for number in range(bounds.PROBLEMS + 2)}
    warnings = converted(tmp_path, write(tmp_path / "dispute.json", case(**made_up), case(id="b", **made_up))).warnings
    assert len(warnings) == bounds.PROBLEMS + 1
    assert warnings[-1] == "and 2 more unknown fields of cases, not read either"


def test_a_setting_of_the_case_replaces_that_of_its_file_as_a_whole(tmp_path: Path) -> None:
    of_file = {"use_regex": True, "case_insensitive": False, "allowed_phrases": ["a", "b"]}
    of_case = {"use_regex": False, "allowed_phrases": []}
    claims = {"forbidden_claims": ["x"]}
    rows, *said = converted(
        tmp_path,
        write(
            tmp_path / "grounding.json",
            case(id="1", **claims),
            case(id="2", **claims, evaluation_config=of_case),
            case(id="3", **claims, evaluation_config={"allowed_phrases": ["c"]}),
            evaluation_config=of_file,
        ),
    )
    assert said == [[], []]
    assert list(map(expected, rows)) == [
        {
            "forbidden_claims": [{"regex": "x", "ignore_case": False}],
            "allowed_phrases": [{"regex": "a", "ignore_case": False}, {"regex": "b", "ignore_case": False}],
        },
        {"forbidden_claims": [{"text": "x", "ignore_case": False}]},
        {
            "forbidden_claims": [{"regex": "x", "ignore_case": False}],
            "allowed_phrases": [{"regex": "c", "ignore_case": False}],
        },
    ]


def test_as_a_contract_everything_that_a_case_says_must_hold(tmp_path: Path) -> None:
    says_all = case(
        forbidden_claims=["free"],
        required_elements=["30 days", "thirty days"],
        forbidden_elements=["z"],
        evaluation_config={"min_required": 1, "allowed_phrases": ["not free"]},
    )
    rows, *said = converted(
        tmp_path,
        write(tmp_path / "dispute.json", says_all, case(id="plain"), case(id="all", required_elements=["a", "b"])),
        as_evaluated=False,
    )
    assert said == [[], []]
    assert list(map(expected, rows)) == [
        {
            "expected_mode": "trustworthy",
            "forbidden_claims": [{"text": "free"}],
            "allowed_phrases": [{"regex": "not free"}],
            "required_elements": [{"text": "30 days"}, {"text": "thirty days"}],
            "min_required": 1,
            "forbidden_elements": [{"text": "z"}],
        },
        {"expected_mode": "trustworthy"},
        {"expected_mode": "trustworthy", "required_elements": [{"text": "a"}, {"text": "b"}]},
    ]
    assert not any("as_evaluated" in row for row in rows)


def test_as_a_contract_an_element_counts_once_and_what_cannot_hold_is_refused(tmp_path: Path) -> None:
    repeated = case(required_elements=["Not said", "not  said", "other"], evaluation_config={"min_required": 3})
    needless = case(id="none", required_elements=["x"], evaluation_config={"min_required": 0})
    rows, _, warnings = converted(tmp_path, write(tmp_path / "relevance.json", repeated, needless), as_evaluated=False)
    assert warnings == [
        (
            "relevance.json:19: 1 case ('none') of grounding or relevance without claims or elements to look for: "
            "only the mode is compared; name forbidden_claims, required_elements or forbidden_elements"
        )
    ]
    assert list(map(expected, rows)) == [
        {
            "expected_mode": "trustworthy",
            "required_elements": [{"text": "Not said"}, {"text": "other"}],
            "min_required": 2,
        },
        {"expected_mode": "trustworthy"},
    ]
    hopeless = case(required_elements=["a", ""], evaluation_config={"min_required": 3})
    problems = converted(tmp_path, write(tmp_path / "relevance.json", hopeless), as_evaluated=False).problems
    assert problems == [
        "relevance.json:3: cases[0].required_elements[1]: is empty, and therefore in every answer; leave it out",
        "relevance.json:3: cases[0].required_elements: 3 of 2 elements can never be found; lower min_required",
    ]


def test_a_row_has_the_tier_the_tags_and_the_contexts_of_its_case(tmp_path: Path) -> None:
    attributes = {name: f"a_{name}" for name in TAGS}
    whole = case(id=7, subcategory="invented_price", **attributes)
    (row, bare), *_ = converted(
        tmp_path,
        write(tmp_path / "tier0_sanity" / "dispute.json", whole, case(evidence_pattern="", domain=None), tier="other"),
    )
    assert (row["id"], row["tier"], row["as_evaluated"]) == ("7", "sanity", "fitz-gov-4.1.0")
    assert row["metadata"] == {"contexts": ["Items can be returned within 30 days."]}
    named = {"category": "dispute", "subcategory": "invented_price"}
    assert row["tags"] == [f"{name}:{value}" for name, value in {**named, **attributes}.items()]
    unnamed = {"category": "dispute", "subcategory": "dispute", **TAGS}
    assert bare["tags"] == [f"{name}:{value}" for name, value in unnamed.items()]


def test_the_tier_is_the_folders_or_else_what_the_file_says(tmp_path: Path) -> None:
    rows, *_ = converted(
        tmp_path,
        write(tmp_path / "tier1_core" / "dispute.json", case(id="1"), tier="sanity"),
        write(tmp_path / "mine" / "dispute.json", case(id="2"), tier="mine"),
        write(tmp_path / "other" / "dispute.json", case(id="3")),
    )
    assert [row.get("tier", "none") for row in rows] == ["core", "mine", "none"]


def test_the_category_is_that_of_the_folder_the_file_or_the_case(tmp_path: Path) -> None:
    rows, *_ = converted(
        tmp_path,
        write(tmp_path / "grounding" / "relevance.json", case(id="1")),
        write(tmp_path / "relevance.json", case(id="2"), category="dispute"),
        write(tmp_path / "a.json", case(id="3", category="grounding"), category="dispute"),
        write(tmp_path / "b.json", case(id="4", category="abstention")),
    )
    assert [row["tags"][0].partition(":")[2] for row in rows] == ["grounding", "relevance", "dispute", "abstention"]


def test_a_folder_is_read_in_the_order_of_fitz_gov_and_other_files_in_it_are_not(tmp_path: Path) -> None:
    for name in ("tier1_core/grounding", "tier1_core/abstention", "tier0_sanity/relevance", "tier0_sanity/dispute"):
        write(tmp_path / f"{name}.json", case(id=name, forbidden_claims=["x"]))
    for other in ("corpus/manifest", "tier0_sanity/notes"):
        (tmp_path / other).parent.mkdir(exist_ok=True)
        (tmp_path / f"{other}.json").write_text("{}")
    rows, *said = converted(tmp_path)
    assert said == [[], []]
    write(tmp_path / "grounding.json", {"id": 1})
    rows, _, warnings = converted(tmp_path)
    assert [
        warning.endswith(
            "not read: 1 entry ('grounding.json'); expected tier0_sanity/, tier1_core/ or files such as grounding.json"
        )
        for warning in warnings
    ] == [True]
    order = ["tier0_sanity/dispute", "tier0_sanity/relevance", "tier1_core/abstention", "tier1_core/grounding"]
    assert [row["id"] for row in rows] == order
    assert [row["id"] for row in converted(tmp_path, tmp_path / "tier1_core")[0]] == order[2:]


def test_a_folder_of_older_versions_has_a_folder_for_each_category(tmp_path: Path) -> None:
    for name in ("grounding/b", "grounding/a", "abstention/c", "elsewhere/d"):
        write(tmp_path / f"{name}.json", case(id=name, forbidden_claims=["x"]))
    rows, _, [warning] = converted(tmp_path)
    assert "not read: 1 entry ('elsewhere'); expected" in warning
    assert [row["id"] for row in rows] == ["abstention/c", "grounding/a", "grounding/b"]
    assert rows[0]["tags"][:2] == ["category:abstention", "subcategory:c"]


def test_allowed_phrases_that_do_not_compile_are_left_out_with_a_warning(tmp_path: Path) -> None:
    settings = {"use_regex": True, "allowed_phrases": ["1) said", "not said", "(said"]}
    path = write(tmp_path / "grounding.json", case(forbidden_claims=["x"]), evaluation_config=settings)
    (row,), _, [warning] = converted(tmp_path, path)
    assert row["allowed_phrases"] == [{"regex": "not said"}]
    assert warning == (
        "grounding.json:11: 2 allowed phrases ('1) said', '(said') left out: "
        "not a regex that can match, and in fitz-gov such a phrase never allows anything"
    )


def test_everything_wrong_in_all_files_is_reported_at_once(tmp_path: Path) -> None:
    regexes = {"use_regex": True, "allowed_phrases": ["(?<!not )said"]}
    (tmp_path / "empty").mkdir()
    (tmp_path / "cut.json").write_text('{"cases": [')
    _, problems, _ = converted(
        tmp_path,
        write(tmp_path / "abstention.json", case(id=None), case(expected_mode="refuse"), case(contexts="text")),
        write(tmp_path / "cases.json", case(), case(id="b", category="dispute", domain="d" * bounds.TAG)),
        write(tmp_path / "dispute.json"),
        write(
            tmp_path / "grounding.json",
            case(id="c", forbidden_claims=["fine", "(", "(?=a)"], evaluation_config=regexes),
            case(id="b"),
        ),
        tmp_path / "cut.json",
        tmp_path / "empty",
        tmp_path / "gone.json",
    )
    known = "abstention, dispute, trustworthy_hedged, trustworthy_direct, grounding, relevance"
    in_folder = "expected tier0_sanity/, tier1_core/ or files such as grounding.json"
    long = f'becomes a tag of more than 200 characters: "domain:{"d" * 52}…"; shorten it'
    found = [problem.partition(" (")[0].removesuffix(" RE2 pattern") for problem in problems]
    assert found == [
        f"empty: has no cases of fitz-gov in it; {in_folder}",
        "gone.json: no such file",
        "abstention.json:3: cases[0].id: is missing",
        'abstention.json:16: cases[1].expected_mode: expected "abstain" or "disputed" or "trustworthy", found "refuse"',
        'abstention.json:21: cases[2].contexts: expected a list, found "text"',
        f"cases.json:3: cases[0].category: is missing; expected {known}",
        f"cases.json:11: cases[1].domain: {long}",
        "dispute.json: has no cases in it",
        "grounding.json:3: cases[0].forbidden_claims[1]: is not an",
        "grounding.json:3: cases[0].forbidden_claims[2]: is not an",
        "grounding.json:3: cases[0].evaluation_config.allowed_phrases[0]: is not an",
        "grounding.json:22: cases[1].id: duplicate 'b', first defined at cases.json:11",
        "cut.json:1: is cut off in the middle; was the export stopped before it had finished?",
    ]


def test_json_that_no_reader_can_take_is_refused(tmp_path: Path) -> None:
    nested = write(tmp_path / "dispute.json", case(metadata=[[[1]]]))
    nested.write_text(nested.read_text().replace("1", "[" * bounds.NESTING + "]" * bounds.NESTING))
    assert converted(tmp_path, nested).problems == ["dispute.json:1: is nested too deeply: more than 100 levels"]


def test_of_a_large_file_only_the_first_fault_is_described(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "dispute.json", case(query=1), case(query=2))
    assert len(converted(tmp_path, path).problems) == 2
    monkeypatch.setattr(bounds, "EXPLAINED", 10)
    (problem,) = converted(tmp_path, path).problems
    assert problem.startswith("dispute.json:1: is not what was expected: Expected `str`, got `int`")


def test_nothing_that_names_no_documents_becomes_a_format_of_documents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "dispute.json", case())
    before = files_in(tmp_path)
    code, _, err = rag_contract("convert", "--from", "fitz-gov", "--to", "trec", "--cases", ".", "--qrels-out", "q")
    assert code == 2
    assert "fitz-gov names no documents, which trec consists of; it only has a --golden-out" in err
    code, _, err = rag_contract("convert", "--from", "ragas", "--samples", "s", "--golden-out", "g", "--as-evaluated")
    assert (code, "--as-evaluated is for --from fitz-gov" in err) == (2, True)
    assert files_in(tmp_path) == before


def test_the_command_reads_a_folder_and_says_what_it_converted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "data" / "tier0_sanity" / "dispute.json", case(), case(id="b"))
    ended = rag_contract("convert", "--from", "fitz-gov", "--cases", "data", "--golden-out", "golden.jsonl")
    assert ended == (0, "converted 2 queries\n", "")
    assert [json.loads(line)["id"] for line in Path("golden.jsonl").read_text().splitlines()] == ["t0_price", "b"]
    ended = rag_contract(
        "convert", "--from", "fitz-gov", "--cases", "data", "--golden-out", "own.jsonl", "--no-as-evaluated"
    )
    assert (ended.code, "as_evaluated" in Path("own.jsonl").read_text()) == (0, False)


OTHERS = (
    "tier1_core/Abstention.json",
    "tier1_core/abstension.json",
    "tier1_core/abstention.jsonl",
    "tier1_core/grounding_v2.json",
    "tier1_core/relevance/more.JSON",
    "tier2_hard/grounding.json",
)


@pytest.mark.parametrize("other", OTHERS)
def test_a_file_in_a_folder_of_cases_that_is_not_read_is_named(
    other: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(Path("data/tier1_core/grounding.json"), case(forbidden_claims=["14 days"]))
    write(Path("data/tier1_core/relevance/prices.json"), case(id="price", required_elements=["14"]))
    Path("data/README.md").write_text("Cases.")
    command = ("convert", "--from", "fitz-gov", "--cases", "data", "--golden-out", "golden.jsonl", "--force")
    ended = rag_contract(*command)
    assert (ended.code, "not read" in ended.err) == (0, False), ended
    write(Path("data") / other, case(id="other"))
    ended = rag_contract(*command)
    named = other if other.startswith("tier1") else "tier2_hard"
    assert (ended.code, f"data: not read: 1 entry ('{named}'); expected tier0_sanity/" in ended.err) == (0, True), ended


def test_of_many_files_that_are_not_read_the_first_are_named(tmp_path: Path) -> None:
    write(tmp_path / "grounding.json", case(forbidden_claims=["14 days"]))
    for number in range(100):
        write(tmp_path / f"grounding_{number}.json", case())
    (warning,) = converted(tmp_path).warnings
    assert "100 entries (" in warning
    assert warning.count("grounding_") == bounds.NAMES
