"""`routelearn models`."""

from __future__ import annotations

import typer


def models() -> None:
    """List the trained models that ship with the package, with what was measured of them."""
    from rich.console import Console
    from rich.table import Table

    from routelearn.models import shipped

    table = Table(box=None, header_style="bold")
    for column in ("model", "problem", "trained on", "n", "greedy", "best", "by", "MB", "GPU minutes"):
        table.add_column(column, justify="left" if column in ("model", "problem", "by", "trained on") else "right")
    found = shipped()
    for name, entry in found.items():
        card = entry["card"]
        measured = card.get("measured") or {"": {}}
        for index, (size, row) in enumerate(measured.items()):
            first = index == 0
            table.add_row(
                name if first else "",
                entry["problem"] if first else "",
                ", ".join(map(str, card.get("sizes", []))) if first else "",
                size,
                f"{row['greedy']:.4f}" if "greedy" in row else "",
                f"{row['best']:.4f}" if "best" in row else "",
                row.get("strategy", ""),
                f"{entry['megabytes']:.1f}" if first else "",
                f"{card.get('minutes', 0):.1f}" if first else "",
            )
    Console().print(table if found else "no trained model ships with this version")
    if found:
        typer.echo("Costs are means over the paper's test instances; prizes count as negative cost.")
