"""Read the case files of fitz-gov.

Each has cases of one category and one tier, with the settings of fitz-gov's evaluator. The files are in
``tier0_sanity/`` and ``tier1_core/``, with one file per category, or one folder per category in older versions. The
name of a folder or a file counts more than the fields in the file, as it does for fitz-gov.

A field that neither fitz-gov nor this package reads is a warning, once for each name.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from ragcontract.contract.golden_row import Question
from ragcontract.core import bounds
from ragcontract.core.ids import Id, Tag, some
from ragcontract.core.nearest import NearNames
from ragcontract.core.numbers import count
from ragcontract.core.safe_text import shorten
from ragcontract.files.json_lines import HEAD, UNDECODABLE
from ragcontract.files.json_text import JsonLocator, check_nesting, malformed
from ragcontract.files.opening import READ_ERRORS, Progress, read_problem, read_within
from ragcontract.files.problems import Collector, Warned
from ragcontract.files.schema import Mismatch, mismatches

TIERS = {"tier0_sanity": "sanity", "tier1_core": "core"}
Category = Literal["abstention", "dispute", "trustworthy_hedged", "trustworthy_direct", "grounding", "relevance"]
CATEGORIES: tuple[Category, ...] = (
    "abstention",
    "dispute",
    "trustworthy_hedged",
    "trustworthy_direct",
    "grounding",
    "relevance",
)
EXPECTED = "tier0_sanity/, tier1_core/ or files such as grounding.json"


class FitzGovSettings(Struct, frozen=True, kw_only=True):
    """The ``evaluation_config`` of a file or of a case; a case's settings replace the file's."""

    use_regex: bool | UnsetType = UNSET
    case_insensitive: bool | UnsetType = UNSET
    min_required: Annotated[int, Meta(ge=0)] | UnsetType = UNSET
    allowed_phrases: list[str] | UnsetType = UNSET


class FitzGovCase(Struct, frozen=True, kw_only=True):
    """A question with its contexts, and what is expected of the answer."""

    id: Id
    query: Question
    contexts: list[str]
    expected_mode: Literal["trustworthy", "disputed", "abstain"]
    category: Category | None = None
    subcategory: Tag | None = None
    difficulty: Tag = "medium"
    domain: str | None = None
    query_type: str | None = None
    source_type: str | None = "single"
    reasoning_type: str | None = None
    evidence_pattern: str | None = None
    forbidden_claims: list[str] = []
    required_elements: list[str] = []
    forbidden_elements: list[str] = []
    evaluation_config: FitzGovSettings = FitzGovSettings()


class _CaseFile(Struct, frozen=True, kw_only=True):
    cases: list[FitzGovCase]
    category: Category | None = None
    tier: Tag | None = None
    evaluation_config: FitzGovSettings = FitzGovSettings()


class LocatedCase(Struct, frozen=True, kw_only=True):
    """A case with its location, and with what its file and its folder say about it."""

    location: str  # such as `grounding.json:12`
    index: int  # in the file
    case: FitzGovCase
    category: Category
    subcategory: str
    tier: str | None
    file_settings: FitzGovSettings

    def field(self, name: str) -> str:
        """Return the path of a field within the file."""
        return f"cases[{self.index}].{name}"


def in_folders(patterns: Sequence[str], problems: Collector) -> list[str]:
    """Return the patterns with each folder replaced by its case files; a folder without any is a problem."""
    files: list[str] = []
    for pattern in patterns:
        folder = Path(pattern)
        if not pattern or not folder.is_dir():
            files.append(pattern)
        elif inside := list(_files_in(folder)):
            files += map(str, inside)
            _warn_of_others(folder, inside, problems)
        else:
            problems.problem(pattern, f"has no cases of fitz-gov in it; expected {EXPECTED}")
    return files


def _warn_of_others(folder: Path, read: Sequence[Path], problems: Collector) -> None:
    """Warn of what looks like cases in a folder or beside the files that are read, and is not read."""
    ways = {path: None for file in read for path in (file, *file.parents)}
    entries = [entry for way in ways if way == folder or folder in way.parents for entry in _entries(way)]
    if others := [str(entry.relative_to(folder)) for entry in entries if entry not in ways and _may_have_cases(entry)]:
        problems.warning(f"{folder}: not read: {some(others, 'entry')}; expected {EXPECTED}")


def _entries(path: Path) -> list[Path]:
    return sorted(path.iterdir()) if path.is_dir() else []


def _may_have_cases(path: Path) -> bool:
    """Return whether a path is a file with cases in it, or a folder with such a file among its first ones."""
    inside = islice(chain(path.glob("*"), path.glob("*/*")), bounds.CONFIG_SEARCHED)
    return any(map(_has_cases, inside)) if path.is_dir() else _has_cases(path)


def _has_cases(path: Path) -> bool:
    if path.suffix.lower() not in {".json", ".jsonl"} or not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            head = file.read(HEAD)
    except OSError:
        return False
    return b'"cases"' in head or b'"expected_mode"' in head


def _files_in(folder: Path) -> Iterator[Path]:
    """Yield the files that fitz-gov reads from a folder of data, a tier or a category, in its order."""
    if tiers := [folder / tier for tier in TIERS if (folder / tier).is_dir()]:
        for tier in tiers:
            yield from _files_in(tier)
    elif folder.name in CATEGORIES:
        yield from sorted(folder.glob("*.json"))
    else:
        for category in CATEGORIES:
            if (file := folder / f"{category}.json").is_file():
                yield file
            elif (inner := folder / category).is_dir():
                yield from _files_in(inner)


def read_cases(paths: Sequence[str], problems: Collector, progress: Progress) -> Iterator[LocatedCase]:
    """Yield the cases of files; ``problems`` collects what cannot be read."""
    unknown = UnknownFields()
    for path in paths:
        try:
            data, _ = read_within(bounds.CASES, path, progress, beyond="; divide its cases into several files")
        except READ_ERRORS as error:
            problems.problem(path, read_problem(error))
            continue
        try:
            check_nesting(data)
            file = msgspec.json.decode(data, type=_CaseFile)
            text = data.decode()  # fields that are not read may have bytes that are not UTF-8
        except UNDECODABLE as error:
            _explain(path, data, error, problems)
        else:
            locate = JsonLocator(text)
            unknown.add(path, data, locate)
            yield from _located(Path(path), file, locate, problems)
    unknown.warn(problems)


def _explain(path: str, data: bytes, error: Exception, problems: Collector) -> None:
    """Add the problems of a file that cannot be decoded: all of them, but only ``error``, the first, if it is large."""
    faults: list[Mismatch] = []
    if isinstance(error, msgspec.ValidationError) and len(data) <= bounds.EXPLAINED:
        try:
            faults = mismatches(msgspec.json.decode(data), _CaseFile)
        except UNDECODABLE as undecodable:
            error = undecodable
    if not faults:
        line, message = malformed(data, error)
        problems.problem(f"{path}:{line}", message)
        return
    locate = JsonLocator(data.decode())
    for mismatch in faults:
        problems.mismatch(f"{path}:{locate.line(mismatch.path)}", mismatch)


def _located(path: Path, file: _CaseFile, locate: JsonLocator, problems: Collector) -> Iterator[LocatedCase]:
    named = next((name for called in (path.parent.name, path.stem) for name in CATEGORIES if name == called), None)
    if not file.cases:
        problems.problem(str(path), "has no cases in it")
    for index, case in enumerate(file.cases):
        location = f"{path}:{locate.line(('cases', index))}"
        if category := named or file.category or case.category:
            yield LocatedCase(
                location=location,
                index=index,
                case=case,
                category=category,
                subcategory=case.subcategory or path.stem,
                tier=TIERS.get(path.parent.name) or file.tier,
                file_settings=file.evaluation_config,
            )
        else:
            problems.problem(f"{location}: cases[{index}].category", f"is missing; expected {', '.join(CATEGORIES)}")


SETTINGS = frozenset(
    [
        "mode",
        "check_mode_match",
        "use_regex",
        "case_insensitive",
        "min_required",
        "allowed_phrases",
        "note",
        "mode_rationale",
    ]
)
FILE = frozenset(
    [
        "version",
        "description",
        "tier",
        "tier_description",
        "category",
        "mode_rationale",
        "passing_threshold",
        "evaluation_config",
        "cases",
        "sample_size",
        "sampling_method",
        "annotation_guidelines_version",
        "categories_sampled",
    ]
)
CASE = frozenset(
    [
        "id",
        "query",
        "contexts",
        "expected_mode",
        "category",
        "subcategory",
        "difficulty",
        "domain",
        "query_type",
        "source_type",
        "reasoning_type",
        "evidence_pattern",
        "forbidden_claims",
        "required_elements",
        "forbidden_elements",
        "evaluation_config",
        "description",
        "rationale",
        "context_count",
        "context_sources",
        "metadata",
        "original_id",
        "original_category",
        "original_subcategory",
        "original_expected_mode",
        "relabel_reason",
    ]
)
NEAR = {fields: NearNames(sorted(fields)) for fields in (SETTINGS, FILE, CASE)}
FieldPath = tuple[str | int, ...]


class UnknownFields:
    """Collects the fields that fitz-gov does not have, with the first location of each name."""

    def __init__(self) -> None:
        self._first: dict[str, Warned] = {}
        self._more: set[str] = set()

    def add(self, path: str, data: bytes, locate: JsonLocator) -> None:
        """Add the unknown fields in the ``data`` of a case file, which must have been decoded without an error."""
        for at, name, known in _unknown(msgspec.json.decode(data)):
            if name in self._first:
                continue
            if len(self._first) >= bounds.PROBLEMS:
                self._more.add(name)
                continue
            near = NEAR[known].misspelled(name) or NEAR[known].nearest(name)
            advice = f"did you mean {near!r}?" if near else "fitz-gov has no such field"
            location = f"{path}:{locate.line(at)}"
            self._first[name] = Warned.of_field(location, shorten(name, bounds.NAME), near or "", advice)

    def warn(self, problems: Collector) -> None:
        """Warn of each name; of those beyond a limit, only give the number."""
        for warned in self._first.values():
            problems.add(warned)
        if self._more:
            problems.warning(f"and {count(len(self._more), 'more unknown field')} of cases, not read either")


def _unknown(file: Mapping[str, Any]) -> Iterator[tuple[FieldPath, str, frozenset[str]]]:
    """Yield the path and the name of each unknown field, and the fields that are known there."""
    yield from _of((), file, FILE)
    yield from _of(("evaluation_config",), file.get("evaluation_config", {}), SETTINGS)
    for index, case in enumerate(file["cases"]):
        yield from _of(("cases", index), case, CASE)
        yield from _of(("cases", index, "evaluation_config"), case.get("evaluation_config", {}), SETTINGS)


def _of(
    path: FieldPath, names: Iterable[str], known: frozenset[str]
) -> Iterator[tuple[FieldPath, str, frozenset[str]]]:
    yield from (((*path, name), name, known) for name in names if name not in known)
