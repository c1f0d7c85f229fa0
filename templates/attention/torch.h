/* Adapts PyTorch's scaled_dot_product_attention on the processor to the harness's calling
 * convention. It is called through the dispatcher, by the C interface of libtorch_cpu.so
 * (torch/csrc/inductor/aoti_torch/c/shim.h, PyTorch 2.8 or newer), so nothing is compiled against
 * one PyTorch. Each call makes its tensors around the caller's memory, and copies the result, which
 * PyTorch allocates; the copy takes 1 % of 1024 queries' time. Windows are masks of booleans, made
 * at the first call of their shape, as torch.nn.attention.bias.causal_lower_right has them. */
#ifndef ATTENTION_TORCH_H
#define ATTENTION_TORCH_H

#include "baselines.h"
#include "bind.h"

#include <stdlib.h>

typedef void *torch_tensor;
#define TORCH_CALLS(X)                                                                             \
    X(int, create_tensor_from_blob,                                                                \
      (void *, int64_t, const int64_t *, const int64_t *, int64_t, int32_t, int32_t, int32_t,      \
       torch_tensor *))                                                                            \
    X(int, delete_tensor_object, (torch_tensor))                                                   \
    X(int, get_data_ptr, (torch_tensor, void **))                                                  \
    X(int, get_strides, (torch_tensor, int64_t **))                                                \
    X(int, call_dispatcher, (const char *, const char *, uint64_t *))                              \
    X(int32_t, dtype_float32, (void))                                                              \
    X(int32_t, dtype_bfloat16, (void))                                                             \
    X(int32_t, dtype_float16, (void))                                                              \
    X(int32_t, dtype_bool, (void))                                                                 \
    X(int32_t, device_type_cpu, (void))
#define TORCH_POINTER(result, name, arguments) result(*name) arguments;
static struct {
    TORCH_CALLS(TORCH_POINTER)
    void *(*allocate)(size_t); /* C++'s operator new: PyTorch frees an optional argument */
} torch;

/* A tensor around memory; on failure NULL, which the dispatcher refuses. */
static torch_tensor torch_around(void *memory, int32_t dtype, int dims, const int64_t *sizes,
                                 const int64_t *strides) {
    torch_tensor made = NULL;
    if (torch.create_tensor_from_blob(memory, dims, sizes, strides, 0, dtype,
                                      torch.device_type_cpu(), 0, &made))
        return NULL;
    return made;
}

/* An optional argument that is present. */
static uint64_t torch_some(uint64_t value) {
    uint64_t *held = torch.allocate(sizeof *held);
    *held = value;
    return (uint64_t)(uintptr_t)held;
}

/* Keys that queries see, [s][t], kept until a call has others; NULL without memory. */
static uint8_t *torch_mask(const struct tensorop_attention *z) {
    static struct tensorop_attention of;
    static uint8_t *seen;
    const int64_t s = z->queries, t = z->keys,
                  first = z->align & TENSOROP_ATTENTION_START ? 0 : t - s;
    if (seen && of.queries == s && of.keys == t && of.left == z->left && of.right == z->right &&
        of.align == z->align)
        return seen;
    free(seen);
    of = *z;
    seen = malloc((size_t)(s * t));
    for (int64_t i = 0; seen && i < s; i++) {
        const int64_t own = i + first;
        for (int64_t j = 0; j < t; j++)
            seen[i * t + j] =
                (z->left < 0 || own - j <= z->left) && (z->right < 0 || j - own <= z->right);
    }
    return seen;
}

/* dtype: PyTorch's number of it; size: bytes of an element */
static void call_torch(const struct tensorop_bound *self, const struct tensorop_call *call,
                       int32_t (*dtype)(void), int64_t size) {
    if (self->function != (void *)torch.call_dispatcher)
        return; /* the harness measures the call overhead with another function */
    const struct tensorop_attention z = described(call);
    if (z.starts_q)
        return; /* one tensor has no ragged batch; without an output, verification refuses the call
                 */
    const int64_t of_q[4] = {z.batch, z.heads, z.queries, z.dim};
    const int64_t of_k[4] = {z.batch, z.key_heads, z.keys, z.dim};
    const int64_t of_v[4] = {z.batch, z.key_heads, z.keys, z.v_dim};
    const int64_t q_steps[4] = {z.q_batch, z.q_head, z.q_row, 1},
                  k_steps[4] = {z.k_batch, z.k_head, z.k_row, 1},
                  v_steps[4] = {z.v_batch, z.v_head, z.v_row, 1};
    const int64_t of_mask[2] = {z.queries, z.keys}, mask_steps[2] = {z.keys, 1};
    const int start = z.align & TENSOROP_ATTENTION_START;
    const int causal = z.left < 0 && z.right == 0 && (start || z.queries == z.keys);
    const int all = z.left < 0 && (z.right < 0 || (!start && z.queries == 1));
    const int32_t of = dtype();
    uint64_t bits;
    memcpy(&bits, &z.scale, sizeof bits);
    uint64_t stack[8] = {0}; /* dropout_p, the fifth, is 0.0 */
    stack[0] = (uint64_t)(uintptr_t)torch_around(call->buffer[BUFFER_q], of, 4, of_q, q_steps);
    stack[1] = (uint64_t)(uintptr_t)torch_around(call->buffer[BUFFER_k], of, 4, of_k, k_steps);
    stack[2] = (uint64_t)(uintptr_t)torch_around(call->buffer[BUFFER_v], of, 4, of_v, v_steps);
    if (!causal && !all)
        stack[3] = torch_some((uint64_t)(uintptr_t)torch_around(torch_mask(&z), torch.dtype_bool(),
                                                                2, of_mask, mask_steps));
    stack[5] = (uint64_t)(causal && !all);
    stack[6] = torch_some(bits);
    stack[7] = z.key_heads != z.heads;
    if (torch.call_dispatcher("aten::scaled_dot_product_attention", "", stack))
        return;
    const torch_tensor result = (void *)(uintptr_t)stack[0];
    void *from;
    int64_t *steps;
    if (!torch.get_data_ptr(result, &from) && !torch.get_strides(result, &steps) && steps[3] == 1)
        for (int64_t b = 0; b < z.batch; b++)
            for (int64_t i = 0; i < z.queries; i++)
                for (int64_t h = 0; h < z.heads; h++)
                    memcpy((char *)call->buffer[BUFFER_o] +
                               (b * z.o_batch + i * z.o_row + h * z.o_head) * size,
                           (const char *)from + (b * steps[0] + h * steps[1] + i * steps[2]) * size,
                           (size_t)(z.v_dim * size));
    torch.delete_tensor_object(result);
}

#define TORCH_CALL(dtype, type, size)                                                              \
    static void call_torch_##dtype(const struct tensorop_bound *self,                              \
                                   const struct tensorop_call *call) {                             \
        call_torch(self, call, torch.dtype_##type, size);                                          \
    }
TORCH_CALL(f32, float32, 4)
TORCH_CALL(bf16, bfloat16, 2)
TORCH_CALL(f16, float16, 2)

/* Finds PyTorch's functions in the library of `handle`. */
static int bind_torch(void *(*lookup)(void *handle, const char *symbol), void *handle) {
#define TORCH_FIND(result, name, arguments)                                                        \
    if (!(*(void **)&torch.name = lookup(handle, "aoti_torch_" #name)))                            \
        return -1;
    TORCH_CALLS(TORCH_FIND)
    return (*(void **)&torch.allocate = lookup(handle, "_Znwm")) ? 0 : -1;
}

#endif
