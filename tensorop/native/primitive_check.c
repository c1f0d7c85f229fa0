/* Runs the primitives of a primitive set on cases from stdin, and writes their results to stdout.
 *
 * In, per case: six int64 (entry, vl, rows, cols, ldd, lds), then for each array of the entry two
 * int64 (bytes, offset of the pointer) and its bytes.
 *
 * Out: the lanes of a vector as one int64, then per case the entry's result, a whole vector. For an
 * entry that writes memory, it is the first array after the call.
 *
 * Every array ends at an inaccessible page. primitives.h is generated: the set's types, its
 * primitives as functions, the table of entries.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "jail.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { MAX_ARRAYS = 4, CAPACITY = 1 << 20, GUARD = 1 << 16 };

struct check_case {
    int64_t entry, vl, rows, cols, ldd, lds;
    void *array[MAX_ARRAYS]; /* the entry's pointers */
    void *out;               /* one vector, zero before the call */
};

struct check_entry {
    void (*run)(const struct check_case *c);
    int arrays;
    int writes_memory;
    int size; /* bytes of an element of the result */
};

#include "primitives.h"

static char *guarded(void) {
    char *base =
        mmap(NULL, CAPACITY + GUARD, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED || mprotect(base + CAPACITY, GUARD, PROT_NONE) != 0) {
        fputs("no memory for guarded arrays\n", stderr);
        exit(3);
    }
    return base + CAPACITY;
}

static int take(void *to, size_t bytes) { return fread(to, 1, bytes, stdin) == bytes; }

int main(void) {
    struct check_case c = {0};
    jail_enter(0); /* a set's C is untrusted */
    const int64_t lanes = (int64_t)check_lanes();
    char *end[MAX_ARRAYS], *out = guarded();
    for (int i = 0; i < MAX_ARRAYS; ++i)
        end[i] = guarded();
    fwrite(&lanes, sizeof lanes, 1, stdout);
    while (take(&c.entry, 6 * sizeof(int64_t))) {
        const struct check_entry *entry = &check_entries[c.entry];
        const size_t vector = (size_t)lanes * (size_t)entry->size;
        size_t first = 0;
        for (int i = 0; i < entry->arrays; ++i) {
            int64_t shape[2];
            if (!take(shape, sizeof shape) || shape[0] < 0 || shape[0] > CAPACITY)
                return 4;
            const size_t bytes = (size_t)shape[0];
            if (!take(end[i] - bytes, bytes))
                return 4;
            c.array[i] = end[i] - bytes + shape[1];
            if (i == 0)
                first = bytes;
        }
        c.out = out - vector;
        memset(c.out, 0, vector);
        fflush(stdout); /* after a crash the output shows the case */
        entry->run(&c);
        if (entry->writes_memory)
            fwrite(end[0] - first, 1, first, stdout);
        else
            fwrite(c.out, 1, vector, stdout);
    }
    return fflush(stdout) == 0 ? 0 : 5;
}
