"""``rag-contract history``: records checks, shows them, and says whether a commit passed."""

import os
from collections.abc import Sequence
from pathlib import Path

import click

from ragcontract.cli.commands.check import load_plugins
from ragcontract.cli.console import say, say_json, warn
from ragcontract.cli.history_options import branch_option, contract_option, history_option
from ragcontract.cli.options import clock, refuse_outputs
from ragcontract.core import bounds
from ragcontract.core.errors import ExitCode
from ragcontract.core.numbers import count
from ragcontract.core.safe_text import visible
from ragcontract.files.writing import goes_to_stdout, write_files
from ragcontract.history import listing
from ragcontract.history.copying import copy, prune
from ragcontract.history.from_report import entry_of_report
from ragcontract.history.interface import Store
from ragcontract.history.origin import origin_of
from ragcontract.history.past import Past, document_of, only_contract
from ragcontract.history.release_gate import gate
from ragcontract.history.stores import open_store
from ragcontract.report import terminal

LAST, KEPT = 20, 200
