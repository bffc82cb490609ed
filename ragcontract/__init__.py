"""A contract for retrieval: which documents must be found for which question.

The exports are imported lazily, because a check on the command line needs none of them.
"""

# Not imported from typing: while this module runs, `python -m ragcontract` still has the working folder on its path,
# and a typing.py there would shadow the standard library's. For the same reason nothing else is imported here.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from ragcontract.api import ContractBroken, Report, check, load_golden, load_run
    from ragcontract.core.errors import InputError, OutputError
    from ragcontract.core.golden import GoldenQuery
    from ragcontract.core.version import __version__ as __version__
    from ragcontract.judge.recall_of_sample import Judge, JudgedRecall
    from ragcontract.recall_functions import (
        acontext_recall,
        acontext_recall_ids,
        acontext_recall_text,
        context_recall,
        context_recall_ids,
        context_recall_text,
    )
    from ragcontract.record.interface import CallFailed, Context, Response
    from ragcontract.record.recording import Recording, record_run
    from ragcontract.runs.run_writer import RunWriter

__all__ = [
    "CallFailed",
    "Context",
    "ContractBroken",
    "GoldenQuery",
    "InputError",
    "Judge",
    "JudgedRecall",
    "OutputError",
    "Recording",
    "Report",
    "Response",
    "RunWriter",
    "acontext_recall",
    "acontext_recall_ids",
    "acontext_recall_text",
    "check",
    "context_recall",
    "context_recall_ids",
    "context_recall_text",
    "load_golden",
    "load_run",
    "record_run",
]

_HOMES = {
    "__version__": "ragcontract.core.version",
    "CallFailed": "ragcontract.record.interface",
    "Context": "ragcontract.record.interface",
    "ContractBroken": "ragcontract.api",
    "GoldenQuery": "ragcontract.core.golden",
    "InputError": "ragcontract.core.errors",
    "Judge": "ragcontract.judge.recall_of_sample",
    "JudgedRecall": "ragcontract.judge.recall_of_sample",
    "OutputError": "ragcontract.core.errors",
    "Recording": "ragcontract.record.recording",
    "Report": "ragcontract.api",
    "Response": "ragcontract.record.interface",
    "RunWriter": "ragcontract.runs.run_writer",
    "acontext_recall": "ragcontract.recall_functions",
    "acontext_recall_ids": "ragcontract.recall_functions",
    "acontext_recall_text": "ragcontract.recall_functions",
    "check": "ragcontract.api",
    "context_recall": "ragcontract.recall_functions",
    "context_recall_ids": "ragcontract.recall_functions",
    "context_recall_text": "ragcontract.recall_functions",
    "load_golden": "ragcontract.api",
    "load_run": "ragcontract.api",
    "record_run": "ragcontract.record.recording",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
