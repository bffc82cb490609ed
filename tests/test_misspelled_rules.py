"""A misspelled rule of a golden row is refused by every command that reads the file: it would be off, unnoticed."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ragcontract import InputError, load_golden
from tests.builders import golden, run, write_jsonl
from tests.process import rag_contract

OWN = "(a field of your own must be in allow_fields of the configuration)"


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_jsonl(Path("current_run.jsonl"), [run("q1", "doc1", response="Yes.")])


def with_field(name: str, value: object = None) -> Path:
    """Write a golden file whose first row has one more field."""
    return write_jsonl(Path("golden.jsonl"), [golden("q1", **{name: value})])


COMMANDS = {
    "check": ["check"],
    "lint": ["lint"],
    "the hook that reviews": ["lint", "--without-run", "--strict"],
    "validate": ["validate"],
    "the hook that validates": ["validate", "--without-run", "--quiet"],
    "baseline": ["baseline"],
    "score": ["score"],
    "diff": ["diff", "--baseline", "current_run.jsonl"],
    "suggest": ["suggest"],
    "compare": ["compare", "current_run.jsonl", "other.jsonl"],
    "unjudged": ["unjudged"],
    "waive": ["waive", "q1", "--until", "2099-12-31", "--reason", "r", "--owner", "o"],
    "label": ["label"],
    "claims": ["claims", "--judge-url", "http://localhost:1", "--model", "m"],
    "judge": ["judge", "--judge-url", "http://localhost:1", "--model", "m"],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_misspelled_rule_is_refused_by_each_command(command: str) -> None:
    with_field("must_include_ny", value=True)
    write_jsonl(Path("other.jsonl"), [run("q1", "doc1")])
    ended = rag_contract(*COMMANDS[command])
    assert ended.code == 2
    assert f"must_include_ny: unknown field; did you mean 'must_include_any'? {OWN}" in ended.err
    assert not Path("baseline.json").exists()


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("rule", "rules"),
        ("turn", "turns"),
        ("criterion", "criteria"),
        ("forbidden_doc_id", "forbidden_doc_ids"),
        ("forbidden_docs", "forbidden_doc_ids"),
        ("forbiden_doc_idz", "forbidden_doc_ids"),
        ("must_rank_at_mots", "must_rank_at_most"),
        ("mustIncludeAny", "must_include_any"),
        ("must-include-any", "must_include_any"),
        ("Relevant Doc Ids", "relevant_doc_ids"),
        ("forbidden_doc_ids ", "forbidden_doc_ids"),
        ("_forbidden_doc_ids", "forbidden_doc_ids"),
        ("ｆorbidden_doc_ids", "forbidden_doc_ids"),
        ("forb\u200bidden_\u200bdoc_\u200bids", "forbidden_doc_ids"),
        ("expected_modes", "expected_mode"),
        ("forbidden_claim", "forbidden_claims"),
    ],
)
def test_a_name_is_compared_without_case_separators_and_what_nobody_sees(name: str, meant: str) -> None:
    with_field(name)
    ended = rag_contract("check")
    assert (ended.code, f"unknown field; did you mean {meant!r}?" in ended.err) == (2, True)


@pytest.mark.parametrize("name", ["must_refuse", "Must-Refuse", "must_refsue"])
def test_a_rule_that_is_a_field_is_refused_with_where_it_belongs(name: str) -> None:
    with_field(name, value=True)
    ended = rag_contract("check")
    assert ended.code == 2
    assert f'{name}: unknown field; write {{"type": "must_refuse", …}} into rules' in ended.err


@pytest.mark.parametrize(
    "name", ["task", "page", "user", "kind", "side", "answer", "checked", "customer", "reference_id"]
)
def test_a_field_of_ones_own_is_no_problem(name: str) -> None:
    with_field(name, "x")
    assert rag_contract("check").code == 0
    assert rag_contract("validate").code == 0


@pytest.mark.parametrize("name", ["reference_id", "reference_en", "Criteria v2"])
def test_a_known_name_with_a_further_part_is_a_warning(name: str) -> None:
    with_field(name, "x")
    ended = rag_contract("check")
    assert (ended.code, f"unknown field {name!r} is not read; did you mean" in ended.err) == (0, True)


def test_other_misspelled_fields_stay_warnings_which_a_strict_review_counts() -> None:
    with_field("weigth", 2)
    warning = "warning: golden.jsonl:1: unknown field 'weigth' is not read; did you mean 'weight'?\n"
    checked = rag_contract("check")
    assert (checked.code, warning in checked.err) == (0, True)
    assert rag_contract("lint") == (0, "1 warning\n", warning)
    assert rag_contract("lint", "--strict") == (1, "1 warning\n", warning)


MEANT = "did you mean 'weight'?"
OTHERWISE = "put a field of your own into metadata, or name it in allow_fields of the configuration"


@pytest.mark.parametrize("name", ["must_be_polite", "required_thing", "forbidden_thing", "zzz", "", "\U0001f600"])
def test_every_unknown_field_is_a_warning_which_a_strict_review_counts(name: str) -> None:
    with_field(name, value=True)
    warning = f"warning: golden.jsonl:1: unknown field {name!r} is not read; {OTHERWISE}\n"
    checked = rag_contract("check")
    assert (checked.code, warning in checked.err) == (0, True)
    assert rag_contract("lint", "--strict") == (1, "1 warning\n", warning)
    Path("ragcontract.yml").write_text("allow_fields: [must_be_polite, required_thing, forbidden_thing, zzz]\n")
    assert rag_contract("lint", "--strict").code == (name in {"", "\U0001f600"})


def test_an_unknown_field_of_many_rows_is_one_warning_with_their_number() -> None:
    rows = [golden(f"q{n}", owner="a", **({"weigth": 2} if n % 2 else {}), topic=n) for n in range(3_000)]
    write_jsonl(Path("golden.jsonl"), [golden("first"), *rows])
    write_jsonl(Path("current_run.jsonl"), [run(row["id"], "doc1") for row in [golden("first"), *rows]])
    lines = rag_contract("check").err.splitlines()
    assert [line for line in lines if "unknown field" in line] == [
        f"warning: golden.jsonl:2: unknown field 'owner' is not read (and 2,999 more such rows); {OTHERWISE}",
        f"warning: golden.jsonl:2: unknown field 'topic' is not read (and 2,999 more such rows); {OTHERWISE}",
        f"warning: golden.jsonl:3: unknown field 'weigth' is not read (and 1,499 more such rows); {MEANT}",
    ]


def test_an_unknown_field_of_a_turn_is_refused() -> None:
    turns = [{"query": "?", "must_be_polite": True}]
    write_jsonl(Path("golden.jsonl"), [golden("q1", turns=turns)])
    ended = rag_contract("check")
    assert (ended.code, "golden.jsonl:1: turns[0].must_be_polite: unknown key" in ended.err) == (2, True)


def test_an_unknown_column_of_parquet_is_a_warning() -> None:
    table: dict[str, list[Any]] = {"id": ["q1"], "query": ["?"], "relevant_doc_ids": [["doc1"]], "zzz": [1]}
    pq.write_table(pa.table(table), "golden.parquet")
    ended = rag_contract("check", "--golden", "golden.parquet")
    assert (ended.code, f"golden.parquet: unknown field 'zzz' is not read; {OTHERWISE}" in ended.err) == (0, True)


def test_unknown_fields_of_a_run_are_the_applications_business() -> None:
    write_jsonl(Path("golden.jsonl"), [golden("q1")])
    write_jsonl(Path("current_run.jsonl"), [run("q1", "doc1", trace_url="x", must_be_polite=True)])
    ended = rag_contract("check")
    assert (ended.code, "unknown field" in ended.err) == (0, False)


def test_a_misspelled_rule_is_refused_after_as_many_unknown_fields_as_are_named() -> None:
    others = {f"x{number}": 1 for number in range(100)}
    write_jsonl(Path("golden.jsonl"), [golden("q1", **others), golden("q2", turn=1)])
    ended = rag_contract("validate", "--without-run")
    assert (ended.code, f"golden.jsonl:2: turn: unknown field; did you mean 'turns'? {OWN}" in ended.err) == (2, True)


@pytest.mark.parametrize("wrong", [{"weight": -1}, {"query": ""}, {"must_rank_at_most": "three"}])
def test_a_misspelled_rule_is_reported_beside_an_invalid_value_of_its_row(wrong: dict[str, object]) -> None:
    write_jsonl(Path("golden.jsonl"), [golden("q1") | wrong | {"must_include_ny": True}])
    ended = rag_contract("check")
    (field,) = wrong
    assert (ended.code, f"golden.jsonl:1: {field}: " in ended.err) == (2, True)
    assert f"golden.jsonl:1: must_include_ny: unknown field; did you mean 'must_include_any'? {OWN}" in ended.err


def test_an_allowed_field_is_neither_refused_nor_warned_about() -> None:
    write_jsonl(Path("golden.jsonl"), [golden("q1", roles=["admin"], weigth=2)])
    Path("ragcontract.yml").write_text("allow_fields: [roles]\n")
    ended = rag_contract("lint", "--strict")
    assert (ended.code, "roles" in ended.err, "weigth" in ended.err) == (1, False, True)
    Path("ragcontract.yml").write_text("allow_fields: [roles, weigth]\n")
    for command in COMMANDS["check"], COMMANDS["lint"], COMMANDS["validate"], COMMANDS["waive"], COMMANDS["baseline"]:
        ended = rag_contract(*command)
        assert (ended.code, ended.err) == (0, "")


def test_fields_that_are_allowed_since_the_baseline_are_a_change_of_the_contract() -> None:
    write_jsonl(Path("golden.jsonl"), [golden("q1")])
    assert rag_contract("baseline").code == 0
    Path("ragcontract.yml").write_text("allow_fields: [roles]\n")
    assert rag_contract("check").code == 0
    (change,) = json.loads(Path("report.json").read_text())["inputs"]["baseline"]["contract_changes"]
    (item,) = change["items"]
    assert (item["id"], item["before"][:3], item["after"][:3]) == ("allow_fields", "0 (", "1 (")


def test_only_the_fields_that_are_named_are_allowed() -> None:
    write_jsonl(Path("golden.jsonl"), [golden("q1", roles=[]), golden("q2", turn=1)])
    Path("ragcontract.yml").write_text("allow_fields: [roles]\n")
    ended = rag_contract("validate", "--without-run")
    assert (ended.code, ended.err) == (
        2,
        f"error: golden.jsonl:2: turn: unknown field; did you mean 'turns'? {OWN}\n",
    )


@pytest.mark.parametrize(
    ("value", "expected"), [("roles", "a list"), ("[3]", "text"), ('[""]', "text that is not empty")]
)
def test_the_allowed_fields_are_a_list_of_names(value: str, expected: str) -> None:
    with_field("page")
    Path("ragcontract.yml").write_text(f"allow_fields: {value}\n")
    ended = rag_contract("validate", "--without-run")
    assert (ended.code, "ragcontract.yml:1: allow_fields" in ended.err) == (2, True)
    assert expected in ended.err


def test_all_misspelled_rules_of_a_file_are_reported_at_once() -> None:
    rows = [golden("q1", rulez=[]), golden("q2", turn=1), golden("q3", rulez=[])]
    write_jsonl(Path("golden.jsonl"), rows)
    ended = rag_contract("validate", "--without-run")
    assert [line.split(": ")[1:3] for line in ended.err.splitlines()] == [
        ["golden.jsonl:1", "rulez"],
        ["golden.jsonl:2", "turn"],
    ]


def test_a_misspelled_column_of_parquet_is_refused() -> None:
    table: dict[str, list[Any]] = {"id": ["q1"], "query": ["?"], "relevant_doc_ids": [["doc1"]], "turn": [1]}
    pq.write_table(pa.table(table), "golden.parquet")
    ended = rag_contract("check", "--golden", "golden.parquet")
    assert (ended.code, f"golden.parquet: turn: unknown field; did you mean 'turns'? {OWN}" in ended.err) == (2, True)


def test_a_conversion_which_decides_nothing_warns_only() -> None:
    with_field("must_include_ny", value=True)
    ended = rag_contract("convert", "--to", "trec", "--golden", "golden.jsonl", "--qrels-out", "qrels.txt")
    assert (ended.code, "unknown field 'must_include_ny' is not read" in ended.err) == (0, True)


def test_python_refuses_it_too_and_can_be_told_which_fields_are_allowed() -> None:
    path = with_field("roles", [])
    with pytest.raises(InputError, match=r"golden\.jsonl:1: roles: unknown field; did you mean 'rules'"):
        load_golden(path)
    assert list(load_golden(path, allow_fields=["roles"])) == ["q1"]


def test_a_long_or_hostile_name_is_cut_and_escaped() -> None:
    Path("golden.jsonl").write_text(json.dumps(golden("q1", **{"turn\x1b[31m" + "\u202e" * 5_000: 1})) + "\n")
    ended = rag_contract("validate", "--without-run")
    assert (ended.code, "\x1b" in ended.err, "\u202e" in ended.err) == (0, False, False)
    Path("golden.jsonl").write_text(json.dumps(golden("q1", **{"turn\u202e" + "\u200b" * 5_000: 1})) + "\n")
    ended = rag_contract("validate", "--without-run")
    assert (ended.code, "turn\\u202e" in ended.err, len(ended.err) < 500) == (2, True, True)
