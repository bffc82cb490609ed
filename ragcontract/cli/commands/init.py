"""``rag-contract init``: writes the files of a new contract.

GitHub runs only workflows in ``.github/workflows`` at the root of a repository. For a contract in a folder, the
workflow gets the folder as the working directory of all steps, and names of its own, so that two contracts of one
repository share neither a file, a required check, a concurrency group nor a comment.
"""

import itertools
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from importlib.resources import files
from pathlib import Path
from textwrap import indent
from typing import Any

import click
from msgspec import Struct

from ragcontract import pipeline
from ragcontract.cli.console import say, warn
from ragcontract.cli.label_screen import read_sheet
from ragcontract.cli.options import configured, files_option, refuse_empty, repository_root, top_option
from ragcontract.contract import defaults
from ragcontract.core import bounds
from ragcontract.core.errors import ExitCode, InputError, OutputError
from ragcontract.core.golden import PLACEHOLDER
from ragcontract.core.lines import Line
from ragcontract.core.numbers import count, mebibytes
from ragcontract.core.questions import unique_slugs
from ragcontract.core.safe_text import visible
from ragcontract.evaluation.source import Inputs
from ragcontract.files.opening import READ_ERRORS, read_within
from ragcontract.files.writing import check_outputs, refuse_existing, write_files, wrong_unless_named
from ragcontract.labelling.checklist import checklist
from ragcontract.labelling.sheet import read_questions

MISSING_ENGINE: Line[Callable[[], str | None]] = Line(home="ragcontract.answers.regexes:missing_engine")
CANDIDATES = "candidates.txt"
EXAMPLE = "How many days do customers have to return a product?"
UNANSWERED = "What does the director of the company earn?"

EXPORT = f"""
Next:
  1. Record what your retriever returns: `rag-contract record search.py:retrieve` calls retrieve(question), which
     returns document ids, and writes {defaults.RUN}. Services, chains, indexes and programs can be recorded, too. Or
     write it yourself, in Python with RunWriter, elsewhere one JSON line per question; see `rag-contract schema run`.
  2. Run `rag-contract label`: it asks which of the documents found answer each question. Or write their ids into
     {defaults.GOLDEN} in place of "{PLACEHOLDER}", or an empty list if none does. Until then, no question can pass.
"""
ANSWERS = f"""
Next:
  1. Record what your application answers: `rag-contract record app.py:answer` calls answer(question), which returns
     the text of the answer, and writes {defaults.RUN}. Services, chains, agents and programs can be recorded, too.
     Or write the run yourself, in Python with RunWriter, elsewhere one JSON line per question, as in
     `rag-contract schema run`.
  2. In {defaults.GOLDEN}, write what each answer must contain in place of "{PLACEHOLDER}". Where your documents have
     no answer, write "rules": [{{{{"type": "must_refuse"}}}}] in place of answer_must_include.
     Until then, `check` exits 2.
"""
TICK = f"""
Next:
  1. In {CANDIDATES}, tick the documents that answer each question.
  2. Run `rag-contract label --ticked {CANDIDATES}`, which writes the labels into {defaults.GOLDEN}.
"""
THEN = f"""\
  3. Run `rag-contract lint`, then `rag-contract check`.
{{once_good}}
  5. In {{workflow}}, put the commands of your project into the steps marked "Replace".
  6. Commit these files and {defaults.BASELINE}. Add {defaults.RUN}, report.md, report.json and junit.xml to .gitignore.
"""
GOOD_RETRIEVER = """\
  4. Once the retriever is good, run `rag-contract suggest --write`, which sets limits in {config}, then
     `rag-contract baseline`. A pull request that changes retrieval on purpose runs `rag-contract baseline --update`."""
GOOD_ANSWERS = """\
  4. Once the answers are good, run `rag-contract baseline`. A pull request that changes answers on purpose runs
     `rag-contract baseline --update`. The limits are in {config}."""
FOLDER = Path(".github", "workflows")
WORKFLOW = (FOLDER / "rag-contract.yml").as_posix()

FOR_EDITORS = f"# yaml-language-server: $schema={defaults.CONFIG_SCHEMA}\n"  # the first line of a config
LIMIT = "minimums:\n  pass_rate: 0.90\n"  # of the config for answers
PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*( [A-Za-z0-9_./-]+)*")
UPLOADED = ("report.md", "report.json", "junit.xml")
NOT_TEXT = {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}


class _Asked(Struct, frozen=True, kw_only=True):
    """The questions for the golden file."""

    questions: dict[str, str]  # by id
    repeated: int = 0  # how many were left out as duplicates
    candidates: str | None = None  # the text of candidates.txt, if it is written


@click.command("init")
@click.option("--questions", metavar="FILE", help="Questions for the golden file, one per line. [one example question]")
@files_option("--from-run", f"Also write what these runs returned to {CANDIDATES}, to tick what is relevant. [none]")
@top_option("With --from-run, how many documents of each run row to list.")
@click.option("--answers", is_flag=True, help="Start a contract over answers instead of documents.")
@click.option("--force", is_flag=True, help="Overwrite the files that exist, see above.")
def command(*, questions: str | None, from_run: Sequence[str], top: int, answers: bool, force: bool) -> int:
    """Write a golden file, a config and a workflow to start from.

    The contract is about documents, or with --answers about what the application says.

    Writes golden.jsonl, ragcontract.yml and .github/workflows/rag-contract.yml; in a folder of a git repository, the
    workflow goes to the repository's root. With --from-run, also writes candidates.txt, for `rag-contract label
    --ticked`. Existing files are reported and never changed. Exits 2 and writes nothing if all of them exist, or the
    one that an option asks for: golden.jsonl with --questions, candidates.txt with --from-run. --force overwrites what
    the options ask for or, without options, all three files.
    """
    refuse_empty({"--questions": [questions], "--from-run": from_run})
    if answers and from_run:
        raise click.UsageError("--answers: its golden queries name no documents to tick; leave out --from-run")
    config = defaults.CONFIG_ALIAS if os.path.lexists(defaults.CONFIG_ALIAS) else defaults.CONFIG
    workflow = workflow_file(Path())
    wanted = [defaults.GOLDEN, config, workflow.path, *([CANDIDATES] if from_run else [])]
    asked_for = {*([defaults.GOLDEN] if questions is not None else []), *([CANDIDATES] if from_run else [])}
    unchanged = _existing(wanted, asked_for, force=force)
    asked = _asked(questions, from_run, top, [EXAMPLE, UNANSWERED] if answers else [EXAMPLE])
    contents = {
        defaults.GOLDEN: golden_file(asked.questions, answers=answers),
        config: FOR_EDITORS + (_config_of_answers(unchanged) if answers else template("ragcontract.yml")),
        workflow.path: workflow.render(
            template("workflow.yml").replace(f"config: {defaults.CONFIG}", f"config: {config}")
        ),
        CANDIDATES: asked.candidates or "",
    }
    _write({name: contents[name] for name in wanted if name not in unchanged}, from_run, force=force)
    if asked.repeated:
        repeated = f"{count(asked.repeated, 'question')} left out, the same as another but for case, space or a stop"
        warn([f"{questions}: {repeated}"])
    if answers and (missing := MISSING_ENGINE.load()()):
        warn([f"a pattern in golden.jsonl {missing}"])
    for name in wanted:
        what = (
            f" ({count(len(asked.questions), 'question')})" if name == defaults.GOLDEN and name not in unchanged else ""
        )
        say(f"{'kept' if name in unchanged else 'wrote'} {visible(name)}{what}\n")
    steps = (ANSWERS if answers else TICK if from_run else EXPORT) + THEN
    once_good = (GOOD_ANSWERS if answers else GOOD_RETRIEVER).format(config=config)
    say(steps.format(once_good=once_good, workflow=visible(workflow.path)))
    return ExitCode.PASS


def _existing(wanted: Sequence[str], asked_for: set[str], *, force: bool) -> list[str]:
    """Return the existing files that are not overwritten; raises OutputError if nothing could be written."""
    existing = [name for name in wanted if os.path.lexists(name)]
    _refuse_links(name for name in existing if not os.path.exists(name))  # noqa: PTH110 (as in wrong_unless_named)
    if force:
        return [name for name in existing if asked_for and name not in asked_for]
    in_the_way = existing if len(existing) == len(wanted) else [name for name in existing if name in asked_for]
    refuse_existing(in_the_way)
    return existing


def _asked(questions: str | None, from_run: Sequence[str], top: int, examples: list[str]) -> _Asked:
    """Return the questions of the file or the run; those of the existing golden file if there is no other source."""
    texts, repeated = read_questions(questions) if questions is not None else ([], 0)
    if not from_run:
        texts = texts or examples
        return _Asked(questions=dict(zip(unique_slugs(texts), texts, strict=True)), repeated=repeated)
    # A golden file that exists stays as it is, so only its questions can be labelled.
    golden_path = defaults.GOLDEN if questions is None else None
    _, sheet = read_sheet(golden_path, texts, from_run, top, may_add=False, config=configured(None))
    if all(question.is_decided(question.labels) for question in sheet.questions):
        raise InputError([f"{from_run[0]}: every question has labels for all that the run returned; nothing to tick"])
    candidates = "".join(checklist(sheet.questions))
    if len(candidates.encode()) > bounds.TICKED:
        advice = "list fewer documents with --top, or use `rag-contract label`"
        raise InputError([f"{CANDIDATES}: would be larger than {mebibytes(bounds.TICKED)}; {advice}"])
    ids = dict(zip(unique_slugs(texts), texts, strict=True))
    return _Asked(questions=ids | sheet.texts, repeated=repeated, candidates=candidates)


def _write(texts: Mapping[str, str], inputs: Sequence[str], *, force: bool) -> None:
    _refuse_links(texts)
    if problems := check_outputs(texts, inputs):
        raise OutputError(problems)
    new = [] if force else texts  # files that somebody has written by now stay, too
    write_files({name: text.encode() for name, text in texts.items()}, before=partial(refuse_existing, new))


def _refuse_links(names: Iterable[str]) -> None:
    if problems := [f"{name}: {why}; remove it" for name in names if (why := wrong_unless_named(name))]:
        raise OutputError(problems)


def template(name: str) -> str:
    """Return the text of a template in the package."""
    return (files("ragcontract") / "templates" / name).read_text("utf-8")


def _config_of_answers(unchanged: Sequence[str]) -> str:
    """Return the config for answers; the limit on the pass rate is commented out if a kept golden file has no rules."""
    text = template("answers.yml")
    if defaults.GOLDEN not in unchanged or _may_have_rules(defaults.GOLDEN):
        return text
    return text.replace(LIMIT, indent(LIMIT, "# "))


def _may_have_rules(path: str) -> bool:
    """Return whether a golden query has rules; a file that cannot be judged yet may have them once it can be."""
    try:
        contract = pipeline.load(Inputs(golden=[path]))
    except InputError:  # nothing is labelled
        return True
    return bool(contract.problems) or any(map(contract.has_rules, contract.queries.values()))


def golden_file(questions: Mapping[str, str], *, answers: bool = False) -> str:
    """Return golden rows for questions by id, with a placeholder for what must be found, or must be in the answer."""
    expected: dict[str, Any] = {"relevant_doc_ids": [PLACEHOLDER]}
    if answers:
        expected = {"answer_must_include": [PLACEHOLDER]}
    refused = {"rules": [{"type": "must_refuse"}]}  # unlike expected_mode, it needs no `mode` of the run
    rows = [
        {"id": name, "query": question, **(refused if question == UNANSWERED else expected)}
        for name, question in questions.items()
    ]
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


class WorkflowFile(Struct, frozen=True, kw_only=True):
    """A workflow that exists or is to be written, and the folder of its contract."""

    path: str  # relative to the current folder
    folder: str  # relative to the repository's root, with slashes; empty at the root and outside of a repository

    def render(self, template: str) -> str:
        """Return the workflow for this folder, made from the template for a contract at the root."""
        return for_folder(template, self.folder) if self.folder else template


def workflow_file(here: Path) -> WorkflowFile:
    """Return the workflow of the contract in the current folder ``here``: the one that exists, or the one to write.

    Raises :class:`OutputError` if a workflow cannot contain the folder's name.
    """
    root = repository_root(here)
    if root is None or root == here.resolve():
        return WorkflowFile(path=WORKFLOW, folder="")
    folder = here.resolve().relative_to(root).as_posix()
    if not folder.isprintable():
        problem = "a workflow cannot name this folder: it has characters that cannot be printed; rename the folder"
        raise OutputError([f"{visible(folder)}: {problem}"])
    others = sum(1 for _ in (root / FOLDER).glob("rag-contract*.yml"))  # no more names than these are taken
    named = itertools.islice(_names(folder), others + 2)
    existing = (path for name in named if _is_for(path := root / FOLDER / name, folder))
    free = (path for name in _names(folder) if not os.path.lexists(path := root / FOLDER / name))
    path = next(itertools.chain(existing, free))
    return WorkflowFile(path=Path(os.path.relpath(path, here.resolve())).as_posix(), folder=folder)


def _names(folder: str) -> Iterator[str]:
    """Yield file names to choose from: the usual one, one with the folder's name, then numbered ones."""
    slug = re.sub(r"[^A-Za-z0-9._]+", "-", folder).strip("-.")[: bounds.FOLDER_NAME] or "folder"
    yield Path(WORKFLOW).name
    yield f"rag-contract-{slug}.yml"
    yield from (f"rag-contract-{slug}-{number}.yml" for number in itertools.count(2))


def _is_for(path: Path, folder: str) -> bool:
    """Return whether a workflow exists and is for the contract in this folder, by its working directory."""
    if not path.is_file():
        return False
    try:
        data, _ = read_within(bounds.CONFIG, str(path))
    except READ_ERRORS:
        return False
    lines = {line.partition(" #")[0].strip() for line in data.decode(errors="replace").splitlines()}
    return f"working-directory: {_scalar(folder)}" in lines


def for_folder(template: str, folder: str) -> str:
    """Return the text of a workflow whose contract is in a folder of the repository.

    Raises ValueError if the template lacks a line that has to change.
    """
    value = _scalar(folder)
    changes = (
        ("\nname: rag-contract\n", f"\nname: {_scalar(f'rag-contract {folder}')}\n"),
        (
            "    name: Check the retrieval contract\n",
            f"    name: {_scalar(f'Check the retrieval contract {folder}')}\n",
        ),
        ("    steps:\n", f"    defaults:\n      run:\n        working-directory: {value}\n    steps:\n"),
        ("-path: requirements.txt\n", f"-path: {_scalar(f'{folder}/requirements.txt')}\n"),
        ("          golden: ", f"          working-directory: {value}\n          name: {value}\n          golden: "),
        *((f"            {name}\n", f"            {_literal(folder)}/{name}\n") for name in UPLOADED),
    )
    for old, new in changes:
        if template.count(old) != 1:
            raise ValueError(f"the template has not exactly one {old!r}")
        template = template.replace(old, new)
    return template


def _scalar(text: str) -> str:
    """Return text as a value in YAML in which GitHub sees no expression; quoted unless it is a plain word."""
    is_plain = PLAIN.fullmatch(text) and text.lower() not in NOT_TEXT
    return text if is_plain else json.dumps(_literal(text), ensure_ascii=False)


def _literal(text: str) -> str:
    """Return text in which GitHub sees no expression."""
    return text.replace("${{", "${{ '${{' }}")
