#include "scanning.hpp"

#include "threads.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace freight {
namespace {

constexpr double kTie = 1e-12;

std::uint64_t hash_of(const unsigned char* word, std::int64_t length) {  // FNV-1a
    std::uint64_t value = 14695981039346656037ULL;
    for (std::int64_t k = 0; k < length; ++k) value = (value ^ word[k]) * 1099511628211ULL;
    return value;
}

unsigned char lower(unsigned char letter) { return letter >= 'A' && letter <= 'Z' ? letter + 32 : letter; }

// Whether a byte belongs to a letter: of ASCII, or of Latin, Greek and Cyrillic letters in UTF-8, whose
// first bytes are C3 to C9 and CE to D3; other letters do not count, nor do marks and digits.
bool in_letter(unsigned char byte) {
    return (byte >= 'a' && byte <= 'z') || (byte >= 0x80 && byte <= 0xbf) || (byte >= 0xc3 && byte <= 0xc9) ||
           (byte >= 0xce && byte <= 0xd3);
}

// The hash of each word of a text in lower case, as far as ASCII goes, and whether it has letters only.
template <class Use>
void each_word(const unsigned char* at, const unsigned char* end, Use use) {
    while (at < end) {
        while (at < end && *at <= ' ') ++at;
        if (at == end) return;
        std::uint64_t value = 14695981039346656037ULL;
        bool letters = true;
        unsigned char before = 0;
        for (; at < end && *at > ' '; ++at) {
            unsigned char byte = lower(*at);
            letters = letters && in_letter(byte) && !(before == 0xc3 && (byte == 0x97 || byte == 0xb7));
            value = (value ^ byte) * 1099511628211ULL;
            before = byte;
        }
        use(value, letters);
    }
}

// Do work(k) for every k below count, a block of them at a time on as many threads as are allowed.
template <class Work>
void share_blocks(std::int64_t count, const Work& work) {
    constexpr std::int64_t kBlock = 128;
    share((count + kBlock - 1) / kBlock, [&](std::int64_t block) {
        for (std::int64_t k = block * kBlock; k < std::min(count, (block + 1) * kBlock); ++k) work(k);
    });
}

}  // namespace

void enter_units(std::int64_t pairs, const std::int64_t* ids, const std::int64_t* text_offsets,
                 const double* text_weights, const std::int64_t* texts, std::int64_t before,
                 const std::int64_t* offsets, std::int64_t* sizes, std::int64_t* unit, double* place, double* own) {
    for (std::int64_t pair = 0; pair < pairs; ++pair) {
        std::int64_t first = text_offsets[texts[pair]], last = text_offsets[texts[pair] + 1], begin = offsets[pair];
        for (std::int64_t k = first; k < last; ++k) {
            std::int64_t slot = begin, end = begin + sizes[pair];
            while (slot < end && ids[unit[slot]] != ids[k + before]) ++slot;
            if (slot == end) {
                ++sizes[pair];
                unit[slot] = k + before;
            }
            place[slot] = static_cast<double>(k - first + 1) / static_cast<double>(last - first);
            own[slot] += text_weights[k];
        }
    }
}

void fragmentation(std::int64_t pairs, const double* flow, std::int64_t n, std::int64_t m,
                   const std::int64_t* hyp_sizes, const std::int64_t* ref_sizes, double* out) {
    for (std::int64_t pair = 0; pair < pairs; ++pair) {
        std::int64_t chunks = 1, previous = -1, matched = 0;
        for (std::int64_t j = 0; j < ref_sizes[pair]; ++j) {
            // The hypothesis word that sends most, among equals the one nearest to the match before.
            std::int64_t best = -1;
            double largest = 0.0;
            for (std::int64_t i = 0; i < hyp_sizes[pair]; ++i) {
                double mass = flow[(pair * n + i) * m + j];
                bool nearer = std::abs(i - previous) < std::abs(best - previous);
                if (mass > largest + kTie || (mass > largest - kTie && mass > 0.0 && nearer))
                    best = i, largest = std::max(mass, largest);
            }
            if (best < 0) continue;
            ++matched;
            if (best != previous + 1) ++chunks;  // not right behind the match before
            previous = best;
        }
        out[pair] = std::min(1.0, static_cast<double>(chunks) / static_cast<double>(std::max<std::int64_t>(matched, 1)));
    }
}

WordPlaces scan_binary(Bytes file, std::int64_t at, std::int64_t count, std::int64_t dim) {
    WordPlaces places;
    for (std::int64_t rows = 0; rows < count; ++rows) {
        while (at < file.size && file.data[at] == '\n') ++at;
        std::int64_t begin = at;
        while (at < file.size && file.data[at] != ' ') ++at;
        if (at + 1 + 4 * dim > file.size) break;
        places.begins.push_back(begin);
        places.lengths.push_back(at - begin);
        places.values.push_back(at + 1);
        at += 1 + 4 * dim;
    }
    return places;
}

WordPlaces scan_text(Bytes file, std::int64_t at, std::int64_t dim) {
    WordPlaces places;
    while (at < file.size) {
        const void* newline = std::memchr(file.data + at, '\n', file.size - at);
        std::int64_t end = newline ? static_cast<const unsigned char*>(newline) - file.data : file.size;
        std::int64_t stop = end, spaces = 0;
        while (stop > at && (file.data[stop - 1] == ' ' || file.data[stop - 1] == '\r')) --stop;
        std::int64_t place = stop;
        while (place > at && spaces < dim)
            if (file.data[--place] == ' ') ++spaces;
        if (spaces == dim && place > at) {
            places.begins.push_back(at);
            places.lengths.push_back(place - at);
            places.values.push_back(place + 1);
        } else if (stop > at) {
            break;  // not a word and its numbers: the caller sees that words end before the file does
        }
        at = end + 1;
    }
    return places;
}

void hash_words(Bytes text, std::int64_t count, const std::int64_t* begins, const std::int64_t* lengths,
                std::uint64_t* out) {
    for (std::int64_t k = 0; k < count; ++k) out[k] = hash_of(text.data + begins[k], lengths[k]);
}

void find_words(Bytes asked, std::int64_t count, const std::int64_t* begins, const std::int64_t* lengths,
                const WordTable& table, std::int64_t* rows) {
    const std::uint64_t* end = table.hashes + table.count;
    for (std::int64_t k = 0; k < count; ++k) {
        const unsigned char* word = asked.data + begins[k];
        std::uint64_t wanted = hash_of(word, lengths[k]);
        rows[k] = -1;
        for (auto place = std::lower_bound(table.hashes, end, wanted); place < end && *place == wanted; ++place) {
            std::int64_t row = table.order[place - table.hashes];
            if (table.lengths[row] == lengths[k] &&
                std::memcmp(table.file.data + table.begins[row], word, lengths[k]) == 0) {
                rows[k] = row;
                break;
            }
        }
    }
}

void compare_words(const Texts& texts, const std::uint64_t* common, std::int64_t hashes, const std::int64_t* index,
                   std::int64_t pairs, const WordCounts& out) {
    std::vector<std::vector<std::pair<std::uint64_t, bool>>> distinct(texts.count);
    share_blocks(texts.count, [&](std::int64_t text) {
        auto& own = distinct[text];
        std::int64_t all = 0, known = 0;
        auto enter = [&](std::uint64_t value, bool letters) {
            ++all;
            known += std::binary_search(common, common + hashes, value);
            own.emplace_back(value, letters);
        };
        each_word(texts.data + texts.starts[text], texts.data + texts.starts[text + 1], enter);
        out.shares[text] = all ? static_cast<double>(known) / static_cast<double>(all) : 0.0;
        std::sort(own.begin(), own.end());
        own.erase(std::unique(own.begin(), own.end()), own.end());
    });
    share_blocks(pairs, [&](std::int64_t pair) {
        const auto &hyp = distinct[index[2 * pair]], &ref = distinct[index[2 * pair + 1]];
        out.words[pair] = static_cast<std::int64_t>(hyp.size());
        std::int64_t shared = 0;
        for (auto one = hyp.begin(), other = ref.begin(); one != hyp.end() && other != ref.end();) {
            if (one->first == other->first) shared += one->second;
            if (one->first <= other->first) ++one;
            else ++other;
        }
        out.shared[pair] = shared;
    });
}

}  // namespace freight
