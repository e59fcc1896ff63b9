"""Every registered problem keeps the contract, and check_problem names what a broken one does wrong."""

from __future__ import annotations

import pytest
import torch

from routelearn.errors import Infeasible, InputError
from routelearn.problems import PROBLEMS
from routelearn.problems.base import (
    Context,
    NumpyRng,
    check_once,
    check_shape,
    closed_length,
    from_depot,
    leg,
    refuse,
    visits,
)
from routelearn.problems.contract.checking import ContractError, check_problem
from routelearn.problems.contract.host_sync import HostSync, no_host_sync
from routelearn.problems.cvrp import CVRP
from routelearn.problems.op import OP
from routelearn.problems.pctsp import SPCTSP
from routelearn.problems.tsp import TSP


@pytest.mark.parametrize("name", PROBLEMS)
def test_every_problem_keeps_the_contract(name):
    check_problem(PROBLEMS[name])


@pytest.mark.parametrize("n", [2, 13])
@pytest.mark.parametrize("name", [name for name in PROBLEMS if name != "tsp"])
def test_at_other_sizes_and_seeds(name, n):
    check_problem(PROBLEMS[name], n=n, batch=5, seed=n)


def test_a_salesman_without_aliased_fields_keeps_the_contract():
    class Salesman(TSP):
        def initial(self, x, solutions):
            state = super().initial(x, solutions)
            return state._replace(first=state.first.clone())

    check_problem(Salesman())
    check_problem(Salesman(), n=2, batch=1)


def test_a_problem_is_named_given_or_made():
    check_problem("tsp", n=3, batch=2)
    check_problem(TSP, n=3, batch=2)
    with pytest.raises(ContractError, match="OP: made without arguments: TypeError"):
        check_problem(OP)
    with pytest.raises(InputError, match="unknown problem 'tps'"):
        check_problem("tps")


# ----------------------------------------------------------------------------------------- broken problems


class NoReturn(CVRP):
    def feasible(self, x, s):
        mask = super().feasible(x, s)
        mask[..., 0] &= self.done(x, s)
        return mask


class Restless(CVRP):
    def done(self, x, s):
        return (s.remaining == 0) & (s.last != 0)

    def feasible(self, x, s):
        mask = super().feasible(x, s)
        mask[..., 0] |= s.remaining == 0
        return mask


class ManyEnds(CVRP):
    def feasible(self, x, s):
        return super().feasible(x, s) | self.done(x, s)[..., None]


class WideFeatures(CVRP):
    feature_dims = (2, 4)


class ShuffledColumns(TSP):
    def features(self, x):
        return (x.xy.flip(-1),)


class AsksTheHost(CVRP):
    def step(self, x, s, action):
        if bool((action == 0).all()):
            return super().step(x, s, torch.zeros_like(action))
        return super().step(x, s, action)


class FreeTravel(TSP):
    def cost(self, x, tour):
        return x.xy.new_ones(tour.shape[:2])


class OnlyCoordinates(TSP):
    def cost(self, x, tour):
        return closed_length(x._replace(distances=None), tour)


class ForgetsALeg(CVRP):
    def cost(self, x, tour):
        return closed_length(x, from_depot(torch.cat((tour[..., :1], tour[..., 2:]), -1)))


class InPlace(CVRP):
    def step(self, x, s, action):
        s.visited.scatter_(-1, action[..., None], True)
        return super().step(x, s, action)


class ShortBound(CVRP):
    def max_steps(self, x):
        return x.xy.shape[1] - 1


class PaysForWaiting(TSP):
    def cost(self, x, tour):
        return super().cost(x, tour) + tour.shape[2]


class Lenient(CVRP):
    def check(self, x, tour):
        pass


class BlamesTheFirstRow(CVRP):
    def check(self, x, tour):
        try:
            super().check(x, tour)
        except Infeasible as error:
            raise Infeasible(0, error.reason) from error


class LeavesOut(CVRP):
    def check(self, x, tour):
        check_shape(x, tour)
        check_once(visits(tour, x.xy.shape[1]), required=False)


class Revisits(CVRP):
    def check(self, x, tour):
        check_shape(x, tour)
        missing = visits(tour, x.xy.shape[1])[..., 1:] == 0
        refuse(missing.any(-1), lambda b, s: "a customer is missing")


class NeverWeighs(CVRP):
    def check(self, x, tour):
        check_shape(x, tour)
        check_once(visits(tour, x.xy.shape[1]), required=True)


class NeverMeasures(OP):
    def check(self, x, tour):
        check_shape(x, tour)
        check_once(visits(tour, x.xy.shape[1]), required=False)


class Leaky(SPCTSP):
    def features(self, x):
        return super().features(x._replace(prize=x.earned()))


class Crowded(CVRP):
    def context(self, x, s):
        seen = super().context(x, s)
        return seen._replace(scalars=seen.scalars + s.room.double().mean().to(x.xy.dtype))


class SingleOnly(CVRP):
    def context(self, x, s):
        seen = super().context(x, s)
        return seen._replace(scalars=seen.scalars.float())


class OwnDice(TSP):
    def sample(self, rng, batch, n):
        return super().sample(rng, batch, n)._replace(xy=torch.rand(batch, n, 2))


class NewTraceEveryStep(CVRP):
    taken = 0

    def step(self, x, s, action):
        self.taken += 1
        following = super().step(x, s, action)
        return following._replace(room=following.room + 0 * self.taken)


class NoSuchAttribute(TSP):
    has_depot = None  # type: ignore[assignment]


class FarStarts(OP):
    def starts(self, x):
        return torch.ones(x.xy.shape[:2], dtype=torch.bool)


class CountsWhatIsHidden(SPCTSP):
    context_scalars = 2

    def context(self, x, s):
        context, left = super().context(x, s), (x.earned()[:, None] * ~s.visited).sum(-1, keepdim=True)
        return Context(context.nodes, torch.cat((context.scalars, left), -1))


class ShowsWhatIsHidden(SPCTSP):
    step_dim = 1

    def step_features(self, x, s):
        return x.earned()[:, None, :, None].expand(*s.visited.shape, 1)


class MaskOfPlaces(OP):
    """Its mask, length and starts go by coordinates, whatever the matrix says; cost and check do not."""

    def feasible(self, x, s):
        return super().feasible(x._replace(distances=None), s)

    def step(self, x, s, action):
        return super().step(x._replace(distances=None), s, action)

    def starts(self, x):
        return super().starts(x._replace(distances=None))


class SeesTheBatch(CVRP):
    def features(self, x):
        depot, customers = super().features(x)
        return depot, customers - torch.cat((x.xy.new_zeros(2), customers[..., 2].mean()[None]))


class KeepsItsOwnCount(CVRP):
    """How far every solution is stands on the problem, not in the state."""

    step_dim = 1

    def initial(self, x, solutions):
        self.far = x.xy.new_zeros((x.xy.shape[0], solutions))
        return super().initial(x, solutions)

    def step(self, x, s, action):
        self.far = self.far + 1
        return super().step(x, s, action)

    def step_features(self, x, s):
        return self.far[..., None, None].expand(*s.visited.shape, 1)


class Undefined(CVRP):
    step_dim = 1

    def step_features(self, x, s):
        return (s.room / (s.room - s.room)).to(x.xy.dtype)[..., None, None].expand(*s.visited.shape, 1)


class LongIsCheap(TSP):
    def cost(self, x, tour):
        return -super().cost(x, tour)


class PrizesCost(OP):
    def cost(self, x, tour):
        return -super().cost(x, tour)


class SaysNo(CVRP):
    def check(self, x, tour):
        try:
            super().check(x, tour)
        except Infeasible:
            return False


class Mistyped(CVRP):
    def context(self, x, s):
        return Context(s.last[..., None], s.rooom)


class Record:
    def __init__(self, x):
        self.xy, self.distances = x.xy, x.distances


class OnTheCPU(CVRP):
    def feasible(self, x, s):
        return super().feasible(x, s) & torch.ones(x.xy.shape[1], dtype=torch.bool)


class DrawnOnTheCPU(CVRP):
    def sample(self, rng, batch, n):
        return super().sample(rng, batch, n)._replace(capacity=torch.full((batch,), 30))


class BroughtToTheCPU(CVRP):
    def context(self, x, s):
        return super().context(x, s._replace(room=s.room.to("cpu")))


class NoTuple(TSP):
    def sample(self, rng, batch, n):
        return Record(super().sample(rng, batch, n))


class Fading(OP):
    """What a stop brings falls with the length of the way to it, and not below 0: such legs count no more."""

    def cost(self, x, tour):
        legs = leg(x, from_depot(tour)[..., :-1].flatten(1), tour.flatten(1)).view(tour.shape)
        prizes = x.prize.gather(1, tour.flatten(1)).view(tour.shape)
        return -(prizes * (1 - legs.cumsum(-1)).clamp(min=0)).sum(-1)


@pytest.mark.parametrize("n", [8, 13])
def test_a_cost_need_not_add_up(n):
    check_problem(Fading("dist"), n=n)


class TrustsEveryPrize(OP):
    def validate(self, x):
        super().validate(x._replace(prize=x.prize.nan_to_num()))


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        (NoReturn(), r"cvrp: the mask is never empty: no node is feasible at step \d+ \(row \d+, solution \d\)"),
        (Restless(), r"finished is absorbing: done\(\) goes back to False at step \d+ \(row"),
        (ManyEnds(), r"finished is absorbing: .* not exactly one feasible node at step \d+ \(row"),
        (WideFeatures(), r"features: group 1 is torch.float32 \[16, 8, 3\]; expected torch.float32 \[16, 8, 4\]"),
        (ShuffledColumns(), r"features: the first two columns .* are not the coordinates"),
        (AsksTheHost(), r"no host synchronisation: .*HostSync: aten._local_scalar_dense"),
        (FreeTravel(), r"leg lengths come from the distance matrix: distances 1000 times as long"),
        (OnlyCoordinates(), r"leg lengths come from the distance matrix"),
        (ForgetsALeg(), r"cost counts every leg: the leg of step 1 made much longer does not raise the cost \(row"),
        (InPlace(), r"steps are pure: step\(\) changed visited of the state it was given at step 0"),
        (ShortBound(), r"max_steps: not finished after 8 steps, the bound it gives \(row"),
        (PaysForWaiting(), r"going on after the end costs nothing: finished after \d+ steps"),
        (Lenient(), r"check refuses what is wrong: it accepts node 9 of 9"),
        (BlamesTheFirstRow(), r"node 9 of 9 in row 15: expected Infeasible for that row, not Infeasible\("),
        (LeavesOut(), r"check refuses what is wrong: it accepts a tour without node \d"),
        (Revisits(), r"check refuses what is wrong: it accepts node \d twice in a tour"),
        (
            NeverWeighs(),
            r"check accepts a tour in which node \d comes at step \d+, where it is masked, instead of",
        ),
        (
            NeverMeasures("unif"),
            r"check accepts a tour in which node \d is added at step \d+, where it is masked",
        ),
        (Leaky(), r"public: features of group 1 need what public\(\) hides"),
        (Crowded(), r"do not see each other: the context differs at step \d+"),
        (SingleOnly(), r"context: step 0: scalars is torch.float32 .*expected torch.float64 \[16, 6, 1\]"),
        (OwnDice(), r"sample: xy differs between two draws of one seed"),
        (NewTraceEveryStep(), r"a step compiles into one graph: "),
        (NoSuchAttribute(), r"attributes: has_depot is None; it must be a bool"),
        (FarStarts("const"), r"starts: a node is a start, but not feasible as the first node \(row"),
        (CountsWhatIsHidden(), r"before a visit: real_prize of unvisited nodes change the context of step 0 \(row"),
        (
            ShowsWhatIsHidden(),
            r"real_prize of unvisited nodes change the step_features of step 0 \(row",
        ),
        (MaskOfPlaces("dist"), r"with a matrix, places decide nothing: starts\(\) differs"),
        (SeesTheBatch(), r"instances of a batch do not see each other: the features of group 1 differ \(row"),
        (KeepsItsOwnCount(), r"a state holds all there is to know of the steps before: the step_features differs at"),
        (Undefined(), r"step_features: step 0: a feature is not finite \(row"),
        (
            LongIsCheap(),
            r"cost counts every leg: the leg of step 1 made much longer lowers the cost, which is min",
        ),
        (PrizesCost("const"), r"cost is minimised: prizes count as negative costs, but no cost is below 0"),
        (SaysNo(), r"check\(\) gives False; what is wrong must be raised, as Infeasible or InputError"),
        (Mistyped(), r"cvrp: context: test_problem_contract.py, line \d+: AttributeError: .* no attribute 'rooom'"),
        (OnTheCPU(), r"on the instance's device .*: test_problem_contract.py, line \d+: RuntimeError: .*device"),
        (DrawnOnTheCPU(), r"on the instance's device .*: sample makes capacity elsewhere; say device=xy.device"),
        (
            BroughtToTheCPU(),
            r"on the instance's device .*: test_problem_contract.py, line \d+: NotImplementedError",
        ),
        (NoTuple(), r"sample: it gives a Record; expected a NamedTuple of tensors, xy and distances among them"),
        (TrustsEveryPrize("dist"), r"validate: NaN in prize is not refused with InputError"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else "",
)
def test_a_broken_problem_is_told_what_is_wrong(broken, words):
    with pytest.raises(ContractError, match=words):
        check_problem(broken)


@pytest.mark.parametrize(
    "reads",
    [
        lambda t: t[0].item(),
        lambda t: bool(t.any()),
        lambda t: t.tolist(),
        lambda t: t.numpy(),
        lambda t: t[t > 0],
        lambda t: torch.where(t > 0),
        lambda t: t.masked_select(t > 0),
        lambda t: t.unique(),
        lambda t: t.repeat_interleave(t.long()),
        lambda t: torch.equal(t, t),
    ],
)
def test_host_reads_are_refused_without_a_gpu(reads):
    values = torch.ones(3)
    with pytest.raises(HostSync), no_host_sync():
        reads(values)


def test_device_work_is_not_refused():
    values, index = torch.ones(3), torch.tensor([0, 2])
    with no_host_sync():
        values[index] + values.gather(0, index) + values.where(values > 0, 2)[index]
        values.clone()[values > 0] = 1.0
        values.repeat_interleave(2)


def test_the_contract_leaves_the_random_state_alone():
    before = torch.random.get_rng_state()
    check_problem(CVRP())
    assert torch.equal(before, torch.random.get_rng_state())
    assert CVRP().sample(NumpyRng(0), 1, 3).xy.dtype == torch.float64
