"""The check for CI: does the package still cost as many times the floor as is stored? Ratios, so that machines agree.

CPU seconds are compared with those of importing the libraries of a check and of a bare evaluation, memory with that of
decoding the same files, side by side on this machine. The ratios are compared with ``ratios.json``, and may only be
lowered there. What is over ``TOLERANCE`` times the stored ratio is measured once more, and then fails.

Both floors of CPU time are Python code, as a check is. Of a check and of decoding, which is C code, one becomes faster
without the other from machine to machine, by more than the tolerance.
"""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from benchmarks import answers, data, tools
from benchmarks.environments import ROOT
from benchmarks.rounds import Command, Samples, interleaved, measure, ratio

HERE = Path(__file__).parent
STORED = HERE / "ratios.json"
TOLERANCE = 1.15
LIBRARIES, EVALUATION = "imports of libraries", "bare evaluation"
IMPORTS = "import click, difflib, hashlib, json, junit_xml, logging, msgspec, random, yaml"
SMALL, LARGE = data.Shape(queries=100), data.Shape(queries=20_000)
ROUNDS = {SMALL.name: 9, LARGE.name: 5}
Ratios = Mapping[str, float]


def compare(stored: Ratios, now: Ratios) -> tuple[list[str], list[str]]:
    """Return what has become worse than the tolerance, and what so much better that it should be stored."""
    worse, better = [], []
    for name in sorted({*stored, *now}):
        if name not in stored or name not in now:
            worse.append(
                f"{name} is {'not stored' if name in now else 'stored, and not measured'}: store the ratios again"
            )
        elif now[name] > stored[name] * TOLERANCE:
            worse.append(
                f"{name} is {now[name]:.2f}, {now[name] / stored[name]:.2f} times the stored {stored[name]:.2f}"
            )
        elif now[name] * TOLERANCE < stored[name]:
            better.append(f"{name} is {now[name]:.2f}, stored is {stored[name]:.2f}")
    return worse, better


def ratios(small: Samples, large: Samples, answered: Samples, repeated: Samples) -> dict[str, float]:
    """Return the ratios that are stored."""
    return {
        "CPU time of a small check over importing its libraries": ratio(small, tools.OURS, LIBRARIES, "cpu"),
        "CPU time over a bare evaluation": ratio(large, tools.OURS, EVALUATION, "cpu"),
        "memory over the decode floor": ratio(large, tools.OURS, tools.FLOOR, "peak"),
        "CPU time of answers over a bare evaluation": ratio(answered, answers.CHECKED, EVALUATION, "cpu"),
        "memory of answers over reading them": ratio(answered, answers.CHECKED, answers.READ, "peak"),
        "memory of sixteen rows a query over one": ratio(repeated, answers.OFTEN, answers.ONCE, "peak"),
    }


def take(folder: Path) -> dict[str, float]:
    """Measure, with the interpreter that runs this."""
    commands = {shape.name: _commands(shape, folder) for shape in (SMALL, LARGE)}
    by_shape = {name: interleaved(of_shape, ROUNDS[name]) for name, of_shape in commands.items()}
    bin_folder, environ = Path(sys.executable).parent, {"PYTHONPATH": str(ROOT)}
    answered = answers.commands(answers.make(answers.QUERIES, folder), bin_folder, environ)
    answered[EVALUATION] = commands[LARGE.name][EVALUATION]
    repeated = answers.repeated_commands(answers.repeated(folder), bin_folder, environ)
    rounds = answers.ROUNDS
    return ratios(
        by_shape[SMALL.name], by_shape[LARGE.name], interleaved(answered, rounds), interleaved(repeated, rounds)
    )


def _commands(shape: data.Shape, folder: Path) -> dict[str, Command]:
    made = data.make(shape, folder)
    bin_folder = Path(sys.executable).parent
    installed = tools.Installed(bins=dict.fromkeys((tools.OURS, tools.FLOOR), bin_folder), missing={})
    # The checkout's code, whichever is installed.
    found = {
        name: msgspec.structs.replace(command, environ={"PYTHONPATH": str(ROOT)})
        for name, command in tools.commands(shape, made, installed).items()
    }
    floor = found[tools.FLOOR]
    program = [str(bin_folder / "python"), str(HERE / "bare_evaluation.py")]
    found[EVALUATION] = msgspec.structs.replace(floor, arguments=[*program, *floor.arguments[2:]])
    found[LIBRARIES] = msgspec.structs.replace(floor, arguments=[program[0], "-c", IMPORTS])
    for command in found.values():
        measure(command)  # bytecode and file cache
    return found


def main(folder: Path, *, store: bool, take: Callable[[Path], dict[str, float]] = take) -> int:
    """Compare, or store; 1 where something has become worse."""
    now = take(folder)
    if store:  # the highest of three
        for again in (take(folder), take(folder)):
            now = {name: max(value, again[name]) for name, value in now.items()}
        STORED.write_bytes(msgspec.json.format(msgspec.json.encode({n: round(r, 2) for n, r in now.items()})) + b"\n")
    stored = msgspec.json.decode(STORED.read_bytes(), type=dict[str, float])
    worse, better = compare(stored, now)
    if worse:
        now = take(folder)
        worse, better = compare(stored, now)
    for name, value in now.items():
        print(f"{value:6.2f}  {name}")
    for line in better:
        print(f"better: {line}; keep it with `python -m benchmarks --quick --store`")
    for line in worse:
        print(f"worse: {line}", file=sys.stderr)
    return 1 if worse else 0
