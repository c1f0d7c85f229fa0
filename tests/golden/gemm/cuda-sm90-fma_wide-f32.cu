// gemm f32 by fma_wide
//
// f32 exact to a rounding each, for many tiles: 8 x 16 sums a thread; what a step of k needs is read during the step before it, and operands reach shared memory through registers, which transpose those along K
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


__device__ __forceinline__ int row_in_warp(unsigned thread, int apart) {
    return (thread % 2 + thread % 32 / 16 * 2) * apart;
}

__device__ __forceinline__ int column_in_warp(unsigned thread, int apart) {
    return thread / 2 % 8 * apart;
}

__device__ __forceinline__ float4 floats_at(const float *from) {
    return *reinterpret_cast<const float4 *>(from);
}

__device__ __forceinline__ float4 word_read(const float *from, int left) {
    if (left >= 4)
        return __ldg(reinterpret_cast<const float4 *>(from));
    return make_float4(left > 0 ? from[0] : 0, left > 1 ? from[1] : 0, left > 2 ? from[2] : 0, 0);
}

__device__ __forceinline__ void floats_put(float *at, float x, float y, float z, float w, int there, bool together) {
    if (together && there >= 4) {
        *reinterpret_cast<float4 *>(at) = make_float4(x, y, z, w);
    } else {
        const float all[4] = {x, y, z, w};
        for (int e = 0; e < 4; ++e)
            if (e < there)
                at[e] = all[e];
    }
}

__device__ __forceinline__ void block(int m, int n, int k, float alpha, float beta, const float *a, size_t lda, const float *b,
           size_t ldb, float *c, size_t ldc, int row0, int col0, unsigned thread, bool pairs, bool words,
           float *tiles, float *sums, bool general, const Epilogue *epilogue, int matrix) {
    const int warp = thread / 32, ty = column_in_warp(thread, 4), tx = row_in_warp(thread, 4);
    const int wm = warp / 2 * 64, wn = warp % 2 * 64;
    const bool within = row0 + 128 <= m && col0 + 128 <= n;
    float sum[128] = {0};
    float ga[8] = {0}, gb[8] = {0};
    float a0[8] = {0}, a1[8] = {0}, b0[16] = {0}, b1[16] = {0};
    const int steps = (k + 7) / 8;
                if (within && 0 + 8 <= k) {
                            {
                const int r = thread / 2, q = thread % 2 * 4;
                const float *source = a + (row0 + r) * lda + 0 + q;
#pragma unroll
                for (int i = 0; i < 2; ++i) {
                    const float4 v = word_read(source, 4);
                    ga[4 * i] = v.x, ga[4 * i + 1] = v.y, ga[4 * i + 2] = v.z, ga[4 * i + 3] = v.w;
                    source += 64 * lda;
                }
            }
            {
                const int r = thread / 2, q = thread % 2 * 4;
                const float *source = b + (col0 + r) * ldb + 0 + q;
#pragma unroll
                for (int i = 0; i < 2; ++i) {
                    const float4 v = word_read(source, 4);
                    gb[4 * i] = v.x, gb[4 * i + 1] = v.y, gb[4 * i + 2] = v.z, gb[4 * i + 3] = v.w;
                    source += 64 * ldb;
                }
            }
} else {
                            {
                const int r = thread / 2, q = thread % 2 * 4;
                const int inside = k - 0 - q;
                const float *source = a + (row0 + r) * lda + 0 + q;
#pragma unroll
                for (int i = 0; i < 2; ++i) {
                    const int left = row0 + r + i * 64 < m ? inside : 0;
                    const float4 v = word_read(left > 0 ? source : a, left);
                    ga[4 * i] = v.x, ga[4 * i + 1] = v.y, ga[4 * i + 2] = v.z, ga[4 * i + 3] = v.w;
                    source += 64 * lda;
                }
            }
            {
                const int r = thread / 2, q = thread % 2 * 4;
                const int inside = k - 0 - q;
                const float *source = b + (col0 + r) * ldb + 0 + q;
#pragma unroll
                for (int i = 0; i < 2; ++i) {
                    const int left = col0 + r + i * 64 < n ? inside : 0;
                    const float4 v = word_read(left > 0 ? source : b, left);
                    gb[4 * i] = v.x, gb[4 * i + 1] = v.y, gb[4 * i + 2] = v.z, gb[4 * i + 3] = v.w;
                    source += 64 * ldb;
                }
            }
}
                        {
                float *const at = tiles + thread % 2 * 528 + thread / 2 + 0;
                at[0] = ga[0];
                at[132] = ga[1];
                at[264] = ga[2];
                at[396] = ga[3];
            }
                        {
                float *const at = tiles + thread % 2 * 528 + thread / 2 + 64;
                at[0] = ga[4];
                at[132] = ga[5];
                at[264] = ga[6];
                at[396] = ga[7];
            }
                        {
                float *const at = tiles + 1056 + thread % 2 * 528 + thread / 2 + 0;
                at[0] = gb[0];
                at[132] = gb[1];
                at[264] = gb[2];
                at[396] = gb[3];
            }
                        {
                float *const at = tiles + 1056 + thread % 2 * 528 + thread / 2 + 64;
                at[0] = gb[4];
                at[132] = gb[5];
                at[264] = gb[6];
                at[396] = gb[7];
            }
__syncthreads();
    #pragma unroll
            for (int i = 0; i < 2; ++i) {
                const float4 v = floats_at(tiles + (0) * 132 + wm + ty + i * 32);
                a0[4 * i] = v.x, a0[4 * i + 1] = v.y, a0[4 * i + 2] = v.z, a0[4 * i + 3] = v.w;
            }
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const float4 v = floats_at(tiles + 1056 + (0) * 132 + wn + tx + j * 16);
                b0[4 * j] = v.x, b0[4 * j + 1] = v.y, b0[4 * j + 2] = v.z, b0[4 * j + 3] = v.w;
            }
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
        const float *const now = tiles + step % 2 * 2112;
        float *const next = tiles + (step + 1) % 2 * 2112;
        const int k0 = (step + 1) * 8;
        if (k0 < k) {
                        if (within && k0 + 8 <= k) {
                            {
                const int r = thread / 2, q = thread % 2 * 4;
                const float *source = a + (row0 + r) * lda + k0 + q;
#pragma unroll
                for (int i = 0; i < 2; ++i) {
                    const float4 v = word_read(source, 4);
                    ga[4 * i] = v.x, ga[4 * i + 1] = v.y, ga[4 * i + 2] = v.z, ga[4 * i + 3] = v.w;
                    source += 64 * lda;
                }
            }
            {
                const int r = thread / 2, q = thread % 2 * 4;
                const float *source = b + (col0 + r) * ldb + k0 + q;
#pragma unroll
                for (int i = 0; i < 2; ++i) {
                    const float4 v = word_read(source, 4);
                    gb[4 * i] = v.x, gb[4 * i + 1] = v.y, gb[4 * i + 2] = v.z, gb[4 * i + 3] = v.w;
                    source += 64 * ldb;
                }
            }
} else {
                            {
                const int r = thread / 2, q = thread % 2 * 4;
                const int inside = k - k0 - q;
                const float *source = a + (row0 + r) * lda + k0 + q;
#pragma unroll
                for (int i = 0; i < 2; ++i) {
                    const int left = row0 + r + i * 64 < m ? inside : 0;
                    const float4 v = word_read(left > 0 ? source : a, left);
                    ga[4 * i] = v.x, ga[4 * i + 1] = v.y, ga[4 * i + 2] = v.z, ga[4 * i + 3] = v.w;
                    source += 64 * lda;
                }
            }
            {
                const int r = thread / 2, q = thread % 2 * 4;
                const int inside = k - k0 - q;
                const float *source = b + (col0 + r) * ldb + k0 + q;
#pragma unroll
                for (int i = 0; i < 2; ++i) {
                    const int left = col0 + r + i * 64 < n ? inside : 0;
                    const float4 v = word_read(left > 0 ? source : b, left);
                    gb[4 * i] = v.x, gb[4 * i + 1] = v.y, gb[4 * i + 2] = v.z, gb[4 * i + 3] = v.w;
                    source += 64 * ldb;
                }
            }
}
}
        #pragma unroll
            for (int i = 0; i < 2; ++i) {
                const float4 v = floats_at(now + (1) * 132 + wm + ty + i * 32);
                a1[4 * i] = v.x, a1[4 * i + 1] = v.y, a1[4 * i + 2] = v.z, a1[4 * i + 3] = v.w;
            }
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const float4 v = floats_at(now + 1056 + (1) * 132 + wn + tx + j * 16);
                b1[4 * j] = v.x, b1[4 * j + 1] = v.y, b1[4 * j + 2] = v.z, b1[4 * j + 3] = v.w;
            }
            sum[0] += a0[0] * b0[0];
            sum[16] += a0[1] * b0[0];
            sum[32] += a0[2] * b0[0];
            sum[48] += a0[3] * b0[0];
            sum[64] += a0[4] * b0[0];
            sum[80] += a0[5] * b0[0];
            sum[96] += a0[6] * b0[0];
            sum[112] += a0[7] * b0[0];
            sum[113] += a0[7] * b0[1];
            sum[97] += a0[6] * b0[1];
            sum[81] += a0[5] * b0[1];
            sum[65] += a0[4] * b0[1];
            sum[49] += a0[3] * b0[1];
            sum[33] += a0[2] * b0[1];
            sum[17] += a0[1] * b0[1];
            sum[1] += a0[0] * b0[1];
            sum[2] += a0[0] * b0[2];
            sum[18] += a0[1] * b0[2];
            sum[34] += a0[2] * b0[2];
            sum[50] += a0[3] * b0[2];
            sum[66] += a0[4] * b0[2];
            sum[82] += a0[5] * b0[2];
            sum[98] += a0[6] * b0[2];
            sum[114] += a0[7] * b0[2];
            sum[115] += a0[7] * b0[3];
            sum[99] += a0[6] * b0[3];
            sum[83] += a0[5] * b0[3];
            sum[67] += a0[4] * b0[3];
            sum[51] += a0[3] * b0[3];
            sum[35] += a0[2] * b0[3];
            sum[19] += a0[1] * b0[3];
            sum[3] += a0[0] * b0[3];
            sum[4] += a0[0] * b0[4];
            sum[20] += a0[1] * b0[4];
            sum[36] += a0[2] * b0[4];
            sum[52] += a0[3] * b0[4];
            sum[68] += a0[4] * b0[4];
            sum[84] += a0[5] * b0[4];
            sum[100] += a0[6] * b0[4];
            sum[116] += a0[7] * b0[4];
            sum[117] += a0[7] * b0[5];
            sum[101] += a0[6] * b0[5];
            sum[85] += a0[5] * b0[5];
            sum[69] += a0[4] * b0[5];
            sum[53] += a0[3] * b0[5];
            sum[37] += a0[2] * b0[5];
            sum[21] += a0[1] * b0[5];
            sum[5] += a0[0] * b0[5];
            sum[6] += a0[0] * b0[6];
            sum[22] += a0[1] * b0[6];
            sum[38] += a0[2] * b0[6];
            sum[54] += a0[3] * b0[6];
            sum[70] += a0[4] * b0[6];
            sum[86] += a0[5] * b0[6];
            sum[102] += a0[6] * b0[6];
            sum[118] += a0[7] * b0[6];
            sum[119] += a0[7] * b0[7];
            sum[103] += a0[6] * b0[7];
            sum[87] += a0[5] * b0[7];
            sum[71] += a0[4] * b0[7];
            sum[55] += a0[3] * b0[7];
            sum[39] += a0[2] * b0[7];
            sum[23] += a0[1] * b0[7];
            sum[7] += a0[0] * b0[7];
            sum[8] += a0[0] * b0[8];
            sum[24] += a0[1] * b0[8];
            sum[40] += a0[2] * b0[8];
            sum[56] += a0[3] * b0[8];
            sum[72] += a0[4] * b0[8];
            sum[88] += a0[5] * b0[8];
            sum[104] += a0[6] * b0[8];
            sum[120] += a0[7] * b0[8];
            sum[121] += a0[7] * b0[9];
            sum[105] += a0[6] * b0[9];
            sum[89] += a0[5] * b0[9];
            sum[73] += a0[4] * b0[9];
            sum[57] += a0[3] * b0[9];
            sum[41] += a0[2] * b0[9];
            sum[25] += a0[1] * b0[9];
            sum[9] += a0[0] * b0[9];
            sum[10] += a0[0] * b0[10];
            sum[26] += a0[1] * b0[10];
            sum[42] += a0[2] * b0[10];
            sum[58] += a0[3] * b0[10];
            sum[74] += a0[4] * b0[10];
            sum[90] += a0[5] * b0[10];
            sum[106] += a0[6] * b0[10];
            sum[122] += a0[7] * b0[10];
            sum[123] += a0[7] * b0[11];
            sum[107] += a0[6] * b0[11];
            sum[91] += a0[5] * b0[11];
            sum[75] += a0[4] * b0[11];
            sum[59] += a0[3] * b0[11];
            sum[43] += a0[2] * b0[11];
            sum[27] += a0[1] * b0[11];
            sum[11] += a0[0] * b0[11];
            sum[12] += a0[0] * b0[12];
            sum[28] += a0[1] * b0[12];
            sum[44] += a0[2] * b0[12];
            sum[60] += a0[3] * b0[12];
            sum[76] += a0[4] * b0[12];
            sum[92] += a0[5] * b0[12];
            sum[108] += a0[6] * b0[12];
            sum[124] += a0[7] * b0[12];
            sum[125] += a0[7] * b0[13];
            sum[109] += a0[6] * b0[13];
            sum[93] += a0[5] * b0[13];
            sum[77] += a0[4] * b0[13];
            sum[61] += a0[3] * b0[13];
            sum[45] += a0[2] * b0[13];
            sum[29] += a0[1] * b0[13];
            sum[13] += a0[0] * b0[13];
            sum[14] += a0[0] * b0[14];
            sum[30] += a0[1] * b0[14];
            sum[46] += a0[2] * b0[14];
            sum[62] += a0[3] * b0[14];
            sum[78] += a0[4] * b0[14];
            sum[94] += a0[5] * b0[14];
            sum[110] += a0[6] * b0[14];
            sum[126] += a0[7] * b0[14];
            sum[127] += a0[7] * b0[15];
            sum[111] += a0[6] * b0[15];
            sum[95] += a0[5] * b0[15];
            sum[79] += a0[4] * b0[15];
            sum[63] += a0[3] * b0[15];
            sum[47] += a0[2] * b0[15];
            sum[31] += a0[1] * b0[15];
            sum[15] += a0[0] * b0[15];
        #pragma unroll
            for (int i = 0; i < 2; ++i) {
                const float4 v = floats_at(now + (2) * 132 + wm + ty + i * 32);
                a0[4 * i] = v.x, a0[4 * i + 1] = v.y, a0[4 * i + 2] = v.z, a0[4 * i + 3] = v.w;
            }
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const float4 v = floats_at(now + 1056 + (2) * 132 + wn + tx + j * 16);
                b0[4 * j] = v.x, b0[4 * j + 1] = v.y, b0[4 * j + 2] = v.z, b0[4 * j + 3] = v.w;
            }
            sum[0] += a1[0] * b1[0];
            sum[16] += a1[1] * b1[0];
            sum[32] += a1[2] * b1[0];
            sum[48] += a1[3] * b1[0];
            sum[64] += a1[4] * b1[0];
            sum[80] += a1[5] * b1[0];
            sum[96] += a1[6] * b1[0];
            sum[112] += a1[7] * b1[0];
            sum[113] += a1[7] * b1[1];
            sum[97] += a1[6] * b1[1];
            sum[81] += a1[5] * b1[1];
            sum[65] += a1[4] * b1[1];
            sum[49] += a1[3] * b1[1];
            sum[33] += a1[2] * b1[1];
            sum[17] += a1[1] * b1[1];
            sum[1] += a1[0] * b1[1];
            sum[2] += a1[0] * b1[2];
            sum[18] += a1[1] * b1[2];
            sum[34] += a1[2] * b1[2];
            sum[50] += a1[3] * b1[2];
            sum[66] += a1[4] * b1[2];
            sum[82] += a1[5] * b1[2];
            sum[98] += a1[6] * b1[2];
            sum[114] += a1[7] * b1[2];
            sum[115] += a1[7] * b1[3];
            sum[99] += a1[6] * b1[3];
            sum[83] += a1[5] * b1[3];
            sum[67] += a1[4] * b1[3];
            sum[51] += a1[3] * b1[3];
            sum[35] += a1[2] * b1[3];
            sum[19] += a1[1] * b1[3];
            sum[3] += a1[0] * b1[3];
            sum[4] += a1[0] * b1[4];
            sum[20] += a1[1] * b1[4];
            sum[36] += a1[2] * b1[4];
            sum[52] += a1[3] * b1[4];
            sum[68] += a1[4] * b1[4];
            sum[84] += a1[5] * b1[4];
            sum[100] += a1[6] * b1[4];
            sum[116] += a1[7] * b1[4];
            sum[117] += a1[7] * b1[5];
            sum[101] += a1[6] * b1[5];
            sum[85] += a1[5] * b1[5];
            sum[69] += a1[4] * b1[5];
            sum[53] += a1[3] * b1[5];
            sum[37] += a1[2] * b1[5];
            sum[21] += a1[1] * b1[5];
            sum[5] += a1[0] * b1[5];
            sum[6] += a1[0] * b1[6];
            sum[22] += a1[1] * b1[6];
            sum[38] += a1[2] * b1[6];
            sum[54] += a1[3] * b1[6];
            sum[70] += a1[4] * b1[6];
            sum[86] += a1[5] * b1[6];
            sum[102] += a1[6] * b1[6];
            sum[118] += a1[7] * b1[6];
            sum[119] += a1[7] * b1[7];
            sum[103] += a1[6] * b1[7];
            sum[87] += a1[5] * b1[7];
            sum[71] += a1[4] * b1[7];
            sum[55] += a1[3] * b1[7];
            sum[39] += a1[2] * b1[7];
            sum[23] += a1[1] * b1[7];
            sum[7] += a1[0] * b1[7];
            sum[8] += a1[0] * b1[8];
            sum[24] += a1[1] * b1[8];
            sum[40] += a1[2] * b1[8];
            sum[56] += a1[3] * b1[8];
            sum[72] += a1[4] * b1[8];
            sum[88] += a1[5] * b1[8];
            sum[104] += a1[6] * b1[8];
            sum[120] += a1[7] * b1[8];
            sum[121] += a1[7] * b1[9];
            sum[105] += a1[6] * b1[9];
            sum[89] += a1[5] * b1[9];
            sum[73] += a1[4] * b1[9];
            sum[57] += a1[3] * b1[9];
            sum[41] += a1[2] * b1[9];
            sum[25] += a1[1] * b1[9];
            sum[9] += a1[0] * b1[9];
            sum[10] += a1[0] * b1[10];
            sum[26] += a1[1] * b1[10];
            sum[42] += a1[2] * b1[10];
            sum[58] += a1[3] * b1[10];
            sum[74] += a1[4] * b1[10];
            sum[90] += a1[5] * b1[10];
            sum[106] += a1[6] * b1[10];
            sum[122] += a1[7] * b1[10];
            sum[123] += a1[7] * b1[11];
            sum[107] += a1[6] * b1[11];
            sum[91] += a1[5] * b1[11];
            sum[75] += a1[4] * b1[11];
            sum[59] += a1[3] * b1[11];
            sum[43] += a1[2] * b1[11];
            sum[27] += a1[1] * b1[11];
            sum[11] += a1[0] * b1[11];
            sum[12] += a1[0] * b1[12];
            sum[28] += a1[1] * b1[12];
            sum[44] += a1[2] * b1[12];
            sum[60] += a1[3] * b1[12];
            sum[76] += a1[4] * b1[12];
            sum[92] += a1[5] * b1[12];
            sum[108] += a1[6] * b1[12];
            sum[124] += a1[7] * b1[12];
            sum[125] += a1[7] * b1[13];
            sum[109] += a1[6] * b1[13];
            sum[93] += a1[5] * b1[13];
            sum[77] += a1[4] * b1[13];
            sum[61] += a1[3] * b1[13];
            sum[45] += a1[2] * b1[13];
            sum[29] += a1[1] * b1[13];
            sum[13] += a1[0] * b1[13];
            sum[14] += a1[0] * b1[14];
            sum[30] += a1[1] * b1[14];
            sum[46] += a1[2] * b1[14];
            sum[62] += a1[3] * b1[14];
            sum[78] += a1[4] * b1[14];
            sum[94] += a1[5] * b1[14];
            sum[110] += a1[6] * b1[14];
            sum[126] += a1[7] * b1[14];
            sum[127] += a1[7] * b1[15];
            sum[111] += a1[6] * b1[15];
            sum[95] += a1[5] * b1[15];
            sum[79] += a1[4] * b1[15];
            sum[63] += a1[3] * b1[15];
            sum[47] += a1[2] * b1[15];
            sum[31] += a1[1] * b1[15];
            sum[15] += a1[0] * b1[15];
        #pragma unroll
            for (int i = 0; i < 2; ++i) {
                const float4 v = floats_at(now + (3) * 132 + wm + ty + i * 32);
                a1[4 * i] = v.x, a1[4 * i + 1] = v.y, a1[4 * i + 2] = v.z, a1[4 * i + 3] = v.w;
            }
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const float4 v = floats_at(now + 1056 + (3) * 132 + wn + tx + j * 16);
                b1[4 * j] = v.x, b1[4 * j + 1] = v.y, b1[4 * j + 2] = v.z, b1[4 * j + 3] = v.w;
            }
            sum[0] += a0[0] * b0[0];
            sum[16] += a0[1] * b0[0];
            sum[32] += a0[2] * b0[0];
            sum[48] += a0[3] * b0[0];
            sum[64] += a0[4] * b0[0];
            sum[80] += a0[5] * b0[0];
            sum[96] += a0[6] * b0[0];
            sum[112] += a0[7] * b0[0];
            sum[113] += a0[7] * b0[1];
            sum[97] += a0[6] * b0[1];
            sum[81] += a0[5] * b0[1];
            sum[65] += a0[4] * b0[1];
            sum[49] += a0[3] * b0[1];
            sum[33] += a0[2] * b0[1];
            sum[17] += a0[1] * b0[1];
            sum[1] += a0[0] * b0[1];
            sum[2] += a0[0] * b0[2];
            sum[18] += a0[1] * b0[2];
            sum[34] += a0[2] * b0[2];
            sum[50] += a0[3] * b0[2];
            sum[66] += a0[4] * b0[2];
            sum[82] += a0[5] * b0[2];
            sum[98] += a0[6] * b0[2];
            sum[114] += a0[7] * b0[2];
            sum[115] += a0[7] * b0[3];
            sum[99] += a0[6] * b0[3];
            sum[83] += a0[5] * b0[3];
            sum[67] += a0[4] * b0[3];
            sum[51] += a0[3] * b0[3];
            sum[35] += a0[2] * b0[3];
            sum[19] += a0[1] * b0[3];
            sum[3] += a0[0] * b0[3];
            sum[4] += a0[0] * b0[4];
            sum[20] += a0[1] * b0[4];
            sum[36] += a0[2] * b0[4];
            sum[52] += a0[3] * b0[4];
            sum[68] += a0[4] * b0[4];
            sum[84] += a0[5] * b0[4];
            sum[100] += a0[6] * b0[4];
            sum[116] += a0[7] * b0[4];
            sum[117] += a0[7] * b0[5];
            sum[101] += a0[6] * b0[5];
            sum[85] += a0[5] * b0[5];
            sum[69] += a0[4] * b0[5];
            sum[53] += a0[3] * b0[5];
            sum[37] += a0[2] * b0[5];
            sum[21] += a0[1] * b0[5];
            sum[5] += a0[0] * b0[5];
            sum[6] += a0[0] * b0[6];
            sum[22] += a0[1] * b0[6];
            sum[38] += a0[2] * b0[6];
            sum[54] += a0[3] * b0[6];
            sum[70] += a0[4] * b0[6];
            sum[86] += a0[5] * b0[6];
            sum[102] += a0[6] * b0[6];
            sum[118] += a0[7] * b0[6];
            sum[119] += a0[7] * b0[7];
            sum[103] += a0[6] * b0[7];
            sum[87] += a0[5] * b0[7];
            sum[71] += a0[4] * b0[7];
            sum[55] += a0[3] * b0[7];
            sum[39] += a0[2] * b0[7];
            sum[23] += a0[1] * b0[7];
            sum[7] += a0[0] * b0[7];
            sum[8] += a0[0] * b0[8];
            sum[24] += a0[1] * b0[8];
            sum[40] += a0[2] * b0[8];
            sum[56] += a0[3] * b0[8];
            sum[72] += a0[4] * b0[8];
            sum[88] += a0[5] * b0[8];
            sum[104] += a0[6] * b0[8];
            sum[120] += a0[7] * b0[8];
            sum[121] += a0[7] * b0[9];
            sum[105] += a0[6] * b0[9];
            sum[89] += a0[5] * b0[9];
            sum[73] += a0[4] * b0[9];
            sum[57] += a0[3] * b0[9];
            sum[41] += a0[2] * b0[9];
            sum[25] += a0[1] * b0[9];
            sum[9] += a0[0] * b0[9];
            sum[10] += a0[0] * b0[10];
            sum[26] += a0[1] * b0[10];
            sum[42] += a0[2] * b0[10];
            sum[58] += a0[3] * b0[10];
            sum[74] += a0[4] * b0[10];
            sum[90] += a0[5] * b0[10];
            sum[106] += a0[6] * b0[10];
            sum[122] += a0[7] * b0[10];
            sum[123] += a0[7] * b0[11];
            sum[107] += a0[6] * b0[11];
            sum[91] += a0[5] * b0[11];
            sum[75] += a0[4] * b0[11];
            sum[59] += a0[3] * b0[11];
            sum[43] += a0[2] * b0[11];
            sum[27] += a0[1] * b0[11];
            sum[11] += a0[0] * b0[11];
            sum[12] += a0[0] * b0[12];
            sum[28] += a0[1] * b0[12];
            sum[44] += a0[2] * b0[12];
            sum[60] += a0[3] * b0[12];
            sum[76] += a0[4] * b0[12];
            sum[92] += a0[5] * b0[12];
            sum[108] += a0[6] * b0[12];
            sum[124] += a0[7] * b0[12];
            sum[125] += a0[7] * b0[13];
            sum[109] += a0[6] * b0[13];
            sum[93] += a0[5] * b0[13];
            sum[77] += a0[4] * b0[13];
            sum[61] += a0[3] * b0[13];
            sum[45] += a0[2] * b0[13];
            sum[29] += a0[1] * b0[13];
            sum[13] += a0[0] * b0[13];
            sum[14] += a0[0] * b0[14];
            sum[30] += a0[1] * b0[14];
            sum[46] += a0[2] * b0[14];
            sum[62] += a0[3] * b0[14];
            sum[78] += a0[4] * b0[14];
            sum[94] += a0[5] * b0[14];
            sum[110] += a0[6] * b0[14];
            sum[126] += a0[7] * b0[14];
            sum[127] += a0[7] * b0[15];
            sum[111] += a0[6] * b0[15];
            sum[95] += a0[5] * b0[15];
            sum[79] += a0[4] * b0[15];
            sum[63] += a0[3] * b0[15];
            sum[47] += a0[2] * b0[15];
            sum[31] += a0[1] * b0[15];
            sum[15] += a0[0] * b0[15];
                                {
                float *const at = next + thread % 2 * 528 + thread / 2 + 0;
                at[0] = ga[0];
                at[132] = ga[1];
                at[264] = ga[2];
                at[396] = ga[3];
            }
                        {
                float *const at = next + thread % 2 * 528 + thread / 2 + 64;
                at[0] = ga[4];
                at[132] = ga[5];
                at[264] = ga[6];
                at[396] = ga[7];
            }
        #pragma unroll
            for (int i = 0; i < 2; ++i) {
                const float4 v = floats_at(now + (4) * 132 + wm + ty + i * 32);
                a0[4 * i] = v.x, a0[4 * i + 1] = v.y, a0[4 * i + 2] = v.z, a0[4 * i + 3] = v.w;
            }
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const float4 v = floats_at(now + 1056 + (4) * 132 + wn + tx + j * 16);
                b0[4 * j] = v.x, b0[4 * j + 1] = v.y, b0[4 * j + 2] = v.z, b0[4 * j + 3] = v.w;
            }
            sum[0] += a1[0] * b1[0];
            sum[16] += a1[1] * b1[0];
            sum[32] += a1[2] * b1[0];
            sum[48] += a1[3] * b1[0];
            sum[64] += a1[4] * b1[0];
            sum[80] += a1[5] * b1[0];
            sum[96] += a1[6] * b1[0];
            sum[112] += a1[7] * b1[0];
            sum[113] += a1[7] * b1[1];
            sum[97] += a1[6] * b1[1];
            sum[81] += a1[5] * b1[1];
            sum[65] += a1[4] * b1[1];
            sum[49] += a1[3] * b1[1];
            sum[33] += a1[2] * b1[1];
            sum[17] += a1[1] * b1[1];
            sum[1] += a1[0] * b1[1];
            sum[2] += a1[0] * b1[2];
            sum[18] += a1[1] * b1[2];
            sum[34] += a1[2] * b1[2];
            sum[50] += a1[3] * b1[2];
            sum[66] += a1[4] * b1[2];
            sum[82] += a1[5] * b1[2];
            sum[98] += a1[6] * b1[2];
            sum[114] += a1[7] * b1[2];
            sum[115] += a1[7] * b1[3];
            sum[99] += a1[6] * b1[3];
            sum[83] += a1[5] * b1[3];
            sum[67] += a1[4] * b1[3];
            sum[51] += a1[3] * b1[3];
            sum[35] += a1[2] * b1[3];
            sum[19] += a1[1] * b1[3];
            sum[3] += a1[0] * b1[3];
            sum[4] += a1[0] * b1[4];
            sum[20] += a1[1] * b1[4];
            sum[36] += a1[2] * b1[4];
            sum[52] += a1[3] * b1[4];
            sum[68] += a1[4] * b1[4];
            sum[84] += a1[5] * b1[4];
            sum[100] += a1[6] * b1[4];
            sum[116] += a1[7] * b1[4];
            sum[117] += a1[7] * b1[5];
            sum[101] += a1[6] * b1[5];
            sum[85] += a1[5] * b1[5];
            sum[69] += a1[4] * b1[5];
            sum[53] += a1[3] * b1[5];
            sum[37] += a1[2] * b1[5];
            sum[21] += a1[1] * b1[5];
            sum[5] += a1[0] * b1[5];
            sum[6] += a1[0] * b1[6];
            sum[22] += a1[1] * b1[6];
            sum[38] += a1[2] * b1[6];
            sum[54] += a1[3] * b1[6];
            sum[70] += a1[4] * b1[6];
            sum[86] += a1[5] * b1[6];
            sum[102] += a1[6] * b1[6];
            sum[118] += a1[7] * b1[6];
            sum[119] += a1[7] * b1[7];
            sum[103] += a1[6] * b1[7];
            sum[87] += a1[5] * b1[7];
            sum[71] += a1[4] * b1[7];
            sum[55] += a1[3] * b1[7];
            sum[39] += a1[2] * b1[7];
            sum[23] += a1[1] * b1[7];
            sum[7] += a1[0] * b1[7];
            sum[8] += a1[0] * b1[8];
            sum[24] += a1[1] * b1[8];
            sum[40] += a1[2] * b1[8];
            sum[56] += a1[3] * b1[8];
            sum[72] += a1[4] * b1[8];
            sum[88] += a1[5] * b1[8];
            sum[104] += a1[6] * b1[8];
            sum[120] += a1[7] * b1[8];
            sum[121] += a1[7] * b1[9];
            sum[105] += a1[6] * b1[9];
            sum[89] += a1[5] * b1[9];
            sum[73] += a1[4] * b1[9];
            sum[57] += a1[3] * b1[9];
            sum[41] += a1[2] * b1[9];
            sum[25] += a1[1] * b1[9];
            sum[9] += a1[0] * b1[9];
            sum[10] += a1[0] * b1[10];
            sum[26] += a1[1] * b1[10];
            sum[42] += a1[2] * b1[10];
            sum[58] += a1[3] * b1[10];
            sum[74] += a1[4] * b1[10];
            sum[90] += a1[5] * b1[10];
            sum[106] += a1[6] * b1[10];
            sum[122] += a1[7] * b1[10];
            sum[123] += a1[7] * b1[11];
            sum[107] += a1[6] * b1[11];
            sum[91] += a1[5] * b1[11];
            sum[75] += a1[4] * b1[11];
            sum[59] += a1[3] * b1[11];
            sum[43] += a1[2] * b1[11];
            sum[27] += a1[1] * b1[11];
            sum[11] += a1[0] * b1[11];
            sum[12] += a1[0] * b1[12];
            sum[28] += a1[1] * b1[12];
            sum[44] += a1[2] * b1[12];
            sum[60] += a1[3] * b1[12];
            sum[76] += a1[4] * b1[12];
            sum[92] += a1[5] * b1[12];
            sum[108] += a1[6] * b1[12];
            sum[124] += a1[7] * b1[12];
            sum[125] += a1[7] * b1[13];
            sum[109] += a1[6] * b1[13];
            sum[93] += a1[5] * b1[13];
            sum[77] += a1[4] * b1[13];
            sum[61] += a1[3] * b1[13];
            sum[45] += a1[2] * b1[13];
            sum[29] += a1[1] * b1[13];
            sum[13] += a1[0] * b1[13];
            sum[14] += a1[0] * b1[14];
            sum[30] += a1[1] * b1[14];
            sum[46] += a1[2] * b1[14];
            sum[62] += a1[3] * b1[14];
            sum[78] += a1[4] * b1[14];
            sum[94] += a1[5] * b1[14];
            sum[110] += a1[6] * b1[14];
            sum[126] += a1[7] * b1[14];
            sum[127] += a1[7] * b1[15];
            sum[111] += a1[6] * b1[15];
            sum[95] += a1[5] * b1[15];
            sum[79] += a1[4] * b1[15];
            sum[63] += a1[3] * b1[15];
            sum[47] += a1[2] * b1[15];
            sum[31] += a1[1] * b1[15];
            sum[15] += a1[0] * b1[15];
        #pragma unroll
            for (int i = 0; i < 2; ++i) {
                const float4 v = floats_at(now + (5) * 132 + wm + ty + i * 32);
                a1[4 * i] = v.x, a1[4 * i + 1] = v.y, a1[4 * i + 2] = v.z, a1[4 * i + 3] = v.w;
            }
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const float4 v = floats_at(now + 1056 + (5) * 132 + wn + tx + j * 16);
                b1[4 * j] = v.x, b1[4 * j + 1] = v.y, b1[4 * j + 2] = v.z, b1[4 * j + 3] = v.w;
            }
            sum[0] += a0[0] * b0[0];
            sum[16] += a0[1] * b0[0];
            sum[32] += a0[2] * b0[0];
            sum[48] += a0[3] * b0[0];
            sum[64] += a0[4] * b0[0];
            sum[80] += a0[5] * b0[0];
            sum[96] += a0[6] * b0[0];
            sum[112] += a0[7] * b0[0];
            sum[113] += a0[7] * b0[1];
            sum[97] += a0[6] * b0[1];
            sum[81] += a0[5] * b0[1];
            sum[65] += a0[4] * b0[1];
            sum[49] += a0[3] * b0[1];
            sum[33] += a0[2] * b0[1];
            sum[17] += a0[1] * b0[1];
            sum[1] += a0[0] * b0[1];
            sum[2] += a0[0] * b0[2];
            sum[18] += a0[1] * b0[2];
            sum[34] += a0[2] * b0[2];
            sum[50] += a0[3] * b0[2];
            sum[66] += a0[4] * b0[2];
            sum[82] += a0[5] * b0[2];
            sum[98] += a0[6] * b0[2];
            sum[114] += a0[7] * b0[2];
            sum[115] += a0[7] * b0[3];
            sum[99] += a0[6] * b0[3];
            sum[83] += a0[5] * b0[3];
            sum[67] += a0[4] * b0[3];
            sum[51] += a0[3] * b0[3];
            sum[35] += a0[2] * b0[3];
            sum[19] += a0[1] * b0[3];
            sum[3] += a0[0] * b0[3];
            sum[4] += a0[0] * b0[4];
            sum[20] += a0[1] * b0[4];
            sum[36] += a0[2] * b0[4];
            sum[52] += a0[3] * b0[4];
            sum[68] += a0[4] * b0[4];
            sum[84] += a0[5] * b0[4];
            sum[100] += a0[6] * b0[4];
            sum[116] += a0[7] * b0[4];
            sum[117] += a0[7] * b0[5];
            sum[101] += a0[6] * b0[5];
            sum[85] += a0[5] * b0[5];
            sum[69] += a0[4] * b0[5];
            sum[53] += a0[3] * b0[5];
            sum[37] += a0[2] * b0[5];
            sum[21] += a0[1] * b0[5];
            sum[5] += a0[0] * b0[5];
            sum[6] += a0[0] * b0[6];
            sum[22] += a0[1] * b0[6];
            sum[38] += a0[2] * b0[6];
            sum[54] += a0[3] * b0[6];
            sum[70] += a0[4] * b0[6];
            sum[86] += a0[5] * b0[6];
            sum[102] += a0[6] * b0[6];
            sum[118] += a0[7] * b0[6];
            sum[119] += a0[7] * b0[7];
            sum[103] += a0[6] * b0[7];
            sum[87] += a0[5] * b0[7];
            sum[71] += a0[4] * b0[7];
            sum[55] += a0[3] * b0[7];
            sum[39] += a0[2] * b0[7];
            sum[23] += a0[1] * b0[7];
            sum[7] += a0[0] * b0[7];
            sum[8] += a0[0] * b0[8];
            sum[24] += a0[1] * b0[8];
            sum[40] += a0[2] * b0[8];
            sum[56] += a0[3] * b0[8];
            sum[72] += a0[4] * b0[8];
            sum[88] += a0[5] * b0[8];
            sum[104] += a0[6] * b0[8];
            sum[120] += a0[7] * b0[8];
            sum[121] += a0[7] * b0[9];
            sum[105] += a0[6] * b0[9];
            sum[89] += a0[5] * b0[9];
            sum[73] += a0[4] * b0[9];
            sum[57] += a0[3] * b0[9];
            sum[41] += a0[2] * b0[9];
            sum[25] += a0[1] * b0[9];
            sum[9] += a0[0] * b0[9];
            sum[10] += a0[0] * b0[10];
            sum[26] += a0[1] * b0[10];
            sum[42] += a0[2] * b0[10];
            sum[58] += a0[3] * b0[10];
            sum[74] += a0[4] * b0[10];
            sum[90] += a0[5] * b0[10];
            sum[106] += a0[6] * b0[10];
            sum[122] += a0[7] * b0[10];
            sum[123] += a0[7] * b0[11];
            sum[107] += a0[6] * b0[11];
            sum[91] += a0[5] * b0[11];
            sum[75] += a0[4] * b0[11];
            sum[59] += a0[3] * b0[11];
            sum[43] += a0[2] * b0[11];
            sum[27] += a0[1] * b0[11];
            sum[11] += a0[0] * b0[11];
            sum[12] += a0[0] * b0[12];
            sum[28] += a0[1] * b0[12];
            sum[44] += a0[2] * b0[12];
            sum[60] += a0[3] * b0[12];
            sum[76] += a0[4] * b0[12];
            sum[92] += a0[5] * b0[12];
            sum[108] += a0[6] * b0[12];
            sum[124] += a0[7] * b0[12];
            sum[125] += a0[7] * b0[13];
            sum[109] += a0[6] * b0[13];
            sum[93] += a0[5] * b0[13];
            sum[77] += a0[4] * b0[13];
            sum[61] += a0[3] * b0[13];
            sum[45] += a0[2] * b0[13];
            sum[29] += a0[1] * b0[13];
            sum[13] += a0[0] * b0[13];
            sum[14] += a0[0] * b0[14];
            sum[30] += a0[1] * b0[14];
            sum[46] += a0[2] * b0[14];
            sum[62] += a0[3] * b0[14];
            sum[78] += a0[4] * b0[14];
            sum[94] += a0[5] * b0[14];
            sum[110] += a0[6] * b0[14];
            sum[126] += a0[7] * b0[14];
            sum[127] += a0[7] * b0[15];
            sum[111] += a0[6] * b0[15];
            sum[95] += a0[5] * b0[15];
            sum[79] += a0[4] * b0[15];
            sum[63] += a0[3] * b0[15];
            sum[47] += a0[2] * b0[15];
            sum[31] += a0[1] * b0[15];
            sum[15] += a0[0] * b0[15];
                                {
                float *const at = next + 1056 + thread % 2 * 528 + thread / 2 + 0;
                at[0] = gb[0];
                at[132] = gb[1];
                at[264] = gb[2];
                at[396] = gb[3];
            }
        #pragma unroll
            for (int i = 0; i < 2; ++i) {
                const float4 v = floats_at(now + (6) * 132 + wm + ty + i * 32);
                a0[4 * i] = v.x, a0[4 * i + 1] = v.y, a0[4 * i + 2] = v.z, a0[4 * i + 3] = v.w;
            }
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const float4 v = floats_at(now + 1056 + (6) * 132 + wn + tx + j * 16);
                b0[4 * j] = v.x, b0[4 * j + 1] = v.y, b0[4 * j + 2] = v.z, b0[4 * j + 3] = v.w;
            }
            sum[0] += a1[0] * b1[0];
            sum[16] += a1[1] * b1[0];
            sum[32] += a1[2] * b1[0];
            sum[48] += a1[3] * b1[0];
            sum[64] += a1[4] * b1[0];
            sum[80] += a1[5] * b1[0];
            sum[96] += a1[6] * b1[0];
            sum[112] += a1[7] * b1[0];
            sum[113] += a1[7] * b1[1];
            sum[97] += a1[6] * b1[1];
            sum[81] += a1[5] * b1[1];
            sum[65] += a1[4] * b1[1];
            sum[49] += a1[3] * b1[1];
            sum[33] += a1[2] * b1[1];
            sum[17] += a1[1] * b1[1];
            sum[1] += a1[0] * b1[1];
            sum[2] += a1[0] * b1[2];
            sum[18] += a1[1] * b1[2];
            sum[34] += a1[2] * b1[2];
            sum[50] += a1[3] * b1[2];
            sum[66] += a1[4] * b1[2];
            sum[82] += a1[5] * b1[2];
            sum[98] += a1[6] * b1[2];
            sum[114] += a1[7] * b1[2];
            sum[115] += a1[7] * b1[3];
            sum[99] += a1[6] * b1[3];
            sum[83] += a1[5] * b1[3];
            sum[67] += a1[4] * b1[3];
            sum[51] += a1[3] * b1[3];
            sum[35] += a1[2] * b1[3];
            sum[19] += a1[1] * b1[3];
            sum[3] += a1[0] * b1[3];
            sum[4] += a1[0] * b1[4];
            sum[20] += a1[1] * b1[4];
            sum[36] += a1[2] * b1[4];
            sum[52] += a1[3] * b1[4];
            sum[68] += a1[4] * b1[4];
            sum[84] += a1[5] * b1[4];
            sum[100] += a1[6] * b1[4];
            sum[116] += a1[7] * b1[4];
            sum[117] += a1[7] * b1[5];
            sum[101] += a1[6] * b1[5];
            sum[85] += a1[5] * b1[5];
            sum[69] += a1[4] * b1[5];
            sum[53] += a1[3] * b1[5];
            sum[37] += a1[2] * b1[5];
            sum[21] += a1[1] * b1[5];
            sum[5] += a1[0] * b1[5];
            sum[6] += a1[0] * b1[6];
            sum[22] += a1[1] * b1[6];
            sum[38] += a1[2] * b1[6];
            sum[54] += a1[3] * b1[6];
            sum[70] += a1[4] * b1[6];
            sum[86] += a1[5] * b1[6];
            sum[102] += a1[6] * b1[6];
            sum[118] += a1[7] * b1[6];
            sum[119] += a1[7] * b1[7];
            sum[103] += a1[6] * b1[7];
            sum[87] += a1[5] * b1[7];
            sum[71] += a1[4] * b1[7];
            sum[55] += a1[3] * b1[7];
            sum[39] += a1[2] * b1[7];
            sum[23] += a1[1] * b1[7];
            sum[7] += a1[0] * b1[7];
            sum[8] += a1[0] * b1[8];
            sum[24] += a1[1] * b1[8];
            sum[40] += a1[2] * b1[8];
            sum[56] += a1[3] * b1[8];
            sum[72] += a1[4] * b1[8];
            sum[88] += a1[5] * b1[8];
            sum[104] += a1[6] * b1[8];
            sum[120] += a1[7] * b1[8];
            sum[121] += a1[7] * b1[9];
            sum[105] += a1[6] * b1[9];
            sum[89] += a1[5] * b1[9];
            sum[73] += a1[4] * b1[9];
            sum[57] += a1[3] * b1[9];
            sum[41] += a1[2] * b1[9];
            sum[25] += a1[1] * b1[9];
            sum[9] += a1[0] * b1[9];
            sum[10] += a1[0] * b1[10];
            sum[26] += a1[1] * b1[10];
            sum[42] += a1[2] * b1[10];
            sum[58] += a1[3] * b1[10];
            sum[74] += a1[4] * b1[10];
            sum[90] += a1[5] * b1[10];
            sum[106] += a1[6] * b1[10];
            sum[122] += a1[7] * b1[10];
            sum[123] += a1[7] * b1[11];
            sum[107] += a1[6] * b1[11];
            sum[91] += a1[5] * b1[11];
            sum[75] += a1[4] * b1[11];
            sum[59] += a1[3] * b1[11];
            sum[43] += a1[2] * b1[11];
            sum[27] += a1[1] * b1[11];
            sum[11] += a1[0] * b1[11];
            sum[12] += a1[0] * b1[12];
            sum[28] += a1[1] * b1[12];
            sum[44] += a1[2] * b1[12];
            sum[60] += a1[3] * b1[12];
            sum[76] += a1[4] * b1[12];
            sum[92] += a1[5] * b1[12];
            sum[108] += a1[6] * b1[12];
            sum[124] += a1[7] * b1[12];
            sum[125] += a1[7] * b1[13];
            sum[109] += a1[6] * b1[13];
            sum[93] += a1[5] * b1[13];
            sum[77] += a1[4] * b1[13];
            sum[61] += a1[3] * b1[13];
            sum[45] += a1[2] * b1[13];
            sum[29] += a1[1] * b1[13];
            sum[13] += a1[0] * b1[13];
            sum[14] += a1[0] * b1[14];
            sum[30] += a1[1] * b1[14];
            sum[46] += a1[2] * b1[14];
            sum[62] += a1[3] * b1[14];
            sum[78] += a1[4] * b1[14];
            sum[94] += a1[5] * b1[14];
            sum[110] += a1[6] * b1[14];
            sum[126] += a1[7] * b1[14];
            sum[127] += a1[7] * b1[15];
            sum[111] += a1[6] * b1[15];
            sum[95] += a1[5] * b1[15];
            sum[79] += a1[4] * b1[15];
            sum[63] += a1[3] * b1[15];
            sum[47] += a1[2] * b1[15];
            sum[31] += a1[1] * b1[15];
            sum[15] += a1[0] * b1[15];
        #pragma unroll
            for (int i = 0; i < 2; ++i) {
                const float4 v = floats_at(now + (7) * 132 + wm + ty + i * 32);
                a1[4 * i] = v.x, a1[4 * i + 1] = v.y, a1[4 * i + 2] = v.z, a1[4 * i + 3] = v.w;
            }
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const float4 v = floats_at(now + 1056 + (7) * 132 + wn + tx + j * 16);
                b1[4 * j] = v.x, b1[4 * j + 1] = v.y, b1[4 * j + 2] = v.z, b1[4 * j + 3] = v.w;
            }
            sum[0] += a0[0] * b0[0];
            sum[16] += a0[1] * b0[0];
            sum[32] += a0[2] * b0[0];
            sum[48] += a0[3] * b0[0];
            sum[64] += a0[4] * b0[0];
            sum[80] += a0[5] * b0[0];
            sum[96] += a0[6] * b0[0];
            sum[112] += a0[7] * b0[0];
            sum[113] += a0[7] * b0[1];
            sum[97] += a0[6] * b0[1];
            sum[81] += a0[5] * b0[1];
            sum[65] += a0[4] * b0[1];
            sum[49] += a0[3] * b0[1];
            sum[33] += a0[2] * b0[1];
            sum[17] += a0[1] * b0[1];
            sum[1] += a0[0] * b0[1];
            sum[2] += a0[0] * b0[2];
            sum[18] += a0[1] * b0[2];
            sum[34] += a0[2] * b0[2];
            sum[50] += a0[3] * b0[2];
            sum[66] += a0[4] * b0[2];
            sum[82] += a0[5] * b0[2];
            sum[98] += a0[6] * b0[2];
            sum[114] += a0[7] * b0[2];
            sum[115] += a0[7] * b0[3];
            sum[99] += a0[6] * b0[3];
            sum[83] += a0[5] * b0[3];
            sum[67] += a0[4] * b0[3];
            sum[51] += a0[3] * b0[3];
            sum[35] += a0[2] * b0[3];
            sum[19] += a0[1] * b0[3];
            sum[3] += a0[0] * b0[3];
            sum[4] += a0[0] * b0[4];
            sum[20] += a0[1] * b0[4];
            sum[36] += a0[2] * b0[4];
            sum[52] += a0[3] * b0[4];
            sum[68] += a0[4] * b0[4];
            sum[84] += a0[5] * b0[4];
            sum[100] += a0[6] * b0[4];
            sum[116] += a0[7] * b0[4];
            sum[117] += a0[7] * b0[5];
            sum[101] += a0[6] * b0[5];
            sum[85] += a0[5] * b0[5];
            sum[69] += a0[4] * b0[5];
            sum[53] += a0[3] * b0[5];
            sum[37] += a0[2] * b0[5];
            sum[21] += a0[1] * b0[5];
            sum[5] += a0[0] * b0[5];
            sum[6] += a0[0] * b0[6];
            sum[22] += a0[1] * b0[6];
            sum[38] += a0[2] * b0[6];
            sum[54] += a0[3] * b0[6];
            sum[70] += a0[4] * b0[6];
            sum[86] += a0[5] * b0[6];
            sum[102] += a0[6] * b0[6];
            sum[118] += a0[7] * b0[6];
            sum[119] += a0[7] * b0[7];
            sum[103] += a0[6] * b0[7];
            sum[87] += a0[5] * b0[7];
            sum[71] += a0[4] * b0[7];
            sum[55] += a0[3] * b0[7];
            sum[39] += a0[2] * b0[7];
            sum[23] += a0[1] * b0[7];
            sum[7] += a0[0] * b0[7];
            sum[8] += a0[0] * b0[8];
            sum[24] += a0[1] * b0[8];
            sum[40] += a0[2] * b0[8];
            sum[56] += a0[3] * b0[8];
            sum[72] += a0[4] * b0[8];
            sum[88] += a0[5] * b0[8];
            sum[104] += a0[6] * b0[8];
            sum[120] += a0[7] * b0[8];
            sum[121] += a0[7] * b0[9];
            sum[105] += a0[6] * b0[9];
            sum[89] += a0[5] * b0[9];
            sum[73] += a0[4] * b0[9];
            sum[57] += a0[3] * b0[9];
            sum[41] += a0[2] * b0[9];
            sum[25] += a0[1] * b0[9];
            sum[9] += a0[0] * b0[9];
            sum[10] += a0[0] * b0[10];
            sum[26] += a0[1] * b0[10];
            sum[42] += a0[2] * b0[10];
            sum[58] += a0[3] * b0[10];
            sum[74] += a0[4] * b0[10];
            sum[90] += a0[5] * b0[10];
            sum[106] += a0[6] * b0[10];
            sum[122] += a0[7] * b0[10];
            sum[123] += a0[7] * b0[11];
            sum[107] += a0[6] * b0[11];
            sum[91] += a0[5] * b0[11];
            sum[75] += a0[4] * b0[11];
            sum[59] += a0[3] * b0[11];
            sum[43] += a0[2] * b0[11];
            sum[27] += a0[1] * b0[11];
            sum[11] += a0[0] * b0[11];
            sum[12] += a0[0] * b0[12];
            sum[28] += a0[1] * b0[12];
            sum[44] += a0[2] * b0[12];
            sum[60] += a0[3] * b0[12];
            sum[76] += a0[4] * b0[12];
            sum[92] += a0[5] * b0[12];
            sum[108] += a0[6] * b0[12];
            sum[124] += a0[7] * b0[12];
            sum[125] += a0[7] * b0[13];
            sum[109] += a0[6] * b0[13];
            sum[93] += a0[5] * b0[13];
            sum[77] += a0[4] * b0[13];
            sum[61] += a0[3] * b0[13];
            sum[45] += a0[2] * b0[13];
            sum[29] += a0[1] * b0[13];
            sum[13] += a0[0] * b0[13];
            sum[14] += a0[0] * b0[14];
            sum[30] += a0[1] * b0[14];
            sum[46] += a0[2] * b0[14];
            sum[62] += a0[3] * b0[14];
            sum[78] += a0[4] * b0[14];
            sum[94] += a0[5] * b0[14];
            sum[110] += a0[6] * b0[14];
            sum[126] += a0[7] * b0[14];
            sum[127] += a0[7] * b0[15];
            sum[111] += a0[6] * b0[15];
            sum[95] += a0[5] * b0[15];
            sum[79] += a0[4] * b0[15];
            sum[63] += a0[3] * b0[15];
            sum[47] += a0[2] * b0[15];
            sum[31] += a0[1] * b0[15];
            sum[15] += a0[0] * b0[15];
                                {
                float *const at = next + 1056 + thread % 2 * 528 + thread / 2 + 64;
                at[0] = gb[4];
                at[132] = gb[5];
                at[264] = gb[6];
                at[396] = gb[7];
            }
        __syncthreads();
        #pragma unroll
            for (int i = 0; i < 2; ++i) {
                const float4 v = floats_at(next + (0) * 132 + wm + ty + i * 32);
                a0[4 * i] = v.x, a0[4 * i + 1] = v.y, a0[4 * i + 2] = v.z, a0[4 * i + 3] = v.w;
            }
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const float4 v = floats_at(next + 1056 + (0) * 132 + wn + tx + j * 16);
                b0[4 * j] = v.x, b0[4 * j + 1] = v.y, b0[4 * j + 2] = v.z, b0[4 * j + 3] = v.w;
            }
            sum[0] += a1[0] * b1[0];
            sum[16] += a1[1] * b1[0];
            sum[32] += a1[2] * b1[0];
            sum[48] += a1[3] * b1[0];
            sum[64] += a1[4] * b1[0];
            sum[80] += a1[5] * b1[0];
            sum[96] += a1[6] * b1[0];
            sum[112] += a1[7] * b1[0];
            sum[113] += a1[7] * b1[1];
            sum[97] += a1[6] * b1[1];
            sum[81] += a1[5] * b1[1];
            sum[65] += a1[4] * b1[1];
            sum[49] += a1[3] * b1[1];
            sum[33] += a1[2] * b1[1];
            sum[17] += a1[1] * b1[1];
            sum[1] += a1[0] * b1[1];
            sum[2] += a1[0] * b1[2];
            sum[18] += a1[1] * b1[2];
            sum[34] += a1[2] * b1[2];
            sum[50] += a1[3] * b1[2];
            sum[66] += a1[4] * b1[2];
            sum[82] += a1[5] * b1[2];
            sum[98] += a1[6] * b1[2];
            sum[114] += a1[7] * b1[2];
            sum[115] += a1[7] * b1[3];
            sum[99] += a1[6] * b1[3];
            sum[83] += a1[5] * b1[3];
            sum[67] += a1[4] * b1[3];
            sum[51] += a1[3] * b1[3];
            sum[35] += a1[2] * b1[3];
            sum[19] += a1[1] * b1[3];
            sum[3] += a1[0] * b1[3];
            sum[4] += a1[0] * b1[4];
            sum[20] += a1[1] * b1[4];
            sum[36] += a1[2] * b1[4];
            sum[52] += a1[3] * b1[4];
            sum[68] += a1[4] * b1[4];
            sum[84] += a1[5] * b1[4];
            sum[100] += a1[6] * b1[4];
            sum[116] += a1[7] * b1[4];
            sum[117] += a1[7] * b1[5];
            sum[101] += a1[6] * b1[5];
            sum[85] += a1[5] * b1[5];
            sum[69] += a1[4] * b1[5];
            sum[53] += a1[3] * b1[5];
            sum[37] += a1[2] * b1[5];
            sum[21] += a1[1] * b1[5];
            sum[5] += a1[0] * b1[5];
            sum[6] += a1[0] * b1[6];
            sum[22] += a1[1] * b1[6];
            sum[38] += a1[2] * b1[6];
            sum[54] += a1[3] * b1[6];
            sum[70] += a1[4] * b1[6];
            sum[86] += a1[5] * b1[6];
            sum[102] += a1[6] * b1[6];
            sum[118] += a1[7] * b1[6];
            sum[119] += a1[7] * b1[7];
            sum[103] += a1[6] * b1[7];
            sum[87] += a1[5] * b1[7];
            sum[71] += a1[4] * b1[7];
            sum[55] += a1[3] * b1[7];
            sum[39] += a1[2] * b1[7];
            sum[23] += a1[1] * b1[7];
            sum[7] += a1[0] * b1[7];
            sum[8] += a1[0] * b1[8];
            sum[24] += a1[1] * b1[8];
            sum[40] += a1[2] * b1[8];
            sum[56] += a1[3] * b1[8];
            sum[72] += a1[4] * b1[8];
            sum[88] += a1[5] * b1[8];
            sum[104] += a1[6] * b1[8];
            sum[120] += a1[7] * b1[8];
            sum[121] += a1[7] * b1[9];
            sum[105] += a1[6] * b1[9];
            sum[89] += a1[5] * b1[9];
            sum[73] += a1[4] * b1[9];
            sum[57] += a1[3] * b1[9];
            sum[41] += a1[2] * b1[9];
            sum[25] += a1[1] * b1[9];
            sum[9] += a1[0] * b1[9];
            sum[10] += a1[0] * b1[10];
            sum[26] += a1[1] * b1[10];
            sum[42] += a1[2] * b1[10];
            sum[58] += a1[3] * b1[10];
            sum[74] += a1[4] * b1[10];
            sum[90] += a1[5] * b1[10];
            sum[106] += a1[6] * b1[10];
            sum[122] += a1[7] * b1[10];
            sum[123] += a1[7] * b1[11];
            sum[107] += a1[6] * b1[11];
            sum[91] += a1[5] * b1[11];
            sum[75] += a1[4] * b1[11];
            sum[59] += a1[3] * b1[11];
            sum[43] += a1[2] * b1[11];
            sum[27] += a1[1] * b1[11];
            sum[11] += a1[0] * b1[11];
            sum[12] += a1[0] * b1[12];
            sum[28] += a1[1] * b1[12];
            sum[44] += a1[2] * b1[12];
            sum[60] += a1[3] * b1[12];
            sum[76] += a1[4] * b1[12];
            sum[92] += a1[5] * b1[12];
            sum[108] += a1[6] * b1[12];
            sum[124] += a1[7] * b1[12];
            sum[125] += a1[7] * b1[13];
            sum[109] += a1[6] * b1[13];
            sum[93] += a1[5] * b1[13];
            sum[77] += a1[4] * b1[13];
            sum[61] += a1[3] * b1[13];
            sum[45] += a1[2] * b1[13];
            sum[29] += a1[1] * b1[13];
            sum[13] += a1[0] * b1[13];
            sum[14] += a1[0] * b1[14];
            sum[30] += a1[1] * b1[14];
            sum[46] += a1[2] * b1[14];
            sum[62] += a1[3] * b1[14];
            sum[78] += a1[4] * b1[14];
            sum[94] += a1[5] * b1[14];
            sum[110] += a1[6] * b1[14];
            sum[126] += a1[7] * b1[14];
            sum[127] += a1[7] * b1[15];
            sum[111] += a1[6] * b1[15];
            sum[95] += a1[5] * b1[15];
            sum[79] += a1[4] * b1[15];
            sum[63] += a1[3] * b1[15];
            sum[47] += a1[2] * b1[15];
            sum[31] += a1[1] * b1[15];
            sum[15] += a1[0] * b1[15];
    }
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int r = 0; r < 4; ++r) {
            const int row = row0 + wm + ty + 32 * i + r;
            if (row < m) {
#pragma unroll
                for (int j = 0; j < 4; ++j) {
                    const int col = col0 + wn + tx + 16 * j;
                    if (col < n) {
                        float *const at = c + row * ldc + col;
                        const int there = n - col < 4 ? n - col : 4;
                        float s[4] = {0};
#pragma unroll
                        for (int e = 0; e < 4; ++e) {
                            s[e] = alpha * sum[(4 * i + r) * 16 + 4 * j + e];
                            if (beta != 0 && e < there)
                                s[e] += beta * at[e];
                        }
                        
                        floats_put(at, s[0], s[1], s[2], s[3], there, words);
                    }
                }
            }
        }
}

extern "C" __global__ __launch_bounds__(128, 2) void tensorop_kernel(
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
    const int64_t steps = (p.k + 7) / 8;
    const int k0 = int(steps * part / p.parts) * 8, k1 = min(p.k, int(steps * (part + 1) / p.parts) * 8);
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
