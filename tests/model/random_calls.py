"""Random tool calls, in the forms that are read, those that cannot be, and under other forms of a tool's name."""

import json
import random
from collections.abc import Callable
from typing import Any

from tests.model.random_answers import INVISIBLE, TOOLS, VALUES
from tests.model.tools import ARGUMENTS
from tests.model.workspace import Row

UNREADABLE = ("{", "[1]", '"x"', "nonsense", '"{\\"id\\": 1}"', '{"id": 1, "id": 2}', '{"id": 1', [1], 3, True)


def call(rng: random.Random, *, wanted: bool = False, trouble: bool = False) -> Row:
    """Return a tool call, in any of the forms that are read; ``trouble``: perhaps in one that is refused."""
    name = rng.choice(TOOLS)
    arguments: Any = {key: rng.choice(VALUES) for key in rng.sample(("id", "to", "n"), rng.randint(0, 3))}
    if wanted:
        return {"name": name, "arguments": arguments} if rng.random() < 0.9 else {"name": name}
    if rng.random() < 0.15:
        name = rng.choice(_other_names(rng, name))()
    kind = rng.random()
    if kind < 0.1:
        arguments = rng.choice(UNREADABLE)
    elif kind < 0.3:
        arguments = json.dumps(arguments)
    elif kind < 0.35:
        arguments = rng.choice((None, "", " "))
    made = rng.choice(_forms(rng, name, arguments))()
    if trouble and rng.random() < 0.03:
        made |= rng.choice(({"tool": "another"}, {"args": {"other": 1}}, {"kwargs": "{"}))
    return made


def _other_names(rng: random.Random, name: str) -> tuple[Callable[[], str], ...]:
    """Return makers of names that may mean a tool, and of names that mean another one."""
    return (
        name.upper,
        name.capitalize,
        lambda: f"functions.{name}",
        lambda: f"a/b/{name}",
        lambda: f"server:{name}",
        lambda: f"mcp__{name}",
        lambda: name[:2] + rng.choice(INVISIBLE[:4]) + name[2:],
        lambda: rng.choice(("sendMail", "send-mail", "SEND_MAIL", "ns.sendMail", "send_mail_now", "sendmail")),
        lambda: f"{name}_status",
        lambda: f"un{name}",
        lambda: f"{name}.status",
    )


def _forms(rng: random.Random, name: str, arguments: Any) -> tuple[Callable[[], Row], ...]:
    return (
        lambda: {"name": name, "arguments": arguments},
        lambda: {"name": name, "arguments": arguments},
        lambda: {"type": "function", "function": {"name": name, "arguments": arguments}},
        lambda: {"type": "function", "function": {"name": name}, "arguments": arguments},
        lambda: {rng.choice(("tool", "tool_name", "name")): name, rng.choice(ARGUMENTS): arguments},
        lambda: {"name": name, rng.choice(ARGUMENTS): arguments},
        lambda: {"name": name, rng.choice(("payload", "data")): rng.choice(({"id": 1}, [], 1, None))},
        lambda: {"name": name, "arguments": arguments, "input": arguments},
    )
