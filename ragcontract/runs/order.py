"""Checks the order of scores; the order of results is the ranking, and differing scores only cause a warning."""

from ragcontract.core.numbers import count


def descending(scores: list[float | None]) -> bool:
    """Return whether the scores are in descending order, ignoring results without one."""
    try:
        return scores == sorted(scores, reverse=True)  # type: ignore[type-var]
    except TypeError:  # some results have no score
        present = [score for score in scores if score is not None]
        return present == sorted(present, reverse=True)


def out_of_order(location: str, rows: int) -> str:
    """Return the warning about rows with unordered scores; ``location`` is that of the first, ``rows`` their number."""
    return (
        f"{location}: the scores are not in descending order ({count(rows, 'such row')}); "
        "ranks are the order of the results, scores never reorder them"
    )
