"""Search the example corpus with BM25.

`rag-contract record search.py:full` asks it every question of `golden.jsonl` and writes a run; `search.py:lean` is the
same retriever over an index that is smaller and faster to build. Only `latency_ms` differs from one recording to the
next. To use rag-contract with a retriever of your own, name it in the command in place of this one.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import bm25s

HERE = Path(__file__).resolve().parent
FRONT_MATTER = re.compile(r"\A---\n(?P<fields>.*?)\n---\n", re.DOTALL)


@dataclass(frozen=True, kw_only=True, slots=True)
class Setting:
    """How the index is built: what goes in, and how it is cut into chunks."""

    published_only: bool
    """Leave out documents that are internal or archived."""
    lead_words: int | None
    """Index only this many words of each document, as one chunk; None makes a chunk of every paragraph."""
    chunking_version: str


FULL = Setting(published_only=True, lead_words=None, chunking_version="paragraphs-v1")
# "Make the index smaller and faster to build": innocent at first sight, and what the contract is there to catch.
LEAN = Setting(published_only=False, lead_words=40, chunking_version="lead-40-words-v1")


@dataclass(frozen=True, kw_only=True, slots=True)
class Document:
    """One Markdown file of the corpus; its id is the file's name without `.md`."""

    doc_id: str
    metadata: Mapping[str, str]
    title: str
    paragraphs: Sequence[str]

    @property
    def published(self) -> bool:
        """Whether a customer may read this document and it is still in force."""
        return self.metadata["visibility"] == "public" and self.metadata["status"] == "current"


@dataclass(frozen=True, kw_only=True, slots=True)
class Chunk:
    """A piece of a document that is indexed and scored on its own."""

    chunk_id: str
    document: Document
    text: str


def read_document(path: Path) -> Document:
    """Split a Markdown file into front matter (`key: value` lines), title and paragraphs."""
    text = path.read_text(encoding="utf-8")
    front_matter = FRONT_MATTER.match(text)
    if front_matter is None:
        raise SystemExit(f"{path}: the file must start with front matter between two lines of ---")
    pairs = (line.partition(":") for line in front_matter["fields"].splitlines())
    metadata = {key.strip(): value.strip() for key, _, value in pairs}
    title, *paragraphs = text[front_matter.end() :].strip().split("\n\n")
    return Document(doc_id=path.stem, metadata=metadata, title=title.removeprefix("# "), paragraphs=paragraphs)


def cut(document: Document, lead_words: int | None) -> list[Chunk]:
    """Cut a document into chunks; the title is part of each, so that a later paragraph is not out of context."""
    if lead_words is None:
        texts = [f"{document.title}\n{paragraph}" for paragraph in document.paragraphs]
    else:
        words = " ".join([document.title, *document.paragraphs]).split()
        texts = [" ".join(words[:lead_words])]
    return [
        Chunk(chunk_id=f"{document.doc_id}#{number}", document=document, text=text)
        for number, text in enumerate(texts, start=1)
    ]


def tokenize(texts: list[str]) -> list[list[str]]:
    """Lower-case words of two letters or more, without English stop words."""
    tokens: list[list[str]] = bm25s.tokenize(texts, stopwords="en_plus", return_ids=False, show_progress=False)
    return tokens


class Retriever:
    """BM25 over chunks; a document is as good as its best chunk and is returned once."""

    def __init__(self, setting: Setting, corpus: Path = HERE / "corpus") -> None:
        """Store how the folder of Markdown files is to be indexed."""
        self._setting = setting
        self._corpus = corpus
        self.documents: Mapping[str, Document] = {}

    def setup(self) -> None:
        """Read and index the documents; `rag-contract record` calls this once, before the first question."""
        documents = [read_document(path) for path in sorted(self._corpus.glob("*.md"))]
        kept = [document for document in documents if document.published or not self._setting.published_only]
        self.documents = {document.doc_id: document for document in kept}
        self._chunks = [chunk for document in kept for chunk in cut(document, self._setting.lead_words)]
        self._bm25 = bm25s.BM25()
        self._bm25.index(tokenize([chunk.text for chunk in self._chunks]), show_progress=False)

    def run(self, query: str, context: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return at most `top` results, best first; equal scores are ordered by document id."""
        [tokens] = tokenize([query])
        if not tokens:
            return []
        best: dict[str, tuple[float, Chunk]] = {}
        for chunk, raw_score in zip(self._chunks, self._bm25.get_scores(tokens), strict=True):
            score = round(float(raw_score), 4)
            doc_id = chunk.document.doc_id
            if score > 0 and (doc_id not in best or score > best[doc_id][0]):
                best[doc_id] = (score, chunk)
        ranked = sorted(best.items(), key=lambda item: (-item[1][0], item[0]))
        return [
            {"doc_id": doc_id, "score": score, "chunk_id": chunk.chunk_id, "metadata": chunk.document.metadata}
            for doc_id, (score, chunk) in ranked[: context["top"]]
        ]

    def versions(self) -> dict[str, str]:
        """Return what made these results; reports name what changed."""
        fingerprint = hashlib.sha256("\0".join(chunk.text for chunk in self._chunks).encode()).hexdigest()
        return {
            "embedding_model": "none",
            "index_version": f"corpus-{fingerprint[:12]}",
            "chunking_version": self._setting.chunking_version,
            "retriever_version": f"bm25s-{version('bm25s')}",
        }


full = Retriever(FULL)
lean = Retriever(LEAN)
