"""Plugins: files and installed packages that add problems, policies, losses, baselines and solvers.

A plugin's file becomes a module of this package, so that a child process finds the classes of what it is sent.
"""

from __future__ import annotations

from routelearn.plugins.loading import (
    VARIABLE,
    Plugin,
    available,
    forget,
    from_environment,
    load,
    loaded,
    paths,
    plugin_of_caller,
)

__all__ = [
    "VARIABLE",
    "Plugin",
    "available",
    "forget",
    "from_environment",
    "load",
    "loaded",
    "paths",
    "plugin_of_caller",
]
