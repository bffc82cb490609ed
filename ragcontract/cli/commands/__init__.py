"""The commands, each a module that is loaded when it is called: see ``COMMANDS`` in :mod:`ragcontract.cli.main`."""
