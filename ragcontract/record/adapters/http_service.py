"""A search, or a chatbot, that answers over HTTP."""

import json
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.text import shorten
from ragcontract.http.sending import Answered, Call
from ragcontract.http.sessions import TrustEnv
from ragcontract.record.answer_mapping import AnswerMapping, EmptyResults, Fields, searching
from ragcontract.record.asked import Context, Response
from ragcontract.record.document_ids import DocumentIds
from ragcontract.record.failed import CallFailed
from ragcontract.record.server_events import read_stream
from ragcontract.record.service import Service, shown
from ragcontract.record.system import Surroundings
from ragcontract.record.templates import Template, values_of

CONCURRENCY = 8
METHODS = {"GET", "POST", "PUT", "PATCH"}
HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


class Options(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What `record.yml` says under ``http``.

    ``json`` and ``form`` are the body, ``query`` goes behind the address; texts in them and in ``headers`` may have
    placeholders. ``response`` says where in the answer the fields of a row are. ``sse`` says where in each event of a
    streamed answer its text is; ``response`` finds the whole ``text`` and all ``events`` then.
    """

    url: str
    method: str | None = None
    headers: Mapping[str, str] = {}
    query: Mapping[str, Any] = {}
    json: Any = None
    form: Mapping[str, Any] | None = None
    response: Fields | None = None
    empty_results: EmptyResults = "error"
    sse: str | None = None
    trust_env: TrustEnv = "auto"
    doc_id: str | None = None


def system(options: Options, surroundings: Surroundings) -> "HttpService":
    """Return the service; raises InputError with everything that is wrong with the options."""
    return HttpService(options, surroundings)


class HttpService:
    """A service that is asked with one call a question."""

    concurrency = CONCURRENCY

    def __init__(self, options: Options, surroundings: Surroundings) -> None:
        """Read the templates and the expressions."""
        secrets = surroundings.secrets
        self._url = options.url
        self._method = (options.method or ("GET" if options.json is None and options.form is None else "POST")).upper()
        self._headers = Template(options.headers, secrets, at="http.headers")
        self._query = Template(options.query, secrets, at="http.query")
        self._json = Template(options.json, secrets, at="http.json")
        self._form = None if options.form is None else Template(options.form, secrets, at="http.form")
        expression = surroundings.doc_id or options.doc_id
        self._text_of = None if options.sse is None else searching(options.sse)
        self._mapping = AnswerMapping(
            options.response or (None if options.sse is None else Fields(answer="text")),
            doc_ids=DocumentIds(expression),
            explicit_ids=expression is not None,
            empty=options.empty_results,
        )
        problems = [
            *url_problems("http.url", options.url),
            *self._problems(options),
            *self._headers.problems,
            *self._query.problems,
            *self._json.problems,
            *([] if self._form is None else self._form.problems),
            *([f"http.sse: {self._text_of}"] if isinstance(self._text_of, str) else []),
            *(f"http.{problem}" for problem in self._mapping.problems),
        ]
        if problems:
            raise InputError(problems)
        self._service = Service(options.url, trust_env=options.trust_env, surroundings=surroundings)

    def _problems(self, options: Options) -> list[str]:
        problems = header_problems("http.headers", options.headers)
        if self._method not in METHODS:
            problems.append(f"http.method: expected one of {', '.join(sorted(METHODS))}, found {options.method!r}")
        if options.json is not None and options.form is not None:
            problems.append("http: `json` and `form` are both the body; remove one of them")
        return problems

    def setup(self) -> None:
        """Do nothing: a connection is made with the first question."""

    def ask(self, query: str, context: Context) -> Response:
        """Return what the service answers to a question; raises CallFailed."""
        values = values_of(query, context)
        headers = {name: header(text) for name, text in self._headers.filled(values).items()}
        if context.traceparent and "traceparent" not in {name.lower() for name in headers}:
            headers["traceparent"] = context.traceparent.encode()
        call = Call(
            method=self._method,
            url=self._url,
            headers=headers,
            query=_fields(self._query.filled(values)),
            json=self._json.filled(values),
            form=None if self._form is None else _fields(self._form.filled(values)),
        )
        content, answered = self._service.json(call, context.seconds, decode=self._decoded)
        try:
            return self._mapping.response(content)
        except CallFailed as failure:
            raise CallFailed(failure.kind, str(failure), detail=self._service.detail(answered)) from None

    def _decoded(self, answered: Answered) -> Any:
        if self._text_of is None or isinstance(self._text_of, str):
            return json.loads(answered.content)
        return read_stream(answered, self._text_of)

    def versions(self) -> Mapping[str, str]:
        """Return nothing: what answers is not known."""
        return {}

    def facts(self) -> Mapping[str, Any]:
        """Return what is called."""
        return {"url": shown(self._url), "method": self._method}

    def teardown(self) -> None:
        """Close the connections."""
        self._service.close()


def _fields(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values as a form has them: a list is the field several times, an object its JSON, null no field."""

    def text(value: Any) -> str:
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)

    return {
        name: [text(one) for one in value] if isinstance(value, list) and _flat(value) else text(value)
        for name, value in values.items()
        if value is not None
    }


def _flat(values: list[Any]) -> bool:
    return not any(isinstance(value, list | dict) for value in values)


def header(text: Any) -> bytes:
    """Return the value of a header; characters that would end it become blanks."""
    return re.sub(r"[\x00-\x1f\x7f]+", " ", str(text)).strip().encode()


def header_problems(at: str, headers: Mapping[str, str]) -> list[str]:
    """Return what is wrong with the names of headers."""
    wrong = [name for name in headers if not HEADER_NAME.fullmatch(name)]
    return [f"{at}: {shorten(name, bounds.NAME)!r} is not the name of a header" for name in wrong]


def url_problems(at: str, url: str) -> list[str]:
    """Return what is wrong with an address. It is shown in messages, and a question must not lead to another host."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or re.search(r"[\x00-\x20\x7f]", url):
        found = re.sub("//[^/]*@", "//", url).partition("?")[0]
        return [f"{at}: expected an address such as https://search.example/api, found {shorten(found, bounds.VALUE)!r}"]
    if parts.username is not None or parts.password is not None:
        return [f"{at}: has a user name or a password in it; give them as a header with ${{secret:NAME}}"]
    if "{" in url:
        return [f"{at}: has no placeholders; write them under `query`, `json`, `form` or `headers`"]
    return []
