"""Read rounds: tables (CSV, Excel), JSON (our own and VROOM's) and the texts of libraries, one module for each."""

from routelearn.rounds.files.reading import parse_round, read_round, round_from_document

__all__ = ["parse_round", "read_round", "round_from_document"]
