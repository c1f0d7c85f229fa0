/* Goes through the plan, step by step, and appends a line to the results for each. A file that has
 * steps is gone on with; a line that was cut off is taken away first. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "kit.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { LINE = 1 << 17, SCHEMA = 1 };

static char line[LINE];
static size_t used;

static void add(const char *form, ...) {
    va_list rest;
    va_start(rest, form);
    int n = vsnprintf(line + used, LINE - used, form, rest);
    va_end(rest);
    if (n < 0 || used + (size_t)n + 64 > LINE) {
        fprintf(stderr, "kit: a row is too long\n");
        exit(2);
    }
    used += (size_t)n;
}

static void add_text(const char *text) { used += json_text(line + used, LINE - used - 64, text); }

static void add_date(void) {
    char date[32];
    time_t now = time(NULL);
    struct tm utc;
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    add("\"date\":\"%s\"", date);
}

/* FNV-1a: a row that was cut or changed by accident is seen. */
static uint64_t sum(const char *at, size_t size) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ (uint8_t)at[i]) * 0x100000001b3u;
    return hash;
}

/* The row in one write, then on the disk. */
static void flush_row(int fd) {
    uint64_t of = sum(line, used);
    used += (size_t)snprintf(line + used, LINE - used, ",\"sum\":\"%016llx\"}\n",
                             (unsigned long long)of);
    if (write(fd, line, used) != (ssize_t)used || fsync(fd)) {
        fprintf(stderr, "kit: the results cannot be written: is the disk full?\n");
        exit(2);
    }
    used = 0;
}

/* The steps that a file of results has, after what was cut off is away; -1: of another kit. */
static long resume(int fd, const struct kit_head *head) {
    struct stat about;
    char want[128];
    long steps = -1;
    off_t whole = 0;
    if (fstat(fd, &about))
        return -1;
    char *text = malloc((size_t)about.st_size + 1);
    if (!text || pread(fd, text, (size_t)about.st_size, 0) != about.st_size)
        return -1;
    text[about.st_size] = 0;
    snprintf(want, sizeof want, "\"kit\":\"%s\"", head->kit);
    for (char *at = text, *end; (end = strchr(at, '\n')); at = end + 1) {
        *end = 0;
        if (at == text && !strstr(at, want)) {
            free(text);
            return -1;
        }
        steps = at == text ? 0 : steps + !strncmp(at, "{\"step\":", 8);
        if (!strncmp(at, "{\"end\":", 7)) /* also where it ended early: nothing changes that */
            steps = (long)head->steps;
        whole = end + 1 - text;
    }
    free(text);
    if (ftruncate(fd, whole) || lseek(fd, whole, SEEK_SET) < 0)
        return -1;
    return steps < 0 ? 0 : steps;
}

static int last_processor(void) {
    cpu_set_t set;
    const char *asked = getenv("CPU");
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
        snprintf(found.message, sizeof found.message, "the harness does not start here");
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

static void write_step(int fd, const struct kit_step *step, uint32_t number,
                       const struct outcome *found, const char *label,
                       const struct wire_sample *samples, unsigned entries, unsigned rounds) {
    static const char *const kinds[] = {"control", "verify", "time"};
    add("{\"step\":%u,\"kind\":\"%s\",\"of\":%s,\"outcome\":\"%s\",", number, kinds[step->kind],
        step->of, found->kind);
    add_date();
    add(",\"mhz\":%.0f,\"cases\":%u", machine_clock(), step->cases);
    if (found->message[0]) {
        add(",\"message\":");
        add_text(found->message);
        add(",\"case\":");
        add_text(label);
    }
    if (step->kind == STEP_TIME && !strcmp(found->kind, "ok")) {
        add(",\"ns\":[");
        for (unsigned e = 0; e < entries; e++) {
            add("%s[", e ? "," : "");
            for (unsigned i = 0; i < rounds; i++) {
                const struct wire_sample *of = &samples[(size_t)e * rounds + i];
                add("%s%.6g", i ? "," : "", of->ns / of->calls);
            }
            add("]");
        }
        add("]");
    }
    flush_row(fd);
}

static int begin(const struct plan *plan, int fd, int cpu, long done) {
    const struct kit_head *head = plan->head;
    static char machine[4096];
    struct child *child = child_start(plan, cpu);
    if (!child) {
        fprintf(stderr, "kit: the harness does not start here\n");
        return -1;
    }
    int jailed = child_jailed(child);
    child_end(child);
    machine_json(machine, sizeof machine);
    struct stat about;
    if (fstat(fd, &about) == 0 && about.st_size == 0)
        add("{\"schema\":%d,\"kit\":\"%s\",\"product\":\"%s\",\"platform\":\"%s\",\"steps\":%u,",
            SCHEMA, head->kit, head->product, head->platform, head->steps);
    else
        add("{\"again\":%ld,", done);
    add_date();
    add(",\"machine\":{%s,\"cpu\":%d,\"jailed\":%s,\"mhz\":%.0f}", machine, cpu,
        jailed ? "true" : "false", machine_clock());
    flush_row(fd);
    if (!jailed)
        fprintf(stderr, "note: this kernel filters no system calls; limits and guard pages alone "
                        "hold kernels\n");
    return 0;
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
    fprintf(stderr, "     run it on such a board, or make a kit of a product for this one\n");
    return 0;
}

static void write_end(int fd, uint32_t steps) {
    add("{\"end\":%u,", steps);
    add_date();
    flush_row(fd);
}

int main(int count, char **words) {
    struct plan plan;
    char error[300], label[240];
    signal(SIGPIPE, SIG_IGN);
    if (count != 3 || plan_open(&plan, words[1], error, sizeof error)) {
        fprintf(stderr, "kit: %s\n", count != 3 ? "expected: kit PLAN RESULTS" : error);
        return 2;
    }
    const struct kit_head *head = plan.head;
    if (!right_machine(head))
        return 2;
    int fd = open(words[2], O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    long done = fd < 0 ? -1 : resume(fd, head);
    if (done < 0) {
        fprintf(stderr, "kit: %s cannot be written or is of another kit; move it away\n", words[2]);
        return 2;
    }
    if ((uint32_t)done >= head->steps) {
        fprintf(stderr, "kit: %s has all its rows\n", words[2]);
        return 0;
    }
    int cpu = last_processor();
    if (begin(&plan, fd, cpu, done))
        return 2;
    struct wire_sample *samples = calloc(ENTRY_LIMIT * 64, sizeof *samples);
    const struct kit_step *steps = plan_part(&plan, head->steps_at, head->steps * sizeof *steps);
    for (uint32_t i = (uint32_t)done; i < head->steps; i++) {
        const struct kit_step *step = &steps[i];
        unsigned entries = 0, rounds = 0;
        label[0] = 0;
        struct outcome found =
            run_step(&plan, step, cpu, samples, &entries, &rounds, label, sizeof label);
        int lost = !strcmp(found.kind, "target-lost");
        int good =
            step->kind == STEP_CONTROL ? expected(step, found.kind) : !strcmp(found.kind, "ok");
        fprintf(stderr, "%u of %u  %s: %s\n", i + 1, head->steps, step->of, found.kind);
        if (good || (!lost && step->kind != STEP_CONTROL)) {
            write_step(fd, step, i, &found, label, samples, entries, rounds);
        }
        if (good || (step->kind == STEP_TIME && !lost && strcmp(found.kind, "wrong-result") != 0))
            continue;
        fprintf(stderr, "kit: %s: %s\n", label, found.message);
        if (step->kind == STEP_CONTROL)
            fprintf(stderr,
                    "kit: the judge is broken on this machine: this control must end as %s; "
                    "nothing is measured\n",
                    step->expects);
        else if (!lost)
            fprintf(stderr, "kit: the library is wrong on this machine and must not be used on it; "
                            "import this file to have it said in the product's folder\n");
        if (step->kind != STEP_CONTROL && !lost)
            write_end(fd, i + 1);
        return 1;
    }
    write_end(fd, head->steps);
    free(samples);
    return 0;
}
