"""``rag-contract schema``: prints the JSON Schema of a file format."""

import json

import click

from ragcontract.cli.console import say
from ragcontract.core.errors import ExitCode
from ragcontract.schemas import SCHEMAS, schema_of


@click.command("schema")
@click.argument("name", type=click.Choice(list(SCHEMAS)))
def command(name: str) -> int:
    """Print the JSON Schema of a file format."""
    say(json.dumps(schema_of(name), indent=2) + "\n")
    return ExitCode.PASS
