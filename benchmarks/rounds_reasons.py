"""Are the reasons of unassigned stops true? Relaxing what a reason names, alone, must let its stop be inserted.

    python benchmarks/rounds_reasons.py                  # 1,000 stops of small rounds and 1,000 of large ones

Small rounds have random combinations of all attributes, and all places are tried for each stop. In large ones (150 to
400 stops) many stops are left out and few places are tried for each, as `solve` does. Insertion is enumerated here by
code of its own; the referee judges the plan with the stop. Prints how many reasons hold, and by which rule.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "tests" / "rounds"))

from reason_cases import crowded, fits, one_more, scarce

from routelearn.rounds.reasons import ALL_PLACES, FEWEST_PLACES, MOST_PLACES, explain
from routelearn.rounds.referee import judge
from routelearn.rounds.survey import Survey

SIZES = (150, 200, 300, 400)  # stops of large rounds


def small(count: int, tally: Counter[str], rules: Counter[str]) -> None:
    seed = 0
    while tally["reasons"] < count:
        round_, plan = scarce(seed)
        for entry in plan.unassigned:
            found = explain(round_, plan, entry.stop)
            tally["reasons"] += 1
            rules[found.rule] += 1
            possible = fits(round_, plan, entry.stop)
            if possible != (found.rule in ("", "penalty")) or not fits(found.relaxed, plan, entry.stop):
                tally["false"] += 1
                print(f"small round {seed}, stop {entry.stop}: {found.words}", flush=True)
        seed += 1


def large(count: int, tally: Counter[str], rules: Counter[str]) -> None:
    seed = 0
    while tally["reasons"] < count:
        round_, plan = crowded(seed, SIZES[seed % len(SIZES)])
        survey = Survey(round_, plan)
        places = max(FEWEST_PLACES, min(MOST_PLACES, ALL_PLACES // len(plan.unassigned)))
        for entry in plan.unassigned:
            found = explain(round_, plan, entry.stop, survey=survey, most=places)
            tally["reasons"] += 1
            rules[found.rule] += 1
            more = one_more(found.relaxed, plan, entry.stop)
            holds = more is not None and not judge(found.relaxed, more).violations
            fitted = found.rule not in ("", "penalty") and one_more(round_, plan, entry.stop) is not None
            if not holds or fitted:
                tally["false"] += 1
                print(f"large round {seed}, stop {entry.stop}: {found.words}", flush=True)
        seed += 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000, help="unassigned stops of each kind [1000]")
    count, wrong = parser.parse_args().count, 0
    for name, measure in (("small", small), ("large", large)):
        tally: Counter[str] = Counter()
        rules: Counter[str] = Counter()
        measure(count, tally, rules)
        wrong += tally["false"]
        print(f"{name} rounds: {tally['reasons']:,} reasons, {tally['false']} false")
        print("  " + ", ".join(f"{rule or 'it fits'} {number:,}" for rule, number in rules.most_common()))
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
