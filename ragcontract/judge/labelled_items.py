"""Labels files: what people say of the items that a judge is calibrated with, one item a line."""

from collections.abc import Mapping, Sequence
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.ids import Tag
from ragcontract.core.numbers import count
from ragcontract.core.run import AnswerText
from ragcontract.core.text import visible
from ragcontract.files.events import located
from ragcontract.files.patterns import existing_files
from ragcontract.files.problems import Collector
from ragcontract.files.rows import read_rows
from ragcontract.runs.judged_texts import Case, Item, Task, known_without_a_judge

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
    """Cases to judge, and the labels of their items, in the same order; ``warnings`` say what was left out."""

    cases: tuple[Case, ...]
    labels: tuple[tuple[bool, ...], ...]
    warnings: tuple[str, ...] = ()


def read_labels(paths: Sequence[str]) -> Labelled:
    """Read labels files or globs; raises InputError with all that is wrong with them.

    Items about the same texts are one case, as they are in a judging. What no judge is asked about says nothing of one,
    and is left out.
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
        about = msgspec.json.encode([row.task, row.question, row.contexts or [], row.response, row.reference])
        item = (row.text, row.why or "")
        if (about, item) in first:
            message = f"this item is labelled already, at {first[about, item]}; settle on one label"
            problems.problem(f"{location}: text", message)
            continue
        first[about, item] = location
        cases.setdefault(about, (row, {}))[1][item] = row.label
    problems.found().raise_if_any()
    made = [(_case(number, row, items), tuple(items.values())) for number, (row, items) in enumerate(cases.values(), 1)]
    asked = [(case, labels) for case, labels in made if not known_without_a_judge(case)]
    left_out = len(first) - sum(len(labels) for _, labels in asked)
    why = "since no judge is asked where nothing was retrieved, or where there is no response to a criterion"
    if not asked:
        raise InputError([f"{', '.join(map(visible, paths))}: has no label to calibrate with, {why}"])
    return Labelled(
        cases=tuple(case for case, _ in asked),
        labels=tuple(labels for _, labels in asked),
        warnings=(f"not counted: {count(left_out, 'label')}, {why}",) if left_out else (),
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
