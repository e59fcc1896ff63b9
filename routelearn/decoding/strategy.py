"""Names of decoding strategies and what they stand for: `greedy`, `augment:8+sample:16`, `augment:8+active:200`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from routelearn.errors import InputError
from routelearn.problems.base import Imagines, Problem

CHOICES = (
    "greedy, sample:K, sample:K@TEMPERATURE, multistart:K, augment:K, beam:K, guided:K, active:STEPS, "
    "retrain:STEPS, imagine:WORLDS, joined by +"
)
FIELDS = {"sample": "samples", "multistart": "starts"}  # and those of the same name
FIELDS |= {name: name for name in ("augment", "beam", "guided", "active", "retrain", "imagine")}
CANDIDATES = 4  # next nodes that are tried in imagined worlds
DRAWS = 16  # of a step of active search, unless the name says how many


@dataclass(frozen=True)
class Strategy:
    """What a name such as `augment:8+sample:16` stands for."""

    name: str
    augment: int = 1  # symmetries of the square, then random rotations
    starts: int = 0  # forced first nodes; 0: the policy chooses
    samples: int = 0  # draws (per start); 0: greedy
    temperature: float = 0.0  # of the draws; 0: the likeliest node at each step
    beam: int = 0  # partial solutions that are kept by their probability
    guided: int = 0  # partial solutions that are kept by what a greedy rollout makes of them
    active: int = 0  # gradient steps on each instance's embeddings
    retrain: int = 0  # gradient steps on all weights, for each instance
    imagine: int = 0  # worlds that every next node is tried in, where values are revealed on the visit

    @property
    def solutions(self) -> int:
        """Solutions per encoded instance that are built at once."""
        drawn = max(1, self.starts) * max(1, self.samples)
        return max(drawn, self.beam, self.guided**2, CANDIDATES if self.imagine else 1)

    @property
    def rollouts(self) -> int:
        """Solutions per instance that the best is kept of; of a guided beam for each of its steps."""
        return 1 if self.imagine else self.augment * self.solutions * max(1, self.learning_steps)

    def constructions(self, nodes: int) -> int:
        """At most so many solutions are built for an instance of that many nodes."""
        if self.imagine:
            return self.copies * CANDIDATES * nodes
        return self.rollouts * (nodes if self.guided else 1)

    @property
    def learning_steps(self) -> int:
        return self.active or self.retrain

    @property
    def copies(self) -> int:
        """Of an encoded instance in memory: symmetries, and worlds."""
        return self.augment * max(1, self.imagine)

    @property
    def of_known_length(self) -> bool:
        """Whether it is one run of steps, so that a CUDA graph can hold all of it."""
        return not (self.beam or self.guided or self.learning_steps or self.imagine)


def parse(text: str) -> Strategy:
    """The strategy of that name; an unknown name raises and lists the choices."""
    parts: dict[str, Any] = {}
    greedily = False
    for part in text.split("+"):
        match = re.fullmatch(rf"(greedy)|({'|'.join(FIELDS)}):(\d+)(?:@(\d*\.?\d+))?", part.strip())
        if match is None or (match[4] and match[2] != "sample"):
            raise InputError(f"unknown decoding strategy {part.strip()!r}; the choices are {CHOICES}")
        if match[1]:
            greedily = True
            continue
        field = FIELDS[match[2]]
        if field in parts:
            raise InputError(f"{match[2]} stands twice in {text!r}")
        parts[field] = int(match[3])
        if field == "samples":
            parts["temperature"] = 1.0
        if parts[field] < 1:
            raise InputError(f"{part.strip()!r} asks for {parts[field]}; it must be 1 or more")
        if match[4]:
            parts["temperature"] = float(match[4])
            if not 1e-3 <= parts["temperature"] <= 1e3:
                raise InputError(f"the temperature in {part.strip()!r} must lie between 0.001 and 1000")
    if "active" in parts and "retrain" in parts:
        raise InputError(f"{text!r}: active learns embeddings, retrain all weights; leave one out")
    if "active" in parts or "retrain" in parts:
        parts = {"samples": DRAWS, "temperature": 1.0} | parts
        if parts["temperature"] != 1.0:
            raise InputError(f"{text!r}: active search learns from draws at temperature 1; leave the temperature out")
    elif "guided" in parts and ("samples" in parts or "starts" in parts):
        raise InputError(f"{text!r}: a guided beam chooses its rollouts itself; join it with augment or active only")
    if "imagine" in parts and parts.keys() - {"imagine", "augment"}:
        raise InputError(f"{text!r}: imagine travels once by what it imagines; join it with augment only")
    if "beam" in parts and parts.keys() & {"samples", "starts", "guided", "active", "retrain"}:
        raise InputError(f"{text!r}: a beam keeps the likeliest solutions itself; join it with augment only")
    if greedily and parts.keys() & {"samples", "beam", "guided", "active", "retrain", "imagine"}:
        raise InputError(f"{text!r}: greedy contradicts the rest; leave it out, or join it with multistart or augment")
    return Strategy(text, **parts)


def refuse_hindsight(problem: Problem, strategy: Strategy) -> None:
    """Choosing among solutions by a cost that was hidden while they were built is not a strategy."""
    if problem.reveals_on_visit and (strategy.rollouts > 1 or strategy.guided or strategy.learning_steps):
        raise InputError(
            f"{strategy.name!r} keeps the best of {strategy.rollouts} solutions, but {problem.name} reveals its real "
            "cost only on the way: choosing afterwards is hindsight; use greedy or sample:1"
        )
    if strategy.imagine and not (problem.reveals_on_visit and isinstance(problem, Imagines)):
        hidden = "does not say how that is distributed (`imagined`); use greedy or sample:1"
        reason = hidden if problem.reveals_on_visit else "hides nothing; use guided or active"
        raise InputError(f"{strategy.name!r} imagines what visits will reveal, but {problem.name} {reason}")
