"""Spans that arrive while a call is under way."""

import pytest

from ragcontract.core import bounds
from ragcontract.record.interface import CallFailed
from ragcontract.record.traces.receiving import SpanStore
from tests.record.traces.spans import TRACE, span


def test_spans_that_nobody_expects_are_only_counted() -> None:
    store = SpanStore()
    store.add([span(1)])
    store.expect(TRACE)
    store.add([span(2)])
    assert store.wait(TRACE, 0, lambda _: True) == [span(2)]
    store.forget(TRACE)
    store.add([span(3)])
    assert (store.expected, store.others) == (1, 2)


def test_of_too_many_spans_one_more_than_allowed_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "TRACE_SPANS", 3)
    store = SpanStore()
    store.expect(TRACE)
    store.add([span(number) for number in range(1, 10)])
    assert len(store._spans[TRACE]) == 4
    with pytest.raises(CallFailed, match="more than 3 spans"):
        store.wait(TRACE, 0, lambda _: True)


def test_waiting_ends_with_what_has_arrived() -> None:
    store = SpanStore()
    store.expect(TRACE)
    assert store.wait(TRACE, 0, lambda _: False) == []
    store.add([span(1)])
    assert store.wait(TRACE, 0, lambda _: False) == [span(1)]
