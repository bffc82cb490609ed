"""The folded section on what a judge said, for people: sentences, and claims in the order in which they matter."""

from collections.abc import Iterator

from msgspec import UNSET, Struct

from ragcontract.core import bounds
from ragcontract.core.numbers import count, fixed
from ragcontract.core.text import shorten, visible
from ragcontract.reports.judge_report import ClaimReport, JudgedQuery, JudgeReport
from ragcontract.reports.report import Report

DIGITS = 2


class JudgeSection(Struct, frozen=True, kw_only=True):
    """The title, sentences (with names from files, whole and not escaped), and the queries, the least recall first."""

    title: str
    facts: list[str]
    queries: list[JudgedQuery]


def judge_section(report: Report) -> JudgeSection | None:
    """Return the section; None if no judgments are given."""
    judge = report.judge
    if judge is UNSET:
        return None
    queries = sorted(judge.queries, key=lambda one: one.supported / one.of)
    return JudgeSection(title="What the judge said, claim by claim", facts=list(_facts(judge)), queries=queries)


def evidence(claim: ClaimReport, length: int) -> str:
    """Return the words that support a claim and where they are, or why nothing does; nothing of it is escaped."""
    if not claim.supported:
        return _shown(claim.reason, length)
    where = f"text {claim.context}" if claim.context is not None else "the texts"
    return f"{where}: “{_shown(claim.quote, length)}”" if claim.quote else where


def _facts(judge: JudgeReport) -> Iterator[str]:
    by = f" by {_shown(', '.join(judge.models), bounds.NAME)}" if judge.models else ""
    when = f", from {judge.oldest} to {judge.newest}" if judge.oldest else ""
    tokens = f", for {judge.tokens_in:,} tokens in and {judge.tokens_out:,} out"
    yield f"{count(judge.judgments, 'judgment')}{by}{when}{tokens}. Nothing was asked for this report."
    if judge.unused:
        of = [f"{number:,} {status}" for status, number in judge.without_verdict.items()]
        lacking = f"; without a verdict in all files: {', '.join(of)}" if of else ""
        yield f"{count(judge.unused, 'judgment')} on other texts, queries or by other judges not used{lacking}."
    if judge.kappa is not None and judge.kappa_low is not None:
        low = f"at least {fixed(judge.kappa_low, DIGITS)} at 95 %"
        yield f"The judge agrees with people beyond chance with kappa {fixed(judge.kappa, DIGITS)} ({low})."
    if judge.mean is not None and judge.estimate is not None:
        means = f"Its mean is {fixed(judge.mean, DIGITS)}; people would say {fixed(judge.estimate, DIGITS)}"
        yield f"{means}, estimated from how often it is right (Rogan and Gladen). Limits are on its own mean."
    if judge.why_not:
        yield f"Limits on it do not count: {'; '.join(_shown(why, bounds.MARKDOWN_LINE) for why in judge.why_not)}."


def _shown(text: str | None, length: int) -> str:
    return shorten(visible(" ".join((text or "").split())), length)
