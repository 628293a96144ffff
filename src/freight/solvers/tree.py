"""A spanning tree between the units of two sides: the basis that the simplex walks.

Rows are nodes 0..n-1, columns n..n+m-1. `flow` is what moves on the arc to the parent, and `links`
has a row each for the parent, the depth, the first child, the next sibling and the one before.
"""

import numpy as np

from freight.kernels import kernel
from freight.types import Array

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
