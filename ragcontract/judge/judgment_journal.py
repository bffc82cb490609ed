"""The journal of a judging: keeps every reply and every judgment at once, so that nothing is asked twice.

It is beside the judgments file as ``.<file>.journal``, as lines of JSON. A case that was under way makes the same asks
again, up to the reply that is missing, so no reply is lost.

A journal is in the workspace, which a pull request can fill. A journal of somebody else could have replies that no
model gave, and could reveal what is random in later calls. So every line is signed with a secret key of this user and
machine, which is kept elsewhere. A runner that is new for each job has a new key.
"""

import hashlib
import hmac
import json
import os
import random
import secrets
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ragcontract.core.errors import OutputError
from ragcontract.judge.interface import Ask, Model, NoReply, Reply
from ragcontract.judge.model_calls import Spending
from ragcontract.judgments.judgments_file import Judgment
from ragcontract.net.journal import Lines, opened

SIZE = 32  # bytes
VERSION = 1


class _Header(Struct, frozen=True, kw_only=True, tag="journal", tag_field="line"):
    version: int = VERSION
    salt: str
    refresh: bool
    proof: str


class _Replied(Struct, frozen=True, kw_only=True, tag="reply", tag_field="line"):
    ask: str
    reply: Reply


class _Judged(Struct, frozen=True, kw_only=True, tag="judgments", tag_field="line"):
    judgments: list[Judgment]


_Line = _Replied | _Judged


class JudgmentJournal:
    """The replies and judgments so far. Threads share it; close it at the end."""

    def __init__(self, lines: Lines, *, key: bytes, refresh: bool) -> None:
        """Use the lines of an open file, as :func:`open_journal` does.

        A journal that was not made with this ``key`` is discarded. With ``refresh``, so is that of a judging without
        ``refresh``, which may have reused old judgments.
        """
        self._lines = lines
        self.judgments: list[Judgment] = []
        self._replies: dict[str, Reply] = {}
        self._key = key
        following = lines.following()
        header = self._header(next(following, (0, b""))[1], refresh=refresh)
        is_new = header is None
        if header is None:
            header = _Header(salt=secrets.token_hex(16), refresh=refresh, proof="")
            header = replace(header, proof=_proof(key, header))
        self._salt, self._seed = header.salt, _keyed(key, f"dice {header.salt}")
        if is_new:
            lines.cut(0)
            lines.append(msgspec.json.encode(header) + b"\n")
            self._begins = lines.end
        else:
            self._begins = lines.end
            self._read(following)
            lines.cut(lines.end)

    def _header(self, line: bytes, *, refresh: bool) -> _Header | None:
        """Return the first line; None if the journal does not count."""
        try:
            header = msgspec.json.decode(line, type=_Header)
        except (msgspec.DecodeError, UnicodeError):
            return None
        if header.version != VERSION or (refresh and not header.refresh):
            return None
        return header if hmac.compare_digest(header.proof.encode(), _proof(self._key, header).encode()) else None

    def _read(self, following: Iterator[tuple[int, bytes]]) -> None:
        """Read the other lines, up to the first one that somebody else wrote."""
        decode = msgspec.json.Decoder(_Line).decode
        for offset, line in following:
            data, _, seal = line[:-1].rpartition(b"\t")
            try:
                made = decode(data) if hmac.compare_digest(seal, self._seal(data)) else None
            except (msgspec.DecodeError, UnicodeError):
                made = None
            match made:
                case _Replied(ask=ask, reply=reply):
                    self._replies[ask] = reply
                case _Judged(judgments=judgments):
                    self.judgments += judgments
                case None:
                    self._lines.end = offset
                    return

    def _seal(self, data: bytes) -> bytes:
        """Return the signature of a line. The first line alone proves nothing, because others can copy it."""
        return hmac.new(self._key, f"line {self._salt} ".encode() + data, "sha256").hexdigest().encode()

    def dice(self, *case: str) -> random.Random:
        """Return dice for a case, which are the same when an earlier judging of it is continued."""
        return random.Random("\n".join([self._seed, *case]))  # noqa: S311 (its seed is a secret)

    def reply_to(self, asked: str) -> Reply | None:
        return self._replies.get(asked)

    def add_reply(self, asked: str, reply: Reply) -> None:
        self._append(_Replied(ask=asked, reply=reply))

    def add(self, judgments: list[Judgment]) -> None:
        self._append(_Judged(judgments=judgments))

    def _append(self, line: _Line) -> None:
        data = msgspec.json.encode(line)
        self._lines.append(data + b"\t" + self._seal(data) + b"\n")

    def close(self, *, remove: bool) -> None:
        """Close the file; delete it if it is empty, or with ``remove``."""
        self._lines.close(remove=remove or self._lines.end == self._begins)


def open_journal(path: Path, *, key: bytes, refresh: bool, option: str = "") -> JudgmentJournal:
    """Open or create the journal at ``path``; raise InputError if another judging has it open, or OutputError.

    ``option`` is the option of the command with which users can name another file, with another journal.
    """
    lines = opened(path, "judging", option=option)
    try:
        return JudgmentJournal(lines, key=key, refresh=refresh)
    except OutputError:  # not even its first line could be written
        lines.close(remove=True)
        raise


def path_beside(path: Path) -> Path:
    """Return the path of the journal of a judgments file."""
    return path.with_name(f".{path.name}.journal")


def journal_key(environ: Mapping[str, str]) -> bytes:
    """Return the key, which is made once.

    If it cannot be stored, it is a new one each time. A judging that did not end cannot be continued then.
    """
    made = secrets.token_bytes(SIZE)
    with suppress(OSError, RuntimeError):  # there is no home folder, or it cannot be written
        path = _folder(environ) / "rag-contract" / "judge.key"
        path.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            # Written under another name first, so that no other process reads a part of it.
            new = path.with_name(f"{path.name}.{os.getpid()}-{secrets.token_hex(4)}")
            descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            try:
                with open(descriptor, "wb") as file:  # noqa: PTH123
                    file.write(made)
                os.link(new, path)
            finally:
                new.unlink()
        stored = path.read_bytes()
        if len(stored) == SIZE and _is_private(path):
            return stored
    return made


class RememberingModel:
    """A model that is asked only if the journal has no reply, and no more once a failure is final. Threads share it."""

    def __init__(self, model: Model, journal: JudgmentJournal, spending: Spending) -> None:
        self.name, self.host = model.name, model.host
        self._model = model
        self._journal = journal
        self._spending = spending

    def ask(self, ask: Ask) -> Reply:
        """Return the reply, after adding it to the journal; raise NoReply."""
        asked = digest_of(self.name, self.host, ask)
        reply = self._journal.reply_to(asked)
        if reply is None:
            try:
                reply = self._model.ask(ask)
            except NoReply as error:
                if error.final:
                    self._spending.stop(error)
                raise
            self._journal.add_reply(asked, reply)
        return reply


def digest_of(model: str, host: str, ask: Ask) -> str:
    """Return the key of a reply in the journal."""
    # All that is not ASCII is escaped, lone surrogates as well.
    whole = json.dumps([model, host, msgspec.structs.asdict(ask)], sort_keys=True)
    return hashlib.sha256(whole.encode()).hexdigest()


def _is_private(path: Path) -> bool:
    """Return whether only this user can read a key. Git checks out no file like that, so a key of a checkout fails."""
    status = path.lstat()
    if not hasattr(os, "geteuid"):  # Windows
        return True
    return stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid() and not stat.S_IMODE(status.st_mode) & 0o077


def _folder(environ: Mapping[str, str]) -> Path:
    """Return the folder for the state of programs, as the XDG Base Directory Specification defines it."""
    folder = environ.get("XDG_STATE_HOME", "")
    return Path(folder) if folder.startswith("/") else Path.home() / ".local" / "state"


def _proof(key: bytes, header: _Header) -> str:
    return _keyed(key, f"journal {header.version} {header.salt} {header.refresh}")


def _keyed(key: bytes, text: str) -> str:
    return hmac.new(key, text.encode(), "sha256").hexdigest()
