"""The secrets of a command: they fill placeholders in texts, and are redacted from everything that servers answer.

A proxy or a server may echo a request's header in an error, a link or an address, as a whole, cut off, or encoded.
"""

import re
from array import array
from base64 import b64encode, urlsafe_b64encode
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from html import unescape
from json import dumps
from typing import Any
from urllib.parse import quote

from ragcontract.core import bounds
from ragcontract.core.safe_text import shorten

REDACTED = "***"
# Every piece of 12 characters of a form of a secret contains one of its windows of 8, which start at every fifth.
WINDOW, STEP = 8, 5
IN_HTML = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;"})
MARK = "\0"  # in place of a piece of a secret, and part of the word around it
# Runs of escapes, which may stand for characters of a secret. Encoders differ in which characters they escape.
ESCAPES = re.compile(
    r"(?P<url>(?:%[0-9A-Fa-f]{2})+)"
    r"|(?P<html>(?:&(?:#[0-9]{1,9};?|#[xX][0-9A-Fa-f]{1,8};?|[A-Za-z][A-Za-z0-9]{1,31};))+)"
    r"|(?P<units>(?:\\u[0-9A-Fa-f]{4})+)"
    r"|(?P<bytes>(?:\\x[0-9A-Fa-f]{2})+)"
    r"|(?P<themselves>(?:\\[\"'\\/])+)"
    r"|\\u\{0*(?P<point>[0-9A-Fa-f]{1,5})\}"
)


class Redaction:
    """Replaces every word that contains a piece of a secret. A secret shorter than a window is ignored."""

    def __init__(self, *secrets: str) -> None:
        self._windows = {
            form[at : at + WINDOW] for secret in secrets for form in _forms(secret) for at in _starts(form)
        }

    def text(self, value: str) -> str:
        pieces = [*self._pieces(value)]
        if "%" in value or "&" in value or "\\" in value:
            decoded = [*self._pieces(ESCAPES.sub(_meant, value))]
            pieces += _as_written(value, decoded) if decoded else []
        if not pieces:
            return value
        marked = list(value)
        for start, end in pieces:
            marked[start:end] = MARK * (end - start)
        return re.sub(r"[^\s'\"<>]+", lambda word: REDACTED if MARK in word[0] else word[0], "".join(marked))

    def json(self, value: Any) -> Any:
        if not self._windows:
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self.json(inner) for inner in value]
        if isinstance(value, dict):
            return {self.text(name): self.json(inner) for name, inner in value.items()}
        return value

    def _pieces(self, value: str) -> Iterator[tuple[int, int]]:
        """Yield the begin and the end of each window in a text."""
        if not self._in(value):
            return
        for window in self._windows:
            at = value.find(window)
            while at >= 0:
                yield at, at + WINDOW
                at = value.find(window, at + 1)

    def _in(self, value: str) -> bool:
        pieces = len(value) - WINDOW + 1
        if pieces < len(self._windows):  # an answer may have millions of short texts
            return any(value[at : at + WINDOW] in self._windows for at in range(pieces))
        return any(window in value for window in self._windows)


def _as_written(value: str, pieces: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield the begin and the end, in the text as written, of pieces of the decoded text; runs of escapes are whole."""
    # Where each part begins, decoded and as written. Every other part is a run. Arrays, because there may be millions.
    begins, origins = array("Q"), array("Q")
    begin = end = 0
    for escapes in ESCAPES.finditer(value):
        literal = escapes.start() - end
        begins.extend((begin, begin + literal))
        origins.extend((end, escapes.start()))
        begin += literal + len(_meant(escapes))
        end = escapes.end()
    begins.append(begin)
    origins.append(end)
    for start, stop in pieces:
        first, last = (bisect_right(begins, at) - 1 for at in (start, stop - 1))
        yield (
            origins[first] + (0 if first % 2 else start - begins[first]),
            origins[last + 1] if last % 2 else origins[last] + stop - begins[last],
        )


def _meant(escapes: re.Match[str]) -> str:
    """Return the characters that a run of escapes stands for. A text that is encoded twice is still encoded once."""
    run = escapes[0]
    match escapes.lastgroup:
        case "url":
            return bytes.fromhex(run.replace("%", "")).decode(errors="replace")
        case "html":
            return unescape(run)
        case "units":
            return bytes.fromhex(run.replace("\\u", "")).decode("utf-16-be", errors="replace")
        case "bytes":
            return bytes.fromhex(run.replace("\\x", "")).decode("latin-1")
        case "themselves":
            return run[1::2]
    return chr(int(escapes["point"], 16))


def _forms(secret: str) -> Iterator[str]:
    """Yield the secret as it is, in a URL, HTML and JSON, in hexadecimal digits, and in base 64 at three offsets."""
    data = secret.encode(errors="surrogateescape")
    yield from (secret, quote(data, safe=""), data.hex(), data.hex().upper())
    in_json = dumps(secret)[1:-1]
    yield from (secret.translate(IN_HTML), in_json, in_json.replace("/", r"\/"))
    for offset in range(3):
        # Each digit has 6 bits. The first and the last may also depend on the text before and after the secret.
        whole = slice(offset and offset + 1, (offset + len(data)) * 8 // 6)
        for encode in (b64encode, urlsafe_b64encode):
            yield encode(bytes(offset) + data).decode()[whole]


def _starts(form: str) -> range:
    return range(0, len(form) - WINDOW + 1, STEP)


NAME = r"[A-Za-z_][A-Za-z0-9_]*"
PLACEHOLDER = re.compile(rf"\$\{{secret:({NAME})\}}")
ESCAPE = re.compile(r"\\(?:u00([0-7][0-9A-Fa-f])|([/\\]))")  # of ASCII in JSON; keys have nothing else


class Secrets:
    """The secrets that the command line names, with values from the environment.

    ``${secret:NAME}`` in a text stands for a secret.
    """

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = dict(values)
        self._redaction = Redaction(*values.values())

    def __bool__(self) -> bool:
        return bool(self._values)

    def unknown_in(self, text: str) -> list[str]:
        """Return the names in a text that the command line does not name."""
        return [name for name in PLACEHOLDER.findall(text) if name not in self._values]

    def filled(self, text: str) -> str:
        """Return a text with the values in place of the names; all of them must be known."""
        return PLACEHOLDER.sub(lambda match: self._values[match[1]], text)

    def redacted(self, value: Any) -> Any:
        """Return a text, or decoded JSON, without the secrets in any form that a server may echo them in."""
        return self._redaction.json(value) if self._values else value

    def redacted_json(self, document: str) -> str:
        r"""Return a text that may be JSON without the secrets, including those that ``\u`` escapes hide from a search.

        A text without secrets is returned as it is. The result need not be JSON any more.
        """
        if not self._values:
            return document
        plain = ESCAPE.sub(lambda match: chr(int(match[1], 16)) if match[1] else match[2], document)
        redacted: str = self._redaction.text(plain)
        return document if redacted == plain else redacted


NO_SECRETS = Secrets({})


def wrong_names(names: Iterable[str], environ: Mapping[str, str]) -> list[str]:
    """Return the problems with names of secrets in the environment, as sentences that begin with the name.

    A short secret is a problem, because it looks like ordinary text and could not be redacted from files.
    """
    wrong = []
    for name in names:
        if not re.fullmatch(NAME, name):
            wrong.append(f"{shorten(name, bounds.NAME)!r}: is not a name of an environment variable")
        elif name not in environ:
            wrong.append(f"{name}: there is no environment variable of this name")
        elif len(environ[name]) < bounds.SECRET_LEAST:
            least = f"fewer than {bounds.SECRET_LEAST} characters"
            wrong.append(f"{name}: has {least}, too few to keep it out of what is written")
    return wrong


def of_environment(names: Iterable[str], environ: Mapping[str, str]) -> Secrets:
    """Return the secrets with these names, which must have no problems."""
    return Secrets({name: environ[name] for name in names})
