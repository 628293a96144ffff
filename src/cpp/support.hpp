// One problem of a batch on its support: without padding and without units that have no mass.
#pragma once

#include "batches.hpp"
#include "lanes.hpp"
#include "threads.hpp"

namespace freight {
namespace FREIGHT_VARIANT {

constexpr double kFar = 1e300;  // the cost of a column that only fills up a row

struct Units {
    const int* kept;
    int count;
};

struct Problem {
    Units hyp, ref;
    Matrix cost;
    double *hyp_weights, *ref_weights;  // padded by zeros
};

// Solve every problem of a batch, the large ones first.
template <class Work>
FREIGHT_INLINE void share_problems(const Batch& batch, const Work& work) {
    ScratchFrame frame;
    std::int64_t* order = frame.take<std::int64_t>(batch.pairs);
    largest_first(batch.hyp_sizes, batch.ref_sizes, batch.pairs, order);
    share(batch.pairs, [&](std::int64_t k) { work(order[k]); });
}

inline Matrix make_matrix(ScratchFrame& frame, int rows, int columns) {
    int stride = padded(columns);
    return {frame.take<double>(static_cast<std::size_t>(rows) * stride), rows, columns, stride};
}

inline double* make_vector(ScratchFrame& frame, int size, double filling = 0.0) {
    int room = padded(size);
    double* result = frame.take<double>(room);
    for (int k = 0; k < room; ++k) result[k] = filling;
    return result;
}

// The units with mass on one side; all of them where the marginal is free.
inline Units support(ScratchFrame& frame, const Numbers& weights, std::int64_t k, std::int64_t size, double penalty) {
    int* kept = frame.take<int>(size);
    int count = 0;
    for (int unit = 0; unit < size; ++unit)
        if (penalty == 0.0 || weights.at(k, unit) > 0.0) kept[count++] = unit;
    return {kept, count};
}

inline double* compact_weights(ScratchFrame& frame, const Numbers& weights, std::int64_t k, Units units) {
    double* small = make_vector(frame, units.count);
    for (int i = 0; i < units.count; ++i) small[i] = weights.at(k, units.kept[i]);
    return small;
}

template <class T>
inline void copy_units(const char* row, std::int64_t step, Units columns, double* out) {
    bool gapless = columns.kept[columns.count - 1] == columns.count - 1;
    if (gapless && step == sizeof(T)) {
        const T* x = reinterpret_cast<const T*>(row);
        for (int j = 0; j < columns.count; ++j) out[j] = static_cast<double>(x[j]);
    } else {
        for (int j = 0; j < columns.count; ++j)
            out[j] = static_cast<double>(*reinterpret_cast<const T*>(row + columns.kept[j] * step));
    }
}

// The numbers of some units in a row of an array (pair, unit, unit), of which the first is at `begin`.
inline void copy_row(const Numbers& from, std::int64_t k, std::int64_t i, std::int64_t begin, Units columns,
                     double* out) {
    const char* row = from.data + k * from.stride[0] + i * from.stride[1] + begin * from.stride[2];
    if (from.wide)
        copy_units<double>(row, from.stride[2], columns, out);
    else
        copy_units<float>(row, from.stride[2], columns, out);
}

// Costs are divided by a unit.
inline Problem make_problem(ScratchFrame& frame, const Batch& batch, std::int64_t k, const Terms& terms, double unit) {
    Problem problem;
    problem.hyp = support(frame, batch.hyp_weights, k, batch.hyp_sizes[k], terms.hyp);
    problem.ref = support(frame, batch.ref_weights, k, batch.ref_sizes[k], terms.ref);
    problem.hyp_weights = compact_weights(frame, batch.hyp_weights, k, problem.hyp);
    problem.ref_weights = compact_weights(frame, batch.ref_weights, k, problem.ref);
    Matrix cost = problem.cost = make_matrix(frame, problem.hyp.count, problem.ref.count);
    for (int i = 0; i < cost.rows; ++i) {
        double* row = cost.row(i);
        copy_row(batch.cost, k, problem.hyp.kept[i], 0, problem.ref, row);
        if (unit != 1.0)
            for (int j = 0; j < cost.columns; ++j) row[j] /= unit;
        for (int j = cost.columns; j < cost.stride; ++j) row[j] = kFar;
    }
    return problem;
}

inline double largest_cost(Matrix cost) {
    double largest = 0.0;
    for (int i = 0; i < cost.rows; ++i) {
        const double* row = cost.row(i);
        Lanes top = all(0.0);
        int j = 0;
        for (; j + kLanes <= cost.columns; j += kLanes) {
            Lanes x = load(row + j);
            top = greater(top, greater(x, all(0.0) - x));
        }
        largest = greater(largest, most(top));
        for (; j < cost.columns; ++j) largest = greater(largest, size_of(row[j]));
    }
    return largest;
}

// Scale the ref masses to the total of the hyp masses, from which they differ by rounding.
inline void balance_totals(const double* hyp, int n, double* ref, int m) {
    double ratio = total_of(hyp, n) / total_of(ref, m);
    for (int j = 0; j < m; ++j) ref[j] *= ratio;
}

// Write a plan on the support into the caller's padded flow.
inline void scatter_plan(const Problem& problem, Matrix plan, const Solved& solved, std::int64_t k) {
    for (int i = 0; i < plan.rows; ++i) {
        double* out = solved.flow + (k * solved.n + problem.hyp.kept[i]) * solved.m;
        const double* row = plan.row(i);
        for (int j = 0; j < plan.columns; ++j) out[problem.ref.kept[j]] = row[j];
    }
}

}  // namespace FREIGHT_VARIANT
}  // namespace freight
