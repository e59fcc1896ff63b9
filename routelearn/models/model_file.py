"""A model on disk: one safetensors file, its configuration and provenance in the header. Loading runs no code."""

from __future__ import annotations

import json
import math
import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_bytes

from routelearn import plugins, policies, problems
from routelearn.errors import InputError, Notice
from routelearn.policies.base import shape_of
from routelearn.runtime.atomic import replace_file
from routelearn.settings import check_values

FORMAT = "routelearn-model-1"
# What a header raises that nobody wrote in earnest.
UNFIT = (KeyError, TypeError, ValueError, RuntimeError, ArithmeticError, AttributeError, AssertionError)


@dataclass(frozen=True, repr=False)
class Model:
    """A policy ready to use, and where it comes from."""

    policy: Any
    problem: str
    kind: str
    options: dict[str, Any]
    card: dict[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        count = sum(parameter.numel() for parameter in self.policy.parameters())
        return f"Model({self.kind} for {self.problem}, {count:,} parameters)"


def save(path: str | os.PathLike[str], model: Model, *, half: bool = False) -> None:
    """Write atomically. `half` stores floating point weights in half precision.

    The card also records the plugins that problem and policy came from, if they did.
    """
    target = Path(path)
    tensors = {}
    for name, tensor in model.policy.state_dict().items():
        tensor = tensor.detach().cpu().contiguous().clone()  # two names of one tensor are two in a file
        tensors[name] = tensor.half() if half and tensor.is_floating_point() else tensor
    header = {
        "format": FORMAT,
        "problem": model.problem,
        "policy": model.kind,
        "options": json.dumps(model.options),
        "card": json.dumps(with_plugins(model)),
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
    except UNFIT as error:
        raise damaged(path, error) from error
    check_plugins(path, problem, kind, card)
    try:
        check_values(policies.POLICIES.find(kind), options)
        with torch.device("meta"):  # sizes that the header promises take no memory before the weights bear them out
            policy = policies.build(kind, shape_of(problems.get(problem)), options)
        refuse_unfinite(tensors)
        weights = {n: t.float() if t.is_floating_point() else t for n, t in tensors.items()}
        policy.load_state_dict(weights, assign=True)
        if any(tensor.is_meta for tensor in (*policy.parameters(), *policy.buffers())):  # some are in no file
            with torch.random.fork_rng(devices=[]):
                policy = policies.build(kind, shape_of(problems.get(problem)), options)
            policy.load_state_dict(weights)
    except UNFIT as error:
        raise damaged(path, error) from error
    return Model(policy.to(device).eval(), problem, kind, options, card)


def refuse_unfinite(tensors: Mapping[str, Any]) -> None:
    """Weights that are no numbers or infinite answer, too, but not what was learned."""
    for name, tensor in tensors.items():
        # A sum is quicker than a look at each number; in double precision none is too large.
        if tensor.is_floating_point() and not math.isfinite(tensor.sum(dtype=torch.float64)):
            raise InputError(f"{name} is not finite: it holds NaN or infinity")


def damaged(path: str | os.PathLike[str], error: Exception) -> InputError:
    reason = " ".join(str(error).split())[:200]
    return InputError(f"{path}: damaged, or from another version ({reason})")


def sources(problem: str, kind: str) -> dict[str, Any]:
    """What a model is made of -> the plugin it came from; None for this package's own, and for what is not there."""
    return {"problem": problems.PROBLEMS.plugin_of(problem), "policy": policies.POLICIES.plugin_of(kind)}


def with_plugins(model: Model) -> dict[str, Any]:
    """The card, with a record of every plugin that the model needs: its file, and what of the model it gives."""
    found = {part: plugin for part, plugin in sources(model.problem, model.kind).items() if plugin is not None}
    card = {name: value for name, value in model.card.items() if name != "plugins"}
    records = [
        {**plugin.record(), "for": [part for part in found if found[part] is plugin]}
        for plugin in dict.fromkeys(found.values())
    ]
    return {**card, "plugins": records} if records else card


def check_plugins(path: str | os.PathLike[str], problem: str, kind: str, card: dict[str, Any]) -> None:
    """Refuse a model whose plugin is not loaded; warn where the plugin has changed. A card's plugin is never loaded."""
    missing: list[str] = []
    for part, name, registry in (("problem", problem, problems.PROBLEMS), ("policy", kind, policies.POLICIES)):
        record = recorded(card, part)
        if record is None:
            if name not in registry:
                plugins.available()
            if name not in registry:
                raise InputError(f"{path}: needs the {part} {name!r}, which nobody registered (routelearn.register)")
            continue
        file = str(record.get("file"))[:80]
        try:
            registry.find(name)
        except InputError:
            if record.get("path") is None:
                words = f"needs the {part} {name!r} of a notebook; run what registers it before"
                raise InputError(f"{path}: {words}") from None
            missing.append(file)
            continue
        now = registry.plugin_of(name)
        if now is not None and now.sha256 != record.get("sha256"):
            words = f"{path}: was made with another version of the plugin {file}; results may differ"
            warnings.warn(words, Notice, stacklevel=3)
    if missing:
        files = list(dict.fromkeys(missing))
        plugin, it = ("plugin", "it") if len(files) == 1 else ("plugins", "them")
        flags = " ".join(f"--plugin {file}" for file in files)
        raise InputError(
            f"{path}: needs the {plugin} {' and '.join(files)} (not loaded); add {flags}, or import {it} before"
        )


def recorded(card: dict[str, Any], part: str) -> dict[str, Any] | None:
    """The card's record of the plugin that gave the problem or the policy; anybody may have written it."""
    records = card.get("plugins")
    for record in records if isinstance(records, list) else ():
        if isinstance(record, dict) and isinstance(record.get("for"), list) and part in record["for"]:
            return record
    return None
