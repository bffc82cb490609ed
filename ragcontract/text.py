"""Text that comes from files: made visible before it is escaped for a place."""

import re

# Control characters; line and paragraph separators; the invisible ones that reorder or hide text (bidirectional
# overrides, byte order mark, tag characters); halves of characters. Joiners stay: scripts and emoji need them.
_INVISIBLE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u00ad\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f\ud800-\udfff]"
)
_NAMES = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}


def visible(text: str) -> str:
    r"""Write characters that would act or hide as escapes: ``\n``, ``\x1b``, ``\u202e``."""
    return _INVISIBLE.sub(lambda match: _escape(match[0]), text)


def _escape(char: str) -> str:
    code = ord(char)
    if char in _NAMES:
        return _NAMES[char]
    return f"\\x{code:02x}" if code <= 0xFF else f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"  # noqa: PLR2004


def shorten(text: str, length: int) -> str:
    """Cut text to at most ``length`` characters, the last of which says so."""
    return text if len(text) <= length else text[: length - 1] + "…"


def printable(lines: str) -> str:
    """Break what a CI runner would take for a command in its log: ``::`` at a line's start, ``##[`` anywhere."""
    lines = re.sub(r"^(\s*):(?=:)", r"\1\\x3a", lines, flags=re.MULTILINE)
    return lines.replace("##[", r"##\x5b")
