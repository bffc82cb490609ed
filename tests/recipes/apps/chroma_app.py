"""An application with a Chroma collection: chunks with ids of their own, each with its source."""

from typing import Any

import chromadb
from chromadb.api.types import Documents, EmbeddingFunction, Embeddings
from chromadb.config import Settings
from toy_corpus import CHUNKS, embed


class ToyEmbedding(EmbeddingFunction[Documents]):  # type: ignore[misc]
    """Chroma's interface to the toy embedding."""

    def __init__(self) -> None:
        pass

    def __call__(self, input: Documents) -> Embeddings:  # noqa: A002 (Chroma's name)
        return [embed(text) for text in input]

    @staticmethod
    def name() -> str:
        return "toy"

    def get_config(self) -> dict[str, Any]:
        return {}


client = chromadb.EphemeralClient(settings=Settings(anonymized_telemetry=False))
collection = client.create_collection("help", embedding_function=ToyEmbedding())
collection.add(
    ids=[f"chunk-{number}" for number in range(len(CHUNKS))],
    documents=[text for _, text in CHUNKS],
    metadatas=[{"source": source} for source, _ in CHUNKS],
)
