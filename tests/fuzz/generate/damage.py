"""Changes of bytes: what goes wrong in exports and transfers, and what no encoder writes."""

import gzip
from collections.abc import Callable

from tests.fuzz.generate.values import ODD_TEXTS, Maker

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
    packed = gzip.compress(data, 1, mtime=0)
    return packed if maker.chance(0.6) else change_bytes(maker, packed)


BYTES: tuple[Callable[[Maker, bytes], bytes], ...] = (
    *(_insert, _insert, _insert, _flip, _flip, _cut_off, _cut_out, _repeat, _line, _ends, _mark, _utf16, _packed),
)
