"""Secrets of a command: where they may be written, and how they are kept out of everything else."""

import re
from collections.abc import Mapping
from typing import Any

from ragcontract.http.redaction import Redaction

PLACEHOLDER = re.compile(r"\$\{secret:([A-Za-z_][A-Za-z0-9_]*)\}")


class Secrets:
    """The secrets that the command line names, by name; ``${secret:NAME}`` in a text stands for one."""

    def __init__(self, values: Mapping[str, str]) -> None:
        """Store the values, which come from the environment."""
        self._values = dict(values)
        self._redaction = Redaction(*values.values())

    def unknown_in(self, text: str) -> list[str]:
        """Return the names in a text that the command line does not give."""
        return [name for name in PLACEHOLDER.findall(text) if name not in self._values]

    def filled(self, text: str) -> str:
        """Return a text with the values in place of the names; all of them must be known."""
        return PLACEHOLDER.sub(lambda found: self._values[found[1]], text)

    def redacted(self, value: Any) -> Any:
        """Return a text, or decoded JSON, without the secrets in any form that a server may echo them in."""
        return self._redaction.json(value)


NO_SECRETS = Secrets({})
