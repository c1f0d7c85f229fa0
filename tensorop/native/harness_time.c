/* Times calls by the target's clock, and makes an emulator's counted call. */
#include "harness.h"
#include "region.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static uint64_t read_clock(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t now(void) { return read_clock(CLOCK_MONOTONIC); }

static struct clocks read_clocks(void) {
    struct clocks c;
    c.process = read_clock(CLOCK_PROCESS_CPUTIME_ID);
    c.thread = read_clock(CLOCK_THREAD_CPUTIME_ID);
    c.wall = now();
    return c;
}

/* The time since a batch began. `late` is a second reading of the beginning, after the state
 * became read-only. It is the better one, unless it is much later than the first: then it was
 * tampered with, or another program ran in between. */
static struct clocks passed(const struct clocks *end, const struct clocks *late) {
    const struct clocks *first = &state()->begin, *most = &state()->late;
    int cpu = late->process - first->process <= most->process &&
              late->thread - first->thread <= most->thread;
    const struct clocks *of_cpu = cpu ? late : first;
    const struct clocks *of_wall = late->wall - first->wall <= most->wall ? late : first;
    return (struct clocks){end->wall - of_wall->wall, end->process - of_cpu->process,
                           end->thread - of_cpu->thread};
}

/* If only this thread worked, its CPU time, which excludes other programs. If other threads of
 * this process worked too, the wall time. */
static uint64_t elapsed(const struct clocks *spent) {
    uint64_t thread = spent->thread, others = spent->process - thread;
    return others > thread / 64 + 5000 || thread > spent->wall ? spent->wall : thread;
}

static int has_shift(const struct request *r) {
    for (unsigned i = 0; i < r->wire.buffers; i++)
        if (r->buffer[i].shift)
            return 1;
    return 0;
}

/* Whether an INOUT buffer has a second operand. */
static int accumulates(const struct request *r) {
    for (unsigned i = 0; i < r->wire.buffers; i++)
        if (r->buffer[i].access == ACCESS_INOUT && r->buffer[i].shift)
            return 1;
    return 0;
}

static void restore(const struct request *r) {
    for (unsigned i = 0; i < r->wire.buffers; i++) {
        const struct guarded *g = &r->buffer[i];
        guarded_restore((struct guarded *)g);
        if (g->access == ACCESS_SCRATCH)
            spoil(g->data, g->size);
    }
}

/* Changes the contents of the inputs. */
static void turn(const struct request *r) {
    for (unsigned i = 0; i < r->wire.buffers; i++)
        if (r->buffer[i].access == ACCESS_IN)
            guarded_turn((struct guarded *)&r->buffer[i], state_draw());
}

/* Evicts the operands by walking memory that is larger than the caches. */
static void flush(volatile uint8_t *walk, size_t size) {
    for (size_t i = 0; i < size; i += 64)
        walk[i]++;
}

/* The function that calls an entry, the same for both kinds within a region or batch. */
static entry_way way_of(const struct wire_entry *entry) {
    return entry->empty ? entry_call_empty : entry_call;
}

static void idle(unsigned number, const struct tensorop_call *call) { (void)number, (void)call; }

/* The result of a batch. */
struct batch {
    uint64_t calls, ns;
    int tampered, no_memory;
};

/* Makes `calls` calls and adds their time to `made`. If there are two sets of operands, calls
 * alternate between them, and the last one uses the set `shifted`. Afterwards two counters must
 * agree: one in a register, one on this stack. */
static __attribute__((noinline)) void spend(const struct request *r, unsigned e, uint64_t calls,
                                            int shifted, struct batch *made) {
    struct state *s = state();
    unsigned function = r->entry[e].function;
    entry_way make = way_of(&r->entry[e]);
    int both = has_shift(r);
    void *top = s->top;
    uint64_t turn = both ? (calls - 1 + (uint64_t)shifted) & 1 : (uint64_t)shifted;
    volatile uint64_t counted = 0;
    for (int i = 0; i < 2; i++)
        s->call[i] = call_of(r, e, i);
    tensorop_apart(idle, 0, &s->call[0], top);
    s->begin = read_clocks();
    state_writable(0);
    struct clocks late = read_clocks();
    for (uint64_t left = calls; left; left--) {
        tensorop_apart(make, function, &s->call[turn], top);
        turn ^= (uint64_t)both;
        counted++;
    }
    struct clocks end = read_clocks();
    state_writable(1);
    struct clocks spent = passed(&end, &late);
    made->ns += elapsed(&spent);
    s->spent += spent.wall;
    made->calls += calls;
    made->tampered |= counted != calls;
}

/* Sets the limit of the second reading's delay: twice the usual delay. */
static void find_late(void) {
    struct state *s = state();
    struct clocks least = {UINT64_MAX, UINT64_MAX, UINT64_MAX};
    for (int i = 0; i < 9; i++) {
        struct clocks begin = read_clocks();
        state_writable(0);
        struct clocks late = read_clocks();
        state_writable(1);
        uint64_t wall = late.wall - begin.wall, process = late.process - begin.process,
                 thread = late.thread - begin.thread;
        least.wall = wall < least.wall ? wall : least.wall;
        least.process = process < least.process ? process : least.process;
        least.thread = thread < least.thread ? thread : least.thread;
    }
    s->late =
        (struct clocks){2 * least.wall + 500, 2 * least.process + 500, 2 * least.thread + 500};
}

/* A batch of `calls` calls, or of up to an eighth fewer. A callee cannot know the last call or
 * its operands, and the outputs of the last call are judged. */
static struct batch batch(const struct request *r, unsigned e, uint64_t calls, uint8_t *walk) {
    struct batch made = {0};
    int shifted = 0;          /* a single call has no earlier results to copy */
    int before = 0;           /* operands before the last call, if that one is made alone: */
    int alone = r->wire.keep; /* its outputs must be its own, not the earlier calls' */
    restore(r);
    apart_spoil();
    if (walk)
        flush(walk, r->wire.flush_bytes);
    if (calls > 1 && has_shift(r)) {
        calls -= state_draw() % (calls / 8 + 2);
        shifted = calls > 1 && state_draw() & 1;
        before = !shifted;
        alone = accumulates(r);
    }
    if (alone && calls > 1) {
        spend(r, e, --calls, before, &made);
        restore(r);
        calls = 1;
    }
    spend(r, e, calls, shifted, &made);
    if (r->wire.keep && !r->entry[e].empty)
        made.no_memory = left_add(r, e, (unsigned)shifted);
    return made;
}

/* A single call that is not reported to the parent. */
static struct batch single(const struct request *r, unsigned e) {
    uint64_t before = state()->spent;
    struct batch made = batch(r, e, 1, NULL);
    state()->apart += state()->spent - before;
    return made;
}

/* A single call on the second operands; its outputs are the reference for batches that end on
 * these. */
static struct batch second(const struct request *r, unsigned e) {
    struct batch made = {0};
    restore(r);
    apart_spoil();
    uint64_t before = state()->spent;
    spend(r, e, 1, 1, &made);
    state()->apart += state()->spent - before;
    if (r->wire.keep && !r->entry[e].empty)
        made.no_memory = left_add(r, e, 1);
    return made;
}

/* Reports a batch to the parent, which sets the number of the next calls. True if these are to
 * be timed. */
static int told(const struct request *r, uint32_t e, const struct batch *made, uint64_t *calls) {
    struct wire_report report = {.magic = MAGIC_REPORT,
                                 .index = r->wire.index,
                                 .nonce = state()->nonce,
                                 .entry = e,
                                 .calls = made->calls,
                                 .ns = made->ns};
    struct wire_count count;
    wire_write(&report, sizeof report);
    if (e == r->wire.entries)
        return 0;
    if (wire_read(&count, sizeof count) || count.magic != MAGIC_COUNT || !count.calls)
        _exit(3);
    *calls = count.calls;
    return count.settled != 0;
}

static int went_wrong(const struct batch *made) { return made->tampered || made->no_memory; }

/* Whether the requested number of calls takes at least min_ns, by the time of this batch. */
static int fills(const struct request *r, uint64_t calls, const struct batch *made) {
    return (double)made->ns / (double)made->calls * (double)calls >= (double)r->wire.min_ns;
}

/* Finds the number of calls that fill a batch: the parent sets it, from the times of warm-up
 * batches. The first call may load or generate code, so its time is not reported. */
static struct batch calibrate(const struct request *r, uint32_t e, uint64_t *calls) {
    struct batch made = single(r, e);
    int settled = 0;
    while (!went_wrong(&made) && !settled) {
        made = batch(r, e, *calls, NULL);
        settled = went_wrong(&made) || told(r, e, &made, calls);
    }
    return went_wrong(&made) || *calls == 1 || !has_shift(r) ? made : second(r, e);
}

/* Linux updates the CPU time of other threads at its ticks, at least 100 times a second. */
enum { LOOK_NS = 12000000, BUSY_NS = 1000000, REST_NS = 300000000 };

/* Waits until the threads of another entry's calls are idle. OpenBLAS's threads look for work
 * for up to a tenth of a second, on cores that the next entry's threads need. */
static void rest(void) {
    if (state()->threads <= 1)
        return;
    struct clocks begin = read_clocks(), at = begin;
    uint64_t others;
    do {
        struct clocks last = at;
        while (at.wall - last.wall < LOOK_NS)
            at = read_clocks();
        others = at.process - last.process - (at.thread - last.thread);
    } while (others > BUSY_NS && at.wall - begin.wall < REST_NS);
    state()->rested += at.wall - begin.wall;
}

/* Frees the cores from another entry's threads, and wakes this entry's threads by a call. */
static struct batch awake(const struct request *r, unsigned e) {
    struct batch none = {0};
    rest();
    return state()->threads > 1 ? single(r, e) : none;
}

/* An untimed batch of a few calls before a batch of many. A callee that skips work in long
 * batches must recognise the short ones too, since their outputs are judged. */
static struct batch glance(const struct request *r, unsigned e, uint64_t calls) {
    struct batch none = {0};
    if (calls < 64 || !r->wire.keep || !has_shift(r) || r->entry[e].empty)
        return none;
    return batch(r, e, 2 + state_draw() % 4, NULL);
}

/* A batch that lasts min_ns. If one is shorter, because calls are faster than in the
 * calibration, the parent sets a new number of calls and it is repeated. */
static struct batch filled(const struct request *r, unsigned e, uint64_t *calls) {
    struct batch made = batch(r, e, *calls, NULL);
    while (!went_wrong(&made) && !fills(r, *calls, &made)) {
        told(r, e, &made, calls);
        made = batch(r, e, *calls, NULL);
    }
    return made;
}

static enum wire_status time_rounds(const struct request *r, uint8_t *walk,
                                    struct wire_reply *reply) {
    uint32_t entries = r->wire.entries;
    uint64_t calls[ENTRY_LIMIT], first = 0;
    for (uint32_t e = 0; e < entries; e++) {
        struct batch made = {0};
        told(r, e, &made, &calls[e]);
        first = first ? first : now();
        rest();
        made = walk ? single(r, e) : calibrate(r, e, &calls[e]);
        if (went_wrong(&made))
            return made.tampered ? TAMPERED : NO_MEMORY;
    }
    uint64_t begin = now() - state()->rested;
    for (uint32_t round = 0; round < r->wire.rounds; round++) {
        if (round >= 3 && now() - state()->rested - begin > r->wire.max_ns)
            break;
        /* The order rotates, so that no entry always follows the same neighbour. */
        for (uint32_t i = 0; i < entries; i++) {
            uint32_t e = (i + round) % entries;
            struct batch made = awake(r, e);
            if (!went_wrong(&made))
                made = glance(r, e, walk ? 1 : calls[e]);
            if (!went_wrong(&made))
                made = walk ? batch(r, e, 1, walk) : filled(r, e, &calls[e]);
            if (went_wrong(&made))
                return made.tampered ? TAMPERED : NO_MEMORY;
            state()->sample[(size_t)e * r->wire.rounds + round] =
                (struct wire_sample){(double)made.calls, (double)made.ns};
        }
        reply->rounds = round + 1;
        reply->span = now() - first;
    }
    return DONE;
}

enum wire_status time_entries(const struct request *r, struct wire_reply *reply) {
    uint8_t *walk = r->wire.flush_bytes ? calloc(1, r->wire.flush_bytes) : NULL;
    if (r->wire.flush_bytes && !walk)
        return NO_MEMORY;
    state()->drawn = r->wire.draw;
    state()->spent = state()->apart = state()->rested = 0;
    find_late();
    enum wire_status status = time_rounds(r, walk, reply);
    reply->spent = state()->spent;
    reply->apart = state()->apart;
    reply->rested = (uint32_t)(state()->rested / 1000);
    told(r, r->wire.entries, &(struct batch){0}, NULL);
    free(walk);
    return status;
}

void count_entries(const struct request *r) {
    state()->drawn = r->wire.draw;
    for (uint32_t e = 0; e < r->wire.entries; e++) {
        struct tensorop_call call = call_of(r, e, 0);
        unsigned function = r->entry[e].function;
        entry_way make = way_of(&r->entry[e]);
        tensorop_entry itself = r->entry[e].empty ? NULL : entry_itself(function);
        /* Caches are modelled only inside regions, so each warming call has a region too; the
         * last region counts. Outputs are restored in between, which changes nothing in the
         * model. Warming calls have other numbers in their operands, so that the counted call
         * cannot reuse an earlier result. */
        for (uint32_t i = 0; i <= r->wire.warm; i++) {
            restore(r);
            if (i < r->wire.warm)
                turn(r);
            spoil_below();
            state_writable(0);
            if (i == 0 && r->wire.alone)
                TENSOROP_REGION_FORGET();
            if (i < r->wire.warm)
                TENSOROP_REGION_WARM();
            else
                TENSOROP_REGION_BEGIN();
            if (STEPS && i == r->wire.warm)
                path_step(r, make, function, &call);
            else if (itself)
                itself(&call);
            else
                make(function, &call);
            TENSOROP_REGION_END();
            state_writable(1);
        }
    }
}
