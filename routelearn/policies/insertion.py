"""Closed tours by insertion: nodes join one after the other, each between the two neighbours where it adds least.

A partial tour is a row [..., N] of nodes in their order, -1 where none stands yet.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from routelearn.policies.base import rows


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
    out, back = (rows(way, stops) for way, stops in ((legs, tour), (legs.transpose(1, 2), following)))
    direct = out.gather(-1, following.clamp(min=0)[..., None])
    taken = (places < size)[..., None]  # [B, S, N, 1]
    added, place = (out + back - direct).masked_fill(~taken, math.inf).min(-2)
    away = out.masked_fill(~taken, math.inf).amin(-2)
    none = size == 0
    return Offers(added.masked_fill(none, 0.0), place.masked_fill(none, -1), away.masked_fill(none, 0.0))


def inserted(tour: Tensor, node: Tensor, place: Tensor) -> Tensor:
    """The partial tours [B, S, N] with a node [B, S] behind a place [B, S]; without one that is -1 or has joined."""
    position = place[..., None] + 1
    places = torch.arange(tour.shape[-1], device=tour.device)
    moved = torch.where(places < position, tour, tour.roll(1, -1)).where(places != position, node[..., None])
    idle = (node < 0) | (tour == node[..., None]).any(-1)
    return torch.where(idle[..., None], tour, moved)
