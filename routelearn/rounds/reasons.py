"""Why a stop could not be assigned: a reason that is true of the plan as it stands, in a dispatcher's words.

Every place for the stop is tried. Where one rule alone forbids a place, that rule is the reason: without it the stop
could be served there, and that is checked before it is said.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple

from routelearn.rounds.model import FOREVER, Round, Stop, Window
from routelearn.rounds.plan import Drive, Plan, Route, Unassigned, Violation
from routelearn.rounds.survey import Survey, first_free
from routelearn.rounds.timing import plan_of, schedule, too_many
from routelearn.rounds.units import spoken

MOST_PLACES, FEWEST_PLACES = 2000, 1  # to try for one stop
ALL_PLACES = 200  # to try for all stops together, as far as the fewest allow
FILLED = 5  # stops left out for which a place is sought when the search is over
OWN_TRIP = 1.0  # how likely a trip of its own is: as a place where one rule is broken
NO_TIME = "no place was found for it, and no time was left to tell why; more seconds would"
MOST_CHECKS = 50  # of reasons, for one stop
LATE_ELSEWHERE = "late elsewhere"  # the rule "window", broken at other stops
PREFERENCE = (  # which rule is named where several would do
    "skills", "vehicle", "capacity", "window", "end", "max_stops", "max_duration", "max_driving", "max_distance",
    LATE_ELSEWHERE, "break", "backhauls", "stops_apart", "time_apart", "number",
)  # fmt: skip


UNTIMED = frozenset(  # rules without which all times stay as they are: nothing else can be broken then
    {"skills", "vehicle", "capacity", "end", "max_stops", "max_duration", "max_driving", "max_distance", "backhauls",
     "number"}
)  # fmt: skip


class Reason(NamedTuple):
    words: str
    rule: str  # of `timing.RULES`, several joined by " and "; "penalty": leaving it out is cheaper; "": it fits
    relaxed: Round  # the round without that rule where it stands in the way: there the stop can be inserted


@dataclass(frozen=True)
class Try:
    """A place for the stop: the plan's drives with it, and what that breaks."""

    number: int  # of the drive that has changed
    drives: tuple[Drive, ...]
    route: Route
    violations: tuple[Violation, ...]
    rules: frozenset[str]
    proviso: str = ""  # what its words about windows must say

    @property
    def drive(self) -> Drive:
        return self.drives[self.number]

    @property
    def by(self) -> float:
        return sum(violation.by for violation in self.violations)


def with_reasons(round: Round, plan: Plan, *, until: float = FOREVER) -> Plan:
    """The plan with a reason for every stop that it leaves out.

    The more there are, the fewer places are tried for each, the likeliest first. After `until`, by the clock of
    `time.perf_counter`, there is no time to tell reasons, and the words say so.
    """
    if not plan.unassigned:
        return plan
    survey = Survey(round, plan)
    places = max(FEWEST_PLACES, min(MOST_PLACES, ALL_PLACES // len(plan.unassigned)))

    @cache
    def why(group: tuple[int, ...]) -> str:
        if time.perf_counter() > until:
            return NO_TIME
        return explain(round, plan, group[0], survey=survey, most=places).words

    groups = [round.shipment_of.get(entry.stop, (entry.stop,)) for entry in plan.unassigned]
    told = [Unassigned(entry.stop, why(group)) for entry, group in zip(plan.unassigned, groups, strict=True)]
    return replace(plan, unassigned=tuple(told))


def missing(round: Round, plan: Plan) -> list[Unassigned]:
    """The stops that a plan leaves out though they must be visited."""
    return [one for one in plan.unassigned if round.stops[one.stop].penalty is None]


def filled(round: Round, plan: Plan) -> Plan:
    """The plan with each stop that it leaves out and must not, as far as one fits where it is cheapest.

    The search looks at the likeliest places only; where rules go beyond its labels it may miss one. The first FILLED of
    them are tried, since every place is timed.
    """
    for stop in [one.stop for one in missing(round, plan)][:FILLED]:
        group = round.shipment_of.get(stop, (stop,))
        survey = Survey(round, plan)
        fitting = [one for one in tries_of(survey, group, ALL_PLACES) if not one.rules]
        if fitting:
            best = min(fitting, key=lambda one: one.route.cost - (*survey.costs, 0.0)[one.number])
            plan = plan_of(round, best.drives)
    return plan


def explain(round: Round, plan: Plan, stop: int, *, survey: Survey | None = None, most: int = MOST_PLACES) -> Reason:
    """Why a stop that the plan leaves out is not in it (a shipment: both halves); `most` places are tried."""
    group = round.shipment_of.get(stop, (stop,))
    survey = survey or Survey(round, plan)
    tries = list(tries_of(survey, group, most))
    fitting = [one for one in tries if not one.rules]
    if fitting:
        return not_worth_it(survey, group, fitting)
    preference = list(PREFERENCE)
    if any(not one.rules & {"window", "skills", "vehicle", "number"} for one in tries):
        preference.remove("window")  # it could be reached in time, if nothing else stood in the way: name that
        preference.append("window")
        tries = [replace(one, proviso=" as the plan stands") for one in tries]
    tries.sort(key=lambda one: (len(one.rules), sorted(map(preference.index, one.rules)), key_of(one)))
    for one in tries[:MOST_CHECKS]:
        relaxed = round
        for rule in one.rules:
            relaxed = relax(relaxed, one, group, rule)
        if one.rules <= UNTIMED or not broken_by(survey, relaxed, one):
            return reason_of(round, one, group, sorted(one.rules, key=PREFERENCE.index), relaxed)
    return last_resort(survey, group, tries)


def key_of(one: Try) -> float:
    """What makes one place nearer to being possible than another by the same rule: for windows, the earliest."""
    if one.rules == {"window"}:
        return min(one.route.visits[v.visit].start for v in one.violations if v.visit is not None)
    return one.by


# Places to try


def tries_of(survey: Survey, group: Sequence[int], most: int) -> Iterator[Try]:
    """The likeliest places in the plan for a stop or a shipment, and what it breaks there."""
    round, drives = survey.round, survey.drives
    if survey.served & set(group):  # one half of a shipment alone: no place mends that
        return
    for number, drive in places_of(survey, group, most):
        changed = (*drives[:number], drive, *drives[number + 1 :])
        route, found = schedule(round, drive)
        violations = [v._replace(route=number) for v in found if v.words not in survey.before]
        violations += broken_in_plan(survey, round, changed, number)
        if all(v.rule in PREFERENCE for v in violations):
            yield Try(number, changed, route, tuple(violations), frozenset(name(v, route, group) for v in violations))


def places_of(survey: Survey, group: Sequence[int], most: int) -> list[tuple[int, Drive]]:
    """(number of the drive, the drive with the stops), those first that probably break least."""
    round, drives = survey.round, survey.drives
    scores = [survey.scores(stop) for stop in group]
    likely = [sum(float(one[span].min()) for one in scores) for span in survey.spans]  # by drive, at its best places
    found: list[tuple[float, int, Drive]] = []
    for number in sorted(range(len(likely)), key=likely.__getitem__):
        if len(found) > most:
            break
        if number >= len(drives):
            found.append((likely[number], len(drives), Drive(number - len(drives), tuple(group))))
            continue
        span = survey.spans[number]
        mine = [dict(zip(survey.positions[span], one[span].tolist(), strict=True)) for one in scores]
        placed = orders(round, drives[number], group, mine)
        found += [(score, number, Drive(drives[number].vehicle, order)) for score, order in placed]
    found.sort(key=lambda one: one[0])
    return [(number, drive) for _, number, drive in found[:most]]


def name(violation: Violation, route: Route, group: Sequence[int]) -> str:
    if violation.rule == "window" and violation.visit is not None and route.visits[violation.visit].stop not in group:
        return LATE_ELSEWHERE
    return violation.rule


def orders(
    round: Round, drive: Drive, group: Sequence[int], scores: Sequence[Mapping[int, float]]
) -> Iterator[tuple[float, tuple[int, ...]]]:
    """A drive's order with the stops anywhere after those that are kept, or on a trip of their own, with its score."""
    vehicle, order = round.vehicles[drive.vehicle], drive.order
    first = first_free(vehicle, order)
    for i in range(first, len(order) + 1):
        once = (*order[:i], group[0], *order[i:])
        if len(group) == 1:
            yield scores[0][i], once
            continue
        for j in range(i + 1, len(once) + 1):
            yield scores[0][i] + scores[1][j - 1], (*once[:j], group[1], *once[j:])
            if j < len(once) and once[j] < 0:
                break  # both halves are on one trip
    if sum(at < 0 for at in order) + 1 < vehicle.trips:
        ends = [0, *(i + 1 for i, at in enumerate(order) if at < 0), len(order)]
        for reload in vehicle.reloads:
            for i in ends:
                trip = (*group, ~reload) if i < len(order) else (~reload, *group)
                if i >= first:
                    yield OWN_TRIP, (*order[:i], *trip, *order[i:])


def broken_in_plan(survey: Survey, round: Round, drives: Sequence[Drive], number: int) -> list[Violation]:
    """The rules of the whole plan that it breaks with one drive changed, and did not break before."""
    if round.most_stops_apart < FOREVER or round.most_time_apart < FOREVER:
        found = [v for v in plan_of(round, drives).violations if v.route is None]
        found = [v for v in found if v.rule not in ("unassigned", "kept")]
    elif number < len(survey.drives):
        return []
    else:
        found = list(too_many(round, Counter(drive.vehicle for drive in drives)))
    return [violation for violation in found if violation.words not in survey.before]


def broken_by(survey: Survey, relaxed: Round, one: Try) -> list[Violation]:
    """What a plan with the stops breaks in a round without a rule, and did not break without them."""
    found = [violation for violation in schedule(relaxed, one.drive)[1] if violation.words not in survey.before]
    return [*found, *broken_in_plan(survey, relaxed, one.drives, one.number)]


# Relaxing


def change_stops(round: Round, numbers: Sequence[int], change: Callable[[Stop], Stop]) -> Round:
    return replace(round, stops=tuple(change(s) if i in numbers else s for i, s in enumerate(round.stops)))


def endless(windows: Sequence[Window]) -> tuple[Window, ...]:
    """The last window never ends."""
    last = max(windows, key=lambda window: window[1])
    return (*(window for window in windows if window != last), (last[0], FOREVER))


def relax(round: Round, one: Try, group: Sequence[int], rule: str) -> Round:
    """The round without a rule, for these stops or for the vehicle that would serve them."""
    vehicle = round.vehicles[one.drive.vehicle]
    if rule == "skills":
        return change_stops(round, group, lambda stop: replace(stop, skills=stop.skills & vehicle.skills))
    if rule == "vehicle":
        forget = frozenset({vehicle.id})
        return change_stops(round, group, lambda stop: replace(stop, only=None, forbidden=stop.forbidden - forget))
    if rule in ("window", LATE_ELSEWHERE):
        late = [one.route.visits[v.visit].stop for v in one.violations if v.rule == "window" and v.visit is not None]
        numbers = [stop for stop in late if stop is not None and (stop in group) == (rule == "window")]
        return change_stops(round, numbers, lambda stop: replace(stop, windows=endless(stop.windows)))
    if rule == "backhauls":
        return replace(round, backhauls="mixed")
    if rule in ("stops_apart", "time_apart"):
        most: dict[str, Any] = {f"most_{rule}": FOREVER}
        return replace(round, **most)
    changes: dict[str, dict[str, Any]] = {  # the others are limits of the vehicle under their own names
        "capacity": {"capacity": (FOREVER,) * len(vehicle.capacity)}, "end": {"shift": (vehicle.shift[0], FOREVER)},
        "max_stops": {"max_stops": None}, "break": {"breaks": ()}, "number": {"number": None},
    }  # fmt: skip
    changed = replace(vehicle, **changes.get(rule, {rule: FOREVER}))
    vehicles = [changed if k == one.drive.vehicle else other for k, other in enumerate(round.vehicles)]
    return replace(round, vehicles=tuple(vehicles))


def last_resort(survey: Survey, group: Sequence[int], tries: Sequence[Try]) -> Reason:
    """Relax what one place breaks until nothing is broken, and name all of it."""
    round = survey.round
    for one in tries:
        relaxed, rules = round, dict.fromkeys(sorted(one.rules, key=PREFERENCE.index))
        for _ in range(len(PREFERENCE)):
            for rule in rules:
                relaxed = relax(relaxed, one, group, rule)
            route, _ = schedule(relaxed, one.drive)
            found = tuple(broken_by(survey, relaxed, one))
            if not found:
                return reason_of(round, one, group, rules, relaxed)
            if any(violation.rule not in PREFERENCE for violation in found):
                break
            more = frozenset(name(violation, route, group) for violation in found)
            one = replace(one, route=route, violations=(*found,), rules=more)
            rules.update(dict.fromkeys(more))
    return Reason("no place was found for it", "", round)


# Words


def not_worth_it(survey: Survey, group: Sequence[int], fitting: Sequence[Try]) -> Reason:
    """Of stops that could be served."""
    round = survey.round
    penalty = sum(round.stops[stop].penalty or 0.0 for stop in group)
    optional = all(round.stops[stop].penalty is not None for stop in group)
    if optional and round.objective == "vehicles" and all(one.number == len(survey.drives) for one in fitting):
        return Reason("would take another vehicle", "penalty", round)
    extra = min(one.route.cost - (*survey.costs, 0.0)[one.number] for one in fitting)
    if optional and extra >= penalty - 1e-9:
        words = f"would cost {extra:.6g} more to serve; leaving it out costs {penalty:.6g}"
        return Reason(words, "penalty", round)
    vehicle = round.vehicles[fitting[0].drive.vehicle]
    return Reason(f"was not assigned, though {vehicle.called} could serve it", "", round)


def words_of(round: Round, one: Try, group: Sequence[int], rule: str) -> str:
    if rule in WORDS:
        return WORDS[rule](round, one, group)
    return "with it, " + next((v.words for v in one.violations if v.rule == rule), f"the rule {rule!r} would be broken")


def reason_of(round: Round, one: Try, group: Sequence[int], rules: Iterable[str], relaxed: Round) -> Reason:
    """The rules that forbid a place together, in the order in which they are told."""
    words = " and ".join(words_of(round, one, group, rule) for rule in rules)
    named = sorted({"window" if rule == LATE_ELSEWHERE else rule for rule in rules})
    return Reason(words, " and ".join(named), relaxed)


def skills_words(round: Round, one: Try, group: Sequence[int]) -> str:
    vehicle = round.vehicles[one.drive.vehicle]
    needed = frozenset().union(*(round.stops[stop].skills for stop in group))
    lacking = sorted(needed - vehicle.skills)
    nobody = [skill for skill in lacking if not any(skill in other.skills for other in round.vehicles)]
    listed = " and ".join(nobody or lacking)
    return f"needs skill {listed}, which no {'vehicle' if nobody else 'free vehicle'} has"


def vehicle_words(round: Round, one: Try, group: Sequence[int]) -> str:
    vehicle = round.vehicles[one.drive.vehicle]
    for stop in (round.stops[i] for i in group):
        if stop.only is not None and vehicle.id not in stop.only:
            return f"may be served by {' or '.join(sorted(stop.only)) or 'no vehicle'} only, which is not free for it"
    return f"may not be served by {vehicle.id}, and no other vehicle is free for it"


def capacity_words(round: Round, one: Try, group: Sequence[int]) -> str:
    may = [v for v in round.vehicles if all(round.serves(v, round.stops[stop]) for stop in group)]
    for who, vehicles in (("vehicle", round.vehicles), ("vehicle that may serve it", may)):
        for stop in (round.stops[i] for i in group):
            for amounts in (stop.delivery, stop.pickup):
                for d, amount in enumerate(amounts):
                    if all(d < len(v.capacity) and amount > v.capacity[d] for v in vehicles):
                        unit = f" {round.dimensions[d]}" if d < len(round.dimensions) else ""
                        return f"no {who} holds {amount:.10g}{unit}"
    return "every vehicle that could take it is full"


def window_words(round: Round, one: Try, group: Sequence[int]) -> str:
    for violation in one.violations:
        if violation.rule == "window" and violation.visit is not None:
            visit = one.route.visits[violation.visit]
            if visit.stop is not None and visit.stop in group:
                start, end = spoken(round.day, visit.start), spoken(round.day, visit.start - violation.by)
                return f"cannot be reached before {start}{one.proviso} (its window ends {end})"
    return "cannot be reached before its window ends"


def late_words(round: Round, one: Try, group: Sequence[int]) -> str:
    lines = [v.visit for v in one.violations if v.rule == "window" and v.visit is not None]
    ids = [one.route.visits[line].id for line in lines if one.route.visits[line].stop not in group]
    more = f" and {len(ids) - 3} more stops" if len(ids) > 3 else ""
    return f"would make {round.vehicles[one.drive.vehicle].called} late at {', '.join(ids[:3])}{more}"


def end_words(round: Round, one: Try, group: Sequence[int]) -> str:
    vehicle = round.vehicles[one.drive.vehicle]
    back, until = spoken(round.day, one.route.visits[-1].arrival), spoken(round.day, vehicle.shift[1])
    return f"the shift of every free vehicle ends before: {vehicle.called} would end at {back}, its shift ends {until}"


def number_words(round: Round, one: Try, group: Sequence[int]) -> str:
    more = round.vehicles[one.drive.vehicle].called.removeprefix("a ")
    return f"every vehicle that could take it is in use: another {more} would do"


WORDS: dict[str, Callable[[Round, Try, Sequence[int]], str]] = {
    "skills": skills_words,
    "vehicle": vehicle_words,
    "capacity": capacity_words,
    "window": window_words,
    LATE_ELSEWHERE: late_words,
    "end": end_words,
    "number": number_words,
}
