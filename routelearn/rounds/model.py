"""What a round may have: stops, vehicles, places and legs, each attribute declared where it stands.

Times are seconds, lengths and amounts the user's. Readers of tables, the HTTP schema and the page of formats are made
from the declarations (`attributes_of`): what a column may be called, its unit, what it means.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from routelearn.problems.attributes import Attribute, Of, Sign, Unit

Amounts = tuple[float, ...]  # one number for each dimension
Window = tuple[float, float]  # seconds, both ends included
Matrix = NDArray[np.float64]
Objective = Literal["cost", "vehicles"]
Backhauls = Literal["mixed", "last"]

PROBLEM = "vrp"  # what files, commands and answers call the family
FOREVER = math.inf
ALWAYS: Window = (-FOREVER, FOREVER)
NAMELESS = "vehicle"  # the id of vehicles that are alike and came without one
ANY = "any"  # the profile of vehicles that name none


def told(
    of: Of,
    default: Any,
    help: str,
    *also: str,
    unit: Unit | None = None,
    sign: Sign = "not negative",
    whole: bool = False,
) -> Any:
    """A field that files may give, and what it is called there in any language."""
    return field(
        default=default, metadata={"of": of, "help": help, "also": also, "unit": unit, "sign": sign, "whole": whole}
    )


@lru_cache
def attributes_of(kind: type) -> tuple[Attribute, ...]:
    """The declarations of Stop, Vehicle or Round."""
    return tuple(
        Attribute(f.name, m["of"], m["unit"], whole=m["whole"], also=m["also"], help=m["help"], sign=m["sign"])
        for f in dataclasses.fields(kind)
        if (m := f.metadata)
    )


@dataclass(frozen=True, kw_only=True)
class Stop:
    """A visit to be made, or one half of a shipment (`Round.shipments`): then amounts travel between the halves."""

    id: str
    place: int  # row and column of the legs
    delivery: Amounts = told(
        "stop", (), "what is brought there from the depot (of a shipment: what is unloaded)",
        "demand", "quantity", "amount", "Menge", "Liefermenge", "quantité", "cantidad", unit="amount",
    )  # fmt: skip
    pickup: Amounts = told(
        "stop", (), "what is taken along from there",
        "pickups", "collect", "Abholung", "Abholmenge", "ramassage", "enlèvement", "recogida", unit="amount",
    )  # fmt: skip
    windows: tuple[Window, ...] = told(
        "stop", (ALWAYS,), "when service may begin; several are allowed",
        "window", "time window", "Zeitfenster", "créneau", "fenêtre", "ventana", "horario", unit="time", sign="any",
    )  # fmt: skip
    service: float = told(
        "stop", 0.0, "how long service takes",
        "service time", "duration", "Servicezeit", "Standzeit", "durée de service", "tiempo de servicio", unit="time",
    )  # fmt: skip
    setup: float = told(
        "stop", 0.0, "what service takes longer if the vehicle comes from another place",
        "setup time", "Rüstzeit", "temps de préparation", "tiempo de preparación", unit="time",
    )  # fmt: skip
    release: float = told(
        "stop", -FOREVER, "when its goods are at the depot: a trip that brings them leaves no earlier",
        "release time", "ready at", "Bereitstellung", "disponible", "disponibilidad", unit="time", sign="any",
    )  # fmt: skip
    penalty: float | None = told(
        "stop", None, "what it costs to leave the stop out; without it the stop must be visited",
        "prize", "Strafe", "pénalité", "penalización", unit="money",
    )  # fmt: skip
    priority: int = told(
        "stop", 0, "which stops are served first if not all can be: the highest",
        "Priorität", "priorité", "prioridad", whole=True,
    )  # fmt: skip
    skills: frozenset[str] = told(
        "stop", frozenset(), "what a vehicle must have to serve it",
        "skill", "required skills", "Fähigkeiten", "compétences", "habilidades",
    )  # fmt: skip
    only: frozenset[str] | None = told(
        "stop", None, "the vehicles that may serve it, by id",
        "allowed vehicles", "Fahrzeuge", "véhicules", "vehículos",
    )  # fmt: skip
    forbidden: frozenset[str] = told(
        "stop", frozenset(), "the vehicles that may not, by id", "forbidden vehicles", "gesperrte Fahrzeuge",
    )  # fmt: skip
    late_cost: float | None = told(
        "stop", None, "what each second after the window costs; without it windows are kept",
        "lateness cost", "Verspätungskosten", "coût du retard", "coste por retraso", unit="money",
    )  # fmt: skip
    columns: Mapping[str, str] = field(default_factory=dict)  # of the user's file, for the itinerary


@dataclass(frozen=True, kw_only=True)
class Break:
    """Time off, wherever the vehicle then is, between two visits."""

    id: str
    windows: tuple[Window, ...] = (ALWAYS,)  # when it may begin
    service: float = 0.0  # how long it is


@dataclass(frozen=True, kw_only=True)
class Vehicle:
    """A vehicle, or `number` of them that are alike."""

    id: str
    number: int | None = told(
        "vehicle", 1, "how many there are; empty: as many as it takes", "count", "Anzahl", "nombre", "número",
        sign="positive", whole=True,
    )  # fmt: skip
    capacity: Amounts = told(
        "vehicle", (), "what it holds, in each dimension", "Kapazität", "Ladekapazität", "capacité", "capacidad",
        unit="amount",
    )  # fmt: skip
    start: int | None = None  # the place it starts from; None: at its first stop
    end: int | None = None  # where it ends; None: at its last stop
    shift: Window = told(
        "vehicle", ALWAYS, "when it may leave and must be back", "Schicht", "Arbeitszeit", "poste", "turno",
        unit="time", sign="any",
    )  # fmt: skip
    fixed_cost: float = told(
        "vehicle", 0.0, "what it costs to use it", "fixed", "Fixkosten", "coût fixe", "coste fijo", unit="money"
    )
    distance_cost: float = told("vehicle", 1.0, "what a unit of length costs", "cost per distance", unit="money")
    driving_cost: float = told("vehicle", 0.0, "what a second of driving costs", unit="money")
    time_cost: float = told("vehicle", 0.0, "what a second from start to end costs", "cost per time", unit="money")
    max_duration: float = told(
        "vehicle", FOREVER, "the longest time from start to end", "Höchstdauer", "durée maximale", "duración máxima",
        unit="time",
    )  # fmt: skip
    max_distance: float = told(
        "vehicle", FOREVER, "the longest way", "Höchststrecke", "distance maximale", "distancia máxima", unit="length"
    )
    max_driving: float = told(
        "vehicle", FOREVER, "the longest time of driving", "max travel time", "Höchstfahrzeit", "conduite maximale",
        "conducción máxima", unit="time",
    )  # fmt: skip
    max_stops: int | None = told(
        "vehicle", None, "the most stops", "max tasks", "Höchststopps", "arrêts maximum", "paradas máximas", whole=True
    )
    overtime: float = told(
        "vehicle", 0.0, "how far the end of the shift may be passed", "Überstunden", "heures supplémentaires",
        "horas extra", unit="time",
    )  # fmt: skip
    overtime_cost: float = told("vehicle", 0.0, "what a second of overtime costs", "Überstundenkosten", unit="money")
    skills: frozenset[str] = told(
        "vehicle", frozenset(), "what it has", "skill", "Fähigkeiten", "compétences", "habilidades"
    )
    profile: str = told("vehicle", ANY, "which legs it has", "Profil", "profil", "perfil")
    breaks: tuple[Break, ...] = ()
    trips: int = told(
        "vehicle", 1, "how many trips it may make, with reloading between", "Touren", "tournées", "viajes",
        whole=True, sign="positive",
    )  # fmt: skip
    reloads: tuple[int, ...] = ()  # the places where it may reload
    reload_time: float = told(
        "vehicle", 0.0, "how long reloading takes", "Ladezeit", "temps de rechargement", "tiempo de recarga",
        unit="time",
    )  # fmt: skip
    kept: tuple[int, ...] = ()  # stops already driven or fixed: it begins with these, in this order

    @property
    def called(self) -> str:
        """What a sentence calls it: "vehicle 3"; of those that came without names "a vehicle"."""
        return f"a {NAMELESS}" if self.id == NAMELESS else f"vehicle {self.id}"


@dataclass(frozen=True)
class Legs:
    """Between all places, from row to column."""

    distance: Matrix
    duration: Matrix
    cost: Matrix | None = None  # of each leg, beside what vehicles pay for distance and driving


@dataclass(frozen=True, kw_only=True)
class Round:
    """One day's work."""

    source: str  # the file, for messages
    stops: tuple[Stop, ...]
    vehicles: tuple[Vehicle, ...]
    shipments: tuple[tuple[int, int], ...] = ()  # the stops of pickup and delivery: in this order, by one vehicle
    legs: Mapping[str, Legs]  # by profile; ANY is that of vehicles whose profile has none
    places: tuple[str, ...]  # names, for messages
    xy: Matrix | None = None  # [P, 2]
    latlon: Matrix | None = None  # [P, 2], degrees
    objective: Objective = told("instance", "cost", "cost, or vehicles: the fewest vehicles first")
    backhauls: Backhauls = told("instance", "mixed", "mixed, or last: on each trip deliveries come before pickups")
    most_stops_apart: float = told("instance", FOREVER, "how far routes may differ in stops")
    most_time_apart: float = told("instance", FOREVER, "how far routes may differ in time", unit="time")
    allow_unassigned: bool = False  # stops that must be visited may be left out, with a reason
    dimensions: tuple[str, ...] = ()  # what amounts are called
    day: str | None = None  # clock times came in: 0 is the midnight of this day ("": of no date); None: numbers did
    zone: float | None = None  # of the times of that day, in seconds east of Greenwich, where they came with one
    rounding: str = "none"
    length_unit: Literal["", "m", "km"] = ""  # of distances, where the file or its places tell
    separator: str = ","  # of the table that came in: the itinerary goes out alike
    decimal: str = "."
    where: tuple[str, ...] = ()  # by stop: "line 7", for messages
    vehicles_where: tuple[str, ...] = ()  # by vehicle, with the file: "vans.csv, line 2"
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        kinds = len(self.vehicles)
        return f"Round({self.source}: {len(self.stops)} stops, {kinds} kind{'' if kinds == 1 else 's'} of vehicles)"

    @cached_property
    def size(self) -> int:
        """The number of dimensions."""
        stops = max((max(len(stop.delivery), len(stop.pickup)) for stop in self.stops), default=0)
        return max([stops, *(len(vehicle.capacity) for vehicle in self.vehicles)])

    @cached_property
    def shipment_of(self) -> Mapping[int, tuple[int, int]]:
        """The shipments by either half."""
        return {half: shipment for shipment in self.shipments for half in shipment}

    def legs_of(self, vehicle: Vehicle) -> Legs:
        return self.legs.get(vehicle.profile) or self.legs[ANY]

    def at(self, stop: int) -> str:
        """Where the file gives a stop, to begin a message with."""
        place = self.where[stop] if self.where else f"stop {self.stops[stop].id!r}"
        return f"{self.source}, {place}"

    def vehicle_at(self, vehicle: int) -> str:
        """Where a file gives a vehicle, to begin a message with."""
        return self.vehicles_where[vehicle] if self.vehicles_where else f"{self.source}, vehicle {vehicle + 1}"

    def serves(self, vehicle: Vehicle, stop: Stop) -> bool:
        """Whether a vehicle may visit a stop, by skills and by name."""
        return self.named(vehicle, stop) and stop.skills <= vehicle.skills

    def named(self, vehicle: Vehicle, stop: Stop) -> bool:
        """Whether the stop's lists of vehicles let a vehicle visit it."""
        return (stop.only is None or vehicle.id in stop.only) and vehicle.id not in stop.forbidden
