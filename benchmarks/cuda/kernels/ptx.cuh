// What PTX has and C++ has not: barriers in shared memory, the copy engine, clusters.
#pragma once
#include <cstdint>
#include <cuda.h>

namespace ptx {

__device__ __forceinline__ uint32_t shared(const void *p) {
    return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

__device__ __forceinline__ int thread() {
    int id;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(id));
    return id;
}

// mbarriers: a phase ends when `count` have arrived and every expected byte is there.
__device__ __forceinline__ void init(uint32_t barrier, int count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count));
}
__device__ __forceinline__ void expect(uint32_t barrier, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
                 : "memory");
}
__device__ __forceinline__ void arrive(uint32_t barrier) {
    asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
// Without .release.cluster, which is a fence of some 1000 cycles: what is told is that reads are
// over.
__device__ __forceinline__ void arrive_at(uint32_t barrier, int cta) {
    asm volatile("{\n.reg .b32 remote;\nmapa.shared::cluster.u32 remote, %0, %1;\n"
                 "mbarrier.arrive.shared::cluster.b64 _, [remote];\n}" ::"r"(barrier),
                 "r"(cta)
                 : "memory");
}
__device__ __forceinline__ void wait(uint32_t barrier, int parity) {
    asm volatile("{\n.reg .pred done;\nagain:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@done bra.uni over;\nbra.uni again;\nover:\n}" ::"r"(barrier),
                 "r"(parity)
                 : "memory");
}
__device__ __forceinline__ void fence_init() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// Ordinary stores to shared memory become visible to the copy engine and the tensor cores.
__device__ __forceinline__ void fence_async() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
__device__ __forceinline__ void named_barrier(int id, int threads) {
    asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
__device__ __forceinline__ void named_arrive(int id, int threads) {
    asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

__device__ __forceinline__ uint32_t cluster_rank() {
    uint32_t rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}
__device__ __forceinline__ void cluster_barrier() {
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::
                     : "memory");
}
__device__ __forceinline__ float2 load_remote(uint32_t address, int cta) {
    float2 v;
    asm volatile("{\n.reg .b32 remote;\nmapa.shared::cluster.u32 remote, %2, %3;\n"
                 "ld.shared::cluster.v2.f32 {%0, %1}, [remote];\n}"
                 : "=f"(v.x), "=f"(v.y)
                 : "r"(address), "r"(cta)
                 : "memory");
    return v;
}

__device__ __forceinline__ void prefetch(const CUtensorMap *map) {
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}
__device__ __forceinline__ void prefetch(const CUtensorMap *map, int x, int y, int z) {
    asm volatile("cp.async.bulk.prefetch.tensor.3d.L2.global [%0, {%1, %2, %3}];" ::"l"(map),
                 "r"(x), "r"(y), "r"(z)
                 : "memory");
}
__device__ __forceinline__ void load(uint32_t to, const CUtensorMap *map, uint32_t barrier, int x,
                                     int y, int z) {
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%3, %4, %5}], [%2];" ::"r"(to),
                 "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(z)
                 : "memory");
}
__device__ __forceinline__ void load_multicast(uint32_t to, const CUtensorMap *map,
                                               uint32_t barrier, int x, int y, int z,
                                               uint16_t mask) {
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes"
                 ".multicast::cluster [%0], [%1, {%3, %4, %5}], [%2], %6;" ::"r"(to),
                 "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(z), "h"(mask)
                 : "memory");
}
__device__ __forceinline__ void store(const CUtensorMap *map, uint32_t from, int x, int y, int z) {
    asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%2, %3, %4}], [%1];\n"
                 "cp.async.bulk.commit_group;" ::"l"(map),
                 "r"(from), "r"(x), "r"(y), "r"(z)
                 : "memory");
}
// All but the newest N stores have read their shared memory; all stores are done.
template <int N> __device__ __forceinline__ void stores_read() {
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(N) : "memory");
}
__device__ __forceinline__ void stores_done() {
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}
__device__ __forceinline__ void store_matrix(uint32_t to, uint32_t a, uint32_t b, uint32_t c,
                                             uint32_t d) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(to),
                 "r"(a), "r"(b), "r"(c), "r"(d)
                 : "memory");
}

__device__ __forceinline__ uint4 load_shared(uint32_t address) {
    uint4 v;
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "r"(address)
                 : "memory");
    return v;
}
__device__ __forceinline__ uint16_t load_shared_element(uint32_t address) {
    uint16_t v;
    asm volatile("ld.shared.u16 %0, [%1];" : "=h"(v) : "r"(address) : "memory");
    return v;
}

__device__ __forceinline__ void wgmma_fence() {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ __forceinline__ void wgmma_commit() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int N> __device__ __forceinline__ void wgmma_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
}
template <int N> __device__ __forceinline__ void fewer_registers() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N));
}
template <int N> __device__ __forceinline__ void more_registers() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N));
}

// Programmatic dependent launch: what came before is over; what comes after may begin.
__device__ __forceinline__ void wait_for_previous() {
    asm volatile("griddepcontrol.wait;" ::: "memory");
}
__device__ __forceinline__ void let_next_begin() {
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

} // namespace ptx
