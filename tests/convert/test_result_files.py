"""JSON documents of evaluation tools: what is wrong with them, and where."""

from pathlib import Path

import pytest

from ragcontract.convert.collection import Source
from ragcontract.convert.deepeval import SavedCase, SavedRun
from ragcontract.convert.input_files import Document, documents
from ragcontract.files.problems import Collector
from tests.convert.builders import lines_of, packed


def read(path: Path, problems: Collector) -> list[Document]:
    source = Source(files={"results": [str(path)]}, wanted={"scores"}, problems=problems)
    found = documents(source, SavedRun, zipped="give the JSON")
    return [file for file, _ in found]


def test_nan_is_null_but_for_nan_in_texts(tmp_path: Path) -> None:
    path = tmp_path / "results"
    path.write_text(r'{"testCases": [], "x": NaN, "y": "NaN \" NaN", "z": ["NaN", NaN]}')
    packed(path)
    (file,) = read(path, Collector())
    assert file.data.decode() == r'{"testCases": [], "x": null, "y": "NaN \" NaN", "z": ["NaN", null]}'


def test_each_item_has_its_line_and_faulty_ones_do_not_hide_others(tmp_path: Path) -> None:
    text = '{"a": {"name": 1},\n"testCases": [\n{"name": "a"},\n{"name":\n1}, {"name": "b"}\n, {"name": 1}]}'
    file, problems = Document("results", text.encode()), Collector()
    run = file.value(SavedRun, problems)
    assert run is not None
    found = file.items(run.testCases, SavedCase, problems, after=b"testCases")
    assert [(location, case.name) for location, case in found] == [("results:3", "a"), ("results:5", "b")]
    assert lines_of(problems.collected(), tmp_path) == [
        'results:5: name: expected text, found 1; write "1"',
        'results:6: name: expected text, found 1; write "1"',
    ]


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "results: is empty; expected one JSON document"),
        (b"PK\x03\x04 ...", "results: is a ZIP archive; give the JSON"),
        (b'{"testCases":\n[', "results:2: is cut off in the middle; was the export stopped before it had finished?"),
        (b'{"testCases": ' + b"[" * 101, "results:1: is nested too deeply: more than 100 levels"),
        (b'{"testCases": []}\n{"testCases": []}', "results:2: goes on after the end of its JSON object: "),
        (b'{"testCases": [], "x": Infinity}', "results:1: is not JSON: invalid character at column 24"),
        (b"[]", "results:1: expected an object, found []"),
    ],
)
def test_what_is_no_document_is_reported(data: bytes, problem: str, tmp_path: Path) -> None:
    (tmp_path / "results").write_bytes(data)
    problems = Collector()
    assert read(tmp_path / "results", problems) == []
    (reported,) = lines_of(problems.collected(), tmp_path)
    assert reported.startswith(problem)


def test_faulty_items_by_the_thousand_are_counted() -> None:
    text = b'{"testCases": [' + b",".join(b"%d" % number for number in range(3_000)) + b"]}"
    file, problems = Document("results", text), Collector()
    run = file.value(SavedRun, problems)
    assert run is not None
    assert list(file.items(run.testCases, SavedCase, problems, after=b"testCases")) == []
    found = problems.collected()
    assert (len(found.problems) <= 50, len(found.problems) + found.more >= 1) == (True, True)
