"""Limits that their queries cannot carry are one sentence for each size of limit."""

from ragcontract.contract.warnings import TooFew, too_few_queries
from ragcontract.core.gate import Gate, Quantity

MRR = Quantity(key="mrr_at_5", label="MRR@5")
END = "; add queries, or allow more"


def small(queries: int, tag: str | None, limit: float = 0.05, *, line: int = 7, relative: bool = False) -> TooFew:
    """Return a limit that needs twice as many queries as it has, and two more."""
    gate = Gate(
        id=f"{tag}{line}",
        location=f"ragcontract.yml:{line}",
        quantity=MRR,
        kind="drop",
        limit=limit,
        relative=relative,
        tag=tag,
    )
    return TooFew(gate=gate, queries=queries, needs=2 * queries + 2)


def test_all_tags_with_one_limit_are_one_sentence_at_the_line_of_the_first() -> None:
    found = [small(10, "billing", line=12), small(10, "billing", line=13), small(12, "refunds", line=20)]
    which = "2 tags of 10 to 12 queries ('billing' and 'refunds')"
    said = f"{which} cannot carry an allowed drop of 0.05, which needs 26{END}"
    assert list(too_few_queries(found)) == [("ragcontract.yml:12", said)]


def test_of_many_tags_the_first_are_named_and_the_others_counted() -> None:
    ((_, message),) = too_few_queries([small(10, f"tag{number}") for number in range(12)])
    which = "12 tags of 10 queries ('tag0', 'tag1', 'tag2', 'tag3', 'tag4' and 7 more)"
    assert message == f"{which} cannot carry an allowed drop of 0.05, which needs 22{END}"


def test_limits_of_another_size_and_those_over_all_queries_are_sentences_of_their_own() -> None:
    found = [small(40, None), small(1, "one"), small(10, "two", 0.1, relative=True)]
    assert [message for _, message in too_few_queries(found)] == [
        f"40 queries cannot carry an allowed drop of 0.05, which needs 82{END}",
        f"a tag of 1 query ('one') cannot carry an allowed drop of 0.05, which needs 4{END}",
        f"a tag of 10 queries ('two') cannot carry an allowed drop of 10%, which needs 22{END}",
    ]


def test_nothing_is_said_where_every_limit_has_enough() -> None:
    assert not list(too_few_queries([]))
