"""No problem's name in the parts that serve all problems, and no import that points upwards."""

from __future__ import annotations

import ast
import graphlib
import re
from pathlib import Path

import pytest

import routelearn
from routelearn.problems import PROBLEMS

ROOT = Path(routelearn.__file__).parent
SERVES_ALL = (
    *("policies", "decoding", "training", "evaluation", "runtime", "solving", "solvers/farm", "models/model_file.py"),
    *("problems/base.py", "problems/contract"),
    *(f"serve/{name}.py" for name in ("batching", "jobs", "think", "worker", "workers")),
)

# From the ground up; a part may import from its own layer and those below. Parts not named here are only
# held to the rule that there are no circles.
LAYERS = (
    {"errors"},
    {"plugins"},
    {"registry"},
    {"problems", "runtime"},
    {"policies"},
    {"decoding", "models", "plots"},
    {"solvers", "search", "data", "evaluation"},
    {"training"},
    {"reproduce"},
    {"serve", "cli", "registering", "api"},
)
ONLY = {
    "errors": set(),
    "plugins": {"errors", "plugins"},
    "registry": {"errors", "plugins"},
    "runtime": {"errors", "runtime"},
    "problems": {"errors", "problems", "registry"},
    "policies": {"errors", "policies", "registry", "runtime"},
}

SOURCES = sorted(ROOT.rglob("*.py"))
IDS = {name.replace("-", "_") for name in PROBLEMS}
ID_WORDS = re.compile(rf"(?<![a-z0-9])({'|'.join(sorted(IDS, key=len, reverse=True))})(?![a-z0-9])")


def named_files():
    for part in SERVES_ALL:
        path = ROOT / part
        assert path.exists(), f"{part} is not there any more; take it off the list"
        yield from sorted(path.rglob("*.py")) if path.is_dir() else (path,)


def docstrings(tree):
    """The constants that are docstrings: prose may name a problem as an example."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and node.body:
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                yield first.value


def words_of(tree):
    """(line, text) of every identifier and every string of the code."""
    prose = set(map(id, docstrings(tree)))
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 0)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            yield line, node.value
        for field in ("id", "attr", "arg", "name", "asname", "module"):
            text = getattr(node, field, None)
            if isinstance(text, str):
                yield line, text


def named_problems(source):
    found = []
    for line, text in words_of(ast.parse(source)):
        snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", text).lower().replace("-", "_")
        found += [(line, match[1]) for match in ID_WORDS.finditer(snake)]
    return found


@pytest.mark.parametrize("path", list(named_files()), ids=lambda path: str(path.relative_to(ROOT)))
def test_no_problem_is_named_where_all_are_served(path):
    assert named_problems(path.read_text()) == []


NAMING = """
if problem.name == 'tsp': pass
x = 'op-dist'
from routelearn.problems.cvrp import x
def is_tsp(): pass
CVRP()
f(spctsp=1)
x.PCTSP
x = f'sdvrp{n}'
y = tsp_only
""".strip().splitlines()


@pytest.mark.parametrize("source", NAMING)
def test_the_search_finds_a_name(source):
    assert named_problems(source)


@pytest.mark.parametrize("source", ["stop = drop(op, option)", "'''The TSP of section 3.'''", "# tsp", "'atspx'"])
def test_the_search_passes_what_is_none(source):
    assert not named_problems(source)


# --------------------------------------------------------------------------------------------- imports


def part_of(path):
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imported_parts(tree):
    """Parts of the package that the code imports, anywhere but under TYPE_CHECKING."""
    for node in tree.body if isinstance(tree, ast.Module) else ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.ImportFrom) and node.level:
            raise AssertionError(f"line {node.lineno}: a relative import; name the module in full")
        if isinstance(node, ast.ImportFrom) and node.module == "routelearn":
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("routelearn."):
            yield node.module.split(".")[1]
        elif isinstance(node, ast.Import):
            yield from (alias.name.split(".")[1] for alias in node.names if alias.name.startswith("routelearn."))
        yield from imported_parts(node)


def imports_of(path):
    parts = {part_of(source) for source in SOURCES}
    return {part for part in imported_parts(ast.parse(path.read_text())) if part in parts}


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_import_points_upwards(path):
    part, height = part_of(path), {name: level for level, layer in enumerate(LAYERS) for name in layer}
    imports = imports_of(path)
    if part in ONLY:
        assert imports <= ONLY[part]
    if part in height:
        assert {name for name in imports if height.get(name, 0) > height[part]} == set()


def test_no_imports_go_in_a_circle():
    graph = {}
    for path in SOURCES:
        if path.relative_to(ROOT).parts != ("__init__.py",):
            part = part_of(path)
            graph.setdefault(part, set()).update(imports_of(path) - {part})
    assert len(list(graphlib.TopologicalSorter(graph).static_order())) == len(graph)


def test_the_layers_name_parts_that_can_exist():
    named = [name for layer in LAYERS for name in layer]
    assert len(named) == len(set(named))
    assert {"errors", "problems", "policies", "decoding"} <= {part_of(path) for path in SOURCES}
