r"""Finds ``\b`` and ``\B`` beside letters outside ASCII, where RE2 sees no word: ``\bцена\b`` never matches.

A pattern is read once, from left to right; it is one that RE2 accepts.
"""

import re

from msgspec import Struct

CODE = r"\\(?:x\{[0-9a-fA-F]+\}|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})"
_LETTERS = r"\\p(?:\{(?:L\w?|\w{3,})\}|L)"  # all letters, or those of a script
_OTHERS = r"\\[pP](?:\{\^?\w*\}|.)"
TOKEN = re.compile(
    rf"(?P<bound>\\[bB])|(?P<edge>\\[AzZQE]|\^|\$|\(\?[a-zA-Z-]+\))|{CODE}|{_LETTERS}|{_OTHERS}"
    r"|(?P<class>\[\^?\]?(?:\\.|\[:\^?[a-z]+:\]|[^\]\\])*\])|(?P<open>\((?:\?(?:P?<\w+>|[a-zA-Z-]*:))?)"
    r"|(?P<close>\))|(?P<or>\|)|\\.|.",
    re.DOTALL,
)
QUANTIFIER = re.compile(r"(?:(?P<optional>[*?]|\{0?,[0-9]*\}|\{0\})|\+|\{[0-9]+(?:,[0-9]*)?\})\??")
_IN_CLASS = re.compile(rf"{CODE}|{_LETTERS}|{_OTHERS}|\\.|.", re.DOTALL)


class _Part(Struct, frozen=True):
    r"""A part of a pattern: letters outside ASCII that its matches may begin and end with.

    ``empty`` says that they may be empty, ``bound_first`` and ``bound_last`` that ``\b`` may be at their ends.
    """

    first: str = ""
    last: str = ""
    empty: bool = True
    bound_first: bool = False
    bound_last: bool = False

    def then(self, other: "_Part") -> "_Part":
        """Return this part followed by another."""
        return _Part(
            first=self.first or (other.first if self.empty else ""),
            last=other.last or (self.last if other.empty else ""),
            empty=self.empty and other.empty,
            bound_first=self.bound_first or (self.empty and other.bound_first),
            bound_last=other.bound_last or (other.empty and self.bound_last),
        )

    def or_(self, other: "_Part") -> "_Part":
        """Return either of two parts."""
        return _Part(
            first=self.first or other.first,
            last=self.last or other.last,
            empty=self.empty or other.empty,
            bound_first=self.bound_first or other.bound_first,
            bound_last=self.bound_last or other.bound_last,
        )


_BOUND, _EDGE, _OTHER = _Part(bound_first=True, bound_last=True), _Part(), _Part(empty=False)


def letter_beside_bound(pattern: str) -> str | None:
    r"""Return what stands for a letter outside ASCII directly beside a ``\b`` or ``\B``, or None."""
    if r"\b" not in pattern.lower():
        return None
    groups: list[tuple[_Part | None, _Part]] = []  # the open ones: the alternatives, and what is before the group
    either: _Part | None = None
    part = _EDGE
    at = 0
    while token := TOKEN.match(pattern, at):
        at = token.end()
        if token.lastgroup == "open":
            groups.append((either, part))
            either, part = None, _EDGE
            continue
        if token.lastgroup == "or":
            either, part = (either.or_(part) if either else part), _EDGE
            continue
        if token.lastgroup == "close" and groups:
            item = either.or_(part) if either else part
            either, part = groups.pop()
        else:
            item = _item(token)
        if quantifier := QUANTIFIER.match(pattern, at):
            at = quantifier.end()
            item = item.or_(_EDGE) if quantifier["optional"] else item
        if found := (item.first if part.bound_last else "") or (part.last if item.bound_first else ""):
            return found
        part = part.then(item)
    return None


def _item(token: re.Match[str]) -> _Part:
    match token.lastgroup:
        case "bound":
            return _BOUND
        case "edge":
            return _EDGE
        case "class":
            letter = _in_class(token[0])
        case _:
            letter = token[0] if _is_letter(token[0]) else ""
    return _Part(first=letter, last=letter, empty=False) if letter else _OTHER


def _in_class(written: str) -> str:
    """Return a class if it names letters outside ASCII."""
    if written.startswith("[^"):
        return ""
    return written if any(map(_is_letter, _IN_CLASS.findall(written))) else ""


def _is_letter(token: str) -> bool:
    """Return whether a character, its code or the name of a class stands for letters outside ASCII."""
    if re.fullmatch(_LETTERS, token):
        return True
    char = chr(int(token[2:].strip("{}"), 16)) if re.fullmatch(CODE, token) else token[-1:]
    return not char.isascii() and char.isalnum()
