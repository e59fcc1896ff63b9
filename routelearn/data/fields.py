"""The fields of a problem's Instance: filled from arrays that are checked, and digests of what they hold."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from routelearn.errors import InputError, about
from routelearn.problems import NumpyRng, Problem
from routelearn.problems.attributes import OWN, RESERVED, Attribute, Of, declared

LARGEST_WHOLE = 10**12  # sums over a million nodes stay far inside 64 bits
_PROBE = 5  # customers of the sample that shows what an instance looks like; unlike any other axis


_templates: dict[str, tuple[Problem, Any]] = {}  # of a name, for one object: a notebook may register another


def template(problem: Problem) -> Any:
    """One small instance: its fields, which of them are whole numbers, and their axes. Made once for each problem."""
    known = _templates.get(problem.name)
    if known is None or known[0] is not problem:
        known = _templates[problem.name] = (problem, problem.sample(NumpyRng(0), 1, _PROBE))
    return known[1]


def attributes_of(problem: Problem) -> tuple[Attribute, ...]:
    """What the problem declares; a field that it does not declare is taken to be what its name says elsewhere."""
    shown, found = template(problem), declared(problem) or ()
    if stray := next((one.name for one in found if one.name not in shown._fields), None):
        raise InputError(
            f"{problem.name}: the attribute {stray} is not a field of its instances; they have {shown._fields}"
        )
    named = {one.name for one in found}
    others = [name for name in shown._fields if name not in named and name not in RESERVED]
    return (*found, *(_presumed(name, getattr(shown, name), shown.xy.shape[1]) for name in others))


def _presumed(name: str, like: Any, nodes: int) -> Attribute:
    """The attribute that a field without a declaration seems to be."""
    known = next((one for one in OWN if one.name == name), Attribute(name, "instance"))
    if like is None:
        return known._replace(required=False)
    of: Of = "leg" if like.shape[1:3] == (nodes, nodes) else "stop" if like.shape[1:2] == (nodes,) else "instance"
    shape = tuple(like.shape[{"leg": 3, "stop": 2, "instance": 1}[of] :])
    return known._replace(of=of, shape=shape, whole=not like.is_floating_point(), required=True)


def unfilled(problem: Problem) -> list[str]:
    """Fields of the instances that stops cannot fill: those of legs and depots, and unknown ones not declared."""
    named = {one.name for one in (*(declared(problem) or ()), *OWN) if one.of_stops}
    return [name for name in needed(problem) if name not in named and name not in RESERVED]


def needed(problem: Problem) -> list[str]:
    """The fields that every instance has."""
    shown = template(problem)
    return [name for name, field in zip(shown._fields, shown, strict=True) if field is not None]


def assemble(problem: Problem, arrays: Mapping[str, np.ndarray], source: str) -> Any:
    """The checked Instance of `arrays` (by field name; optional fields may be missing), floats in single precision.

    Raises InputError, beginning with `source`.
    """
    shown = template(problem)
    missing = [name for name in needed(problem) if name not in arrays]
    if missing:
        raise InputError(f"{source}: no {' and no '.join(missing)}; {problem.name} needs {', '.join(needed(problem))}")
    unknown = [name for name in arrays if name not in shown._fields]
    if unknown:
        raise InputError(
            f"{source}: {unknown[0]!r} is not a field of {problem.name}; it has {', '.join(shown._fields)}"
        )
    xy = arrays["xy"]
    if xy.ndim != 3 or xy.shape[2] != 2:
        raise InputError(f"{source}: xy has shape {xy.shape}; it must be (instances, nodes, 2)")
    if 0 in xy.shape:
        raise InputError(f"{source}: holds no instance; xy has shape {xy.shape}")
    attributes = {one.name: one for one in attributes_of(problem)}
    fields = {}
    for name, like in zip(shown._fields, shown, strict=True):
        if name not in arrays:
            continue
        array = arrays[name]
        if like is not None:
            # Axis 0 of the sample is the batch, axes of its node count are the nodes.
            wanted = (xy.shape[0], *(xy.shape[1] if size == shown.xy.shape[1] else size for size in like.shape[1:]))
            if name in attributes and attributes[name].of == "depot":  # as many as there are
                wanted = (*wanted[:1], *array.shape[1:2], *wanted[2:])
            if array.shape != wanted:
                raise InputError(f"{source}: {name} has shape {array.shape}; {wanted} fits the shape of xy")
        whole = like is not None and not like.is_floating_point()
        unbounded = name in attributes and attributes[name].unbounded
        fields[name] = torch.from_numpy(_cast(array, whole, f"{source}: {name}", unbounded))
    x = type(shown)(**fields)
    with about(source):
        problem.validate(x)
    return x


def _cast(array: np.ndarray, whole: bool, what: str, unbounded: bool) -> np.ndarray:
    """A copy as int64 or float32. Floats are accepted for whole numbers if they have no fraction."""
    if array.dtype.kind not in "iuf":
        raise InputError(f"{what} holds {array.dtype} values; numbers are needed")
    finite = np.isfinite(array) | (unbounded & (array == np.inf))
    if not finite.all():
        raise InputError(f"{what} has a value that is not a finite number (instance {_row(~finite)})")
    if whole:
        fraction = array != np.floor(array)
        if fraction.any():
            raise InputError(f"{what} has a fraction; whole numbers are needed (instance {_row(fraction)})")
        large = (array > LARGEST_WHOLE) | (array < -LARGEST_WHOLE)
        if large.any():
            raise InputError(f"{what} has a number beyond {LARGEST_WHOLE:.0e} (instance {_row(large)})")
        return array.astype(np.int64, order="C")
    with np.errstate(over="ignore"):
        result = array.astype(np.float32, order="C")
    grown = ~np.isfinite(result) & np.isfinite(array)
    if grown.any():
        raise InputError(f"{what} has a number too large for single precision (instance {_row(grown)})")
    return result


def _row(bad: np.ndarray) -> int:
    return int(np.argwhere(bad)[0][0]) if bad.ndim else 0


# ------------------------------------------------------------------------------- what instances are known by


def fingerprint(x: Any) -> str:
    """A digest of the very numbers of the instances."""
    digest = hashlib.sha256()
    for name, field in zip(type(x)._fields, x, strict=True):
        if field is not None:
            digest.update(f"{name} {field.dtype} {tuple(field.shape)}".encode())
            digest.update(np.ascontiguousarray(field.detach().cpu().numpy()).tobytes())
    return digest.hexdigest()


def fingerprints(x: Any) -> NDArray[np.uint64]:
    """[B]: a number for each instance, by all of its fields; the same from any file format (single precision)."""
    columns = []
    for name, field in zip(x._fields, x, strict=True):
        if field is not None:
            values = field.detach().cpu().numpy()
            columns.append((name.encode(), values.astype("<f4" if values.dtype.kind == "f" else "<i8")))
    marks = np.empty(len(x.xy), dtype=np.uint64)
    for row in range(len(marks)):
        digest = hashlib.blake2b(digest_size=8)
        for name, values in columns:
            digest.update(name)
            digest.update(values[row].tobytes())
        marks[row] = int.from_bytes(digest.digest(), "little")
    return marks
