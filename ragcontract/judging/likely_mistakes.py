"""Finds mistakes in the input that look like a loss of quality. Pure; each is said once, and only where it is likely.

A retriever may really have lost every document, so none of these makes the input unusable.
"""

from collections.abc import Iterator

from ragcontract.core.id_forms import Match, difference, named
from ragcontract.core.numbers import count
from ragcontract.core.phrase import Phrase, joined
from ragcontract.evaluation.unseen_ids import UnseenIds
from ragcontract.judging.evaluated import Evaluation

# Two documents may well be called guide and guide#2. So the form must explain half of the ids that never occur, and
# more than one of them, unless that is the only id; but no two documents differ in case or blanks alone.
FEWEST_MATCHED = 2
SHARE_MATCHED = 0.5
UNMISTAKABLE = frozenset({"blanks", "case"})
# If no relevant id at all occurs, as many must have been wanted for it to be a mistake rather than a bad run.
FEWEST_WANTED = 5
CHUNKS = "are these chunk ids? A result has the document's id as doc_id and the chunk's as chunk_id"
OTHERWISE = "write ids the same way in the contract and in the run"


def likely_mistakes(evaluation: Evaluation) -> Iterator[Phrase]:
    """Yield what is probably wrong with the input although it can be judged."""
    run = evaluation.run
    wanted = any(query.needs_results for query in evaluation.contract.queries.values())
    if run.depth is not None and run.depth.most == 0 and wanted:
        yield ("No row of the run has any result: did the export go wrong, or is the index empty?",)
        return
    unseen = run.unseen_ids
    if unseen.example is not None and _is_likely(unseen, unseen.example):
        yield _in_another_form(unseen, unseen.example)
    elif unseen.never == unseen.relevant >= FEWEST_WANTED:
        yield _other_ids(unseen)


def _is_likely(unseen: UnseenIds, example: Match) -> bool:
    if UNMISTAKABLE.issuperset(example.parts):
        return True
    several = unseen.matched >= FEWEST_MATCHED or unseen.compared == unseen.relevant
    return several and unseen.matched >= SHARE_MATCHED * unseen.compared


def _in_another_form(unseen: UnseenIds, example: Match) -> Phrase:
    only = f" of the {unseen.compared:,} that were compared," if unseen.compared < unseen.never else ""
    do = "does" if unseen.matched == 1 else "do"
    advice = CHUNKS if "suffix" in example.parts else OTHERWISE
    return (f"{_never(unseen)};{only} {unseen.matched:,} {do} ", *difference(example), f": {advice}")


def _other_ids(unseen: UnseenIds) -> Phrase:
    ids = joined([named(doc_id)] for doc_id in unseen.retrieved)
    has = (", which has ", *ids) if ids else ()
    return (_never(unseen), *has, ": does it name documents by other ids than the contract?")


def _never(unseen: UnseenIds) -> str:
    never = "occurs" if unseen.never == 1 else "occur"
    return f"{unseen.never:,} of {count(unseen.relevant, 'relevant id')} never {never} in the run"
