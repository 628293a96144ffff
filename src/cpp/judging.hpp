// Correlations and accuracies over weighted points, one resample per thread.
//
// Points are (resample, point) and sorted by group; a side that all resamples share has one row.
// `starts` holds the first point of each group, and one number more.
#pragma once

#include <cstdint>

namespace freight {

struct Sample {
    const double* data;
    std::int64_t rows, points;

    const double* row(std::int64_t k) const { return data + (k < rows ? k : rows - 1) * points; }
};

struct Groups {
    const std::int64_t* starts;
    std::int64_t count;
};

// Into out (resample, group), not a number where one side is constant.
void pearsons(Sample x, Sample y, Sample weights, Groups groups, std::int64_t resamples, double* out);
void kendalls(Sample x, Sample y, Sample weights, Groups groups, std::int64_t resamples, double* out);
// Into out (resample, point).
void rankings(Sample x, Sample weights, Groups groups, std::int64_t resamples, double* out);

// Accuracies over pairs with a tie threshold epsilon; one that is not a number is calibrated.
void accuracies(Sample metric, Sample human, Sample weights, Sample group_weights, Groups groups,
                std::int64_t resamples, double margin, double* accuracy, double* epsilons);

}  // namespace freight
