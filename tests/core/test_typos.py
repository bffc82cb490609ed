"""Which misspelled ids have a suggestion."""

import pytest

from ragcontract.core.nearest import is_typo


@pytest.mark.parametrize(
    ("word", "meant", "expected"),
    [
        ("policy_refnd", "policy_refund", True),
        ("refund_polcy", "refund_policy", True),
        ("refudn", "refund", True),
        ("Refunds", "refund", True),
        ("refund-policy", "refund_policy", False),
        ("policy_2024", "policy_2023", False),
        ("policy_eu", "policy_us", False),
        ("policy", "policy_eu", False),
        ("refundXY", "refund", False),
    ],
)
def test_one_typing_error_in_a_long_part_is_a_typo(word: str, meant: str, *, expected: bool) -> None:
    assert is_typo(word, meant) is expected
