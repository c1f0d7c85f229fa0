/* The core's description, which Python writes from a platform file. */
#ifndef BOARD_CONFIG_H
#define BOARD_CONFIG_H

#include "board.h"

enum { MAX_UNITS = 16, NO_UNIT = MAX_UNITS, MAX_VARIANTS = 8, MAX_STREAMS = 32, LEVELS = 3 };

struct price {
    const vec *occupancy;
    const vec *also; /* of the class's second unit */
    const vec *latency;
    const vec *forward;
    const vec *slot;
    const vec *misaligned; /* of contiguous vector accesses */
};

struct shape {
    unsigned sets;
    unsigned ways;
};

/* A prefetcher into one cache level. `train` successive misses on neighbouring lines start a
 * stream; each further miss or hit of the stream requests lines up to `distance` ahead. */
struct prefetch {
    unsigned streams;
    unsigned distance;
    unsigned train;
    bool scalar_only;
};

/* A ring of resources whose number depends on the scenario: bias[i] is 0 in scenarios with
 * `depth[i]` of them, and LONG_AGO in the others. */
enum { RING = 64, DEPTHS = 4 };
struct ring_size {
    unsigned n;
    unsigned depth[DEPTHS];
    vec bias[DEPTHS];
};

struct config {
    unsigned scenarios;
    unsigned vlen;
    unsigned dlen;
    bool vl_dependent;
    bool cold;
    bool profile; /* also report each instruction's stalls */
    char pipeline[16];
    unsigned units;
    uint8_t unit[COSTS];
    uint8_t shared[COSTS];
    uint8_t also[COSTS];
    bool whole[MAX_UNITS + 1]; /* an instruction starts only if the rest of the cycle is enough */
    struct price price[COSTS][LMULS][EEWS];

    vec mispredict;        /* cycles */
    vec taken;             /* cycles of a taken branch beyond its slot */
    vec write_after_read;  /* delay of a vector load after the last reader of its register */
    vec chained;           /* 1: registers of a group become ready one after the other */
    vec load_miss_stops;   /* 0: an integer-load miss stalls issue, LONG_AGO: it does not */
    bool load_may_stop;    /* it does in some scenario */
    vec fma_blocks_load;   /* FP loads cannot issue this long after a multiply-add; 0: they can */
    bool fma_may_block;    /* nonzero in some scenario */
    bool late_store_data;  /* a store issues before its data, which it awaits in the store buffer */
    vec shared_bias;       /* 0: the ports of `shared` are one, LONG_AGO: they are two */
    unsigned vector_queue; /* vector instructions that wait while scalar ones run; 0: none */
    unsigned window;       /* out of order: instructions in flight */

    unsigned line_shift;
    struct shape cache[2];
    struct shape icache;
    unsigned boundary; /* bytes; a contiguous vector access across one takes longer */
    vec split;         /* cycles for each element of a misaligned vector access; 0: none */
    bool splits;
    struct shape tlb[2];  /* for data, 4 KiB pages; entries = sets x ways */
    vec translation[2];   /* cycles added if the first one misses, and if both do */
    vec latency[LEVELS];  /* load to use, of levels 2 and DRAM (0 is part of the load's latency) */
    vec interval[LEVELS]; /* cycles between lines arriving from there */
    vec write_interval[LEVELS]; /* between lines written there; level 2 reads at the same time */
    struct ring_size misses;    /* outstanding lines of a core */
    struct ring_size store_buffer;
    vec drain; /* cycles a store needs to leave the buffer into level 1 */

    unsigned write_streaming; /* leading lines of a run of stores that are still read; 0: all */

    unsigned variants; /* scenarios whose caches behave alike share a variant */
    vec variant_bias[MAX_VARIANTS];
    struct prefetch prefetch[MAX_VARIANTS][2];
    vec nothing;
};

/* Reads the file; prints a mistake to stderr and returns false. */
bool config_read(const char *path, struct config *config);

/* Memory for one vec, aligned, never freed. */
vec *vec_new(void);

/* The time at which a ring's next resource is free, after `next` uses. */
static inline vec ring_free(const struct ring_size *size, const vec slots[RING], unsigned next) {
    vec t = slots[(next - size->depth[0]) % RING];
    if (size->n == 1)
        return t;
    t = vadd(t, size->bias[0]);
    for (unsigned i = 1; i < size->n; i++)
        t = vmax(t, vadd(slots[(next - size->depth[i]) % RING], size->bias[i]));
    return t;
}

/* Cycles between the registers of a group of `group` for an occupancy; zero if not chained. */
const vec *config_step(const struct config *config, const vec *occupancy, int group);

#endif
