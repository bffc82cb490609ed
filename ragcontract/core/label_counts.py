"""How often a judge and people said yes and no of the same items."""

from typing import Annotated

from msgspec import Meta, Struct

from ragcontract.core import bounds

Count = Annotated[int, Meta(ge=0, le=bounds.LABELS)]


class LabelCounts(Struct, frozen=True, kw_only=True):
    """How often a judge and people said yes and no of the same items; people are right by definition."""

    tp: Annotated[Count, Meta(description="Both say yes.")]
    fp: Annotated[Count, Meta(description="Only the judge says yes.")]
    fn: Annotated[Count, Meta(description="Only people say yes.")]
    tn: Annotated[Count, Meta(description="Both say no.")]

    @property
    def n(self) -> int:
        """All items that both judged."""
        return self.tp + self.fp + self.fn + self.tn

    @property
    def yes(self) -> int:
        """Those that people say yes of."""
        return self.tp + self.fn

    @property
    def no(self) -> int:
        """Those that people say no of."""
        return self.fp + self.tn
