"""The routes that the search of a round has met, put together anew (search/recombining.py)."""

from __future__ import annotations

import numpy as np

from routelearn.rounds.search.arrays import Data, Ints
from routelearn.rounds.search.routes import Routes
from routelearn.search.compiling import kernel
from routelearn.search.recombining import Recombining, meet

SHORT = 12  # stops a route on average, up to which it pays
FEWEST = 20  # stops below which a search needs no help


@kernel
def remember(d, x, met, numbers):
    """Remember all routes, and write down their numbers; how many there are."""
    n, slots = d.stop.shape[0], d.slot.shape[0]
    for u in range(x.size[0]):
        r = x.route[u].used
        k, end = d.slot[r].kind, met.size[1]
        name, i = met.word[n + k], x.at[n + r].succ
        while i != n + slots + r:
            if i < n:
                name ^= met.word[i]
            met.ids[end] = i if i < n else -2 - x.at[i].node
            end += 1
            i = x.at[i].succ
        numbers[u] = meet(met, name, k, x.route[r].cost, end)
    return x.size[0]


class RoundRecombining:
    """What one search of a round remembers."""

    def __init__(self, d: Data):
        self.data, self.numbers = d, np.zeros(len(d.slot), np.int64)
        vehicles = (d.vehicle["slot_to"] - d.vehicle["slot_from"]).astype(np.float64)
        self.recombining = Recombining(d.stop["unserved"], vehicles)

    def pays(self, x: Routes) -> bool:
        """Whether routes as those of this plan are worth remembering; where they must be alike, none is good alone."""
        served = len(self.data.stop) - int(x.size[1])
        return not self.data.apart and FEWEST <= served <= SHORT * int(x.size[0])

    def remember(self, x: Routes) -> Ints:
        """The routes of a plan, by number."""
        self.recombining.make_room(int(x.size[0]), len(x.at))
        return self.numbers[: remember(self.data, x, self.recombining.met, self.numbers)]

    def cheaper(self, x: Routes, cost: float, seconds: float) -> Ints | None:
        """A plan for less than `cost`, which that of `x` costs, as `keep_best` writes one; None: none is found."""
        found = self.recombining.cheaper(self.remember(x), cost, seconds)
        if found is None:
            return None
        met, free = self.recombining.met, self.data.vehicle["slot_from"].tolist()
        plan: list[int] = []
        for j in found.tolist():
            k = int(met.kind[j])
            plan += [free[k], *met.ids[met.span[j, 0] : met.span[j, 1]].tolist(), -1]
            free[k] += 1
        return np.array([*plan, -1], dtype=np.int64)
