"""A started server for the tests of the service: the command itself, in a process of its own, on a free port."""

from __future__ import annotations

import re
from contextlib import contextmanager

import pytest
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


@contextmanager
def opened(browser, url, **options):
    """The page at an address; options are those of a browser's context."""
    context = browser.new_context(accept_downloads=True, bypass_csp=True, **options)  # its waiting evaluates text
    page = context.new_page()
    page.set_default_timeout(120_000)  # a first search may wait for a compiler
    complaints, elsewhere = [], []
    # An answer that the page shows or waits on is reported by the browser as a failed load; that is no defect of it.
    shown = re.compile(r"status of (4\d\d|503.*healthz)")

    def hear(message):
        if message.type == "error" and not shown.search(f"{message.text} {message.location['url']}"):
            complaints.append(message.text)

    page.on("console", hear)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda r: None if r.url.startswith((url, "blob:", "data:")) else elsewhere.append(r.url))
    page.goto(url)
    page.wait_for_selector("#gallery .card")
    yield page
    context.close()
    assert complaints == []
    assert elsewhere == []
