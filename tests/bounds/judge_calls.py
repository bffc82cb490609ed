"""Limits on what a judge may be asked, and on what that may cost."""

from ragcontract.judge.judge_options import JudgeOptions
from tests.bounds.lab import Case, Cases, Lab, all_of


def fits(**options: object) -> bool:
    """Return whether options are accepted."""
    return not JudgeOptions(model="toy", **options).wrong()  # type: ignore[arg-type]


def a_budget(_: Lab, size: int) -> bool:
    names = ("max_calls", "max_tokens", "price_in", "price_out")
    return all_of(*(fits(**{name: size}) for name in names), fits(max_usd=size, price_in=1, price_out=1))


def a_context(_: Lab, size: int) -> bool:
    return all_of(fits(max_context=size), fits(max_reply=size))


def a_deadline(_: Lab, size: int) -> bool:
    return fits(deadline=f"{size}s")


CASES: Cases = {
    "JUDGE_BUDGET": Case(a_budget),
    "JUDGE_CONTEXT": Case(a_context),
    "JUDGE_DEADLINE": Case(a_deadline),
}
