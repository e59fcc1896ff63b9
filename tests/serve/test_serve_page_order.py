"""The page in a real Chromium when things happen in odd orders: before an answer came, twice, or not at all."""

from __future__ import annotations

import pytest
from on_page import choose, opened, solve, solve_round, stops

pytestmark = [pytest.mark.extra, pytest.mark.slow]

DROP = """([selector, files]) => {
  const carried = new DataTransfer();
  for (const [name, text] of files) carried.items.add(new File([text], name));
  const tell = (kind) => document.querySelector(selector).dispatchEvent(
    new DragEvent(kind, { dataTransfer: carried, bubbles: true, cancelable: true }));
  return [tell("dragover"), tell("drop")];
}"""
CSV = "x,y,demand\n0,0,0\n1,2,3\n3,4,2\n"


def drop(page, selector, *files):
    """Drop files there; whether the browser would have opened them itself, and left the page."""
    return page.evaluate(DROP, [selector, files]) != [False, False]


def hold(page, path):
    """Requests to a path wait until `held` lets them go on."""
    held = []
    page.route(path, lambda route: held.append(route))
    return held


def wait_for(page, held, count=1):
    while len(held) < count:
        page.wait_for_timeout(20)


def test_a_file_is_dropped_on_the_map(page):
    assert not drop(page, "#board-a svg.map", ("a.csv", CSV))
    page.wait_for_function("document.querySelectorAll('#board-a .stop').length === 3")
    assert page.locator("#problem").input_value() == "cvrp"
    assert not drop(page, "header", ("a.csv", CSV), ("b.csv", CSV))
    page.wait_for_selector(".error:has-text('several files')")


def test_a_file_that_is_refused_is_read_again_when_its_vehicles_are_told(page):
    table = "id,lat,lon,open,close,demand\ndepot,52.5,13.4,,,\nA,52.4,13.5,08:00,10:00,3\n"
    drop(page, "#board-a svg.map", ("orders.csv", table))
    for field, value in (("capacity", "100"), ("speed", "30")):
        page.wait_for_selector(f"#fleet-{field}[aria-invalid=true]")
        assert page.locator(f"#fleet-{field}").is_visible(), "the fields are opened"
        page.fill(f"#fleet-{field}", value)
        page.locator(f"#fleet-{field}").blur()
    page.wait_for_selector("#round:not([hidden])")
    assert page.locator("#round-title").inner_text() == "orders.csv: 1 stop"
    read = page.locator("#round-plan .read")
    assert read.locator("th").all_inner_texts() == ["stop", "delivery", "windows"]
    assert read.locator("td").all_inner_texts() == ["A", "3", "08:00\N{EN DASH}10:00"]


def test_a_folder_that_is_dropped_is_told(page):
    page.evaluate("() => { File.prototype.arrayBuffer = () => Promise.reject(new DOMException('', 'NotFoundError')) }")
    assert not drop(page, "#board-a svg.map", ("orders", ""))
    page.wait_for_selector("[data-errors=stops] .error:has-text('orders: cannot be read; choose a file')")


@pytest.mark.parametrize("then", ["#clear", "problem"])
def test_stops_that_come_too_late_do_not_undo_what_was_done_since(page, then):
    choose(page, "tsp", 5)
    held = hold(page, "**/random?*")
    page.click("#random")
    wait_for(page, held)
    if then == "problem":
        page.select_option("#problem", "op-unif")
    else:
        page.click(then)
    held[0].continue_()
    page.wait_for_timeout(500)
    assert stops(page) == (5 if then == "problem" else 0)
    assert page.locator("#problem").input_value() == ("op-unif" if then == "problem" else "tsp")


def test_what_is_solved_are_the_stops_that_are_still_being_fetched(page):
    choose(page, "tsp", 5)
    held = hold(page, "**/random?*")
    page.fill("#random-n", "7")
    page.fill("#seconds", "0.2")
    page.click("#random")
    wait_for(page, held)
    page.click("#solve")
    held[0].continue_()
    page.wait_for_selector("#board-a figcaption strong")
    assert stops(page) == 7


def test_nothing_is_solved_where_the_stops_could_not_be_fetched(page):
    choose(page, "tsp", 5)
    held = hold(page, "**/random?*")
    page.click("#random")
    wait_for(page, held)
    page.click("#solve")
    held[0].fulfill(status=422, json={"error": "no such stops"})
    page.wait_for_selector(".error:has-text('no such stops')")
    page.wait_for_timeout(300)
    assert page.locator("#board-a figcaption strong").count() == 0
    page.fill("#seconds", "0.2")
    solve(page)  # those that are there


@pytest.mark.parametrize("body", ["", 'event: better\ndata: {"error": '])
def test_a_search_whose_connection_breaks_off_is_told(page, body):
    choose(page, "tsp", 5)
    page.route("**/solve/stream", lambda route: route.fulfill(status=200, content_type="text/event-stream", body=body))
    page.click("#solve")
    page.wait_for_selector(".error:has-text('the connection to the service was lost')")
    assert page.locator("#stop").is_disabled()


def test_a_second_run_of_the_score_board_can_be_stopped(page):
    choose(page, "tsp", 20)
    page.fill("#seconds", "20")
    page.click("#scores summary")
    page.select_option("#scores-which", "current")
    for _ in range(2):
        with page.expect_request("**/solve"):
            page.click("#scores-run")
    page.wait_for_timeout(300)
    assert "Instance 1" in page.locator("#scores-status").inner_text()
    page.click("#scores-stop")
    page.wait_for_function("document.getElementById('scores-status').textContent === 'Stopped.'")


def test_the_score_board_draws_no_more_instances_than_it_says(page):
    page.click("#scores summary")
    page.select_option("#scores-which", "random")
    page.fill("#scores-count", "100000")
    page.click("#scores-run")
    page.wait_for_selector(".error:has-text('at most 50')")


@pytest.fixture
def view(server, browser):
    with opened(browser, server.url, viewport={"width": 1280, "height": 800}) as page:
        page.fill("#seconds", "0.3")
        solve_round(page)
        yield page


# Whether the first vehicle visits these stops in this order.
NAMED = """(names) => {
  const rows = document.querySelector("#round-plan .vehicle").querySelectorAll("tr[data-id]");
  return String([...rows].map((one) => one.dataset.id)) === String(names);
}"""


def rows(page):
    return page.locator("#round-plan .vehicle").first.locator("tr[data-id]")


def names(page):
    return rows(page).evaluate_all("all => all.map((one) => one.dataset.id)")


def test_two_moves_before_an_answer_are_both_made(view):
    before, held = names(view), hold(view, "**/check")
    for row in (0, 3):
        rows(view).nth(row).focus()
        view.keyboard.press("Alt+ArrowDown")
    wait_for(view, held, 2)
    for route in reversed(held):  # the answers come in the other order
        with view.expect_response("**/check"):
            route.continue_()
    a, b, c, d, e, *rest = before
    view.wait_for_function(NAMED, arg=[b, a, c, e, d, *rest])
    view.wait_for_timeout(300)
    assert names(view) == [b, a, c, e, d, *rest], "and the older answer changes nothing"
    view.click("#round-undo")
    assert names(view) == before


def test_a_move_that_was_undone_or_closed_does_not_come_back(view):
    before, held = names(view), hold(view, "**/check")
    rows(view).nth(0).focus()
    view.keyboard.press("Alt+ArrowDown")
    wait_for(view, held)
    view.fill("#seconds", "0")
    with view.expect_response("**/solve/stream"):
        view.click("#solve")
    view.wait_for_function("document.getElementById('stop').disabled")
    planned = names(view)
    with view.expect_response("**/check"):
        held[0].continue_()
    view.wait_for_timeout(300)
    assert names(view) == planned
    assert before


def test_alt_and_an_arrow_never_leave_the_page(view):
    rows(view).nth(0).focus()
    view.evaluate("window.addEventListener('keydown', (event) => (window.left = !event.defaultPrevented))")
    view.keyboard.press("Alt+ArrowLeft")
    assert view.evaluate("window.left") is False


def test_closing_a_round_ends_its_search(view):
    view.fill("#seconds", "60")
    view.click("#solve")
    view.click("#round-close")
    view.wait_for_function("document.getElementById('stop').disabled", timeout=50_000)  # before its time is over


def test_a_file_is_dropped_on_an_itinerary(view):
    assert not drop(view, "#round-plan tr[data-id]", ("a.csv", CSV))
    view.wait_for_function("document.querySelectorAll('#board-a .stop').length === 3")


def test_stops_that_cannot_be_served_are_left_out_when_asked(view):
    view.click("#fleet-table [aria-label='remove Van 2']")
    view.click("#solve")
    view.wait_for_selector("[data-errors=solve] .error:has-text('cannot be served')")
    view.check("#allow-unassigned")
    view.click("#solve")
    view.wait_for_selector("#round-title:has-text('left out')")
    view.wait_for_function("document.getElementById('stop').disabled")
    assert view.locator(".left-out p[data-id]").count() >= 1
    assert view.locator(".error").count() == 0
