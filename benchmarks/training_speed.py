"""Training speed: instances and rollouts a second, memory, FLOP/s and where the time goes, per problem and size.

    python benchmarks/training_speed.py                       # everything, on the device at hand
    python benchmarks/training_speed.py tsp:100:rollout cvrp:100:shared --seconds 3
    python benchmarks/training_speed.py vrp:100:shared:vrptw  # one variant; without its name, all of them
    python benchmarks/training_speed.py --no-stages           # whole steps only

Whole training steps are timed, the rollout baseline's forward pass included, at the paper's batch sizes. Below each,
the milliseconds of its stages, each timed on its own; some hold others, or run side by side in a step.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import time

import torch

from routelearn.decoding.rollout import rollout
from routelearn.policies.kernels.cpu.shares import keeping_memory
from routelearn.problems import PROBLEMS, DeviceRng, NumpyRng
from routelearn.runtime.compiling import Captured, autocast, best_device, resolve_precision
from routelearn.training.config import TrainConfig
from routelearn.training.state import RunState
from routelearn.training.step import Meter, Step


def config_for(problem: str, n: int, baseline: str, variants: str, precision: str) -> TrainConfig:
    routes = problem in ("cvrp", "sdvrp", "vrp")
    return TrainConfig(
        problem=problem,
        variants=variants,
        sizes=(n,),
        baseline=baseline,
        solutions=16 if baseline == "shared" else 1,
        batch=(256 if routes and n >= 100 and baseline != "shared" else 512,),
        warmup_epochs=0,
        evaluation_instances=16,
        precision=precision,
    )


def rollout_length(problem, config) -> int:
    """Steps that a trained policy's rollouts need: the bound, or for several routes what was seen at n = 100."""
    n = config.sizes[0]
    bound = problem.max_steps(problem.sample(NumpyRng(0), 64, n))
    return bound if bound <= n + 1 else int(n * 1.3) + 6


def flops(problem, config: TrainConfig, steps: int, scored: bool) -> float:
    """Floating point operations of the matrix products of one training step, forward and backward.

    On a GPU a rollout keeps what the gradient needs; elsewhere its record is `scored` once more.
    """
    n = config.sizes[0] + (1 if problem.has_depot else 0)
    d, batch, solutions = config.width, config.batch[0], config.solutions
    encoder = config.layers * (2 * n * (4 * d * d + 2 * d * config.hidden) + 4 * n * n * d)
    prepare = 2 * n * d * d * (3 + problem.context_nodes)
    decode = steps * 6 * n * d
    forward = encoder + prepare + solutions * decode
    greedy = encoder + prepare + decode if config.baseline == "rollout" else 0
    return batch * (3 * forward + (solutions * decode if scored else 0) + greedy)


def timed(fn, device: torch.device, seconds: float) -> float:
    """Seconds a call, after warming up."""
    wait = torch.cuda.synchronize if device.type == "cuda" else lambda: None
    for _ in range(6 if device.type == "cuda" else 1):
        fn()
    wait()
    calls, started = 0, time.perf_counter()
    while True:
        for _ in range(5 if device.type == "cuda" else 1):
            fn()
            calls += 1
        wait()
        if time.perf_counter() - started > seconds:
            return (time.perf_counter() - started) / calls


def matrix_rate(device: torch.device, precision: str) -> float:
    """Measured FLOP/s of a large matrix product in the precision of training."""
    size = 8192 if device.type == "cuda" else 1024
    kind = torch.bfloat16 if precision == "bfloat16" else torch.float32
    a, b = (torch.randn(size, size, device=device, dtype=kind) for _ in range(2))
    return 2 * size**3 / timed(lambda: a @ b, device, 0.5)


def measure(case: str, device: torch.device, precision: str, seconds: float, stages: bool):
    name, size, baseline, *variants = case.split(":")
    n = int(size)
    config = config_for(name, n, baseline, "".join(variants), precision)
    problem = config.chosen("problem")
    torch.manual_seed(0)
    compile = device.type == "cuda"
    state = RunState(config, device=device, precision=precision, compile=compile)
    state.rollout_steps[n] = steps = rollout_length(problem, config)
    if compile:
        torch.cuda.reset_peak_memory_stats()
    started = time.perf_counter()
    step = Step(state, n, Meter(device))
    state.baseline.phase(0)
    captured = Captured(step, device)
    for _ in range(5 if compile else 1):
        captured()
    if compile:
        torch.cuda.synchronize()
    ready = time.perf_counter() - started
    per_step = timed(captured, device, seconds)
    batch = config.batch[0]
    result = {
        "case": case,
        "batch": batch,
        "S": config.solutions,
        "steps": steps,
        "ms": per_step * 1e3,
        "instances_per_second": batch / per_step,
        "rollouts_per_second": batch * config.solutions / per_step,
        "flops": flops(problem, config, steps, scored=not compile) / per_step,
        "memory_gib": torch.cuda.max_memory_allocated() / 2**30 if compile else None,
        "setup_seconds": ready,
    }
    if stages:
        result["stages"] = time_stages(step, device, precision, seconds / 3)
    return result


def time_stages(step: Step, device: torch.device, precision: str, seconds: float) -> dict[str, float]:
    """Milliseconds of each part, each captured and timed on its own."""
    problem, policy, config = step.problem, step.policy, step.config
    rng = DeviceRng(device)
    x = problem.sample(rng, step.batch, step.size)
    features = problem.features(x)
    with torch.no_grad(), autocast(device, precision):
        fixed = policy.encode(features)
        rolled = rollout(
            problem, policy, fixed, x, solutions=config.solutions, steps=step.steps, temperature=1.0, record=True,
            step=step.advance,
        )  # fmt: skip
    leaves = type(fixed)(*(f.detach().clone().requires_grad_() for f in fixed))

    def roll() -> None:
        with torch.no_grad(), autocast(device, precision):
            r = rollout(
                problem, policy, fixed, x, solutions=config.solutions, steps=step.steps, temperature=1.0, record=True,
                step=step.advance,
            )  # fmt: skip
            step.cost(x, r.tour)

    def encode() -> None:
        with autocast(device, precision):
            step.encode(features)

    def encode_backward() -> None:
        with autocast(device, precision):
            c = step.encode(features)
        torch.autograd.backward([f for f in c if f.requires_grad], [torch.ones_like(f) for f in c if f.requires_grad])

    def score() -> None:
        with autocast(device, precision):
            policy.score(leaves, rolled.trajectory)

    def score_backward() -> None:
        with autocast(device, precision):
            policy.score(leaves, rolled.trajectory).sum().backward()

    def optimise() -> None:
        torch.nn.utils.clip_grad_norm_(step.parameters, 1.0)
        step.optimiser.step()

    def baseline() -> None:
        with autocast(device, precision):
            step.baseline.prepare(x, features)

    stages = {
        "generate": lambda: problem.features(problem.sample(rng, step.batch, step.size)),
        "encode": encode,
        "encode+backward": encode_backward,
        "roll out": roll,
        "score": score,
        "score+backward": score_backward,
        "optimiser": optimise,
    }
    if config.baseline == "rollout":
        stages["baseline"] = baseline
    return {name: timed(Captured(fn, device), device, seconds) * 1e3 for name, fn in stages.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", help="problem:n:baseline[:variants]; without any, all problems")
    parser.add_argument("--seconds", type=float, default=2.0, help="measuring time for each case")
    parser.add_argument("--precision", default="auto")
    parser.add_argument("--device", default="auto")
    parser.add_argument(
        "--stages",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="time generate, encode, roll out, score, ...",
    )
    parser.add_argument("--json", help="write the rows there")
    options = parser.parse_args()
    device = best_device(options.device)
    precision = resolve_precision(options.precision, device)
    torch.set_float32_matmul_precision("high" if precision == "bfloat16" else "highest")
    cases = options.cases or [
        f"{name}:{n}:{baseline}" for name in PROBLEMS for n in (20, 50, 100) for baseline in ("rollout", "shared")
    ]
    name = torch.cuda.get_device_name() if device.type == "cuda" else f"CPU, {torch.get_num_threads()} threads"
    ceiling = matrix_rate(device, precision)
    print(
        f"{name}, {precision}, matrix products at {ceiling / 1e12:.1f} TFLOP/s, torch {torch.__version__}", flush=True
    )
    print(
        f"{'case':24}{'batch':>6}{'S':>4}{'ms':>9}{'inst/s':>10}{'rollouts/s':>12}{'TFLOP/s':>9}{'share':>7}{'GiB':>7}{'setup':>7}"
    )
    rows = []
    for case in cases:
        with keeping_memory() if device.type == "cpu" else contextlib.nullcontext():  # as training does
            row = measure(case, device, precision, options.seconds, options.stages)
        rows.append(row)
        print(
            f"{case:24}{row['batch']:6}{row['S']:4}{row['ms']:9.2f}"
            f"{row['instances_per_second']:10,.0f}{row['rollouts_per_second']:12,.0f}{row['flops'] / 1e12:9.1f}"
            f"{row['flops'] / ceiling:7.1%}{row['memory_gib'] or 0:7.2f}{row['setup_seconds']:6.0f}s",
            flush=True,
        )
        if options.stages:
            print("    " + ", ".join(f"{k} {v:.2f}" for k, v in row["stages"].items()), flush=True)
        torch._dynamo.reset()
        if device.type == "cuda":
            torch.cuda.empty_cache()
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"device": name, "precision": precision, "matrix_flops": ceiling, "rows": rows}, file, indent=1)


if __name__ == "__main__":
    main()
