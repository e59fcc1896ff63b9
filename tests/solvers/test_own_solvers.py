"""Every solver written here: its answers pass the referee on ordinary and on odd instances, and repeat themselves."""

from __future__ import annotations

import pytest
import torch
from paper_problems import PAPER

from routelearn import problems, solvers
from routelearn.errors import InputError
from routelearn.problems.base import NumpyRng, distance_matrix, map_instance, to_single
from routelearn.solvers.own.common import Heuristic
from routelearn.solvers.own.reopt import Reoptimise
from routelearn.solvers.own.search import SearchAlone
from routelearn.solvers.reveal import run

OWN = [name for name, solver in solvers.SOLVERS.items() if isinstance(solver, Heuristic | Reoptimise | SearchAlone)]
PAIRS = [(name, problem) for name in OWN for problem in sorted(solvers.get(name).problems)]
ANYTIME = 0.02  # seconds for an instance
COMPARED = 0.08  # where costs of two runs are: on a busy machine the former may pass before a search begins


def sample(problem: str, batch: int, n: int, seed: int = 5):
    return to_single(problems.get(problem).sample(NumpyRng(seed), batch, n))


def solved(name: str, problem: str, x, seed: int = 0, seconds: float = ANYTIME):
    """Checked tours."""
    referee = problems.get(problem)
    referee.validate(x)
    tour = run(solvers.get(name), referee, x, seconds=seconds, seed=seed)
    assert tour.shape[:2] == (x.xy.shape[0], 1)
    assert tour.dtype == torch.long
    referee.check(x, tour)
    return tour


def asymmetric(x, seed: int = 3):
    """The instance with distances that differ by direction and break the triangle inequality."""
    torch.manual_seed(seed)
    legs = distance_matrix(x) * (0.5 + torch.rand(x.xy.shape[0], x.xy.shape[1], x.xy.shape[1]))
    return x._replace(distances=legs)


def in_units(x, scale: float):
    """The instance with every length, and what is weighed against length, times `scale`."""
    lengths = {"xy", "penalty", "max_length"} & set(x._fields)
    return x._replace(**{field: getattr(x, field) * scale for field in lengths})


@pytest.mark.parametrize(("name", "problem"), PAIRS)
class TestAnswers:
    def test_pass_the_referee(self, name, problem):
        solved(name, problem, sample(problem, 9, 12))

    def test_pass_the_referee_on_the_smallest_instances(self, name, problem):
        for n in (1, 2, 3):
            if n > 1 or problem != "tsp":
                solved(name, problem, sample(problem, 3, n))

    def test_pass_the_referee_where_all_places_are_one(self, name, problem):
        x = sample(problem, 2, 9)
        solved(name, problem, x._replace(xy=torch.full_like(x.xy, 0.5)))

    def test_pass_the_referee_over_asymmetric_distances(self, name, problem):
        solved(name, problem, asymmetric(sample(problem, 5, 11)))

    def test_are_for_the_distances_of_the_instance(self, name, problem):
        """With all coordinates alike only the matrix can tell a good tour from a bad one."""
        if "sweep" in name:
            pytest.skip("sweep orders by angle, from the coordinates")
        x = sample(problem, 12, 15)
        blind = x._replace(distances=distance_matrix(x), xy=torch.full_like(x.xy, 0.5))
        referee = problems.get(problem)
        seeing, unseeing = (referee.cost(x, solved(name, problem, one, seconds=COMPARED)) for one in (x, blind))
        assert float(unseeing.mean()) == pytest.approx(float(seeing.mean()), rel=0.02)

    def test_cost_as_much_in_other_units(self, name, problem):
        """Metres for kilometres: neither a tolerance nor a scale of the unit square is built in."""
        x, referee = sample(problem, 12, 15), problems.get(problem)
        large = in_units(x, 1e6)
        here, there = (referee.cost(one, solved(name, problem, one, seconds=COMPARED)) for one in (x, large))
        scale = 1.0 if problem.startswith("op-") else 1e6
        assert float(there.mean()) == pytest.approx(scale * float(here.mean()), rel=0.02)

    def test_of_an_empty_batch_are_empty(self, name, problem):
        x = map_instance(lambda field: field[:0], sample(problem, 2, 6))
        assert run(solvers.get(name), problems.get(problem), x, seconds=ANYTIME).shape[:2] == (0, 1)


@pytest.mark.parametrize(("name", "problem"), [pair for pair in PAIRS if not solvers.get(pair[0]).anytime])
def test_the_same_seed_gives_the_same_tours(name, problem):
    x = sample(problem, 70, 8)  # more rows than one thread takes at once
    referee, solver = problems.get(problem), solvers.get(name)
    first, second = (run(solver, referee, x, seconds=60.0, seed=4) for _ in range(2))
    assert torch.equal(first, second)


@pytest.mark.parametrize("name", OWN)
def test_another_problem_is_refused(name):
    solver = solvers.get(name)
    other = next(name for name in PAPER if name not in solver.problems)
    with pytest.raises(InputError, match=f"{name.replace('+', '.')} does not solve {other}"):
        solver.solve(problems.get(other), sample(other, 1, 5), seconds=1.0)


def test_every_problem_has_a_solver_of_its_own():
    assert {problem for _, problem in PAIRS} == set(PAPER)
