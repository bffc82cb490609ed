"""Changes of values: what exports get wrong, and what an attacker writes, where a parser still reads it."""

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

from tests.fuzz.generate.by_schema import schema
from tests.fuzz.generate.values import ODD_NUMBERS, Maker

Holder = list[Any] | dict[Any, Any]


def holders(value: Any, most: int = 300) -> list[Holder]:
    """Return the lists and objects within a value that are not empty, outermost first."""
    found: list[Holder] = []
    waiting = [value]
    while waiting and len(found) < most:
        one = waiting.pop(0)
        if isinstance(one, list | dict) and one:
            found.append(one)
            waiting += one if isinstance(one, list) else one.values()
    return found


def change_value(maker: Maker, value: Any) -> Any:
    """Return the value with one of its parts changed; parts may be changed in place."""
    found = holders(value)
    if not found or maker.chance(0.02):
        return maker.anything() if not isinstance(value, str) else value
    holder = maker.pick(found)
    key: Any = maker.pick(list(holder)) if isinstance(holder, dict) else maker.random.randrange(len(holder))
    maker.pick(CHANGES)(maker, holder, key)
    return value


def _swap(maker: Maker, holder: Any, key: Any) -> None:
    holder[key] = maker.anything()


def _odd(maker: Maker, holder: Any, key: Any) -> None:
    old = holder[key]
    holder[key] = maker.odd_text() + (old if isinstance(old, str) and maker.chance(0.5) else "")


def _number(maker: Maker, holder: Any, key: Any) -> None:
    holder[key] = maker.pick((maker.number(), maker.whole(), *ODD_NUMBERS))


def _drop(_maker: Maker, holder: Any, key: Any) -> None:
    del holder[key]


def _again(maker: Maker, holder: Any, key: Any) -> None:
    """Repeat an item, or a value under a key that is nearly the same."""
    if isinstance(holder, list):
        holder.insert(maker.random.randrange(len(holder) + 1), holder[key])
    else:
        holder[f"{key}{maker.pick(('', 's', '_', ' ', '.x', maker.odd_text()))}"] = holder[key]


def _rename(maker: Maker, holder: Any, key: Any) -> None:
    if isinstance(holder, dict):
        holder[maker.pick((*words(), maker.odd_text()))] = holder.pop(key)


def _add(maker: Maker, holder: Any, _key: Any) -> None:
    if isinstance(holder, dict):
        holder[maker.pick(words())] = maker.anything()
    else:
        holder.append(maker.anything())


def _wrap(maker: Maker, holder: Any, key: Any) -> None:
    for _ in range(maker.pick((1, 1, 2, 40, 150))):
        holder[key] = [holder[key]] if maker.chance(0.5) else {maker.pick(words()): holder[key]}


def _null(_maker: Maker, holder: Any, key: Any) -> None:
    holder[key] = None


CHANGES: tuple[Callable[[Maker, Any, Any], None], ...] = (
    *(_swap, _odd, _odd, _number, _number, _drop, _again, _again, _rename, _add, _wrap, _null),
)


@lru_cache
def words() -> tuple[str, ...]:
    """Return the names of all fields and values that the formats know."""

    def names(node: Any) -> Iterator[str]:
        if isinstance(node, dict):
            yield from node.get("properties", {})
            yield from (one for one in node.get("enum", []) if isinstance(one, str))
            for inner in node.values():
                yield from names(inner)
        elif isinstance(node, list):
            for inner in node:
                yield from names(inner)

    return tuple(
        dict.fromkeys(
            word
            for name in ("golden", "run", "baseline", "config", "report", "history")
            for word in names(schema(name))
        )
    )
