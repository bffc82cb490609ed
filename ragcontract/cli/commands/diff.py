"""``rag-contract diff``: how ranks moved since the baseline."""

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
    """Print how ranks moved since the baseline.

    Worst first, then what improved, is new, has another question or is gone. Judges nothing.
    """
    paths = find_paths(**files)
    if paths.baseline is None:
        raise click.UsageError(f"there is nothing to compare with: give --baseline, or have {defaults.BASELINE} here")
    say(terminal.diff_text(compare(paths, k)))
    return ExitCode.PASS
