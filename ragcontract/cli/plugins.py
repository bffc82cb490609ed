"""Plugins: code of the user for the rule `custom`, named on the command line as ``module:Class``."""

import importlib
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.rule import Plugin
from ragcontract.core.text import shorten


class InPlace:
    """A plugin that may change the current folder: all files of a check are those of the folder in which it began."""

    def __init__(self, plugin: Plugin) -> None:
        """Take the plugin as it was made."""
        self._plugin = plugin

    def evaluate(self, output: str, tool_calls: list[Any], rule: dict[str, Any]) -> tuple[bool, str]:
        """Return what the plugin says."""
        with same_folder():
            return self._plugin.evaluate(output, tool_calls, rule)


@contextmanager
def same_folder() -> Iterator[None]:
    """Return to the current folder in the end, wherever code of the user has gone."""
    folder = Path.cwd()
    try:
        yield
    finally:
        os.chdir(folder)


def load_plugins(names: Sequence[str]) -> Mapping[str, Plugin]:
    """Import the classes and return an object of each by its class's name; modules of the current folder are found.

    Raises :class:`InputError` with what is wrong with each that cannot be used.
    """
    if names and "" not in sys.path:
        sys.path.append("")
    loaded: dict[str, Plugin] = {}
    problems = []
    for name in names:
        with same_folder():
            made = _load(name)
        if isinstance(made, str):
            problems.append(f"--plugin {name}: {made}")
        elif type(made).__name__ in loaded:
            problems.append(f"--plugin {name}: another plugin has this class name, too")
        else:
            loaded[type(made).__name__] = InPlace(made)
    if problems:
        raise InputError(problems)
    return loaded


def _load(name: str) -> Plugin | str:
    """Return an object of the class, or why there is none."""
    module, _, attribute = name.partition(":")
    if not module or not attribute.isidentifier():
        return "expected module:Class, as my_checks:PoliteTone"
    try:
        made = getattr(importlib.import_module(module), attribute)()
    except (Exception, SystemExit) as error:  # noqa: BLE001 (code of the user may raise anything, or end the program)
        return f"cannot be loaded: {shorten(f'{type(error).__name__}: {error}', bounds.VALUE)}"
    if not callable(getattr(made, "evaluate", None)):
        return "has no method evaluate(output, tool_calls, rule)"
    plugin: Plugin = made
    return plugin
