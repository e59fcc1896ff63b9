"""The stochastic PCTSP: only the expected prize is known until a node is visited (appendix F)."""

from __future__ import annotations

from routelearn.problems.attributes import REAL_PRIZE
from routelearn.problems.base import Rng, depot_zero
from routelearn.problems.pctsp import COLLECTING, PCTSP, Instance


class SPCTSP(PCTSP):
    """The real prizes are drawn with the instance (common random numbers, F.2) and kept from `public()`."""

    search = "selective"
    name = "spctsp"
    title = "Prize collecting, prizes known on arrival"
    attributes = (*COLLECTING, REAL_PRIZE._replace(required=True))
    reveals_on_visit = True

    def sample(self, rng: Rng, batch: int, n: int) -> Instance:
        return self.imagined(super().sample(rng, batch, n), rng)

    def imagined(self, x: Instance, rng: Rng) -> Instance:
        """The real prize is uniform between 0 and twice the expected one."""
        luck = rng.uniform(x.prize.shape[0], x.prize.shape[1] - 1)
        return x._replace(real_prize=depot_zero(luck) * x.prize * 2)
