"""Which of our methods stands in which row of the paper's tables, with which limits, and which rows cannot be run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from routelearn.errors import InputError
from routelearn.reproduce.tables import Fact, paper_results

TITLES = {
    "tsp": "TSP",
    "cvrp": "CVRP",
    "sdvrp": "SDVRP",
    "op-dist": "OP (distance)",
    "op-const": "OP (constant)",
    "op-unif": "OP (uniform)",
    "pctsp": "PCTSP",
    "spctsp": "SPCTSP",
}
TABLE1 = ("tsp", "cvrp", "sdvrp", "op-dist", "pctsp", "spctsp")
TABLE_OP = ("op-const", "op-unif")
SIZES = (20, 50, 100)

HEURISTIC_SECONDS = 0.3  # for each instance
EXACT_SECONDS = 60.0  # for each instance: nearly all are proved long before
QUICK_SECONDS = 60.0  # constructions stop when they are done, in milliseconds
UNKNOWN_SECONDS = 10.0  # with the paper's limits, where the paper repeats a figure of others without a time
PAPER_CORES = 32  # instances that the paper solved side by side

QUICK, SEARCH, EXACT, TIMED = "quick", "search", "exact", "timed"


@dataclass(frozen=True)
class Method:
    """A row that solvers can fill."""

    row: str
    solvers: tuple[str, ...]  # the first that is usable
    kind: str  # QUICK: stops by itself; SEARCH: uses its seconds; EXACT: until proved; TIMED: the row names the limit
    seconds: float = 0.0  # TIMED: that limit
    sizes: tuple[int, ...] = SIZES  # EXACT: where a proof is to be had in reasonable time
    short: tuple[int, ...] = ()  # TIMED: sizes at which most are done long before the limit
    note: str = ""  # how it differs from the row of that name in the paper


@dataclass(frozen=True)
class Learned:
    """A row that a trained model fills."""

    row: str
    sampling: bool


@dataclass(frozen=True)
class Reported:
    """A row that is shown as the paper has it."""

    row: str
    source: str


Row = Method | Learned | Reported

GREEDY, SAMPLING = Learned("AM (greedy)", False), Learned("AM (sampling)", True)
LKH = "LKH through elkai, unless ROUTELEARN_LKH3 names LKH-3"
NAZARI = "reported by Nazari et al. (2018)"
SWEEP = "routes are put in order by 2OPT and Or-opt; the paper repeats what Nazari et al. reported"
UNORDERED = "customers of a route in the order of their angle"
EAN = "the code of Deudon et al. (2018), run by the paper's authors"


def _quick(row: str, solver: str, note: str = "") -> Method:
    return Method(row, (solver,), QUICK, note=note)


def _search(row: str, solver: str, note: str = "") -> Method:
    return Method(row, (solver,), SEARCH, note=note)


def _timed(row: str, solver: str, seconds: float, short: tuple[int, ...] = ()) -> Method:
    return Method(row, (solver,), TIMED, seconds, short=short)


def _orienteering() -> tuple[Row, ...]:
    return (
        Method("Gurobi", ("gurobi",), EXACT, sizes=(20,)),
        _timed("Gurobi (1s)", "gurobi", 1, short=(20, 50)),
        *(_timed(f"Gurobi ({limit}s)", "gurobi", limit, short=(20,)) for limit in (10, 30)),
        _quick("Compass", "compass"),
        _quick("Tsili (greedy)", "tsiligirides"),
        GREEDY,
        _search("GA (Python)", "op-genetic", "another genetic algorithm, compiled; the paper ran one in Python"),
        _timed("OR Tools (10s)", "ortools", 10),
        _quick("Tsili (sampling)", "tsiligirides-sampling"),
        SAMPLING,
        Method("SCIP", ("scip",), EXACT, sizes=(20,)),
        Method("CP-SAT", ("cpsat",), TIMED, EXACT_SECONDS, sizes=(20,)),  # proves them too, ten times slower
        _search("PyVRP", "pyvrp"),
        _search("OR Tools", "ortools"),
    )


ROWS: dict[str, tuple[Row, ...]] = {
    "tsp": (
        Method("Concorde", ("concorde",), EXACT),
        Method("LKH3", ("lkh3", "elkai"), QUICK, note=LKH),
        Method("Gurobi", ("gurobi",), EXACT),
        _timed("Gurobi (1s)", "gurobi", 1, short=(20, 50)),
        _quick("Nearest Insertion", "nearest-insertion"),
        _quick("Random Insertion", "random-insertion"),
        _quick("Farthest Insertion", "farthest-insertion"),
        _quick("Nearest Neighbor", "nearest-neighbour"),
        Reported("Vinyals 2015 (gr.)", "reported by Vinyals et al. (2015)"),
        Reported("Bello 2016 (gr.)", "reported by Bello et al. (2016)"),
        Reported("Dai 2017", "computed from the gaps that Dai et al. (2017) report"),
        Reported("Nowak 2017", "reported by Nowak et al. (2017)"),
        Reported("EAN (greedy)", EAN),
        GREEDY,
        _search("OR Tools", "ortools", "the paper repeats what Bello et al. (2016) reported"),
        _quick("Chr.f. + 2OPT", "christofides+2opt", "with Or-opt; the paper repeats what Vinyals et al. reported"),
        Reported("Bello 2016 (s.)", "reported by Bello et al. (2016)"),
        Reported("EAN (gr. + 2OPT)", EAN),
        Reported("EAN (sampling)", EAN),
        Reported("EAN (s. + 2OPT)", EAN),
        SAMPLING,
        Method("SCIP", ("scip",), EXACT),
        Method("CP-SAT", ("cpsat",), EXACT, sizes=(20,)),
        _search("PyVRP", "pyvrp"),
        _quick("Savings", "tsp-savings"),
        _quick("Savings + 2OPT", "tsp-savings+2opt"),
        _quick("Christofides", "christofides"),
        _quick("Nearest Insertion + 2OPT", "nearest-insertion+2opt"),
        _quick("Random Insertion + 2OPT", "random-insertion+2opt"),
        _quick("Farthest Insertion + 2OPT", "farthest-insertion+2opt"),
        _quick("Nearest Neighbor + 2OPT", "nearest-neighbour+2opt"),
    ),
    "cvrp": (
        Reported("Gurobi", "run by the paper's authors; no solver here proves optimal CVRP solutions"),
        _search("LKH3", "lkh3"),
        Reported("RL (greedy)", NAZARI),
        GREEDY,
        Reported("RL (beam 10)", NAZARI),
        _quick("Random CW", "random-savings", "the paper repeats what Nazari et al. reported"),
        _quick("Random Sweep", "random-sweep+2opt", SWEEP),
        _search("OR Tools", "ortools", "the paper repeats what Nazari et al. reported"),
        SAMPLING,
        _search("PyVRP", "pyvrp"),
        _search("HGS-CVRP", "hygese"),
        _quick("Savings", "savings"),
        _quick("Savings + 2OPT", "savings+2opt"),
        _quick("Random CW + 2OPT", "random-savings+2opt"),
        _quick("Sweep", "sweep+2opt"),
        _quick("Sweep, unordered", "sweep", UNORDERED),
        _quick("Random Sweep, unordered", "random-sweep", UNORDERED),
    ),
    "sdvrp": (
        Reported("RL (greedy)", NAZARI),
        GREEDY,
        Reported("RL (beam 10)", NAZARI),
        SAMPLING,
        _quick("Savings", "savings"),
        _quick("Savings + 2OPT", "savings+2opt"),
        _quick("Random CW", "random-savings"),
        _quick("Random CW + 2OPT", "random-savings+2opt"),
        _quick("Sweep", "sweep+2opt"),
        _quick("Random Sweep", "random-sweep+2opt"),
        _quick("Sweep, unordered", "sweep", UNORDERED),
        _quick("Random Sweep, unordered", "random-sweep", UNORDERED),
    ),
    "op-dist": _orienteering(),
    "op-const": _orienteering(),
    "op-unif": _orienteering(),
    "pctsp": (
        Method("Gurobi", ("gurobi",), EXACT, sizes=(20,)),
        *(_timed(f"Gurobi ({limit}s)", "gurobi", limit, short=(20,)) for limit in (1, 10, 30)),
        GREEDY,
        _search("ILS (C++)", "pctsp-ils", "this package's own iterated local search"),
        _timed("OR Tools (10s)", "ortools", 10),
        _timed("OR Tools (60s)", "ortools", 60),
        Reported("ILS (Python 10x)", "run by the paper's authors"),
        SAMPLING,
        Method("SCIP", ("scip",), EXACT, sizes=(20,)),
        Method("CP-SAT", ("cpsat",), EXACT, sizes=(20,)),
        _search("OR Tools", "ortools"),
    ),
    "spctsp": (
        *(
            _search(f"REOPT ({part})", f"reopt-{part}", "plans with this package's own iterated local search")
            for part in ("all", "half", "first")
        ),
        GREEDY,
    ),
}


def fact_of(problem: str, row: str, n: int) -> Fact | None:
    """The paper's figure for that cell."""
    return FACTS.get((TITLES[problem], row, n))


FACTS = {(fact.problem, fact.method, fact.n): fact for fact in paper_results()}


def in_paper(problem: str, row: str) -> bool:
    return any(fact_of(problem, row, n) for n in SIZES)


def parse_time(text: str) -> float:
    """Seconds from the paper's 0s, 5m, 12h."""
    return float(text[:-1]) * {"s": 1, "m": 60, "h": 3600}[text[-1]]


def seconds_for(method: Method, problem: str, n: int, paper_limits: bool) -> float:
    """The limit for one instance. The paper's own: what its time for 10,000 instances on 32 cores comes to."""
    if method.kind == TIMED:
        return method.seconds
    if method.kind != SEARCH:
        return EXACT_SECONDS if method.kind == EXACT else QUICK_SECONDS
    if not paper_limits:
        return HEURISTIC_SECONDS
    fact = fact_of(problem, method.row, n)
    return parse_time(fact.time) * PAPER_CORES / 10_000 if fact and fact.time else UNKNOWN_SECONDS


# Seconds in which an exact solver proves one instance on one core of a 2.8 GHz Xeon: measured means, for estimates.
TYPICAL = {
    ("tsp", 20): {"gurobi": 0.02, "scip": 0.03, "cpsat": 0.1},
    ("tsp", 50): {"gurobi": 0.1, "scip": 0.2},
    ("tsp", 100): {"scip": 2.3},
    ("op", 20): {"gurobi": 0.1, "scip": 0.7, "cpsat": 2.5},
    ("pctsp", 20): {"gurobi": 0.1, "scip": 0.5, "cpsat": 0.7},
}
TYPICAL_OTHER = 1.0


def typical_seconds(problem: str, n: int, solver: str) -> float:
    """About how long an exact solver needs for one instance."""
    return TYPICAL.get((problem.partition("-")[0], n), {}).get(solver, TYPICAL_OTHER)


def not_run(method: Method, n: int, paper_limits: bool) -> str | None:
    """Why a method is left out at this size although it is usable; None if it runs."""
    if n not in method.sizes:
        return f"run to optimality at n = {', '.join(map(str, method.sizes))} only"
    if method.kind == TIMED and n not in method.short and not paper_limits:
        return f"up to {method.seconds:g} s an instance: only with --paper-limits"
    return None


def check_problems(names: Sequence[str], allowed: Sequence[str]) -> list[str]:
    """The names in the table's order; an unknown one raises and lists the choices."""
    for name in names:
        if name not in allowed:
            raise InputError(f"{name!r} is not in this table; the choices are {', '.join(allowed)}")
    return [name for name in allowed if not names or name in names]
