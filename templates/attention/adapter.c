/* Adapts attention to the harness's calling convention. "tensorop" is the product's
 * tensorop_attention_<dtype>_variant; "blocks" is in baselines.c, "torch" in torch.h. */
#include "baselines.h"
#include "bind.h"
#include "torch.h"

typedef int (*ours)(const struct tensorop_attention *, const void *, const void *, const void *,
                    void *, void *, int);

static void call_ours(const struct tensorop_bound *self, const struct tensorop_call *call) {
    const struct tensorop_attention z = described(call);
    void *const *at = call->buffer;
    ((ours)self->function)(&z, at[BUFFER_q], at[BUFFER_k], at[BUFFER_v], at[BUFFER_o],
                           call->flag[FLAG_lse] ? at[BUFFER_lse] : NULL,
                           (int)call->flag[FLAG_variant]);
}

static const struct tensorop_interface interfaces[] = {
    {"tensorop", "f32", "tensorop_attention_f32_variant", call_ours},
    {"tensorop", "bf16", "tensorop_attention_bf16_variant", call_ours},
    {"tensorop", "f16", "tensorop_attention_f16_variant", call_ours},
    {"blocks", "f32", "cblas_sgemm", call_blocks_f32},
    {"torch", "f32", "aoti_torch_call_dispatcher", call_torch_f32},
    {"torch", "bf16", "aoti_torch_call_dispatcher", call_torch_bf16},
    {"torch", "f16", "aoti_torch_call_dispatcher", call_torch_f16},
};

int tensorop_bind(struct tensorop_bound *out, const char *api, const char *dtype,
                  const char *prefix, const char *suffix,
                  void *(*lookup)(void *handle, const char *symbol), void *handle) {
    const int lacks = tensorop_bind_among(interfaces, sizeof interfaces / sizeof *interfaces, out,
                                          api, dtype, prefix, suffix, lookup, handle);
    return lacks || strcmp(api, "torch") != 0 ? lacks : bind_torch(lookup, handle);
}
