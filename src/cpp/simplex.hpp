// Exact balanced transport: the transportation simplex.
//
// The basis is a spanning tree of the bipartite graph of rows (hyp units) and columns (ref units).
// Masses become integers and each row gets one unit more (Orden's perturbation), so that every
// pivot moves mass, nothing is compared with a tolerance, and cycling cannot happen; the plan is
// then read off the optimal tree with the true masses. Pricing looks at the sum of a row's negative
// reduced costs and searches only the chosen row for its best column. Ties between optimal plans are
// broken by the order of the units.
//
// The nodes of the tree stand in an array, every node before its children, so that what hangs on
// a node is the stretch of the array behind it. A pivot moves one stretch and shifts the potentials
// of that stretch, one number after the other.
#pragma once

#include "support.hpp"

namespace freight {
namespace FREIGHT_VARIANT {

// Rows that are looked at for one pivot; of long rows fewer, since they do not fit into the nearest cache.
constexpr int kBlock = 8, kLongBlock = 4, kLong = 256;

// Of a node: its parent, the flow on the arc to it, how many nodes hang on it, itself included, and
// where it stands in the order. Rows are the nodes from 0, columns those from `first`, a multiple of
// eight; the root is row 0.
struct Tree {
    int first, nodes;
    int *parent, *size, *place, *order, *room;
    std::int64_t* flow;
};

inline Tree make_tree(ScratchFrame& frame, int rows, int columns) {
    int first = padded(rows), room = first + columns;
    int* part = frame.take<int>(5 * static_cast<std::size_t>(room));
    return {first, rows + columns, part, part + room, part + 2 * room, part + 3 * room, part + 4 * room,
            frame.take<std::int64_t>(room)};
}

// The column of the smallest reduced cost in a row, the first of several.
inline int cheapest(const double* row, const double* columns, int count) {
    constexpr int stretch = 8 * kLanes;  // the smallest is looked for in the stretch that has it
    double best = kInfinity;
    int where = 0, k = 0;
    for (; k + stretch <= count; k += stretch) {
        Lanes low = load(row + k) - load(columns + k);
        for (int j = kLanes; j < stretch; j += kLanes) low = lesser(load(row + k + j) - load(columns + k + j), low);
        double smallest = least(low);
        if (smallest < best) best = smallest, where = k;
    }
    Lanes low = all(kInfinity);
    int rest = k;
    for (; k + kLanes <= count; k += kLanes) low = lesser(load(row + k) - load(columns + k), low);
    double smallest = least(low);
    for (; k < count; ++k) smallest = lesser(row[k] - columns[k], smallest);
    if (smallest < best) best = smallest, where = rest;
    for (k = where; k < count; ++k)
        if (row[k] - columns[k] == best) return k;
    return 0;
}

// The sum of the negative reduced costs of a row; what fills up a row is too expensive to count.
inline double negative_reduced_costs(const double* row, const double* columns, double bar, int stride) {
    Lanes total = all(0.0), other = total, zero = total, level = all(bar);
    int j = 0;
    for (; j + 2 * kLanes <= stride; j += 2 * kLanes) {
        total = total + lesser(load(row + j) - load(columns + j) - level, zero);
        other = other + lesser(load(row + j + kLanes) - load(columns + j + kLanes) - level, zero);
    }
    if (j < stride) total = total + lesser(load(row + j) - load(columns + j) - level, zero);
    return sum(total + other);
}

// The masses as integers with equal totals, of which no two proper partial sums are equal.
inline void integer_masses(const double* hyp, int n, const double* ref, int m, std::int64_t* supply,
                           std::int64_t* demand) {
    std::int64_t grain = n + 1, rest = 0;
    int bits = 0;
    while ((std::int64_t{1} << bits) < grain) ++bits;
    double scale = static_cast<double>(std::int64_t{1} << (60 - bits)) / greater(total_of(hyp, n), total_of(ref, m));
    for (int i = 0; i < n; ++i) {
        supply[i] = static_cast<std::int64_t>(hyp[i] * scale) * grain + 1;
        rest += supply[i];
    }
    int largest = 0;
    for (int j = 0; j < m; ++j) {
        demand[j] = static_cast<std::int64_t>(greater(ref[j] * scale, 1.0)) * grain;
        rest -= demand[j];
        if (ref[j] > ref[largest]) largest = j;
    }
    demand[largest] += rest;
}

struct Arc {
    int row, column;
    std::int64_t flow;
};

// The tree of these arcs, nodes in the order of a depth-first walk from the first row.
inline void build_tree(const Arc* arcs, int columns, Tree& tree) {
    ScratchFrame frame;
    int ids = tree.first + columns, count = tree.nodes - 1;
    int* begins = frame.take<int>(ids + 1);
    int* touching = frame.take<int>(2 * static_cast<std::size_t>(ids));
    int* stack = frame.take<int>(ids);
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
    stack[0] = 0;
    tree.parent[0] = -1;
    tree.flow[0] = 0;
    while (waiting) {
        int node = stack[--waiting];
        tree.place[node] = placed;
        tree.order[placed++] = node;
        tree.size[node] = 1;
        for (int t = begins[node]; t < begins[node + 1]; ++t) {
            const Arc& arc = arcs[touching[t]];
            int other = node < tree.first ? tree.first + arc.column : arc.row;
            if (other == tree.parent[node]) continue;
            tree.parent[other] = node;
            tree.flow[other] = arc.flow;
            stack[waiting++] = other;
        }
    }
    for (int k = count; k > 0; --k) tree.size[tree.parent[tree.order[k]]] += tree.size[tree.order[k]];
}

// A feasible tree for positive masses with equal totals: each row in turn fills the columns with the
// smallest regret, its cost less the column's minimum.
inline void initial_tree(Matrix cost, const double* hyp, const double* ref, Tree& tree) {
    ScratchFrame frame;
    int n = cost.rows, m = cost.columns, count = 0;
    std::int64_t* supply = frame.take<std::int64_t>(n);
    std::int64_t* demand = frame.take<std::int64_t>(m);
    integer_masses(hyp, n, ref, m, supply, demand);
    double* bar = make_vector(frame, m, kInfinity);
    for (int i = 0; i < n; ++i)
        for (int j = 0; j < cost.stride; j += kLanes) store(bar + j, lesser(load(cost.row(i) + j), load(bar + j)));
    Arc* arcs = frame.take<Arc>(n + m);
    for (int i = 0; i < n; ++i) {
        while (count < n + m - 1) {
            int j = cheapest(cost.row(i), bar, m);
            arcs[count++] = {i, j, supply[i] < demand[j] ? supply[i] : demand[j]};
            if (supply[i] < demand[j]) {
                demand[j] -= supply[i];
                break;
            }
            supply[i] -= demand[j];
            bar[j] = -kInfinity;
        }
    }
    build_tree(arcs, m, tree);
}

// Fill the potentials for which the arcs of the tree have reduced cost 0.
inline void compute_potentials(Matrix cost, const Tree& tree, double* potential) {
    potential[0] = 0.0;
    for (int k = 1; k < tree.nodes; ++k) {
        int node = tree.order[k], above = tree.parent[node];
        double arc = node < tree.first ? cost.at(node, above - tree.first) : cost.at(above, node - tree.first);
        potential[node] = arc - potential[above];
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
        for (int k = from; k < inner; ++k) branch[filled++] = order[k];
        for (int k = outer; k < to; ++k) branch[filled++] = order[k];
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
    for (int k = begin - 1; k >= target; --k) place[order[k + size] = order[k]] = k + size;
    for (int k = begin; k < target; ++k) place[order[k] = order[k + size]] = k;
    for (int k = 0; k < size; ++k) place[order[target + k] = branch[k]] = target + k;
    return target;
}

// Shift the potentials of a stretch of the order, rows by change, columns by -change.
inline void shift_potentials(const Tree& tree, double* potential, int begin, int end, double change) {
    const double by[2] = {change, -change};  // looked up, since a processor cannot guess which comes next
    for (int k = begin; k < end; ++k) {
        int node = tree.order[k];
        potential[node] += by[node >= tree.first];
    }
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
        if (tree.flow[x] < amount) amount = tree.flow[x], leaving = x;
        x = tree.parent[x];
        if (hangs_on(tree, place, x)) break;
        x = tree.parent[x];
    }
    bool by_row = true;
    for (int y = column; y != x;) {
        if (tree.flow[y] < amount) amount = tree.flow[y], leaving = y, by_row = false;
        y = tree.parent[y];
        if (y != x) y = tree.parent[y];
    }
    int node = by_row ? row : column, parent = by_row ? column : row, size = tree.size[leaving];
    std::int64_t down = by_row ? amount : -amount;  // on arcs from rows in the branch, and from columns outside
    bool inside = true;                             // what is above `leaving` loses the branch
    for (int v = node; v != x; v = tree.parent[v]) {
        tree.flow[v] -= v < tree.first ? down : -down;
        if (!inside) tree.size[v] -= size;
        inside = inside && v != leaving;
    }
    for (int v = parent; v != x; v = tree.parent[v]) {
        tree.flow[v] += v < tree.first ? down : -down;
        tree.size[v] += size;
    }
    int begin = move_branch(tree, node, parent, leaving, x, amount);
    double change = by_row ? reduced_cost : -reduced_cost;
    if (2 * size <= tree.nodes) {
        shift_potentials(tree, potential, begin, begin + size, change);
    } else {  // the others are fewer, and only differences count
        shift_potentials(tree, potential, 0, begin, -change);
        shift_potentials(tree, potential, begin + size, tree.nodes, -change);
    }
}

// Pivot until no reduced cost is negative.
inline void pivot_until(Matrix cost, Tree& tree, double* potential, std::int64_t limit) {
    int n = cost.rows, row = 0, passed = 0, block = cost.columns < kLong ? kBlock : kLongBlock;
    double slack = 1e-13 * largest_cost(cost);
    double* columns = potential + tree.first;
    for (std::int64_t pivots = 0; passed < n && pivots < limit;) {
        double worst = 0.0;
        int chosen = -1;
        for (int k = n - passed < block ? n - passed : block; k > 0; --k) {
            double total = negative_reduced_costs(cost.row(row), columns, potential[row] - slack, cost.stride);
            if (total < worst) worst = total, chosen = row;
            row = row + 1 < n ? row + 1 : 0;
            ++passed;
        }
        if (chosen < 0) continue;
        int column = cheapest(cost.row(chosen), columns, cost.columns);
        double reduced_cost = cost.at(chosen, column) - columns[column] - potential[chosen];
        pivot(tree, potential, chosen, tree.first + column, reduced_cost);
        passed = 0;
        ++pivots;
    }
}

struct Value {
    double gap, cost;
};

// Fill the plan of the tree, 0 beforehand, for the true masses; its duality gap and its cost.
inline Value read_plan(Matrix cost, const double* hyp, const double* ref, const Tree& tree, const double* potential,
                       Matrix plan) {
    ScratchFrame frame;
    int n = cost.rows, m = cost.columns;
    const double* columns = potential + tree.first;
    double* remaining = frame.take<double>(tree.first + m);
    for (int i = 0; i < n; ++i) remaining[i] = hyp[i];
    for (int j = 0; j < m; ++j) remaining[tree.first + j] = -ref[j];
    double value = 0.0;
    for (int k = tree.nodes - 1; k > 0; --k) {
        int node = tree.order[k], above = tree.parent[node];
        double carried = remaining[node];
        remaining[above] += carried;
        bool up = node < tree.first;
        int i = up ? node : above, j = (up ? above : node) - tree.first;
        plan.at(i, j) = greater(up ? carried : -carried, 0.0);
        value += plan.at(i, j) * cost.at(i, j);
    }
    double dual = dot(ref, columns, m);
    for (int i = 0; i < n; ++i) {
        int j = cheapest(cost.row(i), columns, m);
        dual += hyp[i] * (cost.at(i, j) - columns[j]);
    }
    return {greater(value - dual, 0.0), value};
}

// Pivot a feasible tree until it is optimal and fill the plan, which is 0 beforehand. The tree may be
// the optimal one of other costs between the same masses.
inline Value solve_from_tree(Matrix cost, const double* hyp, const double* ref, Tree& tree,
                             std::int64_t max_iterations, Matrix plan) {
    ScratchFrame frame;
    double* potential = make_vector(frame, tree.first + cost.columns);
    compute_potentials(cost, tree, potential);
    pivot_until(cost, tree, potential, max_iterations * tree.nodes);
    compute_potentials(cost, tree, potential);
    return read_plan(cost, hyp, ref, tree, potential, plan);
}

inline void clear(Matrix matrix) { std::memset(matrix.data, 0, sizeof(double) * matrix.cells()); }

inline void simplex_batch(const Batch& batch, const Terms& terms, const Solved& solved) {
    share_problems(batch, [&](std::int64_t k) {
        ScratchFrame frame;
        Problem problem = make_problem(frame, batch, k, terms, 1.0);
        int n = problem.hyp.count, m = problem.ref.count;
        balance_totals(problem.hyp_weights, n, problem.ref_weights, m);
        Matrix plan = make_matrix(frame, n, m);
        clear(plan);
        Tree tree = make_tree(frame, n, m);
        initial_tree(problem.cost, problem.hyp_weights, problem.ref_weights, tree);
        Value value = solve_from_tree(problem.cost, problem.hyp_weights, problem.ref_weights, tree,
                                      terms.max_iterations, plan);
        solved.gap[k] = value.gap;
        solved.converged[k] = value.gap <= terms.tolerance * (1.0 + size_of(value.cost));
        scatter_plan(problem, plan, solved, k);
    });
}

}  // namespace FREIGHT_VARIANT
}  // namespace freight
