/* A tuning kit's program: the harness, a library's variants and the judge of their results in
 * one static executable. It reads a plan (from tensorop/kits/plan.py) and appends a line to a
 * file of results for each of its steps.
 *
 * The harness runs in a child process with the same pipes and the same jail as on any target. The
 * parent judges the outputs: the operator's reference computed their limits at export, and the plan
 * has them. All data are little-endian, as on every supported architecture. */
#ifndef TENSOROP_KIT_H
#define TENSOROP_KIT_H

#include "../harness.h"
#include "kit_rows.h"

enum { KIT_VERSION = 2, KIT_CONTROL = 16 /* function number of the first control */ };
enum kit_kind { STEP_CONTROL = 0, STEP_VERIFY = 1, STEP_TIME = 2 };
enum kit_fill { FILL_RAW = 0, FILL_DRAWN = 1, FILL_POISON = 2 };
enum kit_format {
    FORMAT_F64,
    FORMAT_F32,
    FORMAT_F16,
    FORMAT_BF16,
    FORMAT_I8,
    FORMAT_I16,
    FORMAT_I32
};

/* The plan, in this order; every `_at` is an offset in bytes from its start. */
struct kit_head {
    char magic[8];                               /* TOPSKIT */
    uint32_t version, steps, libraries, seconds; /* seconds: limit of a call */
    uint32_t least_vlen, most_vlen;              /* bits; 0: any */
    uint64_t steps_at;
    char arch[16], kit[80], product[80], platform[80];
    char dtype[8][16]; /* per library */
};

/* of: the step's subject, a JSON object; expects: the outcomes that a control may have. */
struct kit_step {
    uint32_t kind, function;
    int32_t slot;
    uint32_t cases;
    int64_t value;
    uint64_t cases_at; /* offsets */
    char expects[64], of[680];
};

/* A request in the harness's format, without its buffers' contents. */
struct kit_case {
    uint32_t head, buffers, expected, reserved; /* head: bytes of the request */
    uint64_t head_at, buffers_at, expected_at;
    char label[232];
};

struct kit_buffer {
    struct wire_buffer wire;
    uint32_t fill, format;
    uint64_t seed, raw_at;
};

/* An output's limits, by element of its storage; gaps: 1 if an element must stay unchanged. */
struct kit_expected {
    uint32_t buffer, second, format, gapped;
    uint64_t count, low_at, high_at, gaps_at;
};

struct plan {
    const uint8_t *at;
    size_t size;
    const struct kit_head *head;
};

/* The result of a step. kind: one of tensorop's outcome kinds. */
struct outcome {
    const char *kind;
    char message[400];
};

/* kit_plan.c */
int plan_open(struct plan *plan, const char *path, char *error, size_t error_size);
const void *plan_part(const struct plan *plan, uint64_t at, uint64_t size); /* ends the process */
uint8_t *plan_content(const struct plan *plan, const struct kit_buffer *buffer); /* malloc */
const char *plan_judge(const struct plan *plan, const struct kit_case *of, unsigned buffer,
                       unsigned second, const uint8_t *left, char *message, size_t size);

/* kit_child.c: runs a case's request in the child. `samples` receives the samples of a timing, one
 * entry after the other. */
struct child;
struct child *child_start(const struct plan *plan, int cpu);
void child_end(struct child *child);
int child_jailed(const struct child *child);
struct outcome child_run(struct child *child, const struct kit_case *of,
                         const struct kit_step *step, struct wire_sample *samples,
                         unsigned *entries, unsigned *rounds);

/* kit_machine.c */
unsigned machine_vlen(void);
double machine_clock(void);
void machine_members(void); /* writes to the current row */

int tensorop_harness(void); /* harness.c's main */

#endif
