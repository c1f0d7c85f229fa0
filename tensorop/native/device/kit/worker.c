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
        if (!wrong && settings.calls)
            wrong = soak_arm(&arm, &p, settings.calls, secret(), 0);
    }
    const bool refused = fault > 0;
    row_add("\"kind\":\"control\",\"of\":{\"control\":\"%s\"}",
            fault < 0 ? "oracle" : fault_name(fault));
    add_verdict((wrong != NULL) == refused ? "ok" : "judge-broken", wrong, "");
}

/* The next shape of a list, "1x2x3 ..."; NULL at its end. */
static const char *read_numbers(const char *text, int *numbers) {
    for (int i = 0, taken = 0; i < NUMBERS; i++, text += taken)
        if (sscanf(text, i ? "x%d%n" : " %d%n", &numbers[i], &taken) != 1)
            return NULL;
    return text;
}

/* There are no cases if the device has no code for the variant's type. */
static void verify(int variant, const char *shapes) {
    struct arm arm = arm_of_variant(variant);
    char label[200] = "", text[160];
    const char *wrong = NULL;
    int cases = 0, numbers[NUMBERS], layout[LAYOUTS + 1];
    arm.name = variant < 0 ? "the library's choice" : arm.name;
    while (!wrong && (shapes = read_numbers(shapes, numbers))) {
        bool soaked = settings.calls == 0; /* once for each shape */
        for (int i = 0; i < forms * TYPES << LAYOUTS && !wrong; i++) {
            const int form = i / (TYPES << LAYOUTS), shift = form_shift(form);
            for (int j = 0; j < LAYOUTS; j++)
                layout[j] = i / TYPES >> j & 1;
            const struct judged p = problem_of(type_at(i % TYPES), layout, numbers, form);
            if (!variant_serves(variant, &p, shift))
                continue;
            cases++;
            wrong = judge_arm(&arm, &p, secret(), shift);
            if (!wrong && !soaked)
                wrong = soak_arm(&arm, &p, settings.calls, secret(), shift);
            soaked = true;
            case_text(&p, text, sizeof text);
            snprintf(label, sizeof label, "%s %s shift %d", arm.name, text, shift);
        }
    }
    row_add("\"kind\":\"verify\",\"of\":{\"variant\":%d},\"cases\":%d", variant, cases);
    add_verdict(wrong ? "wrong-result" : "ok", wrong, label);
}

static void timing(const char *step) {
    int layout[LAYOUTS + 1], numbers[NUMBERS];
    const struct held_type *const type = timed_step(step, layout, numbers);
    if (!type)
        exit(3);
    const struct judged p = problem_of(type, layout, numbers, 0);
    row_add("\"kind\":\"time\",\"of\":{"), add_timed(step);
    row_add("},\"chosen\":%d", variant_chosen(&p));
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
            timing(steps[i]);
        tell(to);
    }
}
