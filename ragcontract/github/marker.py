"""The hidden first line of a comment: which contract it belongs to, which run wrote it, and what it says.

Anyone can write such a line, and whoever may edit a comment can change it: it identifies a comment only together with
its author, and no value in it is believed beyond what a run could have written.
"""

import hashlib
import re
from typing import Literal
from urllib.parse import quote

from msgspec import Struct

from ragcontract.core import bounds

RUN = r" run=([0-9]{1,18})\.([0-9]{1,9}) "  # no more digits than any id and any attempt has

State = Literal["pass", "fail", "error", "unknown"]
STATES: dict[str, State] = {"pass": "pass", "fail": "fail", "error": "error", "unknown": "unknown"}
Run = tuple[int, int]  # id and attempt
NO_RUN: Run = (0, 0)


class Marker(Struct, frozen=True, kw_only=True):
    """The fields of a marker; ``run`` is ``NO_RUN``, which is older than any, if the marker has no credible one.

    ``contract`` has the two fingerprints of :func:`~ragcontract.github.identity.contract_of`, empty where unknown.
    """

    run: Run
    state: State | None
    content: str
    contract: tuple[str, str] = ("", "")

    @classmethod
    def of(cls, body: str, own_run: Run) -> "Marker":
        """Read the marker of a comment for a run that compares itself with it."""
        line = body[: bounds.MARKER].partition("\n")[0]
        run = re.search(RUN, line)
        found = (int(run[1]), int(run[2])) if run else NO_RUN
        if own_run != NO_RUN and found[0] - own_run[0] > bounds.RUN_AHEAD:
            found = NO_RUN
        inputs, _, files = _field(line, "contract").partition(".")
        state = STATES.get(_field(line, "state"))
        return cls(run=found, state=state, content=_field(line, "content"), contract=(inputs, files))

    def says(self, other: "Marker") -> bool:
        """Return whether two comments say the same, whoever wrote them."""
        return (self.state, self.content) == (other.state, other.content)

    def clashes(self, other: "Marker") -> bool:
        """Return whether another contract's check in the same attempt of the same run came to another result."""
        differs = any(
            ours and theirs and ours != theirs for ours, theirs in zip(self.contract, other.contract, strict=True)
        )
        return differs and self.run == other.run != NO_RUN and not self.says(other)


def head(name: str) -> str:
    """Return the start of a contract's marker; the name is escaped, and hashed if it is too long.

    A hash begins with a colon, which no escaped name contains, so that no name can stand for another.
    """
    written = quote(name, safe="", errors="surrogateescape")
    if len(written) > bounds.COMMENT_NAME:
        written = f":sha256:{hashlib.sha256(written.encode()).hexdigest()}"
    return f"<!-- rag-contract name={written}"


def digest(content: str) -> str:
    """Return a short fingerprint."""
    return hashlib.sha256(content.encode(errors="surrogateescape")).hexdigest()[:16]


def line(name: str, marker: Marker) -> str:
    """Return the hidden line for a contract of this name."""
    run, contract = f"{marker.run[0]}.{marker.run[1]}", ".".join(marker.contract)
    return f"{head(name)} run={run} state={marker.state} content={marker.content} contract={contract} -->"


def _field(line: str, name: str) -> str:
    match = re.search(rf" {name}=([\w.]+)", line)
    return match[1] if match else ""
