#include "report.h"

#include <inttypes.h>

#define STALL_NAME(name) #name,
const char *const stall_names[STALLS] = {STALL_CAUSES(STALL_NAME)};

static void field(FILE *out, bool *comma, const char *name, uint64_t value) {
    if (!value)
        return;
    fprintf(out, "%s\"%s\": %" PRIu64, *comma ? ", " : "", name, value);
    *comma = true;
}

void report_region(FILE *out, unsigned index, bool ended, const struct counts *counts,
                   const struct memory_counts *memory, unsigned scenarios, const double *cycles,
                   const double *stalls) {
    uint64_t classes[REPORTS] = {0};
    bool comma = false;
    for (int i = 0; i < COSTS; i++)
        classes[cost_report[i]] += counts->by_cost[i];
    fprintf(out, "{\"region\": %u, \"ended\": %s, \"instructions\": {", index,
            ended ? "true" : "false");
    for (int i = 0; i < REPORTS; i++)
        field(out, &comma, report_names[i], classes[i]);
    fputs("}, \"lmul\": {", out);
    comma = false;
    for (int i = 0; i < LMULS; i++)
        field(out, &comma, lmul_names[i], counts->by_lmul[i]);
    fprintf(out,
            "}, \"lines\": %" PRIu64 ", \"misses\": {\"l1\": %" PRIu64 ", \"l2\": %" PRIu64 "}",
            memory->lines, memory->misses[0], memory->misses[1]);
    fprintf(out, ", \"demand\": {\"l1\": %" PRIu64 ", \"l2\": %" PRIu64 "}", memory->demand[0],
            memory->demand[1]);
    fprintf(out, ", \"prefetched\": {\"l1\": %" PRIu64 ", \"l2\": %" PRIu64 "}",
            memory->prefetched[0], memory->prefetched[1]);
    fprintf(out, ", \"written_back\": {\"l1\": %" PRIu64 ", \"l2\": %" PRIu64 "}",
            memory->written_back[0], memory->written_back[1]);
    fprintf(out, ", \"tlb_misses\": {\"l1\": %" PRIu64 ", \"l2\": %" PRIu64 "}",
            memory->untranslated[0], memory->untranslated[1]);
    fprintf(out,
            ", \"software_prefetches\": %" PRIu64 ", \"code_misses\": %" PRIu64 ", \"cycles\": [",
            memory->hinted, memory->fetched);
    for (unsigned i = 0; i < scenarios; i++)
        fprintf(out, "%s%.3f", i ? ", " : "", cycles[i]);
    fputs("], \"stalls\": {", out);
    for (int i = 0; i < STALLS; i++)
        fprintf(out, "%s\"%s\": %.3f", i ? ", " : "", stall_names[i], stalls[i]);
    fputs("}, \"unknown\": [", out);
    for (unsigned i = 0; i < counts->unknowns; i++)
        fprintf(out, "%s\"%08" PRIx32 "\"", i ? ", " : "", counts->unknown[i]);
    fputs("]", out);
}

void report_instruction(FILE *out, bool begins, uint64_t pc, uint64_t runs,
                        const struct stalls *stalls) {
    bool comma = false;
    fprintf(out, "%s[%" PRIu64 ", %" PRIu64 ", {", begins ? ", \"profile\": [" : ", ", pc, runs);
    for (int i = 0; i < STALLS; i++)
        if (stalls->by_cause[i] > 0) {
            fprintf(out, "%s\"%s\": %.3f", comma ? ", " : "", stall_names[i], stalls->by_cause[i]);
            comma = true;
        }
    fputs("}]", out);
}

void report_end(FILE *out, bool profile) {
    fputs(profile ? "]}\n" : "}\n", out);
    fflush(out);
}
