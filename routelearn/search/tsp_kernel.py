"""Iterated 3-opt for the TSP: kick a short stretch, repair around it, keep or undo by the journal.

The whole state lives in arrays, so that a search stops after any number of looks and goes on later.
"""

from __future__ import annotations

import numpy as np

from routelearn.search.compiling import kernel
from routelearn.search.graph import below, draw
from routelearn.search.segments import log_exchange, undo_directed
from routelearn.search.three_opt import descend, push, swap_stretches, undo

# Places in the arrays `whole` and `real` that hold a search's scalars between calls.
HEAD, WAITING, MOVES, TRYING = 0, 1, 2, 3
LENGTH, BEST, BEFORE = 0, 1, 2
FEWEST = 5  # nodes that a kick needs; with fewer, local search finds the optimum


@kernel
def kick_and_repair(
    tour, pos, best, legs, near, breadth, stretch, symmetric, epsilon, temperature, queue, queued, whole, real, journal,
    touched, state, looks, kicks,
):  # fmt: skip
    """Up to `looks` nodes looked at and `kicks` kicks; gives (kicks made, looks left).

    A segment insertion (double bridge over neighbouring stretches, Martin, Otto and Felten 1991) kicks; the
    result is kept if it is shorter, or longer by less than an exponential draw times the temperature.
    """
    size = tour.shape[0]
    made = 0
    while True:
        if whole[WAITING] > 0:
            gain, moves, looks = descend(
                tour, pos, size, legs, near, breadth, symmetric, epsilon, queue, queued, whole, journal, whole[MOVES],
                touched, looks,
            )  # fmt: skip
            whole[MOVES] = moves
            real[LENGTH] -= gain
            if whole[WAITING] > 0:
                return made, looks
        if whole[TRYING]:
            whole[TRYING] = 0
            worse = real[LENGTH] - real[BEFORE]
            if worse > epsilon and worse > -temperature * np.log(1.0 - draw(state)) and whole[MOVES] <= len(journal):
                if symmetric:
                    undo(tour, pos, size, journal, whole[MOVES])
                else:
                    undo_directed(tour, pos, size, journal, whole[MOVES])
                real[LENGTH] = real[BEFORE]
        if real[LENGTH] < real[BEST] - epsilon:
            real[BEST] = real[LENGTH]
            for i in range(size):
                best[i] = tour[i]
        if made >= kicks or looks <= 0 or size < FEWEST:
            return made, looks
        made += 1
        whole[TRYING] = 1
        real[BEFORE] = real[LENGTH]
        longest = min(stretch, (size - 2) // 2)
        first, second = 1 + below(state, longest), 1 + below(state, longest)
        at = below(state, size)
        t1, t2 = tour[at], tour[(at + 1) % size]
        t5, t6 = tour[(at + first) % size], tour[(at + first + 1) % size]
        t3, t4 = tour[(at + first + second) % size], tour[(at + first + second + 1) % size]
        if symmetric:
            whole[MOVES] = swap_stretches(tour, pos, size, t1, t2, t3, t4, t5, t6, journal, 0)
        else:
            whole[MOVES] = log_exchange(tour, pos, size, (at + 1) % size, first, second, journal, 0)
        real[LENGTH] += legs[t1, t6] + legs[t3, t2] + legs[t5, t4] - legs[t1, t2] - legs[t5, t6] - legs[t3, t4]
        waiting = whole[WAITING]
        for node in (t1, t2, t3, t4, t5, t6):
            waiting = push(node, queue, queued, whole[HEAD], waiting)
        whole[WAITING] = waiting
