/* A core's pipeline: turns resolved instructions and the lines they touched into cycles. */
#ifndef BOARD_PIPELINE_H
#define BOARD_PIPELINE_H

#include "config.h"

/* Causes of waits of the best-fit scenario (lane 0). X(name). */
#define STALL_CAUSES(X)                                                                            \
    X(compute)                                                                                     \
    X(load_l1)                                                                                     \
    X(load_l2)                                                                                     \
    X(load_dram)                                                                                   \
    X(unit)                                                                                        \
    X(write_after_read)                                                                            \
    X(store_buffer)                                                                                \
    X(queue)                                                                                       \
    X(branch)                                                                                      \
    X(fence)                                                                                       \
    X(fetch)
#define AS_STALL(name) STALL_##name,
enum stall { STALL_CAUSES(AS_STALL) STALLS };
#undef AS_STALL

/* Stall cycles of one instruction, by cause. */
struct stalls {
    double by_cause[STALLS];
};

/* Those of the instructions of the block that runs, by index; NULL: nobody asked. */
extern struct stalls *block_stalls;

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
    /* The next instructions are on a line of code that missed level 1. */
    void (*fetch)(uint64_t line);
    /* Cycles of each lane until the last instruction ends; stall cycles of lane 0 by cause. */
    void (*end)(double cycles[LANES], double stalls[STALLS]);
};

/* The additional time of an access at `address` because of its alignment; zero: none. */
static inline vec misalignment(const struct uop *u, uint64_t address, unsigned boundary) {
    if (u->split && address & u->element)
        return *u->split;
    return (address & (boundary - 1)) + u->piece > boundary ? *u->misaligned : vset(0);
}

extern const struct pipeline pipeline_inorder;
extern const struct pipeline pipeline_ooo;
extern const struct pipeline *const pipelines[];
extern const char *const stall_names[STALLS];

#endif
