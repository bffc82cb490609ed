"""Makes the files of a case: as they should be, or with something wrong in them."""

from typing import Any

from tests.fuzz.generate.damage import change_bytes
from tests.fuzz.generate.encoding import decode, encode
from tests.fuzz.generate.growth import LARGEST, amplified, enlarged
from tests.fuzz.generate.mutation import change_value
from tests.fuzz.generate.values import Maker

RARE = 1 / 1_000  # of the changes make a large file, which takes a hundred times as long to check


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
        data = enlarged(maker, data) if maker.chance(RARE) else change_bytes(maker, data)
    return data[:LARGEST]


def remade(maker: Maker, name: str, data: bytes) -> bytes:
    """Return a mutation of a file of which there are only the bytes."""
    if len(data) < LARGEST // 10 and maker.chance(0.6):
        try:
            return mutated(maker, name, change_value(maker, decode(name, data)))
        except (ValueError, RecursionError):  # a file that an earlier mutation broke
            pass
    return change_bytes(maker, data)[:LARGEST]
