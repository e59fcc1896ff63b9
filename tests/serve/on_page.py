"""What people do on the page, for its tests."""

from __future__ import annotations

import re
from contextlib import contextmanager


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


def in_sight(page, selector):
    """The index of a stop that no other covers: random places may lie behind one another."""
    return page.locator(selector).evaluate_all(
        """stops => stops.find((stop) => {
          const box = stop.getBoundingClientRect();
          return document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2) === stop;
        }).dataset.index"""
    )


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


# Random instances are the same in every run: now and then one has no route at all, or hides one stop behind another.
SEEDED = """(() => {
  let state = 1;
  Math.random = () => (state = (48271 * state) % 2147483647) / 2147483647;
})()"""


@contextmanager
def opened(browser, url, **options):
    """The page at an address; options are those of a browser's context."""
    context = browser.new_context(accept_downloads=True, bypass_csp=True, **options)  # its waiting evaluates text
    context.add_init_script(SEEDED)
    page = context.new_page()
    page.set_default_timeout(120_000)  # a first search may wait for a compiler
    complaints, elsewhere = [], []
    # An answer that the page shows or waits on is reported by the browser as a failed load; that is no defect of it.
    shown = re.compile(r"status of (4\d\d|503.*healthz)")

    def hear(message):
        if message.type == "error" and not shown.search(f"{message.text} {message.location['url']}"):
            complaints.append(message.text)

    page.on("console", hear)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda r: None if r.url.startswith((url, "blob:", "data:")) else elsewhere.append(r.url))
    page.goto(url)
    page.wait_for_selector("#gallery .card")
    yield page
    context.close()
    assert complaints == []
    assert elsewhere == []
