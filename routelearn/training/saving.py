"""What a run leaves in its folder: its checkpoint, and its last and its best model, each with a card."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch

from routelearn.models import model_file
from routelearn.runtime.atomic import write_text
from routelearn.training import checkpoint, distributed
from routelearn.training.state import RunState
from routelearn.training.validation import Judge

CHECKPOINT, CONFIG, BEGUN_WITH = "checkpoint.pt", "config.json", "begun-with.json"


def begin(out: Path, state: RunState, begun_with: dict[str, Any] | None) -> None:
    """Make the run's folder and write down what it is made with."""
    write_text(out / CONFIG, state.config.to_json() + "\n")
    if begun_with is not None:
        write_text(out / BEGUN_WITH, json.dumps(begun_with, indent=2) + "\n")


def withdraw(out: Path) -> None:
    """Take back what a run wrote that could not take its first step; the folder may be used again."""
    for name in (CHECKPOINT, CONFIG, BEGUN_WITH, "last.safetensors"):
        (out / name).unlink(missing_ok=True)


def save(out: Path, state: RunState, judge: Judge) -> None:
    """Checkpoint and models, each replaced atomically. All ranks call it; the first writes."""
    whole = state.state_dict()
    if distributed.rank() == 0:
        checkpoint.save(out / CHECKPOINT, whole)
        model_file.save(out / "last.safetensors", model_of(state, judge, best=False))
        if state.best["costs"]:
            model_file.save(out / "best.safetensors", model_of(state, judge, best=True))


def model_of(state: RunState, judge: Judge, *, best: bool) -> model_file.Model:
    """The run's model as it is now or, where there was a validation yet, at the `best` one; with its card."""
    config, kept = state.config, state.best if best and state.best["costs"] else {}
    card = {
        "sizes": sorted(set(config.sizes)),
        **state.origin,
        "instances": kept.get("instances", state.instances),
        "minutes": round(kept.get("elapsed", state.elapsed) / 60, 2),
        "hardware": torch.cuda.get_device_name(state.device) if state.device.type == "cuda" else "CPU",
        "seed": config.seed,
        "validation_cost": sum(kept["costs"].values()) if kept else None,
        "config": json.loads(config.to_json()),
    }
    policy = judge.settled(state.policy, kept["policy"] if kept else state.policy.state_dict()).eval()
    return model_file.Model(policy, config.problem, config.policy, config.policy_options(), card)
