/* A table with which an operator's adapter.c finds the requested function in a library. */
#ifndef TENSOROP_BIND_H
#define TENSOROP_BIND_H

#include "call.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* function: the name between the library's prefix and suffix, or NULL for a baseline without a
 * library; call: calls it. */
struct tensorop_interface {
    const char *api, *dtype, *function;
    void (*call)(const struct tensorop_bound *self, const struct tensorop_call *call);
};

/* The table of an operator's baselines.c for a generated adapter; its last entry is empty. */
extern const struct tensorop_interface tensorop_baselines[];

/* tensorop_bind (call.h) by a table of `count` entries. */
static inline int tensorop_bind_among(const struct tensorop_interface *known, size_t count,
                                      struct tensorop_bound *out, const char *api,
                                      const char *dtype, const char *prefix, const char *suffix,
                                      void *(*lookup)(void *handle, const char *symbol),
                                      void *handle) {
    for (size_t i = 0; i < count; i++) {
        char symbol[128];
        if (strcmp(known[i].api, api) != 0 || strcmp(known[i].dtype, dtype) != 0)
            continue;
        out->call = known[i].call;
        out->function = NULL;
        if (!known[i].function)
            return 0;
        snprintf(symbol, sizeof symbol, "%s%s%s", prefix, known[i].function, suffix);
        out->function = lookup(handle, symbol);
        return out->function ? 0 : -1;
    }
    return -1;
}

/* Memory that is kept between calls, so that a baseline does not allocate in each call; NULL
 * without any. */
static inline void *tensorop_room(size_t bytes) {
    static void *kept;
    static size_t size;
    if (bytes > size) {
        free(kept);
        size = posix_memalign(&kept, 1 << 21, bytes) == 0 ? bytes : 0;
    }
    return size ? kept : NULL;
}

#endif
