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
        x = super().sample(rng, batch, n)
        luck = rng.uniform(batch, n)  # the real prize is uniform between 0 and twice the expected one
        return x._replace(real_prize=depot_zero(luck) * x.prize * 2)
