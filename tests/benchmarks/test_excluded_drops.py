from benchmarks import excluded_drops
from benchmarks.excluded_drops import DRAWS, MODES, Drawn
from benchmarks.missing_labels import true_means
from tests.benchmarks import real_runs


def drawn(drop: float, *passes: str, bound: float) -> Drawn:
    return Drawn(drop=drop, passes=frozenset(passes), excludes=bound <= excluded_drops.LIMIT, bound=bound)


def test_the_table_has_the_share_that_each_mode_passes_and_what_a_pass_excludes() -> None:
    sets = [
        drawn(-0.1, *MODES, bound=0.0),
        drawn(0.0, *MODES, bound=0.0),
        drawn(-0.01, "strict", "significant", bound=0.08),
        drawn(0.1, "strict", "significant", bound=0.12),
        drawn(0.07, "significant", bound=0.2),
    ]
    lines = "".join(excluded_drops.content(sets)).splitlines()
    assert lines[2:6] == [
        "| none: better by over 0.05 | 1 | 100% | 100% | 100% | 100% |",
        "| none: better by up to 0.05 | 2 | 100% | 100% | 50% | 50% |",
        "| up to 0.05 | 0 | - | - | - | - |",
        "| 0.05 to 0.10 | 2 | 50% | 100% | 0.0% | 0.0% |",
    ]
    assert lines[7] == (
        "Of 4 passes in mode `strict`, 2 exclude a drop of 0.05; the median of the others could have hidden 0.12. Of 2 "
        "checks of a change that is worse by more than 0.05, 1 pass in mode `strict`, 2 in mode `significant` and 0 in "
        "mode `noninferiority`."
    )


def test_a_change_that_loses_everything_passes_in_no_mode_and_the_same_run_in_all() -> None:
    robust = real_runs.robust()
    means = true_means(robust)
    worse = means["first"]["ndcg"] - means["late"]["ndcg"]
    lost = excluded_drops.drawn(robust, {("first", "late"): worse}, ("first", "late"))
    same = excluded_drops.drawn(robust, {("first", "first"): 0.0}, ("first", "first"))
    assert [(one.drop, one.passes, one.excludes) for one in lost] == [(worse, frozenset(), False)] * DRAWS
    assert [(one.passes, one.excludes, one.bound) for one in same] == [(frozenset(MODES), True, 0.0)] * DRAWS
