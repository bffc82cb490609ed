"""Reads ``ragcontract.yml`` and reports every problem with its line."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from datetime import date
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from ragcontract.contract import defaults
from ragcontract.contract.config import DEFAULT_K, Config, Locations, Waiver, config_record
from ragcontract.contract.declared import (
    KIND_OF_LIMIT,
    declared_in,
    names_taken,
    undeclared,
    why_unknown,
    without_cutoff,
    written,
    wrong_scores,
)
from ragcontract.contract.limits import (
    NO_VALUE,
    explained,
    gates_of,
    keys_without_value,
    limit_keys,
    why_without_value,
    without_empty_sections,
)
from ragcontract.contract.scope import tier_gates, wrong_tiers
from ragcontract.core import bounds
from ragcontract.core.config_sections import AnswerSettings, JudgeSettings
from ragcontract.core.errors import InputError
from ragcontract.core.gate import Gate
from ragcontract.core.invisible import is_visible
from ragcontract.core.lines import Line
from ragcontract.core.phrase import Location, Name, Place, parts_of
from ragcontract.core.run import SourceFile
from ragcontract.core.safe_text import encodable
from ragcontract.files.mistaken import CONFIG, instead_of
from ragcontract.files.opening import READ_ERRORS, read_problem, read_within
from ragcontract.files.paths import not_readable
from ragcontract.files.problems import Collector, Problem, Problems
from ragcontract.files.schema import Mismatch, mismatches, shown
from ragcontract.registry import Registry

NOWHERE = Locations()
# Neither is needed without a configuration.
YAML: Line[Any] = Line(home="ragcontract.files.yaml_tree")
TEXTS: Line[Any] = Line(home="ragcontract.answers.answer_text")
LIMITED = ("minimums", "maximums", "fail_on", "history")
ASKED_ELSEWHERE = (
    "unknown key; the address and the API key of the judge are named by whoever runs `rag-contract judge`, never in "
    "this file"
)


class ConfigFile(Struct, frozen=True, kw_only=True):
    """The configuration with its gates and source file; defaults where there is no file, or where it is wrong."""

    config: Config = Config()
    cutoffs: tuple[int, ...] = (DEFAULT_K,)  # the effective ones, largest first
    declared: Mapping[str, Struct] = {}  # the entries of the section ``metrics``
    names: frozenset[str] = frozenset()  # all keys and texts, of which some are names of metrics
    gates: tuple[Gate, ...] = ()
    files: tuple[SourceFile, ...] = ()
    locations: Locations = NOWHERE
    problems: Problems = Problems()


def read_config(
    path: str | None, registry: Registry, *, k: int | None = None, others: Sequence[str] = ()
) -> ConfigFile:
    """Read the configuration file; ``k`` overrides its cut-offs. The result has the ``problems`` of the file.

    ``others`` are files that may be meant as the configuration. Another file with a default name is a problem.
    """
    read = _read_file(path, registry, k)
    return msgspec.structs.replace(read, problems=read.problems + _not_read(others, path)) if others else read


def _not_read(others: Sequence[str], path: str | None) -> Problems:
    """Return what is wrong with files that look like the configuration, which is at ``path`` if there is one."""
    problems = Collector()
    named = "or name the one to read with --config (the action's input config)"
    for other in map(encodable, others[: bounds.NAMES]):
        if path is not None and Path(other).name == defaults.CONFIG_ALIAS and Path(other).parent == Path(path).parent:
            problems.problem(other, f"is a second configuration beside {encodable(path)}; remove one, {named}")
        else:
            why = f", because {encodable(path)} is" if path else ""
            has_name = Path(other).name in {defaults.CONFIG, defaults.CONFIG_ALIAS}
            instead = "move it to the folder that is checked" if has_name else f"rename it to {defaults.CONFIG}"
            advice = f"remove it, {named}" if path else f"{instead}, {named}"
            problems.warning(f"{other}: looks like a configuration and is not read{why}; {advice}")
    return problems.collected()


def _read_file(path: str | None, registry: Registry, k: int | None) -> ConfigFile:
    if path is None:
        return config_of({}, registry, k=k)
    if problem := not_readable(path):
        return _unusable(k, Problem(path, problem))
    try:
        data, source = read_within(bounds.CONFIG, path, beyond=", the limit for a configuration")
    except READ_ERRORS as error:
        return _unusable(k, Problem(path, read_problem(error)))
    if other := instead_of(CONFIG, data):
        return _unusable(k, Problem(path, other))
    return _read(data, source, registry, k)


def _unusable(k: int | None, *problems: Problem) -> ConfigFile:
    total = sum((Problems(problems=(str(problem),)) for problem in problems), Problems())
    return ConfigFile(cutoffs=(k or DEFAULT_K,), problems=total)


def _read(data: bytes, source: SourceFile, registry: Registry, k: int | None) -> ConfigFile:
    document = YAML.load().load(data, texts={"query"})  # an id is text, 007 is not 7
    faults = [(problem.line, Mismatch(problem.path, problem.message)) for problem in document.problems]
    made = ConfigFile(cutoffs=(k or DEFAULT_K,))
    locations = Locations(path=source.path, lines=document.lines)
    if document.value is not None:
        result = _converted(document.value, registry, k, locations)
        if isinstance(result, ConfigFile):
            made = msgspec.structs.replace(result, files=(source,))
            result = [
                *_wrong_waivers(made.config.waivers),
                *(_wrong_day(since) if (since := made.config.history.since) else ()),
                *wrong_tiers(made.config.tiers),
                *wrong_scores(made.declared),
                *_wrong_answers(made.config.answers),
                *_wrong_judge(made.config.judge),
            ]
        refused = {problem.path for problem in document.problems}  # these have no value for another reason
        faults += [
            (document.line(mismatch.path), mismatch)
            for mismatch in result
            if mismatch.path not in refused or not mismatch.message.endswith(NO_VALUE)
        ]
    if not faults:
        return made
    faults.sort(key=lambda fault: fault[0])
    problems = [Problem.of(Location(source.path, line), mismatch) for line, mismatch in faults]
    problem_paths = [mismatch.path for _, mismatch in faults]
    rest = _converted(_without(document.value, problem_paths), registry, k, locations)
    unusable = _unusable(k, *problems)
    if not isinstance(rest, ConfigFile) or any(path[:1] == ("k",) for path in problem_paths):
        return unusable
    return msgspec.structs.replace(rest, files=(source,), problems=unusable.problems)


def _without(value: object, paths: Iterable[tuple[str | int, ...]]) -> object:
    """Return a copy without the values at some paths, so that the rest can be checked along with the other inputs."""
    rest = deepcopy(value)
    for path in sorted(paths, key=lambda path: [f"{step:>9}" for step in path], reverse=True):
        parent: Any = rest
        try:
            for step in path[:-1]:
                parent = parent[step]
            wrong = parent.pop(path[-1])
            if path[:1] == ("metrics",) and path[-1] == "from" and wrong is not None:
                parent["from"] = "scores"  # so that rules and limits on the score are not called wrong, too
        except (AttributeError, IndexError, KeyError, TypeError):  # its parent was removed, or it was never there
            continue
    return rest


def config_of(value: object, registry: Registry, *, k: int | None = None, location: Place = "") -> ConfigFile:
    """Return the configuration for a parsed value; ``location`` is given to every gate. Raises InputError."""
    result = _converted(value, registry, k)
    if not isinstance(result, ConfigFile):
        raise InputError([str(Problem.of(location, mismatch)) for mismatch in result])
    gates = tuple([msgspec.structs.replace(gate, location=location) for gate in result.gates])
    return msgspec.structs.replace(result, gates=gates)


def _converted(
    value: object,
    registry: Registry,
    k: int | None,
    locations: Locations = NOWHERE,
) -> ConfigFile | list[Mismatch]:
    names = names_in(value)
    shape = _Shape(value, registry.naming(names), k)
    value = without_empty_sections(value, shape.record)
    try:
        config = msgspec.convert(value, shape.record)
    except msgspec.ValidationError as error:
        # An explanation may name any metric. It takes much longer than reading.
        return _explanations(value, _Shape(value, registry, k)) or [Mismatch((), str(error))]
    if unset := list(keys_without_value(value, ())):
        return unset
    return ConfigFile(
        config=config,
        cutoffs=shape.cutoffs,
        declared=written(config.metrics),
        names=names,
        gates=(*gates_of(config, shape.keys, locations), *tier_gates(config.tiers, locations)),
        locations=locations,
    )


class _Shape:
    """What a configuration may hold: the limits on the metrics of a registry, and on the scores that it declares."""

    def __init__(self, value: object, registry: Registry, k: int | None) -> None:
        named = _cutoffs(value)
        self.registry = registry
        self.cutoffs = (k,) if k else named
        self.taken = names_taken(limit_keys(registry, self.cutoffs, named))
        declared = declared_in(value, registry, self.taken)
        keys = limit_keys(registry, self.cutoffs, named, declared)
        has_levels = isinstance(value, dict) and "history" in value  # few have; a record without them is made faster
        self.keys = [key for key in keys if has_levels or key.section != "history"]
        self.record = config_record(
            registry, self.keys, [name for name in declared if name not in registry.option_names]
        )


def names_in(value: object) -> frozenset[str]:
    """Return all keys and texts of a configuration, as metrics are named: without cut-offs and kinds of limits."""
    names: set[str] = set()
    waiting = [value]
    while waiting:
        inner = waiting.pop()
        if isinstance(inner, dict):
            waiting += [*inner, *inner.values()]
        elif isinstance(inner, list):
            waiting += inner
        elif isinstance(inner, str):
            names.add(without_cutoff(KIND_OF_LIMIT.sub("", inner)))
    return frozenset(names)


def _explanations(value: Any, shape: _Shape) -> list[Mismatch]:
    wrong = [_explain(mismatch, value, shape) for mismatch in mismatches(value, shape.record)]
    return wrong + list(keys_without_value(value, {mismatch.path for mismatch in wrong}))


def _explain(mismatch: Mismatch, value: Any, shape: _Shape) -> Mismatch:
    """Replace the message on a key without a value, and on an unknown one if there is a reason for it."""
    path, is_near = mismatch.path, mismatch.unknown == "misspelled key"
    parts = parts_of(mismatch.message)
    if isinstance(parts[-1], Name) and parts[-1].name == "null":
        return Mismatch(path, f"{parts[0]}, but it {NO_VALUE}")
    if not mismatch.unknown:
        return mismatch
    if meant := why_without_value(path, value):
        return Mismatch(path, meant)
    if path[:-1] == ("judge",) and not is_near:
        return Mismatch(path, ASKED_ELSEWHERE)
    section, key = map(str, ("", "", *path)[-2:])
    if path[:-1] == ("metrics",):
        return Mismatch(path, why_unknown(key, value["metrics"].get(key), shape.registry, shape.taken))
    why = explained(section, key, shape.keys)
    if why is None and not is_near and section in LIMITED:
        why = undeclared(section, key)
    return Mismatch(path, why) if why else mismatch


def _wrong_answers(answers: AnswerSettings) -> Iterator[Mismatch]:
    if answers.only_these and not answers.refusal_phrases:
        why = "needs refusal_phrases: without any, no text would be a refusal; name them, or leave it out"
        yield Mismatch(("answers", "only_these"), why)
    if answers.refusal_phrases:
        for number, phrase in enumerate(answers.refusal_phrases):
            if not TEXTS.load().has_letter(phrase):
                why = f"expected a text with a letter, found {shown(phrase)}; write how your application refuses"
                yield Mismatch(("answers", "refusal_phrases", number), why)


def _wrong_judge(judge: JudgeSettings) -> Iterator[Mismatch]:
    if judge.votes is not None and not judge.votes % 2:
        why = f"expected an odd number, so that a majority decides, found {judge.votes}"
        yield Mismatch(("judge", "votes"), why)


def _wrong_waivers(waivers: Sequence[Waiver]) -> Iterator[Mismatch]:
    for number, waiver in enumerate(waivers):
        for name in ("reason", "owner"):
            if not is_visible(text := getattr(waiver, name)):
                yield Mismatch(("waivers", number, name), f"expected text that a reader sees, found {text!r}")
        targets = [name for name in ("query", "tag", "gate") if getattr(waiver, name) is not None]
        if len(targets) != 1:
            yield Mismatch(("waivers", number), "needs one of query, tag and gate, to say what it waives")
        elif waiver.gate is not None and waiver.rule is not None:
            yield Mismatch(("waivers", number, "rule"), "is for a query or a tag; a gate has no rules")
        try:
            date.fromisoformat(waiver.expires)
        except ValueError:
            yield Mismatch(("waivers", number, "expires"), f"expected a date that exists, found {waiver.expires!r}")


def _wrong_day(since: str) -> Iterator[Mismatch]:
    try:
        date.fromisoformat(since)
    except ValueError:
        yield Mismatch(("history", "since"), f"expected a date that exists, found {since!r}")


def _cutoffs(value: object) -> tuple[int, ...]:
    """Return the valid cut-offs of a file that is not validated yet, largest first."""
    k = value.get("k") if isinstance(value, dict) else None
    cutoffs = k if isinstance(k, list) else [k]
    valid = sorted({cutoff for cutoff in cutoffs if type(cutoff) is int and cutoff > 0})[: bounds.CUTOFFS]
    return tuple(reversed(valid)) or (DEFAULT_K,)
