"""Who is asked and how, for keys; and who replied, for fingerprints, which calibrations are compared by."""

import hashlib
import json
from collections.abc import Collection

from ragcontract.core import bounds
from ragcontract.core.text import shorten
from ragcontract.judge.calls import AGAIN_TEMPERATURE
from ragcontract.judge.interface import Model, Settings
from ragcontract.judge.tasks import PROTOCOL, AskedTask, instructions_of
from ragcontract.runs.judged_texts import WITHOUT, AskedJudge, Case, asked_how, keys_of
from ragcontract.runs.judgments import QueryKey

DIGITS = 16  # of a digest of our own texts, which nobody has a reason to forge


def instructions_digest(task: AskedTask) -> str:
    """Return a digest of all that a task has beside its data; seeds are 0 for the first vote, then 1, 2, …."""
    instructions = instructions_of(task)
    parts = {"system": instructions.system, "schema": instructions.schema, "temperatures": [0.0, AGAIN_TEMPERATURE]}
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:DIGITS]


def asked_judge(task: AskedTask, settings: Settings, model: Model) -> AskedJudge:
    """Return who is asked, and how, as far as that is known before the first reply."""
    return AskedJudge(
        protocol=PROTOCOL,
        instructions=instructions_digest(task),
        model=shorten(model.name, bounds.JUDGE_NAME),
        host=shorten(model.host, bounds.JUDGE_NAME),
        votes=settings.votes,
        confirm=settings.confirm,
    )


def query_keys(case: Case, settings: Settings, model: Model) -> tuple[QueryKey, ...]:
    """Return what the judgments on a case's items are found by, in their order, before anything is asked."""
    judge = asked_judge(case.task, settings, model)
    return tuple([(case.query_id, key) for key in keys_of(case, judge)])


def fingerprint(judge: AskedJudge, models: Collection[str] = (), dropped: Collection[str] = ()) -> str:
    """Return what identifies a judge by what it replied: one that is not the same needs a calibration of its own.

    ``models`` are those that replied; where none did, or none says which it is, it is the one that was asked for.
    """
    names = " + ".join(sorted(models)) or judge.model
    how = asked_how(judge) + (WITHOUT + ", ".join(sorted(dropped)) if dropped else "")
    return shorten(names, bounds.JUDGE_NAME) + shorten(how, bounds.FINGERPRINT - bounds.JUDGE_NAME)
