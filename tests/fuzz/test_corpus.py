"""The corpus: what the fuzzer has found satisfies the contract of the fuzzer since it was fixed."""

import pytest

from tests.fuzz.case import stored
from tests.fuzz.isolation import replay
from tests.fuzz.limits import Limits
from tests.fuzz.targets.registry import TARGETS
from tests.fuzz.worker import Failure

CASES = stored()
LARGEST = 1_000_000  # bytes


@pytest.mark.parametrize("name", CASES)
def test_what_was_found_is_fixed(name: str) -> None:
    found = replay(CASES[name], Limits())
    assert not isinstance(found, Failure), f"{found.reason}\n{found.details}"


def test_each_case_is_of_a_target_and_small() -> None:
    assert CASES
    assert {case.target for case in CASES.values()} <= set(TARGETS)
    assert max(case.size for case in CASES.values()) < LARGEST
