"""The section ``metrics`` of the configuration: options of built-in metrics, and the scores of other tools.

The limit keys of a configuration depend on it, so it is read before the record of the file is made.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, TypeVar, cast

import msgspec
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from ragcontract.core import bounds
from ragcontract.core.config_sections import JUDGED_METRICS
from ragcontract.core.gate import LimitKey
from ragcontract.core.nearest import NearNames
from ragcontract.core.numbers import count
from ragcontract.files.schema import Mismatch, shown
from ragcontract.metrics.named_scores import DeclaredScore
from ragcontract.registry import Registry

# Patterns are compiled where they are used: few configurations declare scores.
NAME = r"[a-z][a-z0-9_]*"
EXAMPLE = "faithfulness"
KIND_OF_LIMIT = re.compile("_(drop|rise)_gt$")
_WIDEST = (-float(bounds.SCORE), float(bounds.SCORE))

T = TypeVar("T", bound=Struct)


class Metrics(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of built-in metrics, and the scores that other tools compute, by metric."""


def names_taken(keys: Iterable[LimitKey]) -> frozenset[str]:
    """Return the names of the built-in metrics and other quantities with these limit keys, without cut-offs."""
    # Scores of other tools may have the names of judged metrics. A declared score then takes the metric's place.
    return frozenset(without_cutoff(key.quantity.key) for key in keys) - JUDGED_METRICS


def without_cutoff(name: str) -> str:
    """Return the name of a metric without its cut-off: ``recall`` of ``recall_at_5`` and ``recall_at_k``."""
    metric, at, cutoff = name.rpartition("_at_")
    is_number = cutoff.isascii() and cutoff.isdecimal() and cutoff[0] != "0"
    return metric if at and (cutoff == "k" or is_number) else name


def declared_in(value: object, registry: Registry, taken: Collection[str]) -> dict[str, Struct]:
    """Return the entries of a configuration that is not validated yet, by metric; an invalid field has its default.

    ``taken`` are the names of :func:`names_taken`. At most ``bounds.SCORES`` scores are returned.
    """
    section = value.get("metrics") if isinstance(value, dict) else None
    options = registry.option_records() if section else {}
    entries: dict[str, Struct] = {}
    scores = 0
    for name, entry in section.items() if isinstance(section, dict) else ():
        if name in options and isinstance(entry, dict):
            entries[name] = _lenient(entry, options[name])
        elif isinstance(entry, dict) and "from" in entry and not _why_not_named(str(name), taken):
            scores += 1
            if scores <= bounds.SCORES:
                entries[str(name)] = _lenient_score(entry)
    return entries


def _lenient_score(entry: Mapping[str, Any]) -> DeclaredScore:
    read = _lenient(entry, DeclaredScore, {"from": "scores"})
    low, high = read.scale
    wrong = low >= high or ("scale" in entry and list(read.scale) != entry["scale"])
    return replace(read, scale=_WIDEST) if wrong else read  # so that limits on it are not called wrong, too


def _lenient(entry: Mapping[str, Any], record: type[T], always: Mapping[str, str] | None = None) -> T:
    """Return the record of an entry; its invalid fields have their defaults."""
    always = always or {}
    read = msgspec.convert(always, record)
    for field in msgspec.structs.fields(record):
        if field.encode_name in entry:
            try:
                valid = msgspec.convert({**always, field.encode_name: entry[field.encode_name]}, record)
            except msgspec.ValidationError:
                continue
            read = replace(read, **{field.name: getattr(valid, field.name)})
    return read


def metrics_record(registry: Registry, declared: Iterable[str] = ()) -> type[Metrics]:
    """Return the record of the section: the built-in metrics with options, and the ``declared`` scores."""
    options: dict[str, type[Struct]] = dict.fromkeys(declared, DeclaredScore) | registry.option_records()
    fields = [(name, record | UnsetType, UNSET) for name, record in options.items()]
    namespace: dict[str, Any] = {"__doc__": Metrics.__doc__}
    made = msgspec.defstruct(
        "Metrics", fields, bases=(Metrics,), namespace=namespace, frozen=True, kw_only=True, forbid_unknown_fields=True
    )
    return cast("type[Metrics]", made)


def written(section: Metrics) -> dict[str, Struct]:
    """Return the entries of a validated section, by metric."""
    entries = {field.name: getattr(section, field.name) for field in msgspec.structs.fields(section)}
    return {name: entry for name, entry in entries.items() if entry is not UNSET}


def wrong_scores(declared: Mapping[str, Struct]) -> Iterator[Mismatch]:
    """Yield what is wrong with scores whose fields are all valid."""
    for name, entry in declared.items():
        if isinstance(entry, DeclaredScore) and entry.scale[0] >= entry.scale[1]:
            fault = f"expected the lowest value and then a higher one, as [1, 5], found {shown(entry.scale)}"
            yield Mismatch(("metrics", name, "scale"), fault)


def why_unknown(name: str, entry: object, registry: Registry, taken: Collection[str]) -> str:
    """Return why an entry under ``metrics`` is invalid, and what to write instead."""
    if isinstance(entry, dict) and "from" in entry:
        too_many = f"is one score too many; at most {count(bounds.SCORES, 'score')} can be declared"
        return _why_not_named(name, taken) or too_many
    if without_cutoff(name) in taken:
        return "is a built-in metric without options; leave the entry out"
    near = NearNames(registry.option_names).advice(name)
    declare = f"a score that another tool computes needs a source: {_example(name)}"
    return f"is not a built-in metric with options; {f'{near} ' if near else ''}{declare}"


def undeclared(section: str, name: str) -> str | None:
    """Return how to declare the metric that a limit needs; None if the key cannot be a limit on a declared metric."""
    metric = KIND_OF_LIMIT.sub("", name)
    if (
        (section in {"fail_on", "history"}) == (metric == name)
        or not re.fullmatch(NAME, metric)
        or len(metric) > bounds.KEY
    ):
        return None
    return f"is not a built-in metric; if another tool computes it, declare it under metrics: {_example(metric)}"


def _example(name: str) -> str:
    return f"`{name if re.fullmatch(NAME, name) else EXAMPLE}: {{from: scores}}`"


def _why_not_named(name: str, taken: Collection[str]) -> str:
    """Return why a score cannot have a name; empty if it can."""
    if not re.fullmatch(NAME, name) or len(name) > bounds.SCORE_NAME:
        letters = f"a lower-case letter, then lower-case letters, digits and _, at most {bounds.SCORE_NAME} characters"
        return f"is not a name for a score; expected {letters}, as {EXAMPLE}"
    if without_cutoff(name) in taken:
        return "is the name of a built-in metric; give the score another name"
    return (
        "ends in _at_k, which stands for the largest cut-off; give the score another name"
        if name.endswith("_at_k")
        else ""
    )
