"""The model of a check: what exit code, broken rules, gates and means the documents promise for a workspace."""

import dataclasses
import datetime
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from tests.model import answer_metrics, answers, gates, ranks, texts
from tests.model.answers import Answer, Rule, Settings
from tests.model.gates import Query
from tests.model.workspace import Broken, CannotJudge, Row, Verdict, Workspace

RankWrong = dict[str, frozenset[str]]
MEAN_KEYS = ("judged", "overlap")


@dataclasses.dataclass(frozen=True)
class Policy:
    """Which behaviour is expected where the documents are about to change."""

    newer: bool = False  # texts that say nothing are no answers, unreadable arguments break rules, and so on


@dataclasses.dataclass(frozen=True)
class Contract:
    """The golden queries in scope and the configuration, as a check uses them."""

    workspace: Workspace
    queries: tuple[Row, ...]
    ks: tuple[int, ...]
    settings: Settings
    wanted_metrics: frozenset[str]

    @property
    def config(self) -> Row:
        """The configuration."""
        return self.workspace.config

    @property
    def rank_by(self) -> str:
        """What takes a rank."""
        return str(self.config.get("rank_by") or "results")

    @property
    def level(self) -> float:
        """The grade from which a document is relevant."""
        return float(self.config.get("relevance_level") or 1)


@dataclasses.dataclass(frozen=True)
class Evaluated:
    """One query on one side: its metrics and what is wrong with it."""

    metrics: Mapping[str, float]
    ranks: RankWrong
    answers: Mapping[Rule, answers.Wrong]
    weak: frozenset[Rule]


def verdict(workspace: Workspace, today: datetime.date, policy: Policy = Policy()) -> Verdict:
    """Return what the documents promise of a check."""
    try:
        return _judge(workspace, today, policy)
    except CannotJudge as error:
        return Verdict(exit_code=2, reason=str(error))


def _judge(workspace: Workspace, today: datetime.date, policy: Policy) -> Verdict:
    contract = _contract(workspace, policy)
    rows = _rows(workspace.run, contract, "run")
    before = None if workspace.baseline is None else _rows(workspace.baseline, contract, "baseline")
    if workspace.stored:
        _check_storable(contract, workspace)
    if before is not None and not workspace.tags and not any(str(row["id"]) in before for row in workspace.golden):
        raise CannotJudge("no query in common with the baseline")
    scores = _scores(workspace, contract)
    waived_gates, waivers = _waivers(workspace, today)
    queries = [_query(golden, contract, rows, before, scores, waivers) for golden in contract.queries]
    return _decide(contract, queries, rows, before, waived_gates, policy)


# ---- what is read ----


def _contract(workspace: Workspace, policy: Policy) -> Contract:
    config = workspace.config
    ids = Counter(str(row["id"]) for row in workspace.golden)
    if max(ids.values()) > 1:
        raise CannotJudge("a golden id twice")
    scoped = [row for row in workspace.golden if not workspace.tags or set(row.get("tags") or []) & set(workspace.tags)]
    all_tags = {tag for row in workspace.golden for tag in row.get("tags") or []}
    if set(workspace.tags) - all_tags:
        raise CannotJudge("--tag of no query")
    if set(config.get("tags") or {}) - all_tags:
        raise CannotJudge("limits for a tag of no query")
    k = workspace.k or config.get("k") or 5
    ks = tuple(sorted(set(k))) if isinstance(k, list) else (k,)
    gates.check_tiers(config, workspace.golden)
    settings = _settings(config, policy)
    for row in workspace.golden:
        _check_golden(row, settings, float(config.get("relevance_level") or 1))
    named = set(config.get("metrics") or {})
    named |= {gate.metric for gate in gates.gates_of(config, ks, ())}
    return Contract(workspace, tuple(scoped), ks, settings, frozenset(named))


def _settings(config: Row, policy: Policy) -> Settings:
    options = config.get("answers") or {}
    per_query = config.get("per_query") or {}
    enforced = {
        name.removeprefix("enforce_"): value for name, value in per_query.items() if name.startswith("enforce_")
    }
    return Settings(
        reading=texts.Reading(normalise=options.get("normalise", True), entities=policy.newer),
        phrases=tuple(options.get("refusal_phrases") or ()),
        built_in=not options.get("only_these", False),
        phrases_are_enough=options.get("refusal") == "phrases",
        missing_modes=options.get("missing_modes") or "error",
        composite=options.get("composite"),
        scales=answer_metrics.scales(config),
        enforced=enforced,
        visible_answers=policy.newer,
        strict_tools=policy.newer,
    )


def _check_golden(golden: Row, settings: Settings, level: float) -> None:
    """Refuse a golden row that expects nothing, or what no run can satisfy."""
    rules = answers.rules_of(golden, dataclasses.replace(settings, composite=None))
    ranks.wanted_documents(golden, level)
    others = ("relevant_doc_ids", "relevance", "expected_label", "reference", "reference_contexts")
    if all(golden.get(name) is None for name in (*others, "reference_tool_calls")) and not rules:
        raise CannotJudge("a golden row that expects nothing")


def _rows(rows: Sequence[Row], contract: Contract, side: str) -> dict[str, list[Row]]:
    """Return the rows by query; every golden query in scope has one, unless it may be missing."""
    known = {str(row["id"]) for row in contract.queries}
    by_query: dict[str, list[Row]] = {}
    for row in rows:
        if str(row["query_id"]) in known:
            by_query.setdefault(str(row["query_id"]), []).append(row)
    if not contract.workspace.repeats and any(len(found) > 1 for found in by_query.values()):
        raise CannotJudge(f"a query twice in the {side}")
    for golden in contract.queries:
        found = by_query.get(str(golden["id"]), [])
        if not found and side == "run" and contract.config.get("missing_queries") != "zero":
            raise CannotJudge("a golden query without a row")
        names = ("relevant_doc_ids", "relevance", "forbidden_doc_ids")
        if any(golden.get(name) is not None for name in names) and any("results" not in row for row in found):
            raise CannotJudge("a row without results")
    return by_query


def _check_storable(contract: Contract, workspace: Workspace) -> None:
    """A run that is stored as the baseline covers the whole golden set, whatever is checked of it."""
    everything = dataclasses.replace(contract, queries=workspace.golden)
    rows = _rows(workspace.baseline or (), everything, "run")
    for golden in workspace.golden:
        _evaluate(golden, everything, rows.get(str(golden["id"])) or [None], {}, set(), None, current=False)


def _scores(workspace: Workspace, contract: Contract) -> dict[str, dict[str, float | None]]:
    """Return the numbers of scores files by query and name; of repeated rows, their mean or nothing."""
    collected: dict[str, dict[str, list[float | None]]] = {}
    for row in workspace.scores or ():
        for name, value in (row.get("scores") or {}).items():
            collected.setdefault(str(row["query_id"]), {}).setdefault(name, []).append(value)
    result: dict[str, dict[str, float | None]] = {}
    known = {str(row["id"]) for row in contract.queries}
    for query, by_name in collected.items():
        for name, values in by_name.items():
            if query in known and len(values) > 1 and not workspace.repeats and name in _declared(contract.config):
                raise CannotJudge("several rows for one score")
            numbers = [value for value in values if value is not None]
            whole = len(numbers) == len(values)
            result.setdefault(query, {})[name] = sum(numbers) / len(numbers) if whole else None
    return result


def _declared(config: Row) -> dict[str, Row]:
    return {name: item for name, item in (config.get("metrics") or {}).items() if item.get("from") == "scores"}


def _waivers(workspace: Workspace, today: datetime.date) -> tuple[set[str], list[Row]]:
    """Return the gates that are waived today, and the waivers of rules that count today."""
    active = []
    for waiver in workspace.config.get("waivers") or []:
        if sum(waiver.get(name) is not None for name in ("query", "tag", "gate")) != 1:
            raise CannotJudge("a waiver needs one of query, tag and gate")
        if waiver.get("gate") is not None and waiver.get("rule") is not None:
            raise CannotJudge("a waiver of a gate with a rule")
        if datetime.date.fromisoformat(waiver["expires"]) >= today:
            active.append(waiver)
    return {waiver["gate"] for waiver in active if waiver.get("gate")}, active


# ---- one query ----


def _query(
    golden: Row,
    contract: Contract,
    rows: Mapping[str, list[Row]],
    before: Mapping[str, list[Row]] | None,
    scores: Mapping[str, Mapping[str, float | None]],
    waivers: Sequence[Row],
) -> Query:
    query = str(golden["id"])
    then_rows = None if before is None else before.get(query)
    pool = _pool(then_rows, contract)
    now = _evaluate(golden, contract, rows.get(query) or [None], scores.get(query, {}), pool, then_rows, current=True)
    then = None
    if then_rows is not None:
        then = _evaluate(golden, contract, list(then_rows), {}, pool, then_rows, current=False)
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


def _answer_rules(golden: Row, contract: Contract) -> set[str]:
    names = {rule.name for rule in answers.rules_of(golden, contract.settings)}
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


def _evaluate(
    golden: Row,
    contract: Contract,
    rows: Sequence[Row | None],
    scores: Mapping[str, float | None],
    pool: set[str],
    then: Sequence[Row] | None,
    *,
    current: bool,
) -> Evaluated:
    collected: dict[str, list[float]] = {}
    wrong_ranks: dict[str, set[str]] = {}
    wrong_answers: dict[Rule, set[str]] = {}
    weak: set[Rule] = set()
    strong: set[Rule] = set()
    strict = current or contract.workspace.stored  # a baseline that is a run may lack what it was not asked for
    for row in rows:
        values = _row_metrics(golden, contract, row, pool, then, current=current)
        stored = strict and not current
        values |= _declared_values(golden, contract, row, scores, strict=strict, stored=stored)
        for metric, value in values.items():
            collected.setdefault(metric, []).append(value)
        for rule, documents in _rank_rules(golden, contract).broken(row, contract.rank_by).items():
            wrong_ranks.setdefault(rule, set()).update(documents)
        settings = contract.settings
        answer = Answer(golden=golden, row=row, values=values, settings=settings, strict=strict)
        broken, only_warn = answers.broken_rules(answers.rules_of(golden, contract.settings), answer)
        for answer_rule, what in broken.items():
            wrong_answers.setdefault(answer_rule, set()).update(what)
        weak |= only_warn
        strong |= broken.keys() - only_warn
    return Evaluated(
        metrics={metric: sum(values) / len(values) for metric, values in collected.items()},
        ranks={rule: frozenset(documents) for rule, documents in wrong_ranks.items()},
        answers={rule: frozenset(what) for rule, what in wrong_answers.items()},
        weak=frozenset(weak - strong),
    )


def _row_metrics(
    golden: Row, contract: Contract, row: Row | None, pool: set[str], then: Sequence[Row] | None, *, current: bool
) -> dict[str, float]:
    wanted = ranks.wanted_documents(golden, contract.level)
    documents = ranks.returned(row, contract.rank_by)
    settings, config = contract.settings, contract.config
    options = {name: item or {} for name, item in (config.get("metrics") or {}).items()}
    strict = current or contract.workspace.stored
    values = answer_metrics.answer_metrics(golden, row, settings, options, set(contract.wanted_metrics), strict=strict)
    if wanted.relevant:
        judged = wanted.judged | pool
        listed = documents
        if config.get("unjudged") == "skip":
            known = bool(then or wanted.forbidden or 0 in (wanted.grades or {}).values())
            listed = ranks.condensed(documents, judged, known)
        for k in contract.ks:
            values |= ranks.ranking_metrics(wanted, listed, k, config.get("gain") or "linear")
            values[f"judged_at_{k}"] = ranks.judged_share(documents, judged, k) if row is not None else 0.0
        if "context_recall_ids" in contract.wanted_metrics:
            values["context_recall_ids"] = len(set(wanted.relevant) & set(documents)) / len(wanted.relevant)
    if then and current:
        for k in contract.ks:
            overlaps = [ranks.overlap(documents, ranks.returned(row, contract.rank_by), k) for row in then]
            present = [value for value in overlaps if value is not None]
            if present:
                values[f"overlap_at_{k}"] = sum(present) / len(present)
    return values


def _declared_values(
    golden: Row, contract: Contract, row: Row | None, scores: Mapping[str, float | None], *, strict: bool, stored: bool
) -> dict[str, float]:
    """Return the declared scores of a row: its own or those of a scores file, never of both."""
    values: dict[str, float] = {}
    for name, options in _declared(contract.config).items():
        if options.get("tags") and not set(options["tags"]) & set(golden.get("tags") or []):
            continue
        scale = contract.settings.scales[name]
        own = ((row or {}).get("scores") or {}).get(name)
        other = scores.get(name)
        if any(value is not None and not scale.low <= value <= scale.high for value in (own, other)):
            raise CannotJudge("a score outside of its scale")
        if own is not None and other is not None:
            raise CannotJudge("a score in the run and in a scores file")
        value = own if own is not None else other
        if value is None and strict:
            if (contract.config.get("missing_scores") != "zero" or stored) and row is not None:
                raise CannotJudge(f"no {name}")
            value = scale.worst
        if value is not None:
            values[name] = value
    return values


# ---- what counts ----


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
            if answer_rule in now.weak:
                excuses |= {"warn"}
            result.append(Broken(query, answer_rule.name, excuses))
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


def _decide(
    contract: Contract,
    queries: Sequence[Query],
    rows: Mapping[str, list[Row]],
    before: Mapping[str, list[Row]] | None,
    waived: set[str],
    policy: Policy,
) -> Verdict:
    config, tags = contract.config, contract.workspace.tags
    tiers = {} if tags else gates.tier_statuses(config, queries, waived)
    statuses = {f"tiers.{name}.minimum": status for name, status in tiers.items()}
    queries = _covered(contract, queries, tiers, policy)
    counted = [query for query in queries if tiers.get(query.tier or "") != "skipped"]
    if not any(query.has_rules for query in counted):
        counted = list(queries)
    for gate in gates.gates_of(config, contract.ks, tags):
        statuses[gate.id] = _status(gate, queries, counted, contract, before)
    if not tags:
        latencies = [_latencies(side) for side in (rows, before or {})]
        statuses |= gates.latency_statuses(config.get("latency") or {}, latencies[0], latencies[1])
    statuses = {name: "waived" if name in waived and status == "fail" else status for name, status in statuses.items()}
    broken = tuple(broken for query in queries for broken in query.broken)
    fails = any(item.counts for item in broken) or "fail" in statuses.values()
    metrics = sorted({metric for query in queries for metric in query.now})
    return Verdict(
        exit_code=int(fails),
        broken=broken,
        gates=statuses,
        means={metric: gates.mean(queries, metric) for metric in metrics},
        baseline_means={metric: gates.mean(queries, metric, before=True, shared=True) for metric in metrics},
        tag_means=_tag_means(queries, metrics, tags),
        pass_rate=gates.rate(counted),
        tiers=tiers,
    )


def _status(
    gate: gates.Gate,
    queries: Sequence[Query],
    counted: Sequence[Query],
    contract: Contract,
    before: Mapping[str, list[Row]] | None,
) -> str:
    if gate.kind in ("drop", "rise") and before is None:
        raise CannotJudge(f"{gate.id}: no baseline")
    if gate.metric == "pass_rate":
        members = [query for query in queries if gate.tag is None or gate.tag in query.tags]
        still = [query for query in members if query in counted]
        judged = still if any(query.has_rules for query in still) else members
        return gates.rate_status(float(gate.limit), judged, gate.id)
    if gate.metric == "label_macro_f1":
        raise CannotJudge("label_macro_f1 is not modelled")
    return gates.mean_status(gate, queries, contract.settings.scales)


def _covered(contract: Contract, queries: Sequence[Query], tiers: Mapping[str, str], policy: Policy) -> list[Query]:
    """Excuse what is in a skipped tier, and what only a limit on the pass rate counts."""
    rate_decides = (contract.config.get("per_query") or {}).get("fail_on") == "pass_rate"
    limits = [
        g for g in gates.gates_of(contract.config, contract.ks, contract.workspace.tags) if g.metric == "pass_rate"
    ]
    if rate_decides and not limits and not tiers:
        raise CannotJudge("fail_on: pass_rate without a limit on it")
    result = []
    for query in queries:
        extra = {"skipped"} if tiers.get(query.tier or "") == "skipped" else set()
        covered = (
            not policy.newer
            or query.tier in tiers
            or any(gate.tag is None or gate.tag in query.tags for gate in limits)
        )
        if rate_decides and covered:
            extra.add("counted")
        broken = tuple(dataclasses.replace(item, excuses=item.excuses | extra) for item in query.broken)
        result.append(dataclasses.replace(query, broken=broken))
    return result


def _latencies(side: Mapping[str, list[Row]]) -> list[float]:
    return [row["latency_ms"] for rows in side.values() for row in rows if row.get("latency_ms") is not None]


def _tag_means(queries: Sequence[Query], metrics: Sequence[str], only: Sequence[str]) -> dict[str, dict[str, Any]]:
    tags = sorted({tag for query in queries for tag in query.tags if not only or tag in only})
    members = {tag: [query for query in queries if tag in query.tags] for tag in tags}
    return {tag: {metric: gates.mean(members[tag], metric) for metric in metrics} for tag in tags}
