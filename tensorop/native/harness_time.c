/* Timing by the target's clock, and the counted call of emulators. */
#include "harness.h"
#include "region.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static uint64_t read_clock(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t now(void) { return read_clock(CLOCK_MONOTONIC); }

/* The clocks a batch is timed by. */
struct clocks {
    uint64_t wall, process, thread;
};

static struct clocks start_clocks(void) {
    struct clocks c;
    c.process = read_clock(CLOCK_PROCESS_CPUTIME_ID);
    c.thread = read_clock(CLOCK_THREAD_CPUTIME_ID);
    c.wall = now();
    return c;
}

/* Where this thread alone did the work, the time it ran: what other programs were given in between
 * is not the callee's. Where other threads of this process worked too, the time that passed. */
static uint64_t elapsed(const struct clocks *begin) {
    uint64_t wall = now() - begin->wall,
             thread = read_clock(CLOCK_THREAD_CPUTIME_ID) - begin->thread;
    uint64_t process = read_clock(CLOCK_PROCESS_CPUTIME_ID) - begin->process;
    return process - thread > thread / 64 + 5000 || thread > wall ? wall : thread;
}

static struct tensorop_call call_of(const struct request *r, unsigned e) {
    struct tensorop_call call = r->wire.call;
    for (unsigned i = 0; i < TENSOROP_BUFFERS; i++)
        call.buffer[i] = i < r->wire.buffers ? r->buffer[i].data : NULL;
    if (r->entry[e].slot >= 0 && r->entry[e].slot < TENSOROP_FLAGS)
        call.flag[r->entry[e].slot] = r->entry[e].value;
    return call;
}

static void restore(const struct request *r) {
    for (unsigned i = 0; i < r->wire.buffers; i++)
        guarded_restore((struct guarded *)&r->buffer[i]);
}

/* Evicts the operands by walking memory that is larger than the caches. */
static void flush(volatile uint8_t *walk, size_t size) {
    for (size_t i = 0; i < size; i += 64)
        walk[i]++;
}

static uint64_t batch(const struct request *r, unsigned e, uint64_t calls, uint8_t *walk) {
    struct tensorop_call call = call_of(r, e);
    unsigned function = r->entry[e].function;
    restore(r);
    if (walk)
        flush(walk, r->wire.flush_bytes);
    struct clocks begin = start_clocks();
    for (uint64_t i = 0; i < calls; i++)
        entry_call(function, &call);
    return elapsed(&begin);
}

/* Calls a batch so that it lasts min_ns, found while warming up for warm_ns. */
static uint64_t calibrate(const struct request *r, unsigned e) {
    uint64_t calls = 1, spent = 0;
    for (;;) {
        uint64_t took = batch(r, e, calls, NULL);
        spent += took;
        if (took < r->wire.min_ns) {
            uint64_t wanted =
                took ? (uint64_t)(1.1 * (double)calls * (double)r->wire.min_ns / (double)took) + 1
                     : calls * 10;
            calls = wanted > calls * 10 ? calls * 10 : wanted;
        } else if (spent >= r->wire.warm_ns) {
            return calls;
        }
    }
}

uint32_t time_entries(const struct request *r, double *samples) {
    uint32_t entries = r->wire.entries, rounds = r->wire.rounds, done = 0;
    uint64_t *calls = calloc(entries, sizeof *calls), begin = now();
    uint8_t *walk = r->wire.flush_bytes ? calloc(1, r->wire.flush_bytes) : NULL;
    if (!calls || (r->wire.flush_bytes && !walk))
        return 0;
    for (uint32_t e = 0; e < entries; e++)
        calls[e] = walk ? 1 : calibrate(r, e);
    for (uint32_t round = 0; round < rounds; round++) {
        if (round >= 3 && now() - begin > r->wire.max_ns)
            break;
        /* The order rotates, so that no entry always follows the same neighbour. */
        for (uint32_t i = 0; i < entries; i++) {
            uint32_t e = (i + round) % entries;
            samples[(size_t)e * rounds + round] =
                (double)batch(r, e, calls[e], walk) / (double)calls[e];
        }
        done++;
    }
    free(walk);
    free(calls);
    return done;
}

void count_entries(const struct request *r) {
    for (uint32_t e = 0; e < r->wire.entries; e++) {
        struct tensorop_call call = call_of(r, e);
        unsigned function = r->entry[e].function;
        restore(r);
        /* Caches are modelled inside regions only, so that each warming call has one too; the last
         * one counts. Nothing is restored in between: that would change what the caches hold. */
        for (uint32_t i = 0; i <= r->wire.warm; i++) {
            TENSOROP_REGION_BEGIN();
            entry_call(function, &call);
            TENSOROP_REGION_END();
        }
    }
}
