"""``rag-contract init``: writes the files of a new contract."""

import json
import os
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import click

from ragcontract.cli.console import say, warn
from ragcontract.cli.workflow_file import workflow_file
from ragcontract.contract import defaults
from ragcontract.contract.golden_file import PLACEHOLDER
from ragcontract.contract.review import same_question
from ragcontract.core import bounds
from ragcontract.core.errors import ExitCode, InputError, OutputError
from ragcontract.core.numbers import count, mebibytes
from ragcontract.core.text import visible
from ragcontract.files.opening import READ_ERRORS, read_problem, read_whole
from ragcontract.files.patterns import not_readable
from ragcontract.files.writing import check_outputs, write_files

EXAMPLE = "How many days do customers have to return a product?"

NEXT = f"""
Next:
  1. In {{golden}}, write the ids of the documents that answer each question in place of "{PLACEHOLDER}", or
     an empty list if none does. Until then `rag-contract check` fails.
  2. Have your retriever write {defaults.RUN}, in Python with RunWriter:
     `with ragcontract.RunWriter("{defaults.RUN}") as run: run.write(query_id, doc_ids)`.
     In other languages, write one JSON line per question; see `rag-contract schema run`.
  3. Run `rag-contract lint`, then `rag-contract check`.
  4. Once the retriever is good, run `rag-contract baseline`, and paste what `rag-contract suggest` proposes into
     {{config}}. A pull request that changes retrieval on purpose runs `rag-contract baseline --update`.
  5. In {{workflow}}, put the commands of your project into the steps marked "Replace".
  6. Commit these files and {defaults.BASELINE}. Let .gitignore have {defaults.RUN}, report.md, report.json, junit.xml.
"""


@click.command("init")
@click.option("--questions", metavar="FILE", help="Questions for the golden file, one per line. [one example question]")
def command(questions: str | None) -> int:
    """Write a golden file, a config and a workflow to start from.

    Writes golden.jsonl, ragcontract.yml and .github/workflows/rag-contract.yml; in a folder of a git repository, the
    workflow goes to the repository's root. Existing files are reported and never changed. Exits 2 and writes nothing if
    all three exist, or if --questions is given and golden.jsonl exists.
    """
    config = defaults.CONFIG_ALIAS if os.path.lexists(defaults.CONFIG_ALIAS) else defaults.CONFIG
    workflow = workflow_file(Path())
    wanted = (defaults.GOLDEN, config, workflow.path)
    kept = [name for name in wanted if os.path.lexists(name)]
    if problems := [
        f"{name}: exists already and is never overwritten"
        for name in kept
        if len(kept) == len(wanted) or (questions is not None and name == defaults.GOLDEN)
    ]:
        raise OutputError(problems)
    asked, repeated = read_questions(questions) if questions is not None else ([EXAMPLE], 0)
    contents = {
        defaults.GOLDEN: golden_file(asked),
        config: template("ragcontract.yml"),
        workflow.path: workflow.render(
            template("workflow.yml").replace(f"config: {defaults.CONFIG}", f"config: {config}")
        ),
    }
    _write({name: text for name, text in contents.items() if name not in kept})
    if repeated:
        left_out = f"{count(repeated, 'question')} left out, the same as another but for case, space or a stop"
        warn([f"{questions}: {left_out}"])
    for name in wanted:
        what = f" ({count(len(asked), 'question')})" if name == defaults.GOLDEN and name not in kept else ""
        say(f"{'kept' if name in kept else 'wrote'} {visible(name)}{what}\n")
    say(NEXT.format(golden=defaults.GOLDEN, config=config, workflow=visible(workflow.path)))
    return ExitCode.PASS


def _write(texts: Mapping[str, str]) -> None:
    if problems := check_outputs(texts, []):
        raise OutputError(problems)
    write_files({name: text.encode() for name, text in texts.items()})


def template(name: str) -> str:
    """Return the text of a template in the package."""
    return (files("ragcontract") / "templates" / name).read_text("utf-8")


def read_questions(path: str) -> tuple[list[str], int]:
    """Return the distinct questions of a file with one question per line, and the number of duplicates.

    Raises :class:`InputError` if the file is not a list of questions.
    """
    if problem := not_readable(path):
        raise InputError([f"{path or repr(path)}: {problem}"])
    try:
        data, _ = read_whole(path, limit=bounds.QUESTIONS)
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise InputError([f"{path}:{line}: is not UTF-8; save the file as UTF-8"]) from error
    except READ_ERRORS as error:
        raise InputError([f"{path}: {read_problem(error)}"]) from error
    if len(data) > bounds.QUESTIONS:
        raise InputError([f"{path}: is larger than {mebibytes(bounds.QUESTIONS)}, the limit for a list of questions"])
    lines = [line.strip() for line in text.splitlines()]
    if problems := [f"{path}:{n}: {problem}" for n, line in enumerate(lines, 1) if (problem := _no_question(line))]:
        raise InputError(problems[: bounds.QUESTION_PROBLEMS], more=len(problems[bounds.QUESTION_PROBLEMS :]))
    asked = [line for line in lines if line]
    if not asked:
        raise InputError([f"{path}: is empty; expected one question per line"])
    once: dict[str, str] = {}
    for question in asked:
        once.setdefault(same_question(question), question)
    return list(once.values()), len(asked) - len(once)


def _no_question(line: str) -> str | None:
    if line.startswith("{"):
        return "is JSON; expected plain text, one question per line"
    return "is binary data; expected plain text, one question per line" if "\0" in line else None


def golden_file(questions: Sequence[str]) -> str:
    """Return golden rows for questions, with a placeholder for the relevant documents."""
    rows: list[dict[str, Any]] = [
        {"id": name, "query": question, "relevant_doc_ids": [PLACEHOLDER]}
        for name, question in zip(unique_slugs(questions), questions, strict=True)
    ]
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def unique_slugs(questions: Iterable[str]) -> list[str]:
    """Return a unique id for each question: its first words, as in ``how-many-days``, with a number if taken."""
    taken: set[str] = set()
    slugs = []
    for number, question in enumerate(questions, start=1):
        base = name = _slug(question) or f"question-{number}"
        more = 1
        while name in taken:
            more += 1
            name = f"{base}-{more}"
        taken.add(name)
        slugs.append(name)
    return slugs


def _slug(question: str) -> str:
    plain = "".join(
        char for char in unicodedata.normalize("NFKD", question.casefold()) if not unicodedata.combining(char)
    )
    words = re.findall(r"[a-z0-9]+", plain)
    slug = ""
    for word in words:
        longer = f"{slug}-{word}" if slug else word[: bounds.SLUG]
        if len(longer) > bounds.SLUG:
            break
        slug = longer
    return slug
