"""The targets by name. A new target is a module with a :class:`Target` and an entry here."""

from collections.abc import Mapping, Sequence
from random import Random

from tests.fuzz.case import Case
from tests.fuzz.generate.files import mutated, remade, written
from tests.fuzz.generate.kinds import KINDS
from tests.fuzz.generate.values import Maker
from tests.fuzz.targets import action, command_line, history, readers, stored
from tests.fuzz.targets.target import Target

TARGETS: Mapping[str, Target] = {
    "check": command_line.CHECK,
    "command": command_line.COMMAND,
    "convert": command_line.CONVERT,
    "stored": stored.STORED,
    "history": history.HISTORY,
    "action": action.ACTION,
    "post-comment": action.POST_COMMENT,
    "read": readers.READ,
}


def made(random: Random, name: str, target: Target) -> Case:
    """Return a case that is made from nothing but the schemas."""
    maker = Maker(random)
    kinds = target.kinds(maker)
    maker.has_baseline = any(name.startswith("base") for name in kinds)
    maker.has_run_before = "base.jsonl" in kinds
    # What is wrong in one file hides nothing of the others: with two in five cases right, all stages are reached.
    spoiled = maker.pick(((), (), kinds, (maker.pick(kinds),), (maker.pick(kinds),)))
    files = {kind: (mutated if kind in spoiled else written)(maker, kind, KINDS[kind](maker)) for kind in kinds}
    if "base.jsonl" in files and maker.chance(0.3):
        files["base.jsonl"] = files["current_run.jsonl"]
    return Case(target=name, files=files | dict(target.options(maker, kinds)))


def bred(random: Random, parents: Sequence[Case]) -> Case:
    """Return a case with one to three files of a parent changed or taken from another one."""
    maker = Maker(random)
    parent, other = maker.pick(parents), maker.pick(parents)
    files = dict(parent.files)
    inputs = [name for name in files if name in KINDS]
    for _ in range(maker.pick((1, 1, 2, 3))):
        name = maker.pick(inputs)
        if name in other.files and maker.chance(0.1):
            files[name] = other.files[name]
        else:
            files[name] = remade(maker, name, files[name])
    return Case(target=parent.target, files=files)
