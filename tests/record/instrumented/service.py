"""A chatbot over HTTP that knows nothing of rag-contract, traced as the manuals of OpenTelemetry and OpenInference say.

It is started as ``python -m tests.record.instrumented.service chain 8080``, answers ``POST /`` with
``{"question": …}`` by ``{"answer": …}``, and names no documents.
"""

import json
import sys
from collections.abc import Callable, Iterable
from typing import Any
from wsgiref.simple_server import make_server

from openinference.instrumentation.langchain import LangChainInstrumentor
from openinference.instrumentation.llama_index import LlamaIndexInstrumentor
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.instrumentation.wsgi import OpenTelemetryMiddleware
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import set_tracer_provider

ANSWERS: dict[str, Callable[[Any, str], Any]] = {
    "chain": lambda apps, question: apps.chain.invoke(question),
    "agent": lambda apps, question: apps.agent.invoke({"messages": [("user", question)]})["messages"][-1].content,
    "engine": lambda apps, question: apps.engine.query(question),
}


def traced() -> None:
    """Set tracing up."""
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    set_tracer_provider(provider)
    LangChainInstrumentor().instrument()
    LlamaIndexInstrumentor().instrument()


def main(name: str, port: str) -> None:
    """Serve until the process is ended; says when it is ready."""
    from tests.record.instrumented import apps

    def app(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        asked = json.loads(environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"])))
        start("200 OK", [("Content-Type", "application/json")])
        return [json.dumps({"answer": str(ANSWERS[name](apps, asked["question"]))}).encode()]

    traced()
    with make_server("127.0.0.1", int(port), OpenTelemetryMiddleware(app)) as server:
        print("ready", server.server_port, flush=True)  # noqa: T201
        server.serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
