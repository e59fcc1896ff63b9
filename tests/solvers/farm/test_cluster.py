"""The farm on Ray: the same answers as on one machine, and nothing lost when a node dies."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

from routelearn.data import generate
from routelearn.errors import InputError
from routelearn.problems import get
from routelearn.solvers import get as get_solver
from routelearn.solvers.farm.running import solve_instances

ROOT = Path(__file__).resolve().parents[3]


def test_without_ray_the_farm_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InputError, match=r'pip install "routelearn\[cluster\]"'):
        solve_instances(get("tsp"), generate("tsp", 5, count=2), get_solver("nearest-neighbour"), seconds=1, on="ray")


@pytest.mark.slow
@pytest.mark.extra
def test_a_node_killed_midway_loses_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ray = pytest.importorskip("ray", reason="needs routelearn[cluster]")
    from ray.cluster_utils import Cluster

    monkeypatch.setenv("PYTHONPATH", str(ROOT))  # as if the package were installed on every node
    monkeypatch.setenv("RAY_DEDUP_LOGS", "0")
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    doomed = cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    ray.init(address=cluster.address, log_to_driver=False)
    done: list[int] = []
    killed: list[int] = []

    def kill_once(count: int) -> None:
        done.append(count)
        if len(done) == 4:
            cluster.remove_node(doomed, allow_graceful=False)
            killed.append(sum(done))

    try:
        many, quick = generate("tsp", 10, count=200), get_solver("random-insertion")
        far = solve_instances(get("tsp"), many, quick, seconds=1, seed=3, on="ray")
        x, solver = generate("pctsp", 12, count=24), get_solver("pctsp-ils")
        store = tmp_path / "results.jsonl"
        result = solve_instances(
            get("pctsp"), x, solver, seconds=0.4, seed=7, on="ray", store=store, progress=kill_once
        )
    finally:
        ray.shutdown()
        cluster.shutdown()
    assert killed, "the node was not killed"  # Ray itself may need a minute to notice
    assert killed[0] < 24, "the node was not killed before the end"
    assert sum(done) == 24
    assert result.infeasible == 0
    assert len(store.read_text().splitlines()) == 25
    near = solve_instances(get("tsp"), many, quick, seconds=1, seed=3)
    assert torch.equal(far.tours, near.tours)
