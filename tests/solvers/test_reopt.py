"""Re-optimisation: what is revealed and when, how much of a plan is carried out, and how it ends."""

from __future__ import annotations

import time

import pytest
import torch
from test_own_solvers import sample, solved

from routelearn import problems, solvers
from routelearn.errors import InputError
from routelearn.solvers.own import reopt
from routelearn.solvers.reveal import OnlineSolver, Reveal, run

SPCTSP = problems.get("spctsp")
NAMES = ["reopt-all", "reopt-half", "reopt-first"]


def test_a_prize_is_revealed_once_and_by_a_visit():
    x = sample("spctsp", 2, 5)
    reveal = Reveal(x)
    assert reveal.visit(1, 3) == float(x.real_prize[1, 3])
    assert reveal.visits == [[], [3]]
    with pytest.raises(InputError, match="instance 1: node 3 is visited twice"):
        reveal.visit(1, 3)
    with pytest.raises(InputError, match="node 0 is not a customer; customers are 1 to 5"):
        reveal.visit(0, 0)


@pytest.mark.parametrize("name", NAMES)
def test_the_tour_is_what_was_visited(name):
    x = sample("spctsp", 6, 12)
    reveal = Reveal(x)
    tour = solvers.get(name).solve_online(SPCTSP, x.public(), reveal, seconds=5.0)
    SPCTSP.check(x, tour)
    for row, visits in enumerate(reveal.visits):
        assert tour[row, 0, : len(visits)].tolist() == visits
        assert not tour[row, 0, len(visits) :].any()


def test_only_online_solvers_are_asked_online():
    assert all(isinstance(solvers.get(name), OnlineSolver) for name in NAMES)
    assert not isinstance(solvers.get("pctsp-ils"), OnlineSolver)
    x = sample("pctsp", 2, 6)
    tour = run(solvers.get("pctsp-ils"), problems.get("pctsp"), x, seconds=0.02)
    problems.get("pctsp").check(x, tour)


def test_the_public_view_alone_is_refused():
    x = sample("spctsp", 1, 5)
    with pytest.raises(InputError, match=r"reopt-all decides while real prizes are revealed .*solvers\.reveal\.run"):
        solvers.get("reopt-all").solve(SPCTSP, x.public(), seconds=1.0)
    SPCTSP.check(x, solvers.get("reopt-all").solve(SPCTSP, x, seconds=1.0))


def test_decisions_do_not_depend_on_prizes_not_yet_seen():
    """Two instances that differ only in what the last nodes bring begin with the same visits."""
    x = sample("spctsp", 1, 15)
    full = Reveal(x)
    solvers.get("reopt-first").solve_online(SPCTSP, x.public(), full, seconds=60.0)
    known = full.visits[0][:4]
    other = torch.full_like(x.real_prize, 0.01)
    other[0, known] = x.real_prize[0, known]
    changed = Reveal(x._replace(real_prize=other))
    solvers.get("reopt-first").solve_online(SPCTSP, x.public(), changed, seconds=60.0)
    assert changed.visits[0][:5] == full.visits[0][:5]
    assert len(changed.visits[0]) > len(full.visits[0])


@pytest.mark.parametrize(
    ("name", "expected"), [("reopt-all", [7, 2, 1]), ("reopt-half", [3, 1, 1]), ("reopt-first", [1] * 3)]
)
def test_how_much_of_a_plan_is_carried_out(name, expected):
    assert [solvers.get(name).visits(planned) for planned in (7, 2, 1)] == expected


def test_planning_goes_on_after_the_prize_is_met(monkeypatch):
    """The last plan asked for is empty, and asks for no prize."""
    asked = []

    def plan(*arguments, **options):
        route = original(*arguments, **options)
        asked.append((arguments[3], len(route)))
        return route

    original = reopt.plan
    monkeypatch.setattr(reopt, "plan", plan)
    x = sample("spctsp", 1, 15)
    x = x._replace(real_prize=x.prize * 1.5)
    solved("reopt-all", "spctsp", x)
    assert asked[-1] == (0.0, 0)
    assert asked[0][0] == 1.0


def test_the_prize_required_is_capped_at_what_is_expected(monkeypatch):
    required = []
    original = reopt.plan
    monkeypatch.setattr(
        reopt, "plan", lambda *a, **o: (required.append((a[3], a[1][o["allowed"]].sum())), original(*a, **o))[1]
    )
    x = sample("spctsp", 1, 8)
    solved("reopt-first", "spctsp", x._replace(real_prize=x.prize * 0.1))
    assert all(asked <= left + 1e-12 for asked, left in required)
    assert required[-1][0] == pytest.approx(required[-1][1])


@pytest.mark.parametrize("name", NAMES)
def test_all_nodes_are_visited_where_the_prize_is_never_met(name):
    x = sample("spctsp", 3, 8)
    tour = solved(name, "spctsp", x._replace(real_prize=x.prize * 0.01))
    assert ((tour > 0).sum(-1) == 8).all()
    worthless = x._replace(prize=torch.zeros_like(x.prize), real_prize=torch.zeros_like(x.prize))
    assert ((solved(name, "spctsp", worthless) > 0).sum(-1) == 8).all()


def test_more_adaptive_is_better_on_average():
    x = sample("spctsp", 150, 15)
    every, half = (SPCTSP.cost(x, run(solvers.get(n), SPCTSP, x, seconds=5.0)).mean() for n in NAMES[:2])
    assert half < every


@pytest.mark.parametrize("name", NAMES)
def test_plans_share_the_time_and_hurry_when_it_is_up(name):
    x = sample("spctsp", 1, 120)
    solved(name, "spctsp", sample("spctsp", 1, 5))  # compiled
    begin = time.perf_counter()
    tour = run(solvers.get(name), SPCTSP, x, seconds=0.2)
    assert time.perf_counter() - begin < 4
    SPCTSP.check(x, tour)
