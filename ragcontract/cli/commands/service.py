"""``rag-contract service``: what the operator of the team service does beside serving."""

import click

from ragcontract.cli.account_commands import token, user


@click.group("service")
def command() -> None:
    """Look after the team service: its database, users and keys."""


command.add_command(user)
command.add_command(token)
