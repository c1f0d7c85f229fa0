#include "realign.cuh"

namespace realign {
namespace {

constexpr int THREADS = 256, SPAN = 128; // 16-byte words a warp takes

__host__ __device__ int spans_a_row(const Copy &c) {
    return ((c.to_cols + 7) / 8 + 1 + SPAN - 1) / SPAN;
}

// A warp takes SPAN words of a row, all loads first.
__global__ __launch_bounds__(THREADS) void copy_kernel(const Copy first, const Copy second,
                                                       int first_spans) {
    int index = blockIdx.x * (THREADS / 32) + threadIdx.x / 32;
    Copy c = first;
    if (index >= first_spans)
        c = second, index -= first_spans;
    const int spans = spans_a_row(c), row = index / spans, lane = threadIdx.x % 32;
    if (row >= c.to_rows)
        return;
    uint16_t *to = static_cast<uint16_t *>(c.to) + row * c.to_ld;
    const int lead = static_cast<int>(reinterpret_cast<uintptr_t>(to) % 16 / 2);
    // The first element of this lane's first word, perhaps before the row.
    const int begin = (index % spans * SPAN + lane) * 8 - lead;
    const uint16_t *source = static_cast<const uint16_t *>(c.from) + row * c.from_ld;
    const uintptr_t at = reinterpret_cast<uintptr_t>(source + begin);
    const uint4 *from = reinterpret_cast<const uint4 *>(at & ~uintptr_t(15));
    const int shift = static_cast<int>(at % 16 / 2), cols = row < c.rows ? c.cols : 0;
    uint4 low[SPAN / 32], high[SPAN / 32];
#pragma unroll
    for (int i = 0; i < SPAN / 32; ++i) {
        // A word that holds no element of the row may be outside the buffer.
        const int word = begin + i * 256 - shift;
        low[i] = high[i] = make_uint4(0, 0, 0, 0);
        if (word + 8 > 0 && word < cols)
            low[i] = __ldg(from + i * 32);
        if (shift && word + 8 < cols)
            high[i] = __ldg(from + i * 32 + 1);
    }
#pragma unroll
    for (int i = 0; i < SPAN / 32; ++i) {
        const int element = begin + i * 256, left = cols - element;
        const uint4 v = shifted(low[i], high[i], shift);
        uint32_t w[4] = {v.x, v.y, v.z, v.w};
        if (left < 8)
#pragma unroll
            for (int e = 0; e < 4; ++e)
                w[e] = 2 * e >= left ? 0 : 2 * e + 1 >= left ? w[e] & 0xffff : w[e];
        if (element >= 0 && element + 8 <= c.to_cols)
            *reinterpret_cast<uint4 *>(to + element) = make_uint4(w[0], w[1], w[2], w[3]);
        else if (element < c.to_cols)
#pragma unroll
            for (int e = 0; e < 8; ++e)
                if (element + e >= 0 && element + e < c.to_cols)
                    to[element + e] = static_cast<uint16_t>(w[e / 2] >> e % 2 * 16);
    }
}

} // namespace

cudaError_t copy(const Copy &first, const Copy &second, cudaStream_t stream) {
    auto spans = [](const Copy &c) { return c.to_rows * spans_a_row(c); };
    const int a = spans(first), b = spans(second);
    if (a + b)
        copy_kernel<<<ceil_div(a + b, THREADS / 32), THREADS, 0, stream>>>(first, second, a);
    return cudaGetLastError();
}

} // namespace realign
