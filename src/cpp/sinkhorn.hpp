// Entropic transport (epsilon > 0), with hard, KL-relaxed or free marginals.
//
// Sinkhorn sweeps, over-relaxed, then Newton steps where sweeps are too slow, and a duality gap that
// is rigorous. Potentials and costs are in units of epsilon. Sweeps run on a kernel exp(f + g - C)
// that has absorbed the potentials of the last refresh, so that it neither underflows nor overflows
// however small epsilon is. Plain sweeps with KL-relaxed marginals contract by about tau_hyp tau_ref,
// tau = penalty / (penalty + epsilon), almost whatever the data, so the optimal over-relaxation
// factor is known beforehand; for two hard marginals it is fixed. Far from convergence, where it
// can overshoot, it is halved or dropped for a while. What sweeps do not finish (a small epsilon between hard marginals) is finished by damped
// Newton steps on the dual, from where the sweeps have got to; where these do not arrive soon, they
// begin again at a large epsilon that is halved down to the true one. At the end the plan is
// rounded to its hard marginals.
#pragma once

#include "cholesky.hpp"

namespace freight {
namespace FREIGHT_VARIANT {

constexpr int kSweeps = 300, kPatience = 8, kDirectSteps = 40;
constexpr double kDrift = 40.0;  // potentials that have moved farther from the absorbed ones are absorbed again
constexpr double kEmpty = 1e-250, kLogEmpty = -575.0;

// One marginal: its masses and penalty, and its dual potentials so far.
struct Marginal {
    int size;
    double penalty, tau;  // tau: how much of a full step a sweep takes
    const double *weights, *logs;
    double *potential, *absorbed;
    double *scaling;  // exp(potential - absorbed)
    double *sums;     // of the kernel, or the marginal of the plan

    FREIGHT_INLINE bool hard() const { return penalty == kInfinity; }
    FREIGHT_INLINE bool relaxed() const { return penalty > 0.0 && !hard(); }
};

inline Marginal make_marginal(ScratchFrame& frame, const double* weights, int size, double penalty, double epsilon) {
    double* logs = make_vector(frame, size);
    if (penalty > 0.0)
        for (int k = 0; k < size; ++k) logs[k] = log(greater(weights[k], 1e-307));
    double tau = penalty == kInfinity ? 1.0 : penalty / (penalty + epsilon);
    return {size, penalty, tau, weights, logs, make_vector(frame, size), make_vector(frame, size),
            make_vector(frame, size, 1.0), make_vector(frame, size, 1.0)};
}

// Absorb the potentials into the kernel, which becomes the plan of these potentials.
inline void absorb_potentials(Matrix cost, Marginal& hyp, Marginal& ref, Matrix plan) {
    for (int i = 0; i < hyp.size; ++i) hyp.absorbed[i] = hyp.potential[i], hyp.scaling[i] = 1.0;
    for (int j = 0; j < ref.size; ++j) ref.absorbed[j] = ref.potential[j], ref.scaling[j] = 1.0;
    for (int i = 0; i < cost.rows; ++i) {
        const double* row = cost.row(i);
        double* out = plan.row(i);
        Lanes lift = all(hyp.potential[i]);
        for (int j = 0; j < cost.stride; j += kLanes) store(out + j, exp(lift + load(ref.potential + j) - load(row + j)));
    }
}

// log sum exp(potential - cost), where costs are `step` apart.
inline double log_sum(const Marginal& other, const double* cost, std::int64_t step) {
    double top = -kInfinity, total = 0.0;
    for (int k = 0; k < other.size; ++k) top = greater(top, other.potential[k] - cost[k * step]);
    for (int k = 0; k < other.size; ++k) total += exp(other.potential[k] - cost[k * step] - top);
    return top + log(total);
}

struct Movement {
    double change, drift;  // the largest of a step, and of the distance to the absorbed potentials
};

// Update one side's potentials from its kernel sums. Costs of unit k begin at cost + k * unit.
inline Movement move_potentials(Marginal& side, const Marginal& other, const double* cost, std::int64_t unit,
                                std::int64_t step, double factor) {
    double* sums = side.sums;
    int room = padded(side.size);
    for (int k = side.size; k < room; ++k) sums[k] = 1.0;
    Lanes low = all(kInfinity);
    for (int k = 0; k < room; k += kLanes) {
        Lanes x = load(sums + k);
        low = lesser(x, low);
        store(sums + k, log(greater(x, all(kEmpty))));
    }
    if (least(low) < kEmpty)  // the kernel has underflowed for some units: use the costs themselves
        for (int k = 0; k < side.size; ++k)
            if (sums[k] < kLogEmpty) sums[k] = log_sum(other, cost + k * unit, step) + side.absorbed[k];
    Lanes change = all(0.0), drift = change, tau = all(side.tau), relaxation = all(factor), zero = change;
    for (int k = 0; k < room; k += kLanes) {
        Lanes absorbed = load(side.absorbed + k), potential = load(side.potential + k);
        Lanes move = tau * (load(side.logs + k) - load(sums + k) + absorbed) - potential;
        potential = potential + relaxation * move;
        Lanes distance = potential - absorbed;
        store(side.potential + k, potential);
        store(side.scaling + k, exp(distance));
        change = greater(change, greater(move, zero - move));
        drift = greater(drift, greater(distance, zero - distance));
    }
    return {most(change), most(drift)};
}

// Update the hyp potentials, then the ref potentials; the largest change before relaxation.
inline double sweep(Matrix cost, Marginal& hyp, Marginal& ref, double factor, Matrix plan) {
    row_sums(plan, ref.scaling, hyp.sums);
    Movement one = move_potentials(hyp, ref, cost.data, cost.stride, 1, factor);
    if (one.drift > kDrift) absorb_potentials(cost, hyp, ref, plan);
    column_sums(plan, hyp.scaling, ref.sums);
    Movement two = move_potentials(ref, hyp, cost.data, 1, cost.stride, factor);
    if (two.drift > kDrift) absorb_potentials(cost, hyp, ref, plan);
    return greater(one.change, two.change);
}

// Over-relax when close to convergence; by half as much where that made things worse. Very close to
// it sweeps are linear, and the optimal factor cannot fail.
inline double relaxation_factor(double residual, double previous, double optimal) {
    if (residual > 3.0) return 1.0;
    return residual > previous && residual > 0.3 ? 0.5 * (1.0 + optimal) : optimal;
}

// Sweep until no potential changes by more than the tolerance; the last largest change.
inline double sweep_until(Matrix cost, Marginal& hyp, Marginal& ref, double tolerance, std::int64_t limit, Matrix plan) {
    double optimal = 2.0 / (1.0 + __builtin_sqrt(greater(1.0 - hyp.tau * ref.tau, 1e-3)));
    double factor = 1.0, previous = kInfinity, residual = kInfinity;
    std::int64_t next_check = 0;
    absorb_potentials(cost, hyp, ref, plan);
    for (std::int64_t k = 0; k < limit; ++k) {
        residual = sweep(cost, hyp, ref, factor, plan);
        if (residual <= tolerance) break;
        if (k >= next_check && (factor > 1.0 || residual < 3.0)) {
            factor = relaxation_factor(residual, previous, optimal);
            previous = residual, next_check = k + kPatience;
        }
    }
    return residual;
}

// The mass that is optimal for a unit's potential: w exp(-f / penalty).
inline double target_mass(const Marginal& side, int k, double epsilon) {
    return side.hard() ? side.weights[k] : side.weights[k] * exp(-epsilon / side.penalty * side.potential[k]);
}

// What one marginal adds to the dual value, over epsilon.
inline double side_dual(const Marginal& side, double epsilon) {
    if (side.penalty == 0.0) return 0.0;
    if (side.hard()) return dot(side.weights, side.potential, side.size);
    double total = 0.0;
    for (int k = 0; k < side.size; ++k) total += side.weights[k] - target_mass(side, k, epsilon);
    return total * side.penalty / epsilon;
}

// The dual value over epsilon, where `plan` is already that of the potentials.
inline double dual_of_plan(Marginal& hyp, Marginal& ref, double epsilon, Matrix plan) {
    sum_marginals(plan, hyp.sums, ref.sums);
    return side_dual(hyp, epsilon) + side_dual(ref, epsilon) - total_of(hyp.sums, hyp.size);
}

// The dual value over epsilon; writes the plan of the potentials into `plan`.
inline double dual_value(Matrix cost, Marginal& hyp, Marginal& ref, double epsilon, Matrix plan) {
    absorb_potentials(cost, hyp, ref, plan);
    return dual_of_plan(hyp, ref, epsilon, plan);
}

// A step of a side's potentials, with the gradient and the negated curvature of the dual over epsilon.
struct DualStep {
    double *slope, *curve, *step;
};

inline DualStep make_step(ScratchFrame& frame, const Marginal& side) {
    return {make_vector(frame, side.size), make_vector(frame, side.size), make_vector(frame, side.size)};
}

inline void differentiate(const Marginal& side, double epsilon, DualStep& to) {
    if (side.penalty == 0.0) {  // its potentials are 0, and stay so
        for (int k = 0; k < side.size; ++k) to.slope[k] = 0.0, to.curve[k] = 1e300;
        return;
    }
    for (int k = 0; k < side.size; ++k) {
        double target = target_mass(side, k, epsilon);
        to.slope[k] = target - side.sums[k];
        to.curve[k] = side.sums[k] + (side.relaxed() ? target * (epsilon / side.penalty) : 0.0);
    }
}

inline void shift(Marginal& side, const DualStep& to, double length) {
    for (int k = 0; k < side.size; ++k) side.potential[k] += length * to.step[k];
}

inline double largest(const double* x, int count) {
    double top = 0.0;
    for (int k = 0; k < count; ++k) top = greater(top, size_of(x[k]));
    return top;
}

// Damped Newton steps on the concave dual, until a step is within the tolerance.
inline void newton_steps(Matrix cost, Marginal& hyp, Marginal& ref, double epsilon, double tolerance,
                         std::int64_t limit, Matrix plan) {
    ScratchFrame frame;
    DualStep one = make_step(frame, hyp), two = make_step(frame, ref);
    double value = dual_value(cost, hyp, ref, epsilon, plan);
    for (std::int64_t k = 0; k < limit; ++k) {
        differentiate(hyp, epsilon, one);
        differentiate(ref, epsilon, two);
        solve_bordered(plan, one.curve, two.curve, one.slope, two.slope, one.step, two.step);
        double size = greater(largest(one.step, hyp.size), largest(two.step, ref.size));
        double length = lesser(1.0, 4.0 / size), before = value;
        double gain = dot(one.slope, one.step, hyp.size) + dot(two.slope, two.step, ref.size);
        for (; length * size > 1e-14; length *= 0.5) {
            shift(hyp, one, length);
            shift(ref, two, length);
            value = dual_value(cost, hyp, ref, epsilon, plan);
            if (value >= before + 1e-4 * length * gain - 1e-12 * (1.0 + size_of(before))) break;
            shift(hyp, one, -length);
            shift(ref, two, -length);
        }
        if (length * size <= tolerance) return;
    }
}

// Newton steps for an epsilon as large as the costs, halved down to the true epsilon.
inline void newton_annealed(Matrix cost, Marginal& hyp, Marginal& ref, const Terms& terms, double aim, Matrix plan) {
    int doublings = 0;
    double scale = 1.0, top = largest_cost(cost) + 1.0;
    while (scale < top) scale *= 2.0, ++doublings;
    auto multiply_all = [&](double factor) {
        for (std::int64_t k = 0; k < cost.cells(); ++k) cost.data[k] *= factor;
    };
    multiply_all(1.0 / scale);
    for (int k = 0; k < hyp.size; ++k) hyp.potential[k] = 0.0;
    for (int k = 0; k < ref.size; ++k) ref.potential[k] = 0.0;
    for (int stage = doublings; stage >= 0; --stage, scale *= 0.5) {
        newton_steps(cost, hyp, ref, terms.epsilon * scale, stage == 0 ? aim : 0.1, terms.max_iterations, plan);
        if (stage == 0) break;
        multiply_all(2.0);
        for (int k = 0; k < hyp.size; ++k) hyp.potential[k] *= 2.0;
        for (int k = 0; k < ref.size; ++k) ref.potential[k] *= 2.0;
    }
}

// KL(a | b) of one number, accurate where a and b nearly agree.
FREIGHT_INLINE double divergence(double a, double b) {
    double base = greater(b, 1e-300), x = (a - base) / base;
    return x > -1.0 ? base * relative_entropy(x) : base;
}

// What a KL-relaxed marginal adds to the duality gap.
inline double side_gap(const Marginal& side, double epsilon) {
    double total = 0.0;
    if (side.relaxed())
        for (int k = 0; k < side.size; ++k) total += divergence(side.sums[k], target_mass(side, k, epsilon));
    return side.relaxed() ? side.penalty * total : 0.0;
}

// Round the plan to its hard marginals (Altschuler et al., 2017); KL(rounded | plan).
inline double round_to_marginals(Matrix plan, Marginal& hyp, Marginal& ref) {
    if (!hyp.hard() && !ref.hard()) return 0.0;
    ScratchFrame frame;
    Matrix before = make_matrix(frame, plan.rows, plan.columns);
    std::memcpy(before.data, plan.data, sizeof(double) * plan.cells());
    bool both = hyp.hard() && ref.hard();
    if (hyp.hard()) {
        for (int i = 0; i < plan.rows; ++i) {
            double ratio = hyp.weights[i] / hyp.sums[i];
            multiply(plan.row(i), both ? lesser(ratio, 1.0) : ratio, 0, plan.stride);
        }
        sum_marginals(plan, hyp.sums, ref.sums);
    }
    if (ref.hard()) {
        double* ratios = make_vector(frame, plan.columns);
        for (int j = 0; j < plan.columns; ++j) {
            double ratio = ref.weights[j] / ref.sums[j];
            ratios[j] = both ? lesser(ratio, 1.0) : ratio;
        }
        for (int i = 0; i < plan.rows; ++i)
            for (int j = 0; j < plan.stride; j += kLanes)
                store(plan.row(i) + j, load(plan.row(i) + j) * load(ratios + j));
        sum_marginals(plan, hyp.sums, ref.sums);
    }
    if (both) {
        double* missing = make_vector(frame, plan.columns);
        for (int j = 0; j < plan.columns; ++j) missing[j] = greater(ref.weights[j] - ref.sums[j], 0.0);
        double total = total_of(missing, plan.columns);
        if (total > 0.0) {
            for (int i = 0; i < plan.rows; ++i) {
                double share = greater(hyp.weights[i] - hyp.sums[i], 0.0) / total;
                subtract_scaled(plan.row(i), missing, -share, 0, plan.columns);
            }
            sum_marginals(plan, hyp.sums, ref.sums);
        }
    }
    double total = 0.0;
    for (int i = 0; i < plan.rows; ++i)
        for (int j = 0; j < plan.columns; ++j) total += divergence(plan.at(i, j), before.at(i, j));
    return total;
}

struct Outcome {
    double gap;
    bool converged;
};

// Fill in the plan, rounded to its hard marginals; its duality gap, and if that is enough.
inline Outcome finish_plan(Marginal& hyp, Marginal& ref, const Terms& terms, Matrix plan) {
    for (int i = 0; i < plan.rows; ++i) {
        Lanes scale = all(hyp.scaling[i]);
        for (int j = 0; j < plan.stride; j += kLanes)
            store(plan.row(i) + j, load(plan.row(i) + j) * (scale * load(ref.scaling + j)));
    }
    double value = terms.epsilon * dual_of_plan(hyp, ref, terms.epsilon, plan);
    double gap = terms.epsilon * round_to_marginals(plan, hyp, ref);
    gap += side_gap(hyp, terms.epsilon) + side_gap(ref, terms.epsilon);
    return {gap, gap <= terms.tolerance * (1.0 + size_of(value))};
}

// Set each potential of the side with the larger penalty to the smallest cost of its unit.
inline void lift_to_nearest(Matrix cost, Marginal& hyp, Marginal& ref) {
    if (hyp.penalty >= ref.penalty) {
        for (int i = 0; i < cost.rows; ++i) {
            Lanes low = all(kInfinity);
            for (int j = 0; j < cost.stride; j += kLanes) low = lesser(load(cost.row(i) + j), low);
            hyp.potential[i] = least(low);
        }
    } else {
        for (int j = 0; j < cost.columns; ++j) ref.potential[j] = cost.at(0, j);
        for (int i = 1; i < cost.rows; ++i)
            for (int j = 0; j < cost.columns; ++j) ref.potential[j] = lesser(cost.at(i, j), ref.potential[j]);
    }
}

inline Outcome solve_entropic(Matrix cost, Marginal& hyp, Marginal& ref, const Terms& terms, Matrix plan) {
    lift_to_nearest(cost, hyp, ref);
    // The gap is of second order in the potentials' error, a value read off the plan of first
    // order: aim at the latter. Between two hard marginals rounding makes the gap first order too.
    bool balanced = hyp.hard() && ref.hard();
    double aim = terms.tolerance * (balanced ? 0.1 : 10.0);
    std::int64_t sweeps = terms.max_iterations < kSweeps ? terms.max_iterations : kSweeps;
    if (sweep_until(cost, hyp, ref, aim, sweeps, plan) <= aim) return finish_plan(hyp, ref, terms, plan);
    std::int64_t steps = terms.max_iterations < kDirectSteps ? terms.max_iterations : kDirectSteps;
    newton_steps(cost, hyp, ref, terms.epsilon, aim, steps, plan);
    Outcome outcome = finish_plan(hyp, ref, terms, plan);
    if (outcome.converged) return outcome;
    newton_annealed(cost, hyp, ref, terms, aim, plan);
    return finish_plan(hyp, ref, terms, plan);
}

inline void sinkhorn_batch(const Batch& batch, const Terms& terms, const Solved& solved) {
    share_problems(batch, [&](std::int64_t k) {
        ScratchFrame frame;
        Problem problem = make_problem(frame, batch, k, terms, terms.epsilon);
        int n = problem.hyp.count, m = problem.ref.count;
        if (terms.hyp == kInfinity && terms.ref == kInfinity)
            balance_totals(problem.hyp_weights, n, problem.ref_weights, m);
        Marginal hyp = make_marginal(frame, problem.hyp_weights, n, terms.hyp, terms.epsilon);
        Marginal ref = make_marginal(frame, problem.ref_weights, m, terms.ref, terms.epsilon);
        Matrix plan = make_matrix(frame, n, m);
        Outcome outcome = solve_entropic(problem.cost, hyp, ref, terms, plan);
        solved.gap[k] = outcome.gap;
        solved.converged[k] = outcome.converged;
        scatter_plan(problem, plan, solved, k);
    });
}

}  // namespace FREIGHT_VARIANT
}  // namespace freight
