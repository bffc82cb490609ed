"""The commands, one module each; ``COMMANDS`` in :mod:`ragcontract.cli.main` lists them."""
