"""Changes of the contract since a baseline was stored: in golden rows, limits, settings and waivers.

A baseline stores the limits, settings and waivers of the configuration, and what each golden row expected. All
functions are pure.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import inf
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET, Struct

from ragcontract.contract.config import Config, Waiver
from ragcontract.contract.config_file import ConfigFile
from ragcontract.core.gate import Gate
from ragcontract.core.ids import as_id
from ragcontract.core.numbers import percent
from ragcontract.decision.evaluated import Evaluation
from ragcontract.evaluation.observations import UnknownQueries
from ragcontract.runs.baseline_contract import (
    CHANGES,
    ChangedItem,
    ChangeKind,
    ContractChange,
    Documents,
    Effect,
    Expected,
    PastContract,
    PastWaiver,
    Value,
    digest,
    expected_of,
    graded_at,
)

Comparable = tuple[bool, float]  # only numbers with the same first part can be compared
ORDER = {kind: number for number, kind in enumerate(CHANGES)}
VERBS: dict[Effect, str] = {"weaker": "weakened", "changed": "changed", "stricter": "tightened"}  # of limits, settings
# The values of settings, strictest first.
STRICTEST_FIRST: dict[str, Sequence[Value]] = {
    "fail_on.mode": ("noninferiority", "strict", "significant"),  # each fails on all that the next one fails on
    "missing_queries": ("error", "zero"),
    "unjudged": ("count", "skip"),
    "missing_scores": ("error", "zero"),
    "per_query.must_include": ("all", "any"),
    "per_query.fail_on": ("any", "new", "pass_rate"),
    "answers.missing_modes": ("error", "fail"),
    "answers.refusal": ("phrases", "evidence"),
    "judge.uncalibrated": ("refuse", "advisory"),
    "judge.second_pass": (False, True),
}
ENFORCED: Sequence[Value] = (True, "new", False)
SWITCH = "per_query.enforce_"
# Fields of a query with the kind of their change; those without one are added or removed.
SWITCHES: dict[str, ChangeKind] = {
    "as_evaluated": "",
    "tags": "tags_changed",
    "tier": "tiers_changed",
    "grades": "grades_changed",
}
RULES_AS_WELL = {"expected_mode"}
LEVEL = "relevance_level"
MODE, ALPHA = "fail_on.mode", "fail_on.alpha"
LOWER_IS_WEAKER = {ALPHA, "per_query.forbidden_within", "history.window"}
SINCE = "history.since"
# A composite is a rule of each query, too, but no query is compared if the golden files are those of the baseline.
COMPOSITE = "answers.composite"
COMPOSITE_MINIMUM = f"{COMPOSITE}.minimum"
# The cut-offs are in the baseline's ``k``, limits on tags and tiers are gates, a composite is two settings.
REMEMBERED_APART = {"k", "tags", "waivers", "tiers", COMPOSITE}
SHORT = 8  # digits of a digest that tells lists apart
PERCENT_DIGITS = 9  # as many decimals as a limit may have


class Step(NamedTuple):
    """One change of one item."""

    kind: ChangeKind
    item: ChangedItem
    number: int = 1  # how many rules changed


def contract_changes(evaluation: Evaluation, *, cutoff: bool = False) -> list[ContractChange] | None:
    """Return how the contract differs from the baseline's, weakened parts first; None if the baseline has no contract.

    With ``cutoff``, a change of the largest k is included. Reports leave it out, because they have a note about it.
    """
    baseline = evaluation.baseline
    stored = baseline.stored if baseline else None
    if baseline is None or stored is None or stored.head.contract is None:
        return None
    config_file, queries = evaluation.contract.config_file, evaluation.contract.queries
    before, now = stored.head.contract, past_contract(config_file)
    level = before.relevance_level
    k, k_now = max(stored.head.k), evaluation.contract.k
    settings, settings_now = (
        ({"k": k} | before.settings, {"k": k_now} | now.settings) if cutoff else (before.settings, now.settings)
    )
    steps = [
        *(
            step
            for query_id, expected in stored.expected.items()
            for step in _of_query(
                query_id,
                expected,
                expected_of(graded_at(queries[query_id], level)),
                [before.includes_any, now.includes_any],
            )
        ),
        *_of_limits(_named_as_now(before.limits, k, now.limits, k_now), now.limits),
        *_of_settings(settings, settings_now, default_settings(config_file.config)),
        *_of_waivers(before.waivers, now.waivers),
        *(Step("questions_changed", ChangedItem(id=query_id)) for query_id in baseline.rows.changed),  # not compared
    ]
    changes = list(_grouped(steps))
    unknown = baseline.observed(UnknownQueries)
    if removed := len(unknown.listed) + unknown.more:
        changes.append(_change("queries_removed", removed))
    return sorted(changes, key=lambda change: ORDER[change.kind])


def past_contract(config_file: ConfigFile) -> PastContract:
    """Return the limits, settings and waivers of a configuration."""
    return PastContract(
        limits={gate.id: _limit(gate) for gate in config_file.gates},
        settings=dict(_settings(config_file)),
        waivers=[_past_waiver(waiver) for waiver in config_file.config.waivers],
    )


def _past_waiver(waiver: Waiver) -> PastWaiver:
    kept = {name: getattr(waiver, name) for name in PastWaiver.__struct_fields__}
    return PastWaiver(**kept | {"query": None if waiver.query is None else as_id(waiver.query)})


def default_settings(config: Config) -> dict[str, Value]:
    """Return the values of settings that are not in the file."""
    return dict(_flat(type(config)()))


def _grouped(steps: Iterable[Step]) -> Iterator[ContractChange]:
    groups: dict[ChangeKind, list[Step]] = {}
    for step in steps:
        groups.setdefault(step.kind, []).append(step)
    for kind, group in groups.items():
        items = tuple(step.item for step in group)
        yield _change(kind, sum(step.number for step in group), items)


def _change(kind: ChangeKind, number: int, items: tuple[ChangedItem, ...] = ()) -> ContractChange:
    return ContractChange(kind=kind, effect=CHANGES[kind].effect, count=number, items=items)


def _of_query(query_id: str, before: Expected, now: Expected, includes_any: Sequence[bool]) -> Iterator[Step]:
    """Yield the changes of a query; ``includes_any`` is what the configurations say of queries without the field."""
    item = ChangedItem(id=query_id)
    if before.must_include_any != now.must_include_any:  # otherwise, only the setting may have changed
        sides = zip((before.must_include_any, now.must_include_any), includes_any, strict=True)
        was, is_now = (by_default if value is None else value for value, by_default in sides)
        if was != is_now:
            yield Step("must_include_any_added" if is_now else "must_include_any_removed", item)
    yield from _of_rules(item, before, now)
    yield from _of_references(item, before.references, now.references)
    yield from _of_forbidden(query_id, before.forbidden, now.forbidden)
    if before.must_rank_at_most and now.must_rank_at_most and before.must_rank_at_most != now.must_rank_at_most:
        ranks = ChangedItem(id=query_id, before=before.must_rank_at_most, after=now.must_rank_at_most)
        yield Step("rank_raised" if now.must_rank_at_most > before.must_rank_at_most else "rank_lowered", ranks)
    for field, kind in SWITCHES.items():
        if getattr(before, field) != (value := getattr(now, field)):
            yield Step(kind or f"{field}_{'added' if value else 'removed'}", item)
    if before.relevant != now.relevant:
        fewer = _size(now.relevant) < _size(before.relevant)
        counts = ChangedItem(id=query_id, before=_size(before.relevant), after=_size(now.relevant))
        yield Step("relabelled_with_fewer" if fewer else "relabelled", counts)
    elif before.judged and before.judged != now.judged:
        judged = ChangedItem(id=query_id, before=before.judged.count, after=_size(now.judged or now.relevant))
        yield Step("judged_fewer" if _size(now.judged) < before.judged.count else "judged_changed", judged)
    if before.severity != now.severity:
        yield Step("severity_lowered" if now.severity == "warn" else "severity_raised", item)
    if before.weight != now.weight:
        yield Step("weights_changed", ChangedItem(id=query_id, before=before.weight or 1, after=now.weight or 1))


def _of_rules(item: ChangedItem, before: Expected, now: Expected) -> Iterator[Step]:
    """Yield the rules that were removed, changed and added.

    A rule with a field of its own counts like an entry of ``rules``. A removed and an added entry of the same type are
    a changed rule.
    """
    old, new = _rules(before), _rules(now)
    gone, added = _types(old - new), _types(new - old)
    changed = gone & added
    counts: dict[ChangeKind, int] = {
        "rules_removed": (gone - changed).total(),
        "rules_changed": changed.total(),
        "rules_added": (added - changed).total(),
    }
    for kind, number in counts.items():
        if number:
            yield Step(kind, item, number)


def _rules(expected: Expected) -> Counter[str]:
    fields = {
        "must_rank_at_most": expected.must_rank_at_most is not None,
        "forbidden_docs": expected.forbidden is not None,
    }
    return Counter([*expected.rules, *(name for name, is_set in fields.items() if is_set)])


def _types(rules: Counter[str]) -> Counter[str]:
    types: Counter[str] = Counter()
    for rule, number in rules.items():
        types[rule.partition(" ")[0]] += number
    return types


def _of_references(item: ChangedItem, before: Mapping[str, str], now: Mapping[str, str]) -> Iterator[Step]:
    """Yield how the references of a query changed: a metric is compared only if its reference is the same.

    A reference that is a rule as well counts as a rule only.
    """
    names = [name for name in dict.fromkeys([*before, *now]) if name not in RULES_AS_WELL]
    changed: dict[ChangeKind, bool] = {
        "references_removed": any(name not in now for name in names),
        "references_changed": any(name in before and name in now and before[name] != now[name] for name in names),
        "references_added": any(name not in before for name in names),
    }
    for kind, is_so in changed.items():
        if is_so:
            yield Step(kind, item)


def _of_forbidden(query_id: str, before: Documents | None, now: Documents | None) -> Iterator[Step]:
    if before is None or now is None or before == now:  # a rule that is gone or new
        return
    growth = now.count - before.count
    kind: ChangeKind = "forbidden_more" if growth > 0 else "forbidden_fewer" if growth else "forbidden_changed"
    yield Step(kind, ChangedItem(id=query_id, before=before.count, after=now.count))


def _size(documents: Documents | None) -> int:
    return documents.count if documents else 0


def _named_as_now(
    before: Mapping[str, float | str], k: int, now: Mapping[str, float | str], k_now: int
) -> dict[str, float | str]:
    """Return the earlier limits under today's keys: at k = 5, ``recall_at_k`` and ``recall_at_5`` are the same."""
    new = {_without_largest(gate_id, k_now): gate_id for gate_id in now if gate_id not in before}
    return {
        gate_id if gate_id in now else new.get(_without_largest(gate_id, k), gate_id): limit
        for gate_id, limit in before.items()
    }


def _without_largest(gate_id: str, k: int) -> str:
    section, _, name = gate_id.rpartition(".")
    return f"{section}.{re.sub(rf'_at_(k|{k})(?=_|$)', '', name)}"


def _of_limits(before: Mapping[str, float | str], now: Mapping[str, float | str]) -> Iterator[Step]:
    for gate_id in dict.fromkeys([*before, *now]):
        old, new = before.get(gate_id), now.get(gate_id)
        item = ChangedItem(id=gate_id, before=old, after=new)
        if old is None or new is None:
            yield Step("limits_added" if old is None else "limits_removed", item)
        elif old != new:
            # A tag or a label may be called minimums, too.
            of_tag = gate_id.startswith("tags.") and gate_id.split(".")[-2:-1] == ["minimums"]
            lower_is_weaker = of_tag or gate_id.startswith(("minimums.", "tiers."))
            yield Step(f"limits_{VERBS[_effect(_number(old), _number(new), lower_is_weaker=lower_is_weaker)]}", item)


def _number(limit: float | str) -> Comparable | None:
    """Return whether a limit is relative, and its number; None for text that rag-contract does not write."""
    if not isinstance(limit, str):
        return False, limit
    try:
        return True, float(limit.rstrip("% "))
    except ValueError:
        return None


def _effect(old: Comparable | None, new: Comparable | None, *, lower_is_weaker: bool) -> Effect:
    if old is None or new is None or old[0] != new[0]:
        return "changed"
    return "weaker" if (new[1] < old[1]) == lower_is_weaker else "stricter"


def _of_settings(
    before: Mapping[str, Value], now: Mapping[str, Value], defaults: Mapping[str, Value]
) -> Iterator[Step]:
    for key in dict.fromkeys([*before, *now]):
        old, new = before.get(key, defaults.get(key)), now.get(key, defaults.get(key))
        if old != new:
            modes = [settings.get(MODE, defaults.get(MODE)) for settings in (before, now)]
            strictness = [_strictness(key, value, mode) for value, mode in zip((old, new), modes, strict=True)]
            effect = _effect(*strictness, lower_is_weaker=True)
            if key == LEVEL and effect == "stricter":
                effect = "changed"  # with more relevant documents, any of them is found more easily
            yield Step(f"settings_{VERBS[effect]}", ChangedItem(id=key, before=old, after=new))


def _strictness(key: str, value: Value, mode: Value) -> Comparable | None:
    """Return a number that grows with the strictness of a value under a ``fail_on.mode``; None if it is not known.

    With a lower alpha, fewer changes are proven, and fewer changes are excluded.
    """
    if key == ALPHA and mode == "noninferiority":
        return (True, -value) if isinstance(value, int | float) else None
    order = ENFORCED if key.startswith(SWITCH) else STRICTEST_FIRST.get(key, ())
    if value in order:
        return False, -order.index(value)
    if key == SINCE:  # from a later day on, fewer runs count, and their best level may be lower
        return False, -int(value.replace("-", "")) if isinstance(value, str) and _is_day(value) else 0
    if key in {LEVEL, "k"} and isinstance(value, int | float):
        return False, -value  # with a higher level, fewer documents must be found; with a higher k, at lower ranks
    if key == COMPOSITE_MINIMUM:
        return False, value if isinstance(value, int | float) else -inf  # without a composite, none is required
    if key in LOWER_IS_WEAKER:
        return False, value if isinstance(value, int | float) else inf  # without a number, all results are searched
    return None


def _is_day(text: str) -> bool:
    return bool(re.fullmatch(r"\d{4}-\d\d-\d\d", text, re.ASCII))


def _of_waivers(before: Iterable[PastWaiver], now: Iterable[PastWaiver]) -> Iterator[Step]:
    old, new = _last_days(before), _last_days(now)
    for target in dict.fromkeys([*new, *old]):
        was, until = old.get(target), new.get(target)
        item = ChangedItem(id=target, before=was, after=until)
        if was is None or until is None:
            yield Step("waivers_added" if was is None else "waivers_removed", item)
        elif until != was:  # dates compare as text
            yield Step("waivers_extended" if until > was else "waivers_shortened", item)


def _last_days(waivers: Iterable[PastWaiver]) -> dict[str, str]:
    """Return the last day of the waivers by target, such as ``query q1`` or ``must_include of tag policy``."""
    last_days: dict[str, str] = {}
    for waiver in waivers:
        names = (("query", waiver.query), ("tag", waiver.tag), ("gate", waiver.gate))
        target = next((f"{what} {name}" for what, name in names if name is not None), "")
        target = f"{waiver.rule} of {target}" if waiver.rule else target
        last_days[target] = max(last_days.get(target, ""), waiver.expires)
    return last_days


def _limit(gate: Gate) -> float | str:
    return percent(gate.limit, PERCENT_DIGITS) if gate.relative else gate.limit


def _settings(config_file: ConfigFile) -> Iterator[tuple[str, Value]]:
    """Yield the settings that differ from the default, by the path of their keys. Limits are not settings."""
    limits = {gate.id.removesuffix(f".{gate.quantity.of_class}") for gate in config_file.gates}
    defaults = default_settings(config_file.config)
    for key, value in _flat(config_file.config):
        if key not in limits and value != defaults.get(key):
            yield key, value


def _flat(config: Config) -> Iterator[tuple[str, Value]]:
    for name in config.__struct_fields__:
        value = getattr(config, name)
        if name in REMEMBERED_APART:
            continue
        if isinstance(value, Struct):
            inner = ((f"{name}.{key}", getattr(value, key)) for key in value.__struct_fields__)
            yield from (
                (key, _plain(setting)) for key, setting in inner if key not in REMEMBERED_APART and setting is not UNSET
            )
        else:
            yield name, _plain(value)
    if config.answers.composite:
        yield COMPOSITE_MINIMUM, config.answers.composite.minimum
        yield f"{COMPOSITE}.metrics", ", ".join(config.answers.composite.metrics)
    for tier in config.tiers:
        if tier.gates:
            yield f"tiers.{tier.name}.gates", ", ".join(tier.gates)


def _plain(setting: Any) -> Value:
    """Return a setting as a baseline stores it: a list as its length and a digest, an object as JSON text."""
    if isinstance(setting, list):
        return f"{len(setting)} ({digest(setting)[:SHORT]})"
    if setting is None or isinstance(setting, bool | int | float | str):
        return setting
    return msgspec.json.encode(setting).decode()
