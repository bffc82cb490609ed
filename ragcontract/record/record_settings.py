"""What to record and how, as a user says it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct

from ragcontract.core.version import __version__
from ragcontract.record.golden_questions import Selection
from ragcontract.record.loop.journal import Header, path_beside
from ragcontract.record.loop.loop import CallSettings
from ragcontract.record.target import Target

OnFailure = Literal["stop", "leave-out", "keep-retrieval"]


class RecordSettings(Struct, frozen=True, kw_only=True):
    """What to record, and how; ``out`` is None for a run in memory, ``versions`` win over all that is found.

    The commit is that of ``folder``.
    """

    golden: Sequence[str]
    calls: CallSettings
    out: str | None = None
    selection: Selection = Selection()
    repeats: int = 1
    warmup: int = 0
    on_failure: OnFailure = "stop"
    versions: Mapping[str, str] = {}
    doc_id: str | None = None
    fresh: bool = False
    folder: Path = Path()

    @property
    def journal(self) -> Path | None:
        """Where the journal is; None for a run in memory."""
        return None if self.out is None else path_beside(Path(self.out))

    @property
    def partial(self) -> bool:
        """Whether rows are wanted in which only the answer failed."""
        return self.on_failure == "keep-retrieval"

    def header(self, target: Target, commit: str | None) -> Header:
        """Return what the journal begins with."""
        return Header(
            target=target.name,
            target_sha256=target.sha256,
            git=commit,
            top=self.calls.top,
            repeats=self.repeats,
            tool=__version__,
            doc_id=self.doc_id,
        )
