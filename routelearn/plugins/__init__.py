"""Plugins: files and installed packages that add problems, policies, losses, baselines and solvers.

Each is loaded once a process. A plugin's file becomes a module of this package, so that a child process finds the
classes of what it is sent.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import importlib.util
import os
import re
import sys
import threading
import traceback
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from routelearn.errors import InputError, Notice, about

VARIABLE = "ROUTELEARN_PLUGINS"  # files (or module names), joined as in PATH; child processes load them
GROUP = "routelearn.plugins"  # of entry points; each names a module
PACKAGE = "routelearn.plugins"  # files become modules of it
NOTHING = "registers nothing; call routelearn.register(...) in it"


@dataclass(eq=False)
class Plugin:
    """Where registered things come from."""

    name: str  # what messages call it: the file as it was given, or the module
    module: str
    path: str | None = None  # absolute; None for a notebook
    sha256: str | None = None  # of the file when it was loaded
    registered: list[tuple[Any, str]] = field(default_factory=list)  # (registry, name)

    @property
    def file(self) -> str:
        """What `--plugin` takes for it, without folders."""
        return self.module if self.path is None or self.name == self.module else Path(self.path).name

    def record(self) -> dict[str, Any]:
        """What a model's card keeps of it."""
        return {"file": self.file, "path": self.path, "sha256": self.sha256, "module": self.module}

    def __str__(self) -> str:
        return self.name


_known: dict[str, Plugin] = {}  # by absolute path, or by module name where there is no file
_loading: list[Plugin] = []  # the innermost last: a plugin may load another one
_lock = threading.RLock()
_installed_asked = False


def loaded() -> list[Plugin]:
    """The plugins of this process, in the order in which they came."""
    return list(dict.fromkeys(_known.values()))


def load(plugin: str | os.PathLike[str]) -> Plugin:
    """Load a plugin by its file or by the name of an importable module; once, however often it is asked for.

    Bad input raises InputError: one line with the plugin's file and the line where it went wrong.
    """
    shown = os.fspath(plugin)
    path = _path_of(shown)
    with _lock:
        found = _known.get(path or shown)
        if found is None:
            found = _load_module(shown, shown) if path is None else _load_file(shown, path)
        if (item := path or shown) not in paths():
            _set_variable([*paths(), item])
        return found


def forget(plugin: Plugin) -> None:
    """Take back all that a plugin registered, as if it had never been loaded."""
    with _lock:
        for registry, name in plugin.registered:
            registry.remove(name)
        plugin.registered.clear()
        for key in [key for key, known in _known.items() if known is plugin]:
            del _known[key]
        if plugin.module.startswith(f"{PACKAGE}.") and (module := sys.modules.get(plugin.module)) is not None:
            for name in [name for name, known in sys.modules.items() if known is module]:
                del sys.modules[name]
        left = [item for item in paths() if item not in (plugin.path, plugin.module)]
        _set_variable(left)


def paths() -> list[str]:
    """What child processes load: absolute paths of files, or names of modules."""
    return [item for item in os.environ.get(VARIABLE, "").split(os.pathsep) if item]


def from_environment() -> None:
    """Load the plugins that the environment names: those of the parent process, or the user's own choice."""
    for item in paths():
        with about(VARIABLE):
            load(item)


def available() -> None:
    """Load what the environment names and what installed packages offer; asked again, do nothing.

    An installed plugin that is broken is left out with a warning: it must not stop commands that do not need it.
    """
    global _installed_asked
    if _installed_asked:
        return
    with _lock:
        if _installed_asked:
            return
        from_environment()
        _installed_asked = True
        from importlib.metadata import entry_points

        for entry in entry_points(group=GROUP):
            try:
                if entry.module not in _known:
                    _load_module(entry.module, entry.module)
            except InputError as error:
                warnings.warn(f"the installed plugin {entry.name!r} is left out: {error}", Notice, stacklevel=2)


def plugin_of_caller(names: Mapping[str, Any]) -> Plugin:
    """The plugin that is being loaded; otherwise the file (or notebook) whose global names these are."""
    if _loading:
        return _loading[-1]
    module, file = str(names.get("__name__", "__main__")), names.get("__file__")
    if file is None:
        return _known.setdefault(module, Plugin(module, module))
    path = os.path.realpath(file)
    if path not in _known:
        _known[path] = Plugin(Path(path).name, module, path, _digest(path))
    return _known[path]


def is_loading() -> bool:
    return bool(_loading)


def _path_of(shown: str) -> str | None:
    """The absolute path of a plugin's file; None for the name of a module."""
    is_name = all(part.isidentifier() for part in shown.split("."))
    if is_name and not shown.endswith(".py") and not os.path.isfile(shown):
        return None
    path = os.path.realpath(shown)
    if os.path.isdir(path):
        raise InputError(f"{shown}: a folder; name the plugin's file, such as {os.path.join(shown, 'my_variant.py')}")
    if not path.endswith(".py"):
        raise InputError(f"{shown}: a plugin is a Python file (.py) or the name of an importable module")
    if not os.path.isfile(path):
        raise InputError(f"{shown}: no such plugin file")
    if os.pathsep in path:
        raise InputError(f"{shown}: child processes cannot be told of a path with {os.pathsep!r} in it; move the file")
    return path


def module_name(path: str) -> str:
    """The module that a file becomes: the same in every process, another for every file."""
    stem = re.sub(r"\W", "_", Path(path).stem)
    return f"{PACKAGE}.{stem}_{hashlib.sha256(path.encode()).hexdigest()[:12]}"


def _digest(path: str) -> str | None:
    """Of a file, or of all that belong to the package that it begins."""
    file = Path(path)
    files = sorted(file.parent.rglob("*.py")) if file.name == "__init__.py" else [file]
    try:
        return hashlib.sha256(b"".join(part.read_bytes() for part in files)).hexdigest()
    except OSError:
        return None


def _owner(module: str) -> Plugin | None:
    """The plugin that registered something of this module, which may have been imported by another one's file."""
    for plugin in loaded():
        things = [registry[name] for registry, name in plugin.registered]
        if module in {(thing if isinstance(thing, type) else type(thing)).__module__ for thing in things}:
            return plugin
    return None


def _load_file(shown: str, path: str) -> Plugin:
    plugin = Plugin(shown, module_name(path), path, _digest(path))
    if (folder := os.path.dirname(path)) not in sys.path:
        sys.path.append(folder)  # a plugin may import files beside it
    plain = Path(path).stem
    imported = getattr(sys.modules.get(plain), "__file__", None)
    if imported is not None and os.path.realpath(imported) == path and (owner := _owner(plain)) is not None:
        _known[path] = owner
        return owner
    with _refusing(plugin):
        spec = importlib.util.spec_from_file_location(plugin.module, path, loader=_Loader(plugin))
        assert spec is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[plugin.module] = module
        assert spec.loader is not None
        spec.loader.exec_module(module)
        if not plugin.registered:
            raise InputError(NOTHING)
    found = PathFinder.find_spec(plain) if plain not in sys.modules else None
    if found is not None and os.path.realpath(found.origin or "") == path:
        sys.modules[plain] = module  # a file beside it that imports it finds it as it is
    return plugin


class _Loader(SourceFileLoader):
    """Runs a plugin's file; what it registers is the plugin's."""

    def __init__(self, plugin: Plugin):
        assert plugin.path is not None
        super().__init__(plugin.module, plugin.path)
        self.plugin = plugin

    def get_code(self, fullname: str) -> CodeType:
        """Compiled anew: nothing is left beside the user's file, and an edit always takes effect."""
        return self.source_to_code(self.get_data(self.path), self.path)

    def exec_module(self, module: ModuleType) -> None:
        try:
            with _as(self.plugin):
                super().exec_module(module)
        except BaseException:
            forget(self.plugin)
            raise
        _known[self.path] = self.plugin


class _Finder:
    """Finds the module of a file that the environment names: a child process may be sent its classes first."""

    @staticmethod
    def find_spec(fullname: str, path: Sequence[str] | None = None, target: Any = None) -> ModuleSpec | None:
        if not fullname.startswith(f"{PACKAGE}."):
            return None
        for file in paths():
            if file.endswith(".py") and module_name(file) == fullname:
                plugin = Plugin(file, fullname, file, _digest(file))
                return importlib.util.spec_from_file_location(fullname, file, loader=_Loader(plugin))
        return None


sys.meta_path.append(_Finder)


def _load_module(shown: str, name: str) -> Plugin:
    plugin = Plugin(shown, name)
    with _refusing(plugin):
        try:
            spec = importlib.util.find_spec(name)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{name}.".startswith(f"{error.name}."):
                raise
            spec = None
        if spec is None:
            raise InputError("no module of that name can be imported; give a file (.py), or install the package")
        if spec.origin is not None and os.path.isfile(spec.origin):
            plugin.path, plugin.sha256 = os.path.abspath(spec.origin), _digest(spec.origin)
        with _as(plugin):
            importlib.import_module(name)
        # It may have been imported, and have registered its things, before.
        before = None if plugin.registered else _known.get(plugin.path or "") or _owner(name)
        if before is None and not plugin.registered:
            raise InputError(NOTHING)
    found = plugin if before is None else before
    _known[name] = found
    if found.path is not None:
        _known.setdefault(found.path, found)
    return found


@contextlib.contextmanager
def _as(plugin: Plugin) -> Iterator[None]:
    """What is registered within belongs to the plugin."""
    _loading.append(plugin)
    try:
        yield
    finally:
        _loading.pop()


@contextlib.contextmanager
def _refusing(plugin: Plugin) -> Iterator[None]:
    """Whatever goes wrong within is one line of InputError, and leaves nothing registered."""
    try:
        yield
    except KeyboardInterrupt:
        forget(plugin)
        raise
    except BaseException as error:
        forget(plugin)
        raise InputError(_line(plugin, error)) from error


def _line(plugin: Plugin, error: BaseException) -> str:
    """`my.py, line 12: NameError: name 'foo' is not defined`: the plugin's own line that led there."""
    lines = [entry.lineno for entry in traceback.extract_tb(error.__traceback__) if entry.filename == plugin.path]
    line = lines[-1] if lines else None
    words = str(error) if isinstance(error, InputError) else f"{type(error).__name__}: {error}".rstrip(": ")
    if isinstance(error, SyntaxError) and error.filename == plugin.path:
        line, words = error.lineno, f"{type(error).__name__}: {error.msg}"
    elif isinstance(error, SystemExit):
        words = f"ends the program (SystemExit: {error.code}); a plugin only registers, and leaves the rest to commands"
    where = plugin.name if line is None else f"{plugin.name}, line {line}"
    return f"{where}: {' '.join(words.split())[:400]}"


def _set_variable(items: list[str]) -> None:
    """Tell child processes what to load."""
    if items:
        os.environ[VARIABLE] = os.pathsep.join(items)
    else:
        os.environ.pop(VARIABLE, None)
