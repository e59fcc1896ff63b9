"""The eight problems of the paper: the registered ones but for the family of variants."""

from routelearn.problems import PROBLEMS
from routelearn.problems.base import Varies

PAPER = tuple(name for name, problem in PROBLEMS.items() if not isinstance(problem, Varies))
