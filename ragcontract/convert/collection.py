"""The intermediate form of all conversions: questions with graded documents, rankings and scores.

The labels of a test collection get a configuration under which a good run can pass. Those of TREC and BEIR say what is
relevant, which is often more than fits into the top k, and no retriever finds all of it for every query. The rule that
every relevant document must be found is for labels that say what an answer needs. So a new configuration beside the
golden file turns it off. An existing configuration is never changed.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

from msgspec import Struct

from ragcontract.contract.defaults import CONFIG, CONFIG_ALIAS
from ragcontract.contract.golden_file import Golden, read_golden
from ragcontract.core import bounds
from ragcontract.core.golden import RELEVANT_GRADE
from ragcontract.core.ids import some
from ragcontract.core.lines import Line
from ragcontract.core.phrase import Location
from ragcontract.files.opening import Progress, no_progress
from ragcontract.files.problems import Collector
from ragcontract.files.writing import is_device
from ragcontract.registry import BUILT_IN
from ragcontract.runs.scores_files import ScoresRow

Value = TypeVar("Value")
Part = Literal["golden", "run", "scores"]
Files = Mapping[str, Sequence[str]]
BOM = "\ufeff"  # removed from the start of every line read


class Query(Struct, frozen=True, kw_only=True, gc=False):
    """A question and what is known of its documents or its answer."""

    id: str
    text: str
    grades: dict[str, float]  # by document: 0 or more, relevant from 1; empty if the question names no documents
    location: Location  # such as `qrels.txt:3`
    answer: Mapping[str, Any] | None = None  # the other fields of the golden row if the question names no documents


class Retrieved(Struct, frozen=True, kw_only=True, gc=False):
    """One retrieved document."""

    doc_id: str
    score: float | None = None


class Ranking(Struct, frozen=True, kw_only=True, gc=False):
    """The results for a query."""

    query_id: str
    results: list[Retrieved]  # best first; a document may occur more than once
    location: Location
    row: bytes | None = None  # the whole run row as JSON, if it has more than the results


class Collection(Struct, frozen=True, kw_only=True):
    """The content of the files of one format, in their order; None for a part that was not requested."""

    queries: dict[str, Query] | None = None
    rankings: dict[str, Ranking] | None = None
    scores: list[ScoresRow] | None = None


class Source(Struct, frozen=True, kw_only=True):
    """The files of one format, and how to read them."""

    files: Files  # the paths, by what the files are
    wanted: set[Part]
    problems: Collector  # of the files; what cannot be read is added
    progress: Progress = no_progress
    options: Mapping[str, Any] = {}  # those of the format, by name; absent or None by default


def golden_of(source: Source) -> Golden:
    """Read the ``golden`` files of a source as queries of which only ids, questions and labels count."""
    golden = read_golden(source.files["golden"], BUILT_IN, source.progress, level=None, allow_fields=None)
    source.problems.include(golden.problems)
    return golden


class First:
    """Detects duplicate keys and reports them as problems."""

    def __init__(self, problems: Collector) -> None:
        self._problems = problems
        self._locations: dict[object, Location] = {}

    def is_new(self, key: object, location: Location, shown: str, *field: str | int) -> bool:
        """Return whether ``key`` is new; if not, add a problem that names its first location."""
        first = self._locations.setdefault(key, location)
        if first is location:
            return True
        self._problems.problem(location.at(*field), f"duplicate {shown}, first defined at {first}")
        return False


class Pairs(Generic[Value]):
    """Collects a value for each pair of query and document, and the first location of each query."""

    def __init__(self, field: str, problems: Collector) -> None:
        """Prepare to collect; ``field`` is the format's name for the document, for messages about duplicate pairs."""
        self.values: dict[str, dict[str, Value]] = {}
        self.locations: dict[str, Location] = {}
        self._field = field
        self._first = First(problems)

    def add(self, query_id: str, doc_id: str, value: Value, location: Location) -> None:
        """Add the value of a pair; for a duplicate pair, keep the first value and add a problem."""
        if self._first.is_new((query_id, doc_id), location, f"{doc_id!r} of query {query_id!r}", self._field):
            self.locations.setdefault(query_id, location)
            self.values.setdefault(query_id, {})[doc_id] = value


def labelled(labels: Pairs[float], texts: Mapping[str, str], problems: Collector) -> dict[str, Query]:
    """Combine labels and texts in the order of the labels; a query without a text gets its id as text."""
    grades, locations = labels.values, labels.locations
    if nameless := [query_id for query_id in grades if not texts.get(query_id)]:
        problems.warning(f"{locations[nameless[0]]}: {some(nameless)} without a text; the id is used as the question")
    if hopeless := [
        query_id for query_id, by_document in grades.items() if not any(grade > 0 for grade in by_document.values())
    ]:
        problems.warning(
            f"{locations[hopeless[0]]}: {some(hopeless)} without a relevant document: in trec_eval's means, not in ours"
        )
    return {
        query_id: Query(
            id=query_id, text=texts.get(query_id) or query_id, grades=by_document, location=locations[query_id]
        )
        for query_id, by_document in grades.items()
    }


RULE = "enforce_must_include"
SETTING = f"`per_query.{RULE}: false`"
WHY = "judgments say what is relevant, not what must be found"
TEXT = f"""\
# Of {{source}}: the judgments say what is relevant, and no retriever finds all of it for every query. So the rule that
# every relevant document must be in the top k is off. Limit means instead: `rag-contract suggest` proposes limits.
per_query:
  {RULE}: false
"""


class Companion(Struct, frozen=True, kw_only=True):
    """The files to write beside the golden file."""

    files: Mapping[str, bytes] = {}  # by path
    note: str = ""  # what to report about them


def companion(outs: Mapping[str, str], queries: Mapping[str, Query], source: str) -> Companion:
    """Return the configuration to write beside ``outs["golden"]``; ``source`` is the name of the format read.

    ``outs`` has the paths of all outputs. Nothing is written if no query has a relevant document, or if the
    configuration exists or is another output. If the golden file is a device, or the existing configuration does not
    mention the rule, the note says what to write.
    """
    if not any(grade >= RELEVANT_GRADE for query in queries.values() for grade in query.grades.values()):
        return Companion()
    golden_out = Path(outs["golden"])
    if is_device(str(golden_out)):
        return Companion(note=f"write {SETTING} into {CONFIG}: {WHY}\n")
    candidates = [golden_out.with_name(name) for name in (CONFIG, CONFIG_ALIAS)]
    others = {os.path.realpath(out) for out in outs.values()}
    existing = next((path for path in candidates if os.path.lexists(path) or os.path.realpath(path) in others), None)
    if existing is None:
        path, text = str(candidates[0]), TEXT.format(source=source.upper())
        return Companion(files={path: text.encode()}, note=f"wrote {path}, {SETTING}: {WHY}\n")
    if _mentions_rule(existing):
        return Companion()
    return Companion(note=f"{existing} is left as it is; write {SETTING} into it: {WHY}\n")


def _mentions_rule(path: Path) -> bool:
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            return RULE.encode() in file.read(bounds.CONFIG)
    except OSError:  # `check` reports it
        return False


Write = Callable[[Collection, Collector], Iterable[str]]


class Output(Struct, frozen=True, kw_only=True):
    """An output file of a format."""

    needs: set[Part]
    write: Write  # yields the lines
    takes: set[Part] = set()  # other parts that it can use


class Format(Struct, frozen=True, kw_only=True):
    """A file format."""

    read: Callable[[Source], Collection]
    gives: Mapping[str, set[Part]]  # the parts by input file
    outputs: Mapping[str, Output] = {}
    adds_to: Mapping[str, str] = {}  # further input files, each with the one that it adds to
    options: tuple[str, ...] = ()  # the names of the options that it has
    in_folders: Callable[[Sequence[str], Collector], list[str]] | None = None  # replaces folders by the files in them
    names_documents: bool = True  # if not, it can only be converted to rag-contract's own format
    # Whether it is for test collections, whose labels name everything that is relevant, not what must be found.
    labels_everything: bool = False

    @property
    def inputs(self) -> list[str]:
        """The names of all input files."""
        return [*self.gives, *self.adds_to]


def of_scores(read: Callable[[Source], Collection], *options: str) -> Format:
    """Return a format that has scores only."""
    return Format(read=read, gives={"results": {"scores"}}, adds_to={"golden": "results"}, options=options)


OWN = "rag-contract"
# The file formats, each with the module that reads and writes it.
FORMATS: dict[str, Line[Format]] = {
    OWN: Line(home="ragcontract.convert.native:FORMAT"),
    "trec": Line(home="ragcontract.convert.trec:FORMAT"),
    "beir": Line(home="ragcontract.convert.beir:FORMAT"),
    "ragas": Line(home="ragcontract.convert.ragas:FORMAT"),
    "deepeval": Line(home="ragcontract.convert.deepeval:FORMAT"),
    "promptfoo": Line(home="ragcontract.convert.promptfoo:FORMAT"),
    "inspect": Line(home="ragcontract.convert.inspect_logs:FORMAT"),
    "otel": Line(home="ragcontract.convert.otel:FORMAT"),
    "table": Line(home="ragcontract.convert.score_table:FORMAT"),
    "csv": Line(home="ragcontract.convert.spreadsheet:FORMAT"),
    "fitz-gov": Line(home="ragcontract.convert.fitz_gov:FORMAT"),
}
