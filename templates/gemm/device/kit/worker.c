/* The process that uses the device. It executes the steps and writes a line for each. If a step
 * ends this process, the parent records it. */
#define _GNU_SOURCE
#include "kit.h"
#include "settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

static void tell(int to) {
    const char *row = row_so_far();
    row_add("\n");
    for (size_t at = 0, size = strlen(row); at < size;) {
        const ssize_t wrote = write(to, row + at, size - at);
        if (wrote <= 0)
            exit(3);
        at += (size_t)wrote;
    }
    row_clear();
}

static void add_verdict(const char *outcome, const char *message, const char *of) {
    row_add(",\"outcome\":\"%s\"", outcome);
    if (message) {
        row_add(",\"message\":"), row_text(message);
        row_add(",\"case\":"), row_text(of);
    }
}

static uint64_t secret(void) {
    uint64_t seed;
    if (getrandom(&seed, sizeof seed, 0) != sizeof seed)
        exit(3);
    return seed >> 8;
}

static void control(int fault) {
    const char *wrong = fault < 0 ? judge_oracle(secret()) : NULL;
    if (fault >= 0) {
        const struct arm arm = arm_of_fault(fault);
        const struct judged p = fault_problem(fault);
        wrong = judge_arm(&arm, &p, secret(), 0);
    }
    const bool refused = fault > 0;
    row_add("\"kind\":\"control\",\"of\":{\"control\":\"%s\"}",
            fault < 0 ? "oracle" : fault_name(fault));
    add_verdict((wrong != NULL) == refused ? "ok" : "judge-broken", wrong, "");
}

/* There are no cases if the device has no code for the variant's type. */
static void verify(int variant, const char *shapes) {
    struct arm arm = arm_of_variant(variant);
    static const struct {
        int pad, shift;
        float alpha, beta;
    } forms[] = {{0, 0, 1, 0}, {8, 0, -0.625f, 0.75f}, {3, 1, 1, 0}, {0, 0, 1, 1}};
    char label[200] = "";
    const char *wrong = NULL;
    int cases = 0, m, n, k, batch, taken;
    arm.name = variant < 0 ? "the library's choice" : arm.name;
    for (; !wrong && sscanf(shapes, " %dx%dx%dx%d%n", &m, &n, &k, &batch, &taken) == 4;
         shapes += taken)
        for (int i = 0; i < 32 && !wrong; i++) {
            const int form = i / 8, bf16 = i & 1, a = i >> 1 & 1, b = i >> 2 & 1;
            struct judged p = problem_of(m, n, k, batch, bf16, a, b, forms[form].pad);
            p.alpha = forms[form].alpha, p.beta = forms[form].beta;
            if (!variant_serves(variant, &p, forms[form].shift))
                continue;
            cases++;
            wrong = judge_arm(&arm, &p, secret(), forms[form].shift);
            snprintf(label, sizeof label, "%s %dx%dx%dx%d %s %c%c pad %d shift %d alpha %g beta %g",
                     arm.name, m, n, k, batch, bf16 ? "bf16" : "f16", a ? 'T' : 'N', b ? 'T' : 'N',
                     forms[form].pad, forms[form].shift, (double)p.alpha, (double)p.beta);
        }
    row_add("\"kind\":\"verify\",\"of\":{\"variant\":%d},\"cases\":%d", variant, cases);
    add_verdict(wrong ? "wrong-result" : "ok", wrong, label);
}

static void timing(const char *words) {
    char dtype[16];
    int a, b, m, n, k, batch;
    if (sscanf(words, "%15s %d %d %d %d %d %d", dtype, &a, &b, &m, &n, &k, &batch) != 7)
        exit(3);
    const struct judged p = problem_of(m, n, k, batch, !strncmp(dtype, "bf16", 4), a, b, 0);
    row_add("\"kind\":\"time\",\"of\":{\"dtype\":\"%s\",\"options\":{\"a_along_m\":%d,\"b_along_k\":%d},"
            "\"dims\":{\"m\":%d,\"n\":%d,\"k\":%d,\"batch\":%d}},\"chosen\":%d",
            dtype, a, b, m, n, k, batch, variant_chosen(&p));
    const char *outcome = clock_problem(&p, settings.rounds, secret());
    add_verdict(outcome, NULL, "");
}

void worker(char **steps, unsigned count, unsigned first, int to) {
    const char *missing = driver_open();
    if (missing) {
        fprintf(stderr, "kit: %s\n", missing);
        exit(2);
    }
    judge_every = settings.every, clock_l2 = settings.l2, clock_graph_us = settings.graph_us;
    clock_heat_ms = settings.heat_ms;
    variants_open();
    board_members(), tell(to);
    for (unsigned i = first; i < count; i++) {
        int number = 0, taken = 0;
        if (sscanf(steps[i], "control %d", &number) == 1)
            control(number);
        else if (sscanf(steps[i], "verify %d%n", &number, &taken) == 1)
            verify(number, steps[i] + taken);
        else
            timing(steps[i] + strlen("time"));
        tell(to);
    }
}
