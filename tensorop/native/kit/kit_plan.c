/* Reads the plan, makes operands from it, and checks results against it. */
#include "kit.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int plan_open(struct plan *plan, const char *path, char *error, size_t error_size) {
    struct stat about;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &about) || (size_t)about.st_size < sizeof *plan->head) {
        snprintf(error, error_size,
                 "%s cannot be read or is cut off; copy the kit to this machine again", path);
        return -1;
    }
    plan->size = (size_t)about.st_size;
    plan->at = mmap(NULL, plan->size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (plan->at == MAP_FAILED) {
        snprintf(error, error_size, "%s does not fit into memory", path);
        return -1;
    }
    plan->head = (const struct kit_head *)plan->at;
    if (memcmp(plan->head->magic, "TOPSKIT", 8) != 0 || plan->head->version != KIT_VERSION) {
        snprintf(error, error_size,
                 "%s is not the plan of this kit; copy the kit to this machine again", path);
        return -1;
    }
    return 0;
}

const void *plan_part(const struct plan *plan, uint64_t at, uint64_t size) {
    if (at > plan->size || size > plan->size - at) {
        fprintf(stderr, "kit: the plan is cut off; copy the kit to this machine again\n");
        exit(2);
    }
    return plan->at + at;
}

static uint64_t mixed(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Element i of a buffer: uniform in [-1, 1) with the format's precision, or an integer with
 * random bits. `drawn` in tensorop/kits/plan.py computes the same. */
static void drawn(uint8_t *to, uint32_t format, uint64_t seed, uint64_t i) {
    uint64_t z = mixed(seed + (i + 1) * 0x9e3779b97f4a7c15u);
    static const unsigned bits[] = {53, 24, 11, 8};
    int64_t v = format <= FORMAT_BF16
                    ? (int64_t)(z >> (64 - bits[format])) - ((int64_t)1 << (bits[format] - 1))
                    : 0;
    switch (format) {
    case FORMAT_F64: {
        double x = (double)v * 0x1p-52;
        memcpy(to, &x, sizeof x);
        break;
    }
    case FORMAT_F32:
    case FORMAT_BF16: {
        float x = (float)v * (format == FORMAT_F32 ? 0x1p-23f : 0x1p-7f);
        uint32_t held;
        memcpy(&held, &x, sizeof held);
        if (format == FORMAT_F32)
            memcpy(to, &held, sizeof held);
        else
            memcpy(to, (uint16_t[]){(uint16_t)(held >> 16)}, 2);
        break;
    }
    case FORMAT_F16: {
        uint64_t size = (uint64_t)(v < 0 ? -v : v), exponent = 0;
        while (size >> (exponent + 1))
            exponent++;
        uint16_t held = (uint16_t)(v < 0 ? 0x8000 : 0);
        if (size)
            held |= (uint16_t)((exponent + 5) << 10 | ((size << (10 - exponent)) & 0x3ff));
        memcpy(to, &held, 2);
        break;
    }
    default:
        memcpy(to, &z, format == FORMAT_I8 ? 1 : format == FORMAT_I16 ? 2 : 4);
    }
}

uint8_t *plan_content(const struct plan *plan, const struct kit_buffer *buffer) {
    static const unsigned sizes[] = {8, 4, 2, 2, 1, 2, 4};
    size_t size = buffer->wire.size;
    uint8_t *out = malloc(size + 1);
    if (!out || buffer->format > FORMAT_I32)
        return NULL;
    if (buffer->fill == FILL_RAW)
        memcpy(out, plan_part(plan, buffer->raw_at, size), size);
    else if (buffer->fill == FILL_POISON)
        memset(out, 0xff, size);
    else
        for (uint64_t i = 0; i < size / sizes[buffer->format]; i++)
            drawn(out + i * sizes[buffer->format], buffer->format, buffer->seed, i);
    return out;
}

/* An element as a double, which is exact for every format here. */
static double value(const uint8_t *at, uint32_t format, uint64_t i) {
    switch (format) {
    case FORMAT_F64: {
        double x;
        memcpy(&x, at + 8 * i, 8);
        return x;
    }
    case FORMAT_F32: {
        float x;
        memcpy(&x, at + 4 * i, 4);
        return (double)x;
    }
    case FORMAT_I8:
        return (double)(int8_t)at[i];
    case FORMAT_I16: {
        int16_t x;
        memcpy(&x, at + 2 * i, 2);
        return (double)x;
    }
    default: {
        int32_t x;
        memcpy(&x, at + 4 * i, 4);
        return (double)x;
    }
    }
}

const char *plan_judge(const struct plan *plan, const struct kit_case *of, unsigned buffer,
                       unsigned second, const uint8_t *left, char *message, size_t size) {
    static const unsigned sizes[] = {8, 4, 2, 2, 1, 2, 4};
    const struct kit_expected *all = plan_part(plan, of->expected_at, of->expected * sizeof *all);
    const struct kit_buffer *buffers =
        plan_part(plan, of->buffers_at, of->buffers * sizeof *buffers);
    for (uint32_t e = 0; e < of->expected; e++) {
        const struct kit_expected *x = &all[e];
        if (x->buffer != buffer || x->second != second)
            continue;
        unsigned each = sizes[x->format];
        const uint8_t *low = plan_part(plan, x->low_at, x->count * each);
        const uint8_t *high = plan_part(plan, x->high_at, x->count * each);
        const uint8_t *gaps = x->gapped ? plan_part(plan, x->gaps_at, x->count) : NULL;
        uint8_t *before = gaps ? plan_content(plan, &buffers[buffer]) : NULL;
        uint64_t shift = second ? buffers[buffer].wire.shift : 0;
        left += shift;
        for (uint64_t i = 0; i < x->count; i++) {
            if (gaps && gaps[i]) {
                if (before && !memcmp(before + shift + i * each, left + i * each, each))
                    continue;
                snprintf(message, size,
                         "element %llu of buffer %u, in a gap between lines, was written",
                         (unsigned long long)i, buffer);
                free(before);
                return "wrong-result";
            }
            double from = value(low, x->format, i), to = value(high, x->format, i),
                   got = value(left, x->format, i);
            if (isnan(from) ? isnan(got) : from <= got && got <= to)
                continue;
            snprintf(message, size, "element %llu of buffer %u is %.9g, expected %.9g to %.9g",
                     (unsigned long long)i, buffer, got, from, to);
            free(before);
            return "wrong-result";
        }
        free(before);
        return "ok";
    }
    snprintf(message, size, "the plan has no expected values for buffer %u", buffer);
    return "wrong-result";
}
