/* Reads requests, makes the calls, and replies. It is built statically with candidates linked
 * in, or with -DTENSOROP_DLOPEN against glibc and with an operator's adapter.c, for shared
 * libraries. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "harness.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { TEXTS = 5, TEXT_LIMIT = 4096, ROUND_LIMIT = 100000, VALUE_LIMIT = 1 << 24 };

static _Noreturn void refuse(const char *what) {
    fprintf(stderr, "harness: %s\n", what);
    _exit(3);
}

static void read_whole(void *to, size_t size) {
    if (wire_read(to, size))
        refuse("the stream ended inside a request");
}

static int pin(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (cpu < 0 || cpu >= CPU_SETSIZE)
        return -1;
    CPU_SET(cpu, &set);
    return sched_setaffinity(0, sizeof set, &set);
}

static void bind_library(unsigned number, struct wire_hello *hello) {
    char *text[TEXTS];
    for (int i = 0; i < TEXTS; i++) {
        uint32_t size;
        read_whole(&size, sizeof size);
        if (size > TEXT_LIMIT || !(text[i] = calloc(1, size + 1)))
            refuse("a library's name is too long");
        read_whole(text[i], size);
    }
    if (!hello->error[0])
        entry_bind(number, (const char *const *)text, hello->error, sizeof hello->error);
    for (int i = 0; i < TEXTS; i++)
        free(text[i]);
}

static void start(void) {
    struct wire_start wire;
    read_whole(&wire, sizeof wire);
    if (wire.magic != MAGIC_START || wire.version != WIRE_VERSION)
        refuse("the stream is of another version");
    struct wire_hello hello = {.magic = MAGIC_HELLO, .version = WIRE_VERSION, .nonce = wire.nonce};
    hello.page = (uint32_t)sysconf(_SC_PAGESIZE);
    /* Pin before a library starts threads, since these inherit the mask. */
    if (!pin(wire.cpu))
        hello.state |= STATE_PINNED;
    if (wire.libraries)
        confine_loading(wire.needs);
    for (uint32_t i = 0; i < wire.libraries; i++)
        bind_library(i, &hello);
    if (fault_install() || apart_open())
        refuse("no memory for a stack");
    if (!confine_calls(wire.needs))
        hello.state |= STATE_JAILED;
    wire_write(&hello, sizeof hello);
    state()->nonce = wire.nonce;
    state()->threads = wire.threads;
}

static int open_buffers(struct request *r) {
    for (unsigned i = 0; i < r->wire.buffers; i++) {
        struct guarded *g = &r->buffer[i];
        struct wire_buffer described;
        read_whole(&described, sizeof described);
        if (described.shift > described.size || guarded_open(g, &described, r->wire.placement, i))
            return -1;
        uint8_t *line;
        for (size_t at = 0, size; (line = guarded_line(g, at, &size)); at += size)
            read_whole(line, size);
        if (guarded_protect(g))
            return -1;
    }
    for (unsigned i = 0; i < r->wire.buffers && r->wire.kind != KIND_CHECK; i++) {
        struct guarded *g = &r->buffer[i];
        int turned = g->access == ACCESS_IN && r->wire.kind == KIND_COUNT && r->wire.warm;
        int restored = g->access == ACCESS_INOUT || (g->access == ACCESS_OUT && r->wire.keep);
        if ((restored || turned) && guarded_keep(g))
            return -1;
    }
    return 0;
}

/* Room for the samples of a timing. */
static int open_samples(const struct request *r) {
    struct state *s = state();
    s->sample_size = ((size_t)r->wire.entries * r->wire.rounds + 1) * sizeof *s->sample;
    void *map =
        mmap(NULL, s->sample_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    s->sample = map == MAP_FAILED ? NULL : map;
    return s->sample ? 0 : -1;
}

static void run(struct request *r, struct wire_reply *reply) {
    struct tensorop_call call;
    switch (r->wire.kind) {
    case KIND_TIME:
        reply->status = open_samples(r) ? NO_MEMORY : time_entries(r, reply);
        reply->entries = r->wire.entries;
        break;
    case KIND_COUNT:
        count_entries(r);
        if (STEPS)
            reply->spent = path_made();
        break;
    default:
        call = call_of(r, 0, 0);
        state_writable(0);
        entry_call(r->entry[0].function, &call);
        state_writable(1);
    }
}

static int comes_back(const struct guarded *g) {
    return g->access == ACCESS_OUT || g->access == ACCESS_INOUT;
}

/* Sends each output of one call. from: a copy of the outputs, one after the other; NULL: the
 * buffers themselves. */
static void write_outputs(const struct request *r, uint32_t which, const uint8_t *from) {
    for (unsigned i = 0; i < r->wire.buffers; i++) {
        const struct guarded *g = &r->buffer[i];
        struct wire_output out = {.slot = i, .which = which, .size = g->size};
        if (!comes_back(g))
            continue;
        wire_write(&out, sizeof out);
        uint8_t *line;
        for (size_t at = 0, size; !from && (line = guarded_line(g, at, &size)); at += size)
            wire_write(line, size);
        if (from)
            wire_write(from, g->size);
        from = from ? from + g->size : NULL;
    }
}

static void reply_with(struct request *r, struct wire_reply *reply) {
    for (unsigned i = 0; i < r->wire.buffers && reply->status == DONE; i++)
        if (guarded_touched(&r->buffer[i], &reply->offset)) {
            reply->status = SLACK_WRITTEN;
            reply->buffer = (int32_t)i;
            reply->fault = reply->offset < 0 ? FAULT_BEFORE : FAULT_AFTER;
        }
    uint32_t times = r->wire.kind != KIND_TIME, writable = 0;
    for (const struct left *left = state()->left; left; left = left->next)
        times++;
    for (unsigned i = 0; i < r->wire.buffers; i++)
        writable += (uint32_t)comes_back(&r->buffer[i]);
    reply->outputs = times * writable;
    if (reply->status != DONE)
        reply->outputs = reply->entries = reply->rounds = 0;
    wire_write(reply, sizeof *reply);
    if (reply->outputs && r->wire.kind != KIND_TIME)
        write_outputs(r, 0, NULL);
    for (const struct left *left = state()->left; left && reply->outputs; left = left->next)
        write_outputs(r, left->which, left->data);
    for (uint32_t e = 0; e < reply->entries; e++)
        wire_write(state()->sample + (size_t)e * r->wire.rounds,
                   reply->rounds * sizeof *state()->sample);
}

static void forget(struct request *r) {
    struct state *s = state();
    left_forget();
    if (s->sample)
        munmap(s->sample, s->sample_size);
    s->sample = NULL;
    for (unsigned i = 0; i < r->wire.buffers; i++)
        guarded_close(&r->buffer[i]);
    call_close(r);
}

static int serve(void) {
    struct request *r = &state()->request;
    memset(r, 0, sizeof *r);
    if (wire_read(&r->wire, sizeof r->wire))
        return -1;
    uint32_t values = r->wire.dims | r->wire.lds | r->wire.scalars | r->wire.flags;
    if (r->wire.magic != MAGIC_REQUEST || (values | r->wire.buffers) >= VALUE_LIMIT ||
        r->wire.entries < 1 || r->wire.entries > ENTRY_LIMIT || r->wire.rounds > ROUND_LIMIT)
        refuse("a request is malformed");
    read_whole(r->entry, r->wire.entries * sizeof *r->entry);
    struct wire_reply reply = {
        .magic = MAGIC_REPLY, .index = r->wire.index, .nonce = state()->nonce, .buffer = -1};
    if (call_open(r) || open_buffers(r)) {
        /* The rest of the request is still in the pipe, so this process ends after its reply. */
        reply.status = NO_MEMORY;
        wire_write(&reply, sizeof reply);
        return -1;
    }
    for (uint32_t e = 0; e < r->wire.entries; e++)
        if (!entry_known(r->entry[e].function))
            reply.status = NO_ENTRY;
    if (reply.status == DONE) {
        fault_watch(r);
        run(r, &reply);
        fault_watch(NULL);
    }
    /* A callee may have overwritten these fields, so they are set again. */
    reply.magic = MAGIC_REPLY;
    reply.index = r->wire.index;
    reply.nonce = state()->nonce;
    reply_with(r, &reply);
    forget(r);
    return 0;
}

int main(void) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    wire_open();
    start();
    while (!serve())
        ;
    _exit(0);
}
