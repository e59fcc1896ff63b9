"""A construction step by step: the decoder's probabilities, what is masked and why, and what is left."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from routelearn.errors import InputError
from routelearn.models import load_model, shipped
from routelearn.problems.base import leg, legs_from, legs_to_depot
from routelearn.rollout import advance, begin, look
from routelearn.serve.jobs import Task, answer, prepare
from routelearn.serve.limits import Limits, over
from routelearn.solving import make_solution
from routelearn.solving.guide import usable

DIGITS = 5  # of a probability


@torch.no_grad()
def think(fields: dict[str, Any], limits: Limits) -> dict[str, Any]:
    """The fields of schemas.Thoughts; InputError where no model ships for the problem."""
    task = prepare(fields, limits)
    if task.nodes > limits.think_nodes:
        raise over(422, "think_nodes", limits.think_nodes, f"{task.nodes} stops", "coords")
    problem, x = task.converted.problem, task.converted.policy
    able = sorted({entry["problem"] for entry in shipped().values()})
    if problem.name not in able:
        raise InputError(
            f"no trained model ships for {problem.name} yet, so there is no policy to watch; "
            f"the problem can be one of: {', '.join(able) or 'none'}"
        )
    model = load_model(problem.name, task.nodes)
    if not usable(model, task.nodes):
        raise InputError(f"{task.nodes} stops, far from the {max(model.card['sizes'])} of the trained model")
    policy = model.policy
    torch.manual_seed(fields["seed"])
    cache = policy.encode(problem.features(x))
    live = begin(problem, policy, cache, x, 1)
    steps: list[dict[str, Any]] = []
    travelled = 0.0
    chosen: list[int] = []
    while len(steps) < problem.max_steps(x) and not bool(problem.done(x, live.state)):
        before = live
        seen = look(problem, x, before.state)
        logits, _ = policy.step(cache, before.carry, before.last, seen)
        live, choice, _ = advance(problem, policy, cache, x, before, 1.0 if fields["sample"] else 0.0)
        node = int(choice.nodes)
        steps.append(
            {
                "chosen": node,
                "probabilities": [round(p, DIGITS) for p in logits[0, 0].softmax(-1).tolist()],
                "masked": reasons(task, before.state, seen.feasible[0, 0]),
                "remaining": remaining(task, before.state),
                "cost": travelled,
            }
        )
        origin = chosen[-1] if chosen else 0 if problem.has_depot else node
        travelled += float(leg(task.converted.referee, torch.tensor([[origin]]), choice.nodes))
        chosen.append(node)
    tour = torch.tensor(chosen or [0])
    return {
        "problem": problem.name,
        "model": {"sizes": model.card.get("sizes", []), "policy": model.kind},
        "ids": task.converted.scale.ids,
        "layout": task.converted.referee.xy[0].tolist(),
        "steps": steps,
        "answer": answer(make_solution(task.converted, task.stops, tour, seconds=0.0)),
    }


def remaining(task: Task, state: Any) -> dict[str, float]:
    """What the vehicle has left, in the user's units."""
    x, scale = task.converted.policy, task.converted.scale
    left: dict[str, float] = {}
    if hasattr(state, "room"):
        left["capacity"] = int(state.room) / scale.demand
    if hasattr(x, "max_length"):
        left["length"] = float(x.max_length[0] - state.length) * scale.length
    if hasattr(x, "min_prize"):
        left["prize to collect"] = float(state.owed) * scale.prize
    if not left:
        left["stops"] = int(state.remaining)
    return left


def reasons(task: Task, state: Any, feasible: Tensor) -> list[tuple[int, str]]:
    """(node, why it is masked) for every node that may not be chosen; `feasible` is [N]."""
    x, scale = task.converted.policy, task.converted.scale
    demand, length = getattr(x, "demand", None), None
    if hasattr(x, "max_length"):
        length = (state.length[..., None] + legs_from(x, state.last) + legs_to_depot(x)[:, None])[0, 0]
    found: list[tuple[int, str]] = []
    for node in (~feasible).nonzero()[:, 0].tolist():
        if node == 0 and task.converted.problem.has_depot:
            if hasattr(state, "owed") and demand is None:
                left = float(state.owed) * scale.prize
                found.append((0, f"the depot opens when the prize is met; {left:.4g} is to collect"))
            else:
                found.append((0, "the vehicle is at the depot"))
        elif _served(state, node):
            found.append((node, "visited"))
        elif demand is not None:
            wanted, room = int(demand[0, node]) / scale.demand, int(state.room) / scale.demand
            found.append((node, f"demands {wanted:g}; {room:g} is left in the vehicle"))
        elif length is not None:
            limit = float(x.max_length[0]) * scale.length
            found.append(
                (node, f"there and home makes {float(length[node]) * scale.length:.4g}; {limit:.4g} is allowed")
            )
        else:
            found.append((node, "the tour is over"))
    return found


def _served(state: Any, node: int) -> bool:
    if hasattr(state, "visited"):
        return bool(state.visited[0, 0, node])
    return int(state.owed[0, 0, node]) == 0
