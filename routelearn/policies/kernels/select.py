"""The one place that decides which implementation runs: compiled kernels, or a policy's own methods.

The methods of `AttentionPolicy` and of its layers say what is computed; they are the reference. A kernel stands for
some of them, and runs only where all of this holds:

- the backend is `auto`, not `reference`;
- the object's methods are the very ones that the kernel implements: not overridden in a subclass, not replaced on the
  class or the object, not edited in their file since the kernel was last compared with them;
- the parts of a layer are the plain modules whose weights the kernel reads, and no hook waits for their results;
- the kernel covers the device, the precision and the sizes (`usable` in the kernel's file).
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import inspect
import textwrap
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from routelearn.errors import InputError, Notice
from routelearn.policies import base
from routelearn.policies.kernels.cache import Cache
from routelearn.policies.kernels.cpu import decoder as cpu_decoder
from routelearn.policies.kernels.cpu import encoder as cpu_training
from routelearn.policies.kernels.cpu import inference as cpu_inference
from routelearn.policies.kernels.cpu import score as cpu_score
from routelearn.policies.kernels.gpu import decoder as gpu_decoder
from routelearn.policies.kernels.gpu import encoder as gpu_encoder

BACKENDS = ("auto", "reference")
NUMBERS = (int, float)  # what a kernel takes as the clip: a parameter would get no gradient

_without_kernels = 0  # how many blocks of the process ask for the reference now; decoding shares its work among threads
_lock = threading.Lock()


@contextlib.contextmanager
def backend(name: str) -> Iterator[None]:
    """Within the block, `reference` switches compiled kernels off, in all threads; `auto` changes nothing."""
    if name not in BACKENDS:
        raise InputError(f"unknown backend {name!r}; the choices are {', '.join(BACKENDS)}")
    global _without_kernels
    with _lock:
        _without_kernels += name == "reference"
    try:
        yield
    finally:
        with _lock:
            _without_kernels -= name == "reference"


_references: dict[type, dict[str, Callable[..., Any]]] = {}
_edited: dict[type, str] = {}  # classes whose code is not what the kernels were compared with, and where


def digest(function: Callable[..., Any]) -> str | None:
    """Twelve letters for a function's code, whatever its comments, docstring and layout; None without its source."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError):
        return None
    body = tree.body[0].body  # type: ignore[attr-defined]
    if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
        del body[0]
    return hashlib.sha256(ast.unparse(tree).encode()).hexdigest()[:12]


def implemented_by_kernels(**digests: str) -> Callable[[type], type]:
    """Decorates a class: kernels implement these methods, as they were when their code had these digests.

    Who edits such a method finds that it runs, without kernels. Who then edits the kernels, too, and has compared the
    two (tests/policies), writes down the digests that `python -m routelearn.policies.kernels` prints.
    """

    def record(cls: type) -> type:
        _references[cls] = {name: getattr(cls, name) for name in digests}
        for name, function in _references[cls].items():
            if digest(function) not in (digests[name], None):
                _edited[cls] = f"{cls.__name__}.{name}"
        return cls

    return record


def changed_digests() -> dict[str, str | None]:
    """Method or function -> its digest now, for those whose digest is not the one written down (and their class's)."""
    changed = {
        f"{cls.__name__}.{name}": digest(function) for cls in _edited for name, function in _references[cls].items()
    }
    return changed | {name: digest(_functions[name]) for name in _edited_functions}


# Kernels choose nodes themselves, as these functions of policies/base.py do.
_CHOOSING = {
    "likeliest": "1a4a3d120665", "drawn": "30784dd268b5", "picked": "cdf9b7b53b46", "choose_by_logits": "7578ce68e78f",
}  # fmt: skip
_functions: dict[str, Callable[..., Any]] = {name: getattr(base, name) for name in _CHOOSING}
_edited_functions = [name for name, known in _CHOOSING.items() if digest(_functions[name]) not in (known, None)]


def edit_of_choice() -> str | None:
    """Which of the functions that choose a node was edited or replaced; None if none was."""
    for name, function in _functions.items():
        if getattr(base, name) is not function:
            return name
    return _edited_functions[0] if _edited_functions else None


def edit_of(thing: Any) -> str | None:
    """What was changed in an object of a class that kernels implement, such as `Mine.logits`; None if nothing was."""
    kind = type(thing)
    cls = kind if kind in _references else next((known for known in _references if issubclass(kind, known)), None)
    if cls is None:
        return kind.__name__
    if issubclass(kind, nn.Module) and kind.__call__ is not nn.Module.__call__:
        return f"{kind.__name__}.__call__"
    own = thing.__dict__
    for name, function in _references[cls].items():
        if getattr(kind, name, None) is not function or name in own:
            return f"{kind.__name__}.{name}"
    return _edited.get(cls)


def decoder(policy: Any, cache: Any, solutions: int) -> Any:
    """The module that decodes steps of so many `solutions` in all for this policy, or None: its own methods do.

    Its kernels give no gradient.
    """
    if _without_kernels or torch.is_grad_enabled() or type(cache) is not Cache:
        return None
    if edit_of(policy) is not None or edit_of_choice() is not None or not isinstance(policy.clip, NUMBERS):
        return None
    if gpu_decoder.usable(cache):
        return gpu_decoder
    return cpu_decoder if cpu_decoder.usable(cache, solutions) else None


def scorer(policy: Any, cache: Any, pairs: int) -> Any:
    """The module that scores a record of so many `pairs` of queries and nodes, with gradients, or None."""
    if _without_kernels or type(cache) is not Cache or not isinstance(policy.clip, NUMBERS):
        return None
    if edit_of(policy) is not None or edit_of_choice() is not None:
        return None
    if gpu_decoder.usable(cache):
        return gpu_decoder
    return cpu_score if cpu_score.usable(cache, pairs) else None


_told: set[str] = set()


def tell_why_not(policy: Any, cache: Any) -> None:
    """Say once, in one line, why a policy is decoded without kernels on a GPU that has them."""
    on_gpu = gpu_decoder.present(next(policy.parameters()).device)
    if _without_kernels or torch.is_grad_enabled() or not on_gpu:
        return
    edit = edit_of(policy) or edit_of_choice()
    beyond = gpu_decoder.exceeded(cache) if type(cache) is Cache else f"a {Cache.__name__} of the attention model"
    if edit is not None:
        reason = f"{edit} is not what the compiled kernels implement"
    else:
        reason = f"the GPU's kernels take {beyond}"
    if (edit or beyond) is not None and reason not in _told:
        _told.add(reason)
        warnings.warn(f"{reason}: decoding runs by the policy's own methods, which is slower", Notice, stacklevel=2)


def settled(policy: Any, cache: Any, solutions: int) -> Any:
    """What chooses the nodes of one rollout on a CPU: the kernels, decided on here instead of at every step, or the
    policy."""
    on_cpu = decoder(policy, cache, solutions) is cpu_decoder
    return cpu_decoder.Chooser(cache, policy.clip) if on_cpu else policy


_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


def _plain(*modules: nn.Module) -> bool:
    """Whether these modules compute what their classes say, and nobody listens."""
    return not any(
        "forward" in module.__dict__ or any(getattr(module, hooks) for hooks in _HOOKS) for module in modules
    )


def matrix(linear: Any) -> Tensor:
    """The matrix of a part that is linear: its weight or, if it was replaced or someone listens, what it does to the
    identity."""
    if type(linear) is nn.Linear and _plain(linear):
        return linear.weight
    weight = linear.weight
    return linear(torch.eye(weight.shape[1], dtype=weight.dtype, device=weight.device)).T


def run_layer(layer: Any, h: Tensor, adjacent: Tensor | None = None) -> Tensor:
    """`layer(h, adjacent)`, by whichever implementation applies."""
    kernel = _layer_kernel(layer, h, adjacent)
    return layer(h, adjacent) if kernel is None else kernel(layer, h)


def _layer_kernel(layer: Any, h: Tensor, adjacent: Tensor | None) -> Callable[[Any, Tensor], Tensor] | None:
    if _without_kernels or adjacent is not None or edit_of(layer) is not None:
        return None
    unbiased, biased = (layer.qkv, layer.out), (layer.expand, layer.contract)
    if any(type(part) is not nn.Linear for part in (*unbiased, *biased)) or not _plain(layer, *unbiased, *biased):
        return None
    if any(part.bias is not None for part in unbiased) or any(part.bias is None for part in biased):
        return None
    if gpu_encoder.usable(h, layer):
        return gpu_encoder.layer_forward
    norms = (layer.norm_attention, layer.norm_feed_forward)
    if torch.compiler.is_compiling() or nn.modules.module._has_any_global_hook():
        return None
    if not _plain(*norms) or any(edit_of(norm) is not None for norm in norms):
        return None
    if cpu_training.usable(h, layer):
        return cpu_training.layer_forward
    return cpu_inference.layer_forward if cpu_inference.usable(h, layer) else None
