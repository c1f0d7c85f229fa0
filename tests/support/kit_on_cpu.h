// A kit's own kernels on this machine's processor: none of their threads waits for another. Nothing
// of C++'s own library, which takes a compiler most of a minute to build.
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define __global__
#define __device__
#define __host__

struct Index {
    unsigned x, y, z;
};
static Index threadIdx, blockIdx, blockDim, gridDim;
static long long clock64() { return 4000000001ll; }
static inline int min(int a, int b) { return a < b ? a : b; }
static inline float cospif(float x) { return cosf(3.14159265f * x); }
static inline float sinpif(float x) { return sinf(3.14159265f * x); }
static inline long long __double_as_longlong(double x) {
    long long bits;
    memcpy(&bits, &x, 8);
    return bits;
}
template <class T> static void atomicAdd(T *at, T by) { *at += by; }
template <class T> static void atomicMax(T *at, T by) { *at = *at < by ? by : *at; }

template <int... I> struct Places {};
template <class T, T... I> using Sequence = Places<I...>;
template <class... A, int... I>
static void apply(void (*kernel)(A...), void **arguments, Places<I...>) {
    kernel(*static_cast<A *>(arguments[I])...);
}

// strided: it goes over all there is whatever the grid.
template <class... A>
static void over(void (*kernel)(A...), const unsigned *grid, unsigned threads, void **arguments,
                 bool strided) {
    gridDim = {strided ? 1 : grid[0], grid[1], grid[2]}, blockDim = {strided ? 4 : threads, 1, 1};
    for (blockIdx.z = 0; blockIdx.z < gridDim.z; ++blockIdx.z)
        for (blockIdx.y = 0; blockIdx.y < gridDim.y; ++blockIdx.y)
            for (blockIdx.x = 0; blockIdx.x < gridDim.x; ++blockIdx.x)
                for (threadIdx.x = 0; threadIdx.x < blockDim.x; ++threadIdx.x)
                    apply(kernel, arguments, __make_integer_seq<Sequence, int, sizeof...(A)>());
}

#include "kernels.cu"

template <class... A> static const size_t *sizes_of(void (*)(A...)) {
    static const size_t each[] = {sizeof(A)..., 0};
    return each;
}

// each.inc has EACH(name, strided) for every kernel.
#define EACH(name, strided)                                                                        \
    if (!strcmp(asked, #name))                                                                     \
        return over(name, grid, threads, arguments, strided), 0;

extern "C" int kit_on_cpu(const char *asked, const unsigned *grid, unsigned threads,
                          void **arguments) {
#include "each.inc"
    return 1;
}

#undef EACH
#define EACH(name, strided)                                                                        \
    if (!strcmp(asked, #name))                                                                     \
        return sizes_of(name);

extern "C" const size_t *kit_sizes(const char *asked) {
#include "each.inc"
    return nullptr;
}
