r"""Regular expressions on RE2, which searches any answer in a time that is linear in its length.

Python's own engine can hang on hostile patterns, and on hostile answers with ordinary patterns. RE2 cannot, but its
``\d``, ``\s`` and ``\w`` are ASCII only and a few escapes have other names. A pattern is translated, so that it means
the same as in Python's ``re``. Only ``\b`` and ``\B`` stay ASCII. They are refused beside other letters.
"""

import re
import sys
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from ragcontract.answers.answer_text import Answer
from ragcontract.answers.dead_patterns import letter_beside_bound
from ragcontract.answers.metric_options import CannotScoreError
from ragcontract.answers.normalising import Span
from ragcontract.core import bounds
from ragcontract.core.safe_text import encodable, shorten, visible

INSTALL = 'pip install "rag-contract[answers]"'
_WITHIN_CHARACTER = 0x80  # the two highest bits of all bytes of a character but its first
_MEMORY = 8 << 20  # RE2's default for one pattern
_END = "ragcontract_end_"  # the beginning of the names of groups that stand for $
_CLASSES = {
    "d": r"\p{Nd}",
    "w": r"\p{L}\p{N}_",
    "s": r"\t\n\v\f\r\x1c-\x1f \x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}",
}
_UNICODE = r"\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8}|\\."
# The parts that are translated: quoted text, an escape, the start of a class, a repetition without a minimum, the end.
_OUTSIDE = re.compile(rf"\\Q.*?(?:\\E|\Z)|{_UNICODE}|\[\^?\]?|\{{,(?=[0-9]+\}})|\$", re.DOTALL)
_INSIDE = re.compile(rf"{_UNICODE}|\[:\^?[a-z]+:\]|\[|\]", re.DOTALL)
_MULTILINE = re.compile(r"\(\?[a-zA-Z]*m")
_NO_LOOKAROUND = "lookarounds and backreferences are not supported, write two rules instead"
_HINTS = (
    (r"\(\?<?[=!]|operator: \(\?P$|escape sequence: \\[1-9]", _NO_LOOKAROUND),
    (r"\(\?>|bad repetition operator", "atomic groups and possessive quantifiers are not supported, and not needed"),
    (r"repetition size", "repeat at most 1,000 times, nested repetitions multiplied"),
    (r"too large", "make its repetition counts smaller"),
    (r"\(\?[a-zA-Z]", "of the flags, i, m and s are supported"),
)
_AS_TEXT = 'to search for a text as it is, write {"text": …}, or a backslash before special characters'


class PatternError(ValueError):
    """A pattern that RE2 does not accept; the message completes "pattern …"."""


class NoEngineError(PatternError):
    """RE2 is not installed."""


class Pattern:
    """A compiled pattern."""

    def __init__(self, regexp: Any, written: str) -> None:
        self._regexp = regexp
        self.written = written
        self._ends = [group for name, group in regexp.groupindex.items() if name.startswith(_END)]
        self.size = int(regexp.programsize)  # instructions of 16 bytes

    def finds(self, answer: Answer) -> bool:
        """Return whether the pattern matches anywhere in the text of an answer."""
        match = self._regexp.search(answer.utf8)
        if match is None or match.end() > match.start():
            return match is not None
        return self.search(answer) is not None  # an empty match may be between two bytes

    def search(self, answer: Answer) -> Span | None:
        """Return the span of the first match in the text of an answer, or None."""
        return next(self.matches(answer), None)

    def matches(self, answer: Answer, within: Span | None = None) -> Iterator[Span]:
        """Yield the spans of the matches, from left to right, without overlaps; ``within`` a span of the text.

        Raises :class:`CannotScoreError` for a text that is too long to be searched for such a large pattern.
        """
        first, last = within or (0, len(answer.text))
        if (last - first) * self.size > bounds.SEARCHED:
            raise CannotScoreError(
                f"has a text of {last - first:,} characters, too long to search for "
                f"{shorten(visible(self.written), bounds.VALUE)!r}, whose repetitions and classes make "
                f"{self.size:,} instructions: at most {bounds.SEARCHED // self.size:,} characters; simplify the pattern"
            )
        start, end = answer.in_bytes(*within) if within else (0, len(answer.utf8))
        at, seen = 0, 0  # the same position in bytes and in characters
        previous = None
        for match in self._regexp.finditer(answer.utf8, start, end):
            if match.span() == previous:  # RE2 for Python yields an empty match after other text twice
                continue
            first, last = previous = match.span()
            if first < end and answer.utf8[first] & 0xC0 == _WITHIN_CHARACTER:
                continue  # an empty match between two bytes
            if any(match.end(group) > match.start(group) for group in self._ends):
                last -= 1  # the line break that follows the match
            before = seen + answer.characters(at, first)
            at, seen = last, before + answer.characters(first, last)
            yield before, seen


class _Cache:
    """Compiled patterns, of at most ``bounds.COMPILED`` instructions; a usual contract compiles each pattern once."""

    def __init__(self) -> None:
        self._patterns: dict[tuple[str, bool, bool], Pattern] = {}
        self._size = 0

    def get(self, pattern: str, *, ignore_case: bool, dot_all: bool) -> Pattern:
        """Return a compiled pattern."""
        key = (pattern, ignore_case, dot_all)
        if key not in self._patterns:
            made = _compiled(pattern, ignore_case=ignore_case, dot_all=dot_all)
            self._size += made.size
            if self._size > bounds.COMPILED:
                self._patterns.clear()
                self._size = made.size
            self._patterns[key] = made
        return self._patterns[key]


_CACHE = _Cache()


def compiled(pattern: str, *, ignore_case: bool = True, dot_all: bool = False) -> Pattern:
    """Return a compiled pattern; raises :class:`PatternError` if it is not a pattern."""
    return _CACHE.get(pattern, ignore_case=ignore_case, dot_all=dot_all)


def _compiled(pattern: str, *, ignore_case: bool, dot_all: bool) -> Pattern:
    if len(pattern) > bounds.PATTERN:
        raise PatternError(f"is longer than {bounds.PATTERN:,} characters; write several")
    engine = _engine()
    options = engine.Options()
    options.max_mem = _MEMORY
    options.log_errors = False
    options.never_capture = True  # of groups without a name, which makes a search faster
    options.case_sensitive = not ignore_case
    options.dot_nl = dot_all
    try:
        made = Pattern(engine.compile(translated(pattern), options), pattern)
    except engine.error as error:
        message = error.args[0] if error.args else ""
        raise PatternError(_explained(message.decode() if isinstance(message, bytes) else str(message))) from None
    if made.size > bounds.PROGRAM:
        size = f"makes {made.size:,} instructions, expected at most {bounds.PROGRAM:,}"
        raise PatternError(f"{size}; make its repetition counts smaller")
    if letter := letter_beside_bound(pattern):
        raise PatternError(
            rf"has \b or \B beside {shorten(visible(letter), bounds.VALUE)}, but these know only letters of ASCII, so "
            r'it does not match as it should; write {"text": …, "word": true}, or leave \b out'
        )
    return made


def missing_engine() -> str | None:
    """Return what patterns need and how to install it, if RE2 is not installed; completes "pattern …"."""
    try:
        _engine()
    except NoEngineError as error:
        return str(error)
    return None


def _engine() -> Any:
    try:
        import re2
    except ImportError:
        raise NoEngineError(f"needs RE2, which is not installed; run `{INSTALL}`") from None
    return re2


def _explained(message: str) -> str:
    hint = next((hint for pattern, hint in _HINTS if re.search(pattern, message)), _AS_TEXT)
    return f"is not an RE2 pattern ({shorten(visible(message), bounds.VALUE)}); {hint}"


def translated(pattern: str) -> str:
    r"""Return the pattern in the form that means to RE2 what it means to Python; raises :class:`PatternError`."""
    pattern = encodable(pattern)
    multiline = _MULTILINE.search(pattern) is not None
    parts: list[str] = []
    at = 0
    while match := _OUTSIDE.search(pattern, at):
        part = match[0]
        parts.append(pattern[at : match.start()])
        at = match.end()
        if part[0] == "[":
            at, members = _members(pattern, at)
            parts.append(part + members if part[-1] != "]" else part[:-1] + r"\]" + members)
        elif part[0] == "\\":
            parts.append(_escape(part))
        elif part == "$" and not multiline:
            # Python's $ matches before a last line break, too; the match then ends where this group begins.
            parts.append(rf"(?P<{_END}{match.start()}>\n?\z)")
        else:
            parts.append("$" if part == "$" else "{0,")
    return "".join([*parts, pattern[at:]])


def _escape(part: str) -> str:
    letter = part[1:2]
    if letter == "C":
        raise PatternError(r"is not a pattern of text (\C matches single bytes); write . instead")
    if letter.lower() in _CLASSES:  # with case: one mark has a letter as its upper case, and would be a letter
        return f"(?-i:[{'^' if letter.isupper() else ''}{_CLASSES[letter.lower()]}])"
    return r"\z" if part == r"\Z" else _code_point(part)


def _members(pattern: str, at: int) -> tuple[int, str]:
    """Return where a class ends, and its members with the bracket that closes it."""
    parts: list[str] = []
    while match := _INSIDE.search(pattern, at):
        part, letter = match[0], match[0][1:2]
        parts.append(pattern[at : match.start()])
        at = match.end()
        if part == "]":
            return at, "".join([*parts, part])
        if part[0] == "[":
            parts.append(r"\[" if part == "[" else part)
        elif letter in _CLASSES:
            parts.append(_CLASSES[letter])
        elif letter == "D":
            parts.append(r"\P{Nd}")
        elif letter.lower() in _CLASSES:
            parts.append(_all_but(letter))
        else:
            parts.append(r"\x08" if letter == "b" else _code_point(part))
    return len(pattern), "".join([*parts, pattern[at:]])


def _code_point(part: str) -> str:
    return rf"\x{{{part[2:]}}}" if part[:2] in {r"\u", r"\U"} and len(part) > len(r"\u") else part


@lru_cache(maxsize=2)
def _all_but(letter: str) -> str:
    r"""Return ``\W`` or ``\S`` as ranges, because RE2 has no way to name them in a class."""
    surrogates = range(0xD800, 0xE000)
    every = "".join(" " if code in surrogates and letter == "S" else chr(code) for code in range(sys.maxunicode + 1))
    return "".join(rf"\x{{{run.start():x}}}-\x{{{run.end() - 1:x}}}" for run in re.finditer(rf"\{letter}+", every))
