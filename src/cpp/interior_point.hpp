// Exact transport with at least one KL-relaxed marginal and none free: interior point method.
//
//     minimise <C,P> + hyp KL(P1|a) + ref KL(P'1|b)  over P >= 0           (a hard marginal: P1 = a)
//     maximise -hyp sum a (exp(-f/hyp) - 1) - ref sum b (exp(-g/ref) - 1)  over f + g <= C
//
// Primal-dual: Newton's method on P (C - f - g) = mu, with mu driven to zero. The marginals are
// unknowns of their own, because their logarithms behave better than the exponentials of the
// potentials. A step takes one Cholesky factorisation of the size of the shorter side. The
// potentials stay feasible, and so is every P once it is scaled to a hard marginal; the gap between
// the two values above is therefore rigorous at every step, and the method stops on it.
#pragma once

#include "sinkhorn.hpp"

namespace freight {
namespace FREIGHT_VARIANT {

// One marginal: masses and penalty, the unknowns (potential, marginal) and their steps, and a room for
// the diagonal and the right-hand side of its equations.
struct RelaxedSide {
    int size;
    double penalty;
    const double* weights;
    double *potential, *marginal, *step, *marginal_step, *sums, *curve, *slope;

    FREIGHT_INLINE bool hard() const { return penalty == kInfinity; }
    FREIGHT_INLINE double lag(int k) const { return potential[k] + penalty * log(marginal[k] / weights[k]); }
};

inline RelaxedSide make_relaxed_side(ScratchFrame& frame, const double* weights, int size, double penalty) {
    double* rooms[7];
    for (double*& room : rooms) room = make_vector(frame, size);
    for (int k = 0; k < size; ++k) rooms[1][k] = weights[k];
    return {size, penalty, weights, rooms[0], rooms[1], rooms[2], rooms[3], rooms[4], rooms[5], rooms[6]};
}

// Plan, slack C - f - g, its inverse, and plan over slack; columns that fill up a row have no mass.
struct Iterate {
    Matrix cost, plan, inverse, ratio;
};

// Begin with strictly feasible potentials and the independent coupling of a hard marginal.
inline void start(const Iterate& at, RelaxedSide& hyp, RelaxedSide& ref) {
    Matrix cost = at.cost;
    double room = 0.05 * (largest_cost(cost) + 1e-3);
    double total = hyp.hard() ? total_of(ref.weights, ref.size) : total_of(hyp.weights, hyp.size);
    for (int j = 0; j < cost.columns; ++j) ref.potential[j] = kInfinity;
    for (int i = 0; i < cost.rows; ++i) {
        double low = kInfinity;
        for (int j = 0; j < cost.columns; ++j) {
            low = lesser(cost.at(i, j), low);
            ref.potential[j] = lesser(cost.at(i, j), ref.potential[j]);
        }
        hyp.potential[i] = 0.5 * low - room;
        for (int j = 0; j < cost.stride; ++j) at.plan.at(i, j) = hyp.weights[i] * ref.weights[j] / total;
    }
    for (int j = 0; j < cost.columns; ++j) ref.potential[j] = 0.5 * ref.potential[j] - room;
}

// Fill the inverse of the slack and the ratios; the mean of plan times slack.
inline double invert_slack(const Iterate& at, const RelaxedSide& hyp, const RelaxedSide& ref) {
    double total = 0.0;
    Lanes one = all(1.0);
    for (int i = 0; i < at.cost.rows; ++i) {
        const double *cost = at.cost.row(i), *plan = at.plan.row(i);
        double *inverse = at.inverse.row(i), *ratio = at.ratio.row(i);
        Lanes potential = all(hyp.potential[i]), products = all(0.0);
        for (int j = 0; j < at.cost.stride; j += kLanes) {
            Lanes slack = load(cost + j) - potential - load(ref.potential + j), mass = load(plan + j);
            Lanes inverted = one / slack;
            store(inverse + j, inverted);
            store(ratio + j, mass * inverted);
            products = products + mass * slack;
        }
        total += sum(products);
    }
    return total / (static_cast<double>(at.cost.rows) * at.cost.columns);
}

// What a marginal contributes to the diagonal and to the right-hand side of the system.
inline void side_equation(RelaxedSide& side) {
    for (int k = 0; k < side.size; ++k) {
        double stiffness = side.hard() ? 0.0 : side.marginal[k] / side.penalty;
        side.curve[k] = stiffness;
        side.slope[k] = side.hard() ? side.weights[k] : side.marginal[k] - stiffness * side.lag(k);
    }
}

inline void fill_marginal_step(RelaxedSide& side) {
    if (side.hard()) return;
    for (int k = 0; k < side.size; ++k)
        side.marginal_step[k] = -side.marginal[k] / side.penalty * (side.lag(k) + side.step[k]);
}

// Fill the Newton steps of potentials and marginals, from which that of the plan follows.
inline void newton_direction(const Iterate& at, RelaxedSide& hyp, RelaxedSide& ref, double centre) {
    ScratchFrame frame;
    int n = at.plan.rows, m = at.plan.columns;
    side_equation(hyp);
    side_equation(ref);
    double *by_row = make_vector(frame, n), *by_column = make_vector(frame, m);
    sum_marginals(at.ratio, by_row, by_column);
    for (int i = 0; i < n; ++i) hyp.curve[i] += by_row[i];
    for (int j = 0; j < m; ++j) ref.curve[j] += by_column[j];
    sum_marginals(at.inverse, by_row, by_column);
    for (int i = 0; i < n; ++i) hyp.slope[i] -= centre * by_row[i];
    for (int j = 0; j < m; ++j) ref.slope[j] -= centre * by_column[j];
    solve_bordered(at.ratio, hyp.curve, ref.curve, hyp.slope, ref.slope, hyp.step, ref.step);
    fill_marginal_step(hyp);
    fill_marginal_step(ref);
}

// How much of the marginal's step keeps it positive, at most 1.
inline double longest_step(const RelaxedSide& side) {
    double length = 1.0;
    for (int k = 0; k < side.size; ++k)
        if (side.marginal_step[k] < 0.0) length = lesser(length, -0.99 * side.marginal[k] / side.marginal_step[k]);
    return length;
}

// Take the longest primal and dual steps that keep all positive; the shorter length.
inline double advance(const Iterate& at, RelaxedSide& hyp, RelaxedSide& ref, double centre) {
    Lanes zero = all(0.0), tiny = all(1e-300), mu = all(centre), plan_rate = zero, slack_rate = zero;
    for (int i = 0; i < at.plan.rows; ++i) {
        Lanes step = all(hyp.step[i]);
        for (int j = 0; j < at.plan.stride; j += kLanes) {
            Lanes mass = load(at.plan.row(i) + j), inverse = load(at.inverse.row(i) + j);
            Lanes shrink = step + load(ref.step + j);
            Lanes loss = mass - (mu * inverse + load(at.ratio.row(i) + j) * shrink);
            slack_rate = greater(shrink * inverse, slack_rate);
            plan_rate = greater(loss / greater(mass, tiny), plan_rate);
        }
    }
    double primal = lesser(longest_step(hyp), longest_step(ref)), dual = 1.0;
    double fall = most(plan_rate), rise = most(slack_rate);
    if (fall > 0.0) primal = lesser(primal, 0.99 / fall);
    if (rise > 0.0) dual = lesser(dual, 0.99 / rise);
    Lanes length = all(primal);
    for (int i = 0; i < at.plan.rows; ++i) {
        Lanes step = all(hyp.step[i]);
        for (int j = 0; j < at.plan.stride; j += kLanes) {
            Lanes mass = load(at.plan.row(i) + j), shrink = step + load(ref.step + j);
            Lanes wanted = mu * load(at.inverse.row(i) + j) + load(at.ratio.row(i) + j) * shrink;
            store(at.plan.row(i) + j, mass + length * (wanted - mass));
        }
        for (int j = at.plan.columns; j < at.plan.stride; ++j) at.plan.at(i, j) = 0.0;
    }
    auto move = [&](RelaxedSide& side) {
        for (int k = 0; k < side.size; ++k) {
            side.potential[k] += dual * side.step[k];
            side.marginal[k] += primal * side.marginal_step[k];
        }
    };
    move(hyp);
    move(ref);
    return lesser(primal, dual);
}

// The plan scaled to its hard marginal, if there is one (both cannot be hard here), into `out`.
inline void scale_to_hard_marginal(Matrix plan, RelaxedSide& hyp, RelaxedSide& ref, Matrix out) {
    ScratchFrame frame;
    sum_marginals(plan, hyp.sums, ref.sums);
    double* columns = make_vector(frame, plan.columns, 1.0);
    if (ref.hard())
        for (int j = 0; j < plan.columns; ++j) columns[j] = ref.weights[j] / ref.sums[j];
    for (int i = 0; i < plan.rows; ++i) {
        Lanes row = all(hyp.hard() ? hyp.weights[i] / hyp.sums[i] : 1.0);
        for (int j = 0; j < plan.stride; j += kLanes)
            store(out.row(i) + j, load(plan.row(i) + j) * (row * load(columns + j)));
    }
}

struct Gap {
    double size, enough;
};

// The duality gap of this plan, scaled to a hard marginal, and how small it has to be.
inline Gap measure_gap(const Iterate& at, RelaxedSide& hyp, RelaxedSide& ref, double tolerance) {
    Matrix plan = at.plan;
    if (hyp.hard() || ref.hard()) {
        scale_to_hard_marginal(plan, hyp, ref, at.ratio);  // which is filled anew before it is used again
        plan = at.ratio;
    }
    sum_marginals(plan, hyp.sums, ref.sums);
    double primal = 0.0, dual = 0.0;
    for (int i = 0; i < plan.rows; ++i) primal += dot(plan.row(i), at.cost.row(i), plan.columns);
    auto add = [&](const RelaxedSide& side) {
        if (side.hard()) {
            dual += dot(side.weights, side.potential, side.size);
            return;
        }
        double reached = 0.0, paid = 0.0;
        for (int k = 0; k < side.size; ++k) {
            double weight = side.weights[k], mass = side.sums[k];
            reached += weight - weight * exp(-side.potential[k] / side.penalty);
            paid += mass * log(mass / weight) - mass + weight;
        }
        dual += side.penalty * reached;
        primal += side.penalty * paid;
    };
    add(hyp);
    add(ref);
    return {primal - dual, tolerance * (1.0 + size_of(primal))};
}

inline Outcome solve_relaxed(const Iterate& at, RelaxedSide& hyp, RelaxedSide& ref, const Terms& terms) {
    start(at, hyp, ref);
    double centring = 0.2;
    Gap gap{kInfinity, 0.0};
    for (std::int64_t k = 0; k < terms.max_iterations; ++k) {
        double centre = centring * invert_slack(at, hyp, ref);
        newton_direction(at, hyp, ref, centre);
        double taken = advance(at, hyp, ref, centre);
        centring = taken > 0.9 ? 0.1 : taken > 0.5 ? 0.3 : 0.7;
        gap = measure_gap(at, hyp, ref, terms.tolerance);
        if (gap.size <= gap.enough) break;
    }
    scale_to_hard_marginal(at.plan, hyp, ref, at.plan);
    return {gap.size, gap.size <= gap.enough};
}

inline void interior_point_batch(const Batch& batch, const Terms& terms, const Solved& solved) {
    share_problems(batch, [&](std::int64_t k) {
        ScratchFrame frame;
        Problem problem = make_problem(frame, batch, k, terms, 1.0);
        int n = problem.hyp.count, m = problem.ref.count;
        RelaxedSide hyp = make_relaxed_side(frame, problem.hyp_weights, n, terms.hyp);
        RelaxedSide ref = make_relaxed_side(frame, problem.ref_weights, m, terms.ref);
        Iterate at{problem.cost, make_matrix(frame, n, m), make_matrix(frame, n, m), make_matrix(frame, n, m)};
        Outcome outcome = solve_relaxed(at, hyp, ref, terms);
        solved.gap[k] = outcome.gap;
        solved.converged[k] = outcome.converged;
        scatter_plan(problem, at.plan, solved, k);
    });
}

}  // namespace FREIGHT_VARIANT
}  // namespace freight
