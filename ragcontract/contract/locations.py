"""Where each key of a configuration stands."""

from msgspec import Struct

from ragcontract.core.text import encodable


class Locations(Struct, frozen=True, kw_only=True):
    """The path of a configuration file, and the line of each key by its path in the document."""

    path: str = ""
    lines: dict[tuple[str | int, ...], int] = {}

    def of(self, *keys: str | int) -> str:
        """Return the file and line of a key, as ``ragcontract.yml:4`` for "fail_on", "alpha"; empty if unknown."""
        line = self.lines.get(keys)
        return encodable(f"{self.path}:{line}") if line else ""
