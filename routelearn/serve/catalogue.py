"""What the service can do, for people and programs: problems, their fields and solvers, models, random instances."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from routelearn.data.convert import check_fillable, filled_by
from routelearn.data.fields import unfilled
from routelearn.errors import InputError
from routelearn.models import load_model, shipped, which
from routelearn.problems import PROBLEMS, Attribute, NumpyRng, Problem, get
from routelearn.serve.answering import SHIPPED, prepare
from routelearn.serve.limits import Limits
from routelearn.serve.schemas import AttributeInfo

DRAWS = 100  # of a random instance, until one can be solved


def served() -> dict[str, Problem]:
    """The problems whose instances a request can hold."""
    return {name: problem for name, problem in PROBLEMS.items() if not unfilled(problem)}


def own_models(paths: Sequence[str]) -> dict[str, str]:
    """Problem -> model file or name of a shipped model, to use instead of the default one."""
    own: dict[str, str] = {}
    for path in paths:
        problem = load_model(path=path).problem
        if problem not in served():
            raise InputError(f"{path}: a model for {problem}, which cannot be served")
        if problem in own:
            raise InputError(f"{path}: a second model for {problem}, after {own[problem]}; give one per problem")
        own[problem] = path
    return own


def models(own: Mapping[str, str] = SHIPPED) -> list[dict[str, Any]]:
    """The shipped models, then the user's."""
    listed = [
        {"name": name, **{key: entry[key] for key in ("problem", "policy", "megabytes", "card")}}
        for name, entry in shipped().items()
    ]
    for path in own.values():
        if all(model["name"] != path for model in listed):
            model, size = load_model(path=path), Path(path).stat().st_size
            listed.append(
                {"name": path, "problem": model.problem, "policy": model.kind, "megabytes": size / 1e6}
                | {"card": model.card}
            )
    return listed


def described(one: Attribute) -> dict[str, Any]:
    """What the page must know of an attribute, for its form and its table."""
    known = one._asdict() | {"shape": list(one.shape), "title": one.called}
    return {name: known[name] for name in AttributeInfo.model_fields}


def problems(own: Mapping[str, str] = SHIPPED) -> list[dict[str, Any]]:
    from routelearn.solvers import for_problem

    sizes: dict[str, set[int]] = {}
    for entry in shipped().values():
        sizes.setdefault(entry["problem"], set()).update(map(int, entry["card"].get("validated", {})))
    return [
        {
            "id": name,
            "title": str(getattr(problem, "title", problem.name)),
            "needs": list(filled_by(problem)),
            "attributes": [described(one) for one in filled_by(problem).values()],
            "maximise": problem.maximise,
            "has_depot": problem.has_depot,
            "model": own.get(name) or (which(name) if name in sizes else None),
            "models": {} if name in own else {str(n): which(name, n) for n in sorted(sizes.get(name, ()))},
            "solvers": [solver.name for solver in for_problem(name) if solver.unavailable() is None],
        }
        for name, problem in served().items()
    ]


def random_instance(name: str, nodes: int, seed: int) -> dict[str, Any]:
    """An instance as the problem draws them, as the fields of a request; `nodes` without the depot.

    A small draw may be one that `solve` refuses (prizes that do not add up to the minimum): then the next one is taken.
    """
    problem = get(name)
    check_fillable(problem, "the request")
    rng = NumpyRng(seed)
    for _ in range(DRAWS):
        fields = {"problem": name, **_drawn(problem, rng, nodes)}
        try:
            prepare(fields, Limits(nodes=nodes + 1))
        except InputError as error:
            refused = error
        else:
            return fields
    raise refused


def _drawn(problem: Problem, rng: NumpyRng, nodes: int) -> dict[str, Any]:
    x = problem.sample(rng, 1, nodes)
    fields: dict[str, Any] = {"coords": x.xy[0].tolist()}
    for one in filled_by(problem).values():
        value = getattr(x, one.name)
        customers = value if value is None or one.of_file or not problem.has_depot else value[:, 1:]
        if value is not None and (one.default is None or bool((customers != one.default).any())):  # it says nothing new
            fields[one.name] = value[0].tolist()
    return fields
