#include "memory.h"

#include <string.h>

#include "cache.h"
#include "prefetcher.h"

/* Lines in flight to a level, by line. A set holds more lines than are in flight at once. The
 * oldest request is replaced, whatever the time, since contents do not depend on time. */
enum { FLIGHT_BITS = 7, FLIGHT_SETS = 1 << FLIGHT_BITS, FLIGHT_WAYS = 4 };

struct flight {
    uint64_t line;
    bool prefetched;
    vec ready;
};

struct hierarchy {
    struct cache cache[2];
    struct prefetcher prefetcher[2];
    struct flight flight[2][FLIGHT_SETS][FLIGHT_WAYS];
    uint8_t oldest[2][FLIGHT_SETS]; /* the way to replace next */
    vec slot[RING];                 /* arrival times of the last misses' lines */
    unsigned next_slot;
    uint64_t stored; /* line of the last store that missed */
    unsigned stored_in_a_row;
    vec bus[LEVELS]; /* the earliest time for the next line from there */
    vec out;         /* the earliest time for the next write to level 2 */
    struct memory_counts counts;
};

static const struct config *config;
static struct hierarchy hierarchies[MAX_VARIANTS];

/* The same caches without prefetchers, for counts alone. */
static struct cache bare[2];
static uint64_t bare_misses[2];

/* Translation does not depend on prefetchers, so all variants share it. */
enum { PAGE_SHIFT = 12 };
static struct cache tlb[2];
static uint64_t last_page;

/* The level 1 instruction cache, without prefetching. */
static struct cache code;
static uint64_t last_code;
static uint64_t fetched;
static uint64_t untranslated[2];

void memory_init(const struct config *c) {
    config = c;
    last_page = last_code = NO_LINE;
    cache_init(&code, c->icache.sets, c->icache.ways);
    for (int level = 0; level < 2; level++) {
        cache_init(&tlb[level], c->tlb[level].sets, c->tlb[level].ways);
        cache_init(&bare[level], c->cache[level].sets, c->cache[level].ways);
    }
    for (unsigned v = 0; v < c->variants; v++)
        for (int level = 0; level < 2; level++) {
            cache_init(&hierarchies[v].cache[level], c->cache[level].sets, c->cache[level].ways);
            prefetcher_init(&hierarchies[v].prefetcher[level], &c->prefetch[v][level]);
        }
}

void memory_clear(void) {
    last_page = last_code = NO_LINE;
    cache_clear(&code);
    for (int level = 0; level < 2; level++) {
        cache_clear(&tlb[level]);
        cache_clear(&bare[level]);
    }
    for (unsigned v = 0; v < config->variants; v++)
        for (int level = 0; level < 2; level++) {
            cache_clear(&hierarchies[v].cache[level]);
            prefetcher_init(&hierarchies[v].prefetcher[level], &config->prefetch[v][level]);
        }
}

void memory_restart(void) {
    untranslated[0] = untranslated[1] = bare_misses[0] = bare_misses[1] = fetched = 0;
    for (unsigned v = 0; v < config->variants; v++) {
        struct hierarchy *h = &hierarchies[v];
        for (int level = 0; level < 2; level++) {
            h->cache[level].written_back = 0;
            for (int i = 0; i < FLIGHT_SETS; i++)
                for (int way = 0; way < FLIGHT_WAYS; way++)
                    h->flight[level][i][way] = (struct flight){NO_LINE, false, vset(LONG_AGO)};
            memset(h->oldest[level], 0, sizeof h->oldest[level]);
        }
        for (int i = 0; i < RING; i++)
            h->slot[i] = vset(0);
        for (int i = 0; i < LEVELS; i++)
            h->bus[i] = vset(0);
        h->out = vset(0);
        h->next_slot = h->stored_in_a_row = 0;
        h->stored = NO_LINE - 1;
        h->counts = (struct memory_counts){0};
    }
}

void memory_rebase(const vec *by) {
    for (unsigned v = 0; v < config->variants; v++) {
        struct hierarchy *h = &hierarchies[v];
        for (int level = 0; level < 2; level++)
            for (int i = 0; i < FLIGHT_SETS; i++)
                for (int way = 0; way < FLIGHT_WAYS; way++) {
                    vec *ready = &h->flight[level][i][way].ready;
                    *ready = vsub(*ready, *by);
                }
        for (int i = 0; i < RING; i++)
            h->slot[i] = vsub(h->slot[i], *by);
        for (int i = 0; i < LEVELS; i++)
            h->bus[i] = vsub(h->bus[i], *by);
        h->out = vsub(h->out, *by);
    }
}

/* Neighbouring lines, and lines a power of two apart, fall into different sets. */
static unsigned flight_set(uint64_t line) {
    return (unsigned)(line * UINT64_C(0x9e3779b97f4a7c15) >> (64 - FLIGHT_BITS));
}

static struct flight *flight_of(struct hierarchy *h, int level, uint64_t line) {
    struct flight *set = h->flight[level][flight_set(line)];
    for (int way = 0; way < FLIGHT_WAYS; way++)
        if (set[way].line == line)
            return &set[way];
    return NULL;
}

static void launch(struct hierarchy *h, int level, uint64_t line, vec ready, bool prefetched) {
    struct flight *flight = flight_of(h, level, line);
    if (!flight) {
        unsigned set = flight_set(line);
        flight = &h->flight[level][set][h->oldest[level][set]++ % FLIGHT_WAYS];
    }
    *flight = (struct flight){line, prefetched, ready};
}

static vec from_bus(struct hierarchy *h, int level, vec start) {
    vec begin = vmax(start, h->bus[level]);
    h->bus[level] = vadd(begin, config->interval[level]);
    return vadd(begin, config->latency[level]);
}

/* Lines written to DRAM use the same bus as reads. */
static bool put_outer(struct hierarchy *h, uint64_t line, vec start, bool write) {
    if (cache_put(&h->cache[1], line, write) == NO_LINE)
        return false;
    h->bus[2] = vadd(vmax(h->bus[2], start), config->write_interval[2]);
    return true;
}

/* The time at which the line that is evicted from level 1 begins to leave; `start` if there is
 * none. If level 2 must first write a line to DRAM, the evicted line waits for that write. */
static vec put_inner(struct hierarchy *h, uint64_t line, vec start, bool write) {
    uint64_t out = cache_put(&h->cache[0], line, write);
    if (out == NO_LINE)
        return start;
    vec begin = vmax(start, h->out);
    h->out = vadd(begin, config->write_interval[1]);
    if (!cache_use(&h->cache[1], out, true) && put_outer(h, out, begin, true))
        h->out = vmax(h->out, h->bus[2]);
    return begin;
}

/* Brings a line from level 2 or beyond; `demand` misses are counted. */
static vec bring(struct hierarchy *h, uint64_t line, vec start, bool demand, enum served *served) {
    if (cache_use(&h->cache[1], line, false)) {
        struct flight *flight = flight_of(h, 1, line);
        vec ready = from_bus(h, 1, start);
        if (flight)
            ready = vmax(ready, flight->ready);
        *served = SERVED_L2;
        return ready;
    }
    *served = SERVED_DRAM;
    h->counts.demand[1] += demand;
    vec ready = from_bus(h, 2, start);
    put_outer(h, line, start, false);
    launch(h, 1, line, ready, false);
    return ready;
}

/* Prefetches a line into level 1; the time of its arrival. */
static vec bring_ahead(struct hierarchy *h, uint64_t line, vec start) {
    enum served served;
    vec ready = bring(h, line, start, false, &served);
    put_inner(h, line, start, false);
    launch(h, 0, line, ready, true);
    h->counts.prefetched[0]++;
    return ready;
}

static void prefetch_inner(struct hierarchy *h, uint64_t line, vec start) {
    if (!cache_has(&h->cache[0], line))
        bring_ahead(h, line, start);
}

static void prefetch_outer(struct hierarchy *h, uint64_t line, vec start) {
    if (cache_has(&h->cache[1], line))
        return;
    vec ready = from_bus(h, 2, start);
    put_outer(h, line, start, false);
    launch(h, 1, line, ready, true);
    h->counts.prefetched[1]++;
}

static void train(struct hierarchy *h, uint64_t line, vec start, bool scalar) {
    uint64_t wanted[64];
    unsigned n;
    if (!h->prefetcher[0].how.scalar_only || scalar) {
        n = prefetcher_touch(&h->prefetcher[0], line, wanted);
        for (unsigned i = 0; i < n; i++)
            prefetch_inner(h, wanted[i], start);
    }
    if (!h->prefetcher[1].how.scalar_only || scalar) {
        n = prefetcher_touch(&h->prefetcher[1], line, wanted);
        for (unsigned i = 0; i < n; i++)
            prefetch_outer(h, wanted[i], start);
    }
}

static void count_bare(uint64_t line, bool write) {
    if (cache_use(&bare[0], line, write))
        return;
    bare_misses[0]++;
    if (!cache_use(&bare[1], line, false)) {
        bare_misses[1]++;
        cache_put(&bare[1], line, false);
    }
    uint64_t out = cache_put(&bare[0], line, write);
    if (out != NO_LINE && !cache_use(&bare[1], out, true))
        cache_put(&bare[1], out, true);
}

/* The cycles that the page's translation adds, or NULL after a hit. */
static const vec *translate(uint64_t line) {
    uint64_t page = line >> (PAGE_SHIFT - config->line_shift);
    if (page == last_page)
        return NULL;
    last_page = page;
    if (cache_use(&tlb[0], page, false))
        return NULL;
    cache_put(&tlb[0], page, false);
    untranslated[0]++;
    if (cache_use(&tlb[1], page, false))
        return &config->translation[0];
    cache_put(&tlb[1], page, false);
    untranslated[1]++;
    return &config->translation[1];
}

/* Whether a store that missed or hit a prefetched line is part of a run over whole lines, which
 * the core does not read. */
static bool streams(struct hierarchy *h, uint64_t line) {
    h->stored_in_a_row = line == h->stored + 1 ? h->stored_in_a_row + 1 : 0;
    h->stored = line;
    return config->write_streaming && h->stored_in_a_row >= config->write_streaming;
}

vec memory_access(uint64_t line, vec start, vec hit, const struct uop *by, enum served *served) {
    bool write = by->access == ACCESS_STORE, scalar = !by->vector;
    const vec *translation = translate(line);
    count_bare(line, write);
    if (translation) {
        start = vadd(start, *translation);
        hit = vadd(hit, *translation);
    }
    vec ready = hit;
    *served = SERVED_L1;
    for (unsigned v = 0; v < config->variants; v++) {
        struct hierarchy *h = &hierarchies[v];
        h->counts.lines++;
        if (cache_use(&h->cache[0], line, write)) {
            struct flight *flight = flight_of(h, 0, line);
            if (!flight)
                continue;
            ready = vmax(ready, vadd(vadd(flight->ready, *by->beyond), config->variant_bias[v]));
            if (v == 0 && first(flight->ready) > first(hit))
                *served = SERVED_L2;
            if (flight->prefetched) {
                flight->prefetched = false;
                if (!write || !streams(h, line))
                    train(h, line, start, scalar);
            }
            continue;
        }
        enum served found;
        if (write && streams(h, line)) {
            ready = vmax(ready, vadd(put_inner(h, line, start, true), config->variant_bias[v]));
            continue;
        }
        h->counts.demand[0]++;
        vec begin = vmax(start, ring_free(&config->misses, h->slot, h->next_slot));
        vec arrival = bring(h, line, begin, true, &found);
        h->slot[h->next_slot++ % RING] = arrival;
        put_inner(h, line, begin, write);
        launch(h, 0, line, arrival, false);
        ready = vmax(ready, vadd(vadd(arrival, *by->beyond), config->variant_bias[v]));
        if (v == 0)
            *served = found;
        train(h, line, start, scalar);
    }
    return ready;
}

/* A software prefetch takes a miss slot as a load does, and trains level 2's prefetcher; but no
 * instruction waits for it. */
void memory_hint(uint64_t line, vec start) {
    for (unsigned v = 0; v < config->variants; v++) {
        struct hierarchy *h = &hierarchies[v];
        h->counts.hinted++;
        if (cache_has(&h->cache[0], line))
            continue;
        vec begin = vmax(start, ring_free(&config->misses, h->slot, h->next_slot));
        h->slot[h->next_slot++ % RING] = bring_ahead(h, line, begin);
        train(h, line, start, false);
    }
}

bool memory_has_code(uint64_t line) {
    if (line == last_code)
        return true;
    last_code = line;
    return cache_use(&code, line, false);
}

vec memory_fetch(uint64_t line, vec start) {
    vec arrival = start;
    enum served served;
    cache_put(&code, line, false);
    fetched++;
    for (unsigned v = 0; v < config->variants; v++)
        arrival = vmax(arrival, vadd(bring(&hierarchies[v], line, start, false, &served),
                                     config->variant_bias[v]));
    return arrival;
}

struct memory_counts memory_counts(void) {
    struct memory_counts counts = hierarchies[0].counts;
    counts.fetched = fetched;
    for (int level = 0; level < 2; level++) {
        counts.misses[level] = bare_misses[level];
        counts.untranslated[level] = untranslated[level];
        counts.written_back[level] = hierarchies[0].cache[level].written_back;
    }
    return counts;
}
