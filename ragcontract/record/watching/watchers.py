"""Those who watch a recording, as the command line names them."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager

from msgspec import Struct

from ragcontract.files.anchored_path import AnchoredPath
from ragcontract.files.writing import write_files
from ragcontract.http.secrets import Secrets
from ragcontract.record.git_commit import Commit
from ragcontract.record.target import Target
from ragcontract.record.watching.details import Details
from ragcontract.record.watching.progress import progress_shown
from ragcontract.record.watching.recording_events import End, Event, Watch, to_all
from ragcontract.record.watching.stream_out import EventStream, Format


class WatchOptions(Struct, frozen=True, kw_only=True):
    """Where what happens is shown; None for nowhere. ``every`` is in seconds, 0 for no progress."""

    every: float
    stream: AnchoredPath | None = None
    form: Format = "jsonl"
    answer_chars: int = 0
    details: AnchoredPath | None = None


@contextmanager
def watchers(
    watched: WatchOptions, target: Target, commit: Commit | None, secrets: Secrets, warn: Callable[[str], object]
) -> Iterator[Watch]:
    """Open what watches, and close it at the end; the details are written at the end of the recording."""
    with ExitStack() as stack:
        every: list[Watch] = []
        if (progress := progress_shown(watched.every)) is not None:
            every.append(stack.enter_context(closing(progress)))
        if watched.stream is not None:
            stream = EventStream(
                watched.stream, watched.form, answer_chars=watched.answer_chars, secrets=secrets, warn=warn
            )
            every.append(stack.enter_context(closing(stream)))
        if watched.details is not None:
            details = Details(target, secrets=secrets, commit=commit)
            every.append(_writing(stack.enter_context(closing(details)), watched.details))
        yield to_all(every)


def _writing(details: Details, path: AnchoredPath) -> Watch:
    def watch(event: Event) -> None:
        details(event)
        if isinstance(event, End):
            write_files({path: details.document()})

    return watch
