"""The numba loops behind score.py: the log-probability of recorded choices, and its gradient.

Sixteen queries of one instance make a block, and a vector holds one number of each of them: softmax and sums over
nodes need no look across a vector. A block works through the nodes alone that any of its queries may choose, listed
at its beginning: consecutive steps of a tour leave open much the same nodes, in a TSP half of all on average.

Heads are sixteen columns wide, so what a block holds of a head is a tile, sixteen vectors: either [column][query]
or, transposed, [query][column]. All eleven matrix products are then rows of one array times a tile, added to rows of
another (`_multiply`), or a tile that sums rows by weights (`_mix`).
All arrays are flat. H heads, D = 16 H, N nodes, Q queries, K context nodes, C context scalars, G step features.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from routelearn.policies.kernels.cpu.vectors import (
    LANES,
    add,
    divide,
    exp,
    load,
    maximum,
    multiply_add,
    splat,
    spread,
    store,
    subtract,
    transpose,
    where_positive,
)

TILE = LANES * LANES
LOW = np.float32(-1e30)  # added to the score of a node that is not feasible
LEAST = np.float32(1e-30)  # of a sum that something is divided by


@njit
def _room(length):
    """An array whose vectors do not lie across two lines of the processor's cache."""
    raw = np.empty(length + LANES, np.float32)
    skip = -raw.ctypes.data % 64 // 4
    return raw[skip : skip + length]


@njit
def _lists(nodes):
    """Room for two lists of nodes and a place for each; where adjacent vectors begin."""
    made = np.empty((4, nodes + 1), np.int64)
    for i in range(nodes + 1):
        made[2, i], made[3, i] = 0, i * LANES
    return made[0], made[1], made[2], made[3]


@njit
def _multiply(source, start, rows, count, tile, out, to, places):
    """out[to + places[i]] += sum over c of source[start + rows[i] + c] * tile_c; the tile stays in registers."""
    t0, t1, t2, t3 = load(tile, 0), load(tile, LANES), load(tile, 2 * LANES), load(tile, 3 * LANES)
    t4, t5, t6, t7 = load(tile, 4 * LANES), load(tile, 5 * LANES), load(tile, 6 * LANES), load(tile, 7 * LANES)
    t8, t9, t10, t11 = load(tile, 8 * LANES), load(tile, 9 * LANES), load(tile, 10 * LANES), load(tile, 11 * LANES)
    t12, t13, t14, t15 = load(tile, 12 * LANES), load(tile, 13 * LANES), load(tile, 14 * LANES), load(tile, 15 * LANES)
    for i in range(count):
        at, place = start + rows[i], to + places[i]
        even, odd = load(out, place), splat(np.float32(0))
        even = multiply_add(spread(source, at), t0, even)
        odd = multiply_add(spread(source, at + 1), t1, odd)
        even = multiply_add(spread(source, at + 2), t2, even)
        odd = multiply_add(spread(source, at + 3), t3, odd)
        even = multiply_add(spread(source, at + 4), t4, even)
        odd = multiply_add(spread(source, at + 5), t5, odd)
        even = multiply_add(spread(source, at + 6), t6, even)
        odd = multiply_add(spread(source, at + 7), t7, odd)
        even = multiply_add(spread(source, at + 8), t8, even)
        odd = multiply_add(spread(source, at + 9), t9, odd)
        even = multiply_add(spread(source, at + 10), t10, even)
        odd = multiply_add(spread(source, at + 11), t11, odd)
        even = multiply_add(spread(source, at + 12), t12, even)
        odd = multiply_add(spread(source, at + 13), t13, odd)
        even = multiply_add(spread(source, at + 14), t14, even)
        odd = multiply_add(spread(source, at + 15), t15, odd)
        store(out, place, add(even, odd))


@njit
def _mix(source, start, rows, count, weights, tile):
    """tile_c = sum over i of source[start + rows[i] + c] * weights_i; eight at a time stay in registers."""
    for c in range(0, LANES, 8):
        zero = splat(np.float32(0))
        s0, s1, s2, s3, s4, s5, s6, s7 = zero, zero, zero, zero, zero, zero, zero, zero
        for i in range(count):
            at, weight = start + rows[i] + c, load(weights, i * LANES)
            s0 = multiply_add(spread(source, at), weight, s0)
            s1 = multiply_add(spread(source, at + 1), weight, s1)
            s2 = multiply_add(spread(source, at + 2), weight, s2)
            s3 = multiply_add(spread(source, at + 3), weight, s3)
            s4 = multiply_add(spread(source, at + 4), weight, s4)
            s5 = multiply_add(spread(source, at + 5), weight, s5)
            s6 = multiply_add(spread(source, at + 6), weight, s6)
            s7 = multiply_add(spread(source, at + 7), weight, s7)
        at = c * LANES
        store(tile, at, s0)
        store(tile, at + LANES, s1)
        store(tile, at + 2 * LANES, s2)
        store(tile, at + 3 * LANES, s3)
        store(tile, at + 4 * LANES, s4)
        store(tile, at + 5 * LANES, s5)
        store(tile, at + 6 * LANES, s6)
        store(tile, at + 7 * LANES, s7)


@njit
def _add_row(factors, tile, out, start):
    """out[start : start + 16] += sum over q of factors[q] * tile_q."""
    total = load(out, start)
    for q in range(LANES):
        total = multiply_add(spread(factors, q), load(tile, q * LANES), total)
    store(out, start, total)


@njit
def _look(feasible, at, lanes, nodes, width, listed, rows, shut):
    """List the nodes that any of `lanes` queries may choose, and say how many; shut [node][query] is LOW or 0.

    `rows` is where a listed node's row begins in an instance's keys, values and pointer keys.
    """
    count = 0
    for n in range(nodes):
        row, some = count * LANES, False
        for lane in range(lanes):
            may = feasible[at + lane * nodes + n]
            some |= may
            shut[row + lane] = np.float32(0) if may else LOW
        for lane in range(lanes, LANES):
            shut[row + lane] = LOW
        listed[count], rows[count] = n, n * width
        count += int(some)
    return count


@njit
def _look_closer(extra, at, lanes, nodes, groups, listed, count, features):
    """Step features [G][node][query] of the listed nodes from extra [Q, N, G]."""
    for g in range(groups):
        for i in range(count):
            row, start = (g * nodes + i) * LANES, (at + listed[i]) * groups + g
            for lane in range(LANES):
                features[row + lane] = extra[start + lane * nodes * groups] if lane < lanes else np.float32(0)


@njit
def _ask(b, first, lanes, sizes, tables, empty, scalar_weights, context, scalars, tiles):
    """Eq. 4 and 5: the block's queries, a tile [query][column] for each head."""
    heads, nodes, slots, measures = sizes[0], sizes[1], sizes[3], sizes[4]
    width = heads * LANES
    for at in range(0, heads * TILE, LANES):
        store(tiles, at, splat(np.float32(0)))
    for lane in range(lanes):
        for slot in range(slots):
            node, row = context[(first + lane) * slots + slot], b * slots + slot
            for h in range(heads):
                at = h * TILE + lane * LANES
                if node < 0:
                    part = load(empty, row * width + h * LANES)
                else:
                    part = load(tables, (row * nodes + node) * width + h * LANES)
                store(tiles, at, add(load(tiles, at), part))
        for c in range(measures):
            value = splat(scalars[(first + lane) * measures + c])
            for h in range(heads):
                at = h * TILE + lane * LANES
                store(tiles, at, multiply_add(value, load(scalar_weights, c * width + h * LANES), load(tiles, at)))


# ------------------------------------------------------------------------------------------- step features
# Eq. 23 without a key per step: q . (k + w g) = q . k + (q . w) g. Features are [G][node][query], G vectors w `width`
# apart in `step`, from `at` on.


@njit
def _tilt(tile, step, at, width, groups, features, reach, count, out):
    """out_i += sum over g of (tile . w_g) * feature_gi: what products with rows gain by the features."""
    for g in range(groups):
        along = splat(np.float32(0))
        for c in range(LANES):
            along = multiply_add(spread(step, at + g * width + c), load(tile, c * LANES), along)
        for i in range(0, count * LANES, LANES):
            store(out, i, multiply_add(along, load(features, g * reach + i), load(out, i)))


@njit(forceinline=True)
def _moment(weights, features, start, count):
    """A vector: for each query the sum over nodes of weight times feature."""
    total = splat(np.float32(0))
    for i in range(0, count * LANES, LANES):
        total = multiply_add(load(weights, i), load(features, start + i), total)
    return total


@njit
def _lean(weights, features, reach, count, step, at, width, groups, tile):
    """tile += sum over g of (sum over i of weights_i * feature_gi) * w_g: what sums of rows gain by the features."""
    for g in range(groups):
        moment = _moment(weights, features, g * reach, count)
        for c in range(LANES):
            changed = multiply_add(spread(step, at + g * width + c), moment, load(tile, c * LANES))
            store(tile, c * LANES, changed)


@njit
def _lean_gradient(weights, features, reach, count, rows, groups, room, d_step, at, width):
    """d w_g += sum over queries of (sum over i of weights_i * feature_gi) * rows, a tile [query][column]."""
    for g in range(groups):
        store(room, 0, _moment(weights, features, g * reach, count))
        _add_row(room, rows, d_step, at + g * width)


@njit
def _clear(out, start, length):
    zero = splat(np.float32(0))
    for i in range(start, start + length, LANES):
        store(out, i, zero)


@njit
def _copy(source, count, out):
    for i in range(0, count * LANES, LANES):
        store(out, i, load(source, i))


@njit
def _weigh(scores, shut, count):
    """Softmax over nodes in place of the scores; exactly 0 where shut, as products of tiny numbers would be slow."""
    top, zero, one = splat(LOW), splat(np.float32(0)), splat(np.float32(1))
    for i in range(0, count * LANES, LANES):
        top = maximum(top, load(scores, i))
    total = splat(LEAST)
    for i in range(0, count * LANES, LANES):
        weight = where_positive(add(load(shut, i), one), exp(subtract(load(scores, i), top)))
        store(scores, i, weight)
        total = add(total, weight)
    share = divide(one, total)
    for i in range(0, count * LANES, LANES):
        store(scores, i, multiply_add(load(scores, i), share, zero))


@njit
def _attend(keys, values, own, step, at, sizes, rows, adjacent, count, shut, features, query, weights, glimpse):
    """Eq. 6 and 12 for one head: softmax weights [node][query] and the glimpse, a tile [column][query]."""
    width, groups, reach = sizes[0] * LANES, sizes[5], sizes[1] * LANES
    _copy(shut, count, weights)
    _tilt(query, step, at, width, groups, features, reach, count, weights)
    _multiply(keys, own, rows, count, query, weights, 0, adjacent)
    _weigh(weights, shut, count)
    _mix(values, own, rows, count, weights, glimpse)
    _lean(weights, features, reach, count, step, at + groups * width, width, groups, glimpse)


@njit
def _settle(compatibility, shut, count, clip, chosen, first, lanes, listed, place, room, log_prob, slopes, kept):
    """Eq. 7 and 8: log-probabilities of the chosen nodes, and their slopes d log p / d compatibility, to `slopes`."""
    zero, one, scale = splat(np.float32(0)), splat(np.float32(1)), splat(clip)
    top = splat(LOW)
    for i in range(0, count * LANES, LANES):  # tanh by two powers of which the larger is 1
        twice = add(load(compatibility, i), load(compatibility, i))
        high = maximum(twice, zero)
        falling, rising = exp(subtract(zero, high)), exp(subtract(twice, high))
        bent = divide(subtract(rising, falling), add(rising, falling))
        store(compatibility, i, bent)
        top = maximum(top, multiply_add(bent, scale, load(shut, i)))
    total = splat(LEAST)
    for i in range(0, count * LANES, LANES):
        mass = exp(subtract(multiply_add(load(compatibility, i), scale, load(shut, i)), top))
        mass = where_positive(add(load(shut, i), one), mass)
        store(slopes, kept + i, mass)
        total = add(total, mass)
    share = divide(one, total)
    for i in range(0, count * LANES, LANES):
        bent = load(compatibility, i)
        slope = multiply_add(subtract(one, multiply_add(bent, bent, zero)), scale, zero)
        mass = multiply_add(load(slopes, kept + i), share, zero)
        store(slopes, kept + i, subtract(zero, multiply_add(mass, slope, zero)))
    store(room, 0, top)
    store(room, LANES, total)
    for i in range(count):
        place[listed[i]] = i
    for lane in range(lanes):
        i = place[chosen[first + lane]]
        at = i * LANES + lane
        if i < count and listed[i] == chosen[first + lane] and shut[at] == 0:  # its place may be an earlier block's
            bent = compatibility[at]
            slopes[kept + at] += clip * (np.float32(1) - bent * bent)
            log_prob[first + lane] = clip * bent - room[lane] - np.log(room[LANES + lane])
        else:
            log_prob[first + lane] = -np.inf


@njit(cache=True, nogil=True)
def score(
    low, high, sizes, keys, values, pointer, tables, empty, scalar_weights, step, context, scalars, feasible, extra,
    chosen, clip, log_prob, slopes,
):  # fmt: skip
    """Instances low..high: log_prob [B, Q], and slopes [B, blocks, N, 16], of which a block fills its listed nodes.

    sizes = (H, N, Q, K, C, G); then the fields of `Cache`, those of `Seen` and the chosen nodes [B, Q].
    """
    heads, nodes, queries, groups = sizes[0], sizes[1], sizes[2], sizes[5]
    width, blocks, reach = heads * LANES, -(-queries // LANES), nodes * LANES
    into_pointer = 2 * groups * width  # where that part of `step` begins
    listed, rows, place, adjacent = _lists(nodes)
    shut, weights, compatibility = _room(reach + LANES), _room(reach), _room(reach)
    features, asked, room = _room(groups * reach), _room(heads * TILE), _room(2 * LANES)
    query, glimpse = _room(TILE), _room(TILE)
    for b in range(low, high):
        for block in range(blocks):
            first, lanes = b * queries + block * LANES, min(LANES, queries - block * LANES)
            count = _look(feasible, first * nodes, lanes, nodes, width, listed, rows, shut)
            _look_closer(extra, first * nodes, lanes, nodes, groups, listed, count, features)
            _ask(b, first, lanes, sizes, tables, empty, scalar_weights, context, scalars, asked)
            _clear(compatibility, 0, count * LANES)
            for h in range(heads):
                column, own = h * LANES, b * nodes * width + h * LANES
                transpose(asked[h * TILE :], query)
                _attend(
                    keys, values, own, step, column, sizes, rows, adjacent, count, shut, features, query, weights,
                    glimpse,
                )  # fmt: skip
                _multiply(pointer, own, rows, count, glimpse, compatibility, 0, adjacent)
                _tilt(glimpse, step, into_pointer + column, width, groups, features, reach, count, compatibility)
            kept = (b * blocks + block) * reach
            _settle(compatibility, shut, count, clip, chosen, first, lanes, listed, place, room, log_prob, slopes, kept)


@njit
def _put_back(b, first, lanes, h, sizes, context, d_query, d_tables, d_empty):
    """A query's gradient goes to the rows it was gathered from."""
    heads, nodes, slots = sizes[0], sizes[1], sizes[3]
    width = heads * LANES
    for lane in range(lanes):
        change = load(d_query, lane * LANES)
        for slot in range(slots):
            node = context[(first + lane) * slots + slot]
            if node < 0:
                at = (b * slots + slot) * width + h * LANES
                store(d_empty, at, add(load(d_empty, at), change))
            else:
                at = ((b * slots + slot) * nodes + node) * width + h * LANES
                store(d_tables, at, add(load(d_tables, at), change))


@njit(cache=True, nogil=True)
def score_gradient(
    low, high, sizes, keys, values, pointer, tables, empty, scalar_weights, step, context, scalars, feasible, extra,
    slopes, upstream, d_keys, d_values, d_pointer, d_tables, d_empty, d_scalars, d_step,
):  # fmt: skip
    """The gradient of `score` for instances low..high, from upstream [B, Q]; the glimpses are computed again.

    Gradients have the shapes of what they belong to, d_scalars and d_step with [B] before them; all are overwritten.
    """
    heads, nodes, queries, slots, measures, groups = sizes
    width, blocks, reach = heads * LANES, -(-queries // LANES), nodes * LANES
    into_values, into_pointer = groups * width, 2 * groups * width  # where these parts of `step` begin
    listed, rows, _, adjacent = _lists(nodes)
    shut, weights, pulls, d_scores = _room(reach + LANES), _room(reach), _room(reach), _room(reach)
    features, asked, room = _room(groups * reach), _room(heads * TILE), _room(LANES)
    query, glimpse, d_glimpse, d_query = _room(TILE), _room(TILE), _room(TILE), _room(TILE)  # [column][query]
    glimpse_rows, d_glimpse_rows, d_query_rows = _room(TILE), _room(TILE), _room(TILE)  # [query][column]
    zero = splat(np.float32(0))
    for b in range(low, high):
        _clear(d_keys, b * nodes * width, nodes * width)
        _clear(d_values, b * nodes * width, nodes * width)
        _clear(d_pointer, b * nodes * width, nodes * width)
        _clear(d_tables, b * slots * nodes * width, slots * nodes * width)
        _clear(d_empty, b * slots * width, slots * width)
        _clear(d_scalars, b * measures * width, measures * width)
        _clear(d_step, b * 3 * groups * width, 3 * groups * width)
        for block in range(blocks):
            first, lanes = b * queries + block * LANES, min(LANES, queries - block * LANES)
            count = _look(feasible, first * nodes, lanes, nodes, width, listed, rows, shut)
            _look_closer(extra, first * nodes, lanes, nodes, groups, listed, count, features)
            _ask(b, first, lanes, sizes, tables, empty, scalar_weights, context, scalars, asked)
            for lane in range(LANES):
                room[lane] = upstream[first + lane] if lane < lanes else np.float32(0)
            kept, above = (b * blocks + block) * reach, load(room, 0)
            for i in range(0, count * LANES, LANES):
                store(pulls, i, multiply_add(load(slopes, kept + i), above, zero))
            for h in range(heads):
                column, own = h * LANES, b * nodes * width + h * LANES
                query_rows = asked[h * TILE :]
                transpose(query_rows, query)
                _attend(
                    keys, values, own, step, column, sizes, rows, adjacent, count, shut, features, query, weights,
                    glimpse,
                )  # fmt: skip
                transpose(glimpse, glimpse_rows)
                _mix(pointer, own, rows, count, pulls, d_glimpse)
                _lean(pulls, features, reach, count, step, into_pointer + column, width, groups, d_glimpse)
                transpose(d_glimpse, d_glimpse_rows)
                _multiply(pulls, 0, adjacent, count, glimpse_rows, d_pointer, own, rows)
                _multiply(weights, 0, adjacent, count, d_glimpse_rows, d_values, own, rows)
                _clear(d_scores, 0, count * LANES)
                _tilt(d_glimpse, step, into_values + column, width, groups, features, reach, count, d_scores)
                _multiply(values, own, rows, count, d_glimpse, d_scores, 0, adjacent)
                # sum_n w_n dw_n, over nodes, equals the glimpse's product with its gradient, over columns.
                along = zero
                for i in range(0, TILE, LANES):
                    along = multiply_add(load(glimpse, i), load(d_glimpse, i), along)
                for i in range(0, count * LANES, LANES):
                    change = subtract(load(d_scores, i), along)
                    store(d_scores, i, multiply_add(load(weights, i), change, zero))
                _mix(keys, own, rows, count, d_scores, d_query)
                _multiply(d_scores, 0, adjacent, count, query_rows, d_keys, own, rows)
                _lean(d_scores, features, reach, count, step, column, width, groups, d_query)
                into = b * 3 * groups * width + column
                _lean_gradient(d_scores, features, reach, count, query_rows, groups, room, d_step, into, width)
                into += into_values
                _lean_gradient(weights, features, reach, count, d_glimpse_rows, groups, room, d_step, into, width)
                into += into_values
                _lean_gradient(pulls, features, reach, count, glimpse_rows, groups, room, d_step, into, width)
                transpose(d_query, d_query_rows)
                for c in range(measures):
                    for lane in range(LANES):
                        room[lane] = scalars[(first + lane) * measures + c] if lane < lanes else np.float32(0)
                    _add_row(room, d_query_rows, d_scalars, (b * measures + c) * width + column)
                _put_back(b, first, lanes, h, sizes, context, d_query_rows, d_tables, d_empty)
