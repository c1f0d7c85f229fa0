/* Adapts conv2d to the harness's calling convention. "tensorop" is the product's
 * tensorop_conv2d_<dtype>_variant; "dnnl" and "prepacked" are in onednn.h, the others in
 * baselines.c. */
#include "baselines.h"
#include "bind.h"
#include "onednn.h"

/* as in tensorop/conv2d.h */
struct tensorop_conv2d {
    int64_t n, c, h, w, k, r, s, stride_h, stride_w, pad_top, pad_bottom, pad_left, pad_right,
        dilation_h, dilation_w, groups;
    int layout, relu;
};

typedef int (*ours)(const struct tensorop_conv2d *, const void *, const void *, const void *,
                    void *, int);

static void call_ours(const struct tensorop_bound *self, const struct tensorop_call *call) {
    struct tensorop_conv2d z;
    memcpy(&z, call->dim, 16 * sizeof *call->dim);
    z.layout = (int)call->flag[FLAG_layout], z.relu = (int)call->flag[FLAG_relu];
    ((ours)self->function)(&z, call->buffer[BUFFER_x], call->buffer[BUFFER_w],
                           call->flag[FLAG_bias] ? call->buffer[BUFFER_bias] : NULL,
                           call->buffer[BUFFER_y], (int)call->flag[FLAG_variant]);
}

static const struct tensorop_interface interfaces[] = {
    {"tensorop", "f32", "tensorop_conv2d_f32_variant", call_ours},
    {"tensorop", "f64", "tensorop_conv2d_f64_variant", call_ours},
    {"im2col", "f32", "cblas_sgemm", call_im2col_f32},
    {"im2col", "f64", "cblas_dgemm", call_im2col_f64},
    {"direct", "f32", NULL, call_direct_f32},
    {"direct", "f64", NULL, call_direct_f64},
    {"dnnl", "f32", "dnnl_convolution_forward_primitive_desc_create", call_dnnl_f32},
    {"prepacked", "f32", "dnnl_convolution_forward_primitive_desc_create", call_prepacked_f32},
};

int tensorop_bind(struct tensorop_bound *out, const char *api, const char *dtype,
                  const char *prefix, const char *suffix,
                  void *(*lookup)(void *handle, const char *symbol), void *handle) {
    int lacks = tensorop_bind_among(interfaces, sizeof interfaces / sizeof *interfaces, out, api,
                                    dtype, prefix, suffix, lookup, handle);
    int is_dnnl = strcmp(api, "dnnl") == 0 || strcmp(api, "prepacked") == 0;
    return lacks || !is_dnnl ? lacks : bind_dnnl(lookup, handle);
}
