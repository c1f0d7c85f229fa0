/* Judges whether a call is correct and no other memory was changed. */
#include "kit.h"

#include <stdio.h>

enum { NON_BLOCKING = 1 };

/* The operands of a judgement. before: the result before the call; copy: the result after the call
 * on a second stream. */
struct operands {
    struct buffer of[OPERANDS], before, workspace, copy;
};

static uint64_t hash(const struct buffer *of) {
    const int64_t words = (int64_t)of->bytes / 2;
    return lines_hash(of->at, (struct lines){1, words, words});
}

static size_t whole(size_t bytes) { return (bytes + 255) / 256 * 256; }

static int held_run(const struct arm *arm, const struct judged *p, const struct operands *o,
                    const pointer *at, stream first, stream second) {
    static int *released;
    if (!released)
        must(cu.cuMemHostAlloc((void **)&released, sizeof *released, 2), "a flag");
    *released = 0;
    launch("kit_hold", 1, 1, 1, 1, first, (void *[]){&released});
    launch("kit_hold", 1, 1, 1, 1, NULL, (void *[]){&released});
    int status = arm->run(arm, p, at, o->workspace.at, second);
    must(cu.cuMemcpyDtoDAsync_v2(o->copy.at, at[RESULT], o->of[RESULT].bytes, second), "a copy");
    status = status ? status : cu.cuStreamSynchronize(second);
    *(volatile int *)released = 1;
    return status ? status : cu.cuCtxSynchronize();
}

/* Sets the elements of the result from `seed` or to poison. The gaps between rows are always
 * poison. */
static void prepare_result(const struct judged *p, struct operands *o, bool keep, uint64_t seed) {
    struct lines of = result_lines(p);
    struct buffer *const result = &o->of[RESULT];
    if (!reads_result(p) && keep)
        return;
    must(cu.cuMemsetD8_v2(result->at, POISON, result->bytes), "poison");
    if (!reads_result(p))
        return;
    operand_fill(p, RESULT, o->before.at, seed);
    launch("kit_copy", 264, 1, 1, 256, NULL,
           (void *[]){&o->before.at, &result->at, &of.rows, &of.words, &of.pitch});
}

static const char *judged_runs(const struct arm *arm, const struct judged *p, struct operands *o,
                               uint64_t seed) {
    static stream first, second;
    static char said[300];
    const struct lines lines = result_lines(p);
    uint64_t found = 0;
    pointer at[OPERANDS];
    for (int i = 0; i < OPERANDS; i++)
        at[i] = o->of[i].at;
    if (!first) {
        must(cu.cuStreamCreate(&first, NON_BLOCKING), "a stream");
        must(cu.cuStreamCreate(&second, NON_BLOCKING), "a stream");
    }
    /* Run 0 has poisoned result and workspace. Run 1 has other data in the same buffers, with
     * result and workspace unchanged. Run 2 repeats the data of run 1 with poison, on a second
     * stream, while the first stream and the legacy stream are blocked. */
    for (int run = 0; run < 3; run++) {
        for (int i = 0; i < RESULT && run < 2; i++)
            operand_fill(p, i, at[i], seed + 10 * (uint64_t)run + (uint64_t)i);
        prepare_result(p, o, run == 1, seed + 5 + (run > 0));
        if (run != 1)
            must(cu.cuMemsetD8_v2(o->workspace.at, run ? 0x5a : POISON, o->workspace.bytes),
                 "poison");
        uint64_t were[OPERANDS];
        for (int i = 0; i < RESULT; i++)
            were[i] = hash(&o->of[i]);
        must(cu.cuCtxSynchronize(), "operands");
        int status = run == 2 ? held_run(arm, p, o, at, first, second)
                              : arm->run(arm, p, at, o->workspace.at, first);
        status = status ? status : cu.cuCtxSynchronize();
        if (status) {
            snprintf(said, sizeof said, "the call or the kernel returned status %d", status);
            return said;
        }
        bool intact = buffer_intact(&o->workspace), kept = true;
        for (int i = 0; i < OPERANDS; i++)
            intact &= buffer_intact(&o->of[i]);
        if (!intact)
            return "wrote outside a buffer";
        if (gaps_changed(at[RESULT], lines))
            return "wrote between the rows of the result";
        for (int i = 0; i < RESULT; i++)
            kept &= were[i] == hash(&o->of[i]);
        if (!kept)
            return "changed an input";
        const uint64_t left = lines_hash(run == 2 ? o->copy.at : at[RESULT], lines);
        if (run == 2)
            return left == found ? NULL : "a second call on another stream gave another result";
        found = left;
        struct reference *r = reference_make(p, at, seed + 99);
        const char *wrong = judge_result(r, p, o->before.at, at[RESULT]);
        reference_free(r);
        if (wrong) {
            snprintf(said, sizeof said, "%s%s",
                     run ? "with the result unchanged from the previous call: " : "", wrong);
            return said;
        }
    }
    return NULL;
}

const char *judge_arm(const struct arm *arm, const struct judged *p, uint64_t seed, int shift) {
    const size_t wanted = arm->needs(arm, p), size = operand_bytes(p, RESULT);
    struct operands o = {.before = buffer_make(size, 0),
                         .workspace = buffer_make(wanted ? whole(wanted) : 256, 0),
                         .copy = buffer_make(size, 0)};
    for (int i = 0; i < OPERANDS; i++)
        o.of[i] = buffer_make(operand_bytes(p, i), (size_t)shift * operand_element(p, i));
    const char *wrong = judged_runs(arm, p, &o, seed);
    for (int i = 0; i < OPERANDS; i++)
        buffer_free(&o.of[i]);
    buffer_free(&o.before), buffer_free(&o.workspace), buffer_free(&o.copy);
    return wrong;
}
