// What every solver is given: padded arrays of any precision and any strides, and their terms.
#pragma once

#include <cstdint>

#include "threads.hpp"

namespace freight {

constexpr double kInfinity = __builtin_huge_val();

// Numbers of a caller's array: (pair, unit) or (pair, unit, unit); strides are in bytes.
struct Numbers {
    const char* data;
    std::int64_t stride[3];
    bool wide;  // float64, otherwise float32

    FREIGHT_INLINE double at(std::int64_t k, std::int64_t i) const { return read(data + k * stride[0] + i * stride[1]); }
    FREIGHT_INLINE double at(std::int64_t k, std::int64_t i, std::int64_t j) const {
        return read(data + k * stride[0] + i * stride[1] + j * stride[2]);
    }

  private:
    FREIGHT_INLINE double read(const char* place) const {
        return wide ? *reinterpret_cast<const double*>(place)
                    : static_cast<double>(*reinterpret_cast<const float*>(place));
    }
};

struct Batch {
    Numbers cost, hyp_weights, ref_weights;
    const std::int64_t *hyp_sizes, *ref_sizes;
    std::int64_t pairs;
};

// Penalties and epsilon of all problems, and when a solver may stop.
struct Terms {
    double hyp, ref, epsilon, tolerance;
    std::int64_t max_iterations;
};

// The plans (pair, n, m) in float64, without gaps; 0 beforehand. The simplex may be asked for the entries of
// its trees instead, and then has no flow: where they are in a plan and their masses (pair, n + m), a place
// past the last is n * m; and what the plans cost.
struct Solved {
    double* flow;
    std::int64_t n, m;
    double* gap;
    bool* converged;
    std::int64_t* places;
    double *masses, *transport;
};

struct Barycenters {
    Numbers layers;  // (text, layer * unit, dim)
    Numbers weights;
    const std::int64_t* sizes;
    std::int64_t texts, depth, width, dim, max_iterations;
    double *points, *objective;
    bool* converged;
};

struct Coefficients {
    Numbers gram, weights;
    std::int64_t texts, size, length, max_iterations;
    std::int32_t* places;  // (text, 2 * length), of the coefficients that are not 0; size * length after the last
    double* values;
    bool* converged;
};

// Word vectors (unit, dim) without gaps.
struct Points {
    const void* data;
    std::int64_t dim;
    bool wide;
};

// The functions that are compiled once for every vector unit.
struct Kernels {
    const char* name;
    void (*simplex)(const Batch&, const Terms&, const Solved&);
    void (*nearest)(const Batch&, const Terms&, const Solved&);
    void (*interior_point)(const Batch&, const Terms&, const Solved&);
    void (*sinkhorn)(const Batch&, const Terms&, const Solved&);
    void (*find_faults)(const Batch&, const Terms&, double rtol, std::int64_t* faults);
    void (*totals)(const Batch&, const Terms&, const Numbers& flow, double* out);
    void (*barycenters)(const Barycenters&);
    void (*coefficients)(const Coefficients&);
    void (*lengths)(const Points&, std::int64_t count, double* out);
    void (*unit_means)(const Points&, std::int64_t groups, const std::int64_t* offsets, float* out);
    void (*nsim)(const Points&, const double* lengths, const float* centroids, std::int64_t pairs,
                 const std::int64_t* texts, const std::int64_t* offsets, const std::int64_t* sizes,
                 const std::int64_t* unit, const double* place, double* mass);
    void (*cosines)(const Points&, const double* lengths, std::int64_t pairs, std::int64_t width,
                    const std::int64_t* hyp, const std::int64_t* ref, const std::int64_t* hyp_sizes,
                    const std::int64_t* ref_sizes, double* out);
    void (*solve_bordered)(const double* w, std::int64_t n, std::int64_t m, const double* p, const double* q,
                           const double* r, const double* s, double* x, double* y);
    void (*exp)(double*, std::int64_t);
    void (*log)(double*, std::int64_t);
};

extern const Kernels kernels_baseline;
#if defined(FREIGHT_X86)
extern const Kernels kernels_avx2, kernels_avx512;
#endif

}  // namespace freight
