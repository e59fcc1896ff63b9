"""Sequential 3-opt with neighbour lists and don't-look bits on a tour held as an array (symmetric legs).

A move removes (t1, t2), (t3, t4) and perhaps (t5, t6), adds (t2, t3), (t4, t5) and closes the tour, and keeps
every partial gain above 0 (Lin and Kernighan 1973); node insertion and Or-opt (Or 1976) are special cases.
Every change is a series of 2-opt moves, so a journal of those undoes it. `pos[node]` is -1 off the tour.
"""

from __future__ import annotations

from routelearn.search.compiling import kernel
from routelearn.search.segments import improve_node_directed, turn


@kernel
def reverse(tour, pos, size, i, j):
    """Reverse the cyclic stretch of positions i..j, or what gives the same cycle: the rest of it."""
    length = j - i + 1
    if length <= 0:
        length += size
    if 2 * length > size:
        i = j + 1 if j + 1 < size else 0
        length = size - length
    turn(tour, pos, size, i, length)


@kernel
def two_opt(tour, pos, size, t1, t2, t3, t4):
    """Replace the legs t1-t2 and t4-t3 by t2-t3 and t4-t1, whichever way round the array runs."""
    after = pos[t1] + 1
    if after == size:
        after = 0
    if tour[after] == t2:
        reverse(tour, pos, size, after, pos[t4])
    else:
        reverse(tour, pos, size, pos[t4], pos[t2])


@kernel
def log_two_opt(tour, pos, size, t1, t2, t3, t4, journal, count):
    two_opt(tour, pos, size, t1, t2, t3, t4)
    if count < journal.shape[0]:
        journal[count, 0] = t1
        journal[count, 1] = t2
        journal[count, 2] = t3
        journal[count, 3] = t4
    return count + 1


@kernel
def undo(tour, pos, size, journal, count):
    """Take back the first `count` moves of the journal, last first."""
    for k in range(count - 1, -1, -1):
        two_opt(tour, pos, size, journal[k, 0], journal[k, 3], journal[k, 2], journal[k, 1])


@kernel
def swap_stretches(tour, pos, size, t1, t2, t3, t4, t5, t6, journal, count):
    """t1 [t2..t5] [t6..t3] t4 becomes t1 [t6..t3] [t2..t5] t4: a double bridge, or an Or-opt move."""
    count = log_two_opt(tour, pos, size, t1, t2, t4, t3, journal, count)
    count = log_two_opt(tour, pos, size, t1, t3, t5, t6, journal, count)
    return log_two_opt(tour, pos, size, t3, t5, t4, t2, journal, count)


@kernel
def push(node, queue, queued, head, waiting):
    """Put a node in the ring of nodes to look at; the number waiting."""
    if queued[node]:
        return waiting
    queued[node] = True
    at = head + waiting
    if at >= queue.shape[0]:
        at -= queue.shape[0]
    queue[at] = node
    return waiting + 1


@kernel
def improve_node(t1, tour, pos, size, legs, near, breadth, epsilon, journal, count, touched):
    """Look for an improving move that removes a leg of t1, and make the first found.

    Gives (gain, journal count, number of nodes written to `touched`); gain 0 = none.
    """
    p1 = pos[t1]
    wide = near.shape[1]
    for side in range(2):
        forward = side == 0
        p2 = p1 + 1 if forward else p1 - 1
        if p2 == size:
            p2 = 0
        elif p2 < 0:
            p2 = size - 1
        t2 = tour[p2]
        leg12 = legs[t1, t2]
        for k in range(wide):
            t3 = near[t2, k]
            gain1 = leg12 - legs[t2, t3]
            if gain1 <= epsilon:
                break
            p3 = pos[t3]
            if p3 < 0 or t3 == t1:
                continue
            for other in range(2):
                # Along the way from t2 round to t1: t4 lies before t3 (a 2-opt move) or after it (closes a cycle).
                before = other == 0
                p4 = p3 - 1 if before == forward else p3 + 1
                if p4 == size:
                    p4 = 0
                elif p4 < 0:
                    p4 = size - 1
                t4 = tour[p4]
                if t4 == t2:
                    continue
                leg34 = legs[t3, t4]
                if before:
                    gain = gain1 + leg34 - legs[t4, t1]
                    if gain > epsilon:
                        count = log_two_opt(tour, pos, size, t1, t2, t3, t4, journal, count)
                        touched[0], touched[1], touched[2], touched[3] = t1, t2, t3, t4
                        return gain, count, 4
                # Places along the way from t2 (0) to t1 (size - 1).
                way3 = p3 - p2 if forward else p2 - p3
                if way3 < 0:
                    way3 += size
                for m in range(breadth):
                    t5 = near[t4, m]
                    gain2 = gain1 + leg34 - legs[t4, t5]
                    if gain2 <= epsilon:
                        break
                    p5 = pos[t5]
                    if p5 < 0 or t5 == t3:
                        continue
                    way5 = p5 - p2 if forward else p2 - p5
                    if way5 < 0:
                        way5 += size
                    if before:
                        # After the 2-opt move the way is t4..t2 (turned round), t3..t1.
                        turned = way5 < way3
                        p6 = p5 + 1 if turned == forward else p5 - 1
                        if p6 == size:
                            p6 = 0
                        elif p6 < 0:
                            p6 = size - 1
                        t6 = tour[p6]
                        gain = gain2 + legs[t5, t6] - legs[t6, t1]
                        if gain > epsilon:
                            count = log_two_opt(tour, pos, size, t1, t2, t3, t4, journal, count)
                            count = log_two_opt(tour, pos, size, t1, t4, t5, t6, journal, count)
                            touched[0], touched[1], touched[2] = t1, t2, t3
                            touched[3], touched[4], touched[5] = t4, t5, t6
                            return gain, count, 6
                    elif way5 <= way3:
                        # t2..t3 is a cycle of its own: open it at t5 on either side, but not at the added leg.
                        for way in range(2):
                            onward = way == 0
                            if not onward and t5 == t2:
                                continue
                            p6 = p5 + 1 if onward == forward else p5 - 1
                            if p6 == size:
                                p6 = 0
                            elif p6 < 0:
                                p6 = size - 1
                            t6 = tour[p6]
                            gain = gain2 + legs[t5, t6] - legs[t6, t1]
                            if gain > epsilon:
                                if onward:
                                    count = swap_stretches(tour, pos, size, t1, t2, t3, t4, t5, t6, journal, count)
                                else:
                                    count = log_two_opt(tour, pos, size, t1, t2, t5, t6, journal, count)
                                    count = log_two_opt(tour, pos, size, t2, t5, t4, t3, journal, count)
                                touched[0], touched[1], touched[2] = t1, t2, t3
                                touched[3], touched[4], touched[5] = t4, t5, t6
                                return gain, count, 6
    return 0.0, count, 0


@kernel
def descend(
    tour, pos, size, legs, near, breadth, symmetric, epsilon, queue, queued, ring, journal, count, touched, looks
):  # fmt: skip
    """Work off the queue (`ring` holds its head and length) with at most `looks` nodes looked at.

    Gives (total gain, journal count, looks left); the queue is empty unless the looks ran out.
    """
    head, waiting = ring[0], ring[1]
    total = 0.0
    while waiting > 0 and looks > 0:
        node = queue[head]
        head += 1
        if head == queue.shape[0]:
            head = 0
        waiting -= 1
        queued[node] = False
        if pos[node] < 0:
            continue
        looks -= 1
        if symmetric:
            gain, count, ends = improve_node(
                node, tour, pos, size, legs, near, breadth, epsilon, journal, count, touched
            )  # fmt: skip
        else:
            gain, count, ends = improve_node_directed(
                node, tour, pos, size, legs, near, breadth, epsilon, journal, count, touched
            )  # fmt: skip
        if ends > 0:
            total += gain
            for k in range(ends):
                waiting = push(touched[k], queue, queued, head, waiting)
            waiting = push(node, queue, queued, head, waiting)
    ring[0], ring[1] = head, waiting
    return total, count, looks
