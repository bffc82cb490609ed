"""Digests of what golden queries expected."""

from ragcontract.runs.baseline_contract import digest, digest_with


def test_a_digest_of_a_pair_can_be_made_of_its_parts() -> None:
    first = {"b": [1, "é"], "a": None}
    assert [digest_with(first)(value) for value in ("x", "", {"z": 1, "a": 2})] == [
        digest([first, value]) for value in ("x", "", {"z": 1, "a": 2})
    ]
