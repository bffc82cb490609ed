"""A function gets what the names of its parameters ask for."""

from collections.abc import Callable
from typing import Any

import pytest

from ragcontract.core.errors import InputError
from ragcontract.record.adapters.python_code import style_of
from ragcontract.record.interface import Context

CONTEXT = Context(query_id="q1", top=7, messages=({"role": "user", "content": "Hi"},))


def plain(query: str) -> Any:
    return query


def with_context(query: str, context: Context) -> Any:
    return query, context.top


def harness(question: str, ctx: dict[str, Any]) -> Any:
    return question, ctx["query_id"], ctx.get("other", "none")


def with_top(query: str, *, top: int = 3) -> Any:
    return query, top


def with_k(query: str, k: int) -> Any:
    return query, k


def chatbot(query: str, messages: list[Any], query_id: str) -> Any:
    return query, messages, query_id


def with_default(query: str, index: str = "main") -> Any:
    return query, index


def keyword_only(*, query: str, context: Context) -> Any:
    return query, context.query_id


def anything(*args: Any, **keywords: Any) -> Any:
    return args, keywords


def positional(query: str, top: int, /) -> Any:
    return query, top


CALLED: list[tuple[Callable[..., Any], Any]] = [
    (plain, "?"),
    (with_context, ("?", 7)),
    (harness, ("?", "q1", "none")),
    (with_top, ("?", 7)),
    (with_k, ("?", 7)),
    (chatbot, ("?", [{"role": "user", "content": "Hi"}], "q1")),
    (with_default, ("?", "main")),
    (keyword_only, ("?", "q1")),
    (anything, (("?",), {})),
    (len, 1),
    (lambda query, top_k: (query, top_k), ("?", 7)),
]


@pytest.mark.parametrize(("function", "expected"), CALLED, ids=lambda one: getattr(one, "__name__", ""))
def test_a_function_gets_what_it_asks_for(function: Callable[..., Any], expected: Any) -> None:
    assert style_of(function, "f").call(function, "?", CONTEXT) == expected


def test_a_function_in_c_without_a_signature_gets_the_question() -> None:
    assert style_of(dict, "dict").call(str, "?", CONTEXT) == "?"


def of_nothing() -> Any:
    return []


def keyword_for_something_else(*, index: str = "main") -> Any:
    return index


def with_index(query: str, context: Context, index: str) -> Any:
    return query, context, index


def with_keyword_index(query: str, *, index: str) -> Any:
    return query, index


class Index:
    def find(self, query: str) -> Any:
        return query


def test_the_first_parameter_is_the_question_whatever_its_name() -> None:
    assert style_of(keyword_for_something_else, "f").call(keyword_for_something_else, "?", CONTEXT) == "?"


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (Index.find, r"is a method of a class; make an object, and name its method"),
        (of_nothing, r"takes no question; write a function of .*, or name what it makes"),
        (with_index, "nothing is known to hand over for index"),
        (with_keyword_index, "nothing is known to hand over for index"),
    ],
)
def test_a_function_that_asks_for_more_is_refused(function: Callable[..., Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        style_of(function, "f")
