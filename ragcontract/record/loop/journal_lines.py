"""The lines of a journal: what is recorded, the files that answers depend on, and every question that is done."""

from msgspec import UNSET, Raw, Struct, UnsetType

from ragcontract.record.sources import Source
from ragcontract.record.watching.recording_events import Failure

VERSION = 2
PREPARED = b'{"versions":'
USED = b'{"sources":'


class Header(Struct, frozen=True, kw_only=True):
    """What is recorded; rows of a journal that differs in any of it would not belong together."""

    target: str
    target_sha256: str
    git: str | None
    top: int
    repeats: int
    tool: str
    doc_id: str | None = None
    watch: str | None = None
    journal: int = VERSION


class Prepared(Struct, frozen=True, kw_only=True):
    """The versions that a system names before it is asked: another index behind the same target is another system."""

    versions: dict[str, str]


class Used(Struct, frozen=True, kw_only=True):
    """Files that the answers from here on may depend on; the last entry of a file counts."""

    sources: list[Source]


class Entry(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A question that is done: the row of the run, without versions, or the failure of the last attempt.

    ``partial`` says that the row has the retrieval of a question whose answer failed. ``sources`` is how many files
    the journal names before it.
    """

    query_id: str
    question_sha: str
    repeat: int
    attempts: int
    ms: float
    row: Raw | UnsetType = UNSET
    failure: Failure | None = None
    partial: bool = False
    sources: int = 0
