"""A plugin's own attributes: read from every format, scaled, guessed by, searched with, and written back."""

import csv
import io
import itertools
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import routelearn
from routelearn import plugins
from routelearn.data import npz, read_stops, to_instance
from routelearn.errors import InputError
from routelearn.problems import PROBLEMS, Attribute, base, get
from routelearn.problems.attributes import DEMAND
from routelearn.problems.cvrp import CVRP
from routelearn.solving import solve_stops

PLUGIN = Path(__file__).parent / "patience.py"
CSV = (
    "Name;X;Y;Geduld;Sprechzeit_von;Sprechzeit_bis;Kisten\nHof;0;0;;;;\nA;30;0;100;08:00;09:30;2,5\n"
    "B;60;0;10;8;9;1\nC;0;40;40,5;0;0;\n"
)


@pytest.fixture(autouse=True)
def loaded():
    plugins.load(PLUGIN)
    return get("impatient")


def read(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    [stops] = read_stops(tmp_path / name, problem="impatient")
    return stops


def test_it_keeps_the_contract(loaded):
    routelearn.check_problem(loaded)


def test_columns_of_a_table_in_the_users_language(tmp_path):
    stops = read(tmp_path, "a.csv", CSV)
    assert stops.columns["patience"].tolist() == [0, 100, 10, 40.5]
    assert stops.columns["hours"].tolist() == [[0, 0], [480, 570], [8, 9], [0, 0]]
    assert stops.columns["crates"] == (0, 2.5, 1, 1)
    assert stops.unused == ()
    converted = to_instance(stops, impatience_cost=2)  # nobody else claims so much
    assert (converted.problem.name, converted.notes) == ("impatient", ())
    assert converted.referee.crates.tolist() == [[0, 5, 2, 2]]  # in exact proportion


def test_how_long_a_kilometre_takes_is_told_where_places_are_on_the_globe(tmp_path):
    stops = read(tmp_path, "a.csv", "lat,lon,patience\n52,13,\n52,13.1,9\n")
    told = ("a kilometre takes one unit of time (patience, hours): with minutes, that is 60 km/h",)
    assert to_instance(stops, "impatient", impatience_cost=2).notes == told


def test_a_column_that_is_missing_is_told_with_those_that_nobody_reads(tmp_path):
    stops = read(tmp_path, "a.csv", "x,y,endurance\n0,0,\n3,4,9\n")
    with pytest.raises(InputError, match=r"needs a patience for every stop; .*\(not used: endurance\)"):
        to_instance(stops, "impatient", impatience_cost=2)


def test_the_policy_sees_times_in_the_scale_of_the_places(tmp_path):
    converted = to_instance(read(tmp_path, "a.csv", CSV), impatience_cost=2)
    assert converted.scale.length == 60
    torch.testing.assert_close(converted.policy.patience, converted.referee.patience.float() / 60)
    torch.testing.assert_close(converted.policy.hours, converted.referee.hours.float() / 60)
    assert float(converted.policy.impatience_cost) == float(converted.referee.impatience_cost) == 2  # no unit


FORMATS = {
    "a.json": json.dumps(
        {"Wartekosten": 2, "stops": [{"x": 0, "y": 0}, {"x": 30, "y": 0, "Geduld": 9, "hours": [8, 9.5]}]}
    ),
    "a.geojson": json.dumps(
        {
            "type": "FeatureCollection",
            "impatience_cost": 2,
            "features": [
                {"type": "Feature", "geometry": {"type": "Point", "coordinates": [10, place]}, "properties": values}
                for place, values in ((50, {}), (51, {"patience": 9, "hours_1": 8, "hours_2": 9.5}))
            ],
        }
    ),
    "a.csv": "x,y,patience,hours\n0,0,,\n30,0,9,8-9.5\n",
}


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_of_stops_reads_them(name, tmp_path):
    stops = read(tmp_path, name, FORMATS[name])
    options = {} if stops.limits else {"impatience_cost": 2}
    x = to_instance(stops, "impatient", **options).referee
    assert (x.patience[0].tolist(), x.hours[0].tolist()) == ([0, 9], [[0, 0], [8, 9.5]])
    assert float(x.impatience_cost) == 2


def test_sections_of_a_library_file(tmp_path):
    head = "NAME: t\nTYPE: TSP\nDIMENSION: 2\nEDGE_WEIGHT_TYPE: EUC_2D\nNODE_COORD_SECTION\n1 0 0\n2 3 4\n"
    stops = read(tmp_path, "a.tsp", f"{head}HOURS_SECTION\n1 0 0\n2 8 9\nEOF\n")
    assert stops.columns["hours"].tolist() == [[0, 0], [8, 9]]


def test_an_attribute_above_0_leaves_the_depot_alone_that_has_none(loaded, tmp_path, monkeypatch):
    above = [one._replace(sign="positive") if one.name == "crates" else one for one in loaded.attributes]
    monkeypatch.setattr(type(loaded), "attributes", tuple(above))
    text = "x,y,patience,hours,crates\n0,0,,,\n30,0,9,8-9.5,{}\n"
    stops = read(tmp_path, "a.csv", text.format(2))
    assert to_instance(stops, "impatient", impatience_cost=2).referee.crates.tolist() == [[0, 2]]
    with pytest.raises(InputError, match=r"a.csv, line 3: the crates is 0; it must be above 0"):
        to_instance(read(tmp_path, "a.csv", text.format(0)), "impatient", impatience_cost=2)


def test_an_npz_is_written_and_read_and_solved(loaded, tmp_path):
    x = routelearn.data.generate(loaded, 5, count=2)
    npz.save(tmp_path / "x.npz", "impatient", x)
    _, again = npz.load(tmp_path / "x.npz")
    assert all(a is b is None or torch.equal(a, b) for a, b in zip(x, again, strict=True))
    first, _ = read_stops(tmp_path / "x.npz")
    np.testing.assert_allclose(first.columns["hours"], x.hours[0])
    solution = solve_stops(first, seconds=0.1)
    assert solution.limits == {"impatience_cost": 3}


def test_python_takes_them_as_arguments():
    places = [(0, 0), (3, 4), (6, 0), (3, -4)]
    patience = [0, 1, 30, 2]
    solution = routelearn.solve(places, problem="impatient", patience=patience, impatience_cost=2, seconds=0.2)
    assert solution.limits == {"impatience_cost": 2}
    assert solution.values["patience"] == {"0": 0, "1": 1, "2": 30, "3": 2}
    two = routelearn.solve_many([places] * 2, patience=[patience] * 2, impatience_cost=[2, 0], seconds=0.2)
    assert [one.problem for one in two] == ["impatient"] * 2
    assert two[0].cost > two[1].cost
    with pytest.raises(InputError, match="unknown argument 'patiens'; no problem declares such an attribute"):
        routelearn.solve(places, patiens=patience)
    with pytest.raises(InputError, match="row 2: no patience"):
        routelearn.solve(places, patience=[0, 1, None, 2], impatience_cost=1)


def run(*arguments, folder):
    line = [sys.executable, "-m", "routelearn", *map(str, arguments), "--plugin", str(PLUGIN)]
    return subprocess.run(line, cwd=folder, capture_output=True, text=True)


def test_the_command_line_has_its_options_and_writes_them_back(tmp_path):
    (tmp_path / "tour.csv").write_text(CSV)
    shown = run("solve", "--help", folder=tmp_path).stdout
    assert "--impatience-cost" in shown
    assert "--capacity" in shown
    options = ("--impatience-cost", 2, "--seconds", 0.3)
    for name in ("s.json", "s.csv"):
        done = run("solve", "tour.csv", *options, "--out", name, folder=tmp_path)
        assert done.returncode == 0, done.stderr
    document = json.loads((tmp_path / "s.json").read_text())
    converted = to_instance(read_stops(tmp_path / "tour.csv")[0], impatience_cost=2)
    orders = torch.tensor([[*order, 0] for order in itertools.permutations((1, 2, 3))])[None]
    assert document["cost"] == pytest.approx(float(converted.problem.cost(converted.referee, orders).min()))
    assert document["limits"] == {"impatience_cost": 2}
    assert document["values"]["patience"] == {"Hof": 0, "A": 100, "B": 10, "C": 40.5}
    assert document["values"]["hours"]["A"] == [480, 570]
    rows = list(csv.DictReader(io.StringIO((tmp_path / "s.csv").read_text())))
    assert ("B", "10.0", "8.0 9.0") in [(row["id"], row["patience"], row["hours"]) for row in rows]
    done = run("improve", "s.json", "--seconds", 0.2, folder=tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("text", "options", "told"),
    [
        (CSV, (), "tour.csv: impatient needs an impatience cost; give impatience_cost"),
        (CSV, ("--impatience-cost", -1), "tour.csv: the impatience cost is -1; it cannot be negative"),
        (CSV.replace("Geduld", "Notiz"), ("--impatience-cost", 1, "--problem", "impatient"), "needs a patience"),
        (CSV.replace("A;30;0;100", "A;30;0;viel"), (), "tour.csv, line 3: Geduld is 'viel', not a number"),
        (CSV.replace("A;30;0;100", "A;30;0;"), (), "tour.csv, line 3: no Geduld"),
        (CSV.replace("Sprechzeit_bis", "Notiz"), (), "a column Sprechzeit_von but no hours_2"),
        (CSV, ("--impatience-cost", 1, "--problem", "tsp"), "tour.csv: tsp has no impatience cost; leave it out"),
    ],
)
def test_refusals_are_one_line_with_the_users_words(text, options, told, tmp_path):
    (tmp_path / "tour.csv").write_text(text)
    done = run("solve", "tour.csv", *options, "--seconds", 0, folder=tmp_path)
    assert done.returncode == 2
    assert told in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_rule_of_one_problem_is_refused_for_another(tmp_path, monkeypatch):
    class Windows(type(get("impatient"))):
        name = "windows"
        attributes = (
            *(one for one in type(get("impatient")).attributes if one.name != "hours"),
            Attribute("hours", "stop", "time", shape=(2,), default=0.0, also=("Zeitfenster",)),
        )

    monkeypatch.setitem(PROBLEMS, "windows", Windows())
    (tmp_path / "a.csv").write_text("x,y,Zeitfenster\n0,0,\n1,2,08:00-09:00\n")
    [stops] = read_stops(tmp_path / "a.csv", problem="windows")
    assert stops.columns["hours"].tolist() == [[0, 0], [480, 540]]
    [stops] = read_stops(tmp_path / "a.csv")
    with pytest.raises(InputError, match="'Zeitfenster' states a time window, and time windows are not supported"):
        to_instance(stops, "tsp")


def test_two_problems_that_mean_different_things_by_one_name(tmp_path, monkeypatch):
    class Boxes(CVRP):
        name = "boxes"
        attributes = (DEMAND._replace(shape=(2,)), *CVRP.attributes[1:])

    monkeypatch.setitem(PROBLEMS, "boxes", Boxes())
    (tmp_path / "a.csv").write_text("x,y,demand\n0,0,0\n1,2,3\n")
    with pytest.raises(InputError, match="demand is not the same thing for cvrp and boxes; name the problem"):
        read_stops(tmp_path / "a.csv")
    [stops] = read_stops(tmp_path / "a.csv", problem="cvrp")
    assert to_instance(stops, "cvrp", capacity=4).referee.demand.tolist() == [[0, 3]]
    (tmp_path / "b.csv").write_text("x,y,demand 1,demand 2\n0,0,0,0\n1,2,3,4\n")
    [stops] = read_stops(tmp_path / "b.csv", problem="boxes")
    assert stops.columns["demand"] == ((0, 0), (3, 4))


CLOCKS = "x;y;Geduld\n0;0;\n30;0;08:00\n60;0;09:30\n"


def test_clock_times_that_the_named_problem_does_not_have_are_refused_with_the_plugin_as_without(tmp_path, loaded):
    (tmp_path / "a.csv").write_text(CLOCKS)
    told = []
    for _ in range(2):
        with pytest.raises(
            InputError, match="line 3: 'Geduld' holds clock times, so it states a time window"
        ) as caught:
            read_stops(tmp_path / "a.csv", problem="tsp")
        told.append(str(caught.value))
        for plugin in plugins.loaded():
            plugins.forget(plugin)
    assert told[0] == told[1]


def test_a_column_of_zeros_counts_for_the_problem_that_is_named(tmp_path):
    zeros = "x;y;Geduld\n0;0;0\n30;0;0\n60;0;0\n"
    assert read(tmp_path, "a.csv", zeros).columns["patience"].tolist() == [0, 0, 0]
    (tmp_path / "a.csv").write_text(zeros)
    [stops] = read_stops(tmp_path / "a.csv")
    assert (stops.unused, stops.columns) == (("Geduld",), {})
    (tmp_path / "b.csv").write_text("x;y;Menge;Gewicht\n0;0;0;0\n30;0;0;4\n60;0;0;5\n")
    [stops] = read_stops(tmp_path / "b.csv", problem="cvrp")
    assert stops.columns["demand"] == (0, 4, 5)


def test_a_fraction_where_ones_are_counted_is_refused_with_its_row(tmp_path, loaded, monkeypatch):
    counted = [one._replace(unit=None) if one.name == "crates" else one for one in loaded.attributes]
    monkeypatch.setattr(type(loaded), "attributes", tuple(counted))
    with pytest.raises(InputError, match=r"a.csv, line 3: the crates 2.5 has a fraction; whole numbers are needed"):
        to_instance(read(tmp_path, "a.csv", CSV), impatience_cost=2)


class OneWay(type(get("tsp"))):
    """From the depot through every customer, and there the tour ends."""

    name, has_depot, search = "one-way", True, None
    feature_dims = (2, 2)

    def sample(self, rng, batch, n):
        return super().sample(rng, batch, n + 1)

    def features(self, x):
        return x.xy[:, :1], x.xy[:, 1:]

    def max_steps(self, x):
        return x.xy.shape[1] - 1

    def initial(self, x, solutions):
        return self.step(x, super().initial(x, solutions), torch.zeros((len(x.xy), solutions), dtype=torch.long))

    def cost(self, x, tour):
        return base.closed_length(x, base.from_depot(tour))

    def check(self, x, tour, tolerance=0.0):
        super().check(x, base.from_depot(tour))


def test_a_solution_whose_tour_does_not_end_at_the_depot_is_read_back(tmp_path, monkeypatch):
    from routelearn.solving.resume import to_tour

    monkeypatch.setitem(PROBLEMS, "one-way", OneWay())
    (tmp_path / "a.csv").write_text("x,y\n0,0\n1,0\n2,0\n3,1\n")
    [stops] = read_stops(tmp_path / "a.csv", problem="one-way")
    converted = to_instance(stops, "one-way")
    assert to_tour([["2", "3", "4"]], converted, "a.json").tolist() == [[[1, 2, 3]]]
    with pytest.raises(InputError, match=r"a.json: not a solution of these stops: "):
        to_tour([["2", "4"]], converted, "a.json")
