"""The hidden first line of a comment: which contract it belongs to, which run wrote it, and what it says.

Anyone can write such a line, and whoever may edit a comment can change it: it identifies a comment only together with
its author, and no value in it is believed beyond what a run could have written.
"""

import hashlib
import re
from urllib.parse import quote

from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.github.results import SEVERAL, Result, State

RUN = r" run=([0-9]{1,18})\.([0-9]{1,9}) "  # no more digits than any id and any attempt has
CONTRACT = r"[0-9a-f]{16}"
CONTENT = r"\w{1,16}"
OTHER = re.compile(rf"((?:{CONTRACT}|{SEVERAL})?)\.([0-9]{{1,9}})\.([a-z]{{1,9}})\.({CONTENT})")

STATES: dict[str, State] = {"pass": "pass", "fail": "fail", "error": "error", "unknown": "unknown"}
Run = tuple[int, int]  # id and attempt
NO_RUN: Run = (0, 0)


class Marker(Struct, frozen=True, kw_only=True):
    """The fields of a marker; ``run`` is ``NO_RUN``, which is older than any, if the marker has no credible one.

    ``state``, ``content`` and ``contract`` are of the result that the comment shows, see
    :class:`~ragcontract.github.results.Result`. ``others`` are further results of the same workflow run, in any
    attempt.
    """

    run: Run
    state: State | None
    content: str
    contract: str = ""
    others: tuple[Result, ...] = ()

    @classmethod
    def of(cls, body: str, own_run: Run) -> "Marker":
        """Read the marker of a comment for a run that compares itself with it."""
        line = body[: bounds.MARKER].partition("\n")[0]
        run = re.search(RUN, line)
        found = (int(run[1]), int(run[2])) if run else NO_RUN
        if own_run != NO_RUN and found[0] - own_run[0] > bounds.RUN_AHEAD:
            found = NO_RUN
        return cls(
            run=found,
            state=STATES.get(_field(line, "state", r"\w+")),
            content=_field(line, "content", CONTENT),
            contract=_field(line, "contract", CONTRACT),
            others=_others(_field(line, "others", r"[\w.,]+")),
        )

    @property
    def result(self) -> Result:
        """The result that the comment shows."""
        return Result(self.contract, self.run[1], self.state, self.content)


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
    fields = {
        "run": f"{marker.run[0]}.{marker.run[1]}",
        "state": marker.state,
        "content": marker.content,
        "contract": marker.contract,
        "others": ",".join(f"{one.contract}.{one.attempt}.{one.state}.{one.content}" for one in marker.others),
    }
    return " ".join([head(name), *(f"{field}={value}" for field, value in fields.items() if value), "-->"])


def _field(line: str, name: str, pattern: str) -> str:
    match = re.search(rf" {name}=({pattern}) ", line)
    return match[1] if match else ""


def _others(field: str) -> tuple[Result, ...]:
    matches = map(OTHER.fullmatch, field.split(","))
    return tuple(
        Result(match[1], int(match[2]), STATES[match[3]], match[4]) for match in matches if match and match[3] in STATES
    )
