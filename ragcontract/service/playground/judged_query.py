"""What a contract says of one answer: its rules and metrics for a golden query, without limits on means."""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from ragcontract import pipeline
from ragcontract.contract.resolve import Contract
from ragcontract.core.errors import InputError
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.rule import RowRule, Rule, names_of, row_rules_of
from ragcontract.evaluation.source import Inputs
from ragcontract.report.record import QueryReport, Report

_TEMPORARY = re.compile(r"/\S*/rag-contract-\w+/")  # where the service has read the contract


class JudgedRule(Struct, frozen=True, kw_only=True):
    """A rule of a golden query, and whether an answer keeps it."""

    rule: str
    settings: str
    holds: bool
    problems: Annotated[
        list[str], Meta(description="What was wanted and what was there instead; empty if it holds.")
    ] = []


class JudgedMetric(Struct, frozen=True, kw_only=True):
    """A metric of one answer."""

    name: str
    label: str
    value: float


class JudgedQuery(Struct, frozen=True, kw_only=True):
    """An answer to a golden query, as the contract judges it."""

    id: str
    status: Annotated[str, Meta(description="`pass`, `fail`, or why it does not fail: `warn`, `waived` and such.")]
    rules: list[JudgedRule]
    metrics: list[JudgedMetric]
    ranks: Annotated[dict[str, int | None], Meta(description="Of each relevant document; null if it is not there.")]
    left_out: Annotated[
        list[str], Meta(description="Metrics that other tools or a judge compute, which do not count here.")
    ] = []


def judged(contract: Contract, query: GoldenQuery, row: Mapping[str, Any], now: datetime) -> JudgedQuery:
    """Return what a contract says of a run row for a golden query; raises InputError if it cannot judge the row."""
    contract, query, left_out = _computable(contract, query)
    report = _checked(contract, query, row, now)
    result = report.queries[0]
    enforced = [*_enforced(contract, query)]
    names = [_name_of(rule) for rule, _ in enforced]
    rules = []
    for (rule, written), name in zip(enforced, names, strict=True):
        problems = _broken(result, name)
        if problems and written is not None and names.count(name) > 1:  # which of them is it?
            alone = replace(query, rules=(written,))
            problems = _broken(_checked(contract, alone, row, now).queries[0], name)
        rules.append(JudgedRule(rule=name, settings=_settings_of(rule), holds=not problems, problems=problems))
    others = dict.fromkeys(violation.rule for violation in result.violations if violation.rule not in names)
    rules += [JudgedRule(rule=name, settings="", holds=False, problems=_broken(result, name)) for name in others]
    metrics = [*_metrics(report, result)]
    return JudgedQuery(
        id=query.id, status=result.status, rules=rules, metrics=metrics, ranks=result.ranks, left_out=left_out
    )


def _computable(contract: Contract, query: GoldenQuery) -> tuple[Contract, GoldenQuery, list[str]]:
    """Return a contract and a query without scores, which a system does not return, and the metrics left out."""
    families = tuple(family for family in contract.families if "scores" not in family.needs)
    computed = replace(contract, families=families)
    known = {metric.key for metric in computed.metrics}
    reads: list[set[str]] = [{*getattr(getattr(rule, "inner", rule), "read", ())} for rule in query.rules]
    rules = tuple(rule for rule, keys in zip(query.rules, reads, strict=True) if keys <= known)
    of_contract = [metric.key for metric in contract.metrics if metric.key not in known]
    of_rules = [key for keys in reads for key in sorted(keys - known)]
    return computed, replace(query, rules=rules), [*dict.fromkeys([*of_contract, *of_rules])]


def _broken(result: QueryReport, name: str) -> list[str]:
    """Return what is wrong by the rules of a name."""
    broken = [violation for violation in result.violations if violation.rule == name]
    return [f"expected {violation.expected}; found: {violation.found}" for violation in broken]


def _checked(contract: Contract, query: GoldenQuery, row: Mapping[str, Any], now: datetime) -> Report:
    """Check a row under the rules of one query."""
    alone = replace(contract.golden, queries={query.id: query})
    contract = replace(contract.without_gates().without_diagnostics(), golden=alone)
    with TemporaryDirectory(prefix="rag-contract-") as folder:
        path = Path(folder, "answer.jsonl")
        path.write_bytes(msgspec.json.encode(row) + b"\n")
        inputs = Inputs(golden=[query.location.path], run=[str(path)], replays=False)
        try:
            return pipeline.check(inputs, now=now, contract=contract, detail="all").report
        except InputError as error:
            whole = [problem.replace(f"{path}:1: ", "").replace(str(path), "the answer") for problem in error.problems]
            problems = [_TEMPORARY.sub("", problem) for problem in whole]
            raise InputError(problems, more=error.more) from error


def _metrics(report: Report, result: QueryReport) -> Iterator[JudgedMetric]:
    for name, value in result.metrics.items():
        if value is not None:
            yield JudgedMetric(name=name, label=report.metrics[name].label, value=value)


def rules_of(contract: Contract, query: GoldenQuery) -> Sequence[tuple[str, str]]:
    """Return the names of the rules of a query that are enforced, each with its settings as JSON."""
    return [(_name_of(rule), _settings_of(rule)) for rule, _ in _enforced(contract, query)]


def _enforced(contract: Contract, query: GoldenQuery) -> Iterator[tuple[Rule, RowRule | None]]:
    """Yield the rules of a query that are enforced, each with the entry of its golden row, if it is one."""
    for kind in contract.rules:
        if not issubclass(kind, RowRule):
            yield from ((rule, None) for rule in kind.of(query, contract.settings))
    for of_row in row_rules_of(query, contract.rules):
        yield of_row.inner, of_row


def _name_of(rule: Rule) -> str:
    """Return the name of a rule in reports."""
    return names_of(type(rule))[0]


def _settings_of(rule: Rule) -> str:
    """Return what a rule wants, as the names and values of its row."""
    fields = msgspec.to_builtins(rule, enc_hook=str)
    del fields["type"]
    unsaid = (value is None or value is False or value in ((), {}) for value in fields.values())
    written = [item for item, is_unsaid in zip(fields.items(), unsaid, strict=True) if not is_unsaid]
    return ", ".join(f"{name}: {msgspec.json.encode(value).decode()}" for name, value in written)
