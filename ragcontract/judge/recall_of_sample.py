"""Judged context recall of one sample, for the Python API: a model to ask, and its verdict on each claim."""

import os
import random
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from msgspec import Struct

from ragcontract.core.config_sections import Confirm
from ragcontract.core.errors import InputError
from ragcontract.core.numbers import count
from ragcontract.judge.claims_run import split_reference
from ragcontract.judge.endpoint import find_endpoint
from ragcontract.judge.interface import Ask, Model, Reply, VoteSettings
from ragcontract.judge.judge_case import judge_case
from ragcontract.judge.judging_run import USUAL, JudgeOptions, open_model
from ragcontract.judge.judging_session import JudgingSettings
from ragcontract.judge.model_calls import Spending, Spent
from ragcontract.judgments.items import Item, JudgeCase

HERE = "context_recall"


class Judge:
    """A model to ask, whose connections stay open until it is closed. Threads and tasks can share it.

    ``url`` is its address; by default that in ``RAG_CONTRACT_JUDGE_URL`` of the environment, or else OpenAI's. The key
    is in ``RAG_CONTRACT_JUDGE_KEY``, for OpenAI itself also in ``OPENAI_API_KEY``. ``api`` is ``openai`` or ``ollama``;
    by default, it depends on the port. Raise :class:`~ragcontract.InputError` with all that is wrong.
    """

    def __init__(
        self,
        model: str,
        *,
        url: str | None = None,
        api: str | None = None,
        votes: int = USUAL.votes,
        confirm: Confirm = USUAL.confirm,
        max_calls: int = USUAL.max_calls,
        timeout: float = USUAL.timeout,
        retries: int = USUAL.retries,
    ) -> None:
        """Prepare without sending anything. The options are those of ``rag-contract judge``."""
        options = JudgeOptions(
            model=model, votes=votes, confirm=confirm, max_calls=max_calls, timeout=timeout, retries=retries
        )
        problems = [f"Judge: {name}: {problem}" for name, problem in options.wrong()]
        try:
            endpoint = find_endpoint(url, api, os.environ)
        except InputError as error:
            problems += [problem.replace("--judge-", "Judge: ", 1) for problem in error.problems]
        if problems:
            raise InputError(problems)
        self.settings = options.settings
        self._spending = Spending(options.budget)
        judging = JudgingSettings(
            path="", model=model, endpoint=endpoint, settings=options.settings, limits=options.limits
        )
        self._model = open_model(judging, self._spending)
        self.name, self.host = self._model.name, self._model.host

    @property
    def spent(self) -> Spent:
        """The calls so far, and what they cost."""
        return self._spending.spent

    def ask(self, ask: Ask) -> Reply:
        """Send what is asked and return the reply; raise NoReply."""
        return self._model.ask(ask)

    def close(self) -> None:
        """Close the connections."""
        self._model.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


class JudgedClaim(Struct, frozen=True, kw_only=True):
    """The verdict on a claim."""

    text: str
    supported: bool
    quote: str | None = None  # the words that prove that the claim is supported
    context: int | None = None  # the rank of the text that they are from, counted from 1
    reason: str = ""


class JudgedRecall(Struct, frozen=True, kw_only=True):
    """Context recall: the fraction of the claims that the retrieved texts support, from 0 to 1."""

    value: float
    claims: tuple[JudgedClaim, ...]

    def __float__(self) -> float:
        return self.value


def recall_of_sample(
    question: str, contexts: Sequence[str], *, reference: str | None, claims: Sequence[str] | None, judge: Model
) -> JudgedRecall:
    """Judge a sample. Without ``claims``, split the reference into claims first.

    If nothing was retrieved, nothing is asked. Raise InputError if a claim has no verdict, because an unknown verdict
    neither counts as 0 nor is left out.
    """
    settings = getattr(judge, "settings", None) or VoteSettings()
    dice = random.SystemRandom()
    if claims is None:
        claims = [reference or ""]
        if any(text.strip() for text in contexts):
            split = split_reference(question, reference or "", judge, settings, dice)
            if split.status != "ok":
                raise InputError([f"{HERE}: the reference was not split into claims: {split.reason}"])
            claims = split.claims
    items = tuple(Item(name=f"claim:{number}", text=text) for number, text in enumerate(claims, 1))
    case = JudgeCase(task="attribution", query_id="sample", question=question, items=items, contexts=tuple(contexts))
    judgments = judge_case(case, judge, settings, dice)
    if unjudged := [judgment for judgment in judgments if judgment.status != "ok"]:
        which = f"{len(unjudged):,} of {count(len(items), 'claim')} have no verdict"
        raise InputError([f"{HERE}: {which}; {unjudged[0].status}: {unjudged[0].reason}"])
    judged = tuple(
        JudgedClaim(
            text=item.text,
            supported=judgment.verdict is True,
            quote=judgment.quote,
            context=judgment.context,
            reason=judgment.reason,
        )
        for item, judgment in zip(items, judgments, strict=True)
    )
    return JudgedRecall(value=sum(claim.supported for claim in judged) / len(judged), claims=judged)
