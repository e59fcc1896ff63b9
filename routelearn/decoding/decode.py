"""How a policy's solutions are drawn and the best one kept, by a strategy (strategy.py). All live on one S axis.

Work is cut into chunks that fit a memory budget, and the encoder runs once per instance and symmetry however many
solutions follow.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

from routelearn.decoding.active import Best, Embeddings, Learner, Weights, active_search
from routelearn.decoding.beam import beam_search
from routelearn.decoding.guided import guided_search
from routelearn.decoding.imagine import imagined_search
from routelearn.decoding.insertion import tours_of, viewed
from routelearn.decoding.rollout import Advance, Rolled, advance, finish, pad_tour, rollout
from routelearn.decoding.strategy import Strategy, parse, refuse_hindsight
from routelearn.errors import InputError
from routelearn.policies.kernels.cpu.decoder import processors, side_by_side, stepping
from routelearn.problems.base import Problem, map_instance, repeat, take
from routelearn.runtime.compiling import Captured, autocast


def symmetry(xy: Tensor, which: int, turn: float) -> Tensor:
    """The unit square under one of its 8 symmetries, or turned about its middle by `turn` (radians)."""
    x, y = xy[..., 0:1], xy[..., 1:2]
    if which >= 8:
        x, y = x - 0.5, y - 0.5
        cos, sin = math.cos(turn), math.sin(turn)
        return torch.cat((cos * x - sin * y, sin * x + cos * y), -1) + 0.5
    if which & 4:
        x, y = y, x
    return torch.cat((1 - x if which & 1 else x, 1 - y if which & 2 else y), -1)


def augmented(features: tuple[Tensor, ...], count: int, seed: int) -> tuple[Tensor, ...]:
    """Features [B, n, f] -> [B * count, n, f], versions of one instance adjacent; only coordinates change."""
    if count == 1:
        return features
    generator = torch.Generator().manual_seed(seed)
    turns = (torch.rand(count, generator=generator) * 2 * math.pi).tolist()
    groups = []
    for group in features:
        versions = [torch.cat((symmetry(group[..., :2], i, turns[i]), group[..., 2:]), -1) for i in range(count)]
        groups.append(torch.stack(versions, 1).flatten(0, 1))
    return tuple(groups)


class Decoded(NamedTuple):
    tour: Tensor  # [B, 1, T] the best solution of each instance
    cost: Tensor  # [B]


def memory_budget(device: torch.device) -> int:
    """Bytes that one chunk may use: a quarter of the GPU's memory, a cache-friendly amount on a CPU.

    Draws go by chunks. Hence a GPU's share is halved only while less than twice of it is free, and not just what is
    free: the same seed gives the same answer, whoever else holds a little of the memory.
    """
    if device.type != "cuda":
        return 128 * 2**20
    free, total = torch.cuda.mem_get_info(device)
    share = total // 4
    while 2 * share > free and share > 2**20:
        share //= 2
    return share


def row_bytes(policy: Any, nodes: int, solutions: int, element: int, scored: bool = False) -> int:
    """A generous estimate of what one encoded instance with its solutions occupies; more if they are to be `scored`."""
    width = getattr(policy, "width", 128)
    encoded = nodes * width * element * 24
    per_pair = getattr(policy, "step_width", 4 * getattr(policy, "heads", 2))  # of a solution and a node
    stepping = solutions * nodes * (element * per_pair + 32)
    recorded = solutions * nodes * 2 * 16
    if scored:  # every step of every solution is there at once, and so is its gradient
        recorded += solutions * nodes * nodes * (per_pair * element + 16)
    return encoded + stepping + recorded


def cut(policy: Any, nodes: int, strategy: Strategy, element: int, budget: int, batch: int) -> tuple[int, int]:
    """(instances a chunk, pieces that an instance's draws are cut into) that keep within the budget.

    Draws are cut only where one instance alone is too much; fewer than one draw of one instance there is not.
    """
    encoded = strategy.copies * row_bytes(policy, nodes, 0, element)
    whole = strategy.copies * row_bytes(policy, nodes, strategy.solutions, element, scored=strategy.learning_steps > 0)
    if strategy.retrain:  # weights learn from one instance
        return 1, 1
    if whole <= budget or not strategy.samples or strategy.active:  # which learns from all draws of a step
        return max(1, min(batch, budget // whole)), 1
    draw = (whole - encoded) // strategy.samples  # one draw from every start and symmetry
    return 1, -(-strategy.samples // max(1, (budget - encoded) // draw))


@contextlib.contextmanager
def evaluating(policy: Any) -> Iterator[None]:
    """The policy in evaluation mode, and back in its own afterwards."""
    training = policy.training
    policy.eval()
    try:
        yield
    finally:
        policy.train(training)


FEWEST = 16  # instances that make a chunk worth a processor of its own
SMALL = 256  # nodes that one processor encodes about as fast as several do, waiting for each other


@torch.no_grad()
def decode(
    problem: Problem,
    policy: Any,
    x: Any,
    strategy: Strategy | str = "greedy",
    *,
    seed: int = 0,
    precision: str = "float32",
    budget: int | None = None,
    encode: Callable[..., Any] | None = None,
    step: Advance = advance,
    progress: Callable[[int], None] | None = None,
    found: Callable[[int, Decoded], None] | None = None,
) -> Decoded:
    """The best solution of every instance. Same seed, same answer; `progress` hears of instances done.

    `found` hears the solutions of each chunk as soon as they are there, with the row of the first.
    """
    strategy = parse(strategy) if isinstance(strategy, str) else strategy
    problem = viewed(policy, problem)
    refuse_hindsight(problem, strategy)
    device = x.xy.device
    batch, nodes = x.xy.shape[:2]
    budget = memory_budget(device) if budget is None else budget
    chunk, pieces = cut(policy, nodes, strategy, 2 if precision == "bfloat16" else 4, budget, batch)
    parts: list[Decoded] = []
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        graph = None
        capturing = device.type == "cuda" and batch // chunk > 2 * Captured.warm_calls
        if capturing and pieces == 1 and strategy.of_known_length:
            first = take(x, slice(0, chunk))
            graph = Repeated(problem, policy, first, strategy, seed=seed, precision=precision, step=step)
        # On a CPU chunks go side by side, unless the order of draws or something compiled stands in the way.
        ordinary = encode in (None, policy.encode) and step is advance
        apart = device.type == "cpu" and ordinary and not (strategy.samples or strategy.imagine)
        if apart:
            chunks = max(-(-batch // chunk), min(processors(), batch // FEWEST))
            if chunks > processors():
                chunks = -(-chunks // processors()) * processors()  # as many for each
            chunk = -(-batch // chunks)
            apart = chunks > 1

        def one(low: int) -> Decoded:
            part = take(x, slice(low, low + chunk))
            full = part.xy.shape[0] == chunk
            if graph is not None and full:
                return graph(part)
            # What was compiled is for full chunks; a last smaller one is not worth compiling for.
            tools = (step, encode) if full else (advance, None)
            return _Work(problem, policy, strategy, seed, precision, *tools).best(part, pieces)

        lows = range(0, batch, chunk)
        for part in side_by_side(one, lows) if apart else map(one, lows):
            if found is not None:
                found(sum(earlier.tour.shape[0] for earlier in parts), part)
            parts.append(part)
            if progress is not None:
                progress(part.tour.shape[0])
    longest = max(part.tour.shape[2] for part in parts)
    tours = [pad_tour(problem, part.tour, longest) for part in parts]
    return Decoded(torch.cat(tours), torch.cat([part.cost for part in parts]))


class _Work(NamedTuple):
    """What is done with every chunk of instances."""

    problem: Problem
    policy: Any
    strategy: Strategy
    seed: int  # of the rotations
    precision: str
    step: Advance
    encode: Callable[..., Any] | None = None  # the policy's own

    def best(self, x: Any, pieces: int = 1, steps: int | None = None) -> Decoded:
        """The best solutions of x; with `steps`, of rollouts of exactly so many, without a look at the host."""
        problem, augment, batch = self.problem, self.strategy.augment, x.xy.shape[0]
        many = repeat(x, augment)
        draws = max(1, self.strategy.samples)
        best: Best | None = None
        # Around the whole of a small piece of work: no threads that wait for each other.
        sparing = stepping(x.xy.device, batch * augment * x.xy.shape[1] <= SMALL)
        with autocast(x.xy.device, self.precision), sparing:
            features = augmented(problem.features(x), augment, self.seed)
            cache = (self.encode or self.policy.encode)(features)
            for piece in range(pieces):
                rolled = self.roll(features, cache, many, draws // pieces + (1 if piece < draws % pieces else 0), steps)
                best = best or Best(problem, rolled.tour[::augment, :1])
                best.hear(many, rolled)
            assert best is not None
            return Decoded(tours_of(problem, x, best.tour), best.cost)

    def roll(self, features: tuple[Tensor, ...], cache: Any, x: Any, draws: int, steps: int | None) -> Rolled:
        """So many draws from every start."""
        of, starts = (self.problem, self.policy, cache, x), self.strategy.starts
        if self.strategy.beam:
            return beam_search(*of, self.strategy.beam)
        if self.strategy.imagine:
            versions = self.strategy.augment
            return imagined_search(*of, self.strategy.imagine, versions=versions, step=self.step)
        if self.strategy.guided and not self.strategy.learning_steps:
            return guided_search(*of, self.strategy.guided, step=self.step)
        prefix = first_nodes(self.problem, x, starts).repeat_interleave(draws, 1)[..., None] if starts else None
        solutions, temperature = max(1, starts) * draws, self.strategy.temperature
        if learning := self.strategy.learning_steps:
            learner: Learner
            if self.strategy.active:
                learner = Embeddings(self.policy, features, cache, learning)
            else:
                learner = Weights(self.policy, features)
            return active_search(
                self.problem, learner, x, learning, versions=self.strategy.augment, solutions=solutions, prefix=prefix,
                guided=self.strategy.guided, step=self.step,
            )  # fmt: skip
        if steps is None:
            return finish(*of, solutions=solutions, temperature=temperature, prefix=prefix, step=self.step)
        return rollout(*of, solutions=solutions, temperature=temperature, prefix=prefix, step=self.step, steps=steps)


def first_nodes(problem: Problem, x: Any, count: int) -> Tensor:
    """[B, count] the first legal first nodes, each once; -1 (choose freely) where an instance has fewer."""
    legal = problem.starts(x)
    order = legal.int().argsort(dim=1, descending=True, stable=True)[:, :count]  # legal nodes first, in order
    chosen = torch.where(legal.gather(1, order), order, -1)
    short = count - chosen.shape[1]
    return chosen if short <= 0 else torch.nn.functional.pad(chosen, (0, short), value=-1)


class Repeated:
    """One strategy on instances of one shape, again and again: a single CUDA graph on a GPU.

    Where a rollout needs more steps than were captured for, the ordinary way takes over.
    """

    def __init__(
        self,
        problem: Problem,
        policy: Any,
        example: Any,
        strategy: Strategy,
        *,
        seed: int = 0,
        precision: str = "float32",
        step: Advance = advance,
    ):
        problem = viewed(policy, problem)
        refuse_hindsight(problem, strategy)
        if not strategy.of_known_length:
            raise InputError(f"{strategy.name!r} looks at the host between its steps; it cannot be captured")
        self.work = _Work(problem, policy, strategy, seed, precision, step)  # draws go on from call to call
        self.x = map_instance(lambda field: field.clone(), example)
        self.steps = problem.max_steps(example)
        self.best: Decoded | None = None
        self.captured = Captured(self._run, example.xy.device)

    @torch.no_grad()
    def __call__(self, x: Any) -> Decoded:
        for mine, given in zip(self.x, x, strict=True):
            if mine is not None:
                mine.copy_(given)
        self.captured()
        assert self.best is not None
        if bool(self.best.cost.isinf().any()):
            work = self.work
            return decode(
                work.problem, work.policy, x, work.strategy, seed=work.seed, precision=work.precision, step=work.step
            )
        return Decoded(self.best.tour.clone(), self.best.cost.clone())

    def _run(self) -> None:
        steps = None if self.captured.stream is None else self.steps  # if nothing is captured, it may stop early
        found = self.work.best(self.x, steps=steps)
        if self.best is None or self.captured.stream is None:
            self.best = found
        else:  # the same memory every time: that is what a replayed graph writes
            self.best.tour.copy_(found.tour)
            self.best.cost.copy_(found.cost)
