"""JSON documents of evaluation tools, here of deepeval: what is wrong with them, and where."""

from pathlib import Path

import pytest

from tests.convert.builders import converted, packed


def test_nan_is_null_but_for_nan_in_texts(tmp_path: Path) -> None:
    metric = r'{"name": "M", "score": NaN, "reason": "NaN \" NaN"}, {"name": "N", "score": 1, "x": ["NaN", NaN]}'
    path = tmp_path / "results"
    path.write_text(f'{{"testCases": [{{"name": "NaN", "input": "?", "metricsData": [{metric}]}}], "x": NaN}}')
    packed(path)
    (row,), problems, _ = converted("deepeval", "scores", tmp_path, "--results", str(path))
    assert (row["query_id"], row["scores"], problems) == ("NaN", {"m": None, "n": 1.0}, [])
    assert row["reasons"] == {"m": 'NaN " NaN'}


def problems_in(folder: Path, data: bytes) -> list[str]:
    (folder / "results").write_bytes(data)
    return converted("deepeval", "scores", folder, "--results", str(folder / "results")).problems


def test_each_item_has_its_line_and_faulty_ones_do_not_hide_others(tmp_path: Path) -> None:
    fault = '"metricsData": [{"name": "M", "score": "high"}]'
    text = f'{{"a": {{"name": 1}},\n"testCases": [\n{{"name": "a", {fault}}},\n{{"name":\n1}}, {{"name": "b"}}\n'
    assert problems_in(tmp_path, f'{text}, {{"name": 1}}]}}'.encode()) == [
        'results:3: metricsData[0].score: expected a number, found "high" (text)',
        'results:5: name: expected text, found 1; write "1"',
        'results:6: name: expected text, found 1; write "1"',
    ]


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "results: is empty; expected one JSON document"),
        (b"PK\x03\x04 ...", "results: is a ZIP archive; "),
        (b'{"testCases":\n[', "results:2: is cut off in the middle; was the export stopped before it had finished?"),
        (b'{"testCases": ' + b"[" * 101, "results:1: is nested too deeply: more than 100 levels"),
        (b'{"testCases": []}\n{"testCases": []}', "results:2: goes on after the end of its JSON object: "),
        (b'{"testCases": [], "x": Infinity}', "results:1: is not JSON: invalid character at column 24"),
        (b"[]", "results:1: expected an object, found []"),
    ],
)
def test_what_is_no_document_is_reported(data: bytes, problem: str, tmp_path: Path) -> None:
    reported = problems_in(tmp_path, data)
    assert reported[0].startswith(problem), reported
    assert [other for other in reported[1:] if "has no" not in other] == []


def test_faulty_items_by_the_thousand_are_counted(tmp_path: Path) -> None:
    items = b",".join(b"%d" % number for number in range(3_000))
    assert problems_in(tmp_path, b'{"testCases": [' + items + b"]}") == [
        "results:1: expected an object, found 0 (and 2,999 more like this, in this line)"
    ]
