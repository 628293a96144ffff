// Free-support Wasserstein-2 barycenters: the layers of a text become one cloud of as many points.
//
// The fixed point iteration of Alvarez-Esteban et al. (2016) with exact plans: match the points to
// every layer, move each to the mean of what it is matched to, repeat until nothing moves. Terms that
// depend on a row or a column alone change no plan, so negated inner products serve as the cost in
// place of squared distances. The masses never change, so that a tree for some costs is a beginning
// for any others: each layer begins with the optimal tree of the layer before, then with its own of
// the step before. A layer that needs no pivot has the same plan still, and a point that has the same
// shares of the units stays where it is.
#pragma once

#include "simplex.hpp"

namespace freight {
namespace FREIGHT_VARIANT {

constexpr double kDisplacement = 1e-14;  // squared, of all points together
constexpr double kSame = 1e-12;          // the largest change of a coefficient
constexpr int kPointTile = kWidth == 8 ? 4 : 2, kUnitTile = kWidth == 2 ? 1 : kWidth == 4 ? 2 : 4;

// The negated inner products of the points that move with the units of a layer that have mass: a tile of
// points and units at a time, so that each number loaded is used several times. At the edge the last
// unit is computed again.
inline void negated_products(Matrix points, Units moving, Matrix layer, Units kept, Matrix cost) {
    for (int i = 0; i < moving.count; i += kPointTile) {
        for (int j = 0; j < kept.count; j += kUnitTile) {
            const double *a[kPointTile], *b[kUnitTile];
            int rows[kPointTile], columns[kUnitTile];
            Lanes sums[kPointTile][kUnitTile];
            for (int p = 0; p < kPointTile; ++p) {
                rows[p] = moving.kept[i + p < moving.count ? i + p : moving.count - 1];
                a[p] = points.row(rows[p]);
                for (int q = 0; q < kUnitTile; ++q) sums[p][q] = all(0.0);
            }
            for (int q = 0; q < kUnitTile; ++q) {
                columns[q] = j + q < kept.count ? j + q : kept.count - 1;
                b[q] = layer.row(kept.kept[columns[q]]);
            }
            for (int d = 0; d < points.stride; d += kLanes)
                for (int p = 0; p < kPointTile; ++p) {
                    Lanes x = load(a[p] + d);
                    for (int q = 0; q < kUnitTile; ++q) sums[p][q] = sums[p][q] - x * load(b[q] + d);
                }
            for (int p = 0; p < kPointTile; ++p)
                for (int q = 0; q < kUnitTile; ++q) cost.at(rows[p], columns[q]) = sum(sums[p][q]);
        }
    }
}

struct Scaled {
    const double* vector;
    double scale;
};

template <int tile>
FREIGHT_INLINE void add_up(const Scaled* terms, int count, int d, double* total) {
    Lanes sums[tile];
    for (int t = 0; t < tile; ++t) sums[t] = all(0.0);
    for (int k = 0; k < count; ++k) {
        Lanes scale = all(terms[k].scale);
        for (int t = 0; t < tile; ++t) sums[t] = sums[t] + scale * load(terms[k].vector + d + t * kLanes);
    }
    for (int t = 0; t < tile; ++t) store(total + d + t * kLanes, sums[t]);
}

// The sum of vectors, each times its scale; a tile of their numbers at a time.
inline void add_up(const Scaled* terms, int count, double* total, int length) {
    constexpr int kTile = kWidth == 2 ? 2 : 4;
    int d = 0;
    for (; d + kTile * kLanes <= length; d += kTile * kLanes) add_up<kTile>(terms, count, d, total);
    for (; d < length; d += kLanes) add_up<1>(terms, count, d, total);
}

// What a point has of a unit.
struct Share {
    int point, unit;
    double size;
};

// How the points are matched to a layer: their shares, point after point, each point's from where it
// begins, and those they had before.
struct Match {
    Matrix cost;
    Tree tree;
    Share *shares, *former;
    int* begins;
};

// How they are matched to all layers, and which of them move then.
struct Matches {
    int size, depth;
    Units kept;
    const double *uniform, *mass;
    Match* layers;
    double* potential;
    Matrix difference;  // of shares, by point and unit; 0 between its uses
    Share* entered;
    Scaled* terms;
    bool* moves;
};

// In the beginning every point has its own unit of each layer, and all of them move there.
inline Matches make_matches(ScratchFrame& frame, int size, int depth, Units kept, const double* mass) {
    double* uniform = make_vector(frame, size);
    double* potential = make_vector(frame, padded(size) + kept.count, kInfinity);
    Match* layers = frame.take<Match>(depth);
    Matrix difference = make_matrix(frame, size, size);
    bool* moves = frame.take<bool>(size);
    clear(difference);
    for (int i = 0; i < size; ++i) uniform[i] = 1.0 / size, moves[i] = true;
    for (int layer = 0; layer < depth; ++layer) {
        Share* shares = frame.take<Share>(size + kept.count);
        int* begins = frame.take<int>(size + 2);
        for (int i = 0; i < size; ++i) shares[i] = {i, i, 1.0 / depth};
        for (int i = 0; i <= size; ++i) begins[i] = i;
        layers[layer] = {{}, make_tree(frame, size, kept.count), shares, frame.take<Share>(size + kept.count), begins};
    }
    Share* entered = frame.take<Share>(size + kept.count);
    Scaled* terms = frame.take<Scaled>(static_cast<std::size_t>(depth) * (kept.count + 1));
    return {size, depth, kept, uniform, mass, layers, potential, difference, entered, terms, moves};
}

// Read the shares off the tree of a layer, and mark the points for which any is another; the largest
// difference.
inline double read_shares(const Matches& matches, Match& match) {
    Share *shares = match.former, *former = match.shares;
    int before = match.begins[matches.size], count = 0, *ends = match.begins + 1;
    for (int i = 0; i <= matches.size; ++i) ends[i] = 0;
    read_plan(match.cost, matches.uniform, matches.mass, match.tree, [&](int i, int j, double mass) {
        matches.entered[count] = {i, matches.kept.kept[j], mass * matches.size / matches.depth};
        count += mass > 0.0;
        ends[i + 1] += mass > 0.0;
    });
    for (int i = 0; i < matches.size; ++i) ends[i + 1] += ends[i];
    for (int k = 0; k < count; ++k) shares[ends[matches.entered[k].point]++] = matches.entered[k];
    match.begins[0] = 0;
    match.shares = shares, match.former = former;
    auto difference = [&](const Share& share) -> double& { return matches.difference.at(share.point, share.unit); };
    for (int k = 0; k < before; ++k) difference(former[k]) -= former[k].size;
    for (int k = 0; k < count; ++k) difference(shares[k]) += shares[k].size;
    double largest = 0.0;
    auto take_back = [&](const Share& share) {
        double change = size_of(difference(share));
        largest = greater(change, largest);
        matches.moves[share.point] |= change > 0.0;
        difference(share) = 0.0;
    };
    for (int k = 0; k < before; ++k) take_back(former[k]);
    for (int k = 0; k < count; ++k) take_back(shares[k]);
    return largest;
}

// Match the points to every layer at its costs, none of them larger than `largest`; the largest
// difference to the shares before.
inline double match_points(const Matches& matches, double largest, bool first) {
    double change = 0.0;
    for (int i = 0; i < matches.size; ++i) matches.moves[i] = false;
    for (int layer = 0; layer < matches.depth; ++layer) {
        Match& match = matches.layers[layer];
        if (first && !layer) initial_tree(match.cost, matches.uniform, matches.mass, match.tree);
        if (first && layer) copy_tree(matches.layers[layer - 1].tree, match.tree);
        compute_potentials(match.cost, match.tree, matches.potential);
        std::int64_t limit = std::int64_t{1000} * match.tree.nodes;
        if (pivot_until(match.cost, match.tree, matches.potential, largest, limit) || first)
            change = greater(read_shares(matches, match), change);
    }
    return change;
}

// Gather what a point is the sum of, with the vector of each of its units; how many there are.
template <class Find>
FREIGHT_INLINE int gather_terms(const Matches& matches, int point, double sign, const Find& vector_of) {
    int count = 0;
    for (int layer = 0; layer < matches.depth; ++layer) {
        const Match& match = matches.layers[layer];
        for (int k = match.begins[point]; k < match.begins[point + 1]; ++k)
            matches.terms[count++] = {vector_of(layer, match.shares[k].unit), sign * match.shares[k].size};
    }
    return count;
}

struct Moved {
    double value;
    bool converged;
};

// The mean cost of the layers' plans, and whether all of them are exact.
inline Moved mean_cost(const Matches& matches) {
    Moved result{0.0, true};
    for (int layer = 0; layer < matches.depth; ++layer) {
        const Match& match = matches.layers[layer];
        Value value = value_of(match.cost, matches.uniform, matches.mass, match.tree, [](int, int, double) {});
        result.value += value.cost / matches.depth;
        result.converged = result.converged && value.exact(1e-9);
    }
    return result;
}

// Move the points until they stay; the objective, and whether they stay and every plan was exact.
inline Moved iterate_points(const Matches& matches, const Matrix* stack, std::int64_t max_iterations,
                            Matrix positions) {
    ScratchFrame frame;
    int size = matches.size, depth = matches.depth, dim = positions.columns;
    double spread = 0.0, largest = 0.0;
    for (int layer = 0; layer < depth; ++layer) {
        matches.layers[layer].cost = make_matrix(frame, size, matches.kept.count);
        for (int j = 0; j < matches.kept.count; ++j) {
            const double* unit = stack[layer].row(matches.kept.kept[j]);
            double square = dot(unit, unit, dim);
            spread += matches.mass[j] * square / depth;
            largest = greater(square, largest);
        }
    }
    double* moved = make_vector(frame, dim);
    auto vector_of = [&](int layer, int unit) { return stack[layer].row(unit); };
    int* moving = frame.take<int>(size);
    for (int i = 0; i < size; ++i)
        add_up(matches.terms, gather_terms(matches, i, 1.0, vector_of), positions.row(i), positions.stride);
    for (std::int64_t step = 0; step < max_iterations; ++step) {
        double square = 0.0, displacement = 0.0;
        for (int i = 0; i < size; ++i) square += dot(positions.row(i), positions.row(i), dim) / size;
        if (!(size_of(spread + square) < kInfinity)) return {__builtin_nan(""), false};
        int count = 0;
        for (int i = 0; i < size; ++i)
            if (matches.moves[i]) moving[count++] = i;
        for (int layer = 0; layer < depth; ++layer)
            negated_products(positions, {moving, count}, stack[layer], matches.kept, matches.layers[layer].cost);
        match_points(matches, largest, step == 0);
        for (int i = 0; i < size; ++i) {
            if (!matches.moves[i]) continue;
            add_up(matches.terms, gather_terms(matches, i, 1.0, vector_of), moved, positions.stride);
            Lanes total = all(0.0);
            for (int d = 0; d < positions.stride; d += kLanes) {
                Lanes x = load(moved + d) - load(positions.row(i) + d);
                total = total + x * x;
            }
            displacement += sum(total);
            std::memcpy(positions.row(i), moved, sizeof(double) * positions.stride);
        }
        bool stay = displacement < kDisplacement;
        if (!stay && step + 1 < max_iterations) continue;
        Moved plans = mean_cost(matches);
        return {greater(spread + square + 2.0 * plans.value, 0.0), stay && plans.converged};
    }
    return {kInfinity, false};
}

// Barycenters of padded texts: points (text, unit, dim), objective (mean W2^2), converged.
inline void barycenter_batch(const Barycenters& given) {
    share(given.texts, [&](std::int64_t k) {
        ScratchFrame frame;
        int size = static_cast<int>(given.sizes[k]), depth = static_cast<int>(given.depth);
        int dim = static_cast<int>(given.dim);
        Units kept = support(frame, given.weights, k, size, kInfinity);
        double* mass = compact_weights(frame, given.weights, k, kept);
        Matrix* stack = frame.take<Matrix>(depth);
        Matrix positions = make_matrix(frame, size, dim);
        for (int layer = 0; layer < depth; ++layer) {
            stack[layer] = make_matrix(frame, size, dim);
            clear(stack[layer]);
            for (int unit = 0; unit < size; ++unit) {
                double* copy = stack[layer].row(unit);
                std::int64_t row = layer * given.width + unit;
                for (int d = 0; d < dim; ++d) copy[d] = given.layers.at(k, row, d);
            }
        }
        double total = total_of(mass, kept.count);
        for (int j = 0; j < kept.count; ++j) mass[j] /= total;
        Matches matches = make_matches(frame, size, depth, kept, mass);
        Moved moved = iterate_points(matches, stack, given.max_iterations, positions);
        given.objective[k] = moved.value;
        given.converged[k] = moved.converged;
        for (int unit = 0; unit < size; ++unit)
            std::memcpy(given.points + (k * given.width + unit) * given.dim, positions.row(unit), sizeof(double) * dim);
    });
}

// Change the shares until they stay; whether they do and every plan was exact. A row of inner products
// has a stretch for each layer, with those of its units that have mass.
inline bool iterate_shares(const Matches& matches, Matrix gram, std::int64_t max_iterations) {
    ScratchFrame frame;
    if (!(size_of(total_of(gram.data, gram.cells())) < kInfinity)) return false;
    Matrix costs = make_matrix(frame, matches.size, gram.columns);
    for (int layer = 0; layer < matches.depth; ++layer)
        matches.layers[layer].cost = {costs.data + layer * (costs.stride / matches.depth), matches.size,
                                      matches.kept.count, costs.stride};
    double largest = largest_cost(gram);
    auto products_of = [&](int layer, int unit) { return gram.row(layer * matches.size + unit); };
    for (std::int64_t step = 0; step < max_iterations; ++step) {
        for (int i = 0; i < matches.size; ++i)
            if (matches.moves[i])
                add_up(matches.terms, gather_terms(matches, i, -1.0, products_of), costs.row(i), costs.stride);
        if (match_points(matches, largest, step == 0) < kSame) return mean_cost(matches).converged;
    }
    return false;
}

// Barycenters from inner products alone: those coefficients (text, unit, layer * unit) that are not 0.
inline void coefficients_batch(const Coefficients& given) {
    share(given.texts, [&](std::int64_t k) {
        ScratchFrame frame;
        int size = static_cast<int>(given.size), length = static_cast<int>(given.length);
        Units kept = support(frame, given.weights, k, size, kInfinity);
        double* mass = compact_weights(frame, given.weights, k, kept);
        double total = total_of(mass, kept.count);
        for (int j = 0; j < kept.count; ++j) mass[j] /= total;
        int depth = length / size, stretch = padded(kept.count);
        Matches matches = make_matches(frame, size, depth, kept, mass);
        Matrix gram = make_matrix(frame, length, depth * stretch);
        for (int p = 0; p < length; ++p)
            for (int layer = 0; layer < depth; ++layer) {
                double* products = gram.row(p) + layer * stretch;
                copy_row(given.gram, k, p, layer * size, kept, products);
                for (int j = kept.count; j < stretch; ++j) products[j] = 0.0;
            }
        given.converged[k] = iterate_shares(matches, gram, given.max_iterations);
        // A plan of a layer has fewer entries than units on both sides together.
        std::int64_t at = k * 2 * length, end = at + 2 * length;
        for (int layer = 0; layer < depth; ++layer)
            for (int s = 0; s < matches.layers[layer].begins[size]; ++s) {
                const Share& share = matches.layers[layer].shares[s];
                given.places[at] = share.point * length + layer * size + share.unit;
                given.values[at++] = share.size;
            }
        for (; at < end; ++at) {
            given.places[at] = size * length;
            given.values[at] = 0.0;
        }
    });
}

}  // namespace FREIGHT_VARIANT
}  // namespace freight
