// What the judge, the clock and the kernels share: a problem, its operands, a candidate.
#pragma once
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <functional>
#include <string>
#include <vector>

#define CHECK(call)                                                                                \
    do {                                                                                           \
        const cudaError_t status_ = (call);                                                        \
        if (status_ != cudaSuccess) {                                                              \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call,                          \
                    cudaGetErrorString(status_));                                                  \
            exit(2);                                                                               \
        }                                                                                          \
    } while (0)

// C = alpha A B + beta C, all row-major, 16-bit elements, sums in fp32. Strides count elements.
struct Problem {
    int m = 0, n = 0, k = 0, batch = 1;
    bool a_km = false; // A is stored [K, M], not [M, K]
    bool b_nk = false; // B is stored [N, K], not [K, N]
    bool bf16 = true;
    float alpha = 1, beta = 0;
    int64_t lda = 0, ldb = 0, ldc = 0;
    int64_t stride_a = 0, stride_b = 0, stride_c = 0;

    // The letters of BLAS for the column-major product C' = B' A': first B, then A.
    std::string layout() const { return std::string(b_nk ? "T" : "N") + (a_km ? "T" : "N"); }
    int a_rows() const { return a_km ? k : m; }
    int a_cols() const { return a_km ? m : k; }
    int b_rows() const { return b_nk ? n : k; }
    int b_cols() const { return b_nk ? k : n; }
    double flop() const { return 2.0 * m * n * k * batch; }
    int64_t a_elements() const { return stride_a * batch; }
    int64_t b_elements() const { return stride_b * batch; }
    int64_t c_elements() const { return stride_c * batch; }
    // Every pitch and stride is a multiple of 16 bytes, as tensor maps and vector loads need it.
    bool aligned_a() const { return lda % 8 == 0 && (batch == 1 || stride_a % 8 == 0); }
    bool aligned_b() const { return ldb % 8 == 0 && (batch == 1 || stride_b % 8 == 0); }
    bool aligned_c() const { return ldc % 8 == 0 && (batch == 1 || stride_c % 8 == 0); }
};

inline Problem make_problem(int m, int n, int k, const std::string &layout, bool bf16 = true,
                            int batch = 1, int pad = 0) {
    Problem p;
    p.m = m, p.n = n, p.k = k, p.batch = batch, p.bf16 = bf16;
    p.b_nk = layout[0] == 'T', p.a_km = layout[1] == 'T';
    p.lda = p.a_cols() + pad, p.ldb = p.b_cols() + pad, p.ldc = n + pad;
    p.stride_a = p.a_rows() * p.lda, p.stride_b = p.b_rows() * p.ldb, p.stride_c = m * p.ldc;
    return p;
}

struct Operands {
    const void *a = nullptr, *b = nullptr;
    void *c = nullptr, *workspace = nullptr;
};

inline bool aligned16(const void *p) { return reinterpret_cast<uintptr_t>(p) % 16 == 0; }

struct Candidate {
    std::string name;
    std::function<bool(const Problem &)> supports;
    std::function<size_t(const Problem &)> workspace;
    std::function<cudaError_t(const Problem &, const Operands &, cudaStream_t)> launch;
};

// Kernels register themselves: `static Register r{{name, supports, workspace, launch}};`
inline std::vector<Candidate> &candidates() {
    static std::vector<Candidate> all;
    return all;
}

struct Register {
    explicit Register(Candidate candidate) { candidates().push_back(std::move(candidate)); }
};

inline int ceil_div(int64_t a, int64_t b) { return static_cast<int>((a + b - 1) / b); }
