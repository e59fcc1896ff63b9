"""The page's view of a round in a real Chromium: map, time line and itinerary together, and the driver's sheet."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from on_page import opened, solve_round

pytestmark = [pytest.mark.extra, pytest.mark.slow]


@pytest.fixture(scope="module")
def view(server, browser):
    """One solved round for all tests of the module; they leave it as it was."""
    with opened(browser, server.url, viewport={"width": 1280, "height": 800}) as page:
        page.fill("#seconds", "0.5")
        solve_round(page)
        yield page


def lit(page, part):
    return page.locator(f"{part} .lit").evaluate_all("all => all.map((one) => one.dataset.id)")


def test_itinerary_and_map_stand_side_by_side(view):
    shown, plan = view.locator("#round-map").bounding_box(), view.locator("#round-side").bounding_box()
    times = view.locator("#round-times").bounding_box()
    assert plan["x"] >= shown["x"] + shown["width"]
    assert times["y"] >= shown["y"] + shown["height"]
    assert times["y"] + times["height"] < 800, "all three are in view"


def test_visits_have_numbers_names_loads_and_units(view):
    row = view.locator("#round-plan .itinerary").first.locator("tr[data-id]").first
    number, name, arrives, leaves, load, _ = row.locator("td").all_inner_texts()
    assert number == "1"
    assert name.splitlines()[0] == row.get_attribute("data-id")
    assert "open 0" in name
    assert arrives <= leaves
    assert float(load) > 0
    assert "so far, km" in view.locator("#round-plan th").all_inner_texts()
    told = view.locator("#round-plan .vehicle .hint").first.inner_text()
    assert " of 85 · " in told
    assert " km · " in told
    numbers = view.locator("#round-map .number").all_text_contents()
    counts = [int(text.split()[0]) for text in view.locator("#round-plan .vehicle .hint").all_inner_texts()]
    assert sorted(map(int, numbers)) == sorted(n + 1 for count in counts for n in range(count))


def test_windows_are_arcs_round_the_stops(view):
    assert view.locator("#round-map .window").count() >= view.locator("#round-map circle.stop").count()
    assert "ring" in view.locator("#round-key").inner_text()


@pytest.mark.parametrize("source", ["#round-map circle.stop", "#round-plan tr[data-id]", "#round-times .visit"])
@pytest.mark.parametrize("by", ["pointer", "keys"])
def test_what_is_pointed_at_is_lit_in_all_three(view, source, by):
    target = view.locator(source).nth(3)
    name = target.get_attribute("data-id")
    if by == "pointer":
        target.hover()
    else:
        target.focus()
    assert set(lit(view, "#round-map")) == {name}
    assert lit(view, "#round-plan") == [name]
    assert set(lit(view, "#round-times")) == {name}
    assert view.locator("#round-times .window.lit").first.evaluate("one => getComputedStyle(one).opacity") == "1"
    if by == "pointer":
        view.mouse.move(5, 5)
    else:
        target.blur()
    assert lit(view, "#round-plan") == []


def test_enter_on_a_block_goes_to_its_row(view):
    block = view.locator("#round-times .visit").last
    block.focus()
    view.keyboard.press("Enter")
    assert view.evaluate("document.activeElement.matches('tr')")
    assert view.evaluate("document.activeElement.dataset.id") == block.get_attribute("data-id")


def test_a_stop_is_moved_by_keys_and_the_move_undone(view):
    first = view.locator("#round-plan tr[data-id]").first
    name = first.get_attribute("data-id")
    first.focus()
    with view.expect_response("**/check"):
        view.keyboard.press("Alt+ArrowDown")
    view.wait_for_function(f"document.querySelectorAll('#round-plan tr[data-id]')[1].dataset.id === {name!r}")
    assert view.evaluate("document.activeElement.dataset.id") == name, "the focus goes along"
    view.click("#round-undo")
    assert view.locator("#round-plan tr[data-id]").first.get_attribute("data-id") == name


def test_a_stop_is_left_out_and_taken_back_by_keys(view):
    last = view.locator("#round-plan .vehicle").last.locator("tr[data-id]").first
    name = last.get_attribute("data-id")
    last.focus()
    free, places = view.locator("#round-plan .free").count(), []
    for key in (*["ArrowRight"] * (1 + free), "ArrowLeft"):  # past the vehicles that are free, and back
        view.evaluate("document.activeElement.dataset.before = ''")
        view.keyboard.press(f"Alt+{key}")
        view.wait_for_function("document.activeElement.matches('[data-id]:not([data-before])')")
        assert view.evaluate("document.activeElement.dataset.id") == name, "the focus goes along"
        places.append(view.evaluate("document.activeElement.tagName"))
    assert places[-2:] == ["P", "TR"], "left out, and on a line again"
    view.click("#round-undo")


def test_a_plan_is_saved_as_the_service_writes_it(view):
    names, saved = view.locator("#round-plan tr[data-id]").evaluate_all("all => all.map((one) => one.dataset.id)"), {}
    for kind in ("json", "csv", "geojson", "vroom.json"):
        with view.expect_download() as info:
            view.click(f"#round-downloads [data-form='{kind}']")
        assert info.value.suggested_filename == f"plan.{kind}"
        saved[kind] = Path(info.value.path()).read_text()
    plan = json.loads(saved["json"])
    assert [stop for route in plan["routes"] for stop in route["stops"]] == names
    assert "drawing" not in plan
    lines = list(csv.DictReader(io.StringIO(saved["csv"])))
    assert [line["id"] for line in lines if line["kind"] == "stop"] == names
    points = [one["properties"] for one in json.loads(saved["geojson"])["features"]]
    assert {one.get("id") for one in points} >= set(names)
    steps = [step for route in json.loads(saved["vroom.json"])["routes"] for step in route["steps"]]
    assert [step["description"] for step in steps if step["type"] == "job"] == names


def test_a_sheet_for_each_driver_is_printed(view):
    vehicles = view.locator("#round-plan .vehicle").count()
    view.evaluate("window.print = () => { window.dispatchEvent(new Event('beforeprint')); window.printed = true; }")
    view.click("#round-print")
    assert view.evaluate("window.printed")
    view.emulate_media(media="print")
    try:
        assert view.locator(".sheet").count() == vehicles
        for sheet in view.locator(".sheet").all():
            assert sheet.is_visible()
            visits = sheet.locator("tbody tr").count()
            assert sheet.locator("svg.map .number").count() in (visits - 2, visits - 3), "all but the ends and a break"
        hidden = ("#panel", "header", "#round", ".controls", "#boards")
        assert [part for part in hidden if view.locator(part).first.is_visible()] == []
    finally:
        view.emulate_media(media="screen")
    assert not view.locator(".sheet").first.is_visible()


def test_plans_are_drawn_while_the_search_runs_and_stay_when_it_is_stopped(view):
    view.evaluate("document.getElementById('round-plan').replaceChildren()")
    view.fill("#seconds", "30")
    view.click("#solve")
    view.wait_for_selector("#round-plan .itinerary", timeout=20_000)
    assert view.locator("#stop").is_enabled(), "the search goes on"
    view.click("#stop")
    view.wait_for_function("document.getElementById('stop').disabled")
    assert view.locator("#round-plan .itinerary").count() >= 1
    view.fill("#seconds", "0.5")
