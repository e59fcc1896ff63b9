"""Sixteen single-precision numbers as one value in numba code, for loops whose speed is not left to chance.

numba cannot promise its compiler that two arrays do not overlap, so short inner loops over several arrays stay
scalar. These are written as vector instructions instead; the compiler splits them on narrower machines.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import extending, njit, types
from numba.extending import models, register_model

intrinsic: Any = extending.intrinsic  # what it makes is called without `typing`, and from compiled code only

LANES = 16
_FLOATS = ir.VectorType(ir.FloatType(), LANES)
_INT = ir.IntType(32)
_INTS = ir.VectorType(_INT, LANES)
_FAST = ("contract", "reassoc", "nsz")  # a product and a sum become one instruction where there is one


class Vector(types.Type):
    def __init__(self) -> None:
        super().__init__(name="float32x16")


vector = Vector()


@register_model(Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any):
        super().__init__(manager, kind, _FLOATS)


def _address(context: Any, builder: Any, kind: Any, array: Any, index: Any) -> Any:
    """Where number `index` of a flat contiguous array begins, as the place of a vector; no bounds are checked."""
    data = context.make_array(kind)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), _FLOATS.as_pointer())


@intrinsic
def load(typing: Any, array: Any, index: Any) -> Any:
    """The sixteen numbers of a flat array from `index` on."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.load(_address(context, builder, signature.args[0], *values), align=4)

    return vector(array, types.intp), generate


@intrinsic
def store(typing: Any, array: Any, index: Any, value: Any) -> Any:
    """Write sixteen numbers to a flat array from `index` on."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        builder.store(values[2], _address(context, builder, signature.args[0], *values[:2]), align=4)
        return context.get_dummy_value()

    return types.void(array, types.intp, vector), generate


def _splat(builder: Any, scalar: Any) -> Any:
    one = builder.insert_element(ir.Constant(_FLOATS, ir.Undefined), scalar, ir.Constant(_INT, 0))
    return builder.shuffle_vector(one, one, ir.Constant(_INTS, [0] * LANES))


@intrinsic
def splat(typing: Any, scalar: Any) -> Any:
    """The same number sixteen times."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return _splat(builder, values[0])

    return vector(types.float32), generate


@intrinsic
def spread(typing: Any, array: Any, index: Any) -> Any:
    """Number `index` of a flat array sixteen times; unlike array[index], without a look at the index's sign."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, values[0]).data
        return _splat(builder, builder.load(builder.gep(data, [values[1]])))

    return vector(array, types.intp), generate


def _lanewise(operands: int, operation: Callable[..., Any]) -> Any:
    """An intrinsic of so many vectors that gives a vector: `operation(builder, *vectors)`."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return operation(builder, *values)

    made = vector(*[vector] * operands), generate
    by_operands = {1: lambda typing, a: made, 2: lambda typing, a, b: made, 3: lambda typing, a, b, c: made}
    return intrinsic(by_operands[operands])


def _fused(builder: Any, a: Any, b: Any, c: Any) -> Any:
    return builder.fadd(builder.fmul(a, b, flags=_FAST), c, flags=_FAST)


def _root(builder: Any, a: Any) -> Any:
    kind = ir.FunctionType(_FLOATS, [_FLOATS])
    return builder.call(builder.module.declare_intrinsic(f"llvm.sqrt.v{LANES}f32", fnty=kind), [a])


def _larger(builder: Any, a: Any, b: Any) -> Any:
    return builder.select(builder.fcmp_ordered(">", a, b), a, b)


def _where_positive(builder: Any, a: Any, b: Any) -> Any:
    zero = ir.Constant(_FLOATS, [0.0] * LANES)
    return builder.select(builder.fcmp_ordered(">", a, zero), b, zero)


def _swap(distance: int) -> Any:
    """Lanes exchanged with those so far away."""
    order = ir.Constant(_INTS, [lane ^ distance for lane in range(LANES)])
    return _lanewise(1, lambda builder, a: builder.shuffle_vector(a, a, order))


multiply_add = _lanewise(3, _fused)  # a * b + c
add = _lanewise(2, lambda builder, a, b: builder.fadd(a, b, flags=_FAST))
subtract = _lanewise(2, lambda builder, a, b: builder.fsub(a, b))
divide = _lanewise(2, lambda builder, a, b: builder.fdiv(a, b))
root = _lanewise(1, _root)
maximum = _lanewise(2, _larger)
where_positive = _lanewise(2, _where_positive)  # b where a is above zero, else zero
swap8, swap4, swap2, swap1 = _swap(8), _swap(4), _swap(2), _swap(1)


@intrinsic
def first(typing: Any, a: Any) -> Any:
    """The first of the sixteen."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.extract_element(values[0], ir.Constant(_INT, 0))

    return types.float32(vector), generate


@intrinsic
def transpose(typing: Any, source: Any, target: Any) -> Any:
    """target <- the tile `source` transposed, by exchanging halves, quarters, eighths and single numbers."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        def place(side: int, row: int) -> Any:
            data = context.make_array(signature.args[side])(context, builder, values[side]).data
            start = builder.gep(data, [ir.Constant(ir.IntType(64), row * LANES)])
            return builder.bitcast(start, _FLOATS.as_pointer())

        rows = [builder.load(place(0, row), align=4) for row in range(LANES)]
        for distance in (8, 4, 2, 1):
            below = [LANES + lane - distance if lane & distance else lane for lane in range(LANES)]
            above = [LANES + lane if lane & distance else lane + distance for lane in range(LANES)]
            order = [ir.Constant(_INTS, lanes) for lanes in (below, above)]
            for row in range(LANES):
                if not row & distance:
                    pair = rows[row], rows[row + distance]
                    rows[row], rows[row + distance] = (builder.shuffle_vector(*pair, lanes) for lanes in order)
        for row in range(LANES):
            builder.store(rows[row], place(1, row), align=4)
        return context.get_dummy_value()

    return types.void(source, target), generate


def _exp(builder: Any, a: Any) -> Any:
    """2^whole by its bits, 2^part by its Taylor series."""

    def constant(value: float) -> Any:
        return ir.Constant(_FLOATS, [float(np.float32(value))] * LANES)

    scaled = builder.fmul(a, constant(1 / np.log(2)))
    scaled = _larger(builder, scaled, constant(-120))  # less would be denormal, and slow
    whole = builder.fptosi(scaled, _INTS)  # towards zero, so that the rest lies in (-1, 0]
    part = builder.fmul(builder.fsub(scaled, builder.sitofp(whole, _FLOATS)), constant(np.log(2)))
    series, factorial = constant(1 / 40320), 40320
    for power in range(8, 0, -1):
        factorial //= power
        series = _fused(builder, series, part, constant(1 / factorial))
    shifted = builder.add(whole, ir.Constant(_INTS, [127] * LANES))
    power_of_two = builder.bitcast(builder.shl(shifted, ir.Constant(_INTS, [23] * LANES)), _FLOATS)
    return builder.fmul(series, power_of_two)


exp = _lanewise(1, _exp)  # of numbers up to 0, to single precision


@njit(forceinline=True)
def over_columns(v, lanes):
    """The sum over every `lanes`-th of the sixteen, in each of them; over all with lanes = 1."""
    if lanes <= 8:
        v = add(v, swap8(v))
    if lanes <= 4:
        v = add(v, swap4(v))
    if lanes <= 2:
        v = add(v, swap2(v))
    if lanes <= 1:
        v = add(v, swap1(v))
    return v
