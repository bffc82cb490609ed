"""Text that comes from files: made visible before it is escaped for a place."""

import re

# Control characters; line and paragraph separators; the invisible ones that reorder or hide text (bidirectional
# overrides, fillers, byte order mark, tag characters); halves of characters; the two that XML does not allow. Joiners
# and variation selectors stay: scripts and emoji need them. Compiled when one is met, which takes a millisecond.
_INVISIBLE = (
    "[\x00-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff"
    "\uffa0\ufff0-\ufffb\ufffe\uffff\U000e0000-\U000e007f\ud800-\udfff]"
)
_PRINTABLE = frozenset("\u034f\u115f\u1160\u3164\uffa0")  # those that are letters or marks by their category
# Colours are taken out where the output is no terminal, after which what stood around them is side by side.
_COLOUR = r"\x1b\[[0-9;]*m"
_NAMES = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}


def visible(text: str) -> str:
    r"""Write characters that would act or hide as escapes: ``\n``, ``\x1b``, ``\u202e``."""
    if text.isprintable() and (text.isascii() or _PRINTABLE.isdisjoint(text)):  # nearly always, and much quicker
        return text
    return re.sub(_INVISIBLE, lambda match: _escape(match[0]), text)


def _escape(char: str) -> str:
    code = ord(char)
    if char in _NAMES:
        return _NAMES[char]
    return f"\\x{code:02x}" if code <= 0xFF else f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"  # noqa: PLR2004


def encodable(text: str) -> str:
    """Write the bytes of a file's name that are not UTF-8 as escapes; any other text is returned as it is."""
    return text.encode(errors="backslashreplace").decode()


def shorten(text: str, length: int) -> str:
    """Cut text to at most ``length`` characters, the last of which says so."""
    return text if len(text) <= length else text[: length - 1] + "…"


def printable(lines: str) -> str:
    """Break what a CI runner would take for a command in its log: ``::`` at a line's start, ``##[`` anywhere."""
    lines = re.sub(rf"^((?:\s|{_COLOUR})*):(?=(?:{_COLOUR})*:)", r"\1\\x3a", lines, flags=re.MULTILINE)
    return re.sub(rf"(#(?:{_COLOUR})*#(?:{_COLOUR})*)\[", r"\1\\x5b", lines)
