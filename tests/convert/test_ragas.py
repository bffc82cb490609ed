import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragcontract.convert.collection import Collection
from ragcontract.files.problems import Problems
from tests.convert.builders import ANY_TEXT, collection, collections, lines_of, ranks, read, rows, written
from tests.process import rag_contract

SAMPLES = [
    {"user_input": "What?", "retrieved_context_ids": ["d2", 1, 1], "reference_context_ids": [1, "d2", "1"]},
    {"user_input": "Who?", "retrieved_context_ids": [], "reference_context_ids": [], "response": "Nobody.", "id": 7},
]
FORMS = {
    "lines": "".join(json.dumps(sample) + "\n" for sample in SAMPLES),
    "a list": json.dumps(SAMPLES),
    "a list over lines": "\ufeff \n" + json.dumps(SAMPLES, indent=2),
}


@pytest.mark.parametrize("text", FORMS.values(), ids=FORMS)
def test_samples_are_golden_queries_and_a_run(text: str, tmp_path: Path) -> None:
    found, problems = read("ragas", tmp_path, samples=text)
    assert problems == Problems()
    assert {query.id: (query.text, query.grades) for query in (found.queries or {}).values()} == {
        "What?": ("What?", {"1": 1, "d2": 1}),
        "7": ("Who?", {}),
    }
    assert ranks(found) == {"What?": ["d2", "1", "1"], "7": []}


def test_a_part_that_is_not_wanted_may_be_missing(tmp_path: Path) -> None:
    text = '{"user_input": "What?", "retrieved_context_ids": null, "reference_context_ids": ["d"]}'
    found, problems = read("ragas", tmp_path, wanted={"golden"}, samples=text)
    assert (list(found.queries or {}), found.rankings, problems) == (["What?"], None, Problems())
    _, problems = read("ragas", tmp_path, samples=text)
    assert lines_of(problems, tmp_path) == ["samples:1: retrieved_context_ids: is missing; expected a list of ids"]


BAD = [
    {"user_input": [{"content": "What?"}]},
    {"user_input": "A?", "reference_context_ids": [1.5], "retrieved_context_ids": "d"},
    {"user_input": "A?", "reference_context_ids": [], "retrieved_context_ids": []},
    {"user_input": "A?", "reference_context_ids": [], "retrieved_context_ids": []},
    {"question": "B?"},
    "C?",
]


FORMS_OF_BAD = {
    "lines": ("".join(json.dumps(sample) + "\n" for sample in BAD), [1, 2, 2, 4, 5, 6], 3),
    "a list over lines": (json.dumps(BAD, indent=0), [3, 12, 14, 21, 26, 29], 16),
}


@pytest.mark.parametrize(("text", "lines", "first"), FORMS_OF_BAD.values(), ids=FORMS_OF_BAD)
def test_everything_that_is_wrong_is_reported_with_its_line(
    text: str, lines: list[int], first: int, tmp_path: Path
) -> None:
    _, problems = read("ragas", tmp_path, samples=text)
    messages = [
        'user_input: expected text that is not empty, found [{"content": "What?"}]',
        "reference_context_ids[0]: expected text of 1 to 2,000 characters, or a whole number, found 1.5",
        'retrieved_context_ids: expected a list, found "d" (text); write ["d"] for a list of one',
        f"user_input: duplicate 'A?', first defined at samples:{first}",
        "user_input: is missing; found instead: 'question'",
        'expected an object, found "C?"; write {"user_input": "C?"}',
    ]
    expected = [f"samples:{line}: {message}" for line, message in zip(lines, messages, strict=True)]
    assert lines_of(problems, tmp_path) == expected


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "samples: is empty; expected one JSON object a line"),
        ("[]", "samples: is an empty list; expected JSON objects in it"),
        ('[{"user_input": "a"},\n {"x": NaN}]', "samples:2: is not JSON: "),
        (
            '[{"user_input": "a"},\n',
            "samples:1: is cut off in the middle; was the export stopped before it had finished?",
        ),
    ],
)
def test_a_file_that_is_no_samples_is_reported(text: str, problem: str, tmp_path: Path) -> None:
    _, problems = read("ragas", tmp_path, samples=text)
    (reported,) = lines_of(problems, tmp_path)
    assert reported.startswith(problem)


@pytest.mark.parametrize("levels", [101, *range(940, 1_000)])
def test_samples_nested_past_the_limit_are_refused_at_the_borders_of_all_decoders_too(
    levels: int, tmp_path: Path
) -> None:
    text = f'[{{"user_input": {"[" * (levels - 2)}{"]" * (levels - 2)}}}]'
    _, problems = read("ragas", tmp_path, samples=text)
    assert lines_of(problems, tmp_path) == ["samples:1: is nested too deeply: more than 100 levels"]


def test_problems_by_the_thousand_are_counted(tmp_path: Path) -> None:
    _, problems = read("ragas", tmp_path, samples=json.dumps([{}] * 1000))
    assert (problems.more, len(lines_of(problems, tmp_path))) == (0, 1)
    assert "(and 999 more like this, in this line)" in problems.problems[0]


def test_samples_say_what_they_could_not() -> None:
    found = collection({"q1": {"a": 2, "b": 0.5}, "q2": {"a": 1}}, {"q1": [("a", 1.0), ("a", 0.5)], "q3": []})
    text, problems = written("ragas", "samples", found)
    assert rows(text) == [
        {"id": "q1", "user_input": "About q1?", "retrieved_context_ids": ["a", "a"], "reference_context_ids": ["a"]},
        {"id": "q2", "user_input": "About q2?", "reference_context_ids": ["a"]},
    ]
    assert list(problems.warnings) == [
        "1 query ('q1') with grades other than 1: samples only say what is relevant",
        "1 query ('q2') not in the run: the samples have no retrieved_context_ids",
        "1 query ('q3') in the run only: left out, because a sample needs its question",
    ]


@given(collections(ANY_TEXT), st.booleans())
def test_what_is_written_reads_back_as_it_was(before: Collection, as_a_list: bool) -> None:
    text, _ = written("ragas", "samples", before)
    if as_a_list:
        text = json.dumps(rows(text), indent=1)
    with TemporaryDirectory() as folder:
        wanted = read("ragas", Path(folder), wanted={"golden"}, samples=text)[0].queries or {}
        after = ranks(read("ragas", Path(folder), wanted={"run"}, samples=text)[0])
    queries = before.queries or {}
    assert {query.id: (query.text, list(query.grades)) for query in wanted.values()} == {
        query.id: (query.text, [doc_id for doc_id, grade in query.grades.items() if grade >= 1])
        for query in queries.values()
    }
    assert {name: docs for name, docs in after.items() if docs} == {
        name: docs for name, docs in ranks(before).items() if name in queries and docs
    }


def test_a_pipe_is_read_from_its_first_line_on(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with ThreadPoolExecutor() as pool:
        pool.submit((tmp_path / "pipe").write_text, FORMS["lines"])
        argv = ("--from", "ragas", "--samples", str(tmp_path / "pipe"), "--golden-out", str(tmp_path / "golden.jsonl"))
        assert rag_contract("convert", *argv).code == 0
    assert [row["query"] for row in rows((tmp_path / "golden.jsonl").read_text())] == ["What?", "Who?"]


def test_what_a_sample_expects_of_the_answer_is_left_out_with_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    sample = {"user_input": "What?", "retrieved_context_ids": ["d"], "reference_context_ids": ["d"], "response": "It."}
    calls = {"reference_tool_calls": [{"name": "find", "args": {}}], "reference": "It is.", "rubrics": None}
    Path("s.jsonl").write_text(f"{json.dumps(sample)}\n{json.dumps(sample | calls | {'user_input': 'Who?'})}\n")
    argv = ("convert", "--from", "ragas", "--samples", "s.jsonl")
    ended = rag_contract(*argv, "--golden-out", "g.jsonl")
    left_out = "s.jsonl:2: not read from samples, and left out: reference, reference_tool_calls"
    assert (ended.code, ended.err) == (0, f"warning: {left_out}\n")
    assert rag_contract(*argv, "--run-out", "r.jsonl").err == ""
