"""One problem of an input file, with its location."""

from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.core.text import shorten
from ragcontract.files.schema import Mismatch, dotted


class Problem(Struct, frozen=True):
    """One problem; the location is a path such as ``golden.jsonl:17: relevant_doc_ids``."""

    location: str
    message: str

    @classmethod
    def of(cls, location: str, mismatch: Mismatch) -> "Problem":
        """Create a problem from a mismatch in the value at a location."""
        return cls(f"{location}: {dotted(mismatch.path)}" if mismatch.path else location, mismatch.message)

    def __str__(self) -> str:
        """Return the location and the message as one sentence."""
        return f"{shorten(self.location, bounds.MESSAGE)}: {shorten(self.message, bounds.MESSAGE)}"
