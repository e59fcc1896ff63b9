"""The family of vehicle routing variants: rules, masks, referee, draws."""

import itertools
import math

import pytest
import torch
from variant_cases import judged

from routelearn.data.convert import for_policy
from routelearn.errors import Infeasible, InputError
from routelearn.problems import DeviceRng, NumpyRng, get
from routelearn.problems.attributes import first_customer
from routelearn.problems.base import distance_matrix, take, to_single
from routelearn.problems.contract.checking import check_problem
from routelearn.problems.contract.host_sync import no_host_sync
from routelearn.problems.contract.walks import walk
from routelearn.problems.variants import NAMES
from routelearn.problems.vrp import VRP, Instance

SINGLE = ["cvrp", "ovrp", "vrpb", "vrpmb", "vrpl", "vrptw", "mdcvrp", "mdovrpmbltw"]


def one(**changes):
    """Three customers at (1, 0), (2, 0) and (3, 0); the depot at (0, 0), in double precision."""
    fields = {
        "xy": [[0.0, 0], [1, 0], [2, 0], [3, 0]],
        "depots": [1],
        "delivery": [0, 4, 4, 4],
        "pickup": [0, 0, 0, 0],
        "capacity": 10,
        "window": [[0.0, math.inf]] * 4,
        "service": [0.0] * 4,
        "max_length": math.inf,
        "open": 0,
        "mixed": 0,
    }
    made = {name: torch.tensor(value)[None] for name, value in (fields | changes).items()}
    x = Instance(**{name: field.double() if field.is_floating_point() else field for name, field in made.items()})
    VRP().validate(x)
    return x


def cost(x, *tour):
    tours = torch.tensor([[tour]])
    VRP().check(x, tours)
    return float(VRP().cost(x, tours))


def refused(x, *tour):
    with pytest.raises(Infeasible) as error:
        VRP().check(x, torch.tensor([[tour]]))
    return error.value.reason


@pytest.mark.parametrize("names", [*SINGLE, "cvrp,vrptw", "mdvrpl,ovrpb,vrpmbtw", "all"])
def test_it_keeps_the_contract(names):
    check_problem(VRP(names), batch=48 if "," in names or names == "all" else 16)


# ------------------------------------------------------------------------------------------------ rules


def test_with_one_depot_a_tour_and_its_cost_are_as_for_plain_routing():
    x = one()
    assert cost(x, 1, 2, 0, 3) == cost(x, 1, 2, 0, 3, 0, 0) == cost(x, 0, 1, 2, 0, 0, 3) == 10
    assert "12 on board" in refused(x, 1, 2, 3)
    assert "never visited" in refused(x, 1, 2)
    assert "more than once" in refused(x, 1, 2, 0, 3, 1)


def test_an_open_route_drives_no_way_back_and_no_limit_concerns_it():
    assert cost(one(open=1), 1, 2, 0, 3) == 5
    limited = one(open=1, max_length=3.0, window=[[0.0, 3.0]] * 4)
    assert cost(limited, 1, 2, 0, 3) == 5
    assert "5 long; 3 is allowed" in refused(limited, 3, 1, 0, 2)


def test_deliveries_come_first_unless_backhauls_are_mixed():
    amounts = {"delivery": [0, 6, 0, 4], "pickup": [0, 0, 8, 0]}
    assert cost(one(**amounts), 1, 3, 2) == 6
    assert "delivery comes after a pickup" in refused(one(**amounts), 1, 2, 3)
    assert "12 on board" in refused(one(**amounts, mixed=1), 1, 2, 3)  # 4 to deliver, and 8 picked up
    assert cost(one(**amounts, mixed=1, capacity=12), 1, 2, 3) == 6
    assert cost(one(delivery=[0] * 4, pickup=[0, 4, 4, 4]), 2, 1, 0, 3) == 10  # pickups alone


def test_a_limit_holds_for_each_route():
    x = one(max_length=6.5, xy=[[0.0, 0], [-1, 0], [2, 0], [3, 0]])
    assert cost(x, 1, 2, 0, 3) == 12
    assert "8 long; 6.5 is allowed" in refused(x, 1, 3, 0, 2)


def test_a_vehicle_waits_for_a_window_and_is_back_before_the_depot_closes():
    window, light = [[0.0, 8.0], [0.0, 9.0], [4.0, 5.0], [0.0, 9.0]], {"delivery": [0, 1, 1, 1]}
    x = one(window=window, service=[0.0, 0.5, 0.5, 0.5], **light)
    assert cost(x, 1, 2, 0, 3) == 10
    assert "node 0 is reached at 9, after 8" in refused(x, 1, 2, 3)  # at 2 until 4.5, at 3 until 6
    assert cost(x, 1, 3, 2) == 6  # at 2 on its way back, at 5
    slower = one(window=window, service=[0.0, 0.5, 0.5, 1.0], **light)
    assert "node 2 is reached at 5.5, after 5" in refused(slower, 1, 3, 2)


def test_a_route_ends_at_the_depot_where_it_began():
    fields = {"delivery": [0, 0, 0, 4, 4], "pickup": [0] * 5, "window": [[0.0, math.inf]] * 5, "service": [0.0] * 5}
    x = one(xy=[[0.0, 0], [4, 0], [0, 0], [1, 0], [3, 0]], depots=[1, 1, 0], **fields)
    assert first_customer(VRP(), x) == 3
    assert cost(x, 3, 1, 4) == cost(x, 1, 4, 0, 3) == 4  # 2 from each depot
    assert cost(x, 1, 3, 0, 4) == 12
    assert cost(x, 1, 3, 4) == 6
    assert "no vehicle starts at node 2" in refused(x, 2, 3, 4)


def tours_of(depots, nodes):
    """Every tour of the customers without empty routes, whatever the rules."""
    customers = range(depots, nodes)
    for order in itertools.permutations(customers):
        for before in itertools.product((None, *range(depots)), repeat=len(order)):
            if before[0] != 0:  # the first route begins at depot 0 if nothing is said
                yield [node for pair in zip(before, order, strict=True) for node in pair if node is not None]


def test_masks_check_and_cost_agree_with_a_plain_referee_on_every_tour():
    """Of three customers: what the rules allow, check accepts and the masks offer, step by step, and nothing else."""
    problem, found = VRP(), set()
    x = problem.sample(NumpyRng(3), 30, 3)
    x = x._replace(capacity=torch.full_like(x.capacity, 12))  # so that it binds
    by_length = [list(group) for _, group in itertools.groupby(sorted(tours_of(3, 6), key=len), len)]
    for row in range(len(x.xy)):
        y = take(x, slice(row, row + 1))
        legal = 0
        for tours in by_length:
            costs = problem.cost(y, torch.tensor([tours]))[0].tolist()
            for tour, cost in zip(tours, costs, strict=True):
                expected, faults = judged(y, tour)
                found |= faults
                assert accepted(problem, y, torch.tensor([[tour]])) == (not faults), (row, tour, faults)
                legal += not faults
                assert cost == pytest.approx(expected, rel=1e-12)
        assert legal == offered(problem, y), row
    assert found == {"load", "order", "window", "closing", "limit", "depot"}


def accepted(problem, x, tours):
    try:
        problem.check(x, tours, 1e-9)
    except Infeasible:
        return False
    return True


def offered(problem, x):
    """How many tours the masks lead to, of one instance."""

    def count(state):
        if bool(problem.done(x, state)):
            return 1
        nodes = problem.feasible(x, state)[0, 0].nonzero()[:, 0]
        return sum(count(problem.step(x, state, node.view(1, 1))) for node in nodes)

    return count(problem.initial(x, 1))


@pytest.mark.parametrize("names", SINGLE)
def test_random_solutions_of_a_public_set_are_accepted_by_both_referees(names):
    problem = VRP(names)
    x = to_single(problem.sample(NumpyRng(1234), 1000, 50))
    problem.validate(x)
    x = take(x, slice(0, 8))
    tours = walk(problem, x, 6, problem.max_steps(x)).tour
    problem.check(x, tours)
    for row, solution in itertools.product(range(8), range(6)):
        expected, faults = judged(take(x, slice(row, row + 1)), tours[row, solution].tolist(), slack=1e-5)
        assert not faults
        assert float(problem.cost(x, tours)[row, solution]) == pytest.approx(expected, rel=1e-5)


# ------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"capacity": 3}, "node 1 cannot be served"),
        ({"max_length": 5.0}, "node 3 cannot be served"),
        ({"window": [[0.0, 9.0], [0, 9], [0, 9], [0, 2.5]]}, "node 3 cannot be served"),
        ({"window": [[0.0, 5.0], [0, 9], [0, 9], [0, 9]]}, "node 3 cannot be served"),
        ({"window": [[0.0, 9.0], [3, 2], [0, 9], [0, 9]]}, "a window ends before it begins"),
        ({"window": [[0.0, 9.0], [-1, 2], [0, 9], [0, 9]]}, "a window begins before 0"),
        ({"window": [[0.0, 9.0]] * 3}, "window has shape"),
        ({"depots": [0]}, "node 0) is not in use"),
        ({"depots": [2]}, "neither 0 nor 1"),
        ({"depots": [1, 1, 1, 1]}, "at least one depot, and fewer than the 4 nodes"),
        ({"open": 2}, "open is neither 0 nor 1"),
        ({"delivery": [0.0, 1.5, 1, 1]}, "delivery must be whole numbers"),
        ({"pickup": [0, -1, 0, 0]}, "a pickup is negative"),
        ({"delivery": [1, 1, 1, 1]}, "a depot has a delivery"),
        ({"capacity": 0}, "capacity is below 1"),
        ({"max_length": 0.0}, "not above 0"),
        ({"max_length": math.nan}, "not above 0"),
        ({"service": [0.0, -1, 0, 0]}, "a service is negative"),
    ],
)
def test_an_instance_that_makes_no_sense_is_refused(changes, words):
    with pytest.raises(InputError, match=r"^vrp: ") as error:
        one(**changes)
    assert words in str(error.value)


# ----------------------------------------------------------------------------------------------- draws


@pytest.mark.parametrize("names", ["all", "vrpmb", "mdvrpltw,ovrp"])
def test_drawing_on_a_device_never_waits_for_it(names):
    with torch.random.fork_rng(devices=[]), no_host_sync():
        x = VRP(names).sample(DeviceRng(), 64, 20)
        VRP().variant_of(x)
    VRP().validate(x)


def test_a_mixture_draws_each_of_its_variants_alike_and_no_other():
    wanted = ("vrptw", "ovrpmbl", "mdcvrp")
    x = VRP(",".join(wanted)).sample(NumpyRng(0), 3000, 20)
    VRP().validate(x)
    counts = torch.bincount(VRP().variant_of(x), minlength=len(NAMES))
    shares = {name: int(count) / 3000 for name, count in zip(VRP.variant_names, counts, strict=True) if count > 30}
    assert shares.keys() == set(wanted)
    assert all(0.28 < share < 0.39 for share in shares.values())
    every = torch.bincount(VRP().variant_of(VRP().sample(NumpyRng(0), 9600, 30)), minlength=48)
    assert every.min() > 130
    assert every.max() < 270


@pytest.mark.parametrize("name", SINGLE)
def test_an_instance_shows_its_variant(name):
    x = VRP(name).sample(NumpyRng(1), 20, 50)
    assert {NAMES[i] for i in VRP().variant_of(x).tolist()} == {name}


def test_places_that_are_not_in_use_lie_at_the_first_depot():
    x = VRP().sample(NumpyRng(0), 100, 5)
    unused = x.depots == 0
    assert 20 < int(unused[:, 1].sum()) < 80
    assert (x.xy[:, :3] == x.xy[:, :1])[unused].all()


# -------------------------------------------------------------------------------------------- the policy's view


def test_what_a_policy_sees_does_not_change_with_the_users_unit():
    problem = VRP()
    x = problem.sample(NumpyRng(5), 32, 10)
    spread = x.xy.clone()
    spread[:, 3], spread[:, 4] = 0, 1  # so that the places fill the square
    x = x._replace(xy=spread, max_length=x.max_length * 2, window=x.window * torch.tensor([1.0, 2.0]))
    user = x._replace(**{name: getattr(x, name) * 250 for name in ("xy", "window", "service", "max_length")})
    seen = for_policy(problem, user)
    for ours, theirs in zip(problem.features(x), problem.features(seen), strict=True):
        assert torch.allclose(ours, theirs, atol=1e-9)
    whole = ("delivery", "pickup", "capacity", "open", "mixed", "depots")
    assert all(torch.equal(getattr(x, name), getattr(seen, name)) for name in whole)


def test_what_is_absent_is_zero_and_so_is_its_flag():
    depots, customers = VRP().features(one())
    assert depots[0, 0].tolist() == [0, 0, 0, 0, 0, 0, 0, 0, 0, 1]
    assert customers[0, 0].tolist() == pytest.approx([1, 0, 0, 0, 0, 0, 0, 0, 0, 0.4, 0, 0])
    rich = one(max_length=9.0, open=1, mixed=1, window=[[0.0, 9.0]] * 4, service=[0.0, 1, 1, 1], pickup=[0, 5, 0, 0])
    assert VRP().features(rich)[1][0, 0].tolist() == pytest.approx([1, 0, 1, 0, 9, 1, 1, 1, 9, 0.4, 0.5, 1])


def test_a_matrix_may_be_asymmetric():
    x = one(max_length=6.0)
    matrix = distance_matrix(x).clone()
    matrix[0, 3, 0] = 2.0  # a short cut home
    assert cost(x._replace(distances=matrix), 1, 2, 0, 3) == 9


def test_costs_are_those_of_plain_routing_on_the_same_instances():
    plain, family = get("cvrp"), VRP("cvrp")
    x = family.sample(NumpyRng(0), 16, 20)
    y = plain.sample(NumpyRng(0), 16, 20)._replace(xy=x.xy, demand=x.delivery, capacity=x.capacity)
    tours = walk(plain, y, 4, plain.max_steps(y)).tour
    family.check(x, tours)
    assert torch.allclose(family.cost(x, tours), plain.cost(y, tours))
    state, theirs = family.initial(x, 4), plain.initial(y, 4)
    for node in tours.unbind(-1):
        assert torch.equal(family.feasible(x, state), plain.feasible(y, theirs))
        state, theirs = family.step(x, state, node), plain.step(y, theirs, node)
