"""Reviews the contract itself for likely mistakes, most of which a check does not report.

Pure: takes the golden queries and a summary of the exports, returns findings.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Literal

from msgspec import Struct

from ragcontract.contract.answer_review import AnswerName, answer_findings
from ragcontract.contract.config import Config, enforced
from ragcontract.contract.golden_file import FILL_IN
from ragcontract.contract.unsatisfiable import contradictions, more_than_k
from ragcontract.core import bounds
from ragcontract.core.golden import PLACEHOLDER, GoldenQuery
from ragcontract.core.id_forms import Match, difference, matches, most_common, same_form
from ragcontract.core.nearest import NearNames, is_typo
from ragcontract.core.numbers import count
from ragcontract.core.phrase import listed, render
from ragcontract.core.questions import same_question
from ragcontract.rules.ranks import MustRankAtMost

Name = (
    Literal[
        "duplicate-question",
        "todo-placeholder",
        "forbidden-and-relevant",
        "more-than-k",
        "never-retrieved",
        "rank-beyond-depth",
        "small-tag",
        "limit-needs-queries",
        "limit-never-fails",
        "field-not-used",
        "nothing-can-fail",
    ]
    | AnswerName
)
NOTES: frozenset[Name] = frozenset(
    {"small-tag", "limit-needs-queries", "limit-never-fails", "field-not-used", "no-abstention"}
)
Queries = Mapping[str, GoldenQuery]
Found = Iterator[tuple[GoldenQuery, str]]


class ReviewNote(Struct, frozen=True, kw_only=True):
    """A likely mistake, its location (``golden.jsonl:17``), and what to do about it."""

    location: str
    rule: Name
    message: str

    @property
    def is_note(self) -> bool:
        """Whether it is only for information and does not count with ``--strict``."""
        return self.rule in NOTES

    def line(self) -> str:
        """Return the finding as one line: ``golden.jsonl:17: [small-tag] …``."""
        return f"{self.location}: [{self.rule}] {self.message}"


class Exports(Struct, frozen=True, kw_only=True):
    """A summary of all runs: the length of the longest result list, and the relevant documents that no run returns.

    ``doc_ids`` are some of the ids that occur, to suggest spellings from.
    """

    depth: int
    never: frozenset[str]
    doc_ids: frozenset[str]


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
    rules: dict[Name, Callable[[], Found]] = {
        "todo-placeholder": lambda: _placeholders(queries),
        "duplicate-question": lambda: _duplicates(queries),
        "forbidden-and-relevant": lambda: (
            (query, message) for query, message, _ in contradictions(queries, config, k)
        ),
        "more-than-k": lambda: more_than_k(queries, config, k),
        "small-tag": lambda: _small_tags(queries),
    }
    rules.update(answer_findings(queries, config).items())
    if exports is not None:
        rules["never-retrieved"] = lambda: _never_retrieved(queries, exports)
        rules["rank-beyond-depth"] = lambda: _beyond_depth(queries, config, exports)
    order = {query_id: number for number, query_id in enumerate(queries)}
    found = [(order[query.id], query, rule, message) for rule, find in rules.items() for query, message in find()]
    found.sort(key=lambda one: one[0])
    return [ReviewNote(location=query.location, rule=rule, message=message) for _, query, rule, message in found]


def _placeholders(queries: Queries) -> Found:
    for query in queries.values():
        if PLACEHOLDER in query.relevant_doc_ids:
            yield query, f"{query.id!r} has {PLACEHOLDER!r} for a relevant document, so it fails; {FILL_IN}"


def _duplicates(queries: Queries) -> Found:
    first: dict[str, GoldenQuery] = {}
    for query in queries.values():
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


def _small_tags(queries: Queries) -> Found:
    tagged: dict[str, list[GoldenQuery]] = {}
    for query in queries.values():
        for tag in query.tags:
            tagged.setdefault(tag, []).append(query)
    advice = f"add queries until it has {bounds.TAGGED}, or read its numbers with care"
    for tag, having in tagged.items():
        if len(having) < bounds.TAGGED:
            only = "one query" if len(having) == 1 else f"{len(having)} queries"
            yield having[0], f"tag {tag!r} is on {only} only, so its means say little; {advice}"


def _never_retrieved(queries: Queries, exports: Exports) -> Found:
    """Yield the queries whose documents no run returns; those whose ids are only written in another form, once."""
    in_another_form = {match.wanted: match for match in matches(sorted(exports.never), sorted(exports.doc_ids))}
    example, matched = most_common(in_another_form.values())
    same_form_ids: set[str] = set()
    if example and matched > 1:
        same_form_ids = {wanted for wanted, match in in_another_form.items() if same_form(match, example)}
    said, explained, retrieved = False, 0, NearNames(sorted(exports.doc_ids))
    for query in queries.values():
        never = [doc_id for doc_id in query.relevant_doc_ids if doc_id in exports.never and doc_id != PLACEHOLDER]
        if not never:
            continue
        if example and not same_form_ids.isdisjoint(never):
            if not said:
                found = render(difference(example), repr)
                ids = f"{len(exports.never):,} relevant ids never occur in a run"
                yield query, f"{ids}; {matched:,} do {found}: write ids the same way in the contract and in the run"
            said = True
            never = [doc_id for doc_id in never if doc_id not in same_form_ids]
            if not never:
                continue
        explained += 1
        near = _meant(never[0], query, in_another_form, retrieved) if explained <= bounds.LINT_SUGGESTED else None
        advice = f"did you mean {near!r}?" if near else "is the id right, and the document in the index?"
        wanted = render(listed(never, "and"))
        yield query, f"{query.id!r} wants {wanted}, which no run returns for any question; {advice}"


def _meant(doc_id: str, query: GoldenQuery, in_another_form: Mapping[str, Match], retrieved: NearNames) -> str | None:
    """Return the id that was meant: the same in another form, or one typing error away; None if that is not sure."""
    if match := in_another_form.get(doc_id):
        return match.found
    near = retrieved.nearest(doc_id)
    return near if near and is_typo(doc_id, near) and near not in query.relevant_doc_ids else None


def _beyond_depth(queries: Queries, config: Config, exports: Exports) -> Found:
    for query in queries.values():
        rank = query.must_rank_at_most
        if rank is not None and rank > exports.depth and enforced(config, MustRankAtMost):
            deepest = f"no run lists more than {count(exports.depth, 'result')}"
            advice = f"export at least {rank:,}, or lower it"
            yield query, f"{query.id!r} has must_rank_at_most {rank:,}, but {deepest}; {advice}"
