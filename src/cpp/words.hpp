// Masses and cosines of words and n-grams. Word vectors are multiplied in their own precision, and
// summed up in double precision.
#pragma once

#include "support.hpp"

namespace freight {
namespace FREIGHT_VARIANT {

template <class T, class U>
inline double product(const T* a, const U* b, std::int64_t dim) {
    double lanes[kLanes] = {};
    std::int64_t d = 0;
    for (; d + kLanes <= dim; d += kLanes)
        for (int k = 0; k < kLanes; ++k) lanes[k] += static_cast<double>(a[d + k] * b[d + k]);
    for (int k = 0; d < dim; ++d, ++k) lanes[k] += static_cast<double>(a[d] * b[d]);
    return sum(load(lanes));
}

template <class T>
FREIGHT_INLINE const T* vector_of(const Points& points, std::int64_t unit) {
    return static_cast<const T*>(points.data) + unit * points.dim;
}

// The length of each point; 1 for a zero vector, which is orthogonal to everything.
template <class T>
inline void fill_lengths(const Points& points, std::int64_t count, double* out) {
    for (std::int64_t k = 0; k < count; ++k) {
        double length = __builtin_sqrt(product(vector_of<T>(points, k), vector_of<T>(points, k), points.dim));
        out[k] = length > 0.0 ? length : 1.0;
    }
}

// Sums of consecutive points, scaled to unit length.
template <class T>
inline void fill_unit_means(const Points& points, std::int64_t groups, const std::int64_t* offsets, float* out) {
    ScratchFrame frame;
    double* total = frame.take<double>(points.dim);
    for (std::int64_t group = 0; group < groups; ++group) {
        for (std::int64_t d = 0; d < points.dim; ++d) total[d] = 0.0;
        for (std::int64_t k = offsets[group]; k < offsets[group + 1]; ++k) {
            const T* point = vector_of<T>(points, k);
            for (std::int64_t d = 0; d < points.dim; ++d) total[d] += static_cast<double>(point[d]);
        }
        double length = __builtin_sqrt(dot(total, total, points.dim)), scale = length > 0.0 ? 1.0 / length : 0.0;
        for (std::int64_t d = 0; d < points.dim; ++d)
            out[group * points.dim + d] = static_cast<float>(total[d] * scale);
    }
}

// Softmax of the similarity to the text, which is 1 for its own units.
template <class T>
inline void fill_nsim(const Points& points, const double* lengths, const float* centroids, std::int64_t pairs,
                      const std::int64_t* texts, const std::int64_t* offsets, const std::int64_t* sizes,
                      const std::int64_t* unit, const double* place, double* mass) {
    for (std::int64_t pair = 0; pair < pairs; ++pair) {
        double total = 0.0;
        std::int64_t begin = offsets[pair], end = begin + sizes[pair];
        for (std::int64_t slot = begin; slot < end; ++slot) {
            double near = 1.0;
            if (place[slot] != place[slot])
                near = product(vector_of<T>(points, unit[slot]), centroids + texts[pair] * points.dim, points.dim) /
                       lengths[unit[slot]];
            mass[slot] = exp(near);
            total += mass[slot];
        }
        for (std::int64_t slot = begin; slot < end; ++slot) mass[slot] /= total;
    }
}

// Cosines (pair, width, width), in double precision, or equal n-grams would be apart.
template <class T>
inline void fill_cosines(const Points& points, const double* lengths, std::int64_t pairs, std::int64_t width,
                         const std::int64_t* hyp, const std::int64_t* ref, const std::int64_t* hyp_sizes,
                         const std::int64_t* ref_sizes, double* out) {
    share(pairs, [&](std::int64_t pair) {
        ScratchFrame frame;
        int dim = static_cast<int>(points.dim), room = padded(dim);
        double* exact = frame.take<double>(room * static_cast<std::size_t>(ref_sizes[pair] + 1));
        double* here = exact + room * ref_sizes[pair];
        auto copy = [&](std::int64_t unit, double* to) {
            const T* point = vector_of<T>(points, unit);
            for (int d = 0; d < room; ++d) to[d] = d < dim ? static_cast<double>(point[d]) : 0.0;
        };
        for (std::int64_t j = 0; j < ref_sizes[pair]; ++j) copy(ref[pair * width + j], exact + j * room);
        for (std::int64_t i = 0; i < hyp_sizes[pair]; ++i) {
            std::int64_t one = hyp[pair * width + i];
            copy(one, here);
            for (std::int64_t j = 0; j < ref_sizes[pair]; ++j)
                out[(pair * width + i) * width + j] =
                    dot(here, exact + j * room, room) / (lengths[one] * lengths[ref[pair * width + j]]);
        }
    });
}

#define FREIGHT_BY_PRECISION(name, ...) points.wide ? name<double>(__VA_ARGS__) : name<float>(__VA_ARGS__)

inline void lengths_of(const Points& points, std::int64_t count, double* out) {
    FREIGHT_BY_PRECISION(fill_lengths, points, count, out);
}
inline void unit_means(const Points& points, std::int64_t groups, const std::int64_t* offsets, float* out) {
    FREIGHT_BY_PRECISION(fill_unit_means, points, groups, offsets, out);
}
inline void nsim(const Points& points, const double* lengths, const float* centroids, std::int64_t pairs,
                 const std::int64_t* texts, const std::int64_t* offsets, const std::int64_t* sizes,
                 const std::int64_t* unit, const double* place, double* mass) {
    FREIGHT_BY_PRECISION(fill_nsim, points, lengths, centroids, pairs, texts, offsets, sizes, unit, place, mass);
}
inline void cosines(const Points& points, const double* lengths, std::int64_t pairs, std::int64_t width,
                    const std::int64_t* hyp, const std::int64_t* ref, const std::int64_t* hyp_sizes,
                    const std::int64_t* ref_sizes, double* out) {
    FREIGHT_BY_PRECISION(fill_cosines, points, lengths, pairs, width, hyp, ref, hyp_sizes, ref_sizes, out);
}

}  // namespace FREIGHT_VARIANT
}  // namespace freight
