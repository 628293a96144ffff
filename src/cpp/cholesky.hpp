// Linear systems of two marginals, by a Schur complement and Cholesky's factorisation in blocks.
#pragma once

#include "support.hpp"

namespace freight {
namespace FREIGHT_VARIANT {

constexpr int kPanel = 64;                   // rows that are factorised before the rest is updated
constexpr int kDepth = 128;                  // rows whose products are summed up before they are subtracted
constexpr int kTall = 4;                     // a tile of products: rows,
constexpr int kBroad = kWidth == 8 ? 2 : 1;  // and columns in eights
constexpr std::int64_t kWorthSharing = 1 << 22;

// What one tile of s -= w' diag(scale) w is made of: `left` has kTall scaled numbers of each row of w,
// `right` the kBroad * 8 numbers of its columns.
FREIGHT_INLINE void subtract_tile(const double* left, const double* right, int depth, double* s, std::int64_t stride) {
    Lanes sums[kTall][kBroad];
    for (int a = 0; a < kTall; ++a)
        for (int b = 0; b < kBroad; ++b) sums[a][b] = all(0.0);
    for (int i = 0; i < depth; ++i, left += kTall, right += kBroad * kLanes) {
        Lanes columns[kBroad];
        for (int b = 0; b < kBroad; ++b) columns[b] = load(right + b * kLanes);
        for (int a = 0; a < kTall; ++a) {
            Lanes factor = all(left[a]);
            for (int b = 0; b < kBroad; ++b) sums[a][b] = sums[a][b] + factor * columns[b];
        }
    }
    for (int a = 0; a < kTall; ++a)
        for (int b = 0; b < kBroad; ++b) {
            double* place = s + a * stride + b * kLanes;
            store(place, load(place) - sums[a][b]);
        }
}

// s -= w' diag(scale) w in the upper triangle of s; w has as many columns as s, from `first` on. Below the
// diagonal tiles may leave anything. The room of s is a multiple of 16 in both directions.
inline void subtract_gram(double* s, std::int64_t stride, int first, int end, const double* w, std::int64_t w_stride,
                          int rows, const double* scale) {
    constexpr int broad = kBroad * kLanes;
    int begin = first / broad * broad;
    int tall = (end - begin + kTall - 1) / kTall, wide = (end - begin + broad - 1) / broad;
    ScratchFrame frame;
    double* left = frame.take<double>(static_cast<std::size_t>(wide) * broad * kDepth);
    double* right = frame.take<double>(static_cast<std::size_t>(wide) * broad * kDepth);
    for (int from = 0; from < rows; from += kDepth) {
        int depth = rows - from < kDepth ? rows - from : kDepth;
        auto pack = [&](std::int64_t panel) {
            int column = begin + static_cast<int>(panel) * broad;
            double* packed = right + panel * broad * kDepth;
            double* tiles = left + panel * broad * kDepth;  // as much room, in tiles of kTall numbers
            bool inside = column >= first && column + broad <= end;
            for (int i = 0; i < depth; ++i) {
                const double* row = w + (from + i) * w_stride + column;
                double* to = packed + i * broad;
                if (inside)
                    for (int j = 0; j < broad; ++j) to[j] = row[j];
                else
                    for (int j = 0; j < broad; ++j)
                        to[j] = column + j >= first && column + j < end ? row[j] : 0.0;
                double factor = scale ? scale[from + i] : 1.0;
                for (int t = 0; t < broad / kTall; ++t)
                    for (int a = 0; a < kTall; ++a)
                        tiles[t * kTall * kDepth + i * kTall + a] = to[t * kTall + a] * factor;
            }
        };
        auto update = [&](std::int64_t panel) {
            int last = static_cast<int>(panel + 1) * broad / kTall;  // on and above the diagonal
            for (int t = 0; t < last && t < tall; ++t)
                subtract_tile(left + static_cast<std::int64_t>(t) * kTall * kDepth, right + panel * broad * kDepth, depth,
                              s + (begin + t * kTall) * stride + begin + panel * broad, stride);
        };
        if (static_cast<std::int64_t>(end - begin) * (end - begin) * depth > kWorthSharing) {
            share(wide, pack);
            share(wide, [&](std::int64_t k) { update(wide - 1 - k); });  // the tall ones first
        } else {
            for (int k = 0; k < wide; ++k) pack(k);
            for (int k = 0; k < wide; ++k) update(k);
        }
    }
}

FREIGHT_INLINE void subtract_scaled(double* x, const double* y, double factor, int begin, int end) {
    Lanes f = all(factor);
    int k = begin;
    for (; k + kLanes <= end; k += kLanes) store(x + k, load(x + k) - f * load(y + k));
    for (; k < end; ++k) x[k] -= factor * y[k];
}

FREIGHT_INLINE void multiply(double* x, double factor, int begin, int end) {
    Lanes f = all(factor);
    int k = begin;
    for (; k + kLanes <= end; k += kLanes) store(x + k, f * load(x + k));
    for (; k < end; ++k) x[k] *= factor;
}

// u with u' u = s, in the upper triangle of s; a pivot lost to rounding sets its unknown to about 0.
inline void factorise(double* s, std::int64_t stride, int size, const double* diagonal) {
    for (int begin = 0; begin < size; begin += kPanel) {
        int end = size - begin < kPanel ? size : begin + kPanel;
        for (int k = begin; k < end; ++k) {
            double* row = s + k * stride;
            double pivot = row[k] > 1e-14 * diagonal[k] ? __builtin_sqrt(row[k]) : 1e150;
            row[k] = pivot;
            multiply(row, 1.0 / pivot, k + 1, end);
            for (int j = k + 1; j < end; ++j) subtract_scaled(s + j * stride, row, row[j], j, end);
        }
        if (end == size) return;
        constexpr int slice = 256;
        auto solve = [&](std::int64_t part) {
            int from = end + static_cast<int>(part) * slice, to = size - from < slice ? size : from + slice;
            for (int k = begin; k < end; ++k) {
                double* row = s + k * stride;
                multiply(row, 1.0 / row[k], from, to);
                for (int j = k + 1; j < end; ++j) subtract_scaled(s + j * stride, row, row[j], from, to);
            }
        };
        int parts = (size - end + slice - 1) / slice;
        if (static_cast<std::int64_t>(size - end) * kPanel * kPanel > kWorthSharing)
            share(parts, solve);
        else
            for (int part = 0; part < parts; ++part) solve(part);
        subtract_gram(s, stride, end, size, s + begin * stride, stride, end - begin, nullptr);
    }
}

// x and y with diag(p) x + w y = r and w' x + diag(q) y = s, for w at least as tall as wide.
inline void eliminate(Matrix w, const double* p, const double* q, const double* r, const double* s, double* x,
                      double* y) {
    ScratchFrame frame;
    int n = w.rows, m = w.columns;
    std::int64_t stride = (m + 15) / 16 * 16;
    double* schur = frame.take<double>(stride * stride);
    std::memset(schur, 0, sizeof(double) * stride * stride);
    double* inverse = frame.take<double>(n);
    for (int i = 0; i < n; ++i) inverse[i] = 1.0 / p[i];
    for (int j = 0; j < m; ++j) schur[j * stride + j] = q[j], y[j] = s[j];
    subtract_gram(schur, stride, 0, m, w.data, w.stride, n, inverse);
    for (int i = 0; i < n; ++i) subtract_scaled(y, w.row(i), inverse[i] * r[i], 0, m);
    factorise(schur, stride, m, q);
    for (int k = 0; k < m; ++k) {
        y[k] /= schur[k * stride + k];
        subtract_scaled(y, schur + k * stride, y[k], k + 1, m);
    }
    for (int k = m - 1; k >= 0; --k) {
        const double* row = schur + k * stride;
        y[k] = (y[k] - dot(row + k + 1, y + k + 1, m - k - 1)) / row[k];
    }
    for (int i = 0; i < n; ++i) x[i] = (r[i] - dot(w.row(i), y, m)) / p[i];
}

// The same for w of any shape. A direction in which the matrix is singular gets a step of almost 0.
inline void solve_bordered(Matrix w, const double* p, const double* q, const double* r, const double* s, double* x,
                           double* y) {
    if (w.rows >= w.columns) return eliminate(w, p, q, r, s, x, y);
    ScratchFrame frame;
    Matrix turned = make_matrix(frame, w.columns, w.rows);
    for (int i = 0; i < w.rows; ++i)
        for (int j = 0; j < w.columns; ++j) turned.at(j, i) = w.at(i, j);
    for (int j = 0; j < turned.rows; ++j)
        for (int i = turned.columns; i < turned.stride; ++i) turned.at(j, i) = 0.0;
    eliminate(turned, q, p, s, r, y, x);
}

}  // namespace FREIGHT_VARIANT
}  // namespace freight
