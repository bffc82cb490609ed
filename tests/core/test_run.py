"""The record of a run row: wide where it is written, narrow where it is read."""

from typing import Any

import msgspec
import pytest

from ragcontract.core.run import ALWAYS, RESULT_ALWAYS, Result, RunRow, row_type

ROW = {
    "query_id": 7,
    "results": [{"doc_id": "a", "score": 1, "text": "of the document"}],
    "latency_ms": 3,
    "index_version": "i",
    "response": "an answer",
    "error": "none",
}


def read(*needs: str) -> RunRow:
    return msgspec.convert(ROW, row_type(frozenset(needs)))


def test_a_row_has_what_every_check_reads() -> None:
    row = read()
    assert (row.query_id, row.doc_ids, row.results[0].score, row.latency_ms) == (7, ["a"], 1.0, 3.0)
    assert (row.index_version, row.embedding_model, row.results[0].chunk_id) == ("i", None, None)
    assert set(row.__struct_fields__) == ALWAYS
    assert set(row.results[0].__struct_fields__) == RESULT_ALWAYS


@pytest.mark.parametrize("name", sorted(set(RunRow.__struct_fields__) - ALWAYS))
def test_a_field_is_there_where_it_was_asked_for_and_an_error_where_it_was_not(name: str) -> None:
    with pytest.raises(AttributeError):
        getattr(read(), name)
    assert getattr(read(name), name) == ROW.get(name)


def test_a_field_of_the_results_is_asked_for_by_its_path() -> None:
    with pytest.raises(AttributeError):
        _ = read("response").results[0].text
    row = read("results.text")
    assert row.results[0].text == "of the document"
    with pytest.raises(AttributeError):
        _ = row.response


def test_a_row_of_the_same_needs_is_the_same_record() -> None:
    assert row_type(frozenset({"response"})) is row_type(frozenset({"response"}))
    assert row_type() is not row_type(frozenset({"response"}))


@pytest.mark.parametrize(
    ("field", "value"), [("query_id", ""), ("latency_ms", -1), ("results", [{"doc_id": 1.5}]), ("response", 5)]
)
def test_a_narrow_row_is_as_strict_as_the_wide_one(field: str, value: Any) -> None:
    messages = set()
    for record in (RunRow, row_type(frozenset({"response"}))):
        with pytest.raises(msgspec.ValidationError) as refused:
            msgspec.convert(ROW | {field: value}, record)
        messages.add(str(refused.value))
    assert len(messages) == 1


def test_what_is_not_needed_is_not_even_held_to_its_type() -> None:
    assert msgspec.convert(ROW | {"response": 5}, row_type()).doc_ids == ["a"]


def test_the_narrow_result_is_described_as_the_wide_one() -> None:
    narrow, wide = (msgspec.json.schema(record)["$defs"]["Result"]["properties"] for record in (row_type(), RunRow))
    assert narrow == {name: about for name, about in wide.items() if name in RESULT_ALWAYS}
    assert set(wide) == set(Result.__struct_fields__)
