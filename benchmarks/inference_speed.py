"""Inference speed: greedy instances and samples a second, the encoder's share, and one instance alone.

    python benchmarks/inference_speed.py                        # every problem, n = 20, 50, 100, device at hand
    python benchmarks/inference_speed.py tsp:100 cvrp:100 --seconds 5
    python benchmarks/inference_speed.py cvrp:100 --model cvrp.safetensors

Untrained weights unless a model is given: speed does not depend on their values, except that an untrained model
drives home far too often (200 steps for 100 customers, where a trained one takes some 110).
"""

from __future__ import annotations

import argparse
import json
import time

import torch

from routelearn import policies, problems
from routelearn.decoding.decode import Repeated, decode, parse
from routelearn.decoding.rollout import advance
from routelearn.models import model_file
from routelearn.policies.base import shape_of
from routelearn.policies.kernels.cpu import decoder as cpu_kernels
from routelearn.problems import PROBLEMS, DeviceRng
from routelearn.problems.base import take
from routelearn.runtime.compiling import best_device, compiled, compiled_encoder, resolve_precision


def timed(fn, device: torch.device, seconds: float) -> float:
    """Median seconds a call."""
    wait = torch.cuda.synchronize if device.type == "cuda" else lambda: None
    for _ in range(5 if device.type == "cuda" else 2):
        fn()
    wait()
    times = []
    started = time.perf_counter()
    while time.perf_counter() - started < seconds or len(times) < 3:
        before = time.perf_counter()
        fn()
        wait()
        times.append(time.perf_counter() - before)
    return sorted(times)[len(times) // 2]


def encode_all(problem, encode, x) -> None:
    """The encoder alone, in the way that `decode` runs it: on a CPU chunk by chunk on every processor."""

    def part(low: int) -> None:
        encode(problem.features(take(x, slice(low, low + 64))))

    if x.xy.is_cuda:
        encode(problem.features(x))
    else:
        list(cpu_kernels.side_by_side(part, range(0, x.xy.shape[0], 64)))


@torch.no_grad()
def measure(
    name: str,
    n: int,
    device: torch.device,
    precision: str,
    seconds: float,
    batch: int,
    compile: bool,
    model: str | None,
) -> dict:
    problem = problems.get(name)
    torch.manual_seed(0)
    policy = policies.build("attention", shape_of(problem), {}) if model is None else model_file.load(model).policy
    policy = policy.to(device).eval()
    x = problem.sample(DeviceRng(device), batch, n)
    one = take(x, slice(0, 1))
    encode = compiled_encoder(policy, device) if compile else policy.encode
    step = compiled(advance, device) if compile else advance
    greedy = timed(
        lambda: decode(problem, policy, x, "greedy", precision=precision, encode=encode, step=step), device, seconds
    )
    with torch.autocast(device.type, torch.bfloat16, enabled=precision == "bfloat16"):
        encoding = timed(lambda: encode_all(problem, encode, x), device, seconds / 3)
    row = {
        "problem": name,
        "n": n,
        "batch": batch,
        "greedy_per_second": batch / greedy,
        "encoder_share": encoding / greedy,
    }
    alone = Repeated(problem, policy, one, parse("greedy"), precision=precision, step=step)
    row["one_greedy_ms"] = timed(lambda: alone(one), device, seconds / 3) * 1e3
    if not problem.reveals_on_visit:
        many = Repeated(problem, policy, one, parse("sample:1280"), precision=precision, step=step)
        sampling = timed(lambda: many(one), device, seconds / 2)
        row |= {"sample_1280_ms": sampling * 1e3, "samples_per_second": 1280 / sampling}
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", help="problem:n; without any, all of them")
    parser.add_argument("--seconds", type=float, default=2.0, help="measuring time for each figure")
    parser.add_argument("--batch", type=int, help="instances of the greedy figure [512 on a CPU, 10,000 on a GPU]")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--precision", default="auto")
    parser.add_argument("--no-compile", action="store_true", help="on a GPU; a CPU has kernels of its own")
    parser.add_argument("--model", help="a model file with the weights to use, for cases of its problem")
    parser.add_argument("--json", help="write the rows there")
    options = parser.parse_args()
    device = best_device(options.device)
    precision = resolve_precision(options.precision, device)
    if device.type == "cpu":
        cpu_kernels.warm_up()
    compile = device.type == "cuda" and not options.no_compile
    batch = options.batch or (10_000 if device.type == "cuda" else 512)
    where = torch.cuda.get_device_name() if device.type == "cuda" else f"CPU, {torch.get_num_threads()} threads"
    cases = [case.split(":") for case in options.cases] or [[p, str(n)] for p in PROBLEMS for n in (20, 50, 100)]
    print(f"{where}, {precision}, torch {torch.__version__}, batches of {batch}")
    print(f"{'case':14}{'greedy/s':>11}{'encoder':>9}{'one greedy':>12}{'1,280 samples':>15}{'samples/s':>13}")
    rows = []
    for problem, n in cases:
        row = measure(problem, int(n), device, precision, options.seconds, batch, compile, options.model)
        rows.append(row)
        sampling = (
            f"{row['sample_1280_ms']:12.1f} ms{row['samples_per_second']:13,.0f}" if "sample_1280_ms" in row else ""
        )
        print(
            f"{problem + ' ' + n:14}{row['greedy_per_second']:11,.0f}{row['encoder_share']:9.0%}"
            f"{row['one_greedy_ms']:9.2f} ms{sampling}",
            flush=True,
        )
        torch._dynamo.reset()
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"device": where, "precision": precision, "rows": rows}, file, indent=1)


if __name__ == "__main__":
    main()
