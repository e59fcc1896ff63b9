"""The numba loops behind decoder.py: a decoding step over the feasible nodes only, sixteen numbers at a time.

A node's row of keys, values or pointer is `width` numbers in the order of `interleaved`: all heads of the first
column, then all heads of the second. A vector of sixteen then holds every head equally often, so one vector a node
holds its weights for all heads, and weighting a row is a product of vectors without a look at heads.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from routelearn.policies.kernels.cpu.vectors import (
    add,
    divide,
    exp,
    first,
    load,
    maximum,
    multiply_add,
    over_columns,
    splat,
    store,
    subtract,
)

BLOCK = 64  # a row is a multiple of four vectors, which are summed independently of each other
LOW = np.float32(-1e30)


def lanes_for(heads: int) -> int:
    """Lanes of a vector that a column takes: the heads, filled up to a power of two."""
    return 1 << (heads - 1).bit_length()


def interleaved(heads: int, per_head: int) -> np.ndarray:
    """Where each number of a row comes from in a row of heads side by side; heads * per_head = padding, a zero."""
    lanes = lanes_for(heads)
    columns = -(-per_head * lanes // BLOCK) * BLOCK // lanes
    order = np.full((columns, lanes), heads * per_head)
    order[:per_head, :heads] = np.arange(heads * per_head).reshape(heads, per_head).T
    return order.ravel()


@njit(cache=True, nogil=True)
def interleave(low, high, lanes, keys, values, pointer, out):
    """Instances low..high of keys and values [B, N, H, d] and pointer [B, N, D] -> out [3, B, N, width]."""
    count, heads, per_head = keys.shape[1], keys.shape[2], keys.shape[3]
    for b in range(low, high):
        for n in range(count):
            for h in range(heads):
                for j in range(per_head):
                    out[0, b, n, j * lanes + h] = keys[b, n, h, j]
                    out[1, b, n, j * lanes + h] = values[b, n, h, j]
                    out[2, b, n, j * lanes + h] = pointer[b, n, h * per_head + j]


@njit(forceinline=True)
def _products(a, b, start, width):
    """a[: width] * b[start : start + width], summed to one vector."""
    zero = splat(np.float32(0))
    w, x, y, z = zero, zero, zero, zero
    for c in range(0, width, BLOCK):
        w = multiply_add(load(a, c), load(b, start + c), w)
        x = multiply_add(load(a, c + 16), load(b, start + c + 16), x)
        y = multiply_add(load(a, c + 32), load(b, start + c + 32), y)
        z = multiply_add(load(a, c + 48), load(b, start + c + 48), z)
    return add(add(w, x), add(y, z))


@njit(forceinline=True)
def _query(b, s, nodes, scalars, tables, empty, scalar_weights, order, plain, query):
    """Eq. 4 and 5: one row per context slot and the scalars' projections; `plain` has a zero at its end."""
    for j in range(plain.shape[0]):
        plain[j] = 0
    for slot in range(nodes.shape[2]):
        node = nodes[b, s, slot]
        if node < 0:
            for j in range(empty.shape[2]):
                plain[j] += empty[b, slot, j]
        else:
            for j in range(tables.shape[3]):
                plain[j] += tables[b, slot, node, j]
    for c in range(scalars.shape[2]):
        for j in range(scalar_weights.shape[1]):
            plain[j] += scalars[b, s, c] * scalar_weights[c, j]
    for j in range(order.shape[0]):
        query[j] = plain[order[j]]


@njit(forceinline=True)
def _glimpse(rows, lanes, keys, values, step, extra, query, weights, along, glimpse):
    """Eq. 6 and 12: softmax attention of every head over `rows`, where the feasible nodes' rows begin."""
    width, groups = query.shape[0], extra.shape[1]
    for g in range(groups):
        store(along, g * 16, over_columns(_products(query, step, g * width, width), lanes))
    top = splat(LOW)
    for i in range(rows.shape[0]):
        score = over_columns(_products(query, keys, rows[i], width), lanes)
        for g in range(groups):
            score = multiply_add(load(along, g * 16), splat(extra[i, g]), score)
        top = maximum(score, top)
        store(weights, i * 16, score)
    total = splat(np.float32(0))
    for i in range(rows.shape[0]):
        weight = exp(subtract(load(weights, i * 16), top))
        total = add(total, weight)
        store(weights, i * 16, weight)
    for g in range(groups):
        moved = splat(np.float32(0))
        for i in range(rows.shape[0]):
            moved = multiply_add(load(weights, i * 16), splat(extra[i, g]), moved)
        store(along, g * 16, moved)
    for c in range(0, width, BLOCK):
        zero = splat(np.float32(0))
        w, x, y, z = zero, zero, zero, zero
        for g in range(groups):
            moved, start = load(along, g * 16), (groups + g) * width + c
            w = multiply_add(moved, load(step, start), w)
            x = multiply_add(moved, load(step, start + 16), x)
            y = multiply_add(moved, load(step, start + 32), y)
            z = multiply_add(moved, load(step, start + 48), z)
        for i in range(rows.shape[0]):
            weight, start = load(weights, i * 16), rows[i] + c
            w = multiply_add(weight, load(values, start), w)
            x = multiply_add(weight, load(values, start + 16), x)
            y = multiply_add(weight, load(values, start + 32), y)
            z = multiply_add(weight, load(values, start + 48), z)
        store(glimpse, c, divide(w, total))
        store(glimpse, c + 16, divide(x, total))
        store(glimpse, c + 32, divide(y, total))
        store(glimpse, c + 48, divide(z, total))


@njit(forceinline=True)
def _point(rows, pointer, step, extra, glimpse, clip, logits):
    """Eq. 7: the clipped compatibilities of the feasible nodes; what follows them up to a full vector is LOW."""
    width, groups, count = glimpse.shape[0], extra.shape[1], rows.shape[0]
    for i in range(count):
        logits[i] = first(over_columns(_products(glimpse, pointer, rows[i], width), 1))
    for g in range(groups):
        along = first(over_columns(_products(glimpse, step, (2 * groups + g) * width, width), 1))
        for i in range(count):
            logits[i] += along * extra[i, g]
    zero = splat(np.float32(0))
    for i in range(0, count, 16):  # tanh by two powers of which the larger is 1
        twice = add(load(logits, i), load(logits, i))
        falling, rising = exp(subtract(zero, maximum(twice, zero))), exp(subtract(twice, maximum(twice, zero)))
        bent = divide(subtract(rising, falling), add(rising, falling))
        store(logits, i, multiply_add(bent, splat(clip), zero))
    for i in range(count, -(-count // 16) * 16):
        logits[i] = LOW


@njit(forceinline=True)
def _masses(logits, count, top, scale, weights):
    """weights <- exp((logits - top) * scale), and their sum."""
    zero = splat(np.float32(0))
    total = zero
    for i in range(0, count, 16):
        weight = exp(multiply_add(subtract(load(logits, i), splat(top)), splat(scale), zero))
        store(weights, i, weight)
        total = add(total, weight)
    return first(over_columns(total, 1))


@njit(cache=True, nogil=True)
def decode_rows(
    low, high, lanes, order, keys, values, pointer, step, tables, empty, scalar_weights, clip,
    nodes, scalars, feasible, extra, logits_out, temperature, uniform, chosen, log_prob,
):  # fmt: skip
    """One step of solutions low..high, counted through all instances: their logits, or a node for each.

    keys, values, pointer (flat [B, N, width]) and step (flat [3, G, width]) interleaved; tables, empty, scalar_weights
    as in `Cache`, nodes to extra as in `Seen`. With logits_out [B, S, N] it gets the logits; if it is empty, `chosen`
    gets a node wherever it is -1 and log_prob that node's: the likeliest at temperature 0, else by `uniform` [B, S].
    """
    solutions, count = feasible.shape[1], feasible.shape[2]
    width, groups = order.shape[0], extra.shape[3]
    asked = logits_out.shape[0] > 0
    plain = np.empty(tables.shape[3] + 1, np.float32)
    query, glimpse = np.empty(width, np.float32), np.empty(width, np.float32)
    weights, logits = np.empty(count * 16, np.float32), np.zeros(count + 16, np.float32)
    along, features = np.empty(groups * 16, np.float32), np.empty((count, groups), np.float32)
    listed, rows = np.empty(count + 1, np.int64), np.empty(count, np.int64)
    for solution in range(low, high):
        b, s = solution // solutions, solution % solutions
        if not asked and chosen[b, s] >= 0:
            log_prob[b, s] = 0
            continue
        open_nodes = 0
        for n in range(count):  # without a branch
            listed[open_nodes] = n
            open_nodes += int(feasible[b, s, n])
        if not asked and open_nodes == 1:
            chosen[b, s], log_prob[b, s] = listed[0], 0
            continue
        for i in range(open_nodes):
            rows[i] = (b * count + listed[i]) * width
            for g in range(groups):
                features[i, g] = extra[b, s, listed[i], g]
        here = rows[:open_nodes]
        _query(b, s, nodes, scalars, tables, empty, scalar_weights, order, plain, query)
        _glimpse(here, lanes, keys, values, step, features, query, weights, along, glimpse)
        _point(here, pointer, step, features, glimpse, clip, logits)
        if asked:
            for n in range(count):
                logits_out[b, s, n] = -np.inf
            for i in range(open_nodes):
                logits_out[b, s, listed[i]] = logits[i]
            continue
        best = 0
        for i in range(1, open_nodes):
            best = i if logits[i] > logits[best] else best
        top, pick = logits[best], best
        if temperature > 0:
            bar = uniform[b, s] * _masses(logits, open_nodes, top, np.float32(1) / temperature, weights)
            passed = np.float32(0)
            for i in range(open_nodes):
                passed += weights[i]
                if passed > bar:
                    pick = i
                    break
        total = _masses(logits, open_nodes, top, np.float32(1), weights)
        chosen[b, s] = listed[pick]
        log_prob[b, s] = logits[pick] - top - np.log(total)
