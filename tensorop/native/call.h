/* The one calling convention between the harness and what it runs.
 *
 * An operator gives each slot its meaning (templates/<op>/adapter.c); the harness knows buffers as
 * bytes only. A candidate is linked in statically and exports tensorop_candidate_0 (the operator)
 * and, for the first search stage, tensorop_candidate_1 (its micro-kernel alone). A library is
 * opened with dlopen and bound by the operator's adapter. */
#ifndef TENSOROP_CALL_H
#define TENSOROP_CALL_H

#include <stdint.h>

/* As many of each as the operator has; of the first eight buffers those that it has not are NULL.
 */
struct tensorop_call {
    const int64_t *dim;
    const int64_t *ld;
    const double *scalar;
    const int64_t *flag;
    void *const *buffer;
};

typedef void (*tensorop_entry)(const struct tensorop_call *call);

/* A library's function behind the same convention. */
struct tensorop_bound {
    void (*call)(const struct tensorop_bound *self, const struct tensorop_call *call);
    void *function;
};

/* Written by the operator's adapter.c. api: the calling interface ("tensorop", "cblas", ...);
 * dtype: "f32", ...; prefix and suffix: what the library puts around its public names. Returns 0,
 * or -1 when a symbol is missing. */
int tensorop_bind(struct tensorop_bound *out, const char *api, const char *dtype,
                  const char *prefix, const char *suffix,
                  void *(*lookup)(void *handle, const char *symbol), void *handle);

#endif
