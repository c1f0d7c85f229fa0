/* Buffers between guard pages, with a pattern in the bytes between data and the far guard. */
#include "harness.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { CANARY = 0xA5, LINE = 64, GUARD = 1 << 20 };

static size_t page_size(void) { return (size_t)sysconf(_SC_PAGESIZE); }

uint8_t *guarded_line(const struct guarded *g, size_t at, size_t *size) {
    if (at >= g->size)
        return NULL;
    *size = g->size - at < g->line ? g->size - at : g->line;
    return g->data + at / g->line * g->step;
}

/* The pages of a distant line, and one more on either side: a vector that begins or ends in the
 * line may read them. */
static uint8_t *pages_of(const struct guarded *g, size_t at, size_t *size) {
    size_t page = page_size(), length;
    uint8_t *line = guarded_line(g, at, &length);
    uint8_t *from = g->pages + (size_t)(line - g->pages) / page * page;
    uint8_t *to = from + ((size_t)(line + length - from) + page - 1) / page * page;
    from = from > g->pages ? from - page : from;
    to = to < g->pages + g->pages_size ? to + page : to;
    *size = (size_t)(to - from);
    return from;
}

/* Unmaps the pages of the lines that begin before `until` bytes of the stream. */
static void close_apart(const struct guarded *g, size_t until) {
    for (size_t at = 0; at < until; at += g->line) {
        size_t size;
        uint8_t *from = pages_of(g, at, &size);
        munmap(from, size);
    }
}

/* Maps distant lines, with gaps that no memory could hold. Only the lines' own pages are mapped,
 * at requested addresses; all else is guard. 0, or -1 if an address is in use. */
static int open_apart(const struct guarded *g) {
    uint8_t *end = g->pages;
    for (size_t at = 0; at < g->size; at += g->line) {
        size_t size;
        uint8_t *from = pages_of(g, at, &size), *to = from + size;
        from = from < end ? end : from; /* the line before has mapped these pages */
        size = to > from ? (size_t)(to - from) : 0;
        void *map =
            size ? mmap(from, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                 : from;
        if (map != from) {
            if (map != MAP_FAILED)
                munmap(map, size);
            close_apart(g, at);
            return -1;
        }
        memset(from, CANARY, size);
        end = to > end ? to : end;
    }
    return 0;
}

/* Places an operand with distant lines, each in its own 2^38 or 2^36 bytes. These are in the
 * middle of an address space of 47 bits, else of 38 bits, far from programs and libraries. */
static int place_apart(struct guarded *g, uint32_t placement, unsigned number) {
    static const unsigned places[][2] = {{44, 38}, {45, 38}, {35, 36}};
    size_t page = page_size(), lines = (g->size + g->line - 1) / g->line;
    size_t extent = (lines - 1) * g->step + g->size - (lines - 1) * g->line;
    g->pages_size = (extent + page - 1) / page * page;
    g->map_size = g->pages_size + 2 * page;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        uintptr_t from = (uintptr_t)1 << places[i][0];
        g->map = (uint8_t *)(from + ((uintptr_t)number << places[i][1]));
        g->pages = g->map + page;
        g->data = placement == PLACE_END ? g->pages + g->pages_size - extent : g->pages;
        if (!open_apart(g))
            return 0;
    }
    g->map = NULL;
    return -1;
}

void *guarded_place(unsigned number) {
    /* 19 pages further each, so that operands do not share the sets of a cache */
    return (void *)(((uintptr_t)1 << 34) + (uintptr_t)number * ((1 << 30) + (19 << 12)));
}

int guarded_open(struct guarded *g, const struct wire_buffer *wire, uint32_t placement,
                 unsigned number) {
    size_t page = page_size(), size = wire->size;
    /* Timed buffers start at different lines of their pages, so that operands do not share cache
     * sets by accident. */
    int timed = placement == PLACE_MIDDLE || placement == PLACE_FIXED;
    size_t lead = timed ? (size_t)LINE * (1 + 3 * number) : 0;
    /* A masked access with lanes in a guard page takes a microcode assist (135 ns on Zen 5).
     * Users' buffers have no guard, so timed ones do not end at one. */
    size_t tail = timed ? LINE : 0;
    memset(g, 0, sizeof *g);
    g->size = size;
    g->access = wire->access;
    g->shift = wire->shift;
    g->line = wire->step ? wire->line : size + 1;
    g->step = wire->step;
    if (g->step)
        return timed || !size || !g->line || g->step < g->line ? -1
                                                               : place_apart(g, placement, number);
    g->pages_size = (size + lead + tail + page - 1) / page * page;
    /* A fault in a wide guard identifies the buffer. */
    size_t guard = timed ? page : GUARD;
    g->map_size = g->pages_size + 2 * guard;
    /* Operands of checked calls have the same addresses in every call, if these are free. So a
     * callee that recognises calls by their addresses fails. */
    void *wanted = placement == PLACE_MIDDLE ? NULL : guarded_place(number);
    void *map = mmap(wanted, g->map_size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED)
        return -1;
    g->map = map;
    g->pages = g->map + guard;
    if (g->pages_size && mprotect(g->pages, g->pages_size, PROT_READ | PROT_WRITE)) {
        munmap(g->map, g->map_size);
        g->map = NULL;
        return -1;
    }
    g->data = placement == PLACE_END ? g->pages + g->pages_size - size : g->pages + lead;
    memset(g->pages, CANARY, (size_t)(g->data - g->pages));
    memset(g->data + size, CANARY, (size_t)(g->pages + g->pages_size - g->data) - size);
    return 0;
}

int guarded_protect(struct guarded *g) {
    if (g->access != ACCESS_IN || !g->pages_size)
        return 0;
    if (!g->step)
        return mprotect(g->pages, g->pages_size, PROT_READ);
    for (size_t at = 0; at < g->size; at += g->line) {
        size_t size;
        uint8_t *from = pages_of(g, at, &size);
        if (mprotect(from, size, PROT_READ))
            return -1;
    }
    return 0;
}

int guarded_keep(struct guarded *g) {
    if (!g->size)
        return 0;
    if (g->step) /* only single calls have distant lines */
        return -1;
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
    enum { WORD = 8 }; /* a multiple of every format's element size */
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

/* The first byte that is not the canary, or NULL. */
static const uint8_t *first_touched(const uint8_t *from, const uint8_t *to) {
    while (from < to && *from == CANARY)
        from++;
    return from < to ? from : NULL;
}

int guarded_touched(const struct guarded *g, int64_t *offset) {
    const uint8_t *before = g->pages, *found = NULL; /* the first unchecked byte */
    for (size_t at = 0; at < g->size && !found; at += g->line) {
        size_t size, around = 0;
        const uint8_t *line = guarded_line(g, at, &size);
        const uint8_t *from = g->step ? pages_of(g, at, &around) : g->pages;
        const uint8_t *to = g->step ? from + around : g->pages + g->pages_size, *next = to;
        if (g->step && at + g->line < g->size && line + g->step < to)
            next = line + g->step;
        found = first_touched(from > before ? from : before, line);
        if (!found)
            found = first_touched(line + size, next);
        before = next;
    }
    if (!g->size)
        found = first_touched(g->pages, g->pages + g->pages_size);
    if (found)
        *offset = found - g->data;
    return found != NULL;
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
    if (g->map && g->step)
        close_apart(g, g->size);
    else if (g->map)
        munmap(g->map, g->map_size);
    memset(g, 0, sizeof *g);
}
