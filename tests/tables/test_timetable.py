"""The time left follows what the cells so far took."""

from __future__ import annotations

import pytest

from routelearn.reproduce import running as timetable
from routelearn.reproduce.running import TRUST, Timetable


def test_slow_cells_lengthen_what_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(timetable.time, "perf_counter", lambda: now[0])
    table = Timetable([10 * TRUST, 0.0, 100.0])
    assert table.where() == f"1 of 2, about {round((10 * TRUST + 100) / 60)}m left"
    now[0] += 20 * TRUST  # twice as long as expected
    table.passed()
    now[0] += 5 * TRUST  # between cells nothing is measured
    assert table.where() == "stored before"
    table.passed()
    assert table.left() == pytest.approx(100 * 21 / 11)
    assert table.where().startswith("2 of 2, about 3m")
    now[0] += 1
    table.passed()
    assert table.left() == 0
