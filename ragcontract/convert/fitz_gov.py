"""Convert cases of fitz-gov 4.1.0 to golden queries.

A case has the mode, the claims or the elements that are expected of an answer. As evaluated by fitz-gov, the category
of a case says what is compared: the mode, the claims (``grounding``) or the elements (``relevance``), and nothing else.
Read as a contract, everything that a case expects must hold.

A file has cases of one category and one tier, with the settings of fitz-gov's evaluator. The files are in
``tier0_sanity/`` and ``tier1_core/``, with one file per category, or one folder per category in older versions. The
name of a folder or a file counts more than the fields in the file, as it does for fitz-gov. A field that neither
fitz-gov nor this package reads is a warning, once for each name.
"""

import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import chain, islice
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from ragcontract.answers.dead_patterns import dead_part
from ragcontract.answers.matchers import pattern_fault
from ragcontract.answers.normalising import normalised
from ragcontract.contract.golden_row import Question
from ragcontract.convert.collection import Collection, First, Format, Query, Source
from ragcontract.convert.input_files import Document
from ragcontract.core import bounds
from ragcontract.core.ids import Id, Tag, as_id, some
from ragcontract.core.nearest import NearNames
from ragcontract.core.numbers import count
from ragcontract.core.phrase import Location
from ragcontract.core.safe_text import shorten
from ragcontract.files.json_lines import HEAD
from ragcontract.files.json_text import JsonLocator
from ragcontract.files.problems import Collector, Warned
from ragcontract.files.schema import shown

AS_EVALUATED = "fitz-gov-4.1.0"
TAGGED = ("difficulty", "domain", "query_type", "source_type", "reasoning_type", "evidence_pattern")
TEXTS = ("grounding", "relevance")  # the categories that compare claims or elements
UNKNOWN = "unknown"  # what fitz-gov reports for a missing value
TIERS = {"tier0_sanity": "sanity", "tier1_core": "core"}
Category = Literal["abstention", "dispute", "trustworthy_hedged", "trustworthy_direct", "grounding", "relevance"]
CATEGORIES: tuple[Category, ...] = get_args(Category)
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

    location: Location  # such as `grounding.json:12`
    index: int  # in the file
    case: FitzGovCase
    category: Category
    subcategory: str
    tier: str | None
    file_settings: FitzGovSettings

    def at(self, *field: str | int) -> Location:
        """Return the location of a field of the case."""
        return self.location.at("cases", self.index, *field)


class FitzGovEvaluation(Struct, frozen=True, kw_only=True):
    """The settings of a case, with those of its file and with fitz-gov's defaults."""

    use_regex: bool = False
    case_insensitive: bool = True
    min_required: int | None = None
    allowed_phrases: Sequence[str] = ()


def read(source: Source) -> Collection:
    """Read ``cases`` files, for rules as fitz-gov 4.1.0 evaluates them, or for a contract."""
    converted = _Converted(source.problems, as_evaluated=source.options.get("as_evaluated") is not False)
    first = First(source.problems)
    queries = {}
    for located in _read_cases(source):
        query_id = as_id(located.case.id)
        if first.is_new(query_id, located.location, repr(query_id), "cases", located.index, "id"):
            row = converted.row(located)
            text = located.case.query
            queries[query_id] = Query(id=query_id, text=text, grades={}, location=located.location, answer=row)
    converted.warn()
    return Collection(queries=queries)


class _Converted:
    """Makes golden rows of cases; ``problems`` collects what cannot be converted."""

    def __init__(self, problems: Collector, *, as_evaluated: bool) -> None:
        self._problems = problems
        self._as_evaluated = as_evaluated
        self._dropped: list[str] = []
        self._dropped_first: Location | None = None
        self._never_fail: dict[str, Location] = {}  # the cases that expect nothing of an answer, with their locations

    def row(self, located: LocatedCase) -> dict[str, Any]:
        """Return the fields of a golden row beside its id and its question."""
        case, tier = located.case, {"tier": located.tier} if located.tier else {}
        mark = {"as_evaluated": AS_EVALUATED} if self._as_evaluated else {}
        # fitz-gov passes the contexts to the application, so whoever makes a run needs them; check does not read them.
        contexts = {"metadata": {"contexts": case.contexts}}
        expected = self._expected(located)
        if located.category in TEXTS and not any(value for name, value in expected.items() if name != "expected_mode"):
            self._never_fail.setdefault(as_id(case.id), located.location)
        return {**expected, **tier, **mark, "tags": self._tags(located), **contexts}

    def _expected(self, located: LocatedCase) -> dict[str, Any]:
        case, settings = located.case, _evaluation(located)
        mode = {"expected_mode": case.expected_mode}
        if not self._as_evaluated:
            return {**mode, **self._claims(located, settings), **self._elements(located, settings)}
        if located.category == "grounding":
            return {"forbidden_claims": [], **self._claims(located, settings)}
        if located.category == "relevance":
            return self._relevance(located, settings)
        return mode

    def _relevance(self, located: LocatedCase, settings: FitzGovEvaluation) -> dict[str, Any]:
        """Return the elements as fitz-gov counts them: one is enough by default, and without any, a case fails."""
        least = 1 if settings.min_required is None else settings.min_required
        elements = {"required_elements": [], **self._elements(located, settings), "min_required": least}
        return elements if least else {"forbidden_elements": elements.get("forbidden_elements", [])}

    def _claims(self, located: LocatedCase, settings: FitzGovEvaluation) -> dict[str, Any]:
        claims = self._matchers(located, "forbidden_claims", settings)
        allowed = self._allowed(located, settings) if claims else []
        return _without_empty(forbidden_claims=claims, allowed_phrases=allowed)

    def _elements(self, located: LocatedCase, settings: FitzGovEvaluation) -> dict[str, Any]:
        required = self._matchers(located, "required_elements", settings)
        least = settings.min_required
        if least and least > len(located.case.required_elements) > 0 and not self._as_evaluated:
            message = (
                f"{least} of {len(located.case.required_elements)} elements can never be found; lower min_required"
            )
            self._problem(located, message, "required_elements")
        return {
            **_without_empty(required_elements=required if least != 0 else []),
            **({"min_required": min(least, len(required))} if required and least else {}),
            **_without_empty(forbidden_elements=self._matchers(located, "forbidden_elements", settings)),
        }

    def _matchers(self, located: LocatedCase, field: str, settings: FitzGovEvaluation) -> list[dict[str, Any]]:
        """Return a field as texts or regexes, in a contract without repetitions."""
        values: list[str] = getattr(located.case, field)
        for index, value in enumerate(values):
            if settings.use_regex and (fault := pattern_fault(value)):
                advice = "escape what is meant literally, or set use_regex to false"
                self._problem(located, f"{fault}; {advice}", field, index)
            elif not value and not self._as_evaluated:
                self._problem(located, "is empty, and therefore in every answer; leave it out", field, index)
        if not self._as_evaluated:
            first: dict[str, str] = {}
            for value in values:
                as_it_is = settings.use_regex or len(value) > bounds.PATTERN
                first.setdefault(value if as_it_is else normalised(value), value)
            values = list(first.values())
        return [_matcher("regex" if settings.use_regex else "text", value, settings) for value in values]

    def _allowed(self, located: LocatedCase, settings: FitzGovEvaluation) -> list[dict[str, Any]]:
        """Return the allowed phrases, which are regexes, without broken ones, which never allow a claim."""
        matchers = []
        for index, phrase in enumerate(settings.allowed_phrases):
            fault = pattern_fault(phrase)
            if not fault:
                matchers.append(_matcher("regex", phrase, settings))
            elif _compiles(phrase) and not dead_part(phrase):
                self._problem(located, fault, "evaluation_config", "allowed_phrases", index)
            else:
                self._dropped.append(phrase)
                self._dropped_first = self._dropped_first or located.location
        return matchers

    def _tags(self, located: LocatedCase) -> list[str]:
        named = {"category": located.category, "subcategory": located.subcategory}
        tags = [f"{name}:{value}" for name, value in named.items()]
        tags += [f"{name}:{getattr(located.case, name) or UNKNOWN}" for name in TAGGED]
        for tag in tags:
            if len(tag) > bounds.TAG:
                message = f"becomes a tag of more than {bounds.TAG:,} characters: {shown(tag)}; shorten it"
                self._problem(located, message, tag.partition(":")[0])
        return tags

    def _problem(self, located: LocatedCase, message: str, *field: str | int) -> None:
        self._problems.problem(located.at(*field), message)

    def warn(self) -> None:
        """Warn of the cases that every answer passes, and of the allowed phrases that were left out."""
        if self._never_fail:
            which = f"{some(self._never_fail, 'case')} of grounding or relevance without claims or elements to look for"
            effect = "every answer passes" if self._as_evaluated else "only the mode is compared"
            advice = "name forbidden_claims, required_elements or forbidden_elements"
            self._problems.warning(f"{next(iter(self._never_fail.values()))}: {which}: {effect}; {advice}")
        if self._dropped:
            dropped = some(self._dropped, "allowed phrase")
            effect = "not a regex that can match, and in fitz-gov such a phrase never allows anything"
            self._problems.warning(f"{self._dropped_first}: {dropped} left out: {effect}")


def _evaluation(located: LocatedCase) -> FitzGovEvaluation:
    merged: dict[str, Any] = {}
    for settings in (located.file_settings, located.case.evaluation_config):
        values = {name: getattr(settings, name) for name in settings.__struct_fields__}
        merged |= {name: value for name, value in values.items() if value is not UNSET}
    return FitzGovEvaluation(**merged)


def _matcher(kind: str, value: str, settings: FitzGovEvaluation) -> dict[str, Any]:
    return {kind: value} if settings.case_insensitive else {kind: value, "ignore_case": False}


def _without_empty(**fields: list[dict[str, Any]]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value}


def _compiles(pattern: str) -> bool:
    try:
        with warnings.catch_warnings(action="ignore"):
            re.compile(pattern)
    except (re.error, RecursionError, OverflowError):
        return False
    return True


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


def _read_cases(source: Source) -> Iterator[LocatedCase]:
    problems = source.problems
    unknown: dict[str, Warned | None] = {}
    for path in source.files["cases"]:
        beyond = "; divide its cases into several files"
        if (document := Document.read(path, bounds.CASES, problems, source.progress, beyond=beyond)) is None:
            continue
        data = document.data
        if (file := document.value(_CaseFile, problems)) is None:
            continue
        try:
            locate = JsonLocator(data.decode())
        except UnicodeDecodeError as error:  # in a field that is not read
            document.explain(data, 1, error, _CaseFile, problems)
            continue
        for at, name, known in _unknown(msgspec.json.decode(data)):
            if name not in unknown:
                is_named = len(unknown) < bounds.PROBLEMS
                unknown[name] = _warning(name, known, Location(str(path), locate.line(at))) if is_named else None
        yield from _located(Path(path), file, locate, problems)
    for warned in filter(None, unknown.values()):
        problems.add(warned)
    if more := list(unknown.values()).count(None):
        problems.warning(f"and {count(more, 'more unknown field')} of cases, not read either")


def _located(path: Path, file: _CaseFile, locate: JsonLocator, problems: Collector) -> Iterator[LocatedCase]:
    named = next((name for called in (path.parent.name, path.stem) for name in CATEGORIES if name == called), None)
    if not file.cases:
        problems.problem(str(path), "has no cases in it")
    for index, case in enumerate(file.cases):
        location = Location(str(path), locate.line(("cases", index)))
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
            problems.problem(location.at("cases", index, "category"), f"is missing; expected {', '.join(CATEGORIES)}")


# The fields that fitz-gov has.
SETTINGS = frozenset(
    {
        "allowed_phrases", "case_insensitive", "check_mode_match", "min_required", "mode", "mode_rationale", "note",
        "use_regex",
    }
)  # fmt: skip
FILE = frozenset(
    {
        "annotation_guidelines_version", "cases", "categories_sampled", "category", "description", "evaluation_config",
        "mode_rationale", "passing_threshold", "sample_size", "sampling_method", "tier", "tier_description", "version",
    }
)  # fmt: skip
CASE = frozenset(
    {
        "category", "context_count", "context_sources", "contexts", "description", "difficulty", "domain",
        "evaluation_config", "evidence_pattern", "expected_mode", "forbidden_claims", "forbidden_elements", "id",
        "metadata", "original_category", "original_expected_mode", "original_id", "original_subcategory", "query",
        "query_type", "rationale", "reasoning_type", "relabel_reason", "required_elements", "source_type",
        "subcategory",
    }
)  # fmt: skip
FieldPath = tuple[str | int, ...]


def _unknown(file: Mapping[str, Any]) -> Iterator[tuple[FieldPath, str, frozenset[str]]]:
    """Yield the path and the name of each unknown field, and the fields that are known there."""
    places: list[tuple[FieldPath, Mapping[str, Any], frozenset[str]]] = [
        ((), file, FILE),
        (("evaluation_config",), file.get("evaluation_config", {}), SETTINGS),
    ]
    for index, case in enumerate(file["cases"]):
        places.append((("cases", index), case, CASE))
        places.append((("cases", index, "evaluation_config"), case.get("evaluation_config", {}), SETTINGS))
    for path, fields, known in places:
        yield from (((*path, name), name, known) for name in fields if name not in known)


def _warning(name: str, known: frozenset[str], location: Location) -> Warned:
    names = _near_names(known)
    near = names.misspelled(name) or names.nearest(name)
    advice = f"did you mean {near!r}?" if near else "fitz-gov has no such field"
    return Warned.of_field(location, shorten(name, bounds.NAME), near or "", advice)


@cache
def _near_names(known: frozenset[str]) -> NearNames:
    return NearNames(sorted(known))


FORMAT = Format(
    read=read,
    gives={"cases": {"golden"}},
    options=("as_evaluated",),
    in_folders=in_folders,
    names_documents=False,
)
