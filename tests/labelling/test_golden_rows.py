"""Labels get into a golden file, and nothing else in it changes."""

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragcontract.core.errors import InputError, OutputError
from ragcontract.labelling.labels import GoldenRows, Labels, read_golden_rows, relabelled
from tests.builders import golden, write_jsonl

# As people leave files: a byte order mark, CRLF, blank lines, strange spacing, unknown fields, no line feed at the end.
UNTIDY = (
    '\ufeff{"id":"q1","query":"Über?","relevant_doc_ids":["TODO"],"note":{"b": 1.50,"a":[1e2]},"weight":2.0}\r\n'
    "\n"
    '{ "id": 2,  "query": "Two?", "relevance": {"a": 2.5},   "x": "\\u00fc" }\n'
    '{"query": "Three?", "id": "q3", "relevant_doc_ids": ["c"], "tags": ["t"]}'
).encode()


def rows_of(folder: Path, data: bytes = UNTIDY) -> GoldenRows:
    path = folder / "golden.jsonl"
    path.write_bytes(data)
    rows, problems = read_golden_rows(str(path))
    assert not problems
    return rows


def test_rows_that_are_not_labelled_stay_byte_for_byte(tmp_path: Path) -> None:
    after = rows_of(tmp_path).with_labels({"2": Labels(grades={"a": 2.5, "b": 0})}, {})
    assert after.split(b"\n")[2] == b'{"id": 2, "query": "Two?", "relevance": {"a": 2.5, "b": 0}, "x": "\\u00fc"}'
    assert [line for n, line in enumerate(after.split(b"\n")) if n != 2] == [
        line for n, line in enumerate(UNTIDY.split(b"\n")) if n != 2
    ]


def test_the_other_fields_of_a_labelled_row_stay_byte_for_byte_and_in_order(tmp_path: Path) -> None:
    after = rows_of(tmp_path).with_labels({"q1": Labels(grades={"ü": 1})}, {})
    first = '\ufeff{"id":"q1","query":"Über?","relevance":{"ü":1},"note":{"b": 1.50,"a":[1e2]},"weight":2.0}\r'
    assert after.split(b"\n")[0].decode() == first


def test_a_row_with_both_fields_has_one_afterwards() -> None:
    line = b'{"relevance": {"a": 1}, "id": 1, "relevant_doc_ids": ["a"], "query": "?"}'
    after = json.loads(relabelled(line, Labels(grades={"a": 1, "b": 1})))
    assert after == {"relevance": {"a": 1, "b": 1}, "id": 1, "query": "?"}


def test_new_questions_are_added_at_the_end(tmp_path: Path) -> None:
    rows = rows_of(tmp_path)
    after = rows.with_labels({"new": Labels(grades={"d": 1})}, {"new": "Neu – „?“"})
    assert after == UNTIDY + '\n{"id": "new", "query": "Neu – „?“", "relevance": {"d": 1}}\n'.encode()
    ended = GoldenRows("golden.jsonl", b"{}\n", {}).with_labels({"new": Labels(grades={"d": 1})}, {"new": "?"})
    assert ended == b'{}\n{"id": "new", "query": "?", "relevance": {"d": 1}}\n'


def test_labels_as_they_were_leave_the_row_as_it_was(tmp_path: Path) -> None:
    assert rows_of(tmp_path).with_labels({"q3": Labels(grades={"c": 1}), "q1": Labels()}, {}) == UNTIDY


def test_a_question_without_a_relevant_document_never_becomes_one_that_nothing_answers(tmp_path: Path) -> None:
    rows = rows_of(tmp_path)
    rows.save({"q1": Labels(grades={"a": 0})}, {})
    query = read_golden_rows(rows.path)[0].queries["q1"]
    assert query.relevant_doc_ids == ("TODO",)
    rows.save({"q1": Labels(grades={"a": 0}, unanswerable=True)}, {})
    assert not read_golden_rows(rows.path)[0].queries["q1"].answerable


def test_a_file_that_somebody_edits_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    rows = rows_of(tmp_path)
    rows.save({"q1": Labels(grades={"a": 1})}, {})
    rows.save({"q1": Labels(grades={"a": 1, "b": 0})}, {})
    Path(rows.path).write_bytes(b"edited")
    with pytest.raises(OutputError, match="was changed by another program since it was read"):
        rows.save({"q1": Labels(grades={"a": 1})}, {})
    assert Path(rows.path).read_bytes() == b"edited"


def test_nothing_is_written_where_nothing_changes(tmp_path: Path) -> None:
    path = tmp_path / "none.jsonl"
    rows, _ = read_golden_rows(str(path), must_exist=False)
    rows.save({}, {})
    assert not path.exists()
    rows.save({"q": Labels(grades={"a": 1})}, {"q": "Q?"})
    assert json.loads(path.read_text()) == {"id": "q", "query": "Q?", "relevance": {"a": 1}}


def test_what_cannot_be_edited_is_refused(tmp_path: Path) -> None:
    packed, table, folder = tmp_path / "g.jsonl", tmp_path / "g.parquet", tmp_path / "folder"
    packed.write_bytes(gzip.compress(b"{}"))
    table.write_bytes(b"PAR1")
    folder.mkdir()
    for path, message in {
        packed: "is gzip, which cannot be edited; unpack it first",
        table: "is Parquet, which cannot be edited",
        folder: "is a folder",
        tmp_path / "gone": "no such file",
        Path("/dev/null"): "is not a regular file",
    }.items():
        with pytest.raises(InputError, match=message):
            read_golden_rows(str(path))


def test_the_problems_of_the_golden_file_are_returned_with_their_lines(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "g.jsonl", [golden("q1"), golden("q1"), {"id": 1, "query": "?"}])
    _, problems = read_golden_rows(str(path))
    assert [problem.partition("g.jsonl:")[2][:1] for problem in problems.problems] == ["2", "3"]


IDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6)


@given(IDS, st.dictionaries(IDS.filter(lambda name: name != "TODO"), st.sampled_from([0, 1, 2]), max_size=4))
def test_any_id_and_any_label_are_read_as_they_were_written(query_id: str, grades: dict[str, float]) -> None:
    line = json.dumps({"id": query_id, "query": "?", "relevant_doc_ids": []}).encode()
    row = json.loads(relabelled(line, Labels(grades=grades, unanswerable=not any(grades.values()))))
    assert row == {"id": query_id, "query": "?", "relevance": grades}
