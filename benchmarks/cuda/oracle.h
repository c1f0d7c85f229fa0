// The oracle: data, fp64 references, comparisons. Nothing here is shared with a candidate.
#pragma once
#include "gemm.h"

namespace oracle {

// N(0,1) from a counter and a seed.
void fill_normal(uint16_t *p, int64_t count, uint64_t seed, bool bf16);
void fill_bytes(void *p, size_t bytes, int value);
// A sum over all bytes that any changed word changes.
uint64_t hash(const void *p, size_t bytes);
uint64_t hash_c(const Problem &p, const uint16_t *c); // the elements only, not the padding
bool all_bytes(const void *p, size_t bytes, int value);
bool padding_is(const Problem &p, const uint16_t *c, uint16_t value);

struct Error {
    double worst = 0;         // greatest |error| / bound; beyond 1 is refused
    double rms = 0;           // |error| / |reference| over everything compared
    double ideal = 0;         // the same of the reference rounded to the type of C
    double projected = 0;     // greatest residual of a row of C x, in its own standard deviations
    double projected_rms = 0; // rms of the same residuals: 1 where C is rounded once
    int64_t compared = 0;
    std::string refused; // why, or empty
};

// Judges all of C: every element up to 2048 cubed, above that C x against A (B x) and full rows
// and columns. `before` is C as it was, read where beta is not 0.
Error judge(const Problem &p, const uint16_t *a, const uint16_t *b, const uint16_t *before,
            const uint16_t *c, uint64_t seed);

// The device's references against sums made by the host. Exits where they differ.
void held_against_host(uint64_t seed);

} // namespace oracle
