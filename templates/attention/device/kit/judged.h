/* Shared declarations of a kit's kernels and its host code: a call of attention. */
#ifndef TENSOROP_JUDGED_H
#define TENSOROP_JUDGED_H

#include <stdint.h>

/* Distances of batches, rows and heads, in elements. */
struct lying {
    int64_t batch, row, head;
};

/* b: batches in memory, one if the rows of ragged sequences follow one another. s: queries of a
 * batch; t: keys of a sequence, at most. */
struct judged {
    int b, h, g, s, t, d, dv, format, type;
    int by_head, pad;       /* layout [b][h][s][d]; elements between rows */
    int align, left, right; /* as in the library's header */
    float scale;
    struct lying q, k, v, o;
    uint64_t lse; /* device memory for log-sum-exps, or 0 */
    /* Sequences, the most queries of one, and int32 in device memory or 0: where their rows begin,
     * their keys, and their pages of 1 << page keys. K and V have `parts` batches or pages of
     * `keys` rows each. */
    int sequences, longest, page, pages_row, keys, parts;
    uint64_t starts_q, starts_k, lengths, pages;
};

/* Every `step`-th row of O, from a random one on; `count` rows. */
struct picked {
    int64_t step, count, shift;
};

/* Totals over all compared elements. worst: the bits of a non-negative double, which have the order
 * of doubles. */
struct totals {
    double error2, ideal2;
    unsigned long long worst, wrong;
};

#endif
