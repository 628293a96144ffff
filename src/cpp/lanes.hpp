// Eight numbers at a time, with the same bits on every processor.
//
// `Lanes` is eight numbers whatever the width of the vector unit, a sum is eight partial sums that
// are added in a fixed order, and no product is fused with a sum: wider vectors change the speed,
// and nothing else. exp and log are ours for the same reason; libraries choose theirs by processor.
// This file is compiled once per vector unit and must not use templates of the standard library,
// of which the linker would keep a single copy.
#pragma once

#include <cstdint>
#include <cstring>

#include "threads.hpp"

namespace freight {
namespace FREIGHT_VARIANT {

#if defined(__AVX512F__)
constexpr int kWidth = 8;
#elif defined(__AVX__)
constexpr int kWidth = 4;
#else
constexpr int kWidth = 2;
#endif
constexpr int kLanes = 8, kParts = kLanes / kWidth;

typedef double Vector __attribute__((vector_size(8 * kWidth)));
typedef long long Integers __attribute__((vector_size(8 * kWidth)));

#define FREIGHT_EACH for (int p = 0; p < kParts; ++p)

struct Lanes {
    Vector part[kParts];
};

// Part by part: a copy of all of them would go through memory in pieces that no vector fits.
FREIGHT_INLINE Lanes load(const double* x) {
    Lanes r;
    FREIGHT_EACH std::memcpy(&r.part[p], x + p * kWidth, sizeof r.part[p]);
    return r;
}
FREIGHT_INLINE void store(double* x, Lanes a) {
    FREIGHT_EACH std::memcpy(x + p * kWidth, &a.part[p], sizeof a.part[p]);
}
FREIGHT_INLINE Lanes all(double x) {
    Lanes r;
    FREIGHT_EACH r.part[p] = x - Vector{};
    return r;
}
FREIGHT_INLINE Lanes load(const float* x) {
    double wide[kLanes];
    for (int k = 0; k < kLanes; ++k) wide[k] = static_cast<double>(x[k]);
    return load(wide);
}

#define FREIGHT_OPERATOR(op)                                  \
    FREIGHT_INLINE Lanes operator op(Lanes a, Lanes b) {      \
        FREIGHT_EACH a.part[p] = a.part[p] op b.part[p];      \
        return a;                                             \
    }
FREIGHT_OPERATOR(+)
FREIGHT_OPERATOR(-)
FREIGHT_OPERATOR(*)
FREIGHT_OPERATOR(/)
#undef FREIGHT_OPERATOR

FREIGHT_INLINE Lanes lesser(Lanes a, Lanes b) {
    FREIGHT_EACH a.part[p] = a.part[p] < b.part[p] ? a.part[p] : b.part[p];
    return a;
}
FREIGHT_INLINE Lanes greater(Lanes a, Lanes b) {
    FREIGHT_EACH a.part[p] = a.part[p] > b.part[p] ? a.part[p] : b.part[p];
    return a;
}

FREIGHT_INLINE double lesser(double a, double b) { return a < b ? a : b; }
FREIGHT_INLINE double greater(double a, double b) { return a > b ? a : b; }
FREIGHT_INLINE double size_of(double x) { return __builtin_fabs(x); }

FREIGHT_INLINE double sum(Lanes a) {
    for (int parts = kParts / 2; parts; parts /= 2)
        for (int p = 0; p < parts; ++p) a.part[p] = a.part[p] + a.part[p + parts];
    Vector x = a.part[0];
#if defined(__AVX512F__)
    typedef double Half __attribute__((vector_size(32)));
    Half y = Half{x[0], x[1], x[2], x[3]} + Half{x[4], x[5], x[6], x[7]};
    return (y[0] + y[2]) + (y[1] + y[3]);
#elif defined(__AVX__)
    return (x[0] + x[2]) + (x[1] + x[3]);
#else
    return x[0] + x[1];
#endif
}
FREIGHT_INLINE double least(Lanes a) {
    double x[kLanes];
    store(x, a);
    return lesser(lesser(lesser(x[0], x[4]), lesser(x[2], x[6])), lesser(lesser(x[1], x[5]), lesser(x[3], x[7])));
}
FREIGHT_INLINE double most(Lanes a) {
    double x[kLanes];
    store(x, a);
    return greater(greater(greater(x[0], x[4]), greater(x[2], x[6])), greater(greater(x[1], x[5]), greater(x[3], x[7])));
}
// The numbers of `a` where x is equal to y, and of `b` elsewhere.
FREIGHT_INLINE Lanes where_equal(Lanes x, Lanes y, Lanes a, Lanes b) {
    FREIGHT_EACH a.part[p] = x.part[p] == y.part[p] ? a.part[p] : b.part[p];
    return a;
}

// The numbers of `a` where x is less than y, and of `b` elsewhere.
FREIGHT_INLINE Lanes where_less(Lanes x, Lanes y, Lanes a, Lanes b) {
    FREIGHT_EACH a.part[p] = x.part[p] < y.part[p] ? a.part[p] : b.part[p];
    return a;
}

// The last numbers of an array, fewer than eight, and a filling.
FREIGHT_INLINE Lanes load_some(const double* x, int count, double filling) {
    double padded[kLanes];
    for (int k = 0; k < kLanes; ++k) padded[k] = k < count ? x[k] : filling;
    return load(padded);
}

FREIGHT_INLINE int padded(std::int64_t count) { return static_cast<int>((count + kLanes - 1) / kLanes * kLanes); }

constexpr double kLog2E = 1.4426950408889634;
constexpr double kLn2High = 6.93147180369123816490e-01, kLn2Low = 1.90821492927058770002e-10;
constexpr double kRound = 6755399441055744.0;  // added to a double, leaves an integer in the low bits
constexpr double kTwoTo52 = 4503599627370496.0;
constexpr long long kTwoTo52Bits = 0x4330000000000000LL, kSqrtHalfBits = 0x3FE6A09E667F3BCDLL;

// exp(x), relative error at most 4e-16; x is clipped to [-700, 700], so that nothing overflows.
// exp(x) = 2**n exp(r) with n an integer and |r| < 0.35, where twelve terms are enough.
FREIGHT_INLINE Vector exp_of(Vector x) {
    const Vector low = -700.0 - Vector{}, high = 700.0 - Vector{};
    x = x > low ? x : low;
    x = x < high ? x : high;
    Vector shifted = x * kLog2E + kRound;
    Vector whole = shifted - kRound;
    Integers bits = (Integers)shifted;
    Vector scale = (Vector)((bits + 1023) << 52);
    Vector r = (x - whole * kLn2High) - whole * kLn2Low;
    Vector p = r * (1.0 / 479001600.0) + 1.0 / 39916800.0;
    p = p * r + 1.0 / 3628800.0;
    p = p * r + 1.0 / 362880.0;
    p = p * r + 1.0 / 40320.0;
    p = p * r + 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 0.5;
    return (r + r * r * p + 1.0) * scale;
}

// log(x) for positive normal numbers, relative error at most 3e-16:
// log(2**n (1 + f)) = n log 2 + f - f^2/2 + s (f^2/2 + the tail), s = f / (2 + f).
FREIGHT_INLINE Vector log_of(Vector x) {
    Integers bits = (Integers)x;
    Integers raised = bits + ((1024LL << 52) - kSqrtHalfBits);
    typedef unsigned long long Naturals __attribute__((vector_size(8 * kWidth)));
    Integers n = (Integers)((Naturals)raised >> 52);  // 1024 more than the power, never negative
    Vector whole = (Vector)(n | kTwoTo52Bits) - (kTwoTo52 + 1024.0);
    Vector f = (Vector)(bits - ((n - 1024) << 52)) - 1.0;
    Vector s = f / (f + 2.0);
    Vector z = s * s;
    Vector p = z * (2.0 / 21.0) + 2.0 / 19.0;
    p = p * z + 2.0 / 17.0;
    p = p * z + 2.0 / 15.0;
    p = p * z + 2.0 / 13.0;
    p = p * z + 2.0 / 11.0;
    p = p * z + 2.0 / 9.0;
    p = p * z + 2.0 / 7.0;
    p = p * z + 2.0 / 5.0;
    p = p * z + 2.0 / 3.0;
    Vector half = 0.5 * f * f;
    return whole * kLn2High - ((half - (s * (half + z * p) + whole * kLn2Low)) - f);
}

FREIGHT_INLINE Lanes exp(Lanes a) {
    FREIGHT_EACH a.part[p] = exp_of(a.part[p]);
    return a;
}
FREIGHT_INLINE Lanes log(Lanes a) {
    FREIGHT_EACH a.part[p] = log_of(a.part[p]);
    return a;
}
FREIGHT_INLINE double exp(double x) { return exp_of(x - Vector{})[0]; }
FREIGHT_INLINE double log(double x) { return log_of(x - Vector{})[0]; }

// Arrays of any length; a function f of Lanes is applied to all of them.
template <class F>
FREIGHT_INLINE void each(double* x, std::int64_t count, F f) {
    std::int64_t k = 0;
    for (; k + kLanes <= count; k += kLanes) store(x + k, f(load(x + k)));
    if (k < count) {
        double rest[kLanes];
        store(rest, f(load_some(x + k, static_cast<int>(count - k), 1.0)));
        for (int r = 0; k < count; ++k, ++r) x[k] = rest[r];
    }
}
inline void exp_in_place(double* x, std::int64_t count) {
    each(x, count, [](Lanes a) { return exp(a); });
}
inline void log_in_place(double* x, std::int64_t count) {
    each(x, count, [](Lanes a) { return log(a); });
}

// The sum of f(k) over Lanes at k, the end of the array filled with what f makes of padding.
template <class F, class G>
FREIGHT_INLINE double reduce(std::int64_t count, F whole, G rest) {
    Lanes total = all(0.0);
    std::int64_t k = 0;
    for (; k + kLanes <= count; k += kLanes) total = total + whole(k);
    if (k < count) total = total + rest(k, static_cast<int>(count - k));
    return sum(total);
}
inline double dot(const double* a, const double* b, std::int64_t count) {
    return reduce(
        count, [=](std::int64_t k) { return load(a + k) * load(b + k); },
        [=](std::int64_t k, int left) { return load_some(a + k, left, 0.0) * load_some(b + k, left, 0.0); });
}
inline double total_of(const double* a, std::int64_t count) {
    return reduce(
        count, [=](std::int64_t k) { return load(a + k); },
        [=](std::int64_t k, int left) { return load_some(a + k, left, 0.0); });
}

// (1 + x) log(1 + x) - x for x > -1, accurate where x is small.
inline double relative_entropy(double x) {
    if (size_of(x) > 0.1) return (1.0 + x) * log(1.0 + x) - x;
    double series = 0.0;  // x^2 / 2 - x^3 / 6 + x^4 / 12 - ...
    for (int k = 17; k >= 2; --k) series = (k % 2 ? -1.0 : 1.0) / (k * (k - 1.0)) + x * series;
    return x * x * series;
}

// Rows of equal length, each beginning at a multiple of eight numbers.
struct Matrix {
    double* data;
    int rows, columns, stride;

    FREIGHT_INLINE double* row(std::int64_t i) const { return data + i * stride; }
    FREIGHT_INLINE double& at(std::int64_t i, std::int64_t j) const { return data[i * stride + j]; }
    std::int64_t cells() const { return static_cast<std::int64_t>(rows) * stride; }
};

// out = matrix scale; scale has the length of a stride.
inline void row_sums(Matrix matrix, const double* scale, double* out) {
    int i = 0;
    for (; i + 4 <= matrix.rows; i += 4) {  // four rows for each time that the scale is loaded
        const double *a = matrix.row(i), *b = matrix.row(i + 1), *c = matrix.row(i + 2), *d = matrix.row(i + 3);
        Lanes w = all(0.0), x = w, y = w, z = w;
        for (int j = 0; j < matrix.stride; j += kLanes) {
            Lanes s = load(scale + j);
            w = w + load(a + j) * s;
            x = x + load(b + j) * s;
            y = y + load(c + j) * s;
            z = z + load(d + j) * s;
        }
        out[i] = sum(w), out[i + 1] = sum(x), out[i + 2] = sum(y), out[i + 3] = sum(z);
    }
    for (; i < matrix.rows; ++i) {
        Lanes w = all(0.0);
        for (int j = 0; j < matrix.stride; j += kLanes) w = w + load(matrix.row(i) + j) * load(scale + j);
        out[i] = sum(w);
    }
}

// out = scale matrix; out has the length of a stride.
inline void column_sums(Matrix matrix, const double* scale, double* out) {
    for (int j = 0; j < matrix.stride; j += kLanes) store(out + j, all(0.0));
    int i = 0;
    for (; i + 4 <= matrix.rows; i += 4) {
        const double *a = matrix.row(i), *b = matrix.row(i + 1), *c = matrix.row(i + 2), *d = matrix.row(i + 3);
        Lanes w = all(scale[i]), x = all(scale[i + 1]), y = all(scale[i + 2]), z = all(scale[i + 3]);
        for (int j = 0; j < matrix.stride; j += kLanes)
            store(out + j, load(out + j) + ((load(a + j) * w + load(b + j) * x) + (load(c + j) * y + load(d + j) * z)));
    }
    for (; i < matrix.rows; ++i) {
        Lanes w = all(scale[i]);
        for (int j = 0; j < matrix.stride; j += kLanes) store(out + j, load(out + j) + load(matrix.row(i) + j) * w);
    }
}

// The sums of the rows and of the columns, in one pass; `by_column` has the length of a stride.
inline void sum_marginals(Matrix matrix, double* by_row, double* by_column) {
    for (int j = 0; j < matrix.stride; j += kLanes) store(by_column + j, all(0.0));
    int i = 0;
    for (; i + 4 <= matrix.rows; i += 4) {
        const double *a = matrix.row(i), *b = matrix.row(i + 1), *c = matrix.row(i + 2), *d = matrix.row(i + 3);
        Lanes w = all(0.0), x = w, y = w, z = w;
        for (int j = 0; j < matrix.stride; j += kLanes) {
            Lanes p = load(a + j), q = load(b + j), r = load(c + j), s = load(d + j);
            w = w + p, x = x + q, y = y + r, z = z + s;
            store(by_column + j, load(by_column + j) + ((p + q) + (r + s)));
        }
        by_row[i] = sum(w), by_row[i + 1] = sum(x), by_row[i + 2] = sum(y), by_row[i + 3] = sum(z);
    }
    for (; i < matrix.rows; ++i) {
        Lanes w = all(0.0);
        for (int j = 0; j < matrix.stride; j += kLanes) {
            Lanes p = load(matrix.row(i) + j);
            w = w + p;
            store(by_column + j, load(by_column + j) + p);
        }
        by_row[i] = sum(w);
    }
}

}  // namespace FREIGHT_VARIANT
}  // namespace freight
