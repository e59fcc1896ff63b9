"""Child processes know the plugins of their parent: the service's workers, solvers' workers, nodes of a cluster."""

from __future__ import annotations

import json
import multiprocessing

import pytest
from plugin_cases import PROBLEM, ROOT, SOLVER

from routelearn import plugins, policies
from routelearn.data import generate
from routelearn.errors import InputError
from routelearn.models import model_file
from routelearn.models.model_file import Model
from routelearn.policies.base import shape_of
from routelearn.problems import get
from routelearn.serve.limits import Limits
from routelearn.serve.worker import work
from routelearn.solvers import get as get_solver
from routelearn.solvers.adapters import runner
from routelearn.solvers.farm.running import solve_instances

SQUARE = [[0.1, 0.2], [0.9, 0.3], [0.8, 0.9], [0.2, 0.7], [0.5, 0.5]]
OPTIONS = {"width": 16, "heads": 2, "layers": 1, "hidden": 16}
LIBRARY = """
import routelearn
from routelearn.solvers.adapters.base import Library
from routelearn.solvers.tasks import Answer

def prepare():
    pass

def in_order(job, seconds, seed):
    return list(range(job.nodes))

routelearn.register(
    Library(
        name="mini-library", problems=frozenset({"tsp"}), licence="MIT", package="json", extra="none",
        function=in_order, prepare=prepare,
    )
)
"""


def test_a_worker_of_the_service_serves_a_problem_and_a_model_from_outside(write, tmp_path):
    pytest.importorskip("pydantic")
    plugins.load(write("problem.py", PROBLEM))
    policy = policies.build("attention", shape_of(get("mini-tsp")), OPTIONS)
    model_file.save("m.safetensors", Model(policy, "mini-tsp", "attention", OPTIONS))
    context = multiprocessing.get_context("spawn")
    pipe, far = context.Pipe()
    models = {"mini-tsp": str(tmp_path / "m.safetensors")}
    worker = context.Process(target=work, args=(far, "short", 0, Limits(), models), daemon=True)
    worker.start()
    far.close()
    try:
        assert pipe.poll(120)
        assert pipe.recv() == ("ready",)
        fields = {"problem": "mini-tsp", "coords": SQUARE, "seconds": 0.0, "seed": 0, "policy": True}
        pipe.send(("tickets", [(1, "solve", {**fields, "decode": "greedy", "solver": None})]))
        assert pipe.poll(60)
        kind, [(number, status, body)] = pipe.recv()
    finally:
        worker.kill()
        worker.join()
    assert (kind, number, status) == ("done", 1, 200), body
    answer = json.loads(body)
    assert answer["problem"] == "mini-tsp"
    assert sorted(answer["routes"][0]["stops"]) == list(range(5))


def test_a_solver_that_runs_in_workers_is_found_there(write, monkeypatch):
    """Also by workers that were started before the plugin was loaded: they are replaced."""
    monkeypatch.setenv("ROUTELEARN_WORKERS", "2")
    x = generate("tsp", 12, count=3)
    first = runner._borrow()
    runner._give_back(first)
    plugins.load(write("library.py", LIBRARY))
    found = solve_instances(get("tsp"), x, get_solver("mini-library"), seconds=1)
    assert found.infeasible == 0
    assert found.tours[:, 0].tolist() == [list(range(12))] * 3
    assert first.process.poll() is not None
    runner.close_workers()


@pytest.mark.slow
@pytest.mark.extra
def test_the_nodes_of_a_cluster_load_the_plugin(write, monkeypatch, tmp_path):
    ray = pytest.importorskip("ray", reason="needs routelearn[cluster]")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))  # as if the package were installed on every node
    text = PROBLEM + SOLVER.replace('{"tsp"}', '{"mini-tsp"}')
    plugins.load(write("both.py", text))
    problem, solver = get("mini-tsp"), get_solver("in-order")
    x = generate(problem, 6, count=4)
    monkeypatch.delenv(plugins.VARIABLE)  # else Ray's processes would find it in what they inherit
    ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        monkeypatch.setenv(plugins.VARIABLE, str(tmp_path / "both.py"))
        far = solve_instances(problem, x, solver, seconds=1, on="ray")
        assert far.tours.tolist() == solve_instances(problem, x, solver, seconds=1).tours.tolist()
        (tmp_path / "both.py").rename(tmp_path / "moved.py")
        ray.shutdown()
        ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False)
        with pytest.raises(InputError, match=r"on node .*: .*both\.py: no such plugin file"):
            solve_instances(problem, x, solver, seconds=1, on="ray")
    finally:
        ray.shutdown()
