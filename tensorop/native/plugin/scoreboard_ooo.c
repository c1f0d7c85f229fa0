/* Out-of-order issue: instructions enter a window in order, start when their operands and unit
 * are ready, even if earlier ones wait, and leave in order. Registers are renamed, so only true
 * dependences count. A unit is a stream of work: younger instructions use it while an older one
 * waits for operands, so occupancies add up from the time of entry. */
#include <string.h>

#include "forward.h"
#include "memory.h"
#include "pipeline.h"

#define REBASE_AT 4096.0f
enum { MAX_WINDOW = 1024 };

static const struct config *config;
static vec front; /* when the next instruction may enter; the fraction counts used slots */
static vec last_retired;
static vec retired[MAX_WINDOW];
static uint8_t retired_cause[MAX_WINDOW];
static struct stalls *retired_own[MAX_WINDOW]; /* of the instruction in this place of the window */
static unsigned entered;
static vec ready[REGS], forwarded[REGS];
static vec unit_free[MAX_UNITS];
static vec store_slot[RING], store_last;
static unsigned next_store;
static vec branch_done;
static double elapsed[LANES];
static double stalled[STALLS];
static struct stalls *own; /* the last instruction's */

static void init(const struct config *c) {
    config = c;
    memory_init(c);
}

static void begin(void) {
    front = last_retired = store_last = branch_done = vset(0);
    for (int i = 0; i < MAX_WINDOW; i++) {
        retired[i] = vset(0);
        retired_cause[i] = STALL_compute, retired_own[i] = NULL;
    }
    for (int i = 0; i < REGS; i++)
        ready[i] = forwarded[i] = vset(0);
    for (int i = 0; i < MAX_UNITS; i++)
        unit_free[i] = vset(0);
    for (int i = 0; i < RING; i++)
        store_slot[i] = vset(0);
    entered = next_store = 0;
    memset(elapsed, 0, sizeof elapsed);
    memset(stalled, 0, sizeof stalled);
    if (config->cold)
        memory_clear();
    memory_restart();
    forward_restart();
}

static inline void waited(struct stalls *of, unsigned cause, double cycles) {
    stalled[cause] += cycles;
    if (of)
        of->by_cause[cause] += cycles;
}

static void rebase(void) {
    vec by = vfloor(front);
    float lane[LANES];
    memcpy(lane, &by, sizeof lane);
    for (int i = 0; i < LANES; i++)
        elapsed[i] += lane[i];
    front = vsub(front, by);
    last_retired = vsub(last_retired, by);
    for (unsigned i = 0; i < config->window; i++)
        retired[i] = vsub(retired[i], by);
    for (int i = 0; i < REGS; i++) {
        ready[i] = vsub(ready[i], by);
        forwarded[i] = vsub(forwarded[i], by);
    }
    for (int i = 0; i < MAX_UNITS; i++)
        unit_free[i] = vsub(unit_free[i], by);
    for (int i = 0; i < RING; i++)
        store_slot[i] = vsub(store_slot[i], by);
    store_last = vsub(store_last, by);
    branch_done = vsub(branch_done, by);
    memory_rebase(&by);
    forward_rebase(&by);
}

static inline vec wait_for(vec t, const vec *table, struct span_of span) {
    for (int i = 0; i < span.count; i++)
        t = vmax(t, table[span.base + i]);
    return t;
}

static vec reserve(unsigned unit, vec from, const vec *occupancy, const vec *bias) {
    vec start = vmax(from, vfloor(unit_free[unit]));
    vec end = vadd(vmax(unit_free[unit], from), *occupancy);
    if (bias) {
        start = vmax(from, vadd(start, *bias));
        end = vmax(unit_free[unit], vadd(end, *bias));
    }
    unit_free[unit] = end;
    return start;
}

/* The lines of a load or store; the time at which the last one arrives. */
static vec access_lines(const struct uop *u, unsigned index, vec start, vec done,
                        const struct touched **touched, const struct touched *end,
                        enum served *worst) {
    vec arrival = done;
    enum served served;
    const struct touched *r = *touched;
    *worst = SERVED_L1;
    for (; r < end && r->op == index; r++) {
        uint64_t line = r->address >> config->line_shift;
        arrival = vmax(arrival, memory_access(line, start, done, u, &served));
        *worst = served > *worst ? served : *worst;
        if (u->access == ACCESS_STORE)
            forward_store(line, r->parts, done);
        else
            done = vmax(done, vadd(forward_load(line, r->parts, start), *u->latency));
    }
    *touched = r;
    return vmax(arrival, done);
}

static void hint(const struct uop *u, vec start, const struct touched *all,
                 const struct touched *end) {
    for (const struct touched *r = all; r < end; r++)
        if (r->op == u->hint_from) {
            uint64_t address = r->address + (uint64_t)(int64_t)u->hint_delta;
            memory_hint(address >> config->line_shift, start);
            return;
        }
}

static void step(const struct uop *u, unsigned index, const struct touched **touched,
                 const struct touched *all, const struct touched *end) {
    unsigned place = entered % config->window;
    own = block_stalls ? block_stalls + index : NULL;
    vec cycle = vfloor(vadd(front, vset(1e-3f)));
    float at = first(cycle), next;
    vec entry = vmax(cycle, vceil(retired[place]));
    next = first(entry);
    waited(retired_own[place], retired_cause[place], next - at);
    if (u->access == ACCESS_STORE) {
        at = next;
        entry = vmax(entry, vceil(ring_free(&config->store_buffer, store_slot, next_store)));
        next = first(entry);
        waited(own, STALL_store_buffer, next - at);
    }
    front = vadd(vmax(front, entry), *u->slot);

    vec t = entry;
    for (int i = 0; i < u->nsrc; i++)
        t = wait_for(t, ready, u->src[i]);
    if (u->acc.count)
        t = wait_for(t, forwarded, u->acc);
    uint8_t cause = STALL_compute;
    if (u->serialises) {
        t = vmax(t, vmax(last_retired, store_last));
        cause = STALL_fence;
    }
    t = vceil(t);
    const vec *busy = u->occupancy;
    vec longer = vset(0), busier;
    if (u->misaligned && *touched < end && (*touched)->op == index) {
        longer = misalignment(u, (*touched)->address, config->boundary);
        busier = vadd(*busy, longer);
        busy = &busier;
    }
    if (u->unit != NO_UNIT) {
        float before = first(t);
        t = vmax(t, reserve(u->unit, entry, busy, NULL));
        if (u->shared != NO_UNIT)
            t = vmax(t, reserve(u->shared, entry, busy, &config->shared_bias));
        if (first(t) > before)
            cause = STALL_unit;
    }

    vec done = vadd(vadd(t, *u->latency), longer);
    if (u->access) {
        enum served worst;
        vec arrival = access_lines(u, index, t, done, touched, end, &worst);
        if (u->access == ACCESS_STORE) {
            store_last = vmax(vadd(store_last, config->drain), arrival);
            store_slot[next_store++ % RING] = store_last;
        } else {
            done = arrival;
            cause = STALL_load_l1 + worst;
        }
    } else if (u->hint_from >= 0)
        hint(u, t, all, end);
    if (u->cost == COST_branch)
        branch_done = done;
    if (u->serialises)
        front = vmax(front, vceil(done));

    vec follow = u->acc.count ? vadd(t, *u->forward) : done;
    for (int d = 0; d < u->ndst; d++)
        for (int k = 0; k < u->dst[d].count; k++) {
            ready[u->dst[d].base + k] = done;
            forwarded[u->dst[d].base + k] = follow;
        }
    if (u->base != REG_NONE)
        ready[u->base] = forwarded[u->base] = vadd(t, *u->moved);
    last_retired = vmax(vadd(last_retired, *u->slot), done);
    retired[place] = last_retired;
    retired_cause[place] = cause;
    retired_own[place] = own;
    entered++;
}

static void run(const struct uop *uops, unsigned from, unsigned to, const struct touched **touched,
                const struct touched *all, const struct touched *end) {
    for (unsigned i = from; i < to; i++) {
        while (*touched < end && (*touched)->op < i)
            ++*touched;
        step(uops + i, i, touched, all, end);
    }
    if (first(front) > REBASE_AT)
        rebase();
}

static void branch(bool taken, bool mispredicted) {
    float at = first(front);
    if (mispredicted)
        front = vmax(front, vadd(branch_done, config->mispredict));
    else if (taken)
        front = vadd(front, config->taken);
    waited(own, STALL_branch, first(front) - at);
}

static void fetch(uint64_t line) {
    float at = first(front);
    front = vmax(front, vceil(memory_fetch(line, front)));
    waited(own, STALL_fetch, first(front) - at);
}

static void end(double cycles[LANES], double stalls[STALLS]) {
    vec last = vmax(vmax(front, last_retired), store_last);
    float lane[LANES];
    memcpy(lane, &last, sizeof lane);
    for (int i = 0; i < LANES; i++)
        cycles[i] = elapsed[i] + lane[i];
    memcpy(stalls, stalled, sizeof stalled);
}

const struct pipeline pipeline_ooo = {"ooo", init, begin, run, branch, fetch, end};
