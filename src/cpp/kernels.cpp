// All that gains from wider vectors, compiled once for each of them.
#include "barycenters.hpp"
#include "interior_point.hpp"
#include "simplex.hpp"
#include "sinkhorn.hpp"
#include "values.hpp"
#include "words.hpp"

#define FREIGHT_JOIN(a, b) a##b
#define FREIGHT_NAME(variant) FREIGHT_JOIN(kernels_, variant)
#define FREIGHT_QUOTE(x) #x
#define FREIGHT_TEXT(x) FREIGHT_QUOTE(x)

namespace freight {
namespace FREIGHT_VARIANT {

static void solve_bordered_arrays(const double* w, std::int64_t n, std::int64_t m, const double* p, const double* q,
                                  const double* r, const double* s, double* x, double* y) {
    ScratchFrame frame;
    Matrix matrix = make_matrix(frame, static_cast<int>(n), static_cast<int>(m));
    clear(matrix);
    for (int i = 0; i < n; ++i) std::memcpy(matrix.row(i), w + i * m, sizeof(double) * m);
    solve_bordered(matrix, p, q, r, s, x, y);
}

}  // namespace FREIGHT_VARIANT

namespace variant = FREIGHT_VARIANT;

extern const Kernels FREIGHT_NAME(FREIGHT_VARIANT) = {
    FREIGHT_TEXT(FREIGHT_VARIANT),
    variant::simplex_batch,
    variant::nearest_batch,
    variant::interior_point_batch,
    variant::sinkhorn_batch,
    variant::find_faults,
    variant::totals,
    variant::barycenter_batch,
    variant::coefficients_batch,
    variant::lengths_of,
    variant::unit_means,
    variant::nsim,
    variant::cosines,
    variant::solve_bordered_arrays,
    variant::exp_in_place,
    variant::log_in_place,
};

}  // namespace freight
