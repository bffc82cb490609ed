"""Read the files of evaluation tools that are one JSON document with a list of results, and those of deepeval.

deepeval saves its test runs in the folder that ``DEEPEVAL_RESULTS_FOLDER`` names. It leaves a metric that raised an
error out of its average; here the score is null.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta, Struct

from ragcontract.convert.collection import Collection, Files, Part, of_scores
from ragcontract.convert.measured import Measured, ScoreRows, error_text, golden_ids
from ragcontract.convert.samples import with_lines
from ragcontract.core import bounds
from ragcontract.files.json_lines import UNDECODABLE, explained
from ragcontract.files.json_text import ZIP, JsonLocator, check_nesting, first_doubled, malformed
from ragcontract.files.opening import READ_ERRORS, Progress, read_problem, read_within
from ragcontract.files.problems import Collector

# Python's json writes NaN, which is not JSON. All tools but promptfoo do so for a score that could not be computed.
_NAN = re.compile(rb'"(?:[^"\\]|\\.)*"|\bNaN\b', re.DOTALL)

Document = TypeVar("Document", bound=Struct)
Item = TypeVar("Item", bound=Struct)


class ResultFile(Struct, frozen=True):
    """A file of results."""

    path: str
    data: bytes  # the whole content, with null for NaN

    def document(self, record: type[Document], problems: Collector) -> Document | None:
        """Decode the document; if that fails, add the problems and return None."""
        try:
            check_nesting(self.data)
            return msgspec.json.decode(self.data, type=record)
        except UNDECODABLE as error:
            self._explain(self.data, 1, error, record, problems)
            return None

    def items(
        self, encoded: list[msgspec.Raw], record: type[Item], problems: Collector, *, after: bytes
    ) -> Iterator[tuple[str, Item]]:
        """Yield the items of a list, each with its location; ``after`` is the name of the list in the file."""
        start = max(0, self.data.rfind(b'"%s"' % after, 0, self.data.find(encoded[0]))) if encoded else 0
        for line, item in with_lines(self.data, encoded, start):
            try:
                yield f"{self.path}:{line}", msgspec.json.decode(item, type=record)
            except UNDECODABLE as error:
                if problems.full:
                    problems.count()
                else:
                    self._explain(item, line, error, record, problems)

    def _explain(self, data: bytes, line: int, error: Exception, record: type[Struct], problems: Collector) -> None:
        """Add the problems of a value that begins on ``line``."""
        if not isinstance(error, msgspec.ValidationError):
            within, message = malformed(data, error)
            problems.problem(f"{self.path}:{line + within - 1}", message)
            return
        locate = JsonLocator(data.decode(errors="replace"))
        for mismatch in explained(data, error, record):
            problems.mismatch(f"{self.path}:{line + locate.line(mismatch.path) - 1}", mismatch)


def read_results(
    paths: Sequence[str], record: type[Document], problems: Collector, progress: Progress, *, zipped: str
) -> Iterator[tuple[ResultFile, Document]]:
    """Yield the files with their documents; ``problems`` collects what cannot be read.

    ``zipped`` is the advice for a ZIP archive.
    """
    for path in paths:
        file = _read(path, zipped, problems, progress)
        document = file.document(record, problems) if file else None
        if file is not None and document is not None:
            yield file, document


def _read(path: str, zipped: str, problems: Collector, progress: Progress) -> ResultFile | None:
    try:
        data, _ = read_within(bounds.RESULTS, path, progress, beyond="; evaluate in several parts")
    except READ_ERRORS as error:
        problems.problem(path, read_problem(error))
        return None
    if data.startswith(ZIP):
        problems.problem(path, f"is a ZIP archive; {zipped}")
    elif not data.strip():
        problems.problem(path, "is empty; expected one JSON document")
    else:
        return ResultFile(path, _without_nan(data) if b"NaN" in data else data)
    return None


def _without_nan(data: bytes) -> bytes:
    return _NAN.sub(lambda match: b"null" if match[0] == b"NaN" else match[0], data)


ZIPPED = "expected a test run of deepeval, such as test_run_20260131_120000.json"
# The names that deepeval gives to test cases without one.
_DEFAULT = re.compile(r"(conversational_)?test_case_[0-9]+")


class MetricData(Struct, frozen=True, kw_only=True):
    """The result of one metric."""

    name: str
    score: float | None = None
    reason: str | None = None
    error: str | None = None
    evaluationModel: str | None = None  # noqa: N815


class SavedCase(Struct, frozen=True, kw_only=True):
    """A test case; a conversation has no input."""

    name: str | None = None
    input: str | None = None
    metricsData: list[MetricData] | None = None  # noqa: N815


class SavedRun(Struct, frozen=True, kw_only=True):
    """A saved test run."""

    testCases: Annotated[list[msgspec.Raw], Meta(title="a list of test cases")]  # noqa: N815
    conversationalTestCases: list[msgspec.Raw] = []  # noqa: N815


def read(files: Files, _wanted: set[Part], problems: Collector, progress: Progress) -> Collection:
    """Read ``results`` files."""
    rows = ScoreRows(golden_ids(files, problems, progress), problems)
    for file, run in read_results(files["results"], SavedRun, problems, progress, zipped=ZIPPED):
        for name in ("testCases", "conversationalTestCases"):
            for location, case in file.items(getattr(run, name), SavedCase, problems, after=name.encode()):
                _add(case, location, rows, problems)
    nothing = "has no scores; expected testCases with metricsData, as deepeval saves them in DEEPEVAL_RESULTS_FOLDER"
    return Collection(scores=rows.finished(lambda: (files["results"][0], nothing)))


def _add(case: SavedCase, location: str, rows: ScoreRows, problems: Collector) -> None:
    metrics = case.metricsData or []
    if repeated := first_doubled([metric.name for metric in metrics]):
        problems.problem(f"{location}: metricsData", f"has several metrics {repeated!r}; give each a name of its own")
        return
    own_name = case.name if case.name and not _DEFAULT.fullmatch(case.name) else None
    if own_name is None and not case.input:
        message = "is not given by you, and there is no input to use instead; name each test case as its golden query"
        problems.problem(f"{location}: name", message)
        return
    judges = dict.fromkeys(metric.evaluationModel for metric in metrics if metric.evaluationModel)
    rows.add(
        Measured(
            location=location,
            id=own_name,
            id_field="name",
            question=case.input or None,
            question_field="input",
            scores={metric.name: metric.score if metric.error is None else None for metric in metrics},
            reasons={metric.name: text for metric in metrics if (text := _reason(metric))},
            scored_by=f"deepeval ({', '.join(judges)})" if judges else "deepeval",
        )
    )


def _reason(metric: MetricData) -> str | None:
    return metric.reason if metric.error is None else error_text(metric.error)


FORMAT = of_scores(read)
