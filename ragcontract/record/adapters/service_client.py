"""Call a recorded service, and find the fields of a response in its answers.

A failed call says whether another attempt may succeed, and when.

The fields of a response are found by JMESPath expressions. In JMESPath, ``hits[*].doc`` leaves out every item of
``hits`` that has no ``doc``, so a wrong name finds an empty list. Expressions for lists are therefore evaluated in a
way that reports the items that a projection drops.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

import jmespath
from jmespath.exceptions import JMESPathError
from jmespath.visitor import TreeInterpreter
from msgspec import UNSET, Meta, Struct
from msgspec.structs import asdict

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.safe_text import shorten, visible
from ragcontract.net.pacing import Timing
from ragcontract.net.sending import Failed, HttpAnswer, HttpCall, Service, shown
from ragcontract.net.sessions import TrustEnv
from ragcontract.record.interface import CallFailed, Response, Surroundings
from ragcontract.record.returned.result_forms import DocumentIds
from ragcontract.record.returned.returned_messages import decoded_json

KEPT_OPEN = 128
# The types of options of targets that are services.
Text = Annotated[str, Meta(title="text; quote numbers")]
ProxyOption = Annotated[
    TrustEnv, Meta(description="Whether proxies of the environment are used; auto: except for this machine.")
]


def _decoded(answered: HttpAnswer) -> Any:
    return decoded_json(answered.content)


class ServiceClient:
    """Calls a service on one host. Its answers are returned without secrets, in case it echoes them."""

    def __init__(
        self, url: str, *, trust_env: TrustEnv, surroundings: Surroundings, timing: Timing | None = None
    ) -> None:
        self._secrets = surroundings.secrets
        self._timing = timing or Timing()
        self._service = Service(
            url,
            secrets=surroundings.secrets,
            connect_seconds=surroundings.connect_seconds,
            at_once=KEPT_OPEN,
            trust_env=trust_env,
            redirects=bounds.SERVICE_REDIRECTS,
        )
        self.close = self._service.close

    def json(
        self, call: HttpCall, seconds: float, *, decode: Callable[[HttpAnswer], Any] = _decoded
    ) -> tuple[Any, HttpAnswer]:
        """Return the decoded JSON of a successful answer, and that answer as it came; raises CallFailed.

        ``decode`` reads answers that are not plain JSON; it raises CallFailed, or ValueError if it cannot read one.
        """
        if seconds <= 0:
            raise CallFailed("read_timeout", f"{shown(call.url)}: the time of the attempt was over before this call")

        def decoded(answered: HttpAnswer) -> Any:
            try:
                return decode(answered)
            except CallFailed as failure:
                if not answered.is_success:
                    return None
                message = f"{shown(call.url)}: {self._service.short(str(failure))}"
                raise CallFailed(failure.kind, message, detail=self.detail(answered)) from None

        try:
            return self._service.json(call, seconds, decode=decoded)
        except Failed as failed:
            if failed.kind == "machine":
                raise InputError([str(failed)]) from failed
            raise CallFailed(
                failed.kind,
                str(failed),
                again=failed.may_succeed_later,
                pause=failed.pause(self._timing),
                detail=None if failed.answered is None else self.detail(failed.answered),
            ) from None

    def detail(self, answered: HttpAnswer) -> dict[str, Any]:
        text = answered.content[: 4 * bounds.SERVICE_SNIPPET].decode(errors="replace")
        return {
            "status_code": answered.status,
            "content_type": self._secrets.redacted(answered.headers.get("content-type")),
            "response_snippet": shorten(self._secrets.redacted(text), bounds.SERVICE_SNIPPET),
        }


def keys_in(content: Any) -> str:
    """Return the keys of a decoded object for a message, or say that it is not an object."""
    if not isinstance(content, dict):
        return f"no keys, because it is {'a list' if isinstance(content, list) else 'not an object'}"
    names = [shorten(visible(name), bounds.NAME) for name in sorted(content)[: bounds.SERVICE_NAMES]]
    return ", ".join(names) or "no keys"


Search = Callable[[Any], Any]
EmptyResults = Literal["error", "accept"]
RESULT_FIELDS = ("doc_id", "score", "chunk_id", "text", "metadata")


class Fields(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """JMESPath expressions over the answer, for fields of a run row; ``answer`` is the row's ``response``."""

    results: str | None = None
    answer: str | None = None
    error: Annotated[
        str | None, Meta(description="What fails the attempt if it is there, and not null, false or empty.")
    ] = None
    tool_calls: str | None = None
    messages: str | None = None
    retrieved_contexts: str | None = None
    mode: str | None = None
    label: str | None = None
    refusal: str | None = None
    finish_reason: str | None = None
    llm_model: str | None = None
    usage: str | None = None
    metadata: str | None = None


TEXTS = ("mode", "label", "refusal", "finish_reason", "llm_model")
OBJECTS = ("tool_calls", "messages")
LISTS = ("results", "retrieved_contexts", *OBJECTS)
MAPPINGS = ("usage", "metadata")


class AnswerMapping:
    """Makes a response of decoded JSON; ``problems`` says what is wrong with the expressions."""

    def __init__(self, fields: Fields, *, doc_ids: DocumentIds, empty: EmptyResults) -> None:
        """Compile the expressions; ``doc_ids`` finds the ids of results without a ``doc_id``."""
        self.problems: list[str] = []
        self._doc_ids, self._empty = doc_ids, empty
        expressions = {name: text for name, text in asdict(fields).items() if text is not None}
        self._expressions: Mapping[str, str] = expressions
        compiled = {name: self._compiled(name, text) for name, text in expressions.items()}
        self._searches = {name: search for name, search in compiled.items() if search}
        if not {"results", "answer"} & set(expressions):
            self.problems.append("response: say where the results are (`results:`), or the answer (`answer:`)")

    def _compiled(self, name: str, expression: str) -> Search | None:
        search = searching(expression, as_list=name in LISTS)
        if isinstance(search, str):
            self.problems.append(f"response.{name}: {search}")
            return None
        return search

    def response(self, content: Any) -> Response:
        """Return the response in an answer; raises CallFailed if a field has another form than expected."""
        values = {name: self._found(name, search, content) for name, search in self._searches.items()}
        # As an answer without a mapping has it, or one of GraphQL beside a part of its data.
        fields = content if isinstance(content, Mapping) else {}
        stated = fields.get("error") or fields.get("errors")
        if error := values.pop("error", None if "error" in self._expressions else stated):
            reason = shorten(error if isinstance(error, str) else repr(error), bounds.SERVICE_REASON)
            raise CallFailed("service_error", f"the service answered with an error: {visible(reason)}")
        results = self._results(values.get("results"), content)
        texts: dict[str, Any] = {name: self._checked(name, values.get(name), str, "text") for name in TEXTS}
        lists: dict[str, Any] = {name: self._list(name, values.get(name), Mapping, "objects") for name in OBJECTS}
        mappings: dict[str, Any] = {
            name: self._checked(name, values.get(name), Mapping, "an object") for name in MAPPINGS
        }
        return Response(
            results=results,
            response=self._checked("answer", values["answer"], str, "text") if "answer" in values else UNSET,
            retrieved_contexts=self._list("retrieved_contexts", values.get("retrieved_contexts"), str, "texts"),
            **texts,
            **lists,
            **mappings,
        )

    def _found(self, name: str, search: Search, content: Any) -> Any:
        try:
            return search(content)
        except DroppedError as error:
            if error.is_absent and name == "results" and self._empty == "accept":
                return []
            advice = "correct it, or leave these items out with a filter, as in `hits[?doc].doc`"
            raise self._wrong(name, f"{error}; {advice}") from None
        except JMESPathError as error:
            reason = shorten(str(error).partition("\n")[0], bounds.SERVICE_REASON)
            raise CallFailed("bad_answer", f"response.{name}: `{self._expressions[name]}` fails: {reason}") from None

    def _checked(self, name: str, value: Any, kind: type, expected: str) -> Any:
        if value is None or isinstance(value, kind):
            return value
        raise self._wrong(name, f"expected {expected}, found {_kind(value)}")

    def _list(self, name: str, value: Any, kind: type, expected: str) -> Any:
        if value is None or (isinstance(value, list) and all(isinstance(item, kind) for item in value)):
            return value
        raise self._wrong(name, f"expected a list of {expected}, found {_kind(value)}")

    def _wrong(self, name: str, problem: str) -> CallFailed:
        return CallFailed("bad_answer", self._at(name, problem))

    def _at(self, name: str, problem: str) -> str:
        return f"response.{name}: `{self._expressions[name]}`: {problem}"

    def _results(self, value: Any, content: Any) -> Sequence[Mapping[str, Any]] | None:
        if "results" not in self._expressions:
            return None
        if value is None:
            if self._empty == "accept":
                return []
            problem = f"`{self._expressions['results']}` finds nothing in the answer, which has: {keys_in(content)}"
            advice = "if that means that nothing was found, add `empty_results: accept`"
            raise CallFailed("no_results", f"response.results: {problem}; {advice}")
        if not isinstance(value, list):
            raise self._wrong("results", f"expected a list, found {_kind(value)}")
        return [self._result(number, item) for number, item in enumerate(value)]

    def _result(self, number: int, item: Any) -> dict[str, Any]:
        if isinstance(item, str | int) and not isinstance(item, bool):
            return {"doc_id": str(item)}
        if not isinstance(item, dict):
            raise self._wrong("results", f"expected ids or objects with a doc_id, found {_kind(item)} at [{number}]")
        result = {name: item[name] for name in RESULT_FIELDS if item.get(name) is not None}
        if "doc_id" not in result:
            if "doc_id" in item and item.get("id") is None and not item.get("metadata"):
                raise CallFailed("no_doc_id", self._at("results", f"[{number}].doc_id: finds nothing"))
            metadata = item.get("metadata")
            known = metadata if isinstance(metadata, dict) else {}
            result["doc_id"] = self._doc_ids.of(own=item.get("id"), metadata=known, text=item.get("text"))
        score = result.get("score")
        is_number = isinstance(score, int | float) and not isinstance(score, bool)
        if score is not None and not (is_number and (isinstance(score, int) or math.isfinite(score))):
            shown = shorten(repr(score), bounds.VALUE)
            raise self._wrong("results", f"[{number}].score: expected a number, found {shown}")
        return result


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "text", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")


def searching(expression: str, *, as_list: bool = False) -> Search | str:
    """Return the function that evaluates a JMESPath expression, or what is wrong with the expression.

    With ``as_list``, the function raises DroppedError if a projection drops items.
    """
    try:
        search: Search = search_of_list(expression) if as_list else jmespath.compile(expression).search
    except JMESPathError as error:
        reason = str(error).partition("\n")[0]
        return f"is not a JMESPath expression: {shorten(repr(expression), bounds.VALUE)} ({reason})"
    return search


Node = Mapping[str, Any]
PROJECTIONS = {"projection", "value_projection", "filter_projection"}
PATHS = {"field", "subexpression", "index_expression"}
PARTS = {"flatten", "pipe", "or_expression", "and_expression", "function_expression", "multi_select_list"}
IDENTITY = {"type": "identity", "children": []}


class DroppedError(Exception):
    """A projection dropped items; the message says how many.

    ``is_absent`` says whether it dropped everything of which the list could be made.
    """

    def __init__(self, problem: str, *, is_absent: bool) -> None:
        super().__init__(problem)
        self.is_absent = is_absent


def search_of_list(expression: str) -> Callable[[Any], Any]:
    """Return the function that finds a list; raises JMESPathError if the expression is wrong.

    The function raises DroppedError if the projection that makes the list drops any of its items, or if an earlier
    projection drops all of its items.
    """
    node = jmespath.compile(expression).parsed
    last = {id(projection) for projection in _last(node)}
    earlier = {id(projection) for projection in _earlier(node)}
    return lambda content: _Interpreter(last, earlier).visit(node, content)


def _last(node: Node, before: Sequence[Node] = ()) -> list[Node]:
    """Return the projections whose items become those of the list.

    ``before`` are those that made the value to which the expression is applied, as what stands before a pipe.
    """
    children: Sequence[Any] = node["children"]
    match node["type"]:
        case kind if kind in PROJECTIONS:
            return [*_of_base(children[0], children[1], before), *_of_items(node, children[1])]
        case "identity" | "current" | "slice":
            return list(before)
        case "pipe" | "subexpression" | "index_expression":
            for child in children:
                before = _last(child, before)
            return list(before)
        case "and_expression":
            return _last(children[1], before)
        case "or_expression" | "function_expression" | "multi_select_list" | "flatten":
            return [projection for child in children for projection in _last(child, before)]
        case _:
            return []


def _of_base(base: Node, items: Node, before: Sequence[Node]) -> list[Node]:
    """Return those that make the list of a projection, unless some of its lists may be missing.

    ``events[].sources[].id`` is the ids of all sources, of the events that have any; ``hits[].doc[]`` is a list of ids.
    """
    return [] if base["type"] == "flatten" and items != IDENTITY else _last(base, before)


def _of_items(node: Node, items: Node) -> list[Node]:
    """Return a projection, or those within its items, so that ``events[*].sources[*].id`` is as with ``[]``."""
    inner = _last(items)
    is_exempt = any(projection["children"][1] != IDENTITY for projection in inner)
    return inner if is_exempt else [node, *inner]


def _earlier(node: Node) -> Iterator[Node]:
    """Yield the projections that lead to the list, without those within the items of another projection."""
    children: Sequence[Node] = node["children"]
    if node["type"] in PROJECTIONS:
        yield node
        children = children[:1]
    if node["type"] in {*PROJECTIONS, *PARTS, *PATHS}:
        for child in children:
            if isinstance(child, Mapping):
                yield from _earlier(child)


class _Interpreter(TreeInterpreter):
    """Evaluates an expression, and counts the items that some of its projections drop."""

    def __init__(self, last: set[int], earlier: set[int]) -> None:
        super().__init__()
        self._last, self._earlier = last, earlier

    def visit_projection(self, node: Any, value: Any) -> Any:
        return self._counted(node, value, super().visit_projection)

    def visit_value_projection(self, node: Any, value: Any) -> Any:
        return self._counted(node, value, super().visit_value_projection)

    def visit_filter_projection(self, node: Any, value: Any) -> Any:
        return self._counted(node, value, super().visit_filter_projection)

    def _counted(self, node: Any, value: Any, visit: Callable[[Any, Any], Any]) -> Any:
        base = self.visit(node["children"][0], value)
        kept = visit({**node, "children": [_literal(base), *node["children"][1:]]}, value)
        if id(node) in self._last | self._earlier and isinstance(kept, list) and base:
            items = list(base.values()) if isinstance(base, dict) else base
            self._check(node, items, kept)
        return kept

    def _check(self, node: Any, items: list[Any], kept: list[Any]) -> None:
        is_last = id(node) in self._last
        if node["type"] == "filter_projection":
            condition = node["children"][2]
            if not kept and self._is_absent(condition, items):
                raise DroppedError(f"its filter looks for what none of {len(items):,} items has", is_absent=not is_last)
            items = self._passing(condition, items)
        dropped = len(items) - len(kept)
        if dropped and (is_last or not kept):
            raise DroppedError(f"finds nothing in {dropped:,} of {len(items):,} items", is_absent=not is_last)

    def _passing(self, condition: Node, items: list[Any]) -> list[Any]:
        """Return the items for which a condition is true."""
        node: Any = {"type": "filter_projection", "children": [_literal(items), IDENTITY, condition]}
        passing: list[Any] = super().visit_filter_projection(node, None) or []
        return passing

    def _is_absent(self, condition: Any, items: list[Any]) -> bool:
        """Return whether a condition looks for something that is in none of the items for which it gets to look."""
        children: Sequence[Any] = condition["children"]
        match condition["type"]:
            case "and_expression":
                left, right = children
                return self._is_absent(left, items) or self._is_absent(right, self._passing(left, items))
            case "or_expression":
                return all(self._is_absent(child, items) for child in children)
            case "function_expression" if condition["value"] == "not_null":
                return all(self._is_absent(child, items) for child in children)
            case "comparator" | "not_expression" | "function_expression":
                return any(self._is_absent(child, items) for child in children)
            case kind if kind in {*PATHS, *PROJECTIONS, "pipe"}:
                return bool(items) and all(self.visit(condition, item) is None for item in items)
            case _:
                return False


def _literal(value: Any) -> dict[str, Any]:
    return {"type": "literal", "value": value, "children": []}
