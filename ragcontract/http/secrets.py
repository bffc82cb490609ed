"""Secrets of a command: where they may be written, and how they are kept out of everything else."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from ragcontract.core import bounds
from ragcontract.core.text import shorten
from ragcontract.http.redaction import Redaction

NAME = r"[A-Za-z_][A-Za-z0-9_]*"
PLACEHOLDER = re.compile(rf"\$\{{secret:({NAME})\}}")
ESCAPE = re.compile(r"\\(?:u00([0-7][0-9A-Fa-f])|([/\\]))")  # of ASCII in JSON; keys have nothing else


class Secrets:
    """The secrets that the command line names, by name; ``${secret:NAME}`` in a text stands for one."""

    def __init__(self, values: Mapping[str, str]) -> None:
        """Store the values, which come from the environment."""
        self._values = dict(values)
        self._redaction = Redaction(*values.values())

    def __bool__(self) -> bool:
        """Whether there is any."""
        return bool(self._values)

    def unknown_in(self, text: str) -> list[str]:
        """Return the names in a text that the command line does not give."""
        return [name for name in PLACEHOLDER.findall(text) if name not in self._values]

    def filled(self, text: str) -> str:
        """Return a text with the values in place of the names; all of them must be known."""
        return PLACEHOLDER.sub(lambda found: self._values[found[1]], text)

    def redacted(self, value: Any) -> Any:
        """Return a text, or decoded JSON, without the secrets in any form that a server may echo them in."""
        return self._redaction.json(value) if self._values else value

    def redacted_json(self, document: str) -> str:
        r"""Return a text that may be JSON without the secrets, also where ``\u`` escapes hide them from a search.

        It is the text itself if it has no secret. The rest need not be JSON any more.
        """
        if not self._values:
            return document
        plain = ESCAPE.sub(lambda found: chr(int(found[1], 16)) if found[1] else found[2], document)
        redacted: str = self._redaction.text(plain)
        return document if redacted == plain else redacted


NO_SECRETS = Secrets({})


def wrong_names(names: Iterable[str], environ: Mapping[str, str]) -> list[str]:
    """Return what is wrong with names of secrets in the environment, as sentences that begin with the name.

    A short secret looks like ordinary text, so it could not be redacted from files.
    """
    wrong = []
    for name in names:
        if not re.fullmatch(NAME, name):
            wrong.append(f"{shorten(name, bounds.NAME)!r}: is no name of an environment variable")
        elif name not in environ:
            wrong.append(f"{name}: there is no environment variable of this name")
        elif len(environ[name]) < bounds.SECRET_LEAST:
            least = f"fewer than {bounds.SECRET_LEAST} characters"
            wrong.append(f"{name}: has {least}, too few to keep it out of what is written")
    return wrong


def of_environment(names: Iterable[str], environ: Mapping[str, str]) -> Secrets:
    """Return the secrets of these names, with which nothing may be wrong."""
    return Secrets({name: environ[name] for name in names})
