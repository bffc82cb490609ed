"""The turns of a row, for queries that are conversations."""

from ragcontract.core.golden import GoldenQuery
from ragcontract.core.rule import Turn
from ragcontract.core.run import RunRow


def with_turns(query: GoldenQuery, row: RunRow) -> tuple[RunRow, tuple[Turn, ...] | str]:
    """Return a row and its turns if the query is a conversation, or what is wrong with its messages.

    The row then has the last response and the calls of all turns, for metrics.
    """
    if not query.turns:
        if not isinstance(getattr(row, "messages", None), list):
            return row, ()
        from ragcontract.answers.conversation import contradiction

        return row, contradiction(row) or ()
    from ragcontract.answers.conversation import turns_of, whole

    turns = turns_of(row, query.turns)
    return row if isinstance(turns, str) else whole(row, turns), turns


def asks_otherwise(query: GoldenQuery, row: RunRow) -> bool:
    """Return whether the user of a row's conversation does not say what the golden turns say."""
    if not query.turns or query.answer is None or not row.messages:
        return False
    from ragcontract.answers.conversation import other_questions

    return other_questions(row.messages, query.answer.turns or ())


def without_answers(query: GoldenQuery, row: RunRow) -> tuple[Turn, ...]:
    """Return the turns of a query that has no row."""
    if not query.turns:
        return ()
    from ragcontract.answers.conversation import unanswered

    return unanswered(row, query.turns)
