"""A plain referee for vehicle routing variants, one route at a time, and the digest of a set of raw draws."""

from __future__ import annotations

import hashlib
import math

from routelearn.problems.base import NumpyRng
from routelearn.problems.vrp import VRP


def digest(name, n, seed=1234, count=1000):
    """SHA-256 over the fields of a public set as they are drawn, in double precision."""
    x = VRP(name).sample(NumpyRng(seed), count, n)
    found = hashlib.sha256()
    for field in x[:-1]:
        found.update(field.contiguous().numpy().tobytes())
    return found.hexdigest()


def routes_of(tour, depots):
    """(depot, customers) of every route with customers."""
    routes, depot, customers = [], 0, []
    for node in [*tour, 0]:
        if node >= depots:
            customers.append(node)
            continue
        if customers:
            routes.append((depot, customers))
        depot, customers = node, []
    return routes


def judged(x, tour, slack=1e-9):
    """(cost, faults) of one tour of an instance with batch axis 1, by the rules of docs/guides/variants.md."""
    xy, depots = x.xy[0].tolist(), x.depots.shape[1]
    delivery, pickup, service, window = (field[0].tolist() for field in (x.delivery, x.pickup, x.service, x.window))
    is_open, mixed, limit, capacity = bool(x.open[0]), bool(x.mixed[0]), float(x.max_length[0]), int(x.capacity[0])
    cost, faults, seen = 0.0, set(), []
    for depot, customers in routes_of(tour, depots):
        if not x.depots[0, depot]:
            faults.add("depot")
        length, time, last = 0.0, window[depot][0], depot
        load, picked = sum(delivery[c] for c in customers), False
        for c in customers:
            if load > capacity:
                faults.add("load")
            length += math.dist(xy[last], xy[c])
            time = max(time + math.dist(xy[last], xy[c]), window[c][0])
            if time > window[c][1] + slack:
                faults.add("window")
            time += service[c]
            if delivery[c] and picked and not mixed:
                faults.add("order")
            picked = picked or pickup[c] > 0
            load += pickup[c] - delivery[c]
            last = c
        if load > capacity:
            faults.add("load")
        if not is_open:
            length += math.dist(xy[last], xy[depot])
            if time + math.dist(xy[last], xy[depot]) > window[depot][1] + slack:
                faults.add("closing")
        if length > limit + slack:
            faults.add("limit")
        cost += length
        seen += customers
    if sorted(seen) != list(range(depots, len(xy))):
        faults.add("visits")
    return cost, faults
