#include "chosen.h"
#include <algorithm>
#include <tensorop/gemm_cuda.h>

namespace {

tensorop_gemm_problem called(const Problem &p) {
    tensorop_gemm_problem of{};
    of.type = p.bf16 ? TENSOROP_GEMM_BF16 : TENSOROP_GEMM_F16;
    of.layout = 101;
    of.transa = p.a_km ? 112 : 111, of.transb = p.b_nk ? 112 : 111;
    of.alpha = p.alpha, of.beta = p.beta;
    of.m = p.m, of.n = p.n, of.k = p.k, of.lda = p.lda, of.ldb = p.ldb, of.ldc = p.ldc;
    of.batch = p.batch;
    of.stride_a = p.stride_a, of.stride_b = p.stride_b, of.stride_c = p.stride_c;
    return of;
}

void must(int status) {
    if (status != TENSOROP_GEMM_OK) {
        fprintf(stderr, "product: %s\n", tensorop_gemm_message(status));
        exit(2);
    }
}

// Handles are made at first use, outside of a graph's capture.
tensorop_gemm_handle whole() {
    static tensorop_gemm_handle handle = nullptr;
    if (!handle) {
        CHECK(cudaFree(nullptr));
        must(tensorop_gemm_create(&handle, 0));
    }
    return handle;
}

// Addresses that are aligned like those of a call, for questions asked before there are any.
const char *address(int shift) { return reinterpret_cast<const char *>(uintptr_t(4096) + shift); }

template <class Asked> size_t most(const Problem &p, tensorop_gemm_handle handle, Asked asked) {
    size_t most = 0;
    for (int shift : {0, 2}) {
        const tensorop_gemm_problem problem = called(p);
        size_t bytes = 0;
        const char *at = address(shift);
        must(asked(handle, &problem, at, at, at, &bytes));
        most = std::max(most, bytes);
    }
    return most;
}

// Asks for the workspace of this very call, as a user does.
template <class Asked, class Run>
cudaError_t run(const Problem &p, const Operands &o, cudaStream_t stream,
                tensorop_gemm_handle handle, Asked asked, Run enqueue) {
    const tensorop_gemm_problem problem = called(p);
    size_t bytes = 0;
    int status = asked(handle, &problem, o.a, o.b, o.c, &bytes);
    if (status == TENSOROP_GEMM_OK)
        status =
            enqueue(handle, stream, &problem, o.a, o.b, o.c, bytes ? o.workspace : nullptr, bytes);
    if (status != TENSOROP_GEMM_OK)
        fprintf(stderr, "product: %s\n", tensorop_gemm_message(status));
    return status == TENSOROP_GEMM_OK ? cudaGetLastError() : cudaErrorNotSupported;
}

const Register own{{"product", [](const Problem &) { return whole() != nullptr; },
                    [](const Problem &p) { return most(p, whole(), tensorop_gemm_workspace); },
                    [](const Problem &p, const Operands &o, cudaStream_t stream) {
                        return run(p, o, stream, whole(), tensorop_gemm_workspace,
                                   tensorop_gemm_ex);
                    }}};

std::string chosen(const Problem &p) {
    const tensorop_gemm_problem problem = called(p);
    const char *at = address(0);
    const char *label = tensorop_gemm_chosen(whole(), &problem, at, at, at, SIZE_MAX);
    return label ? label : "";
}

// With EVERY=1: each variant by force, of a second handle.
bool add_every() {
    finished::chosen = chosen;
    if (!getenv("EVERY"))
        return true;
    CHECK(cudaFree(nullptr));
    static tensorop_gemm_handle handle = nullptr;
    must(tensorop_gemm_create(&handle, 0));
    for (int i = 0; i < tensorop_gemm_variants(); ++i) {
        auto forced = [i] {
            must(tensorop_gemm_force(handle, i));
            return handle;
        };
        candidates().push_back(
            {std::string("one:") + tensorop_gemm_variant(i),
             [forced](const Problem &p) {
                 const tensorop_gemm_problem problem = called(p);
                 const char *at = address(0);
                 return tensorop_gemm_chosen_variant(forced(), &problem, at, at, at, SIZE_MAX) >= 0;
             },
             [forced](const Problem &p) { return most(p, forced(), tensorop_gemm_workspace); },
             [forced](const Problem &p, const Operands &o, cudaStream_t stream) {
                 return run(p, o, stream, forced(), tensorop_gemm_workspace, tensorop_gemm_ex);
             }});
    }
    return true;
}

const bool added = add_every();

} // namespace
