"""What a judge said, replayed for a check: the judgments and the calibration are read, and metrics computed from them.

Nothing is asked: ``rag-contract judge`` has done that. Only contracts with judged metrics import this. Whether limits
on what the judge said count, ``judged_limits`` says.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from datetime import datetime
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ragcontract.answers.evidence import edited
from ragcontract.built_in import BUILT_IN
from ragcontract.contract.resolve import Contract
from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.gate import Gate
from ragcontract.core.metric import MetricSettings
from ragcontract.core.numbers import count
from ragcontract.core.run import SourceFile
from ragcontract.core.text import shorten
from ragcontract.files.opening import Progress, no_progress
from ragcontract.files.problems import Collector, Problems
from ragcontract.judging.lacking_judgments import without_judgments
from ragcontract.metrics.judged_share import JudgedShare
from ragcontract.rules.second_pass import FlaggedAnswer, SecondPass
from ragcontract.runs.calibration import Calibration
from ragcontract.runs.judged_texts import Task
from ragcontract.runs.judgments import Judgment, Judgments, read_judgments
from ragcontract.runs.replaying import Replay
from ragcontract.statistics.judge_trust import checked_calibrations, why_not

Found: TypeAlias = dict[Task, dict[str, tuple[tuple[Judgment, ...], ...]]]

CONFIRMATION: Task = "confirmation"


class Replayed(Struct, frozen=True, kw_only=True):
    """The judgments that a run was scored with, and why limits on them do not count, both by task.

    ``untrusted`` has the reasons by the id of the limit: one on a change is also about whoever judged the baseline.

    ``found`` has those on which metrics are computed, by query, for each of its rows; ``replay`` knows who judged all
    of them, also those of a baseline. A query without any text to judge needs none. ``read``
    counts all judgments in the ``files``, ``without_verdict`` those of them that have none, by their status.
    ``advisory`` says whether limits that do not count are shown without effect, instead of being refused.
    """

    files: tuple[SourceFile, ...] = ()
    calibration_path: str | None = None
    read: int = 0
    without_verdict: Mapping[str, int] = {}
    families: tuple[JudgedShare, ...] = ()
    found: Mapping[Task, MutableMapping[str, tuple[tuple[Judgment, ...], ...]]] = {}
    replay: Replay | None = None
    second_pass: SecondPass | None = None
    flagged: Mapping[str, Sequence[FlaggedAnswer]] = {}
    calibrations: Mapping[Task, Calibration] = {}
    why_not: Mapping[Task, tuple[str, ...]] = {}
    untrusted: Mapping[str, tuple[str, ...]] = {}
    advisory: bool = False
    problems: Problems = Problems()

    def judgments(self, task: Task) -> list[Judgment]:
        """All judgments that were used for a task, in the order of the run; each once, if rows have the same texts."""
        said: list[tuple[str, Iterable[Judgment]]]
        if task == CONFIRMATION:
            said = [(name, answer.said.values()) for name, answers in self.flagged.items() for answer in answers]
        else:
            said = [(name, row) for name, rows in self.found.get(task, {}).items() for row in rows]
        return list({(query_id, one.key): one for query_id, judgments in said for one in judgments}.values())


def replayed_contract(
    contract: Contract,
    paths: Sequence[str],
    calibration: str | None,
    now: datetime,
    progress: Progress = no_progress,
    *,
    stored: bool = False,
) -> tuple[Contract, Replayed]:
    """Return the contract with its judged metrics computed from judgments files, and what is read of files.

    ``found`` is filled when a run is evaluated. Without files, :func:`without_judgments` says what is wrong with that,
    also for a run that is ``stored`` as a baseline.
    """
    problems = Collector()
    calibrations = _calibrations(calibration, problems)
    advisory = contract.config.judge.uncalibrated == "advisory"
    if not paths:
        contract, lacking = without_judgments(contract, stored=stored)
        problems.include(lacking)
        return contract, Replayed(calibrations=calibrations, advisory=advisory, problems=problems.found())
    read = read_judgments(paths, progress, now=now)
    problems.include(read.problems)
    if not read.is_whole:  # what seems to lack may be in the file that is not there
        impossible = {gate.id for gate, _ in judged_gates(contract)}
        contract = replace(contract, impossible=contract.impossible | impossible)
        return contract, Replayed(calibrations=calibrations, advisory=advisory, problems=problems.found())
    replay = _replay(contract, read)
    contract, found = _with_judgments(contract, read, replay)
    second, why = _second_pass(contract, read, replay, calibrations, now=now, problems=problems)
    return contract, Replayed(
        files=read.files,
        calibration_path=calibration,
        read=len(read.by_key),
        without_verdict=Counter(one.status for one in read.by_key.values() if one.status != "ok"),
        families=judged_families(contract),
        found=found,
        replay=replay,
        second_pass=second,
        calibrations=calibrations,
        why_not={CONFIRMATION: why} if why else {},
        advisory=advisory,
        problems=problems.found(),
    )


def _replay(contract: Contract, read: Judgments, fingerprint: str | None = None) -> Replay:
    """Return the judgments that count, of the judge with a fingerprint; those with quotes from elsewhere do not."""
    return Replay(
        read.by_key.values(),
        contract.config.judge,
        fingerprint=fingerprint,
        edited=edited,
        located=read.location,
    )


def _calibrations(path: str | None, problems: Collector) -> dict[Task, Calibration]:
    """Return what a calibration file has, by task."""
    if path is None:
        return {}
    try:
        return checked_calibrations(path)
    except InputError as error:
        problems.include(Problems(problems=tuple(error.problems)))
        return {}


def judged_families(contract: Contract) -> tuple[JudgedShare, ...]:
    """Return the judged metrics of a contract."""
    return tuple([family for family in contract.families if isinstance(family, JudgedShare)])


def judged_gates(contract: Contract) -> list[tuple[Gate, Task]]:
    """Return the limits on what a judge said, with its task."""
    tasks = {family.metric.key: family.task for family in judged_families(contract)}
    return [(gate, tasks[gate.quantity.key]) for gate in contract.gates if gate.quantity.key in tasks]


def _with_judgments(contract: Contract, read: Judgments, replay: Replay) -> tuple[Contract, Found]:
    """Return the contract with its judged metrics, and where what is found for them will be.

    A metric that nothing asks for is shown if the files have judgments for it.
    """
    tasks = {one.task for one in read.by_key.values()}
    known = {metric.key for metric in contract.metrics}
    settings = MetricSettings(cutoffs=(contract.k,))
    further = [family for provider in BUILT_IN.metrics for family in provider(settings)]
    shown = [one for one in further if isinstance(one, JudgedShare) and one.metric.key not in known]
    families = [*contract.families, *(one for one in shown if one.task in tasks)]
    found: Found = {}
    for at, family in enumerate(families):
        if isinstance(family, JudgedShare):
            families[at] = family.replaying(replay, contract.queries, found.setdefault(family.task, {}))
    return replace(contract, families=tuple(families)), found


def _second_pass(
    contract: Contract,
    read: Judgments,
    replay: Replay,
    calibrations: Mapping[Task, Calibration],
    *,
    now: datetime,
    problems: Collector,
) -> tuple[SecondPass | None, tuple[str, ...]]:
    """Return what the judge cleared, if the configuration asks for it, and why it may not clear anything."""
    settings = contract.config.judge
    if not settings.second_pass or not contract.rules:  # a run that is only measured breaks no rule
        return None, ()
    fingerprints = replay.fingerprints(CONFIRMATION, contract.queries.keys())
    given = calibrations.get(CONFIRMATION)
    tasks = calibrations.keys()
    reasons = why_not(given, CONFIRMATION, fingerprints=fingerprints, now=now, others=tasks) if fingerprints else ()
    if reasons:
        why = f"the judge is not calibrated: {'; '.join(reasons)}"
        if settings.uncalibrated == "refuse":
            where = contract.config_file.locations.of("judge") or "judge"
            problems.problem(where, f"second_pass cannot be used: {why}")
            return None, reasons
        problems.warning(f"judge.second_pass has no effect, and what is flagged counts: {why}")
    elif given is not None:
        # Of each query, only the last judge was looked at: what another one said, of a turn perhaps, does not count.
        replay = _replay(contract, read, given.fingerprint)
    return SecondPass(replay, contract.k, settings.unconfirmed, clears=not reasons), reasons


def cleared(replayed: Replayed, contract: Contract) -> Problems:
    """Return warnings about what the judge cleared: a check that passes because of a judge says so."""
    second, problems = replayed.second_pass, Collector()
    found = {} if second is None else second.cleared
    if found:
        problems.warning(f"the judge cleared {count(sum(found.values()), 'violation')} of {_queries(found)}")
    if second is not None and second.unknown_before and contract.only_new:
        what = f"the baseline has flagged texts without a verdict in {_queries(second.unknown_before)}"
        problems.warning(f"{what}: they count as new; judge that run, too, into another file, and name both")
    return problems.found()


def _queries(ids: Iterable[str]) -> str:
    named = list(ids)
    names = ", ".join(repr(shorten(one, bounds.NAME)) for one in named[: bounds.NAMES])
    return f"{count(len(named), 'golden query')}: {names}{', …' if len(named) > bounds.NAMES else ''}"


def of_run(replayed: Replayed) -> Replayed:
    """Return the same when the run is evaluated: with what was flagged in it."""
    return replace(replayed, flagged=replayed.second_pass.found) if replayed.second_pass else replayed


def without_words(replayed: Replayed) -> Replayed:
    """Return the same without what was quoted from documents and answers, and what the judge said in its own words."""
    found = {
        task: {
            query_id: tuple([tuple(map(_without_words, row)) for row in rows]) for query_id, rows in by_query.items()
        }
        for task, by_query in replayed.found.items()
    }
    flagged = {query_id: tuple(map(_unsaid, answers)) for query_id, answers in replayed.flagged.items()}
    return replace(replayed, found=found, flagged=flagged)


def _without_words(judgment: Judgment) -> Judgment:
    return replace(judgment, quote=None, reason="")


def _unsaid(answer: FlaggedAnswer) -> FlaggedAnswer:
    items = tuple([replace(item, text="") for item in answer.items])
    return replace(answer, items=items, said={name: _without_words(one) for name, one in answer.said.items()})
