"""The page's map in a real Chromium: looking around, reading it, and that it fits every screen."""

from __future__ import annotations

import base64
import http.server
import json
import math
import threading

import pytest
from on_page import card, choose, place, solve, solve_round, stops

from routelearn.errors import InputError

pytest.importorskip("pydantic")

from routelearn.serve.page_settings import tiles_origin

pytestmark = [pytest.mark.extra, pytest.mark.slow]

MAP = "#board-a svg.map"
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def centre(page, index=0):
    """Where a stop is on the screen."""
    box = page.locator(f'#board-a .stop[data-index="{index}"]').bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def apart(page):
    (ax, ay), (bx, by) = centre(page, 0), centre(page, 1)
    return math.hypot(ax - bx, ay - by)


def test_a_click_places_a_stop_and_a_drag_looks_around(page):
    place(page, (0.3, 0.3), (0.6, 0.6))
    before, box = centre(page), page.locator(MAP).bounding_box()
    x, y = box["x"] + 0.5 * box["width"], box["y"] + 0.2 * box["height"]
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 50, y + 30, steps=4)
    page.mouse.up()
    assert stops(page) == 2, "a drag places nothing"
    assert centre(page) == pytest.approx((before[0] + 50, before[1] + 30), abs=1)
    page.mouse.click(x, y)
    assert stops(page) == 3


def test_the_wheel_zooms_at_the_pointer_and_the_buttons_at_the_middle(page):
    place(page, (0.3, 0.3), (0.6, 0.6))
    wide, held = apart(page), centre(page)
    page.mouse.move(*held)
    page.mouse.wheel(0, -300)
    page.wait_for_function("document.querySelector('#board-a .stop').getBoundingClientRect()")
    assert apart(page) > 1.2 * wide
    assert centre(page) == pytest.approx(held, abs=1.5), "what is under the pointer stays there"
    page.click("#board-a [aria-label='show all stops']")
    assert apart(page) == pytest.approx(wide, rel=0.01)
    page.click("#board-a [aria-label='zoom in']")
    assert apart(page) == pytest.approx(1.4 * wide, rel=0.01)
    page.click("#board-a [aria-label='zoom out']")
    assert apart(page) == pytest.approx(wide, rel=0.01)
    assert stops(page) == 2


@pytest.mark.parametrize("page", [{"viewport": {"width": 390, "height": 844}, "has_touch": True}], indirect=True)
def test_two_fingers_zoom_and_place_nothing(page):
    box = page.locator(MAP).bounding_box()
    for x, y in ((0.3, 0.3), (0.6, 0.6)):
        page.touchscreen.tap(box["x"] + x * box["width"], box["y"] + y * box["height"])
    wide = apart(page)
    middle = (box["x"] + box["width"] / 2, box["y"] + box["height"] * 0.8)
    session = page.context.new_cdp_session(page)

    def touch(kind, gap):
        points = [] if gap is None else [{"x": middle[0] + way * gap, "y": middle[1], "id": way} for way in (-1, 1)]
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    touch("touchStart", 30)
    for gap in (40, 50, 60):
        touch("touchMove", gap)
    touch("touchEnd", None)
    page.wait_for_function("document.querySelectorAll('#board-a .stop').length === 2")
    assert apart(page) == pytest.approx(2 * wide, rel=0.05)
    assert stops(page) == 2


def test_the_map_is_operated_by_keys(page):
    page.evaluate("addEventListener('pointermove', ({ clientX, clientY }) => (window.pointer = { clientX, clientY }))")
    place(page, (0.3, 0.3), (0.6, 0.6))
    wide, first = apart(page), centre(page)
    page.locator(MAP).focus()
    page.keyboard.press("ArrowRight")
    assert centre(page)[0] < first[0] - 30, "the map moves under the eye"
    page.keyboard.press("+")
    assert apart(page) > 1.3 * wide
    page.keyboard.press("-")
    page.keyboard.press("0")
    assert centre(page) == pytest.approx(first, abs=40)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.dataset.index") == "0", "Tab goes to the stops"
    resting = page.evaluate("window.pointer")  # where stop 1 was placed; the keys moved the map below it
    page.locator("#board-a .stop").nth(1).dispatch_event("pointerover", {"bubbles": True, **resting})
    assert "stop 0" in page.locator("#board-a .tip").inner_text(), "what it is stands beside it"
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowLeft")
    assert page.evaluate("document.activeElement.dataset.index") == "1"
    page.keyboard.press("Delete")
    assert stops(page) == 1


def test_a_map_of_the_globe_has_degrees_kilometres_and_north(page):
    card(page, "Dutch cities")
    page.wait_for_selector("#board-a .stop")
    assert page.locator("#board-a .needle").count() == 1
    assert page.locator("#board-a .furniture text").first.text_content().endswith(" km")
    assert "° N" in page.locator("#board-a .grid text").last.text_content()
    # The bar is as long as it says: stops two hundred kilometres apart are as far on the map, in Mercator's projection.
    told = page.evaluate(
        """() => { const bar = document.querySelector("#board-a .furniture .bar").getBBox();
        return [bar.width, parseFloat(document.querySelector("#board-a .furniture text").textContent)]; }"""
    )
    texts = page.locator("#board-a .stop").evaluate_all(
        "dots => dots.map(d => [d.cx.baseVal.value, d.cy.baseVal.value])"
    )
    link = instance_of(page)
    (lat1, lon1), (lat2, lon2) = link["latlon"][0], link["latlon"][1]
    middle = math.radians((lat1 + lat2) / 2)
    kilometres = 6371 * math.hypot(math.radians(lat2 - lat1), math.radians(lon2 - lon1) * math.cos(middle))
    pixels = math.hypot(texts[0][0] - texts[1][0], texts[0][1] - texts[1][1])
    assert pixels / kilometres == pytest.approx(told[0] / told[1], rel=0.03)
    page.click("#clear")
    assert page.locator("#board-a .needle").count() == 0
    assert page.locator("#board-a .furniture text").first.text_content() == "0.2", "a plain scale for x and y"


def instance_of(page):
    """What is on the page, as its link holds it."""
    page.click("#link")
    text = page.evaluate("location.hash").removeprefix("#")
    return json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))


def test_names_do_not_cover_each_other_nor_the_dots(page):
    card(page, "Dutch cities")
    page.wait_for_selector("#board-a .label")
    for _ in range(2):
        boxes = page.locator("#board-a .label, #board-a .stop").evaluate_all(
            "all => all.map(one => { const b = one.getBoundingClientRect(); const slim = one.matches('.label') ? 3 : 0;"
            " return [b.left + 1, b.top + slim, b.right - 1, b.bottom - slim, one.matches('.label')]; })"
        )
        labels = [box for box in boxes if box[4]]
        assert len(labels) >= 8
        for one in labels:
            for other in boxes:
                apart = one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]
                assert apart or one is other, (one, other)
        page.click("#board-a [aria-label='zoom out']")


def test_dots_are_as_large_as_what_is_asked_for_there(page):
    page.click("#files summary")
    page.fill("#paste", "id,x,y,demand\nhub,0,0,\nsmall,10,0,1\nlarge,20,0,9\n")
    page.click("#read")
    page.wait_for_function("document.querySelectorAll('#board-a .stop').length === 3")
    small, large = (float(page.locator(f'.stop[data-index="{i}"]').get_attribute("r")) for i in (1, 2))
    assert large > 1.3 * small
    assert page.locator("#board-a path.stop.depot").count() == 1, "the depot has a symbol of its own"


# ------------------------------------------------------------------------------------------------ tiles


@pytest.fixture
def tiles():
    """A server of tiles, and the paths that it was asked for."""
    asked = []

    class Tiles(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_response(200)
            self.send_header("content-type", "image/png")
            self.end_headers()
            self.wfile.write(PNG)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Tiles)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}", asked
    server.shutdown()
    server.server_close()


def test_tiles_lie_under_the_stops_where_they_belong(new_server, browser, tiles):
    origin, asked = tiles
    started = new_server("--tiles", origin + "/{z}/{x}/{y}.png", wait=False).alive()
    fields = {"latlon": [[52.37, 4.9], [51.92, 4.48], [53.22, 6.57]], "ids": ["a", "b", "c"]}
    text = base64.urlsafe_b64encode(json.dumps(fields).encode()).decode().rstrip("=")
    page = browser.new_context().new_page()  # with its policy in force
    elsewhere = []
    page.on("request", lambda r: None if r.url.startswith((started.url, origin)) else elsewhere.append(r.url))
    with page.expect_response(lambda answer: answer.url.startswith(origin)):  # the policy lets the tiles through
        answer = page.goto(f"{started.url}/#{text}")
    assert answer.headers["content-security-policy"].endswith(f"img-src 'self' data: blob: {origin}")
    page.wait_for_selector("#board-a image[data-tile]", state="attached")
    lat, lon = fields["latlon"][0]
    depth = int(page.locator("#board-a image").first.get_attribute("data-tile").split("/")[0])
    x = (lon + 180) / 360 * 2**depth
    y = (1 - math.asinh(math.tan(math.radians(lat))) / math.pi) / 2 * 2**depth
    tile = page.locator(f'image[data-tile="{depth}/{int(x)}/{int(y)}"]').bounding_box()
    (px, py), side = centre(page), tile["width"]
    assert (px - tile["x"]) / side == pytest.approx(x % 1, abs=0.02)
    assert (py - tile["y"]) / side == pytest.approx(y % 1, abs=0.02)
    while f"/{depth}/{int(x)}/{int(y)}.png" not in asked:
        page.wait_for_event("response", timeout=10_000)
    assert elsewhere == []
    page.context.close()


def test_without_the_option_there_are_no_tiles(page, server):
    import httpx

    assert httpx.get(f"{server.url}/page/settings.json").json()["tiles"] is None
    assert httpx.get(server.url).headers["content-security-policy"].endswith("img-src 'self' data: blob:")


@pytest.mark.parametrize(
    "template",
    [
        "https://a.org/{z}/{x}.png", "ftp://a.org/{z}/{x}/{y}", "https://a.org/{z}/{x}/{y}/{r}", "/{z}/{x}/{y}",
        "https://a.org/{z}/{x}/{y};script-src *", "https://{x}.org/{z}/{y}", "https://a.org:port/{z}/{x}/{y}",
    ],
)  # fmt: skip
def test_a_bad_template_is_refused_in_one_line(template):
    with pytest.raises(InputError) as error:
        tiles_origin(template)
    assert template in str(error.value)
    assert "\n" not in str(error.value)


def test_serve_refuses_a_bad_template_before_it_starts(new_server):
    started = new_server("--tiles", "https://a.org/{z}", wait=False)
    assert started.process.wait(60) == 2
    told = started.process.stderr.read().strip().splitlines()
    assert told == [line for line in told if "not a template of tiles" in line]
    assert len(told) == 1


# ------------------------------------------------------------------------------------------------ screens


def fits(page):
    wide = page.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
    assert wide[0] <= wide[1], "nothing sticks out sideways"
    clipped = page.evaluate(
        """() => [...document.querySelectorAll("button, select, input, legend, h1, h2")].filter((one) => {
          const box = one.getBoundingClientRect();
          return box.width && !one.closest(".wide, .scroll") && (box.left < -1 || box.right > innerWidth + 1);
        }).map((one) => one.id || one.textContent)"""
    )
    assert clipped == []


def test_nothing_sticks_out_on_any_screen(page):
    page.fill("#seconds", "0.2")
    sizes = [(320, 640), (390, 844), (768, 1024), (1280, 800), (1920, 1080)]

    def everywhere():
        for width, height in sizes:
            page.set_viewport_size({"width": width, "height": height})
            fits(page)

    everywhere()
    page.click("#scores summary")
    everywhere()
    choose(page, "cvrp", 20)
    page.check("#compare")
    solve(page)
    page.wait_for_selector("#board-b figcaption strong")
    everywhere()
    solve_round(page)
    everywhere()


def test_a_wide_screen_is_used(page):
    """The map, what is beside it and the controls take the window; nothing but margins is left."""
    page.set_viewport_size({"width": 1280, "height": 800})
    shown, side = page.locator(MAP).bounding_box(), page.locator("#side").bounding_box()
    assert shown["width"] * shown["height"] > 0.35 * 1280 * 800
    assert side["x"] + side["width"] > 1240
    assert side["x"] > shown["x"] + shown["width"]


@pytest.mark.parametrize(
    "page", [{"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}], indirect=True
)
def test_on_a_phone_map_and_buttons_stay_in_view(page):
    def in_view(selector):
        box = page.locator(selector).bounding_box()
        assert box["y"] >= -1, selector
        assert box["y"] + box["height"] <= 845, selector

    choose(page, "cvrp", 10)
    page.fill("#seconds", "0.3")
    solve(page)
    for action in ("#solve", "#think"):
        page.click(action)
        page.wait_for_selector("#player:not([hidden])" if action == "#think" else "#board-a figcaption strong")
        for to in ("0", "document.body.scrollHeight / 2", "document.body.scrollHeight"):
            page.evaluate(f"window.scrollTo(0, {to})")
            for selector in (MAP, "#solve", "#think"):
                in_view(selector)
    solve_round(page)
    page.evaluate("window.scrollTo(0, document.body.scrollHeight)")
    for selector in ("#round-map svg.map", "#solve"):
        in_view(selector)
