"""``rag-contract waive``: adds a waiver for a query to the configuration."""

from collections.abc import Mapping, Sequence
from datetime import date
from functools import partial
from pathlib import Path

import click

from ragcontract.cli.console import say, warn
from ragcontract.cli.options import clock, find_files, refuse_links, takes
from ragcontract.contract import defaults
from ragcontract.contract.config_edits import in_braces, with_waiver
from ragcontract.contract.config_file import read_config
from ragcontract.contract.golden_file import read_golden, refuse_unlabelled
from ragcontract.core.errors import ExitCode, InputError
from ragcontract.core.invisible import is_visible
from ragcontract.core.nearest import NearNames
from ragcontract.core.safe_text import encodable, visible
from ragcontract.evaluation.source import Inputs, find_inputs, folders_above
from ragcontract.files import yaml_tree
from ragcontract.files.locking import digest_of, in_turn, require_unchanged
from ragcontract.files.opening import UTF8_BOM
from ragcontract.files.writing import write_files
from ragcontract.registry import BUILT_IN


def _text(_context: click.Context, _option: click.Parameter, value: str) -> str:
    if not is_visible(value):
        raise click.BadParameter("must not be empty")
    return encodable(value.strip())


def _day(_context: click.Context, _option: click.Parameter, value: str) -> str:
    try:
        day = date.fromisoformat(value)
    except ValueError as error:
        raise click.BadParameter(f"{value!r} is not a date such as 2026-12-31") from error
    if day < clock().date():
        raise click.BadParameter(f"{value} is in the past, so the waiver would not count")
    return day.isoformat()


@click.command("waive")
@click.argument("query")
@click.option("--reason", required=True, callback=_text, metavar="TEXT", help="Why it may stay broken.")
@click.option("--owner", required=True, callback=_text, metavar="NAME", help="Who is responsible for it.")
@click.option("--until", required=True, callback=_day, metavar="DATE", help="The last day (UTC) on which it counts.")
@click.option(
    "--rule",
    type=click.Choice([name for line in BUILT_IN.rules for name in line.names]),
    help="The rule that may be broken. [all rules]",
)
@takes("golden", "config")
def command(*, inputs: Inputs, query: str, reason: str, owner: str, until: str, rule: str | None) -> int:
    """Accept a broken golden query until a date.

    Adds a waiver to the configuration. Its comments and everything else in it stay as they are.
    """
    unnamed = find_inputs(inputs, above=folders_above(Path())).config or defaults.CONFIG
    refuse_links({} if inputs.config else {"config": unnamed})
    inputs = find_files(inputs)
    path = inputs.config or defaults.CONFIG
    wanted = {"query": query, "rule": rule, "reason": reason, "owner": owner, "expires": until}
    waiver = {name: value for name, value in wanted.items() if value is not None}
    config_file = read_config(inputs.config, BUILT_IN, others=inputs.other_configs)
    _refuse_unknown(inputs.golden, query, config_file.config.allow_fields)
    config_file.problems.raise_if_any()
    warn(config_file.problems.warnings)
    with in_turn(path):
        _add(path, waiver)
    say(f"added a waiver for {visible(query)} until {until} to {visible(path)}\n")
    return ExitCode.PASS


def _refuse_unknown(golden: Sequence[str], query: str, allow_fields: Sequence[str]) -> None:
    golden_set = read_golden(golden, BUILT_IN, level=None, allow_fields=allow_fields)
    golden_set.problems.raise_if_any()
    refuse_unlabelled(golden_set)
    if query not in golden_set.queries:
        advice = NearNames(golden_set.queries).advice(query, "waivers name the id of a golden query")
        raise InputError([f"{golden_set.files[0].path}: no golden query has the id {query!r}; {advice}"])


def _add(path: str, waiver: Mapping[str, str]) -> None:
    """Write the configuration with the waiver, unless that would change anything else; call it in turn."""
    data = Path(path).read_bytes() if Path(path).exists() else b""
    mark = UTF8_BOM if data.startswith(UTF8_BOM) else b""
    text = with_waiver(data[len(mark) :].decode(), waiver)
    if text is not None:
        old, new = (yaml_tree.load(source, texts={"query"}) for source in (data, text.encode()))
        waivers = (old.value or {}).get("waivers") or []
        if not new.problems and new.value == {**(old.value or {}), "waivers": [*waivers, waiver]}:
            write_files({path: mark + text.encode()}, before=partial(require_unchanged, path, digest_of(data)))
            return
    raise InputError([f"{path}: is written in a way that cannot be added to; add to its waivers: {in_braces(waiver)}"])
