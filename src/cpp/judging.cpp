#include "judging.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "threads.hpp"

namespace freight {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

using Order = std::vector<std::int64_t>;

Order sorted_by(const double* x, std::int64_t count) {
    Order order(count);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [x](std::int64_t a, std::int64_t b) { return x[a] < x[b]; });
    return order;
}

double sign(double x) { return x > 0.0 ? 1.0 : x < 0.0 ? -1.0 : x; }

double pearson(const double* x, const double* y, const double* w, std::int64_t count) {
    double total = 0.0, x_mean = 0.0, y_mean = 0.0;
    std::int64_t last = -1;
    bool x_varies = false, y_varies = false;
    for (std::int64_t i = 0; i < count; ++i) {
        if (!(w[i] > 0.0)) continue;
        total += w[i];
        x_mean += w[i] * x[i];
        y_mean += w[i] * y[i];
        // Tested on the values: by rounding, a constant side may have a positive variance.
        x_varies |= last >= 0 && x[i] != x[last];
        y_varies |= last >= 0 && y[i] != y[last];
        last = i;
    }
    if (!(x_varies && y_varies)) return kNan;
    x_mean /= total, y_mean /= total;
    double xx = 0.0, yy = 0.0, xy = 0.0;
    for (std::int64_t i = 0; i < count; ++i) {
        if (!(w[i] > 0.0)) continue;
        double dx = x[i] - x_mean, dy = y[i] - y_mean;
        xx += w[i] * dx * dx;
        yy += w[i] * dy * dy;
        xy += w[i] * dx * dy;
    }
    double value = xy / (std::sqrt(xx) * std::sqrt(yy));
    return value < -1.0 ? -1.0 : value > 1.0 ? 1.0 : value;
}

void rank(const double* x, const double* w, std::int64_t count, double* out) {
    Order order = sorted_by(x, count);
    double below = 0.0;
    for (std::int64_t i = 0, j = 0; i < count; i = j) {
        double tied = 0.0;
        for (j = i; j < count && x[order[j]] == x[order[i]]; ++j) tied += w[order[j]];
        if (j == i) j = i + 1;  // not a number, and equal to nothing
        for (std::int64_t k = i; k < j; ++k) out[order[k]] = below + (tied + 1.0) / 2.0;
        below += tied;
    }
}

// Dense ranks from 1, and the sum over blocks of equal values of their squared weight.
double fill_places(const double* y, const double* w, const Order& order, Order& place) {
    double block = 0.0, tied = 0.0;
    std::int64_t current = 0;
    for (std::size_t k = 0; k < order.size(); ++k) {
        std::int64_t i = order[k];
        if (k == 0 || y[i] != y[order[k - 1]]) ++current, block = 0.0;
        block += w[i];
        tied += w[i] * (2.0 * block - w[i]);
        place[i] = current;
    }
    return tied;
}

double kendall(const double* x, const double* y, const double* w, std::int64_t count) {
    Order order = sorted_by(y, count), place(count);
    double y_tied = fill_places(y, w, order, place);
    // By x, then by y.
    std::stable_sort(order.begin(), order.end(), [x](std::int64_t a, std::int64_t b) { return x[a] < x[b]; });
    std::vector<double> tree(count + 1, 0.0);  // of sums, by place
    double total = 0.0, discordant = 0.0, x_tied = 0.0, both_tied = 0.0, x_block = 0.0, both_block = 0.0;
    for (std::int64_t k = 0; k < count; ++k) {
        std::int64_t i = order[k], before = order[std::max<std::int64_t>(k - 1, 0)];
        bool same_x = x[i] == x[before], same_both = same_x && place[i] == place[before];
        x_block = same_x ? x_block + w[i] : w[i];
        both_block = same_both ? both_block + w[i] : w[i];
        // (s + w)² − s² for the block so far: over a block these add up to its squared weight.
        x_tied += w[i] * (2.0 * x_block - w[i]);
        both_tied += w[i] * (2.0 * both_block - w[i]);
        if (!(w[i] > 0.0)) continue;
        double lower = 0.0;
        for (std::int64_t p = place[i]; p > 0; p -= p & -p) lower += tree[p];
        discordant += w[i] * (total - lower);
        for (std::int64_t p = place[i]; p <= count; p += p & -p) tree[p] += w[i];
        total += w[i];
    }
    double pairs = total * total;
    if (std::min(pairs - x_tied, pairs - y_tied) == 0.0) return kNan;
    double net = (pairs - x_tied - y_tied + both_tied) / 2.0 - 2.0 * discordant;
    return 2.0 * net / (std::sqrt(pairs - x_tied) * std::sqrt(pairs - y_tied));
}

// All pairs of points of a group, for every group.
template <class Visit>
void visit_pairs(Groups groups, Visit visit) {
    for (std::int64_t g = 0; g < groups.count; ++g)
        for (std::int64_t i = groups.starts[g]; i < groups.starts[g + 1]; ++i)
            for (std::int64_t j = i + 1; j < groups.starts[g + 1]; ++j) visit(g, i, j);
}

// By group, what a correct pair of weight 1 adds to the mean over groups.
std::vector<double> pair_weights(const double* w, const double* group_weights, Groups groups) {
    std::vector<double> share(groups.count, 0.0);
    double total = 0.0;
    for (std::int64_t g = 0; g < groups.count; ++g) {
        double sum = 0.0, squares = 0.0;
        for (std::int64_t i = groups.starts[g]; i < groups.starts[g + 1]; ++i) sum += w[i], squares += w[i] * w[i];
        double pairs = (sum * sum - squares) / 2.0;
        if (pairs > 0.0 && group_weights[g] > 0.0) {
            share[g] = group_weights[g] / pairs;
            total += group_weights[g];
        }
    }
    for (double& one : share) one /= total;  // not a number where no group has a pair
    return share;
}

// The smallest epsilon with the highest accuracy, among the differences of human ties.
double best_epsilon(const double* x, const double* y, const double* w, Groups groups, const std::vector<double>& share,
                    double margin) {
    struct Candidate {
        double difference, gain;
    };
    std::vector<Candidate> candidates;
    visit_pairs(groups, [&](std::int64_t g, std::int64_t i, std::int64_t j) {
        if (y[i] == y[j]) candidates.push_back({margin * std::fabs(x[i] - x[j]), share[g] * w[i] * w[j]});
    });
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const Candidate& a, const Candidate& b) { return a.difference < b.difference; });
    visit_pairs(groups, [&](std::int64_t g, std::int64_t i, std::int64_t j) {
        // A concordant pair becomes wrong as soon as epsilon reaches its difference.
        if (!((x[i] - x[j]) * sign(y[i] - y[j]) > 0.0)) return;
        auto at = std::lower_bound(candidates.begin(), candidates.end(), std::fabs(x[i] - x[j]),
                                   [](const Candidate& a, double value) { return a.difference < value; });
        if (at != candidates.end()) at->gain -= share[g] * w[i] * w[j];
    });
    double best = 0.0, most = 1e-12, total = 0.0;
    for (std::size_t k = 0; k < candidates.size(); ++k) {
        total += candidates[k].gain;
        bool last = k + 1 == candidates.size() || candidates[k + 1].difference > candidates[k].difference;
        if (last && (candidates[k].difference == 0.0 || total > most))
            best = candidates[k].difference, most = total + 1e-12;
    }
    return best;
}

double accuracy_of(const double* x, const double* y, const double* w, Groups groups, const std::vector<double>& share,
                   double epsilon) {
    double accuracy = 0.0;
    for (std::int64_t g = 0; g < groups.count; ++g) {
        double correct = 0.0;
        visit_pairs({groups.starts + g, 1}, [&](std::int64_t, std::int64_t i, std::int64_t j) {
            double difference = x[i] - x[j];
            double order = std::fabs(difference) <= epsilon ? 0.0 : sign(difference);
            if (order == sign(y[i] - y[j])) correct += w[i] * w[j];
        });
        accuracy += share[g] * correct;
    }
    return accuracy;
}

}  // namespace

void pearsons(Sample x, Sample y, Sample weights, Groups groups, std::int64_t resamples, double* out) {
    share(resamples, [&](std::int64_t k) {
        for (std::int64_t g = 0; g < groups.count; ++g) {
            std::int64_t start = groups.starts[g], count = groups.starts[g + 1] - start;
            out[k * groups.count + g] = pearson(x.row(k) + start, y.row(k) + start, weights.row(k) + start, count);
        }
    });
}

void kendalls(Sample x, Sample y, Sample weights, Groups groups, std::int64_t resamples, double* out) {
    share(resamples, [&](std::int64_t k) {
        for (std::int64_t g = 0; g < groups.count; ++g) {
            std::int64_t start = groups.starts[g], count = groups.starts[g + 1] - start;
            out[k * groups.count + g] = kendall(x.row(k) + start, y.row(k) + start, weights.row(k) + start, count);
        }
    });
}

void rankings(Sample x, Sample weights, Groups groups, std::int64_t resamples, double* out) {
    share(resamples, [&](std::int64_t k) {
        for (std::int64_t g = 0; g < groups.count; ++g) {
            std::int64_t start = groups.starts[g], count = groups.starts[g + 1] - start;
            rank(x.row(k) + start, weights.row(k) + start, count, out + k * x.points + start);
        }
    });
}

void accuracies(Sample metric, Sample human, Sample weights, Sample group_weights, Groups groups,
                std::int64_t resamples, double margin, double* accuracy, double* epsilons) {
    share(resamples, [&](std::int64_t k) {
        const double *x = metric.row(k), *y = human.row(k), *w = weights.row(k);
        std::vector<double> share = pair_weights(w, group_weights.row(k), groups);
        if (std::isnan(epsilons[k])) epsilons[k] = best_epsilon(x, y, w, groups, share, margin);
        accuracy[k] = accuracy_of(x, y, w, groups, share, epsilons[k]);
    });
}

}  // namespace freight
