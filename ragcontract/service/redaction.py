"""Takes personal data and keys out of texts before they are stored: what people typed, and what targets returned.

Each match becomes the name of its kind in brackets, as ``[email]``.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from ragcontract.answers.answer_text import Answer
from ragcontract.answers.metric_options import CannotScoreError
from ragcontract.answers.personal_data import KINDS
from ragcontract.answers.regexes import compiled
from ragcontract.core.safe_text import shorten
from ragcontract.service.database import storable
from ragcontract.service.mounted import REDACTED

OWN = "[redacted]"  # what a pattern of a project matches
MARGIN = 1_000  # characters; no card or key is longer


class Redactor:
    """Takes out what a project names: kinds that are known here, and patterns of its own."""

    def __init__(self, names: Sequence[str] = REDACTED) -> None:
        """Compile the patterns; raises :class:`~ragcontract.answers.regexes.PatternError` for what is none."""
        self._kinds = [redact for name, redact in KINDS.items() if name in names]
        self._patterns = [compiled(name) for name in names if name not in KINDS]

    def text(self, text: str) -> str:
        """Return a text as it may be stored."""
        text = storable(text)
        for redact in self._kinds:
            text = redact(text)
        for pattern in self._patterns:
            parts, at = list[str](), 0
            try:
                for start, end in pattern.matches(Answer(text, compose=False, markup=False)):
                    if start < end:
                        parts += [text[at:start], OWN]
                        at = end
            except CannotScoreError:  # the text is too long for such a large pattern
                return OWN
            text = "".join([*parts, text[at:]])
        return text

    def beginning(self, text: str, most: int) -> str:
        """Return the beginning of a text as it may be stored. What is at its end is whole when it is looked for."""
        return shorten(self.text(text[: most + MARGIN]), most)

    def json(self, value: Any) -> Any:
        """Return decoded JSON with all its texts as they may be stored."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list | tuple):
            return [self.json(inner) for inner in value]
        if isinstance(value, dict):
            return {self.text(str(name)): self.json(inner) for name, inner in value.items()}
        return value


@lru_cache(maxsize=64)
def redactor(names: tuple[str, ...] = REDACTED) -> Redactor:
    """Return what takes out what a project names."""
    return Redactor(names)
