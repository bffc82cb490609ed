"""``rag-contract diff``: how ranks changed since the baseline."""

from typing import Any

import click

from ragcontract.cli.console import say
from ragcontract.cli.options import BASELINE, CONFIG, GOLDEN, REPEATS, RUN, K, compare, find_paths
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
def command(k: int | None, **files: Any) -> int:
    """Print how ranks changed since the baseline.

    Lists the worst changes first, then queries that improved, are new, have another question or are gone. Gives no
    verdict.
    """
    paths = find_paths(**files)
    if paths.baseline is None:
        raise click.UsageError(f"there is nothing to compare with: give --baseline, or have {defaults.BASELINE} here")
    say(terminal.diff_text(compare(paths, k)))
    return ExitCode.PASS
