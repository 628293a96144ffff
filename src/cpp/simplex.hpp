// Exact balanced transport: the transportation simplex.
//
// The basis is a spanning tree of the bipartite graph of rows (hyp units) and columns (ref units).
// Masses become integers and each row gets one unit more (Orden's perturbation), so that every
// pivot moves mass, nothing is compared with a tolerance, and cycling cannot happen; the plan is
// then read off the optimal tree with the true masses. Pricing takes the smallest reduced cost of a
// block of rows; long rows have lists of a few columns each, which are filled anew when they have no
// negative one left. Ties between optimal plans are broken by the order of the units.
#pragma once

#include "tree.hpp"

namespace freight {
namespace FREIGHT_VARIANT {

// Rows that are looked at for one pivot, lists of rows that are, and how many columns a long row has; how
// often a row bids for a column on average.
constexpr int kBlock = 16, kListBlock = 48, kLong = 128, kBids = 4;

constexpr double kPlaces[kLanes] = {0, 1, 2, 3, 4, 5, 6, 7};

// Of every eighth column of a row, from each of the first eight on: the smallest reduced cost, the first
// column that has it, and the next smallest, without a comparison that a processor would have to guess.
struct Minima {
    Lanes low, where, second;
};

FREIGHT_INLINE Minima find_minima(const double* row, const double* columns, int count) {
    Lanes place = load(kPlaces), low = load(row) + load(columns), where = place, second = all(kInfinity);
    for (int j = kLanes; j < count; j += kLanes) {
        Lanes next = load(row + j) + load(columns + j);
        place = place + all(kLanes);
        where = where_less(next, low, place, where);
        second = lesser(greater(next, low), second);
        low = lesser(next, low);
    }
    return {low, where, second};
}

// The column of the smallest reduced cost in a row, the first of several, and by how much the next exceeds it.
struct Best {
    int column;
    double margin;
};

FREIGHT_INLINE Best best_column(const double* row, const double* columns, int count) {
    Minima found = find_minima(row, columns, count);
    double smallest = least(found.low);
    double column = least(where_equal(found.low, all(smallest), found.where, all(count)));
    double next = least(where_equal(found.where, all(column), found.second, found.low));
    return {column < count ? static_cast<int>(column) : 0, next - smallest};
}

inline int cheapest(const double* row, const double* columns, int count) {
    return best_column(row, columns, count).column;
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

// Rows bid for columns as if all masses were equal: each takes the column that is best for it, from
// another row if need be, and adds what it gains over the next best to the column's price, at which
// prices begin. Who has which column in the end.
inline int* bid_for_columns(ScratchFrame& frame, Matrix cost, double* prices) {
    int n = cost.rows, m = cost.columns, row = 0, next = 1;
    int* owners = frame.take<int>(m);
    for (int j = 0; j < m; ++j) owners[j] = -1;
    for (int bids = kBids * n; bids > 0 && row < n; --bids) {
        Best best = best_column(cost.row(row), prices, m);
        int owner = owners[best.column];
        bool gains = best.margin > 0.0 && best.margin < kInfinity;
        if (gains) prices[best.column] += best.margin;
        if (gains || owner < 0) owners[best.column] = row;
        row = gains && owner >= 0 ? owner : next++;
    }
    return owners;
}

// A feasible tree for positive masses with equal totals: each row fills the column that it has bid for,
// and what is left of the rows in turn fills the columns that are then the cheapest at their prices, which
// begin at the column's smallest cost.
inline void initial_tree(Matrix cost, const double* hyp, const double* ref, Tree& tree) {
    ScratchFrame frame;
    int n = cost.rows, m = cost.columns, count = 0;
    std::int64_t* supply = frame.take<std::int64_t>(n);
    std::int64_t* demand = frame.take<std::int64_t>(m);
    integer_masses(hyp, n, ref, m, supply, demand);
    double* prices = make_vector(frame, m, kInfinity);
    for (int i = 0; i < n; ++i)
        for (int j = 0; j < m; j += kLanes) store(prices + j, lesser(load(cost.row(i) + j), load(prices + j)));
    for (int j = 0; j < padded(m); ++j) prices[j] = j < m ? -prices[j] : kInfinity;
    int* owners = bid_for_columns(frame, cost, prices);
    Arc* arcs = frame.take<Arc>(n + m);
    auto fill = [&](int i, int j) {
        std::int64_t amount = supply[i] < demand[j] ? supply[i] : demand[j];
        arcs[count++] = {i, j, amount};
        supply[i] -= amount;
        demand[j] -= amount;
        if (!demand[j]) prices[j] = kInfinity;
    };
    for (int j = 0; j < m; ++j)
        if (owners[j] >= 0) fill(owners[j], j);
    for (int i = 0; i < n; ++i)
        while (supply[i] > 0) {
            int j = cheapest(cost.row(i), prices, m);
            if (!demand[j])  // costs that are not finite, or whose difference is not: any column will do
                for (j = 0; !demand[j];) ++j;
            fill(i, j);
        }
    build_tree(arcs, m, tree);
}

// An arc that may enter the tree; without one the row is negative.
struct Entering {
    int row, column;
    double reduced_cost;
};

// The smallest reduced cost below -slack in a block of rows, the first of several. `sums(row, j)` are eight
// costs of a row from column j on with the potentials of their columns.
template <class Sums>
FREIGHT_INLINE Entering find_entering(int begin, int end, int stride, const double* potential, double slack,
                                      const Sums& sums) {
    Lanes low = all(-slack), none = all(end), where = none, index = all(begin);
    for (int i = begin; i < end; ++i) {
        Lanes next = sums(i, 0);
        for (int j = kLanes; j < stride; j += kLanes) next = lesser(sums(i, j), next);
        next = next - all(potential[i]);
        where = where_less(next, low, index, where);
        low = lesser(next, low);
        index = index + all(1.0);
    }
    double smallest = least(low);
    int row = static_cast<int>(least(where_equal(low, all(smallest), where, none)));
    if (row == end) return {-1, 0, 0.0};
    Lanes column = all(stride), place = load(kPlaces), level = all(potential[row]);
    for (int j = 0; j < stride; j += kLanes) {
        column = lesser(where_equal(sums(row, j) - level, all(smallest), place, column), column);
        place = place + all(kLanes);
    }
    return {row, static_cast<int>(least(column)), smallest};
}

// Pivot until there is no arc that may enter, which `find(begin, end)` looks for among some rows; how many
// pivots that took.
template <class Find>
FREIGHT_INLINE std::int64_t pivot_on(Tree& tree, double* potential, int rows, int block, std::int64_t limit,
                                     const Find& find) {
    std::int64_t pivots = 0;
    for (int begin = 0, passed = 0; passed < rows && pivots < limit;) {
        int end = begin + block < rows ? begin + block : rows;
        Entering arc = find(begin, end);
        passed += end - begin;
        begin = end < rows ? end : 0;
        if (arc.row < 0) continue;
        pivot(tree, potential, arc.row, tree.first + arc.column, arc.reduced_cost);
        passed = 0;
        ++pivots;
    }
    return pivots;
}

// Of each row the cheapest of every eighth columns at these potentials, and their costs.
inline void fill_lists(Matrix cost, const double* columns, double* costs, int* listed) {
    double places[kLanes];
    for (int i = 0; i < cost.rows; ++i) {
        store(places, find_minima(cost.row(i), columns, cost.columns).where);
        for (int k = 0; k < kLanes; ++k) {
            listed[i * kLanes + k] = static_cast<int>(places[k]);
            costs[i * kLanes + k] = cost.at(i, listed[i * kLanes + k]);
        }
    }
}

// Pivot until no reduced cost is negative beside the largest cost; how many pivots that took. Long rows do
// not fit into the nearer caches: all but the last pivots look at lists of their cheapest columns alone.
inline std::int64_t pivot_until(Matrix cost, Tree& tree, double* potential, double largest, std::int64_t limit) {
    ScratchFrame frame;
    int n = cost.rows, stride = padded(cost.columns);
    double slack = 1e-13 * largest;
    const double* columns = potential + tree.first;
    std::int64_t pivots = 0;
    if (cost.columns >= kLong) {
        double* costs = frame.take<double>(static_cast<std::size_t>(n) * kLanes);
        int* listed = frame.take<int>(static_cast<std::size_t>(n) * kLanes);
        auto sums = [&](int i, int) {
            double prices[kLanes];
            for (int k = 0; k < kLanes; ++k) prices[k] = columns[listed[i * kLanes + k]];
            return load(costs + i * kLanes) + load(prices);
        };
        auto find = [&](int begin, int end) {
            Entering arc = find_entering(begin, end, kLanes, potential, slack, sums);
            if (arc.row >= 0) arc.column = listed[arc.row * kLanes + arc.column];
            return arc;
        };
        for (std::int64_t before = -1; before < pivots;) {
            before = pivots;
            fill_lists(cost, columns, costs, listed);
            pivots += pivot_on(tree, potential, n, kListBlock, limit - pivots, find);
        }
    }
    auto sums = [&](int i, int j) { return load(cost.row(i) + j) + load(columns + j); };
    auto find = [&](int begin, int end) { return find_entering(begin, end, stride, potential, slack, sums); };
    return pivots + pivot_on(tree, potential, n, kBlock, limit - pivots, find);
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

// The cost of an optimal tree's plan, whose entries are given away, and by how much it exceeds what the
// cheapest could cost.
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
