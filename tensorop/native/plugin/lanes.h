/* A lane is one scenario (one set of constants). All lanes execute the same instructions, so a
 * time is a short vector of floats, in cycles since the last rebase. The build of the plugin
 * fixes LANES: one scalar lane for a search; 4, 8, 16, 24 or 32 for an interval. */
#ifndef BOARD_LANES_H
#define BOARD_LANES_H

#ifndef LANES
#define LANES 1
#endif

#if LANES % 16 == 0 && defined(__AVX512F__)
#include <immintrin.h>
typedef __m512 quad;
#define QUAD 16
#define quad_max(a, b) _mm512_max_ps(a, b)
#define quad_set(x) _mm512_set1_ps(x)
#define quad_floor(a) _mm512_roundscale_ps(a, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC)
#elif LANES % 8 == 0 && defined(__AVX__)
#include <immintrin.h>
typedef __m256 quad;
#define QUAD 8
#define quad_max(a, b) _mm256_max_ps(a, b)
#define quad_set(x) _mm256_set1_ps(x)
#define quad_floor(a) _mm256_floor_ps(a)
#elif LANES % 4 == 0 && defined(__SSE__)
#include <immintrin.h>
typedef __m128 quad;
#define QUAD 4
#define quad_max(a, b) _mm_max_ps(a, b)
#define quad_set(x) _mm_set1_ps(x)
#ifdef __SSE4_1__
#define quad_floor(a) _mm_floor_ps(a)
#else
/* Only times that are long ago exceed an int's range. */
static inline quad quad_floor(quad a) {
    quad whole = _mm_cvtepi32_ps(_mm_cvttps_epi32(a));
    return _mm_sub_ps(whole, _mm_and_ps(_mm_cmpgt_ps(whole, a), _mm_set1_ps(1)));
}
#endif
#elif LANES % 4 == 0 && defined(__ARM_NEON)
#include <arm_neon.h>
typedef float32x4_t quad;
#define QUAD 4
#define quad_max(a, b) vmaxq_f32(a, b)
#define quad_set(x) vdupq_n_f32(x)
#define quad_floor(a) vrndmq_f32(a)
#else
typedef float quad;
#define QUAD 1
#define quad_max(a, b) ((a) > (b) ? (a) : (b))
#define quad_set(x) (x)
#define quad_floor(a) __builtin_floorf(a)
#endif

#define QUADS (LANES / QUAD)

typedef struct {
    quad q[QUADS];
} vec;

/* Written out, not as a loop, so that compilers keep a vec in registers. */
#if QUADS == 1
#define EACH_QUAD(f) f(0)
#elif QUADS == 2
#define EACH_QUAD(f) f(0) f(1)
#elif QUADS == 3
#define EACH_QUAD(f) f(0) f(1) f(2)
#elif QUADS == 4
#define EACH_QUAD(f) f(0) f(1) f(2) f(3)
#elif QUADS == 6
#define EACH_QUAD(f) f(0) f(1) f(2) f(3) f(4) f(5)
#elif QUADS == 8
#define EACH_QUAD(f) f(0) f(1) f(2) f(3) f(4) f(5) f(6) f(7)
#else
#define EACH_QUAD(f)                                                                               \
    for (int i_ = 0; i_ < QUADS; i_++) {                                                           \
        f(i_)                                                                                      \
    }
#endif

/* Earlier than every time that is compared with it. */
#define LONG_AGO (-1e30f)

static inline vec vset(float x) {
    vec a;
#define ONE(i) a.q[i] = quad_set(x);
    EACH_QUAD(ONE)
#undef ONE
    return a;
}

static inline vec vmax(vec a, vec b) {
#define ONE(i) a.q[i] = quad_max(a.q[i], b.q[i]);
    EACH_QUAD(ONE)
#undef ONE
    return a;
}

static inline vec vmin(vec a, vec b) {
#define ONE(i) a.q[i] = -quad_max(-a.q[i], -b.q[i]);
    EACH_QUAD(ONE)
#undef ONE
    return a;
}

static inline vec vadd(vec a, vec b) {
#define ONE(i) a.q[i] = a.q[i] + b.q[i];
    EACH_QUAD(ONE)
#undef ONE
    return a;
}

static inline vec vsub(vec a, vec b) {
#define ONE(i) a.q[i] = a.q[i] - b.q[i];
    EACH_QUAD(ONE)
#undef ONE
    return a;
}

static inline vec vmul(vec a, vec b) {
#define ONE(i) a.q[i] = a.q[i] * b.q[i];
    EACH_QUAD(ONE)
#undef ONE
    return a;
}

static inline vec vfloor(vec a) {
#define ONE(i) a.q[i] = quad_floor(a.q[i]);
    EACH_QUAD(ONE)
#undef ONE
    return a;
}

static inline vec vceil(vec a) {
#define ONE(i) a.q[i] = -quad_floor(-a.q[i]);
    EACH_QUAD(ONE)
#undef ONE
    return a;
}

static inline float first(vec a) {
    return ((union {
               vec v;
               float f[LANES];
           }){.v = a})
        .f[0];
}

#endif
