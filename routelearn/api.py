"""`routelearn.evaluate` and `routelearn.decode`: a model, a policy or a solver on a set of instances, from Python."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

from routelearn import plugins
from routelearn.data import Stops, generate, read_instances
from routelearn.data.convert import Converted, Scale
from routelearn.data.generate import of_set
from routelearn.decoding.decode import refuse_hindsight
from routelearn.errors import InputError
from routelearn.evaluation.evaluate import Evaluation, parse
from routelearn.evaluation.evaluate import evaluate as evaluate_policy
from routelearn.evaluation.referee import double
from routelearn.models import FOLDER, load_model, wrong_type
from routelearn.models.model_file import Model
from routelearn.policies.kernels import select
from routelearn.problems import Problem, get
from routelearn.problems.attributes import first_customer
from routelearn.problems.base import Instance, take
from routelearn.runtime.compiling import best_device
from routelearn.solving.solution import Solution, make_solution
from routelearn.training.config import PRECISIONS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from routelearn.solvers import Solver

Progress = Callable[[int], None]  # hears of instances done


@dataclass(frozen=True, repr=False)
class Solutions:
    """The solution of each of B instances, and what it costs."""

    problem: Problem
    instances: Any  # B of them, as they were given
    tours: Tensor  # [B, 1, T]
    costs: Tensor  # [B] float64, in the instances' own units; prizes count as negative
    decode: str
    infeasible: int  # solutions that break a rule; their costs count for nothing
    seconds: float
    device: str

    def __len__(self) -> int:
        return len(self.costs)

    def __repr__(self) -> str:
        broken = f", {self.infeasible} INFEASIBLE" if self.infeasible else ""
        return (
            f"Solutions({self.decode}, {len(self)} instances of {self.problem.name}: "
            f"mean cost {float(self.costs.mean()):.5f}{broken}, {self.seconds:.2f} s on {self.device})"
        )

    def solution(self, index: int) -> Solution:
        """One of them as `routelearn.solve` gives it: checked, with routes, lengths, files and pictures.

        Nodes are called by their numbers. Raises Infeasible if the solution breaks a rule.
        """
        count = len(self)
        if not -count <= index < count:
            raise InputError(f"solution {index}; there are {count}, numbered from 0")
        row = range(count)[index]
        x = double(take(self.instances, slice(row, row + 1)))
        ids = tuple(range(x.xy.shape[1]))
        stops = Stops(f"instance {row}", ids, tuple(f"node {i}" for i in ids), xy=x.xy[0].numpy())
        converted = Converted(stops, self.problem, x, x, Scale(ids, 1.0, 1.0, 1, ""))
        return make_solution(converted, self.tours[row, 0], seconds=self.seconds / count)

    def plot(self, index: int = 0, path: str | Path | None = None) -> Figure | None:
        """A matplotlib figure of one solution's routes; with a path, a file instead: .png, .svg, .pdf or .html."""
        return self.solution(index).plot(path)


def decode(
    model: Model | nn.Module | str | Path | None,
    data: Any,
    strategy: str = "greedy",
    *,
    problem: str | Problem | None = None,
    device: str = "auto",
    backend: str = "auto",
    precision: str = "float32",
    limit: int | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Solutions:
    """The policy's solution of every instance; arguments as for `evaluate`, where `strategy` is called `decode`."""
    chosen, x, found = _decoded(model, data, strategy, problem, device, backend, precision, limit, seed, progress)
    return Solutions(chosen, x, found.tours, found.costs, strategy, found.infeasible, found.seconds, found.device)


def _decoded(
    model: Any, data: Any, strategy: str, problem: str | Problem | None, device: str, backend: str, precision: str,
    limit: int | None, seed: int, progress: Progress | None,
) -> tuple[Problem, Any, Evaluation]:  # fmt: skip
    """(problem, instances, what came of them)."""
    where = best_device(device)
    for what, value, choices in (("precision", precision, PRECISIONS), ("backend", backend, select.BACKENDS)):
        if value not in choices:
            raise InputError(f"unknown {what} {value!r}; the choices are {', '.join(choices)}")
    parsed, improved = parse(strategy)
    if problem is None and isinstance(data, Instance):  # instances alone: then the model says which problem it is
        model = load_model(path=model, device=where) if isinstance(model, str | Path) else model
        problem = model.problem if isinstance(model, Model) else None
    chosen, x = instances(data, problem, limit)
    if isinstance(model, Model) and model.problem != chosen.name:
        raise InputError(f"a model for {model.problem}, not for {chosen.name}")
    refuse_hindsight(chosen, parsed)
    if improved and chosen.reveals_on_visit:
        raise InputError(
            f"{strategy!r} changes a tour after its prizes were revealed, which is hindsight; leave +improve out"
        )
    if model is None or isinstance(model, str | Path):
        customers = x.xy.shape[1] - first_customer(chosen, x)
        model = load_model(chosen.name, customers, path=model, device=where)
    policy = model.policy if isinstance(model, Model) else model
    if not isinstance(policy, nn.Module):
        raise wrong_type(policy)
    with select.backend(backend):
        found = evaluate_policy(
            chosen, policy, x, strategy, device=where, seed=seed, precision=precision, progress=progress
        )
    return chosen, x, found


def evaluate(
    model: Model | Solver | nn.Module | str | Path | None,
    data: Any,
    decode: str = "greedy",
    *,
    problem: str | Problem | None = None,
    device: str = "auto",
    backend: str = "auto",
    precision: str = "float32",
    limit: int | None = None,
    seed: int = 0,
    seconds: float | None = None,
    on: str | None = None,
    store: str | Path | None = None,
    progress: Progress | None = None,
) -> Evaluation:
    """Solve every instance, check every solution, and say what they cost.

    `model`: a Model, a model file, the name of a shipped model or of a solver, a solver, or a policy object (then
    `problem` says what it is for); None takes the shipped model that fits. `data`: instances, a file of them (.npz, or
    the authors' .pkl), or `("tsp", 50)`: the paper's test set of that problem and size. `decode`: greedy, sample:1280,
    sample:1280@0.8, multistart:50, augment:8, beam:10, guided:4, active:50, improve; joined by +. `problem` is an
    object or a name. `device`: auto, cpu, cuda or cuda:1. `backend`: auto, or reference to run without compiled
    kernels. `precision`: float32, bfloat16 or auto. `limit`: only the first instances. `seed`: of sampling, or of the
    solver.

    For a solver alone: `seconds` an instance (1 by default), `on` (local, or ray for a cluster), `store` (a file
    that keeps results as they come). `progress` hears how many instances were solved since its last call.
    """
    solver = _solver_of(model)
    if solver is None:
        for name, value in (("seconds", seconds), ("on", on), ("store", store)):
            if value is not None:
                raise InputError(f"{name} has no meaning for a model; it is for a solver")
        return _decoded(model, data, decode, problem, device, backend, precision, limit, seed, progress)[2]
    usual = (("decode", decode, "greedy"), ("device", device, "auto"), ("backend", backend, "auto"))
    for name, value, default in (*usual, ("precision", precision, "float32")):
        if value != default:
            raise InputError(f"{name} is {value!r}, but {solver.name} is a solver; leave one of them out")
    from routelearn.solvers.farm.running import solve_instances

    chosen, x = instances(data, problem, limit)
    return solve_instances(
        chosen, x, solver, seconds=1.0 if seconds is None else seconds, seed=seed,
        store=None if store is None else Path(store), on="local" if on is None else on, progress=progress,
    )  # fmt: skip


def instances(data: Any, problem: str | Problem | None = None, limit: int | None = None) -> tuple[Problem, Any]:
    """(problem, instances) of what `evaluate` takes as data."""
    chosen = None if problem is None else _problem(problem)
    if not isinstance(limit, int | None):
        raise InputError(f"limit is {limit!r}; it must be a whole number")
    if isinstance(data, str | Path):
        name, x = read_instances(data, chosen, limit)
        return chosen or get(name), x
    if limit is not None and limit < 1:
        raise InputError(f"a limit of {limit} instances; it must be at least 1")
    if isinstance(data, tuple) and len(data) == 2 and isinstance(data[1], int):
        named = of_set(data[0]) if isinstance(data[0], str) else _problem(data[0])
        if chosen is not None and chosen.name != named.name:
            raise InputError(f"data of {named.name} for the problem {chosen.name}; name one of them")
        chosen, x = named, generate(named, data[1])
    elif not isinstance(data, Instance):
        raise InputError(
            f"data is of type {type(data).__name__}; give instances, a file of them, or a problem and a size: "
            '("tsp", 50)'
        )
    elif chosen is None:
        raise InputError('instances do not say which problem they are of; name it: problem="tsp"')
    else:
        chosen.validate(data)
        x = data
    return chosen, x if limit is None else take(x, slice(limit))


def _problem(given: Any) -> Problem:
    """A problem by its name, its class or itself."""
    return get(given) if isinstance(given, str) else given() if isinstance(given, type) else given


def _solver_of(model: Any) -> Solver | None:
    """The solver that is meant; None for a model. A file and a shipped model come before a solver of the name."""
    if isinstance(model, str) and not Path(model).is_file() and not (FOLDER / f"{model}.safetensors").is_file():
        from routelearn.solvers import SOLVERS

        if model not in SOLVERS:
            plugins.available()  # an installed one may have it
        return SOLVERS.get(model)
    is_solver = hasattr(model, "solve") and hasattr(model, "problems") and not isinstance(model, nn.Module)
    return model if is_solver else None
