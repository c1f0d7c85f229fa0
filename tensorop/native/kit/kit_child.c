/* The harness in a child process, and the protocol with it: the parts of
 * tensorop/runners/protocol.py, counts.py and session.py that a kit needs, in C. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "kit.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct child {
    const struct plan *plan;
    pid_t pid;
    int to, from, jailed, status, timed_out;
    uint64_t nonce;
    uint32_t index;
};

enum { PATIENCE = 8, REPORTS = 64 };

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

static int put(struct child *c, const void *from, size_t size) {
    const uint8_t *at = from;
    while (size) {
        ssize_t n = write(c->to, at, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return -1;
        at += n;
        size -= (size_t)n;
    }
    return 0;
}

static int take(struct child *c, void *to, size_t size) {
    uint8_t *at = to;
    while (size) {
        struct pollfd ready = {.fd = c->from, .events = POLLIN};
        int n = poll(&ready, 1, (int)(1000 * c->plan->head->seconds));
        if (n < 0 && errno == EINTR)
            continue;
        if (n == 0)
            c->timed_out = 1;
        if (n <= 0)
            return -1;
        ssize_t got = read(c->from, at, size);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return -1;
        at += got;
        size -= (size_t)got;
    }
    return 0;
}

static int introduce(struct child *c, int cpu) {
    const struct kit_head *head = c->plan->head;
    struct wire_start start = {.magic = MAGIC_START,
                               .version = WIRE_VERSION,
                               .nonce = c->nonce,
                               .cpu = cpu,
                               .libraries = head->libraries,
                               .threads = 1};
    struct wire_hello hello;
    if (put(c, &start, sizeof start))
        return -1;
    for (uint32_t i = 0; i < head->libraries; i++) {
        const char *text[5] = {"", "tensorop", head->dtype[i], "", ""};
        for (int j = 0; j < 5; j++) {
            uint32_t size = (uint32_t)strlen(text[j]);
            if (put(c, &size, sizeof size) || put(c, text[j], size))
                return -1;
        }
    }
    if (take(c, &hello, sizeof hello) || hello.magic != MAGIC_HELLO || hello.nonce != c->nonce)
        return -1;
    hello.error[sizeof hello.error - 1] = 0;
    if (hello.error[0])
        fprintf(stderr, "kit: %s\n", hello.error);
    c->jailed = (hello.state & STATE_JAILED) != 0;
    return hello.error[0] ? -1 : 0;
}

struct child *child_start(const struct plan *plan, int cpu) {
    int down[2], up[2];
    struct child *c = calloc(1, sizeof *c);
    if (!c || pipe(down) || pipe(up))
        return NULL;
    c->plan = plan;
    if (getrandom(&c->nonce, sizeof c->nonce, 0) != sizeof c->nonce)
        c->nonce = (uint64_t)now();
    fflush(NULL);
    c->pid = fork();
    if (c->pid == 0) {
        setenv("TENSOROP_NUM_THREADS", "1", 1);
        dup2(down[0], 0);
        dup2(up[1], 1);
        for (int fd = 3; fd < 64; fd++)
            close(fd);
        _exit(tensorop_harness());
    }
    close(down[0]);
    close(up[1]);
    c->to = down[1];
    c->from = up[0];
    if (c->pid < 0 || introduce(c, cpu)) {
        child_end(c);
        return NULL;
    }
    return c;
}

static void reap(struct child *c) {
    if (c->pid > 0) {
        kill(c->pid, SIGKILL);
        waitpid(c->pid, &c->status, 0);
    }
    c->pid = 0;
}

void child_end(struct child *c) {
    reap(c);
    close(c->to);
    close(c->from);
    free(c);
}

int child_jailed(const struct child *c) { return c->jailed; }

static struct outcome ended(const char *kind, const char *message) {
    struct outcome found = {.kind = kind};
    snprintf(found.message, sizeof found.message, "%s", message);
    return found;
}

/* The outcome of a child that ended without a reply. */
static struct outcome death(struct child *c) {
    char said[64];
    if (c->timed_out) {
        reap(c);
        return ended("timeout", "a call did not return in time");
    }
    usleep(20000); /* the child may be about to end by itself */
    reap(c);
    int number = WIFSIGNALED(c->status) ? WTERMSIG(c->status)
                 : WIFEXITED(c->status) ? WEXITSTATUS(c->status) - 128
                                        : 0;
    snprintf(said, sizeof said, "the process was ended by signal %d", number);
    return ended(number == SIGILL ? "illegal-instruction" : "crash", said);
}

static struct outcome refusal(const struct wire_reply *r) {
    char said[160];
    switch (r->status) {
    case SLACK_WRITTEN:
        snprintf(said, sizeof said, "wrote outside buffer %d, at byte %lld", r->buffer,
                 (long long)r->offset);
        return ended("guard-page", said);
    case TAMPERED:
        return ended("guard-page", "changed the number of calls in the harness");
    case NO_MEMORY:
        return ended("target-lost", "not enough memory for the operands of a call");
    case NO_ENTRY:
        return ended("object-refused", "the kit has no such function");
    default:
        if (r->fault == FAULT_HARNESS)
            return ended("guard-page", "wrote to the harness's memory");
        if (r->fault != FAULT_ELSEWHERE) {
            snprintf(said, sizeof said, "invalid access to buffer %d, at byte %lld", r->buffer,
                     (long long)r->offset);
            return ended("guard-page", said);
        }
        snprintf(said, sizeof said, "ended by signal %d", r->signal);
        return ended(r->signal == SIGILL ? "illegal-instruction" : "crash", said);
    }
}

/* The number of calls in a batch of a timing's entry; counts.py explains the rules. */
struct counts {
    uint64_t named, reports;
    double spent, before;
    int begun, settled;
};

static int answer(struct child *c, struct counts *k, const struct wire_request *w,
                  const struct wire_report *report) {
    struct wire_count count = {.magic = MAGIC_COUNT, .calls = 1, .settled = w->flush_bytes > 0};
    if (++k->reports > REPORTS + w->rounds)
        return -1;
    if (!k->begun) {
        k->begun = 1;
        k->named = 1;
        return put(c, &count, sizeof count);
    }
    uint64_t least = k->named - k->named / 8;
    if (report->calls > k->named || report->calls + 1 < least || !report->calls)
        return -1;
    double ns = (double)report->ns, each = ns / (double)report->calls;
    k->spent += ns;
    if (each * (double)k->named < (double)w->min_ns) {
        double most = 10.0 * (double)k->named;
        double wanted = report->ns ? 1.1 * (double)w->min_ns / each : most;
        k->named = (uint64_t)(wanted < most ? wanted : most) + 1;
    } else if (k->spent >= PATIENCE * (double)w->warm_ns ||
               (k->spent >= (double)w->warm_ns && k->before > 0 && 0.9 * k->before < each)) {
        k->settled = 1;
    }
    k->before = each;
    count.calls = k->named;
    count.settled = (uint32_t)k->settled;
    return put(c, &count, sizeof count);
}

/* Receives the reports, then the reply; -1 if the child ended or broke the protocol. window: ns
 * on the parent's clock from the first report to the last. */
static int listen(struct child *c, const struct wire_request *w, struct wire_reply *reply,
                  double *window) {
    struct counts counts[ENTRY_LIMIT] = {{0}};
    double first = 0;
    for (;;) {
        union {
            struct wire_reply reply;
            struct wire_report report;
        } head;
        if (take(c, &head, sizeof head.report))
            return -1;
        if (head.report.magic != MAGIC_REPORT) {
            memcpy(reply, &head, sizeof head.report);
            if (take(c, (uint8_t *)reply + sizeof head.report, sizeof *reply - sizeof head.report))
                return -1;
            return reply->magic == MAGIC_REPLY && reply->nonce == c->nonce ? 0 : -1;
        }
        if (w->kind != KIND_TIME || head.report.nonce != c->nonce || head.report.entry > w->entries)
            return -1;
        first = first > 0 ? first : now();
        *window = now() - first;
        if (head.report.entry < w->entries &&
            answer(c, &counts[head.report.entry], w, &head.report))
            return -1;
    }
}

static int send(struct child *c, const struct kit_case *of, const struct kit_step *step,
                struct wire_request *w) {
    uint8_t *head = malloc(of->head);
    memcpy(head, plan_part(c->plan, of->head_at, of->head), of->head);
    memcpy(w, head, sizeof *w);
    w->index = c->index++;
    uint32_t draw;
    if (getrandom(&draw, sizeof draw, 0) == sizeof draw)
        w->draw = draw;
    memcpy(head, w, sizeof *w);
    if (step->kind != STEP_TIME) {
        struct wire_entry entry = {step->function, step->slot, step->value, 0, 0};
        memcpy(head + sizeof *w, &entry, sizeof entry);
    }
    int failed = put(c, head, of->head);
    free(head);
    const struct kit_buffer *buffer =
        plan_part(c->plan, of->buffers_at, of->buffers * sizeof *buffer);
    for (uint32_t i = 0; i < of->buffers && !failed; i++) {
        uint8_t *content = plan_content(c->plan, &buffer[i]);
        failed = !content || put(c, &buffer[i].wire, sizeof buffer[i].wire) ||
                 put(c, content, buffer[i].wire.size);
        free(content);
    }
    return failed;
}

struct outcome child_run(struct child *c, const struct kit_case *of, const struct kit_step *step,
                         struct wire_sample *samples, unsigned *entries, unsigned *rounds) {
    struct wire_request w;
    struct wire_reply reply = {0};
    double window = 0;
    if (send(c, of, step, &w) || listen(c, &w, &reply, &window))
        return death(c);
    if (reply.status != DONE)
        return refusal(&reply);
    struct outcome found = ended("ok", "");
    for (uint32_t i = 0; i < reply.outputs; i++) {
        struct wire_output out;
        if (take(c, &out, sizeof out))
            return death(c);
        const struct kit_buffer *buffer =
            plan_part(c->plan, of->buffers_at, of->buffers * sizeof *buffer);
        /* with two sets of operands, each output has the size of one */
        if (out.slot >= of->buffers || out.size != buffer[out.slot].wire.size)
            return ended("guard-page", "invalid reply: the kernel changed the harness's memory");
        uint8_t *left = malloc(out.size + 1);
        if (!left || take(c, left, out.size)) {
            free(left);
            return death(c);
        }
        char said[300];
        const char *kind =
            plan_judge(c->plan, of, out.slot, out.which & 1, left, said, sizeof said);
        free(left);
        if (strcmp(kind, "ok") != 0 && !strcmp(found.kind, "ok")) {
            found.kind = kind;
            if (w.kind == KIND_TIME)
                snprintf(found.message, sizeof found.message, "%s, in a timed call of entry %u",
                         said, out.which / 2);
            else
                snprintf(found.message, sizeof found.message, "%s", said);
        }
    }
    *entries = reply.entries;
    *rounds = reply.rounds;
    if (!reply.entries)
        return found;
    if (reply.entries != w.entries || reply.rounds > w.rounds || !reply.rounds)
        return ended("guard-page", "invalid reply: the kernel changed the harness's memory");
    double told = 0;
    size_t count = (size_t)reply.entries * reply.rounds;
    if (take(c, samples, count * sizeof *samples))
        return death(c);
    for (size_t i = 0; i < count; i++) {
        told += samples[i].ns;
        if (!(samples[i].calls >= 1 && samples[i].ns >= 0))
            return ended("impossible", "a timed batch has no calls or a negative time");
    }
    if (told / 1.01 - 1e6 > (double)reply.spent || (double)reply.spent > window * 1.02 + 4e6)
        return ended("impossible", "the reported times do not match the elapsed time");
    return found;
}
