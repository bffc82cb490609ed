"""Mutations of values and of bytes: what goes wrong in exports, and what an attacker writes."""

import gzip
import json
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

from tests.fuzz.generate.by_schema import schema
from tests.fuzz.generate.encoding import decode, encode
from tests.fuzz.generate.values import ODD_NUMBERS, ODD_TEXTS, Maker

LARGEST = 900_000  # bytes of a case; the contract on memory is about inputs under 1 MB
RARE = 1 / 1_000  # of the mutations are those that make a large file, which takes a hundred times as long to check

Holder = list[Any] | dict[Any, Any]


def written(maker: Maker, name: str, value: Any) -> bytes:
    """Return a file made of a value as it is."""
    if isinstance(value, str):
        return value.encode(errors="surrogatepass")
    return encode(name, value, ascii_only=maker.chance(0.5))


def mutated(maker: Maker, name: str, value: Any) -> bytes:
    """Return a file made of a value, after a few mutations of the value or of its bytes."""
    if maker.chance(RARE):
        return written(maker, name, amplified(maker, value))[:LARGEST]
    on_values = maker.chance(0.7)
    for _ in range(maker.pick((1, 1, 2, 4)) if on_values else 0):
        value = change_value(maker, value)
    data = written(maker, name, value)
    for _ in range(maker.pick((0, 0, 0, 1)) if on_values else maker.pick((1, 1, 2))):
        data = change_bytes(maker, data)
    return data[:LARGEST]


def remade(maker: Maker, name: str, data: bytes) -> bytes:
    """Return a mutation of a file of which there are only the bytes."""
    if len(data) < LARGEST // 10 and maker.chance(0.6):
        try:
            return mutated(maker, name, change_value(maker, decode(name, data)))
        except (ValueError, RecursionError):  # a file that an earlier mutation broke
            pass
    return change_bytes(maker, data)[:LARGEST]


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


def amplified(maker: Maker, value: Any) -> Any:
    """Return the value with one of its parts repeated until the file is large: stages that grow too fast show."""
    found = [one for one in holders(value) if isinstance(one, list) or maker.chance(0.5)]
    if not found:
        return maker.odd_text() * 100
    holder = maker.pick(found)
    room = int(LARGEST ** maker.random.uniform(0.6, 0.97))
    key: Any = maker.pick(list(holder)) if isinstance(holder, dict) else maker.random.randrange(len(holder))
    if isinstance(holder, dict) and maker.chance(0.3):
        holder[str(key) + "x" * (room // 2)] = holder.pop(key)
        return value
    if isinstance(holder, dict) and isinstance(holder[key], str) and maker.chance(0.5):
        holder[key] = (holder[key] or "x") * (room // max(1, len(holder[key])))
        return value
    one = json.dumps(holder[key])
    count = room // (len(one) + 4)
    numbered = maker.chance(0.7)
    for number in range(count):
        copy = json.loads(one)
        copy = _numbered(copy, number) if numbered else copy
        if isinstance(holder, list):
            holder.append(copy)
        else:
            holder[f"{key}{number}"] = copy
    return value


def _numbered(value: Any, number: int) -> Any:
    """Return the value with the number in all texts that look like ids, so that they differ."""
    if isinstance(value, str):
        return f"{value}-{number}"
    if isinstance(value, list):
        return [_numbered(one, number) for one in value]
    if isinstance(value, dict):
        return {key: _numbered(one, number) for key, one in value.items()}
    return value


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
            word for name in ("golden", "run", "baseline", "config", "report") for word in names(schema(name))
        )
    )


TOKENS = (
    *(
        b"{",
        b"}",
        b"[",
        b"]",
        b",",
        b":",
        b'"',
        b"\\",
        b"\n",
        b"\r",
        b"\r\n",
        b"\0",
        b" ",
        b"\t",
        b"#",
        b"- ",
        b"? ",
        b"& ",
        b"*a",
    ),
    *(
        b"NaN",
        b"-Infinity",
        b"1e999",
        b"null",
        b"None",
        b"'",
        b'"id": 1, ',
        b'"k": 5, ',
        b"\xff",
        b"\xc3",
        b"\xed\xa0\x80",
    ),
    *(
        b"\xef\xbb\xbf",
        b"\\ud800",
        b"\\u0000",
        b"\\x",
        b"[" * 1_100,
        b'{"a":' * 1_100,
        b"9" * 5_000,
        b"\n" * 300,
        b"---\n",
        b"%YAML 9.9\n",
    ),
    *(
        b"!!python/object:os.system ",
        b"&a [*a]",
        b"<<: *a",
        b"|\n",
        b">\n",
        b"0" * 400,
        b"-",
        b"e",
        b".",
        b"!!binary x",
        b"\xe2\x80\xa8",
    ),
)


def change_bytes(maker: Maker, data: bytes) -> bytes:
    """Return the bytes with one change."""
    if maker.chance(RARE):
        return maker.pick(LARGE)(maker, data)
    return maker.pick(BYTES)(maker, data)


def _at(maker: Maker, data: bytes) -> int:
    return maker.random.randrange(len(data) + 1)


def _insert(maker: Maker, data: bytes) -> bytes:
    at = _at(maker, data)
    token = maker.pick((maker.pick(TOKENS), maker.pick(ODD_TEXTS).encode(errors="surrogatepass")))
    return data[:at] + token + data[at:]


def _flip(maker: Maker, data: bytes) -> bytes:
    at = _at(maker, data)
    return data[:at] + bytes([maker.random.randrange(256)]) + data[at + 1 :]


def _cut_off(maker: Maker, data: bytes) -> bytes:
    return data[: _at(maker, data)]


def _cut_out(maker: Maker, data: bytes) -> bytes:
    at = _at(maker, data)
    return data[:at] + data[at + maker.pick((1, 2, 8, 40)) :]


def _repeat(maker: Maker, data: bytes) -> bytes:
    at = _at(maker, data)
    return data[:at] + data[at : at + maker.pick((1, 8, 60))] * maker.pick((2, 2, 50)) + data[at:]


def _line(maker: Maker, data: bytes) -> bytes:
    lines = data.split(b"\n")
    lines.insert(
        maker.random.randrange(len(lines) + 1), maker.pick((maker.pick(lines), b"", b"   ", b"\xef\xbb\xbf", b"{}"))
    )
    return b"\n".join(lines)


def _ends(_maker: Maker, data: bytes) -> bytes:
    return data.replace(b"\n", b"\r\n")


def _mark(_maker: Maker, data: bytes) -> bytes:
    return b"\xef\xbb\xbf" + data


def _utf16(_maker: Maker, data: bytes) -> bytes:
    return data.decode(errors="replace").encode("utf-16")


def _packed(maker: Maker, data: bytes) -> bytes:
    packed = gzip.compress(data, 1)
    return packed if maker.chance(0.6) else change_bytes(maker, packed)


BYTES: tuple[Callable[[Maker, bytes], bytes], ...] = (
    *(_insert, _insert, _insert, _flip, _flip, _cut_off, _cut_out, _repeat, _line, _ends, _mark, _utf16, _packed),
)


def _blank(maker: Maker, data: bytes) -> bytes:
    return maker.pick((b"\n", b" ", b"\r\n", b"\n ")) * maker.random.randrange(400_000) + data


def _bomb(maker: Maker, data: bytes) -> bytes:
    """Return a small file that is large when it is unpacked: blanks, empty lines, one text, or the content repeated."""
    unit = maker.pick((b"\n" * 1_000_000, b" " * 1_000_000, b"x" * 1_000_000, data * (1_000_000 // (len(data) or 1))))
    start = maker.pick((b"", b'{"id": "', b'{"format_version": 1, "k": "'))
    packed = gzip.compress(unit, 6)
    return gzip.compress(start) + packed * min(200, LARGEST // len(packed))


def _deep(maker: Maker, data: bytes) -> bytes:
    depth = maker.pick((100, 900, 985, 1_000, 5_000, 100_000))
    start, end = maker.pick(((b"[", b"]"), (b'{"a":', b"}"), (b"- ", b"")))
    return start * depth + data + end * depth


LARGE: tuple[Callable[[Maker, bytes], bytes], ...] = (_blank, _bomb, _deep, _deep)
