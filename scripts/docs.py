"""Writes the parts of the documents that are made from the code: help texts, tables of fields and of the action.

``make docs`` runs it; ``tests/test_docs.py`` fails where a document is not what it would write.
"""

import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click
import yaml

from ragcontract.cli.commands.init import template
from ragcontract.cli.main import COMMANDS, cli
from ragcontract.files.schema import describe
from ragcontract.schemas import SCHEMAS

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
WORKFLOW = ROOT / "examples" / "workflow.yml"
GUIDE = ROOT / "docs" / "github-action.md"
HELP = ROOT / "docs" / "commands.md"


def render(readme: str) -> str:
    """Return the README with every part that is made from the code made anew."""
    for name, make in PARTS.items():
        readme = replace_part(readme, name, make())
    output = quickstart(readme)
    return replace_block(readme, "quickstart output", f"```text\n{output}```\n")


def render_help(page: str) -> str:
    """Return docs/commands.md with the help texts made anew."""
    return replace_part(page, "help", _help())


def replace_part(document: str, name: str, content: str) -> str:
    """Put content in the place of what is after ``<!-- begin: name -->``; raises ValueError unless that is there."""
    begin, end = f"<!-- begin: {name} -->\n", "<!-- end -->"
    if document.count(begin) != 1:
        raise ValueError(f"the document has {document.count(begin)} parts {name!r}, not one")
    before, _, rest = document.partition(begin)
    return before + begin + content + end + rest.partition(end)[2]


def block(readme: str, name: str) -> str:
    """Return the content of the fenced block after ``<!-- tested: name -->``."""
    match = re.search(rf"<!-- tested: {name} -->\n```\w+\n(.*?)```\n", readme, re.DOTALL)
    if not match:
        raise ValueError(f"the README has no block {name!r}")
    return match[1]


def replace_block(readme: str, name: str, fenced: str) -> str:
    """Put a fenced block in the place of the one after ``<!-- tested: name -->``."""
    return re.sub(
        rf"(<!-- tested: {name} -->\n)```\w+\n.*?```\n", lambda match: match[1] + fenced, readme, flags=re.DOTALL
    )


def quickstart(readme: str) -> str:
    """Run the README's first section in an empty folder and return what its commands print.

    Raises ValueError unless they end with the exit code that the README says.
    """
    bin_folder = Path(sys.executable).parent
    said = re.search(r"^The exit code is (\d)\.", readme, re.MULTILINE)
    with tempfile.TemporaryDirectory() as folder:
        for name, code in (("quickstart files", "0"), ("quickstart commands", said and said[1])):
            done = subprocess.run(
                ["bash", "-c", block(readme, name)],
                cwd=folder,
                env={"PATH": f"{bin_folder}:/usr/bin:/bin"},
                capture_output=True,
                text=True,
                check=False,
            )
            if str(done.returncode) != code:
                raise ValueError(f"the block {name!r} exits {done.returncode}, not {code}: {done.stderr}")
    return done.stdout


def _table(head: Iterable[str], body: Iterable[Iterable[str]]) -> str:
    head = list(head)
    rows = [head, ["---"] * len(head), *body]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |\n" for row in rows)


def _action(section: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())[section]
    return found


def _inputs() -> str:
    body = [
        [f"`{name}`", f"`{spec['default']}`" if spec["default"] else "", spec["description"]]
        for name, spec in _action("inputs").items()
    ]
    return _table(["input", "default", "what it is"], body)


def _outputs() -> str:
    return _table(
        ["output", "what it is"], [[f"`{name}`", spec["description"]] for name, spec in _action("outputs").items()]
    )


def _fields(schema: str, record: str) -> Callable[[], str]:
    def make() -> str:
        definitions = SCHEMAS[schema]()["$defs"]
        definition = definitions[record]
        body = [
            [
                f"`{name}`" + (" (required)" if name in definition["required"] else ""),
                describe(field, definitions),
                field.get("description", ""),
            ]
            for name, field in definition["properties"].items()
        ]
        return _table(["field", "value", "meaning"], body)

    return make


def _contexts() -> list[click.Context]:
    group = cli.make_context("rag-contract", [], resilient_parsing=True)
    commands = [(name, cli.get_command(group, name)) for name in COMMANDS]
    return [
        group,
        *(
            command.make_context(name, [], parent=group, resilient_parsing=True)
            for name, command in commands
            if command
        ),
    ]


def _commands() -> str:
    body = [
        [
            f"[`{context.info_name}`](docs/commands.md#{context.command_path.replace(' ', '-')})",
            context.command.get_short_help_str(limit=100),
        ]
        for context in _contexts()[1:]
    ]
    return _table(["command", "what it does"], body)


def _help() -> str:
    return "\n".join(
        f"## {context.command_path}\n\n```text\n$ {context.command_path} --help\n{_help_of(context)}\n```\n"
        for context in _contexts()
    )


def _help_of(context: click.Context) -> str:
    context.max_content_width = context.terminal_width = 100
    return context.get_help()


PARTS: dict[str, Callable[[], str]] = {
    "action inputs": _inputs,
    "action outputs": _outputs,
    "fields of golden": _fields("golden", "GoldenRow"),
    "fields of run": _fields("run", "RunRow"),
    "fields of result": _fields("run", "Result"),
    "commands": _commands,
}


def render_guide(guide: str) -> str:
    """Return docs/github-action.md with the example's second workflow made anew."""
    name = "examples/workflow-comment.yml"
    return replace_part(guide, name, f"```yaml\n{(ROOT / name).read_text()}```\n")


def render_workflow(workflow: str) -> str:
    """Return examples/workflow.yml made anew: its own head, and what `rag-contract init` writes, for files in rag/."""
    start = "name: rag-contract\n"
    body = start + template("workflow.yml").partition(start)[2]
    body = re.sub(r" ((?:requirements|export_retrieval_run|golden|ragcontract)\.\w+)", r" rag/\1", body)
    body = body.replace("          config: ", "          baseline: rag/baseline.json\n          config: ")
    return workflow.partition(start)[0] + body


if __name__ == "__main__":
    WORKFLOW.write_text(render_workflow(WORKFLOW.read_text()))
    README.write_text(render(README.read_text()))
    GUIDE.write_text(render_guide(GUIDE.read_text()))
    HELP.write_text(render_help(HELP.read_text()))
