/* A libcuda.so.1 whose device memory is the host's: it holds what a launch is told against what the
 * hardware asks for, and computes what the kernel would. A kernel's image is a line:
 * maps|pointers|copy|add, then a_along_m b_along_k swap tile_m tile_n cluster_m cluster_n cluster
 * engine type matrices overlapped parts; parts: 1 where all tiles come in parts of k, 2 where the
 * last ones may; type: 1 where A and B are of f16, 2 more where C is float, 4 more where all are;
 * matrices: of a block. Of an image `kit` each function is the kernel of its name on this machine's
 * processor, of `kit NAME` the one of that name. */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"

#define SMS 132
#define USUAL 0x1000000000000000u

struct Epilogue {
    const void *bias, *residual;
    const float *by_row, *by_col;
    int64_t ld, stride;
    int bias_by_row, pairs, activation, present;
};
struct After { /* what a launch's arguments end with */
    int general;
    struct Epilogue epilogue;
};
#define Args Maps
struct Args {
    int m, n, k, batch;
    int tiles_m, tiles_n, group, clusters;
    float alpha, beta;
    void *c;
    int64_t ldc, stride_c;
    int whole, rest, deep;
    float *sums;
    int next, ahead_a, ahead_b;
    uint64_t keep_a, keep_b, keep_c;
    struct After after;
};
#undef Args
#define Args Pointers
struct Args {
    int m, n, k, batch;
    int tiles_m, tiles_n, group;
    float alpha, beta;
    const void *a, *b;
    void *c;
    int64_t lda, ldb, ldc, stride_a, stride_b, stride_c;
    int parts; /* it and what follows: of floats */
    float *sums;
};
struct Combine {
    const float *sums;
    float *c;
    int64_t ldc, stride_c;
    int m, n, batch, parts;
    float alpha, beta;
    struct Epilogue epilogue;
};
struct Sums {
    const float *sums;
    void *c;
    int64_t ldc, stride_c;
    int m, n, parts, whole, rest, kind;
    int tiles_m, tiles_n, group, cluster_m, cluster_n;
    int tile_m, tile_n, wgm, wgn, groups_m, swap;
    float alpha, beta;
    struct Epilogue epilogue;
};
struct Copy {
    const void *from;
    void *to;
    int64_t rows, from_ld, to_ld;
    int cols;
};
struct map { /* what a tensor map holds here */
    uint64_t base, extents[3], pitches[2];
    uint32_t box[2];
    int swizzle, type;
};
static int contexts[2], current_set;
static struct CUctx_st *current;
static int launches;

/* What is enqueued: at once, into a graph while its stream is captured, or behind what holds its
 * stream. */
struct work {
    int kind;
    CUlaunchConfig config;
    CUlaunchAttribute attributes[2];
    void *function;
    char held[8][256];
    void *arguments[8];
};
enum { KERNEL, OWN, COPY_BYTES, STREAMS = 16, WORKS = 4096 };
static struct queue {
    void *stream;
    bool capturing, held;
    struct work *works;
    int count;
} queues[STREAMS];
static uint64_t now_ns; /* a kernel takes as long as what it is called */
int kit_on_cpu(const char *name, const unsigned *grid, unsigned threads, void **arguments)
    __attribute__((weak)); /* tests/support/kit_on_cpu.h */
const size_t *kit_sizes(const char *name)
    __attribute__((weak)); /* bytes of its arguments, then 0 */

static int wrong(const char *why) {
    fprintf(stderr, "fake driver: %s\n", why);
    return 1;
}

static int capability(void) {
    const char *said = getenv("FAKE_CAPABILITY");
    return said ? atoi(said) : 90;
}

int cuInit(unsigned flags) { return getenv("FAKE_NO_DEVICE") ? 100 : 0 * flags; }
int cuDeviceGet(int *device, int ordinal) { return *device = ordinal, ordinal == 0 ? 0 : 101; }
int cuDeviceGetAttribute(int *value, int attribute, int device) {
    *value = attribute == MULTIPROCESSORS ? SMS
             : attribute == MAJOR         ? capability() / 10
                                          : capability() % 10;
    return device;
}
int cuDevicePrimaryCtxRetain(CUcontext *context, int device) {
    return *context = (void *)&contexts[0], device;
}
int cuDevicePrimaryCtxRelease_v2(int device) { return device; }
int cuCtxGetCurrent(CUcontext *context) { return *context = current, 0; }
int cuCtxPushCurrent_v2(CUcontext context) { return current_set++, current = context, 0; }
int cuCtxPopCurrent_v2(CUcontext *context) {
    return *context = current, current_set--, current = NULL, 0;
}
int cuStreamGetCtx(CUstream stream, CUcontext *context) {
    const uintptr_t at = (uintptr_t)stream;
    return *context = (void *)&contexts[at == 64 || at > 1000 ? 0 : 1], 0;
}
int cuModuleLoadData(CUmodule *module, const void *image) {
    return *module = (void *)(uintptr_t)image, 0;
}
int cuModuleUnload(CUmodule module) { return module == NULL; }
int cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
    const char *const image = (const char *)module;
    const bool own = !strncmp(image, "kit", 3); /* whose functions are their names */
    *function = (void *)(uintptr_t)(!own ? image : image[3] ? image + 4 : name);
    return own ? 0 : strcmp(name, "tensorop_kernel") != 0;
}
int cuFuncSetAttribute(CUfunction function, int attribute, int value) {
    return function == NULL || attribute != MOST_SHARED || value > 232448;
}
int cuCtxSetCurrent(CUcontext context) { return current = context, 0; }
int cuMemAlloc_v2(uint64_t *at, size_t size) {
    void *made = aligned_alloc(256, (size + 255) / 256 * 256);
    return *at = (uintptr_t)made, made == NULL ? OUT_OF_MEMORY : 0;
}
int cuMemFree_v2(uint64_t at) { return free((void *)(uintptr_t)at), 0; }
int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t size) {
    return memcpy((void *)(uintptr_t)to, from, size), 0;
}
int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t size) {
    return memcpy(to, (const void *)(uintptr_t)from, size), 0;
}
int cuDriverGetVersion(int *version) { return *version = 13000, 0; }
int cuDeviceGetName(char *name, int size, int device) {
    return snprintf(name, (size_t)size, "pretended %d", device), 0;
}
int cuDeviceGetPCIBusId(char *name, int size, int device) { return device + (size < 1) + !name; }
int cuMemGetInfo_v2(size_t *left, size_t *all) {
    const char *said = getenv("FAKE_LEFT");
    return *left = *all = said ? (size_t)atoll(said) : 1u << 30, 0;
}
int cuMemHostAlloc(void **at, size_t size, unsigned flags) {
    return *at = calloc(1, size), flags != 2;
}
int cuMemsetD8_v2(uint64_t at, unsigned char value, size_t size) {
    return memset((void *)(uintptr_t)at, value, size), 0;
}
int cuStreamCreate(CUstream *stream, unsigned flags) {
    static int made;
    return *stream = (void *)(uintptr_t)(1000 + ++made), flags != 1 || made >= STREAMS;
}
static uint64_t waits[2];
int cuStreamWaitEvent(CUstream stream, void *event, unsigned flags) {
    return waits[0]++, waits[1] = (uintptr_t)stream, flags != 0 || event == NULL;
}
int cuEventDestroy_v2(void *event) { return free(event), 0; }
int fake_waits(uint64_t *of) { return of[0] = waits[1], (int)waits[0]; }
/* All memory of this process is the first device's, but for what was said to be the host's. */
static struct {
    uint64_t first, after;
} hosts;
void fake_host(uint64_t first, uint64_t after) { hosts.first = first, hosts.after = after; }
int cuPointerGetAttribute(int *value, int attribute, uint64_t at) {
    return *value = 0, attribute != 9 || (at >= hosts.first && at < hosts.after);
}
int fake_launches(void) { return launches; }
int fake_current(void) { return current_set; }

int cuTensorMapEncodeTiled(CUtensorMap *map, int type, uint32_t rank, void *base,
                           const uint64_t *extents, const uint64_t *pitches, const uint32_t *box,
                           const uint32_t *steps, int interleave, int swizzle, int promotion,
                           int fill) {
    struct map m = {(uint64_t)(uintptr_t)base,
                    {extents[0], extents[1], extents[2]},
                    {pitches[0], pitches[1]},
                    {box[0], box[1]},
                    swizzle,
                    type};
    const uint32_t most = swizzle == 3 ? 128 : swizzle == 2 ? 64 : 32;
    if (rank != 3 || interleave || fill || steps[0] != 1 || steps[1] != 1 || steps[2] != 1 ||
        box[2] != 1 || promotion < 0)
        return wrong("an unusual map");
    if (m.base % 16 || pitches[0] % 16 || pitches[1] % 16 || pitches[0] < extents[0] * 2)
        return wrong("a map's base or pitch");
    if (!extents[0] || !extents[1] || !extents[2] || extents[0] >> 32 || extents[1] >> 32 ||
        pitches[1] >> 40 || !pitches[1])
        return wrong("a map's extents");
    if (box[0] > 256 || box[1] > 256 || !box[1] || box[0] * 2 % 16 || box[0] * 2 > most ||
        (uintptr_t)map % 64)
        return wrong("a map's box");
    memset(map, 0, sizeof *map);
    memcpy(map, &m, sizeof m);
    return 0;
}

static float value(uint16_t bits, int f16) {
    float v = 0;
    if (f16) {
        _Float16 h;
        memcpy(&h, &bits, 2);
        return (float)h;
    }
    const uint32_t wide = (uint32_t)bits << 16;
    memcpy(&v, &wide, 4);
    return v;
}

static float element(const void *of, int64_t place, int type) {
    return type & 4 ? ((const float *)of)[place] : value(((const uint16_t *)of)[place], type & 1);
}

static uint16_t rounded(float v, int f16) {
    uint16_t bits;
    uint32_t wide;
    if (f16) {
        const _Float16 h = (_Float16)v;
        memcpy(&bits, &h, 2);
        return bits;
    }
    memcpy(&wide, &v, 4);
    return (uint16_t)((wide + 0x7fff + (wide >> 16 & 1)) >> 16);
}

static float at(const struct map *m, int64_t x, int64_t y, int64_t z, int f16) {
    if ((uint64_t)x >= m->extents[0] || (uint64_t)y >= m->extents[1] ||
        (uint64_t)z >= m->extents[2])
        return 0;
    return value(*(const uint16_t *)(uintptr_t)(m->base + (uint64_t)z * m->pitches[1] +
                                                (uint64_t)y * m->pitches[0] + (uint64_t)x * 2),
                 f16);
}

/* An element of C, whose row and column in memory and number of matrix are i, j and z. */
static float finished(const struct Epilogue *e, float x, int64_t z, int64_t i, int64_t j,
                      int type) {
    const int of_c = type & 2 ? 4 : type & 1;
    x *= (e->by_row ? e->by_row[i] : 1) * (e->by_col ? e->by_col[j] : 1);
    x += e->bias ? element(e->bias, e->bias_by_row ? i : j, of_c) : 0;
    x += e->residual ? element(e->residual, z * e->stride + i * e->ld + j, of_c) : 0;
    if (e->activation == 1)
        return x < 0 ? 0 : x;
    const double to = e->activation == 2 ? 1.5957691216057308 * (x + 0.044715 * x * x * x) : x;
    return e->activation ? (float)(x / (1 + exp(-to))) : x;
}

static void put(void *c, int64_t place, float sum, float alpha, float beta, int type,
                const struct Epilogue *e, int64_t z, int64_t i, int64_t j) {
    float *wide = (float *)c + place;
    uint16_t *narrow = (uint16_t *)c + place;
    const float before = beta == 0 ? 0 : beta * (type & 2 ? *wide : value(*narrow, type));
    const float x = finished(e, alpha * sum + before, z, i, j, type);
    if (type & 2)
        *wide = x;
    else
        *narrow = rounded(x, type);
}

struct place {
    int batch;
    int64_t row, col, below, beside;
};

/* The rows and columns of a cluster of tiles. */
static struct place place(int tile, int tiles_m, int tiles_n, int group, int high, int wide, int m,
                          int n) {
    const int batch = tile / (tiles_m * tiles_n), in_batch = tile % (tiles_m * tiles_n);
    const int first = in_batch / (group * tiles_n) * group, inside = in_batch % (group * tiles_n);
    const int lines = group < tiles_m - first ? group : tiles_m - first;
    const int64_t row = (int64_t)(first + inside % lines) * high,
                  col = (int64_t)(inside / lines) * wide;
    return (struct place){batch, row, col, row + high < m ? row + high : m,
                          col + wide < n ? col + wide : n};
}

static int compute(const CUlaunchConfig *config, CUfunction function, void **arguments) {
    char kind[16];
    int a_along_m, b_along_k, swap, tile_m, tile_n, cluster_m, cluster_n, cluster, engine, type,
        matrices, overlapped, divides;
    if (sscanf((const char *)function, "%15s %d %d %d %d %d %d %d %d %d %d %d %d %d", kind,
               &a_along_m, &b_along_k, &swap, &tile_m, &tile_n, &cluster_m, &cluster_n, &cluster,
               &engine, &type, &matrices, &overlapped, &divides) != 14 ||
        current == NULL)
        return wrong("no such kernel, or no context");
    const int f16 = type & 1;
    ++launches;
    for (const char *at = (const char *)function; *at; ++at)
        now_ns += (unsigned char)*at * 37 % 101;
    if (!strcmp(kind, "copy")) {
        for (int which = 0; which < 2; ++which) {
            const struct Copy *copy = arguments[which];
            for (int64_t row = 0; row < copy->rows;
                 ++row) /* what follows a row is not to be relied on */
                for (int64_t col = 0; col < copy->to_ld; ++col)
                    ((uint16_t *)copy->to)[row * copy->to_ld + col] =
                        col < copy->cols ? ((const uint16_t *)copy->from)[row * copy->from_ld + col]
                                         : 0x7fff;
        }
        const struct Copy *first = arguments[0], *second = arguments[1];
        const int64_t spans = first->rows * ((first->cols + 1023) / 1024) +
                              second->rows * ((second->cols + 1023) / 1024);
        return config->block[0] == 256 && config->grid[0] * 8 >= spans ? 0 : wrong("a copy's grid");
    }
    if (!strcmp(kind, "add")) {
        const struct Combine *p = arguments[0];
        const int64_t size = (int64_t)p->m * p->n;
        for (int64_t i = 0; i < size * p->batch; ++i) {
            float sum = 0;
            for (int part = 0; part < p->parts; ++part)
                sum += p->sums[(i / size * p->parts + part) * size + i % size];
            const int64_t place = i / size * p->stride_c + i % size / p->n * p->ldc + i % p->n;
            put(p->c, place, sum, p->alpha, p->beta, 2, &p->epilogue, i / size, i % size / p->n,
                i % p->n);
        }
        return config->block[0] == 256 && config->grid[0] * 256 >= size * p->batch && p->parts > 1
                   ? 0
                   : wrong("a sum's grid");
    }
    if (!strcmp(kind, "sums")) { /* in lines of each cluster of tiles here */
        const struct Sums *p = arguments[0];
        const int high = p->cluster_m * p->tile_m, wide = p->cluster_n * p->tile_n;
        for (int of = 0; of < p->rest; ++of) {
            const struct place at =
                place(p->whole + of, p->tiles_m, p->tiles_n, p->group, high, wide, p->m, p->n);
            for (int64_t i = at.row; i < at.below; ++i)
                for (int64_t j = at.col; j < at.beside; ++j) {
                    const int64_t to = p->swap ? j * p->ldc + i : i * p->ldc + j;
                    const int64_t inside = (i - at.row) * wide + j - at.col;
                    float sum = 0;
                    for (int64_t part = 0; part < p->parts; ++part)
                        sum += p->sums[(part * p->rest + of) * high * wide + inside];
                    put(p->c, at.batch * p->stride_c + to, sum, p->alpha, p->beta,
                        type & 2 ? 2 : type ^ p->kind, &p->epilogue, at.batch, p->swap ? j : i,
                        p->swap ? i : j);
                }
        }
        return config->block[0] == 128 && config->grid[2] == 1 && p->rest > 0 && p->parts > 0 &&
                       (int64_t)config->grid[0] * 512 == (int64_t)p->rest * high * wide &&
                       p->group > 0 && p->tile_m % p->wgm == 0 && p->tile_n % p->wgn == 0
                   ? 0
                   : wrong("a grid of sums");
    }
    const int lost = getenv("FAKE_WRONG") != NULL; /* of k */
    if (!strcmp(kind, "pointers")) {
        const struct Pointers *p = arguments[0];
        const int parts = type & 4 ? p->parts : 1;
        const struct After *after = type & 4 ? (const void *)(p + 1) : (const void *)&p->parts;
        if (parts == 1 && after->general != (p->beta != 0 || after->epilogue.present))
            return wrong("whether there is an epilogue");
        if (config->count != (overlapped ? 2u : 0u) ||
            (overlapped &&
             (config->attributes[1].id != CLUSTER || config->attributes[1].value.cluster.x != 1)) ||
            (int64_t)config->grid[2] != (p->batch + matrices - 1) / matrices * parts || parts < 1 ||
            config->grid[2] > 65535 || config->grid[0] != (unsigned)(p->tiles_m * p->tiles_n) ||
            p->tiles_m != (p->m + tile_m - 1) / tile_m ||
            p->tiles_n != (p->n + tile_n - 1) / tile_n)
            return wrong("a grid");
        for (int64_t y = 0; y < (int64_t)p->batch * parts; ++y)
            for (int64_t i = 0; i < p->m; ++i)
                for (int64_t j = 0; j < p->n; ++j) {
                    const int64_t z = y / parts, from = y % parts * p->k / parts;
                    const int64_t a = z * p->stride_a, b = z * p->stride_b;
                    float sum = 0;
                    for (int64_t k = from; k < (y % parts + 1) * p->k / parts - lost; ++k)
                        sum +=
                            element(p->a, a + (a_along_m ? k * p->lda + i : i * p->lda + k), type) *
                            element(p->b, b + (b_along_k ? j * p->ldb + k : k * p->ldb + j), type);
                    if (parts > 1)
                        p->sums[(y * p->m + i) * p->n + j] = sum;
                    else
                        put(p->c, z * p->stride_c + i * p->ldc + j, sum, p->alpha, p->beta, type,
                            &after->epilogue, z, i, j);
                }
        return 0;
    }
    const struct Maps *p = arguments[3];
    struct map a, b, c;
    memcpy(&a, arguments[0], sizeof a);
    memcpy(&b, arguments[1], sizeof b);
    memcpy(&c, arguments[2], sizeof c);
    const int high = tile_m * cluster_m, wide = tile_n * cluster_n;
    const int along = cluster_m * cluster_n, blocks = (int)config->attributes[1].value.cluster.x;
    if (config->count != 2 || config->attributes[1].id != CLUSTER || blocks > cluster ||
        (cluster > along ? blocks < 2 * along || blocks % along : blocks != cluster) ||
        config->grid[0] % (unsigned)blocks || !config->grid[0] ||
        config->grid[0] > (unsigned)p->clusters * (unsigned)blocks)
        return wrong("a launch's cluster");
    if (p->tiles_m != (p->m + high - 1) / high || p->tiles_n != (p->n + wide - 1) / wide ||
        p->whole + p->rest != p->tiles_m * p->tiles_n * p->batch || p->rest < 0 ||
        p->deep < (p->rest > 0) || p->clusters < p->whole + p->rest ||
        (p->rest ? (p->clusters - p->whole) % p->rest : p->clusters - p->whole) ||
        (p->rest ? !divides : divides == 1) || (divides == 1 && p->whole))
        return wrong("tiles");
    if (divides == 2 && p->rest && p->whole % (SMS / blocks))
        return wrong("whole waves of tiles");
    const int b_once = p->tiles_m == 1, streams = p->next == 2;
    const int64_t read = (int64_t)(b_once ? p->n : p->m) * p->k * p->batch * 2;
    const int must = p->k > 128 && !p->rest && (b_once || p->tiles_n == 1) && read >= 8 << 20;
    if (streams ? !must : must && p->clusters * blocks <= SMS)
        return wrong("when the next launch may begin");
    if ((p->keep_a != USUAL) != (streams && !b_once) ||
        (p->keep_b != USUAL) != (streams && b_once) ||
        (streams && (p->ahead_a > 0) + 2 * (p->ahead_b > 0) != 1 + b_once))
        return wrong("what is read many times leaves L2 first");
    if (engine && (c.base != (uint64_t)(uintptr_t)p->c || c.pitches[0] != (uint64_t)p->ldc * 2 ||
                   c.extents[0] != (uint64_t)p->n || c.extents[1] != (uint64_t)p->m))
        return wrong("C's map");
    if (a.type != (f16 ? 6 : 9) || b.type != a.type)
        return wrong("a map's type");
    for (int number = 0; number < p->clusters; ++number) {
        const int late = number - p->whole, part = late < 0 ? 0 : late / p->rest;
        const struct place tile = place(late < 0 ? number : p->whole + late % p->rest, p->tiles_m,
                                        p->tiles_n, p->group, high, wide, p->m, p->n);
        const int64_t z = tile.batch, from = (int64_t)part * p->deep * 64;
        const int64_t to = late >= 0 && from + p->deep * 64 < p->k ? from + p->deep * 64 : p->k;
        if (from >= p->k && p->k)
            return wrong("a part of k that is empty");
        for (int64_t i = tile.row; i < tile.below; ++i)
            for (int64_t j = tile.col; j < tile.beside; ++j) {
                float sum = 0;
                for (int64_t k = from; k < to - lost; ++k)
                    sum += at(&a, a_along_m ? i : k, a_along_m ? k : i, z, f16) *
                           at(&b, b_along_k ? k : j, b_along_k ? j : k, z, f16);
                if (late >= 0)
                    p->sums[((int64_t)late * high + i - tile.row) * wide + j - tile.col] = sum;
                else
                    put(p->c, z * p->stride_c + (swap ? j * p->ldc + i : i * p->ldc + j), sum,
                        p->alpha, p->beta, type, &p->after.epilogue, z, swap ? j : i, swap ? i : j);
            }
    }
    return 0;
}

static struct queue *queue(void *stream) {
    int i = 0;
    while (queues[i].works && queues[i].stream != stream)
        i++;
    if (!queues[i].works)
        queues[i].stream = stream, queues[i].works = calloc(WORKS, sizeof(struct work));
    return &queues[i];
}

static int done(struct work *of) {
    of->config.attributes = of->attributes;
    if (of->kind == COPY_BYTES)
        return memcpy(of->arguments[0], of->arguments[1], (size_t)(uintptr_t)of->arguments[2]), 0;
    now_ns += of->kind == OWN ? 1000 : 0;
    if (of->kind == OWN)
        return kit_on_cpu(of->function, of->config.grid, of->config.block[0], of->arguments);
    return compute(&of->config, of->function, of->arguments);
}

/* Bytes of each argument, which the caller has. */
static const size_t *sizes(const struct work *of) {
    static const size_t none[8] = {0}, pointers[8] = {sizeof(struct Pointers)},
                        copy[8] = {sizeof(struct Copy), sizeof(struct Copy), 8},
                        add[8] = {sizeof(struct Combine)}, sums[8] = {sizeof(struct Sums)},
                        maps[8] = {128, 128, 128, sizeof(struct Maps)};
    if (of->kind == OWN)
        return kit_sizes(of->function);
    const char first = of->kind == KERNEL ? *(const char *)of->function : 0;
    return !first         ? none
           : first == 'c' ? copy
           : first == 'a' ? add
           : first == 's' ? sums
           : first == 'p' ? pointers
                          : maps;
}

static int enqueue(struct work *of, void *stream, void **arguments) {
    struct queue *q = queue(stream);
    if (of->kind == OWN && !strcmp(of->function, "kit_hold"))
        return q->held = true, 0;
    if (!q->capturing && !q->held) {
        if (of->kind == OWN)
            return kit_on_cpu(of->function, of->config.grid, of->config.block[0], arguments);
        for (int i = 0; i < 8 && sizes(of)[i]; i++)
            of->arguments[i] = arguments[i];
        return done(of);
    }
    if (q->count >= WORKS)
        return wrong("too much at once");
    struct work *kept = &q->works[q->count++];
    *kept = *of;
    for (int i = 0; i < 8 && sizes(of)[i]; i++) {
        kept->arguments[i] = kept->held[i];
        memcpy(kept->held[i], arguments[i], sizes(of)[i]);
    }
    return 0;
}

static int run_all(struct work *works, int count) {
    int status = 0;
    for (int i = 0; i < count && !status; i++)
        status = done(&works[i]);
    return status;
}

static int let_go(struct queue *q) {
    const int count = q->held ? q->count : 0;
    if (q->held)
        q->held = false, q->count = 0;
    return run_all(q->works, count);
}

int cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **arguments,
                     void **extra) {
    const bool own = !strncmp((const char *)function, "tensorop_", 9); /* of an image "kit" */
    struct work of = {.kind = own ? OWN : KERNEL, .config = *config, .function = (void *)function};
    memcpy(of.attributes, config->attributes, sizeof of.attributes);
    launches += own;
    return extra ? wrong("a launch with more") : enqueue(&of, config->stream, arguments);
}

int cuLaunchKernel(CUfunction function, unsigned x, unsigned y, unsigned z, unsigned threads,
                   unsigned high, unsigned deep, unsigned shared, CUstream stream, void **arguments,
                   void **extra) {
    struct work of = {.kind = OWN, .function = (void *)function};
    if (getenv("FAKE_BLIND") && !strcmp(of.function, "kit_compare"))
        return 0;
    of.config = (CUlaunchConfig){{x, y, z}, {threads, high, deep}, shared, stream, NULL, 0};
    return extra ? wrong("a launch with more") : enqueue(&of, stream, arguments);
}

int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t size, CUstream stream) {
    struct work of = {.kind = COPY_BYTES};
    of.arguments[0] = (void *)(uintptr_t)to, of.arguments[1] = (void *)(uintptr_t)from;
    of.arguments[2] = (void *)(uintptr_t)size;
    return enqueue(&of, stream, NULL);
}

int cuStreamSynchronize(CUstream stream) { return let_go(queue(stream)); }
int cuCtxSynchronize(void) {
    int status = 0;
    for (int i = 0; i < STREAMS && !status; i++)
        status = let_go(&queues[i]);
    return status;
}

int cuStreamBeginCapture_v2(CUstream stream, int mode) {
    if (getenv("FAKE_CRASH"))
        abort();
    return queue(stream)->capturing = true, mode != 1;
}
struct graph {
    int count;
    struct work works[];
};
int cuStreamEndCapture(CUstream stream, void **graph) {
    struct queue *q = queue(stream);
    struct graph *made = malloc(sizeof *made + (size_t)q->count * sizeof *q->works);
    memcpy(made->works, q->works, (size_t)q->count * sizeof *q->works);
    for (int i = 0; i < q->count; i++)
        for (int j = 0; j < 8; j++) /* they are held beside it */
            made->works[i].arguments[j] = made->works[i].held[j];
    made->count = q->count, q->count = 0, q->capturing = false;
    return *graph = made, 0;
}
int cuGraphInstantiateWithFlags(void **made, struct graph *graph, unsigned long long flags) {
    const size_t size = sizeof *graph + (size_t)graph->count * sizeof *graph->works;
    struct graph *own = memcpy(malloc(size), graph, size);
    for (int i = 0; i < own->count; i++)
        for (int j = 0; j < 8; j++)
            own->works[i].arguments[j] = own->works[i].held[j];
    return *made = own, flags != 0;
}
int cuGraphLaunch(struct graph *graph, CUstream stream) {
    return (void)stream, run_all(graph->works, graph->count);
}
int cuGraphDestroy(struct graph *graph) { return free(graph), 0; }
int cuGraphExecDestroy(struct graph *graph) { return free(graph), 0; }
int cuEventCreate(void **event, unsigned flags) {
    return *event = calloc(1, sizeof now_ns), flags != 0 && flags != 2;
}
int cuEventRecord(uint64_t *event, CUstream stream) { return (void)stream, *event = now_ns, 0; }
int cuEventSynchronize(uint64_t *event) { return !event; }
int cuEventElapsedTime(float *ms, const uint64_t *begun, const uint64_t *ended) {
    return *ms = (float)(*ended - *begun) * 1e-6f, 0;
}
