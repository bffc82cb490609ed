"""An option that takes one value and is given several is refused: click would take the last one silently."""

from collections.abc import Iterator, Sequence
from copy import copy

import click

from ragcontract.core import bounds
from ragcontract.core.text import shorten


def refuse_several(command: click.Command, args: Sequence[str], parent: click.Context) -> None:
    """Raise a usage error if an option of a command, or of its subcommand, has different values in its arguments."""
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
