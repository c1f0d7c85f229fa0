/* Device memory between two guards, checksums of it, and random data. */
#include "kit.h"

enum { GUARD = 4096 };

pointer reserve(size_t bytes) {
    pointer at;
    must(cu.cuMemAlloc_v2(&at, bytes + 256), "memory");
    return at;
}

void release(pointer at) {
    if (at)
        cu.cuMemFree_v2(at);
}

struct buffer buffer_make(size_t bytes, size_t shift) {
    struct buffer b = {.bytes = bytes};
    b.total = 2 * GUARD + (bytes + shift + 255) / 256 * 256;
    b.base = reserve(b.total);
    must(cu.cuMemsetD8_v2(b.base, POISON, b.total), "memory is filled");
    b.at = b.base + GUARD + shift;
    return b;
}

void buffer_free(struct buffer *b) {
    release(b->base);
    b->base = 0;
}

static uint64_t counted(const char *kernel, unsigned blocks, void **arguments, int place) {
    static pointer sum;
    uint64_t found;
    if (!sum)
        sum = reserve(8);
    arguments[place] = &sum;
    must(cu.cuMemsetD8_v2(sum, 0, 8), "a sum is begun");
    launch(kernel, blocks, 1, 1, 256, NULL, arguments);
    must(cu.cuMemcpyDtoH_v2(&found, sum, 8), kernel);
    return found;
}

uint64_t lines_hash(pointer at, struct lines of) {
    return counted("kit_hash", 528, (void *[]){&at, &of.rows, &of.words, &of.pitch, NULL}, 4);
}

static uint64_t differs(pointer at, int64_t rows, int64_t from, int64_t cols, int64_t ld,
                        int value) {
    return counted("kit_differs", 64, (void *[]){&at, &rows, &from, &cols, &ld, &value, NULL}, 6);
}

uint64_t gaps_changed(pointer at, struct lines of) {
    return of.pitch == of.words ? 0
                                : differs(at, of.rows, of.words, of.pitch - of.words, of.pitch,
                                          POISON << 8 | POISON);
}

bool buffer_intact(const struct buffer *b) {
    const int64_t before = (int64_t)(b->at - b->base) / 2, end = (int64_t)b->bytes / 2,
                  all = (int64_t)b->total / 2;
    const int poison = POISON << 8 | POISON;
    return !differs(b->base, 1, 0, before, before, poison) &&
           !differs(b->at + 2 * (pointer)end, 1, 0, all - before - end, all, poison);
}

void fill_normal(pointer at, int64_t count, uint64_t seed, int format) {
    launch("kit_normal", 1056, 1, 1, 256, NULL, (void *[]){&at, &count, &seed, &format});
}

uint64_t mixed(uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}
