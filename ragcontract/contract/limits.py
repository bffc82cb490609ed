"""The keys of ``ragcontract.yml`` that set limits, and the gates made from them.

A key without a value is reported, because null never switches a limit off in silence.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any

from msgspec import Meta, Struct
from msgspec.structs import fields, replace

from ragcontract.contract.config import Locations
from ragcontract.core.gate import Fraction, Gate, Kind, LevelPercentage, LimitKey, Percentage, Quantity
from ragcontract.core.metric import Metric, MetricSettings, Scale
from ragcontract.core.phrase import FieldPath
from ragcontract.files.schema import Mismatch, shown
from ragcontract.registry import Registry

NOTHING_DECLARED: Mapping[str, Struct] = {}
AT_K = re.compile(r"_at_([1-9][0-9]*)(?=_|$)")


def metrics_at(
    registry: Registry, cutoffs: Sequence[int], declared: Mapping[str, Struct] = NOTHING_DECLARED
) -> list[Metric]:
    """Return all metrics of a registry at the given cut-offs, with the ``declared`` entries of a configuration."""
    settings = MetricSettings(cutoffs=tuple(cutoffs), declared=declared)
    return [metric for provider in registry.providers for family in provider(settings) for metric in family.metrics]


def limit_keys(
    registry: Registry,
    cutoffs: Sequence[int],
    others: Sequence[int] = (),
    declared: Mapping[str, Struct] = NOTHING_DECLARED,
) -> list[LimitKey]:
    """Return the limit keys at the effective cut-offs, and at ``others``: those of a file that ``--k`` overrides.

    ``declared`` are the entries of the file's section ``metrics``.
    Raises ValueError if two keys of a section have the same name, which is a mistake in the registry.
    """
    metrics = metrics_at(registry, cutoffs, declared)
    known = {metric.key for metric in metrics}
    metrics += [
        replace(metric, aliases=()) for metric in metrics_at(registry, others or cutoffs) if metric.key not in known
    ]
    keys = [key for metric in metrics for key in keys_of(metric)] + list(registry.quantities)
    names = [(key.section, key.name) for key in keys]
    if repeated := sorted({".".join(name) for name in names if names.count(name) > 1}):
        raise ValueError(f"two limits have the same key: {', '.join(repeated)}")
    return keys


def keys_of(metric: Metric) -> Iterator[LimitKey]:
    """Yield the limit keys of a metric: drop and minimum if higher is better, otherwise rise and maximum.

    Drops have two limits: from the baseline, and from the level of recorded runs. A diagnostic metric has neither.
    """
    quantity = Quantity(
        key=metric.key,
        label=metric.label,
        better=metric.better,
        zero=metric.scale.zero,
        of_change=metric.needs_baseline,
    )
    change: Kind
    of_level: Kind
    bound: Kind
    change, of_level, section, bound = (
        ("drop", "level_drop", "minimums", "minimum")
        if metric.better == "higher"
        else ("rise", "level_rise", "maximums", "maximum")
    )
    names = (*metric.aliases, metric.key)
    for name in names if not metric.diagnostic else ():
        key = f"{name.removesuffix('_at_k')}_{change}_gt"
        yield LimitKey(section="fail_on", name=key, kind=change, quantity=quantity, type=_change(metric.scale))
        yield LimitKey(
            section="history",
            name=key,
            kind=of_level,
            quantity=quantity,
            type=_change(metric.scale, LevelPercentage),
            by_tag=False,
        )
    for name in names:
        yield LimitKey(section=section, name=name, kind=bound, quantity=quantity, type=_value(metric.scale))


def _value(scale: Scale) -> Any:
    if scale == Scale():
        return Fraction
    return Annotated[float, Meta(ge=scale.low, le=scale.high, title=f"a number from {scale.low:g} to {scale.high:g}")]


def _change(scale: Scale, percentage: Any = Percentage) -> Any:
    return _value(Scale(0.0, scale.high - scale.low)) | percentage


def explained(section: str, name: str, keys: Iterable[LimitKey]) -> str | None:
    """Return why a key is unknown, or None; ``section`` may also be a section under a tag.

    Its cut-off is not scored, its direction is wrong, or its limit does not exist by tag.
    """
    listed = list(keys)
    if match := AT_K.search(name):
        generic = [key.name for key in listed if key.section == section]
        if any(AT_K.sub("", name) == AT_K.sub("", other) for other in generic if AT_K.search(other)):
            return f"{match[1]} is not in k; add it there, or name a cut-off that is"
    if any(key.section == section and key.name == name and not key.by_tag for key in listed):
        return "is about all queries; it cannot be limited by tag"
    opposite = {"minimums": "maximums", "maximums": "minimums"}.get(section, section)
    meant = re.sub("_(drop|rise)_gt$", lambda ending: "_rise_gt" if ending[1] == "drop" else "_drop_gt", name)
    other = next((key for key in listed if (key.section, key.name) == (opposite, meant)), None)
    if other and (opposite, meant) != (section, name):
        return f"{other.quantity.better} is better: write {opposite}.{meant}"
    return None


def gates_of(config: Any, keys: Sequence[LimitKey], locations: Locations) -> Iterator[Gate]:
    """Yield a gate for every limit that is set: over all queries, then by tag, then on other quantities.

    ``locations`` has the file and line of each key.
    """
    by_tag = [key for key in keys if key.by_tag]
    for tag, limits in [(None, config), *config.tags.items()]:
        yield from _gates(limits, by_tag, locations, tag)
    yield from _gates(config, [key for key in keys if not key.by_tag], locations, None)


def _gates(limits: Any, keys: Sequence[LimitKey], locations: Locations, tag: str | None) -> Iterator[Gate]:
    for key in keys:
        value = getattr(getattr(limits, key.section, None), key.name, None)
        if value is None:
            continue
        path = (key.section, key.name) if tag is None else ("tags", tag, key.section, key.name)
        if key.by_class is None:
            yield _gate(key, value, path, locations, tag)
        else:
            for name, limit in value.items():
                yield _gate(replace(key, quantity=key.by_class(name)), limit, (*path, name), locations, tag)


def _gate(key: LimitKey, value: float | str, path: tuple[str, ...], locations: Locations, tag: str | None) -> Gate:
    return Gate(
        id=".".join(path),
        location=locations.of(*path),
        quantity=key.quantity,
        kind=key.kind,
        limit=float(value.rstrip("% ")) / 100 if isinstance(value, str) else value,
        relative=isinstance(value, str),
        tag=tag,
    )


NO_VALUE = "has no value; write one, or delete the line"
AFTER_COMMA = re.compile(r"[0-9]{1,9}(?:[eE][0-9]{1,2})?(?: ?%)?")  # what is left of "0,95" after the comma
GLUED = re.compile(r"([A-Za-z_][A-Za-z0-9_]*):(\S.*)", re.DOTALL)


def without_empty_sections(value: Any, record: type[Struct]) -> Any:
    """Return the value of a ``record`` without the sections and lists that are null.

    A section is null where everything below its name is a comment.
    """
    if not isinstance(value, dict):
        return value
    empty = sections(record)
    return {
        key: without_empty_sections(inner, empty.get(key) or Struct)
        for key, inner in value.items()
        if inner is not None or key not in empty
    }


def sections(record: type[Struct]) -> dict[str, type[Struct] | None]:
    """Return the keys of a record that are sections or lists, which may be empty, with the records of the sections."""
    empty: dict[str, type[Struct] | None] = {}
    for field in fields(record):
        if isinstance(field.default, Struct):
            empty[field.name] = type(field.default)
        elif field.default_factory in {dict, list}:
            empty[field.name] = None
    return empty


def keys_without_value(value: Any, explained: Collection[FieldPath], path: FieldPath = ()) -> Iterator[Mismatch]:
    """Yield the keys without a value, apart from those at the paths that are ``explained`` already."""
    if value is None and path not in explained:
        yield Mismatch(path, NO_VALUE)
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, inner in items:
        yield from keys_without_value(inner, explained, (*path, step))


def why_without_value(path: FieldPath, value: Any) -> str | None:
    """Return what an unknown key without a value probably is: the rest of a number, or a key glued to its value."""
    mapping = _at(path[:-1], value)
    key = str(path[-1])
    if not isinstance(mapping, Mapping) or mapping.get(key) is not None:
        return None
    keys = list(mapping)
    before = keys[keys.index(key) - 1] if keys.index(key) else None
    number = mapping.get(before)
    if AFTER_COMMA.fullmatch(key) and isinstance(number, int) and not isinstance(number, bool):
        meant = f"{before}: {number}.{key}"
        return f"is what follows the comma in `{before}: {number},{key}`; with a decimal point, write `{meant}`"
    if match := GLUED.fullmatch(key):
        return f"unknown key without a value; write a blank after the colon of {shown(match[1])}"
    return None


def _at(path: FieldPath, value: Any) -> Any:
    for step in path:
        value = value[step]
    return value
