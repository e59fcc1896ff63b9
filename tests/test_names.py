"""No problem's name in the parts that serve all problems, no field asked for, and no import that points upwards."""

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
    *("problems/base.py", "problems/attributes.py", "problems/contract", "serve"),
    *(f"data/{name}.py" for name in ("authors", "convert", "fields", "guess", "names", "records", "rules", "stops")),
    *(f"data/{name}.py" for name in ("csv_file", "json_file", "geojson", "npz", "notes")),
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


# ------------------------------------------------------------------------- ids as literals, anywhere else

# A problem's own file, the paper's tables, and the lists of what solvers can do.
SAY_THEM = ("problems", "reproduce", "solvers")
MOST_LITERALS = 10
# An id as a word of its own; `.tsp` is the suffix of a file.
LITERAL = re.compile(rf"(?<![\w.-])({'|'.join(sorted(map(re.escape, PROBLEMS), key=len, reverse=True))})(?![\w-])")


def literals(path):
    """(line, id) of every problem id in a file's strings, docstrings left out; of a page, in all of its text."""
    text = path.read_text()
    if path.suffix != ".py":
        rows = enumerate(text.splitlines(), 1)
    else:
        tree = ast.parse(text)
        prose = set(map(id, docstrings(tree)))
        strings = (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str))
        rows = ((node.lineno, node.value) for node in strings if id(node) not in prose)
    return [(line, match[1]) for line, words in rows for match in LITERAL.finditer(words)]


def test_few_problems_are_named_outside_their_own_files():
    files = [path for kind in ("*.py", "*.js", "*.html") for path in sorted(ROOT.rglob(kind))]
    files = [path for path in files if part_of(path) not in SAY_THEM]
    assert any(path.suffix == ".js" for path in files)
    found = {str(path.relative_to(ROOT)): named for path in files if (named := literals(path))}
    assert sum(map(len, found.values())) <= MOST_LITERALS, found


@pytest.mark.parametrize(
    ("name", "text", "count"),
    [
        ("a.py", "if x == 'op-dist' or y in ('tsp', \"cvrp\"): pass", 3),
        ("a.py", "'''As the tsp is.'''\nsuffix = '.tsp'\nspeed = 'tspx'", 0),
        ("a.py", "help = f'such as tsp,cvrp: {x}'", 2),
        ("a.js", 'if (fields.demand) return "cvrp";', 1),
        ("a.html", '<option value="pctsp">', 1),
        ("a.html", '<input accept=".tsp,.vrp">', 0),
    ],
)
def test_the_count_of_literals_finds_them(name, text, count, tmp_path):
    (tmp_path / name).write_text(text)
    assert len(literals(tmp_path / name)) == count


# ------------------------------------------------------------------- fields are declared, and not asked for

FIELDS = {"xy", "distances", "earned"} | {one.name for problem in PROBLEMS.values() for one in problem.attributes}
INSTANCES = {"x", "xs", "seen", "instance", "batch", "public", "referee"}  # what code calls them
YET_TO_GO: dict[str, int] = {}


def asked_fields(source):
    """The lines that ask whether an instance has a field: hasattr, or getattr with a default."""
    lines = []
    for node in ast.walk(ast.parse(source)):
        called = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else None
        if called == "hasattr" or (called == "getattr" and len(node.args) == 3):
            thing, name = node.args[:2]
            last = thing.id if isinstance(thing, ast.Name) else getattr(thing, "attr", "")
            if name.value in FIELDS if isinstance(name, ast.Constant) else last in INSTANCES:
                lines.append(node.lineno)
    return lines


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_code_asks_whether_an_instance_has_a_field(path):
    assert len(asked_fields(path.read_text())) <= YET_TO_GO.get(str(path.relative_to(ROOT)), 0)


@pytest.mark.parametrize(
    "source",
    ["hasattr(x, 'demand')", "getattr(a.referee, 'prize', None)", "getattr(x, name, None)", "hasattr(a.referee, name)"],
)
def test_asking_for_a_field_is_found(source):
    assert asked_fields(source) == [1]


@pytest.mark.parametrize(
    "source", ["getattr(x, 'demand')", "hasattr(policy, 'shape')", "getattr(problem, 'title', '')"]
)
def test_asking_for_something_else_is_not(source):
    assert asked_fields(source) == []


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
