"""The interactive page: self-contained, safe with hostile names, and working in a real browser."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from routelearn.solving import solve


def delivery():
    rng = np.random.default_rng(0)
    demand = [0, *rng.integers(1, 5, 20)]
    return solve(
        rng.random((21, 2)), demand=demand, capacity=12, seconds=0.1, ids=["depot", *(f"s{i}" for i in range(20))]
    )


def test_nothing_is_fetched_from_anywhere() -> None:
    page = delivery().to_html().replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"https?://|//cdn|@import|src=|<link|fetch\(|XMLHttpRequest", page)
    assert "default-src 'none'" in page


def test_data_comes_through_and_cannot_break_out() -> None:
    ids = ["</script><script>alert(1)</script>", "<!--", "\u2028", "&amp;"]
    page = solve([[0, 0], [0, 1], [1, 1], [1, 0]], ids=ids, seconds=0).to_html()
    assert page.count("<script") == 2
    assert "alert(1)</script>" not in page
    data = json.loads(re.search(r'<script id="data" type="application/json">(.*?)</script>', page, re.DOTALL)[1])
    assert [stop[0] for stop in data["stops"]] == ids


@pytest.fixture
def opened(browser, tmp_path: Path):
    solution = delivery()
    path = tmp_path / "page.html"
    solution.plot(path)
    page = browser.new_page(viewport={"width": 1100, "height": 700})
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda message: complaints.append(message.text))
    page.on("request", lambda request: complaints.append(request.url) if "page.html" not in request.url else None)
    page.goto(path.as_uri())
    yield page, solution
    assert complaints == []
    page.close()


@pytest.mark.extra
def test_browser_draws_every_route_and_stop(opened) -> None:
    page, solution = opened
    assert page.locator("path.route").count() == len(solution.routes)
    assert page.locator("#map circle[data-stop]").count() == 20
    assert page.locator("#map rect").count() == 1
    assert page.locator("#chart circle").count() == len(solution.events)


@pytest.mark.extra
def test_browser_zooms_at_the_pointer_and_drags(opened) -> None:
    page, _ = opened
    svg = page.locator("#map svg").first

    def view() -> list[float]:
        return [float(v) for v in svg.get_attribute("viewBox").split()]

    before = view()
    page.mouse.move(300, 300)
    page.mouse.wheel(0, -500)
    page.wait_for_function(f"document.querySelector('#map svg').viewBox.baseVal.width < {before[2] * 0.9}")
    zoomed = view()
    page.mouse.down()
    page.mouse.move(360, 300, steps=3)
    page.mouse.up()
    assert view()[0] < zoomed[0]
    assert view()[2] == zoomed[2]
    page.locator("#fit").click()
    assert view() == pytest.approx(before)
    page.locator("#in").click()
    assert view()[2] == pytest.approx(before[2] / 1.4)


@pytest.mark.extra
def test_browser_hover_tells_the_stop(opened) -> None:
    page, solution = opened
    box = page.locator("#map circle[data-stop='3']").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    words = page.locator("#tip").inner_text()
    assert words.startswith("s2\nroute ")
    route = next(i for i, stops in enumerate(solution.routes) if "s2" in stops)
    assert f"route {route + 1}, stop {solution.routes[route].index('s2') + 1} of" in words
    page.mouse.move(2, 2)
    assert not page.locator("#tip").is_visible()


@pytest.mark.extra
def test_browser_switches_routes_off_and_on(opened) -> None:
    page, solution = opened
    first = page.locator("g[data-route='1']")
    assert first.is_visible()
    page.locator("input[data-route='1']").click()
    assert not first.is_visible()
    page.locator("#none").click()
    assert page.locator("g[data-route]:visible").count() == 0
    page.locator("#all").click()
    assert page.locator("g[data-route]:visible").count() == len(solution.routes)
