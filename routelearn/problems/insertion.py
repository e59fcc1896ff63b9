"""Closed tours by insertion: nodes join one after the other, each between the two neighbours where it adds least.

A partial tour is a row [..., N] of nodes in their order, -1 where none stands yet.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor

from routelearn.problems.base import Problem, distance_matrix


class Offers(NamedTuple):
    """What each node means to a partial tour, [B, S, N] each."""

    added: Tensor  # length that it would add where it adds least; 0 if there is no tour yet
    place: Tensor  # long: it would stand behind this place; -1 if there is no tour yet
    away: Tensor  # leg to it from the nearest node of the tour; 0 if there is no tour yet


def empty(legs: Tensor, solutions: int) -> Tensor:
    """[B, S, N]: tours of no node."""
    return torch.full((len(legs), solutions, legs.shape[1]), -1, device=legs.device)


def offers(legs: Tensor, tour: Tensor) -> Offers:
    """For partial tours [B, S, N], by the lengths [B, N, N]; what it says of a node that has joined means nothing."""
    nodes = legs.shape[1]
    size = (tour >= 0).sum(-1, keepdim=True)
    places = torch.arange(nodes, device=tour.device)
    following = torch.where(places + 1 < size, tour.roll(-1, -1), tour[..., :1])
    out, back = (_rows(way, stops) for way, stops in ((legs, tour), (legs.transpose(1, 2), following)))
    direct = out.gather(-1, following.clamp(min=0)[..., None])
    taken = (places < size)[..., None]  # [B, S, N, 1]
    added, place = (out + back - direct).masked_fill(~taken, math.inf).min(-2)
    away = out.masked_fill(~taken, math.inf).amin(-2)
    none = size == 0
    return Offers(added.masked_fill(none, 0.0), place.masked_fill(none, -1), away.masked_fill(none, 0.0))


def inserted(tour: Tensor, node: Tensor, place: Tensor) -> Tensor:
    """The partial tours [B, S, N] with a node [B, S] behind a place [B, S]; -1, or one that has joined, adds nothing."""
    position = place[..., None] + 1
    places = torch.arange(tour.shape[-1], device=tour.device)
    moved = torch.where(places < position, tour, tour.roll(1, -1)).where(places != position, node[..., None])
    idle = (node < 0) | (tour == node[..., None]).any(-1)
    return torch.where(idle[..., None], tour, moved)


def _rows(legs: Tensor, nodes: Tensor) -> Tensor:
    """[B, S, N, N]: of the lengths [B, N, N] the rows of nodes [B, S, N]; any row for -1."""
    index = nodes.clamp(min=0).flatten(1)[..., None].expand(-1, -1, legs.shape[2])
    return legs.gather(1, index).unflatten(1, nodes.shape[1:])


class ByInsertion:
    """A problem of closed tours whose solutions are told as orders [B, S, T] of insertion; all else is its own."""

    def __init__(self, problem: Problem):
        self.problem = problem

    def __getattr__(self, name: str) -> Any:
        if name == "problem":  # of an object that is being copied, and has nothing yet
            raise AttributeError(name)
        return getattr(self.problem, name)

    def cost(self, x: Any, order: Tensor) -> Tensor:
        return self.problem.cost(x, self.tours(x, order))

    def tours(self, x: Any, order: Tensor) -> Tensor:
        """[B, S, T] in the problem's own encoding: nodes as they are visited; in the end the last one stays."""
        tour, _ = self.build(x, order)
        size = (tour >= 0).sum(-1, keepdim=True)
        steps = torch.arange(order.shape[2], device=order.device).expand_as(order)
        return tour.gather(-1, torch.minimum(steps, size - 1))

    def added(self, x: Any, order: Tensor) -> Tensor:
        """[B, S, T]: what each insertion adds to the length; together they are the cost of a finished tour."""
        return self.build(x, order)[1]

    def build(self, x: Any, order: Tensor) -> tuple[Tensor, Tensor]:
        """Partial tours [B, S, N] after all insertions, and what each added, [B, S, T]."""
        legs = distance_matrix(x.public())
        tour, added = empty(legs, order.shape[1]), []
        for node in order.unbind(2):
            offered, chosen = offers(legs, tour), node[..., None]
            known = (tour == chosen).any(-1)
            added.append(offered.added.gather(-1, chosen)[..., 0].masked_fill(known, 0.0))
            tour = inserted(tour, node, offered.place.gather(-1, chosen)[..., 0])
        return tour, torch.stack(added, 2)


def viewed(policy: Any, problem: Any) -> Any:
    """The problem as this policy tells its solutions: where it has a `view`, through that."""
    view = getattr(policy, "view", None)
    return problem if view is None or isinstance(problem, view) else view(problem)


def tours_of(problem: Any, x: Any, chosen: Tensor) -> Tensor:
    """The tours [B, S, T] that chosen nodes mean to the problem itself."""
    return problem.tours(x, chosen) if isinstance(problem, ByInsertion) else chosen
