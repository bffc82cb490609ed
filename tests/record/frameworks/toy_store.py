"""Folders as persistent clients of Chroma write them, with the toy corpus embedded in several ways."""

import hashlib
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.recipes.apps.toy_corpus import CHUNKS, embed

COLLECTIONS: Mapping[str, str] = {"squared": "l2", "cosine": "cosine", "product": "ip"}
EMBED = """
from tests.recipes.apps.toy_corpus import embed as vector

def embed(texts):
    return [vector(text) for text in texts]

def short(texts):
    return [[1.0, 2.0] for text in texts]

def one(texts):
    return vector(texts[0])

class Embedder:
    model_name = "toy-embedding-3"
    def __call__(self, texts):
        return embed(texts)
"""


def opened(folder: Path) -> Any:
    """Return a client of a folder."""
    import chromadb
    from chromadb.config import Settings

    return chromadb.PersistentClient(str(folder), settings=Settings(anonymized_telemetry=False))


def stored(folder: Path) -> Path:
    """Write a folder with a collection for each space, an empty one, and code that embeds beside it."""
    store = folder / "chroma_db"
    made = folder / "made"
    client = opened(made)
    for name, space in COLLECTIONS.items():
        fill(client.create_collection(name, metadata={"hnsw:space": space}, embedding_function=None))
    client.create_collection("nothing")
    # A client keeps its files open; what is recorded is what another process has written.
    shutil.copytree(made, store)
    (folder / "embed.py").write_text(EMBED)
    return store


def fill(collection: Any) -> None:
    """Add the corpus with the toy embedding."""
    collection.add(
        ids=[f"chunk-{number}" for number in range(len(CHUNKS))],
        documents=[text for _, text in CHUNKS],
        metadatas=[{"source": source, "chars": len(text)} for source, text in CHUNKS],
        embeddings=[embed(text) for _, text in CHUNKS],
    )


def digests(folder: Path) -> dict[str, str]:
    """Return the digest of each file in a folder."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
