"""Compiled changes to a sequence of nodes, for the general engine: it knows lengths, and nothing of a problem's rules.

A sequence is a tour in the problem's encoding; with a depot, every 0 in it is a visit to the depot. Each proposal
copies the present sequence and applies one or two random moves that are guided by the lengths of legs.
"""

from __future__ import annotations

import numpy as np

from routelearn.search.compiling import kernel
from routelearn.search.graph import below, draw

MOST_REMOVED = 12  # nodes that one ruin takes away
LONGEST = 3  # nodes of a stretch that is moved
FEATURES = 7  # of a sequence, from which its cost is guessed


@kernel
def find(sequence, size, node):
    """The position of the node, -1 if it is not there."""
    for i in range(size):
        if sequence[i] == node:
            return i
    return -1


@kernel
def insert_at(sequence, size, place, node):
    for i in range(size, place, -1):
        sequence[i] = sequence[i - 1]
    sequence[place] = node
    return size + 1


@kernel
def remove_at(sequence, size, place):
    for i in range(place, size - 1):
        sequence[i] = sequence[i + 1]
    return size - 1


@kernel
def reverse(sequence, low, high):
    """Turn the stretch from low to high, both included."""
    while low < high:
        sequence[low], sequence[high] = sequence[high], sequence[low]
        low += 1
        high -= 1


@kernel
def insert_cheaply(sequence, size, node, legs, has_depot, blur, random):
    """Insert the node where its detour, blurred, is least; before the first or after the last one too."""
    cheapest, place = np.inf, size
    for i in range(size + 1):
        if has_depot:
            before = sequence[i - 1] if i > 0 else 0
            after = sequence[i] if i < size else 0
        else:
            before = sequence[i - 1] if i > 0 else sequence[size - 1]
            after = sequence[i] if i < size else sequence[0]
        detour = legs[before, node] + legs[node, after] - legs[before, after]
        detour += blur * draw(random) * (legs[before, node] + legs[node, after])
        if detour < cheapest:
            cheapest, place = detour, i
    return insert_at(sequence, size, place, node)


@kernel
def random_customer(sequence, size, first, random):
    """The position of a random node that is not the depot, -1 if some draws find none."""
    for _ in range(8):
        place = below(random, size)
        if sequence[place] >= first:
            return place
    return -1


@kernel
def near_position(sequence, size, node, near, first, random):
    """The position of one of the nearest nodes, the nearer the likelier; -1 if it is not in the sequence."""
    count = near.shape[1]
    rank = min(count - 1, int(draw(random) * draw(random) * count))
    other = near[node, rank]
    return find(sequence, size, other) if other >= first else -1


@kernel
def near_pair(sequence, size, near, first, random):
    """The positions of a random node and of one near it, the second -1 if there is none."""
    i = random_customer(sequence, size, first, random)
    return i, near_position(sequence, size, sequence[i], near, first, random) if i >= 0 else -1


@kernel
def route_end(sequence, size, place):
    """The position after the last node of the route that the position is in."""
    while place < size and sequence[place] != 0:
        place += 1
    return place


@kernel
def move_stretch(sequence, size, near, first, random, scratch):
    """Or-opt: a few nodes go beside a near one, perhaps turned."""
    i = random_customer(sequence, size, first, random)
    if i < 0:
        return size
    count = 1 + below(random, LONGEST)
    j = i
    while j < size and j - i < count and sequence[j] >= first:
        scratch[j - i] = sequence[j]
        j += 1
    count = j - i
    near_end = scratch[0] if draw(random) < 0.5 else scratch[count - 1]
    for _ in range(count):
        size = remove_at(sequence, size, i)
    place = near_position(sequence, size, near_end, near, first, random)
    if place < 0:
        place = below(random, size + 1) if size else 0
    elif draw(random) < 0.5:
        place += 1
    turned = draw(random) < 0.5
    for k in range(count):
        size = insert_at(sequence, size, place + (0 if turned else k), scratch[k])
    return size


@kernel
def turn_stretch(sequence, size, near, first, random):
    """2-opt: a stretch is turned so that two near nodes meet."""
    i, j = near_pair(sequence, size, near, first, random)
    if j < 0:
        return size
    low, high = min(i, j), max(i, j)
    if draw(random) < 0.5:
        reverse(sequence, low + 1, high)
    else:
        reverse(sequence, low, high - 1)
    return size


@kernel
def swap_nodes(sequence, size, near, first, random):
    """Two nodes change places: one, and a neighbour of one that is near it."""
    i, j = near_pair(sequence, size, near, first, random)
    if j < 0:
        return size
    if draw(random) < 0.7:
        j = min(size - 1, max(0, j + (1 if draw(random) < 0.5 else -1)))
    if sequence[j] >= first:
        sequence[i], sequence[j] = sequence[j], sequence[i]
    return size


@kernel
def swap_tails(sequence, size, near, random, scratch):
    """2-opt*: two routes exchange their ends, so that two near nodes meet."""
    i, j = near_pair(sequence, size, near, 1, random)
    if j < 0:
        return size
    if i < j:
        i, cut = i + 1, j
    else:
        i, cut = j + 1, i
    end, other_end = route_end(sequence, size, i), route_end(sequence, size, cut)
    if end >= cut:  # in one route
        return size
    # ... [i, end) [end, cut) [cut, other_end) ... -> the first and the third change places
    place = i
    for k in range(i, other_end):
        scratch[k - i] = sequence[k]
    for low, high in ((cut, other_end), (end, cut), (i, end)):
        for k in range(low, high):
            sequence[place] = scratch[k - i]
            place += 1
    return size


@kernel
def move_depot(sequence, size, random):
    """A visit to the depot comes or goes."""
    if draw(random) < 0.5:
        place = find(sequence, size, 0)
        skips = below(random, 8)
        for i in range(size):
            if sequence[i] == 0:
                place = i
                if skips == 0:
                    break
                skips -= 1
        return remove_at(sequence, size, place) if place >= 0 else size
    return insert_at(sequence, size, below(random, size + 1), 0)


@kernel
def swap_blocks(sequence, size, has_depot, random, scratch):
    """Two neighbouring blocks change places: whole routes where there is a depot, else stretches (double bridge)."""
    if size < 4:
        return size
    a, b, c = below(random, size), below(random, size), below(random, size)
    a, b, c = min(a, b, c), a + b + c - min(a, b, c) - max(a, b, c), max(a, b, c)
    if has_depot:
        while a > 0 and sequence[a - 1] != 0:
            a -= 1
        b, c = route_end(sequence, size, b) + 1, route_end(sequence, size, c) + 1
        if c > size or b >= c:
            return size
    for k in range(a, c):
        scratch[k - a] = sequence[k]
    place = a
    for k in range(b - a, c - a):
        sequence[place] = scratch[k]
        place += 1
    for k in range(b - a):
        sequence[place] = scratch[k]
        place += 1
    return size


@kernel
def ruin_and_insert(sequence, size, legs, near, first, has_depot, random, scratch, blur):
    """Nodes near a centre, or a stretch, are taken away and inserted again at their cheapest places."""
    i = random_customer(sequence, size, first, random)
    if i < 0:
        return size
    wanted = 1 + int(draw(random) * draw(random) * min(MOST_REMOVED, size))
    removed = 0
    if draw(random) < 0.3:
        while removed < wanted and i < size:
            if sequence[i] >= first:
                scratch[removed] = sequence[i]
                removed += 1
                size = remove_at(sequence, size, i)
            else:
                i += 1
    else:
        centre = sequence[i]
        scratch[0], removed = centre, 1
        size = remove_at(sequence, size, i)
        for k in range(near.shape[1]):
            if removed >= wanted:
                break
            if near[centre, k] >= first and draw(random) < 0.7:
                place = find(sequence, size, near[centre, k])
                if place >= 0:
                    scratch[removed] = near[centre, k]
                    removed += 1
                    size = remove_at(sequence, size, place)
    for k in range(removed - 1, 0, -1):  # in random order
        j = below(random, k + 1)
        scratch[k], scratch[j] = scratch[j], scratch[k]
    for k in range(removed):
        if size == 0:
            size = insert_at(sequence, 0, 0, scratch[k])
        else:
            size = insert_cheaply(sequence, size, scratch[k], legs, has_depot, blur, random)
    return size


@kernel
def drop_or_add(sequence, size, legs, first, has_depot, random):
    """A node goes, or one that is not there comes at its cheapest place, or both."""
    what = below(random, 3)
    if what != 1 and size > 1:
        i = random_customer(sequence, size, first, random)
        if i >= 0:
            size = remove_at(sequence, size, i)
    if what != 0:
        for _ in range(8):
            node = first + below(random, legs.shape[0] - first)
            if find(sequence, size, node) < 0:
                return insert_cheaply(sequence, size, node, legs, has_depot, 0.2, random)
    return size


@kernel
def measure(sequence, size, legs, has_depot, features):
    """The features: 1, length between nodes, from the depot, to it, visits to it, all visits, sum of arrivals."""
    features[:] = 0.0
    features[0] = 1.0
    last = 0 if has_depot else sequence[size - 1]
    gone = 0.0
    for i in range(size):
        node = sequence[i]
        across = legs[last, node]
        gone += across
        if not has_depot or (last != 0 and node != 0):
            features[1] += across
        elif node != 0:
            features[2] += across
        else:
            features[3] += across
        if has_depot and node == 0:
            features[4] += 1.0
            gone = 0.0
        else:
            features[5] += 1.0
            features[6] += gone
        last = node
    if has_depot and last != 0:
        features[3] += legs[last, 0]


@kernel
def digest(sequence, size):
    """A number by which sequences are told apart."""
    mixed = np.uint64(14695981039346656037)
    for i in range(size):
        mixed = (mixed ^ np.uint64(sequence[i] + 1)) * np.uint64(1099511628211)
        mixed ^= mixed >> np.uint64(29)
    return mixed


@kernel
def propose(present, legs, guide, near, has_depot, optional, random, orders, sizes, features, digests, scratch):
    """Fill the rows of `orders` [P, L] with changed copies of the present sequence; -1 fills them up.

    `guide` has the lengths by which nodes are inserted. `optional`: some nodes are left out.
    """
    first = 1 if has_depot else 0
    room = orders.shape[1]
    for p in range(orders.shape[0]):
        sequence = orders[p]
        size = len(present)
        for i in range(size):
            sequence[i] = present[i]
        moves = 1 + (draw(random) < 0.3) + (draw(random) < 0.1)
        for _ in range(moves):
            if size + 2 >= room or size == 0:
                break
            kind = draw(random)
            if optional and draw(random) < 0.4:
                size = drop_or_add(sequence, size, guide, first, has_depot, random)
            elif kind < 0.3:
                size = move_stretch(sequence, size, near, first, random, scratch)
            elif kind < 0.45:
                size = turn_stretch(sequence, size, near, first, random)
            elif kind < 0.6:
                size = swap_nodes(sequence, size, near, first, random)
            elif kind < 0.7 and has_depot:
                size = swap_tails(sequence, size, near, random, scratch)
            elif kind < 0.76 and has_depot:
                size = move_depot(sequence, size, random)
            elif kind < 0.79:
                size = swap_blocks(sequence, size, has_depot, random, scratch)
            else:
                blur = 0.0 if draw(random) < 0.3 else 0.5 * draw(random)
                size = ruin_and_insert(sequence, size, guide, near, first, has_depot, random, scratch, blur)
        sequence[size:] = -1
        sizes[p] = size
        measure(sequence, size, legs, has_depot, features[p])
        digests[p] = digest(sequence, size)
