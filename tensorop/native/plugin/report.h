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

/* Writes an instruction of the region: its address, its runs, and its stall cycles by cause. To be
 * called after report_region. begins: this is the region's first instruction. */
void report_instruction(FILE *out, bool begins, uint64_t pc, uint64_t runs,
                        const struct stalls *stalls);

/* Closes the JSON object of the region and its line. profile: report_instruction was called, so the
 * list of instructions is closed too. */
void report_end(FILE *out, bool profile);

#endif
