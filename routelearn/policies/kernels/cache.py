"""What a compiled decoder reads of an encoded instance: the contract between the attention model and its kernels."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor


class Cache(NamedTuple):
    """What the decoder needs of an encoded instance. H heads of width d; D = H d."""

    keys: Tensor  # [B, N, H, d] glimpse keys: a node's heads side by side, so that one read takes all of it
    values: Tensor  # [B, N, H, d] glimpse values
    pointer: Tensor  # [B, N, D] pointer keys with W^O folded in, scaled by 1 / sqrt(D)
    tables: Tensor  # [B, K, N, D] every node through each context slot; slot 0 carries the graph embedding
    empty: Tensor  # [B, K, D] the same for the learned placeholders
    scalars: Tensor  # [C, D] projection of the context's scalars
    step: Tensor  # [3, G, D] step features into glimpse keys, glimpse values, pointer keys (folded, scaled)
