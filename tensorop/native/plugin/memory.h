/* When a line reaches the core: caches, lines in flight, prefetchers, buses. Contents do not depend
 * on time, so lanes whose prefetchers behave alike (a variant) share one set of caches. */
#ifndef BOARD_MEMORY_H
#define BOARD_MEMORY_H

#include "config.h"

struct memory_counts {
    uint64_t lines;     /* lines touched, once for each instruction that touched them */
    uint64_t misses[2]; /* of the bare caches, which no prefetcher helps: bent by no assumption */
    uint64_t demand[2]; /* left over by the prefetchers */
    uint64_t prefetched[2];
    uint64_t written_back[2];
    uint64_t untranslated[2]; /* accesses whose page the first, and both, TLBs lacked */
    uint64_t hinted;          /* software prefetches that took effect */
    uint64_t fetched;         /* lines of code that level 1 lacked */
};

enum served { SERVED_L1, SERVED_L2, SERVED_DRAM };

void memory_init(const struct config *config);
void memory_clear(void);

/* Cycles restart at zero: nothing is in flight, contents stay. */
void memory_restart(void);
void memory_rebase(const vec *by);

/* The time at which the line is usable by an access that begins at `start` and would end at `hit`
 * had it found the line in level 1. `served` is what variant 0 found. */
vec memory_access(uint64_t line, vec start, vec hit, const struct uop *by, enum served *served);

/* A software prefetch into level 1. */
void memory_hint(uint64_t line, vec start);

/* A line of code. It is in level 1 of instructions, or arrives there at the time it returns. */
bool memory_has_code(uint64_t line);
vec memory_fetch(uint64_t line, vec start);

/* Counts of variant 0 since the last restart. */
struct memory_counts memory_counts(void);

#endif
