"""Settings of the test tools, and the stand-in for GitHub, which has to be stopped after each test."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from tests.github.standin import GitHub

# No test asserts a time, hypothesis' own limits on an example included: a busy machine is no defect.
settings.register_profile("rag-contract", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("rag-contract")


@pytest.fixture
def github() -> Iterator["GitHub"]:
    from tests.github.standin import GitHub  # not installed where frameworks are tested

    with GitHub() as standin:
        yield standin
