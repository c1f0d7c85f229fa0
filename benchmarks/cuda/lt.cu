#include "lt.h"
#include "realign.cuh"
#include <cstring>
#include <dlfcn.h>
#include <memory>

// The part of cublasLt.h that is used, so that building needs no cuBLAS.
namespace {

using Handle = void *;
using Opaque = void *;
struct Algorithm {
    uint64_t data[8];
};
struct Heuristic {
    Algorithm algorithm;
    size_t workspace;
    int state;
    float waves;
    int reserved[4];
};
enum { R_16F = 2, R_16BF = 14, R_32F = 0, COMPUTE_32F = 68 };
enum { DESC_TRANSA = 3, DESC_TRANSB = 4, LAYOUT_BATCH_COUNT = 5, LAYOUT_BATCH_STRIDE = 6 };
enum { PREFERENCE_WORKSPACE = 1, PREFERENCE_ALIGNMENT_A = 5, PREFERENCE_WAVES = 9 };

struct Library {
    size_t (*version)();
    int (*create)(Handle *);
    int (*desc_create)(Opaque *, int, int);
    int (*desc_set)(Opaque, int, const void *, size_t);
    int (*layout_create)(Opaque *, int, uint64_t, uint64_t, int64_t);
    int (*layout_set)(Opaque, int, const void *, size_t);
    int (*preference_create)(Opaque *);
    int (*preference_set)(Opaque, int, const void *, size_t);
    int (*heuristic)(Handle, Opaque, Opaque, Opaque, Opaque, Opaque, Opaque, int, Heuristic[],
                     int *);
    int (*matmul)(Handle, Opaque, const void *, const void *, Opaque, const void *, Opaque,
                  const void *, const void *, Opaque, void *, Opaque, const Algorithm *, void *,
                  size_t, cudaStream_t);
    Handle handle;
} library;

void must(int status, const char *what) {
    if (status != 0) {
        fprintf(stderr, "cuBLASLt: %s returned status %d\n", what, status);
        exit(2);
    }
}

// The row-major product is the column-major C' = B' A'.
struct Plan {
    Opaque desc, first, second, result;
    explicit Plan(const Problem &p) {
        const int type = p.bf16 ? R_16BF : R_16F, yes = 1;
        must(library.desc_create(&desc, COMPUTE_32F, R_32F), "desc");
        if (p.b_nk)
            must(library.desc_set(desc, DESC_TRANSA, &yes, sizeof yes), "transa");
        if (p.a_km)
            must(library.desc_set(desc, DESC_TRANSB, &yes, sizeof yes), "transb");
        first = layout(type, p.b_cols(), p.b_rows(), p.ldb, p.batch, p.stride_b);
        second = layout(type, p.a_cols(), p.a_rows(), p.lda, p.batch, p.stride_a);
        result = layout(type, p.n, p.m, p.ldc, p.batch, p.stride_c);
    }
    static Opaque layout(int type, int rows, int cols, int64_t ld, int batch, int64_t stride) {
        Opaque made;
        must(library.layout_create(&made, type, rows, cols, ld), "layout");
        if (batch > 1) {
            must(library.layout_set(made, LAYOUT_BATCH_COUNT, &batch, sizeof batch), "batch");
            must(library.layout_set(made, LAYOUT_BATCH_STRIDE, &stride, sizeof stride), "stride");
        }
        return made;
    }
};

void query(const Plan &plan, size_t workspace, float waves, uint32_t alignment,
           std::vector<Heuristic> &found) {
    Opaque preference;
    must(library.preference_create(&preference), "preference");
    auto set = [&](int what, auto value) {
        must(library.preference_set(preference, what, &value, sizeof value), "preference");
    };
    set(PREFERENCE_WORKSPACE, uint64_t(workspace));
    if (waves > 0)
        set(PREFERENCE_WAVES, waves);
    for (int i = 0; alignment && i < 4; ++i)
        set(PREFERENCE_ALIGNMENT_A + i, alignment);
    Heuristic answers[64];
    int count = 0;
    if (library.heuristic(library.handle, plan.desc, plan.first, plan.second, plan.result,
                          plan.result, preference, 64, answers, &count) != 0)
        return;
    for (int i = 0; i < count; ++i) {
        bool known = answers[i].state != 0;
        for (const Heuristic &f : found)
            known |= !memcmp(&f.algorithm, &answers[i].algorithm, sizeof(Algorithm));
        if (!known)
            found.push_back(answers[i]);
    }
}

} // namespace

namespace lt {

std::string load() {
    if (library.handle)
        return "";
    const char *named = getenv("CUBLASLT");
    void *so = nullptr;
    for (const char *name : {named ? named : "libcublasLt.so.13", "libcublasLt.so.13",
                             "/usr/local/cuda/lib64/libcublasLt.so.13", "libcublasLt.so.12"})
        if (!so)
            so = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!so)
        return "cuBLASLt was not found: set CUBLASLT to the path of libcublasLt.so.13";
    auto find = [&](auto &function, const char *name) {
        function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(so, name));
        return function != nullptr;
    };
    if (!find(library.version, "cublasLtGetVersion") || !find(library.matmul, "cublasLtMatmul") ||
        !find(library.desc_create, "cublasLtMatmulDescCreate") ||
        !find(library.desc_set, "cublasLtMatmulDescSetAttribute") ||
        !find(library.layout_create, "cublasLtMatrixLayoutCreate") ||
        !find(library.layout_set, "cublasLtMatrixLayoutSetAttribute") ||
        !find(library.preference_create, "cublasLtMatmulPreferenceCreate") ||
        !find(library.preference_set, "cublasLtMatmulPreferenceSetAttribute") ||
        !find(library.heuristic, "cublasLtMatmulAlgoGetHeuristic") ||
        !find(library.create, "cublasLtCreate"))
        return std::string("cuBLASLt: a function is missing: ") + dlerror();
    must(library.create(&library.handle), "create");
    return "";
}

size_t version() { return library.version(); }

std::vector<Candidate> algorithms(const Problem &p) {
    const auto plan = std::make_shared<Plan>(p);
    std::vector<Heuristic> found;
    query(*plan, WORKSPACE, 0, 0, found);
    query(*plan, 0, 0, 0, found);
    query(*plan, WORKSPACE, 1, 0, found);
    query(*plan, WORKSPACE, 2, 0, found);
    query(*plan, WORKSPACE, 0, 16, found);
    query(*plan, WORKSPACE, 0, 2, found);
    query(*plan, 0, 1, 0, found);
    std::vector<Candidate> all;
    for (const Heuristic &answer : found)
        all.push_back(
            {"cublaslt#" + std::to_string(all.size()), [](const Problem &) { return true; },
             [](const Problem &) { return WORKSPACE; },
             [plan, answer](const Problem &q, const Operands &o, cudaStream_t stream) {
                 const int status =
                     library.matmul(library.handle, plan->desc, &q.alpha, o.b, plan->first, o.a,
                                    plan->second, &q.beta, o.c, plan->result, o.c, plan->result,
                                    &answer.algorithm, o.workspace, WORKSPACE, stream);
                 return status == 0 ? cudaGetLastError() : cudaErrorNotSupported;
             }});
    return all;
}

std::vector<Candidate> padded(const Problem &p) {
    const bool odd_a = p.lda % 8 != 0, odd_b = p.ldb % 8 != 0, odd_c = p.ldc % 8 != 0;
    if (p.batch > 1 || p.beta != 0 || !(odd_a || odd_b || odd_c))
        return {};
    auto up = [](int v) { return (v + 7) / 8 * 8; };
    Problem q = make_problem(p.a_km ? up(p.m) : p.m, up(p.n), up(p.k), p.layout(), p.bf16);
    q.alpha = p.alpha;
    const size_t bytes_a = q.a_elements() * 2, bytes_b = q.b_elements() * 2;
    auto align = [](size_t v) { return (v + 255) / 256 * 256; };
    const size_t total = WORKSPACE + align(bytes_a) + align(bytes_b) + align(q.c_elements() * 2);
    std::vector<Candidate> all;
    for (const Candidate &inner : algorithms(q)) {
        auto launch = [=](const Problem &, const Operands &o, cudaStream_t stream) {
            char *at = static_cast<char *>(o.workspace) + WORKSPACE;
            Operands padded{at, at + align(bytes_a), at + align(bytes_a) + align(bytes_b),
                            o.workspace};
            realign::Copy a, b;
            if (q.a_rows() == p.a_rows() && q.lda == p.lda)
                padded.a = o.a;
            else
                a = {o.a,        const_cast<void *>(padded.a),
                     p.a_rows(), p.a_cols(),
                     p.lda,      q.a_rows(),
                     q.a_cols(), q.lda};
            if (q.b_rows() == p.b_rows() && q.ldb == p.ldb)
                padded.b = o.b;
            else
                b = {o.b,        const_cast<void *>(padded.b),
                     p.b_rows(), p.b_cols(),
                     p.ldb,      q.b_rows(),
                     q.b_cols(), q.ldb};
            const bool direct = q.n == p.n && q.m == p.m;
            if (direct)
                padded.c = o.c;
            cudaError_t status = realign::copy(a, b, stream);
            if (status == cudaSuccess)
                status = inner.launch(q, padded, stream);
            if (status == cudaSuccess && !direct)
                status =
                    realign::copy({padded.c, o.c, p.m, p.n, q.ldc, p.m, p.n, p.ldc}, {}, stream);
            return status;
        };
        all.push_back({"pad+" + inner.name, inner.supports,
                       [total](const Problem &) { return total; }, launch});
    }
    return all;
}

} // namespace lt
