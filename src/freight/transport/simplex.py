"""Exact balanced transport: the transportation simplex, one problem per thread.

The basis is a spanning tree of the bipartite graph of rows (hyp units) and columns (ref units).
Masses become integers and each row gets one unit more (Orden's perturbation), so that every pivot
moves mass, nothing is compared with a tolerance, and cycling cannot happen; the plan is then
read off the optimal tree with the true masses. Pricing looks at the sum of a row's negative
reduced costs, which vectorises, and searches only the chosen row for its best column. Ties
between optimal plans are broken by the order of the units.

A tree is an array of links (5, row and column nodes) and the integer flow on the arc from each node
to its parent; a problem with the same masses and other costs can start from it.
"""

import numpy as np
from numba import prange

from freight.kernels import batch_kernel, kernel, summing
from freight.transport.batches import (
    Batch,
    Terms,
    balance_totals,
    compact_cost,
    compact_weights,
    scatter_plan,
    support,
)
from freight.transport.types import Array

_BLOCK = 8  # rows that are looked at for one pivot
_NONE = -1
_PARENT, _DEPTH, _CHILD, _AFTER, _BEFORE = range(5)  # first child, next and previous sibling


@batch_kernel
def simplex_batch(batch: Batch, terms: Terms, flow: Array, gap: Array, converged: Array) -> None:
    """Solve a padded batch into flow, gap and converged."""
    for k in prange(batch.cost.shape[0]):
        rows = support(batch.hyp_weights[k], batch.hyp_sizes[k], np.inf)
        columns = support(batch.ref_weights[k], batch.ref_sizes[k], np.inf)
        cost = compact_cost(batch.cost[k], rows, columns, 1.0)
        hyp_weights = compact_weights(batch.hyp_weights[k], rows)
        ref_weights = compact_weights(batch.ref_weights[k], columns)
        plan = np.zeros(cost.shape)
        balance_totals(hyp_weights, ref_weights)
        links, carried = initial_tree(cost, hyp_weights, ref_weights)
        gap[k], value = solve_from_tree(
            cost, hyp_weights, ref_weights, links, carried, terms.max_iterations, plan
        )
        converged[k] = gap[k] <= terms.tolerance * (1.0 + abs(value))
        scatter_plan(plan, rows, columns, flow[k])


@kernel
def initial_tree(cost: Array, hyp_weights: Array, ref_weights: Array) -> tuple[Array, Array]:
    """A feasible tree, as links and flow, for positive masses with equal totals.

    Each row in turn fills the columns with the smallest regret: its cost less the column's minimum.
    """
    n, m = cost.shape
    supply, demand = _integer_masses(hyp_weights, ref_weights)
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
    return _build_tree(arcs, n, m)


@kernel
def _integer_masses(hyp_weights: Array, ref_weights: Array) -> tuple[Array, Array]:
    """The masses as integers with equal totals, of which no two proper partial sums are equal."""
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
def solve_from_tree(
    cost: Array,
    hyp_weights: Array,
    ref_weights: Array,
    links: Array,
    flow: Array,
    max_iterations: int,
    plan: Array,
) -> tuple[float, float]:
    """Pivot a feasible tree until it is optimal and fill the plan; its duality gap and its cost.

    The tree may be the optimal one of other costs between the same masses.
    """
    potential = np.zeros(links.shape[1])
    _compute_potentials(cost, links, potential)
    _pivot_until(cost, links, flow, potential, max_iterations * links.shape[1])
    order = _compute_potentials(cost, links, potential)
    return _read_plan(cost, hyp_weights, ref_weights, links, potential, order, plan)


@kernel
def _pivot_until(cost: Array, links: Array, flow: Array, potential: Array, limit: int) -> None:
    """Pivot until no reduced cost is negative."""
    n = cost.shape[0]
    slack = 1e-13 * np.abs(cost).max()
    columns = potential[n:]
    row, passed, pivots = 0, 0, 0
    while passed < n and pivots < limit:
        worst, chosen = 0.0, _NONE
        for _ in range(min(_BLOCK, n - passed)):
            total = _negative_reduced_costs(cost[row], columns, potential[row] - slack)
            if total < worst:
                worst, chosen = total, row
            row = row + 1 if row + 1 < n else 0
            passed += 1
        if chosen != _NONE:
            column = _cheapest(cost[chosen], columns)
            reduced_cost = cost[chosen, column] - columns[column] - potential[chosen]
            _pivot(links, flow, potential, chosen, n + column, reduced_cost, n)
            passed = 0
            pivots += 1


@summing
def _negative_reduced_costs(row: Array, columns: Array, bar: float) -> float:
    """The sum of the negative reduced costs of a row."""
    total = 0.0
    for j in range(row.size):
        total += min(row[j] - columns[j] - bar, 0.0)
    return total


@kernel
def _cheapest(row: Array, columns: Array) -> int:
    """The column of the smallest reduced cost in a row."""
    best, where = np.inf, 0
    for j in range(row.size):
        if row[j] - columns[j] < best:
            best, where = row[j] - columns[j], j
    return where


@kernel
def _read_plan(
    cost: Array,
    hyp_weights: Array,
    ref_weights: Array,
    links: Array,
    potential: Array,
    order: Array,
    plan: Array,
) -> tuple[float, float]:
    """Fill the plan of the tree for the true masses; its duality gap and its cost."""
    n, m = cost.shape
    remaining = np.concatenate((hyp_weights, -ref_weights))
    value = 0.0
    for node in order[:0:-1]:
        above, carried = links[_PARENT, node], remaining[node]
        remaining[above] += carried
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


@kernel
def _build_tree(arcs: Array, n: int, m: int) -> tuple[Array, Array]:
    """Links and flow of the tree of these arcs (row, column, flow), rooted at the first row."""
    links = np.full((5, n + m), _NONE)
    flow = np.zeros(n + m, np.int64)
    first, touching = _index_arcs(arcs, n, m)
    queue = np.zeros(n + m, np.int64)
    links[_DEPTH, 0] = 0
    waiting = 1
    for head in range(n + m):
        node = queue[head]
        for k in touching[first[node] : first[node + 1]]:
            other = n + arcs[k, 1] if node < n else arcs[k, 0]
            if links[_DEPTH, other] != _NONE:
                continue
            links[_DEPTH, other] = links[_DEPTH, node] + 1
            flow[other] = arcs[k, 2]
            _link(links, other, node)
            queue[waiting] = other
            waiting += 1
    return links, flow


@kernel
def _index_arcs(arcs: Array, n: int, m: int) -> tuple[Array, Array]:
    """The arcs of every node, one node after the other, and where each node's begin."""
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
def _compute_potentials(cost: Array, links: Array, potential: Array) -> Array:
    """Fill the potentials for which arcs of the tree have reduced cost 0; nodes, parents first."""
    n, nodes = cost.shape[0], links.shape[1]
    order = np.empty(nodes, np.int64)
    root = 0
    while links[_PARENT, root] != _NONE:
        root = links[_PARENT, root]
    order[0] = root
    potential[root] = 0.0
    count = 1
    for head in range(nodes):
        above = order[head]
        node = links[_CHILD, above]
        while node != _NONE:
            arc = cost[node, above - n] if node < n else cost[above, node - n]
            potential[node] = arc - potential[above]
            order[count] = node
            count += 1
            node = links[_AFTER, node]
    return order


@kernel
def _pivot(
    links: Array, flow: Array, potential: Array, row: int, column: int, reduced_cost: float, n: int
) -> None:
    """Let the arc row -> column enter the tree, with as much flow as its cycle can take."""
    x, y, amount, leaving, by_row = row, column, 2**62, _NONE, True
    while x != y:
        if links[_DEPTH, x] >= links[_DEPTH, y]:
            if x < n and flow[x] < amount:
                amount, leaving, by_row = flow[x], x, True
            x = links[_PARENT, x]
        else:
            if y >= n and flow[y] < amount:
                amount, leaving, by_row = flow[y], y, False
            y = links[_PARENT, y]
    _push_flow(links, flow, row, x, amount, n)
    _push_flow(links, flow, column, x, -amount, n)
    if by_row:
        _reverse_path(links, flow, row, column, leaving, amount)
        _shift_subtree(links, potential, row, reduced_cost, n)
    else:
        _reverse_path(links, flow, column, row, leaving, amount)
        _shift_subtree(links, potential, column, -reduced_cost, n)


@kernel
def _push_flow(links: Array, flow: Array, node: int, top: int, amount: int, n: int) -> None:
    """Change the flow on the arcs from node up to top, alternately by -amount and amount."""
    while node != top:
        flow[node] -= amount if node < n else -amount
        node = links[_PARENT, node]


@kernel
def _reverse_path(
    links: Array, flow: Array, node: int, parent: int, leaving: int, amount: int
) -> None:
    """Reverse the path from node up to the leaving arc, and give node its new parent."""
    while True:
        above, carried = links[_PARENT, node], flow[node]
        _unlink(links, node)
        _link(links, node, parent)
        flow[node] = amount
        if node == leaving:
            break
        parent, node, amount = node, above, carried


@kernel
def _link(links: Array, node: int, parent: int) -> None:
    first = links[_CHILD, parent]
    links[_PARENT, node] = parent
    links[_BEFORE, node] = _NONE
    links[_AFTER, node] = first
    if first != _NONE:
        links[_BEFORE, first] = node
    links[_CHILD, parent] = node


@kernel
def _unlink(links: Array, node: int) -> None:
    before, after = links[_BEFORE, node], links[_AFTER, node]
    if before != _NONE:
        links[_AFTER, before] = after
    else:
        links[_CHILD, links[_PARENT, node]] = after
    if after != _NONE:
        links[_BEFORE, after] = before


@kernel
def _shift_subtree(links: Array, potential: Array, top: int, change: float, n: int) -> None:
    """Shift the potentials below `top`, rows by change, columns by -change; update depths."""
    node = top
    while True:
        links[_DEPTH, node] = links[_DEPTH, links[_PARENT, node]] + 1
        potential[node] += change if node < n else -change
        if links[_CHILD, node] != _NONE:
            node = links[_CHILD, node]
            continue
        while node != top and links[_AFTER, node] == _NONE:
            node = links[_PARENT, node]
        if node == top:
            break
        node = links[_AFTER, node]
