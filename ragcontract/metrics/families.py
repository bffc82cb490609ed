"""The families of metrics that are computed together: those of a contract, and of the plan that is made from it."""

from msgspec import Struct

from ragcontract.core.metric import Family
from ragcontract.metrics.overlap import Overlap
from ragcontract.metrics.ranking import Ranking


class Families(Struct, frozen=True, kw_only=True):
    """Families by how they are computed.

    ``ranking`` is the family whose ranks are stored for rules; ``families`` are the others, and ``diagnostics`` those
    that describe labels and changes, and are not computed from single rows alone.
    """

    ranking: Ranking
    families: tuple[Family, ...] = ()
    diagnostics: tuple[Family, ...] = ()

    @property
    def every_family(self) -> tuple[Family, ...]:
        """All families, in the order in which sides have their values."""
        return self.ranking, *self.families, *self.diagnostics

    @property
    def overlap(self) -> Overlap | None:
        """The family that compares what was retrieved with the baseline; None without one."""
        return next((family for family in self.diagnostics if isinstance(family, Overlap)), None)
