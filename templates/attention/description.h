enum tensorop_attention_align { TENSOROP_ATTENTION_END = 0, TENSOROP_ATTENTION_START = 1 };
#define TENSOROP_ATTENTION_V_DIM 2 /* to add to align: v_dim is set, else it is dim */

struct tensorop_attention {
    int64_t batch, heads, key_heads, queries, keys, dim;
    int64_t q_batch, q_row, q_head, k_batch, k_row, k_head;
    int64_t v_batch, v_row, v_head, o_batch, o_row, o_head;
    double scale;
    int64_t left, right;
    int align;
    const int32_t *starts_q, *starts_k; /* or NULL */
    int64_t v_dim; /* of V and O; read only if align has TENSOROP_ATTENTION_V_DIM, 2 */
};
