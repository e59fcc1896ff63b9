"""Compile what numba compiles, once after installation: `python -m routelearn.commands.warm_up [--large]`."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context


def warm_up(large: bool = False) -> None:
    """The policy's encoder and step and all searches; cached on disk, so later calls are quick.

    What shares kernels is compiled by one process, the rest beside it.
    """
    from routelearn import search
    from routelearn.rounds.search import load_kernels
    from routelearn.runtime.processors import usable_processors

    searches = [partial(search.warm_up, names, large) for names in search.by_engine()]
    work: list[Callable[[], None]] = [load_kernels, *searches, policy]  # what takes longest comes first
    with ProcessPoolExecutor(usable_processors(), mp_context=get_context("spawn")) as pool:
        for one in [pool.submit(part) for part in work]:
            one.result()


def policy() -> None:
    from routelearn.policies.kernels.cpu import decoder, inference

    inference.warm_up()
    decoder.warm_up()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--large", action="store_true", help="what more than 2,500 stops need, too")
    started = time.perf_counter()
    warm_up(**vars(parser.parse_args()))
    print(f"compiled search ready after {time.perf_counter() - started:.0f} s")
