"""Comparing on the page, in a real Chromium: two answers side by side, and the score board."""

from __future__ import annotations

import csv
import io
from collections import Counter
from pathlib import Path

import pytest
from on_page import choose, solve

pytestmark = [pytest.mark.extra, pytest.mark.slow]

# Stops and routes on a board: {stop: colour}, and the legs that are marked.
COLOURS = """(board) => Object.fromEntries([...document.querySelectorAll(`#${board} circle.stop`)].map(
  (dot) => [dot.dataset.index, dot.style.fill]))"""


def compared(page, problem, n):
    choose(page, problem, n)
    page.check("#compare")
    page.select_option("#method-b", "greedy")
    page.fill("#seconds", "0.3")
    solve(page)
    page.wait_for_selector("#board-b figcaption strong")


def test_the_same_route_has_the_same_colour_on_both_maps(page):
    compared(page, "cvrp", 30)
    first, second = (page.evaluate(COLOURS, board) for board in ("board-a", "board-b"))
    assert first.keys() == second.keys()
    shared = Counter((first[stop], second[stop]) for stop in first)
    alike = max(count for (here, there), count in shared.items() if here == there)
    assert alike == max(shared.values()), "the two routes that share most stops have one colour"
    used = page.locator("#board-b .routes li").evaluate_all("all => all.map((one) => one.style.borderColor)")
    assert len(set(used)) == len(used), "and no two routes share a colour"


def test_legs_that_differ_are_marked_and_counted(page):
    compared(page, "tsp", 30)
    for board in ("board-a", "board-b"):
        marked = page.locator(f"#{board} .differs").count()
        told = page.locator(f"#{board} figcaption").inner_text()
        assert ("the same legs" if marked == 0 else f"{marked} leg") in told
    assert page.locator("#board-a .differs").count() == page.locator("#board-b .differs").count(), "tours of n legs"
    page.select_option("#method-b", "both")
    page.select_option("#method-a", "both")
    page.fill("#seconds", "0.5")
    solve(page)
    page.wait_for_function("document.querySelectorAll('.differs').length === 0")
    assert "the same as beside" in page.locator("#board-b figcaption").inner_text()


def test_both_maps_look_at_the_same_part(page):
    compared(page, "tsp", 12)
    page.click("#board-b [aria-label='zoom in']")
    places = [
        page.locator(f"#{board} circle.stop").evaluate_all(
            "all => all.map((one) => [one.getAttribute('cx'), one.getAttribute('cy')])"
        )
        for board in ("board-a", "board-b")
    ]
    assert places[0] == places[1]


def test_the_score_board_runs_methods_over_instances(page):
    page.select_option("#problem", "cvrp")
    page.fill("#seconds", "0.1")
    page.click("#scores summary")
    page.wait_for_function("document.getElementById('scores-which').value === 'random'")  # there are no stops yet
    offered = page.locator("#scores-methods .tick").all_inner_texts()
    assert [name.strip() for name in offered if "search" in name] == ["policy and search", "search alone"], "each once"
    page.uncheck("#scores-methods input[value='greedy']")
    page.check("#scores-methods input[value='solver:savings']")
    page.fill("#scores-count", "3")
    page.fill("#scores-n", "12")
    page.click("#scores-run")
    page.wait_for_function("document.getElementById('scores-status').textContent.startsWith('Done')")
    assert page.locator("#scores-table tbody tr").count() == 2
    best = page.locator("#scores-table .best")
    assert best.count() >= 1
    assert "★" in best.first.inner_text()
    cells = page.locator("#scores-table tbody tr").first.locator("td").all_inner_texts()
    assert cells[1].endswith(" %")
    assert cells[2].endswith(" of 3")
    assert page.locator("#scores-status").inner_text().endswith("over 3 instances of cvrp with 13 stops.")
    with page.expect_download() as saved:
        page.click("#scores-save")
    lines = list(csv.DictReader(io.StringIO(Path(saved.value.path()).read_text())))
    assert len(lines) == 6
    for number in "123":
        costs = {line["method"]: float(line["cost"]) for line in lines if line["instance"] == number}
        gaps = {line["method"]: float(line["gap_percent"]) for line in lines if line["instance"] == number}
        for method, cost in costs.items():
            assert gaps[method] == pytest.approx(100 * (cost / min(costs.values()) - 1), abs=1e-3)


def test_methods_that_are_alike_are_all_marked_as_the_best(page):
    """Also where their sums differ in the last digit, as those of the same tour in another order do."""
    costs = iter((2.9744, 2.9744000000000006, 3.0))
    page.route("**/solve", lambda route: route.fulfill(json={"objective": next(costs), "seconds": 0.1}))
    page.click("#scores summary")
    page.check("#scores-methods input[value='search']")
    page.fill("#scores-count", "1")
    page.click("#scores-run")
    page.wait_for_function("document.getElementById('scores-status').textContent.startsWith('Done')")
    methods = page.locator("#scores-table tbody th").all_text_contents()
    assert [method.endswith("★") for method in methods] == [True, True, False]


def test_the_score_board_takes_the_current_stops_and_can_be_stopped(page):
    choose(page, "op-unif", 20)
    page.fill("#seconds", "30")
    page.click("#scores summary")
    page.select_option("#scores-which", "current")
    assert not page.locator("#scores-count").is_visible()
    page.uncheck("#scores-methods input[value='both']")
    page.check("#scores-methods input[value='search']")
    with page.expect_request("**/solve") as asked:
        page.click("#scores-run")
    assert len(asked.value.post_data_json["coords"]) == 21
    page.wait_for_function("document.getElementById('scores-status').textContent.includes('search alone')")
    page.click("#scores-stop")
    page.wait_for_function("document.getElementById('scores-status').textContent === 'Stopped.'")
    assert page.locator("#scores-stop").is_disabled()
    assert "prize" in page.locator("#scores-table th").all_inner_texts()
