/* Elements, and the primitives of single threads that sets have in common. Copies happen when they
 * are waited for, not before. FLOATS or BF16 chooses the element. */
#ifndef TENSOROP_ELEMENTS_H
#define TENSOROP_ELEMENTS_H

#include "lanes.h"

#define __device__
#define __forceinline__ inline

struct uint4 {
    uint32_t x, y, z, w;
};
static inline uint4 make_uint4(uint32_t x, uint32_t y, uint32_t z, uint32_t w) {
    return {x, y, z, w};
}

static inline uint32_t bits_of(float x) {
    uint32_t bits;
    __builtin_memcpy(&bits, &x, 4);
    return bits;
}
static inline float float_of(uint32_t bits) {
    float x;
    __builtin_memcpy(&x, &bits, 4);
    return x;
}

#if FLOATS
using Element = float;
#else
#if BF16
static uint16_t rounded(float x) {
    const uint32_t bits = bits_of(x);
    return x != x ? bits >> 16 | 64 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}
static float widened(uint16_t bits) { return float_of(uint32_t(bits) << 16); }
#else
static uint16_t rounded(float x) {
    const uint32_t bits = bits_of(x), sign = bits >> 16 & 0x8000, size = bits & 0x7fffffff;
    if (size > 0x7f800000)
        return sign | 0x7e00;
    if (size >= 0x477ff000)
        return sign | 0x7c00;
    if (size < 0x38800000) /* subnormal: adding 0.5 leaves its bits, rounded, at the end */
        return sign | (bits_of(float_of(size) + 0.5f) - 0x3f000000);
    return sign | ((size + 0xfff + (size >> 13 & 1)) >> 13) - (112 << 10);
}
static float widened(uint16_t bits) {
    const uint32_t sign = uint32_t(bits & 0x8000) << 16, size = bits & 0x7fff;
    if (size >= 0x7c00)
        return float_of(sign | 0x7f800000 | (size & 0x3ff) << 13);
    return float_of(
        sign | bits_of(float_of(size << 13) * float_of(0x77800000))); /* 2 to the power of 112 */
}
#endif

struct Element {
    uint16_t bits;
    Element() = default;
    Element(const Element &other) : bits(other.bits) { ++counted[SINGLE]; }
    Element &operator=(const Element &other) {
        ++counted[SINGLE];
        bits = other.bits;
        return *this;
    }
    Element(float x) : bits(rounded(x)) {}
    operator float() const {
        ++counted[SINGLE];
        return widened(bits);
    }
};
#endif

enum { SYNC }; /* the first of each set's primitives that a warp executes together */

static void __syncthreads() { wait_for(AT_BLOCK); }
static void __syncwarp() { meet({SYNC}); }
static void __trap() { __builtin_trap(); }

static inline int min(int a, int b) { return a < b ? a : b; }
static inline int max(int a, int b) { return a > b ? a : b; }
static inline bool multiple(const void *p, unsigned of) { return (uintptr_t)p % of == 0; }

/* left: elements there, below 0 and above `count` too */
static void begin_copy(Element *to, const Element *from, int left, int count) {
    Lane *const own = current;
    const int size = sizeof(Element), whole = count * size;
    if (!multiple(to, whole) || !multiple(from, whole) || own->begun - own->there == MOST_COPIES)
        broken();
    own->copy[own->begun++ % MOST_COPIES] = {to, from, min(max(left, 0), count) * size, whole};
    counted[COPIED_BYTES] += left > 0 ? whole : 0;
}
static void word_copy(Element *to, const Element *from, int left) {
    begin_copy(to, from, left, 16 / sizeof(Element));
}
static void copies_commit() {
    Lane *const own = current;
    if (own->committed - own->done == MOST_GROUPS)
        broken();
    own->group[own->committed++ % MOST_GROUPS] = own->begun;
}
template <int LEFT> static void copies_wait() {
    Lane *const own = current;
    for (; own->committed - own->done > LEFT; ++own->done)
        for (; own->there != own->group[own->done % MOST_GROUPS]; ++own->there) {
            const Copied &one = own->copy[own->there % MOST_COPIES];
            __builtin_memcpy(one.to, one.from, one.bytes);
            __builtin_memset((char *)one.to + one.bytes, 0, one.whole - one.bytes);
        }
    if (own->number == 0)
        ++counted[WAITS], counted[AHEAD] += own->committed - own->done;
}

static void float_pair_put(float *at, float x, float y, bool two, bool together) {
    if (together && two && !multiple(at, 8))
        broken();
    at[0] = x;
    if (two)
        at[1] = y;
}

#if !FLOATS
static void elements_copy(Element *to, const Element *from, int left) {
    for (int e = 0; e < 8; ++e)
        to[e].bits = e < left ? from[e].bits : 0;
    counted[SINGLE] += left > 0 ? 8 : 0;
}

/* A tile's rows are read eight at a time, 16 bytes of each; those in the same banks take a cycle
 * each. */
static void count_banks(const Element *from, int ld) {
    for (int phase = 0; phase < 4; ++phase) {
        int rows[8] = {0}, most = 0;
        for (int i = 0; i < 8; ++i) {
            const uintptr_t at =
                (uintptr_t)(from + (phase % 2 * 8 + i) * (int64_t)ld + phase / 2 * 8);
            const int now = ++rows[at / 16 % 8];
            most = now > most ? now : most;
        }
        counted[SHARED_CYCLES] += most;
    }
}

static float value(Element element) { return widened(element.bits); }
static void pair_put(Element *at, float x, float y, bool two, bool together) {
    if (together && two && !multiple(at, 4))
        broken();
    at[0].bits = rounded(x);
    if (two)
        at[1].bits = rounded(y);
}
#endif

#endif
