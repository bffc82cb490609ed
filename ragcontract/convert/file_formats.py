"""Registry of the file formats: the inputs and outputs of each, by name."""

from collections.abc import Callable, Iterable, Mapping

from msgspec import Struct

from ragcontract.convert import beir, fitz_gov, native, ragas, spreadsheet, trec
from ragcontract.convert.collection import Collection, Files, Part
from ragcontract.files.opening import Progress
from ragcontract.files.problems import Collector

Read = Callable[[Files, set[Part], Collector, Progress], Collection]
Write = Callable[[Collection, Collector], Iterable[str]]

OWN = "rag-contract"
CSV = "csv"
FITZ_GOV = "fitz-gov"


class Output(Struct, frozen=True, kw_only=True):
    """An output file of a format: the parts it needs, others it can use, and the function that yields its lines."""

    needs: set[Part]
    write: Write
    takes: set[Part] = set()


class Format(Struct, frozen=True, kw_only=True):
    """A format: its input files with the parts each provides, files that add to another input, and its outputs.

    A format that names no documents can only become rag-contract's own.
    """

    read: Read
    gives: Mapping[str, set[Part]]
    outputs: Mapping[str, Output]
    adds_to: Mapping[str, str] = {}
    names_documents: bool = True

    @property
    def inputs(self) -> list[str]:
        """The names of all input files."""
        return [*self.gives, *self.adds_to]


FORMATS: dict[str, Format] = {
    OWN: Format(
        read=native.read,
        gives={"golden": {"golden"}, "run": {"run"}},
        outputs={
            "golden": Output(needs={"golden"}, write=native.write_golden),
            "run": Output(needs={"run"}, write=native.write_run),
        },
    ),
    "trec": Format(
        read=trec.read,
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
        read=ragas.read,
        gives={"samples": {"golden", "run"}},
        outputs={"samples": Output(needs={"golden"}, takes={"run"}, write=ragas.write_samples)},
    ),
    CSV: Format(read=spreadsheet.reader(spreadsheet.Columns()), gives={"csv": {"golden"}}, outputs={}),
    FITZ_GOV: Format(read=fitz_gov.reader(), gives={"cases": {"golden"}}, outputs={}, names_documents=False),
}
