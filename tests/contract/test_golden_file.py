from pathlib import Path
from typing import Any

import pytest

from ragcontract.contract.golden_file import OF_ANSWERS, OWN_FIELD, Golden, read_golden
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.phrase import Location
from ragcontract.registry import BUILT_IN
from tests.builders import golden, run, write_jsonl
from tests.process import rag_contract


def read_all(folder: Path, *rows: dict[str, Any]) -> Golden:
    return read_golden([str(write_jsonl(folder / "golden.jsonl", rows))], BUILT_IN)


def read(folder: Path, *rows: dict[str, Any]) -> tuple[dict[str, GoldenQuery], list[str]]:
    """Return the queries of a good golden file, and the warnings."""
    found = read_all(folder, *rows)
    found.problems.raise_if_any()
    return found.queries, [warning.replace(f"{folder}/", "") for warning in found.problems.warnings]


def test_defaults_are_filled_in(tmp_path: Path) -> None:
    queries, warnings = read(tmp_path, {"id": "q", "query": "?", "relevant_doc_ids": ["a"]})
    assert queries["q"] == GoldenQuery(
        id="q",
        query="?",
        relevant_doc_ids=("a",),
        location=Location(f"{tmp_path}/golden.jsonl", 1),
        must_rank_at_most=None,
        must_include_any=None,
        forbidden_doc_ids=(),
        weight=1.0,
        tags=(),
        relevance=None,
        severity="error",
        rules=(),
    )
    assert warnings == []


@pytest.mark.parametrize("unseen", ["\u200b", " ", "\u3164", "\u2800", "\u00ad\u2028"])
def test_names_of_which_nobody_sees_anything_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unseen: str
) -> None:
    fields = {"tags": ["a", unseen], "forbidden_doc_ids": ["secret", unseen], "tier": unseen}
    monkeypatch.chdir(tmp_path)
    write_jsonl(Path("golden.jsonl"), [golden("q", "a") | fields])
    write_jsonl(Path("current_run.jsonl"), [run("q", "a", response="Yes.")])
    ended = rag_contract("check")
    problem = f"{unseen!a} has nothing but blanks and invisible characters; write a name, or leave it out"
    expected = {f"error: golden.jsonl:1: {field}: {problem}" for field in fields}
    assert (ended.code, {*ended.err.splitlines()}) == (2, expected)


@pytest.mark.parametrize("name", ["\u00e9", "_", "#1", "\U0001f600", " a", "\u200ba", "цена"])
def test_names_that_begin_with_anything_else_are_names(tmp_path: Path, name: str) -> None:
    fields: dict[str, Any] = {"tags": [name], "forbidden_doc_ids": [name], "tier": name}
    query = read(tmp_path, golden("q", "a", answer_must_include=["x"], **fields))[0]["q"]
    assert (query.tags, query.forbidden_doc_ids) == ((name,), (name,))


def test_null_is_as_absent(tmp_path: Path) -> None:
    optional = ("must_rank_at_most", "must_include_any", "forbidden_doc_ids", "weight", "tags", "metadata", "relevance")
    with_null, _ = read(tmp_path, golden("q", "a", **dict.fromkeys(optional)))
    without, _ = read(tmp_path, golden("q", "a"))
    assert with_null == without


def test_every_field_is_read(tmp_path: Path) -> None:
    row = golden(
        "q",
        "a",
        "b",
        must_rank_at_most=3,
        must_include_any=True,
        forbidden_doc_ids=["x"],
        weight=2,
        tags=["t", "u", "t"],
    )
    query = read(tmp_path, row)[0]["q"]
    assert (query.relevant_doc_ids, query.must_rank_at_most, query.must_include_any) == (("a", "b"), 3, True)
    assert (query.forbidden_doc_ids, query.weight, query.tags) == (("x",), 2.0, ("t", "u"))


def test_metadata_may_be_anything_and_is_not_looked_at(tmp_path: Path) -> None:
    queries, warnings = read(tmp_path, golden("q", metadata={"any": ["thing"], "weigth": 2}))
    assert (queries, warnings) == read(tmp_path, golden("q"))


def test_whole_numbers_are_ids_and_the_same_as_their_digits(tmp_path: Path) -> None:
    row = {"id": 7, "query": "?", "relevant_doc_ids": [1, "1", 2, 10**30], "forbidden_doc_ids": [3]}
    query = read(tmp_path, row)[0]["7"]
    assert query.relevant_doc_ids == ("1", "2", str(10**30))
    assert query.forbidden_doc_ids == ("3",)


def test_grades_of_1_and_more_make_the_relevant_documents(tmp_path: Path) -> None:
    graded = {"id": "q", "query": "?", "relevance": {"a": 3, "b": 0.5, "c": 1, "d": 0}}
    for row in (graded, graded | {"relevant_doc_ids": ["c", "a"]}):
        query = read(tmp_path, row)[0]["q"]
        assert set(query.relevant_doc_ids) == {"a", "c"}
        assert query.relevance == {"a": 3, "b": 0.5, "c": 1, "d": 0}


def test_a_query_that_nothing_answers_is_one_all_the_same(tmp_path: Path) -> None:
    queries, _ = read(tmp_path, golden("q") | {"relevant_doc_ids": []}, golden("p"))
    assert [(query.id, query.answerable) for query in queries.values()] == [("q", False), ("p", True)]


def test_the_order_is_the_files(tmp_path: Path) -> None:
    queries, _ = read(tmp_path, golden("b"), golden("a"), golden("c"))
    assert list(queries) == ["b", "a", "c"]


def test_problems_are_collected_with_the_rows_that_are_good(tmp_path: Path) -> None:
    first, again, never = golden("q"), golden("q"), golden("p", must_rank_at_most=1) | {"relevant_doc_ids": []}
    found = read_all(tmp_path, first, again, {"id": "r", "query": "?"}, never, golden("s"))
    assert [problem.replace(f"{tmp_path}/", "") for problem in found.problems.problems] == [
        "golden.jsonl:2: id: duplicate id 'q', first defined at golden.jsonl:1",
        "golden.jsonl:3: relevant_doc_ids: is missing; give the documents to be found, [] if nothing answers it, or "
        + OF_ANSWERS,
        "golden.jsonl:4: must_rank_at_most: needs at least one relevant document to rank",
    ]
    assert list(found.queries) == ["q", "p", "s"]
    assert [Path(file.path).name for file in found.files] == ["golden.jsonl"]


@pytest.mark.parametrize(("rows", "line"), [([{}, {"a": 1}, {"b": 2}], 2), ([{}, {}, {}], None)])
def test_the_first_row_with_metadata_is_known(rows: list[dict[str, int]], line: int | None, tmp_path: Path) -> None:
    found = read_all(tmp_path, *(golden(f"q{n}", metadata=metadata) for n, metadata in enumerate(rows)))
    assert found.metadata == (line and Location(f"{tmp_path}/golden.jsonl", line))


@pytest.mark.parametrize("rules", [{}, {"rules": [{"type": "must_cite"}]}], ids=["alone", "beside rules"])
def test_a_rule_that_is_written_as_a_field_is_reported_with_where_it_belongs(
    rules: dict[str, Any], tmp_path: Path
) -> None:
    path = write_jsonl(tmp_path / "golden.jsonl", [golden("q", "a", **rules, must_refuse=True)])
    said = f'must_refuse: unknown field; write {{"type": "must_refuse", …}} into rules ({OWN_FIELD})'
    assert read_golden([str(path)], BUILT_IN).problems.problems == (f"{path}:1: {said}",)
