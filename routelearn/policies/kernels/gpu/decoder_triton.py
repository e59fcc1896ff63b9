"""The decoder's inner loops as Triton kernels; decoder.py calls them, and says when.

A program holds one instance's (or one head's) keys and a block of queries in registers. No gradient needs an atomic
addition, so results are reproducible. Names in capitals are pointers, or constants that a kernel is compiled for:
H heads of width d, D = H d, K context nodes, C context scalars, G step features, NP the padded number of nodes N.

What a rollout keeps for the gradient of its choices: for every query the slopes d log p / d compatibility of the nodes
(PITCH numbers, a multiple of 16, so that memory delivers many at once; zero means not feasible), the log of each head's
softmax denominator (MASS), and the glimpse.

A step feature g adds w g to keys, values and pointer keys (eq. 23). Its three w stand in a row after the last node, one
row a feature, so that matrix products with nodes bring those with w along: a query's score there is q w, by which g
enters the others; with sum_n weight_n g_n as its weight, the glimpse has what g adds to values; and backwards the same,
with slopes too.
"""

# mypy: disable-error-code="assignment"
# Tuples grow in unrolled loops here: Triton's compiler gives each its type as it goes.

from __future__ import annotations

import triton
import triton.language as tl

TINY = tl.constexpr(1e-30)  # a slope that is not zero
LOGITS, SCORE, LIKELIEST, DRAW = (tl.constexpr(mode) for mode in range(4))


@triton.jit
def _query(TABLES, EMPTY, SCALAR_WEIGHTS, indices, scalars, b, columns, N, D, K: tl.constexpr, C: tl.constexpr):
    """One head's columns of the query (eq. 4 and 5): gathered rows and the scalars' projections, float32."""
    for slot in tl.static_range(K):
        index = indices[slot]
        own = TABLES + (b * K + slot) * N * D
        rows = tl.load(own + tl.maximum(index, 0)[:, None] * D + columns[None, :]).to(tl.float32)
        empty = tl.load(EMPTY + (b * K + slot) * D + columns).to(tl.float32)
        part = tl.where((index < 0)[:, None], empty[None, :], rows)
        if slot == 0:
            q = part
        else:
            q += part
    for c in tl.static_range(C):
        q += scalars[c][:, None] * tl.load(SCALAR_WEIGHTS + c * D + columns).to(tl.float32)[None, :]
    return q


@triton.jit
def _context(NODES, SCALARS, row, valid, K: tl.constexpr, C: tl.constexpr):
    """The context of a block of queries: a tuple of node slots and one of scalars."""
    indices = ()
    for slot in tl.static_range(K):
        indices = indices + (tl.load(NODES + row * K + slot, mask=valid, other=0).to(tl.int32),)
    scalars = ()
    for c in tl.static_range(C):
        scalars = scalars + (tl.load(SCALARS + row * C + c, mask=valid, other=0.0).to(tl.float32),)
    return indices, scalars


@triton.jit
def _nodes(HELD, STEP_WEIGHTS, own, real, nodes, N, D, columns, G: tl.constexpr):
    """What a cache holds of the nodes, and in the rows after the last what the step features' weights add to it."""
    rows = tl.load(HELD + own, mask=real[:, None], other=0.0)
    for g in tl.static_range(G):
        rows = tl.where((nodes == N + g)[:, None], tl.load(STEP_WEIGHTS + g * D + columns)[None, :], rows)
    return rows


@triton.jit
def _extras(EXTRA, cells, inside, plane, kind: tl.constexpr, G: tl.constexpr):
    """The step features of a block of queries, one [R, NP] each, rounded as the keys are; 0 beyond the nodes."""
    extras = ()
    for g in tl.static_range(G):
        extras = extras + (tl.load(EXTRA + g * plane + cells, mask=inside, other=0.0).to(kind).to(tl.float32),)
    return extras


@triton.jit
def _add_features(scores, extras, nodes, N, G: tl.constexpr):
    """Scores [R, NP] with what step features add to them: each feature times the score of its weights' row."""
    for g in tl.static_range(G):
        along = tl.sum(tl.where((nodes == N + g)[None, :], scores, 0.0), 1)[:, None]
        scores += along * extras[g]
    return scores


@triton.jit
def _sum_features(weights, extras, nodes, N, G: tl.constexpr):
    """Weights [R, NP] with, in the row of each feature's weights, the sum over nodes of weight times feature."""
    for g in tl.static_range(G):
        along = tl.sum(weights * extras[g], 1)[:, None]
        weights = tl.where((nodes == N + g)[None, :], along, weights)
    return weights


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
    compatibility, extras, feasible, nodes, row, valid, GIVEN, SEEDS, ACTIONS, NEXT_SEEDS, OUT, SLOPE, N, PITCH, clip,
    temperature, G: tl.constexpr, MODE: tl.constexpr, SOME_GIVEN: tl.constexpr, KEEP: tl.constexpr,
):  # fmt: skip
    """From the pointer's compatibilities [R, NP] of R queries to their logits, or a node and its log-probability.

    A draw is the largest logit with Gumbel noise; every solution has its own seed, which is another at the next step.
    """
    bent = 2 * tl.sigmoid(2 * compatibility) - 1  # tanh
    logits = tl.where(feasible, clip * bent, float("-inf"))
    if MODE == LOGITS:
        tl.store(OUT + row[:, None] * N + nodes[None, :], logits, mask=valid[:, None] & (nodes < N)[None, :])
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
            slope = tl.where(feasible, tl.where(tl.abs(slope) < TINY, TINY, slope), 0.0)
            slope = _sum_features(slope, extras, nodes, N, G)
            cells = row[:, None] * PITCH + nodes[None, :]
            tl.store(SLOPE + cells, slope.to(SLOPE.dtype.element_ty), mask=valid[:, None] & (nodes < PITCH)[None, :])
        if SOME_GIVEN and MODE != SCORE:
            log_prob = tl.where(given >= 0, 0.0, log_prob)
        tl.store(OUT + row, log_prob, mask=valid)


@triton.jit
def decode(
    KEYS, VALUES, POINTER, TABLES, EMPTY, SCALAR_WEIGHTS, STEP_WEIGHTS, NODES, SCALARS, FEASIBLE, EXTRA, GIVEN,
    SEEDS, ACTIONS, NEXT_SEEDS, OUT, SLOPE, MASS, GLIMPSE, Q, N, PITCH, clip, temperature,
    H: tl.constexpr, d: tl.constexpr, K: tl.constexpr, C: tl.constexpr, G: tl.constexpr,
    NP: tl.constexpr, BQ: tl.constexpr, MODE: tl.constexpr, SOME_GIVEN: tl.constexpr, KEEP: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    """A block of BQ queries of one instance: their logits, or a node for each, or the score of given nodes.

    OUT receives logits or log-probabilities; with KEEP the kernel also leaves what the gradient needs.
    """
    D: tl.constexpr = H * d
    b = tl.program_id(0).to(tl.int64)
    queries = tl.program_id(1) * BQ + tl.arange(0, BQ)
    nodes = tl.arange(0, NP)
    within = tl.arange(0, d)
    valid, real = queries < Q, nodes < N
    row, first = b * Q + queries, b * N * D
    cells = row[:, None] * N + nodes[None, :]
    inside = valid[:, None] & real[None, :]
    feasible = tl.load(FEASIBLE + cells, mask=inside, other=0) != 0
    indices, scalars = _context(NODES, SCALARS, row, valid, K, C)
    plane = tl.num_programs(0).to(tl.int64) * Q * N
    extras = _extras(EXTRA, cells, inside, plane, KEYS.dtype.element_ty, G)
    compatibility = tl.zeros((BQ, NP), tl.float32)
    for h in tl.range(0, H, loop_unroll_factor=1):
        columns = h * d + within
        own = first + nodes[:, None] * D + columns[None, :]
        k = _nodes(KEYS, STEP_WEIGHTS, own, real, nodes, N, D, columns, G)
        v = _nodes(VALUES, STEP_WEIGHTS + G * D, own, real, nodes, N, D, columns, G)
        q = _query(TABLES, EMPTY, SCALAR_WEIGHTS, indices, scalars, b, columns, N, D, K, C)
        scores = tl.dot(q.to(k.dtype), tl.trans(k), input_precision=PRECISION)
        weights, mass = _softmax(_add_features(scores, extras, nodes, N, G), feasible)
        if KEEP:
            tl.store(MASS + row * H + h, mass, mask=valid)
        weights = _sum_features(weights, extras, nodes, N, G)
        glimpse = tl.dot(weights.to(v.dtype), v, input_precision=PRECISION)
        p = _nodes(POINTER, STEP_WEIGHTS + 2 * G * D, own, real, nodes, N, D, columns, G)
        compatibility += tl.dot(glimpse.to(p.dtype), tl.trans(p), input_precision=PRECISION)
        if KEEP:
            tl.store(GLIMPSE + row[:, None] * D + columns[None, :], glimpse.to(p.dtype), mask=valid[:, None])
    compatibility = _add_features(compatibility, extras, nodes, N, G)
    _settle(
        compatibility, extras, feasible, nodes, row, valid, GIVEN, SEEDS, ACTIONS, NEXT_SEEDS, OUT, SLOPE, N, PITCH,
        clip, temperature, G, MODE, SOME_GIVEN, KEEP,
    )  # fmt: skip


@triton.jit
def decode_one(
    KEYS, VALUES, POINTER, TABLES, EMPTY, SCALAR_WEIGHTS, STEP_WEIGHTS, NODES, SCALARS, FEASIBLE, EXTRA, GIVEN,
    SEEDS, ACTIONS, NEXT_SEEDS, OUT, SLOPE, MASS, GLIMPSE, Q, N, PITCH, clip, temperature,
    H: tl.constexpr, d: tl.constexpr, K: tl.constexpr, C: tl.constexpr, G: tl.constexpr,
    NP: tl.constexpr, MODE: tl.constexpr, SOME_GIVEN: tl.constexpr, KEEP: tl.constexpr,
):  # fmt: skip
    """`decode` for one query, all heads at once, reading the feasible nodes only.

    With one query there is no matrix product to speak of: every number read is used once, so that memory is the bound,
    and products are summed where they were read. Rounded as in `decode`, whose matrix units take the keys' precision.
    """
    D: tl.constexpr = H * d
    kind = KEYS.dtype.element_ty
    b = tl.program_id(0).to(tl.int64)
    row = b * Q + tl.program_id(1)
    nodes = tl.arange(0, NP)
    columns = tl.arange(0, D)
    heads = tl.arange(0, H)
    real = nodes < N
    feasible = tl.load(FEASIBLE + row * N + nodes, mask=real, other=0) != 0
    first, own = b * N * D, nodes[:, None] * D + columns[None, :]
    k = _nodes(KEYS, STEP_WEIGHTS, first + own, feasible, nodes, N, D, columns, G)
    v = _nodes(VALUES, STEP_WEIGHTS + G * D, first + own, feasible, nodes, N, D, columns, G)
    p = _nodes(POINTER, STEP_WEIGHTS + 2 * G * D, first + own, feasible, nodes, N, D, columns, G)
    q = tl.zeros((D,), tl.float32)
    for slot in tl.static_range(K):
        index = tl.load(NODES + row * K + slot)
        taken = tl.load(TABLES + ((b * K + slot) * N + tl.maximum(index, 0)) * D + columns).to(tl.float32)
        empty = tl.load(EMPTY + (b * K + slot) * D + columns).to(tl.float32)
        q += tl.where(index < 0, empty, taken)
    for c in tl.static_range(C):
        q += tl.load(SCALARS + row * C + c).to(tl.float32) * tl.load(SCALAR_WEIGHTS + c * D + columns).to(tl.float32)
    scores = tl.sum(tl.reshape(k.to(tl.float32) * q.to(kind).to(tl.float32)[None, :], (NP, H, d)), 2)
    plane = tl.num_programs(0).to(tl.int64) * Q * N
    extras = _extras(EXTRA, row * N + nodes[None, :], real[None, :], plane, kind, G)  # [1, NP] each
    weights, mass = _softmax(_add_features(tl.trans(scores), extras, nodes, N, G), feasible[None, :])  # [H, NP]
    if KEEP:
        tl.store(MASS + row * H + heads, mass)
    weights = _sum_features(weights, extras, nodes, N, G)
    shares = tl.trans(weights).to(kind).to(tl.float32)
    glimpse = tl.reshape(tl.sum(shares[:, :, None] * tl.reshape(v.to(tl.float32), (NP, H, d)), 0), (D,))
    if KEEP:
        tl.store(GLIMPSE + row * D + columns, glimpse.to(kind))
    compatibility = tl.sum(p.to(tl.float32) * glimpse.to(kind).to(tl.float32)[None, :], 1)[None, :]
    compatibility = _add_features(compatibility, extras, nodes, N, G)
    single = tl.arange(0, 1)
    _settle(
        compatibility, extras, feasible[None, :], nodes, row + single, single == 0, GIVEN, SEEDS,
        ACTIONS, NEXT_SEEDS, OUT, SLOPE, N, PITCH, clip, temperature, G, MODE, SOME_GIVEN, KEEP,
    )  # fmt: skip


@triton.jit
def gradient(
    KEYS, VALUES, TABLES, EMPTY, SCALAR_WEIGHTS, STEP_WEIGHTS, NODES, SCALARS, EXTRA, SLOPE, MASS, GLIMPSE, D_GLIMPSE,
    UPSTREAM, D_KEYS, D_VALUES, LIFTED, D_QUERY, D_SCALAR, D_STEP, Q, N, PITCH,
    H: tl.constexpr, d: tl.constexpr, K: tl.constexpr, C: tl.constexpr, G: tl.constexpr,
    NP: tl.constexpr, BQ: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """One head of one instance: gradients of its keys and values, summed over all queries in registers, and of its part
    of every query. D_GLIMPSE is that of the glimpses but for what comes from above (UPSTREAM); LIFTED receives the
    glimpses times UPSTREAM, from which the pointer's gradient follows, D_SCALAR [B, C, D] the gradient of the scalars'
    projections, and D_STEP [B, 2, G, D] that of w.
    """
    D: tl.constexpr = H * d
    b = tl.program_id(0).to(tl.int64)
    h = tl.program_id(1)
    nodes = tl.arange(0, NP)
    columns = h * d + tl.arange(0, d)
    real = nodes < N
    own = b * N * D + nodes[:, None] * D + columns[None, :]
    k = _nodes(KEYS, STEP_WEIGHTS, own, real, nodes, N, D, columns, G)
    v = _nodes(VALUES, STEP_WEIGHTS + G * D, own, real, nodes, N, D, columns, G)
    d_k = tl.zeros((NP, d), tl.float32)
    d_v = tl.zeros((NP, d), tl.float32)
    d_scalars = ()
    for _ in tl.static_range(C):
        d_scalars = d_scalars + (tl.zeros((d,), tl.float32),)
    plane = tl.num_programs(0).to(tl.int64) * Q * PITCH
    for start in range(0, Q, BQ):
        queries = start + tl.arange(0, BQ)
        valid = queries < Q
        row = b * Q + queries
        cells = queries[:, None] * PITCH + nodes[None, :]
        inside = valid[:, None] & (nodes < PITCH)[None, :]
        feasible = tl.load(SLOPE + b * Q * PITCH + cells, mask=inside, other=0.0) != 0
        indices, scalars = _context(NODES, SCALARS, row, valid, K, C)
        q = _query(TABLES, EMPTY, SCALAR_WEIGHTS, indices, scalars, b, columns, N, D, K, C)
        mass = tl.load(MASS + row * H + h, mask=valid, other=0.0)
        upstream = tl.load(UPSTREAM + row, mask=valid, other=0.0)[:, None]
        part, some = b * Q * D + queries[:, None] * D + columns[None, :], valid[:, None]
        glimpse = tl.load(GLIMPSE + part, mask=some, other=0.0).to(tl.float32)
        d_glimpse = tl.load(D_GLIMPSE + part, mask=some, other=0.0).to(tl.float32) * upstream
        scores = tl.dot(q.to(k.dtype), tl.trans(k), input_precision=PRECISION)
        if G > 0:
            inside = inside & real[None, :]
            feasible = feasible & real[None, :]
        extras = _extras(EXTRA + b * Q * PITCH, cells, inside, plane, k.dtype, G)
        scores = _add_features(scores, extras, nodes, N, G)
        tl.store(LIFTED + part, (glimpse * upstream).to(k.dtype), mask=some)
        weights = tl.where(feasible, tl.exp(scores - mass[:, None]), 0.0)
        weights = _sum_features(weights, extras, nodes, N, G)
        d_v += tl.dot(tl.trans(weights.to(v.dtype)), d_glimpse.to(v.dtype), input_precision=PRECISION)
        d_weights = tl.dot(d_glimpse.to(v.dtype), tl.trans(v), input_precision=PRECISION)
        d_weights = _add_features(d_weights, extras, nodes, N, G)
        # sum_n w_n dw_n, over nodes, equals the glimpse's product with its gradient, over columns.
        d_scores = weights * (d_weights - tl.sum(d_glimpse * glimpse, 1)[:, None])
        d_scores = _sum_features(d_scores, extras, nodes, N, G)
        d_q = tl.dot(d_scores.to(k.dtype), k, input_precision=PRECISION)
        d_k += tl.dot(tl.trans(d_scores.to(k.dtype)), q.to(k.dtype), input_precision=PRECISION)
        added = ()
        for c in tl.static_range(C):
            added = added + (d_scalars[c] + tl.sum(scalars[c][:, None] * d_q, 0),)
        d_scalars = added
        tl.store(D_QUERY + part, d_q.to(k.dtype), mask=some)
    tl.store(D_KEYS + own, d_k.to(k.dtype), mask=real[:, None])
    tl.store(D_VALUES + own, d_v.to(k.dtype), mask=real[:, None])
    for c in tl.static_range(C):
        tl.store(D_SCALAR + (b * C + c) * D + columns, d_scalars[c])
    if G > 0:
        step = D_STEP + b * 2 * G * D + (nodes - N)[:, None] * D + columns[None, :]
        beyond = (nodes >= N) & (nodes < N + G)
        tl.store(step, d_k, mask=beyond[:, None])
        tl.store(step + G * D, d_v, mask=beyond[:, None])


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
