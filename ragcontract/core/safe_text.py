"""Sanitizing of text from files before it is escaped for an output."""

import re

# Control characters; line and paragraph separators; invisible characters that reorder or hide text (bidirectional
# overrides, fillers, byte order mark, tag characters); lone surrogates; the two noncharacters that XML does not allow.
# Joiners and variation selectors are allowed, because scripts and emoji need them. The pattern is compiled on first
# use, because that takes a millisecond.
_INVISIBLE = (
    "[\x00-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff"
    "\uffa0\ufff0-\ufffb\ufffe\uffff\U000e0000-\U000e007f\ud800-\udfff]"
)
_PRINTABLE = frozenset("\u034f\u115f\u1160\u3164\uffa0")  # characters of the pattern that str.isprintable() accepts
# Colour codes are removed if the output is not a terminal, which joins the text on both sides of them.
_COLOUR = r"\x1b\[[0-9;]*m"
_BLANKS = rf"(?:[^\S\n]|{_COLOUR})*"  # within a line: across lines, each blank line would be searched again and again
_NAMES = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}


def visible(text: str) -> str:
    r"""Replace control and invisible characters with escapes: ``\n``, ``\x1b``, ``\u202e``."""
    if text.isprintable() and (text.isascii() or _PRINTABLE.isdisjoint(text)):  # the common case, and much faster
        return text
    return re.sub(_INVISIBLE, lambda match: _escape(match[0]), text)


def _escape(char: str) -> str:
    code = ord(char)
    if char in _NAMES:
        return _NAMES[char]
    return f"\\x{code:02x}" if code <= 0xFF else f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"  # noqa: PLR2004


def encodable(text: str) -> str:
    """Replace the bytes of a file name that are not UTF-8 with escapes; other text is unchanged."""
    return text.encode(errors="backslashreplace").decode()


def shorten(text: str, length: int) -> str:
    """Cut text to at most ``length`` characters, ending in an ellipsis if it was cut."""
    return text if len(text) <= length else text[: length - 1] + "…"


def clipped(text: str, length: int) -> str:
    """Return ``shorten(visible(text), length)``, in a time that does not depend on what is cut off."""
    return shorten(visible(text[: length + 1]), length)


def clipped_line(text: str, length: int) -> str:
    """Return the start of a text as one line, as :func:`clipped` does, with single spaces for all blanks."""
    return clipped(" ".join(text.split(None, length + 1)[: length + 1]), length)


def printable(lines: str) -> str:
    """Escape what a CI runner would read as a command in its log: ``::`` at the start of a line, ``##[`` anywhere."""
    lines = re.sub(rf"^({_BLANKS}):(?=(?:{_COLOUR})*:)", r"\1\\x3a", lines, flags=re.MULTILINE)
    return re.sub(rf"(#(?:{_COLOUR})*#(?:{_COLOUR})*)\[", r"\1\\x5b", lines)


def printable_json(document: str) -> str:
    """Escape in JSON what would act on a terminal or a CI runner; the document stays equal as JSON."""
    escaped = re.sub(_INVISIBLE, lambda match: match[0] if match[0] == "\n" else _in_json(match[0]), document)
    return escaped.replace("##[", r"##\u005b")


def printable_xml(document: str) -> str:
    """Escape in XML what would act on a terminal or a CI runner; the document stays equal as XML."""
    escaped = re.sub(_INVISIBLE, lambda match: match[0] if match[0] in "\n\t\r" else f"&#{ord(match[0])};", document)
    escaped = re.sub(r"^([^\S\n]*):(?=:)", r"\1&#58;", escaped, flags=re.MULTILINE)
    return escaped.replace("##[", "##&#91;")


def _in_json(char: str) -> str:
    units = char.encode("utf-16-be", errors="surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
