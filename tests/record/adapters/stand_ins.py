"""Stand-ins for LangChain, LlamaIndex and Chroma: as much of each as an adapter touches.

`make test-record` runs the adapters with the frameworks themselves; these let the other tests run without them.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar

import pytest


def of(package: str, *names: str, **members: Any) -> type[Any]:
    """Return a class that says that it is of a package, under a base class of that package for each further name."""
    bases: tuple[type[Any], ...] = ()
    for name in reversed(names):
        bases = (type(name, bases, {"__module__": f"{package}.somewhere"}),)
    return type(f"My{names[0]}", bases, members)


def installed(patch: pytest.MonkeyPatch, name: str, **members: Any) -> ModuleType:
    """Let a module be imported that has these members, and its packages."""
    made = ModuleType(name)
    vars(made).update(members)
    parent, _, last = name.rpartition(".")
    import sys

    if parent:
        setattr(sys.modules.get(parent) or installed(patch, parent), last, made)
    patch.setitem(sys.modules, name, made)
    return made


# LangChain

Retriever = of("langchain_core", "BaseRetriever", "Runnable")
Runnable = of("langchain_core", "Runnable")


class Document(of("langchain_core", "Document")):  # type: ignore[misc]
    """A document."""

    def __init__(self, text: str, id: str | None = None, **metadata: Any) -> None:  # noqa: A002 (LangChain's name)
        self.page_content = text
        self.id = id
        self.metadata = metadata


class Message(of("langchain_core", "BaseMessage")):  # type: ignore[misc]
    """A message of a person (`human`), a model (`ai`) or a tool (`tool`)."""

    model_fields = ("type", "content", "tool_calls", "additional_kwargs", "response_metadata")  # as of pydantic

    def __init__(self, type: str, content: Any, **more: Any) -> None:  # noqa: A002 (LangChain's name)
        self.type = type
        self.content = content
        self.__dict__.update(more)


class Chain(Runnable):  # type: ignore[misc,valid-type]
    """A runnable that does what a function says, which gets what the runnable is asked with, and the callbacks."""

    def __init__(self, does: Callable[[Any, Any], Any], schema: Any = None) -> None:
        self._does = does
        self._schema = schema
        self.configs: list[Mapping[str, Any]] = []

    def get_input_jsonschema(self) -> Any:
        if isinstance(self._schema, Exception):
            raise self._schema
        return {"properties": {name: {} for name in self._schema}} if self._schema else {}

    def invoke(self, given: Any, config: Mapping[str, Any]) -> Any:
        self.configs.append(config)
        return self._does(given, config["callbacks"][0])

    async def ainvoke(self, given: Any, config: Mapping[str, Any]) -> Any:
        return {"answer": f"awaited {given}", "context": []} | ({"config": 1} if "callbacks" in config else {})


def langchain(patch: pytest.MonkeyPatch) -> None:
    """Let LangChain's callbacks be imported."""
    installed(patch, "langchain_core.callbacks", BaseCallbackHandler=type("BaseCallbackHandler", (), {}))


# LlamaIndex


class Node(SimpleNamespace):
    """A node with a score."""

    def __init__(self, text: str, score: float | None, *, node_id: str, ref_doc_id: str | None = None) -> None:
        content: dict[str, Any] = {
            "node_id": node_id,
            "ref_doc_id": ref_doc_id,
            "metadata": {},
            "get_content": lambda: text,
        }
        super().__init__(score=score, node=SimpleNamespace(**content))


def llama_index(patch: pytest.MonkeyPatch) -> None:
    """Let LlamaIndex's messages be imported."""
    installed(patch, "llama_index.core.llms", ChatMessage=SimpleNamespace)


# Chroma


class Collection(of("chromadb", "Collection")):  # type: ignore[misc]
    """A collection of three chunks, the nearer the smaller the first number of a vector of two."""

    name = "help"
    id = "c-1"

    def __init__(self, **more: Any) -> None:
        self.metadata: Any = None
        self.configuration_json: Any = {}
        self.size = 3
        self.asked: list[Mapping[str, Any]] = []
        self.__dict__.update(more)

    def count(self) -> int:
        return self.size

    def query(self, *, n_results: int, **asked: Any) -> Mapping[str, Any]:
        self.asked.append({"n_results": n_results, **asked})
        vector = (asked.get("query_embeddings") or [[0.0, 0.0]])[0]
        if len(vector) != 2:
            raise ValueError(f"expecting embedding with dimension of 2, got {len(vector)}")
        found = [("chunk-a", "A", "doc_a", 0.25), ("chunk-b", "B", "doc_b", 0.5), ("chunk-c", None, "doc_c", 2.0)]
        found = found[:n_results]
        return {
            "ids": [[own for own, *_ in found]],
            "documents": [[text for _, text, *_ in found]],
            "metadatas": [[{"source": source} for *_, source, _ in found]],
            "distances": [[distance for *_, distance in found]],
        }


class Onnx:
    """Chroma's default function, with its model in a folder."""

    DOWNLOAD_PATH: Path
    EXTRACTED_FOLDER_NAME = "onnx"
    MODEL_NAME = "all-MiniLM-L6-v2"

    def __call__(self, texts: list[str]) -> list[list[float]]:
        return [[float(len(text)), 0.0] for text in texts]


class Made:
    """One of Chroma's functions for others' models; it remembers what it was made with."""

    made: ClassVar[list[Mapping[str, Any]]] = []

    def __init__(self, **options: Any) -> None:
        self.made.append(options)

    def embed_query(self, texts: list[str]) -> list[list[float]]:
        return [[1.0, 2.0] for _ in texts]


def chroma(patch: pytest.MonkeyPatch, folder: Path, *collections: Collection, old: bool = False) -> list[Any]:
    """Let Chroma be imported, with collections in whatever folder is opened; return the clients that are made."""
    clients: list[Any] = []

    class Client:
        def __init__(self, path: str, settings: Any) -> None:
            if "broken" in (Path(path) / "chroma.sqlite3").read_text():
                raise Panic("range end index out of range")
            self.path = Path(path)
            self.settings = settings
            self.closed = False
            clients.append(self)

        def list_collections(self) -> list[Any]:
            return [one.name if old else one for one in collections]

        def get_collection(self, name: str) -> Collection:
            return next(one for one in collections if one.name == name)

    if not old:
        Client.close = lambda self: setattr(self, "closed", True)  # type: ignore[attr-defined]
    Onnx.DOWNLOAD_PATH = folder / "models"
    Made.made.clear()
    installed(patch, "chromadb", PersistentClient=Client)
    installed(patch, "chromadb.config", Settings=dict)
    functions = {"SentenceTransformerEmbeddingFunction": Made, "OpenAIEmbeddingFunction": Made}
    installed(patch, "chromadb.utils.embedding_functions", ONNXMiniLM_L6_V2=Onnx, **functions)
    return clients


class Panic(BaseException):
    """What Rust code raises that panics."""
