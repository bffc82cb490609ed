"""Reviews a contract for likely mistakes, most of which a check does not report; ``lint`` shows them.

Besides, it notes limits that every run keeps to, such as a minimum of 0, contracts that no run breaks, and fields of
golden rows that nothing uses. It is pure: it takes the golden queries and a summary of the exports, and returns
findings.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain

from msgspec import Struct

from ragcontract.contract import answer_review
from ragcontract.contract.answer_review import Exports, Find, Found, Name, Queries, Reviewed
from ragcontract.contract.config import Config, enforced
from ragcontract.contract.golden_file import FILL_IN
from ragcontract.contract.resolve import Contract
from ragcontract.contract.warnings import contradictions, more_than_k, too_few_queries, without_enough
from ragcontract.core import bounds
from ragcontract.core.gate import Gate, every_run_keeps, written
from ragcontract.core.golden import PLACEHOLDER, GoldenQuery
from ragcontract.core.id_forms import Match, difference, matches, most_common, same_form
from ragcontract.core.metric import Scale
from ragcontract.core.nearest import NearNames, is_typo
from ragcontract.core.numbers import count
from ragcontract.core.phrase import Place, listed, render
from ragcontract.core.questions import same_question
from ragcontract.rules.ranks import MustRankAtMost
from ragcontract.runs.baseline_contract import REFERENCES
from ragcontract.statistics.quantities import LABEL_MACRO_F1

NOTES: frozenset[Name] = frozenset(
    {"small-tag", "limit-needs-queries", "limit-never-fails", "field-not-used", "no-abstention"}
)


class ReviewNote(Struct, frozen=True, kw_only=True):
    """A likely mistake, its location (``golden.jsonl:17``), and what to do about it."""

    location: Place
    rule: Name
    message: str

    @property
    def is_note(self) -> bool:
        """Whether the finding is only for information, which does not count with ``--strict``."""
        return self.rule in NOTES

    def line(self) -> str:
        """Return the finding as one line: ``golden.jsonl:17: [small-tag] …``."""
        return f"{self.location}: [{self.rule}] {self.message}"


def read_exports(rows: Iterable[tuple[str, list[str]]], queries: Queries, config: Config) -> Exports:
    """Summarize the rows of any number of runs; collects document ids until there are ``bounds.LINT_IDS``."""
    never = set(chain.from_iterable(query.relevant_doc_ids for query in queries.values()))
    doc_ids: set[str] = set()
    depth = 0
    for _, retrieved in rows:
        distinct = set(retrieved)
        never -= distinct
        depth = max(depth, len(distinct if config.rank_by == "documents" else retrieved))
        if len(doc_ids) < bounds.LINT_IDS:
            doc_ids |= distinct
    return Exports(depth=depth, never=frozenset(never), doc_ids=frozenset(doc_ids))


def review(queries: Queries, config: Config, k: int, exports: Exports | None = None) -> list[ReviewNote]:
    """Return the findings in the order of the golden set; without ``exports``, only those that need no run."""
    reviewed = Reviewed(queries=queries, config=config, k=k, exports=exports)
    order = {query_id: number for number, query_id in enumerate(queries)}
    findings = [(query, rule, message) for rule, find in FINDINGS.items() for query, message in find(reviewed)]
    findings.sort(key=lambda finding: order[finding[0].id])
    return [ReviewNote(location=query.location, rule=rule, message=message) for query, rule, message in findings]


def _placeholders(reviewed: Reviewed) -> Found:
    for query in reviewed.queries.values():
        if PLACEHOLDER in query.relevant_doc_ids:
            yield query, f"{query.id!r} has {PLACEHOLDER!r} for a relevant document, so it fails; {FILL_IN}"


def _duplicates(reviewed: Reviewed) -> Found:
    first: dict[str, GoldenQuery] = {}
    for query in reviewed.queries.values():
        other = first.setdefault(same_question(query.query), query)
        if other is not query:
            advice = _different(query, other)
            yield (
                query,
                f"{query.id!r} asks the same as {other.id!r} ({other.location}), so it counts twice; {advice}",
            )


def _different(query: GoldenQuery, other: GoldenQuery) -> str:
    """Return what to do about two queries that ask the same."""
    if set(query.relevant_doc_ids) != set(other.relevant_doc_ids):
        return "they want different documents: merge them into one row"
    if (query.rules, query.answer) != (other.rules, other.answer):
        return "they expect different answers: merge them into one row"
    return "remove one"


def _contradictions(reviewed: Reviewed) -> Found:
    for query, message, _ in contradictions(reviewed.queries, reviewed.config, reviewed.k):
        yield query, message


def _small_tags(reviewed: Reviewed) -> Found:
    tagged: dict[str, list[GoldenQuery]] = {}
    for query in reviewed.queries.values():
        for tag in query.tags:
            tagged.setdefault(tag, []).append(query)
    advice = f"add queries until it has {bounds.TAGGED}, or read its numbers with care"
    for tag, having in tagged.items():
        if len(having) < bounds.TAGGED:
            only = "one query" if len(having) == 1 else f"{len(having)} queries"
            yield having[0], f"tag {tag!r} is on {only} only, so its means say little; {advice}"


def _never_retrieved(reviewed: Reviewed) -> Found:
    """Yield the queries whose documents no run returns; ids that are only written in another form are reported once."""
    if (exports := reviewed.exports) is None:
        return
    in_another_form = {match.wanted: match for match in matches(sorted(exports.never), sorted(exports.doc_ids))}
    example, matched = most_common(in_another_form.values())
    same_form_ids: set[str] = set()
    if example and matched > 1:
        same_form_ids = {wanted for wanted, match in in_another_form.items() if same_form(match, example)}
    reported, explained, retrieved = False, 0, NearNames(sorted(exports.doc_ids))
    for query in reviewed.queries.values():
        never = [doc_id for doc_id in query.relevant_doc_ids if doc_id in exports.never and doc_id != PLACEHOLDER]
        if not never:
            continue
        if example and not same_form_ids.isdisjoint(never):
            if not reported:
                differences = render(difference(example), repr)
                ids = f"{len(exports.never):,} relevant ids never occur in a run"
                yield (
                    query,
                    f"{ids}; {matched:,} do {differences}: write ids the same way in the contract and in the run",
                )
            reported = True
            never = [doc_id for doc_id in never if doc_id not in same_form_ids]
            if not never:
                continue
        explained += 1
        near = _meant(never[0], query, in_another_form, retrieved) if explained <= bounds.LINT_SUGGESTED else None
        advice = f"did you mean {near!r}?" if near else "is the id right, and the document in the index?"
        wanted = render(listed(never, "and"))
        yield query, f"{query.id!r} wants {wanted}, which no run returns for any question; {advice}"


def _meant(doc_id: str, query: GoldenQuery, in_another_form: Mapping[str, Match], retrieved: NearNames) -> str | None:
    """Return the id that was probably meant, which has another form or one typing error; None if that is not sure."""
    if match := in_another_form.get(doc_id):
        return match.actual
    near = retrieved.nearest(doc_id)
    return near if near and is_typo(doc_id, near) and near not in query.relevant_doc_ids else None


def _beyond_depth(reviewed: Reviewed) -> Found:
    if (exports := reviewed.exports) is None or not enforced(reviewed.config, MustRankAtMost):
        return
    for query in reviewed.queries.values():
        rank = query.must_rank_at_most
        if rank is not None and rank > exports.depth:
            deepest = f"no run lists more than {count(exports.depth, 'result')}"
            advice = f"export at least {rank:,}, or lower it"
            yield query, f"{query.id!r} has must_rank_at_most {rank:,}, but {deepest}; {advice}"


# What is found in queries, by the name of the finding.
FINDINGS: Mapping[Name, Find] = {
    "todo-placeholder": _placeholders,
    "duplicate-question": _duplicates,
    "forbidden-and-relevant": _contradictions,
    "more-than-k": lambda reviewed: more_than_k(reviewed.queries, reviewed.config, reviewed.k),
    "small-tag": _small_tags,
    **answer_review.FINDINGS,
    "never-retrieved": _never_retrieved,
    "rank-beyond-depth": _beyond_depth,
}


def notes(contract: Contract, home: str) -> Iterator[ReviewNote]:
    """Yield the findings about the contract as a whole; ``home`` is the file that it is in."""
    found: dict[Name, Iterable[tuple[Place, str]]] = {
        "limit-needs-queries": too_few_queries(without_enough(contract)),
        "limit-never-fails": always_held(contract),
        "field-not-used": unused_fields(contract),
        "nothing-can-fail": [(home, NOTHING_FAILS)] if nothing_fails(contract) else [],
    }
    for rule, pairs in found.items():
        yield from (ReviewNote(location=location, rule=rule, message=message) for location, message in pairs)


def always_held(contract: Contract) -> Iterator[tuple[Place, str]]:
    """Yield the location of each limit that no run can miss, and a sentence about it."""
    for gate in contract.gates:
        if holds_always(gate, contract):
            limit = written(gate.limit, relative=gate.relative)
            never = f"{gate.id}: every run keeps to {limit}, so it never fails; tighten it, or leave it out"
            yield gate.location, never


def holds_always(gate: Gate, contract: Contract) -> bool:
    """Return whether the worst value, or the largest change, is within a limit."""
    scales = {metric.key: metric.scale for metric in contract.metrics}
    is_share = gate.quantity.of_rules or gate.quantity.of_class is not None
    scale = Scale() if is_share else scales.get(gate.quantity.key)
    return scale is not None and every_run_keeps(gate.kind, gate.limit, scale, relative=gate.relative)


NOTHING_FAILS = (
    "nothing in this contract can fail: no limit that a run may miss is set, and no query that fails has a rule that "
    "is enforced; set a limit, or enforce rules"
)


def nothing_fails(contract: Contract) -> bool:
    """Return whether every run passes: no gate can fail, and no query whose severity is error has a rule.

    Pass rates count the rules of these queries only. Where only they decide, one over all queries excuses every rule.
    """
    if any(not gate.quantity.of_rules and not holds_always(gate, contract) for gate in contract.gates):
        return False
    rates = [gate for gate in contract.gates if gate.quantity.of_rules]
    if contract.config.per_query.fail_on == "pass_rate" and any(gate.tag is gate.tier is None for gate in rates):
        return all(holds_always(gate, contract) for gate in rates)
    return not any(query.severity == "error" and contract.has_rules(query) for query in contract.queries.values())


def unused_fields(contract: Contract) -> Iterator[tuple[Place, str]]:
    """Yield the location of the first row with a field that nothing uses, and a sentence about all of them."""
    used = _used(contract)
    for name in REFERENCES:
        answers = [query.answer for query in contract.queries.values() if query.answer]
        having = sum(getattr(answer, name) is not None for answer in answers)
        if name not in used and having:
            have = "has" if having == 1 else "have"
            unused = f"{count(having, 'query')} {have} {name}, and no limit, rule or judgment uses it"
            yield contract.golden.answer_fields[name], f"{unused}; limit a metric that reads it, or leave it out"


def _used(contract: Contract) -> set[str]:
    """Return the fields that a limit, a rule or a judgment reads; a reference is also what claims are made from."""
    limited = {gate.quantity.key for gate in contract.gates}
    named = {*limited, *contract.settings.metrics, *contract.config.judge.metrics}
    asked = {
        metric.asks or str(family.switch)
        for family in contract.families
        for metric in family.metrics
        if metric.key in named
    }
    used = {"expected_mode", *asked}  # a rule is always made from expected_mode
    if LABEL_MACRO_F1.key in limited or any(gate.quantity.of_class is not None for gate in contract.gates):
        used.add("expected_label")
    return used | {"reference"} if "reference_claims" in used else used
