"""Commands that a check does not need, each loaded when it is called: see ``LATER`` in ``ragcontract.cli``."""
