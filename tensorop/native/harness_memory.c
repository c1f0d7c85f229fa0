/* Buffers between guard pages, with a pattern in the bytes between data and the far guard. */
#include "harness.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { CANARY = 0xA5, LINE = 64 };

static size_t page_size(void) { return (size_t)sysconf(_SC_PAGESIZE); }

int guarded_open(struct guarded *g, const struct wire_buffer *wire, uint32_t placement,
                 unsigned number) {
    size_t page = page_size(), size = wire->size;
    /* Timed buffers start at different lines of their pages, so that operands do not share cache
     * sets by accident. */
    size_t lead = placement == PLACE_MIDDLE ? (size_t)LINE * (1 + 3 * number) : 0;
    /* A masked access whose lanes beyond the end lie in a guard page takes a microcode assist
     * (135 ns on Zen 5): no user's buffer ends before one. */
    size_t tail = placement == PLACE_MIDDLE ? LINE : 0;
    memset(g, 0, sizeof *g);
    g->pages_size = (size + lead + tail + page - 1) / page * page;
    g->map_size = g->pages_size + 2 * page;
    void *map = mmap(NULL, g->map_size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED)
        return -1;
    g->map = map;
    g->pages = g->map + page;
    if (g->pages_size && mprotect(g->pages, g->pages_size, PROT_READ | PROT_WRITE)) {
        munmap(g->map, g->map_size);
        g->map = NULL;
        return -1;
    }
    g->size = size;
    g->access = wire->access;
    g->shift = wire->shift;
    g->data = placement == PLACE_END ? g->pages + g->pages_size - size : g->pages + lead;
    memset(g->pages, CANARY, (size_t)(g->data - g->pages));
    memset(g->data + size, CANARY, (size_t)(g->pages + g->pages_size - g->data) - size);
    return 0;
}

int guarded_protect(struct guarded *g) {
    if (g->access != ACCESS_IN || !g->pages_size)
        return 0;
    return mprotect(g->pages, g->pages_size, PROT_READ);
}

int guarded_keep(struct guarded *g) {
    if (!g->size)
        return 0;
    void *map = mmap(NULL, g->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED)
        return -1;
    g->pristine = map;
    memcpy(g->pristine, g->data, g->size);
    return mprotect(g->pristine, g->size, PROT_READ);
}

void guarded_restore(struct guarded *g) {
    if (!g->pristine)
        return;
    if (g->access == ACCESS_IN)
        mprotect(g->pages, g->pages_size, PROT_READ | PROT_WRITE);
    memcpy(g->data, g->pristine, g->size);
    guarded_protect(g);
}

void guarded_turn(struct guarded *g, uint64_t draw) {
    enum { WORD = 8 }; /* a number of elements of every format */
    if (!g->pristine)
        return;
    size_t words = g->size / WORD, ahead = words > 1 ? WORD * (1 + draw % (words - 1)) : 0;
    mprotect(g->pages, g->pages_size, PROT_READ | PROT_WRITE);
    if (ahead) {
        memcpy(g->data, g->pristine + ahead, WORD * words - ahead);
        memcpy(g->data + WORD * words - ahead, g->pristine, ahead);
    } else {
        memset(g->data, 0, g->size);
    }
    guarded_protect(g);
}

int guarded_touched(const struct guarded *g, int64_t *offset) {
    for (const uint8_t *at = g->pages; at < g->pages + g->pages_size; at++) {
        if (at == g->data)
            at += g->size;
        if (at >= g->pages + g->pages_size)
            break;
        if (*at != CANARY) {
            *offset = at - g->data;
            return 1;
        }
    }
    return 0;
}

enum wire_fault guarded_fault(const struct guarded *g, const void *address, int64_t *offset) {
    const uint8_t *at = address;
    if (!g->map || at < g->map || at >= g->map + g->map_size)
        return FAULT_ELSEWHERE;
    *offset = at - g->data;
    if (at < g->pages)
        return FAULT_BEFORE;
    return at < g->pages + g->pages_size ? FAULT_READ_ONLY : FAULT_AFTER;
}

void guarded_close(struct guarded *g) {
    if (g->pristine)
        munmap(g->pristine, g->size);
    if (g->map)
        munmap(g->map, g->map_size);
    memset(g, 0, sizeof *g);
}
