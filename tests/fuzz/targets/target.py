"""What a target is: it makes the files of a case, runs the program on them, and sees whether the result may be."""

from collections.abc import Callable, Mapping

from msgspec import Struct

from tests.fuzz.generate.values import Maker
from tests.fuzz.sandbox import Ended, Sandbox


class Target(Struct, frozen=True, kw_only=True):
    """An entry point of the program.

    ``kinds`` makes the names of the input files of a case, ``options`` the files that say how to run it, which are
    never mutated, because they name files to write. ``run`` executes the files in the sandbox, which are there already;
    ``expect`` raises :class:`~tests.fuzz.expectations.Broken`. Of all executions, ``share`` are of this target.
    """

    share: float
    kinds: Callable[[Maker], list[str]]
    options: Callable[[Maker, list[str]], Mapping[str, bytes]]
    run: Callable[[Sandbox, Mapping[str, bytes]], Ended]
    expect: Callable[[Sandbox, Mapping[str, bytes], Ended], None]
