"""The order of results is the ranking; scores that say otherwise are warned about."""

from ragcontract.core.numbers import count


def descending(scores: list[float | None]) -> bool:
    """Say whether the scores, where there are any, are in descending order."""
    try:
        return scores == sorted(scores, reverse=True)  # type: ignore[type-var]
    except TypeError:  # some results have none
        present = [score for score in scores if score is not None]
        return present == sorted(present, reverse=True)


def out_of_order(location: str, rows: int) -> str:
    """Return the warning that the scores of so many rows, of which the first is at ``location``, do not descend."""
    return (
        f"{location}: the scores are not in descending order ({count(rows, 'such row')}); "
        "ranks are the order of the results, scores never reorder them"
    )
