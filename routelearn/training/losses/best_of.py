"""The policy gradient of the best of k solutions, k of the S drawn (Walder and Karkhanis 2025, arXiv 2505.15201)."""

from __future__ import annotations

import torch
from torch import Tensor

from routelearn.training.losses.base import Loss, Scored


def log_choose(n: Tensor, k: Tensor) -> Tensor:
    """The logarithm of "n choose k"; minus infinity where k exceeds n."""
    return (n + 1).lgamma() - (k + 1).lgamma() - (n - k + 1).lgamma()


def chances(drawn: int, k: int, like: Tensor) -> Tensor:
    """[drawn]: how likely each of so many solutions, best first, is the best of k that are chosen among them."""
    worse = torch.arange(drawn - 1, -1, -1, device=like.device, dtype=torch.float64)  # made where a graph can make it
    every, others = torch.full_like(worse, k), torch.full_like(worse, k - 1)
    whole = log_choose(torch.full_like(worse, drawn), every)
    return (log_choose(worse, others) - whole).exp().to(like.dtype)


class BestOf(Loss):
    """Rewards a solution for what it adds to a group of k, not for being better than the mean."""

    least_solutions = 2
    baselines = ("shared", "none")  # it compares solutions with each other; others would be computed for nothing

    def __init__(self, best_of: int = 8):
        self.best_of = best_of

    def __call__(self, scored: Scored) -> Tensor:
        """The mean of A log p; A is the expected best of a group with the solution minus that of one of the others.

        Groups are all of k (`best_of`, at most S - 1) of the instance's solutions, so A estimates without bias.
        """
        drawn = scored.cost.shape[1]
        k = max(1, min(self.best_of, drawn - 1))
        cost, order = scored.cost.sort(1)
        without = chances(drawn - 1, k, cost)  # of the others, best first, to be the best of k
        beside = chances(drawn - 1, k - 1, cost) if k > 1 else torch.zeros_like(without)  # ... of the k - 1 beside it
        before = (cost[:, :-1] * (beside - without)).cumsum(1)  # sums over all better solutions
        after = (cost[:, 1:] * without).flip(1).cumsum(1).flip(1)  # over all worse ones; one rank less without it
        own = 1 - torch.cat((torch.zeros_like(beside[:1]), beside.cumsum(0)))  # none of the better is beside it
        zero = torch.zeros_like(cost[:, :1])
        advantage = own * cost + torch.cat((zero, before), 1) - torch.cat((after, zero), 1)
        return (advantage * scored.log_prob.sum(-1).gather(1, order)).mean()
