"""The numba loop behind cpu_kernels.py. Every inner loop runs along the nodes, contiguous, so that it vectorises."""

from __future__ import annotations

import numpy as np
from numba import njit

POWERS = (2.0 ** np.arange(-127, 1)).astype(np.float32)  # 2^-127 .. 2^0
FAST = {"contract", "reassoc", "nsz", "arcp"}


@njit(inline="always")
def _exp(x):
    """exp(x) for x <= 0 to float32 precision, without a call: 2^whole from a table, 2^part by its Taylor series."""
    t = max(np.float32(x * np.float32(1.4426950408889634)), np.float32(-100))  # lower would be denormal, and slow
    whole = np.int32(t)  # towards zero, so the rest lies in (-1, 0]
    y = (t - np.float32(whole)) * np.float32(0.6931471805599453)
    series = np.float32(1 / 5040) + y * np.float32(1 / 40320)
    series = np.float32(1 / 720) + y * series
    series = np.float32(1 / 120) + y * series
    series = np.float32(1 / 24) + y * series
    series = np.float32(1 / 6) + y * series
    series = np.float32(0.5) + y * series
    series = np.float32(1.0) + y * series
    return (np.float32(1.0) + y * series) * POWERS[whole + 127]


@njit(fastmath=FAST)
def _add(scale, row, total):
    """total += scale * row"""
    for i in range(total.shape[0]):
        total[i] += scale * row[i]


@njit(fastmath=FAST)
def _dot(a, b):
    total = np.float32(0)
    for i in range(a.shape[0]):
        total += a[i] * b[i]
    return total


@njit(fastmath=FAST)
def _exponentiate(weights):
    """weights <- exp(weights - max), and their sum."""
    top = weights[0]
    for i in range(weights.shape[0]):
        top = max(top, weights[i])
    total = np.float32(0)
    for i in range(weights.shape[0]):
        weights[i] = _exp(weights[i] - top)
        total += weights[i]
    return total


@njit(cache=True, nogil=True, fastmath=FAST)
def decode_rows(
    low, high, heads, keys, values, pointer, tables, empty, scalar_weights, step, nodes, scalars, feasible, extra, out,
    clip,
):  # fmt: skip
    """Eq. 4 to 8 for instances low..high. keys, values, pointer [B, D, N]; the rest as in `Cache` and `Seen`."""
    width, count = keys.shape[1], keys.shape[2]
    per_head = width // heads
    slots, numbers, groups = nodes.shape[2], scalars.shape[2], step.shape[1]
    query = np.empty(width, np.float32)
    glimpse = np.empty(width, np.float32)
    weights = np.empty(count, np.float32)
    never = np.float32(-1e30)
    for b in range(low, high):
        for s in range(nodes.shape[1]):
            # The query: one row per context slot, and the scalars' projections.
            query[:] = 0
            for slot in range(slots):
                node = nodes[b, s, slot]
                _add(np.float32(1), empty[b, slot] if node < 0 else tables[b, slot, node], query)
            for c in range(numbers):
                _add(scalars[b, s, c], scalar_weights[c], query)
            # The glimpse: softmax attention of each head over the feasible nodes.
            for h in range(heads):
                first = h * per_head
                for n in range(count):
                    weights[n] = np.float32(0) if feasible[b, s, n] else never
                for j in range(first, first + per_head):
                    _add(query[j], keys[b, j], weights)
                for g in range(groups):
                    along = _dot(query[first : first + per_head], step[0, g, first : first + per_head])
                    for n in range(count):
                        weights[n] += along * extra[b, s, n, g]
                total = _exponentiate(weights)
                for j in range(first, first + per_head):
                    glimpse[j] = _dot(weights, values[b, j]) / total
                for g in range(groups):
                    moved = np.float32(0)
                    for n in range(count):
                        moved += weights[n] * extra[b, s, n, g]
                    for j in range(first, first + per_head):
                        glimpse[j] += moved / total * step[1, g, j]
            # The pointer.
            for n in range(count):
                weights[n] = 0
            for j in range(width):
                _add(glimpse[j], pointer[b, j], weights)
            for g in range(groups):
                along = _dot(glimpse, step[2, g])
                for n in range(count):
                    weights[n] += along * extra[b, s, n, g]
            for n in range(count):
                falling = _exp(np.float32(-2) * abs(weights[n]))
                bent = (np.float32(1) - falling) / (np.float32(1) + falling)
                bent = bent if weights[n] >= 0 else -bent
                out[b, s, n] = clip * bent if feasible[b, s, n] else np.float32(-np.inf)
