/* The core, as Python wrote it from a platform file. */
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

/* A prefetcher into one cache level. Streams: `train` misses in a row on neighbouring lines start
 * one, each further miss or hit of the stream asks for lines up to `distance` ahead. */
struct prefetch {
    unsigned streams;
    unsigned distance;
    unsigned train;
    bool scalar_only;
};

/* A ring of resources whose number differs between scenarios: the scenarios with `depth[i]` of them
 * have bias[i] 0, the others LONG_AGO. */
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
    char pipeline[16];
    unsigned units;
    uint8_t unit[COSTS];
    uint8_t shared[COSTS];
    uint8_t also[COSTS];
    bool whole[MAX_UNITS + 1]; /* an instruction starts there only where its cycle has room */
    struct price price[COSTS][LMULS][EEWS];

    vec mispredict;       /* cycles */
    vec taken;            /* cycles of a taken branch beyond its slot */
    vec write_after_read; /* a vector load starts this long after the last reader of its register */
    vec chained;          /* 1: registers of a group become ready one after the other */
    vec load_miss_stops;  /* 0: an integer load that misses stops issue, LONG_AGO: it does not */
    bool load_may_stop;   /* it does somewhere */
    vec fma_blocks_load; /* no load of an FP register so many cycles after a multiply-add; 0: any */
    bool fma_may_block;  /* that is not 0 everywhere */
    bool late_store_data;  /* a store issues before its data and waits for it in the store buffer */
    vec shared_bias;       /* 0: the ports of `shared` are one, LONG_AGO: they are two */
    unsigned vector_queue; /* vector instructions waiting while the scalar side goes on; 0: none */
    unsigned window;       /* out of order: instructions in flight */

    unsigned line_shift;
    struct shape cache[2];
    struct shape icache;
    unsigned boundary; /* bytes; a contiguous vector access that crosses one takes longer */
    vec split; /* cycles an element of a vector access whose elements are misaligned; 0: none */
    bool splits;
    struct shape tlb[2];  /* of data, 4 KiB pages; entries = sets x ways */
    vec translation[2];   /* cycles added when the first misses, and when both do */
    vec latency[LEVELS];  /* load to use, of levels 2 and DRAM (0 is part of the load's latency) */
    vec interval[LEVELS]; /* cycles between lines arriving from there */
    vec write_interval[LEVELS]; /* between lines written there; level 2 takes them beside reads */
    struct ring_size misses;    /* lines a core waits for at once */
    struct ring_size store_buffer;
    vec drain; /* cycles a store needs to leave the buffer into level 1 */

    unsigned write_streaming; /* lines of a run of stores that are read first; 0: all */

    unsigned variants; /* scenarios whose caches behave alike share a variant */
    vec variant_bias[MAX_VARIANTS];
    struct prefetch prefetch[MAX_VARIANTS][2];
    vec nothing;
};

/* Reads the file; on a mistake prints it to stderr and returns false. */
bool config_read(const char *path, struct config *config);

/* Memory for one vec, aligned, never freed. */
vec *vec_new(void);

/* The time at which the next of a ring's resources is free, `next` having been taken so far. */
static inline vec ring_free(const struct ring_size *size, const vec slots[RING], unsigned next) {
    vec t = slots[(next - size->depth[0]) % RING];
    if (size->n == 1)
        return t;
    t = vadd(t, size->bias[0]);
    for (unsigned i = 1; i < size->n; i++)
        t = vmax(t, vadd(slots[(next - size->depth[i]) % RING], size->bias[i]));
    return t;
}

/* Cycles between the registers of a group of `group` for an occupancy, zero where not chained. */
const vec *config_step(const struct config *config, const vec *occupancy, int group);

#endif
