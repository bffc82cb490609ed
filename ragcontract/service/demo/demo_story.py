"""What happened in the projects of the demo: every run that was checked, as a pure function of the time.

The nights are numbered from the oldest. Whoever looks at the demo finds these events in it:

* Docs answers: a commit makes chunks smaller, and MRR@5 falls within its limits. Two weeks later, its minimum is
  raised, and the runs fail until that is waived.
* Support agent: since a Tuesday, a commit lets it refund without looking the order up, which breaks three queries.
* Shop chatbot: an answer about gifts is flaky.
* Product search: nothing.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

Row: TypeAlias = dict[str, Any]
NIGHTS, HOUR = 90, 3  # a run a night, at 03:00 UTC
EVERY_NIGHT = 30  # nights; before them, a run only if there was a new commit
SEED = 34
MONDAY, TUESDAY, SATURDAY, SUNDAY = 0, 1, 5, 6
SWAPPED, UNWANTED = 0.07, 0.015  # how often a rebuilt index swaps the first results, and the agent looks up too much
CHUNKS, RAISED_AFTER, WAIVED_AFTER = 60, 14, 16  # the night of smaller chunks at the earliest, and nights after it
WAIVED_DAYS = 21  # from now
PULL_REQUEST_DAYS = 7  # working days from a pull request to the next; every second one is blocked at first
RANKS = {  # of the documents that are ranked worse since chunks are smaller
    "remove_teammate": 2,
    "change_plan": 3,
    "refund": 2,
    "data_location": 2,
    "invoice_copy": 2,
    "restore_task": 2,
    "api_key": 3,
    "webhook_retry": 3,
}
NO_LOOKUP = {"refund_broken_mug", "refund_whole_order", "refund_late_delivery"}
FLAKY, FLAKY_NIGHTS = "gift_wrapping", {9, 10, 23, 31, 46, 47, 58, 66, 79, 84}
EVASIVE = "Let me check that for you. I will be back in a moment."
LOW, HIGH = "mrr_at_k: 0.60", "mrr_at_k: 0.80"
WAIVER = """
waivers:
  - gate: minimums.mrr_at_k
    reason: Smaller chunks halve the price of an answer. The reranker that makes up for them is being reviewed.
    owner: mira
    expires: {expires}
"""


class DemoProject(Struct, frozen=True, kw_only=True):
    """A project: its contract's name, its title, and the branches of its pull requests."""

    slug: str
    title: str
    first_pull_request: int
    branches: Sequence[str]
    versions: str = ""  # what its record.yml says of them

    @property
    def folder(self) -> Path:
        """Where its golden queries, its configuration and a good run are."""
        return Path(__file__).parent / self.slug

    @property
    def repository(self) -> str:
        return f"example/{self.slug}"


class DemoRun(Struct, frozen=True, kw_only=True):
    """A run that was checked: when, where, what the application returned, and the configuration of that day."""

    at: datetime
    number: int  # of the CI's run
    commits: Sequence[str]  # that the checked one contains, which is the first
    branch: str = "main"
    pull_request: int | None = None
    rows: Sequence[Row]
    config: str

    @property
    def event(self) -> str:
        return "schedule" if self.pull_request is None else "pull_request"


PROJECTS = (
    DemoProject(
        slug="docs-answers",
        title="Docs answers",
        versions="versions:\n  chunking_version: 512 tokens\n",
        first_pull_request=412,
        branches=[
            "cite-headings",
            "index-changelog",
            "new-embedding",
            "shorter-answers",
            "synonyms",
            "update-langchain",
        ],
    ),
    DemoProject(
        slug="support-agent",
        title="Support agent",
        versions='versions:\n  prompt_version: "14"\n',
        first_pull_request=187,
        branches=["ask-for-order", "gift-cards", "new-model", "polite-refusals", "ticket-topics", "tool-timeouts"],
    ),
    DemoProject(
        slug="shop-chatbot",
        title="Shop chatbot",
        first_pull_request=96,
        branches=["greeting", "invoice-faq", "iceland", "shorter-turns", "size-table", "update-prompt"],
    ),
    DemoProject(
        slug="product-search",
        title="Product search",
        first_pull_request=633,
        branches=["boost-brands", "facets", "new-analyzer", "plural-forms", "sort-by-stock", "spelling"],
    ),
)


class Calendar:
    """The nights until a time, and the commits of a project's main branch: a new one after each working day."""

    def __init__(self, slug: str, now: datetime) -> None:
        last = now.astimezone(UTC).replace(hour=HOUR, minute=0, second=0, microsecond=0)
        if last > now:
            last -= timedelta(days=1)
        self.now = now
        self.nights = [last - timedelta(days=NIGHTS - 1 - night) for night in range(NIGHTS)]
        self._slug = slug

    def has_new_commit(self, night: int) -> bool:
        """Return whether somebody worked on the day before."""
        return self.nights[night].weekday() not in {SUNDAY, MONDAY}

    def has_run(self, night: int) -> bool:
        """Return whether there was a run."""
        return self.has_new_commit(night) or night >= NIGHTS - EVERY_NIGHT

    def commits(self, night: int) -> list[str]:
        """Return the commits until a night, the newest first."""
        return [self.commit(f"main {number}") for number in range(night, -1, -1) if self.has_new_commit(number)] or [
            self.commit("main")
        ]

    def commit(self, name: str) -> str:
        """Return the id of a commit that is only known by a name."""
        return hashlib.sha1(f"{self._slug} {name}".encode(), usedforsecurity=False).hexdigest()

    @property
    def chunks(self) -> int:
        """The night from which on chunks are smaller."""
        return next(night for night in range(CHUNKS, NIGHTS) if self.has_new_commit(night))

    @property
    def lookup(self) -> int:
        """The night from which on the agent does not look orders up: the last Tuesday that is over for a day."""
        tuesdays = [night for night, at in enumerate(self.nights) if at.weekday() == TUESDAY]
        return [night for night in tuesdays if self.now - self.nights[night] >= timedelta(days=1)][-1]


def runs_of(project: DemoProject, now: datetime) -> Iterator[DemoRun]:
    """Yield all runs of a project until a time, the oldest first."""
    calendar, number = Calendar(project.slug, now), _Numbers(project.slug)
    requests = _PullRequests(project, calendar)
    for night, at in enumerate(calendar.nights):
        random = Random(f"{SEED} {project.slug} {night}")  # noqa: S311 (not for secrets)
        config, rows = _config(project, night, calendar), _rows(project, night, calendar, random)
        commits = calendar.commits(night)
        if calendar.has_run(night):
            yield DemoRun(at=at, number=number.next(), commits=commits, rows=rows, config=config)
        if night < NIGHTS - 1:
            for after, branch, pull_request, head, changed in requests.of_day(night, rows, random):
                yield DemoRun(
                    at=at + after,
                    number=number.next(),
                    commits=[head, *commits],
                    branch=branch,
                    pull_request=pull_request,
                    rows=changed,
                    config=config,
                )


class _Numbers:
    """Numbers the runs of a CI."""

    def __init__(self, slug: str) -> None:
        self._random = Random(f"{SEED} {slug}")  # noqa: S311 (not for secrets)
        self._last = 9_204_118_377

    def next(self) -> int:
        self._last += self._random.randint(20_000, 90_000)
        return self._last


class _PullRequests:
    """The runs of pull requests. Some are blocked at first, and repaired on the same day."""

    def __init__(self, project: DemoProject, calendar: Calendar) -> None:
        self._project, self._calendar = project, calendar
        self._next = project.first_pull_request
        self._opened_so_far = 0

    def of_day(
        self, night: int, rows: Sequence[Row], random: Random
    ) -> Iterator[tuple[timedelta, str, int, str, Sequence[Row]]]:
        """Yield what was checked on the day after a night: how long after it, the branch, its number, and its rows."""
        at, slug = self._calendar.nights[night], self._project.slug
        if slug == "docs-answers" and night == self._calendar.chunks - 1:
            yield timedelta(hours=11, minutes=22), "smaller-chunks", *self._opened("a"), _smaller_chunks(rows)
        elif slug == "support-agent" and night == NIGHTS - 2:
            looked_up = _rows(self._project, self._calendar.lookup - 1, self._calendar, random)
            yield timedelta(hours=12, minutes=8), "look-up-before-refund", *self._opened("a"), looked_up
        elif at.weekday() not in {SATURDAY, SUNDAY} and self._is_due(night):
            branch = random.choice(self._project.branches)
            after = timedelta(hours=random.randint(5, 10), minutes=random.randint(0, 59))
            opened = self._opened("a")
            if self._opened_so_far % 2:
                yield after, branch, *opened, _worse(rows, random)
                opened = opened[0], self._calendar.commit(f"{opened[0]} b")
                after += timedelta(hours=2, minutes=random.randint(0, 59))
            yield after, branch, *opened, rows

    def _is_due(self, night: int) -> bool:
        """Return whether a pull request is opened on a working day; projects have theirs on different days."""
        days = sum(at.weekday() not in {SATURDAY, SUNDAY} for at in self._calendar.nights[:night])
        return (days + self._project.first_pull_request) % PULL_REQUEST_DAYS == 0

    def _opened(self, name: str) -> tuple[int, str]:
        """Return the number of a new pull request, and its commit."""
        number, self._next = self._next, self._next + 3
        self._opened_so_far += 1
        return number, self._calendar.commit(f"{number} {name}")


def newest_config(project: DemoProject, now: datetime) -> str:
    """Return the configuration of the newest run."""
    return _config(project, NIGHTS - 1, Calendar(project.slug, now))


def _config(project: DemoProject, night: int, calendar: Calendar) -> str:
    text = (project.folder / "ragcontract.yml").read_text(encoding="utf-8")
    if project.slug != "docs-answers" or night < calendar.chunks + RAISED_AFTER:
        return text
    text = text.replace(LOW, HIGH)
    if night < calendar.chunks + WAIVED_AFTER:
        return text
    return text + WAIVER.format(expires=(calendar.now + timedelta(days=WAIVED_DAYS)).date())


def _rows(project: DemoProject, night: int, calendar: Calendar, random: Random) -> Sequence[Row]:
    """Return what an application returned in a night."""
    rows = [_varied(row, random) for row in _good_rows(project.folder)]
    change = _CHANGES.get(project.slug)
    return change(rows, night, calendar, random) if change else rows


@cache
def _good_rows(folder: Path) -> Sequence[Row]:
    return [msgspec.json.decode(line) for line in (folder / "run.jsonl").read_bytes().splitlines()]


def _varied(row: Row, random: Random) -> Row:
    """Return a row as another night has it, with other times and scores; the index was rebuilt."""
    results = list(row.get("results", ()))
    if random.random() < SWAPPED and results and row["query_id"] not in RANKS:
        first, second, *others = (result["doc_id"] for result in results)
        results = _ranked(results, [second, first, *others])
    varied = row | {"latency_ms": round(row["latency_ms"] * random.uniform(0.9, 1.12))}
    if results:
        varied["results"] = results
    if "scores" in row:
        varied["scores"] = {name: round(value - random.uniform(0, 0.04), 2) for name, value in row["scores"].items()}
    return varied


def _ranked(results: Sequence[Row], ids: Sequence[str]) -> list[Row]:
    """Return results with other documents in the same places."""
    return [result | {"doc_id": doc_id} for result, doc_id in zip(results, ids, strict=True)]


def _of_docs(rows: Sequence[Row], night: int, calendar: Calendar, _: Random) -> Sequence[Row]:
    if night >= calendar.chunks:
        return _smaller_chunks(rows)
    return [row | {"chunking_version": "512 tokens"} for row in rows]


def _smaller_chunks(rows: Sequence[Row]) -> Sequence[Row]:
    """Return rows whose documents are ranked worse."""
    changed = []
    for row in rows:
        results, rank = row["results"], RANKS.get(row["query_id"], 1)
        first, *others = (result["doc_id"] for result in results)
        if row["query_id"] in _SECOND:
            others[0], first = first, others[0]
        ids = [*others[: rank - 1], first, *others[rank - 1 :]]
        changed.append(row | {"results": _ranked(results, ids), "chunking_version": "128 tokens"})
    return changed


_SECOND = {"api_key", "webhook_retry"}  # whose document was at rank 2 before


def _of_agent(rows: Sequence[Row], night: int, calendar: Calendar, random: Random) -> Sequence[Row]:
    is_new = night >= calendar.lookup
    changed = []
    for row in rows:
        calls = row["tool_calls"]
        if is_new and row["query_id"] in NO_LOOKUP:
            calls = [call for call in calls if call["name"] != "get_order"]
        elif random.random() < UNWANTED:
            calls = [*calls, {"name": "search_help", "arguments": {"query": "orders"}}]
        changed.append(row | {"tool_calls": calls, "prompt_version": "15" if is_new else "14"})
    return changed


def _of_chatbot(rows: Sequence[Row], night: int, _: Calendar, __: Random) -> Sequence[Row]:
    if night not in FLAKY_NIGHTS:
        return rows
    return [_evasive(row) if row["query_id"] == FLAKY else row for row in rows]


def _evasive(row: Row) -> Row:
    """Return a conversation whose last answer says nothing."""
    *messages, last = row["messages"]
    return row | {"messages": [*messages, last | {"content": EVASIVE}]}


def _worse(rows: Sequence[Row], random: Random) -> Sequence[Row]:
    """Return what a pull request with a mistake returns: two queries are broken."""
    broken = random.sample([row["query_id"] for row in rows], 2)
    return [_broken(row) if row["query_id"] in broken else row for row in rows]


def _broken(row: Row) -> Row:
    if "messages" in row:
        return _evasive(row)
    if "results" in row:
        results = row["results"]
        ids = [result["doc_id"] for result in results]
        return row | {"results": _ranked(results, [*ids[4:], *ids[:4]])}
    return row | {"tool_calls": [], "response": "I have passed this on to a colleague."}


_CHANGES: Mapping[str, Callable[[Sequence[Row], int, Calendar, Random], Sequence[Row]]] = {
    "docs-answers": _of_docs,
    "support-agent": _of_agent,
    "shop-chatbot": _of_chatbot,
}
