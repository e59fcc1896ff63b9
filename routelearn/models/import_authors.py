"""Convert the authors' published checkpoints to our models: weights only, nothing is executed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from routelearn import policies, problems
from routelearn.errors import InputError, in_short
from routelearn.models.model_file import Model
from routelearn.policies.base import shape_of


def import_checkpoint(path: Path, problem: str) -> Model:
    """Read `{"model": {...}}` as their code saves it and give the same policy in our form."""
    chosen = problems.get(problem)
    weights = _read(path)
    layers = len({name.split(".")[2] for name in weights if name.startswith("embedder.layers.")})
    query, expand = (weights.get(f"embedder.layers.0.{name}") for name in ("0.module.W_query", "2.module.0.weight"))
    if query is None or expand is None or query.dim() != 3 or "project_out.weight" not in weights:
        raise InputError(f"{path}: not a checkpoint of the authors' attention model (no embedder.layers.0.*)")
    (heads, width, _), hidden = query.shape, expand.shape[0]
    options = {"width": width, "heads": heads, "layers": layers, "hidden": hidden, "norm": "batch", "clip": 10.0}
    policy = policies.build("attention", shape_of(chosen), options)
    try:
        policy.load_state_dict(_translate(weights, policy.state_dict(), layers, chosen.has_depot))
    except KeyError as error:
        raise InputError(f"{path}: does not fit {problem}, or is damaged (it has no {error})") from error
    except (RuntimeError, ValueError) as error:
        reason = " ".join(str(error).split())[:300]
        raise InputError(f"{path}: does not fit {problem}; was it trained on another problem? ({reason})") from error
    card = {"origin": "imported from a checkpoint of the paper's authors", "file": path.name}
    return Model(policy.eval(), problem, "attention", options, card)


def _read(path: Path) -> dict[str, Tensor]:
    if not path.is_file():
        raise InputError(f"{path}: no such checkpoint")
    try:
        content: Any = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # zip, pickle and torch each raise their own kinds on damaged bytes
        raise InputError(f"{path}: not a checkpoint that can be read safely ({in_short(error)})") from error
    if not isinstance(content, dict) or not isinstance(content.get("model"), dict):
        raise InputError(f'{path}: a checkpoint of the authors holds a dictionary under "model"')
    if not all(isinstance(name, str) and isinstance(tensor, Tensor) for name, tensor in content["model"].items()):
        raise InputError(
            f'{path}: a checkpoint of the authors holds names and tensors, and nothing else, under "model"'
        )
    # Training on several GPUs put "module." in front of every name.
    return {name.removeprefix("module."): tensor for name, tensor in content["model"].items()}


def _translate(theirs: dict[str, Tensor], ours: dict[str, Tensor], layers: int, has_depot: bool) -> dict[str, Tensor]:
    """Translate their names and shapes to ours. Their first axis is heads: [H, D, d] is our rows h d + i of [D, D]."""

    def joined(name: str) -> Tensor:
        return theirs[name].permute(0, 2, 1).flatten(0, 1)

    out: dict[str, Tensor] = {}
    groups = ["init_embed_depot", "init_embed"] if "init_embed_depot.weight" in theirs else ["init_embed"]
    for index, group in enumerate(groups):
        out[f"encoder.embed.{index}.weight"] = theirs[f"{group}.weight"]
        out[f"encoder.embed.{index}.bias"] = theirs[f"{group}.bias"]
    for i in range(layers):
        attention, mine = f"embedder.layers.{i}.0.module", f"encoder.layers.{i}"
        out[f"{mine}.qkv.weight"] = torch.cat([joined(f"{attention}.W_{part}") for part in ("query", "key", "val")])
        out[f"{mine}.out.weight"] = theirs[f"{attention}.W_out"].flatten(0, 1).T
        for norm, place in (("norm_attention", 1), ("norm_feed_forward", 3)):
            for part in ("weight", "bias", "running_mean", "running_var"):
                out[f"{mine}.{norm}.{part}"] = theirs[f"embedder.layers.{i}.{place}.normalizer.{part}"]
            out[f"{mine}.{norm}.num_batches_tracked"] = torch.zeros((), dtype=torch.long)
        for linear, place in (("expand", 0), ("contract", 2)):
            for part in ("weight", "bias"):
                out[f"{mine}.{linear}.{part}"] = theirs[f"embedder.layers.{i}.2.module.{place}.{part}"]
    key, value, pointer = theirs["project_node_embeddings.weight"].chunk(3)
    out |= {"key.weight": key, "value.weight": value, "pointer.weight": pointer}
    out["graph.weight"] = theirs["project_fixed_context.weight"]
    out["context.weight"] = theirs["project_step_context.weight"]
    out["out.weight"] = theirs["project_out.weight"]
    if "project_node_step.weight" in theirs:
        out["step_features.weight"] = theirs["project_node_step.weight"]
    # Where a tour starts at the depot the context is never empty, and they have no placeholder.
    placeholder = torch.zeros_like(ours["placeholder"]) if has_depot else theirs["W_placeholder"]
    out["placeholder"] = placeholder.view_as(ours["placeholder"])
    return out
