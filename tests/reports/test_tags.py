"""How sure the drops of tags are."""

from ragcontract.contract.config import Config
from tests.records import query, report


def test_p_values_are_adjusted_over_all_tags_and_told_of_those_that_fell() -> None:
    sizes = {"five": 5, "six": 6, "up": 5}
    queries = [query(f"{tag}{number}", "A", tags=(tag,)) for tag, size in sizes.items() for number in range(size)]
    good, bad = ["A"], ["x", "A"]
    run = {one.id: good if one.tags == ("up",) else bad for one in queries}
    before = {one.id: bad if one.tags == ("up",) else good for one in queries}
    tags = report(queries, run, before, Config(k=[1, 5])).tags
    # By hand: 2^-6 * 3 / 1 and 2^-5 * 3 / 2, of three tests one of which found nothing.
    assert tags["six"].p_values["mrr_at_5"] == tags["five"].p_values["mrr_at_5"] == 3 / 64
    assert tags["up"].p_values == {}
    assert {key for tag in tags.values() for key in tag.p_values} == {"mrr_at_5", "ndcg_at_5", "map_at_5"}
