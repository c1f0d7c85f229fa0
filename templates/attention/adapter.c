/* Adapts attention to the harness's calling convention. "tensorop" is the product's
 * tensorop_attention_<dtype>_variant; "blocks" is in baselines.c, "torch" in torch.h. */
#include "baselines.h"
#include "bind.h"
#include "torch.h"

/* as in tensorop/attention.h */
struct tensorop_attention {
    int64_t batch, heads, key_heads, queries, keys, dim;
    int64_t q_batch, q_row, q_head, k_batch, k_row, k_head, v_batch, v_row, v_head, o_batch, o_row,
        o_head;
    double scale;
    int64_t left, right;
    int align;
    const int32_t *starts_q, *starts_k;
};

typedef int (*ours)(const struct tensorop_attention *, const void *, const void *, const void *,
                    void *, void *, int);

static void call_ours(const struct tensorop_bound *self, const struct tensorop_call *call) {
    const struct attention z = attention_of(call);
    const struct tensorop_attention description = {
        z.b,
        z.h,
        z.g,
        z.s,
        z.t,
        z.d,
        z.q_batch,
        z.q_row,
        z.q_head,
        z.k_batch,
        z.k_row,
        z.k_head,
        z.k_batch,
        z.k_row,
        z.k_head,
        z.q_batch,
        z.q_row,
        z.q_head,
        call->scalar[SCALAR_scale],
        z.left,
        z.right,
        z.start,
        z.ragged ? z.starts_q : NULL,
        z.ragged ? z.starts_k : NULL,
    };
    ((ours)self->function)(&description, z.q, z.k, z.v, z.o, z.lse, (int)call->flag[FLAG_variant]);
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
