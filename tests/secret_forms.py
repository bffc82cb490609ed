"""The forms of a secret that are removed from what a server answers, as the page on security lists them."""

import base64
import html
import json
from urllib.parse import quote

SECRET = 'sk/é&own"for<nobody>+42=Zz~and/more'
PIECE = 12


def forms_of(secret: str) -> dict[str, list[str]]:
    """Return the forms of a secret by the words of the page."""
    data, in_json = secret.encode(), json.dumps(secret)[1:-1]
    return {
        "as it is": [secret],
        "percent-encoded, as in a URL": [quote(secret, safe="")],
        "with the character references of HTML, as `&amp;`": [html.escape(secret)],
        r"with the escapes of JSON, as `\u00e9` or `\/`": [in_json, in_json.replace("/", r"\/")],
        "in hexadecimal digits, all lowercase or all uppercase": [data.hex(), data.hex().upper()],
        "in Base64, also URL-safe, and in the Base64 of a longer text, as of `user:password`": [
            encode(before + data + behind).decode()
            for encode in (base64.b64encode, base64.urlsafe_b64encode)
            for before, behind in ((b"", b""), (b"u:", b""), (b"us:", b":x"), (b"user:", b""))
        ],
    }


def pieces_in(text: str, echoed: str) -> list[str]:
    """Return the pieces of what a server echoed that are in a text, as they are or with the escapes of JSON."""
    pieces = [echoed[at : at + PIECE] for at in range(len(echoed) - PIECE + 1)]
    return [piece for piece in pieces if piece in text or json.dumps(piece)[1:-1] in text]
