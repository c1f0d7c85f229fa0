// The order of tiles and parts of K, how a kernel with tensor maps leaves sums, and the kernel that
// adds them up, from their own texts (texts.h), on this machine's processor. Products are made up.
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define __device__
#define __forceinline__ inline
#define __global__
#define __launch_bounds__(...)
#define __grid_constant__

struct Index {
    unsigned x;
};
static Index threadIdx, blockIdx;
static int min(int a, int b) { return a < b ? a : b; }
static unsigned min(unsigned a, unsigned b) { return a < b ? a : b; }
struct float2 {
    float x, y;
};
struct float4 {
    float x, y, z, w;
};
static float finish_power(float x) { return exp2f(x); }
static float finish_inverse(float x) { return 1 / x; }
static void floats_store(float *at, float x, float y, float z, float w) {
    at[0] = x, at[1] = y, at[2] = z, at[3] = w;
}
#include "texts.h"

enum { ALONG = CLUSTER_M * CLUSTER_N, AREA = TILE_M * TILE_N, DEEP = 3 };

static float product(int batch, int row, int col, int part) {
    return (float)((batch * 7 + row * 3 + col * 5 + part * 11) % 64);
}

// The elements of a consumer's tile, or its sums of a part. Returns whether it found a fault.
static bool leave(const Args *launch, int tile, int rank, int consumer, int parts, float *result,
                  float *sums) {
    const int m = launch->m, n = launch->n, whole = launch->whole;
    const int row = tile_row(launch, tile, rank % CLUSTER_M) + consumer % GROUPS_M * WGM;
    const int col0 = tile_col(launch, tile, rank / CLUSTER_M) + consumer / GROUPS_M * WGN;
    const int batch = tile_batch(launch, tile), begin = tile_begin(launch, tile);
    if (tile < whole) {
        for (int i = row; i < min(row + WGM, m); ++i)
            for (int j = col0; j < min(col0 + WGN, n); ++j) {
                float *const at = result + batch * launch->stride_c +
                                  (SWAP ? j * launch->ldc + i : i * launch->ldc + j);
                if (*at != -1 || begin)
                    return true;
                *at = 0;
                for (int part = 0; part < parts; ++part)
                    *at += product(batch, i, j, part);
            }
        return false;
    }
    if (begin % DEEP || begin / DEEP >= parts)
        return true;
    float *const c = sums; // its name with store: sums
    (void)c;
    for (int thread = 128; thread < 256; ++thread) {
        float sum[WGM / 64 * WGN / 2];
        for (int e = 0; e < WGM / 64 * WGN / 2; ++e) {
            const int of_row =
                row + e / (WGN / 2) * 64 + thread / 32 % 4 * 16 + thread % 32 / 4 + e / 2 % 2 * 8;
            sum[e] = product(batch, of_row, col0 + e % (WGN / 2) / 4 * 8 + thread % 4 * 2 + e % 2,
                             begin / DEEP);
        }
        LEAVE
    }
    return false;
}

static bool wrong(int trial) {
    Args p;
    memset(&p, 0, sizeof p);
    const int parts = 2 + rand() % 9, m = p.m = 1 + rand() % (3 * TILE_M * CLUSTER_M);
    const int n = p.n = 1 + rand() % (4 * TILE_N * CLUSTER_N), batch = p.batch = 1 + trial % 3;
    p.tiles_m = (m + TILE_M * CLUSTER_M - 1) / (TILE_M * CLUSTER_M);
    p.tiles_n = (n + TILE_N * CLUSTER_N - 1) / (TILE_N * CLUSTER_N);
    const int tiles = p.tiles_m * p.tiles_n * batch;
    p.rest = BY_SUMS ? tiles : 1 + rand() % tiles, p.whole = tiles - p.rest;
    p.clusters = p.whole + p.rest * parts, p.k = 64 * parts * DEEP, p.deep = DEEP, p.group = RASTER;
    const int lines = SWAP ? n : m, wide = SWAP ? m : n;
    p.ldc = wide + 3, p.stride_c = lines * p.ldc;
    const int64_t elements = batch * p.stride_c, held = (int64_t)p.rest * parts * ALONG * AREA;
    float *const result = (float *)malloc(elements * 4), *const sums = (float *)malloc(held * 4);
    for (int64_t i = 0; i < elements; ++i)
        result[i] = -1;
    for (int64_t i = 0; i < held; ++i)
        sums[i] = NAN;
    bool found = false;
    for (int tile = 0; tile < p.clusters; ++tile)
        for (int i = 0; i < ALONG * GROUPS; ++i)
            found |= leave(&p, tile, i / GROUPS, i % GROUPS, parts, result, sums);
    Sums s;
    memset(&s, 0, sizeof s);
    s.sums = sums, s.c = result, s.ldc = p.ldc, s.stride_c = p.stride_c, s.m = m, s.n = n,
    s.parts = parts;
    s.whole = p.whole, s.rest = p.rest, s.tiles_m = p.tiles_m, s.tiles_n = p.tiles_n,
    s.group = p.group;
    s.cluster_m = CLUSTER_M, s.cluster_n = CLUSTER_N, s.tile_m = TILE_M, s.tile_n = TILE_N,
    s.wgm = WGM, s.wgn = WGN;
    s.groups_m = GROUPS_M, s.swap = SWAP, s.alpha = 1;
    for (blockIdx.x = 0; blockIdx.x < (unsigned)(p.rest * ALONG * (AREA / 512)); ++blockIdx.x)
        for (threadIdx.x = 0; threadIdx.x < 128; ++threadIdx.x)
            tensorop_kernel(s);
    for (int64_t i = 0; i < elements; ++i) {
        const int z = (int)(i / p.stride_c), line = (int)(i % p.stride_c / p.ldc),
                  at = (int)(i % p.ldc);
        float sum = at < wide ? 0 : -1;
        for (int part = 0; at < wide && part < parts; ++part)
            sum += product(z, SWAP ? at : line, SWAP ? line : at, part);
        found |= result[i] != sum;
    }
    free(result), free(sums);
    return found;
}

int main(void) {
    for (int trial = 0; trial < 12; ++trial)
        if (wrong(trial))
            return printf("wrong: the product of number %d\n", trial), 1;
    return puts("right"), 0;
}
