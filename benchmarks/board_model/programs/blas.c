/* One product by a CBLAS library under measurement: blas LIBRARY FUNCTION N. Column-major, C = A B,
 * one N by N by N call, its caches warmed by a smaller one as by the work before it. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "region.h"

typedef void (*sgemm)(int, int, int, int, int, int, float, const float *, int, const float *, int,
                      float, float *, int);
enum { COLUMN_MAJOR = 102, AS_IS = 111, SMALL = 64 };

static float *matrix(int n) {
    float *at = aligned_alloc(4096, sizeof(float) * (size_t)n * (size_t)n);
    if (!at)
        exit(1);
    for (long i = 0; i < (long)n * n; i++)
        at[i] = (float)(i % 7);
    return at;
}

int main(int argc, char **argv) {
    void *library = argc == 4 ? dlopen(argv[1], RTLD_NOW) : NULL;
    sgemm multiply = library ? (sgemm)dlsym(library, argv[2]) : NULL;
    if (!multiply) {
        fprintf(stderr, "blas LIBRARY FUNCTION N: %s\n", dlerror());
        return 2;
    }
    int n = atoi(argv[3]);
    float *a = matrix(n), *b = matrix(n), *c = matrix(n);
    int small = n < SMALL ? n : SMALL;
    multiply(COLUMN_MAJOR, AS_IS, AS_IS, small, small, small, 1, a, n, b, n, 0, c, n);
    TENSOROP_REGION_BEGIN();
    multiply(COLUMN_MAJOR, AS_IS, AS_IS, n, n, n, 1, a, n, b, n, 0, c, n);
    TENSOROP_REGION_END();
    return 0;
}
