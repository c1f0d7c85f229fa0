/* The product's own source under other names, with all kernels but one taken from a handle. */
#define tensorop_gemm_create every_create
#define tensorop_gemm_destroy every_destroy
#define tensorop_gemm_ex every_ex
#define tensorop_gemm_workspace every_workspace
#define tensorop_gemm_chosen every_chosen
#define tensorop_gemm_message every_message
#define tensorop_gemm_cuda_card every_card
#include "library.c"

#include "every.h"

int every_variants(void) { return VARIANTS; }

tensorop_gemm_handle every_one(int variant, const char **label) {
    static tensorop_gemm_handle whole;
    if (!whole && every_create(&whole, 0) != TENSOROP_GEMM_OK)
        return NULL;
    tensorop_gemm_handle one = aligned_alloc(_Alignof(struct tensorop_gemm_state), sizeof *one);
    if (!one)
        return NULL;
    memcpy(one, whole, sizeof *one);
    for (int i = 0; i < KERNELS; ++i)
        if (i != COPY && i != variants[variant].kernel)
            one->functions[i] = NULL;
    *label = variants[variant].label;
    return one;
}
