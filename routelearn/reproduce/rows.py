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

# How a row is filled: by a solver that stops by itself, uses its seconds, proves, or runs for as long as the row's name
# says; by a trained model; or as the paper has it.
QUICK, SEARCH, EXACT, TIMED = "quick", "search", "exact", "timed"
LEARNED, REPORTED = "learned", "reported"


@dataclass(frozen=True)
class Row:
    row: str
    kind: str
    solvers: str = ""  # the first of these that is usable
    note: str = ""  # how it differs from the row of that name in the paper; REPORTED: where the figures are from
    stand_in: str = ""  # the same, where another than the first of the solvers ran
    seconds: float = 0.0  # TIMED: the limit
    sizes: tuple[int, ...] = SIZES  # EXACT: where a proof is to be had in reasonable time
    short: tuple[int, ...] = ()  # TIMED: sizes at which most are done long before the limit
    policy: str = ""  # REPORTED: whose model fills the row where one is given
    decode: str = ""  # how that decodes: {all} rollouts, {each} of them under each symmetry
    supervised: bool = False  # whether it was trained on given tours


OWN_NOTE = "what `routelearn solve --no-policy` does, on one thread"
AM_GREEDY = Row("AM (greedy)", LEARNED, decode="greedy")
AM_SAMPLING = Row("AM (sampling)", LEARNED, decode="augment:8+sample:{each}")
OWN_SEARCH = (
    *(Row(f"Search ({limit:g}s)", TIMED, "search", OWN_NOTE, seconds=limit, short=SIZES) for limit in (0.1, 1.0)),
    Row("AM + search (0.1s)", LEARNED, decode="greedy+improve:0.1"),
)
ELKAI = "LKH through elkai; ROUTELEARN_LKH3 names no LKH-3"
BELLO = "reported by Bello et al. (2016)"
NAZARI = "reported by Nazari et al. (2018)"
SWEEP = "routes are put in order by 2OPT and Or-opt; the paper repeats what Nazari et al. reported"
UNORDERED = "customers of a route in the order of their angle"
EAN = "the code of Deudon et al. (2018), run by the paper's authors"


def learned(name: str, policy: str, decode: str, note: str, supervised: bool = False) -> Row:
    """A rival of the attention model: as reported, unless a model of that policy is given."""
    return Row(name, REPORTED, note=note, policy=policy, decode=decode, supervised=supervised)


ORIENTEERING = (
    Row("Gurobi", EXACT, "gurobi", sizes=(20,)),
    Row("Gurobi (1s)", TIMED, "gurobi", seconds=1, short=(20, 50)),
    *(Row(f"Gurobi ({limit}s)", TIMED, "gurobi", seconds=limit, short=(20,)) for limit in (10, 30)),
    Row("Compass", QUICK, "compass"),
    Row("Tsili (greedy)", QUICK, "tsiligirides"),
    AM_GREEDY,
    Row("GA (Python)", SEARCH, "op-genetic", "another genetic algorithm, compiled; the paper ran one in Python"),
    Row("OR Tools (10s)", TIMED, "ortools", seconds=10),
    Row("Tsili (sampling)", QUICK, "tsiligirides-sampling"),
    AM_SAMPLING,
    *OWN_SEARCH,
    Row("SCIP", EXACT, "scip", sizes=(20,)),
    Row("CP-SAT", TIMED, "cpsat", seconds=EXACT_SECONDS, sizes=(20,)),  # proves them too, ten times slower
    Row("PyVRP", SEARCH, "pyvrp"),
    Row("OR Tools", SEARCH, "ortools"),
)

ROWS: dict[str, tuple[Row, ...]] = {
    "tsp": (
        Row("Concorde", EXACT, "concorde"),
        Row("LKH3", QUICK, "lkh3 elkai", stand_in=ELKAI),
        Row("Gurobi", EXACT, "gurobi"),
        Row("Gurobi (1s)", TIMED, "gurobi", seconds=1, short=(20, 50)),
        Row("Nearest Insertion", QUICK, "nearest-insertion"),
        Row("Random Insertion", QUICK, "random-insertion"),
        Row("Farthest Insertion", QUICK, "farthest-insertion"),
        Row("Nearest Neighbor", QUICK, "nearest-neighbour"),
        learned("Vinyals 2015 (gr.)", "pointer", "greedy", "reported by Vinyals et al. (2015)", supervised=True),
        learned("Bello 2016 (gr.)", "pointer", "greedy", BELLO),
        learned("Dai 2017", "dai", "greedy", "computed from the gaps that Dai et al. (2017) report"),
        learned("Nowak 2017", "nowak", "beam:40", "reported by Nowak et al. (2017)", supervised=True),
        learned("EAN (greedy)", "ean", "greedy", EAN),
        AM_GREEDY,
        Row("OR Tools", SEARCH, "ortools", "the paper repeats what Bello et al. (2016) reported"),
        Row("Chr.f. + 2OPT", QUICK, "christofides+2opt", "with Or-opt; the paper repeats what Vinyals et al. reported"),
        learned("Bello 2016 (s.)", "pointer", "sample:{all}", BELLO),
        learned("EAN (gr. + 2OPT)", "ean", "greedy+improve", EAN),
        learned("EAN (sampling)", "ean", "sample:{all}", EAN),
        learned("EAN (s. + 2OPT)", "ean", "sample:{all}+improve", EAN),
        AM_SAMPLING,
        *OWN_SEARCH,
        Row("SCIP", EXACT, "scip"),
        Row("CP-SAT", EXACT, "cpsat", sizes=(20,)),
        Row("PyVRP", SEARCH, "pyvrp"),
        Row("Savings", QUICK, "tsp-savings"),
        Row("Savings + 2OPT", QUICK, "tsp-savings+2opt"),
        Row("Christofides", QUICK, "christofides"),
        Row("Nearest Insertion + 2OPT", QUICK, "nearest-insertion+2opt"),
        Row("Random Insertion + 2OPT", QUICK, "random-insertion+2opt"),
        Row("Farthest Insertion + 2OPT", QUICK, "farthest-insertion+2opt"),
        Row("Nearest Neighbor + 2OPT", QUICK, "nearest-neighbour+2opt"),
    ),
    "cvrp": (
        Row("Gurobi", REPORTED, note="run by the paper's authors; no solver here proves optimal CVRP solutions"),
        Row("LKH3", SEARCH, "lkh3"),
        learned("RL (greedy)", "nazari", "greedy", NAZARI),
        AM_GREEDY,
        learned("RL (beam 10)", "nazari", "beam:10", NAZARI),
        Row("Random CW", QUICK, "random-savings", "the paper repeats what Nazari et al. reported"),
        Row("Random Sweep", QUICK, "random-sweep+2opt", SWEEP),
        Row("OR Tools", SEARCH, "ortools", "the paper repeats what Nazari et al. reported"),
        AM_SAMPLING,
        *OWN_SEARCH,
        Row("PyVRP", SEARCH, "pyvrp"),
        Row("HGS-CVRP", SEARCH, "hygese"),
        Row("Savings", QUICK, "savings"),
        Row("Savings + 2OPT", QUICK, "savings+2opt"),
        Row("Random CW + 2OPT", QUICK, "random-savings+2opt"),
        Row("Sweep", QUICK, "sweep+2opt"),
        Row("Sweep, unordered", QUICK, "sweep", UNORDERED),
        Row("Random Sweep, unordered", QUICK, "random-sweep", UNORDERED),
    ),
    "sdvrp": (
        learned("RL (greedy)", "nazari", "greedy", NAZARI),
        AM_GREEDY,
        learned("RL (beam 10)", "nazari", "beam:10", NAZARI),
        AM_SAMPLING,
        *OWN_SEARCH,
        Row("Savings", QUICK, "savings"),
        Row("Savings + 2OPT", QUICK, "savings+2opt"),
        Row("Random CW", QUICK, "random-savings"),
        Row("Random CW + 2OPT", QUICK, "random-savings+2opt"),
        Row("Sweep", QUICK, "sweep+2opt"),
        Row("Random Sweep", QUICK, "random-sweep+2opt"),
        Row("Sweep, unordered", QUICK, "sweep", UNORDERED),
        Row("Random Sweep, unordered", QUICK, "random-sweep", UNORDERED),
    ),
    "op-dist": ORIENTEERING,
    "op-const": ORIENTEERING,
    "op-unif": ORIENTEERING,
    "pctsp": (
        Row("Gurobi", EXACT, "gurobi", sizes=(20,)),
        *(Row(f"Gurobi ({limit}s)", TIMED, "gurobi", seconds=limit, short=(20,)) for limit in (1, 10, 30)),
        AM_GREEDY,
        Row("ILS (C++)", SEARCH, "pctsp-ils", "this package's own iterated local search"),
        Row("OR Tools (10s)", TIMED, "ortools", seconds=10),
        Row("OR Tools (60s)", TIMED, "ortools", seconds=60),
        Row("ILS (Python 10x)", REPORTED, note="run by the paper's authors"),
        AM_SAMPLING,
        *OWN_SEARCH,
        Row("SCIP", EXACT, "scip", sizes=(20,)),
        Row("CP-SAT", EXACT, "cpsat", sizes=(20,)),
        Row("OR Tools", SEARCH, "ortools"),
    ),
    "spctsp": (
        *(
            Row(f"REOPT ({part})", SEARCH, f"reopt-{part}", "plans with this package's own iterated local search")
            for part in ("all", "half", "first")
        ),
        AM_GREEDY,
    ),
}


def rows_of(problem: str, wanted: Sequence[str] = ()) -> tuple[Row, ...]:
    """The rows of a problem's table, or those of these names."""
    return tuple(row for row in ROWS[problem] if not wanted or row.row in wanted)


def named_rows(text: str, names: Sequence[str]) -> tuple[str, ...]:
    """`LKH3,Sweep, unordered` -> the two rows; one that none of these problems' tables has is refused."""
    known = dict.fromkeys(row.row for name in names for row in ROWS[name])
    wanted: list[str] = []
    for part in map(str.strip, text.split(",")):
        if wanted and f"{wanted[-1]}, {part}" in known:
            wanted[-1] += f", {part}"
        elif part:
            wanted.append(part)
    if unknown := [row for row in wanted if row not in known]:
        raise InputError(f"no row {', '.join(map(repr, unknown))} in this table; its rows are {', '.join(known)}")
    return tuple(wanted)


RIVALS = {row.policy for rows in ROWS.values() for row in rows if row.policy}


def fact_of(problem: str, row: str, n: int) -> Fact | None:
    """The paper's figure for that cell."""
    return FACTS.get((TITLES[problem], row, n))


FACTS = {(fact.problem, fact.method, fact.n): fact for fact in paper_results()}


def parse_time(text: str) -> float:
    """Seconds from the paper's 0s, 5m, 12h."""
    return float(text[:-1]) * {"s": 1, "m": 60, "h": 3600}[text[-1]]


def seconds_for(method: Row, problem: str, n: int, paper_limits: bool) -> float:
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


def not_run(method: Row, n: int, paper_limits: bool) -> str | None:
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
