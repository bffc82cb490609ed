"""``rag-contract claims``: splits references into claims, in the golden file."""

import gc
from typing import Any

import click

from ragcontract.cli.console import say, warn
from ragcontract.cli.judge_options import judge_from, judge_options, judging_settings, progress_shown, say_cost
from ragcontract.cli.options import configured, find_files, refuse_links, takes
from ragcontract.contract import defaults
from ragcontract.core import bounds
from ragcontract.core.errors import ExitCode, InputError
from ragcontract.core.numbers import count
from ragcontract.core.safe_text import shorten, visible
from ragcontract.evaluation.source import Inputs
from ragcontract.judge.claims_run import Splits, expected_splits, split_all, to_split
from ragcontract.labelling.labels import read_golden_rows
from ragcontract.net.pool import Stop


@click.command("claims")
@takes(
    click.option(
        "--golden",
        multiple=True,  # an unquoted glob must not silently mean its last file
        metavar="FILE",
        help=f"The golden file to write the claims into. [{defaults.GOLDEN}]",
    ),
    "config",
)
@judge_options(votes=False)
def command(*, inputs: Inputs, dry_run: bool, **values: Any) -> int:
    """Split the references of a golden file into claims.

    `judge` judges claims one by one. They are written as `reference_claims` into rows that have a `reference` and none
    yet; everything else in the file stays as it is. Read them, as any change to the contract: from then on, they are
    what must be found. To have a reference split again, remove its claims.

    Exits 0 if all references are split, 2 if not, 130 if it was interrupted, never 1.
    """
    gc.enable()  # other commands are short
    if len(inputs.golden) > 1:
        raise click.UsageError("--golden: claims are written to one golden file; name one")
    refuse_links({"golden": inputs.golden[0] if inputs.golden else defaults.GOLDEN})
    path = find_files(inputs).golden[0]
    settings = configured(inputs.config)
    options, endpoint = judge_from(values, settings.judge)
    rows, problems = read_golden_rows(path, level=settings.relevance_level, allow_fields=settings.allow_fields)
    problems.raise_if_any()
    warn(problems.warnings)
    queries = to_split(rows)
    if not queries:
        say(f"{visible(path)}: no reference without reference_claims\n")
        return ExitCode.PASS
    judging = judging_settings(options, endpoint, path)
    if dry_run:
        expected = expected_splits(queries, judging)
        tokens = f"about {expected.tokens_in:,} tokens in, at most {expected.most_out:,} out"
        say(f"{count(len(queries), 'reference')} to split: {count(expected.calls, 'call')}, {tokens}\n")
        return ExitCode.PASS
    with progress_shown() as watch:
        splits = split_all(rows, queries, judging, stop=Stop(), watch=watch)
    return _finished(splits, path)


def _finished(splits: Splits, path: str) -> int:
    """Print how it ended; raises InputError if a reference is not split, or KeyboardInterrupt."""
    if splits.spent.calls or splits.ok:
        say_cost(splits.spent)
    claims = sum(len(split.claims) for split in splits.ok.values())
    if splits.ok:
        say(f"wrote {count(claims, 'claim')} of {count(len(splits.ok), 'reference')} into {visible(path)}; read them\n")
    if splits.interrupted:
        raise KeyboardInterrupt
    if lacking := splits.queries - len(splits.ok):
        problems = [f"{path}: {count(lacking, 'reference')} not split; the same command tries again"]
        if splits.over is not None:
            problems.insert(0, f"{splits.over.kind}: {splits.over}")  # what there is to do about it
        else:
            failed = [(name, split) for name, split in splits.by_query.items() if split.status != "ok"][: bounds.NAMES]
            problems += [
                f"query {shorten(name, bounds.NAME)!r}: {split.status}: {split.reason}" for name, split in failed
            ]
        raise InputError(problems)
    return ExitCode.PASS
