"""The decoder's inner loops as Triton kernels: one step, and scoring a record of steps with its gradient.

Same mathematics as the generic code in attention.py, same inputs, used where there is a GPU. What the generic
path leaves on the table there: a step is many small kernels that read and write [B, H, Q, N], and the scoring
pass keeps several such arrays for its backward. Here a program holds one instance's (or one head's) keys and a
block of queries in registers. No gradient needs an atomic addition, so results are reproducible.

Shapes as in policies/base.py, with Q queries per instance (S solutions in a rollout, S x T when scoring).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

if TYPE_CHECKING:
    from routelearn.policies.attention import Cache
    from routelearn.policies.base import Seen

try:
    import triton
    import triton.language as tl
except ImportError:  # CPU builds of torch come without it
    triton = None

# Triton's interpreter (TRITON_INTERPRET=1) runs the kernels on a CPU, for tests.
INTERPRETED = triton is not None and bool(triton.knobs.runtime.interpret)

MOST_NODES = 256  # beyond this a program's share of keys no longer fits the registers
GRADIENT_BLOCK = {  # by padded number of nodes; 128 was the best of four tried on an H200, the others are not tuned
    16: {"BQ": 16, "num_warps": 4},
    32: {"BQ": 16, "num_warps": 4},
    64: {"BQ": 32, "num_warps": 4},
    128: {"BQ": 32, "num_warps": 4},
    256: {"BQ": 16, "num_warps": 8},
}
FEW = 8  # below so many queries an instance, a step is a matrix-vector product
LOGITS, SCORE, LIKELIEST, DRAW = (tl.constexpr(mode) for mode in range(4)) if triton is not None else range(4)


def usable(cache: Cache, seen: Seen) -> bool:
    """Whether the kernels cover this case; otherwise the generic path does."""
    groups = 0 if seen.step_features is None else seen.step_features.shape[-1]
    return (
        triton is not None
        and (cache.keys.is_cuda or INTERPRETED)
        and cache.keys.dtype in (torch.bfloat16, torch.float32)
        and cache.keys.shape[2] <= MOST_NODES
        and cache.keys.shape[3] >= 16  # a matrix unit's smallest inner dimension
        and cache.keys.shape[3] & (cache.keys.shape[3] - 1) == 0
        and seen.nodes.shape[-1] <= 2
        and seen.scalars.shape[-1] <= 1
        and groups <= 1
    )


def chooses(cache: Cache, seen: Seen) -> bool:
    """Whether `choose` pays: with few queries logits and a separate choice are faster (TSP100, S = 1, one training
    step with the rollout baseline on an H200: 8.2 ms against 9.2)."""
    return seen.nodes.shape[1] >= FEW and usable(cache, seen)


if triton is not None:

    @triton.jit
    def _query(
        TABLES, EMPTY, SCALAR_WEIGHTS, index_0, index_1, scalar, b, columns, N, D, K: tl.constexpr, C: tl.constexpr
    ):
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
    def _noisy(logits, SEED, cells, temperature, MODE: tl.constexpr):
        """What the choice is the largest of: the logits, or for a draw the logits with Gumbel noise."""
        if MODE == DRAW:
            uniform = tl.rand(tl.load(SEED), cells.to(tl.int32))
            logits = logits / temperature - tl.log(tl.maximum(-tl.log(uniform), 1e-20))
        return logits

    @triton.jit
    def _decode(
        KEYS, VALUES, POINTER, TABLES, EMPTY, SCALAR_WEIGHTS, STEP_WEIGHTS, NODES, SCALARS, FEASIBLE, EXTRA, ACTIONS,
        SEED, OUT, SLOPE, MASS, Q, N, clip, temperature,
        H: tl.constexpr, d: tl.constexpr, K: tl.constexpr, C: tl.constexpr, G: tl.constexpr,
        NP: tl.constexpr, BQ: tl.constexpr, UNROLL: tl.constexpr, MODE: tl.constexpr, KEEP: tl.constexpr,
        PRECISION: tl.constexpr,
    ):  # fmt: skip
        """A block of BQ queries of one instance: their logits, or a node for each, or the score of given nodes.

        ACTIONS holds the given nodes, and where a choice is made (-1) receives it; OUT the log-probabilities. With
        KEEP it also leaves what the gradient needs: the slope d log p / d compatibility of the last layer, and the
        log of each head's softmax denominator.
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
        for h in tl.range(0, H, loop_unroll_factor=UNROLL):
            columns = h * d + within
            by_head = ((b * H + h) * N + nodes[:, None]) * d + within[None, :]
            k = tl.load(KEYS + by_head, mask=real[:, None], other=0.0)
            v = tl.load(VALUES + by_head, mask=real[:, None], other=0.0)
            q = _query(TABLES, EMPTY, SCALAR_WEIGHTS, index_0, index_1, scalar, b, columns, N, D, K, C)
            scores = tl.dot(q.to(k.dtype), tl.trans(k), input_precision=PRECISION)
            if G == 1:
                into_key = tl.load(STEP_WEIGHTS + columns).to(tl.float32)
                scores += tl.sum(q * into_key[None, :], 1)[:, None] * extra
            scores = tl.where(feasible, scores, float("-inf"))
            top = tl.max(scores, 1)
            top = tl.where(top == float("-inf"), 0.0, top)
            weights = tl.exp(scores - top[:, None])
            total = tl.maximum(tl.sum(weights, 1), 1e-30)
            weights = weights / total[:, None]
            if KEEP:
                tl.store(MASS + row * H + h, top + tl.log(total), mask=valid)
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
        bent = 2 * tl.sigmoid(2 * compatibility) - 1  # tanh
        logits = tl.where(feasible, clip * bent, float("-inf"))
        if MODE == LOGITS:
            tl.store(OUT + cells, logits, mask=inside)
        else:
            action = tl.load(ACTIONS + row, mask=valid, other=0)
            if MODE != SCORE:
                best = tl.argmax(tl.where(feasible, _noisy(logits, SEED, cells, temperature, MODE), float("-inf")), 1)
                given = action >= 0
                action = tl.where(given, action, best)
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
            if MODE != SCORE:
                log_prob = tl.where(given, 0.0, log_prob)
            tl.store(OUT + row, log_prob, mask=valid)

    @triton.jit
    def _gradient(
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
    def _table_gradient(
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

    @triton.jit
    def _single_step(
        KEYS, VALUES, POINTER, TABLES, EMPTY, SCALAR_WEIGHTS, STEP_WEIGHTS, NODES, SCALARS, FEASIBLE, EXTRA,
        OUT, Q, N, clip,
        H: tl.constexpr, d: tl.constexpr, K: tl.constexpr, C: tl.constexpr, G: tl.constexpr, NP: tl.constexpr,
    ):  # fmt: skip
        """Logits of one query, all heads at once: with few solutions there is no matrix to multiply."""
        D: tl.constexpr = H * d
        b = tl.program_id(0).to(tl.int64)
        row = b * Q + tl.program_id(1)
        nodes = tl.arange(0, NP)
        columns = tl.arange(0, D)
        real = nodes < N
        feasible = tl.load(FEASIBLE + row * N + nodes, mask=real, other=0) != 0
        kind = KEYS.dtype.element_ty
        q = tl.zeros((D,), tl.float32)
        for slot in tl.static_range(K):
            index = tl.load(NODES + row * K + slot)
            taken = tl.load(TABLES + ((b * K + slot) * N + tl.maximum(index, 0)) * D + columns).to(tl.float32)
            empty = tl.load(EMPTY + (b * K + slot) * D + columns).to(tl.float32)
            q += tl.where(index < 0, empty, taken)
        if C == 1:
            q += tl.load(SCALARS + row).to(tl.float32) * tl.load(SCALAR_WEIGHTS + columns).to(tl.float32)
        by_head = ((b * H + columns[None, :] // d) * N + nodes[:, None]) * d + columns[None, :] % d
        k = tl.load(KEYS + by_head, mask=real[:, None], other=0.0).to(tl.float32)
        # The operands are rounded as the matrix products of the scoring pass round them.
        scores = tl.sum(tl.reshape(k * q.to(kind).to(tl.float32)[None, :], (NP, H, d)), 2)
        if G == 1:
            extra = tl.load(EXTRA + row * N + nodes, mask=real, other=0.0).to(tl.float32)
            along = tl.sum(tl.reshape(q * tl.load(STEP_WEIGHTS + columns).to(tl.float32), (H, d)), 1)
            scores += along[None, :] * extra[:, None]
        scores = tl.where(feasible[:, None], scores, float("-inf"))
        weights = tl.where(feasible[:, None], tl.exp(scores - tl.max(scores, 0)[None, :]), 0.0)
        weights = weights / tl.sum(weights, 0)[None, :]
        v = tl.load(VALUES + by_head, mask=real[:, None], other=0.0).to(tl.float32)
        rounded = weights.to(kind).to(tl.float32)
        glimpse = tl.reshape(tl.sum(rounded[:, :, None] * tl.reshape(v, (NP, H, d)), 0), (D,))
        if G == 1:
            moved = tl.sum(weights * extra[:, None], 0)
            into_value = tl.reshape(tl.load(STEP_WEIGHTS + D + columns).to(tl.float32), (H, d))
            glimpse += tl.reshape(moved[:, None] * into_value, (D,))
        p = tl.load(POINTER + (b * N + nodes[:, None]) * D + columns[None, :], mask=real[:, None], other=0.0)
        compatibility = tl.sum(p.to(tl.float32) * glimpse.to(kind).to(tl.float32)[None, :], 1)
        if G == 1:
            drift = tl.sum(glimpse * tl.load(STEP_WEIGHTS + 2 * D + columns).to(tl.float32), 0)
            compatibility += drift * extra
        bent = 2 * tl.sigmoid(2 * compatibility) - 1  # tanh
        tl.store(OUT + row * N + nodes, tl.where(feasible, clip * bent, float("-inf")), mask=real)


def _sizes(keys: Tensor, nodes: Tensor, scalars: Tensor, extra: Tensor | None) -> dict[str, Any]:
    """The constants that a kernel is specialised for."""
    return {
        "H": keys.shape[1],
        "d": keys.shape[3],
        "K": nodes.shape[-1],
        "C": scalars.shape[-1],
        "G": 0 if extra is None else 1,
        "NP": max(16, triton.next_power_of_2(keys.shape[2])),
        "PRECISION": "ieee" if keys.dtype == torch.float32 else "tf32",
    }


def _launch_block(
    given: tuple[Tensor, ...], extra: Tensor | None, actions: Tensor, seed: Tensor, out: Tensor,
    kept: tuple[Tensor, ...], clip: float, temperature: float, mode: Any,
) -> None:  # fmt: skip
    """One step of every solution by matrix products; `given` is the cache, then nodes, scalars, what is feasible."""
    keys, nodes, scalars, feasible = given[0], *given[-3:]
    batch, queries = nodes.shape[:2]
    slope, mass = kept or (out, out)
    _decode[(batch, triton.cdiv(queries, 16))](
        *given, feasible if extra is None else extra, actions, seed, out, slope, mass, queries, keys.shape[2], clip,
        temperature, BQ=16, UNROLL=1, MODE=mode, KEEP=bool(kept), num_warps=4, maxnreg=128,
        **_sizes(keys, nodes, scalars, extra),
    )  # fmt: skip


def _to_keep(keys: Tensor, nodes: Tensor) -> tuple[Tensor, Tensor]:
    """Room for what the gradient needs of every query: slopes [B, Q, N] and the heads' denominators [B, Q, H]."""
    shape = nodes.shape[:2]
    slope = torch.empty((*shape, keys.shape[2]), dtype=keys.dtype, device=keys.device)
    return slope, torch.empty((*shape, keys.shape[1]), dtype=torch.float32, device=keys.device)


@torch.library.custom_op("routelearn::pointer_logits", mutates_args=())
def pointer_logits(
    keys: Tensor, values: Tensor, pointer: Tensor, tables: Tensor, empty: Tensor, scalar_weights: Tensor, step: Tensor,
    nodes: Tensor, scalars: Tensor, feasible: Tensor, extra: Tensor | None, clip: float,
) -> Tensor:  # fmt: skip
    """Logits [B, Q, N] (float32) of one step; opaque to the compiler, so a compiled step calls it as it is."""
    given = (keys, values, pointer, tables, empty, scalar_weights, step, nodes, scalars, feasible)
    (batch, queries), count = nodes.shape[:2], keys.shape[2]
    out = torch.empty((batch, queries, count), dtype=torch.float32, device=keys.device)
    if queries >= FEW:
        _launch_block(given, extra, nodes, nodes, out, (), clip, 1.0, LOGITS)
    else:
        sizes = _sizes(keys, nodes, scalars, extra)
        del sizes["PRECISION"]  # no matrix product here
        other = feasible if extra is None else extra
        _single_step[(batch, queries)](*given, other, out, queries, count, clip, num_warps=4, maxnreg=128, **sizes)
    return out


@pointer_logits.register_fake
def _(keys, values, pointer, tables, empty, scalar_weights, step, nodes, scalars, feasible, extra, clip):
    return keys.new_empty((*nodes.shape[:2], keys.shape[2]), dtype=torch.float32)


@torch.library.custom_op("routelearn::pointer_choice", mutates_args=())
def pointer_choice(
    keys: Tensor, values: Tensor, pointer: Tensor, tables: Tensor, empty: Tensor, scalar_weights: Tensor, step: Tensor,
    nodes: Tensor, scalars: Tensor, feasible: Tensor, extra: Tensor | None, forced: Tensor | None,
    clip: float, temperature: float, keep: bool,
) -> list[Tensor]:  # fmt: skip
    """The next nodes [B, Q] and their log-probabilities, without logits in between: drawn, or at temperature 0 the
    likeliest; where `forced` is not -1 that node, at log-probability 0. With `keep`, what the gradient needs, too."""
    given = (keys, values, pointer, tables, empty, scalar_weights, step, nodes, scalars, feasible)
    shape, device = nodes.shape[:2], keys.device
    actions = torch.full(shape, -1, device=device) if forced is None else forced.clone()
    log_prob = torch.empty(shape, dtype=torch.float32, device=device)
    draws = temperature > 0
    seed = torch.randint(2**31 - 1, (1,), device=device) if draws else actions
    kept = _to_keep(keys, nodes) if keep else ()
    _launch_block(given, extra, actions, seed, log_prob, kept, clip, temperature, DRAW if draws else LIKELIEST)
    return [actions, log_prob, *kept]


@pointer_choice.register_fake
def _(
    keys, values, pointer, tables, empty, scalar_weights, step, nodes, scalars, feasible, extra, forced, clip, t, keep
):
    shape = nodes.shape[:2]
    found = [nodes.new_empty(shape), keys.new_empty(shape, dtype=torch.float32)]
    return found + (list(_to_keep(keys, nodes)) if keep else [])


class _Score(torch.autograd.Function):
    """Log-probability [B, Q] of the actions, differentiable in everything the encoder made."""

    @staticmethod
    def forward(
        ctx: Any, keys, values, pointer, tables, empty, scalar_weights, step, nodes, scalars, feasible, extra, actions,
        clip, kept,
    ):  # fmt: skip
        queries, count = nodes.shape[1], keys.shape[2]
        if kept:  # the rollout has left all of it
            log_prob, slope, mass = kept
            out = log_prob.clone()  # autograd marks what is returned
        else:
            out = torch.empty(nodes.shape[:2], dtype=torch.float32, device=keys.device)
            slope, mass = _to_keep(keys, nodes)
            block = 16 if count > 128 else 64
            _decode[(nodes.shape[0], triton.cdiv(queries, block))](
                keys, values, pointer, tables, empty, scalar_weights, step, nodes, scalars, feasible,
                feasible if extra is None else extra, actions, actions, out, slope, mass, queries, count, clip, 1.0,
                BQ=block, UNROLL=1, MODE=SCORE, KEEP=True, num_warps=4, **_sizes(keys, nodes, scalars, extra),
            )  # fmt: skip
        ctx.save_for_backward(
            keys, values, pointer, tables, empty, scalar_weights, step, nodes, scalars, feasible, extra, slope, mass
        )
        return out

    @staticmethod
    def backward(ctx: Any, upstream: Tensor):
        keys, values, pointer, tables, empty, scalar_weights, step, nodes, scalars, feasible, extra, slope, mass = (
            ctx.saved_tensors
        )
        batch, queries, slots = nodes.shape
        heads, count, per_head = keys.shape[1:]
        width = heads * per_head
        wide = {"dtype": torch.float32, "device": keys.device}
        d_empty = torch.empty((batch, slots, width), **wide)
        d_scalar = torch.empty((batch, width), **wide)
        d_step = torch.empty((batch, 3, width), **wide)
        d_keys, d_values, d_pointer, d_tables = (torch.empty_like(t) for t in (keys, values, pointer, tables))
        d_query = torch.empty((batch, queries, width), dtype=keys.dtype, device=keys.device)
        sizes = _sizes(keys, nodes, scalars, extra)
        _gradient[(batch, heads)](
            keys, values, pointer, tables, empty, scalar_weights, step, nodes, scalars, feasible,
            feasible if extra is None else extra, slope, mass, upstream.contiguous(),
            d_keys, d_values, d_pointer, d_query, d_scalar, d_step, queries, count,
            **GRADIENT_BLOCK[min(256, sizes["NP"])], **sizes,
        )  # fmt: skip
        _table_gradient[(batch, slots)](
            nodes, d_query, d_tables, d_empty, queries, count,
            D=width, K=slots, NP=sizes["NP"], BQ=32, PRECISION=sizes["PRECISION"], num_warps=4,
        )  # fmt: skip
        scalar_gradient = d_scalar.sum(0, keepdim=True) if scalars.shape[-1] else torch.zeros_like(scalar_weights)
        step_gradient = torch.zeros_like(step) if extra is None else d_step.sum(0)[:, None]
        return (
            d_keys, d_values, d_pointer, d_tables, d_empty.to(empty.dtype), scalar_gradient.to(scalar_weights.dtype),
            step_gradient.to(step.dtype), None, None, None, None, None, None, None,
        )  # fmt: skip


def _recorded(seen: Seen) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """The kernels' view of what was seen: contiguous, the one step feature without its axis."""
    extra = None if seen.step_features is None else seen.step_features[..., 0].contiguous()
    return seen.nodes.contiguous(), seen.scalars.contiguous(), seen.feasible.contiguous(), extra


def logits(cache: Cache, seen: Seen, clip: float) -> Tensor:
    nodes, scalars, feasible, extra = _recorded(seen)
    return pointer_logits(*cache, nodes, scalars, feasible, extra, clip)


def choose(
    cache: Cache, seen: Seen, clip: float, temperature: float, forced: Tensor | None = None, keep: bool = False
) -> list[Tensor]:
    """Nodes and log-probabilities [B, Q], then with `keep` what `score` takes as `kept` besides them."""
    nodes, scalars, feasible, extra = _recorded(seen)
    forced = None if forced is None else forced.contiguous()
    return pointer_choice(*cache, nodes, scalars, feasible, extra, forced, clip, temperature, keep)


def score(cache: Cache, seen: Seen, actions: Tensor, clip: float, kept: tuple[Tensor, ...] = ()) -> Tensor:
    """Log-probabilities [B, Q]; `kept` (them, slopes and denominators) spares what a rollout on this cache computed."""
    nodes, scalars, feasible, extra = _recorded(seen)
    return _Score.apply(*cache, nodes, scalars, feasible, extra, actions.contiguous(), clip, kept)
