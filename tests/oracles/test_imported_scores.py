"""Scores files made from what ragas, deepeval and Inspect really write: the means are those that they print.

The tools leave a value that they could not compute out of their means; in a scores file it is null. promptfoo is no
Python package: `convert/test_promptfoo.py` has its shapes.
"""

import ast
import json
import os
import re
import subprocess
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from tests.builders import golden, write_jsonl
from tests.process import rag_contract
from tests.runner import ROOT

pytestmark = pytest.mark.oracles
PROGRAMS = Path(__file__).parent / "programs"
QUESTIONS = {
    "refund": ("How long do refunds take?", "Refunds take five days.", "Refunds take five days."),
    "sso": ("Which plan has single sign-on?", "The team plan has it.", "The team plan."),
    "limit": ("How many requests are allowed?", "Sixty requests a minute.", ""),
    "pets": ("Are pets allowed?", "No pets.", "I do not know."),
}
ROWS = [
    {
        "id": name,
        "user_input": question,
        "reference": reference,
        "response": response,
        "retrieved_contexts": [response] if response else [],
        "reference_contexts": [reference],
    }
    for name, (question, reference, response) in QUESTIONS.items()
]


def output_of(environment: str, program: str, folder: Path) -> str:
    """Return what a program prints for the rows; the files of the tool are in the folder then."""
    python = ROOT / "build" / environment / "bin" / "python"
    if not (python.parent.parent / "ready").exists():
        (pytest.fail if os.environ.get("CI") else pytest.skip)(
            "the other packages are not installed: run `make test-oracles`"
        )
    environ = {"PATH": os.environ["PATH"], "HOME": str(folder), "RAGAS_DO_NOT_TRACK": "true"}
    done = subprocess.run(
        [str(python), str(PROGRAMS / f"{program}.py"), str(folder)],
        input=json.dumps(ROWS),
        capture_output=True,
        text=True,
        env=environ,
        cwd=folder,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def imported(form: str, results: str, folder: Path) -> tuple[dict[str, float], dict[str, set[str]]]:
    """Return the means of the scores, over rows, then over queries, and the queries without each score."""
    rows = [golden(name) | {"query": question} for name, (question, *_) in QUESTIONS.items()]
    write_jsonl(folder / "golden.jsonl", rows)
    argv = ("--from", form, "--results", results, "--golden", str(folder / "golden.jsonl"))
    ended = rag_contract("convert", *argv, "--scores-out", str(folder / "scores.jsonl"), "--force")
    assert ended.code == 0, ended.err
    values: dict[str, dict[str, list[float]]] = {}
    missing: dict[str, set[str]] = {}
    for row in map(json.loads, (folder / "scores.jsonl").read_text().splitlines()):
        for name, value in row["scores"].items():
            if value is None:
                missing.setdefault(name, set()).add(row["query_id"])
            else:
                values.setdefault(name, {}).setdefault(row["query_id"], []).append(value)
    return {name: fmean(map(fmean, found.values())) for name, found in values.items()}, missing


def test_ragas(tmp_path: Path) -> None:
    printed: dict[str, Any] = ast.literal_eval(output_of("oracles", "ragas_results", tmp_path).splitlines()[-1])
    for file in ("results.jsonl", "results.csv"):
        means, missing = imported("ragas", str(tmp_path / file), tmp_path)
        assert means == pytest.approx(
            {
                "rouge_score_mode_fmeasure": printed["rouge_score(mode=fmeasure)"],
                "exact_match": printed["exact_match"],
                "non_llm_string_similarity": printed["non_llm_string_similarity"],
                "non_llm_context_recall": printed["non_llm_context_recall"],
            },
            abs=5e-5,
        )
        assert missing == {"non_llm_context_recall": {"limit"}}


def test_deepeval(tmp_path: Path) -> None:
    printed = output_of("evaluators", "deepeval_results", tmp_path)
    averages = dict(re.findall(r"│ +(Exact Match|Shared Words \(v2\)) +│ ([0-9.]+) +│ [0-9.]+%", printed))
    means, missing = imported("deepeval", str(tmp_path / "test_run_*.json"), tmp_path)
    assert means == pytest.approx(
        {
            "exact_match": float(averages["Exact Match"]),
            "shared_words_v2": float(averages["Shared Words (v2)"]),
        },
        abs=5e-3,
    )
    assert missing == {"exact_match": {"limit"}, "shared_words_v2": {"limit"}}, "no metric takes an empty answer"


def test_inspect(tmp_path: Path) -> None:
    printed = json.loads(output_of("evaluators", "inspect_results", tmp_path).splitlines()[-1])
    means, missing = imported("inspect", str(tmp_path / "*.json"), tmp_path)
    assert means == pytest.approx(
        {
            "includes": printed["includes"],
            "shared_words": printed["shared_words"],
            "words_found": printed["found"],
            "words_wanted": printed["wanted"],
            "grade": printed["grade"],
        }
    )
    assert missing == {"shared_words": {"limit"}}
