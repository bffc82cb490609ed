"""The command line: the group of commands. The module of a command is imported when the command is called."""

import io
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from copy import copy

import click

from ragcontract.cli.console import say
from ragcontract.contract.defaults import START
from ragcontract.core import bounds
from ragcontract.core.errors import ExitCode, InputError
from ragcontract.core.lines import Line
from ragcontract.core.safe_text import shorten, visible
from ragcontract.core.version import __version__
from ragcontract.files.streams import log_to

REPEATABLE = (
    "--golden",
    "--run",
    "--from-run",
    "--baseline",
    "--scores",
    "--judgments",
    "--qrels",
    "--queries",
    "--topics",
    "--corpus",
    "--samples",
    "--csv",
    "--tag",
    "--query",
    "--secret",
    "--watch",
)
COMPLETION = "_RAG_CONTRACT_COMPLETE"  # with which a shell asks click for words that complete a command line
NEED_NONE = {"history", "init", "render", "schema", "serve", "service"}  # commands that need no contract
ELSEWHERE = ("--golden", "--config", "--from", "--to")  # the options that name a contract, or what to make one from
LACKS_CONTRACT: Line[Callable[[], bool]] = Line(home="ragcontract.cli.options:lacks_contract")
# In the order in which a new contract uses them.
NAMES = (
    "init",
    "label",
    "unjudged",
    "record",
    "claims",
    "judge",
    "check",
    "render",
    "baseline",
    "history",
    "waive",
    "diff",
    "score",
    "compare",
    "validate",
    "suggest",
    "lint",
    "convert",
    "schema",
    "serve",
    "service",
)
COMMANDS: dict[str, Line[click.Command]] = {
    name: Line(names=(name,), home=f"ragcontract.cli.commands.{name}:command") for name in NAMES
}


def main(argv: Sequence[str]) -> int:
    """Run the command line and return the exit code; :mod:`ragcontract.guard` handles the exceptions it raises."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError):  # closed by the shell, or replaced in a test
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        result = cli.main(_spread(argv), prog_name="rag-contract", standalone_mode=False)
    except click.ClickException as error:
        usage = io.StringIO()
        error.show(usage)
        lines = [*usage.getvalue().splitlines(), *([f"Error: {START}"] if _starts_here(argv) else [])]
        say("".join(f"{visible(line.expandtabs(2))}\n" for line in lines), err=True)
        return ExitCode.UNUSABLE_INPUT
    except SystemExit as ended:
        if COMPLETION not in os.environ:
            raise
        return int(ended.code or 0)
    except InputError as error:
        if START not in error.problems and _starts_here(argv):
            error.problems.append(START)
        raise
    except click.Abort as error:
        raise KeyboardInterrupt from error
    return int(result or 0)


def _starts_here(argv: Sequence[str]) -> bool:
    """Return whether a command that failed lacks a contract: there is none here, and no option names one."""
    is_named = any(word.partition("=")[0] in ELSEWHERE for word in argv)
    return not is_named and NEED_NONE.isdisjoint(argv) and LACKS_CONTRACT.load()()


def _spread(argv: Sequence[str]) -> list[str]:
    """Rewrite ``--run a.jsonl b.jsonl``, which an unquoted glob expands to, as ``--run a.jsonl --run b.jsonl``."""
    at = next((index for index, word in enumerate(argv) if not word.startswith("-")), len(argv))
    called = "".join(argv[at : at + 1])
    if called == "compare" or (called == "record" and "".join(argv[at + 1 : at + 2]).startswith("-")):
        # Their arguments may follow an option: `compare --golden g.jsonl a.jsonl b.jsonl`
        return list(argv)
    spread: list[str] = []
    option, values = "", 0
    for word in argv:
        if word.startswith("-"):
            option, has_value, _ = word.partition("=")
            values = len(has_value)
        elif option in REPEATABLE and (called, option) != ("judge", "--judgments"):  # the one file that it writes
            values += 1
            if values > 1:
                spread.append(option)
        spread.append(word)
    return spread


class _Commands(click.Group):
    """A click group that imports the module of a command on demand."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 (click's signature)
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 (click's signature)
        line = COMMANDS.get(cmd_name)
        return line.load() if line else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None and not ctx.resilient_parsing:  # the shell completes what is not written yet
            refuse_several(command, rest, ctx)
        return name, command, rest


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="rag-contract")
@click.option("--verbose", is_flag=True, help="Log details for maintainers to standard error.")
def cli(*, verbose: bool) -> None:
    """Fail the pull request when a RAG application stops finding the right documents.

    Exit codes: 0 pass, 1 the contract is broken, 2 the input cannot be judged, 3 a bug in rag-contract.
    """
    if verbose:
        log_to(sys.stderr)


def refuse_several(command: click.Command, args: Sequence[str], parent: click.Context) -> None:
    """Raise a usage error if an option that takes one value has several; click would silently take the last one."""
    context = click.Context(command, info_name=command.name, parent=parent)
    parser = _with_all_values(command).make_parser(context)
    values, rest, _ = parser.parse_args(list(args))
    wrong = list(_several(command, values))
    if wrong:
        raise click.UsageError("; ".join(wrong), ctx=context)
    if rest and isinstance(command, click.Group) and (inner := command.get_command(context, rest[0])):
        refuse_several(inner, rest[1:], context)


def _with_all_values(command: click.Command) -> click.Command:
    """Return a copy of a command whose parser keeps every value of every option."""
    collecting = copy(command)
    collecting.params = [copy(param) for param in command.params]
    for param in collecting.params:
        if isinstance(param, click.Option) and not param.count:
            param.multiple = True
    return collecting


def _several(command: click.Command, values: dict[str, list[str]]) -> Iterator[str]:
    """Yield a sentence for each option that takes one value and has different ones."""
    for param in command.params:
        if not isinstance(param, click.Option) or param.multiple or param.count:
            continue
        different = list(dict.fromkeys(values.get(param.name or "") or ()))
        if len(different) > 1:
            listed = " and ".join(repr(shorten(str(value), bounds.VALUE)) for value in different[: bounds.NAMES])
            yield f"{param.opts[0]} takes one value and is given {len(different)}, as {listed}; give it once"
