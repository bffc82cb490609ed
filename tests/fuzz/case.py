"""A case: what one execution gets, as a target and files, and how it is stored in the corpus."""

from pathlib import Path

import msgspec
from msgspec import Struct

CORPUS = Path(__file__).parent / "corpus"


class Case(Struct, frozen=True, kw_only=True):
    """The files that ``target`` runs on, by their path in the workspace; its options are files, too."""

    target: str
    files: dict[str, bytes]

    @property
    def size(self) -> int:
        """The bytes of all files."""
        return sum(map(len, self.files.values()))

    def packed(self) -> bytes:
        """Return the case as bytes, for the journal of a worker."""
        return msgspec.msgpack.encode(self)

    @classmethod
    def unpacked(cls, data: bytes) -> "Case":
        """Return the case that :meth:`packed` made."""
        return msgspec.msgpack.decode(data, type=cls)

    def save(self, folder: Path) -> None:
        """Write the files into a folder, which is named for the case within one that is named for the target."""
        for name, data in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)

    @classmethod
    def load(cls, folder: Path) -> "Case":
        """Read what :meth:`save` wrote."""
        files = {
            str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()
        }
        return cls(target=folder.parent.name, files=files)


def stored(corpus: Path = CORPUS) -> dict[str, Case]:
    """Return the cases of a corpus by ``target/name``."""
    folders = sorted(path for path in corpus.glob("*/*") if path.is_dir())
    return {f"{folder.parent.name}/{folder.name}": Case.load(folder) for folder in folders}
