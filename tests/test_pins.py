"""The pinned files of a service image agree with what the tests run with."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
LINE = re.compile(r"([a-z0-9.-]+)==(\S+) --hash=sha256:[0-9a-f]{64}")


def plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def versions() -> dict[str, str]:
    lines = [one for one in (ROOT / "requirements/service.txt").read_text().splitlines() if not one.startswith("#")]
    matches = [LINE.fullmatch(one) for one in lines]
    assert all(matches), "name==version and one hash, no address of a server"
    return {plain(match[1]): match[2].partition("+")[0] for match in matches if match}


def test_versions_are_those_of_the_constraints() -> None:
    tested = {}
    for one in (ROOT / "constraints.txt").read_text().splitlines():
        if not one.startswith("#"):
            name, _, version = one.partition("==")
            tested[plain(name)] = version
    pinned = versions()
    assert pinned == {name: tested.get(name) for name in pinned}, "make pins"


def test_all_that_the_service_names_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = project["dependencies"] + project["optional-dependencies"]["serve"]
    names = {plain(re.match(r"[A-Za-z0-9_.-]+", one)[0]) for one in wanted}
    assert names <= versions().keys(), "make pins"
