"""The decoder's inner loops as Triton kernels; decoder_kernels.py calls them, and says when.

A program holds one instance's (or one head's) keys and a block of queries in registers. No gradient needs an atomic
addition, so results are reproducible. Names in capitals are pointers, or constants that a kernel is compiled for:
H heads of width d, D = H d, K context nodes, C context scalars, G step features, NP the padded number of nodes N.
"""

from __future__ import annotations

import triton
import triton.language as tl

LOGITS, SCORE, LIKELIEST, DRAW = (tl.constexpr(mode) for mode in range(4))


@triton.jit
def _query(TABLES, EMPTY, SCALAR_WEIGHTS, index_0, index_1, scalar, b, columns, N, D, K: tl.constexpr, C: tl.constexpr):
    """One head's columns of the query (eq. 4 and 5): gathered rows and the scalar's projection, float32."""
    base = (b * K) * N * D
    rows = tl.load(TABLES + base + tl.maximum(index_0, 0)[:, None] * D + columns[None, :]).to(tl.float32)
    empty = tl.load(EMPTY + (b * K) * D + columns).to(tl.float32)
    q = tl.where((index_0 < 0)[:, None], empty[None, :], rows)
    if K == 2:
        base += N * D
        rows = tl.load(TABLES + base + tl.maximum(index_1, 0)[:, None] * D + columns[None, :]).to(tl.float32)
        empty = tl.load(EMPTY + (b * K + 1) * D + columns).to(tl.float32)
        q += tl.where((index_1 < 0)[:, None], empty[None, :], rows)
    if C == 1:
        weights = tl.load(SCALAR_WEIGHTS + columns).to(tl.float32)
        q += scalar[:, None] * weights[None, :]
    return q


@triton.jit
def _context(NODES, SCALARS, row, valid, K: tl.constexpr, C: tl.constexpr):
    """The context of a block of queries: up to two node slots and one scalar."""
    index_0 = tl.load(NODES + row * K, mask=valid, other=0)
    index_1 = index_0
    if K == 2:
        index_1 = tl.load(NODES + row * K + 1, mask=valid, other=0)
    scalar = tl.zeros_like(index_0).to(tl.float32)
    if C == 1:
        scalar = tl.load(SCALARS + row, mask=valid, other=0.0).to(tl.float32)
    return index_0, index_1, scalar


@triton.jit
def _softmax(scores, feasible):
    """Weights [R, NP] over the feasible nodes, and the log of each row's denominator, also of an empty row."""
    scores = tl.where(feasible, scores, float("-inf"))
    top = tl.max(scores, 1)
    top = tl.where(top == float("-inf"), 0.0, top)
    weights = tl.exp(scores - top[:, None])
    total = tl.maximum(tl.sum(weights, 1), 1e-30)
    return weights / total[:, None], top + tl.log(total)


@triton.jit
def _settle(
    compatibility, feasible, nodes, row, cells, valid, inside, GIVEN, SEEDS, ACTIONS, NEXT_SEEDS, OUT, SLOPE, clip,
    temperature, MODE: tl.constexpr, SOME_GIVEN: tl.constexpr, KEEP: tl.constexpr,
):  # fmt: skip
    """From the pointer's compatibilities [R, NP] of R queries to their logits, or a node and its log-probability.

    A draw is the largest logit with Gumbel noise; every solution has its own seed, which is another at the next step.
    """
    bent = 2 * tl.sigmoid(2 * compatibility) - 1  # tanh
    logits = tl.where(feasible, clip * bent, float("-inf"))
    if MODE == LOGITS:
        tl.store(OUT + cells, logits, mask=inside)
    else:
        if MODE == SCORE:
            action = tl.load(GIVEN + row, mask=valid, other=0)
        else:
            wanted = logits
            if MODE == DRAW:
                seed = tl.load(SEEDS + row, mask=valid, other=0)
                tl.store(NEXT_SEEDS + row, seed + 1, mask=valid)
                offsets = tl.zeros_like(logits).to(tl.int32) + nodes[None, :]
                uniform = tl.rand(seed[:, None], offsets)
                noise = -tl.log(tl.maximum(-tl.log(uniform), 1e-20))
                wanted = tl.where(feasible, logits / temperature + noise, float("-inf"))
            action = tl.argmax(wanted, 1).to(tl.int64)
            if SOME_GIVEN:
                given = tl.load(GIVEN + row, mask=valid, other=0)
                action = tl.where(given >= 0, given, action)
            tl.store(ACTIONS + row, action, mask=valid)
        chosen = nodes[None, :] == action[:, None]
        top = tl.max(logits, 1)
        top = tl.where(top == float("-inf"), 0.0, top)
        mass = tl.where(feasible, tl.exp(logits - top[:, None]), 0.0)
        total = tl.maximum(tl.sum(mass, 1), 1e-30)
        log_prob = tl.sum(tl.where(chosen & feasible, logits, 0.0), 1) - top - tl.log(total)
        if KEEP:
            slope = (tl.where(chosen, 1.0, 0.0) - mass / total[:, None]) * clip * (1 - bent * bent)
            slope = tl.where(feasible, slope, 0.0)
            tl.store(SLOPE + cells, slope.to(SLOPE.dtype.element_ty), mask=inside)
        if SOME_GIVEN and MODE != SCORE:
            log_prob = tl.where(given >= 0, 0.0, log_prob)
        tl.store(OUT + row, log_prob, mask=valid)


@triton.jit
def decode(
    KEYS, VALUES, POINTER, TABLES, EMPTY, SCALAR_WEIGHTS, STEP_WEIGHTS, NODES, SCALARS, FEASIBLE, EXTRA, GIVEN,
    SEEDS, ACTIONS, NEXT_SEEDS, OUT, SLOPE, MASS, Q, N, clip, temperature,
    H: tl.constexpr, d: tl.constexpr, K: tl.constexpr, C: tl.constexpr, G: tl.constexpr,
    NP: tl.constexpr, BQ: tl.constexpr, MODE: tl.constexpr, SOME_GIVEN: tl.constexpr, KEEP: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    """A block of BQ queries of one instance: their logits, or a node for each, or the score of given nodes.

    OUT receives logits or log-probabilities. With KEEP the kernel also leaves what the gradient needs: the slope
    d log p / d compatibility of the last layer, and the log of each head's softmax denominator.
    """
    D: tl.constexpr = H * d
    b = tl.program_id(0).to(tl.int64)
    queries = tl.program_id(1) * BQ + tl.arange(0, BQ)
    nodes = tl.arange(0, NP)
    within = tl.arange(0, d)
    valid, real = queries < Q, nodes < N
    row = b * Q + queries
    cells = row[:, None] * N + nodes[None, :]
    inside = valid[:, None] & real[None, :]
    feasible = tl.load(FEASIBLE + cells, mask=inside, other=0) != 0
    index_0, index_1, scalar = _context(NODES, SCALARS, row, valid, K, C)
    if G == 1:
        extra = tl.load(EXTRA + cells, mask=inside, other=0.0).to(tl.float32)
        drift = tl.zeros((BQ,), tl.float32)
    compatibility = tl.zeros((BQ, NP), tl.float32)
    for h in tl.range(0, H, loop_unroll_factor=1):
        columns = h * d + within
        by_head = ((b * H + h) * N + nodes[:, None]) * d + within[None, :]
        k = tl.load(KEYS + by_head, mask=real[:, None], other=0.0)
        v = tl.load(VALUES + by_head, mask=real[:, None], other=0.0)
        q = _query(TABLES, EMPTY, SCALAR_WEIGHTS, index_0, index_1, scalar, b, columns, N, D, K, C)
        scores = tl.dot(q.to(k.dtype), tl.trans(k), input_precision=PRECISION)
        if G == 1:
            into_key = tl.load(STEP_WEIGHTS + columns).to(tl.float32)
            scores += tl.sum(q * into_key[None, :], 1)[:, None] * extra
        weights, mass = _softmax(scores, feasible)
        if KEEP:
            tl.store(MASS + row * H + h, mass, mask=valid)
        glimpse = tl.dot(weights.to(v.dtype), v, input_precision=PRECISION)
        if G == 1:
            into_value = tl.load(STEP_WEIGHTS + D + columns).to(tl.float32)
            into_pointer = tl.load(STEP_WEIGHTS + 2 * D + columns).to(tl.float32)
            glimpse += tl.sum(weights * extra, 1)[:, None] * into_value[None, :]
            drift += tl.sum(glimpse * into_pointer[None, :], 1)
        p = tl.load(POINTER + (b * N + nodes[:, None]) * D + columns[None, :], mask=real[:, None], other=0.0)
        compatibility += tl.dot(glimpse.to(p.dtype), tl.trans(p), input_precision=PRECISION)
    if G == 1:
        compatibility += drift[:, None] * extra
    _settle(
        compatibility, feasible, nodes, row, cells, valid, inside, GIVEN, SEEDS, ACTIONS, NEXT_SEEDS, OUT, SLOPE, clip,
        temperature, MODE, SOME_GIVEN, KEEP,
    )  # fmt: skip


@triton.jit
def decode_one(
    KEYS, VALUES, POINTER, TABLES, EMPTY, SCALAR_WEIGHTS, STEP_WEIGHTS, NODES, SCALARS, FEASIBLE, EXTRA, GIVEN,
    SEEDS, ACTIONS, NEXT_SEEDS, OUT, SLOPE, MASS, Q, N, clip, temperature,
    H: tl.constexpr, d: tl.constexpr, K: tl.constexpr, C: tl.constexpr, G: tl.constexpr,
    NP: tl.constexpr, ROWS: tl.constexpr, MODE: tl.constexpr, SOME_GIVEN: tl.constexpr, KEEP: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    """`decode` for one query, all heads at once, reading the feasible nodes only.

    The heads are the rows of the matrix products: row h of the query is zero outside the columns of head h.
    """
    D: tl.constexpr = H * d
    b = tl.program_id(0).to(tl.int64)
    row = b * Q + tl.program_id(1)
    nodes = tl.arange(0, NP)
    columns = tl.arange(0, D)
    heads = tl.arange(0, ROWS)
    real = nodes < N
    feasible = tl.load(FEASIBLE + row * N + nodes, mask=real, other=0) != 0
    own = heads[:, None] == columns[None, :] // d  # [ROWS, D]: the columns of each head
    q = tl.zeros((D,), tl.float32)
    for slot in tl.static_range(K):
        index = tl.load(NODES + row * K + slot)
        taken = tl.load(TABLES + ((b * K + slot) * N + tl.maximum(index, 0)) * D + columns).to(tl.float32)
        empty = tl.load(EMPTY + (b * K + slot) * D + columns).to(tl.float32)
        q += tl.where(index < 0, empty, taken)
    if C == 1:
        q += tl.load(SCALARS + row).to(tl.float32) * tl.load(SCALAR_WEIGHTS + columns).to(tl.float32)
    q_by_head = tl.where(own, q[None, :], 0.0)
    by_head = ((b * H + columns[None, :] // d) * N + nodes[:, None]) * d + columns[None, :] % d
    k = tl.load(KEYS + by_head, mask=feasible[:, None], other=0.0)
    v = tl.load(VALUES + by_head, mask=feasible[:, None], other=0.0)
    p = tl.load(POINTER + (b * N + nodes[:, None]) * D + columns[None, :], mask=feasible[:, None], other=0.0)
    scores = tl.dot(q_by_head.to(k.dtype), tl.trans(k), input_precision=PRECISION)  # [ROWS, NP]
    if G == 1:
        extra = tl.load(EXTRA + row * N + nodes, mask=real, other=0.0).to(tl.float32)
        into_key = tl.load(STEP_WEIGHTS + columns).to(tl.float32)
        scores += tl.sum(q_by_head * into_key[None, :], 1)[:, None] * extra[None, :]
    weights, mass = _softmax(scores, feasible[None, :])
    if KEEP:
        tl.store(MASS + row * H + heads, mass, mask=heads < H)
    glimpse = tl.dot(weights.to(v.dtype), v, input_precision=PRECISION)  # [ROWS, D]
    if G == 1:
        into_value = tl.load(STEP_WEIGHTS + D + columns).to(tl.float32)
        glimpse += tl.sum(weights * extra[None, :], 1)[:, None] * into_value[None, :]
    glimpse = tl.where(own, glimpse, 0.0)
    compatibility = tl.sum(tl.dot(glimpse.to(p.dtype), tl.trans(p), input_precision=PRECISION), 0)
    if G == 1:
        into_pointer = tl.load(STEP_WEIGHTS + 2 * D + columns).to(tl.float32)
        compatibility += tl.sum(glimpse * into_pointer[None, :]) * extra
    single = tl.arange(0, 1)
    _settle(
        compatibility[None, :], feasible[None, :], nodes, row + single, row * N + nodes[None, :], single == 0,
        real[None, :], GIVEN, SEEDS, ACTIONS, NEXT_SEEDS, OUT, SLOPE, clip, temperature, MODE, SOME_GIVEN, KEEP,
    )  # fmt: skip


@triton.jit
def gradient(
    KEYS, VALUES, POINTER, TABLES, EMPTY, SCALAR_WEIGHTS, STEP_WEIGHTS, NODES, SCALARS, FEASIBLE, EXTRA,
    SLOPE, MASS, UPSTREAM, D_KEYS, D_VALUES, D_POINTER, D_QUERY, D_SCALAR, D_STEP, Q, N,
    H: tl.constexpr, d: tl.constexpr, K: tl.constexpr, C: tl.constexpr, G: tl.constexpr,
    NP: tl.constexpr, BQ: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """One head of one instance: gradients of its keys, values and pointer, summed over all queries in
    registers, and of its part of every query."""
    D: tl.constexpr = H * d
    b = tl.program_id(0).to(tl.int64)
    h = tl.program_id(1)
    nodes = tl.arange(0, NP)
    within = tl.arange(0, d)
    real = nodes < N
    columns = h * d + within
    by_head = ((b * H + h) * N + nodes[:, None]) * d + within[None, :]
    by_node = (b * N + nodes[:, None]) * D + columns[None, :]
    k = tl.load(KEYS + by_head, mask=real[:, None], other=0.0)
    v = tl.load(VALUES + by_head, mask=real[:, None], other=0.0)
    p = tl.load(POINTER + by_node, mask=real[:, None], other=0.0)
    d_k = tl.zeros((NP, d), tl.float32)
    d_v = tl.zeros((NP, d), tl.float32)
    d_p = tl.zeros((NP, d), tl.float32)
    if C == 1:
        d_scalar = tl.zeros((d,), tl.float32)
    if G == 1:
        into_key = tl.load(STEP_WEIGHTS + columns).to(tl.float32)
        into_value = tl.load(STEP_WEIGHTS + D + columns).to(tl.float32)
        into_pointer = tl.load(STEP_WEIGHTS + 2 * D + columns).to(tl.float32)
        d_into_key = tl.zeros((d,), tl.float32)
        d_into_value = tl.zeros((d,), tl.float32)
        d_into_pointer = tl.zeros((d,), tl.float32)
    for start in range(0, Q, BQ):
        queries = start + tl.arange(0, BQ)
        valid = queries < Q
        row = b * Q + queries
        cells = row[:, None] * N + nodes[None, :]
        inside = valid[:, None] & real[None, :]
        feasible = tl.load(FEASIBLE + cells, mask=inside, other=0) != 0
        index_0, index_1, scalar = _context(NODES, SCALARS, row, valid, K, C)
        q = _query(TABLES, EMPTY, SCALAR_WEIGHTS, index_0, index_1, scalar, b, columns, N, D, K, C)
        # What comes from above scales whole rows: it is applied to the narrow [BQ, d] sides only.
        upstream = tl.load(UPSTREAM + row, mask=valid, other=0.0)[:, None]
        slope = tl.load(SLOPE + cells, mask=inside, other=0.0)
        d_glimpse = tl.dot(slope, p, input_precision=PRECISION) * upstream
        scores = tl.dot(q.to(k.dtype), tl.trans(k), input_precision=PRECISION)
        if G == 1:
            extra = tl.load(EXTRA + cells, mask=inside, other=0.0).to(tl.float32)
            pulled = tl.sum(slope.to(tl.float32) * extra, 1)[:, None] * upstream
            d_glimpse += pulled * into_pointer[None, :]
            scores += tl.sum(q * into_key[None, :], 1)[:, None] * extra
        mass = tl.load(MASS + row * H + h, mask=valid, other=0.0)
        weights = tl.where(feasible, tl.exp(scores - mass[:, None]), 0.0)
        glimpse = tl.dot(weights.to(v.dtype), v, input_precision=PRECISION)
        if G == 1:
            moved = tl.sum(weights * extra, 1)
            glimpse += moved[:, None] * into_value[None, :]
            d_into_pointer += tl.sum(pulled * glimpse, 0)
            d_into_value += tl.sum(moved[:, None] * d_glimpse, 0)
        d_p += tl.dot(tl.trans(slope), (glimpse * upstream).to(p.dtype), input_precision=PRECISION)
        d_v += tl.dot(tl.trans(weights.to(p.dtype)), d_glimpse.to(p.dtype), input_precision=PRECISION)
        d_weights = tl.dot(d_glimpse.to(v.dtype), tl.trans(v), input_precision=PRECISION)
        if G == 1:
            d_weights += tl.sum(d_glimpse * into_value[None, :], 1)[:, None] * extra
        # sum_n w_n dw_n, over nodes, equals the glimpse's product with its gradient, over columns.
        d_scores = weights * (d_weights - tl.sum(d_glimpse * glimpse, 1)[:, None])
        d_q = tl.dot(d_scores.to(k.dtype), k, input_precision=PRECISION)
        if G == 1:
            tilted = tl.sum(d_scores * extra, 1)
            d_q += tilted[:, None] * into_key[None, :]
            d_into_key += tl.sum(tilted[:, None] * q, 0)
        d_k += tl.dot(tl.trans(d_scores.to(k.dtype)), q.to(k.dtype), input_precision=PRECISION)
        if C == 1:
            d_scalar += tl.sum(scalar[:, None] * d_q, 0)
        tl.store(D_QUERY + row[:, None] * D + columns[None, :], d_q.to(k.dtype), mask=valid[:, None])
    kind = D_KEYS.dtype.element_ty
    tl.store(D_KEYS + by_head, d_k.to(kind), mask=real[:, None])
    tl.store(D_VALUES + by_head, d_v.to(kind), mask=real[:, None])
    tl.store(D_POINTER + by_node, d_p.to(kind), mask=real[:, None])
    if C == 1:
        tl.store(D_SCALAR + b * D + columns, d_scalar)
    if G == 1:
        tl.store(D_STEP + (b * 3) * D + columns, d_into_key)
        tl.store(D_STEP + (b * 3 + 1) * D + columns, d_into_value)
        tl.store(D_STEP + (b * 3 + 2) * D + columns, d_into_pointer)


@triton.jit
def table_gradient(
    NODES, D_QUERY, D_TABLES, D_EMPTY, Q, N,
    D: tl.constexpr, K: tl.constexpr, NP: tl.constexpr, BQ: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """One context slot of one instance: a query's gradient goes to the row it was gathered from."""
    b = tl.program_id(0).to(tl.int64)
    slot = tl.program_id(1)
    nodes = tl.arange(0, NP)
    columns = tl.arange(0, D)
    rows = tl.zeros((NP, D), tl.float32)
    empty = tl.zeros((D,), tl.float32)
    for start in range(0, Q, BQ):
        queries = start + tl.arange(0, BQ)
        valid = queries < Q
        row = b * Q + queries
        index = tl.load(NODES + row * K + slot, mask=valid, other=-2)
        d_q = tl.load(D_QUERY + row[:, None] * D + columns[None, :], mask=valid[:, None], other=0.0)
        taken = tl.where(nodes[:, None] == index[None, :], 1.0, 0.0).to(d_q.dtype)
        rows += tl.dot(taken, d_q, input_precision=PRECISION)
        empty += tl.sum(tl.where((index == -1)[:, None], d_q.to(tl.float32), 0.0), 0)
    table = ((b * K + slot) * N + nodes[:, None]) * D + columns[None, :]
    tl.store(D_TABLES + table, rows.to(D_TABLES.dtype.element_ty), mask=(nodes < N)[:, None])
    tl.store(D_EMPTY + (b * K + slot) * D + columns, empty)
