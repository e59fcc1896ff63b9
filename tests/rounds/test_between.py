"""Plans in between: each is refereed, they are few, and none comes late."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from round_cases import line, stop, van

from routelearn.rounds import between
from routelearn.rounds.answers import RoundSolution
from routelearn.rounds.between import PlansBetween
from routelearn.rounds.model import FOREVER
from routelearn.rounds.plan import Drive
from routelearn.rounds.referee import judge
from routelearn.rounds.solving import solve_round

PLANS = {1.0: (Drive(0, (0, 1, 2)),), 2.0: (Drive(0, (0, 2, 1)),), 3.0: (Drive(0, (0, 1)),)}


class Clock:
    now = 0.0

    def perf_counter(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(between, "time", found)
    return found


def offered(watcher: PlansBetween, price: float) -> None:
    watcher(price, lambda: PLANS[price])


def test_a_plan_waits_until_the_last_one_is_old_enough(clock: Clock) -> None:
    heard: list[RoundSolution] = []
    watcher = PlansBetween(line(3), heard.append, expected=0.01, until=FOREVER)
    offered(watcher, 2.0)
    clock.now = 0.1
    offered(watcher, 1.0)
    assert [one.routes for one in heard] == [[["s0", "s2", "s1"]]]
    clock.now = 0.2
    offered(watcher, 1.0)  # offered again, though nothing was found since
    assert heard[1].routes == [["s0", "s1", "s2"]]
    assert heard[1].seconds == 0.2
    clock.now = 9.0
    offered(watcher, 1.0)
    assert len(heard) == 2, "the same plan is heard of once"


def test_what_takes_long_comes_seldom_and_not_at_the_end(clock: Clock) -> None:
    heard: list[RoundSolution] = []

    def slowly(one: RoundSolution) -> None:
        heard.append(one)
        clock.now += 0.3

    watcher = PlansBetween(line(3), slowly, expected=0.01, until=30.0)
    offered(watcher, 2.0)
    clock.now = 0.3 / between.SHARE
    offered(watcher, 1.0)
    assert len(heard) == 1
    clock.now = 29.5
    offered(watcher, 1.0)
    assert len(heard) == 1
    clock.now = 20.0
    offered(watcher, 1.0)
    assert len(heard) == 2


def test_a_plan_without_a_stop_that_must_be_visited_is_not_handed_on(clock: Clock) -> None:
    heard: list[RoundSolution] = []
    watcher = PlansBetween(line(3), heard.append, expected=0.01, until=FOREVER)
    offered(watcher, 3.0)
    assert heard == []
    clock.now = 1.0
    offered(watcher, 1.0)
    assert len(heard) == 1


def test_a_search_hands_on_plans_that_keep_all_rules() -> None:
    stops = [replace(stop(i % 5, delivery=(1.0,), windows=((0.0, 400.0 + 10 * i),)), id=f"s{i}") for i in range(40)]
    round_ = line(stops, van(capacity=(12.0,), number=2), allow_unassigned=True)
    heard: list[RoundSolution] = []
    found = solve_round(round_, iterations=20_000, better=heard.append)
    assert heard
    assert all(not judge(round_, one.plan).violations for one in heard)
    assert all(one.unassigned and one.unassigned[0][1] for one in heard)
    assert all(b.seconds - a.seconds >= between.PAUSE for a, b in pairwise(heard))
    document = found.document()
    assert set(heard[0].document()) == set(document)
    assert all(cost < 1000 for _, cost, _ in document["history"]), "as the user counts, not as the search does"
