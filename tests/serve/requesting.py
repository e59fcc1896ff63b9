"""What the tests of the service share: instances, and how they are sent."""

from __future__ import annotations

import random

import pytest

httpx = pytest.importorskip("httpx")

SQUARE = [[0.1, 0.2], [0.9, 0.3], [0.8, 0.9], [0.2, 0.7], [0.5, 0.5]]


def post(server, path, body, **named):
    return httpx.post(server.url + path, json=body, timeout=60, **named)


def many(count, seed=0):
    draw = random.Random(seed)
    return [[draw.random(), draw.random()] for _ in range(count)]
