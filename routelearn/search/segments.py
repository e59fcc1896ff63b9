"""Moves for asymmetric legs: exchange two neighbouring stretches of a tour, or turn a short one round.

The exchange removes a -> a', b -> b', c -> c' (in this order along the tour) and adds a -> b', b -> c', c -> a': the
one pure 3-opt move that keeps every direction (Kanellakis and Papadimitriou 1980). Turning a stretch round changes
every leg in it, so its new length is added up leg by leg, and only short stretches are tried.
"""

from __future__ import annotations

from routelearn.search.compiling import kernel

LONGEST_TURN = 100  # positions


@kernel
def turn(tour, pos, size, start, length):
    """Reverse exactly the cyclic stretch of `length` positions from `start`."""
    i, j = start, start + length - 1
    if j >= size:
        j -= size
    for _ in range(length // 2):
        a, b = tour[i], tour[j]
        tour[i] = b
        pos[b] = i
        tour[j] = a
        pos[a] = j
        i += 1
        if i == size:
            i = 0
        j -= 1
        if j < 0:
            j = size - 1


@kernel
def exchange(tour, pos, size, start, first, second):
    """The stretches of `first` and `second` positions from `start` on change places, directions kept."""
    turn(tour, pos, size, start, first + second)
    turn(tour, pos, size, start, second)
    middle = start + second
    if middle >= size:
        middle -= size
    turn(tour, pos, size, middle, first)


@kernel
def log_exchange(tour, pos, size, start, first, second, journal, count):
    exchange(tour, pos, size, start, first, second)
    if count < journal.shape[0]:
        journal[count, 0] = start
        journal[count, 1] = first
        journal[count, 2] = second
    return count + 1


@kernel
def log_turn(tour, pos, size, start, length, journal, count):
    turn(tour, pos, size, start, length)
    if count < journal.shape[0]:
        journal[count, 0] = start
        journal[count, 1] = length
        journal[count, 2] = 0  # marks a turn: an exchange has no empty stretch
    return count + 1


@kernel
def undo_directed(tour, pos, size, journal, count):
    """Take back the first `count` moves of the journal, last first."""
    for k in range(count - 1, -1, -1):
        if journal[k, 2] == 0:
            turn(tour, pos, size, journal[k, 0], journal[k, 1])
        else:
            exchange(tour, pos, size, journal[k, 0], journal[k, 2], journal[k, 1])


@kernel
def longer_turned(tour, size, start, length, legs):
    """How much longer the legs inside the stretch are the other way round."""
    more = 0.0
    previous = tour[start]
    at = start
    for _ in range(length - 1):
        at = at + 1 if at + 1 < size else 0
        more += legs[tour[at], previous] - legs[previous, tour[at]]
        previous = tour[at]
    return more


@kernel
def improve_node_directed(node, tour, pos, size, legs, after, breadth, epsilon, journal, count, touched):
    """As `three_opt.improve_node`, for moves that remove the leg out of the node or the leg into it."""
    for side in range(2):
        at = pos[node] - side
        if at < 0:
            at += size
        a = tour[at]
        start = at + 1 if at + 1 < size else 0
        a_next = tour[start]
        leg_a = legs[a, a_next]
        for k in range(after.shape[1]):
            b_next = after[a, k]
            gain1 = leg_a - legs[a, b_next]
            if gain1 <= epsilon:
                break
            if pos[b_next] < 0 or b_next == a_next:
                continue
            # Turn a'..b round, with b_next in the part of b: a -> b and a' -> b' instead of a -> a' and b -> b'.
            length = pos[b_next] - start + 1
            if length <= 0:
                length += size
            if length <= LONGEST_TURN and length < size:
                beyond = tour[pos[b_next] + 1 if pos[b_next] + 1 < size else 0]
                gain = gain1 + legs[b_next, beyond] - legs[a_next, beyond]
                if gain > epsilon:
                    gain -= longer_turned(tour, size, start, length, legs)
                    if gain > epsilon:
                        count = log_turn(tour, pos, size, start, length, journal, count)
                        touched[0], touched[1], touched[2], touched[3] = a, a_next, b_next, beyond
                        return gain, count, 4
            first = pos[b_next] - start  # positions a'..b
            if first < 0:
                first += size
            b = tour[pos[b_next] - 1 if pos[b_next] > 0 else size - 1]
            leg_b = legs[b, b_next]
            for m in range(breadth):
                c_next = after[b, m]
                gain2 = gain1 + leg_b - legs[b, c_next]
                if gain2 <= epsilon:
                    break
                if pos[c_next] < 0:
                    continue
                both = pos[c_next] - start  # positions a'..c
                if both < 0:
                    both += size
                if both <= first:
                    continue
                c = tour[pos[c_next] - 1 if pos[c_next] > 0 else size - 1]
                gain = gain2 + legs[c, c_next] - legs[c, a_next]
                if gain > epsilon:
                    second, third = both - first, size - both
                    # Exchanging any two neighbours of the three stretches gives the same tour: move the fewest.
                    if first >= second and first >= third:
                        place = start + first
                        first, second = second, third
                    elif second >= third:
                        place = start + both
                        first, second = third, first
                    else:
                        place = start
                    count = log_exchange(tour, pos, size, place % size, first, second, journal, count)
                    touched[0], touched[1], touched[2] = a, a_next, b
                    touched[3], touched[4], touched[5] = b_next, c, c_next
                    return gain, count, 6
    # Turn node..b round, so that the node is left for one of its neighbours: node -> b', before -> b.
    start = pos[node]
    before = tour[start - 1 if start > 0 else size - 1]
    leg_in = legs[before, node]
    for k in range(after.shape[1]):
        b_next = after[node, k]
        gain1 = leg_in - legs[node, b_next]
        if gain1 <= epsilon:
            break
        if pos[b_next] < 0 or b_next == before:
            continue
        length = pos[b_next] - start
        if length < 0:
            length += size
        if length > LONGEST_TURN or length < 2:
            continue
        b = tour[pos[b_next] - 1 if pos[b_next] > 0 else size - 1]
        gain = gain1 + legs[b, b_next] - legs[before, b]
        if gain > epsilon:
            gain -= longer_turned(tour, size, start, length, legs)
            if gain > epsilon:
                count = log_turn(tour, pos, size, start, length, journal, count)
                touched[0], touched[1], touched[2], touched[3] = node, before, b, b_next
                return gain, count, 4
    return 0.0, count, 0
