"""What is wrong with a contract for the metrics that it asks for."""

from collections.abc import Iterable

from ragcontract.contract.golden_file import Golden
from ragcontract.contract.locations import Locations
from ragcontract.core.metric import Demanding, Family
from ragcontract.files.problems import Collector, Problems


def complaints(families: Iterable[Family], golden: Golden, locations: Locations) -> Problems:
    """Return the problems and warnings of families that cannot be computed for every contract."""
    problems = Collector()
    for family in families:
        for one in family.complaints(golden.queries.values()) if isinstance(family, Demanding) else ():
            named = (locations.of(*one.option), ".".join(one.option))
            location = one.location or ": ".join(part for part in named if part)
            if one.warns:
                problems.warning(f"{location} {one.message}")
            else:
                problems.problem(location, one.message)
    return problems.found()
