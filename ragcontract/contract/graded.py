"""Whether the two fields of a golden row that name relevant documents say the same, and what the level leaves of it."""

from collections.abc import Collection, Mapping, Sequence

from ragcontract.core.golden import RELEVANT_GRADE, GoldenQuery, graded_from
from ragcontract.core.numbers import count


def disagreement(listed: Collection[str], relevance: Mapping[str, float], level: float | None) -> str | None:
    """Return how the ``listed`` relevant documents disagree with the grades, and what to do; None if they agree.

    Without a ``level``, they agree if they do so at any.
    """
    agreed = _level_of(listed, relevance)
    if level is None and agreed is not None:
        return None
    graded = graded_from(RELEVANT_GRADE if level is None else level, relevance)
    unequal = sorted(set(listed) ^ set(graded))
    if not unequal:
        return None
    of_grade = f"of grade {level or RELEVANT_GRADE:g} or more only in relevance"
    side = "only in relevant_doc_ids" if unequal[0] in listed else of_grade
    if agreed is None:
        advice = "leave relevant_doc_ids out, or name the same documents in both"
    else:
        advice = f"with `relevance_level: {agreed:g}` in the config, they agree"
    return f"disagrees with relevant_doc_ids: {unequal[0]!r} is {side}; {advice}"


def _level_of(listed: Collection[str], relevance: Mapping[str, float]) -> float | None:
    """Return the relevance level at which exactly the listed documents are relevant; None if there is none."""
    lowest = min((relevance.get(doc_id, 0) for doc_id in listed), default=0)
    apart = set(listed)
    highest = max((grade for doc_id, grade in relevance.items() if doc_id not in apart), default=0)
    return lowest if lowest > highest else None


def below_level(below: Sequence[GoldenQuery], level: float) -> tuple[str, str]:
    """Return where the first of the queries is that have graded documents, but none of the level, and a message."""
    query, highest = below[0], max((below[0].relevance or {}).values())
    others = f" (and {count(len(below) - 1, 'more such row')})" if len(below) > 1 else ""
    why = f"{query.id!r} has graded documents, but none of grade {level:g} or more, the relevance_level{others}"
    out = "ranking metrics leave it out, as if nothing answered it"
    advice = f"if one does, set `relevance_level: {highest:g}` or less in the config"
    return f"{query.location}: relevance", f"{why}; {out}; {advice}"
