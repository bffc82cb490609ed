"""The process of a project: ``PYTHON -m ragcontract.service.playground.target_process RECORD_YML [SECRET…]``.

It runs in the project's own Python, which has rag-contract and the application, but nothing else that the service
needs. The arguments are the target file and the names of the variables that it may use as secrets. It speaks as
:mod:`~ragcontract.record.adapters.isolated_child` does.
"""

import os
import sys
from collections.abc import Sequence

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.net.secrets import of_environment, wrong_names
from ragcontract.record.adapters.isolated_child import answer_lines, own_streams
from ragcontract.record.interface import Surroundings, System
from ragcontract.record.target import read_target


def system_of(path: str, names: Sequence[str]) -> System:
    """Return the system of a target file that may use some secrets; raises InputError."""
    if problems := wrong_names(names, os.environ):
        raise InputError(problems)
    secrets = of_environment(names, os.environ)
    return read_target(path, Surroundings(secrets=secrets, seconds=bounds.PLAYGROUND_SECONDS)).system


if __name__ == "__main__":
    answer_lines(lambda: system_of(sys.argv[1], sys.argv[2:]), *own_streams())
