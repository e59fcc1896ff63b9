"""What a CPU does column by column to a piece of rows, in numba: normalisation, its sums and its gradient, and relu.

One call each, and without Python's lock: threads that take turns at many small library calls wait for one another.
All arrays are flat, [rows, width] where nothing else is said; the width is a multiple of sixteen, a vector.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from routelearn.policies.kernels.cpu.vectors import (
    LANES,
    add,
    divide,
    load,
    maximum,
    multiply_add,
    root,
    splat,
    store,
    subtract,
    where_positive,
)

EVERY = 32  # of so many rows one makes up the rough mean


@njit(cache=True, nogil=True)
def add_moments(rows, width, x, y, out):
    """y += x; then out [3, width] of y: a rough mean, and the sums of distances to it and of their squares.

    Distances, so that little is lost in single precision where the mean is far from zero.
    """
    zero = splat(np.float32(0))
    share = splat(np.float32(1) / np.float32((rows + EVERY - 1) // EVERY))
    for c in range(0, width, LANES):
        rough = zero
        for at in range(c, rows * width, EVERY * width):
            rough = multiply_add(add(load(x, at), load(y, at)), share, rough)
        plain, squares = zero, zero
        for at in range(c, rows * width, width):
            value = add(load(x, at), load(y, at))
            store(y, at, value)
            value = subtract(value, rough)
            plain = add(plain, value)
            squares = multiply_add(value, value, squares)
        store(out, c, rough)
        store(out, width + c, plain)
        store(out, 2 * width + c, squares)


@njit(cache=True, nogil=True)
def add_normal(batch, nodes, width, x, y, weight, bias, eps):
    """y = the normalisation of x + y over the nodes of each instance, times weight plus bias; [batch, nodes, width]."""
    zero, share = splat(np.float32(0)), splat(np.float32(1) / np.float32(nodes))
    least, one = splat(np.float32(eps)), splat(np.float32(1))
    for b in range(batch):
        for c in range(0, width, LANES):
            low, high = b * nodes * width + c, (b + 1) * nodes * width
            total = zero
            for at in range(low, high, width):
                value = add(load(x, at), load(y, at))
                store(y, at, value)
                total = add(total, value)
            mean = multiply_add(total, share, zero)
            squares = zero
            for at in range(low, high, width):
                away = subtract(load(y, at), mean)
                squares = multiply_add(away, away, squares)
            deviation = root(multiply_add(squares, share, least))
            factor = multiply_add(load(weight, c), divide(one, deviation), zero)
            offset = load(bias, c)
            for at in range(low, high, width):
                store(y, at, multiply_add(subtract(load(y, at), mean), factor, offset))


@njit(cache=True, nogil=True)
def add_scaled(rows, width, x, y, factor, offset):
    """y = (x + y) factor + offset, column by column."""
    for row in range(0, rows * width, width):
        for c in range(0, width, LANES):
            value = add(load(x, row + c), load(y, row + c))
            store(y, row + c, multiply_add(value, load(factor, c), load(offset, c)))


@njit(cache=True, nogil=True)
def add_relu(rows, width, bias, y):
    """y = max(y + bias, 0)."""
    zero = splat(np.float32(0))
    for row in range(0, rows * width, width):
        for c in range(0, width, LANES):
            store(y, row + c, maximum(add(load(y, row + c), load(bias, c)), zero))


@njit(cache=True, nogil=True)
def product_sums(rows, width, a, b, b_shift, out):
    """out [2, width]: the sums over rows of a and of a (b - b_shift)."""
    zero = splat(np.float32(0))
    for c in range(0, width, LANES):
        shift = load(b_shift, c)
        plain, product = zero, zero
        for at in range(c, rows * width, width):
            value = load(a, at)
            plain = add(plain, value)
            product = multiply_add(value, subtract(load(b, at), shift), product)
        store(out, c, plain)
        store(out, width + c, product)


@njit(cache=True, nogil=True)
def scaled(rows, width, a, factor, offset, out):
    """out = a factor + offset, column by column."""
    for row in range(0, rows * width, width):
        for c in range(0, width, LANES):
            store(out, row + c, multiply_add(load(a, row + c), load(factor, c), load(offset, c)))


@njit(cache=True, nogil=True)
def combined(rows, width, out, a, b, p, q, r):
    """out = a p + b q + r, column by column."""
    for row in range(0, rows * width, width):
        for c in range(0, width, LANES):
            other = multiply_add(load(b, row + c), load(q, c), load(r, c))
            store(out, row + c, multiply_add(load(a, row + c), load(p, c), other))


@njit(cache=True, nogil=True)
def relu_gradient(rows, width, result, gradient, sums):
    """Clear the gradient where the result is not positive; add its columns to sums [width]."""
    for row in range(0, rows * width, width):
        for c in range(0, width, LANES):
            kept = where_positive(load(result, row + c), load(gradient, row + c))
            store(gradient, row + c, kept)
            store(sums, c, add(load(sums, c), kept))
