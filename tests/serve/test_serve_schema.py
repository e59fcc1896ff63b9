"""The service against its own description, by schemathesis: no 5xx, no answer that breaks its schema."""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.extra, pytest.mark.slow]


def test_the_service_keeps_to_its_own_description(server):
    schemathesis = pytest.importorskip("schemathesis")
    from hypothesis import HealthCheck, Phase, given, settings
    from schemathesis import checks

    schema = schemathesis.openapi.from_url(f"{server.url}/openapi.json")
    kept = [
        checks.not_a_server_error,
        schemathesis.specs.openapi.checks.status_code_conformance,
        schemathesis.specs.openapi.checks.content_type_conformance,
        schemathesis.specs.openapi.checks.response_schema_conformance,
    ]
    called, made = set(), []
    for result in schema.get_all_operations():
        operation = result.ok()

        @settings(
            max_examples=60, deadline=None, derandomize=True, database=None, phases=[Phase.explicit, Phase.generate],
            suppress_health_check=list(HealthCheck),
        )  # fmt: skip
        @given(case=operation.as_strategy())
        def ask(case):
            if isinstance(case.body, dict) and isinstance(case.body.get("seconds"), int | float):
                case.body["seconds"] = min(case.body["seconds"], 0.05)  # the time allowed is not what is tried here
            if "id" in (case.path_parameters or {}) and made:
                # Or every one would be a job that is not there.
                case.path_parameters["id"] = made.pop() if case.method == "DELETE" else made[-1]
            response = case.call(timeout=60)
            if (case.method, response.status_code) == ("POST", 202):
                made.append(response.json()["id"])
            called.add((case.method, case.path, response.status_code))
            case.validate_response(response, checks=kept)

        ask()
    assert {(method, path) for method, path, _ in called} >= {
        ("POST", "/v1/solve"),
        ("GET", "/v1/problems"),
        ("GET", "/v1/random"),
        ("POST", "/v1/jobs"),
        ("GET", "/v1/jobs/{id}"),
        ("DELETE", "/v1/jobs/{id}"),
    }
    assert {("POST", "/v1/jobs", 202), ("GET", "/v1/jobs/{id}", 200), ("DELETE", "/v1/jobs/{id}", 204)} <= called
    assert not [row for row in called if row[2] >= 500]


def test_the_description_asks_nothing_of_the_network(server):
    httpx = pytest.importorskip("httpx")
    for path in ("/docs", "/page/docs.js", "/", "/page/main.js", "/page/style.css", "/page/board.js"):
        text = httpx.get(server.url + path).text.replace("http://www.w3.org/2000/svg", "")
        assert "http://" not in text, path
        assert "https://" not in text, path
