"""Reports on contracts that hypothesis makes up: rules, limits, waivers and severities in any combination."""

from typing import Any

from hypothesis import strategies as st

from ragcontract.core.golden import GoldenQuery
from ragcontract.report.record import Report
from tests.records import query, report

DOCS = ("A", "B|1", "C`", "<D>", "E_e", "@F", "G", "H")
FORBIDDEN = ("X", "Y*y")
RULES = ("must_include", "must_include_any", "must_rank_at_most", "forbidden_docs")
WHY = {"reason": "known", "owner": "ann", "expires": "2026-12-31"}


@st.composite
def golden_query(draw: st.DrawFn, name: str) -> GoldenQuery:
    """Return a query with any rules."""
    relevant = draw(st.lists(st.sampled_from(DOCS), unique=True))
    return query(
        name,
        *relevant,
        must_include_any=draw(st.booleans()),
        must_rank_at_most=draw(st.none() | st.integers(1, 9)) if relevant else None,
        forbidden_doc_ids=tuple(draw(st.lists(st.sampled_from(FORBIDDEN), unique=True))),
        severity=draw(st.sampled_from(["error", "warn"])),
        tags=("t",),
    )


def ranking() -> st.SearchStrategy[list[str]]:
    """Return documents in any order, some of them lost."""
    return st.lists(st.sampled_from([*DOCS, *FORBIDDEN, "x", "y", "z"]), unique=True)


def _limits(*keys: str) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(st.sampled_from(keys), st.sampled_from([0.0, 0.1, 0.5, 1.0]))


@st.composite
def reports(draw: st.DrawFn) -> Report:
    """Return a report."""
    queries = [draw(golden_query(f"q{number}")) for number in range(draw(st.integers(1, 4)))]
    compared = draw(st.booleans())
    now, before = ({one.id: draw(ranking()) for one in queries} for _ in range(2))
    answerable = any(one.relevant_doc_ids for one in queries)
    fail_on = draw(_limits("mrr_drop_gt", "recall_drop_gt")) if compared and answerable else {}
    minimums = draw(_limits("mrr_at_k", "recall_at_k")) if answerable else {}
    gates = [f"fail_on.{key}" for key in fail_on] + [f"minimums.{key}" for key in minimums]
    waived = draw(st.lists(st.sampled_from(gates), unique=True)) if gates else []
    waivers: list[dict[str, Any]] = [{"gate": gate, **WHY} for gate in waived]
    for one in draw(st.lists(st.sampled_from(queries), unique_by=lambda one: one.id)):
        rule = draw(st.none() | st.sampled_from(RULES))
        waivers.append({"query": one.id, **({} if rule is None else {"rule": rule}), **WHY})
    config = {
        "fail_on": fail_on,
        "minimums": minimums,
        "tags": {"t": {"minimums": {"mrr_at_k": 0.5}}} if answerable and draw(st.booleans()) else {},
        "waivers": waivers,
        "per_query": {"forbidden_within": draw(st.none() | st.integers(1, 5))},
    }
    return report(queries, now, before if compared else None, config)
