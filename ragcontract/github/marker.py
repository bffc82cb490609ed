"""The results that one workflow run has under one name, of which its comment shows the worst.

The hidden first line of a comment: which contract it belongs to, which run wrote it, and what it says.

Anyone can write such a line, and whoever may edit a comment can change it: it identifies a comment only together with
its author, and no value in it is believed beyond what a run could have written.

What distinguishes the contracts that one workflow run checks, where no name does.
"""

import hashlib
import re
from collections.abc import Iterable
from typing import Literal
from urllib.parse import quote

from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.github.context import Context
from ragcontract.github.settings import Settings

State = Literal["pass", "fail", "error", "unknown"]
BEST_FIRST: tuple[State | None, ...] = (None, "pass", "unknown", "error", "fail")
SEVERAL = "several"  # the contract of a result that stands for those that have no room


class Result(Struct, frozen=True):
    """The result of one check in one attempt of a workflow run.

    ``contract`` is the fingerprint of :func:`~ragcontract.github.marker.contract_of`, empty where unknown;
    ``content`` is the fingerprint of the text.
    """

    contract: str
    attempt: int
    state: State | None
    content: str

    @property
    def badness(self) -> int:
        """The rank of the state; the worst has the highest."""
        return BEST_FIRST.index(self.state)

    def says(self, other: "Result") -> bool:
        """Return whether two results are the same, whichever checks they are of."""
        return (self.state, self.content) == (other.state, other.content)

    def may_be_of(self, contract: str) -> bool:
        """Return whether this can be a result of the contract."""
        return contract != SEVERAL and self.contract in {"", contract}


def standing(results: Iterable[Result]) -> list[Result]:
    """Return the results of one workflow run that none of a later attempt has replaced.

    A result replaces the one of the same contract in an earlier attempt. If there are two, because two jobs or steps
    cannot be distinguished, nobody knows which of them it replaces, and all stay.
    """
    stand: list[Result] = []
    for result in sorted(set(results), key=lambda one: one.attempt):
        earlier = [old for old in stand if old.may_be_of(result.contract) and old.attempt < result.attempt]
        if len(earlier) == 1:
            stand.remove(earlier[0])
        stand.append(result)
    return stand


def listed(results: Iterable[Result]) -> tuple[Result, ...]:
    """Return the results that the marker of a comment lists, the worst first.

    The worst of those that have no room stands for them until the next workflow run: no result replaces it.
    """
    worst_first = sorted(results, key=lambda one: (-one.badness, one.contract, one.attempt, one.content))
    room = bounds.COMMENT_RESULTS
    if len(worst_first) <= room:
        return tuple(worst_first)
    rest = worst_first[room - 1]
    return (*worst_first[: room - 1], Result(SEVERAL, rest.attempt, rest.state, rest.content))


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
    :class:`~ragcontract.github.marker.Result`. ``others`` are further results of the same workflow run, in any
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


def contract_of(context: Context, settings: Settings, reported: str = "") -> str:
    """Return a fingerprint of the step, of its place in the matrix, and of the inputs that choose what is checked.

    It is the same in each attempt of a workflow run, so that an attempt replaces its own earlier result and no other.
    Therefore neither the runner's name nor the content of any file is in it: an attempt gets another runner, and may
    get another run or baseline. ``reported`` is the name in a report that another workflow run made: one step may post
    the reports of several contracts.
    """
    inputs = (
        context.step,
        settings.job_index,
        settings.working_directory,
        settings.golden,
        settings.run,
        settings.scores,
        settings.judgments,
        settings.calibration,
        settings.baseline,
        settings.config,
        settings.k,
        settings.tag,
        settings.repeats,
        settings.report_json if settings.mode == "post-comment" else "",
        *([reported] if reported else []),
    )
    return digest(repr(inputs))
