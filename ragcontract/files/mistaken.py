"""Recognizes a file that is not what was expected: a run given as the golden file, CSV given as JSON lines.

Only files whose first row is invalid are examined. Each is reported once instead of with every row.
"""

import re

import msgspec

from ragcontract.core.ids import first_names
from ragcontract.core.phrase import Location, Message, location_of, parts_of, private
from ragcontract.files.problems import Problem, Problems

RUN, GOLDEN, BASELINE, CONFIG = "a run", "a golden file", "a baseline", "a configuration"
SCORES, TSV = "a scores file", "tab-separated (TSV)"
JUDGMENTS = "a judgments file"
# Files by the fields of their objects; the first entry that fits counts.
_FIELDS: tuple[tuple[str, frozenset[str]], ...] = (
    (BASELINE, frozenset({"format_version", "golden_sha256"})),
    ("a report", frozenset({"schema_version", "verdict"})),
    (RUN, frozenset({"query_id", "results"})),
    (GOLDEN, frozenset({"id", "query", "relevant_doc_ids"})),
    (GOLDEN, frozenset({"id", "query", "relevance"})),
    (SCORES, frozenset({"query_id", "scored_by"})),
    (JUDGMENTS, frozenset({"key", "task", "query_id", "item", "status"})),
)
_RIGHT = {
    RUN: "what the retriever returned",
    GOLDEN: "the golden queries",
    BASELINE: "what `rag-contract baseline` writes",
    CONFIG: "ragcontract.yml",
    SCORES: "what other tools computed for the queries",
    JUDGMENTS: "what `rag-contract judge` writes",
}
_EXAMPLE = {
    RUN: '{"query_id": "q1", "results": [{"doc_id": "doc_a"}]}',
    GOLDEN: '{"id": "q1", "query": "How do I log in?", "relevant_doc_ids": ["doc_a"]}',
    SCORES: '{"query_id": "q1", "scores": {"faithfulness": 0.9}}',
}
_FROM_TABLE = {  # how a table becomes JSON lines, by the file that was expected and the format of the table
    (GOLDEN, "CSV"): "convert it with `rag-contract convert --from csv`",
    **dict.fromkeys(((SCORES, "CSV"), (SCORES, TSV)), "convert it with `rag-contract convert --from table`"),
}
_FIELD = re.compile(rb'^[ \t]{0,4}"([a-z_0-9]{1,40})"[ \t]*:', re.MULTILINE)
_CELL = re.compile(r'"?\w[\w .#/-]*"?')
_YAML = re.compile(r"[A-Za-z_]\w*:(\s|$)")
_TREC = {"Q0": "a run", "q0": "a run", "0": "qrels"}  # by the second column of four to six
_TREC_COLUMNS = range(4, 7)


def expected_of(record: type) -> str:
    """Name the file that has rows of this type; the text is empty if it is not a file of a contract."""
    names = frozenset(getattr(record, "__struct_fields__", ()))
    return next((what for what, needed in _FIELDS if needed <= names), "")


def instead_of(expected: str, head: bytes) -> str | None:
    """Return the message that a file is not what was ``expected``; None if its first lines do not show another file."""
    names = _names(head)
    actual = next((what for what, needed in _FIELDS if needed <= names), expected)
    return None if actual == expected or not expected else mistaken_for(actual, expected)


def mistaken_for(actual: str, expected: str) -> str:
    """Return the message that a file is another one than expected."""
    also = f", and this file as the {actual[2:]}" if actual in _RIGHT else ""
    return f"is {actual}, not {expected}; give {_RIGHT[expected]} here{also}"


def not_json_lines(expected: str, head: bytes) -> str | None:
    """Return the message about a file whose first line is not JSON; None if its format is not known."""
    right = f"not {BASELINE if expected == BASELINE else 'JSON lines'}"
    lines = [line for line in head.decode(errors="replace").splitlines() if line.strip()]
    if not lines:  # only blanks that are not ASCII, such as a no-break space
        return None
    first, second = lines[0].strip(), lines[1] if len(lines) > 1 else ""
    words = first.split()
    if first.startswith("version https://git-lfs."):
        return (
            "is a Git LFS pointer, not the file itself; fetch that with `git lfs pull`, or `lfs: true` in the workflow"
        )
    if first.startswith("<") and not first.startswith("<<<<<<<"):
        return f"is HTML or XML, {right}; was an error page downloaded?"
    if len(words) in _TREC_COLUMNS and words[1] in _TREC and "," not in first:
        return f"is {_TREC[words[1]]} in the format of TREC; convert it with `rag-contract convert --from trec`"
    if separated := _separated(first, second):
        return f"is {separated}, {right}; {_FROM_TABLE.get((expected, separated)) or _as_rows(expected)}"
    if _YAML.match(first):
        return f"is YAML, {right}; {_as_rows(expected)}"
    return None


def one_object(expected: str, head: bytes, record: type) -> str | None:
    """Return the message about a file whose only line is an object without any field of the record; None for others."""
    names = list(_decoded(head.strip()))
    if not names or not expected or not set(names).isdisjoint(getattr(record, "__struct_fields__", ())):
        return None
    return Message.quoting("is one JSON object with the keys ", private(f"{first_names(names)}; {_as_rows(expected)}"))


def without_swapped(problems: Problems) -> Problems:
    """Return the problems; if golden file and run are swapped, one problem replaces those about either file."""
    runs = _located(problems, mistaken_for(RUN, GOLDEN))
    goldens = _located(problems, mistaken_for(GOLDEN, RUN))
    if not runs or not goldens:
        return problems
    (golden, *_), (run, *_) = goldens.values(), runs.values()
    message = f"golden and run are swapped: this is the golden file, and {run.path} is the run; exchange the paths"
    rest = [problem for problem in problems.problems if problem not in {*runs, *goldens}]
    return msgspec.structs.replace(problems, problems=(str(Problem(golden, message)), *rest))


def _located(problems: Problems, message: str) -> dict[str, Location]:
    """Return the problems with this message, and where they are."""
    said = [problem for problem in problems.problems if parts_of(problem)[-1:] == (message,)]
    return {problem: location for problem in said if (location := location_of(problem))}


def _as_rows(expected: str) -> str:
    if expected in _EXAMPLE:
        return f"expected one JSON object a line, as {_EXAMPLE[expected]}"
    return f"give {_RIGHT[expected]} here" if expected in _RIGHT else "export JSON lines"


def _names(head: bytes) -> frozenset[str]:
    line = head.lstrip().split(b"\n", 1)[0]
    if not line.startswith(b"{"):
        return frozenset()
    return frozenset(_decoded(line) or (name.decode() for name in _FIELD.findall(head)))


def _decoded(line: bytes) -> dict[str, msgspec.Raw]:
    try:
        return msgspec.json.decode(line, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}


def _separated(first: str, second: str) -> str | None:
    """Return the format of a table. Its first line is plain names, and its second has at least as many separators."""
    for what, mark in ((TSV, "\t"), ("CSV", ","), ("CSV", ";")):
        cells = [cell.strip() for cell in first.split(mark)]
        is_header = len(cells) > 1 and all(map(_CELL.fullmatch, cells))
        if is_header and (not second or second.count(mark) >= len(cells) - 1):
            return what
    return None
