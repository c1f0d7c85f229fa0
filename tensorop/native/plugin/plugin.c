/* The interface to QEMU: it decodes blocks at their translation, records the lines that their
 * accesses touch, and passes each block to the pipeline at the begin of the next one, when all
 * its accesses are known. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "pipeline.h"
#include "qemu_plugin_api.h"
#include "report.h"
#include "resolve.h"

QEMU_PLUGIN_EXPORT int qemu_plugin_version = 1;

const struct pipeline *const pipelines[] = {&pipeline_inorder, &pipeline_ooo, NULL};

/* A block's instructions under one vector state at its entry. */
struct form {
    struct form *next;
    struct vstate entry, leave;
    struct uop *uops;
    struct counts counts;
    uint64_t runs;
    bool listed;
};

struct block {
    uint64_t pc, fallthrough;
    unsigned n;
    struct insn *insns;
    uint8_t *widths; /* of its instructions, in bytes */
    int64_t *avl;    /* the length of each vset if it is a constant in this block, else -1 */
    struct form *forms;
    uint64_t runs; /* in this region, and its instructions' stalls, if there is a profile */
    struct stalls *stalls;
    struct block *profiled; /* the next one of the region's */
    struct {
        uint64_t line;
        unsigned first; /* its first instruction */
    } *code;            /* lines of code */
    unsigned code_n;
    bool marks, begins, conditional, sets_vtype;
    unsigned epoch;  /* in which `taken` and `target` were seen */
    uint8_t taken;   /* two-bit counter */
    uint64_t target; /* the last target of its jump through a register */
};

/* The return addresses of the last calls, as many as in a Cortex-A53's return stack. */
enum { RETURNS = 8 };
static uint64_t returns[RETURNS];
static unsigned newest, remembered; /* the index of the last one, and the count */

static const struct decoder *decoder;
static const struct pipeline *pipeline;
static struct config config;
static FILE *output;
static unsigned regions;
static unsigned epoch; /* how often caches and predictors have forgotten everything */

#define NOBODY UINT32_MAX
static uint32_t owner = NOBODY; /* the thread whose region is being measured */
static bool inside, warming;    /* warming: inside a region that takes no time */
static struct block *pending;
static struct vstate vstate;
enum { THREADS = 64 };
static struct vstate outside[THREADS]; /* by thread, while no region is measured */
static struct touched *touched;
static unsigned touched_n, touched_room;
static struct counts counted;
struct stalls *block_stalls;
static struct block *profiled; /* the blocks that ran in this region */
static struct form **run_forms;
static unsigned run_forms_n, run_forms_room;

static void grow_touched(void) {
    size_t room = touched_room ? 2 * (size_t)touched_room : 1024;
    struct touched *base = realloc(touched ? touched - 1 : NULL, (room + 1) * sizeof *touched);
    if (!base)
        abort();
    base->op = UINT16_MAX;
    touched = base + 1;
    touched_room = (unsigned)room;
}

static void *grown(void *array, unsigned *room, size_t size) {
    *room = *room ? *room * 2 : 1024;
    array = realloc(array, *room * size);
    if (!array)
        abort();
    return array;
}

/* The sixteenths of a line that an access within it touches. */
static uint16_t parts_of(uint64_t first, uint64_t last) {
    unsigned shift = config.line_shift - 4;
    return (uint16_t)((2u << (last >> shift & 15)) - (1u << (first >> shift & 15)));
}

static void on_access(unsigned cpu, qemu_plugin_meminfo_t info, uint64_t address, void *data) {
    if (cpu != owner)
        return;
    uint16_t op = (uint16_t)(uintptr_t)data;
    uint64_t line = address >> config.line_shift;
    struct touched *newest = touched + touched_n - 1; /* touched[-1] exists and matches nothing */
    bool again = newest->op == op && newest->address >> config.line_shift == line;
    uint64_t last = address + (1u << qemu_plugin_mem_size_shift(info)) - 1;
    bool crosses = last >> config.line_shift != line;
    if (again && !crosses) {
        newest->elements++;
        newest->parts |= parts_of(address, last);
        return;
    }
    if (touched_n + 2 > touched_room)
        grow_touched();
    uint64_t behind = (line + 1) << config.line_shift;
    touched[touched_n++] =
        (struct touched){address, op, 1, parts_of(address, crosses ? behind - 1 : last)};
    if (crosses)
        touched[touched_n++] = (struct touched){last, op, 0, parts_of(behind, last)};
}

static void count(struct counts *to, const struct insn *insn, const struct uop *uop) {
    to->by_cost[uop->cost]++;
    if (uop->vector)
        to->by_lmul[uop->lmul]++;
    if (uop->cost != COST_unknown && uop->cost != COST_vunknown)
        return;
    for (unsigned i = 0; i < to->unknowns; i++)
        if (to->unknown[i] == insn->word)
            return;
    if (to->unknowns < UNKNOWN_SHOWN)
        to->unknown[to->unknowns++] = insn->word;
}

static void add_counts(struct counts *to, const struct counts *from, uint64_t times) {
    for (int i = 0; i < COSTS; i++)
        to->by_cost[i] += from->by_cost[i] * times;
    for (int i = 0; i < LMULS; i++)
        to->by_lmul[i] += from->by_lmul[i] * times;
    for (unsigned i = 0; i < from->unknowns; i++) {
        bool there = false;
        for (unsigned k = 0; k < to->unknowns; k++)
            there |= to->unknown[k] == from->unknown[i];
        if (!there && to->unknowns < UNKNOWN_SHOWN)
            to->unknown[to->unknowns++] = from->unknown[i];
    }
}

/* The elements of the first unit-stride access after instruction `from`, in this execution. */
static uint32_t elements_after(const struct block *block, unsigned from) {
    for (unsigned i = from + 1; i < block->n; i++) {
        uint32_t elements = 0;
        if (block->insns[i].vset != VSET_NONE)
            return 0;
        if (!block->insns[i].shows_vl)
            continue;
        for (unsigned k = 0; k < touched_n; k++)
            if (touched[k].op == i)
                elements += touched[k].elements;
        return elements / block->insns[i].fields;
    }
    return 0;
}

/* A register's value: an unknown value `id` plus a constant. */
struct origin {
    uint32_t id;
    int32_t delta;
};

/* Updates the registers' values for an instruction; it follows added constants. */
static void track_origins(const struct insn *insn, unsigned index, struct origin held[REG_F]) {
    struct origin copy = {0, 0};
    bool copied = insn->copied < REG_F;
    if (copied)
        copy = (struct origin){held[insn->copied].id, held[insn->copied].delta + insn->bump};
    else if (insn->bumped < REG_F)
        copy = (struct origin){held[insn->bumped].id, held[insn->bumped].delta + insn->bump};
    for (int d = 0; d < 2; d++)
        if (insn->dst[d] < REG_F)
            held[insn->dst[d]] = (struct origin){REG_F + 2 * index + (unsigned)d, 0};
    if (copied && insn->dst[0] < REG_F)
        held[insn->dst[0]] = copy;
    else if (!copied && insn->bumped < REG_F)
        held[insn->bumped] = copy;
}

/* Finds an access of the block whose address differs from a prefetch's by a constant. */
static void find_hint(const struct block *block, unsigned index, struct uop *uop) {
    const struct insn *hint = &block->insns[index];
    if (hint->cost != COST_prefetch || hint->base >= REG_F)
        return;
    struct origin held[REG_F], wanted = {0, 0};
    for (int pass = 0; pass < 2; pass++) {
        for (unsigned r = 0; r < REG_F; r++)
            held[r] = (struct origin){r, 0};
        for (unsigned i = 0; i < block->n; i++) {
            const struct insn *insn = &block->insns[i];
            if (pass == 0 && i == index) {
                wanted = held[hint->base];
                break;
            }
            if (pass == 1 && insn->access && insn->base < REG_F &&
                held[insn->base].id == wanted.id) {
                uop->hint_from = (int16_t)i;
                uop->hint_delta =
                    wanted.delta + hint->offset - held[insn->base].delta - insn->offset;
                return;
            }
            track_origins(insn, i, held);
        }
    }
}

static struct form *make_form(struct block *block) {
    struct form *form = calloc(1, sizeof *form);
    struct vstate state = vstate;
    if (!form || !(form->uops = calloc(block->n, sizeof *form->uops)))
        abort();
    form->entry = state;
    for (unsigned i = 0; i < block->n; i++) {
        const struct insn *insn = &block->insns[i];
        resolve(insn, &state, &config, &form->uops[i]);
        find_hint(block, i, &form->uops[i]);
        count(&form->counts, insn, &form->uops[i]);
        if (insn->vset != VSET_NONE)
            vstate_set(&state, insn, block->avl[i], elements_after(block, i), config.vlen);
    }
    form->leave = state;
    form->next = block->forms;
    block->forms = form;
    return form;
}

static bool same_state(const struct vstate *a, const struct vstate *b) {
    return a->sew == b->sew && a->lmul == b->lmul && (!config.vl_dependent || a->vl == b->vl);
}

static struct form *form_of(struct block *block) {
    struct form *form = block->forms;
    while (form && !same_state(&form->entry, &vstate))
        form = form->next;
    return form ? form : make_form(block);
}

/* Follows the vector state through a block; `recorded`: `touched` has the block's accesses. */
static void follow(const struct block *block, struct vstate *state, bool recorded) {
    for (unsigned i = 0; i < block->n; i++)
        if (block->insns[i].vset != VSET_NONE)
            vstate_set(state, &block->insns[i], block->avl[i],
                       recorded ? elements_after(block, i) : 0, config.vlen);
}

/* This block's accesses show a length that was set at the end of the block before. */
static void see_length(const struct block *block) {
    uint32_t seen = elements_after(block, (unsigned)-1);
    if (seen && vstate.known)
        vstate.vl = seen;
}

/* Counts a run of the block for the profile. */
static void profile(struct block *block) {
    if (!block->stalls && !(block->stalls = calloc(block->n, sizeof *block->stalls)))
        abort();
    if (!block->runs++) {
        block->profiled = profiled;
        profiled = block;
    }
    block_stalls = block->stalls;
}

/* Reports the blocks that ran, and forgets their stalls; whether there was one. */
static bool end_profile(void) {
    bool any = false;
    for (struct block *block = profiled; block; block = block->profiled) {
        uint64_t pc = block->pc;
        for (unsigned i = 0; i < block->n; i++) {
            report_instruction(output, !any, pc, block->runs, &block->stalls[i]);
            any = true;
            pc += block->widths[i];
        }
        memset(block->stalls, 0, block->n * sizeof *block->stalls);
        block->runs = 0;
    }
    profiled = NULL;
    block_stalls = NULL;
    return any;
}

static void begin_region(bool warm) {
    inside = true;
    warming = warm;
    remembered = 0;
    memset(&counted, 0, sizeof counted);
    run_forms_n = 0;
    pipeline->begin();
}

static void end_region(bool ended) {
    double cycles[LANES], stalls[STALLS];
    struct memory_counts memory = memory_counts();
    for (unsigned i = 0; i < run_forms_n; i++) {
        add_counts(&counted, &run_forms[i]->counts, run_forms[i]->runs);
        run_forms[i]->runs = 0;
        run_forms[i]->listed = false;
    }
    pipeline->end(cycles, stalls);
    report_region(output, regions++, ended, &counted, &memory, config.scenarios, cycles, stalls);
    report_end(output, end_profile());
    inside = warming = false;
}

/* Applies instructions [from, to) to the caches and prefetchers, whose contents do not depend on
 * time. */
static void fill(const struct uop *uops, unsigned from, unsigned to,
                 const struct touched **cursor) {
    const struct touched *end = touched + touched_n;
    const vec now = vset(0);
    enum served served;
    for (unsigned i = from; i < to; i++) {
        while (*cursor < end && (*cursor)->op < i)
            ++*cursor;
        for (; uops[i].access && *cursor < end && (*cursor)->op == i; ++*cursor)
            memory_access((*cursor)->address >> config.line_shift, now, now, &uops[i], &served);
        const struct touched *beside = uops[i].hint_from < 0 ? end : touched;
        while (beside < end && beside->op != uops[i].hint_from)
            beside++;
        if (beside < end)
            memory_hint((beside->address + (uint64_t)(int64_t)uops[i].hint_delta) >>
                            config.line_shift,
                        now);
    }
}

static void run(const struct uop *uops, unsigned from, unsigned to, const struct touched **cursor) {
    if (warming)
        fill(uops, from, to, cursor);
    else
        pipeline->run(uops, from, to, cursor, touched, touched + touched_n);
}

/* Runs instructions [from, to) of a block, and fetches their lines of code in order. */
static void run_fetched(const struct block *block, const struct uop *uops, unsigned from,
                        unsigned to, const struct touched **cursor) {
    for (unsigned k = 0; k < block->code_n; k++) {
        unsigned first = block->code[k].first;
        uint64_t line = block->code[k].line;
        if (first < from || first >= to || memory_has_code(line))
            continue;
        run(uops, from, first, cursor);
        from = first;
        if (warming)
            memory_fetch(line, vset(0));
        else
            pipeline->fetch(line);
    }
    run(uops, from, to, cursor);
}

/* Whether a core predicts that this jump goes to `next`, by its return stack and the last target
 * of each jump through a register. */
static bool foreseen(struct block *block, const struct insn *jump, uint64_t next) {
    bool right = true;
    if (jump->jump == JUMP_REGISTER) {
        right = block->target == next;
        block->target = next;
    }
    if (jump->jump == JUMP_RETURN) {
        right = remembered && returns[newest] == next;
        if (remembered) {
            newest = (newest - 1) % RETURNS;
            remembered--;
        }
    }
    if (jump->calls) {
        newest = (newest + 1) % RETURNS;
        returns[newest] = block->fallthrough;
        remembered += remembered < RETURNS;
    }
    return right;
}

/* The predictors' state for a block that was not run: its branch is probably taken. */
static void forget(struct block *block) {
    block->epoch = epoch;
    block->taken = 2;
    block->target = 0;
}

static void run_marked(struct block *block, struct form *form, const struct touched **cursor) {
    block_stalls = NULL;
    for (unsigned i = 0; i < block->n; i++) {
        uint8_t mark = form->uops[i].mark;
        if (mark == MARK_END && inside)
            end_region(true);
        if (inside) {
            run_fetched(block, form->uops, i, i + 1, cursor);
            count(&counted, &block->insns[i], &form->uops[i]);
        }
        if ((mark == MARK_BEGIN || mark == MARK_WARM) && !inside)
            begin_region(mark == MARK_WARM);
        if (mark == MARK_FORGET && !inside) {
            memory_clear();
            epoch++;
        }
    }
}

/* Runs the block whose execution is complete; `next`: the thread's next address. */
static void simulate(struct block *block, uint64_t next) {
    if (config.vl_dependent)
        see_length(block);
    struct form *form = form_of(block);
    const struct touched *cursor = touched;
    if (block->epoch != epoch)
        forget(block);
    if (config.profile && inside && !warming && !block->marks)
        profile(block);
    if (block->marks) {
        run_marked(block, form, &cursor);
    } else if (inside) {
        run_fetched(block, form->uops, 0, block->n, &cursor);
        form->runs++;
        if (!form->listed) {
            if (run_forms_n == run_forms_room)
                run_forms = grown(run_forms, &run_forms_room, sizeof *run_forms);
            run_forms[run_forms_n++] = form;
            form->listed = true;
        }
    }
    if (inside && block->conditional) {
        bool taken = next != block->fallthrough, guess = block->taken >= 2;
        if (taken && block->taken < 3)
            block->taken++;
        if (!taken && block->taken > 0)
            block->taken--;
        if (!warming)
            pipeline->branch(taken, taken != guess);
    }
    const struct insn *last = &block->insns[block->n - 1];
    if (inside && last->jump != JUMP_NONE) {
        bool right = foreseen(block, last, next);
        if (!warming)
            pipeline->branch(true, !right);
    }
    if (config.vl_dependent)
        follow(block, &vstate, true);
    else
        vstate = form->leave;
}

static bool claim(unsigned cpu) {
    uint32_t nobody = NOBODY;
    return __atomic_compare_exchange_n(&owner, &nobody, cpu, false, __ATOMIC_ACQUIRE,
                                       __ATOMIC_RELAXED);
}

static void on_block(unsigned cpu, void *data) {
    struct block *block = data;
    if (__atomic_load_n(&owner, __ATOMIC_RELAXED) != cpu) {
        if (!block->begins || !claim(cpu)) {
            if (block->sets_vtype && cpu < THREADS)
                follow(block, &outside[cpu], false);
            return;
        }
        if (cpu < THREADS)
            vstate = outside[cpu];
    } else if (pending) {
        simulate(pending, block->pc);
        if (!inside && !block->begins) {
            pending = NULL;
            if (cpu < THREADS) {
                outside[cpu] = vstate;
                follow(block, &outside[cpu], false);
            }
            __atomic_store_n(&owner, NOBODY, __ATOMIC_RELEASE);
            return;
        }
    }
    pending = block;
    touched_n = 0;
}

static void at_exit(qemu_plugin_id_t id, void *data) {
    (void)id;
    (void)data;
    if (pending)
        simulate(pending, pending->fallthrough);
    if (inside)
        end_region(false);
    fflush(output);
}

static void track_constants(struct block *block) {
    int64_t value[32];
    for (int i = 0; i < 32; i++)
        value[i] = -1;
    for (unsigned i = 0; i < block->n; i++) {
        const struct insn *insn = &block->insns[i];
        block->avl[i] = insn->vset == VSET_REGISTER ? value[insn->avl] : -1;
        if (insn->dst[0] < 32)
            value[insn->dst[0]] = insn->is_li && insn->li >= 0 ? insn->li : -1;
    }
}

static void on_translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb) {
    (void)id;
    unsigned n = (unsigned)qemu_plugin_tb_n_insns(tb);
    struct block *block = calloc(1, sizeof *block);
    if (!block || !(block->insns = calloc(n, sizeof *block->insns)) ||
        !(block->avl = calloc(n, sizeof *block->avl)) ||
        !(block->widths = calloc(n, sizeof *block->widths)) ||
        !(block->code = calloc(n, sizeof *block->code)))
        abort();
    block->pc = block->fallthrough = qemu_plugin_tb_vaddr(tb);
    block->n = n;
    for (unsigned i = 0; i < n; i++) {
        struct qemu_plugin_insn *handle = qemu_plugin_tb_get_insn(tb, i);
        struct insn *insn = &block->insns[i];
        unsigned width = (unsigned)qemu_plugin_insn_size(handle);
        uint32_t word = 0;
        memcpy(&word, qemu_plugin_insn_data(handle), width < 4 ? width : 4);
        insn_clear(insn);
        insn->word = word;
        decoder->decode(word, width, insn);
        uint64_t line = block->fallthrough >> config.line_shift;
        if (!block->code_n || block->code[block->code_n - 1].line != line) {
            block->code[block->code_n].line = line;
            block->code[block->code_n++].first = i;
        }
        block->fallthrough += width;
        block->widths[i] = (uint8_t)width;
        block->marks |= insn->mark != MARK_NONE;
        block->begins |= insn->mark != MARK_NONE && insn->mark != MARK_END;
        block->sets_vtype |= insn->vset != VSET_NONE;
        if (insn->access)
            qemu_plugin_register_vcpu_mem_cb(handle, on_access, QEMU_PLUGIN_CB_NO_REGS,
                                             QEMU_PLUGIN_MEM_RW, (void *)(uintptr_t)i);
    }
    block->conditional = n && block->insns[n - 1].conditional;
    forget(block);
    track_constants(block);
    qemu_plugin_register_vcpu_tb_exec_cb(tb, on_block, QEMU_PLUGIN_CB_NO_REGS, block);
}

static bool choose(const char *target) {
    for (int i = 0; decoders[i]; i++)
        if (!strcmp(decoders[i]->target, target))
            decoder = decoders[i];
    for (int i = 0; pipelines[i]; i++)
        if (!strcmp(pipelines[i]->name, config.pipeline))
            pipeline = pipelines[i];
    if (!decoder)
        fprintf(stderr, "board model: no decoder for %s\n", target);
    if (!pipeline)
        fprintf(stderr, "board model: no pipeline named '%s'\n", config.pipeline);
    return decoder && pipeline;
}

QEMU_PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc,
                                           char **argv) {
    const char *config_path = NULL, *out_path = NULL;
    for (int i = 0; i < argc; i++) {
        if (!strncmp(argv[i], "config=", 7))
            config_path = argv[i] + 7;
        else if (!strncmp(argv[i], "out=", 4))
            out_path = argv[i] + 4;
    }
    if (!config_path || !out_path) {
        fprintf(stderr, "board model: config=FILE and out=FILE are needed\n");
        return 1;
    }
    if (!config_read(config_path, &config) || !choose(info->target_name))
        return 1;
    output = fopen(out_path, "w");
    if (!output) {
        fprintf(stderr, "board model: cannot write %s\n", out_path);
        return 1;
    }
    grow_touched();
    vstate.sew = decoder->has_vtype ? 0 : 3;
    for (int i = 0; i < THREADS; i++)
        outside[i] = vstate;
    pipeline->init(&config);
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translate);
    qemu_plugin_register_atexit_cb(id, at_exit, NULL);
    return 0;
}
