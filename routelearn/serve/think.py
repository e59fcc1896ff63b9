"""A construction step by step: the decoder's probabilities, what is masked and why, and what is left."""

from __future__ import annotations

import threading
from typing import Any

import torch

from routelearn.decoding.rollout import advance, begin, look
from routelearn.errors import InputError
from routelearn.problems.base import Explains, Explanation, Units, leg_of, masked_nodes
from routelearn.serve.answering import SHIPPED, Models, answer, no_policy, prepare
from routelearn.serve.limits import Limits, Refused
from routelearn.solving import make_solution
from routelearn.solving.models import find_model

DIGITS = 5  # of a probability
NO_REASON = "not possible now"  # where the problem does not explain itself


@torch.no_grad()
def think(
    fields: dict[str, Any], limits: Limits, stop: threading.Event | None = None, models: Models = SHIPPED
) -> dict[str, Any]:
    """The fields of schemas.Thoughts; InputError where no model ships for the problem. `stop` ends it early."""
    query = prepare(fields, limits)
    limits.check("think_nodes", query.nodes, f"{query.nodes} stops", "coords")
    problem, x = query.problem, query.policy
    most_steps = problem.max_steps(x)
    what = f"up to {most_steps} steps of {query.nodes} stops"
    limits.check("think_numbers", most_steps * query.nodes, what, "coords")
    model, _ = find_model(problem, query.size, True, models.get(problem.name))
    if model is None:
        raise no_policy(problem, query.size, models)
    policy, scale = model.policy, query.scale
    if getattr(policy, "inserts", False):
        raise InputError(f"policy {model.kind!r} inserts stops into a tour; only one that travels can be watched")
    units = Units(scale.length, scale.prize, scale.demand)
    torch.manual_seed(fields["seed"])
    cache = policy.encode(problem.features(x))
    live = begin(problem, policy, cache, x, 1)
    ahead = look(problem, x, live)
    steps: list[dict[str, Any]] = []
    travelled = 0.0
    chosen: list[int] = []
    while len(steps) < most_steps and not bool(problem.done(x, live.state)):
        if stop is not None and stop.is_set():
            raise Refused(499, "the client went away")
        before, seen = live, ahead
        logits, _ = policy.step(cache, before.carry, seen)
        live, choice, ahead = advance(problem, policy, cache, x, before, seen, 1.0 if fields["sample"] else 0.0)
        node = int(choice.nodes)
        told = problem.explain(x, before.state, units) if isinstance(problem, Explains) else Explanation({}, {})
        steps.append(
            {
                "chosen": node,
                "probabilities": [round(p, DIGITS) for p in logits[0, 0].softmax(-1).tolist()],
                "masked": [(other, told.masked.get(other, NO_REASON)) for other in masked_nodes(seen.feasible)],
                "remaining": told.remaining,
                "cost": travelled,
            }
        )
        origin = chosen[-1] if chosen else 0 if problem.has_depot else node
        travelled += float(leg_of(problem, query.referee, torch.tensor([[origin]]), choice.nodes))
        chosen.append(node)
    tour = torch.tensor(chosen or [0])
    return {
        "problem": problem.name,
        "model": {"sizes": model.card.get("sizes", []), "policy": model.kind},
        "ids": query.scale.ids,
        "layout": query.referee.xy[0].tolist(),
        "steps": steps,
        "answer": answer(make_solution(query, tour)),
    }
