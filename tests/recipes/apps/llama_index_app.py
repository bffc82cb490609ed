"""An application with a LlamaIndex retriever: documents that the index cuts into nodes."""

from typing import Any

from llama_index.core import Document, VectorStoreIndex
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.node_parser import SentenceSplitter
from toy_corpus import CHUNKS, embed


class ToyEmbedding(BaseEmbedding):  # type: ignore[misc]
    """LlamaIndex's interface to the toy embedding."""

    def _get_text_embedding(self, text: str) -> list[float]:
        return list(embed(text))

    def _get_query_embedding(self, query: str) -> list[float]:
        return list(embed(query))

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return list(embed(query))


def text_of(source: str) -> str:
    """Return the whole text of a document."""
    return " ".join(text for of, text in CHUNKS if of == source)


documents: list[Any] = [Document(text=text_of(source), id_=source) for source in dict.fromkeys(of for of, _ in CHUNKS)]
cut = SentenceSplitter(chunk_size=24, chunk_overlap=0)
index = VectorStoreIndex.from_documents(documents, embed_model=ToyEmbedding(), transformations=[cut])
retriever = index.as_retriever(similarity_top_k=20)
