"""The questions to label: those of the golden file, of a list of questions and of runs, with their candidates.

Candidates are the documents that runs returned for a question. A list of questions has one per line.
"""

from collections.abc import Iterator, Sequence
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.golden import PLACEHOLDER, GoldenQuery
from ragcontract.core.ids import as_id, first_of, packed, some
from ragcontract.core.questions import COLUMNS, column_name, same_question, unique_slugs
from ragcontract.core.run import Result, RunRow, row_type
from ragcontract.core.safe_text import shorten
from ragcontract.decision.evaluated import Evaluation
from ragcontract.evaluation.query_scores import FirstIds
from ragcontract.files.opening import READ_ERRORS, Progress, no_progress, read_problem, read_within
from ragcontract.files.paths import not_readable
from ragcontract.files.problems import Collector, located
from ragcontract.labelling.labels import Candidate, GoldenRows, Labels, Question, labels_of
from ragcontract.metrics.judged import judged_documents
from ragcontract.runs.readers import RunFiles

ROW = row_type(frozenset({"query", "results.text"}))
BETWEEN = "\n…\n"  # the texts of two chunks of one document


class Pool(Struct, frozen=True, kw_only=True):
    """The candidates of each query, best first, and the questions in the rows that have them."""

    candidates: dict[str, tuple[Candidate, ...]]
    questions: dict[str, str]


class Sheet(Struct, frozen=True, kw_only=True):
    """The questions to label."""

    questions: list[Question]  # those for which a run returned anything, those of the golden file first
    not_found: list[str]  # the ids of questions for which no run returned anything
    unknown: list[str]  # the ids of the run for which no question is known

    @property
    def texts(self) -> dict[str, str]:
        """The questions by id."""
        return {question.id: question.text for question in self.questions}


def sheet_of(golden: GoldenRows, asked: Sequence[str], pool: Pool) -> Sheet:
    """Return the questions of the golden file, of a list of questions, and of the run, with their candidates."""
    questions: list[Question] = []
    not_found: list[str] = []
    known = set()
    for query_id, text in _texts(golden, asked, pool):
        known.add(query_id)
        question = _question(query_id, text, golden, pool)
        if question.candidates:
            questions.append(question)
        else:
            not_found.append(query_id)
    unknown = [query_id for query_id in pool.candidates if query_id not in known]
    return Sheet(questions=questions, not_found=not_found, unknown=unknown)


def _texts(golden: GoldenRows, asked: Sequence[str], pool: Pool) -> Iterator[tuple[str, str]]:
    yield from ((query.id, query.query) for query in golden.queries.values())
    known = {same_question(query.query) for query in golden.queries.values()}
    new = [question for question in asked if same_question(question) not in known]
    ids = unique_slugs(new, golden.queries)
    yield from zip(ids, new, strict=True)
    taken = {*golden.queries, *ids}
    yield from ((query_id, text) for query_id, text in pool.questions.items() if query_id not in taken)


def _question(query_id: str, text: str, golden: GoldenRows, pool: Pool) -> Question:
    query = golden.queries.get(query_id)
    forbidden = query.forbidden_doc_ids if query else ()
    candidates = pool.candidates.get(query_id, ())
    return Question(
        id=query_id,
        text=text,
        candidates=tuple(item for item in candidates if item.doc_id not in forbidden) if forbidden else candidates,
        labels=labels_of(query, golden.level) if query else Labels(level=golden.level),
        can_be_unanswerable=query is None or query.must_rank_at_most is None,
    )


def left_out(sheet: Sheet, golden: str) -> list[str]:
    """Return warnings about questions without results, and about results without a question."""
    warnings = []
    if sheet.not_found:
        warnings.append(f"{some(sheet.not_found)} without a result in the run: left out")
    if sheet.unknown:
        advice = f"add the questions to {golden}, or give them with --questions or as `query` in the run"
        warnings.append(f"{some(sheet.unknown)} in the run, and no question known for it: left out; {advice}")
    return warnings


def nothing_to_label(sheet: Sheet) -> str | None:
    """Return why no question has results, as the end of a sentence about the run; None if a question has."""
    if sheet.questions:
        return None
    if not sheet.not_found:
        return "no question is known for its rows; give --questions FILE, a golden file, or a `query` in each row"
    if not sheet.unknown:
        return "has no results in any row, so there is nothing to label"
    return f"has {some(sheet.unknown)}, but the questions are {some(sheet.not_found)}; give both the same ids"


def read_pool(paths: Sequence[str], top: int, problems: Collector, progress: Progress = no_progress) -> Pool:
    """Read runs and pool the first ``top`` documents of every row.

    A query may have several rows, in one run or in several. Its candidates are those of all rows, at their best ranks.
    """
    by_query: dict[str, dict[str, Candidate]] = {}
    questions: dict[str, str] = {}
    for _, row in located(RunFiles(paths=paths, progress=progress).events(ROW), problems):
        query_id = as_id(row.query_id)
        pooled = by_query.setdefault(query_id, {})
        for doc_id, candidate in candidates_of(row, top).items():
            other = pooled.get(doc_id)
            pooled[doc_id] = candidate if other is None else _better(other, candidate)
        if row.query:
            questions.setdefault(query_id, row.query)
    candidates = {
        query_id: tuple(sorted(pooled.values(), key=lambda item: item.rank)) for query_id, pooled in by_query.items()
    }
    return Pool(candidates=candidates, questions=questions)


def candidates_of(row: RunRow, top: int) -> dict[str, Candidate]:
    """Return the first ``top`` documents of a row. The texts of chunks of one document are joined."""
    candidates: dict[str, Candidate] = {}
    for rank, result in enumerate(row.results, start=1):
        doc_id = as_id(result.doc_id)
        if doc_id in candidates:
            candidates[doc_id] = _with_chunk(candidates[doc_id], _text(result))
        elif len(candidates) < top and doc_id != PLACEHOLDER:
            candidates[doc_id] = Candidate(doc_id=doc_id, rank=rank, score=result.score, text=_text(result))
    return candidates


def _with_chunk(candidate: Candidate, text: str) -> Candidate:
    if not text or text in candidate.text:
        return candidate
    joined = f"{candidate.text}{BETWEEN}{text}" if candidate.text else text
    return replace(candidate, text=shorten(joined, bounds.LABEL_TEXT))


def _better(first: Candidate, second: Candidate) -> Candidate:
    best, worse = sorted((first, second), key=lambda candidate: candidate.rank)
    return best if best.text else replace(best, text=worse.text)


def _text(result: Result) -> str:
    """Return the start of a result's text with its lines, without blank ones."""
    start = (result.text or "")[: 2 * bounds.LABEL_TEXT]  # more than is needed, because blank lines are left out below
    return shorten("\n".join(line.rstrip() for line in start.split("\n") if line.strip()), bounds.LABEL_TEXT)


def read_questions(path: str) -> tuple[list[str], int]:
    """Return the distinct questions of a file with one question per line, and the number of duplicates.

    Raises :class:`InputError` if the file is not a list of questions.
    """
    text = read_text(path, bounds.QUESTIONS, "a list of questions")
    lines = [line.strip() for line in text.splitlines()]
    if _is_table(lines):
        way = "convert it with `rag-contract convert --from csv`, or list one question per line, without a header"
        raise InputError([f"{path}: is CSV, not a list of questions; {way}"])
    if problems := [f"{path}:{n}: {problem}" for n, line in enumerate(lines, 1) if (problem := _no_question(line))]:
        raise InputError(problems[: bounds.QUESTION_PROBLEMS], more=len(problems[bounds.QUESTION_PROBLEMS :]))
    asked = [line for line in lines if line]
    if not asked:
        raise InputError([f"{path}: is empty; expected one question per line"])
    once: dict[str, str] = {}
    for question in asked:
        once.setdefault(same_question(question), question)
    return list(once.values()), len(asked) - len(once)


def _is_table(lines: list[str]) -> bool:
    """Return whether the first line is a header of several columns, one of them for questions."""
    first = next(filter(None, lines), "").removeprefix("\ufeff")
    return "?" not in first and any(
        len(cells := first.split(mark)) > 1 and any(column_name(cell.strip('" ')) in COLUMNS for cell in cells)
        for mark in ",;\t"
    )


def _no_question(line: str) -> str | None:
    if line.startswith("{"):
        return "is JSON; expected plain text, one question per line"
    if len(line) > bounds.QUESTION:
        return f"has more than {bounds.QUESTION:,} characters, the limit for a question"
    return "is binary data; expected plain text, one question per line" if "\0" in line else None


def read_text(path: str, limit: int, what: str) -> str:
    """Return the text of a file of at most ``limit`` bytes.

    Raises :class:`InputError` if it cannot be read, is too large or not UTF-8; ``what`` names the file in messages, as
    "a list of questions".
    """
    if problem := not_readable(path):
        raise InputError([f"{path or repr(path)}: {problem}"])
    try:
        data, _ = read_within(limit, path, beyond=f", the limit for {what}")
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise InputError([f"{path}:{line}: is not UTF-8; save the file as UTF-8"]) from error
    except READ_ERRORS as error:
        raise InputError([f"{path}: {read_problem(error)}"]) from error
    return text


class FirstResults:
    """Collects the results of a run that count: the top k, or those from which the top k is condensed."""

    def __init__(self, evaluation: Evaluation) -> None:
        contract, baseline = evaluation.contract, evaluation.baseline
        self._queries, self._ranking = contract.queries, contract.ranking
        self._skips = contract.config.unjudged == "skip"
        self._pools = baseline.ids.pools if baseline else {}
        self._ids = FirstIds()

    def note(self, query_id: str, doc_ids: Sequence[str]) -> None:
        """Add a row of a golden query; other rows are ignored."""
        query = self._queries.get(query_id)
        if query is not None:
            k = bounds.RANK if self._skips else self._ranking.k
            first = first_of(doc_ids, k, by_document=self._ranking.by_document)
            self._ids.add(query.id, packed([self._until_k_judged(query, first) if self._skips else first]))

    def _until_k_judged(self, query: GoldenQuery, doc_ids: Sequence[str]) -> Sequence[str]:
        """Return the results down to the k-th judged one, and at least k results."""
        judged, k = judged_documents(query, self._pools.get(query.id)), self._ranking.k
        ranks = (rank for rank, doc_id in enumerate(doc_ids, start=1) if doc_id in judged)
        return doc_ids[: max(k, next(islice(ranks, k - 1, None), len(doc_ids)))]

    def result(self) -> dict[str, bytes]:
        """Return the packed rows of each query."""
        return self._ids.result()
