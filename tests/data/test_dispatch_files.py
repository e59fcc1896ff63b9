"""Files as dispatchers have them, in four languages: what is read, what is noted, and what is refused."""

import pytest
from dispatch_cases import REFUSED, SOLVED

from routelearn.data import read_stops
from routelearn.errors import InputError
from routelearn.solving import solve_stops


@pytest.mark.parametrize("case", SOLVED)
def test_a_file_is_solved_and_its_notes_say_what_is_not_used(case, tmp_path):
    text, encoding, options, visited, notes = SOLVED[case]
    (tmp_path / "tour.csv").write_bytes(text.encode(encoding))
    [stops] = read_stops(tmp_path / "tour.csv")
    solution = solve_stops(stops, seconds=0, policy=False, **options)
    assert sum(map(len, solution.routes)) == visited
    assert solution.notes == notes


@pytest.mark.parametrize("case", REFUSED)
def test_a_file_with_a_rule_is_refused_with_its_line_and_column(case, tmp_path):
    text, encoding, told = REFUSED[case]
    (tmp_path / "tour.csv").write_bytes(text.encode(encoding))
    with pytest.raises(InputError) as caught:
        read_stops(tmp_path / "tour.csv")
    assert told in str(caught.value)
    assert str(caught.value).startswith(str(tmp_path / "tour.csv"))
    assert "\n" not in str(caught.value)


def test_a_refusal_names_the_problem_that_takes_the_rule(tmp_path):
    (tmp_path / "tour.csv").write_text("id,x,y,window\na,0,0,\nb,1,1,8-10\n")
    with pytest.raises(InputError, match="remove it to solve without; the problem vrp takes it"):
        read_stops(tmp_path / "tour.csv", problem="cvrp")
