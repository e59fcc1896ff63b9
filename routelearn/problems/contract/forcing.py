"""Complete tours with a masked move forced into them, to see whether `check` knows the rules that the mask enforces."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from routelearn.problems.contract.walks import Walk

AHEAD, ADDED, UNLOADED = range(3)  # kinds of force


class Forced(NamedTuple):
    """One tour in which the mask was broken at one step."""

    kind: int
    row: int
    tour: Tensor  # [1, 1, T]
    words: str  # what was done


def forced_tours(walked: Walk, first: int) -> Iterator[Forced]:
    """Tours of the walk, each with one masked move; `first` is the first customer.

    The first step is spared: a mask may fix where a tour begins. A mask may be stricter than the
    rules, so `check` need not object to each of them.
    """
    for t in range(1, walked.tour.shape[2] - 1):
        mask = walked.masks[t]
        for row in range(mask.shape[0]):
            for solution in range(mask.shape[1]):
                if not bool(walked.done[row, solution, t]):
                    yield from _at(walked.tour[row, solution], mask[row, solution], t, row, first)


def _at(tour: Tensor, mask: Tensor, t: int, row: int, first: int) -> Iterator[Forced]:
    nodes = tour.tolist()
    chosen, begun = nodes[t], set(nodes[:t])
    masked = [node for node in (~mask).nonzero()[:, 0].tolist() if node >= first and node not in begun]
    for node in masked[:2]:
        if node in nodes and chosen >= first:
            other = nodes.index(node)
            changed = [*nodes[:t], node, *nodes[t + 1 : other], chosen, *nodes[other + 1 :]]
            words = f"node {node} comes at step {t}, where it is masked, instead of node {chosen}"
            yield Forced(AHEAD, row, torch.tensor([[changed]]), words)
        elif node not in nodes:
            changed = [*nodes[:t], node, *nodes[t:]]
            words = f"node {node} is added at step {t}, where it is masked"
            yield Forced(ADDED, row, torch.tensor([[changed]]), words)
    following = nodes[t + 1]
    if first and chosen == 0 and following >= first and not mask[following] and nodes[t - 1] >= first:
        changed = nodes[:t] + nodes[t + 1 :] + nodes[-1:]
        words = f"the depot is left out at step {t}, though node {following} is masked there"
        yield Forced(UNLOADED, row, torch.tensor([[changed]]), words)
