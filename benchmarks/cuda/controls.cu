// A plain kernel, and the same with one fault each. Every fault shows each time it is run.
#include "judge.h"
#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace {

enum Fault {
    NONE,
    SKIPS_LAST_K,
    IGNORES_BETA,
    WRITES_PAST_EDGE,
    WRITES_BETWEEN_ROWS,
    NEEDS_ZEROED_WORKSPACE,
    FIRST_STREAM,
    LEGACY_STREAM,
    HALVES_K_WHEN_LARGE,
    ONE_ROW_WRONG_WHEN_LARGE,
    SKIPS_WHEN_DONE,
    ONCE_A_POINTER,
    LOW_PRECISION,
    CHANGES_INPUT,
    READS_BEYOND_A,
    ANOTHER_RESULT_EACH_TIME,
};
const char *const NAMES[] = {
    "plain",
    "skips-last-k-tile",
    "ignores-beta",
    "writes-past-edge",
    "writes-between-rows",
    "needs-zeroed-workspace",
    "wrong-on-second-stream",
    "runs-on-legacy-stream",
    "halves-k-when-large",
    "one-row-wrong-when-large",
    "skips-when-c-is-there",
    "runs-once-a-pointer",
    "sums-in-16-bits",
    "changes-an-input",
    "reads-beyond-a",
    "another-result-each-time",
};

template <class T> __device__ float widen(T v) { return static_cast<float>(v); }

template <class T>
__global__ void plain_kernel(Problem p, const T *a, const T *b, T *c, float *workspace, Fault fault,
                             int k_end, int call) {
    __shared__ float sa[16][65], sb[16][65];
    if (fault == SKIPS_WHEN_DONE && widen(c[0]) == widen(c[0]))
        return;
    a += blockIdx.z * p.stride_a, b += blockIdx.z * p.stride_b, c += blockIdx.z * p.stride_c;
    const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    const int row0 = blockIdx.y * 64, col0 = blockIdx.x * 64;
    float sum[4][4] = {};
    for (int k0 = 0; k0 < k_end; k0 += 16) {
        for (int i = threadIdx.x; i < 1024; i += 256) {
            const int kk = p.a_km ? i / 64 : i % 16, r = p.a_km ? i % 64 : i / 16;
            const int row = row0 + r, k = k0 + kk;
            const bool inside = row < p.m && k < k_end;
            sa[kk][r] = inside ? widen(a[p.a_km ? k * p.lda + row : row * p.lda + k]) : 0;
            if (fault == READS_BEYOND_A && row == p.m - 1 && k == k_end - 1)
                sa[kk][r] += widen(a[p.stride_a * p.batch]);
        }
        for (int i = threadIdx.x; i < 1024; i += 256) {
            const int kk = p.b_nk ? i % 16 : i / 64, r = p.b_nk ? i / 16 : i % 64;
            const int col = col0 + r, k = k0 + kk;
            const bool inside = col < p.n && k < k_end;
            sb[kk][r] = inside ? widen(b[p.b_nk ? col * p.ldb + k : k * p.ldb + col]) : 0;
        }
        __syncthreads();
        for (int kk = 0; kk < 16; ++kk)
            for (int i = 0; i < 4; ++i)
                for (int j = 0; j < 4; ++j)
                    sum[i][j] += sa[kk][ty + 16 * i] * sb[kk][tx + 16 * j];
        if (fault == LOW_PRECISION && k0 % 64 == 48)
            for (int i = 0; i < 4; ++i)
                for (int j = 0; j < 4; ++j)
                    sum[i][j] = widen(T(sum[i][j]));
        __syncthreads();
    }
    for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j) {
            const int row = row0 + ty + 16 * i, col = col0 + tx + 16 * j;
            if (row >= p.m || col >= p.n)
                continue;
            float v = p.alpha * sum[i][j];
            if (p.beta != 0 && fault != IGNORES_BETA)
                v += p.beta * widen(c[row * p.ldc + col]);
            if (fault == NEEDS_ZEROED_WORKSPACE)
                v += workspace[0];
            if (fault == ONE_ROW_WRONG_WHEN_LARGE && p.m > 2048 && row == 1717 && col % 2)
                v = -v;
            if (fault == ANOTHER_RESULT_EACH_TIME)
                v *= 1 + call * 0x1p-11f;
            c[row * p.ldc + col] = T(v);
        }
    if (threadIdx.x == 0 && blockIdx.x == gridDim.x - 1 && blockIdx.y == gridDim.y - 1) {
        if (fault == WRITES_PAST_EDGE)
            c[p.m * p.ldc] = T(1.f);
        if (fault == WRITES_BETWEEN_ROWS)
            c[p.n] = T(1.f);
        if (fault == CHANGES_INPUT)
            const_cast<T *>(a)[0] = T(2.f);
    }
}

cudaError_t launch(Fault fault, const Problem &p, const Operands &o, cudaStream_t stream) {
    static cudaStream_t first = stream;
    static int calls = 0;
    static const void *seen = nullptr;
    if (fault == ONCE_A_POINTER && seen == o.c)
        return cudaSuccess;
    seen = o.c;
    if (fault == FIRST_STREAM)
        stream = first;
    if (fault == LEGACY_STREAM)
        stream = nullptr;
    int k_end = p.k;
    if (fault == SKIPS_LAST_K)
        k_end = (p.k - 1) / 64 * 64;
    if (fault == HALVES_K_WHEN_LARGE && p.flop() > 0x1p34)
        k_end = p.k / 2;
    const dim3 grid(ceil_div(p.n, 64), ceil_div(p.m, 64), p.batch);
    auto run = [&](auto type) {
        using T = decltype(type);
        plain_kernel<T><<<grid, 256, 0, stream>>>(
            p, static_cast<const T *>(o.a), static_cast<const T *>(o.b), static_cast<T *>(o.c),
            static_cast<float *>(o.workspace), fault, k_end, ++calls);
    };
    if (p.bf16)
        run(__nv_bfloat16());
    else
        run(__half());
    return cudaGetLastError();
}

} // namespace

std::vector<Control> controls() {
    std::vector<Control> all;
    auto add = [&](Fault fault, Problem p) {
        Candidate candidate{NAMES[fault], [](const Problem &) { return true; },
                            [](const Problem &) { return size_t(256); },
                            [fault](const Problem &q, const Operands &o, cudaStream_t s) {
                                return launch(fault, q, o, s);
                            }};
        all.push_back({candidate, p, fault == NONE});
    };
    const Problem small = make_problem(200, 136, 200, "NN");
    Problem padded = make_problem(67, 131, 77, "TT", false, 1, 5), scaled = padded;
    scaled.alpha = -0.75f, scaled.beta = 0.5f;
    const Problem large = make_problem(2304, 2304, 2304, "TN");
    for (const Problem &p : {small, padded, scaled, large, make_problem(40, 72, 56, "NT", true, 3)})
        add(NONE, p);
    add(SKIPS_LAST_K, small), add(SKIPS_LAST_K, large);
    add(IGNORES_BETA, scaled);
    for (Fault f :
         {WRITES_PAST_EDGE, NEEDS_ZEROED_WORKSPACE, FIRST_STREAM, LEGACY_STREAM, SKIPS_WHEN_DONE,
          ONCE_A_POINTER, CHANGES_INPUT, READS_BEYOND_A, ANOTHER_RESULT_EACH_TIME})
        add(f, small);
    add(WRITES_BETWEEN_ROWS, padded);
    add(HALVES_K_WHEN_LARGE, large), add(ONE_ROW_WRONG_WHEN_LARGE, large);
    add(LOW_PRECISION, make_problem(256, 256, 1024, "NN")), add(LOW_PRECISION, large);
    return all;
}
