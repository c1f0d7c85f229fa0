// Copies of 16-bit matrices between rows of any pitch, as whole 16-byte words where they fit.
#pragma once
#include "gemm.h"

namespace realign {

struct Copy {
    const void *from = nullptr;
    void *to = nullptr;
    int rows = 0, cols = 0; // what is copied
    int64_t from_ld = 0;
    int to_rows = 0, to_cols = 0; // what is written: 0 beyond rows and cols
    int64_t to_ld = 0;
};

// Both in one launch; the second may be empty.
cudaError_t copy(const Copy &first, const Copy &second, cudaStream_t stream);

#ifdef __CUDACC__
// The 8 elements that begin `shift` elements into the 16 of `low` and `high`.
__device__ __forceinline__ uint4 shifted(uint4 low, uint4 high, int shift) {
    uint32_t w[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
    for (int i = 0; i < 6; ++i)
        w[i] = shift & 4 ? w[i + 2] : w[i];
#pragma unroll
    for (int i = 0; i < 5; ++i)
        w[i] = shift & 2 ? w[i + 1] : w[i];
    const uint32_t pick = shift & 1 ? 0x5432 : 0x3210;
#pragma unroll
    for (int i = 0; i < 4; ++i)
        w[i] = __byte_perm(w[i], w[i + 1], pick);
    return make_uint4(w[0], w[1], w[2], w[3]);
}
#endif

} // namespace realign
