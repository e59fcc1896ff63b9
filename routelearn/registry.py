"""Things by name: problems, policies, losses, baselines and solvers, from this package or from a plugin."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

from routelearn.errors import InputError

Thing = TypeVar("Thing")


class Registry(Mapping[str, Thing]):
    """A dictionary that is only added to. It knows which plugin a name came from, and lists the choices when asked
    for a name it does not have."""

    def __init__(self, kind: str, things: Mapping[str, Thing]):
        self.kind = kind  # "problem", "policy", ...: what messages call its things
        self._things = dict(things)
        self._plugins: dict[str, str] = {}  # name -> the plugin that registered it; this package's own are not in it

    def __getitem__(self, name: str) -> Thing:
        return self._things[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._things)

    def __len__(self) -> int:
        return len(self._things)

    def find(self, name: str) -> Thing:
        """The thing of that name; an unknown name raises and lists the choices."""
        if name not in self._things:
            raise InputError(f"unknown {self.kind} {name!r}; the choices are {', '.join(self._things)}")
        return self._things[name]

    def add(self, name: str, thing: Thing, plugin: str) -> None:
        """Add what a plugin registers; a name that is taken is refused, unless it is the same thing once more."""
        if name in self._things and self._things[name] is not thing:
            owner = self._plugins.get(name, "routelearn itself")
            raise InputError(f"the {self.kind} name {name!r} is taken (by {owner}); choose another")
        self._things[name] = thing
        self._plugins[name] = plugin

    def plugin_of(self, name: str) -> str | None:
        """The plugin that registered a name; None for this package's own."""
        return self._plugins.get(name)
