"""Secrets of a command: where they may be written, and how they are kept out of everything else."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
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


def named_secrets(names: Sequence[str], environ: Mapping[str, str]) -> Secrets:
    """Return the secrets that the command line names, from the environment; raises InputError with all problems.

    A short value, or one of several words, could not be told from other text, so it could not be kept out of what is
    written; one with line breaks or other characters than ASCII's printable ones is no header.
    """
    problems = [problem for name in names if (problem := _problem(name, environ.get(name)))]
    if problems:
        raise InputError(problems)
    return Secrets({name: environ[name] for name in names})


def _problem(name: str, value: str | None) -> str:
    if not PLACEHOLDER.fullmatch(f"${{secret:{name}}}"):
        return f"--secret {name!r}: expected the name of an environment variable, not a value"
    if not value:
        return f"--secret {name}: the environment variable {name} is not set, or empty"
    if len(value) < bounds.SECRET:
        return f"--secret {name}: the value is shorter than {bounds.SECRET} characters, so it could not be redacted"
    if not re.fullmatch("[!-~]+", value):
        return f"--secret {name}: the value has a space or a character in it that no header takes"
    return ""


NO_SECRETS = Secrets({})
