"""What the page is told before anything else: examples to begin with, and where background tiles come from."""

from __future__ import annotations

import base64
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from routelearn.data.convert import filled_by
from routelearn.data.examples import examples_folder
from routelearn.data.guess import guess
from routelearn.errors import InputError
from routelearn.serve.catalogue import served

PLACEHOLDERS = ("{x}", "{y}", "{z}")
ALLOWED = re.compile(r"https?://[A-Za-z0-9.:\[\]-]+/[A-Za-z0-9._~/?=&%+@:-]*")  # it goes into a header, too
# Title, words, the file, what the file does not say (the limits of an instance; of a round, options of /stops).
EXAMPLES: tuple[tuple[str, str, str, dict[str, Any], dict[str, str]], ...] = (
    ("A bakery's round", "30 stops with time windows, two vans and a cargo bike", "bakery/stops.csv", {},
     {"vehicles_file": "bakery/vans.csv", "speed": "25"}),
    ("Deliveries", "One warehouse, vehicles that hold 12", "deliveries.csv", {"capacity": 12}, {}),
    ("A day in Paris", "The best sights within 15 km on foot", "tourist_day.csv", {"max_length": 15}, {}),
    ("Dutch cities", "The shortest way round, on the globe", "cities.csv", {}, {}),
)  # fmt: skip


def settings(tiles: str | None) -> dict[str, Any]:
    """What the page asks for first: the template of tiles or None, and the examples with the text of their files."""
    folder = examples_folder()
    known = {one.name for problem in served().values() for one in filled_by(problem).values()}
    examples = []
    for title, words, name, limits, options in EXAMPLES:
        given: dict[str, Any] = dict(options)
        if "vehicles_file" in given:
            file = folder / given["vehicles_file"]
            given["vehicles_file"] = {"name": file.name, "base64": base64.b64encode(file.read_bytes()).decode()}
        text = (folder / name).read_text(encoding="utf-8")
        if limits:  # they are part of what tells the problem
            given["problem"] = guess(name, known & {*text.partition("\n")[0].split(","), *limits})
        examples.append(
            {"title": title, "words": words, "name": Path(name).name, "text": text, "limits": limits, "given": given}
        )
    return {"tiles": tiles, "examples": examples}


def tiles_origin(template: str) -> str:
    """The origin of a template of tiles, for the content security policy; InputError if it is not one."""
    counts = [template.count(one) for one in PLACEHOLDERS]
    bare = re.sub("|".join(map(re.escape, PLACEHOLDERS)), "", template)
    try:
        parts = urlsplit(template)
        origin = f"{parts.scheme}://{parts.netloc}" if parts.hostname and parts.port != 0 else ""
    except ValueError:  # of a port that is no number
        origin = ""
    if counts != [1, 1, 1] or not ALLOWED.fullmatch(bare) or not origin or "{" in origin:
        example = "https://tile.example.org/{z}/{x}/{y}.png"
        raise InputError(f"--tiles {template}: not a template of tiles; give an address like {example}")
    return origin
