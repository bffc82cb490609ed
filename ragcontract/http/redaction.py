"""Takes secrets out of what a server answers, so that nothing made of an answer can publish them.

A proxy or a server may echo a request's header in an error, a link or an address: whole, cut off, or encoded.
"""

import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterator
from json import dumps
from typing import Any
from urllib.parse import quote

REDACTED = "***"
# Of each form of a secret, every piece of 12 characters contains one of the windows of 8 that start at every fifth.
WINDOW, STEP = 8, 5
IN_HTML = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;"})
MARK = "\0"  # in place of a piece of a secret, and part of the word around it


class Redaction:
    """Replaces every word that contains a piece of a secret; a secret shorter than a window is too short to be one."""

    def __init__(self, *secrets: str) -> None:
        """Prepare the pieces to look for."""
        self._windows = {
            form[at : at + WINDOW] for secret in secrets for form in _forms(secret) for at in _starts(form)
        }

    def text(self, value: str) -> str:
        """Return a text without the secret."""
        if not self._in(value):
            return value
        marked = list(value)
        for window in self._windows:
            at = value.find(window)
            while at >= 0:
                marked[at : at + WINDOW] = MARK * WINDOW
                at = value.find(window, at + 1)
        return re.sub(r"[^\s'\"<>]+", lambda word: REDACTED if MARK in word[0] else word[0], "".join(marked))

    def json(self, value: Any) -> Any:
        """Return decoded JSON without the secret in any of its texts or keys."""
        if not self._windows:
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self.json(inner) for inner in value]
        if isinstance(value, dict):
            return {self.text(name): self.json(inner) for name, inner in value.items()}
        return value

    def _in(self, value: str) -> bool:
        pieces = len(value) - WINDOW + 1
        if pieces < len(self._windows):  # an answer may have millions of short texts
            return any(value[at : at + WINDOW] in self._windows for at in range(pieces))
        return any(window in value for window in self._windows)


def _forms(secret: str) -> Iterator[str]:
    """Yield the secret as it is, in a URL, HTML and JSON, in hexadecimal digits, and in base 64 at three offsets."""
    data = secret.encode(errors="surrogateescape")
    yield from (secret, quote(data, safe=""), data.hex(), data.hex().upper())
    in_json = dumps(secret)[1:-1]
    yield from (secret.translate(IN_HTML), in_json, in_json.replace("/", r"\/"))
    for offset in range(3):
        # Of 6 bits each; the first and the last may also depend on what stands before and behind the secret.
        whole = slice(offset and offset + 1, (offset + len(data)) * 8 // 6)
        for encode in (b64encode, urlsafe_b64encode):
            yield encode(bytes(offset) + data).decode()[whole]


def _starts(form: str) -> range:
    return range(0, len(form) - WINDOW + 1, STEP)
