"""The page in a real Chromium: what people do on it, without a console error and without a request to elsewhere."""

from __future__ import annotations

import base64
import csv
import io
import json
from pathlib import Path

import pytest
from dispatch_cases import CP1252, REFUSED, SOLVED
from on_page import choose, in_sight, place, solve, stops

from routelearn.data import csv_file
from routelearn.errors import InputError
from routelearn.rounds.files import parse_round

pytestmark = [pytest.mark.extra, pytest.mark.slow]

EIGHT = ("tsp", "cvrp", "sdvrp", "op-const", "op-unif", "op-dist", "pctsp", "spctsp")


def test_stops_are_placed_dragged_and_removed_and_a_route_found(page):
    place(page, (0.2, 0.2), (0.8, 0.2), (0.8, 0.8), (0.2, 0.8))
    assert stops(page) == 4
    box = page.locator("#board-a svg.map").bounding_box()
    first = page.locator("#board-a .stop").first
    before = first.get_attribute("cx")
    page.mouse.move(box["x"] + 0.2 * box["width"], box["y"] + 0.2 * box["height"])
    page.mouse.down()
    page.mouse.move(box["x"] + 0.4 * box["width"], box["y"] + 0.3 * box["height"], steps=4)
    page.mouse.up()
    assert first.get_attribute("cx") != before
    assert stops(page) == 4, "a drag is no click"
    first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Delete")
    assert stops(page) == 3
    page.fill("#seconds", "0.3")
    assert "cost" in solve(page)


@pytest.mark.parametrize("problem", EIGHT)
def test_each_problem_is_solved_on_the_page(page, problem):
    choose(page, problem)
    page.fill("#seconds", "0.5")
    caption = solve(page)
    assert ("prize" if problem.startswith("op") else "cost") in caption
    assert page.locator("#board-a polyline.route").count() >= 1
    assert page.locator(".error").count() == 0


@pytest.mark.parametrize("problem", EIGHT)
def test_each_problem_is_solved_with_stops_placed_by_hand(page, problem):
    page.select_option("#problem", problem)
    place(page, (0.5, 0.5), (0.8, 0.2), (0.8, 0.8), (0.2, 0.8), (0.3, 0.1))
    page.fill("#seconds", "0.3")
    if problem != "tsp":  # nothing is invented: what is missing is told
        page.click("#solve")
        page.wait_for_selector(".error")
        assert f"{problem} needs" in page.locator(".error").inner_text()
    page.click("#example")  # which clears the error at once, and completes the stops when the answer is there
    page.wait_for_function("document.getElementById('guide').textContent.includes('Press Solve')")
    solve(page)
    assert page.locator(".error").count() == 0


def test_a_construction_is_stepped_through(page):
    choose(page, "tsp", 10)
    page.click("#think")
    page.wait_for_selector("#player:not([hidden])")
    assert "Step 1 of 10" in page.locator("#step").inner_text()
    assert page.locator("circle.halo").count() >= 1
    page.click("#forward")
    page.click("#forward")
    assert "Step 3 of 10" in page.locator("#step").inner_text()
    assert page.locator(".masked").count() == 2
    assert "masked: visited" in page.locator(".masked").first.get_attribute("aria-label")
    page.locator("#scrub").fill("9")
    assert "Step 10 of 10" in page.locator("#step").inner_text()
    page.click("#play")
    page.wait_for_function("document.getElementById('step').textContent.startsWith('Step 2')")
    page.click("#play")
    assert page.locator("#play").inner_text() == "Play"
    page.select_option("#think-mode", "1")
    page.click("#think")
    page.wait_for_function("document.getElementById('step').textContent.startsWith('Step 1 ')")


def test_a_problem_without_a_model_says_so_when_asked_to_think(page, server):
    """Every problem has a model, so the page hears of one less than there are."""
    import httpx

    problems = httpx.get(f"{server.url}/problems").json()["problems"]
    without = problems[-1]["id"]
    problems[-1]["model"] = None
    page.route("**/problems", lambda route: route.fulfill(json={"problems": problems}))
    page.reload()
    page.wait_for_function(f"document.querySelectorAll('#problem option').length === {len(problems)}")
    choose(page, without)
    assert page.locator("#think").is_disabled()
    told = page.locator("#no-model").inner_text()
    assert f"No trained model ships for {without} yet" in told
    able = [p["id"] for p in problems if p["model"]]
    assert all(name in told for name in able)
    page.fill("#seconds", "0.3")
    solve(page)
    choose(page, able[0])
    assert not page.locator("#no-model").is_visible()
    assert page.locator("#think").is_enabled()


def test_every_problem_with_a_model_can_be_watched(page, server):
    import httpx

    problems = httpx.get(f"{server.url}/problems").json()["problems"]
    for problem in (p for p in problems if p["model"]):
        choose(page, problem["id"], 10)
        page.click("#think")
        page.wait_for_selector("#player:not([hidden])")
        assert "Step 1 of " in page.locator("#step").inner_text()
        assert page.locator("text.share").count() >= 1, "the percentages stand on the map"
        assert page.locator("#facts dt").count() >= 3
        assert page.locator(".bar.taken").count() == 1
        page.locator("#scrub").fill("3")
        assert page.locator("polyline.route.next").count() == 1


def test_a_map_without_stops_says_what_to_do(page):
    assert "Click to place stops" in page.locator("#board-a text.invite").text_content()
    page.click("#solve")
    page.wait_for_selector("[data-errors=stops] .error")
    assert "at least 2 stops" in page.locator(".error").inner_text()
    place(page, (0.3, 0.3))
    assert page.locator("#board-a text.invite").count() == 0


def test_the_keyboard_alone_is_enough(page):
    page.locator("#add").focus()
    for _ in range(4):
        page.keyboard.press("Enter")
    assert stops(page) == 4
    page.locator("#seconds").fill("0.2")
    page.locator("#solve").focus()
    page.keyboard.press("Space")
    page.wait_for_selector("#board-a figcaption strong")
    page.wait_for_function("document.getElementById('stop').disabled")
    first = page.locator("#board-a .stop").first
    first.focus()
    before = float(first.get_attribute("cx"))
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    moved = page.locator("#board-a .stop").first
    assert float(moved.get_attribute("cx")) > before
    assert page.evaluate("document.activeElement.dataset.index") == "0", "the focus stays with the stop"
    page.locator("#think").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("#player:not([hidden])")
    page.locator("#scrub").focus()
    page.keyboard.press("ArrowRight")
    assert "Step 2 of 4" in page.locator("#step").inner_text()


def test_a_csv_with_an_error_in_row_3_is_told(page, tmp_path):
    file = tmp_path / "stops.csv"
    file.write_text("x,y\n0.1,0.2\n0.3,oops\n0.4,0.4\n")
    page.click("#files summary")
    page.set_input_files("#file", file)
    page.wait_for_selector("[data-errors=stops] .error")
    assert "stops.csv, line 3" in page.locator("[data-errors=stops] .error").inner_text()
    page.fill("#paste", "lat,lon\n52.5,13.4\n48.1,11.6\n50.1,8.7\n")
    page.click("#read")
    page.wait_for_function("document.querySelectorAll('#board-a .stop').length === 3")
    assert page.locator(".error").count() == 0
    page.fill("#seconds", "0.2")
    assert "km" in solve(page)


def test_a_limit_that_cannot_be_is_told_at_its_field(page):
    choose(page, "cvrp")
    page.fill("#limit-capacity", "1")
    page.locator("#limit-capacity").blur()
    page.click("#solve")
    page.wait_for_selector(".error")
    assert "more than the capacity 1" in page.locator(".error").inner_text()


def test_what_is_no_number_is_told_and_what_was_there_stays(page):
    choose(page, "cvrp", 5)
    page.click("#details summary")
    page.fill("#limit-capacity", "12,5")
    page.locator("#limit-capacity").blur()
    assert page.locator(".error").count() == 0, "a decimal comma is one"
    for field, name, wrong in (
        ("#limit-capacity", "capacity", "many"),
        ("[aria-label='x of stop 2']", "x of stop 2", ""),
        ("[aria-label='demand of stop 3']", "demand of stop 3", "2 3"),
    ):
        before = page.input_value(field)
        page.fill(field, wrong)
        page.locator(field).blur()
        told = page.locator(".error").inner_text()
        assert told == f"{name} is '{wrong}'; a number is needed, so it stays {before}"
        assert page.input_value(field) == before
    page.fill("#seconds", "")
    page.click("#solve")
    page.wait_for_selector(".error:has-text('seconds is empty')")
    page.fill("#seconds", "0.1")
    with page.expect_request("**/solve/stream") as asked:
        solve(page)
    assert asked.value.post_data_json["capacity"] == 12.5


def test_a_table_of_many_stops_says_how_many_it_does_not_show(page):
    choose(page, "tsp", 310)
    page.click("#details summary")
    assert page.locator("#table tr").last.inner_text() == "and 10 more, which are on the map"


def test_the_list_of_routes_has_their_order_and_is_lit_with_the_map(page):
    choose(page, "cvrp", 15)
    page.fill("#seconds", "0.2")
    solve(page)
    orders = page.locator("#board-a .order").all_text_contents()
    assert sorted(int(name) for order in orders for name in order.split(" → ")[1:-1]) == list(range(1, 16))
    assert {end for order in orders for end in (order.split(" → ")[0], order.split(" → ")[-1])} == {"0"}
    name = in_sight(page, "#board-a circle.stop")
    page.hover(f"#board-a .stop[data-index='{name}']")
    lit = page.locator("#board-a .routes li.lit .order").all_text_contents()
    assert len(lit) == 1
    assert name in lit[0].split(" → ")


def test_a_limit_that_changes_ends_the_search_for_the_old_one(page):
    choose(page, "cvrp", 40)
    page.fill("#seconds", "20")
    page.click("#solve")
    page.wait_for_selector("#board-a polyline.route")
    page.fill("#limit-capacity", "200")
    page.locator("#limit-capacity").blur()
    page.wait_for_function("document.getElementById('stop').disabled")
    assert page.locator("#board-a polyline.route").count() == 0
    assert page.locator("[data-kind=json]").is_disabled()
    page.fill("#seconds", "0.3")
    solve(page)
    with page.expect_download() as info:
        page.click("[data-kind=json]")
    assert json.loads(Path(info.value.path()).read_text())["limits"]["capacity"] == 200


def test_a_limit_that_changes_stops_the_watching_of_the_old_one(page):
    choose(page, "cvrp", 10)
    page.route("**/think", lambda route: (page.wait_for_timeout(500), route.continue_()))
    page.click("#think")
    page.fill("#limit-capacity", "200")
    page.locator("#limit-capacity").blur()
    page.wait_for_timeout(2000)
    assert not page.locator("#player").is_visible()


def test_a_file_of_a_library_keeps_its_metric(page):
    page.click("#files summary")
    rows = "".join(f"{i + 1} {i * 37 % 101} {i * 53 % 89}\n" for i in range(30))
    head = "NAME: t\nTYPE: TSP\nDIMENSION: 30\nEDGE_WEIGHT_TYPE: CEIL_2D\nNODE_COORD_SECTION\n"
    page.fill("#paste", f"{head}{rows}EOF\n")
    page.click("#read")
    page.wait_for_function("document.querySelectorAll('#board-a .stop').length === 30")
    page.fill("#seconds", "0.2")
    with page.expect_request("**/solve/stream") as asked:
        solve(page)
    body = asked.value.post_data_json
    assert body["metric"] == "CEIL_2D"
    assert "matrix" not in body


@pytest.fixture
def prefixed(server):
    """The service as a proxy shows it under a path of its own."""
    import http.server
    import threading

    import httpx

    class Proxy(http.server.BaseHTTPRequestHandler):
        def answer(self):
            if not self.path.startswith("/routes/"):
                self.send_error(404)
                return
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            kind = {"content-type": self.headers.get("content-type") or ""}
            found = httpx.request(self.command, server.url + self.path[7:], content=body, headers=kind, timeout=60)
            self.send_response(found.status_code)
            self.send_header("content-type", found.headers["content-type"])
            self.end_headers()
            self.wfile.write(found.content)

        do_GET = do_POST = answer

        def log_message(self, *_):
            pass

    proxy = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{proxy.server_address[1]}/routes/"
    proxy.shutdown()
    proxy.server_close()


def test_the_page_works_under_a_path_of_a_proxy(prefixed, browser):
    page = browser.new_context(bypass_csp=True).new_page()
    page.set_default_timeout(120_000)  # a first search may wait for a compiler
    page.goto(prefixed)
    page.wait_for_function("document.querySelectorAll('#problem option').length === 8")
    choose(page, "tsp", 9)
    page.fill("#seconds", "0.3")
    assert "cost" in solve(page)
    page.click("#think")
    page.wait_for_selector("#player:not([hidden])")
    page.click("nav a")
    page.wait_for_function("document.querySelectorAll('#paths fieldset').length >= 9")
    box = page.locator("fieldset", has=page.locator("legend", has_text="POST /v1/solve").first).first
    box.locator("button").click()
    page.wait_for_function("[...document.querySelectorAll('pre')].some((one) => one.textContent.startsWith('200'))")
    page.context.close()


def test_two_methods_are_compared_side_by_side(page):
    choose(page, "tsp", 30)
    page.check("#compare")
    page.select_option("#method-b", "solver:nearest-neighbour")
    page.fill("#seconds", "0.5")
    solve(page)
    page.wait_for_selector("#board-b figcaption strong")
    assert page.locator("#board-b polyline.route").count() == 1
    told = page.locator("#board-b figcaption").inner_text()
    assert "than beside" in told or "the same as beside" in told
    assert "nearest-neighbour" in page.locator("#board-b .notes").inner_text()


def test_downloads_hold_the_answer(page):
    page.click("#files summary")
    page.fill("#paste", "id,lat,lon\na,52.5,13.4\nb,48.1,11.6\nc,50.1,8.7\nd,53.5,10.0\n")
    page.click("#read")
    page.wait_for_function("document.querySelectorAll('#board-a .stop').length === 4")
    page.fill("#seconds", "0.2")
    solve(page)
    texts = {}
    for kind in ("json", "geojson", "csv", "svg"):
        with page.expect_download() as info:
            page.click(f"[data-kind={kind}]")
        texts[kind] = Path(info.value.path()).read_text()
    answer = json.loads(texts["json"])
    assert sorted(answer["routes"][0]["stops"]) == ["a", "b", "c", "d"]
    lines = [f for f in json.loads(texts["geojson"])["features"] if f["geometry"]["type"] == "LineString"]
    assert len(lines[0]["geometry"]["coordinates"]) == 5
    assert len(texts["csv"].splitlines()) == 5
    assert texts["svg"].startswith("<svg")
    assert "polyline" in texts["svg"]


@pytest.mark.parametrize("problem", ["cvrp", "sdvrp", "op-unif"])
def test_saved_tables_have_what_the_service_writes(page, server, problem):
    """The same columns and, but for the order of the routes, the same properties."""
    import httpx

    choose(page, problem, 6)
    page.fill("#seconds", "0.2")
    with page.expect_request("**/solve/stream") as asked:
        solve(page)
    with page.expect_download() as info:
        page.click("#downloads [data-kind=csv]")
    fields = asked.value.post_data_json | {"seconds": 0}
    theirs = httpx.post(f"{server.url}/v1/solve", json=fields, headers={"accept": "text/csv"}).text
    ours = list(csv.DictReader(io.StringIO(Path(info.value.path()).read_text())))
    [of_stop] = {len(line) for line in ours}
    reference = list(csv.DictReader(io.StringIO(theirs)))
    assert list(ours[0]) == list(reference[0])
    assert of_stop == len(reference[0])
    known = {line["id"]: line for line in reference}
    for line in ours:
        for name in set(line) - {"route", "position", "id", "amount"}:
            assert float(line[name]) == pytest.approx(float(known[line["id"]][name])), (line, name)
    if "amount" in ours[0]:
        brought = [float(line["amount"]) for line in ours if line["amount"]]
        assert sum(brought) == pytest.approx(sum(fields["demand"]))


def linked(page, server, fields):
    """Go to the link that holds these fields."""
    text = base64.urlsafe_b64encode(json.dumps(fields).encode()).decode().rstrip("=")
    page.goto("about:blank")
    page.goto(f"{server.url}/#{text}")


def test_a_name_that_a_spreadsheet_would_run_is_saved_as_text(page, server):
    names = ["=1+1", "+1+cmd|'a'", "-A", "@x", "+49 30 12", "-4.5", "'=1", "plain"]
    linked(page, server, {"ids": names, "coords": [[i, i * i] for i in range(len(names))]})
    page.wait_for_function(f"document.querySelectorAll('#board-a .stop').length === {len(names)}")
    page.fill("#seconds", "0.1")
    solve(page)
    with page.expect_download() as info:
        page.click("#downloads [data-kind=csv]")
    saved = {line["id"] for line in csv.DictReader(io.StringIO(Path(info.value.path()).read_text()))}
    output = io.StringIO()
    csv_file.writer(output)(names)
    assert saved == set(next(csv.reader(io.StringIO(output.getvalue()))))


def test_a_link_reproduces_the_instance(page, server):
    choose(page, "cvrp", 7)
    page.click("#link")
    link = page.evaluate("location.href")
    capacity = page.input_value("#limit-capacity")
    page.goto("about:blank")
    page.goto(link)
    page.wait_for_function("document.querySelectorAll('#board-a .stop').length === 8")
    assert page.input_value("#problem") == "cvrp"
    assert page.input_value("#limit-capacity") == capacity


@pytest.mark.parametrize("fields", ["no object", {"coords": []}, {"coords": [["x", 1], [2, 3]]}, {"latlon": 3}])
def test_a_damaged_link_is_told(page, server, fields):
    linked(page, server, fields)
    page.wait_for_selector(".error:has-text('the link is damaged')")
    assert stops(page) == 0


@pytest.mark.parametrize(
    "page", [{"viewport": {"width": 390, "height": 800}, "has_touch": True, "color_scheme": "dark"}], indirect=True
)
def test_it_is_usable_on_a_phone_in_the_dark(page):
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), "nothing sticks out sideways"
    box = page.locator("#board-a svg.map").bounding_box()
    for x, y in ((0.2, 0.2), (0.7, 0.3), (0.5, 0.8)):
        page.touchscreen.tap(box["x"] + x * box["width"], box["y"] + y * box["height"])
    assert stops(page) == 3
    page.fill("#seconds", "0.2")
    solve(page)
    page.click("#think")
    page.wait_for_selector("#player:not([hidden])")
    below = page.locator("#player").bounding_box()["y"] - page.locator("#board-a svg.map").bounding_box()["y"]
    assert below < 700, "the player stands under the map, not at the end of the page"
    label = page.locator("#board-a text.label").first
    assert label.evaluate("(text) => text.getBoundingClientRect().height") >= 10, "letters stay legible"


LINES = """all => Math.max(...all.map((one) => {
  const text = document.createRange();
  text.selectNodeContents(one);
  return new Set([...text.getClientRects()].map((box) => box.top)).size;
}))"""


def test_the_interface_is_documented_without_network(page, server):
    page.goto(f"{server.url}/docs")
    page.wait_for_function("document.querySelectorAll('#paths fieldset').length >= 9")
    assert "/solve/stream" in page.locator("#paths").inner_text()
    assert "`" not in page.locator("#paths").inner_text(), "names have a type of their own"
    for width in (390, 1280):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.locator("#about").bounding_box()["x"] >= 8, "a margin"
        assert page.locator("#paths th").evaluate_all(LINES) == 1, "a status stands on one line"


# --------------------------------------------------------------------------------- files as dispatchers have them


def upload(page, folder, text, encoding):
    (folder / "tour.csv").write_bytes(text.encode(encoding))
    if not page.locator("#file").is_visible():
        page.click("#files summary")
    page.set_input_files("#file", folder / "tour.csv")


def test_a_file_with_a_rule_is_a_round_or_refused_on_the_page_in_the_same_words(page, tmp_path):
    for text, encoding, words in REFUSED.values():
        told = words
        try:
            if parse_round(text.encode(encoding), "tour.csv") is not None:
                upload(page, tmp_path, text, encoding)
                page.wait_for_selector("#round:not([hidden])")
                page.click("#round-close")
                continue
        except InputError as error:
            told = str(error)
        upload(page, tmp_path, text, encoding)
        page.wait_for_selector("[data-errors=stops] .error")
        said = page.locator("[data-errors=stops] .error").inner_text()
        assert told in said
        assert said.startswith("tour.csv")
        page.click("#clear")
        page.wait_for_function("!document.querySelector('.error')")


def test_a_file_is_solved_on_the_page_with_its_notes_and_no_capacity_is_invented(page, tmp_path):
    page.fill("#seconds", "0")
    for text, encoding, options, visited, notes in SOLVED.values():
        page.click("#clear")
        upload(page, tmp_path, text, encoding)
        page.wait_for_function(f"document.querySelectorAll('#board-a .stop').length >= {visited}")
        for name, value in options.items():
            assert page.input_value(f"#limit-{name}") == ""
            page.click("#solve")
            page.wait_for_selector(".error")
            assert "needs the vehicle's capacity; give capacity" in page.locator(".error").inner_text()
            page.fill(f"#limit-{name}", str(value))
            page.locator(f"#limit-{name}").blur()
        solve(page)
        shown = page.locator("#board-a .notes").inner_text()
        assert all(note.replace("line 7", "row 5") in shown for note in notes)  # requests have rows
        assert (CP1252 in notes) == (CP1252 in shown)


def test_prizes_alone_are_told_to_be_unclear(page):
    page.click("#files summary")
    page.fill("#paste", "x,y,prize\n0,0,0\n1,2,3\n")
    page.click("#read")
    page.wait_for_selector("[data-errors=stops] .error")
    told = "prizes, but neither a maximum length (op-unif) nor penalties (pctsp); add one, or name the problem"
    assert told in page.locator(".error").inner_text()
    assert stops(page) == 2


@pytest.fixture
def plugged(new_server, browser):
    """A page of a service with the plugin of the examples."""
    plugin = Path(__file__).parents[2] / "examples" / "plugins" / "open_vrp.py"
    started = new_server("--plugin", plugin)
    context = browser.new_context(bypass_csp=True)
    opened = context.new_page()
    opened.set_default_timeout(300_000)  # a first search may wait for a compiler
    complaints = []
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    opened.goto(started.url)
    opened.wait_for_function("document.querySelectorAll('#problem option').length === 9")
    yield opened
    context.close()
    assert complaints == []


def test_a_plugins_problem_is_solved_on_the_page(plugged):
    page = plugged
    choose(page, "open-vrp")
    assert "Open vehicle routing" in page.locator("#problem option:checked").inner_text()
    page.fill("#seconds", "0.5")
    assert "cost" in solve(page)
    page.click("#clear")
    page.click("#files summary")
    page.fill("#paste", "id,x,y,Menge\nhub,0,0,\na,10,0,4\nb,20,0,4\nc,0,10,5\n")
    page.click("#read")
    page.wait_for_function("document.querySelectorAll('#board-a .stop').length === 4")
    page.select_option("#problem", "open-vrp")
    for name, value in (("capacity", 12), ("max_length", 30)):
        page.fill(f"#limit-{name}", "")
        page.locator(f"#limit-{name}").blur()
        page.click("#solve")
        page.wait_for_selector(".error")
        assert page.locator(f"#limit-{name}").get_attribute("aria-invalid") == "true", "told at its field"
        page.fill(f"#limit-{name}", str(value))
        page.locator(f"#limit-{name}").blur()
    assert "cost 30" in solve(page)
    page.click("#details summary")
    page.wait_for_selector("#table th")
    assert page.locator("#table th").all_inner_texts()[:4] == ["id", "x", "y", "demand"]


@pytest.mark.parametrize("early", ["before the script", "before the problems"])
def test_a_file_that_is_dropped_in_the_first_second_is_read(server, browser, early):
    context = browser.new_context(bypass_csp=True)
    opened, complaints, held = context.new_page(), [], []
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    opened.route("**/page/main.js" if early == "before the script" else "**/problems", lambda route: held.append(route))
    opened.goto(server.url, wait_until="commit")
    opened.wait_for_function("document.getElementById('file') !== null")
    while not held:
        opened.wait_for_timeout(20)
    text = b"x,y,demand\n0,0,0\n1,2,3\n3,4,2\n"
    opened.locator("#file").set_input_files({"name": "a.csv", "mimeType": "text/csv", "buffer": text})
    if early == "before the problems":
        opened.evaluate("document.getElementById('add').click()")  # a stop that the file then replaces
    held[0].continue_()
    opened.wait_for_function("document.querySelectorAll('#board-a .stop').length === 3")
    assert opened.locator("#problem").input_value() == "cvrp"
    assert complaints == []
    context.close()
