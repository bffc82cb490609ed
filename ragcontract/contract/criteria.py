"""The field ``criteria`` of a golden row: what a judge says of its answer, one statement each."""

from collections.abc import Iterator, Sequence

from ragcontract.contract.golden_row import CriterionJson
from ragcontract.core import bounds
from ragcontract.core.golden import Criterion
from ragcontract.files.schema import Mismatch

SAYS_NOTHING = "has no letter, digit or symbol that a reader sees; write"
Written = Sequence[str | CriterionJson]


def criteria_of(written: Written) -> tuple[Criterion, ...]:
    """Return the criteria; one without an ``id`` has its number, from 1."""
    return tuple(
        Criterion(id=str(number), text=one) if isinstance(one, str) else Criterion(id=one.id, text=one.text)
        for number, one in enumerate(written, 1)
    )


def criteria_faults(written: Written) -> Iterator[Mismatch]:
    """Yield what is wrong: no criteria, too many, ones that say nothing or have the id or the text of another."""
    from ragcontract.answers.answer_text import Answer
    from ragcontract.answers.saying import says_something

    criteria = criteria_of(written)
    if not criteria:
        yield Mismatch(("criteria",), "is empty; give at least one criterion, or leave it out")
    if len(criteria) > bounds.CRITERIA:
        yield Mismatch(("criteria",), f"has {len(criteria):,} criteria; at most {bounds.CRITERIA} can be judged")
        return
    ids, texts = dict[str, int](), dict[str, int]()
    for at, one in enumerate(criteria):
        has_id = not isinstance(written[at], str)
        if not says_something(Answer(one.text)):
            yield Mismatch(("criteria", at, *(("text",) if has_id else ())), f"{SAYS_NOTHING} what the answer must be")
        if (first := ids.setdefault(one.id, at)) != at:
            path = ("criteria", at, *(("id",) if has_id else ()))
            yield Mismatch(path, f"has the id {one.id!r} of criteria[{first}]; a number is the id of one without an id")
        if (first := texts.setdefault(one.text, at)) != at:
            yield Mismatch(("criteria", at), f"repeats criteria[{first}]; leave one of them out")
