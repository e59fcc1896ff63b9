"""`routelearn models`."""

from __future__ import annotations

import typer


def models() -> None:
    """List the trained models that ship with the package, with their measured costs."""
    from rich.console import Console
    from rich.measure import Measurement
    from rich.table import Table

    from routelearn.models import shipped

    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 1, 0, 0))
    words = ("model", "problem", "sizes", "by")
    for column in ("model", "problem", "sizes", "n", "greedy", "best", "by", "min"):
        table.add_column(
            column, justify="left" if column in words else "right", no_wrap=column != "by", overflow="fold"
        )
    found = shipped()
    for name, entry in found.items():
        card = entry["card"]
        measured = card.get("measured") or {"": {}}
        for index, (size, row) in enumerate(measured.items()):
            first = index == 0
            table.add_row(
                name if first else "",
                entry["problem"] if first else "",
                ",".join(map(str, card.get("sizes", []))) if first else "",
                size,
                f"{row['greedy']:.4f}" if "greedy" in row else "",
                f"{row['best']:.4f}" if "best" in row else "",
                row.get("strategy", ""),
                f"{card.get('minutes', 0) + card.get('minutes_before', 0):.1f}" if first else "",
            )
    console = Console()
    if not console.is_terminal:  # a pipe has no width that anything would have to fit into
        wide = console.options.update(max_width=1_000)
        console = Console(width=max(console.width, Measurement.get(console, wide, table).maximum))
    console.print(table if found else "no trained model ships with this version")
    if found:
        size = sum(entry["megabytes"] for entry in found.values())
        typer.echo(
            "Costs are means over the paper's test instances; prizes count as negative cost.\n"
            "The sizes are those trained on; min is minutes on one GPU, including those of\n"
            f"the models it started from. All files together are {size:.0f} MB."
        )
