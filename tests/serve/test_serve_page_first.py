"""The first visit to the page in a real Chromium: examples, waiting, what is missing; and that everybody can use it."""

from __future__ import annotations

import pytest
from on_page import card, place, solve, solve_round

httpx = pytest.importorskip("httpx")

pytestmark = [pytest.mark.extra, pytest.mark.slow]


def test_there_is_an_example_of_every_problem(page, server):
    problems = httpx.get(f"{server.url}/problems").json()["problems"]
    examples = httpx.get(f"{server.url}/page/settings.json").json()["examples"]
    cards = page.locator(".card").all_inner_texts()
    assert len(cards) == len(problems) + len(examples)
    for problem in problems:
        card(page, problem["title"])
        page.wait_for_function(f"document.getElementById('problem').value === '{problem['id']}'")
        page.wait_for_selector("#board-a .stop")
        assert "Press Solve" in page.locator("#guide").inner_text(), "nothing is missing"
        page.click("#clear")
    for example in examples:
        assert any(example["title"] in text and example["words"] in text for text in cards)


def test_the_examples_of_files_can_be_solved(page, server):
    page.fill("#seconds", "0.3")
    for example in httpx.get(f"{server.url}/page/settings.json").json()["examples"]:
        card(page, example["title"])
        page.wait_for_selector("#round:not([hidden]), #board-a .stop")
        if page.locator("#round").is_visible():
            page.click("#solve")
            page.wait_for_selector("#round-plan .itinerary")
            page.click("#round-close")
            continue
        assert "Press Solve" in page.locator("#guide").inner_text()
        solve(page)
        assert page.locator(".error").count() == 0
        page.click("#clear")


def test_what_is_missing_is_told_and_filled_in_when_asked(page):
    page.select_option("#problem", "cvrp")
    place(page, (0.5, 0.5), (0.8, 0.2), (0.3, 0.1))
    told = page.locator("#guide").inner_text()
    assert "Still needed: demand of 2 stops, capacity." in told
    assert page.input_value("#limit-capacity") == "", "nothing is invented"
    page.click("#guide button")
    page.wait_for_function("document.getElementById('guide').textContent.includes('Press Solve')")
    assert float(page.input_value("#limit-capacity")) > 0


def test_the_page_says_what_it_waits_for_while_the_service_starts(page):
    lanes = {
        name: {"wanted": 1, "ready": int(name == "construct"), "busy": 0, "waiting": 0}
        for name in ("construct", "short", "long")
    }
    body = {"status": "starting", "version": "0", "workers": lanes}
    page.route("**/healthz", lambda route: route.fulfill(status=503, json=body))
    page.reload()
    page.wait_for_selector("#starting:not([hidden])")
    told = page.locator("#starting").inner_text()
    assert "starting" in told
    assert "the short searches, the long searches" in told
    assert "models" not in told, "those are there"
    page.unroute("**/healthz")
    page.wait_for_selector("#starting", state="hidden")


# ------------------------------------------------------------------------------------------- for everybody

FOCUSED = """(() => {
  const one = document.activeElement;
  return one.id || one.dataset.index || one.getAttribute("class") || one.tagName;
})()"""


@pytest.mark.parametrize(
    "page", [{"color_scheme": "light"}, {"color_scheme": "dark"}], indirect=True, ids=["light", "dark"]
)
def test_axe_finds_nothing(page):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()

    def clean(state):
        found = axe.run(page, options={"resultTypes": ["violations"]}).response["violations"]
        assert [(one["id"], [node["html"][:120] for node in one["nodes"][:3]]) for one in found] == [], state

    clean("empty")
    card(page, "Deliveries")
    page.wait_for_selector("#board-a .stop")
    page.click("#details summary")
    page.click("#files summary")
    page.click("#scores summary")
    page.fill("#seconds", "0.3")
    solve(page)
    clean("solved")
    page.check("#compare")
    solve(page)
    page.wait_for_selector("#board-b figcaption strong")
    clean("compared")
    page.uncheck("#compare")
    page.click("#think")
    page.wait_for_selector("#player:not([hidden])")
    clean("watching")
    solve_round(page)
    clean("round")
    page.locator("#round-plan tr[data-id]").first.focus()
    page.keyboard.press("Alt+ArrowRight")
    page.wait_for_function("!document.getElementById('round-undo').disabled")
    clean("round, a stop moved")


def test_the_focus_goes_through_the_page_in_its_order(page):
    card(page, "Deliveries")
    page.wait_for_selector("#board-a .stop")
    assert page.evaluate("document.activeElement.matches('svg.map')"), "the chosen card is gone: the map has the focus"
    page.locator("nav a").focus()
    order = []
    for _ in range(45):
        page.keyboard.press("Tab")
        order.append(page.evaluate(FOCUSED))
    wanted = [
        "theme",
        "problem",
        "limit-capacity",
        "random-n",
        "method-a",
        "seconds",
        "link",
        "solve",
        "think",
        "map places",
        "0",
        "1",
    ]
    found = [order.index(one) for one in wanted]
    assert found == sorted(found), order


def test_what_happens_is_said_to_those_who_cannot_see(page):
    card(page, "Deliveries")
    page.wait_for_selector("#board-a .stop")
    assert page.locator("#say").get_attribute("role") == "status"
    page.fill("#seconds", "1")
    page.click("#solve")
    page.wait_for_function("document.getElementById('say').textContent === 'Searching.'")
    page.wait_for_function("document.getElementById('say').textContent.startsWith('cost ')")
    page.fill("#seconds", "30")
    page.click("#solve")
    page.wait_for_function("document.querySelector('#board-a figcaption').textContent.startsWith('cost ')")
    page.click("#stop")
    page.wait_for_function("document.getElementById('say').textContent.startsWith('Stopped. cost ')")
    page.fill("#limit-capacity", "1")
    page.locator("#limit-capacity").blur()
    page.click("#solve")
    page.wait_for_selector(".error[role=alert]")
