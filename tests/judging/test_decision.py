"""The verdict on everything together."""

import pytest
from msgspec.structs import replace

from ragcontract.contract.config import Config, Drops, FailOn, Minimums, PerQuery, TagLimits
from ragcontract.core.errors import InputError
from ragcontract.evaluation.scored import Scored
from ragcontract.judging.verdict import judge, without_judging
from tests.records import query, score

QUERIES = [query("q1", "A"), query("q2", "B", weight=3.0)]
GOOD = {"q1": ["A"], "q2": ["B"]}
ALL_LIMITS = ("fail_on.mrr_drop_gt", "tags.tag.fail_on.mrr_drop_gt")
WORSE = {"q1": ["x", "A"], "q2": ["B"]}


def test_a_contract_without_gates_is_broken_by_its_queries_alone() -> None:
    assert judge(score(QUERIES, GOOD)).verdict == "pass"
    judged = judge(score(QUERIES, {"q1": ["A"], "q2": ["x"]}))
    assert judged.verdict == "fail"
    assert list(judged.violations) == ["q2"]
    assert judged.gates == []


def test_a_gate_alone_breaks_the_contract() -> None:
    judged = judge(score(QUERIES, WORSE, GOOD, Config(fail_on=FailOn(mrr_drop_gt=0.1))))
    assert judged.verdict == "fail"
    assert judged.violations == {}
    assert [(gate.id, gate.status, gate.observed) for gate in judged.gates] == [("fail_on.mrr_drop_gt", "fail", 0.125)]
    assert judge(score(QUERIES, WORSE, GOOD, Config(fail_on=FailOn(mrr_drop_gt=0.125)))).verdict == "pass"


def test_one_broken_gate_among_several_is_enough() -> None:
    config = Config(fail_on=FailOn(mrr_drop_gt=0.1, recall_drop_gt=0.1), minimums=Minimums(hitrate_at_k=0.9))
    judged = judge(score(QUERIES, WORSE, GOOD, config))
    assert [gate.status for gate in judged.gates] == ["fail", "pass", "pass"]
    assert judged.verdict == "fail"


def test_queries_that_are_new_count_for_minimums_and_rules_and_not_for_drops() -> None:
    queries = [*QUERIES, query("new", "C")]
    config = Config(fail_on=FailOn(mrr_drop_gt=0.0), minimums=Minimums(mrr_at_k=0.9))
    judged = judge(score(queries, {**GOOD, "new": ["x"]}, GOOD, config))
    assert [(gate.id, gate.status, gate.observed) for gate in judged.gates] == [
        ("fail_on.mrr_drop_gt", "pass", 0.0),
        ("minimums.mrr_at_k", "fail", 0.8),
    ]
    assert list(judged.violations) == ["new"]
    means = judged.means["mrr_at_5"]
    assert (means.current, means.current_shared, means.baseline) == (0.8, 1.0, 1.0)


def test_the_switches_of_the_config_reach_the_rules() -> None:
    queries = [query("q1", "A", forbidden_doc_ids=("F",), must_rank_at_most=1)]
    run = {"q1": ["x", "A", "x2", "F"]}
    assert set(judge(score(queries, run)).violations) == {"q1"}
    off = PerQuery(enforce_must_rank_at_most=False, forbidden_within=3)
    assert judge(score(queries, run, config=Config(per_query=off))).verdict == "pass"


def test_the_largest_cut_off_is_the_one_of_must_include() -> None:
    run = {"q1": ["x", "y", "A"], "q2": ["B"]}
    assert judge(score(QUERIES, run, config=Config(k=3))).verdict == "pass"
    assert judge(score(QUERIES, run, config=Config(k=2))).verdict == "fail"


def test_gates_that_cannot_be_judged_are_errors_all_at_once_with_their_lines() -> None:
    config = Config(fail_on=FailOn(mrr_drop_gt=0.1, recall_drop_gt="5%"), minimums=Minimums(mrr_at_k=0.1))
    with pytest.raises(InputError) as caught:
        judge(score(QUERIES, GOOD, config=config))
    reason = "cannot be judged: there is no baseline; make one with `rag-contract baseline`, or leave the limit out"
    assert caught.value.problems == [
        f"ragcontract.yml:7: fail_on.mrr_drop_gt {reason}",
        f"ragcontract.yml:7: fail_on.recall_drop_gt {reason}",
    ]


def test_a_drop_over_no_shared_answerable_query_is_an_error() -> None:
    queries = [*QUERIES, query("none", forbidden_doc_ids=("F",))]
    scored = score(queries, {**GOOD, "none": []}, {"none": []}, Config(fail_on=FailOn(mrr_drop_gt=0.1)))
    with pytest.raises(InputError, match="no query with relevant documents is in both"):
        judge(scored)


def test_a_minimum_over_no_answerable_query_is_an_error() -> None:
    scored = score([query("none")], {"none": []}, config=Config(minimums=Minimums(hitrate_at_k=0.0)))
    with pytest.raises(InputError, match=r"minimums\.hitrate_at_k cannot be judged: no golden query has relevant"):
        judge(scored)


def test_an_unanswerable_set_without_gates_is_judged_by_its_forbidden_documents() -> None:
    queries = [query("none", forbidden_doc_ids=("F",))]
    assert judge(score(queries, {"none": ["x"]})).verdict == "pass"
    assert judge(score(queries, {"none": ["F"]})).verdict == "fail"
    assert judge(score(queries, {"none": ["F"]})).means["mrr_at_5"].current is None


def test_comparing_judges_nothing() -> None:
    scored = score(QUERIES, {"q1": [], "q2": []}, GOOD, Config(fail_on=FailOn(mrr_drop_gt=0.1)))
    compared = without_judging(scored)
    assert (compared.verdict, compared.gates, compared.violations) == ("pass", [], {})
    assert compared.means == judge(scored).means


def changed(losses: int, wins: int = 0, ties: int = 10) -> Scored:
    """Score queries of which some fell from rank 1 to 2, some rose, and some stayed."""
    ids = [f"q{number}" for number in range(losses + wins + ties)]
    queries = [query(one, "A", tags=("tag",)) for one in ids]
    before = {one: ["x", "A"] if losses <= number < losses + wins else ["A"] for number, one in enumerate(ids)}
    run = {one: ["x", "A"] if number < losses else ["A"] for number, one in enumerate(ids)}
    limits = TagLimits(fail_on=Drops(mrr_drop_gt=0.01))
    fail_on = FailOn(mode="significant", mrr_drop_gt=0.01)
    return score(queries, run, before, Config(fail_on=fail_on, tags={"tag": limits}))


def with_config(scored: Scored, config: Config) -> Scored:
    return replace(scored, config=replace(scored.config, config=config, lines=dict.fromkeys(ALL_LIMITS, 7)))


@pytest.mark.parametrize(
    ("losses", "wins", "status"),
    [
        (9, 0, "fail"),  # p is 2^-9
        (9, 7, "pass"),  # over the limit, and p is far above 0.05
        (4, 0, "fail"),  # too few to say: strict
        (
            5,
            0,
            "fail",
        ),  # p is 2^-5, too large for two limits by Holm's correction, but nothing could be smaller: strict
    ],
)
def test_where_only_significant_drops_count_noise_passes_and_a_small_set_does_not(
    losses: int, wins: int, status: str
) -> None:
    judged = judge(changed(losses, wins))
    assert [gate.status for gate in judged.gates] == [status, status]


def test_without_a_limit_on_a_drop_there_is_nothing_to_test() -> None:
    config = Config(fail_on=FailOn(mode="significant"), minimums=Minimums(mrr_at_k=0.9))
    assert [gate.status for gate in judge(score(QUERIES, WORSE, GOOD, config)).gates] == ["fail"]


def test_two_limits_are_tested_by_holm_and_at_the_alpha_that_is_set() -> None:
    assert [gate.status for gate in judge(changed(7, 1)).gates] == ["pass", "pass"]  # p 0.035, over 0.05 / 2
    lower = changed(12, 2)  # p 0.0065
    assert [gate.status for gate in judge(lower).gates] == ["fail", "fail"]
    config = replace(lower.config.config, fail_on=FailOn(mode="significant", mrr_drop_gt=0.01, alpha=0.01))
    assert [gate.status for gate in judge(with_config(lower, config)).gates] == ["pass", "pass"]


def test_a_relative_drop_may_be_noise_as_well() -> None:
    config = Config(fail_on=FailOn(mode="significant", mrr_drop_gt="1%"))
    assert [judge(with_config(changed(9, wins), config)).gates[0].status for wins in (0, 7)] == ["fail", "pass"]


def test_a_tags_limit_is_tested_on_the_tags_own_queries() -> None:
    noisy, lost = changed(9, 7), [query(f"lost{number}", "A") for number in range(12)]
    queries = [*noisy.golden.queries.values(), *lost]
    before = {one.id: ["A"] if one.id in {f"q{n}" for n in range(9)} else ["x", "A"] for one in queries}
    now = {one.id: ["x", "A"] if one.id in {f"q{n}" for n in range(9)} else ["A"] for one in queries}
    same = [f"q{number}" for number in range(16, 26)]
    before |= {name: ["A"] for name in [*same, *(one.id for one in lost)]}
    now |= {name: ["x", "A"] for name in (one.id for one in lost)}
    judged = judge(score(queries, now, before, noisy.config.config))
    assert [(gate.tag, gate.status) for gate in judged.gates] == [(None, "fail"), ("tag", "pass")]


def test_a_total_loss_counts_however_many_limits_there_are() -> None:
    scored = changed(400)
    limits = FailOn(mode="significant", alpha=0.001, mrr_drop_gt=0.01)
    tags = {f"t{number}": TagLimits(fail_on=Drops(mrr_drop_gt=0.01)) for number in range(20)}
    queries = [replace(one, tags=tuple(tags)) for one in scored.golden.queries.values()]
    config = replace(scored.config.config, fail_on=limits, tags=tags)
    lost = score(queries, {one.id: ["x", "A"] for one in queries}, {one.id: ["A"] for one in queries}, config)
    judged = judge(lost)
    assert {gate.status for gate in judged.gates} == {"fail"}
    assert judged.gates[0].message.endswith("(significant, p 0.0001)")


def test_without_that_mode_every_drop_over_its_limit_counts() -> None:
    scored = changed(9, 7)
    strict = replace(scored.config.config, fail_on=FailOn(mrr_drop_gt=0.01))
    judged = judge(replace(scored, config=replace(scored.config, config=strict)))
    assert [(gate.status, gate.p_value) for gate in judged.gates] == [("fail", None), ("fail", None)]


def test_a_gate_says_what_the_test_found() -> None:
    found, noisy, few = (judge(changed(*sizes)).gates[0] for sizes in ((9, 0), (9, 7), (4, 0)))
    assert found.message.endswith("(significant, p 0.002)")
    assert noisy.message.endswith(", which noise explains (p 0.4): not significant")
    assert few.message.endswith("(too few queries changed to tell it from noise, so it counts)")
    assert few.p_value is None
    passing = judge(changed(0, 9)).gates[0]
    assert passing.message == "MRR@5 rose by 0.24, allowed drop 0.01"


def test_the_noise_of_every_metric_that_moved_is_told() -> None:
    noise = judge(changed(9, 7)).noise
    assert set(noise) == {"mrr_at_5", "ndcg_at_5", "map_at_5"}
    assert (noise["mrr_at_5"].wins, noise["mrr_at_5"].ties, noise["mrr_at_5"].losses) == (7, 10, 9)
