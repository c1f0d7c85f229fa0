/* A request's call: its values and operands, in pages of their own that a callee can only read.
 * They are at the end of these pages. Operands begin at the start of pages, and caches have few
 * ways for lines at the same offset. */
#include "harness.h"

#include <sys/mman.h>
#include <unistd.h>

enum { LINE = 64 };
enum { LEAST_BUFFERS = 8 }; /* missing ones of the first eight are NULL */

static size_t pointers(const struct request *r) {
    return r->wire.buffers > LEAST_BUFFERS ? r->wire.buffers : LEAST_BUFFERS;
}

int call_open(struct request *r) {
    const struct wire_request *w = &r->wire;
    size_t words = (size_t)w->dims + w->lds + w->scalars + 2 * (size_t)w->flags;
    size_t size =
        w->buffers * sizeof *r->buffer + words * sizeof(int64_t) + 2 * pointers(r) * sizeof(void *);
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    r->book_size = (size + page - 1) / page * page;
    void *wanted = w->placement == PLACE_FIXED ? guarded_place(PLACE_OF_BOOK) : NULL;
    void *map =
        mmap(wanted, r->book_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED)
        return -1;
    r->book = map;
    r->buffer = (struct guarded *)((char *)map + (r->book_size - size) / LINE * LINE);
    r->dim = (int64_t *)(r->buffer + w->buffers);
    r->ld = r->dim + w->dims;
    r->scalar = (double *)(r->ld + w->lds);
    r->flag = (int64_t *)(r->scalar + w->scalars);
    r->own_flag = r->flag + w->flags;
    r->pointer = (void **)(r->own_flag + w->flags);
    return wire_read(r->dim, (words - w->flags) * sizeof *r->dim);
}

struct tensorop_call call_of(const struct request *r, unsigned e, int shifted) {
    void **pointer = r->pointer + (shifted ? pointers(r) : 0);
    for (unsigned i = 0; i < r->wire.buffers; i++)
        pointer[i] = r->buffer[i].data + (shifted ? r->buffer[i].shift : 0);
    for (unsigned i = 0; i < r->wire.flags; i++)
        r->own_flag[i] = (int64_t)i == r->entry[e].slot ? r->entry[e].value : r->flag[i];
    return (struct tensorop_call){r->dim, r->ld, r->scalar, r->own_flag, pointer};
}

void call_close(struct request *r) {
    if (r->book)
        munmap(r->book, r->book_size);
    r->book = NULL;
}
