"""Registry of the file formats, each with the module that reads and writes it."""

from ragcontract.convert.collection import Format
from ragcontract.core.lines import Line

OWN = "rag-contract"
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
