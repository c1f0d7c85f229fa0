/* Judges calls without a pause between them: each must give the result of the first one. */
#include "kit.h"

#include <stdio.h>

enum { BESIDE = 8, NON_BLOCKING = 1 }; /* BESIDE: results that are written before one is compared */

static size_t whole(size_t bytes) { return bytes ? (bytes + 255) / 256 * 256 : 256; }

const char *soak_arm(const struct arm *arm, const struct judged *p, int calls, uint64_t seed,
                     int shift) {
    static stream on;
    static char said[200];
    struct lines of = result_lines(p);
    const size_t size = operand_bytes(p, RESULT);
    struct buffer inputs[OPERANDS], results[BESIDE],
        wanted = buffer_make(size, 0), begun = buffer_make(size, 0), differ = buffer_make(8, 0),
        workspace = buffer_make(whole(arm->needs(arm, p)), 0);
    pointer at[OPERANDS];
    bool intact = true;
    if (!on)
        must(cu.cuStreamCreate(&on, NON_BLOCKING), "a stream");
    for (int i = 0; i < RESULT; i++) {
        inputs[i] = buffer_make(operand_bytes(p, i), (size_t)shift * operand_element(p, i));
        at[i] = inputs[i].at;
        operand_fill(p, i, at[i], seed + (uint64_t)i);
    }
    if (reads_result(p)) /* else results begin as poison */
        operand_fill(p, RESULT, begun.at, seed + RESULT);
    for (int i = 0; i < BESIDE; i++) {
        results[i] = buffer_make(size, (size_t)shift * operand_element(p, RESULT));
        launch("kit_copy", 264, 1, 1, 256, NULL,
               (void *[]){&begun.at, &results[i].at, &of.rows, &of.words, &of.pitch});
    }
    must(cu.cuMemsetD8_v2(differ.at, 0, 8), "a count is begun");
    must(cu.cuCtxSynchronize(), "operands");
    int status = 0;
    for (int call = 0; call < calls && !status; call += BESIDE) {
        for (int i = 0; i < BESIDE && !status; i++) {
            at[RESULT] = results[i].at;
            status = arm->run(arm, p, at, workspace.at, on);
        }
        if (call == 0)
            must(cu.cuMemcpyDtoDAsync_v2(wanted.at, results[0].at, size, on), "a copy");
        for (int i = 0; i < BESIDE && !status; i++)
            launch("kit_same", 264, 1, 1, 256, on,
                   (void *[]){&results[i].at, &wanted.at, &begun.at, &of.rows, &of.words, &of.pitch,
                              &differ.at});
    }
    uint64_t words = 0;
    status = status ? status : cu.cuCtxSynchronize();
    must(cu.cuMemcpyDtoH_v2(&words, differ.at, 8), "a count");
    for (int i = 0; i < RESULT; i++)
        intact &= buffer_intact(&inputs[i]), buffer_free(&inputs[i]);
    for (int i = 0; i < BESIDE; i++) {
        intact &= buffer_intact(&results[i]) && !gaps_changed(results[i].at, of);
        buffer_free(&results[i]);
    }
    intact &= buffer_intact(&workspace);
    buffer_free(&workspace), buffer_free(&wanted), buffer_free(&begun), buffer_free(&differ);
    if (status)
        snprintf(said, sizeof said, "the call or the kernel returned status %d", status);
    else if (words)
        snprintf(said, sizeof said,
                 "in %d calls without a pause, %llu words of results differ from the first call's",
                 calls, (unsigned long long)words);
    return status || words ? said : intact ? NULL : "wrote outside a buffer";
}
