"""What torch loads for tracing and compiling comes when something traces: a third of the time of its import."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

LATER = "torch._meta_registrations"  # shapes of results without values, which nothing needs that only computes
# What traces loads one of these; torch expects that LATER came before them.
TRACING = ("torch._dynamo", "torch._inductor", "torch._decomp", "torch._prims", "torch._refs")


def defer() -> None:
    """For a process of our own, before it imports torch; harmless after that."""
    if "torch" not in sys.modules and not any(isinstance(finder, Deferring) for finder in sys.meta_path):
        sys.meta_path.insert(0, Deferring())


class Deferring(MetaPathFinder):
    """LATER is run when one of its names is asked for, or before any of TRACING."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name == LATER:
            spec = PathFinder.find_spec(name, path, target)
            if spec is not None and spec.loader is not None:
                spec.loader = Put(spec.loader)
            return spec
        if name in TRACING and isinstance(later := sys.modules.get(LATER), Pending):
            later.run()
            if (found := sys.modules.get(name)) is not None:  # it was loaded by that, and must not be again
                there = There(found)
                found.__spec__ = None  # or Python would take this one for the module to load
                return ModuleSpec(name, there)
        return None


class Pending(ModuleType):
    """A module that has not been run."""

    def run(self) -> None:
        self.__class__ = ModuleType  # type: ignore[assignment]
        assert self.__spec__ is not None
        assert isinstance(self.__spec__.loader, Put)
        self.__loader__ = self.__spec__.loader = self.__spec__.loader.loader
        self.__loader__.exec_module(self)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # whoever goes through all modules asks for such names
            raise AttributeError(name)
        self.run()
        return getattr(self, name)


class Put(Loader):
    """Makes a module pending. `LazyLoader` of the library would not do: its modules are run by any name."""

    def __init__(self, loader: Loader):
        self.loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return Pending(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Not yet."""


class There(Loader):
    """Hands out a module that was loaded while it was looked for, as it was."""

    def __init__(self, module: ModuleType):
        self.module, self.spec = module, module.__spec__

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self.module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self.spec
