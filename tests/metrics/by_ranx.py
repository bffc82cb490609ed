"""What ranx makes of a run: a module of its own, as it is loaded in a process beside the tests'."""

from collections.abc import Mapping, Sequence

ByDocument = Mapping[str, Mapping[str, float]]


def by_ranx(
    relevant: ByDocument, run: ByDocument, measures: Sequence[str]
) -> tuple[dict[str, dict[str, float]], dict[str, float]]:
    """Return each measure's values by query, and its mean."""
    import ranx

    judged, retrieved = ranx.Qrels(relevant), ranx.Run(run)
    per_query = ranx.evaluate(judged, retrieved, measures, return_mean=False)
    values = {
        measure: dict(zip(sorted(judged.keys()), map(float, per_query[measure]), strict=True)) for measure in measures
    }
    return values, {measure: float(ranx.evaluate(judged, retrieved, measure)) for measure in measures}
