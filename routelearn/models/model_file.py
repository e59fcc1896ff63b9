"""A model on disk: one safetensors file, its configuration and provenance in the header. Loading runs no code."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_bytes

from routelearn import policies, problems
from routelearn.errors import InputError
from routelearn.policies.base import shape_of
from routelearn.runtime.atomic import replace_file

FORMAT = "routelearn-model-1"


@dataclass(frozen=True)
class Model:
    """A policy ready to use, and where it comes from."""

    policy: Any
    problem: str
    kind: str
    options: dict[str, Any]
    card: dict[str, Any] = field(default_factory=dict)


def save(path: str | os.PathLike[str], model: Model, *, half: bool = False) -> None:
    """Write atomically. `half` stores floating point weights in half precision."""
    target = Path(path)
    tensors = {}
    for name, tensor in model.policy.state_dict().items():
        tensor = tensor.detach().cpu().contiguous()
        tensors[name] = tensor.half() if half and tensor.is_floating_point() else tensor
    header = {
        "format": FORMAT,
        "problem": model.problem,
        "policy": model.kind,
        "options": json.dumps(model.options),
        "card": json.dumps(model.card),
    }
    try:
        content = to_bytes(tensors, metadata=header)
    except SafetensorError as error:
        raise InputError(f"{path}: cannot be written ({error})") from error
    replace_file(target, lambda file: file.write(content))


def load(path: str | os.PathLike[str], device: torch.device | str = "cpu") -> Model:
    """The model in evaluation mode, in single precision; anything but a model file of ours is refused."""
    if not Path(path).is_file():
        raise InputError(f"{path}: no such model file")
    try:
        with safe_open(path, framework="pt") as file:
            header = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
    except (SafetensorError, OSError) as error:
        raise InputError(f"{path}: not a safetensors file, or damaged ({error})") from error
    if header.get("format") != FORMAT:
        raise InputError(f"{path}: not a routelearn model (its header names no format {FORMAT})")
    try:
        problem, kind = header["problem"], header["policy"]
        options, card = json.loads(header["options"]), json.loads(header["card"])
        if options.get("layers", 0) > len(tensors) or not isinstance(card, dict):
            raise InputError("its header does not fit its weights")
        with torch.device("meta"):  # sizes that the header promises take no memory before the weights bear them out
            policy = policies.build(kind, shape_of(problems.get(problem)), options)
        weights = {n: t.float() if t.is_floating_point() else t for n, t in tensors.items()}
        policy.load_state_dict(weights, assign=True)
    except (KeyError, TypeError, ValueError, RuntimeError, ArithmeticError, AttributeError, AssertionError) as error:
        reason = " ".join(str(error).split())[:200]
        raise InputError(f"{path}: damaged, or from another version ({reason})") from error
    return Model(policy.to(device).eval(), problem, kind, options, card)
