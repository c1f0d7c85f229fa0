#include "cache.h"

#include <stdlib.h>
#include <string.h>

#define EMPTY UINT64_MAX

void cache_init(struct cache *cache, unsigned sets, unsigned ways) {
    *cache = (struct cache){.sets = sets, .ways = ways};
    cache->tags = malloc(sizeof(uint64_t) * sets * ways);
    if (!cache->tags)
        abort();
    cache_clear(cache);
}

void cache_clear(struct cache *cache) {
    memset(cache->tags, 0xff, sizeof(uint64_t) * cache->sets * cache->ways);
}

static uint64_t *set_of(const struct cache *cache, uint64_t line) {
    return cache->tags + (size_t)(line & (cache->sets - 1)) * cache->ways;
}

bool cache_use(struct cache *cache, uint64_t line, bool write) {
    uint64_t *set = set_of(cache, line);
    for (unsigned way = 0; way < cache->ways; way++)
        if (set[way] >> 1 == line) {
            uint64_t tag = set[way] | write;
            for (unsigned i = way; i > 0; i--)
                set[i] = set[i - 1];
            set[0] = tag;
            return true;
        }
    return false;
}

bool cache_has(const struct cache *cache, uint64_t line) {
    const uint64_t *set = set_of(cache, line);
    for (unsigned way = 0; way < cache->ways; way++)
        if (set[way] >> 1 == line)
            return true;
    return false;
}

uint64_t cache_put(struct cache *cache, uint64_t line, bool write) {
    uint64_t *set = set_of(cache, line);
    uint64_t out = set[cache->ways - 1];
    for (unsigned i = cache->ways - 1; i > 0; i--)
        set[i] = set[i - 1];
    set[0] = line << 1 | write;
    if (out == EMPTY || !(out & 1))
        return NO_LINE;
    cache->written_back++;
    return out >> 1;
}
