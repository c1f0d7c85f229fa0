/* A header of your own beside the kernel. */
#ifndef MASKS_H
#define MASKS_H

#include <immintrin.h>
#include <stddef.h>

/* A mask of the first `count` lanes, or of all if there are fewer. */
static inline __m256i first(size_t count) {
    const int most = count < 8 ? (int)count : 8;
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(most), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

#endif
