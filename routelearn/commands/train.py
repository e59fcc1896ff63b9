"""`routelearn train`: every field of the configuration is a flag, with its help."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import json
import os
from pathlib import Path
from typing import Any

import typer

from routelearn import problems
from routelearn.errors import InputError
from routelearn.problems import PROBLEMS
from routelearn.training import recipes
from routelearn.training.config import TrainConfig

POSITIONAL = ("problem", "sizes")
RECIPE = "fast"  # unless another is named
# What TensorBoard shows of a row, beside what there is for each size.
NUMBERS = ("cost", "value", "gradient_norm", "mismatch", "rate", "instances_per_second", "skipped", "epoch")


def parse_numbers(text: str, what: str) -> tuple[int, ...]:
    """`20,50,100` -> (20, 50, 100)."""
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise InputError(f"{what} is {text!r}; it must be whole numbers joined by commas, such as 20,50,100") from None


def resolve(problem: str, sizes: str, recipe: str, given: dict[str, Any]) -> TrainConfig:
    """The recipe with what the command line changes. Who asks for epochs gets them, and not the recipe's minutes."""
    problems.get(problem)
    config = recipes.make(recipe, problem, parse_numbers(sizes, "sizes"))
    changes = changes_of(given)
    if "epochs" in changes:
        changes.setdefault("minutes", 0.0)
    return dataclasses.replace(config, **changes)


def changes_of(given: dict[str, Any]) -> dict[str, Any]:
    """The settings that the command line names."""
    changes = {name: value for name, value in given.items() if value is not None}
    if "batch" in changes:
        changes["batch"] = parse_numbers(changes["batch"], "batch")
    return changes


def saved_config(out: Path, problem: str | None, sizes: str | None) -> TrainConfig:
    """The configuration of the run in that folder; problem and sizes, where they are named, must be its own."""
    config = read_config(out / "config.json", "no run to resume there")
    if problem not in (None, config.problem) or (sizes is not None and parse_numbers(sizes, "sizes") != config.sizes):
        was, now = f"{config.problem} {','.join(map(str, config.sizes))}", f"{problem} {sizes or ''}".strip()
        raise InputError(f"{out}: a run on {was}, not on {now}; leave them out to resume it, or name another folder")
    return config


def read_config(path: Path, missing: str) -> TrainConfig:
    """A configuration as a run saves it."""
    if not path.is_file():
        raise InputError(f"{path}: {missing}")
    try:
        values = json.loads(path.read_text())
    except ValueError as error:
        raise InputError(f"{path}: not a run's configuration ({error})") from error
    if not isinstance(values, dict):
        raise InputError(f"{path}: not a run's configuration (it must be an object)")
    return TrainConfig.from_dict(values)


def read_circumstances(out: Path) -> dict[str, Any]:
    """What a run was begun with beside its configuration; nothing where that is not known."""
    with contextlib.suppress(OSError, ValueError):
        found = json.loads((out / "begun-with.json").read_text())
        return found if isinstance(found, dict) else {}
    return {}


def why_it_ended(last: dict[str, Any], config: TrainConfig, begun: int) -> str:
    """In words, for the last line."""
    if last["stopped"]:
        return " (stopped early; --resume goes on)"
    by_time = config.minutes and last["elapsed"] >= 60 * config.minutes
    ended = f"ended by --minutes {config.minutes:g}" if by_time else f"ended by --epochs {config.epochs}"
    return f" (nothing was left to do: {ended}, from its start)" if last["step"] == begun else f" ({ended})"


def shown(value: float | None, digits: int) -> str:
    """A mean over steps; a dash where none was applied."""
    return "-" if value is None else f"{value:.{digits}f}"


class Screen:
    """One live line on a terminal; a line per validation otherwise. TensorBoard too, if it is installed.

    `begun` is the step of the checkpoint that the run goes on from, -1 for a new run.
    """

    def __init__(self, out: Path, *, quiet: bool, silent: bool, begun: int = -1):
        from rich.console import Console
        from rich.live import Live

        self.console = Console()
        self.quiet = quiet or silent
        shown = self.console.is_terminal and not self.quiet
        self.live = Live(console=self.console, refresh_per_second=4) if shown else None
        self.validation = ""
        self.out, self.begun = out, begun
        self.board: Any = None
        self.board_wanted = not silent

    def __enter__(self) -> Screen:
        if self.live:
            self.live.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self.live:
            with contextlib.suppress(OSError):  # the terminal is gone
                self.live.stop()
        if self.board:
            self.board.close()

    def __call__(self, row: dict[str, Any]) -> None:
        if row.get("validation"):
            gaps = row.get("gap") or {}
            self.validation = "  ".join(
                f"n={n} {cost:.4f}" + (f" ({gaps[n]:+.2%})" if n in gaps else "")
                for n, cost in row["validation"].items()
            )
        progress = row.get("progress", 0.0)
        left = f"{row['elapsed'] * (1 / progress - 1) / 60:.1f} min" if progress > 0 else "-"
        by_size = row.get("costs") or {"": row["cost"]}
        costs = " ".join(f"n={n} {shown(cost, 4)}" if n else shown(cost, 4) for n, cost in by_size.items())
        line = (
            f"epoch {row['epoch']}  {row['instances'] / 1e6:.2f}M instances  {row['instances_per_second']:,.0f}/s  "
            f"cost {costs}  validation {self.validation or '-'}  |g| {shown(row['gradient_norm'], 2)}  "
            f"rate {row['rate']:.1e}  skipped {row['skipped']}  left {left}"
        )
        try:
            if self.live:
                self.live.update(line)
                if row.get("note"):
                    self.live.console.print(row["note"], markup=False)
            elif not self.quiet and (row.get("validation") or row.get("note")):
                print(line + (f"  [{row['note']}]" if row.get("note") else ""), flush=True)
        except OSError:  # nobody reads any more: a run of hours does not end by that
            self.quiet = True
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # standard output
        self.to_board(row)

    def to_board(self, row: dict[str, Any]) -> None:
        """The row's numbers to TensorBoard, opened at the first row: refused input leaves no folder behind."""
        if self.board_wanted:
            self.board_wanted = False
            with contextlib.suppress(ImportError):
                from torch.utils.tensorboard import SummaryWriter

                # As in metrics.jsonl, what a killed run wrote after its checkpoint is no longer shown.
                self.board = SummaryWriter(self.out / "tensorboard", purge_step=self.begun + 1)
        if self.board is None:
            return
        numbers = {name: row[name] for name in NUMBERS if row.get(name) is not None}
        for name in ("validation", "gap"):
            numbers |= {f"{name}/{n}": value for n, value in (row.get(name) or {}).items()}
        for name, value in numbers.items():
            self.board.add_scalar(name, value, row["step"])


def run(
    problem: str | None,
    sizes: str | None,
    recipe: str | None,
    config: Path | None,
    out: Path,
    resume: bool,
    warm_start: str | None,
    reference: Path | None,
    device: str,
    deterministic: bool,
    quiet: bool,
    **given: Any,
) -> None:
    """Train a model: `routelearn train tsp 50 --recipe fast --minutes 5 --out runs/tsp50`.

    Several sizes train one model: `routelearn train cvrp 20,50,100`. A flag that is not given keeps the recipe's
    value, or that of --config; --epochs alone also lifts the recipe's limit of minutes. The run's folder receives
    config.json, metrics.jsonl, checkpoint.pt, best.safetensors and last.safetensors; a stopped run goes on with
    --resume. More than one GPU or machine: `torchrun --nproc-per-node K -m routelearn train ...`.
    """
    from routelearn.commands.evaluate import read_costs
    from routelearn.models import FOLDER
    from routelearn.runtime.compiling import best_device
    from routelearn.training import checkpoint, distributed
    from routelearn.training.loop import train as learn
    from routelearn.training.validation import validation_set

    where = best_device(device)
    begun = -1
    if resume:
        for option, value in (("--warm-start", warm_start), ("--recipe", recipe), ("--config", config)):
            if value is not None:
                raise InputError(f"{option} has no meaning with --resume, which goes on as the run was; leave one out")
        settings = dataclasses.replace(saved_config(out, problem, sizes), **changes_of(given))
        begun = checkpoint.load(out / "checkpoint.pt")["step"]
        known_before = read_circumstances(out)
        deterministic = deterministic or bool(known_before.get("deterministic"))
        if reference is None and known_before.get("reference"):
            reference = Path(known_before["reference"])
    else:
        if config is not None:
            if recipe is not None:
                raise InputError("--config and --recipe both say what to begin with; leave one out")
            places = {"problem": problem, "sizes": sizes and parse_numbers(sizes, "sizes")}
            changes = changes_of(given) | {name: value for name, value in places.items() if value is not None}
            settings = dataclasses.replace(read_config(config, "no such file"), **changes)
        else:
            recipe = RECIPE if recipe is None else recipe
            settings = resolve("tsp" if problem is None else problem, "20" if sizes is None else sizes, recipe, given)
        if any((out / name).exists() for name in ("checkpoint.pt", "config.json", "metrics.jsonl")):
            raise InputError(f"{out}: holds a run already; go on with --resume, or name another folder")
    start = None
    if warm_start is not None:
        shipped = FOLDER / f"{warm_start}.safetensors"
        start = shipped if shipped.is_file() else Path(warm_start)
    known = None
    if reference is not None:
        import torch

        known = {}
        for n in settings.sizes:
            x = validation_set(problems.get(settings.problem), settings, n, torch.device("cpu"))
            costs = read_costs(reference, settings.problem, n, instances=x, several=len(settings.sizes) > 1)
            known[n] = torch.from_numpy(costs)
    leader = distributed.rank() == 0
    begun_with = {
        "recipe": recipe,
        "config": config and str(config.resolve()),
        "warm_start": warm_start,
        "reference": reference and str(reference.resolve()),
        "deterministic": deterministic,
    }
    with Screen(out, quiet=quiet, silent=not leader, begun=begun) as screen:
        last = learn(
            settings, out, device=where, resume=resume, warm_start=start, recipe=recipe, reference=known,
            deterministic=deterministic, begun_with=None if resume else begun_with, report=screen,
        )  # fmt: skip
    if not leader:
        return
    words = "  ".join(f"n={n} {cost:.4f}" for n, cost in last["validation"].items()) or "not yet"
    typer.echo(
        f"{out}: {last['instances'] / 1e6:.2f}M instances in {last['elapsed'] / 60:.1f} min, validation {words}"
        + why_it_ended(last, settings, begun)
    )


def usual_value(name: str) -> str:
    """What the recipes set a field to (for TSP20), for the help."""

    def told(value: Any) -> str:
        if isinstance(value, bool):
            return "on" if value else "off"
        if isinstance(value, tuple):
            return ",".join(map(str, value))
        return f"{value:g}" if isinstance(value, float) else str(value)

    fast, paper = (told(getattr(recipes.make(recipe, "tsp", (20,)), name)) for recipe in ("fast", "paper"))
    return f"default: {fast}" if fast == paper else f"fast: {fast}; paper: {paper}"


def with_config_flags(fn: Any) -> Any:
    """Give `fn` the signature that typer reads: its own parameters, and one option per configuration field."""
    own = [
        inspect.Parameter(
            "problem", inspect.Parameter.KEYWORD_ONLY, annotation=str | None,
            default=typer.Argument(None, help=f"Problem id: {', '.join(PROBLEMS)}. [default: tsp]"),
        ),
        inspect.Parameter(
            "sizes", inspect.Parameter.KEYWORD_ONLY, annotation=str | None,
            default=typer.Argument(
                None, help="Numbers of customers (nodes for TSP), such as 50 or 20,50,100. [default: 20]"
            ),
        ),
    ]  # fmt: skip
    options: list[tuple[str, Any, Any]] = [
        (
            "recipe",
            str | None,
            typer.Option(None, help=f"fast, or paper for exactly the paper's settings. [default: {RECIPE}]"),
        ),
        ("config", Path | None, typer.Option(None, help="Begin with the config.json of a run, not with a recipe.")),
        ("out", Path, typer.Option(Path("runs/latest"), help="Folder of the run.")),
        (
            "resume",
            bool,
            typer.Option(
                False, "--resume", help="Go on with the run in --out as if never stopped; minutes and epochs count on."
            ),
        ),
        ("warm_start", str | None, typer.Option(None, help="Start from this model (file or shipped name).")),
        (
            "reference",
            Path | None,
            typer.Option(
                None,
                help="Costs (.npz) of the validation set, to report gaps; "
                "for several sizes, arrays named such as tsp20 and tsp50.",
            ),
        ),
        ("device", str, typer.Option("auto", help="cpu, cuda, or auto.")),
        ("deterministic", bool, typer.Option(False, "--deterministic", help="Bitwise repeatable on a GPU, slower.")),
        ("quiet", bool, typer.Option(False, "--quiet", help="No live line.")),
    ]
    for field in dataclasses.fields(TrainConfig):
        if field.name in POSITIONAL:
            continue
        kind = {"int": int, "float": float, "bool": bool, "str": str}.get(str(field.type), str)
        choices = field.metadata["choices"]
        text = field.metadata["help"] + (f" ({', '.join(choices)})" if choices else "")
        text = f"{text[0].upper()}{text[1:]}. [{usual_value(field.name)}]"
        options.append((field.name, kind | None, typer.Option(None, help=text)))
    parameters = own + [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=kind, default=default)
        for name, kind, default in options
    ]

    def command(**values: Any) -> None:
        fn(**values)

    command.__doc__ = fn.__doc__
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {p.name: p.annotation for p in parameters}
    return command


train = with_config_flags(run)
