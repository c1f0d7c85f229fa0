/* Times the variants that serve a problem, and the baseline's answers, in turn in one process. Each
 * arm runs graphs of a few milliseconds, on operands that together are larger than L2. Every other
 * round reverses the order. The result of each arm is judged. */
#include "kit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    ARMS = 256,
    MOST_LT = 64,
    SETS = 120,
    ROUNDS = 32,
    LT_KEPT = 4,
    GUARD = 4096,
    RELAXED = 1,
    NON_BLOCKING = 1
};
/* An arm this much slower than the fastest variant is not timed further. Arms of a round should
 * draw about the same power: after a slow arm, the chip is cooler, and the next arm is up to 15 %
 * faster on the largest products. */
#define SLOWER 3.0

double clock_l2 = 180e6; /* bytes of all operands */
double clock_graph_us = 2000, clock_heat_ms = 400;

/* There is one more result than inputs. So no call finds its own earlier result, and an arm
 * that skips finished work gains nothing. */
struct sets {
    struct judged p;
    int inputs;
    struct buffer *of[OPERANDS], workspace;
    pointer region;
};

struct timed {
    struct arm arm;
    void *graph;
    int launches, rounds;
    double least, us[ROUNDS];
    bool dropped, screened;
    char refused[160];
};

static struct timed timed[ARMS];
static stream on;
static void *begun, *ended;

static struct buffer sliced(pointer *next, size_t bytes) {
    struct buffer b = {
        .base = *next, .bytes = bytes, .total = 2 * GUARD + (bytes + 255) / 256 * 256};
    b.at = b.base + GUARD;
    *next += b.total;
    return b;
}

static size_t taken(size_t bytes) { return 2 * GUARD + (bytes + 255) / 256 * 256; }

/* The number of an operand's buffers. */
static int many_of(const struct sets *s, int operand) { return s->inputs + (operand == RESULT); }

static void sets_make(struct sets *s, const struct judged *p, size_t workspace, uint64_t seed) {
    double one = 0;
    size_t all = 0;
    for (int i = 0; i < OPERANDS; i++)
        one += (double)operand_bytes(p, i);
    s->p = *p;
    s->inputs = clock_l2 / one < 2 ? 2 : clock_l2 / one > SETS ? SETS : (int)(clock_l2 / one) + 1;
    s->inputs += s->inputs % 2;
    for (int i = 0; i < OPERANDS; i++) {
        s->of[i] = calloc((size_t)many_of(s, i), sizeof *s->of[i]);
        all += (size_t)many_of(s, i) * taken(operand_bytes(p, i));
    }
    must(cu.cuMemAlloc_v2(&s->region, all), "memory for the operands");
    must(cu.cuMemsetD8_v2(s->region, 0xff, all), "memory is filled");
    pointer next = s->region;
    for (int set = 0; set <= s->inputs; set++)
        for (int i = 0; i < OPERANDS; i++) {
            if (set == many_of(s, i))
                continue;
            s->of[i][set] = sliced(&next, operand_bytes(p, i));
            if (i != RESULT)
                operand_fill(p, i, s->of[i][set].at, seed + RESULT * (uint64_t)set + (uint64_t)i);
        }
    s->workspace = buffer_make((workspace + 511) / 256 * 256, 0);
    must(cu.cuCtxSynchronize(), "operands");
}

/* The operands of the launch of a number. */
static void operands_of(const struct sets *s, int launch, pointer *at) {
    for (int i = 0; i < OPERANDS; i++)
        at[i] = s->of[i][launch % many_of(s, i)].at;
}

static void sets_free(struct sets *s) {
    cu.cuMemFree_v2(s->region);
    buffer_free(&s->workspace);
    for (int i = 0; i < OPERANDS; i++)
        free(s->of[i]);
}

static void graph_free(struct timed *t) {
    if (t->graph)
        cu.cuGraphExecDestroy(t->graph);
    t->graph = NULL;
}

/* Captures the arm's launches in a graph; returns whether that succeeded. */
static bool captured(struct timed *t, const struct sets *s, int launches) {
    void *graph = NULL;
    graph_free(t);
    t->launches = launches;
    int status = cu.cuStreamBeginCapture_v2(on, RELAXED);
    for (int i = 0; i < launches && !status; i++) {
        pointer at[OPERANDS];
        operands_of(s, i, at);
        status = t->arm.run(&t->arm, &s->p, at, s->workspace.at, on);
    }
    const int last = cu.cuStreamEndCapture(on, &graph);
    status = status ? status : last;
    status = status ? status : cu.cuGraphInstantiateWithFlags(&t->graph, graph, 0);
    if (graph)
        cu.cuGraphDestroy(graph);
    return !status;
}

/* The microseconds of one launch. */
static double took(const struct timed *t, bool sample) {
    float ms;
    must(cu.cuEventRecord(begun, on), "an event");
    must(cu.cuGraphLaunch(t->graph, on), t->arm.name);
    must(cu.cuEventRecord(ended, on), "an event");
    if (sample)
        board_sample();
    must(cu.cuEventSynchronize(ended), t->arm.name);
    must(cu.cuEventElapsedTime(&ms, begun, ended), "an event");
    return (double)ms * 1000 / t->launches;
}

/* Fills all results with poison, runs the arm's graph, and judges two of them. */
static const char *left_right(const struct timed *t, const struct sets *s,
                              struct reference *const *references, int many) {
    for (int i = 0; i <= s->inputs; i++)
        must(cu.cuMemsetD8_v2(s->of[RESULT][i].at, 0xff, s->of[RESULT][i].bytes), "poison");
    must(cu.cuCtxSynchronize(), "poison");
    took(t, false), took(t, false);
    for (int i = 0; i < many; i++) {
        const int input = i * (s->inputs / 2);
        int launch = t->launches - 1;
        while (launch >= 0 && launch % s->inputs != input)
            launch--;
        const struct buffer *c = &s->of[RESULT][launch % (s->inputs + 1)];
        const char *wrong = judge_result(references[i], &s->p, 0, c->at);
        if (wrong)
            return wrong;
        if (!buffer_intact(c) || !buffer_intact(&s->workspace))
            return "wrote outside a buffer";
    }
    return NULL;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static bool of_library(const struct timed *t) { return strcmp(t->arm.name, baseline_name) == 0; }

/* Runs short rounds of all arms. Arms far from the fastest, and the baseline's slower answers, are
 * not timed further. */
static double screen(const struct sets *s, int count, int turn) {
    double fastest = 1e30, best = 1e30;
    for (int i = 0; i < count; i++) {
        struct timed *t = &timed[i];
        if (t->dropped)
            continue;
        if (!captured(t, s, turn)) {
            t->dropped = true;
            snprintf(t->refused, sizeof t->refused, "not captured in a graph");
            continue;
        }
        took(t, false);
        t->least = took(t, false);
        fastest = t->least < fastest ? t->least : fastest;
        if (!of_library(t) && t->least < best)
            best = t->least;
    }
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < count; i++)
            if (!timed[i].dropped && timed[i].least < SLOWER * best) {
                const double us = took(&timed[i], false);
                timed[i].least = us < timed[i].least ? us : timed[i].least;
            }
    for (int i = 0; i < count; i++) {
        int faster = 0;
        for (int j = 0; j < count && of_library(&timed[i]); j++)
            faster += of_library(&timed[j]) && !timed[j].dropped && timed[j].least < timed[i].least;
        const bool kept = of_library(&timed[i]) ? faster < LT_KEPT || timed[i].arm.number == 0
                                                : timed[i].least < SLOWER * best;
        timed[i].screened = !timed[i].dropped && !kept;
    }
    return fastest;
}

static void rounds_of(int count, int rounds, double heat_s) {
    board_forget();
    for (const double begin = now(); now() < begin + heat_s;)
        for (int i = 0; i < count; i++)
            if (timed[i].graph)
                took(&timed[i], false);
    for (int round = 0; round < rounds; round++) {
        bool sample = true;
        for (int i = 0; i < count; i++) {
            struct timed *t = &timed[round % 2 ? count - 1 - i : i];
            if (t->graph && t->rounds < ROUNDS)
                t->us[t->rounds++] = took(t, sample), sample = false;
        }
    }
}

static void add_arms(int count, int sets, int launches) {
    row_add(",\"sets\":%d,\"launches\":%d,", sets, launches);
    board_sampled();
    row_add(",\"arms\":[");
    for (int i = 0; i < count; i++) {
        const struct timed *t = &timed[i];
        row_add("%s{\"%s\":%d", i ? "," : "", of_library(t) ? baseline_name : "variant",
                t->arm.number);
        if (t->refused[0])
            row_add(",\"refused\":"), row_text(t->refused);
        if (!t->dropped) {
            row_add(",%s\"us\":[", t->screened ? "\"screened\":true," : "");
            for (int j = 0; j < t->rounds; j++)
                row_add("%s%.5g", j ? "," : "", t->us[j]);
            if (t->screened)
                row_add("%.5g", t->least);
            row_add("]");
        }
        row_add("}");
    }
    row_add("]");
}

const char *clock_problem(const struct judged *p, int rounds, uint64_t seed) {
    struct arm lt[MOST_LT];
    struct sets s;
    struct reference *references[2];
    size_t workspace = 0;
    int count = 0;
    if (!on) {
        must(cu.cuStreamCreate(&on, NON_BLOCKING), "a stream");
        must(cu.cuEventCreate(&begun, 0), "an event");
        must(cu.cuEventCreate(&ended, 0), "an event");
    }
    memset(timed, 0, sizeof timed);
    for (int i = 0; i < LIBRARY(variants)() && count < ARMS - MOST_LT; i++)
        if (variant_serves(i, p, 0))
            timed[count++].arm = arm_of_variant(i);
    const int answers = baseline_arms(p, lt, MOST_LT);
    for (int i = 0; i < answers; i++)
        timed[count++].arm = lt[i];
    for (int i = 0; i < count; i++) {
        const char *const why = timed[i].arm.refused;
        if (why) {
            snprintf(timed[i].refused, sizeof timed[i].refused, "%s", why);
            timed[i].dropped = true;
            continue;
        }
        const size_t wanted = timed[i].arm.needs(&timed[i].arm, p);
        workspace = wanted > workspace ? wanted : workspace;
    }
    sets_make(&s, p, workspace, seed);
    const int turn = 2 * (s.inputs + 1); /* no result gets the same input in the next turn */
    const double fastest = screen(&s, count, turn);
    int turns = (int)(clock_graph_us / (fastest * turn)) + 1;
    const int most = 4000 / turn > 0 ? 4000 / turn : 1;
    turns = turns < most ? turns : most;
    for (int i = 0; i < 2; i++) {
        const int input = i * (s.inputs / 2);
        pointer at[OPERANDS];
        operands_of(&s, input, at);
        references[i] = reference_make(p, at, seed + 7 + (uint64_t)i);
    }
    const char *outcome = "ok";
    for (int i = 0; i < count; i++) {
        struct timed *t = &timed[i];
        if (t->screened || t->dropped || (turns > 1 && !captured(t, &s, turns * turn))) {
            graph_free(t);
            continue;
        }
        const char *wrong = left_right(t, &s, references, 2);
        if (!wrong)
            continue;
        snprintf(t->refused, sizeof t->refused, "%s", wrong);
        if (!of_library(t)) /* a baseline's error is only recorded */
            outcome = "wrong-result";
    }
    rounds_of(count, rounds, work_of(p) > 1e10 ? clock_heat_ms / 1000 : clock_heat_ms / 8000);
    add_arms(count, s.inputs, turns * turn);
    for (int i = 0; i < count; i++)
        graph_free(&timed[i]);
    for (int i = 0; i < 2; i++)
        reference_free(references[i]);
    sets_free(&s);
    baseline_release(lt, answers);
    return outcome;
}
