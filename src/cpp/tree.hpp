// A spanning tree of the bipartite graph of rows and columns, with flows and potentials, and its pivots.
//
// The nodes of the tree stand in an array, every node before its children, so that what hangs on
// a node is the stretch of the array behind it. A pivot moves one stretch and shifts the potentials
// of that stretch, one number after the other.
#pragma once

#include "support.hpp"

namespace freight {
namespace FREIGHT_VARIANT {

// By whether a comparison holds: looked up, since a processor cannot guess which comes next.
constexpr double kSigns[2] = {-1.0, 1.0};

// Of a node: its parent, the flow on the arc to it, how many nodes hang on it, itself included, and
// where it stands in the order. Rows are the nodes from 0, columns those from `first`, a multiple of
// eight; the root is row 0.
struct Tree {
    int first, nodes;
    int *parent, *size, *place, *order, *room;
    std::int64_t* flow;

    // The row and the column of an arc between two nodes: rows are the lower ones.
    FREIGHT_INLINE int row_of(int a, int b) const { return a < b ? a : b; }
    FREIGHT_INLINE int column_of(int a, int b) const { return (a < b ? b : a) - first; }
};

inline Tree make_tree(ScratchFrame& frame, int rows, int columns) {
    int first = padded(rows), room = first + columns;
    int* part = frame.take<int>(5 * static_cast<std::size_t>(room) + kLanes);  // stretches are copied by eights
    return {first, rows + columns, part, part + room, part + 2 * room, part + 3 * room, part + 4 * room,
            frame.take<std::int64_t>(room)};
}

inline void copy_tree(const Tree& from, Tree& to) {
    std::size_t room = from.place - from.size;
    std::memcpy(to.parent, from.parent, 4 * room * sizeof(int));  // and the three arrays behind it
    std::memcpy(to.flow, from.flow, room * sizeof(std::int64_t));
}

struct Arc {
    int row, column;
    std::int64_t flow;
};

// A node that a walk is to visit, and the arc by which it hangs on its parent.
struct Step {
    int node, parent, arc;
};

// The tree of these arcs, nodes in the order of a depth-first walk from the first row.
inline void build_tree(const Arc* arcs, int columns, Tree& tree) {
    ScratchFrame frame;
    int ids = tree.first + columns, count = tree.nodes - 1;
    int* begins = frame.take<int>(ids + 1);
    int* touching = frame.take<int>(2 * static_cast<std::size_t>(ids));
    Step* stack = frame.take<Step>(ids + 1);
    int* ends = tree.room;
    for (int v = 0; v <= ids; ++v) begins[v] = 0;
    for (int k = 0; k < count; ++k) ++begins[arcs[k].row + 1], ++begins[tree.first + arcs[k].column + 1];
    for (int v = 0; v < ids; ++v) begins[v + 1] += begins[v];
    for (int v = 0; v < ids; ++v) ends[v] = begins[v];
    for (int k = 0; k < count; ++k) {
        touching[ends[arcs[k].row]++] = k;
        touching[ends[tree.first + arcs[k].column]++] = k;
    }
    int waiting = 1, placed = 0;
    stack[0] = {0, -1, 0};
    while (waiting) {
        Step step = stack[--waiting];
        int node = step.node;
        tree.parent[node] = step.parent;
        tree.flow[node] = arcs[step.arc].flow;  // of the root it means nothing
        tree.place[node] = placed;
        tree.order[placed++] = node;
        tree.size[node] = 1;
        for (int t = begins[node]; t < begins[node + 1]; ++t) {
            const Arc& arc = arcs[touching[t]];
            int other = node < tree.first ? tree.first + arc.column : arc.row;
            stack[waiting] = {other, node, touching[t]};
            waiting += other != step.parent;
        }
    }
    for (int k = count; k > 0; --k) tree.size[tree.parent[tree.order[k]]] += tree.size[tree.order[k]];
}

// Fill the potentials for which the arcs of the tree have reduced cost 0. Those of columns are kept with
// the other sign, so that a pivot shifts all potentials of a branch alike: the reduced cost of an arc is its
// cost plus that of the column less that of the row. What fills up the columns is infinite.
inline void compute_potentials(Matrix cost, const Tree& tree, double* potential) {
    potential[0] = 0.0;
    for (int k = 1; k < tree.nodes; ++k) {
        int node = tree.order[k], above = tree.parent[node];
        double arc = cost.at(tree.row_of(node, above), tree.column_of(node, above));
        potential[node] = potential[above] + arc * kSigns[node < above];
    }
}

// Where a branch that is hung on `parent` may stand: as its first or its last child, whichever is
// nearer to where it stands now.
inline int nearest_place(const Tree& tree, int begin, int size, int parent, int top) {
    int first = tree.place[parent] + 1;
    if (first > begin) return first - size;
    int last = tree.place[parent] + tree.size[parent] - size;  // both with the branch taken out
    if (parent != top) return last;
    return begin - first <= last - begin ? first : last;
}

// Copy a stretch by eights, without a comparison for each: up to seven more are read and written.
FREIGHT_INLINE void copy_stretch(const int* from, int count, int* to) {
    for (int k = 0; k < count; k += kLanes) std::memcpy(to + k, from + k, kLanes * sizeof(int));
}

// Hang what hung on `leaving` on `parent` instead, by an arc from `node` that carries `amount`; the
// sizes above are right already. Where the branch begins in the new order.
inline int move_branch(Tree& tree, int node, int parent, int leaving, int top, std::int64_t amount) {
    int *order = tree.order, *place = tree.place, *branch = tree.room;
    int begin = place[leaving], size = tree.size[leaving];
    int target = nearest_place(tree, begin, size, parent, top);
    // The branch in an order that begins at `node`: what hangs on it, then what hangs on the node
    // above it besides, and so on up to `leaving`. The path between them is reversed.
    int filled = 0, inner = place[node], outer = inner, before = 0, below = parent;
    for (int v = node;;) {
        int from = place[v], to = from + tree.size[v];
        copy_stretch(order + from, inner - from, branch + filled);
        filled += inner - from;
        copy_stretch(order + outer, to - outer, branch + filled);
        filled += to - outer;
        inner = from, outer = to;
        int above = tree.parent[v];
        std::int64_t carried = tree.flow[v];
        tree.size[v] = size - before;
        tree.parent[v] = below;
        tree.flow[v] = amount;
        before = to - from, below = v, amount = carried;
        if (v == leaving) break;
        v = above;
    }
    int low = target < begin ? target : begin, high = target < begin ? begin : target;
    int to = target < begin ? low + size : low, from = target < begin ? low : low + size;
    std::memmove(order + to, order + from, sizeof(int) * (high - low));
    std::memcpy(order + target, branch, sizeof(int) * size);
    for (int k = low; k < high + size; ++k) place[order[k]] = k;
    return target;
}

// Shift the potentials of a stretch of the order.
FREIGHT_INLINE void shift_potentials(const Tree& tree, double* potential, int begin, int end, double change) {
    for (int k = begin; k < end; ++k) potential[tree.order[k]] += change;
}

// Whether a node hangs on `top`, or is it, by its place in the order.
inline bool hangs_on(const Tree& tree, int place, int top) {
    return static_cast<unsigned>(place - tree.place[top]) < static_cast<unsigned>(tree.size[top]);
}

// Let the arc row -> column enter the tree, with as much flow as its cycle can take.
inline void pivot(Tree& tree, double* potential, int row, int column, double reduced_cost) {
    // Up from the row to the first node that the column hangs on too, then up from the column. Rows and
    // columns take turns on the way, and only every other arc loses flow.
    int x = row, leaving = -1, place = tree.place[column];
    std::int64_t amount = std::int64_t{1} << 62;
    while (!hangs_on(tree, place, x)) {
        leaving = tree.flow[x] < amount ? x : leaving;
        amount = tree.flow[x] < amount ? tree.flow[x] : amount;
        x = tree.parent[x];
        if (hangs_on(tree, place, x)) break;
        x = tree.parent[x];
    }
    int side = 0;  // of the arc's two ends, the one whose path loses the leaving arc
    for (int y = column; y != x;) {
        bool less = tree.flow[y] < amount;
        amount = less ? tree.flow[y] : amount;
        leaving = less ? y : leaving;
        side |= less;
        y = tree.parent[y];
        if (y != x) y = tree.parent[y];
    }
    const int ends[2] = {row, column};
    int node = ends[side], parent = ends[1 - side], size = tree.size[leaving];
    // What goes down on arcs from rows of the branch, and from columns outside.
    std::int64_t down = side ? -amount : amount;
    int lost = 0;  // what is above `leaving` loses the branch
    for (int v = node; v != x; v = tree.parent[v]) {
        tree.flow[v] -= v < tree.first ? down : -down;
        tree.size[v] -= lost;
        lost = v == leaving ? size : lost;
    }
    for (int v = parent; v != x; v = tree.parent[v]) {
        tree.flow[v] += v < tree.first ? down : -down;
        tree.size[v] += size;
    }
    int begin = move_branch(tree, node, parent, leaving, x, amount);
    double change = reduced_cost * kSigns[side == 0];
    if (2 * size <= tree.nodes) {
        shift_potentials(tree, potential, begin, begin + size, change);
    } else {  // the others are fewer, and only differences count
        shift_potentials(tree, potential, 0, begin, -change);
        shift_potentials(tree, potential, begin + size, tree.nodes, -change);
    }
}

}  // namespace FREIGHT_VARIANT
}  // namespace freight
