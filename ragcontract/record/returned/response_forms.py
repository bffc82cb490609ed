"""Turn what a system returns for a question into a response, by a table of the forms that frameworks return.

The forms are tried in the order of the table. Objects are recognised by the names of their attributes, so that no
framework is imported for it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import UNSET
from msgspec.structs import replace

from ragcontract.answers.conversation import beside_turn, last_turn
from ragcontract.answers.messages import calls_in, came_about, letters_of
from ragcontract.answers.metric_options import is_for_calls, telling
from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.nearest import nearest
from ragcontract.core.safe_text import shorten
from ragcontract.files.json_lines import has_more_text
from ragcontract.record.interface import CallFailed, Response
from ragcontract.record.returned.named_fields import (
    FIELDS,
    KINDS,
    NEAR,
    ONLY_ONE,
    Stated,
    beside,
    of_message_itself,
    take,
)
from ragcontract.record.returned.result_forms import (
    DocumentIds,
    chroma_results,
    is_document,
    is_node,
    is_query_result,
    listed,
    refused,
    results_of,
)
from ragcontract.record.returned.returned_messages import (
    ASSISTANT,
    CALL_EXAMPLE,
    answer_in,
    as_call,
    as_message,
    calls_of,
    error_of,
    fields_of,
    finish_reason_of,
    is_message,
    part,
    plain,
    refusal_in,
)
from ragcontract.runs.run_writer import TOO_LONG

STEPS = "intermediate_steps"  # of LangChain's older agents, whose calls are not in their last message
UNORDERED = (Mapping, set, frozenset, bytes)


class Form(NamedTuple):
    """A form of what may be returned."""

    what: str  # its name in the documentation
    becomes: str  # the fields that it is read as
    fits: Callable[[Any], bool]
    read: Callable[[Any, DocumentIds], Response]


def response_of(returned: object, ids: DocumentIds) -> Response:
    """Return the response for what a system returned.

    Raises InputError if it has none of the forms, CallFailed if a result names no document.
    """
    if isinstance(returned, Iterator):  # outside of the `try`: what a generator raises comes from users' code
        returned = listed(returned)
    form = form_of(returned)
    if form is None:
        raise refused(returned)
    try:
        return form.read(returned, ids)
    except (ValueError, TypeError, KeyError, IndexError) as error:
        raise refused(returned, f"that looks like {form.what}, but cannot be read as one ({error})") from error


def is_read_by_name(value: object) -> bool:
    """Return whether a value is read by the names of its fields, and is not a message or the like."""
    form = form_of(value)
    return form is not None and form.read is _fields


def form_of(value: object) -> Form | None:
    """Return the form of a value; None if it has none of the forms."""
    return next((form for form in FORMS if form.fits(value)), None)


def _is_completion(value: object) -> bool:
    choices = part(value, "choices")
    return isinstance(choices, list | tuple) and bool(choices) and part(choices[0], "message") is not None


def _completion(value: object, ids: DocumentIds) -> Response:
    choice = part(value, "choices")[0]
    returned = part(choice, "message")
    message = as_message(returned)
    reason = telling((finish_reason_of(choice), message.get("finish_reason")))
    answer = Stated("choices", "response", {**message, "role": ASSISTANT, "finish_reason": reason})
    further = of_message_itself(returned, "choices[0].message.")
    return _together([answer, *further, *beside(choice, "choices[0]."), *beside(value)], ids)


def _chroma(value: Mapping[str, Any], ids: DocumentIds) -> Response:
    return Response(results=chroma_results(value, ids))


def _is_llama(value: object) -> bool:
    return isinstance(getattr(value, "source_nodes", None), list) and not isinstance(value, Mapping)


def _llama(value: Any, ids: DocumentIds) -> Response:
    if hasattr(value, "get_response"):  # it streams: read it to its end
        value = value.get_response()
    return Response(results=results_of(value.source_nodes, ids), response=_text(value.response))


def _message(value: object, ids: DocumentIds) -> Response:
    return _together([Stated("message", "response", value)], ids)


def _spoken(value: object) -> dict[str, Any]:
    """Return a message of the assistant; raises CallFailed for any other message."""
    message = as_message(value)
    if (role := message.get("role")) != ASSISTANT:
        shown = f"a message whose role or type is {shorten(repr(role), bounds.RETURNED_SHOWN)}"
        raise CallFailed("no_answer", f"{shown}; an answer is a message of the assistant")
    return message


def _of_message(value: object) -> Response:
    message = _spoken(value)
    return Response(
        response=answer_in(message),
        tool_calls=calls_of(message, finish_reason_of(value)),
        refusal=refusal_in([message]),
        finish_reason=finish_reason_of(value),
        error=error_of(value),
    )


def _has_fields(value: object) -> bool:
    fields = fields_of(value)
    if fields is None and not isinstance(value, Iterable):  # the eval harness' output, however its class is made
        return hasattr(value, "answer") and hasattr(value, "retrieved_contexts")
    return bool(fields) and any(name in FIELDS for name in fields or ())


def _fields(value: object, ids: DocumentIds) -> Response:
    fields = fields_of(value)
    if fields is None:
        fields = {name: getattr(value, name) for name in FIELDS if hasattr(value, name)}
    stated = [Stated(name, FIELDS.get(name), inner) for name, inner in fields.items()]
    return _together([*stated, Stated("finish_reason", "finish_reason", finish_reason_of(fields))], ids)


def _opened(stated: Stated) -> Iterator[Stated]:
    """Yield what is stated; after an answer that is a message, also what the message has beside its text and calls."""
    answer = _as_spoken(stated.value) if stated.meant == "response" else stated.value
    yield stated._replace(value=answer)
    if stated.meant == "response" and is_message(answer):
        yield from of_message_itself(stated.value, f"{stated.name}.")


def _as_spoken(answer: object) -> object:
    """Return an answer with a content as a message; without a role, it is the assistant's."""
    if isinstance(answer, str | list | tuple | None) or is_message(answer):
        return answer
    content = part(answer, "content")
    if not isinstance(content, str | list):
        return answer
    message = as_message(answer)
    text = _text(content) if isinstance(content, list) and all(map(_is_said, content)) else message["content"]
    return {**message, "role": message["role"] or ASSISTANT, "content": text}


def _together(fields: Iterable[Stated], ids: DocumentIds) -> Response:
    """Return the response that fields state together; raises InputError if two of them contradict each other."""
    stated = [opened for field in fields for opened in _opened(field)]
    collected: dict[str, tuple[str, Any]] = {}  # by field of a response: the returned name and the value
    further: dict[str, Any] = {}
    for name, meant, inner in stated:
        if meant is None:
            further[name] = plain(inner)
        elif meant == "retrieved_contexts" and _is_retrieved(inner):
            continue  # taken below, after the results
        elif meant != "finish_reason" and (inner is not None or meant == "response"):
            take(collected, meant, name, _field(meant, inner, ids))
    for name, meant, inner in stated:
        if meant == "retrieved_contexts" and _is_retrieved(inner):
            _take_retrieved(collected, name, results_of(inner, ids))
    _refuse_misspelled(stated, collected, ids)
    own = {name: inner for name, (_, inner) in collected.items()}
    if reason := telling(plain(inner) for _, meant, inner in stated if meant == "finish_reason"):
        own["finish_reason"] = reason
    if (metadata := own.pop("metadata", None)) is not None:
        further = {**metadata, **further} if isinstance(metadata, dict) else {"metadata": metadata, **further}
    made = {**_from_messages(own), **own}
    for name, meant, inner in stated:
        if meant == "response" and is_message(inner):
            made = _with_message(made, name, inner, has_steps=any(field.name == STEPS for field in stated))
    return Response(**made, metadata=further or None)


def _refuse_misspelled(stated: Sequence[Stated], collected: dict[str, tuple[str, Any]], ids: DocumentIds) -> None:
    """Raise InputError for a name that is near to that of a field which is not returned, or has another value."""
    meanings = {field.meant for field in stated}
    for at, meant, inner in stated:
        name = at.rpartition(".")[2]
        if meant is not None:
            continue
        near = nearest(name, FIELDS)
        if near and FIELDS[near] not in meanings:
            raise InputError([f"the target returned an unknown field {at!r}; did you mean {near!r}?"])
        field = FIELDS.get(NEAR.misspelled(name) or "", "")
        if isinstance(inner, KINDS.get(field, ())):
            take(collected, field, at, _field(field, inner, ids))


def _with_message(fields: dict[str, Any], name: str, answer: object, *, has_steps: bool) -> dict[str, Any]:
    """Return the fields of a response with those of the message that is its answer, such as calls and a refusal.

    Raises InputError if they contradict each other.
    """
    of_answer = _of_message(answer)
    calls = fields.get("tool_calls")
    if calls is None and not has_steps:
        calls = of_answer.tool_calls
    elif calls is not None and (why := beside_turn([as_message(answer)], in_turns=False, tool_calls=calls)):
        raise InputError([f"the target returned {name!r}, a message, and other calls beside it: it {why}"])
    refusals = dict.fromkeys(filter(None, (fields.get("refusal"), of_answer.refusal)))
    more = {
        "tool_calls": calls,
        "refusal": "\n".join(refusals) or None,
        "error": fields.get("error") or of_answer.error,
        "finish_reason": fields.get("finish_reason") or of_answer.finish_reason,
    }
    return {**fields, **more}


def with_own_messages(made: Response) -> Response:
    """Return a response with what its messages say, and without them; raises InputError if their answer is another.

    The last message alone may be the answer, too; users also see what an agent says before it calls a tool.
    """
    if not made.messages:
        return made
    said = response_of(made.messages, DocumentIds(None))
    answer = said.response if made.response is UNSET or made.response is None else made.response
    if isinstance(answer, str) and isinstance(said.response, str) and letters_of(answer) != letters_of(said.response):
        own = [message for message in made.messages if message.get("role") == ASSISTANT]
        if letters_of(answer) != letters_of(answer_in(own[-1])):
            raise InputError([f"the target returned an answer that differs from the one in its messages; {ONLY_ONE}"])
        answer = said.response
    refusals = dict.fromkeys(filter(None, (made.refusal, said.refusal)))
    return replace(
        made,
        messages=None,
        response=answer,
        refusal="\n".join(refusals) or None,
        finish_reason=telling((made.finish_reason, said.finish_reason)),
        mode=made.mode or said.mode,
        error=made.error or said.error,
    )


def _is_retrieved(value: object) -> bool:
    """Return whether contexts name their documents, as LangChain's chains return them."""
    listed_contexts = value if isinstance(value, list | tuple) else ()
    return any(
        is_document(context) or is_node(context) or part(context, "doc_id") is not None for context in listed_contexts
    )


def _take_retrieved(collected: dict[str, tuple[str, Any]], name: str, contexts: Sequence[Mapping[str, Any]]) -> None:
    """Add contexts that name their documents: as the results, or beside results that have all of these documents.

    A model may see fewer passages than were retrieved.
    """
    known = {result["doc_id"] for result in collected.get("results", ("", None))[1] or ()}
    if not known.issuperset(context["doc_id"] for context in contexts):
        take(collected, "results", name, contexts)
        return
    texts = [context.get("text") for context in contexts]
    if all(isinstance(text, str) for text in texts):
        take(collected, "retrieved_contexts", name, texts)


def _field(name: str, value: Any, ids: DocumentIds) -> Any:
    match name:
        case "results":
            return results_of(value, ids)
        case "response":
            return _text(value)
        case "error":
            return error_of({"error": value})
        case "tool_calls":
            return [_call(call) for call in ([value] if isinstance(value, Mapping) else listed(value))]
        case "messages":
            return [
                _as_message(message) for message in listed(value)
            ] or None  # the eval harness has an empty list for none
        case "retrieved_contexts":
            return [_context(context) for context in listed([value] if isinstance(value, str) else value)]
        case _:
            return plain(value)


def _from_messages(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answer and the tool calls of a conversation's last turn, in case they are not returned beside it."""
    own = [message for message in last_turn(fields.get("messages") or []) if message.get("role") == ASSISTANT]
    if not own:
        return {}
    made: dict[str, Any] = {field: text for message in own for field, text in came_about(message).items()}
    calls = [call for message in own for call in calls_in(message)]
    is_lost = not calls and any(is_for_calls(message.get("finish_reason")) for message in own)
    made["tool_calls"] = None if is_lost else calls
    if refusal := refusal_in(own):
        made["refusal"] = refusal
    answers = [answer for message in own if (answer := answer_in(message)) is not None]
    if has_more_text(answers, bounds.LINE):
        raise CallFailed("invalid", TOO_LONG)
    return {**made, "response": "\n".join(filter(None, answers))} if answers else made


def _are_messages(value: object) -> bool:
    return isinstance(value, list | tuple) and bool(value) and all(is_message(item) for item in value)


def _messages(value: Sequence[Any], _ids: DocumentIds) -> Response:
    messages = [_as_message(message) for message in value]
    return Response(messages=messages, **_from_messages({"messages": messages}))


def _as_message(value: object) -> dict[str, Any]:
    if fields_of(value) is None:
        raise refused(value, "among its messages")
    return as_message(value)


def _call(value: object) -> dict[str, Any]:
    if fields_of(value) is None:
        raise refused(value, f"among its tool calls, which look like {CALL_EXAMPLE}")
    return as_call(value)


def _context(value: object) -> str:
    content = getattr(value, "page_content", None)
    return content if isinstance(content, str) else str(value)


def _is_table(value: object) -> bool:
    """Return whether a value is a table of pandas or polars; iterating it would yield only the names of its columns."""
    return hasattr(value, "columns")


def _text(value: object) -> str | None:
    """Return the text of an answer, which may be a message or the parts of a message."""
    if value is None or isinstance(value, str):
        return value if value is None else str(value)
    if isinstance(value, list) and all(map(_is_said, value)):
        return "".join(item if isinstance(item, str) else part(item, "text") for item in value)
    if is_message(value):
        return answer_in(_spoken(value))
    inner = part(value, "content")
    if isinstance(inner, str | list):
        return _text(inner)
    raise refused(value, "as the answer, which is a text")


def _is_said(value: object) -> bool:
    """Return whether a value is a text, or a part of a message that has one; a message may have more than its text."""
    return isinstance(value, str) or (isinstance(part(value, "text"), str) and not is_message(value))


def _is_listing(value: object) -> bool:
    """Return whether a value may be a list of results; records also iterate over the names and values of fields."""
    is_record = not isinstance(value, list | tuple) and fields_of(value) is not None
    return isinstance(value, Iterable) and not isinstance(value, UNORDERED) and not is_record and not _is_table(value)


FORMS: tuple[Form, ...] = (
    Form(
        "a `ragcontract.Response`",
        "itself",
        lambda value: isinstance(value, Response),
        lambda value, _ids: value,
    ),
    Form(
        "a text",
        "`response`",
        lambda value: isinstance(value, str),
        lambda value, _ids: Response(response=str(value)),
    ),
    Form(
        "OpenAI's chat completion",
        "`response`, `tool_calls` (`[]` for none), `refusal`, `finish_reason`, `llm_model` of its first choice",
        _is_completion,
        _completion,
    ),
    Form(
        "what a Chroma collection returns for a query",
        "`results`, with 1 - distance as score",
        is_query_result,
        _chroma,
    ),
    Form(
        "LlamaIndex's response of a query engine or a chat engine",
        "`results` of its nodes, `response`",
        _is_llama,
        _llama,
    ),
    Form(
        "a message of a chat, of LangChain and Anthropic, too",
        "`response`, `tool_calls` (`[]` for none), `refusal`, `finish_reason`, `error`",
        is_message,
        _message,
    ),
    Form(
        "a mapping or a record with fields of a run row, by these or other tools' names, as the eval harness' "
        "`PipelineOutput`",
        "those fields: `results`, `response` (also `answer`, `output`, `result`), `retrieved_contexts` (also "
        "`contexts`), `tool_calls`, `messages` (also `turn_history`), …",
        _has_fields,
        _fields,
    ),
    Form(
        "a list of messages",
        "`messages`; `response` (all that is said in it) and `tool_calls` (`[]` for none) of the last turn",
        _are_messages,
        _messages,
    ),
    Form(
        "a list or generator of results, best first: document ids; mappings or records with a `doc_id`; LangChain's "
        "documents; LlamaIndex's nodes; pairs of one of these and a score",
        "`results`",
        _is_listing,
        lambda value, ids: Response(results=results_of(value, ids)),
    ),
)
