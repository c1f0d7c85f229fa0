/* Reads lines `key words...`; constants that can differ between scenarios have a number for each
 * scenario. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

vec *vec_new(void) {
    static char *pool;
    static size_t left;
    if (left < sizeof(vec)) {
        left = 1024 * sizeof(vec);
        pool = aligned_alloc(64, left);
        if (!pool)
            abort();
    }
    vec *v = (vec *)pool;
    pool += sizeof(vec);
    left -= sizeof(vec);
    *v = vset(0);
    return v;
}

const vec *config_step(const struct config *config, const vec *occupancy, int group) {
    vec *step = vec_new();
    *step = vmul(vmul(*occupancy, config->chained), vset(1.0f / (float)group));
    return step;
}

static char *next_word(void) { return strtok(NULL, " \t\n"); }

static bool next_number(double *out) {
    char *word = next_word(), *end;
    if (!word)
        return false;
    *out = strtod(word, &end);
    return *end == 0;
}

static bool next_unsigned(unsigned *out) {
    double value;
    if (!next_number(&value) || value < 0)
        return false;
    *out = (unsigned)value;
    return true;
}

static bool next_bool(bool *out) {
    unsigned value = 0;
    if (!next_unsigned(&value))
        return false;
    *out = value != 0;
    return true;
}

/* One number per scenario; the lanes beyond repeat the first. */
static bool next_vec(const struct config *config, vec *out) {
    float lane[LANES] = {0};
    for (unsigned i = 0; i < config->scenarios; i++) {
        double value;
        if (!next_number(&value))
            return false;
        lane[i] = (float)value;
    }
    for (unsigned i = config->scenarios; i < LANES; i++)
        lane[i] = lane[0];
    memcpy(out, lane, sizeof *out);
    return true;
}

static int find_cost(const char *name) {
    for (int i = 0; name && i < COSTS; i++)
        if (!strcmp(cost_names[i], name))
            return i;
    return -1;
}

/* price CLASS LMUL EEW what numbers...; LMUL and EEW are table indices or *. */
static bool read_price(struct config *config) {
    int cost = find_cost(next_word());
    char *lmul = next_word(), *eew = next_word(), *what = next_word();
    vec *value = vec_new();
    if (cost < 0 || !lmul || !eew || !what || !next_vec(config, value))
        return false;
    for (int l = 0; l < LMULS; l++)
        for (int e = 0; e < EEWS; e++) {
            struct price *price = &config->price[cost][l][e];
            if ((*lmul != '*' && atoi(lmul) != l) || (*eew != '*' && atoi(eew) != e))
                continue;
            if (!strcmp(what, "occupancy"))
                price->occupancy = value;
            else if (!strcmp(what, "also"))
                price->also = value;
            else if (!strcmp(what, "latency"))
                price->latency = value;
            else if (!strcmp(what, "forward"))
                price->forward = value;
            else if (!strcmp(what, "slot"))
                price->slot = value;
            else if (!strcmp(what, "misaligned"))
                price->misaligned = value;
            else
                return false;
        }
    return true;
}

static bool read_unit(struct config *config, uint8_t *table) {
    int cost = find_cost(next_word());
    unsigned unit;
    if (cost < 0 || !next_unsigned(&unit) || unit >= config->units)
        return false;
    table[cost] = (uint8_t)unit;
    return true;
}

static bool read_prefetch(struct config *config) {
    unsigned variant, level, scalar;
    if (!next_unsigned(&variant) || variant >= MAX_VARIANTS || !next_unsigned(&level) ||
        level < 1 || level > 2)
        return false;
    struct prefetch *p = &config->prefetch[variant][level - 1];
    if (!next_unsigned(&p->streams) || p->streams > MAX_STREAMS || !next_unsigned(&p->distance) ||
        !next_unsigned(&p->train) || !next_unsigned(&scalar))
        return false;
    p->scalar_only = scalar != 0;
    return true;
}

static bool read_variant(struct config *config) {
    unsigned variant;
    float lane[LANES];
    if (!next_unsigned(&variant) || variant >= MAX_VARIANTS)
        return false;
    if (variant >= config->variants)
        config->variants = variant + 1;
    vec member;
    if (!next_vec(config, &member))
        return false;
    memcpy(lane, &member, sizeof lane);
    for (int i = 0; i < LANES; i++)
        lane[i] = lane[i] != 0 ? 0 : LONG_AGO;
    memcpy(&config->variant_bias[variant], lane, sizeof lane);
    return true;
}

static bool read_ring(struct config *config, struct ring_size *size) {
    vec value;
    float lane[LANES];
    if (!next_vec(config, &value))
        return false;
    memcpy(lane, &value, sizeof lane);
    size->n = 0;
    for (int i = 0; i < LANES; i++) {
        unsigned depth = (unsigned)lane[i], k = 0;
        if (depth < 1 || depth > RING)
            return false;
        while (k < size->n && size->depth[k] != depth)
            k++;
        if (k == DEPTHS)
            return false;
        if (k == size->n) {
            size->depth[size->n++] = depth;
            size->bias[k] = vset(LONG_AGO);
        }
        memcpy((float *)&size->bias[k] + i, &(float){0}, sizeof(float));
    }
    return true;
}

static bool read_cache(struct config *config) {
    unsigned level;
    return next_unsigned(&level) && level >= 1 && level <= 2 &&
           next_unsigned(&config->cache[level - 1].sets) &&
           next_unsigned(&config->cache[level - 1].ways) && config->cache[level - 1].sets &&
           config->cache[level - 1].ways;
}

static bool read_tlb(struct config *config) {
    unsigned level;
    return next_unsigned(&level) && level >= 1 && level <= 2 &&
           next_unsigned(&config->tlb[level - 1].sets) &&
           next_unsigned(&config->tlb[level - 1].ways) && config->tlb[level - 1].sets &&
           config->tlb[level - 1].ways && next_vec(config, &config->translation[level - 1]);
}

static bool read_level(struct config *config, vec *table) {
    unsigned level;
    return next_unsigned(&level) && level < LEVELS && next_vec(config, &table[level]);
}

static bool read_line(struct config *config, const char *key) {
    if (!strcmp(key, "scenarios"))
        return next_unsigned(&config->scenarios) && config->scenarios >= 1 &&
               config->scenarios <= LANES;
    if (!strcmp(key, "vlen"))
        return next_unsigned(&config->vlen);
    if (!strcmp(key, "dlen"))
        return next_unsigned(&config->dlen);
    if (!strcmp(key, "vl_dependent"))
        return next_bool(&config->vl_dependent);
    if (!strcmp(key, "cold"))
        return next_bool(&config->cold);
    if (!strcmp(key, "profile"))
        return next_bool(&config->profile);
    if (!strcmp(key, "pipeline")) {
        char *word = next_word();
        return word && snprintf(config->pipeline, sizeof config->pipeline, "%s", word) > 0;
    }
    if (!strcmp(key, "units"))
        return next_unsigned(&config->units) && config->units <= MAX_UNITS;
    if (!strcmp(key, "unit"))
        return read_unit(config, config->unit);
    if (!strcmp(key, "shared"))
        return read_unit(config, config->shared);
    if (!strcmp(key, "also"))
        return read_unit(config, config->also);
    if (!strcmp(key, "whole")) {
        unsigned unit;
        return next_unsigned(&unit) && unit < config->units && (config->whole[unit] = true);
    }
    if (!strcmp(key, "fma_blocks_load"))
        return next_vec(config, &config->fma_blocks_load) && (config->fma_may_block = true);
    if (!strcmp(key, "load_miss_stops"))
        return next_vec(config, &config->load_miss_stops) && (config->load_may_stop = true);
    if (!strcmp(key, "price"))
        return read_price(config);
    if (!strcmp(key, "mispredict"))
        return next_vec(config, &config->mispredict);
    if (!strcmp(key, "taken"))
        return next_vec(config, &config->taken);
    if (!strcmp(key, "write_after_read"))
        return next_vec(config, &config->write_after_read);
    if (!strcmp(key, "chained"))
        return next_vec(config, &config->chained);
    if (!strcmp(key, "late_store_data"))
        return next_bool(&config->late_store_data);
    if (!strcmp(key, "shared_bias"))
        return next_vec(config, &config->shared_bias);
    if (!strcmp(key, "vector_queue"))
        return next_unsigned(&config->vector_queue);
    if (!strcmp(key, "window"))
        return next_unsigned(&config->window);
    if (!strcmp(key, "line_shift"))
        return next_unsigned(&config->line_shift);
    if (!strcmp(key, "cache"))
        return read_cache(config);
    if (!strcmp(key, "icache"))
        return next_unsigned(&config->icache.sets) && next_unsigned(&config->icache.ways) &&
               config->icache.sets && config->icache.ways;
    if (!strcmp(key, "boundary"))
        return next_unsigned(&config->boundary) && config->boundary;
    if (!strcmp(key, "split"))
        return next_vec(config, &config->split) && (config->splits = true);
    if (!strcmp(key, "tlb"))
        return read_tlb(config);
    if (!strcmp(key, "latency"))
        return read_level(config, config->latency);
    if (!strcmp(key, "interval"))
        return read_level(config, config->interval);
    if (!strcmp(key, "write_interval"))
        return read_level(config, config->write_interval);
    if (!strcmp(key, "misses"))
        return read_ring(config, &config->misses);
    if (!strcmp(key, "store_buffer"))
        return read_ring(config, &config->store_buffer);
    if (!strcmp(key, "drain"))
        return next_vec(config, &config->drain);
    if (!strcmp(key, "write_streaming"))
        return next_unsigned(&config->write_streaming);
    if (!strcmp(key, "variant"))
        return read_variant(config);
    if (!strcmp(key, "prefetch"))
        return read_prefetch(config);
    return false;
}

static bool complete(const struct config *config) {
    for (int c = 0; c < COSTS; c++)
        for (int l = 0; l < LMULS; l++)
            for (int e = 0; e < EEWS; e++) {
                const struct price *p = &config->price[c][l][e];
                bool lacks = config->also[c] != NO_UNIT && !p->also;
                if (lacks || !p->occupancy || !p->latency || !p->forward || !p->slot) {
                    fprintf(stderr, "board model: no price for class %s\n", cost_names[c]);
                    return false;
                }
            }
    if (!config->scenarios || !config->variants || !config->cache[0].sets ||
        !config->cache[1].sets || !config->icache.sets || !config->boundary ||
        !config->tlb[0].sets || !config->tlb[1].sets || !config->misses.n ||
        !config->store_buffer.n || !config->line_shift) {
        fprintf(stderr, "board model: the configuration lacks a key\n");
        return false;
    }
    return true;
}

bool config_read(const char *path, struct config *config) {
    static char line[65536];
    FILE *file = fopen(path, "r");
    if (!file) {
        fprintf(stderr, "board model: cannot read %s\n", path);
        return false;
    }
    memset(config, 0, sizeof *config);
    memset(config->unit, NO_UNIT, sizeof config->unit);
    memset(config->shared, NO_UNIT, sizeof config->shared);
    memset(config->also, NO_UNIT, sizeof config->also);
    for (unsigned number = 1; fgets(line, sizeof line, file); number++) {
        char *key = strtok(line, " \t\n");
        if (key && !read_line(config, key)) {
            fprintf(stderr, "board model: %s:%u: cannot understand '%s'\n", path, number, key);
            fclose(file);
            return false;
        }
    }
    fclose(file);
    return complete(config);
}
