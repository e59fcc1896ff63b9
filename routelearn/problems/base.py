"""What a problem is: the Problem protocol, random numbers, legs and the helpers all problems share.

Axes: B instances, S parallel solutions of each (samples, beams and starts share this axis), N nodes,
T steps. Masks say what is allowed: True = may be chosen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from routelearn.errors import Infeasible, InputError

# --------------------------------------------------------------------------------------- random numbers


class Rng(Protocol):
    """The draws a generator of instances may make, in whatever precision the source has."""

    def uniform(self, *shape: int) -> Tensor: ...

    def integers(self, low: int, high: int, *shape: int) -> Tensor:
        """Whole numbers in [low, high)."""
        ...

    def integers_where(self, mask: Tensor, low: int, high: int) -> Tensor:
        """Whole numbers in [low, high) where the mask holds, 0 elsewhere."""
        ...

    def sqrt(self, values: Tensor) -> Tensor:
        """Square roots, exact to the last bit where the draws repeat a published set."""
        ...


class DeviceRng:
    """Draws on `device` from torch's default generator there, so a CUDA graph can capture them."""

    def __init__(self, device: torch.device | str = "cpu", dtype: torch.dtype = torch.float32):
        self.device, self.dtype = torch.device(device), dtype

    def uniform(self, *shape: int) -> Tensor:
        return torch.rand(shape, device=self.device, dtype=self.dtype)

    def integers(self, low: int, high: int, *shape: int) -> Tensor:
        return torch.randint(low, high, shape, device=self.device)

    def integers_where(self, mask: Tensor, low: int, high: int) -> Tensor:
        return self.integers(low, high, *mask.shape) * mask

    def sqrt(self, values: Tensor) -> Tensor:
        return values.sqrt()


class NumpyRng:
    """Draws in float64 from `numpy.random.RandomState(seed)`: the stream of the paper's published sets."""

    def __init__(self, seed: int):
        self.state = np.random.RandomState(seed)

    def uniform(self, *shape: int) -> Tensor:
        return torch.from_numpy(self.state.uniform(size=shape))

    def integers(self, low: int, high: int, *shape: int) -> Tensor:
        return torch.from_numpy(self.state.randint(low, high, size=shape)).long()

    def integers_where(self, mask: Tensor, low: int, high: int) -> Tensor:
        """As many draws as the mask has places: public sets are drawn so."""
        return torch.zeros(mask.shape, dtype=torch.long).masked_scatter(mask, self.integers(low, high, int(mask.sum())))

    def sqrt(self, values: Tensor) -> Tensor:
        """By numpy, which rounds correctly; torch is a bit off for about 1 in 70 numbers."""
        return torch.from_numpy(np.sqrt(values.numpy()))


# --------------------------------------------------------------------------------------------- protocol


class Context(NamedTuple):
    """What the decoder's query is made of at one step (section 3.2)."""

    nodes: Tensor  # [B, S, K] long: nodes whose embeddings enter the query; -1 = learned placeholder
    scalars: Tensor  # [B, S, C]: remaining capacity, length, prize, ...


@runtime_checkable
class Instance(Protocol):
    """What all instances have; their other fields are the problem's own."""

    xy: Tensor  # [B, N, 2]
    distances: Tensor | None  # [B, N, N]

    def public(self) -> Any:
        """The instance without what a policy or a solver must not see."""
        ...


@runtime_checkable
class Problem(Protocol):
    """All that is known of one problem. `Instance` and `State` are NamedTuples of tensors.

    An Instance has `xy` [B, N, 2] and `distances` (None or [B, N, N]); its `public()` hides what a
    policy or a solver must not see. Every function is pure, works on any device, and reads no tensor
    value on the host, except `max_steps`, `validate` and `check`, which are never called in a loop.

    Optional: `attributes`, a tuple that declares the other fields of the Instance (problems/attributes.py); `title`, a
    line for people; `preference`, a number: of two problems that stops fit alike, the one with the lower (0 for the
    usual variant, 1 if it is missing) is taken; the methods of the protocols below.
    """

    name: str
    feature_dims: tuple[int, ...]  # columns of each node group; the first two are always coordinates
    context_nodes: int  # K: node slots of the context
    context_scalars: int  # C: scalars of the context
    step_dim: int  # G: features per node that change from step to step
    has_depot: bool  # node 0 is the depot and nodes 1.. are customers
    maximise: bool  # people state the objective as -cost
    reveals_on_visit: bool  # part of the cost stays hidden until a node is visited: no hindsight

    def sample(self, rng: Rng, batch: int, n: int) -> Any: ...

    def validate(self, x: Any) -> None:
        """Raise InputError, naming the row, where an instance breaks the problem's assumptions."""
        ...

    def max_steps(self, x: Any) -> int:
        """A number of steps that no solution of these very instances exceeds."""
        ...

    def features(self, x: Any) -> tuple[Tensor, ...]:
        """Per node group [B, n_g, f_g]."""
        ...

    def initial(self, x: Any, solutions: int) -> Any: ...

    def feasible(self, x: Any, s: Any) -> Tensor:
        """[B, S, N] bool, never empty: a finished solution keeps exactly one node."""
        ...

    def step(self, x: Any, s: Any, action: Tensor) -> Any: ...

    def done(self, x: Any, s: Any) -> Tensor:
        """[B, S] bool; absorbing, and going on adds no cost."""
        ...

    def context(self, x: Any, s: Any) -> Context: ...

    def step_features(self, x: Any, s: Any) -> Tensor | None:
        """[B, S, N, G], or None where G = 0."""
        ...

    def starts(self, x: Any) -> Tensor:
        """[B, N] bool: legal first nodes that a multi-start may force."""
        ...

    def cost(self, x: Any, tour: Tensor) -> Tensor:
        """[B, S] from tours [B, S, T]: what is minimised. The referee's number."""
        ...

    def check(self, x: Any, tour: Tensor, tolerance: float = 1e-5) -> None:
        """Raise Infeasible for the first tour of [B, S, T] that breaks a rule.

        Sums of fractions (a length, a prize) may miss their limit by that share of it, for rounding; whole numbers
        may not.
        """
        ...


@runtime_checkable
class Varies(Protocol):
    """Optional for a Problem: a family, whose instances are of several variants with names."""

    variant_names: tuple[str, ...]
    variants: str  # those that `sample` draws, as `with_variants` reads them
    test_set: str  # the public collection that one variant's draws repeat
    test_instances: int  # in each of its sets

    def with_variants(self, names: str) -> Any:
        """The same problem, of which `sample` draws these variants alone."""
        ...

    def variant_of(self, x: Any) -> Tensor:
        """[B]: which of `variant_names` each instance is."""
        ...

    def turns(self) -> tuple[Any, ...]:
        """The problems that training draws from by turns, so that it meets every shape that an instance may have."""
        ...


def declared_search(problem: Any) -> str | None:
    """The search engine that the problem's own class names in `search`; None: the general one.

    What a class inherits does not count, because a subclass may change the rules.
    """
    return vars(type(problem)).get("search")


class Units(NamedTuple):
    """How an instance's numbers translate into those of whoever gave the stops."""

    length: float = 1.0  # user units per instance unit
    prize: float = 1.0  # user units per instance unit
    demand: int = 1  # whole instance units per user unit


class Explanation(NamedTuple):
    """A state in words, for people who watch a construction."""

    remaining: dict[str, float]  # what is left, by name
    masked: dict[int, str]  # node -> why it may not be chosen


@runtime_checkable
class Explains(Protocol):
    """Optional for a Problem: what the page shows beside a step. Without it, masked nodes have no reason there."""

    def explain(self, x: Any, s: Any, units: Units) -> Explanation:
        """Of one solution of one instance (B = S = 1), in the user's units. Never called while training."""
        ...


class Given(Protocol):
    """A user's stops, as a problem may look at them before they become an instance, in the user's own numbers."""

    @property
    def source(self) -> str: ...  # begins every message
    @property
    def columns(self) -> Mapping[str, Sequence[Any]]: ...  # by attribute, in the order of the file
    @property
    def limits(self) -> Mapping[str, Any]: ...  # by attribute, of the whole file
    @property
    def defaults(self) -> Set[str]: ...  # attributes that nobody gave

    def at(self, stop: int, name: str | None = None) -> str:
        """Where the file gives a stop or its attribute, to begin a message with."""
        ...

    def called(self, stop: int) -> str:
        """The stop's id, for a message."""
        ...


@runtime_checkable
class ChecksStops(Protocol):
    """Optional for a Problem: refuse stops in the user's words, where `validate` could only speak of nodes."""

    def check_stops(self, given: Given) -> None: ...


@runtime_checkable
class MeasuresPrizes(Protocol):
    """Optional for a Problem: what prizes are measured by when a policy sees them; otherwise by the largest."""

    def prize_unit(self, x: Any) -> Tensor:
        """[B], above 0."""
        ...


@runtime_checkable
class Imagines(Protocol):
    """Optional for a Problem that reveals values on the visit: what is known of them before."""

    def imagined(self, x: Any, rng: Rng) -> Any:
        """Public instances with hidden values drawn from their known distribution, each on its own."""
        ...


@runtime_checkable
class Splits(Protocol):
    """Optional for a Problem: what each visit brings, where that is not all that the stop is to get."""

    def delivered(self, x: Any, routes: Sequence[Sequence[int]]) -> list[list[int]]:
        """For every visit of the routes of one instance (B = 1), in whole units."""
        ...


@runtime_checkable
class MeasuresLegs(Protocol):
    """Optional for a Problem: its own lengths, for the search and for the lengths of routes that people are told."""

    def legs(self, x: Any) -> Tensor:
        """[B, N, N] from row to column."""
        ...


def leg_of(problem: Any, x: Any, origin: Tensor, target: Tensor) -> Tensor:
    """The length of origin -> target, [B, S] each, as the problem counts it."""
    return leg(x._replace(distances=problem.legs(x)) if isinstance(problem, MeasuresLegs) else x, origin, target)


LARGE = 2_500  # nodes beyond which a search measures legs as it goes: a matrix takes longer to fill, and to read


def is_large(problem: Problem, x: Any) -> bool:
    """Whether a search of the instance works without a matrix of its legs."""
    known = declared_search(problem) is not None and not isinstance(problem, MeasuresLegs)
    return known and not has_matrix(x) and x.xy.shape[1] > LARGE


def routes_of(tour: Sequence[int]) -> list[list[int]]:
    """The customers between visits to the depot, node 0; no empty routes."""
    routes: list[list[int]] = [[]]
    for node in tour:
        if node:
            routes[-1].append(node)
        else:
            routes.append([])
    return [route for route in routes if route]


def masked_nodes(feasible: Tensor) -> list[int]:
    """The nodes that [1, 1, N] does not allow."""
    return (~feasible[0, 0]).nonzero()[:, 0].tolist()


# ------------------------------------------------------------------------------------- instance helpers


def map_instance(fn: Any, x: Any) -> Any:
    """Apply `fn` to every tensor of an instance or a state, those of its parts among them; None stays None."""

    def mapped(field: Any) -> Any:
        if field is None:
            return None
        return fn(field) if isinstance(field, Tensor) else map_instance(fn, field)

    return type(x)(*map(mapped, x))


def take(x: Any, rows: Any) -> Any:
    """The chosen rows (a slice or an index tensor) of every field."""
    return map_instance(lambda field: field[rows], x)


def concat(parts: Sequence[Any]) -> Any:
    """Stack instances (or states) of one size along the batch."""
    first = parts[0]
    return type(first)(*(None if field[0] is None else torch.cat(field) for field in zip(*parts, strict=True)))


def repeat(x: Any, times: int) -> Any:
    """Every instance `times` times, copies of one instance adjacent."""
    return x if times == 1 else map_instance(lambda field: field.repeat_interleave(times, 0), x)


def to_single(x: Any) -> Any:
    """Floats to single precision, as the published sets are after their double-precision draws."""
    return map_instance(lambda field: field.float() if field.is_floating_point() else field, x)


def to_device(x: Any, device: torch.device | str) -> Any:
    return map_instance(lambda field: field.to(device), x)


def with_depot(depot: Tensor, customers: Tensor) -> Tensor:
    """[B, 2] and [B, n, 2] -> [B, n + 1, 2], depot first."""
    return torch.cat((depot[:, None], customers), 1)


def depot_zero(customers: Tensor) -> Tensor:
    """[B, n] -> [B, n + 1] with 0 for the depot."""
    return torch.nn.functional.pad(customers, (1, 0))


def begun_at_depot(x: Any, solutions: int) -> tuple[Tensor, Tensor]:
    """Of solutions before their first step: they are at node 0 [B, S], and nothing is visited [B, S, N]."""
    batch, nodes = x.xy.shape[:2]
    depot = torch.zeros((batch, solutions), dtype=torch.long, device=x.xy.device)
    return depot, torch.zeros((batch, solutions, nodes), dtype=torch.bool, device=x.xy.device)


def all_but_depot(x: Any) -> Tensor:
    """[B, N] bool: every node but node 0."""
    nodes = torch.ones(x.xy.shape[:2], dtype=torch.bool, device=x.xy.device)
    nodes[:, 0] = False
    return nodes


def interpolated(n: int, anchors: dict[int, float]) -> float:
    """The value for size n: exact at the anchors, linear in sqrt(n) between and beyond them.

    Tour lengths grow with sqrt(n), so length limits and penalties do; never below the smallest anchor
    scaled by sqrt(n).
    """
    if n in anchors:
        return anchors[n]
    sizes = sorted(anchors)
    if n < sizes[0]:
        return anchors[sizes[0]] * (n / sizes[0]) ** 0.5
    upper = next((i for i, size in enumerate(sizes) if size > n), len(sizes) - 1)
    a, b = sizes[upper - 1], sizes[upper]
    share = (n**0.5 - a**0.5) / (b**0.5 - a**0.5)
    return anchors[a] + share * (anchors[b] - anchors[a])


# -------------------------------------------------------------------------------------- gathers and legs


def pick(values: Tensor, nodes: Tensor) -> Tensor:
    """values [B, N] (or [B, N, 2]) at nodes [B, S] -> [B, S] (or [B, S, 2])."""
    if values.dim() == 2:
        return values.gather(1, nodes)
    return values.gather(1, nodes[..., None].expand(*nodes.shape, values.shape[-1]))


def is_node(nodes: Tensor, count: int) -> Tensor:
    """[B, S] -> [B, S, count] bool, True at the node itself."""
    return nodes[..., None] == torch.arange(count, device=nodes.device)


ROUNDINGS = ("", "EUC_2D", "CEIL_2D")  # TSPLIB's rules by their number: to the nearest whole, or up


class Rounded(NamedTuple):
    """An instance's `distances` where a matrix would be too large: straight lines, rounded when they are asked for."""

    rule: Tensor  # [B]: an index of ROUNDINGS

    def round(self, straight: Tensor) -> Tensor:
        """Straight lengths [B, ...] by the rules."""
        rule = self.rule.view(-1, *(1 for _ in straight.shape[1:]))
        return torch.where(rule == 1, (straight + 0.5).floor(), straight.ceil())


def straight(x: Any, offsets: Tensor) -> Tensor:
    """Lengths of offsets [..., 2] between places, as an instance without a matrix measures them."""
    lengths = offsets.norm(dim=-1)
    return lengths if x.distances is None else x.distances.round(lengths)


def has_matrix(x: Any) -> bool:
    return isinstance(x.distances, Tensor)


def leg(x: Any, origin: Tensor, target: Tensor) -> Tensor:
    """Length of origin -> target, [B, S] each: from the matrix where the instance has one."""
    if not has_matrix(x):
        return straight(x, pick(x.xy, target) - pick(x.xy, origin))
    count = x.distances.shape[-1]
    return x.distances.flatten(1).gather(1, origin * count + target)


def legs_from(x: Any, origin: Tensor) -> Tensor:
    """Lengths from origin [B, S] to every node, [B, S, N]."""
    if not has_matrix(x):
        return straight(x, x.xy[:, None] - pick(x.xy, origin)[:, :, None])
    count = x.distances.shape[-1]
    return x.distances.gather(1, origin[..., None].expand(*origin.shape, count))


def legs_to_depot(x: Any) -> Tensor:
    """Lengths from every node back to node 0, [B, N]."""
    if not has_matrix(x):
        return straight(x, x.xy - x.xy[:, :1])
    return x.distances[:, :, 0]


def legs_to(x: Any, target: Tensor) -> Tensor:
    """Lengths from every node to target [B, S], [B, S, N]."""
    return legs_from(x if not has_matrix(x) else x._replace(distances=x.distances.transpose(1, 2)), target)


def distance_matrix(x: Any) -> Tensor:
    """[B, N, N]: the instance's own matrix, or the Euclidean one."""
    return x.distances if has_matrix(x) else straight(x, x.xy[:, :, None] - x.xy[:, None])


def closed_length(x: Any, tour: Tensor) -> Tensor:
    """Length of each tour [B, S, T] with the way back from its last node to its first, [B, S]."""
    batch, solutions, steps = tour.shape
    flat = tour.flatten(1)
    following = tour.roll(-1, 2).flatten(1)
    return leg(x, flat, following).view(batch, solutions, steps).sum(-1)


def from_depot(tour: Tensor) -> Tensor:
    """The tour with the depot in front."""
    return torch.nn.functional.pad(tour, (1, 0))


def collected(values: Tensor, tour: Tensor) -> Tensor:
    """Sum of values [B, N] over the nodes of tours [B, S, T], [B, S]."""
    return values.gather(1, tour.flatten(1)).view(tour.shape).sum(-1)


# ------------------------------------------------------------------------------------------- refereeing

LENGTH_TOLERANCE = 1e-5  # relative; single precision sums a tour's length to about 1e-6
EXACT = 1e-10  # the same for what is built in double precision: a tour that fills its limit exactly must fit


def figure(value: Tensor, tolerance: float) -> str:
    """A number in a refusal, with digits enough to show what is beyond the tolerance."""
    return f"{float(value):.{6 if tolerance >= LENGTH_TOLERANCE else 12}g}"


def refuse(bad: Tensor, reason: Any) -> None:
    """Raise Infeasible for the first True of bad [B, S]; reason(row, solution) words it."""
    if bad.any():
        row, solution = bad.nonzero()[0].tolist()
        raise Infeasible(row, reason(row, solution), solution)


def check_shape(x: Any, tour: Tensor) -> None:
    """A tour is [B, S, T] whole numbers that name nodes of the instance."""
    batch, nodes = x.xy.shape[:2]
    if tour.dim() != 3 or tour.shape[0] != batch:
        raise InputError(f"tours have shape {tuple(tour.shape)}; {batch} instances need [{batch}, S, T]")
    if tour.dtype != torch.long:
        raise InputError(f"tours hold {tour.dtype}; node numbers are whole numbers (torch.int64)")
    outside = (tour < 0) | (tour >= nodes)
    refuse(
        outside.any(-1),
        lambda b, s: f"node {int(tour[b, s][outside[b, s]][0])} does not exist; nodes are 0 to {nodes - 1}",
    )


def visits(tour: Tensor, count: int) -> Tensor:
    """How often each node stands in each tour, [B, S, count]."""
    zeros = torch.zeros(*tour.shape[:2], count, dtype=torch.long, device=tour.device)
    return zeros.scatter_add(-1, tour, torch.ones_like(tour))


def check_once(count: Tensor, *, required: bool, first: int = 1) -> None:
    """Customers (count [B, S, N], the nodes before `first` left out) are visited at most once, or exactly once."""
    twice = count[..., first:] > 1
    refuse(twice.any(-1), lambda b, s: f"node {int(twice[b, s].nonzero()[0]) + first} is visited more than once")
    if required:
        missing = count[..., first:] == 0
        refuse(missing.any(-1), lambda b, s: f"node {int(missing[b, s].nonzero()[0]) + first} is never visited")


def check_length(length: Tensor, limit: Tensor, tolerance: float, what: str) -> None:
    """Lengths [B, S] keep their instance's limit [B]; `what` is so long."""
    refuse(
        length > limit[:, None] * (1 + tolerance),
        lambda b, s: f"{what} is {figure(length[b, s], tolerance)} long; {figure(limit[b], tolerance)} is allowed",
    )


def check_ends_at_depot(tour: Tensor) -> None:
    """A single route from the depot: after the return nothing but the depot may follow."""
    closed = (tour == 0).cumsum(-1) > 0
    after = closed & (tour != 0)
    refuse(after.any(-1), lambda b, s: f"node {int(tour[b, s][after[b, s]][0])} comes after the return to the depot")


# ------------------------------------------------------------------------------------------- validating


def check_finite(x: Any, problem: str) -> None:
    """Coordinates, and the matrix if there is one, are finite and have the right shape."""
    if x.xy.dim() != 3 or x.xy.shape[-1] != 2:
        raise InputError(f"{problem}: coordinates have shape {tuple(x.xy.shape)}; they must be [instances, nodes, 2]")
    if not x.xy.is_floating_point():
        raise InputError(f"{problem}: coordinates are {x.xy.dtype}; they must be floats")
    reject_rows(~x.xy.isfinite().flatten(1).all(1), f"{problem}: a coordinate is not a finite number")
    if has_matrix(x):
        batch, nodes = x.xy.shape[:2]
        if tuple(x.distances.shape) != (batch, nodes, nodes):
            raise InputError(
                f"{problem}: the distance matrix has shape {tuple(x.distances.shape)}; "
                f"{nodes} nodes need [{batch}, {nodes}, {nodes}]"
            )
        if not x.distances.is_floating_point():
            raise InputError(f"{problem}: distances are {x.distances.dtype}; they must be floats")
        low, high = x.distances.flatten(1).aminmax(dim=1)  # NaN if one is
        reject_rows(~((low >= 0) & (high < torch.inf)), f"{problem}: a distance is negative or not a finite number")
        itself = x.distances.diagonal(dim1=1, dim2=2)
        reject_rows((itself != 0).any(1), f"{problem}: the distance from a node to itself is not 0")


def check_column(x: Any, column: str, problem: str) -> Tensor:
    """A per-node field has the shape of the nodes and is finite; gives it back."""
    values: Tensor = getattr(x, column)
    if values.shape != x.xy.shape[:2]:
        raise InputError(
            f"{problem}: {column} has shape {tuple(values.shape)}; {tuple(x.xy.shape[:2])} is [instances, nodes]"
        )
    reject_rows(~values.isfinite().all(1), f"{problem}: a {column} is not a finite number")
    return values


def check_limit(x: Any, column: str, problem: str) -> Tensor:
    """A field with one value per instance has that shape and is finite; gives it back."""
    values: Tensor = getattr(x, column)
    if values.shape != x.xy.shape[:1]:
        raise InputError(f"{problem}: {column} has shape {tuple(values.shape)}; expected ({x.xy.shape[0]},)")
    reject_rows(~values.isfinite(), f"{problem}: a {column} is not a finite number")
    return values


def reject_rows(bad: Tensor, message: str) -> None:
    """Raise InputError naming the first row where bad [B] holds."""
    if bad.any():
        raise InputError(f"{message} (instance {int(bad.nonzero()[0])})")
