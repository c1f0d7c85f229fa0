/* Counts the instructions of a call that come before its first access to an operand and after its
 * last one, by x86's single steps. An operand's pages are closed, so that an access faults; they
 * are open for the one instruction. The counts are no part of the protected state: a callee that
 * changes them spoils its own statistic. */
#include "harness.h"

#if defined(__x86_64__)
#include <signal.h>
#include <sys/mman.h>

enum { TRAP = 1 << 8 }; /* the flag after whose instructions the processor raises SIGTRAP */

static struct {
    const struct request *request; /* NULL: no call is stepped through */
    int opened;
    uint64_t made, first, last; /* instructions made; first, last: at an access, counted from 1 */
} path;

static void open_operands(int opened) {
    const struct request *r = path.request;
    for (unsigned i = 0; i < r->wire.buffers; i++) {
        const struct guarded *g = &r->buffer[i];
        int usual = g->access == ACCESS_IN ? PROT_READ : PROT_READ | PROT_WRITE;
        if (g->pages_size)
            mprotect(g->pages, g->pages_size, opened ? usual : PROT_NONE);
    }
    path.opened = opened;
}

static int in_operands(const uint8_t *at) {
    const struct request *r = path.request;
    for (unsigned i = 0; i < r->wire.buffers; i++)
        if (at >= r->buffer[i].pages && at < r->buffer[i].pages + r->buffer[i].pages_size)
            return 1;
    return 0;
}

int path_signal(int number, const void *address) {
    if (!path.request)
        return 0;
    if (number == SIGTRAP) {
        path.made++;
        if (path.opened)
            open_operands(0);
        return 1;
    }
    if (number != SIGSEGV || path.opened || !in_operands(address))
        return 0;
    path.last = path.made + 1;
    if (!path.first)
        path.first = path.last;
    open_operands(1);
    return 1;
}

void path_step(const struct request *r, entry_way way, unsigned number,
               const struct tensorop_call *call) {
    const uint64_t flags = __builtin_ia32_readeflags_u64();
    path.request = r;
    path.made = path.first = path.last = 0;
    open_operands(0);
    __builtin_ia32_writeeflags_u64(flags | TRAP);
    way(number, call);
    __builtin_ia32_writeeflags_u64(flags);
    open_operands(1);
    path.request = NULL;
}

uint64_t path_made(void) {
    return path.first ? path.made - (path.last - path.first + 1) : path.made;
}
#endif
