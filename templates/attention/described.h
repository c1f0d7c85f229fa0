/* The description of a harness's call, whose operands are dense in its layout. Needs description.h.
 */
static inline struct tensorop_attention described(const struct tensorop_call *call) {
    const int64_t *n = call->dim, *flag = call->flag;
    const int64_t h = n[DIM_h], g = n[DIM_g], s = n[DIM_s], t = n[DIM_t], d = n[DIM_d],
                  dv = n[DIM_dv];
    const int bhsd = flag[FLAG_layout] == LAYOUT_bhsd;
    struct tensorop_attention z = {.batch = n[DIM_b], .heads = h, .key_heads = g};
    z.queries = s, z.keys = t, z.dim = d, z.v_dim = dv;
    z.q_batch = s * h * d, z.q_row = bhsd ? d : h * d, z.q_head = bhsd ? s * d : d;
    z.k_batch = t * g * d, z.k_row = bhsd ? d : g * d, z.k_head = bhsd ? t * d : d;
    z.v_batch = t * g * dv, z.v_row = bhsd ? dv : g * dv, z.v_head = bhsd ? t * dv : dv;
    z.o_batch = s * h * dv, z.o_row = bhsd ? dv : h * dv, z.o_head = bhsd ? s * dv : dv;
    z.scale = call->scalar[SCALAR_scale];
    z.left = flag[FLAG_left], z.right = flag[FLAG_right];
    z.align = flag[FLAG_align] == ALIGN_start ? TENSOROP_ATTENTION_START : TENSOROP_ATTENTION_END;
    z.align |= TENSOROP_ATTENTION_V_DIM;
    if (flag[FLAG_ragged])
        z.starts_q = call->buffer[BUFFER_starts_q], z.starts_k = call->buffer[BUFFER_starts_k];
    return z;
}
