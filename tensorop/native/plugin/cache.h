/* One set-associative cache of lines, least recently used out first, write back and allocate.
 * The number of sets is a power of two. */
#ifndef BOARD_CACHE_H
#define BOARD_CACHE_H

#include "board.h"

struct cache {
    unsigned sets;
    unsigned ways;
    uint64_t *tags; /* per set from most to least recent; line * 2 + dirty */
    uint64_t misses;
    uint64_t written_back;
};

#define NO_LINE UINT64_MAX

void cache_init(struct cache *cache, unsigned sets, unsigned ways);
void cache_clear(struct cache *cache);

/* Whether the cache has the line; makes it the most recent, and dirty if written. */
bool cache_use(struct cache *cache, uint64_t line, bool write);

/* Whether the cache has the line, without a change. */
bool cache_has(const struct cache *cache, uint64_t line);

/* Adds an absent line; returns the dirty line that it evicted, or NO_LINE. */
uint64_t cache_put(struct cache *cache, uint64_t line, bool write);

#endif
