/* The meanings of the primitives of cuda-fma on a processor. */
#define FLOATS 1
#include "elements.h"

struct float4 {
    float x, y, z, w;
};

static void together(Lane *) {} /* no primitive is a warp's */

static void float_copy(float *to, const float *from, int left) { begin_copy(to, from, left, 1); }
static int row_in_warp(unsigned thread, int apart) {
    return (thread % 2 + thread % 32 / 16 * 2) * apart;
}
static int column_in_warp(unsigned thread, int apart) { return thread / 2 % 8 * apart; }
static float4 floats_at(const float *from) {
    if (!multiple(from, 16))
        broken();
    return {from[0], from[1], from[2], from[3]};
}
static float4 floats_read(const float *from, int left) {
    float all[4] = {0};
    for (int e = 0; e < 4 && e < left; ++e)
        all[e] = from[e];
    return {all[0], all[1], all[2], all[3]};
}
static float4 word_read(const float *from, int left) {
    if (left > 0 && !multiple(from, 16))
        broken();
    return floats_read(from, left);
}
static void floats_put(float *at, float x, float y, float z, float w, int there, bool together) {
    if (together && there >= 4 && !multiple(at, 16))
        broken();
    const float all[4] = {x, y, z, w};
    for (int e = 0; e < 4 && e < there; ++e)
        at[e] = all[e];
}
