/* vtype and vl, and the registers that an instruction's operands span. */
#include <string.h>

#include "resolve.h"

void insn_clear(struct insn *insn) {
    memset(insn, 0, sizeof *insn);
    memset(insn->src, REG_NONE, sizeof insn->src);
    memset(insn->dst, REG_SINK, sizeof insn->dst);
    insn->cost = COST_unknown;
    insn->accumulator = -1;
    insn->scalar_accumulator = REG_NONE;
    insn->eew = insn->lmul = 255;
    insn->fields = 1;
    insn->base = insn->bumped = insn->copied = REG_NONE;
}

static uint32_t vlmax(const struct vstate *state, unsigned vlen) {
    uint32_t per_register = vlen >> (3 + state->sew);
    return state->lmul >= 0 ? per_register << state->lmul : per_register >> -state->lmul;
}

void vstate_set(struct vstate *state, const struct insn *insn, int64_t avl, uint32_t seen,
                unsigned vlen) {
    uint32_t before = state->vl;
    if (insn->vset != VSET_DYNAMIC) {
        state->lmul = (int8_t)((insn->vtypei & 3) - (insn->vtypei & 4));
        state->sew = (insn->vtypei >> 3) & 3;
        state->known = true;
    }
    uint32_t most = vlmax(state, vlen);
    switch (insn->vset) {
    case VSET_IMMEDIATE:
        state->vl = insn->avl < most ? insn->avl : most;
        break;
    case VSET_KEEP:
        state->vl = before < most ? before : most;
        break;
    case VSET_MAX:
        state->vl = most;
        break;
    default:
        state->vl = seen                     ? (seen < most ? seen : most)
                    : avl >= 0 && avl < most ? (uint32_t)avl
                                             : most;
    }
}

static int effective(const struct insn *insn, const struct vstate *state, enum span span) {
    int eew = insn->eew == 255 ? state->sew : insn->eew;
    switch (span) {
    case SPAN_WIDE:
        return state->lmul + 1;
    case SPAN_HALF:
        return state->lmul - 1;
    case SPAN_QUARTER:
        return state->lmul - 2;
    case SPAN_EIGHTH:
        return state->lmul - 3;
    case SPAN_EEW:
        return state->lmul + eew - state->sew;
    case SPAN_EI16:
        return state->lmul + 1 - state->sew;
    case SPAN_ONE:
        return 0;
    default:
        return state->lmul;
    }
}

static struct span_of span_of(const struct insn *insn, const struct vstate *state,
                              struct operand operand) {
    int count = 1;
    if (operand.span == SPAN_FIXED)
        count = insn->fixed;
    else {
        int log = effective(insn, state, operand.span);
        count = log > 0 ? 1 << (log > 3 ? 3 : log) : 1;
        if (operand.span == SPAN_EEW || operand.span == SPAN_LMUL)
            count *= insn->access && operand.span != SPAN_NONE ? insn->fields : 1;
    }
    if (operand.reg + count > 32)
        count = 32 - operand.reg;
    return (struct span_of){REG_V + operand.reg, count};
}

/* The LMUL for the instruction's price: that of its data, or of its widest sources. */
static int priced_lmul(const struct insn *insn, const struct vstate *state) {
    if (insn->lmul != 255)
        return insn->lmul;
    int log = state->lmul;
    if (insn->access)
        log = effective(insn, state,
                        insn->access == ACCESS_LOAD ? insn->vdst.span : insn->vsrc[0].span);
    log += LMUL_M1;
    return log < 0 ? 0 : log >= LMULS ? LMULS - 1 : log;
}

static const vec *scaled(const vec *by, float factor) {
    vec *copy = vec_new();
    *copy = vmul(*by, vset(factor));
    return copy;
}

/* A group's last register is ready later than the first, by the cycles that the unit is busy
 * beyond one. */
static const vec *with_tail(const vec *latency, const vec *occupancy) {
    vec *copy = vec_new();
    *copy = vadd(*latency, vmax(vsub(*occupancy, vset(1)), vset(0)));
    return copy;
}

static const vec *longer(const vec *latency, const vec *than) {
    vec *copy = vec_new();
    *copy = vmax(vsub(*latency, *than), vset(0));
    return copy;
}

/* The sources whose bits are set in `of`; with `of` 0, those that are not a store's data. */
static void add_sources(const struct insn *insn, const struct vstate *state, unsigned of,
                        struct uop *out) {
    unsigned wanted = of ? of : ~(insn->access == ACCESS_STORE ? insn->stored : 0u);
    for (int i = 0; i < MAX_SOURCES; i++)
        if (wanted >> i & 1 && insn->src[i] != REG_NONE)
            out->src[out->nsrc++] = (struct span_of){insn->src[i], 1};
    for (int i = 0; i < MAX_VSOURCES; i++)
        if (wanted >> (MAX_SOURCES + i) & 1 && insn->vsrc[i].span != SPAN_NONE) {
            struct span_of span = span_of(insn, state, insn->vsrc[i]);
            if (i == insn->accumulator)
                out->acc = span;
            else
                out->src[out->nsrc++] = span;
        }
}

void resolve(const struct insn *insn, const struct vstate *state, const struct config *config,
             struct uop *out) {
    memset(out, 0, sizeof *out);
    bool vector = cost_is_vector[insn->cost];
    int lmul = vector ? priced_lmul(insn, state) : LMUL_M1;
    int eew = insn->eew != 255 ? insn->eew : vector ? state->sew : 3;
    /* A wide result or source takes as long as twice the registers, unless its class has its own
     * price. */
    bool wide = insn->vdst.span == SPAN_WIDE || insn->vsrc[0].span == SPAN_WIDE;
    bool own = insn->cost == COST_vwmacc || insn->cost == COST_vfwma;
    int row = wide && !own && lmul < LMULS - 1 ? lmul + 1 : lmul;
    const struct price *price = &config->price[insn->cost][row][eew];

    out->cost = insn->cost;
    out->vector = vector;
    out->lmul = lmul;
    out->access = insn->access;
    out->mark = insn->mark;
    out->unit = config->unit[insn->cost];
    out->shared = config->shared[insn->cost];
    out->hint_from = -1;
    out->also = config->also[insn->cost];
    out->fits = config->whole[out->unit];
    out->also_fits = config->whole[out->also];
    out->occupancy = price->occupancy;
    out->also_occupancy = price->also;
    out->latency = price->latency;
    out->forward = price->forward;
    out->slot = price->slot;
    out->acc = (struct span_of){REG_NONE, 0};
    out->base = insn->writes_back ? insn->dst[1] : REG_NONE;
    out->moved = config->price[COST_alu][LMUL_M1][3].latency;

    /* The latencies of the outer levels are those of scalar integer loads. */
    static const vec none;
    out->beyond = &none;

    float factor = insn->fields;
    if (vector && config->vl_dependent && insn->lmul == 255) {
        float whole = vlmax(state, config->vlen), beat = (float)config->dlen / (8 << eew);
        float used = state->vl < beat ? beat : state->vl;
        if (used < whole)
            factor *= used / whole;
    }
    if (factor != 1)
        out->occupancy = scaled(out->occupancy, factor);
    if (vector) {
        out->latency = with_tail(out->latency, out->occupancy);
        out->forward = with_tail(out->forward, out->occupancy);
    }

    out->serialises = insn->cost == COST_fence || insn->cost == COST_atomic;
    if (price->misaligned) {
        unsigned registers = lmul > LMUL_M1 ? 1u << (lmul - LMUL_M1) : 1;
        unsigned bytes = (config->vlen / 8 * registers) >> (lmul < LMUL_M1 ? LMUL_M1 - lmul : 0);
        out->misaligned = price->misaligned;
        out->piece = bytes < config->boundary ? bytes : config->boundary;
        out->element = (1u << eew) - 1;
        if (config->splits)
            out->split = scaled(&config->split, (float)insn->fields * bytes / (1u << eew));
    }
    if (insn->access == ACCESS_LOAD && insn->cost != COST_load)
        out->beyond = longer(out->latency, config->price[COST_load][LMUL_M1][3].latency);

    add_sources(insn, state, 0, out);
    if (insn->access == ACCESS_STORE && insn->stored) {
        unsigned before = out->nsrc;
        add_sources(insn, state, insn->stored, out);
        out->ndata = config->late_store_data ? out->nsrc - before : 0;
    }
    if (insn->scalar_accumulator != REG_NONE)
        out->acc = (struct span_of){insn->scalar_accumulator, 1};
    for (int i = 0; i < 2; i++)
        if (insn->dst[i] != REG_SINK)
            out->dst[out->ndst++] = (struct span_of){insn->dst[i], 1};
    if (config->fma_may_block) {
        out->multiplies = cost_report[insn->cost] == REPORT_vector_fma || insn->cost == COST_fma;
        bool to_fp =
            insn->vdst.span != SPAN_NONE || (insn->dst[0] >= REG_F && insn->dst[0] < REG_FLAGS);
        out->behind_fma = insn->access == ACCESS_LOAD && to_fp;
    }
    int group = 1;
    if (insn->vdst.span != SPAN_NONE) {
        out->dst[out->ndst] = span_of(insn, state, insn->vdst);
        group = out->dst[out->ndst++].count;
    } else if (out->acc.count)
        group = out->acc.count;
    out->step = group == 1 ? &config->nothing : config_step(config, out->occupancy, group);
}
