"""`routelearn train`: every field of the configuration is a flag, with its help."""

from __future__ import annotations

import contextlib
import inspect
import os
from collections.abc import Collection
from pathlib import Path
from typing import Any

import typer

from routelearn.errors import InputError
from routelearn.problems import PROBLEMS
from routelearn.registry import Registry
from routelearn.training import recipes
from routelearn.training.config import TrainConfig
from routelearn.training.result import TrainingResult
from routelearn.training.train import Plan, plan

OWN = ("problem", "sizes", "settings")  # fields that are no plain options
# What TensorBoard shows of a row, beside what there is for each size.
NUMBERS = ("cost", "value", "gradient_norm", "mismatch", "rate", "instances_per_second", "skipped", "epoch")


def parse_numbers(text: str, what: str) -> tuple[int, ...]:
    """`20,50,100` -> (20, 50, 100)."""
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise InputError(f"{what} is {text!r}; it must be whole numbers joined by commas, such as 20,50,100") from None


def parse_setting(text: str) -> tuple[str, Any]:
    """`temperature=0.5` -> ("temperature", 0.5): a number, true or false, or a word."""
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise InputError(f"--setting is {text!r}; write it as name=value")
    if value in ("true", "false"):
        return name, value == "true"
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return name, kind(value)
    return name, value


def changes_of(given: dict[str, Any], settings: list[str]) -> dict[str, Any]:
    """The fields that the command line names."""
    changes = {name: value for name, value in given.items() if value is not None}
    if "batch" in changes:
        changes["batch"] = parse_numbers(changes["batch"], "batch")
    return changes | ({"settings": dict(map(parse_setting, settings))} if settings else {})


def reference_costs(planned: Plan) -> dict[int, Any] | None:
    """Costs of the validation instances by size, from the file that the run was begun with."""
    import torch

    from routelearn.commands.evaluate import read_costs
    from routelearn.training.validation import validation_set

    path, config = planned.begun_with.get("reference"), planned.config
    if not path:
        return None
    costs = {}
    for n in config.sizes:
        x = validation_set(config.chosen("problem"), config, n, torch.device("cpu"))
        found = read_costs(Path(path), config.problem, n, instances=x, several=len(config.sizes) > 1)
        costs[n] = torch.from_numpy(found)
    return costs


def why_it_ended(result: TrainingResult, config: TrainConfig, begun: int) -> str:
    """In words, for the last line."""
    if result.stopped:
        return " (stopped early; --resume goes on)"
    by_time = config.minutes and result.minutes >= config.minutes
    ended = f"ended by --minutes {config.minutes:g}" if by_time else f"ended by --epochs {config.epochs}"
    return f" (nothing was left to do: {ended}, from its start)" if result.step == begun else f" ({ended})"


def counted(instances: float) -> str:
    """41,984 in full, and from a million on 2.31M."""
    return f"{instances:,.0f}" if instances < 1e6 else f"{instances / 1e6:.2f}M"


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
            f"epoch {row['epoch']}  {counted(row['instances'])} instances  {row['instances_per_second']:,.0f}/s  "
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
    backend: str,
    deterministic: bool,
    quiet: bool,
    setting: list[str],
    **given: Any,
) -> None:
    """Train a model: `routelearn train tsp 50 --recipe fast --minutes 5 --out runs/tsp50`.

    Several sizes train one model: `routelearn train cvrp 20,50,100`. A flag that is not given keeps the recipe's
    value, or that of --config; --epochs alone also lifts the recipe's limit of minutes. The run's folder receives
    config.json, metrics.jsonl, checkpoint.pt, best.safetensors and last.safetensors; a stopped run goes on with
    --resume. More than one GPU or machine: `torchrun --nproc-per-node K -m routelearn train ...`.
    """
    from routelearn.runtime.compiling import best_device
    from routelearn.training import checkpoint, distributed, saving

    where = best_device(device)
    planned = plan(
        problem, None if sizes is None else parse_numbers(sizes, "sizes"), changes_of(given, setting), recipe=recipe,
        config=config, out=out, resume=resume, warm_start=warm_start, reference=reference, device=where,
        deterministic=deterministic,
    )  # fmt: skip
    begun = checkpoint.load(out / saving.CHECKPOINT)["step"] if resume else -1
    known, leader = reference_costs(planned), distributed.rank() == 0
    with Screen(out, quiet=quiet, silent=not leader, begun=begun) as screen:
        result = planned.run(where, known, backend, screen)
    if leader:
        words = "  ".join(f"n={n} {cost:.4f}" for n, cost in result.validation.items()) or "not yet"
        typer.echo(
            f"{out}: {counted(result.instances)} instances in {result.minutes:.1f} min, validation {words}"
            + why_it_ended(result, planned.config, begun)
        )


def usual_value(name: str) -> str:
    """What the recipes set a field to (for TSP20), for the help."""

    def told(value: Any) -> str:
        if isinstance(value, bool):
            return "on" if value else "off"
        if isinstance(value, tuple):
            return ",".join(map(str, value))
        return f"{value:g}" if isinstance(value, float) else str(value)

    values: dict[str, list[str]] = {}
    for recipe in recipes.RECIPES:
        values.setdefault(told(getattr(recipes.make(recipe, "tsp", (20,)), name)), []).append(recipe)
    if len(values) == 1:
        return f"default: {next(iter(values))}"
    return "; ".join(f"{', '.join(of)}: {value}" for value, of in values.items())


OPTIONS: tuple[tuple[str, Any, Any, str], ...] = (
    ("recipe", str | None, None, "fast, cpu for a laptop, or paper for exactly the paper's settings. "
     "[default: fast on a GPU, cpu otherwise]"),
    ("config", Path | None, None, "Begin with the config.json of a run, not with a recipe."),
    ("out", Path, Path("runs/latest"), "Folder of the run."),
    ("resume", bool, False, "Go on with the run in --out as if never stopped; minutes and epochs count on."),
    ("warm_start", str | None, None, "Start from this model (file or shipped name), built as "
     "it was and with a gentler rate where no flag says otherwise."),
    ("reference", Path | None, None, "Costs (.npz) of the validation set, to report gaps; for several sizes, arrays "
     "named such as tsp20 and tsp50."),
    ("device", str, "auto", "cpu, cuda, or auto."),
    ("backend", str, "auto", "auto, or reference to train without compiled kernels, slower."),
    ("deterministic", bool, False, "Bitwise repeatable on a GPU, slower."),
    ("quiet", bool, False, "No live line."),
    ("setting", list[str], [], "name=value for a plugin's policy, loss or baseline; may be given several times."),
)  # fmt: skip


def summed_up(choices: Collection[str]) -> str:
    """Lines for the choices of a flag that say what they are (`summary`), which typer leaves as they are."""
    known = choices if isinstance(choices, Registry) else {}
    words = {name: getattr(thing, "summary", "") for name, thing in known.items()}
    lines = (f"{name}: {summary}" if summary else name for name, summary in words.items())
    return "\n\n\b\n" + "\n".join(lines) if any(words.values()) else ""


def with_config_flags(fn: Any) -> Any:
    """Give `fn` the signature that typer reads: its own parameters, and one option per configuration field."""
    places = {
        "problem": f"Problem id: {', '.join(PROBLEMS)}. [default: tsp]",
        "sizes": "Numbers of customers (nodes for TSP), such as 50 or 20,50,100. [default: 20]",
    }
    flags: list[tuple[str, Any, Any]] = []
    for name, text in places.items():
        flags.append((name, str | None, typer.Argument(None, help=text)))
    for name, kind, default, text in OPTIONS:
        names = (f"--{name}",) if kind is bool else ()  # and no --no-resume
        flags.append((name, kind, typer.Option(default, *names, help=text)))
    for field in TrainConfig.fields():
        if field.name not in OWN:
            kind = {"int": int, "float": float, "bool": bool, "str": str}.get(str(field.type), str)
            choices = field.metadata["choices"]
            summaries = summed_up(choices)
            text = field.metadata["help"] + (f" ({', '.join(choices)})" if choices and not summaries else "")
            text = f"{text[0].upper()}{text[1:]}. [{usual_value(field.name)}]{summaries}"
            flags.append((field.name, kind | None, typer.Option(None, help=text)))
    parameters = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=kind, default=default)
        for name, kind, default in flags
    ]

    def command(**values: Any) -> None:
        fn(**values)

    command.__doc__ = fn.__doc__
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {p.name: p.annotation for p in parameters}
    return command


def __getattr__(name: str) -> Any:
    """`train` is made when it is asked for, so that its help names what plugins have registered by then."""
    if name == "train":
        return with_config_flags(run)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
