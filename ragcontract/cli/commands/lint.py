"""``rag-contract lint``: reviews the contract itself."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import click
from msgspec.structs import replace

from ragcontract.cli.console import progress_over, say, warn
from ragcontract.cli.options import WITHOUT_RUN, files_option, find_files, refuse_run, takes
from ragcontract.contract import defaults
from ragcontract.contract.config_file import read_config
from ragcontract.contract.golden_file import contract_warnings, read_golden
from ragcontract.contract.resolve import resolve
from ragcontract.contract.review import ReviewNote, notes, read_exports, review
from ragcontract.core import bounds
from ragcontract.core.errors import ExitCode
from ragcontract.core.numbers import count, more
from ragcontract.core.phrase import Location
from ragcontract.core.safe_text import shorten, visible
from ragcontract.decision.input_problems import no_patterns
from ragcontract.evaluation.forbidden_forms import ForbiddenForms
from ragcontract.evaluation.observations import PatternIds
from ragcontract.evaluation.plan import Plan, plan_for
from ragcontract.evaluation.source import Inputs
from ragcontract.files.problems import Collector
from ragcontract.registry import BUILT_IN
from ragcontract.rules.ranks import ForbiddenDocs
from ragcontract.runs.readers import doc_id_rows


@click.command("lint")
@takes(
    "golden",
    files_option("--run", f"What the retriever returned; each file is a separate run. [{defaults.RUN}, if it exists]"),
    "config",
)
@WITHOUT_RUN
@click.option("--strict", is_flag=True, help="Exit 1 if there are warnings, or findings other than notes.")
def command(*, inputs: Inputs, without_run: bool, strict: bool) -> int:
    """Review the contract itself for likely mistakes.

    Finds duplicate questions, documents that are both relevant and forbidden, placeholders, tags with few queries,
    limits that need more queries or never fail (notes), contracts in which nothing can fail, and more relevant
    documents than fit into the top k. For answers, finds fields that nothing uses (notes), rules that the question,
    the reference or another rule contradicts, and texts that are found within other words. With a run, also finds
    relevant documents that it never returns, and ranks beyond its depth. Exits 0 without --strict.
    """
    refuse_run(inputs.paths("run"), without_run=without_run)
    if without_run or not os.path.lexists(defaults.RUN):
        inputs = replace(inputs, unnamed=inputs.unnamed - {"run"})
    inputs = find_files(inputs)
    runs = inputs.paths("run")
    with progress_over([*inputs.golden, *runs]) as progress:
        findings, warnings = _findings(replace(inputs, progress=progress))
    warn(warnings)
    say("".join(f"{visible(line)}\n" for line in _lines(findings)))
    serious = sum(not finding.is_note for finding in findings)
    say(_summary(serious, len(findings) - serious, len(warnings), with_runs=bool(runs)))
    return ExitCode.BROKEN if strict and (serious or warnings) else ExitCode.PASS


def _findings(inputs: Inputs) -> tuple[list[ReviewNote], list[str]]:
    """Read all files and return findings and warnings; raises :class:`InputError` with all problems."""
    config = read_config(inputs.config, BUILT_IN, others=inputs.other_configs)
    level, own = config.config.relevance_level, config.config.allow_fields
    golden = read_golden(inputs.golden, BUILT_IN, inputs.progress, level=level, allow_fields=own)
    problems = Collector()
    contract = resolve(golden, config, BUILT_IN, has_baseline=True)  # which a review does without
    problems.include(contract.problems)
    problems.include(contract.limit_problems)
    rows = doc_id_rows(inputs.paths("run"), problems, inputs.progress, results_required=golden.all_documents)
    plan = plan_for(contract)
    patterns = PatternIds(plan)
    exports = read_exports(_compared(rows, plan, problems, patterns), golden.queries, config.config)
    if (never := patterns.result()) and ForbiddenDocs in contract.rules:
        problems.warning(no_patterns(never))
    all_problems = problems.collected()
    all_problems.raise_if_any()
    reviewed = {shorten(warning, bounds.MESSAGE) for warning in contract_warnings(golden.queries.values())}
    warnings = [warning for warning in all_problems.warnings if warning not in reviewed]
    findings = review(golden.queries, config.config, config.cutoffs[0], exports if inputs.run else None)
    return [*notes(contract, inputs.config or inputs.golden[0]), *findings], warnings


def _compared(
    rows: Iterable[tuple[str, list[str], Location]], plan: Plan, problems: Collector, patterns: PatternIds
) -> Iterator[tuple[str, list[str]]]:
    """Yield the ids of rows, and note what is wrong with forbidden documents on the way.

    ``problems`` collects rows with ids that may be those of forbidden documents in another form. ``patterns`` notes
    the ids that occur.
    """
    forbidden_forms = ForbiddenForms.of(plan)
    for query_id, doc_ids, location in rows:
        query = plan.golden.get(query_id)
        if forbidden_forms and query and query.forbidden_doc_ids:
            for fault in forbidden_forms.faults(query, doc_ids):
                problems.mismatch(location, fault)
        patterns.note_ids([doc_ids])
        yield query_id, doc_ids


def _lines(findings: Sequence[ReviewNote]) -> Iterator[str]:
    """Yield a line for each finding; if a rule has many, yield the first ones and a count of the others."""
    by_rule = Counter(finding.rule for finding in findings)
    shown: Counter[str] = Counter()
    for finding in findings:
        shown[finding.rule] += 1
        if shown[finding.rule] <= bounds.LINT_REPEATED:
            yield finding.line()
    for rule, number in by_rule.items():
        if others := more(number, bounds.LINT_REPEATED, form="… and {}"):
            yield f"{others} [{rule}]"


def _summary(serious: int, notes: int, warnings: int, *, with_runs: bool) -> str:
    numbers = {"finding": serious, "note": notes, "warning": warnings}
    sizes = ", ".join(count(number, noun) for noun, number in numbers.items() if number)
    hint = "" if with_runs else " (without a run: use --run to compare ids and ranks with the results)"
    return f"{sizes or 'no findings'}{hint}\n"
