"""Writes the generated parts of the documentation: help texts, tables, the output of the quickstart.

``make docs`` runs it. ``PAGES`` lists the generated parts of each page; ``tests/test_docs.py`` fails if a page is not
up to date.
"""

import inspect
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import yaml

from ragcontract.cli.commands.init import template
from ragcontract.cli.main import COMMANDS, cli
from ragcontract.files.schema import describe
from ragcontract.record.returned.response_forms import FORMS
from ragcontract.schemas import schema_of
from scripts import answers_page
from scripts.components import components
from scripts.limits import Limit, groups
from tests.judge.injections import table as injections

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
WORKFLOW = ROOT / "examples" / "workflow.yml"

SEVERAL = 3  # limits with the same outcome, which then stands above their table
USUAL = {
    "Exit code 2": "Refused (exit code 2)",
    "Cut, with an ellipsis": "Cut, with an ellipsis",
    "The others are counted": "The others are counted",
}
SHARED = 3  # commands that have an option; it is then described once
Render = Callable[[str], str]  # from the current page to the updated one
Part = Callable[[], str]


def main(pages: Mapping[str, Render]) -> None:
    """Update all pages with generated parts, or none of them if one fails."""
    rendered = {name: render((ROOT / name).read_text()) for name, render in pages.items()}
    for name, text in rendered.items():
        (ROOT / name).write_text(text)


def parts(parts: Mapping[str, Part]) -> Render:
    """Return a function that regenerates these parts of a page; ``parts`` maps names to their generators."""

    def render(page: str) -> str:
        for name, make in parts.items():
            page = replace_part(page, name, make())
        return page

    return render


def replace_part(page: str, name: str, content: str) -> str:
    """Replace the part between ``<!-- begin: name -->`` and its end; raises ValueError unless there is exactly one."""
    begin, end = f"<!-- begin: {name} -->\n", "<!-- end -->"
    if page.count(begin) != 1:
        raise ValueError(f"the page has {page.count(begin)} parts {name!r}, not one")
    before, _, rest = page.partition(begin)
    return before + begin + content + end + rest.partition(end)[2]


def block(page: str, name: str) -> str:
    """Return the content of the fenced block after ``<!-- tested: name -->``."""
    match = re.search(rf"<!-- tested: {name} -->\n```\w+\n(.*?)```\n", page, re.DOTALL)
    if not match:
        raise ValueError(f"the page has no block {name!r}")
    return match[1]


def replace_block(page: str, name: str, fenced: str) -> str:
    """Replace the fenced block after ``<!-- tested: name -->``."""
    return re.sub(
        rf"(<!-- tested: {name} -->\n)```\w+\n.*?```\n", lambda match: match[1] + fenced, page, flags=re.DOTALL
    )


def render_quickstart(readme: str) -> str:
    """Return the README with the current output of its quickstart."""
    return replace_block(readme, "quickstart output", f"```text\n{quickstart(readme)}```\n")


def quickstart(readme: str) -> str:
    """Run the README's quickstart in an empty folder and return what its commands print.

    Raises ValueError unless they exit with the code that the README states.
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


def render_workflow(workflow: str) -> str:
    """Return examples/workflow.yml: its own header, then what `rag-contract init` writes, with the files in rag/."""
    start = "name: rag-contract\n"
    body = start + template("workflow.yml").partition(start)[2]
    body = re.sub(r" ((?:requirements|search|golden|ragcontract)\.\w+)", r" rag/\1", body)
    body = body.replace("search.py:retrieve", "search.py:full")
    body = body.replace("          config: ", "          baseline: rag/baseline.json\n          config: ")
    return workflow.partition(start)[0] + body


def _table(head: Iterable[str], body: Iterable[Iterable[str]]) -> str:
    head = list(head)
    rows = [head, ["---"] * len(head), *body]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |\n" for row in rows)


def _action(section: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())[section]
    return found


def _inputs() -> str:
    body = [
        [f"`{name}`", spec["description"] + (f" Default: `{spec['default']}`." if spec["default"] else "")]
        for name, spec in _action("inputs").items()
    ]
    return _table(["input", "description"], body)


def _outputs() -> str:
    return _table(
        ["output", "description"], [[f"`{name}`", spec["description"]] for name, spec in _action("outputs").items()]
    )


def _fields(schema: str, record: str) -> Part:
    def make() -> str:
        definitions = schema_of(schema)["$defs"]
        definition = definitions[record]
        body = []
        for name, field in definition["properties"].items():
            value = describe(field, definitions) + ("; required" if name in definition["required"] else "")
            body.append([f"`{name}`", f"{field.get('description', '')} *{value[0].upper()}{value[1:]}.*".strip()])
        return _table(["field", "meaning and *value*"], body)

    return make


def _contexts() -> list[click.Context]:
    """Return the contexts of all commands, each followed by those of its own commands."""
    group = cli.make_context("rag-contract", [], resilient_parsing=True)
    found = [group]
    for name in COMMANDS:
        command = cli.get_command(group, name)
        if command is None:
            continue
        found.append(command.make_context(name, [], parent=group, resilient_parsing=True))
        of_it = command.commands if isinstance(command, click.Group) else {}
        found += [one.make_context(inner, [], parent=found[-1], resilient_parsing=True) for inner, one in of_it.items()]
    return found


def _commands() -> str:
    body = [
        [
            f"[`{context.command_path.removeprefix('rag-contract ')}`](#{context.command_path.replace(' ', '-')})",
            context.command.get_short_help_str(limit=100),
        ]
        for context in _contexts()[1:]
    ]
    return _table(["command", "description"], body)


def _help() -> str:
    """Return the options that several commands share, then each command with its usage, its text and other options."""
    contexts = _contexts()
    counts = Counter(row for context in contexts for row in set(_options(context)))
    shared = list(dict.fromkeys(row for context in contexts for row in _options(context) if counts[row] >= SHARED))
    table = _table(["option", "meaning"], [[f"`{name}`", meaning] for name, meaning in shared])
    return "\n".join([f"## Shared options\n\n{table}", *(_command(context, shared) for context in contexts)])


def _options(context: click.Context) -> list[tuple[str, str]]:
    """Return each option of a command as its help shows it, and what it means."""
    context.max_content_width = context.terminal_width = 10_000
    records = [param.get_help_record(context) for param in context.command.get_params(context)]
    return [record for record in records if record and not record[0].startswith("-h,")]


def _command(context: click.Context, shared: Sequence[tuple[str, str]]) -> str:
    options = _options(context)
    own = [[f"`{name}`", meaning] for name, meaning in options if (name, meaning) not in shared]
    also = ", ".join(f"`{name.split()[0]}`" for name, meaning in options if (name, meaning) in shared)
    text = inspect.cleandoc(context.command.help or "").replace("\b\n", "")
    usage = context.command.get_usage(context).removeprefix("Usage: ")
    parts = [
        f"## {context.command_path}",
        f"```text\n{usage}\n```",
        text,
        _table(["option", "meaning"], own).rstrip("\n") if own else "",
        f"[Shared options](#shared-options): {also}." if also else "",
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def _components() -> str:
    return _table(["package", "licence", "what for"], components())


def _limits() -> str:
    return "\n".join(
        f"## {group.heading}\n\n" + (f"{group.reasons}\n\n" if group.reasons else "") + "\n".join(_tables(group.limits))
        for group in groups()
    )


def _tables(limits: Sequence[Limit]) -> Iterator[str]:
    """Yield a table for each usual outcome beyond a limit, then one of all others."""
    others = list(limits)
    for beyond, title in USUAL.items():
        same = [limit for limit in limits if limit.beyond == beyond]
        if len(same) >= SEVERAL:
            others = [limit for limit in others if limit.beyond != beyond]
            yield f"{title}:\n\n" + _table(["what", "limit"], [[limit.what, limit.value] for limit in same])
    if others:
        body = [[limit.what, limit.value, limit.beyond] for limit in others]
        yield _table(["what", "limit", "beyond it"], body)


def _returned() -> str:
    return _table(["what is returned", "what it becomes"], [[form.what, form.becomes] for form in FORMS])


def _rules() -> str:
    return _table(["rule", "written in", "holds if"], answers_page.rules())


def _metrics() -> str:
    return _table(["metric", "in reports", "better", "switched on by"], answers_page.metrics())


def _file(name: str) -> Part:
    language = {".yml": "yaml", ".py": "python"}.get(Path(name).suffix, "text")
    return lambda: f"```{language}\n{(ROOT / name).read_text()}```\n"


RECIPES = (  # those that their page shows; the longer workflows are linked
    "examples/recipes/elasticsearch.yml",
    "examples/recipes/gitignore",
    "examples/recipes/gitlab-ci.yml",
    "examples/recipes/index-workflow.yml",
)


def _routes() -> str:
    from scripts import service_api  # needs the extra `service`, which the tests of frameworks lack

    return service_api.table()


PAGES: dict[str, Render] = {
    "README.md": render_quickstart,
    "docs/guides/answers.md": answers_page.render_examples,
    "docs/guides/tool-calls.md": answers_page.render_examples,
    "docs/reference/answers.md": parts({"rules": _rules, "metrics": _metrics}),
    "docs/reference/commands.md": parts({"commands": _commands, "help": _help}),
    "docs/reference/files.md": parts(
        {
            "fields of golden": _fields("golden", "GoldenRow"),
            "fields of run": _fields("run", "RunRow"),
            "fields of scores": _fields("scores", "ScoresRow"),
            "fields of result": _fields("run", "Result"),
        }
    ),
    "docs/guides/recipes.md": parts({name: _file(name) for name in RECIPES}),
    "docs/reference/action.md": parts({"action inputs": _inputs, "action outputs": _outputs}),
    "docs/reference/limits.md": parts({"limits": _limits}),
    "docs/reference/service.md": parts({"routes": _routes}),
    "docs/reference/recording.md": parts({"returned": _returned}),
    "docs/background/judge.md": parts({"injections": injections}),
    "docs/background/security.md": parts({"components": _components}),
    "examples/workflow.yml": render_workflow,
}


if __name__ == "__main__":
    main(PAGES)
