"""A stand-in for Elasticsearch that answers one kind of request as it does: a search for the words of a text."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.local_server import LocalServer, QuietHandler
from tests.recipes.apps.toy_corpus import CHUNKS, embed

TYPE = "application/vnd.elasticsearch+json;compatible-with=9"


@contextmanager
def elasticsearch(index: str, **partly: Any) -> Iterator[str]:
    """Serve an index of the toy corpus on this machine, and yield the server's address.

    ``partly`` is what its answers say otherwise, as of shards that failed.
    """

    class Handler(QuietHandler):
        """Answers a search; whatever else is asked for is not there."""

        def do_POST(self) -> None:  # noqa: N802 (http.server's name)
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            found = self.path.partition("?")[0] == f"/{index}/_search" and set(body) == {"query", "size", "_source"}
            answer = json.dumps(
                {**search(index, body), **partly} if found else {"error": {"type": "index_not_found_exception"}}
            )
            self.send_response(200 if found else 404)
            # The client refuses a server without the first of these headers.
            for name, value in {"X-Elastic-Product": "Elasticsearch", "Content-Type": TYPE}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer.encode())))
            self.end_headers()
            self.wfile.write(answer.encode())

    with LocalServer(Handler) as server:
        yield server.origin


def search(index: str, body: dict[str, Any]) -> dict[str, Any]:
    """Return what Elasticsearch answers to a query that matches the words of a text, best first."""
    wanted = embed(body["query"]["match"]["text"])
    scores: dict[str, float] = {}
    for source, text in CHUNKS:
        score = sum(a * b for a, b in zip(wanted, embed(text), strict=True))
        scores[source] = max(score, scores.get(source, 0))
    best = sorted(((score, source) for source, score in scores.items() if score > 0), reverse=True)
    hits = [{"_index": index, "_id": source, "_score": score} for score, source in best[: body["size"]]]
    total = {"value": len(best), "relation": "eq"}
    return {
        "took": 3,
        "timed_out": False,
        "_shards": {"total": 1, "successful": 1, "skipped": 0, "failed": 0},
        "hits": {"total": total, "max_score": best[0][0] if best else None, "hits": hits},
    }
