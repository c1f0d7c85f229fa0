#include "realign.cuh"

namespace realign {
namespace {

constexpr int THREADS = 256, WORDS = 4; // 16-byte words a thread

__host__ __device__ int words_a_row(const Copy &c) { return (c.to_cols + 7) / 8 + 1; }

__device__ void copy_word(const Copy &c, int row, int word) {
    uint16_t *to = static_cast<uint16_t *>(c.to) + row * c.to_ld;
    const int lead = static_cast<int>(reinterpret_cast<uintptr_t>(to) % 16 / 2);
    const int begin = word * 8 - lead; // the first element of this word, perhaps before the row
    if (begin >= c.to_cols)
        return;
    uint4 value = make_uint4(0, 0, 0, 0);
    if (row < c.rows && begin < c.cols) {
        const uint16_t *row_begin = static_cast<const uint16_t *>(c.from) + row * c.from_ld;
        const uintptr_t at = reinterpret_cast<uintptr_t>(row_begin + begin);
        const uint4 *aligned = reinterpret_cast<const uint4 *>(at & ~uintptr_t(15));
        const int shift = static_cast<int>(at % 16 / 2);
        uint4 low = value, high = value;
        // A word that holds no element of the row may be outside the buffer.
        if (reinterpret_cast<const uint16_t *>(aligned + 1) > row_begin)
            low = __ldg(aligned);
        if (shift && reinterpret_cast<const uint16_t *>(aligned + 1) < row_begin + c.cols)
            high = __ldg(aligned + 1);
        value = shifted(low, high, shift);
        const int left = c.cols - begin; // elements of the row from here on
        if (left < 8) {
            uint32_t w[4] = {value.x, value.y, value.z, value.w};
#pragma unroll
            for (int i = 0; i < 4; ++i)
                w[i] = 2 * i >= left ? 0 : 2 * i + 1 >= left ? w[i] & 0xffff : w[i];
            value = make_uint4(w[0], w[1], w[2], w[3]);
        }
    }
    if (begin >= 0 && begin + 8 <= c.to_cols) {
        *reinterpret_cast<uint4 *>(to + begin) = value;
        return;
    }
    const uint32_t w[4] = {value.x, value.y, value.z, value.w};
#pragma unroll
    for (int i = 0; i < 8; ++i)
        if (begin + i >= 0 && begin + i < c.to_cols)
            to[begin + i] = static_cast<uint16_t>(w[i / 2] >> i % 2 * 16);
}

__global__ void copy_kernel(Copy first, Copy second, int first_blocks) {
    const bool is_first = blockIdx.x < first_blocks;
    const Copy &c = is_first ? first : second;
    const unsigned block = is_first ? blockIdx.x : blockIdx.x - first_blocks;
    const unsigned row_words = words_a_row(c);
#pragma unroll
    for (int i = 0; i < WORDS; ++i) {
        const unsigned index = (block * WORDS + i) * THREADS + threadIdx.x;
        const unsigned row = index / row_words;
        if (row < c.to_rows)
            copy_word(c, row, index % row_words);
    }
}

} // namespace

cudaError_t copy(const Copy &first, const Copy &second, cudaStream_t stream) {
    auto blocks = [](const Copy &c) {
        return c.to_rows ? ceil_div(int64_t(c.to_rows) * words_a_row(c), THREADS * WORDS) : 0;
    };
    const int a = blocks(first), b = blocks(second);
    if (a + b)
        copy_kernel<<<a + b, THREADS, 0, stream>>>(first, second, a);
    return cudaGetLastError();
}

} // namespace realign
