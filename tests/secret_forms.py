"""The forms of a secret that are removed from what a server answers, as the page on security lists them."""

import base64
import html
import json
from collections.abc import Callable
from urllib.parse import quote

SECRET = 'sk/é&own"for<nobody>+42=Zz~and/more'
PIECE = 12  # characters of a form, or of the secret itself where each of them is an escape


def forms_of(secret: str) -> dict[str, list[str]]:
    """Return the forms of a secret by the words of the page."""
    data, in_json = secret.encode(), json.dumps(secret)[1:-1]
    return {
        "as it is": [secret],
        "percent-encoded, as in a URL": [
            quote(secret, safe=""),
            escaped(secret, lambda one: quote(one, safe="").lower()),
        ],
        "with the character references of HTML, as `&amp;` or `&#43;`": [
            html.escape(secret),
            escaped(secret, lambda one: f"&#{ord(one)};"),
            escaped(secret, lambda one: f"&#x{ord(one):X};"),
        ],
        r"with the escapes of JSON and JavaScript, as `\u00e9`, `\/` or `\x2b`": [
            in_json,
            in_json.replace("/", r"\/"),
            escaped(secret, lambda one: rf"\u{ord(one):04X}"),
            escaped(secret, lambda one: rf"\x{ord(one):02x}"),
        ],
        "in hexadecimal digits, all lowercase or all uppercase": [data.hex(), data.hex().upper()],
        "in Base64, also URL-safe, and in the Base64 of a longer text, as of `user:password`": [
            encode(before + data + behind).decode()
            for encode in (base64.b64encode, base64.urlsafe_b64encode)
            for before, behind in ((b"", b""), (b"u:", b""), (b"us:", b":x"), (b"user:", b""))
        ],
    }


def escaped(text: str, escape: Callable[[str], str]) -> str:
    """Return a text in which everything but ASCII letters and digits is escaped, as careful encoders do."""
    return "".join(one if one.isascii() and one.isalnum() else escape(one) for one in text)


def every_character_escaped(secret: str) -> dict[str, str]:
    """Return a secret of which no character is as it was, by the kind of its escapes."""
    kinds: dict[str, Callable[[str], str]] = {
        "percent signs": lambda one: "".join(f"%{byte:02x}" for byte in one.encode()),
        "references": lambda one: f"&#{ord(one)};",
        "references without semicolons": lambda one: f"&#{ord(one)}",
        "hexadecimal references": lambda one: f"&#x{ord(one):04X};",
        "escapes of JSON": lambda one: "".join(f"\\u{unit:04x}" for unit in utf_16(one)),
        "escapes of JavaScript": lambda one: f"\\x{ord(one):02X}",
        "escapes of code points": lambda one: f"\\u{{{ord(one):x}}}",
    }
    return {kind: "".join(map(escape, secret)) for kind, escape in kinds.items()}


def utf_16(text: str) -> list[int]:
    """Return the code units of a text."""
    data = text.encode("utf-16-be")
    return [int.from_bytes(data[at : at + 2]) for at in range(0, len(data), 2)]


def pieces_in(text: str, echoed: str) -> list[str]:
    """Return the pieces of what a server echoed that are in a text, as they are or with the escapes of JSON."""
    pieces = [echoed[at : at + PIECE] for at in range(len(echoed) - PIECE + 1)]
    return [piece for piece in pieces if piece in text or json.dumps(piece)[1:-1] in text]
