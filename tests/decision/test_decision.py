"""The verdict on everything together."""

import pytest
from msgspec.structs import replace

from ragcontract.core.errors import InputError
from ragcontract.decision.decide import Decision, decide
from ragcontract.decision.evaluated import Evaluation
from ragcontract.decision.input_problems import input_problems
from ragcontract.evaluation.plan import plan_for
from ragcontract.evaluation.source import Local
from tests.records import NOW, Config, Docs, Rows, evaluate, query, report_on

QUERIES = [query("q1", "A"), query("q2", "B", weight=3.0)]
GOOD = {"q1": ["A"], "q2": ["B"]}
WORSE = {"q1": ["x", "A"], "q2": ["B"]}


def judge(evaluation: Evaluation) -> Decision:
    return decide(evaluation, NOW)


def problems_of(evaluation: Evaluation) -> list[str]:
    """Return why gates cannot be judged."""
    found = evaluation.contract.limit_problems + input_problems(evaluation)
    return list(found.problems)


def test_a_contract_without_gates_is_broken_by_its_queries_alone() -> None:
    assert judge(evaluate(QUERIES, GOOD)).verdict == "pass"
    judged = judge(evaluate(QUERIES, {"q1": ["A"], "q2": ["x"]}))
    assert judged.verdict == "fail"
    assert list(judged.violations) == ["q2"]
    assert judged.gates == ()


def test_a_gate_alone_breaks_the_contract() -> None:
    judged = judge(evaluate(QUERIES, WORSE, GOOD, {"fail_on": {"mrr_drop_gt": 0.1}}))
    assert judged.verdict == "fail"
    assert judged.violations == {}
    assert [(gate.id, gate.status, gate.observed) for gate in judged.gates] == [("fail_on.mrr_drop_gt", "fail", 0.125)]
    assert judge(evaluate(QUERIES, WORSE, GOOD, {"fail_on": {"mrr_drop_gt": 0.125}})).verdict == "pass"


def test_one_broken_gate_among_several_is_enough() -> None:
    config = {"fail_on": {"mrr_drop_gt": 0.1, "recall_drop_gt": 0.1}, "minimums": {"hitrate_at_k": 0.9}}
    judged = judge(evaluate(QUERIES, WORSE, GOOD, config))
    assert [gate.status for gate in judged.gates] == ["fail", "pass", "pass"]
    assert judged.verdict == "fail"


def test_queries_that_are_new_count_for_minimums_and_rules_and_not_for_drops() -> None:
    queries = [*QUERIES, query("new", "C")]
    config = {"fail_on": {"mrr_drop_gt": 0.0}, "minimums": {"mrr_at_k": 0.9}}
    evaluation = evaluate(queries, {**GOOD, "new": ["x"]}, GOOD, config)
    judged = judge(evaluation)
    assert [(gate.id, gate.status, gate.observed) for gate in judged.gates] == [
        ("fail_on.mrr_drop_gt", "pass", 0.0),
        ("minimums.mrr_at_k", "fail", 0.8),
    ]
    assert list(judged.violations) == ["new"]
    means = evaluation.aggregates.comparisons["mrr_at_5"]
    assert (means.current, means.current_shared, means.baseline) == (0.8, 1.0, 1.0)


def test_the_switches_of_the_config_reach_the_rules() -> None:
    queries = [query("q1", "A", forbidden_doc_ids=("F",), must_rank_at_most=1)]
    run = {"q1": ["x", "A", "x2", "F"]}
    assert set(judge(evaluate(queries, run)).violations) == {"q1"}
    off = {"per_query": {"enforce_must_rank_at_most": False, "forbidden_within": 3}}
    assert judge(evaluate(queries, run, config=off)).verdict == "pass"


def test_the_largest_cut_off_is_the_one_of_must_include() -> None:
    run = {"q1": ["x", "y", "A"], "q2": ["B"]}
    assert judge(evaluate(QUERIES, run, config={"k": [1, 3]})).verdict == "pass"
    assert judge(evaluate(QUERIES, run, config={"k": [2, 1]})).verdict == "fail"


def test_gates_that_cannot_be_judged_are_errors_all_at_once_with_their_lines() -> None:
    config = {"fail_on": {"mrr_drop_gt": 0.1, "recall_drop_gt": "5%"}, "minimums": {"mrr_at_k": 0.1}}
    with pytest.raises(InputError) as caught:
        report_on(evaluate(QUERIES, GOOD, config=config))
    reason = "cannot be judged: there is no baseline; make one with `rag-contract baseline`, or leave the limit out"
    assert caught.value.problems == [
        f"ragcontract.yml:7: fail_on.mrr_drop_gt {reason}",
        f"ragcontract.yml:7: fail_on.recall_drop_gt {reason}",
    ]


def test_a_drop_over_no_shared_answerable_query_is_an_error() -> None:
    queries = [*QUERIES, query("none", forbidden_doc_ids=("F",))]
    evaluation = evaluate(queries, {**GOOD, "none": []}, {"none": []}, {"fail_on": {"mrr_drop_gt": 0.1}})
    (problem,) = problems_of(evaluation)
    reason = "no query with relevant documents is in both the run and the baseline"
    assert problem == f"ragcontract.yml:7: fail_on.mrr_drop_gt cannot be judged: {reason}"


def test_a_minimum_over_no_answerable_query_is_an_error() -> None:
    evaluation = evaluate([query("none")], {"none": []}, config={"minimums": {"hitrate_at_k": 0.0}})
    assert problems_of(evaluation) == [
        "ragcontract.yml:7: minimums.hitrate_at_k cannot be judged: no golden query has relevant documents"
    ]


def test_several_limits_in_one_line_that_cannot_be_judged_are_all_reported() -> None:
    config = {"fail_on": {"mrr_drop_gt": 0.1}, "minimums": {"mrr_at_k": 0.1}, "latency": {"max_ms": 1}}
    found = problems_of(evaluate([query("none")], {"none": []}, config=config))
    assert [problem.partition(" cannot")[0] for problem in found] == [
        "ragcontract.yml:7: fail_on.mrr_drop_gt",
        "ragcontract.yml:7: minimums.mrr_at_k",
        "ragcontract.yml:7: latency.max_ms",
    ]


def test_an_unanswerable_set_without_gates_is_judged_by_its_forbidden_documents() -> None:
    queries = [query("none", forbidden_doc_ids=("F",))]
    assert judge(evaluate(queries, {"none": ["x"]})).verdict == "pass"
    assert judge(evaluate(queries, {"none": ["F"]})).verdict == "fail"
    assert evaluate(queries, {"none": ["F"]}).aggregates.comparisons["mrr_at_5"].current is None


def test_without_limits_nothing_is_broken_and_the_numbers_are_the_same() -> None:
    evaluation = evaluate(QUERIES, {"q1": [], "q2": []}, GOOD, {"fail_on": {"mrr_drop_gt": 0.1}})
    assert judge(evaluation).verdict == "fail"
    contract = evaluation.contract.without_limits()
    run = Local(Rows(docs={"q1": [], "q2": []}, name="run.jsonl")).evaluate(plan_for(contract))
    compared = judge(replace(evaluation, contract=contract, run=run))
    assert (compared.verdict, compared.gates, compared.violations, compared.findings) == ("pass", (), {}, ())


LIMIT = {"mrr_drop_gt": 0.01}
SIGNIFICANT: Config = {"fail_on": {"mode": "significant", **LIMIT}, "tags": {"tag": {"fail_on": LIMIT}}}


def changed(losses: int, wins: int = 0, ties: int = 10, config: Config = SIGNIFICANT) -> Evaluation:
    """Evaluate queries of which some fell from rank 1 to 2, some rose, and some stayed."""
    ids = [f"q{number}" for number in range(losses + wins + ties)]
    queries = [query(one, "A", tags=("tag",)) for one in ids]
    before = {one: ["x", "A"] if losses <= number < losses + wins else ["A"] for number, one in enumerate(ids)}
    run = {one: ["x", "A"] if number < losses else ["A"] for number, one in enumerate(ids)}
    return evaluate(queries, run, before, config)


@pytest.mark.parametrize(
    ("losses", "wins", "status"),
    [
        (9, 0, "fail"),  # p is 2^-9
        (9, 7, "unproven"),  # over the limit, and p is far above 0.05
        (4, 0, "too_few"),  # p is 2^-4, and nothing could be smaller
        (5, 0, "fail"),  # p is 2^-5: the second limit is on the same queries, and costs nothing
    ],
)
def test_where_only_significant_drops_count_others_have_a_status_of_their_own(
    losses: int, wins: int, status: str
) -> None:
    judged = judge(changed(losses, wins))
    assert [gate.status for gate in judged.gates] == [status, status]


def test_without_a_limit_on_a_drop_there_is_nothing_to_test() -> None:
    config = {"fail_on": {"mode": "significant"}, "minimums": {"mrr_at_k": 0.9}}
    (gate,) = judge(evaluate(QUERIES, WORSE, GOOD, config)).gates
    assert (gate.status, gate.p_value, gate.message) == ("fail", None, "MRR@5 is 0.88, minimum 0.90")


def test_two_limits_on_the_same_queries_are_one_test_at_the_alpha_that_is_set() -> None:
    assert [gate.p_value for gate in judge(changed(7, 1)).gates] == [9 / 2**8, 9 / 2**8]  # 0.035
    assert [gate.status for gate in judge(changed(7, 1)).gates] == ["fail", "fail"]
    stricter = {**SIGNIFICANT, "fail_on": {**SIGNIFICANT["fail_on"], "alpha": 0.01}}
    gates = judge(changed(7, 1, config=stricter)).gates
    assert [(gate.status, gate.alpha) for gate in gates] == [("unproven", 0.01), ("unproven", 0.01)]


def test_equal_drops_whose_exact_p_is_just_below_5_percent_are_proven() -> None:
    gate = judge(changed(20, 10)).gates[0]
    assert (gate.status, gate.certainty) == ("fail", "undecided")
    assert gate.p_value == pytest.approx(0.0494, abs=5e-5)
    assert gate.bounds
    assert gate.bounds[0] >= 0


def test_every_mode_judges_a_drop_over_and_within_its_limit_by_its_own_question() -> None:
    def statuses(limit: float, losses: int, wins: int, ties: int) -> list[str]:
        modes = ("strict", "significant", "noninferiority")
        configs: list[Config] = [{"fail_on": {"mode": mode, "mrr_drop_gt": limit}} for mode in modes]
        return [judge(changed(losses, wins, ties, config)).gates[0].status for config in configs]

    assert statuses(0.01, 12, 7, 100) == ["fail", "unproven", "fail"]  # over, and not proven
    assert statuses(0.02, 5, 4, 100) == ["pass", "pass", "fail"]  # within, and not for sure
    assert statuses(0.06, 5, 4, 100) == ["pass", "pass", "pass"]  # within for sure
    assert statuses(0.01, 30, 0, 70) == ["fail", "fail", "fail"]
    assert statuses(0.0, 0, 0, 10) == ["pass", "pass", "pass"]  # an identical run is within every limit


def test_a_limit_says_how_many_queries_it_takes_if_there_are_fewer_and_the_mode_asks_what_is_sure() -> None:
    def needs(mode: str, ties: int) -> list[object]:
        config: Config = {**SIGNIFICANT, "fail_on": {"mode": mode, "mrr_drop_gt": 0.1}}
        return [gate.needs or None for gate in judge(changed(4, 4, ties, config)).gates]

    assert needs("strict", 2) == [None, None]
    assert needs("significant", 2) == [50, 500]  # two sets of queries have limits: 0.1 and the tag's 0.01
    assert needs("noninferiority", 2) == [31, 327]
    assert needs("noninferiority", 30) == [None, 327]


def test_bounds_of_a_relative_limit_are_in_its_unit() -> None:
    absolute, relative = (
        judge(changed(9, 7, config={"fail_on": {"mrr_drop_gt": limit}})).gates[0] for limit in (0.01, "1%")
    )
    before = (19 + 7 / 2) / 26
    assert absolute.bounds
    assert relative.bounds == pytest.approx([bound / before for bound in absolute.bounds])
    assert relative.p_value == absolute.p_value


def test_the_report_has_one_p_value_for_a_drop() -> None:
    evaluation = changed(9, 7)
    made = report_on(evaluation)
    gate, of_tag = made.gates
    noise = made.metrics["mrr_at_5"].noise
    assert noise is not None
    assert gate.p_value == noise.p_value
    assert gate.bounds == (-noise.bounds[1], -noise.bounds[0])
    assert of_tag.p_value == made.tags["tag"].p_values["mrr_at_5"]


def test_a_relative_drop_may_be_unproven_as_well() -> None:
    config = {"fail_on": {"mode": "significant", "mrr_drop_gt": "1%"}}
    assert [judge(changed(9, wins, config=config)).gates[0].status for wins in (0, 7)] == ["fail", "unproven"]


def test_a_tags_limit_is_tested_on_the_tags_own_queries() -> None:
    noisy, lost = changed(9, 7), [query(f"lost{number}", "A") for number in range(12)]
    queries = [*noisy.contract.queries.values(), *lost]
    before = {one.id: ["A"] if one.id in {f"q{n}" for n in range(9)} else ["x", "A"] for one in queries}
    now = {one.id: ["x", "A"] if one.id in {f"q{n}" for n in range(9)} else ["A"] for one in queries}
    same = [f"q{number}" for number in range(16, 26)]
    before |= {name: ["A"] for name in [*same, *(one.id for one in lost)]}
    now |= {name: ["x", "A"] for name in (one.id for one in lost)}
    judged = judge(evaluate(queries, now, before, SIGNIFICANT))
    assert [(gate.tag, gate.status) for gate in judged.gates] == [(None, "fail"), ("tag", "unproven")]


def test_a_total_loss_counts_however_many_limits_there_are() -> None:
    ids = [f"q{number}" for number in range(400)]
    tags = [f"t{number}" for number in range(20)]
    queries = [query(one, "A", tags=tuple(tags)) for one in ids]
    limits = {tag: {"fail_on": LIMIT} for tag in tags}
    config: Config = {"fail_on": {"mode": "significant", "alpha": 0.001, **LIMIT}, "tags": limits}
    now: Docs = {one: ["x", "A"] for one in ids}
    judged = judge(evaluate(queries, now, {one: ["A"] for one in ids}, config))
    assert {gate.status for gate in judged.gates} == {"fail"}
    assert judged.gates[0].message.endswith("(significant, p 3.9e-121)")


def test_without_that_mode_every_drop_over_its_limit_counts() -> None:
    judged = judge(changed(9, 7, config={**SIGNIFICANT, "fail_on": LIMIT}))
    assert [gate.status for gate in judged.gates] == ["fail", "fail"]
    assert judged.gates[0].p_value == pytest.approx(0.4, abs=0.01)


def test_a_gate_says_what_the_test_found() -> None:
    found, noisy, few = (judge(changed(*sizes)).gates[0] for sizes in ((9, 0), (9, 7), (4, 0)))
    assert found.message.endswith("(significant, p 0.002)")
    assert noisy.message == "MRR@5 fell by 0.04, allowed drop 0.01"
    assert few.p_value == 2**-4
    passing = judge(changed(0, 9)).gates[0]
    assert passing.message == "MRR@5 rose by 0.24, at least by 0.11, allowed drop 0.01"


def test_the_noise_of_every_metric_that_changed_is_known() -> None:
    metrics = report_on(changed(9, 7)).metrics
    noise = {key: metric.noise for key, metric in metrics.items() if metric.noise}
    assert set(noise) == {"mrr_at_5", "ndcg_at_5", "map_at_5"}
    assert (noise["mrr_at_5"].wins, noise["mrr_at_5"].ties, noise["mrr_at_5"].losses) == (7, 10, 9)
