"""Fields in files of fitz-gov that neither fitz-gov nor this package reads: each is a warning, once for its name."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from ragcontract.core import bounds
from ragcontract.core.nearest import NearNames
from ragcontract.core.numbers import count
from ragcontract.core.text import shorten
from ragcontract.files.locate import JsonLocator
from ragcontract.files.problems import Collector, Warned

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
Path = tuple[str | int, ...]


class UnknownFields:
    """Collects the fields that fitz-gov has not, with the location of the first of each name."""

    def __init__(self) -> None:
        """Start without any."""
        self._first: dict[str, Warned] = {}
        self._more: set[str] = set()

    def add(self, path: str, data: bytes, locate: JsonLocator) -> None:
        """Look for such fields in the ``data`` of a file of cases, which was decoded without a fault."""
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
        """Warn of each name once, and count those of which there are too many."""
        for warned in self._first.values():
            problems.add(warned)
        if self._more:
            problems.warning(f"and {count(len(self._more), 'more unknown field')} of cases, not read either")


def _unknown(file: Mapping[str, Any]) -> Iterator[tuple[Path, str, frozenset[str]]]:
    """Yield where a field is that is not known, its name, and the fields that are known there."""
    yield from _of((), file, FILE)
    yield from _of(("evaluation_config",), file.get("evaluation_config", {}), SETTINGS)
    for index, case in enumerate(file["cases"]):
        yield from _of(("cases", index), case, CASE)
        yield from _of(("cases", index, "evaluation_config"), case.get("evaluation_config", {}), SETTINGS)


def _of(path: Path, names: Iterable[str], known: frozenset[str]) -> Iterator[tuple[Path, str, frozenset[str]]]:
    yield from (((*path, name), name, known) for name in names if name not in known)
