"""Labels files: what people say of the items that a judge is calibrated with, one item a line."""

from collections.abc import Mapping, Sequence
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from ragcontract.core import bounds
from ragcontract.core.ids import Tag
from ragcontract.core.run import AnswerText
from ragcontract.files.events import located
from ragcontract.files.patterns import existing_files
from ragcontract.files.problems import Collector
from ragcontract.files.rows import read_rows
from ragcontract.judge.judge_case import known
from ragcontract.runs.judged_texts import Case, Item, Task

Text = Annotated[AnswerText, Meta(min_length=1, title=f"text of 1 to {bounds.ANSWER:,} characters")]
# What a task cannot be judged without.
NEEDS: Mapping[Task, tuple[str, ...]] = {"attribution": (), "confirmation": ("response",), "criteria": ("response",)}


class LabelRow(Struct, frozen=True, kw_only=True):
    """A line of a labels file: an item with all that is known of it, and what a person says."""

    task: Annotated[Task, Meta(description="What is judged.")]
    question: Annotated[Text, Meta(description="The question.")]
    text: Annotated[Text, Meta(description="The claim, the flagged text, or the criterion.")]
    label: Annotated[
        bool, Meta(description="Whether it is supported or met; of a flagged text, whether it is asserted unsupported.")
    ]
    contexts: Annotated[list[AnswerText] | None, Meta(description="The retrieved texts, best first.")] = None
    response: Annotated[AnswerText | None, Meta(description="What the application answered.")] = None
    reference: Annotated[AnswerText | None, Meta(description="A good answer.")] = None
    why: Annotated[AnswerText | None, Meta(description="Why the text was flagged.")] = None
    labeler: Annotated[Tag | None, Meta(description="Who says so.")] = None


class Labelled(Struct, frozen=True, kw_only=True):
    """Cases to judge, and the labels of their items, in the same order."""

    cases: tuple[Case, ...]
    labels: tuple[tuple[bool, ...], ...]


def read_labels(paths: Sequence[str]) -> Labelled:
    """Read labels files or globs; raises InputError with all that is wrong with them.

    Items about the same texts are one case, as they are in a judging.
    """
    found, missing = existing_files(paths)
    problems = Collector()
    for problem in missing:
        problems.add(problem)
    cases: dict[bytes, tuple[LabelRow, dict[tuple[str, str], bool]]] = {}
    first: dict[tuple[bytes, tuple[str, str]], str] = {}
    for location, row in located(read_rows(found, LabelRow), problems):
        for name in NEEDS[row.task]:
            if getattr(row, name) is None:
                problems.problem(f"{location}: {name}", f"is needed where the task is {row.task!r}")
        if why := known(_case(0, row, {})):
            name = NEEDS[row.task][0] if NEEDS[row.task] else "contexts"
            message = f"leave this line out; it says nothing of a judge, who is not asked: {why}"
            problems.problem(f"{location}: {name}", message)
        about = msgspec.json.encode([row.task, row.question, row.contexts or [], row.response, row.reference])
        item = (row.text, row.why or "")
        if (about, item) in first:
            message = f"this item is labelled already, at {first[about, item]}; settle on one label"
            problems.problem(f"{location}: text", message)
            continue
        first[about, item] = location
        cases.setdefault(about, (row, {}))[1][item] = row.label
    problems.found().raise_if_any()
    return Labelled(
        cases=tuple(_case(number, row, items) for number, (row, items) in enumerate(cases.values(), 1)),
        labels=tuple(tuple(items.values()) for _, items in cases.values()),
    )


def _case(number: int, row: LabelRow, items: Mapping[tuple[str, str], bool]) -> Case:
    return Case(
        task=row.task,
        query_id=f"labels {number}",
        question=row.question,
        items=tuple(Item(name=f"label:{at}", text=text, why=why) for at, (text, why) in enumerate(items, 1)),
        contexts=tuple(row.contexts or ()),
        response=row.response,
        reference=row.reference,
    )
