"""What a project wants of its interactions: what is redacted, flagged and sampled, and which questions are golden.

Thousands of interactions come in a second, so all of it is kept for a moment. Files are only read when they changed.
"""

import hashlib
import hmac
import logging
import math
import os
import threading
from collections.abc import Collection, Mapping
from functools import lru_cache
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace
from sqlalchemy import Connection, select

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.golden import GoldenQuery
from ragcontract.service.database import BusyError, Database, LookedUp, seconds, storable
from ragcontract.service.known_contract import contract_digest, contract_of, golden_of
from ragcontract.service.mounted import FILE, ProjectFile, project_in
from ragcontract.service.production.interactions import asked_texts, question_digest
from ragcontract.service.redaction import Redactor, redactor
from ragcontract.service.tables import daily, projects

P95 = "latency_p95"  # the monitor that tells what is slow
log = logging.getLogger(__name__)
Signature = tuple[int, int, int]


class ProjectSettings(Struct, frozen=True, kw_only=True):
    """What is known of a project when its interactions come."""

    project: int  # the id
    slug: str
    secret: str
    file: ProjectFile = ProjectFile()
    golden: frozenset[str] = frozenset()  # digests of the questions of the golden set
    p95: Mapping[int, float] = {}  # of the latencies in milliseconds, by day

    @property
    def redactor(self) -> Redactor:
        """What takes out what the project names."""
        return redactor(self.file.redact)

    def short_text(self, text: str) -> str:
        """Return a text as it may be stored that is likely to come again, such as the id of a document."""
        return _redacted(self.file.redact, text)

    def user_digest(self, user: str) -> str:
        """Return what is stored of a user: without the project's secret, nobody can tell from a name whether it is."""
        return self.digest(user.encode("utf-8", "surrogatepass"))

    def digest(self, data: bytes) -> str:
        """Return the HMAC of something with the project's secret."""
        code = _code(self.secret).copy()
        code.update(data)
        return code.hexdigest()


@lru_cache(maxsize=1_000)
def _code(secret: str) -> "hmac.HMAC":
    return hmac.new(secret.encode(), digestmod=hashlib.sha256)


@lru_cache(maxsize=20_000)
def _redacted(names: tuple[str, ...], text: str) -> str:
    return redactor(names).text(text)


class _Known(Struct, kw_only=True):
    """Settings, and what they were read from."""

    settings: ProjectSettings
    signature: Signature | None
    contract: str | None
    read: LookedUp = field(default_factory=LookedUp)
    golden_at: float


def golden_digests(queries: Collection[GoldenQuery], redact: Redactor) -> frozenset[str]:
    """Return the digests of golden questions, without what is redacted of others."""
    return frozenset(question_digest(redact.text(text)) for query in queries for text in asked_texts(query))


class SettingsOfProjects:
    """The settings of all projects, as they are read when they are needed."""

    def __init__(self, database: Database, folder: Path | None) -> None:
        """``folder`` has the mounted projects, if there are any."""
        self._database, self._folder = database, folder
        self._known: dict[str, _Known] = {}
        self._reading = threading.Lock()

    def forget(self) -> None:
        """Look everything up again."""
        self._known.clear()

    def fresh(self, slug: str) -> ProjectSettings | None:
        """Return the settings of a project if they were read a moment ago."""
        known = self._known.get(slug)
        return known.settings if known and known.read.is_known(seconds(), bounds.SETTINGS_SECONDS) else None

    def of(self, slug: str) -> ProjectSettings | None:
        """Return the settings of a project; None if there is no such project.

        Raises BusyError if its project.yml cannot be read, and was not read before: nothing is stored that it may want
        to have redacted.
        """
        with self._reading:
            known = self._known.get(slug)
            if known and seconds() - known.read.at <= bounds.SETTINGS_SECONDS:
                return known.settings
            with self._database.read() as connection:
                return self._read(connection, slug)

    def _read(self, connection: Connection, slug: str) -> ProjectSettings | None:
        columns = projects.c.id, projects.c.secret, projects.c.keep_days
        row = connection.execute(select(*columns).where(projects.c.slug == storable(slug))).one_or_none()
        known = self._known.get(slug)
        if row is None:
            self._known.pop(slug, None)
            return None
        if known is None or known.settings.project != row.id:
            settings = ProjectSettings(project=row.id, slug=slug, secret=row.secret)
            known = _Known(settings=settings, signature=None, contract=None, golden_at=-math.inf)
        self._look_at_file(known, row.keep_days)
        now = seconds()
        if now - known.golden_at > bounds.GOLDEN_SECONDS:
            self._look_at_contract(connection, known)
            known.golden_at = now
        known.read.at = now
        self._known.pop(slug, None)
        while len(self._known) >= bounds.MOUNTED_PROJECTS:
            self._known.pop(next(iter(self._known)), None)
        self._known[slug] = known
        return known.settings

    def _look_at_file(self, known: _Known, keep_days: int | None) -> None:
        slug = known.settings.slug
        signature = None if self._folder is None else _signature(self._folder / slug / FILE)
        if signature is not None and signature == known.signature:
            return
        try:
            mounted = None if self._folder is None else project_in(self._folder, slug)
        except InputError as error:
            if known.signature is None:
                raise BusyError(f"the project's {FILE} cannot be read: {error.problems[0]}") from error
            log.warning("%s of %s cannot be read, so that the one before it counts", FILE, slug)
            return
        if mounted is None:
            file = ProjectFile() if keep_days is None else ProjectFile(keep_days=keep_days)
        else:
            file = mounted.file
        if file.redact != known.settings.file.redact:
            known.contract, known.golden_at = None, -math.inf  # whose questions are compared redacted
        known.signature = signature
        known.settings = replace(known.settings, file=file)

    def _look_at_contract(self, connection: Connection, known: _Known) -> None:
        number = known.settings.project
        digest = contract_digest(connection, number, self._folder)
        if digest != known.contract:
            queries = golden_of(contract_of(connection, number, self._folder)).values()
            known.settings = replace(known.settings, golden=golden_digests(queries, known.settings.redactor))
            known.contract = digest
        of_days = select(daily.c.day, daily.c.value).where(
            daily.c.project_id == number, daily.c.monitor == P95, daily.c.value.is_not(None)
        )
        newest = of_days.order_by(daily.c.day.desc()).limit(bounds.MEASURED_DAYS)
        known.settings = replace(known.settings, p95=dict(connection.execute(newest).all()))


def _signature(path: Path) -> Signature | None:
    """Return what changes when a file does; None if there is none."""
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
