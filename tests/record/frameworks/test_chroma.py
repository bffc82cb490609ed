"""Chroma itself: rows equal those made by hand from its own call, and the folder stays as it is."""

import json
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ragcontract.core.errors import InputError
from ragcontract.net.secrets import Secrets
from ragcontract.record.adapters.chroma import ChromaOptions, of_object, system
from ragcontract.record.interface import CallFailed, Context, Response, Surroundings
from tests.local_server import LocalServer, QuietHandler
from tests.recipes.apps.toy_corpus import CHUNKS, embed
from tests.record.frameworks import toy_onnx
from tests.record.frameworks.needed import asked, need
from tests.record.frameworks.toy_store import COLLECTIONS, digests, fill, opened, stored

pytestmark = pytest.mark.record

REFUND, SSO = "How do I get a refund, my money back?", "How do I upload the metadata of our identity provider?"
TOP = 2  # the others are equally near, and Chroma returns those in any order


@pytest.fixture(autouse=True)
def _chroma() -> Iterator[None]:
    need("chromadb")
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if name in {"embed", "target_embed"}:
            del sys.modules[name]


@pytest.fixture(scope="module")
def _stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    need("chromadb")
    return stored(tmp_path_factory.mktemp("chroma"))


@pytest.fixture
def store(_stored: Path, tmp_path: Path) -> Path:
    """Return a folder of Chroma's with code beside it."""
    shutil.copy(_stored.parent / "embed.py", tmp_path)
    return Path(shutil.copytree(_stored, tmp_path / "chroma_db"))


def target(store: Path, *, embedding: str | None = "embed.py:embed", **options: Any) -> Any:
    """Return the system for a collection of a store."""
    around = {name: options.pop(name) for name in ("offline", "secrets", "say", "doc_id") if name in options}
    given = {"path": store.name, "collection": "cosine", "embedding": embedding} | options
    return system(ChromaOptions(**given), Surroundings(folder=store.parent, **around))


def by_hand(store: Path, query: str, *, top: int, collection: str = "cosine") -> list[Mapping[str, Any]]:
    """Return the results of a row for what Chroma finds in a copy of a store."""
    copy = shutil.copytree(store, store.with_name(f"copy-{len(list(store.parent.iterdir()))}"))
    found = opened(copy).get_collection(collection).query(query_embeddings=[embed(query)], n_results=top)
    columns = (found[name][0] for name in ("ids", "documents", "metadatas", "distances"))
    return [
        {
            "doc_id": metadata["source"],
            "chunk_id": own,
            "score": -distance if COLLECTIONS[collection] == "l2" else 1 - distance,
            "text": text,
            "metadata": metadata,
        }
        for own, text, metadata, distance in zip(*columns, strict=True)
    ]


@pytest.mark.parametrize("collection", COLLECTIONS)
def test_rows_are_what_chroma_finds_and_scores_descend(collection: str, store: Path) -> None:
    responses = asked(target(store, collection=collection), REFUND, SSO, top=TOP)
    assert [one.results for one in responses] == [
        by_hand(store, query, top=TOP, collection=collection) for query in (REFUND, SSO)
    ]
    for response in responses:
        scores = [one["score"] for one in response.results or ()]
        assert scores == sorted(scores, reverse=True)
    # Vectors of the toy corpus have length 1: the product of two is their cosine.
    product = sum(a * b for a, b in zip(embed(SSO), embed((responses[1].results or [{}])[0]["text"]), strict=True))
    expected = 2 * product - 2 if collection == "squared" else product
    assert (responses[1].results or [{}])[0]["score"] == pytest.approx(expected, abs=1e-5)


def test_a_folder_that_may_only_be_read_is_recorded_and_stays_as_it_is(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copies = tmp_path / "copies"
    copies.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(copies))
    before = digests(store)
    for path in [*store.rglob("*"), store]:
        path.chmod(0o500 if path.is_dir() else 0o400)
    try:
        responses = asked(target(store), REFUND, SSO)
    finally:
        for path in [store, *store.rglob("*")]:
            path.chmod(0o700 if path.is_dir() else 0o600)
    assert all(response.results for response in responses)
    assert digests(store) == before
    assert list(copies.iterdir()) == []


def test_in_place_chroma_writes_to_the_folder(store: Path) -> None:
    before = digests(store)
    responses = asked(target(store, in_place=True), REFUND, top=TOP)
    assert responses[0].results == by_hand(store, REFUND, top=TOP)
    assert digests(store) != before


def test_a_folder_that_is_not_there_is_not_created(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"chroma.path: .*chroma_db: there is no such folder"):
        target(tmp_path / "chroma_db").setup()
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "chroma_db").mkdir()
    with pytest.raises(InputError, match=r"chroma_db: has no chroma.sqlite3"):
        target(tmp_path / "chroma_db").setup()
    assert list((tmp_path / "chroma_db").iterdir()) == []


def test_a_collection_that_is_not_there_is_named_with_what_is(store: Path) -> None:
    with pytest.raises(InputError, match=r"there is no collection 'cosin'; did you mean 'cosine'\?"):
        target(store, collection="cosin").setup()
    with pytest.raises(InputError, match=r"no collection 'x'; there are cosine, nothing, product, squared"):
        target(store, collection="x").setup()


def test_an_empty_collection_is_refused(store: Path) -> None:
    with pytest.raises(InputError, match=r"chroma.collection: nothing: is empty"):
        target(store, collection="nothing").setup()


def test_what_is_no_database_is_refused(store: Path) -> None:
    (store / "chroma.sqlite3").write_bytes(b"SQLite format 3\0" + b"\xff" * 5000)
    with pytest.raises(InputError, match=r"chroma_db: cannot be opened by the Chroma that is installed \("):
        target(store).setup()


def test_more_results_than_there_are_is_all_of_them(store: Path) -> None:
    [response] = asked(target(store), REFUND, top=50)
    assert len(response.results or ()) == 6


def test_a_filter_narrows_the_results(store: Path) -> None:
    [response] = asked(target(store, where={"source": "sso_setup"}), REFUND)
    assert [one["doc_id"] for one in response.results or ()] == ["sso_setup", "sso_setup"]
    with pytest.raises(InputError, match=r"cannot be asked with this embedding and this filter \(.*\$near"):
        target(store, where={"source": {"$near": 1}}).setup()


def test_a_document_is_named_by_an_expression_and_the_command_lines_wins(store: Path) -> None:
    [response] = asked(target(store, doc_id="id"), REFUND, top=1)
    assert (response.results or [{}])[0]["doc_id"] == "chunk-0"


def test_versions_and_facts_say_what_was_asked(store: Path) -> None:
    system = target(store, embedding="embed.py:Embedder")
    system.setup()
    versions, facts = system.versions(), system.facts()["chroma"]
    identity = str(system.target.id)
    system.teardown()
    assert versions == {"embedding_model": "toy-embedding-3", "index_version": f"chroma:{identity}:6"}
    assert (facts["collection"], facts["count"], facts["space"]) == ("cosine", 6, "cosine")


def test_a_vector_of_another_dimension_fails_before_the_first_question(store: Path) -> None:
    with pytest.raises(InputError, match=r"cannot be asked with this embedding .*512.*\b2\b|\b2\b.*512"):
        target(store, embedding="embed.py:short").setup()


def test_a_function_that_is_none_for_lists_is_explained(store: Path) -> None:
    with pytest.raises(InputError, match=r"it gets a list of texts and returns a list with a vector for each"):
        target(store, embedding="embed.py:one").setup()


def test_a_collection_that_does_not_say_how_it_was_embedded_needs_to_be_told(store: Path) -> None:
    with pytest.raises(InputError, match=r"does not say how its documents were embedded; say `embedding:` in the tar"):
        target(store, embedding=None).setup()


def test_an_open_collection_embeds_for_itself(store: Path) -> None:
    from chromadb.api.types import EmbeddingFunction

    class Toy(EmbeddingFunction):  # type: ignore[misc]
        def __init__(self) -> None:
            pass

        def __call__(self, input: Any) -> Any:  # noqa: A002 (Chroma's name)
            return [embed(text) for text in input]

    collection = opened(shutil.copytree(store, store.with_name("mine"))).get_collection(
        "cosine", embedding_function=Toy()
    )
    found = of_object(collection, Surroundings())
    assert found is not None
    [response] = asked(found, REFUND, top=TOP)
    assert response.results == by_hand(store, REFUND, top=TOP)
    assert of_object(Toy(), Surroundings()) is None


# The function that a collection stores


def test_the_default_function_is_not_downloaded_offline(store: Path, home: Path) -> None:
    sentence = f"is a model of 80 MB, which is not in {home}"
    with pytest.raises(InputError, match=rf"{sentence}.* must not be downloaded \(--offline\)"):
        target(store, embedding="default", offline=True).setup()
    said: list[str] = []
    with pytest.raises(InputError, match="a text cannot be embedded"):  # there is no network in this test
        target(store, embedding="default", say=said.append).setup()
    assert len(said) == 1
    assert sentence in said[0]


def test_the_default_function_embeds_what_it_embedded(store: Path, home: Path) -> None:
    import chromadb

    toy_onnx.installed(home / "onnx")
    made = opened(store).create_collection("own")
    made.add(ids=[str(number) for number in range(len(CHUNKS))], documents=[text for _, text in CHUNKS])
    found = made.query(query_texts=[SSO], n_results=TOP)
    expected = [
        {"doc_id": own, "chunk_id": own, "score": -distance, "text": text}
        for own, text, distance in zip(*(found[name][0] for name in ("ids", "documents", "distances")), strict=True)
    ]
    # Before Chroma 1, collections do not store their functions.
    stored = int(chromadb.__version__.split(".")[0]) > 0
    system = target(store, collection="own", embedding=None if stored else "default", offline=True)
    [response] = asked(system, SSO, top=TOP)
    assert [{**one, "score": pytest.approx(one["score"], abs=1e-5)} for one in expected] == response.results
    assert system.versions()["embedding_model"] == "all-MiniLM-L6-v2"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of Chroma's default model, in which there is none, and which cannot be downloaded."""
    from chromadb.utils.embedding_functions import ONNXMiniLM_L6_V2

    folder = tmp_path / "models"
    monkeypatch.setattr(ONNXMiniLM_L6_V2, "DOWNLOAD_PATH", folder)
    monkeypatch.setattr(ONNXMiniLM_L6_V2, "MODEL_DOWNLOAD_URL", "http://127.0.0.1:9/none")
    return folder


def test_a_stored_function_that_is_not_known_here_is_named(store: Path) -> None:
    import chromadb
    from chromadb.api.types import EmbeddingFunction
    from chromadb.utils import embedding_functions

    class Toy(EmbeddingFunction):  # type: ignore[misc]
        def __init__(self) -> None:
            pass

        def __call__(self, input: Any) -> Any:  # noqa: A002 (Chroma's name)
            return [embed(text) for text in input]

        @staticmethod
        def name() -> str:
            return "toys"

        def get_config(self) -> dict[str, Any]:
            return {}

        @staticmethod
        def build_from_config(config: dict[str, Any]) -> Any:  # noqa: ARG004
            return Toy()

    fill(opened(store).create_collection("stored", embedding_function=Toy()))
    # What Chroma registered in this process is not there in another one.
    getattr(embedding_functions, "known_embedding_functions", {}).pop("toys", None)
    # Before Chroma 1, collections do not store their functions.
    since_1 = int(chromadb.__version__.split(".")[0]) > 0
    why = (
        r"function 'toys' cannot be made \(.*not found.*say `embed" if since_1 else "does not say how its documents wer"
    )
    with pytest.raises(InputError, match=why):
        target(store, collection="stored", embedding=None).setup()
    assert asked(target(store, collection="stored"), REFUND)[0].results


# OpenAI


@contextmanager
def openai(status: int = 200) -> Iterator[tuple[str, list[tuple[str, Any]]]]:
    """Serve embeddings as OpenAI does, and yield the address and what was asked."""
    requests: list[tuple[str, Any]] = []

    class Handler(QuietHandler):
        def do_POST(self) -> None:  # noqa: N802 (http.server's name)
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            requests.append((self.headers["Authorization"], body))
            vectors = [{"object": "embedding", "index": 0, "embedding": embed(text)} for text in body["input"]]
            usage = {"prompt_tokens": 1, "total_tokens": 1}
            good = {"object": "list", "data": vectors, "model": body["model"], "usage": usage}
            bad = {"error": {"message": f"wrong key: {self.headers['Authorization']}"}}
            answer = json.dumps(good if status == 200 else bad).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

    with LocalServer(Handler) as server:
        yield f"{server.origin}/v1", requests


OPENAI = {"embedding": "openai:text-embedding-3-small", "api_key": "${secret:OPENAI_KEY}"}
SECRETS = Secrets({"OPENAI_KEY": "sk-0123456789abcdef"})


def test_questions_are_embedded_by_openai(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with openai() as (address, requests):
        monkeypatch.setenv("OPENAI_BASE_URL", address)
        system = target(store, **OPENAI, secrets=SECRETS)
        [response] = asked(system, REFUND, top=TOP)
    results = by_hand(store, REFUND, top=TOP)
    # The client asks for numbers of half the size.
    assert [{**one, "score": pytest.approx(one["score"], abs=1e-5)} for one in results] == response.results
    assert [(key, body["model"], body["input"]) for key, body in requests][1:] == [
        ("Bearer sk-0123456789abcdef", "text-embedding-3-small", [REFUND])
    ]


def test_a_key_is_not_in_messages(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with openai(401) as (address, _):
        monkeypatch.setenv("OPENAI_BASE_URL", address)
        with pytest.raises(InputError, match="a text cannot be embedded") as refused:
            target(store, **OPENAI, secrets=SECRETS).setup()
    assert "wrong key" in str(refused.value)
    assert "0123456789" not in str(refused.value)


# Failing and threads


def test_what_fails_later_is_a_failed_attempt(store: Path) -> None:
    system = target(store)
    system.setup()
    system.target.query = None
    with pytest.raises(CallFailed, match="TypeError"):
        system.ask(REFUND, Context(query_id="q", top=1))
    system.teardown()


def test_several_questions_at_once_are_kept_apart(store: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    system = target(store)
    system.setup()

    def ask(query: str) -> Response:
        found: Response = system.ask(query, Context(query_id=query, top=TOP))
        return found

    with ThreadPoolExecutor(8) as pool:
        responses = list(pool.map(ask, [REFUND, SSO] * 20))
    system.teardown()
    assert responses == asked(target(store), REFUND, SSO, top=TOP) * 20
