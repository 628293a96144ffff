// Exact transport to the nearest neighbour, the checks of a batch, and the values of its plans.
#pragma once

#include "support.hpp"

namespace freight {
namespace FREIGHT_VARIANT {

// With one free marginal each unit of the other side goes to its nearest neighbour, the first of
// several. With a hard marginal it moves all its mass w; KL-relaxed it moves w exp(-c / penalty), the
// minimiser of p c + penalty KL(p | w), where c is its smallest cost.
inline void nearest_batch(const Batch& batch, const Terms& terms, const Solved& solved) {
    bool rows = terms.ref == 0.0;
    const Numbers& weights = rows ? batch.hyp_weights : batch.ref_weights;
    double penalty = rows ? terms.hyp : terms.ref;
    share(batch.pairs, [&](std::int64_t k) {
        std::int64_t units = rows ? batch.hyp_sizes[k] : batch.ref_sizes[k];
        std::int64_t others = rows ? batch.ref_sizes[k] : batch.hyp_sizes[k];
        for (std::int64_t i = 0; i < units; ++i) {
            std::int64_t nearest = 0;
            double least = kInfinity;
            for (std::int64_t j = 0; j < others; ++j) {
                double cost = rows ? batch.cost.at(k, i, j) : batch.cost.at(k, j, i);
                if (cost < least) least = cost, nearest = j;
            }
            std::int64_t row = rows ? i : nearest, column = rows ? nearest : i;
            double mass = weights.at(k, i);
            if (penalty != kInfinity) mass *= exp(-least / penalty);
            solved.flow[(k * solved.n + row) * solved.m + column] = mass;
        }
        solved.gap[k] = 0.0;
        solved.converged[k] = true;
    });
}

enum Fault { kFine, kCost, kHypMass, kRefMass, kHypTotal, kRefTotal, kUnequal };

// The sum of the masses, and the index of the first invalid one, or -1.
inline double total_mass(const Numbers& weights, std::int64_t k, std::int64_t size, std::int64_t& invalid) {
    double total = 0.0;
    invalid = -1;
    for (std::int64_t unit = 0; unit < size; ++unit) {
        double mass = weights.at(k, unit);
        if (!(0.0 <= mass && mass < kInfinity)) {
            invalid = unit;
            return total;
        }
        total += mass;
    }
    return total;
}

// Fill faults (pair, 3) with a kind of fault and its position, 0 where there is none.
inline void find_faults(const Batch& batch, const Terms& terms, double rtol, std::int64_t* faults) {
    share(batch.pairs, [&](std::int64_t k) {
        std::int64_t n = batch.hyp_sizes[k], m = batch.ref_sizes[k], where;
        auto say = [&](Fault fault, std::int64_t i, std::int64_t j) {
            faults[3 * k] = fault, faults[3 * k + 1] = i, faults[3 * k + 2] = j;
        };
        double hyp = total_mass(batch.hyp_weights, k, n, where);
        if (where >= 0) return say(kHypMass, where, 0);
        double ref = total_mass(batch.ref_weights, k, m, where);
        if (where >= 0) return say(kRefMass, 0, where);
        if (terms.hyp > 0.0 && hyp == 0.0) return say(kHypTotal, 0, 0);
        if (terms.ref > 0.0 && ref == 0.0) return say(kRefTotal, 0, 0);
        bool balanced = terms.hyp == kInfinity && terms.ref == kInfinity;
        if (balanced && size_of(hyp - ref) > rtol * greater(hyp, ref)) return say(kUnequal, 0, 0);
        for (std::int64_t i = 0; i < n; ++i)
            for (std::int64_t j = 0; j < m; ++j)
                if (!(size_of(batch.cost.at(k, i, j)) < kInfinity)) return say(kCost, i, j);
        say(kFine, 0, 0);
    });
}

// penalty * KL(sums | weights); hard and free marginals cost nothing.
inline double kl_penalty(const double* sums, const Numbers& weights, std::int64_t k, std::int64_t size, double penalty) {
    if (penalty == 0.0 || penalty == kInfinity) return 0.0;
    double total = 0.0;
    for (std::int64_t unit = 0; unit < size; ++unit) {
        double weight = weights.at(k, unit);
        if (sums[unit] > 0.0) total += sums[unit] * log(greater(sums[unit] / weight, 1e-307));
        total += weight - sums[unit];
    }
    return penalty * total;
}

// Fill out (pair, 3) with transport, objective and regularised value. Sums run over the true sizes,
// so that padding cannot change a bit.
inline void totals(const Batch& batch, const Terms& terms, const Numbers& flow, double* out) {
    share(batch.pairs, [&](std::int64_t k) {
        ScratchFrame frame;
        std::int64_t n = batch.hyp_sizes[k], m = batch.ref_sizes[k];
        double* hyp = make_vector(frame, static_cast<int>(n));
        double* ref = make_vector(frame, static_cast<int>(m));
        double transport = 0.0, entropy = 0.0;
        for (std::int64_t i = 0; i < n; ++i)
            for (std::int64_t j = 0; j < m; ++j) {
                double mass = flow.at(k, i, j);
                if (!(mass > 0.0)) continue;
                transport += mass * batch.cost.at(k, i, j);
                hyp[i] += mass;
                ref[j] += mass;
                if (terms.epsilon > 0.0) entropy += mass * log(greater(mass, 1e-307)) - mass;
            }
        double objective = transport + kl_penalty(hyp, batch.hyp_weights, k, n, terms.hyp);
        objective += kl_penalty(ref, batch.ref_weights, k, m, terms.ref);
        out[3 * k] = transport;
        out[3 * k + 1] = objective;
        out[3 * k + 2] = objective + terms.epsilon * entropy;
    });
}

}  // namespace FREIGHT_VARIANT
}  // namespace freight
