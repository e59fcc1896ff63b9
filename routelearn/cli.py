"""The command line: thin. Each command is a file in commands/, imported only when it is called for."""

from __future__ import annotations

import gc
import io
import os
import sys
import warnings
from importlib import import_module
from typing import Any, NoReturn

import typer

from routelearn import _cache_note, plugins
from routelearn.commands.attributes import with_attributes
from routelearn.errors import Infeasible, InputError, Notice, OutOfSpace, place
from routelearn.runtime.atomic import FULL

# Command -> the line that `routelearn --help` shows. The function has the command's name, in the file of that name.
COMMANDS = {
    "solve": "Find a good route for your own stops.",
    "improve": "Improve a solution by local search.",
    "check": "Check a plan: itinerary, cost, and every rule that it breaks.",
    "train": "Train a model.",
    "evaluate": "Measure a model or a solver on a set of instances.",
    "generate": "Write a set of random instances; by default the paper's test set.",
    "tours": "Solve random instances, as lessons for `train --loss supervised`.",
    "serve": "Answer over HTTP, with a page to watch the policy think.",
    "models": "List the trained models that ship with the package.",
    "solvers": "List the solvers: their problems, licence, and whether usable here.",
    "reproduce": "Make the paper's tables and figures again.",
    "plot-run": "Draw the learning curves of training runs.",
    "examples": "Copy the example files into a folder.",
    "import-authors": "Turn a checkpoint of the paper's authors into a model.",
}

# Every command takes it, before or after the command's name; `main` reads it before the command is made.
PLUGIN = "--plugin FILE.py loads a plugin, and may be repeated (docs/guides/extend.md)."

USUAL_WARNING: Any = warnings.formatwarning
INTERRUPTED = 130  # the shell's status for a command ended by Ctrl-C

# Typer carries its own copy of click from some version on; its base error is reached through a name it exports.
UsageProblem: Any = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")


def overview() -> str:
    """What `routelearn --help` prints."""
    width = max(map(len, COMMANDS)) + 2
    lines = [
        "Usage: routelearn COMMAND [OPTIONS] [--plugin FILE.py]",
        "",
        "  Learned heuristics for routing problems: solve your own stops, train models, compare with solvers.",
        "",
        "Commands:",
        *(f"  {name:{width}}{summary}" for name, summary in COMMANDS.items()),
        "",
        "--plugin FILE.py, on any command, loads problems, policies, losses, baselines or solvers of your own.",
        "`routelearn COMMAND --help` explains a command; `routelearn --version` shows the version.",
    ]
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run a command. Bad input is one line on standard error and exit status 2, never a traceback."""
    starts = arguments is None  # a process of its own, not a call from Python
    if starts:
        gc.disable()  # until the libraries are loaded: looking through them again and again took a third of a second
    arguments = sys.argv[1:] if arguments is None else arguments
    replace_unprintable()
    # Threads that wait for each other soon sleep. By default they spin, which beside other work slows a training down
    # (docs/notes/training_speed.md). Read when the library is loaded, which is later.
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")
    warnings.formatwarning = show_warning  # type: ignore[assignment]
    if _cache_note is not None:
        warnings.warn(_cache_note, Notice, stacklevel=1)
    arguments, wanted = take_plugins(arguments)
    if not arguments or arguments[0] in ("-h", "--help"):
        print(overview())
        sys.exit(0)
    if arguments[0] == "--version":
        from routelearn import __version__

        print(f"routelearn {__version__}")
        sys.exit(0)
    name, *rest = arguments
    if name not in COMMANDS:
        fail(f"unknown command {name!r}; the commands are {', '.join(COMMANDS)}")
    try:
        for plugin in wanted:  # first: what they register are choices that the command's help names
            plugins.load(plugin)
        plugins.available()
        made = command(name)
        if starts:
            gc.freeze()
            gc.enable()
        code = made.main(args=rest, prog_name=f"routelearn {name}", standalone_mode=False)
    except OutOfSpace as error:
        fail(str(error), code=1)
    except InputError as error:
        fail(str(error))
    except Infeasible as error:
        hint = about_plugins()
        told = "" if hint else ", which is a bug worth reporting"
        fail(f"a solution broke a rule{told}: {error}{hint and f'; {hint}'}", code=1)
    except UsageProblem as error:
        fail(f"{error.format_message()} (see routelearn {name} --help)")
    except (typer.Abort, KeyboardInterrupt) as error:
        fail(str(error) or "interrupted", code=INTERRUPTED)
    except BrokenPipeError:
        sys.exit(0)
    except OSError as error:
        fail(f"{error.filename or 'the system'}: {error.strerror or error}", code=1 if error.errno in FULL else 2)
    except Exception as error:
        where = place(error, {plugin.path for plugin in plugins.loaded()})
        if hint := "; ".join(part for part in (where and f"in {where}", about_plugins()) if part):
            error.add_note(hint)
        raise
    if code == INTERRUPTED:  # some versions of typer turn the keyboard's interruption into a status
        fail("interrupted", code=INTERRUPTED)
    sys.exit(code if isinstance(code, int) else 0)


def take_plugins(arguments: list[str]) -> tuple[list[str], list[str]]:
    """(the other arguments, what stands after each --plugin)."""
    others: list[str] = []
    wanted: list[str] = []
    left = iter(arguments)
    for argument in left:
        name, equals, value = argument.partition("=")
        if argument == "--":
            others += [argument, *left]
        elif name != "--plugin":
            others.append(argument)
        elif plugin := value if equals else next(left, ""):
            wanted.append(plugin)
        else:
            fail("--plugin needs a file, such as --plugin my_variant.py")
    return others, wanted


def about_plugins() -> str:
    """Where the fault may be, if problems of plugins are loaded: these are seldom right at the first try."""
    own = [name for plugin in plugins.loaded() for registry, name in plugin.registered if registry.kind == "problem"]
    calls = " and ".join(f'routelearn.check_problem("{name}")' for name in own)
    return f"{calls} may know why" if own else ""


def show_warning(message: Any, category: Any, *where: Any) -> str:
    """Our own warnings as a line for people, others as Python words them."""
    if issubclass(category, Notice):
        return f"warning: {' '.join(str(message).split())}\n"
    return str(USUAL_WARNING(message, category, *where))


def replace_unprintable() -> None:
    """A character that the terminal's encoding does not have is printed as ?, and never an error."""
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="replace")


def command(name: str) -> Any:
    """The command of that name, made by typer from its function."""
    module = name.replace("-", "_")
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    function = getattr(import_module(f"routelearn.commands.{module}"), module)
    app.command(name=name, epilog=PLUGIN)(with_attributes(function))
    return typer.main.get_command(app)


def fail(message: str, code: int = 2) -> NoReturn:
    print("error: " + " ".join(message.split()), file=sys.stderr)
    sys.exit(code)
