"""Lanes, fair turns and shared passes, and what a construction shows: without a server."""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from typing import NamedTuple

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from paper_problems import PAPER

import routelearn
from routelearn import policies
from routelearn.errors import InputError
from routelearn.models.model_file import Model, save
from routelearn.policies.base import shape_of
from routelearn.problems import PROBLEMS
from routelearn.serve.batching import FairQueue, Ticket, lane_of, likely_problem
from routelearn.serve.limits import Limits, Refused
from routelearn.solving.board import Board

pytest.importorskip("pydantic")

from routelearn.serve import answering, catalogue, reading
from routelearn.serve import think as thinking
from routelearn.serve.catalogue import random_instance

LIMITS = Limits()
OPTIONS = {"seconds": 0.0, "seed": 0, "policy": True, "decode": None, "solver": None, "problem": None}


@pytest.fixture
def loop():
    made = asyncio.new_event_loop()
    yield made
    made.close()


def queued(loop, *clients, most=100):
    queue = FairQueue("short", most)
    for number, client in enumerate(clients):
        queue.put(Ticket(number, "solve", {}, client, loop.create_future()))
    return queue


def test_clients_take_turns_however_much_one_of_them_sends(loop):
    queue = queued(loop, "a", "a", "a", "a", "b", "c")
    assert [ticket.client for ticket in queue.take(4)] == ["a", "b", "c", "a"]
    assert queue.size == 2


def test_longer_work_costs_a_client_several_turns(loop):
    queue = queued(loop, *"aaaaabbbbb")
    order = []
    while queue.size:
        [ticket] = queue.take(1)
        order.append(ticket.client)
        queue.charge(ticket.client, 1.5 if ticket.client == "a" else 0.5)
    assert "".join(order) == "abbbabbaaa", "three turns of a half second for one of a and a half"


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.floats(0, 5)), min_size=1, max_size=30),
    st.lists(st.integers(1, 3), min_size=30, max_size=30),
    st.integers(1, 5),
)
def test_whatever_clients_owe_every_ticket_is_taken_once(asked, steps, most):
    loop = asyncio.new_event_loop()
    queue = queued(loop, *(client for client, _ in asked))
    queue.most = most
    taken = []
    for step in steps:
        for ticket in queue.take(step):
            taken.append(ticket.number)
            queue.charge(*asked[ticket.number])
    assert sorted(taken) == list(range(len(asked)))
    assert all(owed > 0 for owed in queue.owed.values())
    loop.close()


def test_who_is_alone_waits_for_nobody_whatever_it_owes(loop):
    queue = queued(loop, "a", "a", "b")
    queue.charge("a", 60.0)
    queue.charge("b", 30.0)
    assert [ticket.client for ticket in queue.take(3)] == ["b", "a", "a"]


def test_debts_of_clients_that_never_come_back_are_forgotten(loop):
    queue = queued(loop, most=3)
    for client in "abcde":
        queue.charge(client, 9.0)
    assert list(queue.owed) == ["c", "d", "e"]


def test_a_full_queue_names_limit_and_value(loop):
    with pytest.raises(Refused, match="the limit queue is 2") as refusal:
        queued(loop, "a", "b", "c", most=2)
    assert (refusal.value.status, refusal.value.limit, refusal.value.value) == (429, "queue", 2)


def test_a_ticket_whose_client_left_is_not_handed_out(loop):
    queue = queued(loop, "a", "a", "b")
    left = queue.waiting["a"][0]
    assert queue.discard(left)
    assert not queue.discard(left)
    assert [ticket.number for ticket in queue.take(9)] == [1, 2]
    assert queue.size == 0


def test_a_ticket_given_back_is_the_next_one(loop):
    queue = queued(loop, "a", "b", "b")
    ticket = queue.take(2)[1]
    queue.put(ticket, first=True)
    assert queue.take(1) == [ticket]


@pytest.mark.parametrize(
    ("change", "nodes", "rollouts", "lane"),
    [
        ({}, 50, 1, "construct"),
        ({}, 1000, 1, "long"),
        ({"demand": [0, 1]}, 50, 1, "short"),  # no model in this test: a heuristic, whose code may have to be loaded
        ({"decode": "sample:128"}, 50, 128, "short"),
        ({"decode": "sample:1280"}, 100, 1280, "long"),
        ({"seconds": 0.5}, 50, 1, "short"),
        ({"seconds": 0.5}, 1000, 1, "long"),
        ({"seconds": 5.0}, 10, 1, "long"),
        ({"solver": "savings"}, 50, 1, "short"),
        ({"demand": [0.0, 90.0, 10.0], "capacity": 1.0, "problem": "tsp"}, 3, 1, "construct"),
        ({"demand": [0.0, 390.0, 10.0], "capacity": 1.0, "problem": "tsp"}, 3, 1, "short"),
        ({"demand": [0.0, 1990.0, 10.0], "capacity": 1.0, "problem": "tsp"}, 3, 1, "long"),  # as many visits, at least
    ],
)
def test_the_lane_follows_from_size_and_time(change, nodes, rollouts, lane):
    assert lane_of("solve", OPTIONS | change, nodes, rollouts, {"tsp"}) == lane


def test_constructions_of_one_size_share_one_decoding(monkeypatch):
    from routelearn.decoding import decode

    batches = []
    original = decode.decode

    def noted(problem, policy, x, *rest, **named):
        batches.append(tuple(x.xy.shape[:2]))
        return original(problem, policy, x, *rest, **named)

    monkeypatch.setattr(decode, "decode", noted)
    requests = [
        (f"{n}-{seed}", OPTIONS | random_instance("tsp", n, seed)) for n, seed in ((12, 0), (7, 1), (12, 2), (7, 3))
    ]
    requests.append(("bad", OPTIONS | {"coords": [[0.0, 0.0], [1.0, float("nan")]]}))
    results = dict(itertools.chain(*answering.construct(requests, LIMITS)))
    assert batches == [(2, 7), (2, 12)], "grouped by n, small ones first"
    assert isinstance(results.pop("bad"), InputError), "a bad request harms no other"
    for key, fields in requests[:-1]:
        [[(_, alone)]] = answering.construct([(key, fields)], LIMITS)
        assert results[key]["cost"] == pytest.approx(alone["cost"], rel=1e-4)
        assert sorted(results[key]["routes"][0]["stops"]) == list(range(len(fields["coords"])))


def test_one_construction_that_does_not_hold_costs_the_others_nothing(monkeypatch):
    from routelearn.decoding import decode

    original = decode.decode

    def spoilt(problem, policy, x, *rest, **named):
        made = original(problem, policy, x, *rest, **named)
        made.tour[1, 0, 1] = made.tour[1, 0, 0]  # one stop twice, another never
        return made

    monkeypatch.setattr(decode, "decode", spoilt)
    requests = [(seed, OPTIONS | random_instance("tsp", 9, seed)) for seed in range(3)]
    [group] = answering.construct(requests, LIMITS)
    answers = dict(group)
    assert [answers[seed]["history"][0]["by"] for seed in (0, 2)] == ["policy", "policy"]
    assert answers[1]["history"][0]["by"] != "policy"
    assert sorted(answers[1]["routes"][0]["stops"]) == list(range(9))


@pytest.mark.parametrize("name", PAPER)
def test_zero_seconds_give_what_the_library_gives_for_them(name):
    found = {"policy": 0, "heuristic": 0}
    for seed in range(6):
        fields = random_instance(name, 15, seed)
        [[(_, served)]] = answering.construct([(0, OPTIONS | fields)], LIMITS)
        assert served["cost"] == pytest.approx(routelearn.solve(**fields, seconds=0).cost, rel=1e-6)
        found[served["history"][-1]["by"]] += 1
    if name == "cvrp":
        assert min(found.values()) > 0, "both are tried, and the better one kept"


def test_a_decoding_strategy_asks_for_the_policy_alone():
    requests = [(seed, OPTIONS | random_instance("cvrp", 15, seed) | {"decode": "greedy"}) for seed in range(6)]
    [group] = answering.construct(requests, LIMITS)
    assert {event["by"] for _, answer in group for event in answer["history"]} == {"policy"}


@pytest.mark.parametrize(
    ("message", "field"),
    [
        ("instance 12, row 1: the demand is -1; it cannot be negative", "instances.12.demand"),
        ("instance 3: tsp has no maximum length; leave it out or name another problem", "instances.3.max_length"),
        ("instance 0: unknown problem 'x'; the choices are tsp", "problem"),
        ("the request: row 3 of coords is not a finite number below 1e+15", "coords"),
        ("the request: cvrp needs a demand for every stop; there is no such column", "demand"),
        ("the request: the minimum prize 9 is out of reach; all prizes together are 3", "min_prize"),
        ("the request, row 2: the id 'x' is already used in row 1", "ids"),
        ("unknown decoding strategy 'x'; the choices are greedy", "decode"),
        ("something else", None),
    ],
)
def test_the_field_is_read_from_the_message(message, field):
    assert answering.field_of(message) == field


def test_deliveries_that_would_take_too_many_loads_are_refused():
    fields = {"coords": [[0.0, 0.0], [1.0, 1.0]], "demand": [0.0, 9e3], "capacity": 1.0, "problem": "sdvrp"}
    for source, field in ((None, "capacity"), ("instance 2", "instances.2.capacity")):
        with pytest.raises(Refused, match=f"{source or 'the request'}: the demands fill 9000 vehicles") as refusal:
            answering.prepare(fields | {"source": source}, LIMITS)
        assert refusal.value.field == field
    with pytest.raises(InputError, match=r"^the request: the demands fill 1,000,000,000 vehicles; at most 10,000"):
        answering.prepare(fields | {"demand": [0.0, 1e9]}, LIMITS)


def test_a_limit_that_is_no_number_names_the_instance_of_a_batch():
    fields = {"coords": [[0.0, 0.0], [1.0, 1.0]], "demand": [0.0, 1.0], "capacity": float("inf")}
    with pytest.raises(InputError, match=r"^instance 2: .*capacity") as refusal:
        answering.prepare(fields | {"source": answering.source_of(2)}, LIMITS)
    assert answering.field_of(str(refusal.value)) == "instances.2.capacity"


@pytest.mark.parametrize("name", PAPER)
@pytest.mark.parametrize("sample", [False, True])
def test_every_step_of_a_construction_is_explained(name, sample, monkeypatch):
    problem = PROBLEMS[name]
    torch.manual_seed(1)
    policy = policies.build("attention", shape_of(problem), {}).eval()
    model = Model(policy, name, "attention", {}, {"sizes": [20]})
    monkeypatch.setattr(thinking, "find_model", lambda *_: (model, ()))
    fields = random_instance(name, 12, 3) | {"sample": sample, "seed": 5}
    shown = thinking.think(fields, LIMITS)
    nodes = len(fields["coords"])
    assert [step["chosen"] for step in shown["steps"]]
    for step in shown["steps"]:
        masked = dict(step["masked"])
        assert sum(step["probabilities"]) == pytest.approx(1, abs=1e-3)
        assert all(step["probabilities"][node] == 0 for node in masked)
        assert step["chosen"] not in masked
        assert all(masked.values()), "every mask has its reason"
        assert len(step["probabilities"]) == nodes
        assert step["remaining"]
        if not sample:
            assert step["probabilities"][step["chosen"]] == max(step["probabilities"])
    told = {reason for step in shown["steps"] for _, reason in step["masked"]}
    words = {"cvrp": "left in the vehicle", "op-unif": "is allowed", "pctsp": "when the prize is met"}
    if name in words:
        assert any(words[name] in reason for reason in told)
    assert shown["answer"]["problem"] == name


def test_a_problem_without_a_model_is_told_with_those_that_have_one(monkeypatch):
    monkeypatch.setattr(answering, "shipped", lambda: {"m": {"problem": "tsp"}, "n": {"problem": "cvrp"}})
    monkeypatch.setattr(thinking, "find_model", lambda *_: (None, ()))
    with pytest.raises(InputError, match=r"no trained model ships for pctsp yet.* one of: cvrp, tsp"):
        thinking.think(random_instance("pctsp", 9, 0) | {"sample": False, "seed": 0}, LIMITS)


def test_a_problem_that_does_not_explain_itself_can_be_watched_all_the_same(monkeypatch):
    class Silent(type(PROBLEMS["cvrp"])):
        explain = None

    fields = random_instance("cvrp", 9, 0) | {"sample": False, "seed": 0}
    original = thinking.prepare

    def prepared(*arguments):
        return original(*arguments)._replace(problem=Silent())

    monkeypatch.setattr(thinking, "prepare", prepared)
    shown = thinking.think(fields, LIMITS)
    assert [step["remaining"] for step in shown["steps"]] == [{}] * len(shown["steps"])
    assert {why for step in shown["steps"] for _, why in step["masked"]} == {thinking.NO_REASON}


def test_a_construction_far_from_what_a_model_knows_is_refused():
    fields = {"coords": [[float(i), 0.5] for i in range(1500)], "sample": False, "seed": 0}
    with pytest.raises(InputError, match="1500 stops or loads are far beyond what the model for tsp was trained on"):
        thinking.think(fields, Limits(think_nodes=2000, think_numbers=10**7))


def test_the_likely_problem_is_the_one_the_stops_are_read_as():
    for name in PAPER:
        fields = random_instance(name, 5, 0)
        del fields["problem"]
        assert likely_problem(fields) == answering.prepare(fields, LIMITS).problem.name
    assert likely_problem({"coords": [], "prize": [0.0], "min_prize": 1.0}) == "pctsp"


def test_a_construction_that_is_too_large_to_show_names_the_limit():
    with pytest.raises(Refused, match="the limit think_nodes is 5"):
        thinking.think(random_instance("tsp", 9, 0) | {"sample": False, "seed": 0}, Limits(think_nodes=5))


def test_a_construction_of_few_stops_and_many_steps_names_the_limit():
    count = 150
    fields = {"problem": "sdvrp", "coords": random_instance("tsp", count, 0)["coords"], "sample": False, "seed": 0}
    fields |= {"demand": [0.0] + [10.0] * (count - 1), "capacity": 1.0}
    with pytest.raises(Refused, match="the limit think_numbers is 100000") as refusal:
        thinking.think(fields, LIMITS)
    assert refusal.value.limit == "think_numbers"
    usual = random_instance("sdvrp", 199, 0)
    assert thinking.think(usual | {"sample": False, "seed": 0}, LIMITS)["steps"], "what fits is shown"


def test_a_construction_that_nobody_waits_for_ends():
    stop = threading.Event()
    stop.set()
    with pytest.raises(Refused, match="the client went away"):
        thinking.think(random_instance("tsp", 20, 0) | {"sample": False, "seed": 0}, LIMITS, stop)


@pytest.mark.parametrize("count", [3, 40])
def test_a_batch_that_nobody_waits_for_ends(count):
    instances = [random_instance("tsp", 60, seed) for seed in range(count)]
    for one in instances:
        del one["problem"]
    fields = OPTIONS | {"instances": instances, "seconds": 15.0}
    answering.solve_batch(fields | {"seconds": 0.1}, LIMITS, threading.Event())  # compiled, loaded
    stop = threading.Event()
    threading.Timer(0.5, stop.set).start()
    began = time.monotonic()
    with pytest.raises(Refused, match="the client went away"):
        answering.solve_batch(fields, LIMITS, stop)
    assert time.monotonic() - began < 8


@pytest.mark.parametrize("seconds", [0.2, 3.0])
def test_a_batch_of_many_problems_and_sizes_is_answered_in_order_and_in_time(seconds):
    names = [("tsp", 9), ("cvrp", 7), ("tsp", 5), ("spctsp", 6), ("tsp", 9)]
    instances = [random_instance(name, size, row) for row, (name, size) in enumerate(names)]
    for one in instances:
        del one["problem"]
    stop = threading.Event()
    fields = OPTIONS | {"instances": instances, "seconds": seconds}
    answering.solve_batch(fields, LIMITS, stop)  # compiled, loaded
    began = time.monotonic()
    answers = answering.solve_batch(fields, LIMITS, stop)["answers"]
    assert time.monotonic() - began < seconds + 1
    assert [answer["problem"] for answer in answers] == [name for name, _ in names]
    assert [len(answer["layout"]) for answer in answers] == [len(one["coords"]) for one in instances]


# ------------------------------------------------------------------------------- what can be served, and by what


@pytest.mark.parametrize("name", PAPER)
def test_every_solver_that_is_listed_answers(name):
    [listed] = [row for row in catalogue.problems() if row["id"] == name]
    free = [
        solver for solver in listed["solvers"] if solver.startswith(("reopt", "nearest", "savings", "tsil", "pctsp"))
    ]
    for solver in free:
        fields = OPTIONS | random_instance(name, 12, 3) | {"solver": solver, "seconds": 0.5}
        answer = answering.solve(fields, LIMITS, Board(), None)
        assert answer["history"][-1]["by"] == solver
    revealing = PROBLEMS[name].reveals_on_visit
    assert not revealing or free, "there are solvers that decide on the way"


def test_what_only_the_client_knows_is_asked_for():
    fields = OPTIONS | random_instance("spctsp", 12, 3)
    del fields["real_prize"]
    with pytest.raises(
        InputError, match=r"the request: spctsp needs a real_prize for every stop \(what a visit turns out to bring"
    ):
        answering.solve(fields | {"solver": "reopt-all", "seconds": 0.2}, LIMITS, Board(), None)


class Weighted(NamedTuple):
    xy: torch.Tensor
    weight: torch.Tensor
    distances: torch.Tensor | None = None


class Own(type(PROBLEMS["tsp"])):
    """A problem with a column that no request has."""

    name = "own"

    def sample(self, rng, batch, n):
        xy = super().sample(rng, batch, n).xy
        return Weighted(xy, xy[..., 0])


def test_a_problem_with_columns_of_its_own_is_not_offered_and_refused_in_words(monkeypatch):
    monkeypatch.setitem(PROBLEMS, "own", Own())
    assert "own" not in [row["id"] for row in catalogue.problems()]
    assert list(catalogue.served()) == list(PAPER)
    places = {"coords": [[0.0, 0.0], [1.0, 1.0], [0.0, 1.0]], "problem": "own"}
    told = "own needs weight for its instances, which stops cannot give"
    with pytest.raises(InputError, match=told):
        answering.solve(OPTIONS | places, LIMITS, Board(), None)
    with pytest.raises(InputError, match=told):
        thinking.think(places | {"sample": False, "seed": 0}, LIMITS)
    with pytest.raises(InputError, match=told):
        random_instance("own", 5, 0)


def test_random_instances_can_be_solved_however_small():
    for seed in range(100):  # one in ten of the draws has prizes below the minimum
        fields = random_instance("pctsp", 4, seed)
        assert sum(fields["prize"]) >= fields["min_prize"]
        assert fields == random_instance("pctsp", 4, seed)
        answering.prepare(fields, LIMITS)


def test_the_model_that_is_named_is_the_one_that_is_used():
    from routelearn.models import which

    for row in catalogue.problems():
        assert row["model"] == which(row["id"])
        assert row["models"]
        for size, name in row["models"].items():
            assert name == which(row["id"], int(size))


@pytest.fixture(scope="module")
def own_model(tmp_path_factory):
    """A model file with weights that nobody has trained."""
    torch.manual_seed(3)
    policy = policies.build("attention", shape_of(PROBLEMS["tsp"]), {}).eval()
    path = tmp_path_factory.mktemp("model") / "own.safetensors"
    save(path, Model(policy, "tsp", "attention", {}, {"sizes": [20]}))
    return str(path)


def test_a_model_of_ones_own_constructs_thinks_and_searches(own_model):
    from routelearn.decoding.decode import decode

    own = catalogue.own_models([own_model])
    assert own == {"tsp": own_model}
    fields = random_instance("tsp", 12, 0)
    query = answering.prepare(fields, LIMITS)
    policy = routelearn.load_model(path=own_model).policy
    tour = decode(PROBLEMS["tsp"], policy, query.policy, "greedy").tour
    cost = float(PROBLEMS["tsp"].cost(query.referee, tour))
    greedy = OPTIONS | fields | {"decode": "greedy"}
    assert answering.solve(greedy, LIMITS, Board(), None, own)["cost"] == pytest.approx(cost)
    assert answering.solve(greedy, LIMITS, Board(), None)["cost"] < cost, "the shipped one has learnt something"
    shown = thinking.think(fields | {"sample": False, "seed": 0}, LIMITS, None, own)
    assert shown["answer"]["cost"] == pytest.approx(cost)
    one = {name: value for name, value in fields.items() if name != "problem"}
    batch = OPTIONS | {"instances": [one] * 2, "seconds": 0.3}
    assert len(answering.solve_batch(batch, LIMITS, threading.Event(), own)["answers"]) == 2
    assert catalogue.models(own)[-1]["name"] == own_model
    [row] = [row for row in catalogue.problems(own) if row["id"] == "tsp"]
    assert row["model"] == own_model


def test_two_models_for_one_problem_are_refused(own_model):
    with pytest.raises(InputError, match="give one per problem"):
        catalogue.own_models([own_model, "tsp-20"])
    with pytest.raises(InputError, match="no such model file"):
        catalogue.own_models(["nothing.safetensors"])


def test_decoding_without_a_policy_is_refused_not_answered_by_something_else():
    fields = OPTIONS | {"coords": [[float(i), i % 7 / 7] for i in range(1500)], "decode": "greedy"}
    with pytest.raises(InputError, match="1500 stops or loads are far beyond what the model for tsp was trained on"):
        answering.solve(fields, LIMITS, Board(), None)
    assert answering.solve(fields | {"decode": None}, LIMITS, Board(), None)["history"][-1]["by"] == "heuristic"


# --------------------------------------------------------------------------------------------------- lengths


@pytest.mark.parametrize("metric", ["EUC_2D", "CEIL_2D", "FLOOR_2D", "EXACT_2D", "MAN_2D", "MAX_2D", "ATT"])
def test_a_file_of_a_library_comes_back_with_its_metric_instead_of_a_matrix(metric):
    from routelearn.data import tsplib

    rows = "".join(f"{i + 1} {i * 37 % 101} {i * 53 % 89}\n" for i in range(40))
    text = f"NAME: t\nTYPE: TSP\nDIMENSION: 40\nEDGE_WEIGHT_TYPE: {metric}\nNODE_COORD_SECTION\n{rows}EOF\n"
    fields = reading.read_file({"name": "t.tsp", "text": text}, LIMITS)
    assert fields["metric"] == metric
    assert "matrix" not in fields
    assert (answering.prepare(fields, LIMITS).stops.matrix == tsplib.parse(text, "t.tsp").matrix).all()


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"coords": [[0, 0], [1, 1]], "metric": "GEO"}, "metric is 'GEO'; the choices are EUC_2D, "),
        ({"latlon": [[0, 0], [1, 1]], "metric": "EUC_2D"}, "a metric is for coords, without latlon or matrix"),
        ({"coords": [[0, 0], [1, 1]], "matrix": [[0, 1], [1, 0]], "metric": "ATT"}, "a metric is for coords"),
    ],
)
def test_a_metric_that_cannot_be_is_told_at_its_field(fields, words):
    with pytest.raises(InputError, match=words) as refusal:
        answering.prepare(fields, LIMITS)
    assert answering.field_of(str(refusal.value)) == "metric"
