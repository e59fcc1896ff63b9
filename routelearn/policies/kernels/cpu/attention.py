"""The encoder's loops on a CPU, in numba: self-attention and its gradient (tours are too short for the library's).

A head is sixteen columns wide, one vector: a node's query, key or value of one head is a single value here. All arrays
are flat; a head's scores [N, N] live in a scratch array that never leaves the processor's cache.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from routelearn.policies.kernels.cpu.vectors import (
    LANES,
    add,
    exp,
    first,
    load,
    maximum,
    multiply_add,
    over_columns,
    splat,
    spread,
    store,
    subtract,
    swap1,
    swap2,
    swap4,
    swap8,
)

LOW = np.float32(-1e30)  # a score whose weight is nothing
ROWS = 4  # computed side by side: each vector that is read serves all of them


@njit(forceinline=True)
def _transpose(source, start, stride, count, padded, out):
    """`count` rows of sixteen, `stride` apart, as sixteen rows of `padded`; what lies beyond `count` stays zero."""
    for n in range(count):
        for c in range(LANES):
            out[c * padded + n] = source[start + n * stride + c]


@njit(forceinline=True)
def _compare(a, start, stride, transposed, count, padded, out):
    """out[i, j] = a_i . b_j for all nodes, from the transposed b; rows of `out` are `padded` long."""
    for i in range(0, count, ROWS):
        i1, i2, i3 = min(i + 1, count - 1), min(i + 2, count - 1), min(i + 3, count - 1)
        p0, p1, p2, p3 = start + i * stride, start + i1 * stride, start + i2 * stride, start + i3 * stride
        for j in range(0, padded, LANES):
            zero = splat(np.float32(0))
            s0, s1, s2, s3 = zero, zero, zero, zero
            for c in range(LANES):
                column = load(transposed, c * padded + j)
                s0 = multiply_add(spread(a, p0 + c), column, s0)
                s1 = multiply_add(spread(a, p1 + c), column, s1)
                s2 = multiply_add(spread(a, p2 + c), column, s2)
                s3 = multiply_add(spread(a, p3 + c), column, s3)
            store(out, i * padded + j, s0)
            store(out, i1 * padded + j, s1)
            store(out, i2 * padded + j, s2)
            store(out, i3 * padded + j, s3)


@njit(forceinline=True)
def _mix(weights, row, column, source, start, stride, count, factors, out, out_start, out_stride):
    """out_i = factors[i] * sum over j of weights[i * row + j * column] * source_j."""
    for i in range(0, count, ROWS):
        i1, i2, i3 = min(i + 1, count - 1), min(i + 2, count - 1), min(i + 3, count - 1)
        zero = splat(np.float32(0))
        s0, s1, s2, s3 = zero, zero, zero, zero
        for j in range(count):
            value = load(source, start + j * stride)
            at = j * column
            s0 = multiply_add(spread(weights, i * row + at), value, s0)
            s1 = multiply_add(spread(weights, i1 * row + at), value, s1)
            s2 = multiply_add(spread(weights, i2 * row + at), value, s2)
            s3 = multiply_add(spread(weights, i3 * row + at), value, s3)
        store(out, out_start + i * out_stride, multiply_add(spread(factors, i), s0, zero))
        store(out, out_start + i1 * out_stride, multiply_add(spread(factors, i1), s1, zero))
        store(out, out_start + i2 * out_stride, multiply_add(spread(factors, i2), s2, zero))
        store(out, out_start + i3 * out_stride, multiply_add(spread(factors, i3), s3, zero))


@njit(forceinline=True)
def _weigh(scores, count, padded, scale, outside, inverse):
    """Softmax weights in place of the scores, before they are divided by their sums, and one over those sums."""
    zero, factor = splat(np.float32(0)), splat(scale)
    for i in range(count):
        row = i * padded
        highest = splat(LOW)
        last = padded - LANES
        store(scores, row + last, add(load(scores, row + last), load(outside, 0)))
        for j in range(0, padded, LANES):
            highest = maximum(highest, load(scores, row + j))
        highest = maximum(highest, swap8(highest))
        highest = maximum(highest, swap4(highest))
        highest = maximum(highest, swap2(highest))
        highest = maximum(highest, swap1(highest))
        total = zero
        for j in range(0, padded, LANES):
            weight = exp(multiply_add(subtract(load(scores, row + j), highest), factor, zero))
            store(scores, row + j, weight)
            total = add(total, weight)
        total = over_columns(total, 1)
        inverse[i] = np.float32(1) / first(total)


@njit(forceinline=True)
def _scratch(count):
    """Room for one head: padded length, two transposed sides, two score matrices, what to add to the last block."""
    padded = (count + LANES - 1) // LANES * LANES
    outside = np.zeros(LANES, np.float32)
    outside[count - padded + LANES :] = LOW
    sides, scores = np.zeros((2, LANES * padded), np.float32), np.empty((2, count * padded), np.float32)
    return padded, sides[0], sides[1], scores[0], scores[1], outside


@njit(cache=True, nogil=True)
def attend(batch, count, heads, scale, qkv, out):
    """qkv [batch, count, 3 D] -> out [batch, count, D], both flat; D = 16 heads."""
    width = heads * LANES
    triple = 3 * width
    padded, keys, _, scores, _, outside = _scratch(count)
    inverse = np.empty(count, np.float32)
    for b in range(batch):
        for h in range(heads):
            q = b * count * triple + h * LANES
            k, v = q + width, q + 2 * width
            _transpose(qkv, k, triple, count, padded, keys)
            _compare(qkv, q, triple, keys, count, padded, scores)
            _weigh(scores, count, padded, scale, outside, inverse)
            _mix(scores, padded, 1, qkv, v, triple, count, inverse, out, b * count * width + h * LANES, width)


@njit(cache=True, nogil=True)
def attend_gradient(batch, count, heads, scale, qkv, out, d_out, d_qkv):
    """The gradient of `attend`, from its input, its output and the gradient of that; the weights are computed again."""
    width = heads * LANES
    triple = 3 * width
    padded, keys, values, weights, d_scores, outside = _scratch(count)
    inverse, ones = np.empty(count, np.float32), np.ones(count, np.float32)
    zero = splat(np.float32(0))
    for b in range(batch):
        for h in range(heads):
            q, own = b * count * triple + h * LANES, b * count * width + h * LANES
            k, v = q + width, q + 2 * width
            _transpose(qkv, k, triple, count, padded, keys)
            _transpose(qkv, v, triple, count, padded, values)
            _compare(qkv, q, triple, keys, count, padded, weights)
            _weigh(weights, count, padded, scale, outside, inverse)
            _compare(d_out, own, width, values, count, padded, d_scores)
            for i in range(count):
                # sum_n w_n dw_n, over nodes, equals the output's product with its gradient, over columns.
                along = multiply_add(load(out, own + i * width), load(d_out, own + i * width), zero)
                along = over_columns(along, 1)
                share, slope = splat(inverse[i]), splat(scale)
                for j in range(i * padded, (i + 1) * padded, LANES):
                    weight = multiply_add(load(weights, j), share, zero)
                    store(weights, j, weight)
                    change = multiply_add(subtract(load(d_scores, j), along), weight, zero)
                    store(d_scores, j, multiply_add(change, slope, zero))
            _mix(weights, 1, padded, d_out, own, width, count, ones, d_qkv, v, triple)
            _mix(d_scores, padded, 1, qkv, k, triple, count, ones, d_qkv, q, triple)
            _mix(d_scores, 1, padded, qkv, q, triple, count, ones, d_qkv, k, triple)
