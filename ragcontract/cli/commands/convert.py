"""``rag-contract convert``: converts golden queries and runs from and to the formats of other tools."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, get_args

import click
from msgspec.structs import replace

from ragcontract.cli.console import progress_over, say, warn
from ragcontract.convert.collection import FORMATS, OWN, Collection, Companion, Format, Part, Source, companion
from ragcontract.core.errors import ExitCode, OutputError
from ragcontract.core.golden import PLACEHOLDER, RELEVANT_GRADE
from ragcontract.core.ids import as_id
from ragcontract.core.lines import Line
from ragcontract.core.numbers import count
from ragcontract.files.paths import existing_files
from ragcontract.files.problems import Collector
from ragcontract.files.rows import is_parquet, needs_pyarrow
from ragcontract.files.writing import check_existing, check_outputs, goes_to_stdout, refuse_existing, write_files
from ragcontract.record.returned.result_forms import Retrieved
from ragcontract.record.traces.retrievals import Use

Decorate = Callable[[Callable[..., Any]], Callable[..., Any]]
INPUTS = {
    "golden": "Golden queries (rag-contract); with --results or --traces, to find the ids by the questions.",
    "qrels": "Judgments (trec, beir).",
    "queries": "The texts of the questions: `id<TAB>text` (trec), queries.jsonl (beir).",
    "corpus": "corpus.jsonl, to warn about documents that are not in it (beir).",
    "samples": "Samples, as JSON lines or a JSON list (ragas).",
    "results": "What the tool wrote, with its scores (ragas, deepeval, promptfoo, inspect, table).",
    "traces": "Spans: OTLP as JSON lines, or OpenInference's JSON (otel).",
    "csv": "Questions and the ids of the documents that answer them, with a header (csv).",
    "cases": "Cases: the folder of them, or their files (fitz-gov).",
    "run": "What the retriever returned (rag-contract; for trec and beir in TREC's format).",
}
OUTPUTS = {
    "golden": "Where to write the golden queries (rag-contract).",
    "qrels": "Where to write the judgments (trec, beir).",
    "queries": "Where to write the texts of the questions (trec, beir).",
    "corpus": "Where to write the ids of the documents, without their texts (beir).",
    "samples": "Where to write the samples (ragas).",
    "scores": "Where to write the scores, for `check --scores` (rag-contract).",
    "run": "Where to write the run (rag-contract; for trec and beir in TREC's format).",
}
ALIASES = {"queries": "topics"}


def _options() -> Decorate:
    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for name, help_text in reversed(OUTPUTS.items()):
            function = click.option(*_spellings(name, "-out"), metavar="FILE", help=help_text)(function)
        for name, help_text in reversed(INPUTS.items()):
            function = click.option(*_spellings(name), multiple=True, metavar="FILE…", help=help_text)(function)
        return function

    return decorate


def _spellings(name: str, suffix: str = "") -> list[str]:
    also = [f"--{ALIASES[name]}{suffix}"] if name in ALIASES else []
    return [f"--{name}{suffix}", *also, f"{name}{suffix}".replace("-", "_")]


# Needs the extra parquet.
AS_PARQUET: Line[Callable[[Iterable[str]], bytes]] = Line(home="ragcontract.runs.parquet_writer:as_parquet")
SOURCE = click.Choice(list(FORMATS))
TARGET = click.Choice([name for name, line in FORMATS.items() if line.load().outputs])


@click.command("convert")
@click.option("--from", "source", type=SOURCE, default=OWN, help=f"The format to read. [{OWN}]")
@click.option("--to", "target", type=TARGET, default=OWN, help=f"The format to write. [{OWN}]")
@_options()
@click.option("--question-column", metavar="NAME", help="The column of the questions (csv). [question, query, …]")
@click.option("--ids-column", metavar="NAME", help="The column of the expected ids (csv). [expected_ids, doc_ids, …]")
@click.option(
    "--id-column", "--id", metavar="NAME", help="The column of the ids (csv, table). [id, query_id, …, if any]"
)
@click.option(
    "--score-column", "--score", multiple=True, metavar="NAME…", help="The columns of the scores; repeatable (table)."
)
@click.option("--separator", metavar="TEXT", help="What separates ids in a cell (csv). [; or | or , or a line break]")
@click.option(
    "--as-evaluated/--no-as-evaluated",
    default=None,
    help="Judge the cases exactly as fitz-gov 4.1.0 does, or as a contract (fitz-gov). [as evaluated]",
)
@click.option("--doc-id", metavar="EXPR", help="Where a document's id is: JMESPath over id, metadata and text (otel).")
@click.option("--use", type=click.Choice(get_args(Use)), help="Whose ranking counts (otel). [the reranker's, if any]")
@click.option(
    "--retrieved",
    type=click.Choice(get_args(Retrieved)),
    help="Which of several retrievals for one question counts (otel). [refused]",
)
@click.option("--scored-by", metavar="TEXT", help="What computed the scores, such as its version. [as in the results]")
@click.option("--force", is_flag=True, help="Overwrite files that exist.")
def command(*, source: str, target: str, force: bool, **options: Any) -> int:
    """Convert files from and to other tools' formats.

    These are TREC, BEIR and ragas both ways; CSV, fitz-gov, traces and the scores of other tools are only read.

    Give the files to read, and with the -out options the files to write. Exits 2 and writes nothing if an input has
    problems, or if a file to write exists and --force is not given. Golden queries from TREC and BEIR come with a
    ragcontract.yml, if there is none beside them.
    """
    if source == target:
        raise click.UsageError(f"there is nothing to convert from {source} to {target}: give --from or --to")
    reads = FORMATS[source].load()
    patterns = {name: options[name] for name in INPUTS if options[name]}
    outs = {name: options[f"{name}_out"] for name in OUTPUTS if options[f"{name}_out"] is not None}
    wanted = _plan(source, target, patterns, list(outs))
    if options["scored_by"] and "scores" not in wanted:
        raise click.UsageError("--scored-by is for --scores-out")
    problems = Collector()
    if reads.in_folders:
        patterns = {name: reads.in_folders(paths, problems) for name, paths in patterns.items()}
    files = {name: _resolved(patterns.get(name, ()), problems) for name in INPUTS}
    every = [path for paths in files.values() for path in paths]
    if wrong := check_outputs(outs.values(), every) or ([] if force else check_existing(outs.values())):
        raise OutputError(wrong)
    _refuse_parquet({out for name, out in outs.items() if (target, name) != (OWN, "run")})
    _refuse_options(source, options)
    with progress_over(every) as progress:
        collection = reads.read(
            Source(files=files, wanted=wanted, problems=problems, progress=progress, options=options)
        )
    problems.collected().raise_if_any()
    if options["scored_by"]:
        scores = [replace(row, scored_by=options["scored_by"]) for row in collection.scores or []]
        collection = replace(collection, scores=scores)
    contents = {out: _rendered(FORMATS[target].load(), name, out, collection, problems) for name, out in outs.items()}
    all_problems = problems.collected()
    all_problems.raise_if_any()
    is_pooled = target == OWN and "golden" in outs and reads.labels_everything
    beside = companion(outs, collection.queries or {}, source) if is_pooled else Companion()
    warn(all_problems.warnings)
    new = [] if force else [*contents, *beside.files]
    write_files({**contents, **beside.files}, before=partial(refuse_existing, new))
    say(f"converted {_counts(collection)}\n{beside.note}", err=any(map(goes_to_stdout, contents)))
    return ExitCode.PASS


def _refuse_options(source: str, options: Mapping[str, Any]) -> None:
    """Raise UsageError for options that are for another format, are empty, or are missing."""
    formats = {name: line.load() for name, line in FORMATS.items()}
    for name in dict.fromkeys(option for form in formats.values() for option in form.options):
        having = sorted(form for form in formats if name in formats[form].options)
        if options[name] not in {None, ()} and source not in having:
            raise click.UsageError(f"--{name.replace('_', '-')} is for --from {' and --from '.join(having)}")
    if options["separator"] == "":
        raise click.UsageError("--separator is empty; name what separates the ids in a cell")
    if "score_column" in formats[source].options and not options["score_column"]:
        raise click.UsageError("name the columns of the scores: --score NAME, once for each")


def _resolved(patterns: Sequence[str], problems: Collector) -> list[str]:
    paths, wrong = existing_files(patterns)
    for problem in wrong:
        problems.add(problem)
    return paths


def _rendered(target: Format, name: str, out: str, collection: Collection, problems: Collector) -> bytes:
    lines = target.outputs[name].write(collection, problems)
    if is_parquet(out):
        try:
            return AS_PARQUET.load()(lines)
        except ImportError as error:
            raise needs_pyarrow(out) from error
    return "".join(lines).encode()


def _refuse_parquet(outs: Iterable[str]) -> None:
    if strange := sorted(filter(is_parquet, outs)):
        raise OutputError([f"{out}: only a run of rag-contract can be written as Parquet" for out in strange])


def _plan(source: str, target: str, patterns: Mapping[str, Sequence[str]], outs: Sequence[str]) -> set[Part]:
    """Return the parts to read; raises UsageError if input and output options do not match."""
    reads, writes = FORMATS[source].load(), FORMATS[target].load()
    if not reads.names_documents and target != OWN:
        raise click.UsageError(f"{source} names no documents, which {target} consists of; it only has a --golden-out")
    _refuse_strangers(patterns, reads.inputs, f"{source} is read from", "")
    _refuse_strangers(outs, writes.outputs, f"{target} is written to", "-out")
    if not outs:
        raise click.UsageError(f"name what to write: {_listed(writes.outputs, '-out')}")
    gives: set[Part] = set().union(*(reads.gives.get(name, set()) for name in patterns))
    for name in outs:
        for part in sorted(writes.outputs[name].needs - gives):
            sources = [source_name for source_name, parts in reads.gives.items() if part in parts]
            if not sources:
                raise click.UsageError(f"--{name}-out cannot be made from {source}, which has no {part}")
            raise click.UsageError(f"--{name}-out is made from {_listed(sources)}, which is not given")
    used = set().union(*(writes.outputs[name].needs | writes.outputs[name].takes for name in outs))
    for name in patterns:
        if not reads.gives.get(name, set()) & used and reads.adds_to.get(name) not in patterns:
            raise click.UsageError(f"--{name} is given, and nothing is made from it; name what to write")
    return gives & used


def _refuse_strangers(names: Mapping[str, Any] | Sequence[str], known: Any, verb: str, suffix: str) -> None:
    for name in names:
        if name not in known:
            raise click.UsageError(f"--{name}{suffix}: {verb} {_listed(known, suffix)}")


def _listed(names: Any, suffix: str = "") -> str:
    return ", ".join(f"--{name}{suffix}" for name in names)


def _counts(collection: Collection) -> str:
    parts = []
    if collection.queries is not None:
        answerable = sum(
            any(grade >= RELEVANT_GRADE and doc_id != PLACEHOLDER for doc_id, grade in query.grades.items())
            for query in collection.queries.values()
        )
        documents = f" ({answerable:,} with relevant documents)"
        about_answers = all(query.answer is not None for query in collection.queries.values())
        parts.append(count(len(collection.queries), "query") + ("" if about_answers else documents))
    if collection.rankings is not None:
        results = sum(len(ranking.results) for ranking in collection.rankings.values())
        parts.append(f"a run of {count(len(collection.rankings), 'query')} and {count(results, 'result')}")
    if collection.scores is not None:
        names = {name for row in collection.scores for name in row.scores or {}}
        queries = {as_id(row.query_id) for row in collection.scores}
        parts.append(f"{count(len(names), 'score')} of {count(len(queries), 'query')}")
    return ", ".join(parts)
