"""The sections on broken queries: what was expected, retrieved and answered, and what is broken and does not fail."""

import re
from collections.abc import Iterator, Sequence
from itertools import islice, zip_longest

from ragcontract.core import bounds
from ragcontract.core.finding import Finding, phrase_of
from ragcontract.core.numbers import count, more
from ragcontract.core.phrase import Name, Phrase, joined
from ragcontract.report.blocks import (
    Block,
    Fold,
    Form,
    Items,
    Kind,
    Lines,
    Note,
    Parts,
    Sentence,
    Styled,
    Table,
    Text,
    between,
)
from ragcontract.report.history_report import broken_on_branch
from ragcontract.report.notes import row_shown
from ragcontract.report.queries import (
    CONTEXTS,
    CONVERSATION,
    IN_BASELINE,
    FindingsByQuery,
    broken_queries,
    failing_since,
    not_failing_queries,
    queries_with_texts,
    said_rows,
    shown_answer,
    since,
    tolerated_queries,
    waived_gates,
    why_excused,
)
from ragcontract.report.rank_changes import about, rank, top
from ragcontract.report.record import QueryReport, Report, RetrievedReport

SHORTEST = 12  # letters and digits; a shorter id may begin like the question by chance


def query_cell(query: QueryReport, mark: str = "") -> Lines:
    """Return the question, below it the id unless it repeats the beginning of the question, and the mark, if any."""
    named = [] if repeats(query.id, query.query) else [Name(query.id)]
    marks = [("(", Text(mark, "line"), ")")] if mark else []
    return Lines([Text(query.query, "question"), *named, *marks])


def repeats(query_id: str, question: str) -> bool:
    """Return whether an id is the question or its beginning in another spelling, as ``how-do-i-get-a-refund``."""
    words, asked = _letters(query_id[: bounds.QUESTION]), _letters(question[: bounds.QUESTION])
    if not words:
        return query_id == question
    return words == asked or (len(words) >= SHORTEST and asked.startswith(words))


def _letters(value: str) -> str:
    return "".join(filter(str.isalnum, value.casefold()))


def broken(report: Report, max_rows: int, *, folds: bool = True) -> Iterator[Block]:
    """Yield the broken queries, worst first, as a list, because a phone cuts off tables; ``folds`` hide most."""
    queries = broken_queries(report)
    if not queries:
        return
    findings = FindingsByQuery(report)
    ages_differ = len({since(report, query) for query in queries}) > 1
    # The headline counts all that are broken, and which are new.
    fail = f"{count(len(queries), 'query')} {'fails' if len(queries) == 1 else 'fail'}"
    title = "Broken queries" if len(queries) >= report.broken.queries else fail
    new = sum(not query.in_baseline for query in queries) or len(queries)
    first = min(bounds.OPEN_QUERIES, new) if folds else max_rows
    order = f", the worst {first:,} of {len(queries):,}" if first < len(queries) else ", worst first"
    yield Note((Styled(title), order if len(queries) > 1 else ""))
    items: list[Parts] = []
    for query in queries[:max_rows]:
        failing = findings.failing(query.id)
        lines = [line_of(finding, max(report.k)) for finding in failing[: bounds.MARKDOWN_FINDINGS]]
        rest = more(len(failing), len(lines), form="… and {}")
        age = (ages_differ and query.in_baseline) or bool(broken_on_branch(report.history, query.id))
        mark = failing_since(report, query, findings, age=age)
        items.append(Lines([_title(query, mark), *lines, rest]))
    left_out = Note(more(len(queries), max_rows, "broken query", "… and {}, in `report.json`."))
    yield Items(items[:first])
    if further := items[first:]:
        yield Fold(count(len(queries) - first, "more broken query"), [Items(further), left_out])
    else:
        yield left_out


def _title(query: QueryReport, mark: Phrase) -> Parts:
    """Return the question, its id unless that repeats the question, and the mark, if any."""
    named = [] if repeats(query.id, query.query) else [Name(query.id)]
    marks = [("(", Sentence(mark, "line"), ")")] if mark else []
    return between(" ", [Styled(Text(query.query, "question")), *named, *marks])


TOP = re.compile(r"in top (\d{1,9})\b")
MISSING_TEXT = frozenset({"must_contain", "answer_must_include"})


def line_of(finding: Finding, k: int) -> Parts:
    """Return a finding on one line: ```doc_a`: was rank 2, now missing``, or what was expected and found.

    A document below the top ``k`` was missing before, too.
    """
    names = [part for part in finding.expected if isinstance(part, Name)]
    if finding.ranks and len(names) >= len(finding.ranks):
        return _documents(finding, names, k)
    if MISSING_TEXT.issuperset(finding.ids):
        return ("must contain ", Sentence(finding.expected), "; the answer was ", Sentence(finding.found, marks=""))
    return ("expected ", Sentence(finding.expected), "; found: ", Sentence(finding.found, marks=""))


def _documents(finding: Finding, names: Sequence[Name], k: int) -> Parts:
    """Return the documents of a finding, each with its rank before and now, and what was expected of a rank."""
    before = [*(finding.ranks_before or ()), *[None] * len(finding.ranks)]
    forbidden = " is forbidden" if finding.expected[0] == "no " else ""
    last = finding.expected[-1]
    depth = max(k, *map(int, TOP.findall(last) if isinstance(last, str) else ()), 1)  # a rule may look further than k
    items: list[Parts] = []
    in_top = [old if forbidden or (old or 0) <= depth else None for old in before]
    for name, old, now in islice(zip(names, in_top, finding.ranks, strict=False), bounds.LISTED):
        if finding.ranks_before is None:
            moved = _rank(now)
        elif old is None and forbidden:
            moved = f"now {_rank(now)}"
        elif old is None and (now is None or now > depth):
            moved = "still missing" if now is None else f"still below the top {depth}"
        else:
            moved = f"still {_rank(now)}" if old == now else f"was {_rank(old)}, now {_rank(now)}"
        items.append((name, f"{forbidden}: {moved}"))
    any_of = len(names) > 1 and " or " in finding.expected
    start = "; one of them wanted" if any_of else "; wanted"
    wanted: Parts = "" if forbidden or not (any_of or any(finding.ranks)) else Sentence((start, last))
    is_more = finding.more_ranks or len(finding.ranks) > len(items)
    return (between("; ", items), wanted, "; …" if is_more else "")


def _rank(number: int | None) -> str:
    return rank(number) if number is None else f"rank {rank(number)}"


def tolerated(report: Report, max_rows: int) -> Iterator[Block]:
    """Yield the section on gates and queries that are broken and do not fail, if there are any."""
    gates, queries = waived_gates(report), tolerated_queries(report)
    findings, size = FindingsByQuery(report), len(gates) + len(queries)
    rows: list[list[Parts]] = [
        [Name(gate.ids[0]), Sentence(phrase_of(gate), marks=""), Text(gate.why.removeprefix("waived "), "line")]
        for gate in gates[:max_rows]
    ]
    for query in queries[: max_rows - len(rows)]:
        of_query = findings.tolerated(query.id)
        sentences: list[Parts] = [
            Sentence((*finding.expected, ": ", *finding.found), marks="")
            for finding in of_query[: bounds.MARKDOWN_FINDINGS]
        ]
        others = more(len(of_query), len(sentences), form="… and {}")
        listed = between("; ", [*sentences, *([others] if others else [])])
        rows.append([query_cell(query), listed, Sentence(why_excused(report, query, findings), "line")])
    if size:
        rest = Note(more(size, max_rows, "row", "… and {}, in `report.json`."))
        table = Table(["", "Broken", "Why it does not fail"], "lll", rows)
        yield Fold(f"Broken and not failing: {size:,}", [table, rest])


def broken_lists(report: Report, file: str) -> Iterator[Block]:
    """Yield the broken queries, then what does not fail, as lists for a terminal; ``file`` is the full report.

    Queries that the baseline breaks as well, and which do not fail for that reason, are only counted.
    """
    findings, most = FindingsByQuery(report), bounds.TERMINAL_QUERIES
    broken, others = broken_queries(report), not_failing_queries(report)
    # If nothing is new, what is in the baseline is not only counted.
    queries = [query for query in broken if not query.in_baseline] or broken
    known = [*broken[len(queries) :], *(query for query in others if query.status == "known")]
    not_failing = [query for query in others if query.status != "known"]
    excused: list[Parts] = [
        (Text(query.status, "status"), " ", Name(query.id), "  ", Text(why, "why"))
        for query in not_failing[:most]
        if (why := findings.why_tolerated(query.id, query.status)) is not None
    ]
    see = (", see ", Name(file)) if file else ()
    if rest := more(len(not_failing), most):
        excused.append((f"… and {rest} that do not fail", *see))
    for query in queries[:most]:
        note = failing_since(report, query, findings)
        of_note = (" (", Sentence(note), ")") if note else ()
        title = (Text(query.status, "status"), " ", Styled(Name(query.id)), *of_note)
        yield Fold(title, [Items(list(_broken_lines(query, findings)))])
    if rest := more(len(queries), most):
        yield Note((f"… and {rest} broken", *see))
    yield Items([*excused, *_known(report, known)])


def _known(report: Report, queries: Sequence[QueryReport]) -> Iterator[Parts]:
    """Yield how many queries the baseline breaks as well, and the first of them; apart by when they broke, if known."""
    groups: dict[Phrase, list[QueryReport]] = {}
    for query in queries:
        age = broken_on_branch(report.history, query.id)
        is_listed = age in groups or len(groups) < bounds.NAMES
        groups.setdefault((age if is_listed else ()) or (IN_BASELINE,), []).append(query)
    for age, group in groups.items():
        first = joined(([Name(query.id)] for query in group[: bounds.NAMES]), len(group) - bounds.NAMES)
        status = group[0].status if len({query.status for query in group}) == 1 else "fail"
        yield (Text(status, "status"), f" {len(group):,} ", Sentence(age), ": ", *first)


def _broken_lines(query: QueryReport, findings: FindingsByQuery) -> Iterator[Parts]:
    failing = findings.failing(query.id)
    for finding in failing:
        yield ("Expected ", Sentence(finding.expected))
        yield ("Found: ", Sentence(finding.found))
    quotes = any(isinstance(part, Name) and part.said for finding in failing for part in finding.found)
    if not quotes and (answer := shown_answer(query, bounds.TERMINAL_ANSWER)):
        yield ("Answer: ", Text(answer, "line"))
    if why := findings.why_tolerated(query.id):
        listed = [(Sentence(item.expected), ": ", Sentence(item.found)) for item in findings.tolerated(query.id)]
        yield ("Not counted: ", between("; ", listed), " (", Text(why, "why"), ")")


MARKS = {"relevant": "✅ ", "forbidden": "⛔ "}
LEGEND = "✅ relevant, ⛔ forbidden."
WITH_DETAILS = " Below a document are its chunk and score."


def retrieved(
    report: Report, listed: Sequence[QueryReport], max_queries: int, number: int | None = None
) -> Iterator[Block]:
    """Yield the section on the results of the first of these queries, if there are any.

    ``number`` is how many broken queries with results there are; by default, all of the report.
    """
    if number is None:
        full = len(listed) >= bounds.RETRIEVED_QUERIES  # else the queries that are not listed name no documents
        number = sum(bool(query.violations) for query in report.queries) if full else len(listed)
    queries = listed[:max_queries]
    if not queries:
        return
    compared = any(query.baseline_retrieved is not None for query in queries)
    sides = [side for query in queries for side in (query.baseline_retrieved, query.retrieved)]
    has_details = any(about(result) for side in sides for result in side or ())
    legend = LEGEND + (WITH_DETAILS if has_details else "")
    rows = f" {row_shown(report)}" if any(query.repeated for query in queries) else ""
    tables = [block for query in queries for block in (_heading(query), results(query, "markdown"))]
    rest = Note(more(number, len(queries), "broken query", "… and {}."))
    title = f"What was retrieved: {top(report)}{', before and now' if compared else ''}"
    yield Fold(title, [Note(legend + rows), *tables, rest])


def _heading(query: QueryReport) -> Block:
    """Return id and question as the heading of a query's own table."""
    return Note((Styled(Name(query.id)), " ", Text(query.query, "question")))


def results(query: QueryReport, form: Form) -> Table:
    """Return the results of a query, rank by rank, beside those of the baseline if it has the query."""
    sides = [("Before", query.baseline_retrieved), ("Now", query.retrieved)]
    compared = query.baseline_retrieved is not None
    if form == "terminal":
        listed = [(name.lower(), side) for name, side in sides if side is not None]
        head = ["", *(name if side else f"{name}: nothing" for name, side in listed)]
        nothing: list[list[Parts]] = []
    else:
        head = ["", "Before", "Now"] if compared else ["", "Now"]
        nothing = [["", *(["nothing"] if compared else []), "nothing"]]
    pairs = islice(zip_longest(query.baseline_retrieved or [], query.retrieved or []), bounds.RETRIEVED)
    rows: list[list[Parts]] = [
        [str(rank), *([_result(before, form)] if compared else []), _result(now, form)]
        for rank, (before, now) in enumerate(pairs, 1)
    ]
    return Table(head, "r" + "l" * (len(head) - 1), rows or nothing)


def _result(result: RetrievedReport | None, form: Form) -> Parts:
    """Return a document with what the contract says of it, its chunk and its score."""
    if result is None:
        return ""
    if form == "terminal":
        named = f" ({result.contract})" if result.contract else ""
        return Text(", ".join([f"{result.doc_id}{named}", *about(result)]), "name")
    document = Text(result.doc_id, "name")
    details = [Text(detail, "name" if detail == result.chunk_id else "note") for detail in about(result)]
    marked: Parts = (MARKS[result.contract], document) if result.contract else document
    return Lines([marked, between(" · ", details)]) if details else marked


def answered(report: Report, max_queries: int) -> Iterator[Block]:
    """Yield the section on the texts of the first broken queries, if there are any."""
    listed = queries_with_texts(report)
    queries = listed[:max_queries]
    if not queries:
        return
    compared = any(query.baseline_said is not None for query in queries)
    note = Note(row_shown(report) if any(query.repeated for query in queries) else "")
    tables = [block for query in queries for block in (_heading(query), _said(query))]
    rest = Note(more(len(listed), len(queries), "query", "… and {}, in `report.json`."))
    title = f"What was answered{', before and now' if compared else ''}"
    yield Fold(title, [note, *tables, rest])


def _said(query: QueryReport) -> Table:
    """Return the texts of a query, each kind in a row."""
    compared = query.baseline_said is not None
    rows: list[list[Parts]] = []
    for row in said_rows(query):
        kind: Kind = "context" if row.title in {CONTEXTS, CONVERSATION} else "said"
        most = bounds.MARKDOWN_MESSAGES if row.title == CONVERSATION else bounds.MARKDOWN_SAID_LINES
        sides = [(row.before, row.more_before), (row.now, row.more_now)]
        cells: list[Parts] = []
        for texts, further in sides:
            rest = more(further + len(texts[most:]), 0, form="… {}")
            cells.append(Lines([*[Text(text, kind) for text in texts[:most]], *([rest] if rest else [])]))
        if sides[0] == sides[1]:
            cells[1] = "the same"
        rows.append([row.title, *(cells if compared else cells[1:])])
    head = ["", "Before", "Now"] if compared else ["", "Now"]
    return Table(head, "l" * len(head), rows)
