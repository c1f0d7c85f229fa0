/* One JSON object for each region, on a line of its own. */
#ifndef BOARD_REPORT_H
#define BOARD_REPORT_H

#include "config.h"
#include "memory.h"
#include "pipeline.h"

enum { UNKNOWN_SHOWN = 8 };

struct counts {
    uint64_t by_cost[COSTS];
    uint64_t by_lmul[LMULS];
    uint32_t unknown[UNKNOWN_SHOWN];
    unsigned unknowns;
};

void report_region(FILE *out, unsigned index, bool ended, const struct counts *counts,
                   const struct memory_counts *memory, unsigned scenarios, const double *cycles,
                   const double *stalls);

/* Then its instructions: address, runs, and stall cycles by cause. begins: it is the first one. */
void report_instruction(FILE *out, bool begins, uint64_t pc, uint64_t runs,
                        const struct stalls *stalls);

/* Ends the region's line. profile: there were instructions. */
void report_end(FILE *out, bool profile);

#endif
