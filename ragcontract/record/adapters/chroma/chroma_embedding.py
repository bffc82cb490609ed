"""Embeds questions for a Chroma collection, as its documents were embedded.

The collection is always asked with a vector. Left to itself, Chroma takes its default function wherever it does not
know better, loads it again for each question, and downloads it.
"""

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.text import shorten, visible
from ragcontract.record.adapters.introspection import bases, named, text_at
from ragcontract.record.adapters.user_code import imported
from ragcontract.record.interface import Surroundings

DEFAULT = frozenset({"default", "onnx_mini_lm_l6_v2"})
SENTENCE_TRANSFORMER = "sentence_transformer"
# Chroma downloads the model of its default function again if one of these is missing.
MODEL_FILES = (
    "config.json",
    "model.onnx",
    "special_tokens_map.json",
    "tokenizer_config.json",
    "tokenizer.json",
    "vocab.txt",
)
FORMS = "default, sentence-transformers:MODEL, openai:MODEL or module:attribute"
Embed = Callable[[Sequence[str]], Any]


class Embedding(Struct, frozen=True, kw_only=True):
    """What makes vectors of texts; ``model`` is its name, if that is known."""

    embed: Embed
    model: str | None

    def vector(self, text: str) -> list[float]:
        """Return the vector of a text; raises InputError if there is none."""
        returned = self.embed([text])
        try:
            [vector] = returned
            numbers = [float(number) for number in vector]
        except (TypeError, ValueError) as error:
            shown = shorten(visible(repr(returned)), bounds.RETURNED_SHOWN)
            expected = "it gets a list of texts and returns a list with a vector for each"
            raise InputError([f"chroma.embedding: the function returned {shown}; {expected}"]) from error
        if not numbers or not all(map(math.isfinite, numbers)):
            raise InputError(["chroma.embedding: the function returned a vector without numbers"])
        return numbers


def embedding_of(
    given: str, *, device: str | None, api_key: str | None, surroundings: Surroundings, say: Callable[[str], None]
) -> Embedding:
    """Return what the target file names under ``embedding``; raises InputError if there is nothing of that name."""
    kind, _, model = given.partition(":")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # that keys which are handed over are not stored
        if given == "default":
            return default(surroundings, say)
        if kind == "sentence-transformers" and model:
            made = _sentence_transformer({"model_name": model, "device": device or "cpu"}, surroundings)
            return Embedding(embed=_of_questions(made), model=model)
        if kind == "openai" and model:
            from chromadb.utils.embedding_functions import OpenAIEmbeddingFunction

            made = OpenAIEmbeddingFunction(api_key=surroundings.secrets.filled(api_key or ""), model_name=model)
            return Embedding(embed=_of_questions(made), model=model)
    return _of_object(imported(given, surroundings.folder), given)


def stored(collection: Any, surroundings: Surroundings, say: Callable[[str], None]) -> Embedding:
    """Return the function that a collection says that its documents were embedded with; raises InputError."""
    hint = f"say `embedding:` in the target file: {FORMS}"
    known = _configuration(collection).get("embedding_function")
    if not isinstance(known, Mapping) or not isinstance(known.get("name"), str):
        raise InputError([f"chroma: the collection does not say how its documents were embedded; {hint}"])
    name, config = known["name"], known.get("config") or {}
    if name in DEFAULT:
        return default(surroundings, say)
    shown = shorten(visible(repr(name)), bounds.NAME)
    # A folder must not decide which secrets are read, nor whose code is run.
    if any(str(key).endswith("_env_var") for key in config):
        raise InputError([f"chroma: the collection's function {shown} takes a key from the environment; {hint}"])
    if "trust_remote_code" in repr(config):
        raise InputError([f"chroma: the collection's function {shown} runs code from elsewhere; {hint}"])
    if surroundings.offline and name != SENTENCE_TRANSFORMER:
        raise InputError([f"chroma: the collection's function {shown} may download a model (--offline); {hint}"])
    try:
        if name == SENTENCE_TRANSFORMER:
            function = _sentence_transformer(config, surroundings)
        else:
            function = collection.configuration["embedding_function"]
    except Exception as error:
        message = shorten(visible(str(error)), bounds.FAILURE)
        raise InputError([f"chroma: the collection's function {shown} cannot be made ({message}); {hint}"]) from error
    model = next((config[key] for key in ("model_name", "model") if isinstance(config.get(key), str)), name)
    return Embedding(embed=_of_questions(function), model=model)


def space_of(collection: Any) -> str:
    """Return how a collection measures distances: ``l2``, ``cosine`` or ``ip``."""
    configuration = _configuration(collection)
    index = configuration.get("hnsw") or configuration.get("spann") or {}
    # Up to 0.6, the metadata says it, and the configuration says `l2` whatever it is.
    return str(index.get("space") or (collection.metadata or {}).get("hnsw:space") or "l2")


def default(surroundings: Surroundings, say: Callable[[str], None]) -> Embedding:
    """Return Chroma's default function; raises InputError if it would have to be downloaded and must not be."""
    from chromadb.utils.embedding_functions import ONNXMiniLM_L6_V2

    folder = ONNXMiniLM_L6_V2.DOWNLOAD_PATH / ONNXMiniLM_L6_V2.EXTRACTED_FOLDER_NAME
    if not all((folder / name).exists() for name in MODEL_FILES):
        what = f"Chroma's default embedding function is a model of 80 MB, which is not in {folder}"
        if surroundings.offline:
            raise InputError([f"chroma: {what}, and must not be downloaded (--offline)"])
        say(f"{what}: Chroma downloads it")
    return Embedding(embed=ONNXMiniLM_L6_V2(), model=ONNXMiniLM_L6_V2.MODEL_NAME)


def _sentence_transformer(config: Mapping[str, Any], surroundings: Surroundings) -> Any:
    from chromadb.utils.embedding_functions import SentenceTransformerEmbeddingFunction

    named = {name: config[name] for name in ("model_name", "device", "normalize_embeddings") if name in config}
    # Older versions of the library do not know the name of this setting.
    offline = {"local_files_only": True} if surroundings.offline else {}
    return SentenceTransformerEmbeddingFunction(**{**(config.get("kwargs") or {}), **named, **offline})


def _configuration(collection: Any) -> Mapping[str, Any]:
    found = getattr(collection, "configuration_json", None)
    return found if isinstance(found, Mapping) else {}


def _of_questions(function: Any) -> Embed:
    """Return a function of Chroma's for questions, which some models embed in another way than documents."""
    found: Embed = getattr(function, "embed_query", function)
    return found


def _of_object(given: Any, name: str) -> Embedding:
    """Return what a user's function, class or object embeds with."""
    given = given() if isinstance(given, type) else given
    known = bases(given)
    model = text_at(given, "model_name", "model")
    if "langchain_core.Embeddings" in known:
        return Embedding(embed=lambda texts: [given.embed_query(text) for text in texts], model=model)
    if "llama_index.BaseEmbedding" in known:
        return Embedding(embed=lambda texts: [given.get_query_embedding(text) for text in texts], model=model)
    if "sentence_transformers.SentenceTransformer" in known:
        return Embedding(embed=given.encode, model=model)
    if not callable(given):
        raise InputError([f"chroma.embedding: {name} is a {named(given)}, no function; {FORMS}"])
    return Embedding(embed=_of_questions(given), model=model)
