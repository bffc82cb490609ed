"""Documents, templates, messages and help give one advice: on the baseline, the export, and how to set limits."""

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from ragcontract.cli.main import COMMANDS, cli
from tests.runner import ROOT
from tests.test_docs import DOCUMENTS

TEMPLATES = sorted((ROOT / "ragcontract" / "templates").iterdir())
EXAMPLES = sorted(path for path in (ROOT / "examples").rglob("*") if path.suffix in {".yml", ".py", ".md"})
LIMITS_TEMPLATE = ROOT / "ragcontract" / "templates" / "ragcontract.yml"
WORKFLOW = ROOT / "ragcontract" / "templates" / "workflow.yml"
SOURCES = sorted((ROOT / "ragcontract").rglob("*.py"))
# What is history, or explains to contributors how releases are made.
FOR_USERS = [path for path in DOCUMENTS if path.name not in {"CHANGELOG.md", "CONTRIBUTING.md", "releasing.md"}]
READ = sorted({*TEMPLATES, *EXAMPLES, *SOURCES, *FOR_USERS})

INIT = ROOT / "ragcontract" / "cli" / "commands" / "init.py"
README = ROOT / "README.md"
OF_EXAMPLES = ROOT / "examples" / "README.md"
BASELINES = ROOT / "docs" / "guides" / "baselines.md"


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def sentences(path: Path) -> list[str]:
    """Return the sentences of a text, without what begins its lines as a comment, a quotation or a string."""
    lines = [re.sub(r"^\s*(#|>|\"|f\")?\s*", "", line) for line in path.read_text().splitlines()]
    text = "\n".join(lines)
    return [" ".join(one.split()) for one in re.split(r"(?<=[.:])\s|\n\n", text)]


@pytest.mark.parametrize("path", READ, ids=name_of)
def test_whoever_says_when_to_regenerate_the_baseline_says_in_the_pull_request(path: Path) -> None:
    for sentence in sentences(path):
        if re.search(r"\b(on|in) (the |your )?main( branch)?\b", sentence):
            assert not re.search(r"[Rr]egenerate|[Rr]ecreate|[Cc]reate the baseline|[Uu]pdate the baseline", sentence)


@pytest.mark.parametrize(
    "path",
    [
        INIT,
        README,
        OF_EXAMPLES,
        BASELINES,
        ROOT / "docs" / "reference" / "files.md",
        ROOT / "ragcontract" / "templates" / "workflow.yml",
    ],
    ids=name_of,
)
def test_a_change_on_purpose_updates_the_baseline_in_its_own_pull_request(path: Path) -> None:
    text = " ".join(re.sub(r"^#", "", path.read_text(), flags=re.MULTILINE).split())
    assert re.search(r"pull request that changes retrieval on purpose \[?(regenerates|updates|runs)", text)


LIMITS = [
    INIT,
    README,
    OF_EXAMPLES,
    ROOT / "ragcontract" / "templates" / "ragcontract.yml",
    ROOT / "examples" / "ragcontract.yml",
    ROOT / "docs" / "reference" / "config.md",
]


@pytest.mark.parametrize("path", LIMITS, ids=name_of)
def test_whoever_says_how_to_set_limits_says_suggest(path: Path) -> None:
    text = path.read_text()
    assert re.search(r"`rag-contract suggest(?: --write)?`", text)
    assert "`rag-contract score`" not in text
    assert "today's" not in text


CHOOSING = ROOT / "docs" / "guides" / "choose-limits.md"


@pytest.mark.parametrize(
    ("path", "start"),
    [(INIT, "THEN ="), (README, "## Your own contract"), (CHOOSING, "## Get limits")],
    ids=["init", "README", "choosing-limits"],
)
def test_limits_are_set_before_the_baseline_is_stored_so_that_no_report_calls_them_a_change(
    path: Path, start: str
) -> None:
    steps = path.read_text().partition(start)[2].partition("\n## ")[0]
    assert 0 < steps.index("rag-contract suggest") < steps.index("rag-contract baseline")


EXPORTERS = sorted((ROOT / "examples").rglob("*export*.py"))


@pytest.mark.parametrize("path", [INIT, README, OF_EXAMPLES, ROOT / "examples" / "workflow.yml"], ids=name_of)
def test_whoever_says_how_to_get_a_run_says_record_first(path: Path) -> None:
    text = path.read_text()
    assert 0 < text.index("rag-contract record") < (text + "RunWriter").index("RunWriter")


@pytest.mark.parametrize("path", [INIT, README, *EXPORTERS], ids=name_of)
def test_whoever_says_how_to_export_in_python_says_run_writer(path: Path) -> None:
    text = path.read_text()
    assert "RunWriter" in text
    assert path == INIT or not re.search(r"json\.dumps|write_lines", text)


def quoted(path: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield the commands that a text quotes or shows, each with its options."""
    text = re.sub(r"\\\n[\s#]*", " ", path.read_text())
    shown = "\n".join(re.findall(r"```\w+\n(.*?)```", text, re.DOTALL)) if path.suffix == ".md" else text
    calls = re.findall(
        r"`rag-contract (?!gates`|queries`|docs queries`)([a-z]+)\b([^`\n]*)", text
    )  # these are names in junit.xml
    if path.suffix != ".py":
        calls += re.findall(r"^[\s#$-]*(?:run: )?rag-contract ([a-z]+)\b([^`\n]*)", shown, re.MULTILINE)
    for command, rest in calls:
        yield command, re.findall(r"(?<![\w-])(--[a-z][a-z0-9-]*)", rest.partition(" #")[0])


def with_commands(command: click.Command) -> list[click.Command]:
    """Return a command and its own commands, and theirs."""
    own = command.commands.values() if isinstance(command, click.Group) else ()
    return [command, *(each for one in own for each in with_commands(one))]


def test_every_command_that_is_advised_exists_with_its_options() -> None:
    context = cli.make_context("rag-contract", [], resilient_parsing=True)
    found = {name: cli.get_command(context, name) for name in COMMANDS}
    options = {
        name: {option for one in with_commands(command) for given in one.params for option in given.opts} | {"--help"}
        for name, command in found.items()
        if isinstance(command, click.Command)
    }
    seen = set()
    for path in READ:
        for name, given in quoted(path):
            assert name in options, f"{name_of(path)}: there is no command {name}"
            assert set(given) <= options[name], f"{name_of(path)}: {name} {given}"
            seen.add(name)
    assert seen >= {"baseline", "check", "init", "lint", "suggest", "validate"}
