"""Compile what numba compiles, once after installation: `python -m routelearn.commands.warm_up [--large]`."""

from __future__ import annotations

import argparse
import multiprocessing
import time


def warm_up(large: bool = False) -> None:
    """The policy's encoder and step and the searches; cached on disk, so later calls are quick.

    The search of rounds, half of the work, is compiled in a process of its own beside the rest.
    """
    from routelearn import search as improve
    from routelearn.policies.kernels.cpu import decoder as cpu_kernels
    from routelearn.policies.kernels.cpu import inference as cpu_inference
    from routelearn.rounds.search import load_kernels

    beside = multiprocessing.get_context("spawn").Process(target=load_kernels)
    beside.start()
    cpu_inference.warm_up()
    cpu_kernels.warm_up()
    improve.warm_up(large)
    beside.join()
    load_kernels()  # from the disk, or as before where nothing can be kept there


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--large", action="store_true", help="what more than 2,500 stops need, too")
    started = time.perf_counter()
    warm_up(**vars(parser.parse_args()))
    print(f"compiled search ready after {time.perf_counter() - started:.0f} s")
