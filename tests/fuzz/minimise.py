"""Makes a failing case smaller while it fails in the same way: fewer files, shorter values, fewer lines and bytes."""

import copy
from collections.abc import Callable, Iterator
from typing import Any

from tests.fuzz.case import Case
from tests.fuzz.generate.encoding import decode, encode
from tests.fuzz.generate.kinds import KINDS
from tests.fuzz.generate.mutation import holders

Fails = Callable[[Case], bool]
SMALL = 4_000  # bytes of a file of which single bytes are left out


def minimised(case: Case, fails: Fails, tries: int) -> Case:
    """Return the smallest case found with so many tries; ``fails`` says whether a case fails as the first one does."""
    shrinking = True
    while shrinking and tries > 0:
        shrinking = False
        for smaller in _smaller(case):
            tries -= 1
            if fails(smaller):
                case, shrinking = smaller, True
                break
            if tries <= 0:
                break
    return case


def _smaller(case: Case) -> Iterator[Case]:
    """Yield cases with something left out, the largest parts first."""
    inputs = sorted((name for name in case.files if name in KINDS), key=lambda name: -len(case.files[name]))
    for name in inputs:
        yield Case(target=case.target, files={other: data for other, data in case.files.items() if other != name})
    for name in inputs:
        for data in _shorter(name, case.files[name]):
            if len(data) < len(case.files[name]):
                yield Case(target=case.target, files=case.files | {name: data})


def _shorter(name: str, data: bytes) -> Iterator[bytes]:
    try:
        value = decode(name, data)
    except ValueError:
        value = None
    else:
        yield from (encode(name, one) for one in _pruned(value))
    if not isinstance(value, list | dict):
        lines = data.splitlines(keepends=True)
        yield from (b"".join(left) for left in _without(lines))
        if len(data) <= SMALL:
            yield from (bytes(left) for left in _without(list(data)))


def _pruned(value: Any) -> Iterator[Any]:
    """Yield the value with parts of one of its lists, objects or texts left out."""
    for number, holder in enumerate(holders(value)):
        keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        for kept in _without(keys):
            made = copy.deepcopy(value)
            one = holders(made)[number]
            if isinstance(one, dict):
                for key in set(keys) - set(kept):
                    del one[key]
            else:
                one[:] = [one[index] for index in kept]
            yield made
        for key in keys:
            text = holder[key]
            if isinstance(text, str) and len(text) > 1:
                made = copy.deepcopy(value)
                holders(made)[number][key] = text[: len(text) // 2]
                yield made


def _without(items: list[Any]) -> Iterator[list[Any]]:
    """Yield the list without each half, each quarter, and so on down to each item."""
    size = len(items)
    while size > 1 or (size == 1 and items):
        size = max(1, size // 2)
        for start in range(0, len(items), size):
            yield items[:start] + items[start + size :]
        if size == 1:
            return
