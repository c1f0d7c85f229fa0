/* In-order issue that stalls on use: an instruction issues when its operands are ready and its
 * unit is free, and later instructions never overtake it. A load that misses does not stop later
 * instructions by itself. */
#include <string.h>

#include "forward.h"
#include "memory.h"
#include "pipeline.h"

/* After this many cycles, times restart relative to the issue time, so that floats stay exact to
 * a thousandth of a cycle. */
#define REBASE_AT 4096.0f
enum { MAX_QUEUE = 64 };

static const struct config *config;
static vec issue; /* the cycle and, as its fraction, the issue slots already taken in it */
static vec ready[REGS];
static vec forwarded[REGS];
static vec read_last[REGS];
static uint8_t produced_by[REGS];
static vec unit_free[MAX_UNITS + 1];
enum { MULTIPLIED = 8 };
static vec multiplied[MULTIPLIED]; /* issue times of the last multiply-adds */
static unsigned next_multiplied;
static vec store_slot[RING], store_last;
static unsigned next_store;
static vec queue_slot[MAX_QUEUE], queue_last;
static unsigned next_queued;
static double elapsed[LANES];
static double stalled[STALLS];
static struct stalls *own; /* the instruction's that waits */

static void init(const struct config *c) {
    config = c;
    memory_init(c);
}

static void begin(void) {
    issue = store_last = queue_last = vset(0);
    for (int i = 0; i < REGS; i++) {
        ready[i] = forwarded[i] = vset(0);
        read_last[i] = vset(LONG_AGO);
        produced_by[i] = STALL_compute;
    }
    for (int i = 0; i < MAX_UNITS; i++)
        unit_free[i] = vset(0);
    for (int i = 0; i < RING; i++)
        store_slot[i] = vset(0);
    for (int i = 0; i < MAX_QUEUE; i++)
        queue_slot[i] = vset(0);
    for (int i = 0; i < MULTIPLIED; i++)
        multiplied[i] = vset(LONG_AGO);
    next_store = next_queued = next_multiplied = 0;
    memset(elapsed, 0, sizeof elapsed);
    memset(stalled, 0, sizeof stalled);
    if (config->cold)
        memory_clear();
    memory_restart();
    forward_restart();
}

static inline void waited(unsigned cause, double cycles) {
    stalled[cause] += cycles;
    if (own)
        own->by_cause[cause] += cycles;
}

static void rebase(void) {
    vec by = issue;
    float lane[LANES];
    memcpy(lane, &by, sizeof lane);
    for (int i = 0; i < LANES; i++)
        elapsed[i] += lane[i];
    issue = vset(0);
    for (int i = 0; i < REGS; i++) {
        ready[i] = vsub(ready[i], by);
        forwarded[i] = vsub(forwarded[i], by);
        read_last[i] = vsub(read_last[i], by);
    }
    for (int i = 0; i < MAX_UNITS; i++)
        unit_free[i] = vsub(unit_free[i], by);
    for (int i = 0; i < RING; i++)
        store_slot[i] = vsub(store_slot[i], by);
    for (unsigned i = 0; i < config->vector_queue; i++)
        queue_slot[i] = vsub(queue_slot[i], by);
    for (int i = 0; i < MULTIPLIED; i++)
        multiplied[i] = vsub(multiplied[i], by);
    store_last = vsub(store_last, by);
    queue_last = vsub(queue_last, by);
    memory_rebase(&by);
    forward_rebase(&by);
}

static inline vec wait_for(vec t, const vec *table, struct span_of span, const struct uop *u) {
    const vec *r = table + span.base;
    t = vmax(t, r[0]);
    if (span.count == 1)
        return t;
    if (u->step == &config->nothing) {
        for (int i = 1; i < span.count; i++)
            t = vmax(t, r[i]);
        return t;
    }
    vec lead = *u->step;
    for (int i = 1; i < span.count; i++) {
        t = vmax(t, vsub(r[i], lead));
        lead = vadd(lead, *u->step);
    }
    return t;
}

/* Charges lane 0's wait to the producer of the last operand. */
static void charge_operands(const struct uop *u, float from, float to) {
    uint8_t cause = STALL_compute;
    for (int k = 0; k < u->acc.count; k++)
        if (first(forwarded[u->acc.base + k]) >= to)
            cause = produced_by[u->acc.base + k];
    for (int i = 0; i < u->nsrc; i++)
        for (int k = 0; k < u->src[i].count; k++)
            if (first(ready[u->src[i].base + k]) >= to)
                cause = produced_by[u->src[i].base + k];
    waited(cause, to - from);
}

static inline void write_group(vec *table, struct span_of span, vec done, const struct uop *u) {
    for (int i = span.count - 1; i >= 0; i--) {
        table[span.base + i] = done;
        if (i)
            done = vsub(done, *u->step);
    }
}

/* The first cycle with a free issue slot; the sum of a cycle's slots may be slightly below one. */
static inline vec issue_cycle(void) { return vfloor(vadd(issue, vset(1e-3f))); }

static vec enqueue(const struct uop *u, vec t) {
    for (int i = 0; i < u->nsrc; i++)
        if (u->src[i].base < REG_V || u->src[i].base >= REG_FLAGS)
            t = wait_for(t, ready, u->src[i], u);
    t = vmax(t, queue_slot[next_queued]);
    t = vceil(t);
    float from = first(issue), to = first(t);
    if (to > from)
        waited(STALL_queue, to - from);
    issue = vadd(vmax(issue, t), *u->slot);
    return vmax(t, queue_last);
}

/* The first cycle from t in which the unit has room. An instruction may start in the cycle in
 * which its unit becomes free; the fraction is carried over to the next one, so an occupancy of
 * 2.5 takes 2 and 3 cycles in turn. An instruction that must fit starts only if the rest of the
 * cycle is enough. */
static inline vec unit_cycle(vec t, uint8_t unit, const vec *occupancy, bool fits) {
    vec from = unit_free[unit];
    if (!fits)
        return vmax(t, vfloor(from));
    vec whole = vset(1), beyond = vadd(from, vsub(*occupancy, whole));
    return vmax(t, vceil(vsub(vmin(from, beyond), vset(1e-3f))));
}

/* Moves a load out of the cycles that multiply-adds block; all times are integers. */
static vec behind_multiply_adds(vec t) {
    for (unsigned i = 0; i < MULTIPLIED; i++) {
        vec kept = vadd(multiplied[(next_multiplied + i) % MULTIPLIED], config->fma_blocks_load);
        vec apart = vmax(vsub(kept, t), vsub(t, kept));
        t = vadd(t, vmax(vsub(vset(1), apart), vset(0)));
    }
    return t;
}

/* The time at which all earlier instructions have ended. */
static vec all_done(vec t) {
    t = vmax(t, store_last);
    for (int i = 0; i < REG_NONE; i++)
        t = vmax(t, ready[i]);
    return t;
}

static void step(const struct uop *u, unsigned index, const struct touched **touched,
                 const struct touched *all, const struct touched *end) {
    bool queued = u->vector && config->vector_queue;
    own = block_stalls ? block_stalls + index : NULL;
    vec t = queued ? enqueue(u, issue_cycle()) : issue_cycle();
    float at = first(t), next;

    unsigned needed = u->nsrc - u->ndata;
    for (unsigned i = 0; i < needed; i++)
        t = wait_for(t, ready, u->src[i], u);
    if (u->acc.count)
        t = wait_for(t, forwarded, u->acc, u);
    next = first(t);
    if (next > at && !queued)
        charge_operands(u, at, next);
    at = next;
    if (u->serialises) {
        t = all_done(t);
        next = first(t);
        waited(STALL_fence, next - at);
        at = next;
    }

    const vec *busy = u->occupancy;
    vec longer = vset(0), busier;
    if (u->misaligned && *touched < end && (*touched)->op == index) {
        longer = misalignment(u, (*touched)->address, config->boundary);
        busier = vadd(*busy, longer);
        busy = &busier;
    }

    if (u->vector && u->access == ACCESS_LOAD) {
        for (int d = 0; d < u->ndst; d++)
            for (int k = 0; k < u->dst[d].count; k++)
                t = vmax(t, vadd(read_last[u->dst[d].base + k], config->write_after_read));
        next = first(t);
        if (!queued)
            waited(STALL_write_after_read, next - at);
        at = next;
    }
    if (u->access == ACCESS_STORE) {
        t = vmax(t, ring_free(&config->store_buffer, store_slot, next_store));
        next = first(t);
        if (!queued)
            waited(STALL_store_buffer, next - at);
        at = next;
    }
    t = vceil(t);
    if (u->unit != NO_UNIT) {
        vec *unit = &unit_free[u->unit];
        t = unit_cycle(t, u->unit, busy, u->fits);
        if (u->also != NO_UNIT)
            t = unit_cycle(t, u->also, u->also_occupancy, u->also_fits);
        if (u->behind_fma)
            t = behind_multiply_adds(t);
        if (u->shared != NO_UNIT) {
            vec *other = &unit_free[u->shared];
            t = vmax(t, vadd(vfloor(*other), config->shared_bias));
            *other = vmax(*other, vadd(vadd(vmax(*other, t), *busy), config->shared_bias));
        }
        *unit = vadd(vmax(*unit, t), *busy);
        if (u->also != NO_UNIT) {
            vec *second = &unit_free[u->also];
            *second = vadd(vmax(*second, t), *u->also_occupancy);
        }
        if (u->multiplies)
            multiplied[next_multiplied++ % MULTIPLIED] = t;
        next = first(t);
        if (!queued)
            waited(STALL_unit, next - at);
    }

    uint8_t producer = STALL_compute;
    vec there = t, resumed = t; /* the time at which issue continues */
    for (unsigned i = needed; i < u->nsrc; i++)
        there = wait_for(there, ready, u->src[i], u);
    vec done = vadd(vadd(there, *u->latency), longer);
    if (u->access) {
        enum served worst = SERVED_L1, served;
        vec arrival = done;
        const struct touched *r = *touched;
        for (; r < end && r->op == index; r++) {
            uint64_t line = r->address >> config->line_shift;
            arrival = vmax(arrival, memory_access(line, t, done, u, &served));
            worst = served > worst ? served : worst;
            if (u->access == ACCESS_STORE)
                forward_store(line, r->parts, done);
            else
                done = vmax(done, vadd(forward_load(line, r->parts, t), *u->latency));
        }
        arrival = vmax(arrival, done);
        *touched = r;
        if (u->access == ACCESS_STORE) {
            store_last = vmax(vadd(store_last, config->drain), arrival);
            store_slot[next_store++ % RING] = store_last;
        } else {
            if (config->load_may_stop && u->cost == COST_load) {
                vec late = vceil(vsub(arrival, done));
                resumed = vmax(t, vadd(vadd(t, late), config->load_miss_stops));
                waited(STALL_load_l1 + worst, first(resumed) - first(t));
            }
            done = arrival;
            producer = STALL_load_l1 + worst;
        }
    } else if (u->hint_from >= 0) {
        for (const struct touched *r = all; r < end; r++)
            if (r->op == u->hint_from) {
                uint64_t address = r->address + (uint64_t)(int64_t)u->hint_delta;
                memory_hint(address >> config->line_shift, t);
                break;
            }
    }

    if (u->vector) {
        /* A register that a store still awaits as data does not delay a load into it. */
        for (unsigned i = 0; i < needed; i++)
            for (int k = 0; k < u->src[i].count; k++)
                read_last[u->src[i].base + k] = t;
        for (int k = 0; k < u->acc.count; k++)
            read_last[u->acc.base + k] = t;
    }
    if (u->serialises)
        resumed = vmax(resumed, vceil(done));
    bool forwards = u->acc.count != 0;
    for (int d = 0; d < u->ndst; d++) {
        struct span_of span = u->dst[d];
        write_group(ready, span, done, u);
        write_group(forwarded, span, forwards ? vadd(t, *u->forward) : done, u);
        for (int k = 0; k < span.count; k++)
            produced_by[span.base + k] = producer;
    }
    if (u->base != REG_NONE) {
        ready[u->base] = forwarded[u->base] = vadd(t, *u->moved);
        produced_by[u->base] = STALL_compute;
    }
    if (queued) {
        queue_slot[next_queued] = queue_last = t;
        next_queued = next_queued + 1 == config->vector_queue ? 0 : next_queued + 1;
    } else
        issue = vadd(vmax(issue, resumed), *u->slot);
}

static void run(const struct uop *uops, unsigned from, unsigned to, const struct touched **touched,
                const struct touched *all, const struct touched *end) {
    for (unsigned i = from; i < to; i++) {
        while (*touched < end && (*touched)->op < i)
            ++*touched;
        step(uops + i, i, touched, all, end);
    }
    if (first(issue) > REBASE_AT)
        rebase();
}

static void branch(bool taken, bool mispredicted) {
    float at = first(issue);
    if (mispredicted)
        issue = vadd(issue, config->mispredict);
    else if (taken)
        issue = vadd(issue, config->taken);
    waited(STALL_branch, first(issue) - at);
}

static void fetch(uint64_t line) {
    float at = first(issue);
    issue = vmax(issue, vceil(memory_fetch(line, issue)));
    waited(STALL_fetch, first(issue) - at);
}

static void end(double cycles[LANES], double stalls[STALLS]) {
    vec last = all_done(issue);
    for (int i = 0; i < MAX_UNITS; i++)
        last = vmax(last, unit_free[i]);
    float lane[LANES];
    memcpy(lane, &last, sizeof lane);
    for (int i = 0; i < LANES; i++)
        cycles[i] = elapsed[i] + lane[i];
    memcpy(stalls, stalled, sizeof stalled);
}

const struct pipeline pipeline_inorder = {"inorder", init, begin, run, branch, fetch, end};
