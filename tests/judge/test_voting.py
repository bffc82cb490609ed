"""Votes become a verdict by a strict majority of those that an item may have, or not at all."""

from itertools import product
from typing import Any

import pytest

from ragcontract.judge.calls import Vote
from ragcontract.judge.interface import VoteSettings
from ragcontract.judge.judge_case import Withheld, decided

YES, NO, ASSERTS, DENIES, SUPPORTED = (
    Vote(verdict=verdict)
    for verdict in (True, False, "asserts_unsupported", "denies_or_reports_absence", "supported_by_context")
)
UNSURE, COMPROMISED, FAILED = (Withheld(status=status, reason=status) for status in ("unsure", "compromised", "failed"))
SHORT: dict[Any, Vote | Withheld] = {
    "y": YES, "n": NO, "a": ASSERTS, "d": DENIES, "s": SUPPORTED, "u": UNSURE, "c": COMPROMISED, "f": FAILED,
}  # fmt: skip


def decision(votes: str, number: int, confirm: Any) -> Any:
    """Return the verdict, why there is none, or "more"."""
    found = decided([SHORT[vote] for vote in votes], VoteSettings(votes=number, confirm=confirm))
    return "more" if found is None else found.verdict if isinstance(found, Vote) else found.status


@pytest.mark.parametrize(
    ("votes", "number", "confirm", "expected"),
    [
        ("y", 1, "failures", True),
        ("n", 1, "failures", False),
        ("u", 1, "all", "unsure"),
        # Failures are confirmed, nothing else is.
        ("y", 3, "failures", True),
        ("d", 3, "failures", "denies_or_reports_absence"),
        ("u", 3, "failures", "unsure"),
        ("c", 3, "failures", "compromised"),
        ("f", 3, "failures", "failed"),
        ("n", 3, "failures", "more"),
        ("nn", 3, "failures", False),
        ("ny", 3, "failures", "more"),
        ("nyy", 3, "failures", True),
        ("nyn", 3, "failures", False),
        ("aa", 3, "failures", "asserts_unsupported"),
        ("ads", 3, "failures", "denies_or_reports_absence"),
        ("asds", 5, "failures", "supported_by_context"),
        # Everything is confirmed.
        ("y", 3, "all", "more"),
        ("yy", 3, "all", True),
        ("u", 3, "all", "more"),
        ("uyy", 3, "all", True),
        ("yyn", 5, "all", "more"),
        # A vote that is withheld is for neither side, and the bar stays.
        ("nu", 3, "failures", "more"),
        ("nun", 3, "failures", False),
        ("nuy", 3, "failures", "unsure"),
        ("nuu", 3, "failures", "unsure"),
        ("uu", 3, "all", "unsure"),
        ("nfu", 3, "failures", "failed"),
        ("nuc", 3, "failures", "compromised"),
        ("ncf", 3, "failures", "failed"),
    ],
)
def test_votes_decide(votes: str, number: int, confirm: str, expected: Any) -> None:
    assert decision(votes, number, confirm) == expected


@pytest.mark.parametrize("confirm", ["failures", "all"])
@pytest.mark.parametrize("number", [1, 3, 5])
def test_every_item_is_decided_in_the_end_and_never_by_a_minority(number: int, confirm: str) -> None:
    for votes in product("ynu", repeat=number):
        found = decision("".join(votes), number, confirm)
        assert found != "more"
        if found is False:
            assert votes.count("n") > number // 2
        elif found is True and not (confirm == "failures" and votes[0] == "y"):
            assert votes.count("y") > number // 2


def test_what_is_decided_early_is_what_all_votes_decide() -> None:
    for votes in product("ynu", repeat=5):
        early = next(
            found for found in (decision("".join(votes[:at]), 5, "all") for at in range(1, 6)) if found != "more"
        )
        yes, no = votes.count("y"), votes.count("n")
        assert early == (True if yes > 2 else False if no > 2 else "unsure")


@pytest.mark.parametrize("votes", [0, 2, -1, 17])
def test_a_number_of_votes_that_can_be_a_draw_is_refused(votes: int) -> None:
    with pytest.raises(ValueError, match="an odd number from 1 to 15"):
        VoteSettings(votes=votes)
