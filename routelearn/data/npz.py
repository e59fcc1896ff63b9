"""Batches of instances of one size as `.npz`: one array per field, the problem's id and a format version."""

from __future__ import annotations

import math
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from routelearn.data.fields import assemble
from routelearn.data.files import MEGABYTE, read_bytes
from routelearn.errors import InputError, about, in_short
from routelearn.problems import get
from routelearn.runtime.atomic import writing

FORMAT_VERSION = 1
LIMIT = 4096 * MEGABYTE
RESERVED = ("problem", "format_version")


def save(path: str | Path, problem_name: str, x: Any) -> None:
    """Write instances; the file reads back equal (floats in single precision, whole numbers in 64 bits)."""
    get(problem_name).validate(x)
    arrays = {name: field.detach().cpu().numpy() for name, field in zip(x._fields, x, strict=True) if field is not None}
    arrays = {name: a.astype(np.float32 if a.dtype.kind == "f" else np.int64) for name, a in arrays.items()}
    with writing(path), open(path, "wb") as file:  # an open file, because savez would append a suffix to a bare name
        np.savez_compressed(file, problem=problem_name, format_version=FORMAT_VERSION, **arrays)


def load(path: str | Path, problem_name: str | None = None) -> tuple[str, Any]:
    """(problem id, Instance [B, ...]) of a file; with `problem_name` it must hold that problem."""
    return parse(read_bytes(path, LIMIT), str(path), problem_name)


def parse(data: bytes, source: str, problem_name: str | None = None, limit: int = LIMIT) -> tuple[str, Any]:
    """As `load`, from the bytes of a file that messages call `source`; `limit` is in bytes, once unpacked."""
    arrays = arrays_of(data, source, limit)
    missing = [name for name in RESERVED if name not in arrays]
    if missing:
        raise InputError(
            f"{source}: no {missing[0]!r} entry; not a file of instances (docs/reference/formats.md names the entries)"
        )
    version, name = arrays.pop("format_version"), arrays.pop("problem")
    if version.shape != () or version.dtype.kind not in "iu" or int(version) != FORMAT_VERSION:
        raise InputError(f"{source}: format version {_scalar(version)}; this program reads version {FORMAT_VERSION}")
    if name.shape != () or name.dtype.kind != "U":
        raise InputError(f"{source}: 'problem' must be one string, the problem's id")
    with about(source):
        problem = get(str(name))
    if problem_name is not None and problem.name != get(problem_name).name:
        raise InputError(f"{source}: holds instances of {problem.name}, not of {problem_name}")
    return problem.name, assemble(problem, arrays, source)


def _scalar(value: np.ndarray) -> str:
    return repr(value.item())[:40] if value.shape == () else f"of shape {value.shape}"


def arrays_of(data: bytes, source: str, limit: int = LIMIT) -> dict[str, np.ndarray]:
    """The arrays of an `.npz`; nothing is unpickled, and no more memory is taken than the limit."""
    if not zipfile.is_zipfile(BytesIO(data)):
        raise InputError(f"{source}: not an .npz file, or cut short")
    try:
        _check_sizes(data, limit)
        with np.load(BytesIO(data), allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except InputError as error:
        raise InputError(f"{source}: {error}") from None
    except Exception as error:  # zip, zlib and the array header each raise their own kinds on damaged bytes
        raise InputError(f"{source}: damaged or not an .npz of plain arrays ({in_short(error)})") from None


def _check_sizes(data: bytes, limit: int) -> None:
    """Refuse what would unpack to more than the limit, or whose header promises more than the entry holds.

    numpy allocates what a header promises before it reads, so the promise is checked first.
    """
    with zipfile.ZipFile(BytesIO(data)) as archive:
        names = archive.namelist()
        if len(set(names)) != len(names):
            raise InputError("two entries have one name")
        if sum(info.file_size for info in archive.infolist()) > limit:
            raise InputError(f"unpacks to more than the {limit / MEGABYTE:.0f} MB that are read; split it")
        for info in archive.infolist():
            with archive.open(info) as entry:
                version = np.lib.format.read_magic(entry)
                header = (
                    np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
                )
                shape, _, dtype = header(entry)
            if math.prod(shape) * dtype.itemsize > info.file_size:
                raise InputError(f"{info.filename} is shorter than its header says")
