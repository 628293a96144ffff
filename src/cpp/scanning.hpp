// Finding words: the distinct units of pairs of texts, the words of word2vec's files, and those that
// two texts share.
#pragma once

#include <cstdint>
#include <vector>

namespace freight {

// Enter the units of one side of every pair; a unit's place is its last occurrence.
void enter_units(std::int64_t pairs, const std::int64_t* ids, const std::int64_t* text_offsets,
                 const double* text_weights, const std::int64_t* texts, std::int64_t before,
                 const std::int64_t* offsets, std::int64_t* sizes, std::int64_t* unit, double* place, double* own);

// Chunks over matched words, at most 1, for every pair with a flow (pair, n, m).
void fragmentation(std::int64_t pairs, const double* flow, std::int64_t n, std::int64_t m,
                   const std::int64_t* hyp_sizes, const std::int64_t* ref_sizes, double* out);

// Where words start, their lengths, and where their values start.
struct WordPlaces {
    std::vector<std::int64_t> begins, lengths, values;
};

// The bytes of a file from `at` on.
struct Bytes {
    const unsigned char* data;
    std::int64_t size;
};

WordPlaces scan_binary(Bytes file, std::int64_t at, std::int64_t count, std::int64_t dim);
// The same for lines of text; a word may contain spaces, its values end the line.
WordPlaces scan_text(Bytes file, std::int64_t at, std::int64_t dim);

void hash_words(Bytes text, std::int64_t count, const std::int64_t* begins, const std::int64_t* lengths,
                std::uint64_t* out);

struct WordTable {
    std::int64_t count;
    const std::uint64_t* hashes;  // in order
    const std::int64_t* order;    // the rows that they belong to
    Bytes file;
    const std::int64_t *begins, *lengths;
};

// The row of each word that is looked up, the first of several; -1 if there is none.
void find_words(Bytes asked, std::int64_t count, const std::int64_t* begins, const std::int64_t* lengths,
                const WordTable& table, std::int64_t* rows);

// The words of texts, one after the other, and where each text starts; words end at ASCII space.
struct Texts {
    const unsigned char* data;
    const std::int64_t* starts;  // (text + 1,)
    std::int64_t count;
};

// For every text the share of its words that are among these hashes, which are in order; for every
// pair of texts (hyp, ref) the number of distinct words of the hypothesis, and how many of those the
// reference has, counting words of Latin, Greek or Cyrillic letters alone.
struct WordCounts {
    double* shares;
    std::int64_t *words, *shared;
};
void compare_words(const Texts& texts, const std::uint64_t* common, std::int64_t hashes, const std::int64_t* index,
                   std::int64_t pairs, const WordCounts& out);

}  // namespace freight
