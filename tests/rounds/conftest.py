"""What tests of rounds share: a search that inserts, where the interface and not the search is tested."""

from __future__ import annotations

import pytest
from answer_cases import insertion

from routelearn.rounds import reasons, search


@pytest.fixture
def inserting(monkeypatch):
    """Searches are insertions; gives what each was asked for."""
    asked = []

    def search_round(round_, **arguments):
        asked.append(arguments)
        found = insertion(round_)
        if arguments.get("watch") is not None:
            arguments["watch"](0.01, 20.0)
            arguments["watch"](0.02, 19.0)
        return found

    monkeypatch.setattr(search, "search_round", search_round)
    monkeypatch.setattr(search, "load_kernels", lambda: None)
    return asked


@pytest.fixture
def plain_reasons(monkeypatch):
    """Reasons that can be told from others."""

    def explain(round_, plan, stop, **how):
        return reasons.Reason(f"has no van ({round_.stops[stop].id})", "", round_)

    monkeypatch.setattr(reasons, "explain", explain)
