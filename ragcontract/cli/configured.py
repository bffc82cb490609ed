"""Reads the configuration for commands that need its settings, and no limits or rules."""

from ragcontract.built_in import BUILT_IN
from ragcontract.cli.console import warn
from ragcontract.cli.options import refuse_links_away
from ragcontract.contract.config import Config
from ragcontract.contract.config_file import read_config
from ragcontract.contract.defaults import find_inputs


def configured(config: str | None) -> Config:
    """Return a configuration, or that of the default file, if it exists; raises InputError."""
    paths = find_inputs(golden=(), run=(), config=config)
    refuse_links_away({"--config": None if config else paths.config})
    read = read_config(paths.config, BUILT_IN, others=paths.other_configs)
    read.problems.raise_if_any()
    warn(read.problems.warnings)
    return read.config
