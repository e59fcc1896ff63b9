"""JSON and GeoJSON of stops, in every documented shape, and what is wrong with the others."""

import json
from fractions import Fraction

import numpy as np
import pytest

from routelearn.data.json_file import parse
from routelearn.errors import InputError


def test_an_object_with_everything():
    stops = parse(
        '{"name": "round", "problem": "sdvrp", "capacity": 2.5, "depot": {"x": 0, "y": 0.25},'
        ' "stops": [{"id": 7, "x": 1, "y": 2, "demand": 0.1}, {"id": "b", "x": 3, "y": 4, "demand": 3}]}',
        "a.json",
    )
    assert stops.ids == ("depot", 7, "b")
    assert stops.depot == 0
    assert stops.columns["demand"] == (0, Fraction(1, 10), 3)
    assert (stops.limits["capacity"], stops.problem) == (Fraction(5, 2), "sdvrp")
    np.testing.assert_array_equal(stops.xy, [[0, 0.25], [1, 2], [3, 4]])


def test_bare_lists_of_objects_and_of_pairs():
    objects = parse('[{"lat": 1, "lng": 2, "Prize": 5}, {"lat": 3, "lng": 4, "Prize": 0}]', "a")
    assert objects.columns["prize"].tolist() == [5, 0]
    assert parse("[[1, 2], [3.5, 4]]", "a").xy.tolist() == [[1, 2], [3.5, 4]]


def test_the_depot_may_be_the_id_of_a_stop_or_a_marked_one():
    stops = '[{"id": "a", "x": 1, "y": 2}, {"id": "b", "x": 1, "y": 2}]'
    assert parse('{"depot": "b", "stops": ' + stops + "}", "a.json").depot == 1
    assert parse('[{"x": 1, "y": 2}, {"x": 1, "y": 2, "depot": true}]', "a.json").depot == 1


PLACES = '[{"name": "Anna", "x": 3, "y": 4}, {"name": "Bob", "x": 1, "y": 7}]'


@pytest.mark.parametrize(
    ("depot", "stops", "ids"),
    [
        ('{"x": 0, "y": 0}', PLACES, ("depot", "Anna", "Bob")),
        ('{"x": 0, "y": 0, "name": "hub"}', PLACES, ("hub", "Anna", "Bob")),
        ('{"x": 0, "y": 0, "id": 9}', PLACES, (9, "Anna", "Bob")),
        ('{"x": 0, "y": 0}', "[[3, 4], [1, 7]]", ("depot", 1, 2)),
        ("[0, 0]", '[{"x": 3, "y": 4}, {"x": 1, "y": 7, "name": "Bob"}]', ("depot", 1, "Bob")),
        ('{"x": 0, "y": 0}', PLACES.replace("Bob", "Anna"), ("depot", 1, 2)),
    ],
)
def test_a_depot_beside_the_stops_leaves_their_names_and_numbers(depot, stops, ids):
    read = parse(f'{{"depot": {depot}, "stops": {stops}}}', "a.json")
    assert (read.ids, read.depot) == (ids, 0)
    assert read.xy.tolist() == [[0, 0], [3, 4], [1, 7]]


def test_the_depot_may_be_called_by_name_or_number():
    for depot in ('"Bob"', '" Bob "', "2"):
        read = parse(f'{{"depot": {depot}, "stops": {PLACES}}}', "a.json")
        assert (read.ids, read.depot) == (("Anna", "Bob"), 1)
    with_ids = PLACES.replace('{"name"', '{"id": 7, "name"', 1).replace('{"name"', '{"id": 8, "name"', 1)
    for depot in ('"Bob"', "8", '"8"'):
        read = parse(f'{{"depot": {depot}, "stops": {with_ids}}}', "a.json")
        assert (read.ids, read.depot) == ((7, 8), 1)


def test_a_matrix_from_elsewhere_takes_the_place_of_coordinates():
    elsewhere = np.array([[0.0, 1], [2, 0]])
    for text in ('{"stops": [{"id": "a"}, {"id": "b", "demand": 3}], "capacity": 4}', '{"capacity": 4, "depot": 1}'):
        stops = parse(text, "a.json", elsewhere)
        assert (stops.matrix is elsewhere, stops.xy, stops.limits["capacity"]) == (True, None, 4)
    own = parse('{"stops": [{"id": "a"}, {"id": "b"}], "matrix": [[0, 5], [5, 0]]}', "a.json", elsewhere)
    assert own.matrix is elsewhere


def test_a_matrix_with_and_without_stops():
    alone = parse('{"matrix": [[9, 1.5], [2, 9]], "depot": 2}', "a.json")
    assert alone.matrix.tolist() == [[0, 1.5], [2, 0]]  # a diagonal is never travelled
    assert (alone.ids, alone.depot, alone.metric) == ((1, 2), 1, "matrix")
    named = parse('{"matrix": [[0, 1], [2, 0]], "stops": [{"id": "a", "demand": 0}, {"id": "b", "demand": 2}]}', "a")
    assert (named.ids, named.columns["demand"], named.xy) == (("a", "b"), (0, 2), None)


BROKEN = {
    "cut": ('{"stops": [\n{"x": 1', "line 2: not JSON"),
    "number": ("3", "holds 3; an object"),
    "nothing": ("{}", "neither 'stops' nor 'matrix'"),
    "no stops": ("[]", "no stops"),
    "unknown key": ('{"stop": [[1, 2]]}', "'stop' is not known; the keys are stops"),
    "stops no list": ('{"stops": 4}', "'stops' is 4"),
    "stop no object": ('{"stops": [[1, 2], "b"]}', "stop 2: 'b'"),
    "text": ('[{"x": "one", "y": 2}]', "stop 1: x is 'one', not a number"),
    "boolean": ('[{"x": true, "y": 2}]', "stop 1: x is True, not a number"),
    "nested": ('[{"x": [1], "y": 2}]', "stop 1: x is a list, not a number"),
    "nan": ('[{"x": NaN, "y": 2}]', "NaN is not a finite number"),
    "huge": ('[{"x": 1e999, "y": 2}]', "stop 1: x is larger"),
    "huge whole": ('[{"x": 1%s, "y": 2}]' % ("0" * 400), "stop 1: x is larger"),
    "endless whole": ('[{"x": 1%s, "y": 2}]' % ("0" * 5000), "a number is too long"),
    "no y": ('[{"x": 1}]', "a column x but no y"),
    "slip": ('[{"x": 1, "y": 2, "penalti": 3}]', "did you mean 'penalty'"),
    "same id": ('[{"id": 1, "x": 1, "y": 2}, {"id": "1", "x": 1, "y": 2}]', "stop 2: the id '1' is already used"),
    "odd id": ('[{"id": [1], "x": 1, "y": 2}]', "the id is a list"),
    "no places": ('[{"id": "a"}]', "no coordinates; name them x and y, or lat and lon, or .*--matrix"),
    "depot of many": (
        '{"depot": "a", "stops": [{"name": "a", "x": 1, "y": 2}, {"name": "a", "x": 3, "y": 4}]}',
        "the depot 'a' is not the id or name of one",
    ),
    "time window": ('[{"x": 1, "y": 2}, {"x": 1, "y": 2, "time_window": [1, 2]}]', "stop 2: .* time windows are not"),
    "depot's rule": ('{"depot": {"x": 1, "y": 2, "vehicles": 3}, "stops": [[3, 4]]}', "depot: 'vehicles' is not supp"),
    "two spellings": ('[{"lat": 1, "latitude": 50, "lon": 3}]', "stop 1: 'lat' is given twice, under two spellings"),
    "half a character": ('[{"id": "a\\ud800", "x": 1, "y": 2}]', r"\\ud800 is half a character"),
    "half a key": ('[{"\\uDFFF": 1, "x": 1, "y": 2}]', r"\\udfff is half a character"),
    "foreign depot": ('{"depot": "z", "stops": [{"id": "a", "x": 1, "y": 2}]}', "the depot 'z' is not the id"),
    "odd depot": ('{"depot": true, "stops": [[1, 2]]}', "'depot' is True"),
    "odd problem": ('{"problem": 3, "stops": [[1, 2]]}', "'problem' is 3"),
    "odd capacity": ('{"capacity": "big", "stops": [[1, 2]]}', "capacity is 'big'"),
    "ragged matrix": ('{"matrix": [[0, 1], [1]]}', "row 2 of the matrix has 1 numbers"),
    "no matrix": ('{"matrix": 3}', "a list of lists"),
    "negative": ('{"matrix": [[0, -1], [1, 0]]}', "row 1, column 2 of the matrix is negative"),
    "other size": ('{"matrix": [[0, 1], [1, 0]], "stops": [{"x": 1, "y": 2}]}', "1 stops, but the matrix has 2"),
    "deep": ("[" * 100_000, "nested too deep"),
    "lines": (json.dumps({"type": "FeatureCollection", "features": [{"geometry": {"type": "LineString"}}]}), "Point"),
    "no geometry": (json.dumps({"type": "FeatureCollection", "features": [4]}), "feature 1: no geometry"),
    "no features": (json.dumps({"type": "FeatureCollection"}), "a list of features"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_mistake_is_named_in_one_line(case):
    text, message = BROKEN[case]
    with pytest.raises(InputError, match=message) as caught:
        parse(text, "a.json")
    assert str(caught.value).startswith("a.json")
    assert "\n" not in str(caught.value)


def feature(lon, lat, **properties):
    return {"type": "Feature", "geometry": {"type": "Point", "coordinates": [lon, lat]}, "properties": properties}


def test_geojson_points_with_properties():
    collection = {
        "type": "FeatureCollection",
        "capacity": 9,
        "features": [feature(4.3, 52.1, id="hub", depot=True, name="x"), feature(4.4, 52.2, id="b", demand=2)],
    }
    stops = parse(json.dumps(collection), "a.geojson")
    np.testing.assert_array_equal(stops.latlon, [[52.1, 4.3], [52.2, 4.4]])
    assert (stops.ids, stops.depot, stops.columns["demand"], stops.limits["capacity"]) == (("hub", "b"), 0, (0, 2), 9)


@pytest.mark.parametrize("depot", ["b", 12])
def test_geojson_may_name_its_depot_and_carry_a_matrix(depot):
    a, b = feature(1, 2, name="a"), feature(3, 4, name="b")
    a["id"], b["id"] = 11, 12
    collection = {"type": "FeatureCollection", "depot": depot, "matrix": [[0, 1], [2, 0]], "features": [a, b]}
    stops = parse(json.dumps(collection), "a.geojson")
    assert (stops.depot, stops.ids, stops.metric) == (1, (11, 12), "matrix")


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("depot", "x", "the depot 'x' is not the id or name of one"),
        ("depot", [4.3, 52.1], "give its place as a feature"),
        ("vehicles", 3, "'vehicles' is not supported"),
        ("time_windows", [], "time windows are not supported"),
    ],
)
def test_geojson_with_a_rule_beside_the_features_is_refused(key, value, message):
    collection = {"type": "FeatureCollection", "name": "round", key: value, "features": [feature(4.3, 52.1)]}
    with pytest.raises(InputError, match=message):
        parse(json.dumps(collection), "a.geojson")


def test_a_feature_without_a_name_does_not_cost_the_others_theirs():
    a, b = feature(1, 2, name="A"), feature(3, 4)
    b["properties"] = None
    assert parse(json.dumps({"type": "FeatureCollection", "features": [a, b]}), "a.geojson").ids == ("A", 2)


def test_geojson_ids_of_features_heights_and_missing_properties():
    a, b = feature(1, 2), feature(3, 4)
    a["id"], b["id"], b["properties"] = 11, 12, None
    b["geometry"]["coordinates"].append(80.5)
    stops = parse(json.dumps({"type": "FeatureCollection", "features": [a, b]}), "a.geojson")
    assert stops.ids == (11, 12)
    assert stops.latlon.tolist() == [[2, 1], [4, 3]]
