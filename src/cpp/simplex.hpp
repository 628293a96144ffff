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

// Potentials of columns are kept with the other sign, so that a pivot shifts all potentials of a branch
// alike: the reduced cost of an arc is its cost plus that of the column less that of the row. What
// fills up the columns is infinite.

// The column of the smallest reduced cost in a row, the first of several, without a comparison that a
// processor would have to guess.
inline int cheapest(const double* row, const double* columns, int count) {
    static const double kPlaces[kLanes] = {0, 1, 2, 3, 4, 5, 6, 7};
    Lanes place = load(kPlaces), low = load(row) + load(columns), where = place;
    for (int j = kLanes; j < count; j += kLanes) {
        Lanes next = load(row + j) + load(columns + j);
        place = place + all(kLanes);
        where = where_less(next, low, place, where);
        low = lesser(next, low);
    }
    Lanes none = all(count);
    int column = static_cast<int>(least(where_equal(low, all(least(low)), where, none)));
    return column < count ? column : 0;
}

// The sum of the negative reduced costs of a row; what fills up a row is too expensive to count.
FREIGHT_INLINE double negative_reduced_costs(const double* row, const double* columns, double bar, int stride) {
    Lanes total = all(0.0), other = total, zero = total, level = all(bar);
    int j = 0;
    for (; j + 2 * kLanes <= stride; j += 2 * kLanes) {
        total = total + lesser(load(row + j) + load(columns + j) - level, zero);
        other = other + lesser(load(row + j + kLanes) + load(columns + j + kLanes) - level, zero);
    }
    if (j < stride) total = total + lesser(load(row + j) + load(columns + j) - level, zero);
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

// A feasible tree for positive masses with equal totals: each row in turn fills the column with the
// smallest regret, its cost less the column's minimum, and when every row has had its turn, what is left
// of each fills the next ones. A row that could not wait would take what is best for others.
inline void initial_tree(Matrix cost, const double* hyp, const double* ref, Tree& tree) {
    ScratchFrame frame;
    int n = cost.rows, m = cost.columns, count = 0;
    std::int64_t* supply = frame.take<std::int64_t>(n);
    std::int64_t* demand = frame.take<std::int64_t>(m);
    integer_masses(hyp, n, ref, m, supply, demand);
    double* bar = make_vector(frame, m, kInfinity);
    for (int i = 0; i < n; ++i)
        for (int j = 0; j < m; j += kLanes) store(bar + j, lesser(load(cost.row(i) + j), load(bar + j)));
    for (int j = 0; j < padded(m); ++j) bar[j] = j < m ? -bar[j] : kInfinity;
    Arc* arcs = frame.take<Arc>(n + m);
    for (int turn = 0; turn < 2; ++turn)
        for (int i = 0; i < n; ++i)
            for (bool more = supply[i] > 0; more && count < n + m - 1; more = turn && supply[i] > 0) {
                int j = cheapest(cost.row(i), bar, m);
                if (!demand[j])  // costs that are not finite, or whose difference is not: any column will do
                    for (j = 0; !demand[j];) ++j;
                std::int64_t amount = supply[i] < demand[j] ? supply[i] : demand[j];
                arcs[count++] = {i, j, amount};
                supply[i] -= amount;
                demand[j] -= amount;
                if (!demand[j]) bar[j] = kInfinity;
            }
    build_tree(arcs, m, tree);
}

// Fill the potentials for which the arcs of the tree have reduced cost 0.
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
    for (int k = begin - 1; k >= target; --k) place[order[k + size] = order[k]] = k + size;
    for (int k = begin; k < target; ++k) place[order[k] = order[k + size]] = k;
    for (int k = 0; k < size; ++k) place[order[target + k] = branch[k]] = target + k;
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

// Pivot until no reduced cost is negative beside the largest cost; how many pivots that took.
inline std::int64_t pivot_until(Matrix cost, Tree& tree, double* potential, double largest, std::int64_t limit) {
    int n = cost.rows, row = 0, passed = 0, block = cost.columns < kLong ? kBlock : kLongBlock;
    int stride = padded(cost.columns);
    double slack = 1e-13 * largest;
    double* columns = potential + tree.first;
    std::int64_t pivots = 0;
    while (passed < n && pivots < limit) {
        double worst = 0.0;
        int chosen = -1;
        for (int k = n - passed < block ? n - passed : block; k > 0; --k) {
            double total = negative_reduced_costs(cost.row(row), columns, potential[row] - slack, stride);
            chosen = total < worst ? row : chosen;
            worst = lesser(total, worst);
            row = row + 1 < n ? row + 1 : 0;
            ++passed;
        }
        if (chosen < 0) continue;
        int column = cheapest(cost.row(chosen), columns, cost.columns);
        double reduced_cost = cost.at(chosen, column) + columns[column] - potential[chosen];
        pivot(tree, potential, chosen, tree.first + column, reduced_cost);
        passed = 0;
        ++pivots;
    }
    return pivots;
}

// The plan of the tree for the true masses, whose entries are given away one by one; its cost.
template <class Enter>
inline double read_plan(Matrix cost, const double* hyp, const double* ref, const Tree& tree, Enter&& enter) {
    ScratchFrame frame;
    int n = cost.rows, m = cost.columns;
    double* remaining = frame.take<double>(tree.first + m);
    for (int i = 0; i < n; ++i) remaining[i] = hyp[i];
    for (int j = 0; j < m; ++j) remaining[tree.first + j] = -ref[j];
    double value = 0.0;
    for (int k = tree.nodes - 1; k > 0; --k) {
        int node = tree.order[k], above = tree.parent[node];
        double carried = remaining[node];
        remaining[above] += carried;
        int i = tree.row_of(node, above), j = tree.column_of(node, above);
        double mass = greater(carried * kSigns[node < above], 0.0);
        enter(i, j, mass);
        value += mass * cost.at(i, j);
    }
    return value;
}

struct Value {
    double gap, cost;

    bool exact(double tolerance) const { return gap < kInfinity && gap <= tolerance * (1.0 + size_of(cost)); }
};

// The cost of an optimal tree's plan, whose entries are given away, and by how much it is dearer than the
// cheapest could be.
template <class Enter>
inline Value value_of(Matrix cost, const double* hyp, const double* ref, const Tree& tree, Enter&& enter) {
    ScratchFrame frame;
    double* potential = make_vector(frame, tree.first + cost.columns, kInfinity);
    double* columns = potential + tree.first;
    compute_potentials(cost, tree, potential);
    double value = read_plan(cost, hyp, ref, tree, enter), dual = -dot(ref, columns, cost.columns);
    for (int i = 0; i < cost.rows; ++i) {
        int j = cheapest(cost.row(i), columns, cost.columns);
        dual += hyp[i] * (cost.at(i, j) + columns[j]);
    }
    double gap = value - dual;
    return {gap < 0.0 ? 0.0 : gap, value};  // what is not a number stays so
}

inline void clear(Matrix matrix) { std::memset(matrix.data, 0, sizeof(double) * matrix.cells()); }

inline void simplex_batch(const Batch& batch, const Terms& terms, const Solved& solved) {
    share_problems(batch, [&](std::int64_t k) {
        ScratchFrame frame;
        Problem problem = make_problem(frame, batch, k, terms, 1.0);
        int n = problem.hyp.count, m = problem.ref.count;
        balance_totals(problem.hyp_weights, n, problem.ref_weights, m);
        Tree tree = make_tree(frame, n, m);
        initial_tree(problem.cost, problem.hyp_weights, problem.ref_weights, tree);
        std::int64_t room = solved.n + solved.m, at = k * room;
        auto place = [&](int i, int j) { return problem.hyp.kept[i] * solved.m + problem.ref.kept[j]; };
        auto fill = [&](int i, int j, double mass) { solved.flow[k * solved.n * solved.m + place(i, j)] = mass; };
        auto list = [&](int i, int j, double mass) {
            solved.places[at] = place(i, j);
            solved.masses[at++] = mass;
        };
        double* potential = make_vector(frame, tree.first + m, kInfinity);
        compute_potentials(problem.cost, tree, potential);
        pivot_until(problem.cost, tree, potential, largest_cost(problem.cost), terms.max_iterations * tree.nodes);
        auto read = [&](auto& enter) {
            return value_of(problem.cost, problem.hyp_weights, problem.ref_weights, tree, enter);
        };
        Value value = solved.flow ? read(fill) : read(list);
        solved.gap[k] = value.gap;
        solved.converged[k] = value.exact(terms.tolerance);
        if (solved.flow) return;
        solved.transport[k] = value.cost;
        for (; at < (k + 1) * room; ++at) {
            solved.places[at] = solved.n * solved.m;
            solved.masses[at] = 0.0;
        }
    });
}

}  // namespace FREIGHT_VARIANT
}  // namespace freight
