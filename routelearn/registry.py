"""Things by name: problems, policies, losses, baselines and solvers, from this package or from a plugin."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from routelearn import plugins
from routelearn.errors import InputError
from routelearn.plugins import Plugin

Thing = TypeVar("Thing")
OTHERS = "; a plugin's own need --plugin FILE.py"  # ends every list of choices that a plugin could add to


class Registry(dict[str, Thing]):
    """A dictionary that plugins add to. It knows which plugin a name came from, and lists the choices when asked
    for a name it does not have."""

    def __init__(self, kind: str, things: Mapping[str, Thing]):
        super().__init__(things)
        self.kind = kind  # "problem", "policy", ...: what messages call its things
        self._plugins: dict[str, Plugin] = {}  # who registered a name; this package's own are not in it

    def find(self, name: str) -> Thing:
        """The thing of that name, if need be from an installed plugin; an unknown name raises and lists the choices."""
        if name not in self:
            plugins.available()
        if name not in self:
            raise InputError(f"unknown {self.kind} {name!r}; the choices are {', '.join(self)}{OTHERS}")
        return self[name]

    def add(self, name: str, thing: Thing, plugin: Plugin) -> None:
        """Add what a plugin registers; a name that is taken is refused, unless it is the same thing once more.

        In a notebook a cell runs again and again: what it registered before is replaced.
        """
        if name in self:
            if self[name] is thing:
                return
            owner = self._plugins.get(name)
            if owner is not plugin or plugin.path is not None:
                raise InputError(
                    f"the {self.kind} name {name!r} is taken (by {owner or 'routelearn itself'}); choose another"
                )
        else:
            plugin.registered.append((self, name))
        self[name] = thing
        self._plugins[name] = plugin

    def remove(self, name: str) -> None:
        """Take back what a plugin registered; this package's own names stay."""
        if self._plugins.pop(name, None) is not None:
            del self[name]

    def plugin_of(self, name: str) -> Plugin | None:
        """The plugin that registered a name; None for this package's own."""
        return self._plugins.get(name)
