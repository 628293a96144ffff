// What Python calls, through ctypes: plain functions on plain structures, which it mirrors in
// `freight/kernels.py`. The interpreter's lock is released meanwhile. They return 0, or 1 where memory
// is short.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

#include "batches.hpp"
#include "judging.hpp"
#include "scanning.hpp"
#include "threads.hpp"

#if defined(__linux__)
#include <sched.h>
#else
#include <thread>
#endif
#if defined(FREIGHT_X86)
#include <cpuid.h>
#endif

#define FREIGHT_PUBLIC extern "C" __attribute__((visibility("default")))

namespace freight {
namespace {

#if defined(FREIGHT_X86)
struct Processor {
    bool avx2 = false, avx512 = false;

    Processor() {
        unsigned a, b, c, d, low, high;
        if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE) || !(c & bit_AVX)) return;
        asm("xgetbv" : "=a"(low), "=d"(high) : "c"(0));  // what the operating system saves
        if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return;
        avx2 = (low & 6) == 6 && (b & bit_AVX2);
        avx512 = avx2 && (low & 0xe6) == 0xe6 && (b & bit_AVX512F) && (b & bit_AVX512DQ) && (b & bit_AVX512VL) &&
                 (b & bit_AVX512BW);
    }
};
#endif

// As many threads as OMP_NUM_THREADS says, else as this process has cores.
int default_threads() {
    const char* said = std::getenv("OMP_NUM_THREADS");
    int count = said ? std::atoi(said) : 0;
    if (count > 0) return count;
#if defined(__linux__)
    cpu_set_t cores;
    if (sched_getaffinity(0, sizeof cores, &cores) == 0) return CPU_COUNT(&cores);
    return 1;
#else
    return static_cast<int>(std::thread::hardware_concurrency());
#endif
}

template <class Work>
int guarded(Work work) {
    try {
        work();
        return 0;
    } catch (const std::bad_alloc&) {
        return 1;
    }
}

const Kernels* choose(const char* name) {
    bool any = !*name;
#if defined(FREIGHT_X86)
    static const Processor processor;
    if (processor.avx512 && (any || !std::strcmp(name, kernels_avx512.name))) return &kernels_avx512;
    if (processor.avx2 && (any || !std::strcmp(name, kernels_avx2.name))) return &kernels_avx2;
#endif
    return any || !std::strcmp(name, kernels_baseline.name) ? &kernels_baseline : nullptr;
}

const Kernels* kernels = choose("");

struct Start {
    Start() { set_threads(default_threads()); }
} start;

}  // namespace

// The kernels for a vector unit; without a name, for the widest that this processor has. The name of
// what is used, or nothing where there is no such unit.
FREIGHT_PUBLIC const char* freight_use_vectors(const char* name) {
    const Kernels* chosen = choose(name);
    if (!chosen) return nullptr;
    kernels = chosen;
    return chosen->name;
}

FREIGHT_PUBLIC void freight_set_threads(int count) { set_threads(count); }
FREIGHT_PUBLIC void freight_set_own_threads(int count) { set_own_threads(count); }
FREIGHT_PUBLIC int freight_get_threads() { return get_threads(); }

FREIGHT_PUBLIC int freight_simplex(const Batch* batch, const Terms* terms, const Solved* solved) {
    return guarded([&] { kernels->simplex(*batch, *terms, *solved); });
}
FREIGHT_PUBLIC int freight_nearest(const Batch* batch, const Terms* terms, const Solved* solved) {
    return guarded([&] { kernels->nearest(*batch, *terms, *solved); });
}
FREIGHT_PUBLIC int freight_interior_point(const Batch* batch, const Terms* terms, const Solved* solved) {
    return guarded([&] { kernels->interior_point(*batch, *terms, *solved); });
}
FREIGHT_PUBLIC int freight_sinkhorn(const Batch* batch, const Terms* terms, const Solved* solved) {
    return guarded([&] { kernels->sinkhorn(*batch, *terms, *solved); });
}
FREIGHT_PUBLIC int freight_find_faults(const Batch* batch, const Terms* terms, double rtol, std::int64_t* faults) {
    return guarded([&] { kernels->find_faults(*batch, *terms, rtol, faults); });
}
FREIGHT_PUBLIC int freight_totals(const Batch* batch, const Terms* terms, const Numbers* flow, double* out) {
    return guarded([&] { kernels->totals(*batch, *terms, *flow, out); });
}
FREIGHT_PUBLIC int freight_barycenters(const Barycenters* given) {
    return guarded([&] { kernels->barycenters(*given); });
}
FREIGHT_PUBLIC int freight_coefficients(const Coefficients* given) {
    return guarded([&] { kernels->coefficients(*given); });
}

FREIGHT_PUBLIC int freight_lengths(const Points* points, std::int64_t count, double* out) {
    return guarded([&] { kernels->lengths(*points, count, out); });
}
FREIGHT_PUBLIC int freight_unit_means(const Points* points, std::int64_t groups, const std::int64_t* offsets,
                                      float* out) {
    return guarded([&] { kernels->unit_means(*points, groups, offsets, out); });
}
FREIGHT_PUBLIC int freight_nsim(const Points* points, const double* lengths, const float* centroids,
                                std::int64_t pairs, const std::int64_t* texts, const std::int64_t* offsets,
                                const std::int64_t* sizes, const std::int64_t* unit, const double* place,
                                double* mass) {
    return guarded([&] {
        kernels->nsim(*points, lengths, centroids, pairs, texts, offsets, sizes, unit, place, mass);
    });
}
FREIGHT_PUBLIC int freight_cosines(const Points* points, const double* lengths, std::int64_t pairs, std::int64_t width,
                                   const std::int64_t* hyp, const std::int64_t* ref, const std::int64_t* hyp_sizes,
                                   const std::int64_t* ref_sizes, double* out) {
    return guarded([&] { kernels->cosines(*points, lengths, pairs, width, hyp, ref, hyp_sizes, ref_sizes, out); });
}
FREIGHT_PUBLIC int freight_enter_units(std::int64_t pairs, const std::int64_t* ids, const std::int64_t* text_offsets,
                                       const double* text_weights, const std::int64_t* texts, std::int64_t before,
                                       const std::int64_t* offsets, std::int64_t* sizes, std::int64_t* unit,
                                       double* place, double* own) {
    return guarded([&] {
        enter_units(pairs, ids, text_offsets, text_weights, texts, before, offsets, sizes, unit, place, own);
    });
}
FREIGHT_PUBLIC int freight_fragmentation(std::int64_t pairs, const double* flow, std::int64_t n, std::int64_t m,
                                         const std::int64_t* hyp_sizes, const std::int64_t* ref_sizes, double* out) {
    return guarded([&] { fragmentation(pairs, flow, n, m, hyp_sizes, ref_sizes, out); });
}

// The words of a file, to be taken by the next function; `count` below 0 says that it is one of text.
FREIGHT_PUBLIC WordPlaces* freight_scan(const unsigned char* data, std::int64_t size, std::int64_t start,
                                        std::int64_t count, std::int64_t dim, std::int64_t* words) {
    auto* places = new (std::nothrow) WordPlaces;
    int failed = !places || guarded([&] {
        *places = count < 0 ? scan_text({data, size}, start, dim) : scan_binary({data, size}, start, count, dim);
    });
    if (failed) {
        delete places;
        return nullptr;
    }
    *words = static_cast<std::int64_t>(places->begins.size());
    return places;
}
FREIGHT_PUBLIC int freight_take_places(WordPlaces* places, std::int64_t* begins, std::int64_t* lengths,
                                       std::int64_t* values) {
    std::size_t bytes = sizeof(std::int64_t) * places->begins.size();
    if (bytes) {
        std::memcpy(begins, places->begins.data(), bytes);
        std::memcpy(lengths, places->lengths.data(), bytes);
        std::memcpy(values, places->values.data(), bytes);
    }
    delete places;
    return 0;
}
FREIGHT_PUBLIC int freight_hash_words(const unsigned char* text, std::int64_t count, const std::int64_t* begins,
                                      const std::int64_t* lengths, std::uint64_t* out) {
    return guarded([&] { hash_words({text, 0}, count, begins, lengths, out); });
}
FREIGHT_PUBLIC int freight_find_words(const unsigned char* asked, std::int64_t count, const std::int64_t* begins,
                                      const std::int64_t* lengths, const WordTable* table, std::int64_t* rows) {
    return guarded([&] { find_words({asked, 0}, count, begins, lengths, *table, rows); });
}

FREIGHT_PUBLIC int freight_compare_words(const Texts* texts, const std::uint64_t* common, std::int64_t hashes,
                                         const std::int64_t* index, std::int64_t pairs, double* shares,
                                         std::int64_t* words, std::int64_t* shared) {
    return guarded([&] { compare_words(*texts, common, hashes, index, pairs, {shares, words, shared}); });
}

FREIGHT_PUBLIC int freight_pearsons(const Sample* x, const Sample* y, const Sample* weights, const Groups* groups,
                                    std::int64_t resamples, double* out) {
    return guarded([&] { pearsons(*x, *y, *weights, *groups, resamples, out); });
}
FREIGHT_PUBLIC int freight_kendalls(const Sample* x, const Sample* y, const Sample* weights, const Groups* groups,
                                    std::int64_t resamples, double* out) {
    return guarded([&] { kendalls(*x, *y, *weights, *groups, resamples, out); });
}
FREIGHT_PUBLIC int freight_ranks(const Sample* x, const Sample* weights, const Groups* groups, std::int64_t resamples,
                                 double* out) {
    return guarded([&] { rankings(*x, *weights, *groups, resamples, out); });
}
FREIGHT_PUBLIC int freight_accuracies(const Sample* metric, const Sample* human, const Sample* weights,
                                      const Sample* group_weights, const Groups* groups, std::int64_t resamples,
                                      double margin, double* accuracy, double* epsilons) {
    return guarded([&] {
        accuracies(*metric, *human, *weights, *group_weights, *groups, resamples, margin, accuracy, epsilons);
    });
}

FREIGHT_PUBLIC int freight_solve_bordered(const double* w, std::int64_t n, std::int64_t m, const double* p,
                                          const double* q, const double* r, const double* s, double* x, double* y) {
    return guarded([&] { kernels->solve_bordered(w, n, m, p, q, r, s, x, y); });
}
FREIGHT_PUBLIC int freight_exp(double* x, std::int64_t count) {
    return guarded([&] { kernels->exp(x, count); });
}
FREIGHT_PUBLIC int freight_log(double* x, std::int64_t count) {
    return guarded([&] { kernels->log(x, count); });
}

}  // namespace freight
