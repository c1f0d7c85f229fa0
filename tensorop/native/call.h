/* The calling convention between the harness and the functions that it runs.
 *
 * operator.yaml defines the meaning of each slot (slots.h names them); to the harness, buffers are
 * bytes. A candidate is linked statically. It exports tensorop_candidate_0 (the operator) and,
 * for the first search stage, tensorop_candidate_1 (its micro-kernel alone). A library is opened
 * with dlopen, and the operator's adapter binds it. */
#ifndef TENSOROP_CALL_H
#define TENSOROP_CALL_H

#include <stdint.h>

/* Each array has as many elements as the operator has slots. `buffer` has at least eight; unused
 * ones are NULL. */
struct tensorop_call {
    const int64_t *dim;
    const int64_t *ld;
    const double *scalar;
    const int64_t *flag;
    void *const *buffer;
};

typedef void (*tensorop_entry)(const struct tensorop_call *call);

/* A library's function, called by the same convention. */
struct tensorop_bound {
    void (*call)(const struct tensorop_bound *self, const struct tensorop_call *call);
    void *function;
};

/* The operator's adapter.c defines it. api: the calling interface ("tensorop", "cblas", ...);
 * dtype: "f32", ...; prefix and suffix: those of the library's public names. Returns 0, or -1 if a
 * symbol is missing. */
int tensorop_bind(struct tensorop_bound *out, const char *api, const char *dtype,
                  const char *prefix, const char *suffix,
                  void *(*lookup)(void *handle, const char *symbol), void *handle);

#endif
