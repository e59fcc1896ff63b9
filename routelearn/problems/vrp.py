"""Vehicle routing with any combination of open routes, backhauls, length limits, time windows and several depots.

One family for the 48 variants of RouteFinder (Berto et al. 2024; problems/variants.py): which rules an instance has
is written in its fields, so one batch may hold many variants. docs/guides/variants.md states the rules.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from routelearn.errors import InputError
from routelearn.problems import attributes as known
from routelearn.problems import base
from routelearn.problems.attributes import Attribute
from routelearn.problems.variants import ALL, NAMES, RULES, Rules, joined, parse_list

SLACK = 1e-6  # share of a limit or of a window's end that rounding may add; the referee allows ten times as much

# Of the public sets (RouteFinder's generator).
DEPOTS = 3  # where there are several
BACKHAUL_SHARE = 0.2
HORIZON = 4.6
SERVICE, WINDOW = (0.15, 0.03), (0.18, 0.02)  # least, and what a uniform draw adds
LIMIT = 2.8
CLOSE = 1e-6  # a limit exceeds the way to the farthest place and back by this much at least


class Instance(NamedTuple):
    """The first D nodes are places for depots. A place that is not in use lies where depot 0 does."""

    xy: Tensor  # [B, N, 2], N = D + customers
    depots: Tensor  # [B, D] whole: 1 where vehicles start, 0 for a place not in use; depot 0 always is
    delivery: Tensor  # [B, N] whole numbers, 0 for depots
    pickup: Tensor  # [B, N] whole numbers, 0 for depots
    capacity: Tensor  # [B] whole numbers
    window: Tensor  # [B, N, 2]: when service may begin; of a depot, when vehicles leave and are back; 0, inf: any time
    service: Tensor  # [B, N]: how long it takes, 0 for depots
    max_length: Tensor  # [B]: of each route; inf for none
    open: Tensor  # [B] whole: 1 if no way back is driven
    mixed: Tensor  # [B] whole: 1 if deliveries may come after pickups
    distances: Tensor | None = None  # [B, N, N]

    def public(self) -> Instance:
        return self


class State(NamedTuple):
    last: Tensor  # [B, S]
    home: Tensor  # [B, S]: the depot where the present route began
    time: Tensor  # [B, S]: when the vehicle can leave
    gone: Tensor  # [B, S]: length of the present route
    peak: Tensor  # [B, S] whole: the most that this route ever has on board; it leaves with all that it delivers
    picked: Tensor  # [B, S] whole: what this route has picked up, which is all that it has on board now
    visited: Tensor  # [B, S, N]
    remaining: Tensor  # [B, S]: customers not yet visited
    waiting: Tensor  # [B, S, D]: those of them that a vehicle of their own could serve from each depot


class VRP:
    """A tour lists customers and depots: a depot's node ends the route and begins the next one from that depot.

    The first route begins at depot 0 unless the tour begins with another depot. The way back is implied: to the depot
    where the route began, whichever depot is named next. So with one depot a tour is as for CVRP: customers, with 0
    between routes. A finished solution stays at 0.

    `variants` are those that `sample` draws, each alike; the object's other functions read an instance's rules from
    its fields.
    """

    name = "vrp"
    attributes = (
        Attribute("depots", "depot", whole=True, required=True, help="1 where vehicles start, 0 for an unused place"),
        Attribute("delivery", "stop", "amount", whole=True, required=True, help="what is delivered there"),
        Attribute("pickup", "stop", "amount", whole=True, default=0.0, help="what is picked up there"),
        known.CAPACITY,
        Attribute("window", "stop", "time", (2,), unbounded=True, help="when service may begin, first and last"),
        Attribute("service", "stop", "time", default=0.0, help="how long a visit takes"),
        known.MAX_LENGTH._replace(required=False, unbounded=True, help="the longest route that is allowed"),
        Attribute("open", "instance", whole=True, default=0.0, help="1 if vehicles do not come back"),
        Attribute("mixed", "instance", whole=True, default=0.0, help="1 if deliveries may come after pickups"),
    )
    feature_dims: tuple[int, ...] = (10, 12)
    context_nodes, context_scalars, step_dim = 2, 4, 0
    has_depot, maximise, reveals_on_visit = True, False, False
    variant_names, test_set, test_instances = NAMES, "routefinder", 1000

    def __init__(self, variants: str = ALL):
        self.rules = tuple(RULES[name] for name in parse_list(variants))
        self.variants = joined(tuple(one.name for one in self.rules))

    def with_variants(self, names: str) -> VRP:
        return type(self)(names)

    def variant_of(self, x: Instance) -> Tensor:
        """[B]: the number of each instance's variant in `variant_names`, by the rules that its fields show."""
        back = (x.pickup > 0).any(1).long()
        timed = x.window[:, :, 1].isfinite().any(1).long()
        digits = (x.depots.sum(1) > 1, 2), (x.open > 0, 2), (back * (1 + x.mixed), 3), (x.max_length.isfinite(), 2)
        number = torch.zeros_like(timed)
        for digit, values in (*digits, (timed, 2)):
            number = number * values + digit
        return number

    def turns(self) -> tuple[VRP, ...]:
        """A mixture has places for several depots, most of them unused by half of its instances; a set of one has not.

        A policy that had never seen the latter was 2 to 5 % worse on it.
        """
        single = tuple(one.name for one in self.rules if not one.several)
        return (self, type(self)(joined(single))) if 0 < len(single) < len(self.rules) else (self,)

    # -------------------------------------------------------------------------------------------- instances

    def sample(self, rng: base.Rng, batch: int, n: int) -> Instance:
        """With one variant, RandomState(1234) and 1,000 instances: exactly RouteFinder's public test set.

        Nothing is drawn for a rule that no variant has; where only some have it, all draw and the others forget it.
        """
        places = DEPOTS if any(one.several for one in self.rules) else 1
        xy = rng.uniform(batch, places + n, 2)
        first = xy.new_zeros(batch, dtype=torch.long)
        which = rng.integers(0, len(self.rules), batch) if len(self.rules) > 1 else first
        several, is_open, back, mixed, limited, timed = (
            self._rows(which, rule)
            for rule in (
                lambda one: one.several,
                lambda one: one.open,
                lambda one: one.backhauls != "",
                lambda one: one.backhauls == "mb",
                lambda one: one.limited,
                lambda one: one.timed,
            )
        )
        used = several[:, None] | base.is_node(first, places)
        xy = torch.cat((torch.where(used[..., None], xy[:, :places], xy[:, :1]), xy[:, places:]), 1)
        delivery = rng.integers(1, 10, batch, n)
        pickup = torch.zeros_like(delivery)
        if any(one.backhauls for one in self.rules):
            marked = (rng.uniform(batch, n) < BACKHAUL_SHARE) & back[:, None]
            pickup = rng.integers_where(marked, 1, 10)
            delivery = torch.where(marked, 0, delivery)
        apart = xy - xy[:, :1]
        away = rng.sqrt(apart[..., 0] ** 2 + apart[..., 1] ** 2)
        begin, service = torch.zeros_like(away), torch.zeros_like(away)
        end, limit = torch.full_like(away, math.inf), torch.full_like(away[:, 0], math.inf)
        if any(one.timed for one in self.rules):
            drawn = draw_windows(rng, away[:, places:])
            begin, end, service = (
                torch.where(timed[:, None], pad(new, (places, 0), value=at_depot), old)
                for new, at_depot, old in zip(drawn, (0.0, HORIZON, 0.0), (begin, end, service), strict=True)
            )
        if any(one.limited for one in self.rules):
            limit = torch.where(limited, draw_limits(rng, away), limit)
        return Instance(
            xy,
            used.long(),
            pad(delivery, (places, 0)),
            pad(pickup, (places, 0)),
            torch.full_like(which, 30 + (n // 5 if n > 20 else 0)),
            torch.stack((begin, end), -1),
            service,
            limit,
            is_open.long(),
            mixed.long(),
        )

    def _rows(self, which: Tensor, rule: Callable[[Rules], bool]) -> Tensor:
        """[B] bool: whether the variant of that number [B] has the rule. A table would be copied from the host."""
        bits = sum(1 << i for i, one in enumerate(self.rules) if rule(one))
        return (torch.full_like(which, bits) >> which) & 1 > 0

    def validate(self, x: Instance) -> None:
        base.check_finite(x, self.name)
        batch, nodes = x.xy.shape[:2]
        if x.depots.dim() != 2 or x.depots.shape[0] != batch or not 0 < x.depots.shape[1] < nodes:
            raise InputError(
                f"vrp: depots have shape {tuple(x.depots.shape)}; at least one depot, and fewer than the {nodes} nodes"
            )
        places = x.depots.shape[1]
        wholes = ("depots", "delivery", "pickup", "capacity", "open", "mixed")
        if fractions := [name for name in wholes if getattr(x, name).is_floating_point()]:
            raise InputError(f"vrp: {fractions[0]} must be whole numbers (scale them, 2.5 of 10 as 25 of 100)")
        for name in ("open", "mixed"):
            value = base.check_limit(x, name, self.name)
            base.reject_rows((value != 0) & (value != 1), f"vrp: {name} is neither 0 nor 1")
        base.reject_rows(((x.depots != 0) & (x.depots != 1)).any(1), "vrp: depots are neither 0 nor 1")
        base.reject_rows(x.depots[:, 0] != 1, "vrp: the first depot (node 0) is not in use")
        base.reject_rows(base.check_limit(x, "capacity", self.name) < 1, "vrp: the capacity is below 1")
        for name in ("delivery", "pickup", "service"):
            value = base.check_column(x, name, self.name)
            base.reject_rows((value < 0).any(1), f"vrp: a {name} is negative")
            base.reject_rows((value[:, :places] != 0).any(1), f"vrp: a depot has a {name}; it must be 0")
        if x.window.shape != (batch, nodes, 2):
            raise InputError(f"vrp: window has shape {tuple(x.window.shape)}; expected {(batch, nodes, 2)}")
        begin, end = x.window.unbind(-1)
        base.reject_rows(~(begin.isfinite() & (begin >= 0)).all(1), "vrp: a window begins before 0, or never")
        base.reject_rows(~(begin <= end).all(1), "vrp: a window ends before it begins, or is not a number")
        if x.max_length.shape != (batch,):
            raise InputError(f"vrp: max_length has shape {tuple(x.max_length.shape)}; expected ({batch},)")
        base.reject_rows(~(x.max_length > 0), "vrp: the longest route allowed is not above 0")
        nobody = ~self.servable(x)[:, places:]
        if nobody.any():
            row, customer = nobody.nonzero()[0].tolist()
            raise InputError(
                f"vrp: node {places + customer} cannot be served, not even by a vehicle of its own: its amounts, its "
                f"window or the way there are beyond what is allowed (instance {row})"
            )

    def max_steps(self, x: Instance) -> int:
        return 2 * (x.xy.shape[1] - x.depots.shape[1])  # a depot before every single customer

    def features(self, x: Instance) -> tuple[Tensor, ...]:
        """Depots and customers: places, windows, and what holds for the instance; amounts as shares of the capacity.

        What is absent is 0, and so is its flag.
        """
        places, nodes, real = x.depots.shape[1], x.xy.shape[1], x.xy.dtype
        begin, end = x.window.unbind(-1)
        closes, limited = end.isfinite(), x.max_length.isfinite()
        rules = (x.open, x.mixed, limited, torch.where(limited, x.max_length, 0.0))
        of_instance = torch.stack([rule.to(real) for rule in rules], -1)[:, None].expand(-1, nodes, -1)
        windows = torch.stack((closes.to(real), begin, torch.where(closes, end, 0.0)), -1)
        every = torch.cat((x.xy, windows, of_instance), -1)
        amounts = torch.stack((x.delivery, x.pickup), -1) / x.capacity[:, None, None]
        customers = torch.cat((every, amounts.to(real), x.service[..., None]), -1)[:, places:]
        return torch.cat((every[:, :places], x.depots[..., None].to(real)), -1), customers

    def servable(self, x: Instance) -> Tensor:
        """[B, N]: customers whom a vehicle of their own could serve from some depot: in a valid instance, all."""
        return self.alone(x).any(1)

    def starts(self, x: Instance) -> Tensor:
        """Customers that a vehicle from depot 0 can serve first."""
        return self.alone(x)[:, 0]

    # ---------------------------------------------------------------------------------------------- solutions

    def initial(self, x: Instance, solutions: int) -> State:
        depot, visited = base.begun_at_depot(x, solutions)
        waiting = self.alone(x).sum(-1)[:, None].expand(-1, solutions, -1).contiguous()
        rest = visited, torch.full_like(depot, x.xy.shape[1] - x.depots.shape[1]), waiting
        return State._make((*self._leaving(x, depot), *rest))

    def _leaving(self, x: Instance, depot: Tensor) -> tuple[Tensor, ...]:
        """The first six fields of a State whose vehicle leaves the depot [B, S]; no two are one tensor."""
        nothing = torch.zeros_like(depot)
        opening = base.pick(x.window[..., 0], depot)
        return depot, depot.clone(), opening, torch.zeros_like(opening), nothing, nothing.clone()

    def _bounds(self, x: Instance, home: Tensor) -> tuple[Tensor, Tensor]:
        """[B, S, N] of vehicles from depots [B, S]: when service may begin at the latest, how long the way may be then.

        Rounding may add a share of SLACK to every limit.
        """
        is_open = (x.open > 0)[:, None, None]
        back = base.legs_to(x, home).masked_fill(is_open, 0.0)
        end = x.window[..., 1] * (1 + SLACK)
        closing = base.pick(end, home)[..., None].masked_fill(is_open, math.inf)
        latest = torch.minimum(end[:, None], closing - x.service[:, None] - back)
        return latest, (x.max_length * (1 + SLACK))[:, None, None] - back

    def fits(self, x: Instance, vehicle: tuple[Tensor, ...]) -> Tensor:
        """[B, S, N]: which customers a vehicle could serve next and still keep all rules of its route.

        `vehicle` is the first six fields of a State.
        """
        last, home, time, gone, peak, picked = vehicle
        latest, longest = self._bounds(x, home if x.depots.shape[1] > 1 else home[:, :1])
        there, capacity = base.legs_from(x, last), x.capacity[:, None]
        in_time = torch.maximum(time[..., None] + there, x.window[:, None, :, 0]) <= latest
        short = gone[..., None] + there <= longest
        no_more = (picked > 0) & (x.mixed == 0)[:, None]  # deliveries; a pickup came before
        unloaded = x.delivery[:, None] <= (capacity - peak).masked_fill(no_more, 0)[..., None]
        return in_time & short & unloaded & (x.pickup[:, None] <= (capacity - picked)[..., None])

    def alone(self, x: Instance) -> Tensor:
        """[B, D, N]: which customers a vehicle of their own could serve from which depot in use."""
        batch, places = x.depots.shape
        depots = torch.arange(places, device=x.xy.device).expand(batch, places)
        customers = torch.arange(x.xy.shape[1], device=x.xy.device) >= places
        return self.fits(x, self._leaving(x, depots)) & (x.depots > 0)[..., None] & customers

    def feasible(self, x: Instance, s: State) -> Tensor:
        """Customers not yet visited that keep all rules; on the way, depots from which one of the rest can be served.

        At first any other depot may be chosen. Never empty: every customer can be served alone from some depot
        (validate), and a depot is only offered if there is such a customer left for it.
        """
        places, nodes = x.depots.shape[1], x.xy.shape[1]
        done, number = self.done(x, s)[..., None], torch.arange(nodes, device=x.xy.device)
        on_the_way = (s.last >= places)[..., None]
        at_first = ((s.last == 0) & (s.remaining == nodes - places))[..., None] & (number[:places] > 0)
        depots = ((s.waiting > 0) & (on_the_way | at_first)) | (done & (number[:places] == 0))
        # Not joined: a compiler makes one pass of this.
        of_depots = depots.gather(-1, number.clamp(max=places - 1).expand(*s.last.shape, nodes))
        return torch.where(number < places, of_depots, self.fits(x, s[:6]) & ~s.visited & ~done)

    def step(self, x: Instance, s: State, action: Tensor) -> State:
        home = action < x.depots.shape[1]
        length = base.leg(x, s.last, action)
        delivery, pickup = base.pick(x.delivery, action), base.pick(x.pickup, action)
        time = torch.maximum(s.time + length, base.pick(x.window[..., 0], action)) + base.pick(x.service, action)
        picked = s.picked + pickup
        served = (action, s.home, time, s.gone + length, torch.maximum(s.peak + delivery, picked), picked)
        there = (torch.where(home, new, old) for new, old in zip(self._leaving(x, action), served, strict=True))
        visited, remaining = s.visited | base.is_node(action, x.xy.shape[1]), s.remaining - (~home).long()
        waiting = remaining[..., None]  # one depot can serve all (validate)
        if x.depots.shape[1] > 1:
            waiting = s.waiting - base.pick(self.alone(x).transpose(1, 2).long(), action)
        return State._make((*there, visited, remaining, waiting))

    def done(self, x: Instance, s: State) -> Tensor:
        return s.remaining == 0

    def context(self, x: Instance, s: State) -> base.Context:
        """The last node and the route's depot; shares of the capacity left for each kind, time, share of the limit."""
        room = (1 - torch.stack((s.peak, s.picked), -1) / x.capacity[:, None, None]).to(x.xy.dtype)
        used = s.gone / x.max_length[:, None]  # 0 without a limit
        return base.Context(torch.stack((s.last, s.home), -1), torch.cat((room, torch.stack((s.time, used), -1)), -1))

    def step_features(self, x: Instance, s: State) -> Tensor | None:
        return None

    # ----------------------------------------------------------------------------------------------- referee

    def driven(self, x: Instance, tour: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The tour [B, S, T] with depot 0 before and behind it: nodes and homes [B, S, T + 2], legs [B, S, T + 1].

        A home is the depot where the route that a node belongs to began. The leg to a depot's node is the way back to
        the home of the route that ends there, 0 if routes are open.
        """
        nodes = pad(tour, (1, 1))
        at_depot = nodes < x.depots.shape[1]
        steps = torch.arange(nodes.shape[-1], device=tour.device)
        homes = nodes.gather(-1, torch.where(at_depot, steps, 0).cummax(-1).values)
        origin, target = nodes[..., :-1], torch.where(at_depot, homes.roll(1, -1), nodes)[..., 1:]
        legs = base.leg(x, origin.flatten(1), target.flatten(1)).view(origin.shape)
        return nodes, homes, legs.masked_fill(at_depot[..., 1:] & (x.open > 0)[:, None, None], 0.0)

    def routes(self, x: Instance, tour: Sequence[int]) -> list[tuple[int, list[int]]]:
        """Each route of a tour with the depot where it begins; no empty ones."""
        found: list[tuple[int, list[int]]] = [(0, [])]
        for node in tour:
            if node < x.depots.shape[1]:
                found.append((node, []))
            else:
                found[-1][1].append(node)
        return [route for route in found if route[1]]

    def cost(self, x: Instance, tour: Tensor) -> Tensor:
        return self.driven(x, tour)[2].sum(-1)

    def check(self, x: Instance, tour: Tensor, tolerance: float = base.LENGTH_TOLERANCE) -> None:
        base.check_shape(x, tour)
        places, unused = x.depots.shape[1], x.depots == 0
        count = base.visits(tour, x.xy.shape[1])
        strange = (count[..., :places] > 0) & unused[:, None]
        base.refuse(strange.any(-1), lambda b, s: f"no vehicle starts at node {int(strange[b, s].nonzero()[0])}")
        base.check_once(count, required=True, first=places)
        nodes, homes, legs = self.driven(x, tour)
        route = (nodes < places).cumsum(-1) - 1  # which one a node belongs to; a depot's node, to the one it begins
        self._check_loads(x, nodes, route)
        length = torch.zeros_like(legs).scatter_add(-1, route[..., :-1], legs).amax(-1)
        base.check_length(length, x.max_length, tolerance, "a route")
        self._check_times(x, nodes, homes, legs, tolerance)

    def _check_loads(self, x: Instance, nodes: Tensor, route: Tensor) -> None:
        """A vehicle leaves with all that its route delivers; load [B, S, T + 2] is what is on board behind a node."""
        delivery, pickup = (amount.gather(1, nodes.flatten(1)).view(nodes.shape) for amount in (x.delivery, x.pickup))
        taken = torch.zeros_like(delivery).scatter_add(-1, route, delivery).gather(-1, route)
        at_depot = nodes < x.depots.shape[1]
        done, got = (amount.cumsum(-1) for amount in (delivery, pickup))
        steps = torch.arange(nodes.shape[-1], device=nodes.device)
        begun = torch.where(at_depot, steps, 0).cummax(-1).values
        done, got = done - done.gather(-1, begun), got - got.gather(-1, begun)  # within the route; a depot's are 0
        late = ((delivery > 0) & (got - pickup > 0)).any(-1) & (x.mixed == 0)[:, None]
        words = "a delivery comes after a pickup of the same route; only mixed backhauls may do so"
        base.refuse(late, lambda b, s: words)
        load = taken - done + got
        most = load.amax(-1)
        base.refuse(
            most > x.capacity[:, None],
            lambda b, s: f"a route has {int(most[b, s])} on board; the capacity is {int(x.capacity[b])}",
        )

    def _check_times(self, x: Instance, nodes: Tensor, homes: Tensor, legs: Tensor, tolerance: float) -> None:
        """Along the tour, step by step; a vehicle waits for a window to open."""
        begin, end = x.window.unbind(-1)
        time = base.pick(begin, nodes[..., 0])
        for t in range(legs.shape[-1]):
            here, home = nodes[..., t + 1], homes[..., t]
            back = here < x.depots.shape[1]
            arrival = time + legs[..., t]
            start = torch.where(back, arrival, torch.maximum(arrival, base.pick(begin, here)))
            closing = base.pick(end, home).masked_fill((x.open > 0)[:, None], math.inf)
            due = torch.where(back, closing, base.pick(end, here))
            base.refuse(
                start > due * (1 + tolerance),
                lambda b, s, at=here, start=start, due=due: (
                    f"node {int(at[b, s])} is reached at {base.figure(start[b, s], tolerance)}, "
                    f"after {base.figure(due[b, s], tolerance)}"
                ),
            )
            time = torch.where(back, base.pick(begin, here), start + base.pick(x.service, here))


def draw_windows(rng: base.Rng, away: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """First and last start and duration of service [B, n], by distances from depot 0, from which each is in reach."""
    service = SERVICE[0] + SERVICE[1] * rng.uniform(*away.shape)
    length = WINDOW[0] + WINDOW[1] * rng.uniform(*away.shape)
    away = away.clamp(min=1e-9)  # of a customer at the depot
    latest = (HORIZON - service - length) / away - 1  # in ways from the depot; from there the vehicle is back in time
    begin = (1 + (latest - 1) * rng.uniform(*away.shape)) * away
    return begin, begin + length, service


def draw_limits(rng: base.Rng, away: Tensor) -> Tensor:
    """[B]: enough for the way to the farthest place [B, N] and back."""
    least = 2 * away[:, 1:].amax(1) + CLOSE
    most = (least + CLOSE).clamp(min=LIMIT)
    return least + (most - least) * rng.uniform(away.shape[0])
