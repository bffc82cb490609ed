"""A forbidden document that a run returns in another form is asked for, in every command; siblings are left alone."""

import json
from pathlib import Path

import pytest

from tests.builders import Row, golden, run, write_jsonl
from tests.process import rag_contract

FORMS = [
    "secret.md",
    "Secret",
    "./secret",
    "docs/secret",
    "docs\\secret.pdf",
    "/srv/docs/./Secret.markdown#3",
    "secret#1",
    "secret_chunk_0",
    "secret_0",
    "secret::chunk-12",
    "secret/page_3",
    "secret?page=2",
    "docs/secret.md?raw=a/b",
    "secret#x",
    "secret%20",
    "docs%2FSecret.md",
    "secret(1)",
    "secret (2).md",
    "secret.md_chunk_2",
    "secret.en.md",
    " secret",
    "secret\n",
    "sec\u200bret",
    "secret\ufe0f",
    "\uff53ecret",
]
SHOWN = {
    "docs\\secret.pdf": r"'docs\\secret.pdf'",
    "secret\n": r"'secret\n'",
    "sec\u200bret": r"'sec\u200bret'",
    "secret\ufe0f": r"'secret\ufe0f'",
}
OTHERS = {
    "siblings": ("policy_1", ["policy_2", "policy_10", "policy_2.md", "policy_3#1"]),
    "a document beside its numbered siblings": ("faq_2", ["faq", "faq_3"]),
    "whole numbers": ("1", ["10", "11", "21"]),
    "other words": ("secret", ["secrets", "topsecret", "secret_santa"]),
    "files of one name in two folders": ("docs/secret", ["kb/secret"]),
    "two queries": ("view?id=1", ["view?id=2", "view?id=12"]),
    "copies": ("secret (1)", ["secret (2)", "secrets"]),
    "a percent sign": ("100%25", ["100", "25"]),
    "two formats": ("secret.md", ["secret.pdf"]),
}


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def files(
    forbidden: str, *retrieved: str, config: str = "k: 5\n", rows: tuple[Row, ...] = (), **fields: object
) -> None:
    """Write a query that wants doc1 and forbids a document, golden rows after it, and what the run returns for each."""
    Path("ragcontract.yml").write_text(config)
    write_jsonl(Path("golden.jsonl"), [golden("q1", "doc1", forbidden_doc_ids=[forbidden], **fields), *rows])
    found = [run(row["id"], *row["relevant_doc_ids"]) for row in rows]
    write_jsonl(Path("current_run.jsonl"), [run("q1", "doc1", *retrieved), *found])


@pytest.mark.parametrize("command", ["check", "lint", "validate", "baseline"])
@pytest.mark.parametrize("form", FORMS)
def test_a_forbidden_document_in_another_form_is_asked_for(command: str, form: str) -> None:
    files("secret", form)
    ended = rag_contract(command)
    assert ended.code == 2
    shown = SHOWN.get(form, f"'{form}'")
    assert (
        f"current_run.jsonl:1: results[1].doc_id: {shown} looks like 'secret', which is forbidden here: is this the "
        "forbidden document? Write its id in the contract as in the run; if they are different documents, "
        f"add {shown} to per_query.different_documents in the config"
    ) in ended.err


@pytest.mark.parametrize(
    ("forbidden", "form"),
    [
        ("docs/secret.md", "secret"),
        ("docs/secret.md", "kb/docs/secret.md"),
        ("secret?page=2", "secret"),
        ("secret%20plan.md", "Secret plan"),
        ("secret (1)", "secret.md"),
        ("docs/secret.md", "secret_chunk_0"),
        ("secret#1", "secret"),
        ("secret_2", "secret"),
        ("007", "7"),
        ("caf\u00e9", "cafe\u0301"),
    ],
)
def test_the_contract_may_have_the_longer_form(forbidden: str, form: str) -> None:
    files(forbidden, form)
    ended = rag_contract("check")
    assert (ended.code, "is this the forbidden document?" in ended.err) == (2, True)


@pytest.mark.parametrize(("forbidden", "retrieved"), OTHERS.values(), ids=OTHERS)
def test_other_documents_are_not_asked_for(forbidden: str, retrieved: list[str]) -> None:
    files(forbidden, *retrieved, config="k: 9\n")
    assert [rag_contract(command).code for command in ("check", "lint", "validate")] == [0, 0, 0]


@pytest.mark.parametrize("named", ["secret.md", "secret"])
def test_the_config_says_that_they_are_different_documents(named: str) -> None:
    files("secret", "secret.md", config=f"per_query: {{different_documents: [{named}]}}\n")
    assert [rag_contract(command).code for command in ("check", "lint", "validate")] == [0, 0, 0]
    files("secret", "secret.md", "secret", config=f"per_query: {{different_documents: [{named}]}}\n")
    assert rag_contract("check").code == 1


def test_the_config_names_numbers_too() -> None:
    files("007", "7", config="per_query: {different_documents: [7]}\n")
    assert rag_contract("check").code == 0


def test_a_document_that_the_same_query_wants_is_another_one() -> None:
    files("doc1_2022")
    assert rag_contract("check").code == 0
    files("doc1.old")
    assert rag_contract("check").code == 0


def test_a_document_that_differs_in_nothing_a_reader_sees_is_the_same_even_if_the_query_wants_it() -> None:
    files("DOC1")
    assert rag_contract("check").code == 2


def test_documents_that_the_golden_file_wants_both_are_different_ones() -> None:
    files("guide", "guide.v2", rows=(golden("q2", "guide.v2"),))
    assert rag_contract("check").code == 2
    files("guide", "guide.v2", rows=(golden("q2", "guide.v2"), golden("q3", "guide", tags=["other"])), tags=["this"])
    assert rag_contract("check").code == 0
    assert rag_contract("check", "--tag", "this", "--tag", "other").code == 0


def test_a_document_with_a_number_that_the_golden_file_wants_is_another_one_under_a_tag_too() -> None:
    files("report", "report-2023", rows=(golden("q2", "report-2023"),), tags=["this"])
    assert rag_contract("check").code == 0
    assert rag_contract("check", "--tag", "this").code == 0


def test_documents_are_compared_as_deep_as_they_are_forbidden() -> None:
    within = "per_query: {{forbidden_within: {}}}\n"
    files("secret", "x", "secret.md", config=within.format(2))
    assert rag_contract("check").code == 0
    files("secret", "x", "secret.md", config=within.format(3))
    assert rag_contract("check").code == 2
    files("secret", "doc1", "secret.md", config=within.format(2) + "rank_by: documents\n")
    assert rag_contract("check").code == 2
    files("secret", "secret.md", config="per_query: {enforce_forbidden_docs: false}\n")
    assert rag_contract("check").code == 0


def test_every_row_is_named_and_rows_that_repeat_are_counted() -> None:
    files("secret", "x")
    rows = [run("q1", "doc1", f"secret#{number}") for number in range(9)]
    write_jsonl(Path("current_run.jsonl"), rows)
    ended = rag_contract("check", "--repeats")
    assert ended.code == 2
    assert "current_run.jsonl:1: results[1].doc_id: 'secret#0' looks like 'secret'" in ended.err
    assert "(and 8 more like this, in lines 1 to 9)" in ended.err


def test_a_document_that_is_there_as_it_is_breaks_the_rule_and_nothing_is_asked() -> None:
    files("secret", "secret", "secret#1")
    ended = rag_contract("check")
    assert (ended.code, "rank 2" in ended.out) == (1, True)


def test_a_baseline_is_not_asked_for_forms_because_nothing_passes_by_them() -> None:
    files("secret", "x", config="per_query: {fail_on: new}\n")
    write_jsonl(Path("good.jsonl"), [run("q1", "doc1", "secret.md")])
    assert rag_contract("check", "--baseline", "good.jsonl").code == 0
    write_jsonl(Path("current_run.jsonl"), [run("q1", "doc1", "secret")])
    assert rag_contract("check", "--baseline", "good.jsonl").code == 1


def test_more_different_documents_are_a_changed_contract() -> None:
    files("secret", "x")
    assert rag_contract("baseline").code == 0
    Path("ragcontract.yml").write_text("per_query: {different_documents: [secret.md]}\n")
    assert rag_contract("check").code == 0
    assert '"per_query.different_documents"' in Path("report.json").read_text()


PATTERNS = [
    "internal/*",
    "*",
    "internal/",
    "internal\\",
    "^internal",
    "s1, s2",
    "s1,s2",
    "s1|s2",
    '["s1","s2"]',
    "s1\ns2",
]
NOWHERE = "occurs nowhere else; ids are compared exactly, and are not patterns or lists"


def forbidding(pattern: str, *returned: str, wanted: str = "a", config: str = "k: 1") -> None:
    write_jsonl(Path("golden.jsonl"), [golden("q1", wanted, forbidden_doc_ids=[pattern])])
    write_jsonl(Path("current_run.jsonl"), [run("q1", wanted, *returned)])
    Path("ragcontract.yml").write_text(config)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_forbidden_id_that_looks_like_a_pattern_is_named(pattern: str) -> None:
    forbidding(pattern, "internal/salaries.md", "s1")
    for command in ("check", "validate", "baseline", "lint", "lint --without-run"):
        ended = rag_contract(*command.split())
        assert (ended.code, ended.err.count(NOWHERE)) == (0, 1), command
        assert f"golden.jsonl:1: forbidden_doc_ids: {pattern!r} " in ended.err
    assert rag_contract("lint", "--strict").code == 1
    assert NOWHERE in Path("report.json").read_text()


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_that_is_the_id_of_a_document_is_not_named(pattern: str) -> None:
    forbidding(pattern, config=f"per_query: {{different_documents: [{json.dumps(pattern)}]}}")
    assert (rag_contract("check").err, rag_contract("lint").err) == ("", "")
    forbidding(pattern, config="per_query: {enforce_forbidden_docs: false}")
    assert (rag_contract("check").err, rag_contract("lint").err) == ("", "")
    forbidding(pattern)
    rows = [golden("q1", "a", forbidden_doc_ids=[pattern]), golden("q2", pattern)]
    write_jsonl(Path("golden.jsonl"), rows)
    write_jsonl(Path("current_run.jsonl"), [run("q1", "a"), run("q2", "b")])
    assert (NOWHERE in rag_contract("check").err, NOWHERE in rag_contract("lint").err) == (False, False)
    write_jsonl(Path("golden.jsonl"), [rows[0], golden("q2", "b")])
    write_jsonl(Path("current_run.jsonl"), [run("q1", "a"), run("q2", "b", pattern)])
    assert (NOWHERE in rag_contract("check").err, NOWHERE in rag_contract("lint").err) == (False, False)
    write_jsonl(Path("base.jsonl"), [run("q1", "a"), run("q2", "b", pattern)])
    write_jsonl(Path("current_run.jsonl"), [run("q1", "a"), run("q2", "b")])
    assert NOWHERE not in rag_contract("check", "--baseline", "base.jsonl").err


@pytest.mark.parametrize("other", ["https://example.com/docs/", "C:\\kb\\"])
def test_ids_that_end_in_a_slash_like_others_are_no_folders(other: str) -> None:
    forbidding("https://example.com/internal/", wanted=other)
    assert (rag_contract("check").err, rag_contract("lint").err) == ("", "")
    forbidding("https://example.com/internal/", other)
    assert (rag_contract("check").err, rag_contract("lint").err) == ("", "")


@pytest.mark.parametrize(
    "doc_id", ["Refunds, returns and more.pdf", "what?", "a+b.md", "view?id=1", "x^2", "[draft", "a b"]
)
def test_ids_of_honest_documents_are_no_patterns(doc_id: str) -> None:
    forbidding(doc_id)
    assert (rag_contract("check").err, rag_contract("lint").err) == ("", "")
