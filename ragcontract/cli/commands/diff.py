"""``rag-contract diff``: prints how ranks changed since the baseline."""

from collections.abc import Sequence

import click

from ragcontract.cli.console import say
from ragcontract.cli.options import BASELINE, CONFIG, GOLDEN, REPEATS, RUN, K, find_paths, measure
from ragcontract.contract import defaults
from ragcontract.core.errors import ExitCode
from ragcontract.reports import terminal


@click.command("diff")
@GOLDEN
@RUN
@BASELINE
@CONFIG
@K
@REPEATS
def command(
    *,
    golden: Sequence[str],
    run: Sequence[str],
    baseline: Sequence[str],
    config: str | None,
    k: int | None,
    repeats: bool,
) -> int:
    """Print how ranks changed since the baseline.

    Lists the worst changes first, then queries that improved, are new, have another question or are gone. Gives no
    verdict.
    """
    paths = find_paths(golden, run, config, baseline)
    if paths.baseline is None:
        raise click.UsageError(f"there is nothing to compare with: give --baseline, or have {defaults.BASELINE} here")
    say(terminal.diff_text(measure(paths, k, repeats=repeats)))
    return ExitCode.PASS
