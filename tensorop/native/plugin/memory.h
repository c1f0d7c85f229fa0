/* The time at which a line reaches the core: caches, lines in flight, prefetchers, buses.
 * Contents do not depend on time, so lanes with equal prefetchers (a variant) share one set of
 * caches. */
#ifndef BOARD_MEMORY_H
#define BOARD_MEMORY_H

#include "config.h"

struct memory_counts {
    uint64_t lines;     /* lines touched, once for each instruction that touched them */
    uint64_t misses[2]; /* of the caches without prefetchers, so independent of assumptions */
    uint64_t demand[2]; /* that remain with the prefetchers */
    uint64_t prefetched[2];
    uint64_t written_back[2];
    uint64_t untranslated[2]; /* accesses whose page missed the first TLB, and both */
    uint64_t hinted;          /* executed software prefetches */
    uint64_t fetched;         /* lines of code that missed level 1 */
};

enum served { SERVED_L1, SERVED_L2, SERVED_DRAM };

void memory_init(const struct config *config);
void memory_clear(void);

/* Cycles restart at zero: nothing is in flight, contents stay. */
void memory_restart(void);
void memory_rebase(const vec *by);

/* The time at which an access gets the line. It begins at `start` and ends at `hit` if level 1
 * has the line. `served` is the level that serves variant 0. */
vec memory_access(uint64_t line, vec start, vec hit, const struct uop *by, enum served *served);

/* A software prefetch into level 1. */
void memory_hint(uint64_t line, vec start);

/* A line of code: whether level 1 has it, and the time of its arrival there if not. */
bool memory_has_code(uint64_t line);
vec memory_fetch(uint64_t line, vec start);

/* Counts of variant 0 since the last restart. */
struct memory_counts memory_counts(void);

#endif
