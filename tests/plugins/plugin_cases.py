"""Small plugins of each kind, and the command line in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

# A problem, a policy, a solver, a loss and a baseline, each in few lines.
PROBLEM = """
import routelearn
from routelearn.problems.tsp import TSP

@routelearn.register
class Mini(TSP):
    name = "mini-tsp"
"""
POLICY = """
import routelearn
from routelearn.policies.attention import AttentionPolicy

@routelearn.register(name="mini-attention")
class Mini(AttentionPolicy):
    pass
"""
SOLVER = """
import torch
import routelearn

@routelearn.register
class InOrder:
    name, problems, licence, anytime, exact = "in-order", frozenset({"tsp"}), "MIT", False, False
    def unavailable(self):
        return None
    def solve(self, problem, x, *, seconds, seed=0):
        batch, nodes = x.xy.shape[:2]
        return torch.arange(nodes).expand(batch, 1, nodes).contiguous()
"""
LOSS = """
import routelearn
from routelearn.training.losses import Loss

@routelearn.register(name="mini-loss")
class Mini(Loss):
    def __call__(self, scored):
        return scored.log_prob.sum()
"""
BASELINE = """
import routelearn
from routelearn.training.baselines import Baseline

@routelearn.register(name="mini-baseline")
class Mini(Baseline):
    def value(self, prepared, cost):
        return cost.mean()
"""


def run(*arguments: object, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """The command line in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "routelearn", *map(str, arguments)],
        capture_output=True, text=True, timeout=300, check=False, cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", **environment},
    )  # fmt: skip
