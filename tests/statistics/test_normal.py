import pytest
import scipy.stats

from ragcontract.statistics.significance import exceeded_by


@pytest.mark.parametrize("share", [0.001, 0.025, 0.05, 0.5, 0.8, 0.999])
def test_quantiles_agree_with_scipy(share: float) -> None:
    assert exceeded_by(share) == pytest.approx(scipy.stats.norm.isf(share), abs=1e-12)
