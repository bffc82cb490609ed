"""The environments of `make test-record`, which alone have the frameworks."""

import os
from importlib.util import find_spec
from typing import Any

import pytest

from ragcontract.record.interface import Context, Response, System


def need(package: str) -> None:
    """Skip the test where a framework is not installed; in CI, where no test may be left out, it fails."""
    if find_spec(package) is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(f"{package} is not installed: run `make test-record`")


def asked(system: System, *queries: str, top: int = 10, **context: Any) -> list[Response]:
    """Set a system up, ask it, and return what it did."""
    system.setup()
    try:
        contexts = [Context(query_id=f"q{number}", top=top, **context) for number in range(len(queries))]
        return [system.ask(query, one) for query, one in zip(queries, contexts, strict=True)]
    finally:
        system.teardown()
