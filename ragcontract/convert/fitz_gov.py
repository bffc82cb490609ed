"""Convert cases of fitz-gov 4.1.0 to golden queries.

A case has the mode, the claims or the elements that are expected of an answer. As evaluated by fitz-gov, the category
of a case says what is compared: the mode, the claims (``grounding``) or the elements (``relevance``), and nothing else.
Read as a contract, everything that a case expects must hold.
"""

import re
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import UNSET, Struct

from ragcontract.answers.dead_patterns import dead_part
from ragcontract.answers.matchers import pattern_fault
from ragcontract.answers.normalising import normalised
from ragcontract.convert.collection import Collection, Files, First, Format, Part, Query
from ragcontract.convert.fitz_gov_cases import LocatedCase, read_cases
from ragcontract.core import bounds
from ragcontract.core.ids import as_id, some
from ragcontract.files.opening import Progress
from ragcontract.files.problems import Collector
from ragcontract.files.schema import shown

AS_EVALUATED = "fitz-gov-4.1.0"
TAGGED = ("difficulty", "domain", "query_type", "source_type", "reasoning_type", "evidence_pattern")
TEXTS = ("grounding", "relevance")  # the categories that compare claims or elements
UNKNOWN = "unknown"  # what fitz-gov reports for a missing value


class FitzGovEvaluation(Struct, frozen=True, kw_only=True):
    """The settings of a case, with those of its file and with fitz-gov's defaults."""

    use_regex: bool = False
    case_insensitive: bool = True
    min_required: int | None = None
    allowed_phrases: Sequence[str] = ()


def reader(*, as_evaluated: bool = True) -> Callable[[Files, set[Part], Collector, Progress], Collection]:
    """Return a function that reads ``cases`` files, for rules as fitz-gov 4.1.0 evaluates them or for a contract."""

    def read(files: Files, _wanted: set[Part], problems: Collector, progress: Progress) -> Collection:
        converted = _Converted(problems, as_evaluated=as_evaluated)
        first = First(problems)
        queries = {}
        for located in read_cases(files["cases"], problems, progress):
            query_id = as_id(located.case.id)
            if first.is_new(query_id, located.location, located.field("id"), repr(query_id)):
                row = converted.row(located)
                text = located.case.query
                queries[query_id] = Query(id=query_id, text=text, grades={}, location=located.location, answer=row)
        converted.warn()
        return Collection(queries=queries)

    return read


class _Converted:
    """Makes golden rows of cases; ``problems`` collects what cannot be converted."""

    def __init__(self, problems: Collector, *, as_evaluated: bool) -> None:
        self._problems = problems
        self._as_evaluated = as_evaluated
        self._dropped: list[str] = []
        self._dropped_first = ""
        self._never_fail: dict[str, str] = {}  # the cases that expect nothing of an answer, with their locations

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
            self._problem(located, "required_elements", message)
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
                self._problem(located, f"{field}[{index}]", f"{fault}; {advice}")
            elif not value and not self._as_evaluated:
                self._problem(located, f"{field}[{index}]", "is empty, and therefore in every answer; leave it out")
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
                self._problem(located, f"evaluation_config.allowed_phrases[{index}]", fault)
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
                self._problem(located, tag.partition(":")[0], message)
        return tags

    def _problem(self, located: LocatedCase, field: str, message: str) -> None:
        self._problems.problem(f"{located.location}: {located.field(field)}", message)

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
    """Return whether Python's own ``re``, which fitz-gov uses, can compile a pattern."""
    try:
        with warnings.catch_warnings(action="ignore"):
            re.compile(pattern)
    except (re.error, RecursionError, OverflowError):
        return False
    return True


FORMAT = Format(read=reader(), gives={"cases": {"golden"}}, outputs={}, names_documents=False)
