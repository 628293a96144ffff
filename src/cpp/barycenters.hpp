// Free-support Wasserstein-2 barycenters: the layers of a text become one cloud of as many points.
//
// The fixed point iteration of Alvarez-Esteban et al. (2016) with exact plans: match the points to
// every layer, move each to the mean of what it is matched to, repeat until nothing moves. Terms that
// depend on a row or a column alone change no plan, so negated inner products serve as the cost in
// place of squared distances. The masses never change, so each layer starts from its optimal tree of
// the step before. A plan has few entries per unit, so moving the points costs next to nothing.
#pragma once

#include "simplex.hpp"

namespace freight {
namespace FREIGHT_VARIANT {

constexpr double kDisplacement = 1e-14;  // squared, of all points together
constexpr double kSame = 1e-12;          // the largest change of a coefficient
constexpr int kPointTile = kWidth == 8 ? 4 : 2, kUnitTile = kWidth == 2 ? 1 : kWidth == 4 ? 2 : 4;

inline Tree* make_trees(ScratchFrame& frame, int layers, int rows, int columns) {
    Tree* trees = frame.take<Tree>(layers);
    for (int layer = 0; layer < layers; ++layer) trees[layer] = make_tree(frame, rows, columns);
    return trees;
}

// The negated inner products of the points with the units of a layer that have mass: a tile of points
// and units at a time, so that each number loaded is used several times. At the edge the last unit is
// computed again.
inline void negated_products(Matrix points, Matrix layer, Units kept, Matrix cost) {
    for (int i = 0; i < points.rows; i += kPointTile) {
        for (int j = 0; j < kept.count; j += kUnitTile) {
            const double *a[kPointTile], *b[kUnitTile];
            int rows[kPointTile], columns[kUnitTile];
            Lanes sums[kPointTile][kUnitTile];
            for (int p = 0; p < kPointTile; ++p) {
                rows[p] = i + p < points.rows ? i + p : points.rows - 1;
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

FREIGHT_INLINE void add_scaled(double* total, const double* vector, double scale, int length) {
    Lanes s = all(scale);
    for (int d = 0; d < length; d += kLanes) store(total + d, load(total + d) + s * load(vector + d));
}

FREIGHT_INLINE void fill_up(Matrix cost) {
    for (int i = 0; i < cost.rows; ++i)
        for (int j = cost.columns; j < cost.stride; ++j) cost.at(i, j) = kFar;
}

struct Moved {
    double objective;
    bool converged;
};

// Move the points until they stay; the objective, and whether they stay and every plan was exact.
inline Moved iterate_points(const Matrix* stack, int depth, Units kept, const double* mass, std::int64_t max_iterations,
                            Matrix positions) {
    ScratchFrame frame;
    int size = positions.rows;
    double spread = 0.0, value = kInfinity;
    for (int layer = 0; layer < depth; ++layer)
        for (int j = 0; j < kept.count; ++j) {
            const double* unit = stack[layer].row(kept.kept[j]);
            spread += mass[j] * dot(unit, unit, positions.columns);
        }
    spread /= depth;
    double* uniform = make_vector(frame, size);
    for (int i = 0; i < size; ++i) uniform[i] = 1.0 / size;
    Tree* trees = make_trees(frame, depth, size, kept.count);
    Matrix cost = make_matrix(frame, size, kept.count), plan = make_matrix(frame, size, kept.count);
    Matrix moved = make_matrix(frame, size, positions.columns);
    fill_up(cost);
    for (std::int64_t step = 0; step < max_iterations; ++step) {
        double square = 0.0, crossing = 0.0, displacement = 0.0;
        for (int i = 0; i < size; ++i) square += dot(positions.row(i), positions.row(i), positions.columns) / size;
        if (!(size_of(spread + square) < kInfinity)) return {__builtin_nan(""), false};
        clear(moved);
        bool exact = true;
        for (int layer = 0; layer < depth; ++layer) {
            negated_products(positions, stack[layer], kept, cost);
            if (step == 0) initial_tree(cost, uniform, mass, trees[layer]);
            clear(plan);
            auto fill = [&](int i, int j, double amount) { plan.at(i, j) = amount; };
            Value solved = solve_from_tree(cost, uniform, mass, trees[layer], 1000, fill);
            exact = exact && solved.gap <= 1e-9 * (1.0 + size_of(solved.cost));
            crossing -= solved.cost / depth;
            for (int i = 0; i < size; ++i)
                for (int j = 0; j < kept.count; ++j)
                    if (plan.at(i, j) > 0.0)
                        add_scaled(moved.row(i), stack[layer].row(kept.kept[j]),
                                   plan.at(i, j) * (static_cast<double>(size) / depth), moved.stride);
        }
        value = greater(spread + square - 2.0 * crossing, 0.0);
        for (int i = 0; i < size; ++i) {
            Lanes total = all(0.0);
            for (int d = 0; d < moved.stride; d += kLanes) {
                Lanes x = load(moved.row(i) + d) - load(positions.row(i) + d);
                total = total + x * x;
            }
            displacement += sum(total);
        }
        std::memcpy(positions.data, moved.data, sizeof(double) * moved.cells());
        if (displacement < kDisplacement) return {value, exact};
    }
    return {value, false};
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
        clear(positions);
        for (int layer = 0; layer < depth; ++layer) {
            stack[layer] = make_matrix(frame, size, dim);
            clear(stack[layer]);
            for (int unit = 0; unit < size; ++unit) {
                double* copy = stack[layer].row(unit);
                std::int64_t row = layer * given.width + unit;
                for (int d = 0; d < dim; ++d) copy[d] = given.layers.at(k, row, d);
                add_scaled(positions.row(unit), copy, 1.0 / depth, positions.stride);
            }
        }
        double total = total_of(mass, kept.count);
        for (int j = 0; j < kept.count; ++j) mass[j] /= total;
        Moved moved = iterate_points(stack, depth, kept, mass, given.max_iterations, positions);
        given.objective[k] = moved.objective;
        given.converged[k] = moved.converged;
        for (int unit = 0; unit < size; ++unit)
            std::memcpy(given.points + (k * given.width + unit) * given.dim, positions.row(unit), sizeof(double) * dim);
    });
}

// Inner products of the points that have moved with all units; few of their coefficients are not 0.
inline void combine_products(Matrix coefficients, Matrix gram, const bool* moved, Matrix out) {
    for (int i = 0; i < coefficients.rows; ++i) {
        if (!moved[i]) continue;
        double* sums = out.row(i);
        for (int q = 0; q < out.stride; ++q) sums[q] = 0.0;
        for (int p = 0; p < coefficients.columns; ++p)
            if (coefficients.at(i, p) != 0.0) add_scaled(sums, gram.row(p), coefficients.at(i, p), out.stride);
    }
}

// Change the coefficients until they stay; whether they do and every plan was exact.
inline bool iterate_coefficients(Matrix gram, Units kept, const double* mass, std::int64_t max_iterations,
                                 Matrix coefficients) {
    ScratchFrame frame;
    int size = coefficients.rows, depth = coefficients.columns / size;
    double* uniform = make_vector(frame, size);
    for (int i = 0; i < size; ++i) {
        uniform[i] = 1.0 / size;
        for (int layer = 0; layer < depth; ++layer) coefficients.at(i, layer * size + i) = 1.0 / depth;
    }
    Tree* trees = make_trees(frame, depth, size, kept.count);
    Matrix cost = make_matrix(frame, size, kept.count), plan = make_matrix(frame, size, kept.count);
    Matrix moved = make_matrix(frame, size, coefficients.columns);
    Matrix products = make_matrix(frame, size, coefficients.columns);
    bool* changed = frame.take<bool>(size);
    for (int i = 0; i < size; ++i) changed[i] = true;
    fill_up(cost);
    for (std::int64_t step = 0; step < max_iterations; ++step) {
        combine_products(coefficients, gram, changed, products);
        if (!(size_of(total_of(products.data, products.cells())) < kInfinity)) return false;
        clear(moved);
        bool exact = true;
        for (int layer = 0; layer < depth; ++layer) {
            for (int i = 0; i < size; ++i)
                for (int j = 0; j < kept.count; ++j) cost.at(i, j) = -products.at(i, layer * size + kept.kept[j]);
            if (step == 0) initial_tree(cost, uniform, mass, trees[layer]);
            clear(plan);
            auto fill = [&](int i, int j, double amount) { plan.at(i, j) = amount; };
            Value solved = solve_from_tree(cost, uniform, mass, trees[layer], 1000, fill);
            exact = exact && solved.gap <= 1e-9 * (1.0 + size_of(solved.cost));
            for (int i = 0; i < size; ++i)
                for (int j = 0; j < kept.count; ++j)
                    moved.at(i, layer * size + kept.kept[j]) = plan.at(i, j) * size / depth;
        }
        double change = 0.0;
        for (int i = 0; i < size; ++i) {
            double most = 0.0;
            for (int p = 0; p < moved.stride; ++p)
                most = greater(most, size_of(moved.at(i, p) - coefficients.at(i, p)));
            changed[i] = most > 0.0;
            change = greater(change, most);
        }
        std::memcpy(coefficients.data, moved.data, sizeof(double) * moved.cells());
        if (change < kSame) return exact;
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
        Matrix gram = make_matrix(frame, length, length), coefficients = make_matrix(frame, size, length);
        clear(gram);
        clear(coefficients);
        for (int p = 0; p < length; ++p)
            for (int q = 0; q < length; ++q) gram.at(p, q) = given.gram.at(k, p, q);
        given.converged[k] = iterate_coefficients(gram, kept, mass, given.max_iterations, coefficients);
        // A plan of a layer has fewer entries than units on both sides together.
        std::int64_t at = k * 2 * length, end = at + 2 * length;
        for (int i = 0; i < size; ++i)
            for (int p = 0; p < length; ++p)
                if (coefficients.at(i, p) != 0.0 && at < end) {
                    given.places[at] = i * length + p;
                    given.values[at++] = coefficients.at(i, p);
                }
        for (; at < end; ++at) {
            given.places[at] = size * length;
            given.values[at] = 0.0;
        }
    });
}

}  // namespace FREIGHT_VARIANT
}  // namespace freight
