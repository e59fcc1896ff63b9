"""Stops into instances: the problem inferred, the scale of everything, and exact demands."""

from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pytest
import torch
from paper_problems import PAPER

from routelearn.data import csv_file, json_file, to_instance
from routelearn.data.convert import for_policy, scaled
from routelearn.data.generate import generate
from routelearn.data.geometry import from_distances, great_circle, project
from routelearn.data.stops import from_matrix
from routelearn.errors import InputError
from routelearn.problems import PROBLEMS, Attribute, NumpyRng, get
from routelearn.problems.tsp import TSP


def stops(text):
    return csv_file.parse(text, "stops.csv")


PLAIN = "x,y\n0,0\n30,0\n30,40\n"
PRIZES = "x,y,prize\n0,0,0\n30,0,5\n30,40,20\n"
PENALTIES = "x,y,prize,penalty\n0,0,0,0\n30,0,5,60\n30,40,20,80\n"
STOCHASTIC = "x,y,prize,penalty,real_prize\n0,0,0,0,0\n30,0,5,60,4\n30,40,20,80,30\n"
DEMANDS = "x,y,demand\n0,0,0\n30,0,5\n30,40,20\n"


@pytest.mark.parametrize(
    ("text", "options", "expected"),
    [
        (PLAIN, {}, "tsp"),
        (DEMANDS, {"capacity": 25}, "cvrp"),
        (PRIZES, {"max_length": 100}, "op-unif"),
        (PLAIN, {"max_length": 100}, "op-const"),
        (PENALTIES, {"min_prize": 10}, "pctsp"),
        (STOCHASTIC, {"min_prize": 10}, "spctsp"),
        (DEMANDS, {"capacity": 10, "problem": "sdvrp"}, "sdvrp"),
        (DEMANDS, {"problem": "tsp"}, "tsp"),
        (PRIZES, {"max_length": 100, "problem": "op-dist"}, "op-dist"),
    ],
)
def test_the_fields_imply_the_problem_unless_it_is_named(text, options, expected):
    assert to_instance(stops(text), **options).problem.name == expected


def test_the_file_may_name_the_problem_and_its_limits():
    document = '{"problem": "sdvrp", "capacity": 3, "stops": [{"x": 0, "y": 0}, {"x": 1, "y": 1, "demand": 5}]}'
    converted = to_instance(json_file.parse(document, "a.json"))
    assert converted.problem.name == "sdvrp"
    assert to_instance(json_file.parse(document, "a.json"), capacity=4).referee.capacity.tolist() == [4]


def test_coordinates_are_scaled_for_the_policy_and_kept_for_the_referee():
    converted = to_instance(stops(PLAIN))
    assert converted.referee.xy.dtype == torch.float64
    assert converted.referee.xy.tolist() == [[[0, 0], [30, 0], [30, 40]]]
    assert converted.policy.xy.dtype == torch.float32
    torch.testing.assert_close(converted.policy.xy, torch.tensor([[[0, 0], [0.75, 0], [0.75, 1.0]]]))
    tour = torch.tensor([[[0, 1, 2]]])
    cost = converted.problem.cost(converted.policy, tour) * converted.scale.length
    assert float(cost) == pytest.approx(120)
    assert float(converted.problem.cost(converted.referee, tour)) == 120


def test_limits_penalties_and_prizes_scale_with_the_coordinates():
    orienteering = to_instance(stops(PRIZES), max_length=100)
    assert float(orienteering.policy.max_length) == 2.5
    assert orienteering.policy.prize.tolist() == [[0, 0.25, 1]]
    assert orienteering.referee.prize.tolist() == [[0, 5, 20]]
    collecting = to_instance(stops(PENALTIES), min_prize=10)
    assert collecting.policy.penalty.tolist() == [[0, 1.5, 2]]
    assert collecting.policy.prize.tolist() == [[0, 0.5, 2]]
    assert float(collecting.policy.min_prize) == 1
    tour = torch.tensor([[[2, 0]]])
    cost = collecting.problem.cost(collecting.policy, tour) * collecting.scale.length
    assert float(cost) == pytest.approx(float(collecting.problem.cost(collecting.referee, tour)))
    assert float(collecting.problem.cost(collecting.referee, tour)) == 2 * 50 + 60


def test_without_a_minimum_prize_the_policy_sees_prizes_as_shares_of_half_of_all():
    free = to_instance(stops(PENALTIES), min_prize=0)
    assert free.policy.prize[0].tolist() == pytest.approx([0, 0.4, 1.6])
    assert float(free.policy.min_prize) == float(free.referee.min_prize) == 0
    assert free.scale.prize == 12.5


def test_penalties_alone_are_prize_collecting_without_a_minimum():
    free = to_instance(stops("x,y,penalty\n0,0,\n30,0,60\n30,40,80\n"))
    assert free.problem.name == "pctsp"
    assert free.referee.prize.tolist() == [[0, 0, 0]]
    assert float(free.referee.min_prize) == 0
    with pytest.raises(InputError, match="pctsp needs a prize for every stop"):
        to_instance(stops("x,y,penalty\n0,0,\n30,0,60\n"), min_prize=1)


def test_the_depot_becomes_node_zero_and_ids_follow():
    converted = to_instance(stops("id,x,y,demand,depot\na,1,0,2,\nb,2,0,3,\nhub,0,0,,1\n"), capacity=5)
    assert converted.scale.ids == ("hub", "a", "b")
    assert converted.referee.demand.tolist() == [[0, 2, 3]]


def test_fractions_of_demand_are_counted_exactly():
    """Three times 0.1 fills 0.3: in floating point it does not."""
    converted = to_instance(stops("x,y,demand\n0,0,0\n1,0,.1\n2,0,0.10\n3,0,1e-1\n"), capacity="0.3")
    assert converted.referee.demand.tolist() == [[0, 1, 1, 1]]
    assert converted.referee.capacity.tolist() == [3]
    assert converted.scale.demand == 10
    converted.problem.check(converted.referee, torch.tensor([[[1, 2, 3]]]))
    assert to_instance(stops("x,y,demand\n0,0,0\n1,0,0.30000000000000004\n"), capacity=0.3).scale.demand == 10
    assert to_instance(stops("x,y,demand\n0,0,0\n1,0,0.125\n"), capacity=Fraction(1, 4)).referee.capacity.tolist() == [
        2
    ]


def test_degrees_become_kilometres_along_great_circles():
    converted = to_instance(stops("lat,lon\n52.3702,4.8952\n51.9244,4.4777\n52.0907,5.1214\n"))
    legs = converted.referee.distances[0]
    assert float(legs[0, 1]) == pytest.approx(57.2, abs=0.3)  # Amsterdam to Rotterdam
    assert converted.scale.unit == "km"
    straight = (converted.policy.xy[0, 0] - converted.policy.xy[0, 1]).norm() * converted.scale.length
    assert float(straight) == pytest.approx(float(legs[0, 1]), rel=5e-3)
    torch.testing.assert_close(
        converted.policy.distances.double() * converted.scale.length, converted.referee.distances
    )


def test_the_date_line_does_not_tear_stops_apart():
    across = np.array([[-17.0, 179.5], [-17.0, -179.5], [-18.0, 180.0]])
    assert great_circle(across)[0, 1] == pytest.approx(106.3, abs=0.5)
    apart = np.linalg.norm(project(across)[0] - project(across)[1])
    assert apart == pytest.approx(106.3, abs=1)


@pytest.mark.parametrize("count", [3, 40, 700])
def test_places_are_recovered_from_their_distances(count):
    places = np.random.RandomState(count).uniform(size=(count, 2)) * 70
    matrix = np.linalg.norm(places[:, None] - places, axis=-1)
    found = from_distances(matrix)
    np.testing.assert_allclose(np.linalg.norm(found[:, None] - found, axis=-1), matrix, atol=1e-6)


def test_a_matrix_alone_decides_the_cost_and_gives_the_policy_places():
    matrix = np.array([[0, 10, 90.0], [20, 0, 30], [40, 50, 0]])
    converted = to_instance(from_matrix(matrix, "m.csv"))
    assert float(converted.problem.cost(converted.referee, torch.tensor([[[0, 1, 2]]]))) == 10 + 30 + 40
    assert converted.policy.xy.isfinite().all()
    assert float(converted.policy.xy.min()) >= 0
    assert float(converted.policy.xy.max()) <= 1
    assert float(converted.policy.distances.mean()) < 1.5


def test_stops_in_one_place_and_on_a_line_are_no_trouble():
    for text in ("x,y\n5,5\n5,5\n5,5\n", "x,y\n1,5\n2,5\n3,5\n", "lat,lon\n1,5\n1,5\n"):
        converted = to_instance(stops(text))
        assert converted.policy.xy.isfinite().all()
    assert to_instance(from_matrix(np.zeros((3, 3)), "m")).policy.xy.isfinite().all()


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("x,y\n1,2\n", {}, "stops.csv: one stop; a route needs at least 2"),
        (DEMANDS, {}, "cvrp needs the vehicle's capacity"),
        (DEMANDS, {"capacity": 19}, "stops.csv, line 4: stop '3' demands 20, more than the capacity 19; sdvrp"),
        (DEMANDS, {"capacity": 0}, "the capacity is 0; it must be above 0"),
        (PENALTIES, {}, r"pctsp needs a minimum prize; give min_prize \(0 for none\)"),
        (PENALTIES, {"min_prize": -1}, "the minimum prize is -1; it cannot be negative"),
        (DEMANDS, {"capacity": float("nan")}, "capacity given is not a finite number"),
        (DEMANDS, {"capacity": 25, "max_length": 3}, "cvrp has no maximum length"),
        (
            DEMANDS.replace("0,0,0", "0,0,4"),
            {"capacity": 25},
            "line 2: the depot, being the first stop .* has a demand of 4",
        ),
        (DEMANDS.replace("30,0,5", "30,0,-5"), {"capacity": 25}, "line 3: the demand is -5; it cannot be negative"),
        (DEMANDS.replace("30,0,5", "30,0,0.33333333"), {"capacity": 25}, "line 3: the demand .* more than 6 decimals"),
        (DEMANDS.replace("30,0,5", "30,0,5e13"), {"capacity": "9e14"}, "too large or too fine"),
        (PLAIN, {"capacity": 5}, "a capacity, but no demand"),
        (PLAIN, {"problem": "cvrp", "capacity": 5}, "cvrp needs a demand for every stop"),
        (PLAIN, {"problem": "op-dist", "max_length": 5}, "op-dist needs a prize for every stop"),
        (PLAIN, {"problem": "vrptw"}, "unknown problem 'vrptw'"),
        (PLAIN, {"problem": "tsp", "max_length": 5}, "tsp has no maximum length"),
        (PRIZES, {}, "neither a maximum length .* nor penalties"),
        (PRIZES, {"problem": "op-unif"}, "op-unif needs a maximum length"),
        (PRIZES, {"max_length": -4}, "the maximum length is -4"),
        (PENALTIES, {}, "pctsp needs a minimum prize"),
        (PENALTIES, {"min_prize": 26}, "the minimum prize 26 is out of reach; all prizes together are 25"),
        (PENALTIES.replace("30,0,5,60", "30,0,-5,60"), {"min_prize": 3}, "line 3: the prize is -5"),
        ("x,y,demand,prize\n0,0,0,0\n1,1,1,1\n", {}, "both demands and prizes; name the problem"),
    ],
)
def test_what_cannot_be_solved_is_refused_in_one_line(text, options, message):
    with pytest.raises(InputError, match=message) as caught:
        to_instance(stops(text), **options)
    assert "\n" not in str(caught.value)


# ------------------------------------------------------------------------------- instances for a policy


@pytest.mark.parametrize("name", PAPER)
def test_the_papers_instances_are_left_as_they_are(name):
    x = generate(name, 20, count=50)
    assert all(mine is theirs for mine, theirs in zip(for_policy(get(name), x), x, strict=True))


@pytest.mark.parametrize("name", PAPER)
def test_a_policy_sees_the_same_in_any_units(name):
    """Metres or kilometres, from any origin, and prizes in any currency: one view, in the unit square."""
    x = generate(name, 20, count=4)

    def in_units(length, shift):
        changed = {
            field: getattr(x, field) * length for field in scaled(get(name))[0] if getattr(x, field, None) is not None
        }
        if "max_length" in x._fields:
            changed["prize"] = x.prize * length
        return x._replace(xy=x.xy * length + shift, **changed)

    seen, again = (for_policy(get(name), in_units(*unit)) for unit in ((1000.0, -300.0), (0.02, 0.0)))
    assert float(seen.xy.min()) == 0
    assert float(seen.xy.max()) == 1
    spread = (x.xy.amax(1) - x.xy.amin(1)).amax(1)
    if "max_length" in x._fields:
        torch.testing.assert_close(seen.max_length, x.max_length / spread)
        assert float(seen.prize.max()) == 1
        again = again._replace(prize=seen.prize)  # prizes under 1 may be meant so
    for field, other in zip(seen, again, strict=True):
        torch.testing.assert_close(field, other, rtol=1e-4, atol=1e-4)


def test_a_matrix_gives_the_scale_of_lengths_and_only_foreign_rows_change():
    x = generate("op-unif", 9, count=2)
    distances = torch.cdist(x.xy, x.xy)
    seen = for_policy(get("op-unif"), x._replace(distances=distances * 60, max_length=x.max_length * 60))
    torch.testing.assert_close(seen.max_length[:, None, None] * distances, x.max_length[:, None, None] * seen.distances)
    mixed = for_policy(get("op-unif"), x._replace(xy=torch.stack((x.xy[0], x.xy[1] * 7))))
    assert torch.equal(mixed.xy[0], x.xy[0])
    assert float(mixed.xy[1].max()) == 1
    assert mixed.max_length[0] == x.max_length[0]


def test_a_problem_with_a_field_that_no_column_fills_is_refused(monkeypatch):
    class Weighted(type(PROBLEMS["tsp"])):
        name = "weighted"

        class Instance(NamedTuple):
            xy: torch.Tensor
            weight: torch.Tensor
            distances: torch.Tensor | None = None

        def sample(self, rng, batch, n):
            return self.Instance(rng.uniform(batch, n, 2), rng.uniform(batch, n))

    monkeypatch.setitem(PROBLEMS, "weighted", Weighted())
    with pytest.raises(InputError, match=r"weighted needs weight .* stops cannot give"):
        to_instance(stops(PLAIN), "weighted")


class Reaching(NamedTuple):
    xy: torch.Tensor
    reach: torch.Tensor
    window: torch.Tensor
    boxes: torch.Tensor
    distances: torch.Tensor | None = None

    def public(self):
        return self


class Own(TSP):
    """A plugin's problem, with fields that this package has never heard of."""

    name = "own"
    attributes = (
        Attribute("reach", "instance", "length"),
        Attribute("window", "stop", "time", shape=(2,)),
        Attribute("boxes", "stop", "amount", whole=True),
    )

    def sample(self, rng, batch, n):
        xy = rng.uniform(batch, n, 2)
        return Reaching(xy, xy[:, 0, 0], xy * 2, rng.integers(1, 9, batch, n))


def test_declared_lengths_and_times_of_any_problem_are_scaled_with_the_places():
    problem = Own()
    x = problem.sample(NumpyRng(3), 2, 5)
    foreign = Reaching(x.xy * 500 + 40, x.reach * 500, x.window * 500, x.boxes)
    seen = for_policy(problem, foreign)
    spread = (x.xy.amax(1) - x.xy.amin(1)).amax(1)
    torch.testing.assert_close(seen.reach, x.reach / spread)
    torch.testing.assert_close(seen.window, x.window / spread[:, None, None])
    assert seen.boxes is x.boxes
    problem.attributes = None  # undeclared fields of unknown names are left alone, as ever
    assert for_policy(problem, foreign).reach is foreign.reach
