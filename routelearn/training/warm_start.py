"""A run that starts from another model: what is taken from it, what is not, and how its card tells."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from routelearn.errors import InputError, first_few
from routelearn.models import model_file
from routelearn.policies.layers import Encoder, deepen
from routelearn.training.config import TrainConfig, name_of

SHOWN = 6  # names of parameters in a note


def as_it_was(path: Path, changes: dict[str, Any]) -> dict[str, Any]:
    """The changes of a configuration, completed by a model's policy and the options that it was built with.

    Another policy takes over the options that are fields, and none of the model's own settings.
    """
    policy = changes.get("policy")
    if isinstance(policy, nn.Module):  # made already
        return changes
    model = model_file.load(path)
    fields = {name: value for name, value in model.options.items() if name in TrainConfig.names()}
    if policy is not None and model.kind != (policy if isinstance(policy, str) else name_of("policy", policy)):
        return fields | changes
    own = {name: value for name, value in model.options.items() if name not in fields}
    return {**fields, "policy": model.kind, **changes, "settings": own | dict(changes.get("settings", {}))}


def widened(own: Tensor, theirs: Tensor) -> Tensor | None:
    """A matrix of theirs for more inputs, of which the last ones begin without effect; None: it is no such case."""
    if own.ndim != 2 or theirs.ndim != 2 or own.shape[0] != theirs.shape[0] or own.shape[1] <= theirs.shape[1]:
        return None
    return F.pad(theirs, (0, own.shape[1] - theirs.shape[1]))


def start_from(policy: Any, config: TrainConfig, path: Path) -> tuple[dict[str, Any], list[str | None]]:
    """Take the parameters of the same name and shape. The other model's card, and what the user should hear of.

    A problem may add features or context to those of another: the weights of the first ones are taken.
    """
    model = model_file.load(path)
    theirs, own = model.policy.state_dict(), policy.state_dict()
    shared = {name: value for name, value in theirs.items() if name in own and own[name].shape == value.shape}
    wider = {name: widened(own[name], value) for name, value in theirs.items() if name in own and name not in shared}
    shared |= {name: value for name, value in wider.items() if value is not None}
    if len(shared) < min(len(own), len(theirs)) // 2:
        raise InputError(f"{path}: only {len(shared)} of {len(own)} parameters fit this policy; is its width the same?")
    options = config.policy_options()
    changed = {name: value for name, value in model.options.items() if name in options and options[name] != value}
    if "heads" in changed:  # every head would be cut in pieces, though all shapes fit
        raise InputError(f"{path}: has {changed['heads']} heads, not {options['heads']}; heads must be the same")
    policy.load_state_dict({**own, **shared})
    notes: list[str | None] = []
    if model.kind != config.policy:
        notes.append(f"{path.name} is of policy {model.kind!r}, its weights go on in policy {config.policy!r}")
    if inputs := [name for name in wider if name in shared]:
        notes.append(f"inputs are added, which begin without effect: {', '.join(inputs)}")
    fresh = [name for name in own if name not in shared]
    encoder, added = getattr(policy, "encoder", None), options.get("layers", 0) - model.options.get("layers", 0)
    if added > 0 and isinstance(encoder, Encoder) and deepen(encoder, added):
        notes.append(f"{added} layers are added; they begin as the identity")
        fresh = [name for name in fresh if not name.startswith("encoder.layers.")]
    if changed:
        told = ", ".join(f"{name} {value} (here {options[name]})" for name, value in changed.items())
        notes.append(f"{path.name} was trained with {told}; to go on from it as it was, give the same")
    if fresh:
        notes.append(f"not in {path.name}, so they start afresh: {first_few(fresh, SHOWN)}")
    if dropped := [name for name in theirs if name not in shared]:
        notes.append(f"of {path.name} not taken: {first_few(dropped, SHOWN)}")
    return model.card, notes


def ancestry(path: Path, card: dict[str, Any]) -> dict[str, Any]:
    """What a model that starts from this one says of it: its name, and all that was spent on it."""
    name = f"{path.resolve().parent.name}/{path.stem}" if path.stem in ("best", "last") else path.stem
    return {
        "warm_start": name,
        "instances_before": card.get("instances", 0) + card.get("instances_before", 0),
        "minutes_before": round(card.get("minutes", 0.0) + card.get("minutes_before", 0.0), 2),
    }
