/* Executes the plan's steps in order, and appends a line to the results for each. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "kit.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int last_processor(void) {
    cpu_set_t set;
    const char *asked = getenv("TENSOROP_KIT_CPU");
    if (asked && *asked)
        return atoi(asked);
    if (sched_getaffinity(0, sizeof set, &set))
        return -1;
    for (int i = CPU_SETSIZE - 1; i >= 0; i--)
        if (CPU_ISSET(i, &set))
            return i;
    return -1;
}

static int expected(const struct kit_step *step, const char *kind) {
    char words[80], word[40];
    snprintf(words, sizeof words, " %.63s ", step->expects);
    snprintf(word, sizeof word, " %s ", kind);
    return strstr(words, word) != NULL;
}

static struct outcome run_step(const struct plan *plan, const struct kit_step *step, int cpu,
                               struct wire_sample *samples, unsigned *entries, unsigned *rounds,
                               char *label, size_t label_size) {
    struct outcome found = {.kind = "target-lost"};
    const uint64_t *cases = plan_part(plan, step->cases_at, step->cases * sizeof *cases);
    struct child *child = child_start(plan, cpu);
    if (!child) {
        snprintf(found.message, sizeof found.message, "the harness does not start on this machine");
        return found;
    }
    found.kind = "ok";
    for (uint32_t i = 0; i < step->cases && !strcmp(found.kind, "ok"); i++) {
        const struct kit_case *of = plan_part(plan, cases[i], sizeof *of);
        snprintf(label, label_size, "%.231s", of->label);
        found = child_run(child, of, step, samples, entries, rounds);
    }
    child_end(child);
    return found;
}

static void write_step(const struct kit_step *step, uint32_t number, const struct outcome *found,
                       const char *label, const struct wire_sample *samples, unsigned entries,
                       unsigned rounds) {
    static const char *const kinds[] = {"control", "verify", "time"};
    row_add("{\"step\":%u,\"kind\":\"%s\",\"of\":%s,\"outcome\":\"%s\",", number, kinds[step->kind],
            step->of, found->kind);
    row_date();
    row_add(",\"mhz\":%.0f,\"cases\":%u", machine_clock(), step->cases);
    if (found->message[0]) {
        row_add(",\"message\":"), row_text(found->message);
        row_add(",\"case\":"), row_text(label);
    }
    if (step->kind == STEP_TIME && !strcmp(found->kind, "ok")) {
        row_add(",\"ns\":[");
        for (unsigned e = 0; e < entries; e++) {
            row_add("%s[", e ? "," : "");
            for (unsigned i = 0; i < rounds; i++) {
                const struct wire_sample *of = &samples[(size_t)e * rounds + i];
                row_add("%s%.6g", i ? "," : "", of->ns / of->calls);
            }
            row_add("]");
        }
        row_add("]");
    }
    row_end();
}

static void begin(const struct plan *plan, const struct kit_about *about, int cpu, unsigned done) {
    struct child *child = child_start(plan, cpu);
    if (!child)
        kit_die("the harness does not start on this machine");
    const int jailed = child_jailed(child);
    child_end(child);
    rows_begin(about, done);
    machine_members();
    row_add(",\"cpu\":%d,\"jailed\":%s,\"mhz\":%.0f}", cpu, jailed ? "true" : "false",
            machine_clock());
    row_end();
    if (!jailed)
        fprintf(stderr,
                "note: this Linux kernel has no system call filter; only resource limits and "
                "guard pages confine the library\n");
}

static int right_machine(const struct kit_head *head) {
    unsigned vlen = machine_vlen();
    if (head->least_vlen && vlen < head->least_vlen)
        fprintf(stderr, "kit: made for %s with vectors of %u bits or more; this core has %u%s\n",
                head->platform, head->least_vlen, vlen, vlen ? "" : " (no vector extension)");
    else if (head->most_vlen && vlen > head->most_vlen)
        fprintf(stderr, "kit: made for %s with vectors of %u bits; this core has %u\n",
                head->platform, head->most_vlen, vlen);
    else
        return 1;
    fprintf(stderr, "     run it on such a board, or make a kit from a product for this board\n");
    return 0;
}

int main(int count, char **words) {
    struct plan plan;
    char error[300], label[240];
    signal(SIGPIPE, SIG_IGN);
    if (count != 3)
        kit_die("expected: kit PLAN RESULTS");
    if (plan_open(&plan, words[1], error, sizeof error))
        kit_die(error);
    const struct kit_head *head = plan.head;
    if (!right_machine(head))
        return 2;
    const struct kit_about about = {head->kit, head->product, head->platform, head->steps};
    const unsigned done = rows_open(words[2], &about);
    const int cpu = last_processor();
    begin(&plan, &about, cpu, done);
    struct wire_sample *samples = calloc(ENTRY_LIMIT * 64, sizeof *samples);
    const struct kit_step *steps = plan_part(&plan, head->steps_at, head->steps * sizeof *steps);
    for (uint32_t i = done; i < head->steps; i++) {
        const struct kit_step *step = &steps[i];
        unsigned entries = 0, rounds = 0;
        label[0] = 0;
        struct outcome found =
            run_step(&plan, step, cpu, samples, &entries, &rounds, label, sizeof label);
        const bool control = step->kind == STEP_CONTROL, lost = !strcmp(found.kind, "target-lost");
        const bool good = control ? expected(step, found.kind) : !strcmp(found.kind, "ok");
        fprintf(stderr, "%u of %u  %s: %s\n", i + 1, head->steps, step->of, found.kind);
        if (good || (!lost && !control))
            write_step(step, i, &found, label, samples, entries, rounds);
        if (good || (step->kind == STEP_TIME && !lost && strcmp(found.kind, "wrong-result") != 0))
            continue;
        fprintf(stderr, "kit: %s: %s\n", label, found.message);
        if (control)
            fprintf(stderr,
                    "kit: the judge does not work on this machine: the control above must end as "
                    "%s; nothing is measured. Report it to the maintainers of tensorop\n",
                    step->expects);
        else if (!lost)
            rows_finish(i + 1, true);
        return 1;
    }
    rows_finish(head->steps, false);
    free(samples);
    return 0;
}
