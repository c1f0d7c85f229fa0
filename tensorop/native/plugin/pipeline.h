/* A core's pipeline: turns resolved instructions and the lines they touched into cycles. */
#ifndef BOARD_PIPELINE_H
#define BOARD_PIPELINE_H

#include "config.h"

/* Why the best-fit scenario (lane 0) waited. X(name). */
#define STALL_CAUSES(X)                                                                            \
    X(compute)                                                                                     \
    X(load_l1)                                                                                     \
    X(load_l2)                                                                                     \
    X(load_dram)                                                                                   \
    X(unit)                                                                                        \
    X(write_after_read)                                                                            \
    X(store_buffer)                                                                                \
    X(queue)                                                                                       \
    X(branch)
#define AS_STALL(name) STALL_##name,
enum stall { STALL_CAUSES(AS_STALL) STALLS };
#undef AS_STALL

struct pipeline {
    const char *name;
    void (*init)(const struct config *config);
    /* A region begins: empty pipeline, cycle zero. */
    void (*begin)(void);
    /* Instructions [from, to) of a block. `touched` points at the first record of `from` and is
     * moved past the last one used. `all` are the block's records, for prefetches. */
    void (*run)(const struct uop *uops, unsigned from, unsigned to, const struct touched **touched,
                const struct touched *all, const struct touched *end);
    /* The block's branch. */
    void (*branch)(bool taken, bool mispredicted);
    /* Cycles of each lane until all is done; stall cycles of lane 0 by cause. */
    void (*end)(double cycles[LANES], double stalls[STALLS]);
};

extern const struct pipeline pipeline_inorder;
extern const struct pipeline pipeline_ooo;
extern const struct pipeline *const pipelines[];
extern const char *const stall_names[STALLS];

#endif
