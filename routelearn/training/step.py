"""One training step: two passes over one trajectory (eq. 9).

First roll out without gradients and record what the policy saw; then score all recorded steps at once
with gradients. The second pass is as parallel as the first is sequential, and its gradient is exactly that
of decoding under autograd. Nothing here reads a tensor on the host, so the whole step can be one CUDA graph.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from routelearn.decoding.rollout import advance, follow, rollout
from routelearn.errors import InputError
from routelearn.policies.base import Trajectory, entropies, leave_out_given, picked
from routelearn.problems.base import DeviceRng, Problem, Rng
from routelearn.runtime.compiling import autocast, beside, compiled, compiled_encoder, rejoin
from routelearn.training import distributed
from routelearn.training.losses.base import Scored, Values

if TYPE_CHECKING:
    from routelearn.training.state import RunState


class Meter:
    """Sums on the device over the steps since the last look; one host synchronisation a look."""

    NAMES = ("steps", "cost", "value", "gradient_norm", "loss", "skipped", "unfinished", "longest")

    def __init__(self, device: torch.device):
        self.sums = torch.zeros(len(self.NAMES), device=device, dtype=torch.float64)

    def add(self, **values: Tensor) -> None:
        fresh = torch.stack([values[name].double() for name in self.NAMES[1:-1]])
        self.sums[0] += 1
        self.sums[1:-1] += fresh
        self.sums[-1] = torch.maximum(self.sums[-1], values["longest"].double())

    def read(self) -> dict[str, float]:
        """Means per step (skipped and unfinished: counts; longest: maximum; loss: sum), then start over.

        Lengths of rollouts concern all ranks: what one could not finish, or needed, counts for every one. So does a
        loss that is not a number.
        """
        read = dict(zip(self.NAMES, self.sums.tolist(), strict=True))
        broken = not math.isfinite(read["loss"])
        read["unfinished"], read["longest"], any_broken = distributed.largest(
            read["unfinished"], read["longest"], broken
        )
        if any_broken and not broken:
            read["loss"] = math.nan
        self.sums.zero_()
        for name in ("cost", "value", "gradient_norm"):
            read[name] /= max(1, read["steps"] - read["skipped"])
        return read


def undo(tensors: list[Tensor], before: Tensor, wanted: Tensor) -> None:
    """Restore `tensors` from the flat snapshot `before` where the device flag `wanted` is true."""
    now = torch.cat([tensor.flatten() for tensor in tensors])
    parts = torch.where(wanted, before, now).split([tensor.numel() for tensor in tensors])
    torch._foreach_copy_(tensors, [part.view_as(tensor) for part, tensor in zip(parts, tensors, strict=True)])


def forced_starts(problem: Problem, x: Any, solutions: int) -> Tensor:
    """[B, S, 1]: different legal first nodes, drawn at random; -1 (choose freely) where an instance has fewer."""
    legal = problem.starts(x)
    keys, nodes = torch.rand(legal.shape, device=legal.device).masked_fill(~legal, -1).topk(solutions, dim=1)
    return torch.where(keys < 0, -1, nodes)[..., None]


def refuse_no_loss(who: str, loss: Any, source: str) -> None:
    """Refuse what cannot be minimised."""
    if not isinstance(loss, Tensor) or loss.ndim or not loss.requires_grad:
        fault = f"a tensor of shape {list(loss.shape)}" if isinstance(loss, Tensor) else type(loss).__name__
        fault = "a number without gradient" if fault.endswith("[]") else fault
        raise InputError(f"{who} gave {fault}; it must be one number made from {source}")


class Step:
    """A training step for one size, one turn of a family of problems, and one bound on the steps of a rollout."""

    def __init__(self, state: RunState, size: int, meter: Meter, rng: Rng | None = None, turn: int = 0):
        config, device, policy = state.config, state.device, state.policy
        self.problem, self.policy, self.baseline, self.loss = state.turns[turn], policy, state.baseline, state.loss
        self.config, self.size, self.lessons = config, size, state.lessons.get(size)
        self.steps = state.rollout_steps[size] if self.lessons is None else self.lessons.tours.shape[1]
        self.precision, self.device = state.precision, device
        self.optimiser, self.norm_average, self.meter = state.optimiser, state.norm_average, meter
        self.rng = DeviceRng(device) if rng is None else rng
        # The policy's, and a learning baseline's.
        self.groups = [group["params"] for group in self.optimiser.param_groups]
        self.parameters = [p for group in self.groups for p in group]
        # What a forward pass leaves in the modules: running statistics, a baseline's average.
        self.buffers = [b for module in (policy, self.baseline) for b in module.buffers() if b.is_floating_point()]
        self.batch = config.batch_of(size)
        self.side = torch.cuda.Stream(device) if device.type == "cuda" else None
        compiles = state.compile and policy.compiles
        self.encode = compiled_encoder(policy, device) if compiles else policy.encode
        self.advance = compiled(advance, device) if compiles else advance
        self.cost = compiled(self.problem.cost, device) if state.compile else self.problem.cost

    def __call__(self) -> None:
        config, problem, policy = self.config, self.problem, self.policy
        self.optimiser.zero_grad()
        before = torch.cat([buffer.flatten() for buffer in self.buffers]) if self.buffers else None
        x, given = self.draw()
        features = problem.features(x)
        with autocast(self.device, self.precision):
            with beside(self.device, self.side):
                prepared = self.baseline.prepare(x, features)
            cache = self.encode(features)
            with torch.no_grad():
                if given is not None:
                    rolled = follow(problem, x, given)
                else:
                    rolled = rollout(
                        problem,
                        policy,
                        type(cache)(*(field.detach() for field in cache)),
                        x,
                        solutions=config.solutions,
                        steps=self.steps,
                        temperature=1.0,
                        prefix=forced_starts(problem, x, config.solutions) if config.multistart else None,
                        record=True,
                        step=self.advance,
                    )
                cost = self.cost(x, rolled.tour)
            rejoin(self.device, self.side)
            assert rolled.trajectory is not None
            log_prob, entropy, values = self.score(x, cache, rolled.trajectory)
        value = self.baseline.value(prepared, cost)
        if not isinstance(value, Tensor) or value.shape not in ((), (1, 1), (cost.shape[0], 1), cost.shape):
            kind = f"value of shape {list(value.shape)}" if isinstance(value, Tensor) else type(value).__name__
            wanted = f"a tensor of one number, {[cost.shape[0], 1]} or {list(cost.shape)}"
            raise InputError(f"baseline {config.baseline!r} gave a {kind}; it must be {wanted}")
        value = value.detach()  # a baseline learns by its own loss alone
        unit = cost.mean(1, keepdim=True).abs().clamp_min(1e-6) if config.relative else 1.0
        loss = self.loss(Scored(cost / unit, value / unit, log_prob, entropy, values))
        refuse_no_loss(f"loss {config.loss!r}", loss, "log_prob")
        if (learned := self.baseline.loss(prepared, cost)) is not None:
            refuse_no_loss(f"baseline {config.baseline!r} as its own loss", learned, "what it learns")
        (loss if learned is None else loss + learned).backward()
        distributed.average_gradients(self.parameters)
        # An instance cut short looks cheap and would be rewarded; neither it nor a wild step is applied.
        unfinished = ~rolled.done.all() | value.isposinf().any()  # the rollout baseline's solutions, too
        norms = torch.stack([nn.utils.clip_grad_norm_(group, config.gradient_norm) for group in self.groups])
        norm, usual = norms[0], self.norm_average  # 0 until the first step
        finite, bound = norms.isfinite().all(), config.explosion * usual
        wild = ~finite | ((norm > bound) & (usual > 0))
        cut, skip = distributed.average(torch.stack((unfinished, unfinished | wild)).float()) > 0
        # An exploding step counts in the mean as far as it may go: should all be so large, they are soon usual.
        moved = torch.where(usual > 0, usual.lerp(torch.minimum(norm, bound), 0.01), norm)
        usual.copy_(torch.where(finite & ~cut, moved, usual))
        self.optimiser.found_inf = skip.float()  # type: ignore[attr-defined]  # the fused kernel then changes nothing
        self.optimiser.step()
        distributed.average_buffers(policy)
        distributed.average_buffers(self.baseline)
        with torch.no_grad():
            if before is not None:
                undo(self.buffers, before, skip)
            keep = (~skip).double()
            change = (rolled.tour[..., 1:] != rolled.tour[..., :-1]).flatten(0, 1).any(0)
            longest = (change * torch.arange(2, self.steps + 1, device=self.device)).amax()
            mean_cost, mean_value = cost.mean(), value.mean()
            sound = (mean_cost + mean_value + log_prob.sum()).isfinite()  # else it is not the loss that is at fault
            self.meter.add(
                cost=mean_cost.nan_to_num() * keep,
                value=mean_value.nan_to_num(posinf=0) * keep,
                gradient_norm=norm.nan_to_num(posinf=0) * keep,
                loss=torch.where(sound, loss, 0.0),
                skipped=skip,
                unfinished=unfinished,
                longest=longest,
            )

    def draw(self) -> tuple[Any, Tensor | None]:
        """Fresh instances or, where there are lessons, some of theirs with the tours [B, 1, T] to follow."""
        if self.lessons is not None:
            return self.lessons.draw(self.batch)
        return self.problem.sample(self.rng, self.batch, self.size), None

    def score(self, x: Any, cache: Any, trajectory: Trajectory) -> tuple[Tensor, Tensor | None, Values | None]:
        """Log-probabilities [B, S, T] of the recorded steps and, where the loss needs them, entropies and values."""
        if not (self.loss.needs_entropy or self.loss.needs_values):
            return self.policy.score(cache, trajectory), None, None
        logits = self.policy.recorded_logits(cache, trajectory)
        log_prob = leave_out_given(picked(logits, trajectory.actions), trajectory.given)
        entropy = leave_out_given(entropies(logits), trajectory.given) if self.loss.needs_entropy else None
        if not self.loss.needs_values:
            return log_prob, entropy, None
        chosen = logits.gather(-1, trajectory.actions[..., None])[..., 0]
        added = self.problem.added(x, trajectory.actions)  # the configuration saw to it
        return log_prob, entropy, Values(chosen, logits.detach().amax(-1), added)
