"""Several processes, one model: gradients and statistics averaged over the ranks of torchrun."""

from __future__ import annotations

import os
from collections.abc import Iterable

import torch
import torch.distributed as dist
from torch import Tensor, nn


def start(device: torch.device) -> bool:
    """Join the group that torchrun prepared; alone, or as a member already, nothing happens. True: joined now."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1 or dist.is_initialized():
        return False
    if device.type == "cuda":  # a GPU each; "cuda" without a number then means this rank's own
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]) if device.index is None else device.index)
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    return True


def stop() -> None:
    if dist.is_initialized():
        dist.destroy_process_group()


def rank() -> int:
    """This process's number; torchrun gives it before the group is joined."""
    return dist.get_rank() if dist.is_initialized() else int(os.environ.get("RANK", "0"))


def world() -> int:
    return dist.get_world_size() if dist.is_initialized() else 1


def average(value: Tensor) -> Tensor:
    """The mean of a tensor over all ranks."""
    if world() == 1:
        return value
    total = value.clone()
    dist.all_reduce(total)
    return total / world()


def average_gradients(parameters: Iterable[nn.Parameter]) -> None:
    """One all-reduce over all gradients together."""
    if world() == 1:
        return
    gradients = [p.grad for p in parameters if p.grad is not None]
    flat = torch.cat([g.flatten() for g in gradients])
    dist.all_reduce(flat)
    flat /= world()
    for gradient, part in zip(gradients, flat.split([g.numel() for g in gradients]), strict=True):
        gradient.copy_(part.view_as(gradient))


def average_buffers(module: nn.Module) -> None:
    """Running statistics are the mean of what the ranks saw, so that all ranks stay identical."""
    if world() == 1:
        return
    for buffer in module.buffers():
        if buffer.is_floating_point():
            dist.all_reduce(buffer)
            buffer /= world()


def broadcast(module: nn.Module) -> None:
    """Everyone starts from rank 0's parameters and buffers."""
    if world() == 1:
        return
    for tensor in module.state_dict().values():
        if isinstance(tensor, Tensor):
            dist.broadcast(tensor, 0)


def agree(decision: bool) -> bool:
    """Rank 0 decides for all, so that rounding on one rank cannot split the run."""
    if world() == 1:
        return decision
    vote = torch.tensor([float(decision)], device=meeting_place())
    dist.broadcast(vote, 0)
    return bool(vote.item())


def largest(*numbers: float) -> list[float]:
    """The largest of each number over all ranks: clocks and signals of one rank count for all."""
    if world() == 1:
        return list(numbers)
    most = torch.tensor(numbers, device=meeting_place(), dtype=torch.float64)
    dist.all_reduce(most, dist.ReduceOp.MAX)
    return most.tolist()


def gathered(value: Tensor) -> list[Tensor]:
    """Every rank's tensor, all of one shape, by rank, where they are kept."""
    if world() == 1:
        return [value]
    mine = value.to(meeting_place())
    parts = [torch.empty_like(mine) for _ in range(world())]
    dist.all_gather(parts, mine)
    return [part.to(value.device) for part in parts]


def meeting_place() -> str:
    """The kind of device whose tensors the ranks can exchange."""
    return "cuda" if dist.get_backend() == "nccl" else "cpu"
