"""``rag-contract unjudged``: lists what to label first, so that the verdict does not depend on missing labels.

The pairs of query and document are a table, lines to tick, or JSON lines. A summary says what labels can change for
each broken limit.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import click
import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ragcontract import pipeline
from ragcontract.cli.console import say, say_json, warn
from ragcontract.cli.options import clock, find_files, opened, takes, top_option
from ragcontract.contract import defaults
from ragcontract.core import bounds
from ragcontract.core.errors import ExitCode, InputError
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.ids import as_id
from ragcontract.core.numbers import SAME, count, percent, signed
from ragcontract.core.run import row_type
from ragcontract.core.safe_text import shorten, visible
from ragcontract.evaluation.past import NOT_ASKED
from ragcontract.evaluation.source import Inputs
from ragcontract.labelling.checklist import OPEN, item, quoted_id
from ragcontract.labelling.labels import Candidate
from ragcontract.labelling.sheet import FirstResults, candidates_of
from ragcontract.labelling.unjudged import Outlook, UnjudgedPair, UnjudgedPairs, unjudged_pairs
from ragcontract.report.terminal import aligned

MOVE_DIGITS = 4
NEARLY_CERTAIN = 0.99
HEAD = """\
# Documents that nobody has judged, those that can change the verdict first. Between the brackets, write
# x if a document answers its question, - if it does not, or a grade such as 2. Those with ? stay open.
"""
THEN = "# Then: rag-contract label --ticked FILE{golden}\n"
Queries = Mapping[str, GoldenQuery]
Texts = Mapping[tuple[str, str], Candidate]


class PairLine(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A pair as a line of JSON."""

    query_id: str
    query: str
    doc_id: str
    rank: int | None = None
    baseline_rank: int | None = None
    score: float | None = None
    text: str = ""
    limit: str
    move: float
    share: float = 0.0
    chance: float


TOP_PAIRS = 20
IDS, TEXTS = frozenset[str](), frozenset({"results.text"})


@click.command("unjudged")
@takes("golden", "run", "scores", "baseline", "config", "k", "tag", "repeats")
@top_option("How many pairs of query and document to list.", TOP_PAIRS)
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "checklist", "jsonl"]),
    default="table",
    help="A table, lines to tick for `label --ticked`, or JSON lines. [table]",
)
def command(*, inputs: Inputs, top: int, form: str) -> int:
    """List the documents that nobody has judged.

    These are documents in the top k that have no label, and were not in the top k of the baseline when the labels of
    their query were written. First come those that are likely to bring a broken limit closest. With
    `--format checklist`, the list is a file to tick, and `label --ticked` writes what is decided into the golden file.
    Gives no verdict.
    """
    # Labels of documents do not change what a judge says about texts, so this needs no judgments.
    inputs = replace(find_files(inputs), awaits_baseline=True, past=NOT_ASKED, replays=False)
    with opened(inputs) as sources:
        outcome = pipeline.check(sources, now=clock())
        unjudged = unjudged_pairs(outcome.evaluation, outcome.decision.gates, _first_ids(outcome), top)
        texts = _texts(outcome, unjudged.pairs)
    warn(outcome.report.warnings)
    _print(unjudged, outcome, texts, inputs, form)
    return ExitCode.PASS


def _first_ids(outcome: pipeline.Outcome) -> Mapping[str, bytes]:
    """Read the run once more, and return the results of each query as far as they count."""
    files = outcome.evaluation.run.files
    if pipes := [file.path for file in files if Path(file.path).is_fifo()]:
        raise InputError([f"{pipes[0]}: is a pipe, and the run is read more than once; give a file"])
    first_results = FirstResults(outcome.evaluation)
    for row in outcome.run.rows(row_type(IDS, results_required=False)):
        first_results.note(as_id(row.query_id), row.doc_ids)
    return first_results.result()


def _texts(outcome: pipeline.Outcome, pairs: Sequence[UnjudgedPair]) -> dict[tuple[str, str], Candidate]:
    """Return scores and texts of the documents that are listed, as the run has them."""
    wanted: dict[str, set[str]] = {}
    for pair in pairs:
        wanted.setdefault(pair.query_id, set()).add(pair.doc_id)
    candidates: dict[tuple[str, str], Candidate] = {}
    for row in outcome.run.rows(row_type(TEXTS, results_required=False)) if wanted else ():
        query_id = as_id(row.query_id)
        if query_id in wanted:
            for doc_id, candidate in candidates_of(row, len(row.results)).items():
                if doc_id in wanted[query_id]:
                    candidates.setdefault((query_id, doc_id), candidate)
    return candidates


def _print(
    unjudged: UnjudgedPairs,
    outcome: pipeline.Outcome,
    texts: Mapping[tuple[str, str], Candidate],
    inputs: Inputs,
    form: str,
) -> None:
    queries, lines = outcome.evaluation.contract.queries, summary(unjudged)
    footer = "".join(f"{line}\n" for line in lines)
    if form == "table":
        shown = "".join(f"{line}\n" for line in aligned(table(unjudged, texts)))
        say(f"{shown}\n{footer}" if unjudged.pairs else footer)
    elif form == "jsonl":
        say_json("".join(json_lines(unjudged, queries, texts)))
        say(footer, err=True)
    else:
        say("".join(lines_to_tick(unjudged, queries, texts, _options(inputs))))


def _options(inputs: Inputs) -> str:
    """Return the options with which `label` finds the same files."""
    golden = "" if list(inputs.golden) == [defaults.GOLDEN] else f" --golden {visible(' '.join(inputs.golden))}"
    config = "" if inputs.config in {None, defaults.CONFIG, defaults.CONFIG_ALIAS} else f" --config {inputs.config}"
    return golden + visible(config)


def table(unjudged: UnjudgedPairs, texts: Texts) -> list[list[str]]:
    """Return the cells of a table; the texts of documents are a column if the run has any."""
    has_texts = any(candidate.text for candidate in texts.values())
    cells = [["query", "document", "rank", "if relevant", "chance", *(["text"] if has_texts else [])]]
    for pair in unjudged.pairs:
        text = _text(texts.get((pair.query_id, pair.doc_id)), bounds.TERMINAL_RESULT)
        cells.append(
            [
                visible(shorten(pair.query_id, bounds.TERMINAL_RESULT)),
                visible(shorten(pair.doc_id, bounds.TERMINAL_RESULT)),
                _rank(pair),
                _effect(pair),
                _chance(pair),
                *([text] if has_texts else []),
            ]
        )
    return cells


def _rank(pair: UnjudgedPair) -> str:
    return f"{pair.rank:,}" if pair.rank is not None else f"baseline {pair.baseline_rank:,}"


def _effect(pair: UnjudgedPair) -> str:
    if abs(pair.move) <= SAME:
        return "-"
    share = f", {percent(pair.share, 0)} of what it lacks" if pair.share else ""
    return f"{pair.label} {signed(pair.move, MOVE_DIGITS)}{share}"


def _chance(pair: UnjudgedPair) -> str:
    """Return the chance as text, never 100 %, because it is an estimate."""
    return percent(min(pair.chance, NEARLY_CERTAIN), 0)


def _text(candidate: Candidate | None, length: int) -> str:
    return visible(shorten(candidate.line, length)) if candidate else ""


def lines_to_tick(unjudged: UnjudgedPairs, queries: Queries, texts: Texts, golden: str) -> Iterator[str]:
    """Yield a file to tick: the pairs by question, in the order of the first pair of each; the summary is a comment."""
    yield HEAD
    yield THEN.format(golden=golden)
    by_query: dict[str, list[UnjudgedPair]] = {}
    for pair in unjudged.pairs:
        by_query.setdefault(pair.query_id, []).append(pair)
    for query_id, pairs in by_query.items():
        question = visible(shorten(queries[query_id].query, bounds.CANDIDATE_TEXT))
        yield f"\n## {quoted_id(query_id)}\nQ: {question}\n"
        for pair in pairs:
            candidate = texts.get((query_id, pair.doc_id))
            yield item(candidate or Candidate(doc_id=pair.doc_id, rank=pair.rank or pair.baseline_rank or 1), OPEN)
    if by_query:
        yield "\n"
    yield from (f"# {line}\n" for line in summary(unjudged))


def json_lines(unjudged: UnjudgedPairs, queries: Queries, texts: Texts) -> Iterator[str]:
    """Yield a line of JSON for each pair."""
    for pair in unjudged.pairs:
        candidate = texts.get((pair.query_id, pair.doc_id))
        line = PairLine(
            query_id=pair.query_id,
            query=queries[pair.query_id].query,
            doc_id=pair.doc_id,
            rank=pair.rank,
            baseline_rank=pair.baseline_rank,
            score=candidate.score if candidate else None,
            text=candidate.line if candidate else "",
            limit=pair.limit,
            move=pair.move,
            share=pair.share,
            chance=pair.chance,
        )
        yield msgspec.json.encode(line).decode() + "\n"


def summary(unjudged: UnjudgedPairs) -> list[str]:
    """Return sentences on how many documents nobody has judged, and on what their labels can change."""
    lines = [_size(unjudged)]
    if not unjudged.total:
        return lines
    if len(unjudged.pairs) < unjudged.total:
        lines.append(f"The first {len(unjudged.pairs):,} of {unjudged.total:,} are listed; --top lists more.")
    lines += map(_outlook, unjudged.outlooks)
    if not unjudged.outlooks:
        lines.append("No limit on a ranking metric is broken; what would move a metric most comes first.")
    return lines


def _size(unjudged: UnjudgedPairs) -> str:
    where = f"in the top {unjudged.k} of {count(unjudged.queries, 'query')} with relevant documents"
    if not unjudged.total:
        return f"Nothing to judge: every document {where} is judged."
    size = f"Nobody has judged {unjudged.of_run:,} of the {count(unjudged.documents, 'document')} {where}"
    before = unjudged.total - unjudged.of_run
    return f"{size}, and {before:,} more that the baseline has there." if before else f"{size}."


def _outlook(outlook: Outlook) -> str:
    report = outlook.report
    which = f" (tag {visible(shorten(report.tag, bounds.NAME))})" if report.tag is not None else ""
    start = f"{report.message}{which}"
    if outlook.least is None:
        return f"{start}: labels alone cannot bring it within its limit, even if all of these are relevant."
    return f"{start}: at least {outlook.least:,} of these must be relevant to bring it within its limit."
