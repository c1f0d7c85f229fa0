// Runs the C of cuda-mma's row_pairs_put, primitive.inc, in 32 threads. Returns how many elements
// of all C are wrong, written beside their rows among them.
#include <pthread.h>
#include <stdint.h>
#include <string.h>

#define __device__
#define __forceinline__ inline

struct Element {
    uint16_t bits;
    Element() = default;
    Element(float x) : bits(uint16_t(x)) {}
};
static thread_local struct {
    unsigned x;
} threadIdx;
static pthread_barrier_t of_warp;
static uint32_t given[32];
static uint16_t c[512] __attribute__((aligned(16)));
static int wrong;

static uint32_t __shfl_sync(unsigned, uint32_t mine, int source) {
    given[threadIdx.x] = mine;
    pthread_barrier_wait(&of_warp);
    const uint32_t found = given[source];
    pthread_barrier_wait(&of_warp);
    return found;
}
static uint32_t __byte_perm(uint32_t low, uint32_t high, uint32_t pick) {
    const uint64_t bytes = uint64_t(high) << 32 | low;
    uint32_t found = 0;
    for (int i = 0; i < 4; ++i)
        found |= uint32_t(bytes >> 8 * (pick >> 4 * i & 7) & 255) << 8 * i;
    return found;
}
static void pair_put(Element *at, float x, float y, bool two, bool together) {
    wrong += together && uintptr_t(at) % 4;
    at[0] = x;
    if (two)
        at[1] = y;
}
#include "primitive.inc"

static void lane_of_warp() {
    const int row = threadIdx.x / 4, col = threadIdx.x % 4 * 2;
    for (int shift = 0; shift < 3; ++shift)
        for (int ldc = WARP_N; ldc < WARP_N + 4; ++ldc)
            for (int n = 0; n <= ldc; ++n)
                for (int together = 0; together <= (ldc % 2 == 0 && shift % 2 == 0); ++together) {
                    float s[WARP_N / 4];
                    for (int e = 0; e < WARP_N / 4; ++e)
                        s[e] = row * 64 + col + e / 2 * 8 + e % 2;
                    if (threadIdx.x == 0)
                        memset(c, 0xff, sizeof c);
                    pthread_barrier_wait(&of_warp);
                    Element *const at = (Element *)c + shift + row * ldc + col;
                    row_pairs_put(at, s, row < 7 ? n - col : 0, together);
                    pthread_barrier_wait(&of_warp);
                    for (int i = 0; i < 512 && threadIdx.x == 0; ++i) {
                        const int r = (i + ldc - shift) / ldc - 1, q = (i + ldc - shift) % ldc;
                        const bool inside = r >= 0 && r < 7 && q < n && q < WARP_N;
                        wrong += c[i] != (inside ? r * 64 + q : 0xffff);
                    }
                }
}

static void *begin_lane(void *number) {
    threadIdx.x = unsigned(uintptr_t(number));
    lane_of_warp();
    return nullptr;
}

extern "C" int run() {
    pthread_t threads[32];
    wrong = 0, pthread_barrier_init(&of_warp, nullptr, 32);
    for (uintptr_t i = 0; i < 32; ++i)
        if (pthread_create(&threads[i], nullptr, begin_lane, (void *)i))
            return -1;
    for (pthread_t one : threads)
        pthread_join(one, nullptr);
    return wrong;
}
