"""Outcomes of the rows as the paper's tables: cells side by side with the paper's, records, and notes below."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from routelearn import problems
from routelearn.reproduce.rows import (
    EXACT,
    EXACT_SECONDS,
    HEURISTIC_SECONDS,
    QUICK,
    TITLES,
    Learned,
    Method,
    Reported,
    Row,
    fact_of,
    in_paper,
)
from routelearn.reproduce.tables import Entry, Fact, Grid, Line, compare, duration, figure, hardware, percent
from routelearn.solvers.farm.running import Result


@dataclass(frozen=True)
class Outcome:
    """One cell: a result, or the reason why there is none."""

    row: str
    n: int
    solver: str = ""
    setting: str = ""
    result: Result | None = None
    reason: str = ""
    reported: bool = False


def told_here(outcome: Outcome, line: Line | None) -> str:
    """A cell of ours: objective, gap, time, and answers that break a rule or are missing."""
    if line is None:
        return "†" if outcome.reported else "-"
    text = f"{figure(line.objective)}  {percent(line.gap)}  {duration(line.seconds)}"
    return text + (f"  ({line.infeasible} infeasible)" if line.infeasible else "")


def told_there(fact: Fact | None) -> str:
    """A cell of the paper's."""
    if fact is None:
        return "-"
    gap = "" if fact.gap is None else f"  {fact.gap:.2f} %"
    return f"{fact.objective:.2f}{gap}" + (f"  {fact.time}" if fact.time else "")


def record_of(problem: str, row: Row, outcome: Outcome, line: Line | None, fact: Fact | None) -> dict[str, object]:
    """One line of the CSV file."""
    return {
        "problem": TITLES[problem],
        "n": outcome.n,
        "method": row.row,
        "solver": outcome.solver,
        "setting": outcome.setting,
        "instances": line.instances if line else "",
        "objective": f"{line.objective:.6f}" if line else "",
        "standard_error": f"{line.standard_error:.6f}" if line else "",
        "gap_percent": f"{100 * line.gap:.4f}" if line else "",
        "wins": line.wins if line else "",
        "infeasible": line.infeasible if line else "",
        "seconds": f"{line.seconds:.3f}" if line else "",
        "paper_objective": fact.objective if fact else "",
        "paper_gap_percent": fact.gap if fact and fact.gap is not None else "",
        "paper_time_for_10000": fact.time if fact else "",
        "note": outcome.reason,
    }


def grid_of(
    problem: str, table_rows: Sequence[Row], outcomes: Sequence[Outcome], sizes: Sequence[int]
) -> tuple[Grid, list[dict[str, object]]]:
    """One problem's table and its cells as records; gaps are paired, to the best method run here."""
    cells = {(outcome.row, outcome.n): outcome for outcome in outcomes}
    lines: dict[tuple[str, int], Line] = {}
    for n in sizes:
        entries = [Entry(o.row, o.result.costs, o.result.seconds) for o in outcomes if o.n == n and o.result]
        lines |= {(line.method, n): line for line in compare(entries, problems.get(problem))}
    rows, records, notes = [], [], []
    for row in table_rows:
        texts = [row.row + ("" if in_paper(problem, row.row) else " *")]
        for n in sizes:
            outcome, line, fact = cells[row.row, n], lines.get((row.row, n)), fact_of(problem, row.row, n)
            texts += [told_here(outcome, line), told_there(fact)]
            records.append(record_of(problem, row, outcome, line, fact))
        rows.append(tuple(texts))
        notes += notes_on(row, [cells[row.row, n] for n in sizes])
    heading = ("method", *(text for n in sizes for text in (f"n = {n}, here", f"n = {n}, paper")))
    return Grid(TITLES[problem], heading, rows, notes), records


def notes_on(row: Row, outcomes: Sequence[Outcome]) -> list[str]:
    """Notes on a row: how it was run, and what is missing and why."""
    notes = []
    if isinstance(row, Reported):
        return [f"† {row.row}: {row.source}"]
    ran = [outcome for outcome in outcomes if outcome.result]
    if ran and isinstance(row, Method) and (row.note or row.kind != QUICK):
        settings = " / ".join(dict.fromkeys(outcome.setting for outcome in ran))
        limit = f"until proved, at most {EXACT_SECONDS:g} s an instance" if row.kind == EXACT else ""
        told = [part for part in (row.note, limit, f"{settings} an instance" if settings else "") if part]
        notes.append(f"{row.row} ({ran[0].solver}): {'; '.join(told)}")
    if ran and isinstance(row, Learned):
        used: dict[str, list[str]] = {}
        for outcome in ran:
            used.setdefault(outcome.solver, []).append(str(outcome.n))
        told = [f"{solver} (at n = {', '.join(sizes)})" for solver, sizes in used.items()]
        notes.append(f"{row.row}: {ran[0].setting}; {', '.join(told)}")
    missing: dict[str, list[str]] = {}
    for outcome in outcomes:
        if outcome.result is None:
            missing.setdefault(outcome.reason, []).append(str(outcome.n))
    notes += [f"{row.row}: not run at n = {', '.join(sizes)}: {reason}" for reason, sizes in missing.items()]
    return notes


def legend(limit: int, paper_limits: bool, seconds: float) -> list[str]:
    """What holds for all tables of a command that took that many seconds."""
    searches = "what the paper's time comes to" if paper_limits else f"{HEURISTIC_SECONDS:g} s"
    return [
        f"Here: the first {limit} instances of each of the paper's test sets, on {hardware()}; objective, gap "
        "to the best method of this table on the same instances, and wall clock time for all of them.",
        "Paper: 10,000 instances; gap to the best method of the paper's table; time on one GTX 1080 Ti, or on 32 "
        "virtual cores (2 x Xeon E5-2630).",
        "† as reported there, not run here.  * not in the paper.  - no figure; the reason stands below its table.",
        f"Limits an instance: searches {searches}; exact methods until proved, at most {EXACT_SECONDS:g} s; "
        "constructions stop by themselves.",
        f"This run took {duration(seconds)} of wall clock; what an earlier run had stored was not run again.",
    ]
