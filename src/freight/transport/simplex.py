"""Balanced transport, exact: the transportation simplex on a spanning tree, one problem a thread.

Masses become whole numbers and each row gets one unit more (Orden's perturbation), so that every
pivot moves mass, nothing is compared with a tolerance, and cycling cannot happen. The plan is then
read off the optimal tree with the true masses. A row whose columns are too cheap is found by the
sum of its shortfalls, which the vector unit computes, and only then searched for its cheapest
column. Ties between plans are broken by the order of the units.
"""

import numpy as np
from numba import prange

from freight.kernels import batch_kernel, kernel, summing
from freight.transport.batches import Batch, Terms, compact, equalise, gather, present, scatter
from freight.transport.types import Array

_BLOCK = 8


@batch_kernel
def simplex_batch(batch: Batch, terms: Terms, flow: Array, gap: Array, converged: Array) -> None:
    """Solve a padded batch into flow, gap and converged."""
    for k in prange(batch.cost.shape[0]):
        rows = present(batch.hyp_weights[k], batch.hyp_sizes[k], np.inf)
        columns = present(batch.ref_weights[k], batch.ref_sizes[k], np.inf)
        cost = compact(batch.cost[k], rows, columns, 1.0)
        hyp_weights = gather(batch.hyp_weights[k], rows)
        ref_weights = gather(batch.ref_weights[k], columns)
        plan = np.zeros(cost.shape)
        equalise(hyp_weights, ref_weights)
        links, carried = plant(cost, hyp_weights, ref_weights)
        gap[k], value = improve(cost, hyp_weights, ref_weights, links, carried, terms.cap, plan)
        converged[k] = gap[k] <= terms.tolerance * (1.0 + abs(value))
        scatter(plan, rows, columns, flow[k])


@kernel
def plant(cost: Array, hyp_weights: Array, ref_weights: Array) -> tuple[Array, Array]:
    """A tree to start from, as its links and the flow on them: all masses positive, totals equal.

    Each row in turn fills the columns that are cheapest beside what their best row pays.
    """
    n, m = cost.shape
    supply, demand = _whole(hyp_weights, ref_weights)
    bar = np.full(m, np.inf)
    for i in range(n):
        for j in range(m):
            bar[j] = min(bar[j], cost[i, j])
    arcs = np.empty((n + m - 1, 3), np.int64)
    count = 0
    for i in range(n):
        while count < n + m - 1:
            j = _cheapest(cost[i], bar)
            arcs[count] = i, j, min(supply[i], demand[j])
            count += 1
            if supply[i] < demand[j]:
                demand[j] -= supply[i]
                break
            supply[i] -= demand[j]
            bar[j] = -np.inf
    return hang(arcs, n, m)


@kernel
def _whole(hyp_weights: Array, ref_weights: Array) -> tuple[Array, Array]:
    """The masses as whole numbers with equal sums, of which no two proper parts are equal."""
    n, m = hyp_weights.size, ref_weights.size
    grain = n + 1
    scale = 2.0 ** (60 - int(np.ceil(np.log2(grain)))) / max(hyp_weights.sum(), ref_weights.sum())
    supply, demand = np.empty(n, np.int64), np.empty(m, np.int64)
    for i in range(n):
        supply[i] = np.int64(hyp_weights[i] * scale) * grain + 1
    for j in range(m):
        demand[j] = np.int64(max(ref_weights[j] * scale, 1.0)) * grain
    demand[np.argmax(ref_weights)] += supply.sum() - demand.sum()
    return supply, demand


@kernel
def improve(
    cost: Array,
    hyp_weights: Array,
    ref_weights: Array,
    links: Array,
    flow: Array,
    cap: int,
    plan: Array,
) -> tuple[float, float]:
    """Pivot a tree for these masses until it is optimal and fill the plan; its gap and its cost.

    The tree may come from other costs between the same masses.
    """
    potential = np.zeros(links.shape[1])
    price_tree(cost, links, potential)
    _pivot_until(cost, links, flow, potential, cap * links.shape[1])
    order = price_tree(cost, links, potential)
    return _read(cost, hyp_weights, ref_weights, links, potential, order, plan)


@kernel
def _pivot_until(cost: Array, links: Array, flow: Array, potential: Array, limit: int) -> None:
    """Pivot until no row has a column that is cheaper than the potentials say."""
    n = cost.shape[0]
    slack = 1e-13 * np.abs(cost).max()
    columns = potential[n:]
    row, quiet, pivots = 0, 0, 0
    while quiet < n and pivots < limit:
        worst, chosen = 0.0, NONE
        for _ in range(min(_BLOCK, n - quiet)):
            short = _shortfall(cost[row], columns, potential[row] - slack)
            if short < worst:
                worst, chosen = short, row
            row = row + 1 if row + 1 < n else 0
            quiet += 1
        if chosen != NONE:
            column = _cheapest(cost[chosen], columns)
            price = cost[chosen, column] - columns[column] - potential[chosen]
            pivot(links, flow, potential, chosen, n + column, price, n)
            quiet = 0
            pivots += 1


@summing
def _shortfall(row: Array, columns: Array, bar: float) -> float:
    total = 0.0
    for j in range(row.size):
        total += min(row[j] - columns[j] - bar, 0.0)
    return total


@kernel
def _cheapest(row: Array, columns: Array) -> int:
    best, where = np.inf, 0
    for j in range(row.size):
        if row[j] - columns[j] < best:
            best, where = row[j] - columns[j], j
    return where


@kernel
def _read(
    cost: Array,
    hyp_weights: Array,
    ref_weights: Array,
    links: Array,
    potential: Array,
    order: Array,
    plan: Array,
) -> tuple[float, float]:
    """The plan that the tree gives the true masses, its gap and its cost."""
    n, m = cost.shape
    left = np.concatenate((hyp_weights, -ref_weights))
    value = 0.0
    for node in order[:0:-1]:
        above, carried = links[PARENT, node], left[node]
        left[above] += carried
        i, j = (node, above - n) if node < n else (above, node - n)
        plan[i, j] = max(carried if node < n else -carried, 0.0)
        value += plan[i, j] * cost[i, j]
    dual = 0.0
    for j in range(m):
        dual += ref_weights[j] * potential[n + j]
    for i in range(n):
        j = _cheapest(cost[i], potential[n:])
        dual += hyp_weights[i] * (cost[i, j] - potential[n + j])
    return max(value - dual, 0.0), value


NONE = -1
PARENT, _DEPTH, _CHILD, _AFTER, _BEFORE = range(5)


@kernel
def hang(arcs: Array, n: int, m: int) -> tuple[Array, Array]:
    """The tree of these arcs, hung from the first row: its links and flow."""
    links = np.full((5, n + m), NONE)
    flow = np.zeros(n + m, np.int64)
    first, touching = _index(arcs, n, m)
    queue = np.zeros(n + m, np.int64)
    links[_DEPTH, 0] = 0
    waiting = 1
    for head in range(n + m):
        node = queue[head]
        for k in touching[first[node] : first[node + 1]]:
            other = n + arcs[k, 1] if node < n else arcs[k, 0]
            if links[_DEPTH, other] != NONE:
                continue
            links[_DEPTH, other] = links[_DEPTH, node] + 1
            flow[other] = arcs[k, 2]
            _link(links, other, node)
            queue[waiting] = other
            waiting += 1
    return links, flow


@kernel
def price_tree(cost: Array, links: Array, potential: Array) -> Array:
    """Give every arc of the tree the price that it costs; the nodes, parents before children."""
    n, nodes = cost.shape[0], links.shape[1]
    order = np.empty(nodes, np.int64)
    root = 0
    while links[PARENT, root] != NONE:
        root = links[PARENT, root]
    order[0] = root
    potential[root] = 0.0
    count = 1
    for head in range(nodes):
        above = order[head]
        node = links[_CHILD, above]
        while node != NONE:
            arc = cost[node, above - n] if node < n else cost[above, node - n]
            potential[node] = arc - potential[above]
            order[count] = node
            count += 1
            node = links[_AFTER, node]
    return order


@kernel
def pivot(
    links: Array, flow: Array, potential: Array, row: int, column: int, price: float, n: int
) -> None:
    """Send mass along row -> column and back through the tree, as much as there is."""
    x, y, amount, leaving, by_row = row, column, 2**62, NONE, True
    while x != y:
        if links[_DEPTH, x] >= links[_DEPTH, y]:
            if x < n and flow[x] < amount:
                amount, leaving, by_row = flow[x], x, True
            x = links[PARENT, x]
        else:
            if y >= n and flow[y] < amount:
                amount, leaving, by_row = flow[y], y, False
            y = links[PARENT, y]
    _carry(links, flow, row, x, amount, n)
    _carry(links, flow, column, x, -amount, n)
    if by_row:
        _rehang(links, flow, row, column, leaving, amount)
        _refresh(links, potential, row, price, n)
    else:
        _rehang(links, flow, column, row, leaving, amount)
        _refresh(links, potential, column, -price, n)


@kernel
def _index(arcs: Array, n: int, m: int) -> tuple[Array, Array]:
    """The arcs that touch each node, end to end, and where each node's begin."""
    first = np.zeros(n + m + 1, np.int64)
    for k in range(n + m - 1):
        first[arcs[k, 0] + 1] += 1
        first[n + arcs[k, 1] + 1] += 1
    first = np.cumsum(first)
    ends = first[:-1].copy()
    touching = np.empty(2 * (n + m), np.int64)
    for k in range(n + m - 1):
        for node in (arcs[k, 0], n + arcs[k, 1]):
            touching[ends[node]] = k
            ends[node] += 1
    return first, touching


@kernel
def _link(links: Array, node: int, parent: int) -> None:
    first = links[_CHILD, parent]
    links[PARENT, node] = parent
    links[_BEFORE, node] = NONE
    links[_AFTER, node] = first
    if first != NONE:
        links[_BEFORE, first] = node
    links[_CHILD, parent] = node


@kernel
def _unlink(links: Array, node: int) -> None:
    before, after = links[_BEFORE, node], links[_AFTER, node]
    if before != NONE:
        links[_AFTER, before] = after
    else:
        links[_CHILD, links[PARENT, node]] = after
    if after != NONE:
        links[_BEFORE, after] = before


@kernel
def _carry(links: Array, flow: Array, node: int, top: int, amount: int, n: int) -> None:
    while node != top:
        flow[node] -= amount if node < n else -amount
        node = links[PARENT, node]


@kernel
def _rehang(links: Array, flow: Array, node: int, parent: int, leaving: int, amount: int) -> None:
    """Turn the path from node up to the leaving arc around, and hang node from its new parent."""
    while True:
        above, carried = links[PARENT, node], flow[node]
        _unlink(links, node)
        _link(links, node, parent)
        flow[node] = amount
        if node == leaving:
            break
        parent, node, amount = node, above, carried


@kernel
def _refresh(links: Array, potential: Array, top: int, change: float, n: int) -> None:
    """Move the potentials from `top` down, rows by change and columns against it; and depths."""
    node = top
    while True:
        links[_DEPTH, node] = links[_DEPTH, links[PARENT, node]] + 1
        potential[node] += change if node < n else -change
        if links[_CHILD, node] != NONE:
            node = links[_CHILD, node]
            continue
        while node != top and links[_AFTER, node] == NONE:
            node = links[PARENT, node]
        if node == top:
            break
        node = links[_AFTER, node]
