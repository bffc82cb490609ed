"""Large files: stages that grow too fast show, and small files that are large when they are unpacked."""

import gzip
import json
from collections.abc import Callable
from typing import Any

from tests.fuzz.generate.mutation import holders
from tests.fuzz.generate.values import Maker

LARGEST = 900_000  # bytes of a case; the contract on memory is about inputs under 1 MB


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


def _blank(maker: Maker, data: bytes) -> bytes:
    return maker.pick((b"\n", b" ", b"\r\n", b"\n ")) * maker.random.randrange(400_000) + data


def _bomb(maker: Maker, data: bytes) -> bytes:
    """Return a small file that is large when it is unpacked: blanks, empty lines, one text, or the content repeated."""
    content = data * (1_000_000 // (len(data) or 1))
    unit = maker.pick((b"\n" * 1_000_000, b" " * 1_000_000, b"x" * 1_000_000, content))
    start = maker.pick((b"", b'{"id": "', b'{"format_version": 1, "k": "'))
    packed = gzip.compress(unit, 6, mtime=0)
    times = 20 if unit is content else 200  # 20 MB of rows take 4 seconds to read
    return gzip.compress(start, mtime=0) + packed * min(times, LARGEST // len(packed))


def _deep(maker: Maker, data: bytes) -> bytes:
    depth = maker.pick((100, 900, 985, 1_000, 5_000, 100_000))
    start, end = maker.pick(((b"[", b"]"), (b'{"a":', b"}"), (b"- ", b"")))
    return start * depth + data + end * depth


LARGE: tuple[Callable[[Maker, bytes], bytes], ...] = (_blank, _bomb, _deep, _deep)


def enlarged(maker: Maker, data: bytes) -> bytes:
    """Return the bytes with much before them or around them, or others that are much."""
    return maker.pick(LARGE)(maker, data)
