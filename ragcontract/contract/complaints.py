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
            location = one.location or _of_option(one.option, locations)
            if one.warns:
                problems.warning(f"{location} {one.message}")
            else:
                problems.problem(location, one.message)
    return problems.found()


def _of_option(option: tuple[str, ...], locations: Locations) -> str:
    """Return the location and the name of an option; of one that is not written, the location of what it is in."""
    paths = (option[:length] for length in range(len(option), 0, -1))
    where = next((found for path in paths if (found := locations.of(*path))), "")
    return f"{where}: {'.'.join(option)}" if where else ".".join(option)
