/* Reads requests, calls, replies. Built statically with candidates linked in, or with
 * -DTENSOROP_DLOPEN against glibc together with an operator's adapter.c, for shared libraries. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "harness.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { TEXTS = 5, TEXT_LIMIT = 4096, ENTRY_LIMIT = 64, ROUND_LIMIT = 100000 };

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

static uint64_t start(void) {
    struct wire_start wire;
    read_whole(&wire, sizeof wire);
    if (wire.magic != MAGIC_START || wire.version != WIRE_VERSION)
        refuse("the stream is of another version");
    struct wire_hello hello = {.magic = MAGIC_HELLO, .version = WIRE_VERSION, .nonce = wire.nonce};
    hello.page = (uint32_t)sysconf(_SC_PAGESIZE);
    /* Before any library starts its threads, which inherit the mask. */
    if (!pin(wire.cpu))
        hello.state |= STATE_PINNED;
    for (uint32_t i = 0; i < wire.libraries; i++)
        bind_library(i, &hello);
    fault_install();
    if ((wire.options & OPTION_SANDBOX) && !sandbox_enter())
        hello.state |= STATE_SANDBOXED;
    wire_write(&hello, sizeof hello);
    return wire.nonce;
}

static int open_buffers(struct request *r) {
    struct wire_buffer described[TENSOROP_BUFFERS];
    read_whole(described, r->wire.buffers * sizeof *described);
    for (unsigned i = 0; i < r->wire.buffers; i++) {
        struct guarded *g = &r->buffer[i];
        if (guarded_open(g, described[i].access, described[i].size, r->wire.placement, i))
            return -1;
        read_whole(g->data, g->size);
        if (guarded_protect(g) || (r->wire.kind != KIND_CHECK && guarded_keep(g)))
            return -1;
    }
    return 0;
}

static void run(struct request *r, struct wire_reply *reply, double **samples) {
    struct tensorop_call call = r->wire.call;
    switch (r->wire.kind) {
    case KIND_TIME:
        *samples = calloc((size_t)r->wire.entries * r->wire.rounds + 1, sizeof **samples);
        reply->rounds = *samples ? time_entries(r, *samples) : 0;
        reply->status = reply->rounds ? DONE : NO_MEMORY;
        reply->entries = reply->rounds ? r->wire.entries : 0;
        break;
    case KIND_COUNT:
        count_entries(r);
        break;
    default:
        for (unsigned i = 0; i < TENSOROP_BUFFERS; i++)
            call.buffer[i] = i < r->wire.buffers ? r->buffer[i].data : NULL;
        if (r->entry[0].slot >= 0 && r->entry[0].slot < TENSOROP_FLAGS)
            call.flag[r->entry[0].slot] = r->entry[0].value;
        entry_call(r->entry[0].function, &call);
    }
}

static void reply_with(struct request *r, struct wire_reply *reply, const double *samples) {
    for (unsigned i = 0; i < r->wire.buffers && reply->status == DONE; i++)
        if (guarded_touched(&r->buffer[i], &reply->offset)) {
            reply->status = SLACK_WRITTEN;
            reply->buffer = (int32_t)i;
            reply->fault = reply->offset < 0 ? FAULT_BEFORE : FAULT_AFTER;
        }
    for (unsigned i = 0; i < r->wire.buffers; i++)
        reply->outputs += r->wire.kind != KIND_TIME && r->buffer[i].access != ACCESS_IN;
    if (reply->status != DONE)
        reply->outputs = reply->entries = reply->rounds = 0;
    wire_write(reply, sizeof *reply);
    for (unsigned i = 0; i < r->wire.buffers && reply->outputs; i++) {
        const struct guarded *g = &r->buffer[i];
        struct wire_output out = {.slot = i, .size = g->size};
        if (g->access == ACCESS_IN)
            continue;
        wire_write(&out, sizeof out);
        wire_write(g->data, g->size);
    }
    for (uint32_t e = 0; e < reply->entries; e++)
        wire_write(samples + (size_t)e * r->wire.rounds, reply->rounds * sizeof *samples);
}

static int serve(uint64_t nonce) {
    struct request r;
    memset(&r, 0, sizeof r);
    if (wire_read(&r.wire, sizeof r.wire))
        return -1;
    if (r.wire.magic != MAGIC_REQUEST || r.wire.buffers > TENSOROP_BUFFERS || r.wire.entries < 1 ||
        r.wire.entries > ENTRY_LIMIT || r.wire.rounds > ROUND_LIMIT)
        refuse("a request is malformed");
    struct wire_entry entry[ENTRY_LIMIT];
    read_whole(entry, r.wire.entries * sizeof *entry);
    r.entry = entry;
    struct wire_reply reply = {
        .magic = MAGIC_REPLY, .index = r.wire.index, .nonce = nonce, .buffer = -1};
    double *samples = NULL;
    if (open_buffers(&r)) {
        /* The rest of the request is still in the pipe: this process ends with its reply. */
        reply.status = NO_MEMORY;
        wire_write(&reply, sizeof reply);
        return -1;
    }
    for (uint32_t e = 0; e < r.wire.entries; e++)
        if (!entry_known(entry[e].function))
            reply.status = NO_ENTRY;
    if (reply.status == DONE) {
        fault_watch(&r, nonce);
        run(&r, &reply, &samples);
        fault_watch(NULL, 0);
    }
    reply_with(&r, &reply, samples);
    free(samples);
    for (unsigned i = 0; i < r.wire.buffers; i++)
        guarded_close(&r.buffer[i]);
    return 0;
}

int main(void) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    wire_open();
    uint64_t nonce = start();
    while (!serve(nonce))
        ;
    _exit(0);
}
