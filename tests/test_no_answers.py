"""``--no-answers``: what is wrong with a file is reported without the words of answers, documents and judges in it."""

import ast
import json
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import ragcontract
from ragcontract.core import phrase
from tests.builders import write_jsonl
from tests.judged_checks import BOTH
from tests.judgment_files import CONTEXT, FALSE, TRUE, judged_workspace, write_good_calibration, write_judgments_on
from tests.process import Ended, rag_contract

SECRET = "Zebras cost $42."
Row = dict[str, Any]
REPORTS = ("report.md", "report.json", "report.html", "junit.xml")
OPTIONS = ("--scores", "scores.jsonl", "--baseline", "base_run.jsonl", "--report-html", "report.html", *BOTH)

# By what is wrong: the value of a field, made with a key of an object in it.
MALFORMED: dict[str, Callable[[str], Any]] = {
    "a list": lambda _: [SECRET],
    "an object": lambda key: {key: [SECRET]},
    "a deep object": lambda key: {"a": [{key: [SECRET]}]},
    "a list of objects": lambda key: [{key: SECRET}],
    "a list of lists": lambda _: [[SECRET]],
    "too long": lambda _: SECRET * 100_000,
    "words that look like a message of ours": lambda _: f'x"; expected y, found {SECRET}',
}
NAMES = ("scores", "reasons", "checks")  # fields whose keys are names, which are shown
TEXTS = {
    "current_run.jsonl": ("response", "results", "retrieved_contexts", "tool_calls", "messages", "turns", "reasons"),
    "base_run.jsonl": ("response", "results", "retrieved_contexts", "tool_calls", "messages", "turns", "reasons"),
    "scores.jsonl": ("reasons", "checks", "scores"),
    "judgments.jsonl": ("quote", "reason", "item", "context", "votes", "verdict", "judge"),
}
FIELDS = [(name, field) for name, fields in TEXTS.items() for field in fields]
AS_A_LINE: dict[str, Callable[[str], str]] = {
    "cut off": lambda line: line[: line.index(SECRET) + 9],
    "a quotation mark too many": lambda line: line.replace(SECRET, f'"{SECRET}'),
    "a line break": lambda line: line.replace(SECRET, f"\n{SECRET}"),
    "an escape that is none": lambda line: line.replace(SECRET, rf"\q{SECRET}"),
    "half of a character": lambda line: line.replace(SECRET, rf"\ud800{SECRET}"),
    "single quotation marks": lambda line: line.replace(f'"{SECRET}', f"'{SECRET}"),
    "goes on": lambda line: line + SECRET,
    "begins early": lambda line: SECRET + line,
    "a conflict marker": lambda line: f"<<<<<<< {SECRET}\n{line}",
    "a list of rows": lambda line: f"[{line}]",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with valid files, all of which have the secret."""
    monkeypatch.chdir(tmp_path)
    contexts = [f"{CONTEXT} {SECRET}"]
    config = "metrics: {f: {from: scores}}\nminimums: {f: 0.5}\njudge: {uncalibrated: advisory}\n"
    judged_workspace(tmp_path, config, [TRUE], [FALSE], contexts=contexts)
    said = {"results": [{"doc_id": "d", "text": SECRET}], "response": SECRET, "retrieved_contexts": contexts}
    write_jsonl(tmp_path / "current_run.jsonl", [{"query_id": query, **said} for query in ("q1", "q2")])
    write_jsonl(tmp_path / "base_run.jsonl", [{"query_id": query, **said} for query in ("q1", "q2")])
    scored = {"scores": {"f": 0.1}, "reasons": {"f": SECRET}}
    write_jsonl(tmp_path / "scores.jsonl", [{"query_id": query, **scored} for query in ("q1", "q2")])
    write_judgments_on(tmp_path, [TRUE], [FALSE], contexts=contexts, quote=SECRET, reason=SECRET)
    write_good_calibration(tmp_path)
    return tmp_path


def rows_of(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def shown(folder: Path, ended: Ended) -> str:
    """Return all that a check printed and wrote."""
    reports = [folder / name for name in REPORTS]
    return "\n".join([ended.out, ended.err, *(path.read_text() for path in reports if path.exists())])


def test_nothing_that_was_said_is_shown_of_valid_files(folder: Path) -> None:
    assert "Zebras" in shown(folder, rag_contract("check", *OPTIONS))
    assert "Zebras" not in shown(folder, rag_contract("check", *OPTIONS, "--no-answers"))


@pytest.mark.parametrize("wrong", MALFORMED)
@pytest.mark.parametrize(("name", "field"), FIELDS)
def test_no_word_of_a_malformed_field_is_shown(folder: Path, name: str, field: str, wrong: str) -> None:
    first, *others = rows_of(folder / name)
    value = MALFORMED[wrong]("f" if field in NAMES else SECRET)
    write_jsonl(folder / name, [first | {field: value}, *others])
    assert "Zebras" not in shown(folder, rag_contract("check", *OPTIONS, "--no-answers"))


@pytest.mark.parametrize("wrong", AS_A_LINE)
@pytest.mark.parametrize("name", TEXTS)
def test_no_word_of_a_line_that_cannot_be_read_is_shown(folder: Path, name: str, wrong: str) -> None:
    first, *others = (folder / name).read_text().splitlines()
    (folder / name).write_text("\n".join([AS_A_LINE[wrong](first), *others]))
    ended = rag_contract("check", *OPTIONS, "--no-answers")
    assert ended.code == 2
    assert "Zebras" not in shown(folder, ended)
    assert f"error: {name}:" in ended.err


@pytest.mark.parametrize("field", ["quote", "reason"])
def test_a_malformed_word_of_a_judge_is_reported_by_line_and_field_without_it(folder: Path, field: str) -> None:
    first, *others = rows_of(folder / "judgments.jsonl")
    write_jsonl(folder / "judgments.jsonl", [first | {field: [SECRET]}, *others])
    assert SECRET in rag_contract("check", *OPTIONS).err
    ended = rag_contract("check", *OPTIONS, "--no-answers")
    assert ended.code == 2
    assert f"error: judgments.jsonl:1: {field}: expected text" in ended.err
    assert "found (not shown)" in ended.err


CALL = {"name": "pay", "arguments": {"to": "x", "more": [{"a": 1}]}}
OPENAI_CALL = {"type": "function", "function": {"name": "a", "arguments": "{}"}}
SAID = [
    {"role": "user", "content": "x"},
    {"role": "assistant", "content": [{"type": "text", "text": "x"}, {"type": "tool_use", "name": "a", "input": {}}]},
    {"role": "assistant", "content": "x", "tool_calls": [OPENAI_CALL]},
    {"role": "tool", "content": [{"type": "tool_result", "content": "x"}]},
    {"type": "function_call", "name": "a", "arguments": "{}"},
]
ROW: Row = {
    "results": [{"doc_id": "d", "text": "x", "score": 0.5, "metadata": {"a": {"b": "x"}}}],
    "response": "x",
    "retrieved_contexts": ["x"],
    "tool_calls": [CALL],
    "messages": SAID,
    "turns": [{"response": "x", "tool_calls": [CALL], "messages": SAID[:3], "retrieved_contexts": ["x"]}],
    "mode": "x",
    "usage": {"input_tokens": 1},
}
RULES = [
    {"type": "must_not_contain", "value": "never"},
    {"type": "must_not_call_tool", "tool": "never", "arguments": {"a": 1}},
    {"type": "tool_arguments_valid"},
]
TWICE = "twice"  # stands for a key that a row has twice, which no dict has
VALUES: dict[str, Callable[[Any], Any]] = {
    "text": lambda _: SECRET,
    "a list": lambda _: [SECRET],
    "a key": lambda value: {SECRET: value},
    "one more key": lambda value: {**(value if isinstance(value, dict) else {"type": "x"}), SECRET: SECRET},
    "a key twice": lambda value: {TWICE: value},
}


def changed(value: Any, change: Callable[[Any], Any]) -> list[Any]:
    """Return copies of a value: in each one, another part of it is changed."""
    parts: list[Any] = []
    if isinstance(value, dict):
        parts = [value | {name: part} for name in value for part in changed(value[name], change)]
    elif isinstance(value, list):
        parts = [
            [*value[:at], part, *value[at + 1 :]] for at in range(len(value)) for part in changed(value[at], change)
        ]
    return [change(value), *parts]


def unreported(folder: Path, line: str) -> str:
    """Return what a check without answers shows of a run of one row."""
    (folder / "current_run.jsonl").write_text(line.replace(f'"{TWICE}":', f'"{SECRET}": 1, "{SECRET}":'))
    return shown(folder, rag_contract("check", "--no-answers"))


@pytest.mark.parametrize("wrong", VALUES)
@pytest.mark.parametrize("field", ROW)
def test_no_word_is_shown_wherever_it_is_in_a_row(folder: Path, field: str, wrong: str) -> None:
    write_jsonl(folder / "golden.jsonl", [{"id": "q1", "query": "?", "rules": RULES}])
    (folder / "ragcontract.yml").write_text("k: 5\n")
    others: Row = {} if field in {"messages", "turns"} else {"response": "x", "tool_calls": []}
    lines = [
        json.dumps({"query_id": "q1", "results": [], **others, field: value})
        for value in changed(ROW[field], VALUES[wrong])
    ]
    assert [line for line in lines if "Zebras" in unreported(folder, line)] == []


def test_a_key_that_a_judgment_has_twice_is_not_shown(folder: Path) -> None:
    line, *others = (folder / "judgments.jsonl").read_text().splitlines()
    twice = f'{{"{SECRET}": 1, "{SECRET}": 2, {line[1:]}'
    (folder / "judgments.jsonl").write_text("\n".join([twice, *others]))
    ended = rag_contract("check", *OPTIONS, "--no-answers")
    assert (ended.code, "Zebras" in shown(folder, ended)) == (2, False)
    assert "error: judgments.jsonl:1: duplicate key (not shown)" in ended.err


PLUGIN = {"type": "custom", "plugin": "Fails"}


class Fails:
    """A plugin that fails with words of the answer."""

    def evaluate(self, output: str, _calls: list[Any], _rule: dict[str, Any]) -> tuple[bool, str]:
        raise ValueError(output)


def row(**fields: Any) -> str:
    return json.dumps({"query_id": "q1", "results": [], "tool_calls": [], **fields})


def saying(*messages: Row, **fields: Any) -> str:
    """Return a row with messages, or with the parts of one message of the assistant."""
    return row(messages=[*messages], **fields)


USER, SAID_IT = {"role": "user", "content": "?"}, {"role": "assistant", "content": SECRET}
OF_RUN = {
    "of another type": row(response=[SECRET]),
    "in place of a field": row(results=[{SECRET: "d"}]),
    "behind the end": row(response="x") + SECRET,
    "before a wrong character": row(response="x").replace('"x"', f'"x{SECRET}" "'),
    "a key twice": row(response="x").replace('"x"', f'{{"{SECRET}": 1, "{SECRET}": 2}}'),
    "one object": json.dumps({SECRET: 1}),
    "a mode": row(response="x", mode=SECRET),
    "no call": row(response="x", tool_calls=[], finish_reason=f"tool_calls {SECRET}"),
    "a role": saying({"role": SECRET}, response="x", tool_calls=[]),
    "a type for a role": saying({"type": SECRET, "content": "x"}, response="x", tool_calls=[]),
    "a call of a user": saying({"role": "user", "content": SECRET, "tool_calls": [OPENAI_CALL]}, response="x"),
    "a content": saying(USER, {"role": "assistant", "content": {SECRET: 1}}, response="x"),
    "a part": saying(USER, {"role": "assistant", "content": [{"type": "text", "n": SECRET}]}, response="x"),
    "an unread part": saying(
        USER, {"role": "assistant", "content": [{"type": "text", "text": "x", "tool_calls": SECRET}]}, response="x"
    ),
    "another answer": saying(USER, SAID_IT, response=f"no {SECRET}"),
    "another mode": saying(USER, SAID_IT | {"mode": SECRET}, response=SECRET, mode="answer"),
    "calls in messages only": saying(
        USER, {"role": "assistant", "content": SECRET, "tool_calls": [OPENAI_CALL]}, response=SECRET, tool_calls=[]
    ),
    "another call": saying(
        USER,
        {"role": "assistant", "content": "x", "tool_calls": [OPENAI_CALL]},
        response="x",
        tool_calls=[{"name": "pay", "arguments": {"to": SECRET}}],
    ),
}
IN_TURNS = {"a call beside turns": saying(USER, SAID_IT, tool_calls=[{"name": SECRET}])}
OF_SHAPE = {name: OF_RUN.pop(name) for name in ("in place of a field", "one object")}
GOLDEN: dict[str, tuple[Row, dict[str, str]]] = {
    "rules": ({"rules": RULES}, OF_RUN),
    "documents": ({"relevant_doc_ids": ["d"]}, OF_SHAPE),
    "a mode": ({"expected_mode": "abstain"}, {"a mode": row(response="x", mode=SECRET)}),
    "turns": ({"turns": [{"query": "?", "rules": RULES[:2]}]}, IN_TURNS),
}
IN_MEMORY: dict[str, Any] = {
    "a number": {"results": [{"doc_id": "d", "score": math.inf}]},
    "no list": {"results": SECRET},
    "a type": {"results": [], "response": [SECRET]},
    "a plugin": {"results": [], "response": SECRET},
}
PARQUET = {"a column": [{SECRET: "d"}], "no number": [{"doc_id": "d", "score": math.inf}]}


def quoting() -> set[tuple[str, int]]:
    """Return the places in the code that make a value the part of a message."""
    places = set()
    for path in Path(ragcontract.__file__).parent.rglob("*.py"):
        tree = ast.parse(path.read_text())
        imports = [
            node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module == phrase.__name__
        ]
        names = {alias.asname or alias.name for node in imports for alias in node.names if alias.name == "private"}
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
        places |= {(str(path), call.lineno) for call in calls if call.func.id in names}  # type: ignore[attr-defined]
    return places


@contextmanager
def noted() -> Iterator[set[tuple[str, int]]]:
    """Yield the places from which values were made parts of messages."""
    places: set[tuple[str, int]] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code is phrase.private.__code__ and frame.f_back is not None:
            places.add((frame.f_back.f_code.co_filename, frame.f_back.f_lineno))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield places
    finally:
        sys.setprofile(before)


def with_change(folder: Path, name: str, line: str, *options: str) -> str:
    """Return what a check without answers shows if the first line of a file is another one."""
    before = (folder / name).read_text()
    (folder / name).write_text("\n".join([line, *before.splitlines()[1:]]) + "\n")
    text = shown(folder, rag_contract("check", *OPTIONS, "--no-answers", *options))
    (folder / name).write_text(before)
    return text


def of_files(folder: Path) -> dict[str, str]:
    """Return what is shown of faults in files of a judged contract, by what is wrong."""
    scores, judgment = (rows_of(folder / name)[0] for name in ("scores.jsonl", "judgments.jsonl"))
    wrong = {
        "a score": ("scores.jsonl", scores | {"scores": {"f": 7}}),
        "an edited item": ("judgments.jsonl", judgment | {"item": SECRET}),
        "no verdict": ("judgments.jsonl", judgment | {"status": "unsure", "verdict": None, "reason": SECRET}),
        "a verdict too many": ("judgments.jsonl", judgment | {"status": "unsure", "reason": SECRET}),
    }
    return {what: with_change(folder, name, json.dumps(line)) for what, (name, line) in wrong.items()}


def of_rows(folder: Path) -> dict[str, str]:
    """Return what is shown of faults in the rows of a run, by what is wrong."""
    (folder / "ragcontract.yml").write_text("k: 5\n")
    texts: dict[str, str] = {}
    for golden, wrong in GOLDEN.values():
        write_jsonl(folder / "golden.jsonl", [{"id": "q1", "query": "?", **golden}])
        texts |= {what: unreported(folder, line) for what, line in wrong.items()}
    return texts


def of_parquet(folder: Path) -> dict[str, str]:
    """Return what is shown of faults in Parquet, by what is wrong."""
    write_jsonl(folder / "golden.jsonl", [{"id": "q1", "query": "?", "rules": RULES[:1]}])
    texts = {}
    for what, results in PARQUET.items():
        pq.write_table(
            pa.table({"query_id": ["q1"], "results": [results], "response": [SECRET]}), folder / "run.parquet"
        )
        texts[what] = shown(folder, rag_contract("check", "--no-answers", "--run", "run.parquet"))
    return texts


def of_python(folder: Path) -> dict[str, str]:
    """Return what the Python API shows of faults, by what is wrong."""
    write_jsonl(folder / "golden.jsonl", [{"id": "q1", "query": "?", "rules": [PLUGIN]}])
    texts = {}
    for what, fields in IN_MEMORY.items():
        with pytest.raises(ragcontract.InputError) as error:
            ragcontract.check(golden=folder / "golden.jsonl", run={"q1": fields}, plugins=[Fails()], no_answers=True)
        texts[what] = str(error.value)
    return texts


def test_every_message_that_quotes_a_value_leaves_it_out(folder: Path) -> None:
    with noted() as places:
        texts = of_files(folder) | of_rows(folder) | of_parquet(folder) | of_python(folder)
    wrong = [what for what, text in texts.items() if "Zebras" in text or "(not shown)" not in text]
    assert {what: texts[what][:300] for what in wrong} == {}
    assert quoting() - places == set()
