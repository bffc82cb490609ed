"""What to record and how, as a user says it."""

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from ragcontract.core.version import __version__
from ragcontract.files.anchored_path import AnchoredPath
from ragcontract.record.beginning import Beginning
from ragcontract.record.loop.journal_lines import Header
from ragcontract.record.loop.loop import CallSettings
from ragcontract.record.target import Target

OnFailure = Literal["stop", "leave-out", "keep-retrieval"]


class RecordSettings(Struct, frozen=True, kw_only=True):
    """What to record, and how; ``versions`` win over all that is found."""

    beginning: Beginning
    calls: CallSettings
    repeats: int = 1
    warmup: int = 0
    on_failure: OnFailure = "stop"
    versions: Mapping[str, str] = {}
    doc_id: str | None = None
    fresh: bool = False

    @property
    def out(self) -> AnchoredPath | None:
        """Where the run is written; None for a run in memory."""
        return self.beginning.out

    @property
    def journal(self) -> AnchoredPath | None:
        """Where the journal is; None for a run in memory."""
        return self.beginning.journal

    @property
    def commit(self) -> str | None:
        """The commit that is recorded, as a version."""
        return None if self.beginning.commit is None else str(self.beginning.commit)

    @property
    def partial(self) -> bool:
        """Whether rows are wanted in which only the answer failed."""
        return self.on_failure == "keep-retrieval"

    def header(self, target: Target) -> Header:
        """Return what the journal begins with."""
        return Header(
            target=target.name,
            target_sha256=target.sha256,
            git=self.commit,
            top=self.calls.top,
            repeats=self.repeats,
            tool=__version__,
            doc_id=self.doc_id,
            watch=" ".join(self.beginning.watch) or None,
        )
