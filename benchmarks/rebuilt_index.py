"""Whether `rag-contract suggest` keeps its promise on real questions: `python -m benchmarks.rebuilt_index FOLDER`.

The folder has the Cranfield collection in TREC format (https://github.com/oussbenk/cranfield-trec-dataset): 1,400
abstracts, 225 questions and their judgments. The retriever is an approximate index as vector databases have it
(inverted lists: each document belongs to its nearest centroid, and a question searches the nearest lists) over TF-IDF
vectors. The centroids are documents drawn by chance, so each time the index is rebuilt, it is equally good, and some
results differ. Draws good runs from many rebuilt indexes as the baseline, makes limits from them, and counts how many
of the others break them: of all baselines, and the baselines with which that is twice as often as promised. Writes
docs/background/statistics.md. All is seeded.
"""

import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import product
from math import log, sqrt
from pathlib import Path
from random import Random

from benchmarks import tables
from benchmarks.retriever import Columns, breaks, suggestions
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.phrase import Location
from ragcontract.metrics.ranking import Ranking

K = 5
GATED = ("mrr_at_5", "recall_at_5")
LISTS, SEARCHED = 40, 12
REBUILT = 150
QUERIES = (30, 100, 225)
RUNS = (2, 3, 5)
BASELINES = 300
TWICE = 0.1  # of the runs, where 1 in 20 is promised
HEAD = ("queries", "good runs", "equally good runs that fail", "baselines with over 10%")

Vector = dict[str, float]


def vectors(texts: Mapping[str, str], weights: Mapping[str, float]) -> dict[str, Vector]:
    """Return the TF-IDF vector of each text, of length 1; ``weights`` are those of the words."""
    found = {}
    for name, text in texts.items():
        counts = Counter(word for word in words(text) if word in weights)
        raw = {word: (1 + log(number)) * weights[word] for word, number in counts.items()}
        length = sqrt(sum(value * value for value in raw.values())) or 1.0
        found[name] = {word: value / length for word, value in raw.items()}
    return found


def words(text: str) -> list[str]:
    """Return the words of a text."""
    return re.findall(r"[a-z]{2,}", text.lower())


def similar(vector: Vector, postings: Mapping[str, Sequence[tuple[str, float]]]) -> dict[str, float]:
    """Return the cosine of a vector with each document that shares a word with it."""
    found: dict[str, float] = {}
    for word, value in vector.items():
        for name, other in postings.get(word, ()):
            found[name] = found.get(name, 0.0) + value * other
    return found


class Collection:
    """Documents and questions, and how similar they are."""

    def __init__(self, folder: Path) -> None:
        """Read the folder and compare all documents with each other and with the questions."""
        documents = dict(_elements(folder / "cran.all.1400.xml", "docno", "text"))
        topics = [text for _, text in _elements(folder / "cran.qry.xml", "num", "title")]
        questions = {str(number): text for number, text in enumerate(topics, start=1)}  # judgments count topics from 1
        judged: dict[str, list[str]] = {}
        for line in (folder / "cranqrel.trec.txt").read_text().splitlines():
            query, _, document, grade = line.split()
            if int(grade) > 0 and document in documents:
                judged.setdefault(query, []).append(document)
        self.queries = [
            GoldenQuery(id=name, query=text, relevant_doc_ids=tuple(judged[name]), location=Location(""))
            for name, text in questions.items()
            if name in judged
        ]
        among = Counter(word for text in documents.values() for word in set(words(text)))
        weights = {word: log(len(documents) / number) for word, number in among.items()}
        of_documents = vectors(documents, weights)
        postings: dict[str, list[tuple[str, float]]] = {}
        for name, vector in of_documents.items():
            for word, value in vector.items():
                postings.setdefault(word, []).append((name, value))
        self.documents = {name: similar(vector, postings) for name, vector in of_documents.items()}
        asked = vectors({query.id: query.query for query in self.queries}, weights)
        self.asked = {name: similar(vector, postings) for name, vector in asked.items()}

    def run(self, dice: Random, share: float = 1) -> Columns:
        """Build an index, of the first ``share`` of the documents, and return the values of its run."""
        indexed = list(self.documents)[: round(share * len(self.documents))]
        centroids = dice.sample(indexed, LISTS)
        lists: dict[str, set[str]] = {one: set() for one in centroids}
        for name in indexed:
            others = self.documents[name]
            lists[max(centroids, key=lambda one: others.get(one, 0.0))].add(name)
        score = Ranking([K]).score
        values = []
        for query in self.queries:
            scores = self.asked[query.id]
            nearest = sorted(centroids, key=lambda one: -scores.get(one, 0.0))[:SEARCHED]
            searched = set().union(*(lists[one] for one in nearest))
            top = sorted(scores.keys() & searched, key=lambda name: (-scores[name], name))[:K]
            values.append(score(query, top).values)
        keys = [metric.key for metric in Ranking([K]).metrics]
        return [[of_query[keys.index(key)] for of_query in values] for key in GATED]


def _elements(path: Path, name: str, content: str) -> list[tuple[str, str]]:
    pattern = rf"<{name}>\s*(\d+)\s*</{name}>.*?<{content}>(.*?)</{content}>"
    return re.findall(pattern, path.read_text(encoding="utf-8"), re.DOTALL)


def failing(runs: Sequence[Columns], queries: int, good_runs: int, baselines: int = BASELINES) -> list[float]:
    """Return the share of runs that break the limits of each of many baselines, over some of the questions.

    A baseline is some of the runs, drawn by chance, and all others are compared with it.
    """
    dice = Random(f"{queries} {good_runs}")
    weights = [1.0] * queries
    shares = []
    for _ in range(baselines):
        asked = dice.sample(range(len(runs[0][0])), queries)
        drawn = [[[column[at] for at in asked] for column in run] for run in dice.sample(runs, len(runs))]
        good, others = drawn[:good_runs], drawn[good_runs:]
        limits = suggestions(good, weights)
        shares.append(sum(breaks(limits, good, now, weights) for now in others) / len(others))
    return shares


def table(folder: Path, rebuilt: int = REBUILT, baselines: int = BASELINES) -> str:
    """Return the table, and what it was measured on."""
    collection = Collection(folder)
    dice = Random(1)
    runs = [collection.run(dice) for _ in range(rebuilt)]
    body = []
    for queries, good in product([min(queries, len(collection.queries)) for queries in QUERIES], RUNS):
        shares = failing(runs, queries, good, baselines)
        often = sum(share > TWICE for share in shares)
        body.append([f"{queries:,}", str(good), tables.share(sum(shares), baselines), tables.share(often, baselines)])
    means = [sum(column) / len(column) for run in runs for column in run[:1]]
    return (
        f"{tables.rows(HEAD, body, 0)}\nMeasured on {rebuilt} rebuilt indexes, whose MRR@5 is from {min(means):.3f} to "
        f"{max(means):.3f}, with {baselines:,} baselines a row.\n"
    )


if __name__ == "__main__":
    if len(sys.argv) != 2:  # noqa: PLR2004
        sys.exit("give the folder of the collection: python -m benchmarks.rebuilt_index FOLDER")
    tables.write("rebuilt-index", table(Path(sys.argv[1])))
