"""Outcomes of the rows as the paper's tables: cells side by side with the paper's, records, and notes below."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from routelearn import problems
from routelearn.evaluation.evaluate import Evaluation
from routelearn.models.model_file import Model
from routelearn.reproduce import rows as table
from routelearn.reproduce.rows import TITLES, Row, fact_of
from routelearn.reproduce.tables import Entry, Fact, Grid, Line, compare, duration, figure, hardware, percent


@dataclass(frozen=True)
class Cell:
    """One row at one size: how it is to be filled, and what came of it, or why there is nothing."""

    problem: str
    n: int
    row: Row
    solver: str = ""
    setting: str = ""
    reason: str = ""  # set: nothing to run
    seconds: float = 0.0  # for each instance
    store: Path = Path()
    model: Model | None = None
    result: Evaluation | None = None


def told_here(cell: Cell, line: Line | None) -> str:
    """A cell of ours: objective, gap, time, and answers that break a rule or are missing."""
    if line is None:
        return "†" if cell.row.kind == table.REPORTED else "-"
    text = f"{figure(line.objective)}  {percent(line.gap)}  {duration(line.seconds)}"
    return text + (f"  ({line.infeasible} infeasible)" if line.infeasible else "")


def told_there(fact: Fact | None) -> str:
    """A cell of the paper's."""
    if fact is None:
        return "-"
    gap = "" if fact.gap is None else f"  {fact.gap:.2f} %"
    return f"{fact.objective:.2f}{gap}" + (f"  {fact.time}" if fact.time else "")


def record_of(cell: Cell, line: Line | None, fact: Fact | None) -> dict[str, object]:
    """One line of the CSV file."""
    return {
        "problem": TITLES[cell.problem],
        "n": cell.n,
        "method": cell.row.row,
        "solver": cell.solver,
        "setting": cell.setting,
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
        "note": cell.reason,
    }


def grid_of(problem: str, cells: Sequence[Cell], sizes: Sequence[int]) -> tuple[Grid, list[dict[str, object]]]:
    """One problem's table and its cells as records; gaps are paired, to the best method run here."""
    by_place = {(cell.row.row, cell.n): cell for cell in cells}
    lines: dict[tuple[str, int], Line] = {}
    for n in sizes:
        entries = [Entry(c.row.row, c.result.costs, c.result.seconds) for c in cells if c.n == n and c.result]
        lines |= {(line.method, n): line for line in compare(entries, problems.get(problem))}
    rows, records, notes = [], [], []
    for row in dict.fromkeys(cell.row for cell in cells):
        own = [by_place[row.row, n] for n in sizes]
        facts = [fact_of(problem, row.row, n) for n in sizes]
        in_paper = any(fact_of(problem, row.row, n) for n in table.SIZES)
        texts = [row.row + ("" if in_paper else " *")]
        for cell, fact in zip(own, facts, strict=True):
            line = lines.get((row.row, cell.n))
            texts += [told_here(cell, line), told_there(fact)]
            records.append(record_of(cell, line, fact))
        rows.append(tuple(texts))
        notes += notes_on(row, own)
    heading = ("method", *(text for n in sizes for text in (f"n = {n}, here", f"n = {n}, paper")))
    return Grid(TITLES[problem], heading, rows, notes), records


def notes_on(row: Row, cells: Sequence[Cell]) -> list[str]:
    """Notes on a row: how it was run, and what is missing and why."""
    notes = []
    ran = [cell for cell in cells if cell.result]
    if ran and row.kind in (table.LEARNED, table.REPORTED):
        used = grouped_sizes(ran, lambda cell: cell.solver)
        notes.append(f"{row.row}: {ran[0].setting}; {', '.join(f'{s} (at n = {sizes})' for s, sizes in used.items())}")
    elif ran and (note_on(row, ran[0]) or row.kind != table.QUICK):
        settings = " / ".join(dict.fromkeys(cell.setting for cell in ran))
        limit = f"until proved, at most {table.EXACT_SECONDS:g} s an instance" if row.kind == table.EXACT else ""
        told = [part for part in (note_on(row, ran[0]), limit, f"{settings} an instance" if settings else "") if part]
        notes.append(f"{row.row} ({ran[0].solver}): {'; '.join(told)}")
    if row.kind == table.REPORTED:
        return notes + ([f"† {row.row}: {row.note}"] if len(ran) < len(cells) else [])
    missing = grouped_sizes([cell for cell in cells if cell.result is None], lambda cell: cell.reason)
    return notes + [f"{row.row}: not run at n = {sizes}: {reason}" for reason, sizes in missing.items()]


def note_on(row: Row, cell: Cell) -> str:
    """How what ran differs from the paper's row."""
    return row.stand_in if row.stand_in and cell.solver != row.solvers.split()[0] else row.note


def grouped_sizes(cells: Sequence[Cell], by: Callable[[Cell], str]) -> dict[str, str]:
    """The sizes of the cells, as text, by what the cells have in common."""
    found: dict[str, list[str]] = {}
    for cell in cells:
        found.setdefault(by(cell), []).append(str(cell.n))
    return {key: ", ".join(sizes) for key, sizes in found.items()}


def legend(limit: int, paper_limits: bool, seconds: float) -> list[str]:
    """What holds for all tables of a command that took that many seconds."""
    searches = "what the paper's time comes to" if paper_limits else f"{table.HEURISTIC_SECONDS:g} s"
    return [
        f"Here: the first {limit} instances of each of the paper's test sets, on {hardware()}; objective, gap "
        "to the best method of this table on the same instances, and wall clock time for all of them.",
        "Paper: 10,000 instances; gap to the best method of the paper's table; time on one GTX 1080 Ti, or on 32 "
        "virtual cores (2 x Xeon E5-2630).",
        "† as reported there, not run here.  * not in the paper.  - no figure; the reason stands below its table.",
        f"Limits an instance: searches {searches}; exact methods until proved, at most {table.EXACT_SECONDS:g} s; "
        "constructions stop by themselves.",
        f"This run took {duration(seconds)} of wall clock; what an earlier run had stored was not run again.",
    ]
