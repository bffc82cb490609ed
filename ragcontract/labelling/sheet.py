"""Brings together the golden file, a list of questions and what runs returned: the questions to label."""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from ragcontract.core.ids import some
from ragcontract.core.questions import same_question, unique_slugs
from ragcontract.labelling.golden_rows import GoldenRows
from ragcontract.labelling.labels import Labels, Question, labels_of
from ragcontract.labelling.pool import Pool


class Sheet(Struct, frozen=True, kw_only=True):
    """The questions for which a run returned anything: those of the golden file first, then new ones.

    ``not_found`` are the ids of the others. ``unknown`` are ids of the run of which nobody knows the question.
    """

    questions: list[Question]
    not_found: list[str]
    unknown: list[str]

    @property
    def texts(self) -> dict[str, str]:
        """The questions by id."""
        return {question.id: question.text for question in self.questions}


def sheet_of(golden: GoldenRows, asked: Sequence[str], pool: Pool) -> Sheet:
    """Return the questions of the golden file, of a list of questions, and of the run, with their candidates."""
    found: list[Question] = []
    not_found: list[str] = []
    known = set()
    for query_id, text in _texts(golden, asked, pool):
        known.add(query_id)
        question = _question(query_id, text, golden, pool)
        if question.candidates:
            found.append(question)
        else:
            not_found.append(query_id)
    unknown = [query_id for query_id in pool.candidates if query_id not in known]
    return Sheet(questions=found, not_found=not_found, unknown=unknown)


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
        candidates=tuple(one for one in candidates if one.doc_id not in forbidden) if forbidden else candidates,
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
    """Return why there is no question with results, as the end of a sentence about the run; None if there is one."""
    if sheet.questions:
        return None
    if not sheet.not_found:
        return "no question is known for its rows; give --questions FILE, a golden file, or a `query` in each row"
    if not sheet.unknown:
        return "has no results in any row, so there is nothing to label"
    return f"has {some(sheet.unknown)}, but the questions are {some(sheet.not_found)}; give both the same ids"
