"""The requests that the documentation shows are answered."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = ("README.md", "docs/start/first_service.md", "docs/guides/serve.md")
# The JSON of a `curl` to a path, in quotes, over as many lines as it takes.
CURL = re.compile(r"^curl -s localhost:8000(/\S+)[^']*'content-type: application/json'[^']*-d '([^']*)'", re.MULTILINE)
REQUESTS = [(page, *found) for page in PAGES for found in CURL.findall((ROOT / page).read_text(encoding="utf-8"))]


def test_there_are_requests():
    assert {page for page, _, _ in REQUESTS} >= set(PAGES[1:])


@pytest.mark.extra
@pytest.mark.parametrize(("page", "path", "body"), REQUESTS)
def test_a_request_of_the_documentation_is_answered(server, page, path, body):
    httpx = pytest.importorskip("httpx")
    answer = httpx.post(f"{server.url}{path}", json=json.loads(body), timeout=60)
    assert answer.status_code == (202 if path.endswith("/jobs") else 200), f"{page}: {answer.text}"
