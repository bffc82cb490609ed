"""The model of one query: what both sides have of each metric, which rules are broken, and what excuses them."""

import dataclasses
from collections.abc import Mapping, Sequence

from tests.model import answer_metrics, answers, ranks, turns
from tests.model.answers import Answer, Rule
from tests.model.contract import Contract, check_forbidden, declared, rows_of
from tests.model.gates import Query
from tests.model.workspace import Broken, CannotJudgeError, Row, Workspace

RankWrong = dict[str, frozenset[str]]
OF_ANSWER = ("expected_mode", "expected_label", "reference_tool_calls")  # of which metrics read the answer
NO_ROW: Sequence[Row | None] = (None,)


@dataclasses.dataclass(frozen=True)
class Evaluated:
    """One query on one side: its metrics and what is wrong with it."""

    metrics: Mapping[str, float]
    ranks: RankWrong
    answers: Mapping[Rule, answers.Wrong]
    weak: frozenset[Rule]  # those that only warn, in some row
    strong: frozenset[Rule]  # those that do not, in some row


@dataclasses.dataclass(frozen=True)
class Side:
    """The rows and scores of the run or the baseline; ``strict``: what is missing cannot be judged."""

    rows: Mapping[str, list[Row]]
    scores: Mapping[str, Mapping[str, float | None]]
    current: bool
    strict: bool
    measured: Mapping[str, list[Row]] = dataclasses.field(default_factory=dict)  # the scores of each row of a file


def query_of(golden: Row, contract: Contract, run: Side, baseline: Side | None, waivers: Sequence[Row]) -> Query:
    """Evaluate one golden query on both sides."""
    query = str(golden["id"])
    then_rows = None if baseline is None else baseline.rows.get(query)
    now = _evaluate(golden, contract, run, then_rows)
    then = None if baseline is None or then_rows is None else _evaluate(golden, contract, baseline, then_rows)
    names = _rank_rules(golden, contract).names() | _answer_rules(golden, contract)
    return Query(
        id=query,
        weight=float(golden.get("weight") or 1),
        tags=frozenset(golden.get("tags") or []),
        tier=golden.get("tier"),
        has_rules=bool(names),
        now=now.metrics,
        before=None if then is None else then.metrics,
        broken=tuple(_broken(golden, contract, now, then, waivers)),
    )


def check_storable(contract: Contract, workspace: Workspace) -> None:
    """Refuse a run as a stored baseline unless it covers the whole golden set, whatever is checked of it."""
    everything = dataclasses.replace(contract, queries=workspace.golden)
    rows = rows_of(workspace.baseline or (), everything, "run")
    check_forbidden(everything, rows)
    check_failed(everything, rows)
    side = Side(rows, {}, current=False, strict=True)
    for golden in workspace.golden:
        _evaluate(golden, everything, side, None)


def check_failed(contract: Contract, rows: Mapping[str, list[Row]]) -> None:
    """Refuse a baseline in which an error stands for results, or for an answer that anything reads."""
    for golden in contract.queries:
        answers_count = bool(_answer_rules(golden, contract)) or any(golden.get(name) is not None for name in OF_ANSWER)
        similar = golden.get("reference") is not None and not {"rouge_l", "exact_match"}.isdisjoint(
            contract.wanted_metrics
        )
        for row in rows.get(str(golden["id"]), []):
            if row.get("error") and (answers_count or similar or not row.get("results")):
                raise CannotJudgeError("a baseline with an error")


def _answer_rules(golden: Row, contract: Contract) -> set[str]:
    rules_of = answers.rules_of if golden.get("turns") is None else turns.rules_of_conversation
    names = {rule.name for rule in rules_of(golden, contract.settings)}
    names |= {"answered"} if names & answers.ABOUT_TEXT else set()
    return {name for name in names if contract.settings.enforced.get(name, True)}


def _rank_rules(golden: Row, contract: Contract) -> ranks.RankRules:
    enforced = contract.settings.enforced
    on = {rule for rule in ("must_rank_at_most", "must_include", "forbidden_docs") if enforced.get(rule, True)}
    return ranks.RankRules(
        wanted=ranks.wanted_documents(golden, contract.level),
        at_most=golden.get("must_rank_at_most"),
        any_is_enough=bool(golden.get("must_include_any")),
        forbidden_within=(contract.config.get("per_query") or {}).get("forbidden_within"),
        k=max(contract.ks),
        enforced=frozenset(on | ({"must_include_any"} if "must_include" in on else set())),
    )


def _pool(rows: Sequence[Row] | None, contract: Contract) -> set[str]:
    """Return the documents that the baseline returned first."""
    k = max(contract.ks)
    return {document for row in rows or [] for document in ranks.returned(row, contract.rank_by)[:k]}


def _evaluate(golden: Row, contract: Contract, side: Side, then: Sequence[Row] | None) -> Evaluated:
    query = str(golden["id"])
    scores = side.scores.get(query, {})
    collected: dict[str, list[float]] = {}
    wrong_ranks: dict[str, set[str]] = {}
    wrong_answers: dict[Rule, set[str]] = {}
    weak: set[Rule] = set()
    strong: set[Rule] = set()
    for row in side.rows.get(query) or NO_ROW:
        values = _row_metrics(golden, contract, row, then, side) | _declared_values(golden, contract, row, scores, side)
        for metric, value in values.items():
            collected.setdefault(metric, []).append(value)
        for rule, documents in _rank_rules(golden, contract).broken(row, contract.rank_by).items():
            wrong_ranks.setdefault(rule, set()).update(documents)
        for numbers in side.measured.get(query) or [{}]:
            of_row = {name: value for name, value in numbers.items() if name in values and scores.get(name) is not None}
            seen = {**values, **of_row}
            answer = Answer(golden=golden, row=row, values=seen, settings=contract.settings, strict=side.strict)
            broken, only_warn = _broken_answers(golden, contract, answer)
            for answer_rule, what in broken.items():
                wrong_answers.setdefault(answer_rule, set()).update(what)
            weak |= only_warn
            strong |= broken.keys() - only_warn
    for name in declared(contract.config):
        rows = side.rows.get(query) or NO_ROW
        own = [((row or {}).get("scores") or {}).get(name) for row in rows]
        if name in collected and side.strict and scores.get(name) is None and None in own:
            collected[name] = [contract.settings.scales[name].worst]
    return Evaluated(
        metrics={metric: sum(values) / len(values) for metric, values in collected.items()},
        ranks={rule: frozenset(documents) for rule, documents in wrong_ranks.items()},
        answers={rule: frozenset(what) for rule, what in wrong_answers.items()},
        weak=frozenset(weak),
        strong=frozenset(strong),
    )


def _broken_answers(golden: Row, contract: Contract, answer: Answer) -> tuple[dict[Rule, answers.Wrong], set[Rule]]:
    rules = answers.rules_of(golden, contract.settings)
    if golden.get("turns") is None:
        return answers.broken_rules(rules, answer)
    try:
        broken, only_warn = turns.broken_in_turns(golden, answer)
    except CannotJudgeError:
        if answer.strict:
            raise
        return {}, set()
    others, weak = answers.broken_rules([rule for rule in rules if rule.name in turns.WHOLE_ROW], answer)
    return broken | others, only_warn | weak


def _row_metrics(
    golden: Row, contract: Contract, row: Row | None, then: Sequence[Row] | None, side: Side
) -> dict[str, float]:
    wanted = ranks.wanted_documents(golden, contract.level)
    documents = ranks.returned(row, contract.rank_by)
    settings, config = contract.settings, contract.config
    options = {name: item or {} for name, item in (config.get("metrics") or {}).items()}
    named = set(contract.wanted_metrics)
    values = answer_metrics.answer_metrics(golden, row, settings, options, named, strict=side.strict)
    if wanted.relevant:
        judged = wanted.judged | _pool(then, contract)
        listed = documents
        if config.get("unjudged") == "skip":
            named = {*wanted.relevant, *(wanted.grades or {})}
            known = bool(wanted.forbidden or 0 in (wanted.grades or {}).values() or judged - named)
            listed = ranks.condensed(documents, judged, known)
        for k in contract.ks:
            values |= ranks.ranking_metrics(wanted, listed, k, config.get("gain") or "linear")
            values[f"judged_at_{k}"] = ranks.judged_share(documents, judged, k) if row is not None else 0.0
        if "context_recall_ids" in contract.wanted_metrics:
            values["context_recall_ids"] = len(set(wanted.relevant) & set(documents)) / len(wanted.relevant)
    if then and side.current:
        for k in contract.ks:
            overlaps = [ranks.overlap(documents, ranks.returned(row, contract.rank_by), k) for row in then]
            present = [value for value in overlaps if value is not None]
            if present:
                values[f"overlap_at_{k}"] = sum(present) / len(present)
    return values


def _declared_values(
    golden: Row, contract: Contract, row: Row | None, scores: Mapping[str, float | None], side: Side
) -> dict[str, float]:
    """Return the declared scores of a row: its own or those of a scores file, never of both."""
    values: dict[str, float] = {}
    for name, options in declared(contract.config).items():
        if options.get("tags") and not set(options["tags"]) & set(golden.get("tags") or []):
            continue
        scale = contract.settings.scales[name]
        own = ((row or {}).get("scores") or {}).get(name)
        other = scores.get(name)
        if any(value is not None and not scale.low <= value <= scale.high for value in (own, other)):
            raise CannotJudgeError("a score outside of its scale")
        if own is not None and other is not None:
            raise CannotJudgeError("a score in the run and in a scores file")
        value = own if own is not None else other
        if value is None and side.strict:
            if (contract.config.get("missing_scores") != "zero" or not side.current) and row is not None:
                raise CannotJudgeError(f"no {name}")
            value = scale.worst
        if value is not None:
            values[name] = value
    return values


def _broken(
    golden: Row, contract: Contract, now: Evaluated, then: Evaluated | None, waivers: Sequence[Row]
) -> list[Broken]:
    query = str(golden["id"])
    result = []
    for rule, documents in now.ranks.items():
        known = then is not None and rule in then.ranks and _no_worse(rule, documents, then.ranks[rule])
        result.append(Broken(query, rule, _excuses(golden, contract, rule, waivers, known=known)))
    for answer_rule, what in now.answers.items():
        before = frozenset() if then is None else then.answers.get(answer_rule, frozenset())
        for item in what:
            excuses = _excuses(golden, contract, answer_rule.name, waivers, known=item in before)
            if answer_rule in now.strong:
                result.append(Broken(query, answer_rule.name, excuses))
            if answer_rule in now.weak:
                result.append(Broken(query, answer_rule.name, excuses | {"warn"}))
    return result


def _no_worse(rule: str, now: frozenset[str], then: frozenset[str]) -> bool:
    """Whether nothing else is missing or forbidden than before, and the last relevant document was not lost."""
    return now <= then or rule == "must_include_any"


def _excuses(golden: Row, contract: Contract, rule: str, waivers: Sequence[Row], *, known: bool) -> frozenset[str]:
    per_query = contract.config.get("per_query") or {}
    excuses = set()
    if golden.get("severity") == "warn":
        excuses.add("warn")
    switch = "must_include" if rule == "must_include_any" else rule
    if known and (per_query.get("fail_on") == "new" or per_query.get(f"enforce_{switch}") == "new"):
        excuses.add("known")
    tags = set(golden.get("tags") or [])
    for waiver in waivers:
        target = waiver.get("query") is not None and str(waiver["query"]) == str(golden["id"])
        if (target or waiver.get("tag") in tags) and waiver.get("rule") in (None, rule):
            excuses.add("waived")
    return frozenset(excuses)
