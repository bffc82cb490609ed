"""What is resolved from golden queries and configuration."""

from ragcontract.contract.config_file import config_of
from ragcontract.contract.resolve import Contract, resolve
from ragcontract.registry import BUILT_IN
from tests.records import golden_of, query
from tests.work import work


def resolved(size: int) -> tuple[Contract, int]:
    """Return a contract with as many limits on tags as golden queries, each of which has its own tag."""
    queries = [query(f"q{number}", "A", tags=(f"tag {number}",)) for number in range(size)]
    golden = golden_of(queries)
    limits = {f"tag {number}": {"minimums": {"mrr_at_k": 0.5}} for number in range(1, size + 1)}
    config = config_of({"tags": limits}, BUILT_IN, location="ragcontract.yml:7")
    made: list[Contract] = []
    lines = work(lambda: made.append(resolve(golden, config, BUILT_IN, has_baseline=False)))
    return made[0], lines


def test_a_limit_for_a_tag_that_no_query_has_is_a_problem() -> None:
    contract, _ = resolved(3)
    assert contract.limit_problems.problems == (
        (
            "ragcontract.yml:7: tags.tag 3.minimums.mrr_at_k cannot be judged: no golden query has the tag 'tag 3'; "
            "did you mean 'tag 2'?"
        ),
    )


def test_queries_are_not_searched_for_each_limit_on_a_tag() -> None:
    assert resolved(400)[1] < 3 * resolved(200)[1]
