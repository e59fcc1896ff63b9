"""Training: one flat loop. Configuration in, a run's folder out that can be resumed as if never stopped."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from routelearn.errors import InputError
from routelearn.policies.kernels import select
from routelearn.runtime.compiling import Captured, resolve_precision
from routelearn.runtime.locking import held
from routelearn.runtime.memory import told_if_too_large
from routelearn.training import checkpoint, distributed, log, saving
from routelearn.training.config import TrainConfig
from routelearn.training.fitting import SMALLER, refuse_too_large
from routelearn.training.log import Tally
from routelearn.training.result import TrainingResult
from routelearn.training.schedule import longer, scheduled_rate, set_rate, shorter
from routelearn.training.state import RunState
from routelearn.training.step import Meter, Step
from routelearn.training.surroundings import surroundings
from routelearn.training.validation import Judge, astray, better

BROKEN = "loss {!r} gave {} in step {} (n = {}) from finite costs and log-probabilities; does it divide by 0?"
BACK = "validation is over {:.0%} worse than the best: back to it, half the rate"
SKIPPED = "every step of this epoch was skipped because its gradient exploded; try a lower learning rate"
FIRST_SAVE = 5.0  # seconds until the first save of what was trained; then twice as long, up to the usual
Report = Callable[[dict[str, Any]], None]  # hears of every look at the run


def run(
    config: TrainConfig,
    out: Path,
    *,
    device: torch.device,
    resume: bool = False,
    warm_start: Path | None = None,
    recipe: str | None = None,
    reference: dict[int, Tensor] | None = None,
    deterministic: bool = False,
    backend: str = "auto",
    begun_with: dict[str, Any] | None = None,
    compile: bool | None = None,
    look_seconds: float = 1.0,
    save_seconds: float = 60.0,
    report: Report = lambda row: None,
) -> TrainingResult:
    """Train until the epochs or the minutes are over, or a signal comes.

    `reference` holds costs of the validation instances per size, to report a gap; `recipe` is what the configuration
    was made by, for the model's card. `out` receives config.json, metrics.jsonl, checkpoint.pt (the whole state),
    best.safetensors and last.safetensors, and begun-with.json: whatever else the caller wants to know of the run later.
    """
    precision = resolve_precision(config.precision, device)
    refuse_too_large(config, device)
    with (
        told_if_too_large(SMALLER),
        select.backend(backend),
        surroundings(device, precision, deterministic) as stop_signals,
        held(out) if distributed.rank() == 0 else nullcontext(),
    ):
        state = RunState(
            config, device=device, precision=precision, compile=device.type == "cuda" if compile is None else compile,
            recipe=recipe, warm_start=warm_start,
        )  # fmt: skip
        if resume:
            state.load_state_dict(checkpoint.load(out / saving.CHECKPOINT))
        if distributed.rank() == 0 and not (resume and state.over):  # what is over stays as it was
            saving.begin(out, state, begun_with)
            log.forget_later(out / log.METRICS, state.step if resume else -1)
        judge = Judge(state, reference or {})
        if not state.best:
            state.keep_best({})
        elif "costs" not in state.best:  # of other validation instances, or of an earlier version
            state.best["costs"], *_ = judge.costs(judge.settled(state.policy, state.best["policy"]))
        if not resume:
            saving.save(out, state, judge)  # a run that is killed in its first minute can be resumed, too
        try:
            with told_if_too_large(SMALLER):
                last, stopped = loop(state, judge, out, stop_signals, look_seconds, save_seconds, report)
        except InputError:
            if state.step == 0 and distributed.rank() == 0:
                saving.withdraw(out)
            raise
        return TrainingResult(
            folder=out,
            model=saving.model_of(state, judge, best=True),
            history=log.read(out / log.METRICS),
            validation={int(n): cost for n, cost in last.items()},
            instances=state.instances,
            minutes=state.elapsed / 60,
            step=state.step,
            skipped=state.skipped,
            stopped=stopped,
        )


def loop(
    state: RunState,
    judge: Judge,
    out: Path,
    stop_signals: list[int],
    look_seconds: float,
    save_seconds: float,
    report: Report,
) -> tuple[dict[str, float], bool]:
    """Steps, looks at them, validations and checkpoints; gives the last validation, and whether a signal came."""
    config, device, world = state.config, state.device, distributed.world()
    meters = {n: Meter(device) for n in config.sizes}
    pool = torch.cuda.graph_pool_handle() if device.type == "cuda" else None
    captured: dict[Any, Captured] = {}  # a step per size, rollout length, phase of the baseline and turn
    # Between two looks at the device the host only launches; on a CPU there is nothing to wait for.
    stride = 20 if device.type == "cuda" else 1
    tally, row, last_validation = Tally(state.notes), dict[str, Any](), dict[str, float]()
    last_save = last_report = state.elapsed
    pause = min(FIRST_SAVE, save_seconds)
    first_step, applied = state.step, 0
    seconds, stop, _, judge_now = look_around(state, stop_signals, False, judge.due)

    while state.epoch < config.epochs and seconds < state.limit and not stop:
        # -------------------------------------------------------------------------------- a few steps
        progress = state.progress(seconds)
        rate = state.rate_scale * scheduled_rate(config, state.step, state.epoch, progress)
        set_rate(state.optimiser, rate)
        for _ in range(min(stride, config.epoch_steps - state.step % config.epoch_steps)):
            size = config.sizes[state.step % len(config.sizes)]
            turn = state.step // len(config.sizes) % len(state.turns)
            key = (size, state.rollout_steps[size], state.baseline.phase(state.epoch), turn)
            if key not in captured:
                current = {k: v for k, v in captured.items() if k[1] == state.rollout_steps[k[0]] and k[2] == key[2]}
                captured = {**current, key: Captured(Step(state, size, meters[size], turn=turn), device, pool)}
            captured[key]()
            state.step += 1
            state.instances += config.batch_of(size) * world

        # -------------------------------------------------------------------------------- look at them
        for n, meter in meters.items():
            read = meter.read()  # waits for the device
            if not math.isfinite(read["loss"]):
                raise InputError(BROKEN.format(config.loss, read["loss"], state.step, n))
            tally.add(n, read, config.batch_of(n) * world)
            state.skipped += int(read["skipped"])
            applied += int(read["steps"] - read["skipped"])
            state.longest[n] = max(state.longest[n], int(read["longest"]))
            if read["unfinished"]:
                tally.notes.append(f"a rollout of n = {n} took over {state.rollout_steps[n]} steps: allowing more")
                state.rollout_steps[n] = min(longer(state.rollout_steps[n]), state.most_steps[n])

        # ----------------------------------------------------------------------------- validate, adapt
        end_of_epoch = state.step % config.epoch_steps == 0
        if end_of_epoch or judge_now:
            costs = judge(state, tally)
            if end_of_epoch:
                tally.notes.append(state.baseline.end_epoch(state.policy, state.epoch))
                state.epoch += 1
            if better(costs, state.best["costs"]):
                state.keep_best(costs)
            elif astray(costs, state.best["costs"], config.rollback):
                state.go_back()
                tally.notes.append(BACK.format(config.rollback))
        if end_of_epoch:
            if applied == 0:
                tally.notes.append(SKIPPED)
            applied = 0
            if state.epoch == 1 or state.epoch % 5 == 0:
                shorter_ones = {n: shorter(steps, state.longest[n]) for n, steps in state.rollout_steps.items()}
                state.rollout_steps.update(shorter_ones)  # in place: the baseline holds it, too
                state.longest = dict.fromkeys(state.longest, 0)

        # --------------------------------------------------------------------------------- tell, save
        if tally.validation or state.elapsed - last_report > look_seconds:
            row = {"rate": rate, "progress": progress, "skipped": state.skipped}
            row |= tally.row(state.elapsed - last_report)
            tell(state, out, row, report)
            row.pop("note", None)  # told
            last_validation = tally.validation or last_validation
            tally, last_report = Tally(), state.elapsed
        save_due = last_save + pause
        seconds, stop, save_now, judge_now = look_around(state, stop_signals, state.elapsed > save_due, judge.due)
        if save_now:
            saving.save(out, state, judge)
            last_save, pause = state.elapsed, min(2 * pause, save_seconds)
    saving.save(out, state, judge)

    if judge.step != state.step and not stop:  # a run that was stopped is not judged: it goes on as if it had not been
        costs = judge(state, tally)
        if better(costs, state.best["costs"]):
            state.keep_best(costs)
            saving.save(out, state, judge)
        last_validation = tally.validation
        if state.step > first_step:
            row |= {"rate": rate, "progress": progress, "skipped": state.skipped}
            row |= tally.row(state.elapsed - last_report) if tally.sums else tally.judgement()
            tell(state, out, row, report)
    return last_validation, stop


def look_around(
    state: RunState, stop_signals: list[int], save: bool, judge_at: float
) -> tuple[float, bool, bool, bool]:
    """Seconds so far, whether to stop, save, validate: for all ranks alike, lest one wait for another."""
    seconds = state.elapsed
    seconds, stop, save_now, judge_now = distributed.largest(seconds, bool(stop_signals), save, seconds > judge_at)
    return seconds, bool(stop), bool(save_now), bool(judge_now)


def tell(state: RunState, out: Path, row: dict[str, Any], report: Report) -> None:
    """A line of the log, and whoever listens."""
    place = {"step": state.step, "epoch": state.epoch, "instances": state.instances}
    row = {**place, "elapsed": round(state.elapsed, 2), **row}
    if distributed.rank() == 0:
        log.append(out / log.METRICS, row)
    report(row)
