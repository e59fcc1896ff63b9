"""The page and the picture of a plan: self-contained, safe with hostile names, and working in a real browser."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest
from answer_cases import DRIVES, city, planned, with_lunch

from routelearn.errors import InputError
from routelearn.rounds.plan import Drive


def lunch_plan():
    return planned(with_lunch(), (Drive(0, (0, 1, ~0, 2)), Drive(1, (3,)), Drive(1, (4,))))


def data_of(page):
    return json.loads(re.search(r'<script id="data" type="application/json">(.*?)</script>', page, re.DOTALL)[1])


def test_nothing_is_fetched_from_anywhere():
    page = planned().to_html().replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"https?://|//cdn|@import|src=|<link|fetch\(|XMLHttpRequest", page)
    assert "default-src 'none'" in page


def test_names_cannot_break_out():
    base = city()
    hostile = "</script><script>alert(1)</script>\u2028"
    stops = (replace(base.stops[0], id=hostile, columns={hostile: hostile}), *base.stops[1:])
    page = planned(replace(base, stops=stops)).to_html()
    assert page.count("<script") == 2
    assert "alert(1)</script>" not in page
    assert data_of(page)["stops"][0]["id"] == hostile


def test_the_page_tells_violations_and_what_was_left_out():
    data = data_of(planned(drives=(Drive(0, (2, 0, 1)),)).to_html())
    assert [data["stops"][stop]["id"] for stop, _ in data["unassigned"]] == ["Di", "Ed"]
    late = [one for one in data["violations"] if one["rule"] == "window"]
    assert (late[0]["route"], late[0]["id"]) == (1, "Ana")


@pytest.mark.parametrize("suffix", [".png", ".svg"])
def test_a_picture_is_written(tmp_path, suffix):
    path = tmp_path / f"plan{suffix}"
    lunch_plan().plot(path)
    assert path.stat().st_size > 5_000


def test_a_picture_has_a_time_line_for_each_vehicle():
    figure = lunch_plan().plot()
    map_, times = figure.axes
    assert [label.get_text() for label in times.get_yticklabels()] == ["van", "bike (1)", "bike (2)"]
    assert len(map_.lines) == 3
    assert "3 vehicles" in map_.get_title()


def test_a_picture_of_legs_alone_places_the_stops():
    answer = planned(city(latlon=None))
    assert answer.embedded
    assert abs(answer.layout[5] - answer.layout[0]).max() == pytest.approx(5, rel=1e-6)


def test_an_unknown_picture_is_refused(tmp_path):
    with pytest.raises(InputError, match="a picture ends in"):
        planned().plot(tmp_path / "plan.gif")


def test_the_page_works_in_a_browser(browser, tmp_path):
    late = (Drive(0, (2, 0, 1)), *DRIVES[1:])
    for answer in (lunch_plan(), planned(drives=late), planned(city(day=None, latlon=None))):
        path = tmp_path / "plan.html"
        answer.plot(path)
        page = browser.new_page(viewport={"width": 1200, "height": 800})
        complaints = []
        page.on("pageerror", lambda error, to=complaints: to.append(str(error)))
        page.on("console", lambda message, to=complaints: to.append(message.text))
        page.goto(path.as_uri())
        assert page.locator("#map circle").count() == 5
        assert page.locator("#chart g[data-route]").count() == 3
        assert page.locator("#itinerary table").count() == 3
        page.locator("#map circle").first.hover()
        assert "window" in page.locator("#tip").text_content()
        assert page.locator("#violations li").count() == len(answer.plan.violations)
        assert complaints == []
        page.close()
