"""fitz-gov 4.1.0: cases with the mode, the claims or the elements that are expected of an answer, as golden queries.

As evaluated by fitz-gov, the category of a case says what is compared: the mode, the claims (``grounding``) or the
elements (``relevance``), and nothing else. Read as a contract, everything that a case says must hold.
"""

import re
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import UNSET, Struct

from ragcontract.answers.dead_patterns import dead_part
from ragcontract.answers.matchers import pattern_fault
from ragcontract.answers.normalising import normalised
from ragcontract.convert.collection import Collection, Files, First, Part, Query
from ragcontract.convert.fitz_gov_cases import LocatedCase, read_cases
from ragcontract.core import bounds
from ragcontract.core.ids import as_id, some
from ragcontract.files.opening import Progress
from ragcontract.files.problems import Collector
from ragcontract.files.schema import shown

AS_EVALUATED = "fitz-gov-4.1.0"
TAGGED = ("difficulty", "domain", "query_type", "source_type", "reasoning_type", "evidence_pattern")
TEXTS = ("grounding", "relevance")  # the categories that compare claims or elements
UNKNOWN = "unknown"  # as fitz-gov reports what has no value


class Evaluation(Struct, frozen=True, kw_only=True):
    """The settings of a case, with those of its file and with fitz-gov's defaults."""

    use_regex: bool = False
    case_insensitive: bool = True
    min_required: int | None = None
    allowed_phrases: Sequence[str] = ()


def reader(*, as_evaluated: bool = True) -> Callable[[Files, set[Part], Collector, Progress], Collection]:
    """Return a function that reads ``cases`` files, to be judged as fitz-gov 4.1.0 does or as a contract."""

    def read(files: Files, _wanted: set[Part], problems: Collector, progress: Progress) -> Collection:
        converted = _Converted(problems, as_evaluated=as_evaluated)
        first = First(problems)
        queries = {}
        for found in read_cases(files["cases"], problems, progress):
            query_id = as_id(found.case.id)
            if first.is_new(query_id, found.location, found.field("id"), repr(query_id)):
                row = converted.row(found)
                text = found.case.query
                queries[query_id] = Query(id=query_id, text=text, grades={}, location=found.location, answer=row)
        converted.warn()
        return Collection(queries=queries)

    return read


class _Converted:
    """Makes golden rows of cases; ``problems`` collects what cannot be one."""

    def __init__(self, problems: Collector, *, as_evaluated: bool) -> None:
        self._problems = problems
        self._as_evaluated = as_evaluated
        self._dropped: list[str] = []
        self._dropped_first = ""
        self._never_fail: dict[str, str] = {}  # the cases that expect nothing of an answer, with their locations

    def row(self, found: LocatedCase) -> dict[str, Any]:
        """Return the fields of a golden row beside its id and its question."""
        case, tier = found.case, {"tier": found.tier} if found.tier else {}
        mark = {"as_evaluated": AS_EVALUATED} if self._as_evaluated else {}
        # fitz-gov hands the contexts to the application, so whoever exports a run needs them; check does not read them.
        contexts = {"metadata": {"contexts": case.contexts}}
        expected = self._expected(found)
        if found.category in TEXTS and not any(value for name, value in expected.items() if name != "expected_mode"):
            self._never_fail.setdefault(as_id(case.id), found.location)
        return {**expected, **tier, **mark, "tags": self._tags(found), **contexts}

    def _expected(self, found: LocatedCase) -> dict[str, Any]:
        case, settings = found.case, _evaluation(found)
        mode = {"expected_mode": case.expected_mode}
        if not self._as_evaluated:
            return {**mode, **self._claims(found, settings), **self._elements(found, settings)}
        if found.category == "grounding":
            return {"forbidden_claims": [], **self._claims(found, settings)}
        if found.category == "relevance":
            return self._relevance(found, settings)
        return mode

    def _relevance(self, found: LocatedCase, settings: Evaluation) -> dict[str, Any]:
        """Return the elements as fitz-gov counts them: one is enough by default, and of none there is never one."""
        least = 1 if settings.min_required is None else settings.min_required
        elements = {"required_elements": [], **self._elements(found, settings), "min_required": least}
        return elements if least else {"forbidden_elements": elements.get("forbidden_elements", [])}

    def _claims(self, found: LocatedCase, settings: Evaluation) -> dict[str, Any]:
        claims = self._matchers(found, "forbidden_claims", settings)
        allowed = self._allowed(found, settings) if claims else []
        return _without_empty(forbidden_claims=claims, allowed_phrases=allowed)

    def _elements(self, found: LocatedCase, settings: Evaluation) -> dict[str, Any]:
        required = self._matchers(found, "required_elements", settings)
        least = settings.min_required
        if least and least > len(found.case.required_elements) > 0 and not self._as_evaluated:
            message = f"{least} of {len(found.case.required_elements)} elements can never be found; lower min_required"
            self._problem(found, "required_elements", message)
        return {
            **_without_empty(required_elements=required if least != 0 else []),
            **({"min_required": min(least, len(required))} if required and least else {}),
            **_without_empty(forbidden_elements=self._matchers(found, "forbidden_elements", settings)),
        }

    def _matchers(self, found: LocatedCase, field: str, settings: Evaluation) -> list[dict[str, Any]]:
        """Return texts or regexes; in a contract, one that repeats another is written once."""
        values: list[str] = getattr(found.case, field)
        for index, value in enumerate(values):
            if settings.use_regex and (fault := pattern_fault(value)):
                advice = "escape what is meant literally, or set use_regex to false"
                self._problem(found, f"{field}[{index}]", f"{fault}; {advice}")
            elif not value and not self._as_evaluated:
                self._problem(found, f"{field}[{index}]", "is empty, and therefore in every answer; leave it out")
        if not self._as_evaluated:
            first: dict[str, str] = {}
            for value in values:
                as_it_is = settings.use_regex or len(value) > bounds.PATTERN
                first.setdefault(value if as_it_is else normalised(value), value)
            values = list(first.values())
        return [_matcher("regex" if settings.use_regex else "text", value, settings) for value in values]

    def _allowed(self, found: LocatedCase, settings: Evaluation) -> list[dict[str, Any]]:
        """Return the allowed phrases, always regexes, without the broken ones, which never clear a claim."""
        matchers = []
        for index, phrase in enumerate(settings.allowed_phrases):
            fault = pattern_fault(phrase)
            if not fault:
                matchers.append(_matcher("regex", phrase, settings))
            elif _compiles(phrase) and not dead_part(phrase):
                self._problem(found, f"evaluation_config.allowed_phrases[{index}]", fault)
            else:
                self._dropped.append(phrase)
                self._dropped_first = self._dropped_first or found.location
        return matchers

    def _tags(self, found: LocatedCase) -> list[str]:
        named = {"category": found.category, "subcategory": found.subcategory}
        tags = [f"{name}:{value}" for name, value in named.items()]
        tags += [f"{name}:{getattr(found.case, name) or UNKNOWN}" for name in TAGGED]
        for tag in tags:
            if len(tag) > bounds.TAG:
                message = f"becomes a tag of more than {bounds.TAG:,} characters: {shown(tag)}; shorten it"
                self._problem(found, tag.partition(":")[0], message)
        return tags

    def _problem(self, found: LocatedCase, field: str, message: str) -> None:
        self._problems.problem(f"{found.location}: {found.field(field)}", message)

    def warn(self) -> None:
        """Warn of the cases that no text can fail, and of all allowed phrases that were left out."""
        if self._never_fail:
            which = f"{some(self._never_fail, 'case')} of grounding or relevance without claims or elements to look for"
            effect = "every answer passes" if self._as_evaluated else "only the mode is compared"
            advice = "name forbidden_claims, required_elements or forbidden_elements"
            self._problems.warning(f"{next(iter(self._never_fail.values()))}: {which}: {effect}; {advice}")
        if self._dropped:
            dropped = some(self._dropped, "allowed phrase")
            effect = "no regex that can match, and in fitz-gov such a phrase never allows anything"
            self._problems.warning(f"{self._dropped_first}: {dropped} left out: {effect}")


def _evaluation(found: LocatedCase) -> Evaluation:
    merged: dict[str, Any] = {}
    for settings in (found.file_settings, found.case.evaluation_config):
        given = {name: getattr(settings, name) for name in settings.__struct_fields__}
        merged |= {name: value for name, value in given.items() if value is not UNSET}
    return Evaluation(**merged)


def _matcher(kind: str, value: str, settings: Evaluation) -> dict[str, Any]:
    return {kind: value} if settings.case_insensitive else {kind: value, "ignore_case": False}


def _without_empty(**fields: list[dict[str, Any]]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value}


def _compiles(pattern: str) -> bool:
    """Return whether Python's own ``re``, which fitz-gov uses, can read a pattern."""
    try:
        with warnings.catch_warnings(action="ignore"):
            re.compile(pattern)
    except (re.error, RecursionError, OverflowError):
        return False
    return True
