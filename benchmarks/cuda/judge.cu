#include "judge.h"
#include <unistd.h>

namespace {

constexpr int POISON = 0xff; // NaN in both types
constexpr unsigned SECONDS_A_PROBLEM = 60;

// Keeps a stream busy until the host lets it go, or two seconds have passed.
__global__ void hold_kernel(volatile int *released) {
    const long long limit = clock64() + 4'000'000'000ll;
    while (!*released && clock64() < limit) {
    }
}

struct Streams {
    cudaStream_t first, second;
    int *released;
    Streams() {
        CHECK(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
        CHECK(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
        CHECK(cudaHostAlloc(&released, sizeof(int), cudaHostAllocMapped));
    }
};

} // namespace

Verdict judge(const Candidate &candidate, const Problem &p, uint64_t seed, int shift) {
    static Streams streams;
    Verdict v;
    alarm(SECONDS_A_PROBLEM); // A candidate that hangs takes the process with it.
    const size_t workspace_bytes = candidate.workspace(p);
    Guarded a(p.a_elements() * 2, shift * 2), b(p.b_elements() * 2, shift * 2),
        c(p.c_elements() * 2, shift * 2), before(p.beta != 0 ? p.c_elements() * 2 : 2),
        workspace(workspace_bytes ? workspace_bytes : 256);
    const Operands operands{a.get(), b.get(), c.get(), workspace.get()};
    auto refused = [&](const std::string &reason) {
        v.reason = reason;
        v.right = false;
        alarm(0);
        return v;
    };
    // C's elements get `fill` or random values; the padding of its rows keeps the poison.
    auto prepare_c = [&](bool keep, uint64_t salt) {
        if (p.beta != 0) {
            oracle::fill_bytes(c.get(), c.bytes(), POISON);
            oracle::fill_normal(before.get(), p.c_elements(), seed + salt, p.bf16);
            CHECK(cudaMemcpy2D(c.get(), p.ldc * 2, before.get(), p.ldc * 2, p.n * 2,
                               int64_t(p.m) * p.batch, cudaMemcpyDeviceToDevice));
        } else if (!keep) {
            oracle::fill_bytes(c.get(), c.bytes(), POISON);
        }
    };
    uint64_t first_hash = 0;
    // 0: poisoned C and workspace. 1: other data in the same buffers, C and workspace as they were
    // left. 2: the data of 1 once more, everything poisoned, on a second stream while the first and
    // the legacy stream are held.
    for (int run = 0; run < 3; ++run) {
        if (run < 2) {
            oracle::fill_normal(a.get(), p.a_elements(), seed + 10 * run, p.bf16);
            oracle::fill_normal(b.get(), p.b_elements(), seed + 10 * run + 1, p.bf16);
        }
        prepare_c(run == 1, 5 + (run > 0));
        if (run != 1)
            oracle::fill_bytes(workspace.get(), workspace.bytes(), run ? 0x5a : POISON);
        const uint64_t hash_a = oracle::hash(a.get(), a.bytes());
        const uint64_t hash_b = oracle::hash(b.get(), b.bytes());
        CHECK(cudaDeviceSynchronize());
        cudaError_t status;
        uint64_t hash_c = 0;
        if (run < 2) {
            status = candidate.launch(p, operands, streams.first);
            if (status == cudaSuccess)
                status = cudaDeviceSynchronize();
            if (status == cudaSuccess)
                hash_c = oracle::hash_c(p, c.get());
        } else {
            Guarded copy(p.c_elements() * 2);
            CHECK(cudaMemcpy(copy.get(), c.get(), c.bytes(), cudaMemcpyDeviceToDevice));
            CHECK(cudaDeviceSynchronize());
            *streams.released = 0;
            hold_kernel<<<1, 1, 0, streams.first>>>(streams.released);
            hold_kernel<<<1, 1>>>(streams.released);
            status = candidate.launch(p, operands, streams.second);
            CHECK(cudaMemcpyAsync(copy.get(), c.get(), c.bytes(), cudaMemcpyDeviceToDevice,
                                  streams.second));
            if (status == cudaSuccess)
                status = cudaStreamSynchronize(streams.second);
            *streams.released = 1;
            if (status == cudaSuccess)
                status = cudaDeviceSynchronize();
            if (status == cudaSuccess)
                hash_c = oracle::hash_c(p, copy.get());
        }
        if (status != cudaSuccess)
            return refused(std::string("CUDA: ") + cudaGetErrorString(status));
        if (!a.intact() || !b.intact() || !c.intact() || !workspace.intact())
            return refused("wrote outside a buffer");
        if (!oracle::padding_is(p, c.get(), POISON << 8 | POISON))
            return refused("wrote between the rows of C");
        if (hash_a != oracle::hash(a.get(), a.bytes()) ||
            hash_b != oracle::hash(b.get(), b.bytes()))
            return refused("changed an input");
        if (run == 2) {
            v.same_twice = hash_c == first_hash;
            if (!v.same_twice)
                return refused("not the same on a second stream, or the second time");
            break;
        }
        first_hash = hash_c;
        v.error = oracle::judge(p, a.get(), b.get(), p.beta != 0 ? before.get() : nullptr, c.get(),
                                seed + 99);
        if (!v.error.refused.empty())
            return refused((run ? "with C as the last call left it: " : "") + v.error.refused);
    }
    alarm(0);
    v.right = true;
    return v;
}
