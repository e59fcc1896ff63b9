"""Requests and answers of the service: typed, strict (a number is not a text), each with an example."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NamedTuple, Self

import numpy as np
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Json,
    Tag,
    create_model,
    model_validator,
)

from routelearn.data.names import table
from routelearn.problems import Attribute
from routelearn.rounds.model import Round, Stop, Vehicle, attributes_of

FIRST_ERROR: Any = Field(fail_fast=True)  # a million of them take gigabytes, and only the first is told
LET_OTHERS = BeforeValidator(lambda value: value)  # Python's own code, in which the interpreter's lock changes hands
# Of 100,000 lists the collector's next pass, and giving them back, would each hold the event loop; of an array neither.
AS_ARRAY = AfterValidator(lambda value: np.array(value, dtype=np.float64))
Pair = Annotated[list[float], Field(min_length=2, max_length=2), FIRST_ERROR, LET_OTHERS]
Pairs = Annotated[list[Pair], FIRST_ERROR, AS_ARRAY]
Rows = Annotated[list[Annotated[list[float], FIRST_ERROR, LET_OTHERS, AS_ARRAY]], FIRST_ERROR]
Identifier = Annotated[str, Field(max_length=200)] | int
Names = Annotated[list[Identifier], FIRST_ERROR]
Note = Annotated[str, Field(max_length=1000)]

SQUARE: list[Any] = [[0.1, 0.2], [0.9, 0.3], [0.8, 0.9], [0.2, 0.7], [0.5, 0.5]]


class Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def one_unknown_key(cls, given: Any) -> Any:
        """Keep the first of the keys that are not known; the error names no other."""
        if not isinstance(given, dict) or len(given) <= len(cls.model_fields):
            return given
        unknown = next(key for key in given if key not in cls.model_fields)
        return {key: value for key, value in given.items() if key in cls.model_fields or key is unknown}


class Instance(Strict):
    """One set of stops, in any unit: `coords`, or `latlon` in degrees, or a `matrix` of lengths from row to column."""

    coords: Pairs | None = Field(None, description="[N, 2] places in the plane")
    latlon: Pairs | None = Field(None, description="[N, 2] latitude and longitude in degrees")
    matrix: Rows | None = Field(None, description="[N, N] lengths from row to column; they count if given")
    metric: str | None = Field(
        None, max_length=20, description="lengths between coords rounded by a rule of TSPLIB: EUC_2D, CEIL_2D, ATT, ..."
    )
    ids: Names | None = Field(None, description="names of the stops; otherwise they are called 0, 1, ...")
    depot: int | None = Field(None, description="row of the depot; otherwise 0")
    notes: list[Note] | None = Field(
        None, max_length=20, description="what /stops says of the file, one line each; the answer repeats it"
    )


class Options(Strict):
    problem: str | None = Field(None, max_length=40, description="problem id; otherwise it follows from the fields")
    seconds: float = Field(1.0, ge=0, description="search time; 0: the better construction of policy and heuristic")
    seed: int = Field(0, ge=0, le=2**31 - 1)
    policy: bool = Field(True, description="let the trained policy take part; without it, search alone")
    decode: str | None = Field(
        None,
        max_length=80,
        description="the policy alone, by greedy, sample:128, augment:8, guided:4, active:20; seconds are then 0",
    )
    solver: str | None = Field(None, max_length=40, description="a classical solver instead, by its name in /problems")

    @model_validator(mode="after")
    def decode_takes_no_seconds(self) -> Self:
        if self.decode is not None and "seconds" not in self.model_fields_set:
            self.seconds = 0.0
        return self


class ThinkOptions(Strict):
    problem: str | None = Field(None, max_length=40)
    sample: bool = Field(False, description="draw every step from the probabilities instead of taking the best")
    seed: int = Field(0, ge=0, le=2**31 - 1)


class ProblemOption(Strict):
    problem: str | None = None


class FileOptions(ProblemOption):
    unclear: str | None = Field(None, description="why the problem does not follow from the fields of the file")
    round: dict[str, Any] | None = Field(None, description="of a round, instead of all else: the body of a request")
    unit: str | None = Field(None, description="of a round's lengths, where the file or its places tell it")


class BatchOptions(Options):
    seconds: float = Field(0.0, ge=0, description="search time for all of them together; 0: constructions")


class VehiclesFile(Strict):
    """A table of vehicles, as its bytes."""

    name: str = Field("vehicles", max_length=200)
    base64: str


class FileRequest(Strict):
    """A file of stops: CSV, JSON, GeoJSON, TSPLIB or CVRPLIB, as text or, in any encoding, as its bytes."""

    text: str | None = Field(None, description="the text of the file")
    base64: str | None = Field(None, description="or the bytes of the file in base64")
    problem: str | None = Field(None, max_length=40, description="problem id, which decides what columns mean")
    name: str = Field("stops", max_length=200, description="the file's name; its suffix tells the format")
    vehicles: str | None = Field(None, max_length=20, description="how many vehicles there are, for a round")
    vehicles_file: VehiclesFile | None = Field(None, description="or a file of them")
    capacity: str | None = Field(None, max_length=2000, description="of the vehicles, where no file gives it")
    shift: str | None = Field(None, max_length=100, description="of the vehicles, such as 8:00-16:00")
    speed: str | None = Field(None, max_length=40, description="units of length an hour between places")


VERSION = "/v1"


def unversioned(path: str) -> str:
    """The path as it stands in tables: `/v1/solve` is `/solve`."""
    return path.removeprefix(VERSION) if path.startswith(f"{VERSION}/") else path


OF_ROUNDS = ("stops", "jobs", "shipments")  # a body with one of these is a round


def kind_of(body: Any) -> str:
    """Whether a body is a round, or one set of stops in columns."""
    return "round" if isinstance(body, dict) and any(name in body for name in OF_ROUNDS) else "columns"


def job_kind_of(body: Any) -> str:
    """The same for a job, which may also be a batch."""
    kind = kind_of(body)
    return "batch" if kind == "columns" and isinstance(body, dict) and "instances" in body else kind


def untagged(path: tuple[Any, ...]) -> tuple[tuple[Any, ...], str | None]:
    """Where an error is, without the kind of body that it is in; and that kind."""
    return ((path[0], *path[2:]), path[1]) if path[1:2] in (("round",), ("columns",), ("batch",)) else (path, None)


def _named(kind: type) -> str:
    return ", ".join(one.name for one in attributes_of(kind))


ROUND: dict[str, Any] = {
    "depot": {"id": "yard", "lat": 52.09, "lon": 5.12},
    "stops": [
        {"id": "A", "lat": 52.08, "lon": 5.09, "delivery": 2, "windows": [["08:00", "10:00"]], "service": 300},
        {"id": "B", "lat": 52.12, "lon": 5.16, "delivery": 3, "windows": [["09:00", "12:00"]], "service": 300},
    ],
    "vehicles": [{"id": "van", "capacity": 10, "shift": ["08:00", "16:00"]}],
    "speed": 30,
}


class RoundRequest(BaseModel):
    """A round (docs/guides/rounds.md), or VROOM's document. It is read as a file is, and refused in the same words."""

    model_config = ConfigDict(extra="allow")
    stops: Any = Field(None, description=f"a list of objects: id, lat and lon or x and y, {_named(Stop)}")
    vehicles: Any = Field(None, description=f"a number, or objects: id, start, end, breaks, {_named(Vehicle)}")
    depot: Any = Field(None, description="a place, or the id of a stop")
    depots: Any = Field(None, description="several places")
    shipments: Any = Field(None, description="pairs of ids: where each is picked up, and where it is brought")
    matrix: Any = Field(None, description="times or distances between depots and stops, in their order")
    durations: Any = Field(None, description="seconds of driving, as `matrix`")
    distances: Any = Field(None, description="distances, as `matrix`")
    profiles: Any = Field(None, description="durations, distances and costs by the vehicles' profile")
    speed: Any = Field(None, description="units of length an hour, where places and no durations are given")
    allow_unassigned: Any = Field(None, description="leave out stops that cannot be served, with a reason")
    objective: Any = Field(None, description=next(o.help for o in attributes_of(Round) if o.name == "objective"))
    seconds: float = Field(1.0, ge=0, strict=True, description="search time")
    iterations: int | None = Field(None, ge=0, strict=True, description="steps of the search, instead of seconds")
    seed: int = Field(0, ge=0, le=2**31 - 1, strict=True)
    drawing: bool = Field(False, strict=True, description="add what the page draws to the answer")


class CheckRequest(RoundRequest):
    """A round and a plan of it."""

    routes: list[Any] = Field(description="as answers have them: `vehicle`, and `stops` or `visits` in their order")


# The paths that take a body, and which of the Bodies that is.
PATHS = {"/solve": "solve", "/solve/batch": "batch", "/solve/stream": "solve", "/think": "think", "/stops": "stops"}
PATHS |= {"/check": "check", "/jobs": "solve"}
TAGGED = ("/solve", "/solve/stream", "/jobs")  # they take several kinds of body


class Bodies(NamedTuple):
    """The requests that this service takes, with a field for each attribute of its problems."""

    instance: type[Strict]
    solve: type[Strict]
    batch: type[Strict]
    think: type[Strict]
    stops: type[Strict]
    problem: type[Strict]  # an instance that may say which problem it is
    file: type[Strict]  # the answer to /stops
    check: type[BaseModel] = CheckRequest

    def taken(self, path: str) -> Any:
        """The body that a path takes: of one kind, or one set of stops in columns or a round, or for a job a batch."""
        if path not in TAGGED:
            return getattr(self, PATHS[path])
        columns, rounds = Annotated[self.solve, Tag("columns")], Annotated[RoundRequest, Tag("round")]
        if path != "/jobs":
            return Annotated[columns | rounds, Discriminator(kind_of)]
        return Annotated[columns | rounds | Annotated[self.batch, Tag("batch")], Discriminator(job_kind_of)]

    def of(self, path: str, kind: str | None = None) -> type[BaseModel] | None:
        """The model whose keys a refusal names."""
        return self.batch if kind == "batch" else getattr(self, PATHS[path]) if path in PATHS else None


def bodies() -> Bodies:
    """Made from the problems that are registered now."""
    names = table()
    fields: dict[str, Any] = {name: _field(one) for name, one in (*names.columns.items(), *names.limits.items())}
    instance = create_model("Instance", __base__=Instance, __doc__=Instance.__doc__, **fields)

    def with_stops(name: str, options: type[Strict]) -> type[Strict]:
        # The stops' fields come first: pydantic goes from the last base up.
        return create_model(name, __base__=(options, instance), __doc__=options.__doc__)

    instances: Any = (Annotated[list[instance], FIRST_ERROR], Field(min_length=1))  # type: ignore[valid-type]
    return Bodies(
        instance,
        with_stops("SolveRequest", Options),
        create_model("BatchRequest", __base__=BatchOptions, instances=instances),
        with_stops("ThinkRequest", ThinkOptions),
        FileRequest,
        with_stops("Problem", ProblemOption),
        with_stops("Stops", FileOptions),
    )


def _field(one: Attribute) -> Any:
    """The type and the description of an attribute's field."""
    kind: Any = float
    for size in reversed(one.shape):
        kind = Annotated[list[kind], Field(min_length=size, max_length=size), FIRST_ERROR]
    shape = ", ".join(map(str, ("N", *one.shape) if one.of == "stop" else one.shape))
    words = [f"[{shape}]" if shape else "", one.help or one.called, "" if one.at_depot else "0 for the depot"]
    kind = Annotated[list[kind | None], FIRST_ERROR] if one.of == "stop" else kind
    return (kind | None, Field(None, description="; ".join(filter(None, words))))


# ------------------------------------------------------------------------------------------------- answers


class Failure(BaseModel):
    """Every answer that is not 2xx."""

    error: str = Field(description="one line: what is wrong and what would be right")
    field: str | None = Field(None, description="the field of the request it is about")
    limit: str | None = Field(None, description="the limit that was exceeded")
    value: float | None = Field(None, description="the value of that limit")


class Route(BaseModel):
    stops: list[str | int]  # the depot left out: a route begins and ends there
    length: float
    load: float | None = None
    amounts: list[float] | None = None  # delivered at each stop, where a delivery may be split


class Found(BaseModel):
    """A better solution: when, its cost, and which part of the search found it."""

    seconds: float
    cost: float
    by: str


class Answer(BaseModel):
    problem: str
    cost: float = Field(description="what the problem minimises; prizes of orienteering count as negative")
    objective: float = Field(description="the cost as people state it")
    length: float
    unit: str | None
    depot: str | int | None
    routes: list[Route]
    returns: bool = Field(description="false: the way back to the depot counts for nothing")
    unvisited: list[str | int]
    prize: float | None = None
    limits: dict[str, Any] = Field(description="attributes of the whole, by name")
    layout: list[tuple[str | int, float, float]] = Field(description="id and place on a drawing, the depot first")
    seconds: float
    history: list[Found]
    notes: list[str]


class Answers(BaseModel):
    answers: list[Answer]


class Visit(BaseModel):
    id: str
    kind: Literal["start", "stop", "break", "reload", "end"]
    arrival: str | float | None
    start: str | float | None
    departure: str | float | None
    wait: float
    load: float | list[float] | None = None
    distance: float
    driving: float
    distance_so_far: float
    driving_so_far: float
    kept: bool = False
    columns: dict[str, str] = {}


class RoundRoute(BaseModel):
    vehicle: str
    stops: list[str]
    length: float
    duration: float
    driving: float
    load: float | list[float] | None = None
    cost: float
    visits: list[Visit]


class Unassigned(BaseModel):
    id: str
    reason: str


class Broken(BaseModel):
    """A rule that a plan breaks."""

    rule: str
    route: int | None = Field(description="counted from 1; null: of the whole plan")
    visit: int | None = Field(description="in the route's visits, counted from 0")
    id: str | None
    words: str
    by: float | None


class RoundAnswer(BaseModel):
    """A plan of a round, as `routelearn solve` writes it (docs/guides/rounds.md)."""

    format: str
    format_version: int
    problem: str
    source: str
    rounding: str
    cost: float
    length: float
    duration: float
    unit: str | None
    depot: str | None
    routes: list[RoundRoute]
    unvisited: list[str]
    unassigned: list[Unassigned]
    violations: list[Broken] = []
    values: dict[str, dict[str, Any]] = {}
    seconds: float
    history: list[tuple[float, float, str]]
    notes: list[str]
    drawing: dict[str, Any] | None = None


class Better(BaseModel):
    """An event of a stream: a better solution than all before. `data` is one line of JSON."""

    event: Literal["better"]
    data: Json[Answer | RoundAnswer]


class Done(BaseModel):
    """The last event of a stream: the best solution."""

    event: Literal["done"]
    data: Json[Answer | RoundAnswer]


class Failed(BaseModel):
    """The last event of a stream that found no end."""

    event: Literal["failed"]
    data: Json[Failure]


class JobKept(BaseModel):
    """A job as lists have it, without its answer."""

    id: str = Field(description="unguessable: whoever has it and the token that made the job may fetch it")
    kind: Literal["solve", "round", "batch"]
    state: Literal["queued", "running", "done", "failed", "cancelled"]
    created: str = Field(description="time in UTC")
    seconds: float = Field(description="from then to now, or to its end")
    cost: float | None = Field(description="of the best solution so far; null if it is not known, and for a batch")


class Job(JobKept):
    answer: Answer | RoundAnswer | Answers | None = Field(None, description="of a job that is done")
    failure: Failure | None = Field(None, description="of a job that failed: why")


class JobList(BaseModel):
    jobs: list[JobKept] = Field(description="those of the token that asks, the newest first")


class Step(BaseModel):
    chosen: int = Field(description="node number")
    probabilities: list[float] = Field(description="[N] of the decoder; 0 where masked")
    masked: list[tuple[int, str]] = Field(description="node number and why it may not be chosen")
    remaining: dict[str, float] = Field(description="what is left before the step, by name")
    cost: float = Field(description="length travelled so far, in the user's unit")


class Thoughts(BaseModel):
    problem: str
    model: dict[str, Any]
    ids: list[str | int]
    layout: list[tuple[float, float]]
    steps: list[Step]
    answer: Answer


class AttributeInfo(BaseModel):
    name: str
    of: str = Field(description="stop, vehicle or instance")
    unit: str | None
    shape: list[int] = Field(description="empty for one number")
    whole: bool
    required: bool
    default: float | None
    at_depot: bool = Field(description="whether the depot has one, too")
    revealed_on_visit: bool
    title: str
    help: str


class ProblemInfo(BaseModel):
    id: str
    title: str
    needs: list[str] = Field(description="fields beside the places")
    attributes: list[AttributeInfo] = Field(description="the same, described")
    maximise: bool
    has_depot: bool
    model: str | None = Field(description="the model for large instances, or the one given for all; none if null")
    models: dict[str, str] = Field(description="the model by number of stops, the nearest of which decides")
    solvers: list[str] = Field(description="classical solvers usable here")


class Problems(BaseModel):
    problems: list[ProblemInfo]


class ModelInfo(BaseModel):
    name: str
    problem: str
    policy: str
    megabytes: float
    card: dict[str, Any]


class Models(BaseModel):
    models: list[ModelInfo]


class Health(BaseModel):
    status: Literal["ok", "starting", "degraded"]
    version: str
    workers: dict[str, dict[str, int]]


class Alive(BaseModel):
    status: Literal["ok"]


STREAMED = (Better, Done, Failed)

# A body in one line for each path that takes one, by name.
EXAMPLES: dict[str, dict[str, Any]] = {
    "/solve": {
        "tour": {"coords": SQUARE, "seconds": 0},
        "deliveries": {"coords": SQUARE, "demand": [0, 3, 4, 2, 5], "capacity": 8, "seconds": 0.5},
        "round": {**ROUND, "seconds": 0.5},
    },
    "/solve/batch": {"two": {"instances": [{"coords": SQUARE}, {"coords": SQUARE[:4]}], "seconds": 0}},
    "/think": {"tour": {"coords": SQUARE}},
    "/stops": {"table": {"name": "stops.csv", "text": "x,y\n1,2\n3,4\n5,1\n"}},
    "/check": {"plan": {**ROUND, "routes": [{"vehicle": "van", "stops": ["A", "B"]}]}},
}
EXAMPLES |= {"/solve/stream": EXAMPLES["/solve"], "/jobs": EXAMPLES["/solve"] | EXAMPLES["/solve/batch"]}
