"""The decoder on a GPU: one step, and scoring a record of steps with its gradient, by the kernels of decoder_triton.py.

Same mathematics as the generic code in attention.py, same inputs. What the generic path leaves on the table there: a
step is many small kernels that read and write [B, H, Q, N], and the scoring pass keeps several such arrays for its
backward. Shapes as in policies/base.py, with Q queries per instance (S solutions in a rollout, S x T when scoring).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from routelearn.policies.base import Choice, Seen
from routelearn.policies.kernels.cache import Cache

try:
    import triton
except ImportError:  # CPU builds of torch come without it
    triton = None
if triton is not None:
    from routelearn.policies.kernels.gpu import decoder_triton as kernels

# Triton's interpreter (TRITON_INTERPRET=1) runs the kernels on a CPU, for tests.
INTERPRETED = triton is not None and bool(triton.knobs.runtime.interpret)

MOST_NODES = 256  # beyond this a program's share of keys no longer fits the registers; a step feature counts as one
MOST_CONTEXT, MOST_FEATURES = 4, 4  # context nodes and scalars each; step features
FEW = 8  # below so many queries an instance, each has a program of its own
MOST_BYTES = 2**15  # of one instance's keys, for such a program: it holds all heads at once
# Queries at a time, warps, registers: the best on an H200.
ONE_BLOCK = {"num_warps": 4}  # a program for each query
STEP_BLOCK = {"BQ": 16, "num_warps": 4, "maxnreg": 128}
SCORE_BLOCK = {"BQ": 64, "num_warps": 4}
GRADIENT_BLOCK = {  # by padded number of nodes; the best of some ten each, but for 16 and 256
    16: {"BQ": 16, "num_warps": 1, "num_stages": 1},
    32: {"BQ": 16, "num_warps": 1, "num_stages": 1},
    64: {"BQ": 32, "num_warps": 4},
    128: {"BQ": 64, "num_warps": 4, "num_stages": 1},
    256: {"BQ": 16, "num_warps": 8},
}
FEATURES_BLOCK = {"BQ": 64, "num_warps": 4, "num_stages": 2}  # with step features: the best of six at n = 50 and 100


def present(device: torch.device) -> bool:
    """Whether there are kernels at all for this device."""
    return triton is not None and (device.type == "cuda" or INTERPRETED)


def usable(cache: Cache) -> bool:
    """Whether the kernels cover this case."""
    return (
        present(cache.keys.device) and cache.keys.dtype in (torch.bfloat16, torch.float32) and exceeded(cache) is None
    )


def exceeded(cache: Cache) -> str | None:
    """The first limit of the kernels that a cache exceeds, in words; None if it exceeds none."""
    _, nodes, heads, per_head = cache.keys.shape
    slots, scalars, features = cache.tables.shape[1], cache.scalars.shape[0], cache.step.shape[1]
    limits = (
        (nodes + features <= MOST_NODES, f"{MOST_NODES} nodes and step features (here {nodes + features})"),
        (slots <= MOST_CONTEXT, f"{MOST_CONTEXT} context nodes (here {slots})"),
        (scalars <= MOST_CONTEXT, f"{MOST_CONTEXT} context scalars (here {scalars})"),
        (features <= MOST_FEATURES, f"{MOST_FEATURES} step features (here {features})"),
        (heads & (heads - 1) == 0, f"a power of two as the number of heads (here {heads})"),
        (per_head >= 16 and per_head & (per_head - 1) == 0, f"heads of 16, 32, 64, ... columns (here {per_head})"),
    )
    return next((words for kept, words in limits if not kept), None)


def _sizes(keys: Tensor, nodes: Tensor, scalars: Tensor, extra: Tensor | None) -> dict[str, Any]:
    """The constants that a kernel is specialised for."""
    groups = 0 if extra is None else extra.shape[0]
    return {
        "H": keys.shape[2],
        "d": keys.shape[3],
        "K": nodes.shape[-1],
        "C": scalars.shape[-1],
        "G": groups,
        "NP": max(16, triton.next_power_of_2(keys.shape[1] + groups)),
    }


def _precision(keys: Tensor) -> str:
    """How matrix units take numbers of single precision, where the keys have it."""
    return "ieee" if keys.dtype == torch.float32 else "tf32"


def _launch(
    given: tuple[Tensor, ...], extra: Tensor | None, out: Tensor, clip: float, mode: Any, *,
    forced: Tensor | None = None, seeds: Tensor | None = None, actions: Tensor | None = None,
    next_seeds: Tensor | None = None, kept: tuple[Tensor, ...] = (), temperature: float = 1.0,
) -> None:  # fmt: skip
    """Decode every query; `given` is the cache, then nodes, scalars and what is feasible. A kernel never touches the
    pointers that its mode does not need, so that anything may stand for them."""
    keys, nodes, scalars, _ = given[0], *given[-3:]
    batch, queries = nodes.shape[:2]
    slope, mass, glimpse = kept or (out, out, out)
    pointers = [nodes if tensor is None else tensor for tensor in (extra, forced, seeds, actions, next_seeds)]
    pitch = _pitch(keys, extra)
    arguments = (*given, *pointers, out, slope, mass, glimpse, queries, keys.shape[1], pitch, clip, temperature)
    sizes = _sizes(keys, nodes, scalars, extra)
    sizes |= {"MODE": mode, "SOME_GIVEN": forced is not None, "KEEP": bool(kept)}
    tile = sizes["NP"] * sizes["H"] * sizes["d"] * keys.element_size()
    if queries < FEW and tile <= MOST_BYTES:
        kernels.decode_one[(batch, queries)](*arguments, **ONE_BLOCK, **sizes)
    else:
        block = SCORE_BLOCK if mode == kernels.SCORE and sizes["NP"] <= 128 else STEP_BLOCK
        grid = (batch, triton.cdiv(queries, block["BQ"]))
        kernels.decode[grid](*arguments, PRECISION=_precision(keys), **block, **sizes)


def _pitch(keys: Tensor, extra: Tensor | None) -> int:
    """Room for a number of every row, such that each query's begin where memory can deliver many at once."""
    rows = keys.shape[1] + (0 if extra is None else extra.shape[0])
    return -(-rows // 16) * 16


def _to_keep(keys: Tensor, nodes: Tensor, extra: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """Room for what the gradient needs of every query: slopes [B, Q, PITCH], denominators [B, Q, H], glimpses."""
    shape, (heads, per_head) = nodes.shape[:2], keys.shape[2:]
    mass = torch.empty((*shape, heads), dtype=torch.float32, device=keys.device)
    return keys.new_empty((*shape, _pitch(keys, extra))), mass, keys.new_empty((*shape, heads * per_head))


@torch.library.custom_op("routelearn::pointer_logits", mutates_args=())
def pointer_logits(
    keys: Tensor, values: Tensor, pointer: Tensor, tables: Tensor, empty: Tensor, scalar_weights: Tensor, step: Tensor,
    nodes: Tensor, scalars: Tensor, feasible: Tensor, extra: Tensor | None, clip: float,
) -> Tensor:  # fmt: skip
    """Logits [B, Q, N] (float32) of one step; opaque to the compiler, so a compiled step calls it as it is."""
    given = (keys, values, pointer, tables, empty, scalar_weights, step, nodes, scalars, feasible)
    out = torch.empty((*nodes.shape[:2], keys.shape[1]), dtype=torch.float32, device=keys.device)
    _launch(given, extra, out, clip, kernels.LOGITS)
    return out


@pointer_logits.register_fake
def _(keys, values, pointer, tables, empty, scalar_weights, step, nodes, scalars, feasible, extra, clip):
    return keys.new_empty((*nodes.shape[:2], keys.shape[1]), dtype=torch.float32)


@torch.library.custom_op("routelearn::pointer_choice", mutates_args=())
def pointer_choice(
    keys: Tensor, values: Tensor, pointer: Tensor, tables: Tensor, empty: Tensor, scalar_weights: Tensor, step: Tensor,
    nodes: Tensor, scalars: Tensor, feasible: Tensor, extra: Tensor | None, forced: Tensor | None, seeds: Tensor,
    clip: float, temperature: float, keep: bool,
) -> list[Tensor]:  # fmt: skip
    """The next nodes [B, Q], their log-probabilities and the next seeds, without logits in between: drawn, or at
    temperature 0 the likeliest; where `forced` is not -1 that node, at log-probability 0. With `keep`, what the
    gradient needs, too."""
    given = (keys, values, pointer, tables, empty, scalar_weights, step, nodes, scalars, feasible)
    actions = torch.empty(nodes.shape[:2], dtype=torch.int64, device=keys.device)
    log_prob = torch.empty(nodes.shape[:2], dtype=torch.float32, device=keys.device)
    next_seeds, kept = torch.empty_like(actions), _to_keep(keys, nodes, extra) if keep else ()
    _launch(
        given, extra, log_prob, clip, kernels.DRAW if temperature > 0 else kernels.LIKELIEST, forced=forced,
        seeds=seeds, actions=actions, next_seeds=next_seeds, kept=kept, temperature=temperature,
    )  # fmt: skip
    return [actions, log_prob, next_seeds, *kept]


@pointer_choice.register_fake
def _(
    keys, values, pointer, tables, empty, scalar_weights, step, nodes, scalars, feasible, extra, forced, seeds, clip,
    temperature, keep,
):  # fmt: skip
    shape = nodes.shape[:2]
    found = [nodes.new_empty(shape), keys.new_empty(shape, dtype=torch.float32), nodes.new_empty(shape)]
    return found + (list(_to_keep(keys, nodes, extra)) if keep else [])


class _Score(torch.autograd.Function):
    """Log-probability [B, Q] of the actions, differentiable in everything the encoder made."""

    @staticmethod
    def forward(
        ctx: Any, keys, values, pointer, tables, empty, scalar_weights, step, nodes, scalars, feasible, extra, actions,
        clip, kept,
    ):  # fmt: skip
        if kept:  # the rollout has left all of it
            log_prob, *kept = kept
            out = log_prob.clone()  # autograd marks what is returned
        else:
            out = torch.empty(nodes.shape[:2], dtype=torch.float32, device=keys.device)
            kept = _to_keep(keys, nodes, extra)
            given = (keys, values, pointer, tables, empty, scalar_weights, step, nodes, scalars, feasible)
            _launch(given, extra, out, clip, kernels.SCORE, forced=actions, kept=kept)
        ctx.save_for_backward(keys, values, pointer, tables, empty, scalar_weights, step, nodes, scalars, extra, *kept)
        return out

    @staticmethod
    def backward(ctx: Any, upstream: Tensor):
        keys, values, pointer, tables, empty, scalar_weights, step, nodes, scalars, extra, slope, mass, glimpse = (
            ctx.saved_tensors
        )
        batch, queries, slots = nodes.shape
        count, heads, per_head = keys.shape[1:]
        width = heads * per_head
        wide = {"dtype": torch.float32, "device": keys.device}
        d_empty = torch.empty((batch, slots, width), **wide)
        d_scalar = torch.empty((batch, scalars.shape[-1], width), **wide)
        d_step = torch.empty((batch, 2, step.shape[1], width), **wide)
        d_keys, d_values, d_tables = (torch.empty_like(t) for t in (keys, values, tables))
        d_query, lifted = torch.empty_like(glimpse), torch.empty_like(glimpse)
        sizes = _sizes(keys, nodes, scalars, extra)
        if extra is None:
            block, features, rows = GRADIENT_BLOCK[sizes["NP"]], mass, pointer
        else:
            block, features = FEATURES_BLOCK, slope.new_empty((extra.shape[0], *slope.shape))
            features[..., :count] = extra
            rows = torch.cat((pointer, step[2].expand(batch, -1, width)), 1)
        # Of the products with slopes nothing is special to a head: the library has them.
        slopes = slope[..., : rows.shape[1]]
        kernels.gradient[(batch, heads)](
            keys, values, tables, empty, scalar_weights, step, nodes, scalars, features, slope, mass, glimpse,
            slopes @ rows, upstream.contiguous(), d_keys, d_values, lifted, d_query, d_scalar, d_step,
            queries, count, slope.shape[-1], PRECISION=_precision(keys), **block, **sizes,
        )  # fmt: skip
        d_rows = slopes.transpose(1, 2) @ lifted
        kernels.table_gradient[(batch, slots)](
            nodes, d_query, d_tables, d_empty, queries, count,
            D=width, K=slots, NP=sizes["NP"], BQ=32, PRECISION=_precision(keys), num_warps=4,
        )  # fmt: skip
        step_gradient = torch.cat((d_step, d_rows[:, None, count:]), 1).sum(0)
        return (
            d_keys, d_values, d_rows[:, :count], d_tables, d_empty.to(empty.dtype),
            d_scalar.sum(0).to(scalar_weights.dtype), step_gradient.to(step.dtype),
            None, None, None, None, None, None, None,
        )  # fmt: skip


def _recorded(seen: Seen) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """The kernels' view of what was seen: contiguous, one plane [B, Q, N] for each step feature."""
    extra = None if seen.step_features is None else seen.step_features.movedim(-1, 0).contiguous()
    return seen.nodes.contiguous(), seen.scalars.contiguous(), seen.feasible.contiguous(), extra


def begin(cache: Cache, solutions: int) -> tuple[Tensor, ...]:
    """A seed [B, S] for the draws of each solution."""
    return (torch.randint(2**62, (cache.keys.shape[0], solutions), device=cache.keys.device),)


def logits(cache: Cache, clip: float, seen: Seen) -> Tensor:
    """[B, Q, N] float32, -inf where not feasible."""
    nodes, scalars, feasible, extra = _recorded(seen)
    return pointer_logits(*cache, nodes, scalars, feasible, extra, clip)


def choose(
    cache: Cache,
    clip: float,
    carry: tuple[Tensor, ...],
    seen: Seen,
    temperature: float,
    forced: Tensor | None = None,
    keep: bool = False,
) -> Choice:
    """As `Policy.choose`; the carry is the seeds of the next step, and `keep` leaves all that `score` needs."""
    nodes, scalars, feasible, extra = _recorded(seen)
    forced = None if forced is None else forced.contiguous()
    chosen, log_prob, next_seeds, *kept = pointer_choice(
        *cache, nodes, scalars, feasible, extra, forced, *carry, clip, temperature, keep
    )
    return Choice(chosen, log_prob, (next_seeds,) if temperature > 0 else carry, tuple(kept))


def score(cache: Cache, clip: float, seen: Seen, actions: Tensor, kept: tuple[Tensor, ...] = ()) -> Tensor:
    """Log-probabilities [B, Q]; `kept` (them, slopes and denominators) spares what a rollout on this cache computed."""
    nodes, scalars, feasible, extra = _recorded(seen)
    return _Score.apply(*cache, nodes, scalars, feasible, extra, actions.contiguous(), clip, kept)
