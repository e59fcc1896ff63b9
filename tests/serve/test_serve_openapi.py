"""The description of the interface says all there is to know, and /docs shows all of it."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("fastapi")
from routelearn.serve.app import create_app
from routelearn.serve.guard import OPEN

IDS = {
    "solve", "solve_batch", "solve_stream", "check", "think", "read_stops", "create_job", "get_job", "list_jobs",
    "delete_job", "random_instance", "list_problems", "list_models", "healthz", "livez", "metrics",
}  # fmt: skip


@pytest.fixture(scope="module")
def described():
    return create_app().openapi()


def operations(described):
    return [(path, method, call) for path, methods in described["paths"].items() for method, call in methods.items()]


def test_operations_are_named_as_a_client_would_call_them(described):
    assert {call["operationId"] for *_, call in operations(described)} == IDS


def test_what_needs_a_token_says_so_and_nothing_else_does(described):
    assert described["components"]["securitySchemes"]["bearer"]["scheme"] == "bearer"
    for path, _, call in operations(described):
        assert call.get("security", []) == ([] if path in OPEN else [{"bearer": []}]), path
        assert ("401" in call["responses"]) == (path not in OPEN)


def test_every_answer_has_a_schema_and_every_body_examples_of_one_line(described):
    for path, _, call in operations(described):
        assert call["description"]
        for status, answer in call["responses"].items():
            assert status == "204" or answer["content"], (path, status)
            for one in answer.get("content", {}).values():
                assert one.get("schema") or one.get("itemSchema"), (path, status)
        if "requestBody" in call:
            examples = call["requestBody"]["content"]["application/json"]["examples"]
            assert examples
            assert all("\n" not in json.dumps(one["value"]) for one in examples.values())


def test_examples_are_what_the_bodies_take(described):
    from pydantic import TypeAdapter

    from routelearn.serve import schemas

    bodies = schemas.bodies()
    for path, examples in schemas.EXAMPLES.items():
        adapter = TypeAdapter(bodies.taken(path))
        for value in examples.values():
            adapter.validate_python(value)


def test_events_of_a_stream_are_typed(described):
    content = described["paths"]["/v1/solve/stream"]["post"]["responses"]["200"]["content"]["text/event-stream"]
    schemas = described["components"]["schemas"]
    found = {}
    for one in content["itemSchema"]["oneOf"]:
        event = schemas[one["$ref"].rsplit("/", 1)[1]]["properties"]
        found[event["event"]["const"]] = json.dumps(event["data"])
    assert set(found) == {"better", "done", "failed"}
    assert "schemas/Answer" in found["better"]
    assert "schemas/RoundAnswer" in found["done"]
    assert "schemas/Failure" in found["failed"]


def test_every_reference_leads_somewhere(described):
    text = json.dumps(described)
    for name in {part.partition('"')[0] for part in text.split("#/components/schemas/")[1:]}:
        assert name in described["components"]["schemas"], name


@pytest.mark.extra
@pytest.mark.slow
def test_every_route_field_and_answer_is_visible_on_the_page_of_the_interface(server, browser, described):
    page, failed = browser.new_page(bypass_csp=True), []
    page.on("pageerror", lambda error: failed.append(str(error)))
    page.goto(f"{server.url}/docs")
    page.wait_for_selector("#schema-Visit")
    text = page.locator("main").inner_text()
    for path, method, call in operations(described):
        assert f"{method.upper()} {path}" in text
        assert f"Operation {call['operationId']}" in text
    for name, schema in described["components"]["schemas"].items():
        section = page.locator(f"#schema-{name}")
        assert section.is_visible(), name
        shown = " ".join(section.inner_text().split())
        for field, told in schema.get("properties", {}).items():
            assert field in shown, (name, field)
            words = told.get("description", "").replace("`", "")  # which only tells names from words
            assert " ".join(words.split()) in shown, (name, field)
    solve = page.locator("fieldset").first
    solve.get_by_role("button", name="Try").click()
    page.wait_for_function("document.querySelector('fieldset pre').textContent.startsWith('200')", timeout=120_000)
    assert failed == []
    page.close()
