"""Registry of the file formats, with the inputs and outputs of each."""

from collections.abc import Callable, Iterable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from ragcontract.convert import (
    beir,
    fitz_gov,
    inspect_logs,
    native,
    otel,
    promptfoo,
    result_files,
    samples,
    score_table,
    spreadsheet,
    trec,
)
from ragcontract.convert.collection import Collection, Files, Part
from ragcontract.files.opening import Progress
from ragcontract.files.problems import Collector

Read = Callable[[Files, set[Part], Collector, Progress], Collection]
Write = Callable[[Collection, Collector], Iterable[str]]

OWN = "rag-contract"
CSV = "csv"
FITZ_GOV = "fitz-gov"
OTEL = "otel"
TABLE = "table"


class Output(Struct, frozen=True, kw_only=True):
    """An output file of a format."""

    needs: set[Part]
    write: Write  # yields the lines
    takes: set[Part] = set()  # other parts that it can use


class Format(Struct, frozen=True, kw_only=True):
    """A file format."""

    read: Read
    gives: Mapping[str, set[Part]]  # the parts by input file
    outputs: Mapping[str, Output]
    adds_to: Mapping[str, str] = {}  # further input files, each with the one that it adds to
    names_documents: bool = True  # if not, it can only be converted to rag-contract's own format
    # Whether it is for test collections, whose labels name everything that is relevant, not what must be found.
    labels_everything: bool = False

    @property
    def inputs(self) -> list[str]:
        """The names of all input files."""
        return [*self.gives, *self.adds_to]


def _of_scores(read: Read) -> Format:
    """Return a format that has scores only."""
    return Format(read=read, gives={"results": {"scores"}}, adds_to={"golden": "results"}, outputs={})


def _read_ragas(files: Files, wanted: set[Part], problems: Collector, progress: Progress) -> Collection:
    """Read samples, results, or both."""
    scores = score_table.read(files, wanted, problems, progress).scores if "scores" in wanted else None
    if not wanted - {"scores"}:
        return Collection(scores=scores)
    return replace(samples.read(files, wanted, problems, progress), scores=scores)


FORMATS: dict[str, Format] = {
    OWN: Format(
        read=native.read,
        gives={"golden": {"golden"}, "run": {"run"}},
        outputs={
            "golden": Output(needs={"golden"}, write=native.write_golden),
            "run": Output(needs={"run"}, write=native.write_run),
            "scores": Output(needs={"scores"}, write=native.write_scores),
        },
    ),
    "trec": Format(
        read=trec.read,
        labels_everything=True,
        gives={"qrels": {"golden"}, "run": {"run"}},
        adds_to={"queries": "qrels"},
        outputs={
            "qrels": Output(needs={"golden"}, write=trec.write_qrels),
            "queries": Output(needs={"golden"}, write=trec.write_topics),
            "run": Output(needs={"run"}, write=trec.write_run),
        },
    ),
    "beir": Format(
        read=beir.read,
        labels_everything=True,
        gives={"qrels": {"golden"}, "run": {"run"}},
        adds_to={"queries": "qrels", "corpus": "qrels"},
        outputs={
            "qrels": Output(needs={"golden"}, write=beir.write_qrels),
            "queries": Output(needs={"golden"}, write=beir.write_queries),
            "corpus": Output(needs={"golden"}, takes={"run"}, write=beir.write_corpus),
            "run": Output(needs={"run"}, write=trec.write_run),
        },
    ),
    "ragas": Format(
        read=_read_ragas,
        gives={"samples": {"golden", "run"}, "results": {"scores"}},
        adds_to={"golden": "results"},
        outputs={"samples": Output(needs={"golden"}, takes={"run"}, write=samples.write_samples)},
    ),
    "deepeval": _of_scores(result_files.read),
    "promptfoo": _of_scores(promptfoo.read),
    "inspect": _of_scores(inspect_logs.read),
    OTEL: Format(read=otel.reader(), gives={"traces": {"run"}}, adds_to={"golden": "traces"}, outputs={}),
    TABLE: _of_scores(score_table.reader(None, ())),
    CSV: Format(read=spreadsheet.reader(spreadsheet.Columns()), gives={"csv": {"golden"}}, outputs={}),
    FITZ_GOV: Format(read=fitz_gov.reader(), gives={"cases": {"golden"}}, outputs={}, names_documents=False),
}
