"""Lanes, fair turns and shared passes, and what a construction shows: without a server."""

from __future__ import annotations

import asyncio
import itertools

import pytest
import torch

import routelearn
from routelearn import policies
from routelearn.errors import InputError
from routelearn.model_file import Model
from routelearn.policies.base import shape_of
from routelearn.problems import PROBLEMS
from routelearn.serve import jobs
from routelearn.serve import think as thinking
from routelearn.serve.batching import FairQueue, Job, lane_of, likely_problem
from routelearn.serve.catalogue import random_instance
from routelearn.serve.limits import Limits, Refused
from routelearn.serve.metrics import Metrics

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
        queue.put(Job(number, "solve", {}, client, loop.create_future()))
    return queue


def test_clients_take_turns_however_much_one_of_them_sends(loop):
    queue = queued(loop, "a", "a", "a", "a", "b", "c")
    assert [job.client for job in queue.take(4)] == ["a", "b", "c", "a"]
    assert queue.size == 2


def test_a_full_queue_names_limit_and_value(loop):
    with pytest.raises(Refused, match="the limit queue is 2") as refusal:
        queued(loop, "a", "b", "c", most=2)
    assert (refusal.value.status, refusal.value.limit, refusal.value.value) == (429, "queue", 2)


def test_a_job_whose_client_left_is_not_handed_out(loop):
    queue = queued(loop, "a", "a", "b")
    left = queue.waiting["a"][0]
    assert queue.discard(left)
    assert not queue.discard(left)
    assert [job.number for job in queue.take(9)] == [1, 2]
    assert queue.size == 0


def test_a_job_given_back_is_the_next_one(loop):
    queue = queued(loop, "a", "b", "b")
    job = queue.take(2)[1]
    queue.put(job, first=True)
    assert queue.take(1) == [job]


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
    ],
)
def test_the_lane_follows_from_size_and_time(change, nodes, rollouts, lane):
    assert lane_of("solve", OPTIONS | change, nodes, rollouts, {"tsp"}) == lane


def test_constructions_of_one_size_share_one_decoding(monkeypatch):
    from routelearn import decode

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
    results = dict(itertools.chain(*jobs.construct(requests, LIMITS)))
    assert batches == [(2, 7), (2, 12)], "grouped by n, small ones first"
    assert isinstance(results.pop("bad"), InputError), "a bad request harms no other"
    for key, fields in requests[:-1]:
        [[(_, alone)]] = jobs.construct([(key, fields)], LIMITS)
        assert results[key]["cost"] == pytest.approx(alone["cost"], rel=1e-4)
        assert sorted(results[key]["routes"][0]["stops"]) == list(range(len(fields["coords"])))


def test_one_construction_that_does_not_hold_costs_the_others_nothing(monkeypatch):
    from routelearn import decode

    original = decode.decode

    def spoilt(problem, policy, x, *rest, **named):
        made = original(problem, policy, x, *rest, **named)
        made.tour[1, 0, 1] = made.tour[1, 0, 0]  # one stop twice, another never
        return made

    monkeypatch.setattr(decode, "decode", spoilt)
    requests = [(seed, OPTIONS | random_instance("tsp", 9, seed)) for seed in range(3)]
    [group] = jobs.construct(requests, LIMITS)
    answers = dict(group)
    assert [answers[seed]["history"][0]["by"] for seed in (0, 2)] == ["policy", "policy"]
    assert answers[1]["history"][0]["by"] != "policy"
    assert sorted(answers[1]["routes"][0]["stops"]) == list(range(9))


@pytest.mark.parametrize("name", PROBLEMS)
def test_zero_seconds_give_what_the_library_gives_for_them(name):
    found = {"policy": 0, "heuristic": 0}
    for seed in range(6):
        fields = random_instance(name, 15, seed)
        [[(_, served)]] = jobs.construct([(0, OPTIONS | fields)], LIMITS)
        assert served["cost"] == pytest.approx(routelearn.solve(**fields, seconds=0).cost, rel=1e-6)
        found[served["history"][-1]["by"]] += 1
    if name == "cvrp":
        assert min(found.values()) > 0, "both are tried, and the better one kept"


def test_a_decoding_strategy_asks_for_the_policy_alone():
    requests = [(seed, OPTIONS | random_instance("cvrp", 15, seed) | {"decode": "greedy"}) for seed in range(6)]
    [group] = jobs.construct(requests, LIMITS)
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
    assert jobs.field_of(message) == field


def test_deliveries_that_would_take_a_million_loads_are_refused():
    fields = {"coords": [[0.0, 0.0], [1.0, 1.0]], "demand": [0.0, 1e9], "capacity": 1.0, "problem": "sdvrp"}
    for source, field in ((None, "capacity"), ("instance 2", "instances.2.capacity")):
        with pytest.raises(Refused, match=f"{source or 'the request'}: the demands fill 1000000000 veh") as refusal:
            jobs.prepare(fields | {"source": source}, LIMITS)
        assert refusal.value.field == field


def test_a_limit_that_is_no_number_names_the_instance_of_a_batch():
    fields = {"coords": [[0.0, 0.0], [1.0, 1.0]], "demand": [0.0, 1.0], "capacity": float("inf")}
    with pytest.raises(InputError, match=r"^instance 2: .*capacity") as refusal:
        jobs.prepare(fields | {"source": jobs.source_of(2)}, LIMITS)
    assert jobs.field_of(str(refusal.value)) == "instances.2.capacity"


@pytest.mark.parametrize("name", PROBLEMS)
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
    monkeypatch.setattr(thinking, "shipped", lambda: {"m": {"problem": "tsp"}, "n": {"problem": "cvrp"}})
    monkeypatch.setattr(thinking, "find_model", lambda *_: (None, ()))
    with pytest.raises(InputError, match=r"no trained model ships for pctsp yet.* one of: cvrp, tsp"):
        thinking.think(random_instance("pctsp", 9, 0) | {"sample": False, "seed": 0}, LIMITS)


def test_a_problem_that_does_not_explain_itself_can_be_watched_all_the_same(monkeypatch):
    class Silent(type(PROBLEMS["cvrp"])):
        explain = None

    fields = random_instance("cvrp", 9, 0) | {"sample": False, "seed": 0}
    original = thinking.prepare

    def prepared(*arguments):
        task = original(*arguments)
        return jobs.Task(task.stops, task.converted._replace(problem=Silent()))

    monkeypatch.setattr(thinking, "prepare", prepared)
    shown = thinking.think(fields, LIMITS)
    assert [step["remaining"] for step in shown["steps"]] == [{}] * len(shown["steps"])
    assert {why for step in shown["steps"] for _, why in step["masked"]} == {thinking.NO_REASON}


def test_a_construction_far_from_what_a_model_knows_is_refused():
    fields = {"coords": [[float(i), 0.5] for i in range(1500)], "sample": False, "seed": 0}
    with pytest.raises(InputError, match="1500 stops, far from what the model for tsp was trained on"):
        thinking.think(fields, Limits(think_nodes=2000))


def test_the_likely_problem_is_the_one_the_stops_are_read_as():
    for name in PROBLEMS:
        fields = random_instance(name, 5, 0)
        del fields["problem"]
        assert likely_problem(fields) == jobs.prepare(fields, LIMITS).converted.problem.name
    assert likely_problem({"coords": [], "prize": [0.0], "min_prize": 1.0}) == "pctsp"


def test_a_construction_that_is_too_large_to_show_names_the_limit():
    with pytest.raises(Refused, match="the limit think_nodes is 5"):
        thinking.think(random_instance("tsp", 9, 0) | {"sample": False, "seed": 0}, Limits(think_nodes=5))


def test_metrics_are_in_the_text_format():
    metrics = Metrics()
    metrics.count("things_total", "Things.", path='a"b')
    metrics.count("things_total", "Things.", path='a"b')
    metrics.observe("size", "Sizes.", 3, (1, 4))
    metrics.gauge("now", "Now.", lambda: {(): 7.0})
    lines = metrics.text().splitlines()
    assert 'things_total{path="a\\"b"} 2' in lines
    assert "# TYPE size histogram" in lines
    assert 'size_bucket{le="1"} 0' in lines
    assert 'size_bucket{le="4"} 1' in lines
    assert 'size_bucket{le="+Inf"} 1' in lines
    assert "now 7" in lines
