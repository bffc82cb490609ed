"""The hidden first line of a comment: its contract, the run that wrote it, and the results of that run.

Anyone can write such a line, and whoever may edit a comment can change it. So it identifies a comment only together
with its author, and no value in it is believed beyond what a run could have written. If a workflow run has several
results under one name, the comment shows the worst.
"""

import hashlib
import re
from collections.abc import Iterable
from typing import Literal
from urllib.parse import quote

from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.github.context import Context
from ragcontract.github.settings import ActionSettings

State = Literal["pass", "fail", "error", "unknown"]
BEST_FIRST: tuple[State | None, ...] = (None, "pass", "unknown", "error", "fail")
SEVERAL = "several"  # the contract of a result that stands for those that do not fit


class Result(Struct, frozen=True):
    """The result of one check in one attempt of a workflow run."""

    contract: str  # the fingerprint of contract_of; empty if unknown
    attempt: int
    state: State | None
    content: str  # the fingerprint of the text

    @property
    def badness(self) -> int:
        """The rank of the state; the worst has the highest."""
        return BEST_FIRST.index(self.state)

    def says(self, other: "Result") -> bool:
        """Return whether two results, of any checks, have the same state and content."""
        return (self.state, self.content) == (other.state, other.content)

    def may_be_of(self, contract: str) -> bool:
        """Return whether this can be a result of the contract."""
        return contract != SEVERAL and self.contract in {"", contract}


def standing(results: Iterable[Result]) -> list[Result]:
    """Return the results of one workflow run that no later attempt has replaced.

    A result replaces the one of the same contract in an earlier attempt. If there are two, because two jobs or steps
    cannot be distinguished, it is not known which of them it replaces, and all stay.
    """
    stand: list[Result] = []
    for result in sorted(set(results), key=lambda result: result.attempt):
        earlier = [old for old in stand if old.may_be_of(result.contract) and old.attempt < result.attempt]
        if len(earlier) == 1:
            stand.remove(earlier[0])
        stand.append(result)
    return stand


def listed(results: Iterable[Result]) -> tuple[Result, ...]:
    """Return the results that the marker of a comment lists, the worst first.

    The worst of those that do not fit stands for them until the next workflow run. No result replaces it.
    """
    worst_first = sorted(results, key=lambda result: (-result.badness, result.contract, result.attempt, result.content))
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
    """The fields of a marker."""

    run: Run  # NO_RUN, which is older than any, if the marker has no credible one
    # The result that the comment shows; see Result.
    state: State | None
    content: str
    contract: str = ""
    others: tuple[Result, ...] = ()  # further results of the same workflow run, in any attempt

    @classmethod
    def of(cls, body: str, own_run: Run) -> "Marker":
        """Read the marker of a comment; a run far ahead of ``own_run`` is not credible."""
        line = body[: bounds.MARKER].partition("\n")[0]
        run = re.search(RUN, line)
        run_id = (int(run[1]), int(run[2])) if run else NO_RUN
        if own_run != NO_RUN and run_id[0] - own_run[0] > bounds.RUN_AHEAD:
            run_id = NO_RUN
        return cls(
            run=run_id,
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

    A hash begins with a colon, which no escaped name contains, so that no name can be taken for the hash of another.
    """
    written = quote(name, safe="", errors="surrogateescape")
    if len(written) > bounds.COMMENT_NAME:
        written = f":sha256:{hashlib.sha256(written.encode()).hexdigest()}"
    return f"<!-- rag-contract name={written}"


def digest(content: str) -> str:
    """Return a short fingerprint of a text."""
    return hashlib.sha256(content.encode(errors="surrogateescape")).hexdigest()[:16]


def line(name: str, marker: Marker) -> str:
    """Return the hidden line for a contract of this name."""
    fields = {
        "run": f"{marker.run[0]}.{marker.run[1]}",
        "state": marker.state,
        "content": marker.content,
        "contract": marker.contract,
        "others": ",".join(
            f"{result.contract}.{result.attempt}.{result.state}.{result.content}" for result in marker.others
        ),
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


def contract_of(context: Context, settings: ActionSettings, reported: str = "") -> str:
    """Return a fingerprint of the step, of its place in the matrix, and of the inputs that choose what is checked.

    It distinguishes the contracts of one workflow run that have the same name. It is the same in each attempt, so that
    an attempt replaces its own earlier result and no other. Therefore it includes neither the runner's name nor the
    content of any file: an attempt gets another runner, and may get another run or baseline. ``reported`` is the name
    in a report that another workflow run made, because one step may post the reports of several contracts.
    """
    named = settings.inputs
    inputs = (
        context.step,
        settings.job_index,
        settings.working_directory,
        named.golden,
        named.run,
        named.scores,
        named.judgments,
        named.calibration,
        named.baseline or (),
        named.config,
        named.k,
        named.tags,
        named.repeats,
        settings.report_json if settings.mode == "post-comment" else "",
        *([reported] if reported else []),
    )
    return digest(repr(inputs))
