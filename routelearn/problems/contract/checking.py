"""The contract of a problem: `check_problem` tells the author of a new one exactly what is wrong with it.

It walks through random solutions, solutions that take the first feasible node (so they return to the depot
whenever they may) and solutions that take the last one, and holds every call against the Problem protocol.
Everything runs on the CPU in a few seconds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, get_origin, get_type_hints

import torch
from torch import Tensor

from routelearn.errors import Infeasible, InputError, fault
from routelearn.problems import base, get
from routelearn.problems.attributes import RESERVED, declared, first_customer
from routelearn.problems.contract.forcing import Forced, forced_tours
from routelearn.problems.contract.host_sync import no_host_sync
from routelearn.problems.contract.searching import check_search
from routelearn.problems.contract.walks import RANDOM, Walk, changed, snapshot, walk

EXTRA = 3  # steps beyond the bound, in which everything is finished and must stay so
FORCED = 64  # tours of each kind into which a masked move is forced, at most
FEWEST_FORCED = 8  # of a kind, before it is reported that check objects to none
FAR = 1000.0  # times the longest leg: a detour that no problem can overlook


class ContractError(AssertionError):
    """A problem breaks the contract; the message names the rule, the field, and the step and row if there is one."""


def layout(value: Any) -> str:
    return f"{value.dtype} {list(value.shape)}" if isinstance(value, Tensor) else repr(value)


class Demand(NamedTuple):
    """One rule of the contract, under which demands are made."""

    rule: str

    def __call__(self, condition: bool, wrong: str) -> None:
        if not condition:
            raise ContractError(f"{self.rule}: {wrong}")

    def tensor(self, name: str, value: Any, dtype: torch.dtype, *shape: int) -> None:
        """Demand a tensor of that dtype and shape."""
        right = isinstance(value, Tensor) and value.dtype == dtype and value.shape == shape
        self(right, f"{name} is {layout(value)}; expected {dtype} {list(shape)}")

    def nowhere(self, bad: Tensor, wrong: str) -> None:
        """Demand that bad [B] or [B, S] holds nowhere; the message ends with the first place where it does."""
        if bad.any():
            row, *solution = bad.nonzero()[0].tolist()
            raise ContractError(f"{self.rule}: {wrong} (row {row}{f', solution {solution[0]}' if solution else ''})")


@contextmanager
def rule(problem: Any, words: str) -> Iterator[Demand]:
    """Demands under the rule `words`; an error of the problem itself is reported there, with its line."""
    kind = problem if isinstance(problem, type) else type(problem)
    demand = Demand(f"{getattr(problem, 'name', kind.__name__)}: {words}")
    try:
        yield demand
    except ContractError:
        raise
    except (Infeasible, InputError) as error:  # in the problem's own words
        raise ContractError(f"{demand.rule}: {type(error).__name__}: {error}") from error
    except Exception as error:
        raise ContractError(f"{demand.rule}: {fault(error, kind)}") from error


def check_problem(problem: Any, *, n: int = 8, batch: int = 16, seed: int = 0) -> None:
    """Hold `problem` against the whole contract of `Problem`; raise ContractError at the first breach.

    `problem` is an object, a class made without arguments, or a registered name. `n` customers (or nodes, where there
    is no depot) and `batch` instances are drawn by the problem itself.
    """
    if isinstance(problem, str):
        problem = get(problem)
    elif isinstance(problem, type):
        with rule(problem, "made without arguments"):
            problem = problem()
    _attributes(problem)
    single = _instance(problem, n, batch, seed)
    _declarations(problem, single)
    double = base.map_instance(lambda field: field.double() if field.is_floating_point() else field, single)
    _features(problem, single)
    _costs(problem, single, _steps(problem, single, seed))
    walked = _steps(problem, double, seed)
    _costs(problem, double, walked)
    # Comparisons of masks are made in double precision, where rounding does not tip them.
    _starts(problem, double, seed)
    _replays(problem, double, walked, seed)
    _legs(problem, double, walked)
    _secrets(problem, double, walked)
    _refusals(problem, double, walked)
    _search(problem, double, walked, _forced(problem, double, walked))
    _sync(problem, single, seed)
    _device(problem, single, n)
    _trace(problem, single, seed)


def _attributes(problem: Any) -> None:
    with rule(problem, "attributes") as demand:
        for name, hint in get_type_hints(base.Problem).items():
            kind = get_origin(hint) or hint
            demand(hasattr(problem, name), f"{name} is missing; it must be a {kind.__name__}")
            value = getattr(problem, name)
            right = isinstance(value, kind) and not (kind is int and isinstance(value, bool))
            demand(right, f"{name} is {value!r}; it must be a {kind.__name__}")
        widths = problem.feature_dims
        right = bool(widths) and all(isinstance(width, int) and width >= 2 for width in widths)
        demand(right, f"feature_dims is {widths}; every node group has at least its two coordinates")
        demand(problem.context_nodes >= 1, "context_nodes is below 1; the query needs a node or its placeholder")
        demand(min(problem.context_scalars, problem.step_dim) >= 0, "context_scalars or step_dim is negative")


def _instance(problem: Any, n: int, batch: int, seed: int) -> Any:
    """Single-precision instances, drawn by the problem."""
    with rule(problem, "sample") as demand:
        x = problem.sample(base.NumpyRng(seed), batch, n)
        fields = getattr(x, "_fields", ())
        known = {"xy", "distances"} <= set(fields)
        demand(known, f"it gives a {type(x).__name__}; expected a NamedTuple of tensors, xy and distances among them")
        x = base.to_single(x)
        demand(callable(getattr(x, "public", None)), "the instance has no public()")
        demand.tensor("xy", x.xy, torch.float32, batch, n + first_customer(problem, x), 2)
        for field, value in zip(fields, x, strict=True):
            right = value is None or (isinstance(value, Tensor) and value.shape[:1] == (batch,))
            demand(right, f"{field} is {layout(value)}; a field is None or a tensor [{batch}, ...]")
        differs = changed(x, base.to_single(problem.sample(base.NumpyRng(seed), batch, n)))
        demand(differs is None, f"{differs} differs between two draws of one seed; draw from rng alone")
        with torch.random.fork_rng(devices=[]):
            drawn = problem.sample(base.DeviceRng(), batch, n)
        for field, ours, theirs in zip(fields, x, drawn, strict=True):
            same = layout(ours) == layout(theirs)
            demand(same, f"{field} is {layout(ours)} with NumpyRng and {layout(theirs)} with DeviceRng")
    with rule(problem, "validate") as demand:
        problem.validate(x)
        full = x._replace(distances=base.distance_matrix(x))
        for field, value in zip(fields, full, strict=True):
            if value is not None and value.is_floating_point():
                broken = value.clone()
                broken.view(-1)[-1] = torch.nan
                refused = _refused(demand, problem.validate, full._replace(**{field: broken}))
                demand(isinstance(refused, InputError), f"NaN in {field} is not refused with InputError ({refused!r})")
    with rule(problem, "max_steps") as demand:
        bound = problem.max_steps(x)
        demand(type(bound) is int and bound >= 1, f"it gives {bound!r}; expected an int above 0")
    return x


def _declarations(problem: Any, x: Any) -> None:
    """The declared attributes are the fields of the instance, of their kind and shape."""
    with rule(problem, "declarations") as demand:
        attributes = declared(problem)
        if attributes is None:
            return
        batch, nodes = x.xy.shape[:2]
        axes = {"stop": (batch, nodes), "vehicle": (batch,), "instance": (batch,), "leg": (batch, nodes, nodes)}
        axes["depot"] = (batch, first_customer(problem, x))
        names = {one.name for one in attributes}
        undeclared = [field for field in x._fields if field not in names and field not in RESERVED]
        demand(not undeclared, f"{', '.join(undeclared)} of the instance is not among the attributes")
        for one in attributes:
            demand(one.name in x._fields, f"the attribute {one.name} is not a field of the instance")
            value = getattr(x, one.name)
            demand(value is not None or not one.required, f"{one.name} is required, but sample leaves it None")
            if value is None:
                continue
            shape = (*axes[one.of], *one.shape)
            demand(value.shape == shape, f"{one.name} has shape {list(value.shape)}; declared is {list(shape)}")
            kind = "whole numbers" if one.whole else "fractions"
            demand(value.is_floating_point() != one.whole, f"{one.name} is {value.dtype}; declared are {kind}")
            hidden = one.revealed_on_visit
            kept = getattr(x.public(), one.name) is None
            demand(kept or not hidden, f"{one.name} is declared as revealed on the visit, but public() shows it")
            demand(hidden or not kept, f"public() hides {one.name}, which is not declared as revealed on the visit")
        if isinstance(problem, base.Varies):  # stops never fill its instances: they are solved as rounds
            return
        absent = ("distances", *(one.name for one in attributes if not one.required and one.default is None))
        for field in absent:
            wrong = f"stops need not give {field}; give the field of {type(x).__name__} a default: {field} = None"
            demand(field in x._field_defaults, wrong)


def _refused(demand: Demand, call: Callable[..., Any], *arguments: Any) -> Exception | None:
    """The Infeasible or InputError that the call raised."""
    try:
        answer = call(*arguments)
    except (Infeasible, InputError) as error:
        return error
    wrong = f"{call.__name__}() gives {layout(answer)}; what is wrong must be raised, as Infeasible or InputError"
    demand(answer is None or answer is True, wrong)
    return None


def _features(problem: Any, x: Any) -> None:
    widths, (batch, nodes) = problem.feature_dims, x.xy.shape[:2]
    with rule(problem, "features") as demand:
        groups = problem.features(x)
        right = isinstance(groups, tuple) and len(groups) == len(widths)
        demand(right, f"expected a tuple of {len(widths)} tensors, one for each of feature_dims {widths}")
        for i, (group, width) in enumerate(zip(groups, widths, strict=True)):
            demand.tensor(f"group {i}", group, x.xy.dtype, batch, group.shape[1], width)
            demand.nowhere(~group.isfinite().flatten(1).all(1), f"group {i} holds a number that is not finite")
        xy = torch.cat([group[..., :2] for group in groups], 1)
        demand(xy.shape == x.xy.shape, f"the groups hold {xy.shape[1]} nodes together; the instance has {nodes}")
        demand(torch.equal(xy, x.xy), "the first two columns of the groups, in order, are not the coordinates xy")
    with rule(problem, "public") as demand:
        public = x.public()
        demand(type(public) is type(x), f"public() gives {type(public).__name__}, not {type(x).__name__}")
        for i, (group, seen) in enumerate(zip(groups, problem.features(public), strict=True)):
            demand(torch.equal(group, seen), f"features of group {i} need what public() hides")


def _steps(problem: Any, x: Any, seed: int) -> Walk:
    """Shapes, dtypes, masks, purity and absorption at every step of a walk to the bound and beyond."""
    batch, nodes, _ = x.xy.shape
    pair, real = (batch, RANDOM + 2), x.xy.dtype
    steps, given = problem.max_steps(x), snapshot(x)
    finished: list[Tensor] = [torch.zeros(pair, dtype=torch.bool)]
    before: list[Any] = []

    with rule(problem, "initial") as demand:
        first = problem.initial(x, pair[1])
        demand(hasattr(first, "_fields"), f"the state is a {type(first).__name__}; expected a NamedTuple of tensors")
        for field, value in zip(first._fields, first, strict=True):
            right = isinstance(value, Tensor) and value.shape[:2] == pair
            demand(right, f"{field} is {layout(value)}; expected a tensor [{batch}, {pair[1]}, ...]")

    def inspect(t: int, state: Any, mask: Tensor) -> None:
        before.append(snapshot(state))
        with rule(problem, "feasible") as demand:
            demand.tensor(f"step {t}: the mask", mask, torch.bool, *pair, nodes)
        with rule(problem, "done") as demand:
            done = problem.done(x, state)
            demand.tensor(f"step {t}: done", done, torch.bool, *pair)
        with rule(problem, "the mask is never empty") as demand:
            demand.nowhere(~mask.any(-1), f"no node is feasible at step {t}")
        with rule(problem, "finished is absorbing") as demand:
            demand.nowhere(finished[-1] & ~done, f"done() goes back to False at step {t}")
            several = done & (mask.sum(-1) != 1)
            demand.nowhere(several, f"a finished solution has not exactly one feasible node at step {t}")
        finished.append(done)
        with rule(problem, "context") as demand:
            context = problem.context(x, state)
            demand(isinstance(context, base.Context), f"step {t}: it gives {type(context).__name__}, not Context")
            demand.tensor(f"step {t}: nodes", context.nodes, torch.long, *pair, problem.context_nodes)
            outside = ((context.nodes < -1) | (context.nodes >= nodes)).any(-1)
            demand.nowhere(outside, f"step {t}: nodes are outside -1 to {nodes - 1}")
            demand.tensor(f"step {t}: scalars", context.scalars, real, *pair, problem.context_scalars)
            demand.nowhere(~context.scalars.isfinite().all(-1), f"step {t}: a scalar is not finite")
        with rule(problem, "step_features") as demand:
            extra = problem.step_features(x, state)
            if problem.step_dim:
                demand.tensor(f"step {t}: the features", extra, real, *pair, nodes, problem.step_dim)
                demand.nowhere(~extra.isfinite().flatten(2).all(-1), f"step {t}: a feature is not finite")
            else:
                demand(extra is None, f"step {t}: it gives {layout(extra)}; step_dim 0 means None")
        with rule(problem, "functions are pure") as demand:
            field = changed(before[-1], state)
            demand(field is None, f"feasible, done, context or step_features changed the state's {field} at step {t}")

    def stepped(t: int, state: Any, following: Any) -> None:
        with rule(problem, "steps are pure") as demand:
            field = changed(before[-1], state)
            demand(field is None, f"step() changed {field} of the state it was given at step {t}; return a new state")
            field = changed(given, x)
            demand(field is None, f"{field} of the instance was changed at step {t}")
        with rule(problem, "step") as demand:
            wrong = f"step {t}: it gives {type(following).__name__}, not {type(state).__name__}"
            demand(type(following) is type(state), wrong)
            for field, old, new in zip(state._fields, state, following, strict=True):
                demand(layout(old) == layout(new), f"step {t}: {field} was {layout(old)} and becomes {layout(new)}")

    with rule(problem, "feasible and step"):
        walked = walk(problem, x, pair[1], steps + EXTRA, seed=seed, inspect=inspect, stepped=stepped)
    with rule(problem, "max_steps") as demand:
        demand.nowhere(~walked.done[..., steps], f"not finished after {steps} steps, the bound it gives")
    return walked


def _costs(problem: Any, x: Any, walked: Walk) -> None:
    tour = walked.tour
    with rule(problem, "cost") as demand:
        cost = problem.cost(x, tour)
        demand.tensor("the cost", cost, x.xy.dtype, *tour.shape[:2])
        demand.nowhere(~cost.isfinite(), "a cost is not finite")
    with rule(problem, "going on after the end costs nothing") as demand:
        for t in range(1, tour.shape[2]):
            early = problem.cost(x, tour[..., :t])
            off = walked.done[..., t] & ~torch.isclose(early, cost, rtol=1e-5, atol=1e-5)
            demand.nowhere(off, f"finished after {t} steps, yet later steps change the cost")
    with rule(problem, "check accepts every solution the mask allows"):
        problem.check(x, tour)
        problem.check(x, tour[..., :-EXTRA])


def _starts(problem: Any, x: Any, seed: int) -> None:
    with rule(problem, "starts") as demand:
        starts = problem.starts(x)
        demand.tensor("the mask", starts, torch.bool, *x.xy.shape[:2])
        blocked = starts & ~problem.feasible(x, problem.initial(x, 1))[:, 0]
        demand.nowhere(blocked.any(1), "a node is a start, but not feasible as the first node")
        rows = starts.any(1)
        if rows.any():
            x, starts = base.take(x, rows), starts[rows]
            # The first start stands in for the nodes that are none, so that every row has equally many.
            nodes = torch.arange(starts.shape[1]).expand_as(starts)
            forced = torch.where(starts, nodes, starts.long().argmax(1, keepdim=True))[..., None]
            walked = walk(problem, x, starts.shape[1], problem.max_steps(x), given=forced, seed=seed)
            problem.check(x, walked.tour)


class Look(NamedTuple):
    """All that a policy is given at one step."""

    mask: Tensor  # [B, S, N]
    end: Tensor  # [B, S, 1]
    nodes: Tensor  # [B, S, K]
    scalars: Tensor  # [B, S, C]
    features: Tensor  # [B, S, N, G]


LOOK = ("mask", "end", "context", "context", "step_features")  # what messages call its fields


def _look(problem: Any, x: Any, state: Any) -> Look:
    mask, context, extra = problem.feasible(x, state), problem.context(x, state), problem.step_features(x, state)
    extra = mask[..., None, :0] if extra is None else extra
    return Look(mask, problem.done(x, state)[..., None], context.nodes, context.scalars, extra)


def _looks(problem: Any, x: Any, tour: Tensor) -> list[Look]:
    """What is seen on the way of a tour [B, S, T], T + 1 times."""
    seen: list[Look] = []
    walk(problem, x, *tour.shape[1:], given=tour, inspect=lambda t, state, mask: seen.append(_look(problem, x, state)))
    return seen


def _same(demand: Demand, ours: list[Look], theirs: list[Look]) -> None:
    for t, looks in enumerate(zip(ours, theirs, strict=True)):
        for name, mine, other in zip(LOOK, *looks, strict=True):
            off = ~torch.isclose(mine.double(), other.double()).flatten(2).all(-1)
            demand.nowhere(off, f"the {name} differs at step {t}")


def _same_costs(demand: Demand, ours: Tensor, theirs: Tensor) -> None:
    demand.nowhere(~torch.isclose(ours, theirs, rtol=1e-9, atol=1e-9), "the cost differs")


def _replays(problem: Any, x: Any, walked: Walk, seed: int) -> None:
    """A tour replayed looks the same, alone or in company; from any prefix one can go on elsewhere."""
    every, last, taken = slice(None), slice(-1, None), walked.tour.shape[2]
    cost, whole = problem.cost(x, walked.tour), _looks(problem, x, walked.tour)
    with rule(problem, "a state holds all there is to know of the steps before") as demand:
        _same(demand, whole, [_look(problem, x, state) for state in walked.states])  # asked in another order
    for words, rows, solutions in (
        ("the same actions give the same masks and costs again", every, every),
        ("solutions of one instance do not see each other", every, slice(1, 2)),
        ("instances of a batch do not see each other", last, every),
    ):
        with rule(problem, words) as demand:
            tour, y = walked.tour[rows, solutions], base.take(x, rows)
            _same(demand, [Look(*(part[rows, solutions] for part in look)) for look in whole], _looks(problem, y, tour))
            _same_costs(demand, cost[rows, solutions], problem.cost(y, tour))
            if rows is last:
                apart = [problem.features(base.take(x, slice(row, row + 1))) for row in range(len(x.xy))]
                for i, (group, parts) in enumerate(zip(problem.features(x), zip(*apart, strict=True), strict=True)):
                    off = ~torch.isclose(group, torch.cat(parts)).flatten(1).all(1)
                    demand.nowhere(off, f"the features of group {i} differ")
    with rule(problem, "a solution can be continued from any prefix") as demand:
        steps = taken - EXTRA
        for length in sorted({1, steps // 2, steps}):
            begun = walked.tour[..., :length]
            went_on = walk(problem, x, begun.shape[1], steps, given=begun, seed=seed + 1)
            demand.nowhere(~went_on.done[..., -1], f"it does not finish after a prefix of {length} steps")
            problem.check(x, went_on.tour)


def _legs(problem: Any, x: Any, walked: Walk) -> None:
    """The matrix replaces the coordinates everywhere."""
    matrix, tour, first = base.distance_matrix(x), walked.tour, first_customer(problem, x)
    y, longer = x._replace(distances=matrix), x._replace(distances=matrix * FAR)
    cost, seen = problem.cost(y, tour), _looks(problem, y, tour)
    with rule(problem, "a matrix of the Euclidean distances changes nothing") as demand:
        _same(demand, _looks(problem, x, tour), seen)
        _same_costs(demand, problem.cost(x, tour), cost)
        problem.check(y, tour)
    with rule(problem, "leg lengths come from the distance matrix") as demand:
        far = problem.cost(longer, tour)
        priced = bool((far != cost).any())
        before, after = (problem.feasible(z, problem.initial(z, 1)) for z in (y, longer))
        limited = not torch.equal(before, after) or _refused(demand, problem.check, longer, tour) is not None
        demand(priced or limited, f"distances {FAR:g} times as long leave cost(), feasible() and check() as they were")
    with rule(problem, "with a matrix, places decide nothing") as demand:
        elsewhere = y._replace(xy=y.xy.flip(1))
        demand(torch.equal(problem.starts(y), problem.starts(elsewhere)), "starts() differs when places move")
        plain = [[look._replace(features=look.features[..., :0]) for look in looks]  # these may tell of places
                 for looks in (seen, _looks(problem, elsewhere, tour))]  # fmt: skip
        _same(demand, *plain)
        _same_costs(demand, cost, problem.cost(elsewhere, tour))
    with rule(problem, "cost is minimised") as demand:
        right = not problem.maximise or bool((cost < 0).any() or (far > cost).any())
        demand(right, "prizes count as negative costs, but no cost is below 0; is its sign right?")
    if not priced:
        return
    # Only of costs that add up can it be asked that each leg counts: a prize that has faded to 0 cannot fade further.
    adds_up = torch.isclose(far - cost, (FAR - 1) * (problem.cost(x._replace(distances=matrix * 2), tour) - cost))
    if not bool(adds_up.all()):
        return
    with rule(problem, "cost counts every leg") as demand:
        tour, cost, rows = tour[:, :1], cost[:, :1], torch.arange(x.xy.shape[0])
        for t in range(1, tour.shape[2]):
            origin, target = tour[:, 0, t - 1], tour[:, 0, t]
            used = (origin != target) & ~walked.done[:, 0, t]
            if problem.has_depot:  # a problem may leave the way to or from the depot free of charge
                used &= (origin >= first) & (target >= first)
            detour = matrix.clone()
            detour[rows, origin, target] += FAR * matrix.max()
            gone = problem.cost(x._replace(distances=detour), tour)
            wrong = f"the leg of step {t} made much longer lowers the cost, which is minimised; is its sign right?"
            demand.nowhere(used & (gone < cost)[:, 0], wrong)
            demand.nowhere(used & (gone == cost)[:, 0], f"the leg of step {t} made much longer does not raise the cost")


def _secrets(problem: Any, x: Any, walked: Walk) -> None:
    """What public() hides of a node is not known before the node is visited: not to masks, context or features."""
    public, nodes, tour = x.public(), x.xy.shape[1], walked.tour[:, :1]
    hidden = [name for name in x._fields if getattr(public, name) is None and getattr(x, name) is not None]
    if not hidden:
        return
    with rule(problem, "nothing is known of what public() hides before a visit") as demand:
        for t in range(tour.shape[2]):
            begun = tour[..., :t]
            seen = torch.zeros(x.xy.shape[0], nodes, dtype=torch.bool).scatter(1, begun[:, 0], True)
            other = x._replace(**{name: _altered(getattr(x, name), seen) for name in hidden})
            for what, old, new in zip(LOOK, *(_after(problem, y, begun) for y in (x, other)), strict=True):
                off = ~torch.isclose(old.double(), new.double()).flatten(1).all(1)
                demand.nowhere(off, f"{', '.join(hidden)} of unvisited nodes change the {what} of step {t}")


def _altered(field: Tensor, seen: Tensor) -> Tensor:
    """Other values for the nodes [B, N] not seen; a field that is not by node is altered whole."""
    other = ~field if field.dtype == torch.bool else field * 2 + 1
    by_node = field.shape[:2] == seen.shape
    return torch.where(seen.view(*seen.shape, *(1 for _ in field.shape[2:])), field, other) if by_node else other


def _after(problem: Any, x: Any, begun: Tensor) -> Look:
    """What is seen after those steps [B, S, t]."""
    state = problem.initial(x, begun.shape[1])
    for action in begun.unbind(-1):
        state = problem.step(x, state, action)
    return _look(problem, x, state)


def _forced(problem: Any, x: Any, walked: Walk) -> list[Forced]:
    """check() objects to some tour of each kind into which a masked move was forced; gives back those it accepts.

    It need not object to every one: a mask may be stricter than the rules. Where it accepts them all, it does not know
    the rule.
    """
    tried = Counter[int]()
    accepted: dict[int, list[Forced]] = {}
    with rule(problem, "check objects to what the mask forbids") as demand:
        for forced in forced_tours(walked, first_customer(problem, x)):
            tried[forced.kind] += 1
            one = base.take(x, slice(forced.row, forced.row + 1))
            if tried[forced.kind] <= FORCED and _refused(demand, problem.check, one, forced.tour) is None:
                accepted.setdefault(forced.kind, []).append(forced)
        for kind, known in accepted.items():
            example, others = known[0], len(known) - 1
            tour = example.tour[0, 0].tolist()
            demand(len(known) < max(FEWEST_FORCED, min(FORCED, tried[kind])), f"check accepts a tour in which "
                   f"{example.words} (row {example.row}, {tour}), and {others} others like it")  # fmt: skip
    return [forced for known in accepted.values() for forced in known]


def _refusals(problem: Any, x: Any, walked: Walk) -> None:
    """check() refuses what no problem allows, and names the row."""
    tour, nodes, row = walked.tour, x.xy.shape[1], x.xy.shape[0] - 1
    first = first_customer(problem, x)

    def refuses(words: str, broken: Tensor, row: int | None = None) -> None:
        with rule(problem, "check refuses what is wrong") as demand:
            error = _refused(demand, problem.check, x, broken)
            demand(error is not None, f"it accepts {words}")
            found = getattr(error, "row", None)
            demand(row in (None, found), f"{words} in row {row}: expected Infeasible for that row, not {error!r}")

    for node in (nodes, -1):
        broken = tour.clone()
        broken[row, 0, 0] = node
        refuses(f"node {node} of {nodes}", broken, row)
    refuses("one tour too few", tour[1:])
    refuses("a tour without an axis for solutions", tour[:, 0])
    refuses("node numbers that are floats", tour.double())

    counts = torch.zeros(*tour.shape[:2], nodes, dtype=torch.long)
    offered_again = False
    for t in range(tour.shape[2]):
        offered = walked.masks[t] & (counts > 0) & ~walked.done[..., t, None]
        offered_again |= bool(offered[..., first:].any())
        counts.scatter_add_(-1, tour[..., t, None], torch.ones_like(tour[..., t, None]))
    on_the_way = (tour[..., :-1] >= first) & ~walked.done[..., 1:-1]
    if not offered_again and on_the_way.any():  # the mask never allows a second visit, so check must refuse one
        b, s, t = on_the_way.nonzero()[-1].tolist()
        broken = torch.cat((tour, tour[..., -1:]), -1)
        broken[b, s, t + 1 :] = tour[b, s, t:]
        refuses(f"node {int(tour[b, s, t])} twice in a tour", broken, b)
    if bool((counts[..., first:] > 0).all()):  # every solution visits every customer, so check must ask for it
        node = next(node for node in tour[row, 0].tolist() if node >= first)
        broken = tour.clone()
        broken[row, 0][broken[row, 0] == node] = 0 if problem.has_depot else (node + 1) % nodes
        refuses(f"a tour without node {node}", broken, row)
        refuses("an empty tour", tour[..., :0])


def _one_step(problem: Any, x: Any, state: Any, action: Tensor) -> tuple[Any, ...]:
    """The new state and all else that the decoding loop asks of a problem in one step."""
    following = problem.step(x, state, action)
    seen = problem.feasible(x, state), problem.context(x, state), problem.step_features(x, state)
    return following, problem.done(x, following), *seen


def _search(problem: Any, x: Any, walked: Walk, accepted: list[Forced]) -> None:
    """What the search is told of the problem agrees with check and cost, also on tours that the mask forbids."""
    if base.declared_search(problem) is not None and not problem.reveals_on_visit:
        with rule(problem, "search") as demand:
            tours = [list(ways) for ways in walked.tour]
            for forced in accepted:
                tours[forced.row].append(forced.tour[0, 0])
            check_search(problem, x, tours, demand)


def _sync(problem: Any, x: Any, seed: int) -> None:
    steps = problem.max_steps(x)
    with rule(problem, "no host synchronisation"), no_host_sync():
        problem.features(x)
        problem.starts(x)
        walked = walk(problem, x, 2, steps, seed=seed)
        _one_step(problem, x, walked.states[0], walked.tour[..., 0])
        problem.cost(x, walked.tour)


def _device(problem: Any, x: Any, n: int) -> None:
    """Tensors are made where the instances are: on torch's device `meta`, say, which computes shapes alone."""
    y, batch = base.to_device(x, "meta"), x.xy.shape[0]
    with rule(problem, "tensors are made on the instance's device (device=x.xy.device), as a GPU needs") as demand:
        try:
            drawn = problem.sample(base.DeviceRng("meta"), batch, n)
        except Exception:  # it may look at numbers
            drawn = y
        for field, value in zip(drawn._fields, drawn, strict=True):
            demand(value is None or value.is_meta, f"sample makes {field} elsewhere; say device=xy.device")
        try:
            problem.features(y)
            problem.starts(y)
            state, action = problem.initial(y, 2), torch.zeros((batch, 2), dtype=torch.long, device="meta")
            for _ in range(2):
                state = _one_step(problem, y, state, action)[0]
            problem.cost(y, torch.stack((action, action), -1))
        except NotImplementedError as error:
            if "copy out of meta" in str(error):
                raise
            return  # by a function that torch has for real numbers alone
        for field, value in zip(state._fields, state, strict=True):
            demand(value.is_meta, f"step makes {field} of the state elsewhere; say device=action.device")


def _trace(problem: Any, x: Any, seed: int) -> None:
    """torch.compile takes a step in one graph, and once."""
    graphs: list[torch.fx.GraphModule] = []

    def keep(graph: torch.fx.GraphModule, inputs: list[Tensor]) -> Callable[..., Any]:
        graphs.append(graph)
        return graph.forward

    walked = walk(problem, x, 2, 3, seed=seed)
    with rule(problem, "a step compiles into one graph") as demand:
        torch.compiler.reset()
        compiled = torch.compile(_one_step, backend=keep, fullgraph=True, dynamic=False)
        for t in range(3):
            action = walked.tour[..., t]
            field = changed(walked.states[t + 1], compiled(problem, x, walked.states[t], action)[0])
            demand(field is None, f"{field} differs from the uncompiled step {t}")
            words = "shapes, dtypes, strides and the problem itself must not vary, and no two fields be one tensor"
            demand(len(graphs) == 1, f"step {t} was traced anew; {words}")
        torch.compiler.reset()
