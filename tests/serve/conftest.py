"""A started server for the tests of the service: the command itself, in a process of its own, on a free port."""

from __future__ import annotations

import pytest
from on_page import opened
from starting import Guarded, Server


@pytest.fixture(scope="session")
def server():
    """Shared by tests that leave it as it was."""
    pytest.importorskip("fastapi")
    pytest.importorskip("uvicorn")
    pytest.importorskip("httpx")
    started = Server("--long-workers", 1, "--constructors", 1)
    yield started.wait()
    started.end()


@pytest.fixture(scope="session")
def guarded(tmp_path_factory):
    """The same with tokens and an access log."""
    for name in ("fastapi", "uvicorn", "httpx"):
        pytest.importorskip(name)
    started = Guarded(tmp_path_factory.mktemp("guarded"))
    yield started.wait()
    started.end()


@pytest.fixture
def new_server():
    """Servers with flags of their own."""
    for name in ("fastapi", "uvicorn", "httpx"):
        pytest.importorskip(name)
    started = []

    def start(*flags, token=None, wait=True):
        started.append(Server("--long-workers", 1, "--constructors", 1, *flags, token=token))
        return started[-1].wait() if wait else started[-1]

    yield start
    for one in started:
        one.end()


@pytest.fixture
def page(server, browser, request):
    """A page that must end without console errors, having asked nobody but the server."""
    with opened(browser, server.url, **getattr(request, "param", {})) as page:
        yield page
