"""The rules of a query that was exported several times: they must hold each time."""

from ragcontract.contract.config import PerQuery
from ragcontract.model import GoldenQuery, QueryScore, Violation
from ragcontract.rules.ranks import broken_rules


def broken_in_any(query: GoldenQuery, score: QueryScore, k: int, rules: PerQuery) -> list[Violation]:
    """Return every rule that a row of the query breaks, told by the worst rank of each document.

    One of several documents at a rank is enough for some rules, and may be another one each time: the worst ranks
    alone would call these broken where no row breaks them.
    """
    found = broken_rules(query, score, k, rules)
    if not score.repeats or not found:
        return found
    broken = {violation.rule for repeat in score.repeats for violation in broken_rules(query, repeat, k, rules)}
    return [violation for violation in found if violation.rule in broken]
