/* A stream prefetcher: follows runs of neighbouring lines, upwards or downwards. */
#ifndef BOARD_PREFETCHER_H
#define BOARD_PREFETCHER_H

#include "config.h"

struct stream {
    uint64_t next;  /* the line that continues the stream */
    uint64_t asked; /* the furthest requested line */
    int direction;
    unsigned seen;
    uint64_t used; /* for replacement */
};

struct prefetcher {
    struct prefetch how;
    struct stream streams[MAX_STREAMS];
    uint64_t clock;
};

void prefetcher_init(struct prefetcher *prefetcher, const struct prefetch *how);

/* Trains on a miss of `line`, or on the first hit of a prefetched one. Writes the lines to
 * request to `wanted` (at most how.distance) and returns their number. */
unsigned prefetcher_touch(struct prefetcher *prefetcher, uint64_t line, uint64_t *wanted);

#endif
