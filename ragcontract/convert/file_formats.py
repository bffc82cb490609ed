"""Registry of the file formats, each with the module that reads and writes it."""

from ragcontract.convert.collection import Format
from ragcontract.core.lines import Line

OWN = "rag-contract"
CSV = "csv"
FITZ_GOV = "fitz-gov"
OTEL = "otel"
TABLE = "table"
FORMATS: dict[str, Line[Format]] = {
    OWN: Line(home="ragcontract.convert.native:FORMAT"),
    "trec": Line(home="ragcontract.convert.trec:FORMAT"),
    "beir": Line(home="ragcontract.convert.beir:FORMAT"),
    "ragas": Line(home="ragcontract.convert.score_table:RAGAS"),
    "deepeval": Line(home="ragcontract.convert.result_files:FORMAT"),
    "promptfoo": Line(home="ragcontract.convert.promptfoo:FORMAT"),
    "inspect": Line(home="ragcontract.convert.inspect_logs:FORMAT"),
    OTEL: Line(home="ragcontract.convert.otel:FORMAT"),
    TABLE: Line(home="ragcontract.convert.score_table:FORMAT"),
    CSV: Line(home="ragcontract.convert.spreadsheet:FORMAT"),
    FITZ_GOV: Line(home="ragcontract.convert.fitz_gov:FORMAT"),
}
