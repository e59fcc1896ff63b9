"""What the service can do, for people and programs: problems, their fields and solvers, models, random instances."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from routelearn.data.fields import template
from routelearn.problems import PROBLEMS, NumpyRng, get

TITLES = {
    "tsp": "Travelling salesman",
    "cvrp": "Vehicle routing with capacities",
    "sdvrp": "Vehicle routing, deliveries may be split",
    "op-const": "Orienteering, every stop counts 1",
    "op-unif": "Orienteering, any prizes",
    "op-dist": "Orienteering, far stops earn more",
    "pctsp": "Prize collecting, penalties if left out",
    "spctsp": "Prize collecting, prizes known on arrival",
}


@lru_cache(maxsize=1)
def models() -> list[dict[str, Any]]:
    from routelearn.models import shipped

    return [
        {"name": name, **{key: entry[key] for key in ("problem", "policy", "megabytes", "card")}}
        for name, entry in shipped().items()
    ]


@lru_cache(maxsize=1)
def problems() -> list[dict[str, Any]]:
    from routelearn.solvers import for_problem

    served = {model["problem"]: model["name"] for model in reversed(models())}
    return [
        {
            "id": name,
            "title": TITLES.get(name, name),
            "needs": [field for field in template(problem)._fields if field not in ("xy", "distances")],
            "maximise": problem.maximise,
            "has_depot": problem.has_depot,
            "model": served.get(name),
            "solvers": [solver.name for solver in for_problem(name) if solver.unavailable() is None],
        }
        for name, problem in PROBLEMS.items()
    ]


def random_instance(name: str, nodes: int, seed: int) -> dict[str, Any]:
    """An instance as the paper draws them, as the fields of a request; `nodes` without the depot."""
    problem = get(name)
    x = problem.sample(NumpyRng(seed), 1, nodes)
    fields: dict[str, Any] = {"problem": name, "coords": x.xy[0].tolist()}
    for field in x._fields:
        value = getattr(x, field)
        if field != "xy" and value is not None:
            fields[field] = value[0].tolist()
    if name == "op-const":
        del fields["prize"]
    return fields
