"""A chatbot over HTTP that knows nothing of rag-contract, traced as the manuals of OpenTelemetry and OpenInference say.

    python -m tests.record.instrumented.service langchain 8080

It answers ``POST /`` with ``{"question": …}`` by ``{"answer": …}``, and names no documents.
"""

import json
import sys
from collections.abc import Callable, Iterable
from typing import Any
from wsgiref.simple_server import make_server

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.instrumentation.wsgi import OpenTelemetryMiddleware
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

CALLS = [("search", {"query": None}), ("add", {"a": 1, "b": 2})]


def langchain() -> Callable[[str], str]:
    """Return a chain that returns its answer only."""
    from openinference.instrumentation.langchain import LangChainInstrumentor

    from tests.record.frameworks.apps import langchain_app

    LangChainInstrumentor().instrument()
    chain: Any = langchain_app.chain
    return lambda question: str(chain.invoke(question))


def agent() -> Callable[[str], str]:
    """Return an agent that calls tools, one of which retrieves."""
    from openinference.instrumentation.langchain import LangChainInstrumentor

    from tests.record.frameworks.apps import langchain_app

    LangChainInstrumentor().instrument()
    graph: Any = langchain_app.graph(langchain_app.ToyModel(calls=CALLS))
    return lambda question: str(graph.invoke({"messages": [("user", question)]})["messages"][-1].content)


def llamaindex() -> Callable[[str], str]:
    """Return a query engine."""
    from openinference.instrumentation.llama_index import LlamaIndexInstrumentor

    from tests.record.frameworks.apps import llamaindex_app

    LlamaIndexInstrumentor().instrument()
    engine: Any = llamaindex_app.query_engine
    return lambda question: str(engine.query(question))


APPS = {"langchain": langchain, "agent": agent, "llamaindex": llamaindex}


def main(name: str, port: str) -> None:
    """Serve until the process is ended."""
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    answer = APPS[name]()

    def app(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        if environ["REQUEST_METHOD"] != "POST":
            start("200 OK", [])
            return [b"ready"]
        asked = json.loads(environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"])))
        start("200 OK", [("Content-Type", "application/json")])
        return [json.dumps({"answer": answer(asked["question"])}).encode()]

    with make_server("127.0.0.1", int(port), OpenTelemetryMiddleware(app)) as server:  # type: ignore[arg-type]
        server.serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
