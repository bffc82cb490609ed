"""What a baseline remembers of the configuration."""

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import UNSET, Struct
from msgspec.structs import fields

from ragcontract.contract.config import Config
from ragcontract.contract.config_file import ConfigFile
from ragcontract.core.contract_change import Value
from ragcontract.core.gate import Gate
from ragcontract.core.ids import as_id
from ragcontract.core.numbers import percent
from ragcontract.runs.past import PastContract, PastWaiver, digest

# The cut-offs are in the baseline's ``k``, limits on tags and tiers are gates, a composite is a rule of each query.
REMEMBERED_APART = {"k", "tags", "waivers", "tiers", "answers.composite"}


def past_contract(config_file: ConfigFile) -> PastContract:
    """Return the limits, settings and waivers of a configuration."""
    waivers = [
        PastWaiver(
            query=None if waiver.query is None else as_id(waiver.query),
            tag=waiver.tag,
            gate=waiver.gate,
            rule=waiver.rule,
            expires=waiver.expires,
        )
        for waiver in config_file.config.waivers
    ]
    return PastContract(
        limits={gate.id: _limit(gate) for gate in config_file.gates},
        settings=dict(_settings(config_file)),
        waivers=waivers,
    )


def default_settings(config: Config) -> dict[str, Value]:
    """Return the values of settings that are not in the file."""
    return dict(_flat(type(config)()))


def _limit(gate: Gate) -> float | str:
    return percent(gate.limit, PERCENT_DIGITS) if gate.relative else gate.limit


SHORT = 8  # digits of a digest that distinguishes lists
PERCENT_DIGITS = 9  # as many decimals as a limit may have


def _settings(config_file: ConfigFile) -> Iterator[tuple[str, Value]]:
    """Yield the settings that are not the default, by the path of their keys; limits are no settings."""
    limits = {gate.id for gate in config_file.gates}
    defaults = default_settings(config_file.config)
    for key, value in _flat(config_file.config):
        if key not in limits and value != defaults.get(key):
            yield key, value


def _flat(config: Config) -> Iterator[tuple[str, Value]]:
    for field in fields(config):
        value = getattr(config, field.name)
        if field.name in REMEMBERED_APART:
            continue
        if isinstance(value, Struct):
            inner = ((f"{field.name}.{one.name}", getattr(value, one.name)) for one in fields(value))
            yield from ((key, _plain(one)) for key, one in inner if key not in REMEMBERED_APART and one is not UNSET)
        else:
            yield field.name, _plain(value)
    for tier in config.tiers:
        if tier.gates:
            yield f"tiers.{tier.name}.gates", ", ".join(tier.gates)


def _plain(setting: Any) -> Value:
    """Return a setting as a baseline stores it: of a list its length and a digest, an object as JSON text."""
    if isinstance(setting, list):
        return f"{len(setting)} ({digest(setting)[:SHORT]})"
    if setting is None or isinstance(setting, bool | int | float | str):
        return setting
    return msgspec.json.encode(setting).decode()
