"""Functions that compute the context recall of one sample in Python, with the argument names of ragas."""

from collections.abc import Callable, Coroutine, Iterable, Mapping
from functools import wraps
from math import isnan
from typing import TYPE_CHECKING, Annotated, Any, ParamSpec, TypeVar

import msgspec
from msgspec import Meta, Struct

from ragcontract.answers.metric_options import CannotScoreError, Measure, Threshold
from ragcontract.answers.similarity import recall_of_ids, recall_of_texts
from ragcontract.core.errors import InputError
from ragcontract.core.ids import Id, as_ids
from ragcontract.core.lines import Line
from ragcontract.files.problems import Problem
from ragcontract.files.schema import mismatches

if TYPE_CHECKING:
    from ragcontract.judge.interface import Model
    from ragcontract.judge.recall_of_sample import JudgedRecall

S = TypeVar("S", bound=Struct)
P = ParamSpec("P")
R = TypeVar("R")
Text = Annotated[str, Meta(min_length=1, title="text that is not empty")]
OTHER_NAMES = {"user_input": "question", "retrieved_contexts": "contexts"}  # of arguments of context_recall
JUDGED: Line["Callable[..., JudgedRecall]"] = Line(home="ragcontract.judge.recall_of_sample:recall_of_sample")
NOTHING = "is empty, so there is nothing to find; leave out samples that nothing answers"


class IdSample(Struct, frozen=True, kw_only=True):
    """The arguments of :func:`context_recall_ids`."""

    retrieved_context_ids: list[Id]
    reference_context_ids: list[Id]


class JudgedSample(Struct, frozen=True, kw_only=True):
    """The arguments of :func:`context_recall`."""

    question: Text
    contexts: list[str]
    reference: Text | None = None
    claims: list[Text] | None = None


class TextSample(Struct, frozen=True, kw_only=True):
    """The arguments of :func:`context_recall_text`."""

    retrieved_contexts: list[str]
    reference_contexts: list[str]
    measure: Measure = "coverage"
    threshold: Threshold = 0.5


def context_recall_ids(
    *,
    retrieved_context_ids: Iterable[str | int],
    reference_context_ids: Iterable[str | int],
    user_input: str | None = None,  # noqa: ARG001 (so that all fields of a sample can be passed)
) -> float:
    """Return the fraction of the different reference ids that were retrieved, at any rank, from 0 to 1.

    An integer is the same id as its digits. ``user_input`` is not read. Raises :class:`~ragcontract.InputError` for
    values that are not ids, and if there are no reference ids.
    """
    sample = _sample(
        IdSample,
        "context_recall_ids",
        retrieved_context_ids=retrieved_context_ids,
        reference_context_ids=reference_context_ids,
    )
    if not sample.reference_context_ids:
        raise InputError([f"context_recall_ids: reference_context_ids: {NOTHING}"])
    return recall_of_ids(as_ids(sample.retrieved_context_ids), as_ids(sample.reference_context_ids))


def context_recall_text(
    *,
    retrieved_contexts: Iterable[str],
    reference_contexts: Iterable[str],
    measure: Measure = "coverage",
    threshold: float = 0.5,
    user_input: str | None = None,  # noqa: ARG001 (so that all fields of a sample can be passed)
) -> float:
    """Return the fraction of the reference contexts that were retrieved, from 0 to 1; 0 if nothing was.

    By ``coverage``, a reference was retrieved if at least the fraction ``threshold`` of its sequences of three words is
    in the retrieved contexts. By ``levenshtein``, ``hamming``, ``jaro`` and ``jaro_winkler`` (which need rapidfuzz),
    its similarity to one of the retrieved contexts must be above ``threshold``, as in ragas. ``user_input`` is not
    read. Raises :class:`~ragcontract.InputError` for values that are not texts, if there are no reference contexts, for
    a reference context without words (by coverage), and if rapidfuzz is needed but not installed.
    """
    sample = _sample(
        TextSample,
        "context_recall_text",
        retrieved_contexts=retrieved_contexts,
        reference_contexts=reference_contexts,
        measure=measure,
        threshold=threshold,
    )
    if not sample.reference_contexts:
        raise InputError([f"context_recall_text: reference_contexts: {NOTHING}"])
    try:
        return recall_of_texts(
            sample.retrieved_contexts, sample.reference_contexts, measure=sample.measure, threshold=sample.threshold
        )
    except CannotScoreError as error:
        raise InputError([f"context_recall_text: the sample {error}"]) from error
    except ImportError as error:
        raise InputError([f"context_recall_text: {error}"]) from error


def context_recall(
    *,
    judge: "Model",
    user_input: str | None = None,
    retrieved_contexts: Iterable[str] | None = None,
    reference: str | None = None,
    question: str | None = None,
    contexts: Iterable[str] | None = None,
    claims: Iterable[str] | None = None,
) -> "JudgedRecall":
    """Return the fraction of the claims of the reference that the retrieved contexts support, as a judge says.

    ``question`` and ``contexts`` are other names for ``user_input`` and ``retrieved_contexts``. ``claims`` are the
    statements of the reference. Without them, the judge splits the ``reference`` first, and the number of claims may
    differ from call to call. If nothing was retrieved, the value is 0 and the judge is not asked. ``judge`` is a
    :class:`~ragcontract.Judge`. The function also works within a running event loop, which it blocks. Raises
    :class:`~ragcontract.InputError` for arguments that are not texts, and if a claim has no verdict.
    """
    sample = _judged_sample(
        user_input=user_input,
        question=question,
        retrieved_contexts=retrieved_contexts,
        contexts=contexts,
        reference=reference,
        claims=claims,
    )
    return JUDGED.load()(
        sample.question, sample.contexts, reference=sample.reference, claims=sample.claims, judge=judge
    )


def _judged_sample(**values: Any) -> JudgedSample:
    """Return the arguments of :func:`context_recall` as a record; some of them have two names."""
    arguments: dict[str, Any] = {"reference": values["reference"], "claims": values["claims"]}
    problems = []
    for name, other in OTHER_NAMES.items():
        if (values[name] is None) == (values[other] is None):
            how_many = "neither" if values[name] is None else "both"
            problems.append(f"context_recall: {name}: expected it or {other}, found {how_many}")
        arguments[other] = values[other] if values[name] is None else values[name]
    if values["reference"] is None and values["claims"] is None:
        problems.append("context_recall: reference: expected it or claims, found neither")
    if problems:
        raise InputError(problems)
    try:
        sample = _sample(JudgedSample, "context_recall", **arguments)
    except InputError as error:
        raise InputError([_with_given_name(problem, values) for problem in error.problems]) from error
    if sample.claims is not None and not sample.claims:
        raise InputError(["context_recall: claims: is empty, so there is nothing to support"])
    return sample


def _with_given_name(problem: str, values: Mapping[str, Any]) -> str:
    """Return a problem with the name of the argument as it was given."""
    for name, other in OTHER_NAMES.items():
        if values[name] is not None:
            problem = problem.replace(f"context_recall: {other}", f"context_recall: {name}", 1)
    return problem


def _sample(record: type[S], location: str, **values: Any) -> S:
    """Return the arguments as a record. A text in place of a list is refused, though Python could iterate over it."""
    listed = {name: _listed(value) for name, value in values.items()}
    try:
        return msgspec.convert(listed, record)
    except msgspec.ValidationError as error:
        raise InputError([str(Problem.of(location, mismatch)) for mismatch in mismatches(listed, record)]) from error


def _listed(value: Any) -> Any:
    if isinstance(value, float) and isnan(value):
        return str(value)  # JSON has no NaN, so no message about numbers fits it
    return list(value) if isinstance(value, Iterable) and not isinstance(value, str) else value


def _asynchronous(function: Callable[P, R]) -> Callable[P, Coroutine[Any, Any, R]]:
    """Return a function for asynchronous code, which calls the function in a thread, because it may take a while."""

    @wraps(function)
    async def in_a_thread(*args: P.args, **kwargs: P.kwargs) -> R:
        import asyncio  # slow to import

        return await asyncio.to_thread(function, *args, **kwargs)

    in_a_thread.__name__ = in_a_thread.__qualname__ = f"a{function.__name__}"
    return in_a_thread


acontext_recall = _asynchronous(context_recall)
acontext_recall_ids = _asynchronous(context_recall_ids)
acontext_recall_text = _asynchronous(context_recall_text)
