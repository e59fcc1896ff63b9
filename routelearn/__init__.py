"""routelearn: learned heuristics for routing problems, and the classical ones beside them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from routelearn.runtime.caching import choose_place

__version__ = "0.1.0"

# Names that people import from the package; each is loaded when first used, so that `import routelearn` is cheap.
# After a colon: what the module calls it.
_EXPORTS = {
    "solve": "routelearn.solving",
    "solve_many": "routelearn.solving",
    "Solution": "routelearn.solving.solution",
    "read_round": "routelearn.rounds.files",
    "solve_round": "routelearn.rounds.solving",
    "check_round": "routelearn.rounds.solving",
    "RoundSolution": "routelearn.rounds.answers",
    "evaluate": "routelearn.api",
    "decode": "routelearn.api",
    "check_problem": "routelearn.problems.contract.checking",
    "ContractError": "routelearn.problems.contract.checking",
    "PROBLEMS": "routelearn.problems",
    "register": "routelearn.registering",
    "load_plugin": "routelearn.plugins:load",
    "train": "routelearn.training.train",
    "TrainingResult": "routelearn.training.result",
    "load_model": "routelearn.models",
    "InputError": "routelearn.errors",
    "Infeasible": "routelearn.errors",
}

__all__ = list(_EXPORTS)  # docs/reference/api.md describes them

_cache_note = choose_place(Path(__file__).parent)  # before numba is loaded; the command line says it


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        raise AttributeError(f"module 'routelearn' has no attribute {name!r}")
    from importlib import import_module

    module, _, attribute = _EXPORTS[name].partition(":")
    return getattr(import_module(module), attribute or name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_EXPORTS])
