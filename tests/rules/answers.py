"""Rules about answers, tried as a check tries them: a golden row as it is written, a run row as it is exported."""

from pathlib import Path
from typing import Any

from ragcontract import pipeline
from ragcontract.core.errors import InputError
from ragcontract.core.finding import sentence
from ragcontract.core.rule import Plugin
from ragcontract.decision.decide import Decision
from ragcontract.evaluation.source import Local
from ragcontract.runs.readers import open_run
from tests.builders import Row, write_jsonl
from tests.records import NOW


def decided(folder: Path, asked: Row, answered: Row, config: str = "", plugins: tuple[Plugin, ...] = ()) -> Decision:
    """Return what comes of a golden row and a run row, which need no ids."""
    golden = write_jsonl(folder / "golden.jsonl", [{"id": "q", "query": "Q?", **asked}])
    run = write_jsonl(folder / "run.jsonl", [{"query_id": "q", **answered}])
    (folder / "ragcontract.yml").write_text(config or "k: 5\n")
    request = pipeline.Inputs(
        golden=[str(golden)],
        run=Local(open_run([str(run)])),
        config=str(folder / "ragcontract.yml"),
        plugins={type(plugin).__name__: plugin for plugin in plugins},
    )
    return pipeline.check(request, now=NOW).decision


def broken(folder: Path, asked: Row, answered: Row, config: str = "", **more: Any) -> list[str]:
    """Return the findings as people read them, without quotation marks, each after its status and its rule."""
    found = decided(folder, asked, answered, config, **more).findings
    return [f"{one.status} {one.ids[0]}: {sentence(one, marks='')}" for one in found]


def refusal(folder: Path, asked: Row, answered: Row, config: str = "", **more: Any) -> list[str]:
    """Return why the input cannot be judged, without the folder's name."""
    try:
        found = decided(folder, asked, answered, config, **more)
    except InputError as error:
        return [problem.replace(f"{folder}/", "") for problem in error.problems]
    raise AssertionError(found.verdict)


def rule(kind: str, **fields: object) -> Row:
    """Return a golden row with one entry in its rules."""
    return {"rules": [{"type": kind, **fields}]}


def says(response: str | None, **fields: object) -> Row:
    """Return a run row with an answer."""
    return {"response": response, **fields}
