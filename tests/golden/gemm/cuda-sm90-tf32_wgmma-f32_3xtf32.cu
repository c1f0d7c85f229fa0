// gemm f32_3xtf32 by tf32_wgmma
//
// f32 by wgmma of tf32: two warpgroups take turns to copy A and bring B through registers into shared memory, in one part or two; two others multiply, with A in registers, and add up each step's products
#include <stdint.h>
#include <cuda_pipeline.h>

#ifndef TENSOROP_EPILOGUE
#define TENSOROP_EPILOGUE
/* What follows the sums of a row-major C, in this order: scales, bias, residual, activation. NULL: not asked for. */
struct Epilogue {
    const void *bias, *residual; /* of C's type */
    const float *by_row, *by_col; /* scales */
    int64_t ld, stride; /* of the residual's rows and matrices */
    int bias_by_row; /* the bias has an element for each row, else for each column */
    int pairs; /* 1: two adjacent elements of bias and residual are a word; 2: also eight of the residual, of 16 bytes */
    int activation; /* 1 ReLU, 2 GELU, 3 SiLU */
    int present; /* 0: nothing of this is; 1: no more than a bias by columns and an activation; 2: more */
};
#endif
/* Arguments of a launch with pointers. */
struct Args {
    int m, n, k, batch;
    int tiles_m, tiles_n, group;
    float alpha, beta;
    const void *a, *b;
    void *c;
    int64_t lda, ldb, ldc, stride_a, stride_b, stride_c;
    int parts; /* of k, whose sums another kernel adds up (combine.h.j2); 1: C is written here */
    float *sums;
    int general; /* beta is not 0, or there is an epilogue */
    struct Epilogue epilogue;
};

namespace {
struct Word {
    float v[4];
};
struct TileA {
    uint32_t r[4]; // rows thread % 32 / 4 and that + 8 of column thread % 4, then of that + 4
    uint32_t low[4]; // what r lacks
};

__device__ __forceinline__ void word_copy(float *to, const float *from, int left) {
    const int missing = left >= 4 ? 0 : left <= 0 ? 4 : 4 - left;
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;"
                 :
                 : "r"(static_cast<uint32_t>(__cvta_generic_to_shared(to))), "l"(__cvta_generic_to_global(from)),
                   "r"(16 - missing * 4)
                 : "memory");
}

__device__ __forceinline__ void copies_commit() {
    __pipeline_commit();
}

template <int LEFT>
__device__ __forceinline__ void copies_wait() {
    __pipeline_wait_prior(LEFT);
}

__device__ __forceinline__ void word_read(Word &word, const float *from, int left) {
    if (left >= 4) {
        asm volatile("ld.global.L1::no_allocate.v4.f32 {%0, %1, %2, %3}, [%4];"
                     : "=f"(word.v[0]), "=f"(word.v[1]), "=f"(word.v[2]), "=f"(word.v[3])
                     : "l"(from)
                     : "memory");
    } else {
#pragma unroll
        for (int e = 0; e < 4; ++e)
            word.v[e] = e < left ? from[e] : 0;
    }
}

__device__ __forceinline__ void barrier_init(float *barrier, int count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(static_cast<uint32_t>(__cvta_generic_to_shared(barrier))),
                 "r"(count)
                 : "memory");
}

__device__ __forceinline__ void barrier_arrive(float *barrier) {
    asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 _, [%0];" ::"r"(
                     static_cast<uint32_t>(__cvta_generic_to_shared(barrier)))
                 : "memory");
}

__device__ __forceinline__ void barrier_wait(float *barrier, int parity) {
    asm volatile("{\n.reg .pred done;\nagain:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@done bra.uni over;\nbra.uni again;\nover:\n}" ::"r"(
                     static_cast<uint32_t>(__cvta_generic_to_shared(barrier))),
                 "r"(parity)
                 : "memory");
}

__device__ __forceinline__ void shared_written() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

__device__ __forceinline__ void parts_put(float *high, float *low, const Word &word) {
    float h[4];
#pragma unroll
    for (int e = 0; e < 4; ++e) {
        h[e] = __uint_as_float(__float_as_uint(word.v[e]) & 0xffffe000u);
    }
    *reinterpret_cast<float4 *>(high) = make_float4(h[0], h[1], h[2], h[3]);
    *reinterpret_cast<float4 *>(low) = make_float4(word.v[0] - h[0], word.v[1] - h[1], word.v[2] - h[2], word.v[3] - h[3]);
}

__device__ __forceinline__ void parts(uint32_t *r, uint32_t *low) {
    for (int i = 0; i < 4; ++i) {
        const uint32_t high = r[i] & 0xffffe000u;
        low[i] = __float_as_uint(__uint_as_float(r[i]) - __uint_as_float(high));
        r[i] = high;
    }
}

__device__ __forceinline__ void rows_of_a(TileA &tile, const float *from, int ld) {
    const unsigned lane = threadIdx.x % 32;
    const float *const at = from + lane % 16 * ld + lane / 16 * 4;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(tile.r[0]), "=r"(tile.r[1]), "=r"(tile.r[2]), "=r"(tile.r[3])
                 : "r"(static_cast<uint32_t>(__cvta_generic_to_shared(at)))
                 : "memory");
    parts(tile.r, tile.low);
}

__device__ __forceinline__ void products_begin() {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void group_product(float *d, const uint32_t *a, const float *b, int step, int keeps) {
    const uint32_t at = static_cast<uint32_t>(__cvta_generic_to_shared(b)) + step * 288;
    const uint64_t tile = uint64_t(1168 >> 4) << 32 | uint64_t(144 >> 4) << 16 | uint64_t((at & 0x3ffff) >> 4);
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %69, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k8.f32.tf32.tf32"
                 " {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63},"
                 " {%64,%65,%66,%67},"
                 " %68, p, 1, 1;\n}\n"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])    
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(tile), "r"(keeps));
}

__device__ __forceinline__ void group_multiply(float *d, const TileA &a, const float *b, int step, int keeps) {
    group_product(d, a.r, b, step, keeps);
}

__device__ __forceinline__ void group_multiply_low(float *d, const TileA &a, const float *b, int step, int keeps) {
    group_product(d, a.low, b, step, keeps);
}

__device__ __forceinline__ void group_multiply_rest(float *d, const TileA &a, const float *b, int step) {
    group_product(d, a.r, b, step, 1);
}

__device__ __forceinline__ void products_wait() {
    asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" ::: "memory");
}

template <int N>
__device__ __forceinline__ void registers_fewer() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N));
}

template <int N>
__device__ __forceinline__ void registers_more() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N));
}

__device__ __forceinline__ void float_pair_put(float *at, float x, float y, bool two, bool together) {
    if (together && two) {
        *reinterpret_cast<float2 *>(at) = make_float2(x, y);
    } else {
        at[0] = x;
        if (two)
            at[1] = y;
    }
}

__device__ __forceinline__ void block(int m, int n, int k, float alpha, float beta, const float *a, size_t lda, const float *b,
           size_t ldb, float *c, size_t ldc, int row0, int col0, unsigned thread, bool pairs, bool words,
           float *tiles, float *sums, bool general, const Epilogue *epilogue, int matrix) {
    const int warpgroup = thread / 128, own = thread % 128;
    float *const full = tiles + 55808;
    float *const empty = tiles + 55816;
    if (thread == 0) {
        for (int s = 0; s < 4; ++s) {
            barrier_init(full + 2 * s, 128);
            barrier_init(empty + 2 * s, 8);
        }
    }
    __syncthreads();
    const int steps = (k + 31) / 32;
    if (warpgroup < 2) {
        registers_fewer<88>();
        const bool within = row0 + 128 <= m && col0 + 128 <= n;
        Word near0;
        Word near1;
        Word near2;
        Word near3;
        Word near4;
        Word near5;
        Word near6;
        Word near7;
        for (int step = warpgroup; step < steps; step += 2) {
            const int stage = step % 4, k0 = step * 32;
            barrier_wait(empty + 2 * stage, (step / 4 + 1) % 2);
                            if (within && k0 + 32 <= k) {
                                {
                const int r = own / 8, q = own % 8 * 4;
                
                float *const at = tiles + stage * 13952 + r * 36 + q;
                const float *source = a + (row0 + r) * lda + k0 + q;
#pragma unroll
                for (int i = 0; i < 8; ++i) {
                    word_copy(at + i * 576, source, 4);
                    source += 16 * lda;
                }
            }
} else {
                                {
                const int r = own / 8, q = own % 8 * 4;
                const int inside = k - k0 - q;
                float *const at = tiles + stage * 13952 + r * 36 + q;
                const float *source = a + (row0 + r) * lda + k0 + q;
#pragma unroll
                for (int i = 0; i < 8; ++i) {
                    const int left = row0 + r + i * 16 < m ? inside : 0;
                    word_copy(at + i * 576, left > 0 ? source : a, left);
                    source += 16 * lda;
                }
            }
}
copies_commit();
                            if (within && k0 + 32 <= k) {
                                {
                const int r = own / 8, q = own % 8 * 4;
                
                const float *const source = b + (col0 + r) * ldb + k0 + q;
                word_read(near0, source, 4);
                word_read(near1, source + 16 * ldb, 4);
                word_read(near2, source + 32 * ldb, 4);
                word_read(near3, source + 48 * ldb, 4);
                word_read(near4, source + 64 * ldb, 4);
                word_read(near5, source + 80 * ldb, 4);
                word_read(near6, source + 96 * ldb, 4);
                word_read(near7, source + 112 * ldb, 4);
            }
} else {
                                {
                const int r = own / 8, q = own % 8 * 4;
                const int inside = k - k0 - q;
                const float *const source = b + (col0 + r) * ldb + k0 + q;
                word_read(near0, source, col0 + r + 0 < n ? inside : 0);
                word_read(near1, source + 16 * ldb, col0 + r + 16 < n ? inside : 0);
                word_read(near2, source + 32 * ldb, col0 + r + 32 < n ? inside : 0);
                word_read(near3, source + 48 * ldb, col0 + r + 48 < n ? inside : 0);
                word_read(near4, source + 64 * ldb, col0 + r + 64 < n ? inside : 0);
                word_read(near5, source + 80 * ldb, col0 + r + 80 < n ? inside : 0);
                word_read(near6, source + 96 * ldb, col0 + r + 96 < n ? inside : 0);
                word_read(near7, source + 112 * ldb, col0 + r + 112 < n ? inside : 0);
            }
}
            float *const high = tiles + stage * 13952 + 4608 + own / 64 * 292 + own % 8 * 36 + own / 8 % 8 * 4;
            float *const low = high + 4672;
            parts_put(high + 0, low + 0, near0);
            parts_put(high + 584, low + 584, near1);
            parts_put(high + 1168, low + 1168, near2);
            parts_put(high + 1752, low + 1752, near3);
            parts_put(high + 2336, low + 2336, near4);
            parts_put(high + 2920, low + 2920, near5);
            parts_put(high + 3504, low + 3504, near6);
            parts_put(high + 4088, low + 4088, near7);
            copies_wait<0>();
            shared_written();
            barrier_arrive(full + 2 * stage);
        }
    } else {
        registers_more<168>();
        const int wm = (warpgroup - 2) * 64 + own / 32 * 16, lane = own % 32;
        float sum[64] = {0};
        float part[64] = {0};
        for (int step = 0; step < steps; ++step) {
            const int stage = step % 4;
            const float *const sa = tiles + stage * 13952 + wm * 36;
            const float *const sb = tiles + stage * 13952 + 4608;
            barrier_wait(full + 2 * stage, step / 4 % 2);
            TileA fa0;
            rows_of_a(fa0, sa + 0, 36);
            TileA fa1;
            rows_of_a(fa1, sa + 8, 36);
            TileA fa2;
            rows_of_a(fa2, sa + 16, 36);
            TileA fa3;
            rows_of_a(fa3, sa + 24, 36);
            products_begin();
            const float *const low = sb + 4672;
            // Tensor cores truncate the sums that they add to. So a step's sums start from 0, small products come first, and
            // a rounded addition follows.
            group_multiply_low(part, fa0, sb, 0, 0);
            group_multiply_low(part, fa1, sb, 1, 1);
            group_multiply_low(part, fa2, sb, 2, 1);
            group_multiply_low(part, fa3, sb, 3, 1);
            group_multiply_rest(part, fa0, low, 0);
            group_multiply_rest(part, fa1, low, 1);
            group_multiply_rest(part, fa2, low, 2);
            group_multiply_rest(part, fa3, low, 3);
            group_multiply(part, fa0, sb, 0, 1);
            group_multiply(part, fa1, sb, 1, 1);
            group_multiply(part, fa2, sb, 2, 1);
            group_multiply(part, fa3, sb, 3, 1);
            products_wait();
            if (lane == 0)
                barrier_arrive(empty + 2 * stage);
#pragma unroll
            for (int e = 0; e < 64; ++e)
                sum[e] += part[e];
        }
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int row = row0 + wm + 8 * half + lane / 4;
            if (row < m) {
#pragma unroll
                for (int j = 0; j < 16; ++j) {
                    const int col = col0 + 8 * j + lane % 4 * 2;
                    if (col < n) {
                        float *const at = c + row * ldc + col;
                        const bool two = col + 1 < n;
                        float s[2] = {alpha * sum[4 * j + 2 * half], alpha * sum[4 * j + 2 * half + 1]};
                        if (beta != 0) {
                            s[0] += beta * at[0];
                            s[1] += two ? beta * at[1] : 0.f;
                        }
                        
                        float_pair_put(at, s[0], s[1], two, pairs);
                    }
                }
            }
        }
    }
}

extern "C" __global__ __launch_bounds__(512, 1) void tensorop_kernel(
    const __grid_constant__ Args p) {
    extern __shared__ __align__(128) unsigned char raw[];
    const unsigned thread = threadIdx.x;
    const int matrix = blockIdx.z / p.parts;
    // Blocks of `group` rows of tiles run along N together, so that they share B in L2.
    const int first = blockIdx.x / (p.group * p.tiles_n) * p.group, inside = blockIdx.x % (p.group * p.tiles_n);
    const int height = min(p.group, p.tiles_m - first);
    const int row0 = (first + inside % height) * 128, col0 = inside / height * 128;
    // Its part of k, in whole steps, and where the sums go.
    const int part = blockIdx.z % p.parts;
    const int64_t steps = (p.k + 31) / 32;
    const int k0 = int(steps * part / p.parts) * 32, k1 = min(p.k, int(steps * (part + 1) / p.parts) * 32);
    const bool whole = p.parts == 1;
    float *const c = whole ? static_cast<float *>(p.c) + matrix * p.stride_c : p.sums + int64_t(blockIdx.z) * p.m * p.n;
    const int64_t ldc = whole ? p.ldc : p.n;
    const auto at = reinterpret_cast<uintptr_t>(c);
    block(p.m, p.n, k1 - k0, whole ? p.alpha : 1, whole ? p.beta : 0,
          static_cast<const float *>(p.a) + matrix * p.stride_a + k0, p.lda,
          static_cast<const float *>(p.b) + matrix * p.stride_b + k0, p.ldb, c, ldc, row0,
          col0, thread, ldc % 2 == 0 && at % 8 == 0, ldc % 4 == 0 && at % 16 == 0, reinterpret_cast<float *>(raw),
          reinterpret_cast<float *>(raw), whole && p.general, &p.epilogue, matrix);
}
} // namespace
