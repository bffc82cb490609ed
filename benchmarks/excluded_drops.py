"""What a pass excludes, on real runs: `python -m benchmarks.excluded_drops FOLDER`.

Takes each pair of the systems of :mod:`benchmarks.robust03`, one as the baseline and the other as the change, with all
of NIST's judgments. The 100 topics are taken for the population of questions, so the true drop of a pair is the one
over all of them. A golden set is ``QUERIES`` topics drawn with replacement, as from a population without an end. (Drawn
without, they would be half of the truth; the other half of the topics, for a truth, would be as noisy as what it is
compared with.) Each set is checked with a limit on the drop of nDCG, in each mode. All is seeded. The table stands in
docs/background/statistics.md.
"""

import random
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import permutations
from multiprocessing import Pool
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec import UNSET, Struct

from benchmarks import tables
from benchmarks.missing_labels import golden_row, true_means
from benchmarks.robust03 import Robust, from_command_line
from benchmarks.small_checks import judged, write_set
from ragcontract.core.numbers import SAME

K = 10
GATE = "ndcg"
LIMIT = 0.05
QUERIES = 50
DRAWS = 2  # of each pair
MODES = ("strict", "significant", "noninferiority")
STEPS = {  # true drops, up to each; pairs beyond the last are left out, as are those that are better by as much
    "none: better by over 0.05": -0.05,
    "none: better by up to 0.05": 0.0,
    "up to 0.05": 0.05,
    "0.05 to 0.10": 0.1,
}
MOST = 0.1
PART = "excluded-drops"


class Drawn(Struct, frozen=True, kw_only=True):
    """What the checks of one golden set found: the modes that pass it, and what they say of the drop.

    ``drop`` is the true one, and ``excludes`` whether the check in mode strict says that it is within the limit.
    ``bound`` is the largest drop that this check does not exclude.
    """

    drop: float
    passes: frozenset[str]
    excludes: bool
    bound: float


def drawn(robust: Robust, drops: dict[tuple[str, str], float], pair: tuple[str, str]) -> list[Drawn]:
    """Check the second system of a pair against the first, for ``DRAWS`` golden sets."""
    dice = random.Random(" ".join(pair))
    found = []
    with TemporaryDirectory() as name:
        folder = Path(name)
        for _ in range(DRAWS):
            topics = dict(enumerate(dice.choices(robust.topics, k=QUERIES)))
            golden = [golden_row(f"{number} {topic}", robust.relevant(topic)) for number, topic in topics.items()]
            baseline, change = (
                {f"{number} {topic}": robust.systems[system][topic][:K] for number, topic in topics.items()}
                for system in pair
            )
            write_set(folder, golden, baseline)
            reports = {
                mode: judged(folder, change, k=K, fail_on={"mode": mode, f"{GATE}_drop_gt": LIMIT}) for mode in MODES
            }
            (gate,) = reports["strict"].gates
            found.append(
                Drawn(
                    drop=drops[pair],
                    passes=frozenset(mode for mode, report in reports.items() if report.verdict == "pass"),
                    excludes=gate.certainty == "within",
                    bound=0.0 if gate.bounds is UNSET else gate.bounds[1],
                )
            )
    return found


def content(sets: Sequence[Drawn]) -> Iterator[str]:
    """Yield the lines of the part of the page."""
    body = []
    low = -MOST - SAME
    for label, high in STEPS.items():
        those = [one for one in sets if low < one.drop <= high + SAME]
        low = high + SAME
        passed = [one for one in those if "strict" in one.passes]
        shares = [tables.share(sum(mode in one.passes for one in those), len(those)) for mode in MODES]
        sure = tables.share(sum(one.excludes for one in passed), len(passed))
        body.append([label, str(len(those)), *shares, sure])
    head = ["true drop of nDCG@10", "checks", *(f"`{mode}` passes" for mode in MODES), "of `strict`, sure"]
    yield tables.rows(head, body, 1)
    passed = [one for one in sets if "strict" in one.passes]
    hidden = sorted(one.bound for one in passed if not one.excludes)
    worse = [one for one in sets if one.drop > LIMIT]
    let_by = {mode: sum(mode in one.passes for one in worse) for mode in MODES}
    excluding = sum(one.excludes for one in passed)
    yield (
        f"\nOf {len(passed)} passes in mode `strict`, {excluding} exclude a drop of {LIMIT}; the median of the others "
        f"could have hidden {hidden[len(hidden) // 2]:.2f}. Of {len(worse)} checks of a change that is worse by more "
        f"than {LIMIT}, {let_by['strict']} pass in mode `strict`, {let_by['significant']} in mode `significant` and "
        f"{let_by['noninferiority']} in mode `noninferiority`.\n"
    )


def main() -> None:
    """Check all pairs, and write the part of the page."""
    robust = from_command_line(sys.argv[1:], "benchmarks.excluded_drops", K)
    means = true_means(robust)
    all_drops = {
        (before, after): means[before][GATE] - means[after][GATE] for before, after in permutations(robust.systems, 2)
    }
    drops = {pair: drop for pair, drop in all_drops.items() if abs(drop) <= MOST}
    with Pool(2) as pool:
        sets = pool.map(partial(drawn, robust, drops), drops, chunksize=8)
    tables.write(PART, "".join(content([one for several in sets for one in several])))


if __name__ == "__main__":
    main()
