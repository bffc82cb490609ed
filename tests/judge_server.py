"""A stand-in for the server of a judge's model, with OpenAI's API and Ollama's: ``python -m tests.judge_server``.

It speaks both APIs at one address. ``--help`` says which characters its model can have, and how it can fail.
"""

import argparse
import json
import threading
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler
from typing import Any

import msgspec
from msgspec import Struct

from tests.judge_characters import CHARACTERS, Answer, asked
from tests.local_server import LocalServer, QuietHandler, QuietServer

MODEL = "stand-in-2026-01-31"
USUAL_CONTEXT = 2_048  # tokens; what Ollama keeps of a prompt for which no length is asked
REFUSABLE = ("json_schema", "json_object", "temperature", "seed", "max_completion_tokens", "max_tokens", "format")


class Fault(Struct, frozen=True, kw_only=True):
    """An answer in place of the model's; with status 0, the connection is closed without one."""

    status: int
    headers: Mapping[str, str] = {}
    content: Any = msgspec.field(default_factory=lambda: {"error": {"message": "not now"}})


class Came(Struct, frozen=True, kw_only=True):
    """A request as it came; ``headers`` have names in lower case."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]


class JudgeServer(LocalServer):
    """Use it as a context manager.

    ``faults`` are given first, one a request, and ``refuses`` are parameters that a status of 400 refuses, by name if
    ``names_them``. Replies are cut at ``longest`` tokens unless more may be made; each takes ``seconds``. A ``key``
    is wanted of everybody. ``at_once`` requests are answered at the same time, others with 429.
    """

    def __init__(
        self,
        character: Answer | str = "honest",
        *,
        faults: Sequence[Fault] = (),
        refuses: Sequence[str] = (),
        names_them: bool = True,
        longest: int | None = None,
        seconds: float = 0,
        key: str | None = None,
        at_once: int | None = None,
        mark: str = "fp_stand_in",
        port: int = 0,
    ) -> None:
        self.answer = CHARACTERS[character] if isinstance(character, str) else character
        self.faults = list(faults)
        self.refuses = tuple(refuses)
        self.names_them = names_them
        self.longest = longest
        self.seconds = seconds
        self.key = key
        self.at_once = at_once
        self.mark = mark
        self.came: list[Came] = []
        self.asked: list[str] = []  # the user's message of each call that the model answered
        self.most_at_once = self._at_once = 0
        self._lock = threading.Lock()
        super().__init__(self._handler(), _Server, port)

    @property
    def openai(self) -> str:
        """The address of OpenAI's API."""
        return f"{self.origin}/v1"

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(QuietHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_POST(self) -> None:  # noqa: N802 (http.server's name)
                body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)))
                headers = {name.lower(): value for name, value in self.headers.items()}
                came = Came(path=self.path, headers=headers, body=body)
                fault, content = server.handled(came)
                if fault.status == 0:
                    self.close_connection = True
                    return
                data = content if isinstance(content, bytes) else json.dumps(content).encode()
                self.send_response(fault.status)
                for name, value in {"Content-Type": "application/json", **fault.headers}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

        return Handler

    def handled(self, came: Came) -> tuple[Fault, Any]:
        """Return the status and the headers, as of a fault, and the content."""
        with self._lock:
            self.came.append(came)
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
            fault = self.faults.pop(0) if self.faults else self._fault(came)
            number = len(self.asked)
            if fault is None:
                self.asked.append(came.body["messages"][-1]["content"])
        try:
            if fault is not None:
                return fault, fault.content
            self.stop.wait(self.seconds)
            return Fault(status=200), self._reply(came, number)
        finally:
            with self._lock:
                self._at_once -= 1

    def _fault(self, came: Came) -> Fault | None:
        if self.key is not None and came.headers.get("authorization") != f"Bearer {self.key}":
            said = came.headers.get("authorization", "none")  # as some servers do, it repeats what it got
            return Fault(status=401, content={"error": {"message": f"wrong key: {said}", "code": "invalid_api_key"}})
        if self.at_once is not None and self._at_once > self.at_once:
            return Fault(status=429, content={"error": {"message": "too many at the same time"}})
        for name in self.refuses:
            if _sends(came.body, name):
                message = f"Unsupported parameter: '{name}' is not supported with this model."
                named = {"message": message, "param": name, "code": "unsupported_parameter"}
                return Fault(status=400, content={"error": named if self.names_them else {"message": "bad request"}})
        return None

    def _reply(self, came: Came, number: int) -> Any:
        body = came.body
        if came.path == "/api/chat":
            return self._of_ollama(body, number)
        text = self.answer(asked(number, body["messages"]))
        most = body.get("max_completion_tokens") or body.get("max_tokens")
        cut = self.longest is not None and most is not None and most < self.longest
        return {
            "id": f"chatcmpl-{number}",
            "object": "chat.completion",
            "model": MODEL,
            "system_fingerprint": self.mark,
            "choices": [
                {
                    "index": 0,
                    "message": {"role": "assistant", "content": text[: len(text) // 2] if cut else text},
                    "finish_reason": "length" if cut else "stop",
                }
            ],
            "usage": _usage("prompt_tokens", "completion_tokens", body, text),
        }

    def _of_ollama(self, body: Mapping[str, Any], number: int) -> Any:
        """Answer as Ollama does: what is longer than its context is cut without a word, and counted then."""
        options = body.get("options") or {}
        kept = 4 * (options.get("num_ctx", USUAL_CONTEXT) - options.get("num_predict", 0))
        messages = [{**one, "content": one["content"][-kept:]} for one in body["messages"]]
        text = self.answer(asked(number, messages))
        cut = self.longest is not None and options.get("num_predict", 0) < self.longest
        return {
            "model": MODEL,
            "message": {"role": "assistant", "content": text[: len(text) // 2] if cut else text},
            "done": True,
            "done_reason": "length" if cut else "stop",
            **_usage("prompt_eval_count", "eval_count", {"messages": messages}, text),
        }


def _sends(body: Mapping[str, Any], name: str) -> bool:
    """Return whether a request has a parameter, or a format for the reply."""
    if name == "format":
        return isinstance(body.get("format"), dict)
    if name.startswith("json_"):
        return bool((body.get("response_format") or {}).get("type") == name)
    return name in body


class _Server(QuietServer):
    request_queue_size = 128


def _usage(ins: str, outs: str, body: Mapping[str, Any], text: str) -> dict[str, int]:
    """Count a token for four characters."""
    return {ins: sum(len(one["content"]) for one in body["messages"]) // 4, outs: len(text) // 4}


def main() -> None:
    """Serve until somebody presses Ctrl-C."""
    parser = argparse.ArgumentParser(prog="python -m tests.judge_server", description=__doc__)
    parser.add_argument("--character", choices=CHARACTERS, default="honest", help="how its model answers [honest]")
    parser.add_argument("--port", type=int, default=8089, help="where it listens on this machine; 0 for any [8089]")
    parser.add_argument("--refuse", action="append", choices=REFUSABLE, default=[], help="a parameter that it refuses")
    parser.add_argument("--longest", type=int, help="the tokens below which its replies are cut [none are]")
    parser.add_argument("--seconds", type=float, default=0, help="how long each reply takes [0]")
    parser.add_argument("--at-once", type=int, help="more calls than these at the same time get 429 [all are answered]")
    given = parser.parse_args()
    server = JudgeServer(
        given.character,
        refuses=given.refuse,
        longest=given.longest,
        seconds=given.seconds,
        at_once=given.at_once,
        port=given.port,
    )
    with server:
        print(f"{server.openai} as OpenAI's, {server.origin} as Ollama's; Ctrl-C ends it", flush=True)  # noqa: T201
        try:
            server.stop.wait()
        except KeyboardInterrupt:
            return


if __name__ == "__main__":
    main()
