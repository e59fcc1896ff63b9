"""Files, folders, globs and standard input; sizes and encodings; and nothing but InputError from any bytes."""

import io
import json
import zipfile
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from paper_problems import PAPER

from routelearn.data import csv_file, json_file, matrix_file, npz, read_stops, to_instance, tsplib
from routelearn.data.files import decode, read_bytes
from routelearn.data.generate import generate
from routelearn.data.reading import from_npz, sniff
from routelearn.errors import InputError

CSV = "id,x,y,demand,depot\nhub,0,0,0,1\na,1.5,2,3,0\nb,4,5,6,0\n"
JSON = '{"capacity": 9, "stops": [{"x": 0, "y": 0, "demand": 0}, {"x": 1, "y": 2.5, "demand": 3}]}'
GEOJSON = json.dumps(
    {
        "type": "FeatureCollection",
        "features": [
            {"type": "Feature", "id": i, "geometry": {"type": "Point", "coordinates": [i, 50 + i]}, "properties": {}}
            for i in range(3)
        ],
    }
)
TSP = "NAME : a\nTYPE : TSP\nDIMENSION : 3\nEDGE_WEIGHT_TYPE : GEO\nNODE_COORD_SECTION\n1 0 0\n2 3.2 4\n3 6 0\nEOF\n"
EXPLICIT = (
    "TYPE : TSP\nDIMENSION : 3\nEDGE_WEIGHT_TYPE : EXPLICIT\nEDGE_WEIGHT_FORMAT : UPPER_ROW\n"
    "EDGE_WEIGHT_SECTION\n1 2\n3\nEOF\n"
)
VRP = (
    "TYPE : CVRP\nDIMENSION : 3\nCAPACITY : 9\nEDGE_WEIGHT_TYPE : EUC_2D\nNODE_COORD_SECTION\n1 0 0\n2 3 4\n3 6 0\n"
    "DEMAND_SECTION\n1 0\n2 4\n3 5\nDEPOT_SECTION\n1\n-1\nEOF\n"
)
MATRIX = "0,1,2.5\n3,0,4\n5,6,0\n"
EXAMPLES = {"csv": CSV, "json": JSON, "geojson": GEOJSON, "tsp": TSP, "explicit.tsp": EXPLICIT, "vrp": VRP}


@pytest.mark.parametrize("kind", EXAMPLES)
def test_the_suffix_and_the_content_lead_to_the_same_stops(kind, tmp_path, monkeypatch):
    text = EXAMPLES[kind]
    (tmp_path / f"a.{kind}").write_text(text)
    (tmp_path / "a.txt").write_text(text)
    [by_suffix] = read_stops(tmp_path / f"a.{kind}")
    [by_content] = read_stops(tmp_path / "a.txt")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    [piped] = read_stops("-")
    assert by_suffix.ids == by_content.ids == piped.ids
    assert by_suffix.metric == by_content.metric == piped.metric
    assert by_suffix.columns == by_content.columns == piped.columns
    assert piped.source == "standard input"


@pytest.mark.parametrize("name", PAPER)
def test_an_npz_gives_every_instance_as_stops(name, tmp_path, monkeypatch):
    x = generate(name, 6, 3, seed=8)
    npz.save(tmp_path / "set.npz", name, x)
    found = read_stops(tmp_path / "set.npz")
    assert len(found) == 3
    for row, stops in enumerate(found):
        converted = to_instance(stops)
        assert converted.problem.name == name
        for field, before, after in zip(x._fields, x, converted.referee, strict=True):
            assert (before is None) == (after is None), field
            if before is not None:
                assert np.array_equal(before[row].double().numpy(), after[0].double().numpy())
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO((tmp_path / "set.npz").read_bytes())))
    assert len(read_stops("-")) == 3


def test_folders_and_globs_are_read_in_order_of_name(tmp_path):
    (tmp_path / "b.csv").write_text(CSV)
    (tmp_path / "a.tsp").write_text(TSP)
    (tmp_path / "notes.md").write_text("nothing to read")
    names = [stops.source for stops in read_stops(tmp_path)]
    assert names == [str(tmp_path / "a.tsp"), str(tmp_path / "b.csv")]
    assert [stops.source for stops in read_stops(str(tmp_path / "*.csv"))] == names[1:]
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="no file in this folder"):
        read_stops(tmp_path / "empty")
    with pytest.raises(InputError, match="no file matches"):
        read_stops(str(tmp_path / "*.vrp"))


def test_a_matrix_serves_stops_without_places(tmp_path):
    (tmp_path / "m.csv").write_text("0,1,2\n3,0,4\n5,6,0\n")
    for name, text in (("a.csv", "id,demand\nW,\nB,2\nC,3\n"), ("a.json", '[{"id": "W"}, {"id": "B"}, {"id": "C"}]')):
        (tmp_path / name).write_text(text)
        [stops] = read_stops(tmp_path / name, matrix=tmp_path / "m.csv")
        assert (stops.ids, stops.xy, stops.metric) == (("W", "B", "C"), None, "matrix")
        assert stops.matrix_file == str(tmp_path / "m.csv")
        assert to_instance(stops, capacity=5 if "demand" in stops.columns else None).policy.xy.isfinite().all()
    with pytest.raises(InputError, match=r"2 sets of stops, but one matrix"):
        read_stops(str(tmp_path / "a.*"), matrix=tmp_path / "m.csv")


LABELLED = (
    ",A,B,C\nA,0,1,2.5\nB,3,0,4\nC,5,6,0\n",
    "from/to;A;B;C\nA;0;1;2,5\nB;3;0;4\nC;5;6;0\n",
    ",C,B,A\nA,2.5,1,0\nB,4,0,3\nC,0,6,5\n",  # columns in another order
    "A,B,C\n0,1,2.5\n3,0,4\n5,6,0\n",
    "A,0,1,2.5\nB,3,0,4\nC,5,6,0\n",
    "  A B C\nA 0 1 2.5\nB 3 0 4\nC 5 6 0\n",
    "\tA\tB\tC\t\nA\t0\t1\t2,5\t\nB\t3\t0\t4\t\nC\t5\t6\t0\t\n",
)


@pytest.mark.parametrize("text", LABELLED)
def test_labels_of_a_matrix_are_matched_to_the_ids(text, tmp_path):
    (tmp_path / "m.csv").write_text(text)
    (tmp_path / "a.csv").write_text("id,x,y\nB,1,2\nC,3,4\nA,5,6\n")
    [stops] = read_stops(tmp_path / "a.csv", matrix=tmp_path / "m.csv")
    assert stops.matrix.tolist() == [[0, 4, 3], [6, 0, 5], [1, 2.5, 0]]
    (tmp_path / "a.csv").write_text("x,y\n1,2\n3,4\n5,6\n")  # without ids the order counts
    [stops] = read_stops(tmp_path / "a.csv", matrix=tmp_path / "m.csv")
    assert stops.matrix.tolist() == [[0, 1, 2.5], [3, 0, 4], [5, 6, 0]]
    [alone] = read_stops(None, matrix=tmp_path / "m.csv")
    assert alone.ids == ("A", "B", "C")
    (tmp_path / "a.csv").write_text("id,x,y\nB,1,2\nC,3,4\nD,5,6\n")
    with pytest.raises(InputError, match=r"row 1 is labelled 'A', but stop 1 is 'B'; .* 'D' is missing"):
        read_stops(tmp_path / "a.csv", matrix=tmp_path / "m.csv")


def test_labels_that_are_numbers_stand_above_and_beside(tmp_path):
    (tmp_path / "m.csv").write_text(",0,1,2\n0,0,1,2.5\n1,3,0,4\n2,5,6,0\n")
    (tmp_path / "a.csv").write_text("x,y\n1,2\n3,4\n5,6\n")  # numbered from 1, which says nothing of these labels
    [stops] = read_stops(tmp_path / "a.csv", matrix=tmp_path / "m.csv")
    assert stops.matrix.tolist() == [[0, 1, 2.5], [3, 0, 4], [5, 6, 0]]


MATRICES = (
    MATRIX,
    MATRIX.replace(",", ";"),
    MATRIX.replace(",", " \t "),
    MATRIX.replace(",", "  "),
    MATRIX.replace("\n", ",\n"),
    MATRIX.replace(",", ";").replace(".", ","),
    MATRIX.replace(",", "\t").replace(".", ","),
    MATRIX.replace(",", " ").replace(".", ","),
    MATRIX.replace(",", "|"),
    "sep=;\n" + MATRIX.replace(",", ";").replace(".", ","),
    "[[0, 1, 2.5], [3, 0, 4], [5, 6, 0]]",
    '{"matrix": [[7, 1, 2.5], [3, 7, 4], [5, 6, 7]]}',
)


@pytest.mark.parametrize("text", MATRICES)
def test_a_matrix_replaces_the_lengths_or_stands_alone(text, tmp_path):
    (tmp_path / "m.csv").write_text(text)
    (tmp_path / "a.csv").write_text(CSV)
    [stops] = read_stops(tmp_path / "a.csv", matrix=tmp_path / "m.csv")
    assert stops.matrix.tolist() == [[0, 1, 2.5], [3, 0, 4], [5, 6, 0]]
    assert stops.xy is not None
    assert stops.metric == "matrix"
    [alone] = read_stops(None, matrix=tmp_path / "m.csv")
    assert alone.ids == (1, 2, 3)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0,1\n2\n", "line 2: 1 numbers; a matrix of 2 rows"),
        ("0,1\n2,x\n", "line 2: column 2 is 'x', not a number"),
        ("x,1\n2,0\n", "line 1: column 1 is 'x', not a number"),
        ("0,1\n2,0\n3,4\n", "line 1: 2 numbers; a matrix of 3 rows"),
        (",A,B\nA,0,x\nB,1,0\n", "line 2: column 3 is 'x', not a number"),
        ("<matrix/>", "XML"),
        ("0,1\n-2,0\n", "row 2, column 1 of the matrix is negative"),
        ("0,1\n2,0\n", "3 stops, but the matrix has 2 rows"),
        ("{}", "a list of lists"),
    ],
)
def test_a_wrong_matrix_is_refused(text, message, tmp_path):
    (tmp_path / "m.csv").write_text(text)
    (tmp_path / "a.csv").write_text(CSV)
    with pytest.raises(InputError, match=message):
        read_stops(tmp_path / "a.csv", matrix=tmp_path / "m.csv")


def test_nothing_to_read_is_said_so(tmp_path, monkeypatch):
    with pytest.raises(InputError, match="give a file"):
        read_stops(None)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(MATRIX.encode())))
    with pytest.raises(InputError, match="cannot be both"):
        read_stops("-", matrix="-")
    with pytest.raises(InputError, match="no such file"):
        read_stops(tmp_path / "none.csv")
    with pytest.raises(InputError, match="cannot be read"):
        read_stops("a\0b.csv")
    (tmp_path / "a.pkl").write_bytes(b"x")
    with pytest.raises(InputError, match="a set of instances for evaluation"):
        read_stops(tmp_path / "a.pkl")
    for content in ("", " \n\n \t\n"):
        (tmp_path / "empty.csv").write_text(content)
        with pytest.raises(InputError, match="empty"):
            read_stops(tmp_path / "empty.csv")


def test_what_is_not_text_is_named(tmp_path):
    book = io.BytesIO()
    with zipfile.ZipFile(book, "w") as file:
        for name in ("docProps/app.xml", "xl/workbook.xml", "[Content_Types].xml"):
            file.writestr(name, "<x/>")
    sheet = io.BytesIO()
    with zipfile.ZipFile(sheet, "w") as file:
        file.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
    (tmp_path / "stops.csv").write_text(CSV)
    for name in ("book.xlsx", "book", "book.csv", "book.npz"):
        (tmp_path / name).write_bytes(book.getvalue())
        for arguments in ((tmp_path / name,), (tmp_path / "stops.csv", tmp_path / name)):
            with pytest.raises(InputError, match=r"an Excel workbook.*; save it as CSV \(UTF-8\)"):
                read_stops(arguments[0], matrix=arguments[-1] if len(arguments) > 1 else None)
    (tmp_path / "old.xls").write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(100))
    (tmp_path / "cut.xlsx").write_bytes(b"PK\x03\x04cut")
    for name in ("old.xls", "cut.xlsx"):
        with pytest.raises(InputError, match="an Excel workbook"):
            read_stops(tmp_path / name)
    (tmp_path / "a.ods").write_bytes(sheet.getvalue())
    with pytest.raises(InputError, match="an OpenDocument file; save it as CSV"):
        read_stops(tmp_path / "a.ods")
    for name in ("a.gpx", "a.kml", "a.txt"):
        (tmp_path / name).write_text("\n<kml></kml>")
        with pytest.raises(InputError, match=r"XML \(as GPX and KML are\), .* convert it to CSV or GeoJSON"):
            read_stops(tmp_path / name)


def test_the_size_is_limited_before_a_byte_is_read(tmp_path, monkeypatch):
    with (tmp_path / "big.csv").open("wb") as file:
        file.truncate(200 * 2**20)  # sparse: takes no space, and is never read
    with pytest.raises(InputError, match="200 MB is larger than the 64 MB"):
        read_stops(tmp_path / "big.csv")
    (tmp_path / "a.csv").write_text(CSV)
    with pytest.raises(InputError, match="larger than"):
        read_bytes(tmp_path / "a.csv", limit=20)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(CSV.encode())))
    with pytest.raises(InputError, match="standard input: more is larger"):
        read_bytes("-", limit=20)


def test_encodings():
    assert decode("\ufeffx,y\n".encode(), "a") == "x,y\n"
    assert decode("x,y\n".encode("utf-16"), "a") == "x,y\n"
    with pytest.raises(InputError, match="a, line 2: not utf-8 text; save the file as UTF-8"):
        decode("id,x,y\nZürich,1,2\n".encode("latin-1"), "a")
    with pytest.raises(InputError, match="a, line 1: binary data"):
        decode(b"\x7fELF\x00\x01", "a")


WESTERN = (
    "Straße",
    "Zürich; Tür 3",
    "Blumen Özgür",
    "L\u2019Hôpital",
    "Café «Été» 5 €",
    "Peñíscola",
    "Lärm\u2013Süd",
    "Sœur",
)


@pytest.mark.parametrize("name", WESTERN)
def test_a_table_in_cp1252_is_read_with_a_note(name, tmp_path):
    for file in ("a.csv", "a.txt"):
        (tmp_path / file).write_bytes(f'id,x,y\n"{name}",1,2\nb,3,4\n'.encode("cp1252"))
        [stops] = read_stops(tmp_path / file)
        assert stops.ids == (name, "b")
        assert to_instance(stops).notes == ("read as Windows text (cp1252), since it is not UTF-8",)
    (tmp_path / "a.json").write_bytes(f'[{{"id": "{name}", "x": 1, "y": 2}}]'.encode("cp1252"))
    with pytest.raises(InputError, match="not utf-8 text; save the file as UTF-8"):
        read_stops(tmp_path / "a.json")


@pytest.mark.parametrize(
    ("name", "encoding"),
    [
        ("Москва", "cp1251"),
        ("Москва", "koi8-r"),
        ("Αθήνα", "cp1253"),
        ("Łódź", "cp1250"),
        ("Müller", "mac-roman"),
        ("García", "mac-roman"),
        ("Müller", "cp850"),
        ("Málaga", "cp850"),
        ("東京都", "shift-jis"),
    ],
)
def test_other_encodings_are_refused(name, encoding, tmp_path):
    (tmp_path / "a.csv").write_bytes(f"id,x,y\n{name},1,2\n".encode(encoding))
    with pytest.raises(InputError, match=r"a\.csv, line 2: not utf-8 text; save the file as UTF-8"):
        read_stops(tmp_path / "a.csv")


def test_utf8_that_is_cut_is_refused(tmp_path):
    (tmp_path / "a.csv").write_bytes("id,x,y\nZürich,1,2\nZür".encode()[:-2])
    with pytest.raises(InputError, match="not utf-8 text"):
        read_stops(tmp_path / "a.csv")


READERS = {
    "csv": csv_file.parse,
    "json": json_file.parse,
    "geojson": json_file.parse,
    "tsp": tsplib.parse,
    "explicit.tsp": tsplib.parse,
    "vrp": tsplib.parse_vrp,
}
PIECES = st.sampled_from(
    ("", " ", "\n", ",", ";", "\t", '"', ":", "\r", "\x00", "\x85", "\u00e9", "[", "[]", "{}", "null", "true", "x")
) | st.sampled_from(
    (
        "-1",
        "0",
        "1e308",
        "1e-320",
        "nan",
        "inf",
        "9" * 30,
        "1" * 200,
        "1_0",
        "\uff11",
        "lat,lon",
        "DEPOT_SECTION",
        "EOF",
    )
)


@st.composite
def damaged(draw, text):
    """The text with a few stretches replaced by troublesome pieces or random characters."""
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 12)))
        text = text[:start] + draw(PIECES | st.text(max_size=6)) + text[end:]
    return text


def check_read(parse, text):
    """Read and convert; an InputError must be one short line, and places must be finite."""
    try:
        stops = parse(text, "file")
        converted = to_instance(stops, **({} if "demand" not in stops.columns or stops.limits else {"capacity": 10}))
    except InputError as error:
        problem = str(error) if "\n" in str(error) or len(str(error)) > 400 else None
    else:
        problem = None if converted.policy.xy.isfinite().all() else "places that are not finite"
    assert problem is None


@pytest.mark.parametrize("kind", READERS)
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_damaged_files_raise_nothing_but_input_errors_of_one_line(kind, data):
    text = data.draw(damaged(EXAMPLES[kind]))
    if text.strip():
        check_read(READERS[kind], text)


@settings(max_examples=100, deadline=None)
@given(st.text(min_size=1).filter(str.strip), st.sampled_from(sorted(READERS)))
@example("[" * 5000, "json")
@example('"', "csv")
@example(";", "csv")
def test_any_text_raises_nothing_but_input_errors_of_one_line(text, kind):
    assert sniff(text) in ("csv", "json", "tsplib", "cvrplib")
    check_read(READERS[kind], text)


@settings(max_examples=150, deadline=None)
@given(damaged(MATRIX) | damaged(LABELLED[0]) | st.text(min_size=1))
def test_any_matrix_raises_nothing_but_input_errors(text):
    if not text.strip():
        return
    try:
        lengths = matrix_file.parse(text, "m")
    except InputError:
        return
    assert np.isfinite(lengths.values).all()
    assert lengths.labels is None or len(lengths.labels) == len(lengths.values)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=300), st.sampled_from(["csv", "json", "tsp", "vrp", "npz", "txt"]))
def test_binary_garbage_raises_nothing_but_input_errors(tmp_path, content, suffix):
    (tmp_path / f"a.{suffix}").write_bytes(content)
    try:
        read_stops(tmp_path / f"a.{suffix}")
    except InputError:
        return
    assert suffix != "npz"


def test_an_npz_of_something_else_is_refused():
    buffer = io.BytesIO()
    np.savez(buffer, a=np.zeros(3))
    with pytest.raises(InputError, match="no 'problem' entry"):
        from_npz(buffer.getvalue(), "a.npz")


def test_two_stars_are_folders_of_any_depth(tmp_path):
    for name in ("a.csv", "b/a.csv", "b/c/a.csv"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x,y\n1,2\n3,4\n")
    found = [str(Path(stops.source).relative_to(tmp_path)) for stops in read_stops(tmp_path / "**" / "*.csv")]
    assert sorted(found) == ["a.csv", "b/a.csv", "b/c/a.csv"]
    assert len(read_stops(tmp_path / "*" / "*.csv")) == 1


def test_one_instance_of_a_set_is_named_by_its_number(tmp_path):
    npz.save(tmp_path / "set.npz", "cvrp", generate("cvrp", 20, count=3, seed=5))
    every, [second] = read_stops(tmp_path / "set.npz"), read_stops(f"{tmp_path}/set.npz[1]")
    assert second.source == every[1].source == f"{tmp_path}/set.npz[1]"
    assert np.array_equal(second.xy, every[1].xy)
    with pytest.raises(InputError, match=r"set\.npz\[3\]: the file holds 3 instances, numbered from 0"):
        read_stops(f"{tmp_path}/set.npz[3]")
    with pytest.raises(InputError, match="no file matches"):
        read_stops(f"{tmp_path}/other.npz[1]")


def test_an_empty_name_is_no_folder():
    with pytest.raises(InputError, match="the name of a file is empty; give a file"):
        read_bytes("")


@pytest.mark.parametrize("cell", ["a\rb", "a\nb", "a\r\nb", "\r", 'a"b', "a,b", "=a", "a\r", "\u2028"])
def test_cells_of_a_table_come_back_as_they_were_written(cell):
    output = io.StringIO()
    csv_file.writer(output)(["1", cell, "2"])
    [(_, cells)] = csv_file.rows_of(output.getvalue(), ",", "a.csv")
    assert [csv_file.plain(one) for one in cells] == ["1", cell, "2"]


def test_dates_in_a_workbook_are_no_clock_times(tmp_path):
    """A workbook has a date as the midnight of a day."""
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    days = datetime(2026, 11, 19), datetime(2026, 11, 20)
    for row in (["id", "x", "y", "ordered"], ["a", 0, 0, days[0]], ["b", 3, 4.5, days[1]]):
        book.active.append(row)
    book.save(tmp_path / "a.xlsx")
    [stops] = read_stops(tmp_path / "a.xlsx")
    assert stops.ids == ("a", "b")


def test_a_workbook_of_stops(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (["id", "x", "y", "demand"], ["d", 0, 0, None], [None] * 4, ["a", 3, 4.5, 2]):
        book.active.append(row)
    book.save(tmp_path / "a.xlsx")
    [stops] = read_stops(tmp_path / "a.xlsx")
    assert stops.ids == ("d", "a")
    assert stops.where == ("line 2", "line 4")
    assert stops.columns["demand"] == (0, 2)
