"""What all formats have in common: questions with graded documents, and rankings. Every conversion goes through it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Generic, Literal, TypeVar

from msgspec import Struct

from ragcontract.core.numbers import count
from ragcontract.core.text import shorten
from ragcontract.files.problems import Collector

Value = TypeVar("Value")
Part = Literal["golden", "run"]
Files = Mapping[str, Sequence[str]]
NAMED = 3
LONGEST_NAME = 40
BOM = "\ufeff"  # taken off at the start of every line that is read


class Query(Struct, frozen=True, kw_only=True, gc=False):
    """A question, its documents' grades (0 or more; relevant from 1 on) and where it stands, as ``qrels.txt:3``."""

    id: str
    text: str
    grades: dict[str, float]
    location: str


class Retrieved(Struct, frozen=True, kw_only=True, gc=False):
    """One retrieved document."""

    doc_id: str
    score: float | None = None


class Ranking(Struct, frozen=True, kw_only=True, gc=False):
    """What was retrieved for a query, best first, and where it stands; a document may be in it again."""

    query_id: str
    results: list[Retrieved]
    location: str


class Collection(Struct, frozen=True, kw_only=True):
    """What the files of one format come to, by query id in the files' order; None for a part not asked for."""

    queries: dict[str, Query] | None = None
    rankings: dict[str, Ranking] | None = None


class First:
    """Refuses what stands in the files a second time."""

    def __init__(self, problems: Collector) -> None:
        """Start with nothing seen."""
        self._problems = problems
        self._find_paths: dict[object, str] = {}

    def is_new(self, key: object, location: str, field: str, shown: str) -> bool:
        """Say whether ``key`` is met for the first time; if not, that is a problem, which names where it was."""
        first = self._find_paths.setdefault(key, location)
        if first is location:
            return True
        self._problems.problem(f"{location}: {field}", f"duplicate {shown}, first defined at {first}")
        return False


class Pairs(Generic[Value]):
    """Collects what lines say of a query and a document: the values by both, and where each query is first."""

    def __init__(self, field: str, problems: Collector) -> None:
        """Start with none; ``field`` is what the format calls the document, for a pair that stands there again."""
        self.values: dict[str, dict[str, Value]] = {}
        self.places: dict[str, str] = {}
        self._field = field
        self._first = First(problems)

    def add(self, query_id: str, doc_id: str, value: Value, location: str) -> None:
        """Take a pair's value; a pair that is there already keeps its first, and is a problem."""
        if self._first.is_new((query_id, doc_id), location, self._field, f"{doc_id!r} of query {query_id!r}"):
            self.places.setdefault(query_id, location)
            self.values.setdefault(query_id, {})[doc_id] = value


def some(ids: Iterable[str], noun: str = "query") -> str:
    """As ``3 queries ('a', 'b', 'c')``: how many, and the first few."""
    every = list(ids)
    named = [repr(shorten(one, LONGEST_NAME)) for one in every[:NAMED]]
    return f"{count(len(every), noun)} ({', '.join([*named, '…'] if len(every) > NAMED else named)})"


def judged(judgments: Pairs[float], texts: Mapping[str, str], problems: Collector) -> dict[str, Query]:
    """Put together judgments and questions, in the judgments' order; a query without text has its id for one."""
    grades, places = judgments.values, judgments.places
    if nameless := [query_id for query_id in grades if not texts.get(query_id)]:
        problems.warning(f"{places[nameless[0]]}: {some(nameless)} without a text; the id stands for the question")
    if hopeless := [query_id for query_id, found in grades.items() if not any(grade > 0 for grade in found.values())]:
        problems.warning(
            f"{places[hopeless[0]]}: {some(hopeless)} without a relevant document: in trec_eval's means, not in ours"
        )
    return {
        query_id: Query(id=query_id, text=texts.get(query_id) or query_id, grades=found, location=places[query_id])
        for query_id, found in grades.items()
    }
