"""`routelearn.train`: one function from a problem to a trained model."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from routelearn.errors import InputError, about, is_own
from routelearn.models import file_of
from routelearn.problems import Problem
from routelearn.runtime.compiling import best_device
from routelearn.settings import parameters_of
from routelearn.training import loop, recipes, saving
from routelearn.training.baselines import Baseline
from routelearn.training.config import PARTS, REGISTRIES, TrainConfig, name_of, refuse_unknown
from routelearn.training.log import METRICS
from routelearn.training.losses import Loss
from routelearn.training.result import TrainingResult
from routelearn.training.warm_start import as_it_was

GENTLER = 0.3  # a recipe's rate where a run goes on from a model, so that it keeps what that has learned
CHECKED = 50  # customers at most in the instances on which a problem is checked before it is trained


def train(
    problem: str | Problem | None = None,
    sizes: int | Sequence[int] | None = None,
    *,
    recipe: str | None = None,
    config: str | Path | None = None,
    policy: str | type[nn.Module] | nn.Module | None = None,
    loss: str | type[Loss] | Loss | None = None,
    baseline: str | type[Baseline] | Baseline | None = None,
    minutes: float | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    warm_start: str | Path | None = None,
    reference: Mapping[int, Tensor] | None = None,
    device: str = "auto",
    backend: str = "auto",
    deterministic: bool = False,
    report: Callable[[dict[str, Any]], None] | None = None,
    **changes: Any,
) -> TrainingResult:
    """Train a model and give it back with its history: `routelearn.train("cvrp", 20, minutes=2).plot("curve")`.

    problem: a name or a `Problem` object, registered or not [default: the first registered].
    sizes: number of customers, or several for one model [default: 20].
    recipe: "fast", "paper" or "cpu" [default: fast on a GPU, cpu otherwise]; config: a run's config.json instead.
    policy, loss, baseline: names, classes or objects; a policy object is trained on from its weights, in place.
    minutes: how long to train; the learning rate's schedule ends with it.
    out: the run's folder [default: a new temporary folder, which stays; the result names it].
    resume: go on with the run in `out` as if it had never stopped.
    warm_start: a model to start from, a file or the name of one that ships, built as it was where nothing else is said.
    reference: known costs of the validation instances by size, so that the history has gaps.
    device: "auto", "cpu", "cuda" or "cuda:1"; backend: "auto", or "reference" for no compiled kernels.
    deterministic: bitwise repeatable on a GPU, slower.
    report: called with every new row of the history.
    changes: any other field of `TrainConfig`, such as rate=1e-3, solutions=8 or settings={"name": value}.
    """
    refuse_unknown(changes)
    problem = problem() if isinstance(problem, type) else problem
    several = isinstance(sizes, Sequence) and all(isinstance(n, int) for n in sizes)
    if not (sizes is None or isinstance(sizes, int) or several):
        raise InputError(f"sizes are {sizes!r}; give a whole number, or several: (20, 50)")
    given = {"policy": policy, "loss": loss, "baseline": baseline}
    changes |= {name: value for name, value in ({"minutes": minutes} | given).items() if value is not None}
    where = best_device(device)
    planned = plan(
        problem, (sizes,) if isinstance(sizes, int) else sizes, changes, recipe=recipe, config=config, out=out,
        resume=resume, warm_start=warm_start, device=where, deterministic=deterministic,
    )  # fmt: skip
    known = planned.config.sizes
    if reference is not None and not (isinstance(reference, Mapping) and set(reference) <= set(known)):
        raise InputError(f"reference must hold costs by size, {{{known[0]}: costs}}, of sizes that are trained on")
    return planned.run(where, reference, backend, report or (lambda row: None))


class Plan(NamedTuple):
    """A run that has been thought through, and is ready to begin or to go on."""

    config: TrainConfig
    out: Path
    resume: bool
    recipe: str | None
    warm_start: Path | None
    begun_with: dict[str, Any]  # what a resumed run needs to know beside its configuration

    def run(
        self, device: torch.device, reference: Mapping[int, Tensor] | None, backend: str, report: loop.Report
    ) -> TrainingResult:
        return loop.run(
            self.config, self.out, device=device, resume=self.resume, warm_start=self.warm_start, recipe=self.recipe,
            reference=dict(reference or {}), deterministic=bool(self.begun_with.get("deterministic")), backend=backend,
            begun_with=None if self.resume else self.begun_with, report=report,
        )  # fmt: skip


def plan(
    problem: str | Problem | None,
    sizes: Sequence[int] | None,
    changes: dict[str, Any],
    *,
    recipe: str | None = None,
    config: str | Path | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    warm_start: str | Path | None = None,
    reference: Path | None = None,
    deterministic: bool = False,
    device: torch.device,
) -> Plan:
    """The configuration that a run begins or goes on with, and all else that decides it; contradictions are refused."""
    if resume:
        for option, value in (("warm-start", warm_start), ("recipe", recipe), ("config", config)):
            if value is not None:
                raise InputError(
                    f"--{option} has no meaning with --resume, which goes on as the run was; leave one out"
                )
        if out is None:
            raise InputError("name the folder (out) of the run to resume")
        folder = Path(out)
        settings = saved_config(folder, problem, sizes, changes)
        begun = read_begun_with(folder)
        begun["deterministic"] = deterministic or bool(begun.get("deterministic"))
        begun["reference"] = str(reference) if reference is not None else begun.get("reference")
        return Plan(settings, folder, True, None, None, begun)
    start = None if warm_start is None else file_of(warm_start)
    if config is not None:
        if recipe is not None:
            raise InputError("--config and --recipe both say what to begin with; leave one out")
        places = {name: value for name, value in (("problem", problem), ("sizes", sizes)) if value is not None}
        settings = dataclasses.replace(read_config(Path(config), "no such file"), **places | changes)
    else:
        recipe = recipe or ("fast" if device.type == "cuda" else "cpu")
        chosen = TrainConfig.problem if problem is None else problem
        settings = recipes.make(recipe, chosen, TrainConfig.sizes if sizes is None else tuple(sizes))
        # Who asks for epochs gets them, and not the recipe's minutes.
        given = ({"minutes": 0.0} if "epochs" in changes else {}) | changes
        if start is not None:
            given = as_it_was(start, {"rate": settings.rate * GENTLER} | given)
        settings = dataclasses.replace(settings, **given)
    refuse_unread(changes, settings)
    refuse_broken_problem(settings)
    folder = Path(tempfile.mkdtemp(prefix="routelearn-") if out is None else out)
    if any((folder / name).exists() for name in (saving.CHECKPOINT, saving.CONFIG, METRICS)):
        raise InputError(f"{folder}: holds a run already; go on with --resume, or name another folder")
    begun = {
        "recipe": recipe,
        "config": config and str(Path(config).resolve()),
        "warm_start": warm_start and str(warm_start),
        "reference": reference and str(reference.resolve()),
        "deterministic": deterministic,
    }
    return Plan(settings, folder, False, recipe, start, begun)


def refuse_broken_problem(config: TrainConfig) -> None:
    """Refuse a problem of the user's own that breaks the contract: its run would fail late, or learn nothing."""
    problem = config.chosen("problem")
    if is_own(type(problem)):
        return
    from routelearn.problems.contract.checking import ContractError, check_problem

    try:
        check_problem(problem, n=min(*config.sizes, CHECKED))
    except ContractError as error:
        raise InputError(f"{error} (as routelearn.check_problem says)") from error


def refuse_unread(changes: Mapping[str, Any], config: TrainConfig) -> None:
    """Refuse a setting that only other policies, losses or baselines read than those of the run."""
    chosen = {part: config.class_of(part) for part in ("policy", "loss", "baseline")}
    read = {name for kind in chosen.values() for name in parameters_of(kind)}
    for name in changes:
        readers = [
            f"{part} {other}"
            for part in chosen
            for other, kind in REGISTRIES[part].items()
            if name not in PARTS and name in parameters_of(kind)
        ]
        if readers and name not in read:
            raise InputError(f"{name} is read by {', '.join(readers)} only; leave it out, or choose one of these")


def saved_config(out: Path, problem: Any, sizes: Sequence[int] | None, changes: dict[str, Any]) -> TrainConfig:
    """The configuration of the run in that folder; problem and sizes, where they are named, must be its own."""
    parts = {"problem": problem} | changes
    objects = {part: parts[part] for part in PARTS if hasattr(parts.get(part), "__dict__")}
    config = read_config(out / saving.CONFIG, "no run to resume there", objects)
    name = name_of("problem", problem) if "problem" in objects else problem
    if name not in (None, config.problem) or (sizes is not None and tuple(sizes) != config.sizes):
        was = f"{config.problem} {','.join(map(str, config.sizes))}"
        now = f"{name} {','.join(map(str, sizes or ()))}".strip()
        raise InputError(f"{out}: a run on {was}, not on {now}; leave them out to resume it, or name another folder")
    return dataclasses.replace(config, **changes)


def read_config(path: Path, missing: str, objects: Mapping[str, Any] | None = None) -> TrainConfig:
    """A configuration as a run saves it."""
    if not path.is_file():
        raise InputError(f"{path}: {missing}")
    try:
        values = json.loads(path.read_text())
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not a run's configuration ({error})") from error
    if not isinstance(values, dict):
        raise InputError(f"{path}: not a run's configuration (it must be an object)")
    with about(path):
        return TrainConfig.from_dict(values, objects)


def read_begun_with(out: Path) -> dict[str, Any]:
    """What a run was begun with beside its configuration; nothing where that is not known."""
    with contextlib.suppress(OSError, ValueError, RecursionError):
        found = json.loads((out / saving.BEGUN_WITH).read_text())
        if isinstance(found, dict) and isinstance(found.get("reference"), str | None):
            return found
    return {}
