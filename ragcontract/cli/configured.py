"""Reads the configuration for commands that need its settings, and no limits or rules."""

from ragcontract.built_in import BUILT_IN
from ragcontract.contract.config import Config
from ragcontract.contract.config_file import read_config
from ragcontract.contract.defaults import find_inputs


def configured(config: str | None) -> Config:
    """Return a configuration, or that of the default file, if it exists; raises InputError."""
    read = read_config(find_inputs(golden=(), run=(), config=config).config, BUILT_IN)
    read.problems.raise_if_any()
    return read.config
