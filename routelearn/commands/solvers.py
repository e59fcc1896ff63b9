"""`routelearn solvers`."""

from __future__ import annotations

import typer


def solvers(
    problem: str | None = typer.Option(None, help="List only solvers for this problem id."),
) -> None:
    """List the solvers: their problems, their licence, and whether they can be used here (if not, why)."""
    from routelearn.solvers import SOLVERS, for_problem
    from routelearn.solvers.adapters.base import Program

    families = family_names()
    rows = [("solver", "problems", "kind", "usable", "licence")]
    missing = []
    for solver in SOLVERS.values() if problem is None else for_problem(problem):
        whole = {name: members for name, members in families.items() if solver.problems >= members}
        names = sorted(solver.problems - frozenset().union(*whole.values())) + list(whole)
        kind = "exact" if solver.exact else "anytime" if solver.anytime else "heuristic"
        reason = solver.unavailable() or (solver.impostor() if isinstance(solver, Program) else None)
        if reason is not None:
            missing.append(f"  {reason if reason.startswith(solver.name) else f'{solver.name}: {reason}'}")
        rows.append((solver.name, " ".join(names), kind, "no" if reason else "yes", solver.licence))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        typer.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    typer.echo("\nexact: proves its answer if it has time; anytime: uses all of its time; heuristic: stops by itself.")
    short = "; ".join(f"{name}: {', '.join(sorted(members))}" for name, members in families.items())
    typer.echo(f"{short}. Use one with `routelearn evaluate data.npz --solver NAME`.")
    if missing:
        typer.echo("\nNot usable here:\n" + "\n".join(missing))


def family_names() -> dict[str, frozenset[str]]:
    """Problems that differ in how their instances are drawn alone, by what stands before the hyphen: one class."""
    from routelearn.problems import PROBLEMS

    families: dict[tuple[type, str], set[str]] = {}
    for name, problem in PROBLEMS.items():
        families.setdefault((type(problem), name.partition("-")[0]), set()).add(name)
    return {short: frozenset(members) for (_, short), members in families.items() if len(members) > 1}
