"""Comparing methods instance by instance, the paper's own figures, and tables as text, Markdown, CSV and LaTeX."""

from __future__ import annotations

import csv
import io
import math
import platform
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path

import torch
from rich.table import Table as RichTable
from torch import Tensor

from routelearn.errors import InputError
from routelearn.evaluation.evaluate import standard_error
from routelearn.problems.base import Problem
from routelearn.runtime.processors import usable_processors

TIE = 1e-6  # relative: costs this close are equal


def check_limit(limit: int, least: int = 1) -> None:
    """Refuse more instances than a test set of the paper has, or fewer than the least."""
    if not least <= limit <= 10_000:
        raise InputError(f"a limit of {limit} instances; a test set has {least} to 10000")


@dataclass(frozen=True)
class Entry:
    """One method's results on the instances that all methods of a comparison share."""

    method: str
    costs: Tensor  # [B] float64, nan where there is no valid answer
    seconds: float  # wall clock for all of them


@dataclass(frozen=True)
class Line:
    """One method of a comparison. The objective is what people state: prizes are positive."""

    method: str
    instances: int
    objective: float  # mean over the instances it solved; nan if none
    standard_error: float
    gap: float  # to the best method, over the instances both solved; 0.01 is one per cent worse
    gap_error: float  # standard error of the paired differences
    wins: int  # instances on which no method is better; ties count for all
    infeasible: int
    seconds: float


def compare(entries: Sequence[Entry], problem: Problem) -> list[Line]:
    """One line a method, in the order given; the best is the one with the fewest failures, then the least cost."""
    if not entries:
        return []
    if len({len(entry.costs) for entry in entries}) != 1:
        counts = ", ".join(f"{entry.method} {len(entry.costs)}" for entry in entries)
        raise InputError(f"methods are compared on the same instances, but they have {counts}")
    costs = torch.stack([entry.costs.double() for entry in entries])
    solved = ~costs.isnan()
    best = min(range(len(entries)), key=lambda i: (int((~solved[i]).sum()), _mean(costs[i])))
    least = costs.nan_to_num(math.inf).amin(0)
    won = solved & (costs <= least + TIE * least.abs().clamp(min=1e-12))
    lines = []
    for i, entry in enumerate(entries):
        own, both = costs[i][solved[i]], solved[i] & solved[best]
        scale = float(costs[best][both].mean().abs()) if both.any() else math.nan
        difference = (costs[i] - costs[best])[both] / scale if scale else torch.zeros(int(both.sum()))
        lines.append(
            Line(
                entry.method,
                len(entry.costs),
                -_mean(own) if problem.maximise else _mean(own),
                standard_error(own),
                _mean(difference),
                standard_error(difference),
                int(won[i].sum()),
                int((~solved[i]).sum()),
                entry.seconds,
            )
        )
    return lines


def _mean(values: Tensor) -> float:
    """Of the numbers among the values; nan if there are none, which sorts behind every number here."""
    return float(values.nanmean())


def comparison_table(lines: Sequence[Line], title: str, machine: str | None = None) -> RichTable:
    """For the terminal."""
    caption = f"{lines[0].instances if lines else 0} instances on {machine or hardware()}; ± is a standard error"
    table = RichTable(title=title, caption=caption, box=None, header_style="bold")
    table.add_column("method", no_wrap=True)
    for name in ("objective", "±", "gap", "±", "wins", "infeasible", "time"):
        table.add_column(name, justify="right")
    for line in lines:
        table.add_row(
            line.method, figure(line.objective, 4), figure(line.standard_error, 4), percent(line.gap),
            percent(line.gap_error), str(line.wins), str(line.infeasible), duration(line.seconds),
        )  # fmt: skip
    return table


def hardware() -> str:
    """The machine in a few words: processor, cores that may be used, GPU."""
    name = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo") as file:
            models = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
        name = models[0] if models else name
    except OSError:
        pass
    cores = usable_processors()
    gpu = f", {torch.cuda.get_device_name()}" if torch.cuda.is_available() else ""
    return f"{name}, {cores} core{'s' if cores > 1 else ''}{gpu}"


@dataclass(frozen=True)
class Fact:
    """One cell of the paper's table 1 or of its additional results for the OP."""

    problem: str  # as the paper writes it: "OP (distance)"
    method: str
    n: int
    objective: float
    gap: float | None  # per cent; the OP's additional table has none
    time: str  # for 10,000 instances; empty where the paper repeats what others reported


def paper_results() -> list[Fact]:
    """All cells that the paper fills, in its order."""
    return [
        Fact(
            row["problem"],
            row["method"],
            int(row["n"]),
            float(row["objective"]),
            float(row["gap_percent"]) if row["gap_percent"] else None,
            row["time_for_10000"],
        )
        for row in package_csv("paper_results.csv")
    ]


def package_csv(name: str) -> list[dict[str, str]]:
    text = resources.files("routelearn.reproduce").joinpath(name).read_text(encoding="utf-8")
    return list(csv.DictReader(io.StringIO(text)))


def figure(value: float | None, digits: int = 2) -> str:
    return "-" if value is None or math.isnan(value) else f"{value:.{digits}f}"


def percent(share: float | None) -> str:
    return "-" if share is None or math.isnan(share) else f"{round(100 * share, 2) + 0.0:.2f} %"  # no -0.00


def duration(seconds: float) -> str:
    """As the paper writes times, finer where a second matters."""
    if seconds < 0.095:
        return f"{1000 * seconds:.0f}ms"
    if seconds < 9.95:
        return f"{seconds:.1f}s"
    if seconds < 120:
        return f"{seconds:.0f}s"
    return f"{seconds / 60:.0f}m" if seconds < 7200 else f"{seconds / 3600:.0f}h"


@dataclass(frozen=True)
class Grid:
    """A titled table of texts with a heading, and notes below it."""

    title: str
    heading: tuple[str, ...]
    rows: list[tuple[str, ...]]
    notes: list[str] = field(default_factory=list)

    def text(self) -> str:
        widths = [max(len(cell) for cell in column) for column in zip(self.heading, *self.rows, strict=True)]

        def line(cells: Sequence[str]) -> str:
            first, *rest = zip(cells, widths, strict=True)
            return "  ".join([first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in rest)]).rstrip()

        rule = "-" * (sum(widths) + 2 * (len(widths) - 1))
        return "\n".join((self.title, rule, line(self.heading), rule, *map(line, self.rows), rule, *self.notes))

    def markdown(self) -> str:
        def line(cells: Sequence[str]) -> str:
            return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

        align = "|---|" + "---:|" * (len(self.heading) - 1)
        notes = ["", *(f"- {note}" for note in self.notes)] if self.notes else []
        return "\n".join((f"### {self.title}", "", line(self.heading), align, *map(line, self.rows), *notes))

    def latex(self) -> str:
        """A tabular for the package booktabs."""

        def line(cells: Sequence[str]) -> str:
            return " & ".join(map(latex_escape, cells)) + r" \\"

        return "\n".join(
            (
                r"\begin{table}",
                rf"\caption{{{latex_escape(self.title)}}}",
                r"\centering\footnotesize",
                rf"\begin{{tabular}}{{l{'r' * (len(self.heading) - 1)}}}",
                r"\toprule",
                line(self.heading),
                r"\midrule",
                *map(line, self.rows),
                r"\bottomrule",
                r"\end{tabular}",
                *(rf"\par {latex_escape(note)}" for note in self.notes),
                r"\end{table}",
            )
        )


LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "†": r"$^\dagger$", "±": r"$\pm$",
}  # fmt: skip


def latex_escape(text: str) -> str:
    return "".join(LATEX.get(letter, letter) for letter in text)


def write_tables(
    out: Path, stem: str, title: str, grids: Sequence[Grid], records: Sequence[dict[str, object]], notes: Sequence[str]
) -> list[Path]:
    """stem.txt, .md, .tex from the grids and .csv from the records, one a cell; the paths written."""
    out.mkdir(parents=True, exist_ok=True)
    contents = {
        "txt": "\n\n".join((title, *(grid.text() for grid in grids), "\n".join(notes))),
        "md": "\n\n".join((f"## {title}", *(grid.markdown() for grid in grids), "\n".join(f"- {n}" for n in notes))),
        "tex": "\n\n".join((f"% {title}", *(grid.latex() for grid in grids), "\n".join(f"% {n}" for n in notes))),
    }
    paths = []
    for suffix, content in contents.items():
        paths.append(out / f"{stem}.{suffix}")
        paths[-1].write_text(content.rstrip() + "\n", encoding="utf-8")
    paths.append(out / f"{stem}.csv")
    with open(paths[-1], "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(records[0]) if records else ["problem"])
        writer.writeheader()
        writer.writerows(records)
    return paths
