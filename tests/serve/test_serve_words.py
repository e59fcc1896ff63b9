"""A request of the wrong shape is told in the words of the command line: where, what was given, what would be right."""

from __future__ import annotations

import pytest

pydantic = pytest.importorskip("pydantic")
schemas = pytest.importorskip("routelearn.serve.schemas")

from routelearn.serve.words import refusal_of  # noqa: E402

BODIES = schemas.bodies()
PLACES = [[0.1, 0.2], [0.3, 0.3]]


def told(model, body):
    with pytest.raises(pydantic.ValidationError) as error:
        model.model_validate(body)
    return refusal_of(error.value.errors(), list(model.model_fields), list(BODIES.instance.model_fields))


@pytest.mark.parametrize(
    ("body", "field", "words"),
    [
        ({"coords": [["1", 2]]}, "coords.0.0", "the request, row 0: coords is '1', not a number"),
        ({"coords": [[1, None]]}, "coords.0.1", "the request, row 0: coords is None, not a number"),
        ({"coords": 5}, "coords", "the request: coords is 5, not a list"),
        ({"coords": [[1, 2], 5]}, "coords.1", "the request, row 1: coords is 5; 2 numbers are needed"),
        ({"coords": [[1, 2, 3]]}, "coords.0", "the request, row 0: coords has 3 numbers; 2 are needed"),
        ({"matrix": [[0, 1], 3]}, "matrix.1", "the request, row 1: matrix is 3, not a list"),
        ({"demand": [0, "two"]}, "demand.1", "the request, row 1: demand is 'two', not a number"),
        ({"capacity": True}, "capacity", "the request: capacity is True, not a number"),
        ({"seconds": None}, "seconds", "the request: seconds is None, not a number"),
        ({"seconds": -1}, "seconds", "the request: seconds is -1; 0 or more is needed"),
        ({"seed": 1.5}, "seed", "the request: seed is 1.5, not a whole number"),
        ({"seed": 2**40}, "seed", "the request: seed is 1099511627776; at most 2147483647 is possible"),
        ({"policy": 1}, "policy", "the request: policy is 1, not true or false"),
        ({"depot": "a"}, "depot", "the request: depot is 'a', not a whole number"),
        ({"problem": 3}, "problem", "the request: problem is 3, not text"),
        ({"problem": "x" * 50}, "problem", "the request: problem has 50 characters; at most 40 are allowed"),
        ({"ids": [1.5]}, "ids.0", "the request, row 0: the id is 1.5; text or a whole number is needed"),
        ({"ids": ["a", "b" * 300]}, "ids.1", "the request, row 1: the id has 300 characters; at most 200 are allowed"),
    ],
)
def test_a_wrong_type_is_told_with_place_value_and_what_is_needed(body, field, words):
    refusal = told(BODIES.solve, {"coords": PLACES} | body)
    assert (refusal.status, refusal.field, refusal.error) == (422, field, words)


def test_an_unknown_key_is_told_with_those_that_are_known():
    refusal = told(BODIES.solve, {"coords": PLACES, "second": 1})
    assert refusal.field == "second"
    assert refusal.error.startswith("the request: 'second' is not known; the keys are ")
    assert "seconds" in refusal.error
    inner = told(BODIES.batch, {"instances": [{"coords": PLACES}, {"coords": PLACES, "seconds": 1}]})
    assert inner.field == "instances.1.seconds"
    assert inner.error.startswith("instance 1: 'seconds' is not known; the keys are coords, latlon, matrix")
    assert "decode" not in inner.error, "that is a key of the batch, not of an instance"


def test_a_round_where_none_is_taken_is_told_as_one():
    one = {"depot": {"x": 0, "y": 0}, "stops": [{"x": 1, "y": 2}], "speed": 3}
    for model, body, where in (
        (BODIES.batch, {"instances": [one]}, "instances.0.stops"),
        (BODIES.think, one, "stops"),
    ):
        refusal = told(model, body)
        assert refusal.field == where
        assert refusal.error.endswith(
            "'stops' makes it a round, which is not possible here; /solve, /solve/stream and /jobs take one"
        )


def test_instances_are_counted_as_the_answers_are():
    assert told(BODIES.batch, {"instances": []}).error == "the request: instances is empty; at least 1 is needed"
    assert told(BODIES.batch, {}).error == "the request: instances is missing; it is needed"
    wrong = told(BODIES.batch, {"instances": [{"coords": PLACES}, {"coords": [[1, "x"]]}]})
    assert wrong.error == "instance 1, row 0: coords is 'x', not a number"
    no_object = told(BODIES.batch, {"instances": [3]})
    assert no_object.error.startswith("instance 0: holds 3; an object is needed, with the keys coords")


@pytest.mark.parametrize("body", [[], "x", None, 7])
def test_what_is_no_object_is_told_so(body):
    assert "an object is needed, with the keys coords" in told(BODIES.solve, body).error


def test_the_words_are_those_of_a_file_with_the_same_mistake():
    from routelearn.data import json_file
    from routelearn.errors import InputError

    with pytest.raises(InputError) as error:
        json_file.parse('{"stops": [{"x": 1, "y": "two"}]}', "stops.json")
    ending = " is 'two', not a number"
    assert str(error.value).endswith(ending)
    assert told(BODIES.solve, {"coords": [[1, "two"]]}).error.endswith(ending)


@pytest.mark.parametrize("body", [{"a\nb": 1}, {"a\ud800": 1}, {"problem": "\udfff"}, {"probl\u00e9m": 1}])
def test_no_letter_breaks_the_line(body):
    refusal = told(BODIES.solve, {"coords": PLACES} | body)
    for text in (refusal.error, refusal.field or ""):
        assert "\n" not in text
        text.encode("ascii")
