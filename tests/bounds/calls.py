"""Limits on calls over HTTP, and on what is kept of them."""

from typing import Any

import pytest

from ragcontract.github.context import GitHubError
from ragcontract.net.sending import HttpCall
from ragcontract.record.adapters.chat import resolve
from ragcontract.record.adapters.service_client import AnswerMapping, Fields, ServiceClient, keys_in
from ragcontract.record.interface import CallFailed, Surroundings
from ragcontract.record.returned.result_forms import DocumentIds
from tests.bounds.lab import Case, Cases, Lab, all_of
from tests.github.standin import Fault
from tests.github.test_http import Calls
from tests.net import service as stand_in
from tests.net.service import Reply


def called(*replies: Reply) -> Any:
    """Return what a service answers, or the failure of the call."""
    with stand_in.Service(*replies) as there:
        service = ServiceClient(there.url, trust_env="auto", surroundings=Surroundings())
        try:
            return service.json(HttpCall(method="GET", url=there.url), 20)[0]
        except CallFailed as failure:
            return failure
        finally:
            service.close()


def an_answer(lab: Lab, size: int) -> bool:
    lab.github.faults = [Fault(status=200, answer=["x" * (size - 4)])]
    try:
        by_github = bool(Calls(lab.github).get().content)
    except GitHubError as error:
        assert "GitHub answered, but the answer is larger than" in str(error)  # noqa: PT017
        by_github = False
    found = called(Reply(content=b" " * (size - 2) + b"[]"))
    assert found == [] or found.kind == "too_large"
    return all_of(by_github, found == [])


def redirects(_: Lab, count: int) -> bool:
    found = called(*[Reply(status=307, headers={"Location": "/"})] * count, Reply(content=[]))
    assert found == [] or found.kind == "http_error"
    return bool(found == [])


def a_snippet(_: Lab, size: int) -> bool:
    return bool(called(Reply(status=500, content=b"x" * size)).detail["response_snippet"] == "x" * size)


def a_reason(_: Lab, size: int) -> bool:
    reason = "r" * size
    refused = str(called(Reply(status=400, content={"error": reason})))
    mapping = AnswerMapping(Fields(answer="a", error="error"), doc_ids=DocumentIds(None), empty="error")
    with pytest.raises(CallFailed) as raised:
        mapping.response({"error": reason})
    return all_of(refused.endswith(f": {reason}"), str(raised.value).endswith(f": {reason}"))


def names(_: Lab, count: int) -> bool:
    return keys_in({f"{number:03}": 0 for number in range(count)}).endswith(f"{count - 1:03}")


def models(_: Lab, count: int) -> bool:
    how = resolve(lambda: {"data": [{"id": f"m{number}"} for number in range(count)]}).how
    return how is not None and len(how["server_models"]) == count


CASES: Cases = {
    "HTTP_ANSWER": Case(an_answer, small=10_000),
    "SERVICE_REDIRECTS": Case(redirects),
    "SERVICE_SNIPPET": Case(a_snippet),
    "SERVICE_REASON": Case(a_reason),
    "SERVICE_NAMES": Case(names),
    "SERVER_MODELS": Case(models),
}
