"""What people do on the page, for its tests."""

from __future__ import annotations


def place(page, *points):
    box = page.locator("#board-a svg.map").bounding_box()
    for x, y in points:
        page.mouse.click(box["x"] + x * box["width"], box["y"] + y * box["height"])


def stops(page):
    return page.locator("#board-a .stop").count()


def solve(page):
    """Press the button; the caption of the answer when the search is over."""
    page.click("#solve")
    page.wait_for_selector("#board-a figcaption strong")
    page.wait_for_function("document.getElementById('stop').disabled")
    return page.locator("#board-a figcaption").inner_text()


def choose(page, problem, n=12):
    page.select_option("#problem", problem)
    page.click("#clear")  # or the stops that were there would be taken for the new ones
    page.fill("#random-n", str(n))
    page.click("#random")
    page.wait_for_function(f"document.querySelectorAll('#board-a .stop').length >= {n}")


def card(page, title):
    """Choose an example."""
    if not page.locator("#gallery").is_visible():
        page.click("#clear")
    page.locator(".card", has_text=title).first.click()


def solve_round(page):
    """The example of a round, solved."""
    card(page, "A bakery's round")
    page.wait_for_selector("#round:not([hidden])")
    page.click("#solve")
    page.wait_for_selector("#round-plan .itinerary")
    page.wait_for_function("document.getElementById('stop').disabled")
