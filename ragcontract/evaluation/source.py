"""The inputs of a check, and the sources of its rows: where a run or a baseline is read from.

The inputs are one record, which the command line, the action, pytest, Python and Spark make. A way in puts what was
named into it. Files that nobody named are searched for in one place, under the names of one table.

The baseline is evaluated first, because the documents that it retrieved count as judged in the run.
"""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ragcontract.contract.defaults import (
    DEFAULTS,
    GOLDEN,
    OF_JUDGE,
    REQUIRED,
    SINGLE,
    START,
    lacks_contract,
    like_config,
)
from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.ids import as_id
from ragcontract.core.numbers import count
from ragcontract.core.phrase import Location, listed, render
from ragcontract.core.rule import Plugin
from ragcontract.core.run import SCORED_BY, RunRow, row_type
from ragcontract.core.safe_text import shorten
from ragcontract.evaluation.listed import Listed, ListedResults, listed_ids
from ragcontract.evaluation.observations import Versions
from ragcontract.evaluation.plan import Plan
from ragcontract.evaluation.side import Side, evaluate_side
from ragcontract.files.opening import Progress, no_progress
from ragcontract.files.paths import existing_files
from ragcontract.files.problems import Batch, Problem, Problems
from ragcontract.runs.readers import Reader, RunEvent, open_baseline, open_run

if TYPE_CHECKING:
    from ragcontract.evaluation.past import Past

ENTRY_PREFIX = "history:"  # before the name of an entry of a history, in place of a path
Known = dict[str, int]  # the files that have a query, as the bits of a number; by query id


def is_entry(path: str) -> bool:
    """Return whether what stands in place of a path is an entry of a history."""
    return path.startswith(ENTRY_PREFIX)


def entry_ref(name: str) -> str:
    """Return what stands in place of a path for the entry of this name."""
    return f"{ENTRY_PREFIX}{name}"


class Source(Protocol):
    """Evaluates a plan where the rows are, and returns the side."""

    def evaluate(self, plan: Plan) -> Side:
        """Return the side; its ``problems`` contain everything that is wrong with the rows."""

    def listed(self, plan: Plan) -> Listed:
        """Read the rows a second time; return the results of the queries that the plan for a baseline lists."""

    def rows(self, record: type[RunRow]) -> Iterator[RunRow]:
        """Yield the rows a second time, for reports on all answers; raise InputError if that is impossible."""


class Local(Struct, frozen=True):
    """Rows that are read on this machine."""

    reader: Reader

    def evaluate(self, plan: Plan) -> Side:
        with_metrics = any(not family.from_ids for family in plan.families)
        return evaluate_side(plan, self.reader.events(plan.row_type, with_metrics=with_metrics))

    def listed(self, plan: Plan) -> Listed:
        """Read rows until each listed query has one. If a query has several rows, the first counts."""
        results = ListedResults(plan)
        for event in self.reader.events(plan.row_type):
            if isinstance(event, Batch):
                results.note_listed(event.rows)
                if results.has_all:
                    break
        return Listed(retrieved=results.held, said=results.said)

    def rows(self, record: type[RunRow]) -> Iterator[RunRow]:
        for event in self.reader.events(record):
            if isinstance(event, Batch):
                yield from event.rows


class GoodRuns(Local, frozen=True):
    """Run files on this machine: several good runs, or parts of one run.

    Several runs have all queries each, and the values of a query are the means over the runs. Parts have no common
    query.
    """

    def evaluate(self, plan: Plan) -> Side:
        """Read and evaluate the rows; the side's ``runs`` is the number of runs."""
        files = _Files(plan)
        with_metrics = any(not family.from_ids for family in plan.families)
        events = self.reader.events(plan.row_type, with_metrics=with_metrics)
        side = evaluate_side(replace(plan, repeats=True), files.noted(events))
        return replace(side, rows=replace(side.rows, runs=files.runs))


def evaluate_sides(plan: Plan, run: Source, baseline: Source | None) -> tuple[Side, Side | None]:
    """Return both sides. The baseline has the results of the queries that the run breaks."""
    before = baseline.evaluate(plan.for_baseline()) if baseline else None
    now = run.evaluate(plan.against(before.ids.pools, before.ids.first_ids) if before else plan)
    if plan.scores_files and plan.scores_files.scored_by:
        versions = {**(now.observed(Versions) or {}), SCORED_BY: list(plan.scores_files.scored_by)}
        now = replace(now, observations={**now.observations, Versions: versions})
    if before is None or baseline is None:
        return now, None
    return now, before if now.problems else with_listed(before, baseline, plan, now.listed.retrieved)


def with_listed(side: Side, source: Source, plan: Plan, query_ids: Collection[str]) -> Side:
    """Return a baseline with the results of some queries.

    A stored baseline has them already. A run is read a second time, unless it is a pipe, which is empty by now.
    """
    if not query_ids or side.problems:
        return side
    if side.stored is not None:
        return replace(side, listed=Listed(retrieved=listed_ids(side.ids.first_ids, query_ids, plan)))
    if any(Path(file.path).is_fifo() for file in side.files):
        return side
    return replace(side, listed=source.listed(plan.for_baseline(query_ids)))


WITH_TEXTS = row_type(frozenset({"results.text"}), results_required=False)
Passages = dict[str, dict[str, str]]  # the texts of documents, by query and document


def passages(source: Source, side: Side, wanted: Mapping[str, Collection[str]]) -> Passages:
    """Return the texts that a side has of the ``wanted`` documents of queries, cut to ``bounds.PASSAGE`` characters.

    The rows are read a second time, because most checks do not read the texts of results at all. A run that has no
    texts in its first rows is not read further. A stored baseline has none, and a pipe is empty by now.
    """
    texts: Passages = {}
    if not wanted or side.stored is not None or any(Path(file.path).is_fifo() for file in side.files):
        return texts
    has_texts = False
    try:
        for number, row in enumerate(source.rows(WITH_TEXTS)):
            results = row.results or ()
            has_texts = has_texts or any(result.text for result in results)
            if not has_texts and number >= bounds.ROWS_WITHOUT_TEXTS:
                break
            query_id = as_id(row.query_id)
            if query_id in wanted and query_id not in texts:
                first = {as_id(result.doc_id): result.text for result in reversed(results) if result.text}
                moved = {doc_id: text for doc_id, text in first.items() if doc_id in wanted[query_id]}
                texts[query_id] = {doc_id: shorten(text, bounds.PASSAGE) for doc_id, text in moved.items()}
                if len(texts) == len(wanted):
                    break
    except InputError:  # rows that cannot be read twice, such as those of a generator
        return {}
    return {query_id: of_query for query_id, of_query in texts.items() if of_query}


def file_of_both(run: Side, baseline: Side | None) -> str | None:
    """Return the path of a file that is both run and baseline; None if there is none. A copy does not count."""
    digests = {file.sha256 for file in baseline.files} if baseline else set()
    likely = [file.path for file in run.files if file.sha256 and file.sha256 in digests]
    of_baseline = {Path(file.path).resolve() for file in baseline.files} if baseline and likely else set()
    return next((path for path in likely if Path(path).resolve() in of_baseline), None)


class _Files:
    """Notes which of the files have which golden queries."""

    def __init__(self, plan: Plan) -> None:
        self._golden = plan.golden
        self._paths: list[str] = []
        self._known: Known = {}
        self.runs = 1

    def noted(self, events: Iterable[RunEvent]) -> Iterator[RunEvent]:
        """Yield the events, and then what is wrong with the files as a whole; set ``runs``."""
        lines: dict[str, int] = {}
        for event in events:
            yield event
            if not isinstance(event, Batch):
                continue
            if event.path not in self._paths[-1:]:
                self._paths.append(event.path)
                lines = {}
            for index, row in enumerate(event.rows):
                query_id = as_id(row.query_id)
                if query_id in lines:
                    first = Location(event.path, lines[query_id]) if event.line else event.path
                    yield Problem(
                        event.location(index).at("query_id"),
                        f"duplicate id {query_id!r}, first defined at {first} "
                        "(several rows per query are averaged with --repeats)",
                    )
                elif query_id in self._golden:
                    lines[query_id] = event.line + index
                    self._known[query_id] = self._known.get(query_id, 0) | 1 << len(self._paths) - 1
        yield from self._together()

    def _together(self) -> Iterator[Problem]:
        files = len(self._paths)
        masks = set(self._known.values())
        if masks == {(1 << files) - 1}:
            self.runs = files
            if files > bounds.GOOD_RUNS:
                yield Problem(self._paths[bounds.GOOD_RUNS], f"a baseline is of at most {bounds.GOOD_RUNS} good runs")
        elif any(mask.bit_count() > 1 for mask in masks):
            yield from (Problem(path, why) for number, path in enumerate(self._paths) if (why := self._partly(number)))

    def _partly(self, number: int) -> str | None:
        """Return what is wrong with a file that lacks queries; None if it has all queries."""
        bit = 1 << number
        lacking = [query_id for query_id, mask in self._known.items() if not mask & bit]
        if not lacking:
            return None
        both = [query_id for query_id, mask in self._known.items() if mask & bit and mask != bit]
        also = f", and rows for {_quoted(both)} that they have as well" if both else ""
        return (
            f"has no row for {_quoted(lacking)} of the other files{also}; either each file has all queries, as several "
            "good runs, or none that another has, as parts of one run"
        )


def _quoted(query_ids: Sequence[str]) -> str:
    """Return a text with the number of queries and the first ids."""
    ids = render(listed(query_ids, "and"), repr)
    return f"{count(len(query_ids), 'query')} ({ids})"


Paths: TypeAlias = Sequence[str]


class Inputs(Struct, frozen=True, kw_only=True):
    """The inputs and options of a check. Nothing is read yet."""

    golden: Paths = ()
    run: Paths | Source = ()
    baseline: Paths | Source | None = None
    scores: Paths = ()  # scores files for the run
    judgments: Paths = ()  # judgments files
    calibration: str | None = None  # the file that says how well the judge agrees with people
    config: str | None = None
    other_configs: Paths = ()  # files that nobody named, but that may be meant as the configuration
    unnamed: frozenset[str] = frozenset()  # the inputs that nobody named, for which default names count
    k: int | None = None
    tags: Sequence[str] = ()  # if any: only golden queries with one of them and the limits of these tags are checked
    repeats: bool = False  # a run may have several rows per query
    decides: bool = True  # if false, the run is only measured, without rules or limits
    gates: bool = True  # if false, only the rules decide
    store: bool = False  # the run must be able to become a baseline, and its document ids are kept
    keep_ids: bool = False  # the document ids of the run are kept, without asking that it can become a baseline
    awaits_baseline: bool = False  # while there is no baseline, limits that need one are left out
    replays: bool = True  # if false, judgments are ignored, with the metrics, limits and second pass that need them
    plugins: Mapping[str, Plugin] = {}  # objects for the rule ``custom``, by class name
    no_answers: bool = False  # no output has a text of the application or of its documents
    progress: Progress = no_progress
    past: "Past | None" = None  # the recorded runs, which limits on levels look at; None without a history

    @classmethod
    def named(cls, **values: Any) -> "Inputs":
        """Return the inputs that a way in names; default names count for those that are None or empty."""
        unnamed = frozenset(name for name in DEFAULTS if name in values and values[name] in (None, (), []))
        return cls(**{name: value for name, value in values.items() if name not in unnamed}, unnamed=unnamed)

    @property
    def large(self) -> list[str]:
        """The paths of the inputs that can be large: all but the configuration and the calibration."""
        several = (self.golden, self.run, self.scores, self.baseline, self.judgments)
        return [path for paths in several if isinstance(paths, Sequence) for path in paths]

    @property
    def all(self) -> list[str]:
        return [*self.large, *(path for path in (self.config, self.calibration) if path)]

    def paths(self, name: str) -> list[str]:
        value = getattr(self, name)
        if isinstance(value, str):
            return [value]
        return list(value) if isinstance(value, Sequence) else []

    def without_entry(self) -> "tuple[Inputs, str | None]":
        """Return inputs without a baseline that is an entry of a history, and how the entry is named.

        Raises :class:`InputError` if there is another baseline beside it.
        """
        paths = self.paths("baseline")
        names = [path.removeprefix(ENTRY_PREFIX) for path in paths if is_entry(path)]
        if not names:
            return self, None
        if len(paths) > 1:
            raise InputError([f"baseline: {entry_ref(names[0])} is a baseline by itself; name no other beside it"])
        return replace(self, baseline=None), names[0]

    def sources(self) -> tuple[Source, Source | None]:
        """Return where run and baseline are read from, which is this machine unless they are sources already."""
        run, baseline = self.run, self.baseline
        if isinstance(run, Sequence):
            run = Local(open_run(run, self.progress))
        if isinstance(baseline, Sequence):
            baseline = Local(open_baseline(baseline, self.progress))
        return run, baseline


def find_inputs(named: Inputs, folder: str = "", above: Sequence[Path] = ()) -> Inputs:
    """Return inputs with default files for those that nobody named; paths are relative to ``folder``.

    Golden queries and run must exist; reading them reports it if they do not. Other default files are used if they
    exist. Files that may be meant as the configuration are searched for in the folder, beside the golden files, and, if
    there is no configuration, in the folders ``above`` without golden queries, to which it would belong.

    Raises :class:`InputError` if golden queries are needed, none are named, and there is no contract at all.
    """
    home = Path(folder)
    if "golden" in named.unnamed and named.config is None and lacks_contract(home, above):
        raise InputError([START])

    def inside(paths: Paths) -> list[str]:
        return [path if "://" in path else str(home / path) for path in paths]  # Path would merge the slashes of a URL

    values: dict[str, Any] = {"scores": inside(named.scores)}
    unnamed = set()
    for name, files in DEFAULTS.items():
        paths = named.paths(name)
        if name in named.unnamed:
            # lexists: a broken link is still used, and reading it reports the problem
            existing = (file for file in files if name in REQUIRED or os.path.lexists(home / file))
            paths = [file for file in (next(existing, None),) if file]
            unnamed |= {name} if paths else set()
        values[name] = next((str(home / path) for path in paths), None) if name in SINGLE else inside(paths)
    found = replace(named, **values | {"baseline": values["baseline"] or None}, unnamed=frozenset(unnamed))
    if "config" not in named.unnamed:
        return found
    near = [*like_config(home), *_beside(found.golden, home)]
    if found.config is None:
        near += [path for way in above if not os.path.lexists(way / GOLDEN) for path in like_config(way)]
    others = [str(path) for path in near if found.config is None or not _is_same(path, Path(found.config))]
    return replace(found, other_configs=others)


def folders_above(folder: Path, top: Path | None = None) -> list[Path]:
    """Return the folders above one, up to the root of its Git repository or to ``top``, as paths that go up from it."""
    try:
        full = folder.resolve()
    except OSError:  # it was deleted, which is reported where a file in it is read
        return []
    ways = [full, *full.parents]
    ends = [number for number, way in enumerate(ways) if os.path.lexists(way / ".git")][:1]
    ends += [number for number, way in enumerate(ways) if way == top]
    return [Path(folder, *[".."] * number) for number in range(1, max(ends, default=0) + 1)]


def of_judge(inputs: Inputs, *, needed: bool) -> tuple[Inputs, Problems]:
    """Return the inputs without the judge's files if nobody named them and the contract does not need what it said.

    A warning names them once. A calibration is needed with judgments that somebody named.
    """
    unused = [name for name in OF_JUDGE if name in inputs.unnamed]
    if needed or not unused or (inputs.judgments and "judgments" not in inputs.unnamed):
        return inputs, Problems()
    files = " and ".join(path for name in unused for path in inputs.paths(name))
    options = " and ".join(f"--{name}" for name in unused)
    are, them, further = ("is", "it", "") if len(unused) == 1 else ("are", "them", "s")
    why = "no limit, metric or second pass of the contract needs what a judge said"
    how = f"to use {them} nevertheless, give {options} (in the action, the input{further} {' and '.join(unused)})"
    without = replace(
        inputs,
        judgments=() if "judgments" in unused else inputs.judgments,
        calibration=None if "calibration" in unused else inputs.calibration,
    )
    return without, Problems(warnings=(f"{files} {are} not used, because {why}; {how}",))


def _beside(golden: Sequence[str], home: Path) -> Iterator[Path]:
    """Yield the files that look like a configuration beside golden files in other folders."""
    files, _ = existing_files(golden)  # reading them reports what is wrong with them
    for folder in dict.fromkeys(Path(file).parent for file in files):
        if not _is_same(folder, home):
            yield from like_config(folder)


def _is_same(path: Path, other: Path) -> bool:
    """Return whether two paths lead to one file, through links or where case makes no difference."""
    try:
        return path.samefile(other)
    except OSError:
        return path == other
