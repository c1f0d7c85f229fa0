/* Each variant of a product alone, which its C ABI does not offer. */
#pragma once
#include <tensorop/gemm_cuda.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

int every_variants(void);
/* A handle that has but this variant, and its configuration. NULL where it cannot be made. */
tensorop_gemm_handle every_one(int variant, const char **label);
int every_ex(tensorop_gemm_handle handle, void *stream, const struct tensorop_gemm_problem *problem,
             const void *a, const void *b, void *c, void *workspace, size_t bytes);
int every_workspace(tensorop_gemm_handle handle, const struct tensorop_gemm_problem *problem,
                    const void *a, const void *b, const void *c, size_t *bytes);
const char *every_chosen(tensorop_gemm_handle handle, const struct tensorop_gemm_problem *problem,
                         const void *a, const void *b, const void *c, size_t bytes);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif
