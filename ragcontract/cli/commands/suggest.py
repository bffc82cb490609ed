"""``rag-contract suggest``: proposes limits from known-good runs.

It also advises on labels if these runs do not find every relevant document, as the rule must_include demands.
"""

import difflib
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import ModuleType

import click
import yaml
from msgspec.structs import replace

from ragcontract import pipeline
from ragcontract.cli.console import progress_over, say, warn
from ragcontract.cli.history_options import branch_option, contract_option, history_named
from ragcontract.cli.options import clock, files_option, find_files, refuse_links, takes
from ragcontract.contract import defaults
from ragcontract.contract.config import enforced
from ragcontract.contract.config_edits import with_values
from ragcontract.contract.config_file import ConfigFile
from ragcontract.core import bounds
from ragcontract.core.errors import ExitCode, InputError
from ragcontract.core.gate import Kind, every_run_keeps
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.lines import Line
from ragcontract.core.metric import Direction, Metric
from ragcontract.core.numbers import as_written, count, fixed, more
from ragcontract.core.safe_text import shorten, visible
from ragcontract.decision.evaluated import Evaluation, judged, plan_of
from ragcontract.evaluation.source import Inputs, find_inputs, folders_above
from ragcontract.files import yaml_tree
from ragcontract.files.locking import digest_of, in_turn, require_unchanged
from ragcontract.files.opening import UTF8_BOM
from ragcontract.files.paths import existing_files
from ragcontract.files.writing import write_files
from ragcontract.registry import BUILT_IN, Registry
from ragcontract.report.terminal import aligned
from ragcontract.rules.ranks import MustInclude
from ragcontract.statistics.significance import ALPHA, fewest_changed
from ragcontract.statistics.suggested_limits import Suggested, round_up, suggested

Suggestions = Mapping[Metric, Suggested]
Values = Mapping[str, str | Mapping[str, str]]
BOUNDS: dict[str, Direction] = {"minimums": "higher", "maximums": "lower"}
KINDS: dict[Direction, Kind] = {"higher": "minimum", "lower": "maximum"}
NO_CONFIG = ConfigFile()
FROM_HISTORY: "Line[ModuleType]" = Line(home="ragcontract.history.suggested")  # which only --history loads


@click.command("suggest")
@takes(
    "golden",
    files_option("--run", f"Known-good runs of the same questions; each file is a separate run. [{defaults.RUN}]"),
    "scores",
    "judgments",
    "config",
    "k",
    "repeats",
)
@click.option(
    "--history", metavar="STORE", help="In place of runs, take those that this history has recorded of a branch. [none]"
)
@branch_option
@contract_option
@click.option("--write", "writes", is_flag=True, help="Write the limits into the configuration; its comments stay.")
def command(*, inputs: Inputs, history: str | None, branch: str | None, contract: str | None, writes: bool) -> int:
    """Propose limits from known-good or recorded runs.

    Prints a configuration to start from, and what it promises. Several runs of the same retriever show how much its own
    results vary: give three or more, if they do. With a history, the limits fail about one good run a year. It prints
    how many false alarms they would have given of the recorded runs, and which changes for the worse they would miss.
    """
    if history and (inputs.paths("run") or inputs.scores):
        raise click.UsageError("--history takes recorded runs, so it cannot be combined with --run or --scores")
    unnamed = find_inputs(inputs, above=folders_above(Path())).config or defaults.CONFIG
    refuse_links({"config": unnamed} if writes and not inputs.config else {})
    inputs = find_files(inputs)
    advice: list[str] = []
    if history:
        config_file, proposed, text = _of_history(inputs, history, branch, contract)
        say("\n".join([text] if writes else [text, *_config(proposed, config_file)]) + "\n")
    else:
        evaluations = list(good_runs(inputs))
        suggested_limits, config_file = suggestions(evaluations), evaluations[0].contract.config_file
        proposed, advice = _proposed(suggested_limits, config_file), list(label_advice(evaluations))
        judgments = () if "judgments" in inputs.unnamed else inputs.judgments
        shown = None if writes else config_file
        say(render(suggested_limits, files=inputs.paths("run"), judgments=judgments, config_file=shown))
    if writes:
        path = inputs.config or defaults.CONFIG
        say("\n")
        if not proposed:
            say("there is no limit to write\n")
        elif write(proposed, path):
            say(f"wrote the limits into {visible(path)}\n")
    if advice:
        say("\n" + "\n".join(advice) + "\n")
    return ExitCode.PASS


def _of_history(inputs: Inputs, history: str, branch: str | None, name: str | None) -> tuple[ConfigFile, Values, str]:
    """Return the configuration, the values that recorded runs suggest for it, and what they promise."""
    inputs = replace(inputs, decides=False)
    contract, judge = judged(pipeline.load(inputs), inputs, clock())
    contract.problems.raise_if_any()
    of_history, config_file = FROM_HISTORY.load(), contract.config_file
    metrics = [metric for family in (contract.ranking, *contract.families) for metric in family.metrics]
    keys, plan = [metric.key for metric in _limited(metrics)], plan_of(contract, inputs, judge)
    proposal = of_history.proposal_of(history_named(history, branch, name), contract, plan, keys)
    warn([*contract.problems.warnings, *proposal.notes])
    values = _cutoff(metrics, config_file)
    for section in ("fail_on", "history"):
        limits = {_change_key(of.metric): str(limit) for of in proposal.of if (limit := of.limits[section]) is not None}
        if limits:
            values[section] = {"mode": "strict"} | limits if section == "fail_on" else limits
    named = (("history", history), ("branch", branch), ("name", proposal.contract))
    options = "".join(f" --{key} {shlex.quote(of)}" for key, of in named if of)
    check = f"Check with: rag-contract check{options} --baseline history:last-pass"
    lines = [*of_history.explained(proposal), *_stricter(values, config_file), visible(check), ""]
    return config_file, values, "\n".join(lines)


def _stricter(proposed: Values, config_file: ConfigFile) -> Iterator[str]:
    """Yield a line for each limit in the configuration that is stricter than the proposed one."""
    for gate in config_file.gates:
        section, _, key = gate.id.partition(".")
        of_section = proposed.get(section)
        limit = of_section.get(key) if isinstance(of_section, Mapping) else None
        if limit is not None and not gate.relative and gate.limit < float(limit):
            yield f"{gate.id} is {as_written(gate.limit)} in the configuration, which is stricter than {limit}"


def good_runs(inputs: Inputs, *, registry: Registry = BUILT_IN) -> Iterator[Evaluation]:
    """Yield the evaluation of each run file, without limits; prints the warnings at the end.

    Raises :class:`InputError` at the end, with the problems of all files.
    """
    files, wrong = existing_files(inputs.paths("run"))
    if not files:
        pipeline.load(inputs)  # without labels, no run is of use yet, and that is what to say
    if inputs.scores and len(files) > 1:
        raise click.UsageError("--scores is about one run; give one --run, or export the scores in the rows of each")
    problems, more = dict.fromkeys(map(str, wrong)), 0
    warnings: dict[str, None] = {}
    with progress_over([*list(inputs.golden) * len(files), *files]) as progress:
        measured = replace(inputs, decides=False, store=True, progress=progress)
        for file in files:
            try:
                outcome = pipeline.check(replace(measured, run=[file]), now=clock(), registry=registry)
            except InputError as error:
                problems |= dict.fromkeys(error.problems)
                warnings |= dict.fromkeys(error.warnings)
                more += error.more
                continue
            warnings |= dict.fromkeys(outcome.report.warnings)
            yield outcome.evaluation
    if problems:
        raise InputError(list(problems), more=more, warnings=list(warnings))
    warn(list(warnings))


def suggestions(evaluations: Sequence[Evaluation]) -> dict[Metric, Suggested]:
    """Return the suggested limits by metric; raises InputError if no query has relevant documents."""
    first = evaluations[0].contract
    columns: dict[Metric, tuple[list[list[float]], list[float]]] = {}
    for number, family in enumerate((first.ranking, *first.families)):
        rows = zip(*[evaluation.run.values(number, first.queries) for evaluation in evaluations], strict=True)
        measured = [
            (query.weight, [values or () for values in row])
            for query, row in zip(first.queries.values(), rows, strict=True)
            if all(row)
        ]
        weights = [weight for weight, _ in measured]
        for column, metric in enumerate(family.metrics if measured else ()):
            runs = [[row[run][column] for _, row in measured] for run in range(len(evaluations))]
            columns[metric] = runs, weights
    if not columns:
        raise InputError([f"{first.golden.files[0].path}: no golden query has relevant documents, so there is no mean"])
    limits = len(_limited(columns))
    return {metric: suggested(*measured, metric, limits=limits) for metric, measured in columns.items()}


def _limited(metrics: Iterable[Metric]) -> list[Metric]:
    """Return the metrics that get limits: those at the largest cut-off, and those without one."""
    metrics = list(metrics)
    largest = max((metric.k for metric in metrics if metric.k is not None), default=None)
    return [metric for metric in metrics if metric.suggested and metric.k in {None, largest}]


def render(
    suggestions: Suggestions,
    *,
    files: Sequence[str],
    judgments: Sequence[str] = (),
    config_file: ConfigFile | None = NO_CONFIG,
) -> str:
    """Render the table, what the limits promise, and a configuration to start from, or to add to the existing one.

    Without a configuration, it is not shown, because it is written.

    ``files`` are the run files, and ``judgments`` the judgments files, as they were named on the command line.
    """
    limited = {metric: suggestions[metric] for metric in _limited(suggestions)}
    parts = [_table(suggestions), _explained(limited, files, judgments)]
    if config_file is not None:
        parts.append(_config(_proposed(suggestions, config_file), config_file))
    return "\n\n".join("\n".join(part) for part in parts) + "\n"


def _table(suggestions: Suggestions) -> Iterator[str]:
    cells = [["", "mean", "from run to run", "other questions"]]
    for metric, proposal in suggestions.items():
        deviation = "unknown" if proposal.deviation is None else f"± {fixed(proposal.deviation, 4)}"
        bound = f"{as_written(proposal.bound)} or {'more' if metric.better == 'higher' else 'less'}"
        cells.append([metric.label, fixed(proposal.mean, 4), deviation, bound])
    yield from aligned(cells)


def _explained(limited: Suggestions, files: Sequence[str], judgments: Sequence[str]) -> Iterator[str]:
    """Yield what the limits promise, and what to store as the baseline for them."""
    first = next(iter(limited.values()), None)
    if first and first.runs == 1:
        yield "One run cannot show how much the retriever's own results vary. So the limits are for mode: significant,"
        yield "in which a change must also be shown to be real. If results vary, give three or more good runs."
        yield from _of_one_run(limited)
    elif first:
        if any(of.limit is not None for of in limited.values()):
            runs = f"With these {first.runs} runs as the baseline"
            yield f"{runs}, at most 1 in 20 equally good runs breaks any of the limits:"
        yield from _of_several(limited)
    yield from _of_bounds(limited)
    if judged := [metric.label for metric in limited if metric.task]:
        yield f"{' and '.join(judged)}: a limit counts only with a calibration (rag-contract judge calibrate)"
    named = [*(("--run", file) for file in files), *(("--judgments", file) for file in judgments)]
    store = " ".join(f"{option} {visible(shlex.quote(file))}" for option, file in named)
    yield f"Store the baseline: rag-contract baseline {store}"


def _of_one_run(limited: Suggestions) -> Iterator[str]:
    fewest = fewest_changed(ALPHA)
    for metric, proposal in limited.items():
        change, queries = _change(metric), count(proposal.queries, "query")
        if proposal.limit is None:
            yield f"{metric.label}: {queries} cannot carry a limit on a {change}; add queries"
        else:
            limit = f"{metric.label}: {change} of {proposal.limit}"
            yield f"{limit}, the loss of {fewest} of {queries}; a loss of fewer could be chance"


def _of_several(limited: Suggestions) -> Iterator[str]:
    for metric, proposal in limited.items():
        change = _change(metric)
        limit = f"{metric.label}: {change} of {proposal.limit}"
        if proposal.limit is None or proposal.detectable is None:
            of = f"{count(proposal.runs, 'run')} of {count(proposal.queries, 'query')}"
            yield f"{metric.label}: {of} cannot tell a {change} from chance; give more good runs, or add queries"
        elif proposal.deviation:
            yield f"{limit}; a real one of {round_up(proposal.detectable)} breaks it 4 times in 5"
        else:
            yield f"{limit}, the loss of one query, because these runs do not differ"


def _of_bounds(limited: Suggestions) -> Iterator[str]:
    for metric, proposal in limited.items():
        if not _is_limit(metric, proposal):
            queries = count(proposal.queries, "query")
            yield f"{metric.label}: {queries} cannot carry a {KINDS[metric.better]}; add queries"


def _config(proposed: Values, config_file: ConfigFile) -> Iterator[str]:
    """Yield the configuration to paste at the end of the existing one, with a comment on keys that exist there."""
    if there := [f"{name} ({where})" for name in proposed if (where := config_file.locations.of(name))]:
        yield f"# exists already, so change it there, or use --write: {', '.join(there)}"
    for name, value in proposed.items():
        if isinstance(value, str):
            yield f"{name}: {value}"
        else:
            yield f"{name}:"
            yield from (f"  {key}: {inner}" for key, inner in value.items())


def _proposed(suggestions: Suggestions, config_file: ConfigFile) -> Values:
    """Return the values of the configuration, as YAML, by key or by section and key."""
    limited = {metric: suggestions[metric] for metric in _limited(suggestions)}
    several = any(proposal.runs > 1 for proposal in suggestions.values())
    drops = {
        _change_key(metric): str(proposal.limit) for metric, proposal in limited.items() if proposal.limit is not None
    }
    values = _cutoff(suggestions, config_file)
    if drops:
        values["fail_on"] = {"mode": "strict" if several else "significant"} | drops
    for section, better in BOUNDS.items():
        if of_section := {_name(metric): str(proposal.bound) for metric, proposal in _of(limited, better)}:
            values[section] = of_section
    return values


def _cutoff(metrics: Iterable[Metric], config_file: ConfigFile) -> dict[str, str | Mapping[str, str]]:
    """Return the value of ``k``; nothing if the configuration has it, or no metric has a cut-off."""
    k = sorted({metric.k for metric in metrics if metric.k is not None}, reverse=True)
    has_k = not k or (config_file.locations.of("k") and config_file.config.cutoffs == tuple(k))
    return {} if has_k else {"k": str(k[0] if len(k) == 1 else list(k))}


def _change_key(metric: Metric) -> str:
    return f"{_name(metric).removesuffix('_at_k')}_{_change(metric)}_gt"


def write(proposed: Values, path: str) -> bool:
    """Show how the configuration changes, and write it, on a terminal once that is confirmed; return whether it was.

    Raises InputError if it is written in a way that cannot be edited.
    """
    with in_turn(path):
        data = Path(path).read_bytes() if Path(path).exists() else b""
        mark = UTF8_BOM if data.startswith(UTF8_BOM) else b""
        before = data[len(mark) :].decode()
        after = with_values(before, proposed)
        if after is None or not _is_changed_only_by(before, after, proposed):
            raise InputError([f"{path}: is written in a way that cannot be edited; paste what suggest prints"])
        lines = difflib.unified_diff(before.splitlines(), after.splitlines(), path, f"{path} (new)", lineterm="")
        say("".join(f"{line}\n" for line in lines) or f"{visible(path)} has these limits already\n")
        if before == after or (sys.stdin.isatty() and not click.confirm(f"Write {visible(path)}?")):
            return False
        write_files({path: mark + after.encode()}, before=partial(require_unchanged, path, digest_of(data)))
    return True


def _is_changed_only_by(before: str, after: str, proposed: Values) -> bool:
    """Return whether a configuration reads as before but for the proposed values."""
    old, new = (yaml_tree.load(text.encode()) for text in (before, after))
    expected = dict(old.value or {})
    for name, value in proposed.items():
        wanted = (
            yaml.safe_load(value) if isinstance(value, str) else {key: yaml.safe_load(of) for key, of in value.items()}
        )
        expected[name] = {**(expected.get(name) or {}), **wanted} if isinstance(wanted, dict) else wanted
    return not new.problems and new.value == expected


def _change(metric: Metric) -> str:
    return "drop" if metric.better == "higher" else "rise"


def _of(suggestions: Suggestions, better: Direction) -> list[tuple[Metric, Suggested]]:
    return [
        (metric, proposal)
        for metric, proposal in suggestions.items()
        if metric.better == better and _is_limit(metric, proposal)
    ]


def _is_limit(metric: Metric, proposal: Suggested) -> bool:
    """Return whether a run can miss the minimum, or the maximum."""
    return not every_run_keeps(KINDS[metric.better], proposal.bound, metric.scale)


def _name(metric: Metric) -> str:
    return (*metric.aliases, metric.key)[0]


def label_advice(evaluations: Sequence[Evaluation]) -> Iterator[str]:
    """Yield advice where known-good runs find some, but not all, relevant documents of a query in the top k."""
    contract = evaluations[0].contract
    if not enforced(contract.config, MustInclude):
        return
    by_default = contract.settings.includes_any
    several = [
        query
        for query in contract.queries.values()
        if len(query.relevant_doc_ids) > 1 and not query.wants_any(by_default)
    ]
    partly = [query for query in several if all(_finds_some(query, evaluation) for evaluation in evaluations)]
    if not partly:
        return
    ids = [shorten(visible(query.id), bounds.TERMINAL_QUESTION) for query in partly[: bounds.LISTED]]
    others = more(len(partly), len(ids), form=" and {}")
    runs = "this run" if len(evaluations) == 1 else "each of these runs"
    yield (
        f"must_include: of {count(len(several), 'query')} with several relevant documents, {runs} finds only some of "
        f"them for {len(partly):,}: {', '.join(ids)}{others}"
    )
    yield (
        'If one of them is enough for an answer, write "must_include_any": true into these golden rows, or '
        "`must_include: any` under per_query in the config for all."
    )
    if 2 * len(partly) > len(several):
        yield (
            "If the labels list all that is relevant, rather than what must be found, turn the rule off "
            "(per_query: enforce_must_include: false) and limit Recall instead."
        )


def _finds_some(query: GoldenQuery, evaluation: Evaluation) -> bool:
    """Return whether some, but not all, relevant documents are in the top k."""
    in_top = [rank is not None and rank <= evaluation.contract.k for rank in evaluation.run.scores[query.id].ranks]
    return any(in_top) and not all(in_top)
