// Kernels of every kit: data, checksums, copies. An operator's kernels.cu includes this file. No
// thread waits for another one, so that a test without a device can run them one by one.
#include "formats.h"
#include <math.h>
#include <stdint.h>
#include <string.h>

namespace {

__host__ __device__ double widen(uint16_t bits, int bf16) { // for F16 and BF16 only
    const uint32_t sign = uint32_t(bits) >> 15 << 31, exponent = bits >> 10 & 31,
                   mantissa = bits & 1023;
    uint32_t word = uint32_t(bits) << 16;
    if (!bf16) {
        if (exponent == 0)
            return (sign ? -1 : 1) * double(mantissa) * 0x1p-24;
        word = sign | (exponent == 31 ? 255 : exponent + 112) << 23 | mantissa << 13;
    }
    float value;
    memcpy(&value, &word, 4);
    return value;
}

// Rounds to nearest even at the precision of the type. These data do not reach the upper end of its
// range.
__device__ double rounded(double v, int format) {
    if (format == FLOAT)
        return double(float(v));
    if (v == 0 || isnan(v) || isinf(v))
        return v;
    const bool bf16 = format == BF16;
    int e;
    frexp(v, &e);
    int unit = e - (bf16 ? 8 : 11);
    if (!bf16 && unit < -24)
        unit = -24;
    return ldexp(rint(ldexp(v, -unit)), unit);
}

__device__ uint16_t narrow(double given, int bf16) {
    const double v = rounded(given, bf16);
    const int digits = bf16 ? 7 : 10, bias = bf16 ? 127 : 15;
    const int sign = (v < 0) << 15;
    if (isnan(v))
        return 0x7fff;
    if (v == 0)
        return uint16_t(sign);
    int e;
    const double part = frexp(fabs(v), &e); // in [0.5, 1)
    const int exponent = e - 1 + bias;
    if (exponent >= (bf16 ? 255 : 31))
        return uint16_t(sign | (bf16 ? 0x7f80 : 0x7c00));
    if (exponent < 1) // subnormal
        return uint16_t(sign | int(ldexp(fabs(v), bias - 1 + digits)));
    return uint16_t(sign | exponent << digits |
                    (int(ldexp(part, digits + 1)) & ((1 << digits) - 1)));
}

// Access to elements in memory.
__device__ double read(const uint16_t *p, int64_t at, int format) {
    return format == FLOAT ? double(reinterpret_cast<const float *>(p)[at]) : widen(p[at], format);
}

__device__ void write(uint16_t *p, int64_t at, double v, int format) {
    if (format == FLOAT)
        reinterpret_cast<float *>(p)[at] = float(v);
    else
        p[at] = narrow(v, format);
}

__host__ __device__ uint64_t mix(uint64_t x) {
    x += 0x9e3779b97f4a7c15;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

__device__ int64_t first() { return blockIdx.x * int64_t(blockDim.x) + threadIdx.x; }
__device__ int64_t all() { return int64_t(gridDim.x) * blockDim.x; }

} // namespace

// Random numbers of N(0, 1) from a counter and a seed.
extern "C" __global__ void kit_normal(uint16_t *p, int64_t count, uint64_t seed, int format) {
    for (int64_t i = first(); 2 * i < count; i += all()) {
        const uint64_t r = mix(seed ^ mix(i));
        const float u = (uint32_t(r) + 0.5f) * 2.3283064e-10f,
                    turn = uint32_t(r >> 32) * 4.6566129e-10f;
        const float radius = sqrtf(-2 * logf(fminf(u, 0.99999994f)));
        write(p, 2 * i, radius * cospif(turn), format);
        if (2 * i + 1 < count)
            write(p, 2 * i + 1, radius * sinpif(turn), format);
    }
}

// A checksum: every changed word changes it.
extern "C" __global__ void kit_hash(const uint16_t *p, int64_t rows, int64_t cols, int64_t ld,
                                    unsigned long long *sum) {
    uint64_t mine = 0;
    for (int64_t i = first(); i < rows * cols; i += all())
        mine += mix(p[i / cols * ld + i % cols] ^ uint64_t(i) << 16);
    if (mine)
        atomicAdd(sum, static_cast<unsigned long long>(mine));
}

// The number of words from column `from` on that differ from `value`.
extern "C" __global__ void kit_differs(const uint16_t *p, int64_t rows, int64_t from, int64_t cols,
                                       int64_t ld, int value, unsigned long long *sum) {
    for (int64_t i = first(); i < rows * cols; i += all())
        if (p[i / cols * ld + from + i % cols] != value)
            atomicAdd(sum, 1ull);
}

// Copies rows of words, without the gaps between them.
extern "C" __global__ void kit_copy(const uint16_t *from, uint16_t *to, int64_t rows, int64_t cols,
                                    int64_t ld) {
    for (int64_t i = first(); i < rows * cols; i += all())
        to[i / cols * ld + i % cols] = from[i / cols * ld + i % cols];
}

// Counts words of a result that differ from those that are wanted, then begins it anew.
extern "C" __global__ void kit_same(uint16_t *found, const uint16_t *wanted, const uint16_t *begun,
                                    int64_t rows, int64_t cols, int64_t ld,
                                    unsigned long long *sum) {
    for (int64_t i = first(); i < rows * cols; i += all()) {
        const int64_t at = i / cols * ld + i % cols;
        if (found[at] != wanted[at])
            atomicAdd(sum, 1ull);
        found[at] = begun[at];
    }
}

// Writes one word.
extern "C" __global__ void kit_poke(uint16_t *at, int value) {
    if (first() == 0)
        *at = static_cast<uint16_t>(value);
}

// Blocks a stream until it is released, for two seconds at most.
extern "C" __global__ void kit_hold(volatile int *released) {
    const long long limit = clock64() + 4000000000ll;
    while (!*released && clock64() < limit) {
    }
}
