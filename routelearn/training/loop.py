"""Training: one flat loop. Configuration in, a run directory out that can be resumed as if never stopped."""

from __future__ import annotations

import contextlib
import copy
import json
import math
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from routelearn import policies, problems
from routelearn.decoding.rollout import advance
from routelearn.errors import InputError
from routelearn.models import model_file
from routelearn.policies.base import shape_of
from routelearn.policies.kernels.cpu.shares import keeping_memory
from routelearn.problems.base import NumpyRng, Problem, to_device, to_single
from routelearn.runtime.compiling import Captured, compiled, compiled_encoder, resolve_precision
from routelearn.training import checkpoint, distributed
from routelearn.training.baselines import (
    Baseline,
    CriticBaseline,
    ExponentialBaseline,
    NoBaseline,
    RolloutBaseline,
    SharedBaseline,
)
from routelearn.training.config import TrainConfig
from routelearn.training.step import Meter, Update, truncated_greedy_costs
from routelearn.training.tally import Tally, astray, better
from routelearn.training.validation import gaps, mismatch, settle, settling_set, validate, validation_set
from routelearn.training.warm_start import ancestry, start_from

Report = Callable[[dict[str, Any]], None]  # hears of every look at the run

# A run of so many minutes is validated so often at least, but not while validating would take a tenth of the time.
LOOKS, PATIENCE = 20, 10


def train(
    config: TrainConfig,
    out: Path,
    *,
    device: torch.device,
    resume: bool = False,
    warm_start: Path | None = None,
    recipe: str | None = None,
    reference: dict[int, Tensor] | None = None,
    deterministic: bool = False,
    begun_with: dict[str, Any] | None = None,
    compile: bool | None = None,
    look_seconds: float = 1.0,
    save_seconds: float = 60.0,
    report: Report = lambda row: None,
) -> dict[str, Any]:
    """Train until the epochs or the minutes are over (or a signal comes); returns the last report.

    `reference` holds costs of the validation instances per size, to report a gap; `recipe` is what the configuration
    was made by, for the model's card. `out` receives config.json, metrics.jsonl, checkpoint.pt (the whole state),
    best.safetensors and last.safetensors, and begun-with.json: whatever else the caller wants to know of the run later.
    """
    precision = resolve_precision(config.precision, device)
    memory = keeping_memory() if device.type == "cpu" else contextlib.nullcontext()
    with memory, surroundings(device, precision, deterministic) as stop_signals:
        return learn(
            config, out, device=device, resume=resume, warm_start=warm_start, recipe=recipe, reference=reference or {},
            begun_with=begun_with, compile=device.type == "cuda" if compile is None else compile, precision=precision,
            stop_signals=stop_signals, look_seconds=look_seconds, save_seconds=save_seconds, report=report,
        )  # fmt: skip


def learn(
    config: TrainConfig,
    out: Path,
    *,
    device: torch.device,
    resume: bool,
    warm_start: Path | None,
    recipe: str | None,
    reference: dict[int, Tensor],
    begun_with: dict[str, Any] | None,
    compile: bool,
    precision: str,
    stop_signals: list[int],
    look_seconds: float,
    save_seconds: float,
    report: Report,
) -> dict[str, Any]:
    """The loop of `train`, which has prepared its surroundings."""
    started = time.monotonic()
    leader = distributed.rank() == 0

    # ------------------------------------------------------------------------------------------- set up
    problem = problems.get(config.problem)
    torch.manual_seed(config.seed + 1_000_003 * distributed.rank())
    policy = policies.build(config.policy, shape_of(problem), config.policy_options()).to(device)
    origin = {"recipe": recipe, "warm_start": None, "instances_before": 0, "minutes_before": 0.0}
    tally = Tally()
    if warm_start is not None:
        card, notes = start_from(policy, config, warm_start)
        origin |= ancestry(warm_start, card)
        tally.notes += notes
    steps = {n: problem.max_steps(problem.sample(NumpyRng(config.seed), 64, n)) for n in config.sizes}
    most_steps = {n: 4 * bound for n, bound in steps.items()}
    distributed.broadcast(policy)
    baseline = make_baseline(config, problem, policy, steps, precision, device, compile).to(device)
    distributed.broadcast(baseline)
    optimiser = make_optimiser(policy, baseline, config.rate, device)
    validation = {n: validation_set(problem, config, n, device) for n in config.sizes}
    settling = settling_set(problem, config, device)
    meters, norm_average = {n: Meter(device) for n in config.sizes}, torch.zeros((), device=device)

    step, epoch, elapsed_before, instances = 0, 0, 0.0, 0
    rate_scale, skipped, rollbacks = 1.0, 0, 0
    judged_step, next_judgement = -1, math.inf  # validated last at this step; due again at this time
    best_state: dict[str, Any] = {}  # the best validated so far (at first: where the run began), its costs by size
    longest = dict.fromkeys(config.sizes, 0)  # steps that rollouts needed since their bound was last looked at
    checkpoint_path, best_costs_are_others = out / "checkpoint.pt", False
    if resume:
        state = checkpoint.load(checkpoint_path)
        before = TrainConfig.from_dict(json.loads(state["config"]))
        refuse_other_run(checkpoint_path, before, config)
        policy.load_state_dict(state["policy"])
        baseline.load_state_dict(state["baseline"])
        # Only what Adam remembers: its settings, the rate's tensor among them, are this run's and on this device.
        optimiser.load_state_dict({**optimiser.state_dict(), "state": state["optimiser"]["state"]})
        norm_average.copy_(state["norm_average"])
        step, epoch, elapsed_before, instances = (state[k] for k in ("step", "epoch", "elapsed", "instances"))
        rate_scale, skipped, rollbacks = (state[k] for k in ("rate_scale", "skipped", "rollbacks"))
        best_state, origin = state["best"], state.get("origin", origin)
        validated = ("validation_instances", "validation_seed")
        best_costs_are_others = "costs" not in best_state or any(
            getattr(before, name) != getattr(config, name) for name in validated
        )
        steps.update(state["rollout_steps"])
        longest.update(state["longest"])
        if distributed.rank() < len(state["random"]["cpu"]):
            checkpoint.restore_random_state({k: ranks[distributed.rank()] for k, ranks in state["random"].items()})
        else:  # more ranks than before: the new ones need a stream of their own
            torch.manual_seed(config.seed + 1_000_003 * distributed.rank() + step)
    limit = config.minutes * 60 if config.minutes else math.inf
    if leader and (not resume or (epoch < config.epochs and elapsed_before < limit)):  # what is over stays as it was
        out.mkdir(parents=True, exist_ok=True)
        checkpoint.write_text(out / "config.json", config.to_json() + "\n")
        if begun_with is not None:
            checkpoint.write_text(out / "begun-with.json", json.dumps(begun_with, indent=2) + "\n")
        forget_later(out / "metrics.jsonl", step if resume else -1)

    def elapsed() -> float:
        return elapsed_before + time.monotonic() - started

    def save() -> None:
        random = {kind: distributed.gathered(state) for kind, state in checkpoint.random_state().items()}
        if not leader:
            return
        state = {
            "config": config.to_json(),
            "policy": policy.state_dict(),
            "baseline": baseline.state_dict(),
            "optimiser": optimiser.state_dict(),
            "norm_average": norm_average,
            "step": step,
            "epoch": epoch,
            "elapsed": elapsed(),
            "instances": instances,
            "rate_scale": rate_scale,
            "skipped": skipped,
            "rollbacks": rollbacks,
            "best": best_state,
            "rollout_steps": steps,
            "longest": longest,
            "origin": origin,
            "random": random,
        }
        checkpoint.save(checkpoint_path, state)
        save_model("last", policy.state_dict(), instances, elapsed(), None)
        if best_state["costs"]:
            weights, after, spent, costs = (best_state[k] for k in ("policy", "instances", "elapsed", "costs"))
            save_model("best", weights, after, spent, sum(costs.values()))

    def keep_best(costs: dict[int, float]) -> None:
        nonlocal best_state
        parts = {"policy": policy, "optimiser": optimiser, "baseline": baseline}
        best_state = clone({name: part.state_dict() for name, part in parts.items()})
        best_state |= {"instances": instances, "elapsed": elapsed(), "costs": costs}

    def settled(weights: dict[str, Tensor]) -> Any:
        """A policy with these weights, fit to be judged."""
        made = copy.deepcopy(policy)  # building one would draw from the generator that training draws from
        made.load_state_dict(weights)
        settle(problem, made, settling, precision)
        return made

    def save_model(name: str, weights: dict[str, Tensor], after: int, spent: float, cost: float | None) -> None:
        """With its card; these weights had seen `after` instances in `spent` seconds."""
        card = {
            "sizes": sorted(set(config.sizes)),
            **origin,
            "instances": after,
            "minutes": round(spent / 60, 2),
            "hardware": torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU",
            "seed": config.seed,
            "validation_cost": cost,
            "config": json.loads(config.to_json()),
        }
        model = model_file.Model(settled(weights), config.problem, config.policy, config.policy_options(), card)
        model_file.save(out / f"{name}.safetensors", model)

    def log(row: dict[str, Any]) -> None:
        row = {"step": step, "epoch": epoch, "instances": instances, "elapsed": round(elapsed(), 2), **row}
        if leader:
            with open(out / "metrics.jsonl", "a") as file:
                file.write(json.dumps(row) + "\n")
        report(row)

    def mean_costs(judged: Any) -> dict[int, float]:
        """By size, the same on all ranks; the gap is noted for the log."""
        costs = {n: validate(problem, judged, x, precision) for n, x in validation.items()}
        tally.gap = gaps(costs, reference)
        return dict(zip(costs, distributed.largest(*(float(cost.mean()) for cost in costs.values())), strict=True))

    def judge() -> dict[int, float]:
        """Validate the policy as it is."""
        nonlocal judged_step, next_judgement
        began = time.monotonic()
        settle(problem, policy, settling, precision)
        costs = mean_costs(policy)
        tally.validation = {str(n): cost for n, cost in costs.items()}
        tally.mismatch = max(mismatch(problem, policy, x, config, precision) for x in validation.values())
        judged_step, now = step, time.monotonic()
        next_judgement = now + max(limit / LOOKS, PATIENCE * (now - began))
        return costs

    def look_around() -> tuple[float, bool, bool, bool]:
        """Seconds so far, whether to stop, save, judge: for all ranks alike, lest one wait for another."""
        now = time.monotonic()
        seconds, stop, save_now, judge_now = distributed.largest(
            elapsed(), bool(stop_signals), now - last_save > save_seconds, now > next_judgement
        )
        return seconds, bool(stop), bool(save_now), bool(judge_now)

    pool = torch.cuda.graph_pool_handle() if device.type == "cuda" else None
    updates: dict[tuple[int, int, str], Captured] = {}  # one captured step per size, rollout length and phase

    # --------------------------------------------------------------------------------------------- loop
    # Between two looks at the device the host only launches; on a CPU there is nothing to wait for.
    stride = 20 if device.type == "cuda" else 1
    last_save = last_report = time.monotonic()
    next_judgement = last_report + limit / LOOKS
    row: dict[str, Any] = {"rate": 0.0, "progress": 1.0, "skipped": skipped, **tally.row(1.0)}  # if no step is left
    last_judgement: dict[str, Any] = {"validation": {}, "gap": {}}
    first_step, applied = step, 0
    if not best_state:
        keep_best({})
    elif best_costs_are_others and best_state.get("costs") != {}:
        best_state["costs"] = mean_costs(settled(best_state["policy"]))
    if not resume:
        save()  # a run that is killed in its first minute can be resumed, too
    seconds, stop, _, judge_now = look_around()
    while epoch < config.epochs and seconds < limit and not stop:
        progress = max(step / (config.epochs * config.epoch_steps), seconds / limit)
        now = rate_scale * scheduled_rate(config, step, epoch, progress)
        set_rate(optimiser, now)
        for _ in range(min(stride, config.epoch_steps - step % config.epoch_steps)):
            size = config.sizes[step % len(config.sizes)]
            key = (size, steps[size], baseline.phase(epoch))
            if key not in updates:
                updates = {k: v for k, v in updates.items() if k[1] == steps[k[0]] and k[2] == key[2]}
                update = Update(
                    problem, policy, baseline, optimiser, config, size=size, steps=steps[size], device=device,
                    precision=precision, meter=meters[size], norm_average=norm_average, compile=compile,
                )  # fmt: skip
                updates[key] = Captured(update, device, pool)
            updates[key]()
            step += 1
            instances += config.batch_of(size) * distributed.world()

        for n, meter in meters.items():
            read = meter.read()  # waits for the device
            tally.add(n, read, config.batch_of(n) * distributed.world())
            skipped += int(read["skipped"])
            applied += int(read["steps"] - read["skipped"])
            longest[n] = max(longest[n], int(read["longest"]))
            if read["unfinished"]:
                tally.notes.append(f"a rollout of n = {n} did not finish in {steps[n]} steps: allowing more")
                steps[n] = min(longer(steps[n]), most_steps[n])

        end_of_epoch = step % config.epoch_steps == 0
        if end_of_epoch or judge_now:
            costs = judge()
            if end_of_epoch:
                tally.notes.append(baseline.end_epoch(policy, epoch))
                epoch += 1
            if better(costs, best_state["costs"]):
                keep_best(costs)
            elif astray(costs, best_state["costs"], config.rollback):
                policy.load_state_dict(best_state["policy"])
                restore_optimiser(optimiser, best_state["optimiser"])
                baseline.load_state_dict(best_state["baseline"])
                rate_scale, rollbacks = rate_scale / 2, rollbacks + 1
                norm_average.zero_()
                tally.notes.append(f"validation is over {config.rollback:.0%} off its best: back to it, half the rate")
        if end_of_epoch:
            if applied == 0:
                tally.notes.append("no step of this epoch was applied, all gradients were wild; a lower rate may help")
            applied = 0
            if epoch == 1 or epoch % 5 == 0:
                steps.update({n: shorter(steps[n], longest[n]) for n in steps})  # the baseline holds it, too
                longest = dict.fromkeys(config.sizes, 0)
        if tally.validation or time.monotonic() - last_report > look_seconds:
            row = {"rate": now, "progress": progress, "skipped": skipped}
            row |= tally.row(time.monotonic() - last_report)
            log(row)
            last_judgement = tally.judgement() or last_judgement
            tally, last_report = Tally(), time.monotonic()
        seconds, stop, save_now, judge_now = look_around()
        if save_now:
            save()
            last_save = time.monotonic()
    save()

    # ---------------------------------------------------------------------------------------------- end
    if judged_step != step and not stop:  # a run that was stopped is not judged: it goes on as if it had not been
        costs = judge()
        if better(costs, best_state["costs"]):
            keep_best(costs)
            save()
        last_judgement = tally.judgement()
        row = {key: value for key, value in row.items() if key != "note"} | last_judgement
        if step > first_step:
            log(row)
    row = {"step": step, "instances": instances, "elapsed": elapsed(), "stopped": stop, **row, **last_judgement}
    return row


# ------------------------------------------------------------------------------------------------ pieces


@contextlib.contextmanager
def surroundings(device: torch.device, precision: str, deterministic: bool) -> Iterator[list[int]]:
    """Processes joined, the library set up, signals to stop collected in what this yields; put back afterwards."""
    determined, products = torch.are_deterministic_algorithms_enabled(), torch.get_float32_matmul_precision()
    joined = distributed.start(device)
    if deterministic:  # read at the first matrix product; without it the library refuses to promise the same again
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(deterministic or determined)
    torch.set_float32_matmul_precision("high" if precision == "bfloat16" else "highest")
    received: list[int] = []
    heard = [signal.SIGTERM, signal.SIGINT] if threading.current_thread() is threading.main_thread() else []
    if heard and hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # as by nohup
        heard.append(signal.SIGHUP)
    handlers = {number: signal.signal(number, lambda number, frame: received.append(number)) for number in heard}
    try:
        yield received
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        torch.use_deterministic_algorithms(determined)
        torch.set_float32_matmul_precision(products)
        if joined:
            distributed.stop()


def forget_later(metrics: Path, step: int) -> None:
    """Take from the log what came after that step: a killed run had gone on beyond its checkpoint."""
    if not metrics.is_file():
        return
    lines = metrics.read_text().splitlines(keepends=True)
    kept = []
    for line in lines:
        with contextlib.suppress(ValueError, KeyError):  # a killed run may end in half a line
            if json.loads(line)["step"] <= step:
                kept.append(line)
    if len(kept) < len(lines):
        checkpoint.write_text(metrics, "".join(kept))


def refuse_other_run(path: Path, theirs: TrainConfig, ours: TrainConfig) -> None:
    """A run goes on only as what it was; how long, how fast and where it is validated may change."""
    model = ("problem", "sizes", "policy", "width", "heads", "layers", "hidden", "norm", "clip", "neighbours")
    for name in (*model, "baseline", "solutions", "multistart", "loss", "epoch_steps", "seed"):
        if getattr(theirs, name) != getattr(ours, name):
            raise InputError(f"{path}: was trained with {name} {getattr(theirs, name)}, not {getattr(ours, name)}")


def make_baseline(
    config: TrainConfig,
    problem: Problem,
    policy: Any,
    steps: dict[int, int],
    precision: str,
    device: torch.device,
    compile: bool,
) -> Baseline:
    """The baseline that the configuration names."""
    if config.baseline == "none":
        return NoBaseline()
    if config.baseline == "exponential":
        return ExponentialBaseline(config.beta)
    if config.baseline == "shared":
        return SharedBaseline()
    if config.baseline == "critic":
        recurrent = config.policy == "pointer"
        return CriticBaseline(problem.feature_dims, config.width, config.heads, config.hidden, config.norm, recurrent)
    if config.baseline != "rollout":
        raise InputError(f"no baseline is made for {config.baseline!r}")

    depots = 1 if problem.has_depot else 0
    step = compiled(advance, device) if compile and policy.compiles else advance

    encoders: dict[int, Any] = {}

    def rollout_costs(frozen: Any, x: Any) -> Tensor:
        if id(frozen) not in encoders:
            encoders[id(frozen)] = compiled_encoder(frozen, device) if compile and frozen.compiles else frozen.encode
        bound = steps[x.xy.shape[1] - depots]
        return truncated_greedy_costs(problem, frozen, x, bound, encode=encoders[id(frozen)], step=step)

    def evaluate_costs(candidate: Any, x: Any) -> Tensor:
        return validate(problem, candidate, x, precision)[:, None]

    def draw(which: int) -> list[Any]:
        sizes = dict.fromkeys(config.sizes)  # each once, however often its turn comes
        share = -(-config.evaluation_instances // len(sizes))
        seed = (config.seed + 7_919 * (which + 1)) % 2**32
        return [to_device(to_single(problem.sample(NumpyRng(seed), share, n)), device) for n in sizes]

    return RolloutBaseline(
        policy,
        rollout_costs,
        evaluate_costs,
        draw,
        beta=config.beta,
        warmup_epochs=config.warmup_epochs,
        significance=config.significance,
    )


def make_optimiser(policy: Any, baseline: Baseline, rate: float, device: torch.device) -> torch.optim.Adam:
    """For the policy, and apart from it for a baseline that learns. On a GPU the rate is a tensor: a graph reads it."""
    learned = [p for p in baseline.parameters() if p.requires_grad]
    groups = [{"params": list(policy.parameters())}] + ([{"params": learned}] if learned else [])
    on_gpu = device.type == "cuda"
    return torch.optim.Adam(
        groups, lr=torch.tensor(rate, device=device) if on_gpu else rate, fused=True, capturable=on_gpu
    )


def scheduled_rate(config: TrainConfig, step: int, epoch: int, progress: float) -> float:
    """The learning rate now; `progress` runs from 0 to 1 over the whole run."""
    rate = config.rate
    falling = min(1.0, max(0.0, (progress - config.hold) / max(1e-9, 1 - config.hold)))
    if config.schedule == "decay":
        rate *= config.decay**epoch
    elif config.schedule == "linear":
        rate *= 1 - falling
    elif config.schedule == "cosine":
        rate *= 0.5 * (1 + math.cos(math.pi * falling))
    return rate * min(1.0, (step + 1) / config.ramp_steps) if config.ramp_steps else rate


def set_rate(optimiser: torch.optim.Optimizer, rate: float) -> None:
    """In place where the rate is a tensor: a captured graph reads that very tensor."""
    for group in optimiser.param_groups:
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(rate)
        else:
            group["lr"] = rate


def restore_optimiser(optimiser: torch.optim.Optimizer, saved: dict[str, Any]) -> None:
    """Copy a state into the optimiser's own tensors; loading it would put others in their place."""
    for index, own in optimiser.state_dict()["state"].items():
        for name, value in own.items():
            value.copy_(saved["state"].get(index, {}).get(name, torch.zeros_like(value)))


def clone(state: Any) -> Any:
    """A deep copy of nested state with its tensors detached."""
    if isinstance(state, Tensor):
        return state.detach().clone()
    if isinstance(state, dict):
        return {key: clone(value) for key, value in state.items()}
    return [clone(value) for value in state] if isinstance(state, list | tuple) else state


def longer(steps: int) -> int:
    """The next longer rollout to allow."""
    return steps + max(4, steps // 5)


def shorter(steps: int, longest: int) -> int:
    """A shorter rollout, if what was needed leaves a tenth unused even with a margin."""
    wanted = (int(longest * 1.06) + 2 + 3) // 4 * 4
    return wanted if longest > 0 and wanted <= 0.9 * steps else steps
