/* Types of all plugin files: instruction classes, a decoded instruction, an instruction resolved
 * with vtype and the core's costs, and the record of a memory access. */
#ifndef BOARD_BOARD_H
#define BOARD_BOARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "lanes.h"

/* Cost classes of instructions. X(name, reported class, is vector). */
#define COST_CLASSES(X)                                                                            \
    X(alu, alu, 0)                                                                                 \
    X(mul, alu, 0)                                                                                 \
    X(div, alu, 0)                                                                                 \
    X(branch, branch, 0)                                                                           \
    X(load, int_load, 0)                                                                           \
    X(store, int_store, 0)                                                                         \
    X(fload, fp_load, 0)                                                                           \
    X(fstore, fp_store, 0)                                                                         \
    X(fadd, fp, 0)                                                                                 \
    X(fma, fp_fma, 0)                                                                              \
    X(fdiv, fp, 0)                                                                                 \
    X(fmove, fp, 0)                                                                                \
    X(system, system, 0)                                                                           \
    X(fence, system, 0)                                                                            \
    X(atomic, system, 0)                                                                           \
    X(prefetch, prefetch, 0)                                                                       \
    X(unknown, unknown, 0)                                                                         \
    X(vset, vector_config, 0)                                                                      \
    X(vset_register, vector_config, 0)                                                             \
    X(vload, vector_load, 1)                                                                       \
    X(vload_strided, vector_load, 1)                                                               \
    X(vload_indexed, vector_load, 1)                                                               \
    X(vload_segment, vector_load, 1)                                                               \
    X(vstore, vector_store, 1)                                                                     \
    X(vstore_strided, vector_store, 1)                                                             \
    X(vstore_indexed, vector_store, 1)                                                             \
    X(vstore_segment, vector_store, 1)                                                             \
    X(valu, vector_other, 1)                                                                       \
    X(vmul, vector_other, 1)                                                                       \
    X(vmacc, vector_fma, 1)                                                                        \
    X(vwmacc, vector_fma, 1)                                                                       \
    X(vdiv, vector_other, 1)                                                                       \
    X(vfadd, vector_other, 1)                                                                      \
    X(vfma, vector_fma, 1)                                                                         \
    X(vfma_scalar, vector_fma, 1)                                                                  \
    X(vfwma, vector_fma, 1)                                                                        \
    X(vfdiv, vector_other, 1)                                                                      \
    X(vreduce, vector_other, 1)                                                                    \
    X(vreduce_ordered, vector_other, 1)                                                            \
    X(vgather, vector_other, 1)                                                                    \
    X(vslide, vector_other, 1)                                                                     \
    X(vsplat, vector_other, 1)                                                                     \
    X(vmask, vector_other, 1)                                                                      \
    X(vmove, vector_other, 1)                                                                      \
    X(vunknown, vector_unknown, 1)

/* Reported classes. */
#define REPORT_CLASSES(X)                                                                          \
    X(vector_fma)                                                                                  \
    X(vector_load)                                                                                 \
    X(vector_store)                                                                                \
    X(vector_other)                                                                                \
    X(vector_config)                                                                               \
    X(vector_unknown)                                                                              \
    X(fp_load)                                                                                     \
    X(fp_store)                                                                                    \
    X(fp_fma)                                                                                      \
    X(fp)                                                                                          \
    X(int_load)                                                                                    \
    X(int_store)                                                                                   \
    X(branch)                                                                                      \
    X(alu)                                                                                         \
    X(prefetch)                                                                                    \
    X(system)                                                                                      \
    X(unknown)

#define AS_COST(name, report, vector) COST_##name,
enum cost { COST_CLASSES(AS_COST) COSTS };
#undef AS_COST
#define AS_REPORT(name) REPORT_##name,
enum report { REPORT_CLASSES(AS_REPORT) REPORTS };
#undef AS_REPORT

extern const char *const cost_names[COSTS];
extern const char *const report_names[REPORTS];
extern const uint8_t cost_report[COSTS];
extern const uint8_t cost_is_vector[COSTS];

/* Registers of the scoreboard. NONE is always ready; SINK is written but never read. */
enum { REG_X = 0, REG_F = 32, REG_V = 64, REG_FLAGS = 96, REG_VTYPE, REG_NONE, REG_SINK, REGS };

/* LMUL and element width as table indices: mf8 mf4 mf2 m1 m2 m4 m8; 8 16 32 64 bits. */
enum { LMULS = 7, LMUL_M1 = 3, EEWS = 4 };
extern const char *const lmul_names[LMULS];

/* The number of registers that a vector operand spans. */
enum span {
    SPAN_NONE,
    SPAN_LMUL, /* LMUL */
    SPAN_WIDE, /* 2 LMUL */
    SPAN_HALF, /* LMUL / 2 */
    SPAN_QUARTER,
    SPAN_EIGHTH,
    SPAN_EEW,   /* EEW / SEW * LMUL */
    SPAN_EI16,  /* 16 / SEW * LMUL */
    SPAN_ONE,   /* one register: a mask or the scalar of a reduction */
    SPAN_FIXED, /* in the instruction */
};

enum access { ACCESS_NONE, ACCESS_LOAD, ACCESS_STORE };
/* The target of a jump: in its word, in a register, in a register that a call has set. */
enum jump { JUMP_NONE, JUMP_DIRECT, JUMP_REGISTER, JUMP_RETURN };
enum mark { MARK_NONE, MARK_BEGIN, MARK_END, MARK_WARM, MARK_FORGET };
enum vset { VSET_NONE, VSET_IMMEDIATE, VSET_REGISTER, VSET_MAX, VSET_KEEP, VSET_DYNAMIC };

enum { MAX_SOURCES = 4, MAX_VSOURCES = 4 };

struct operand {
    uint8_t reg;  /* 0..31 */
    uint8_t span; /* enum span */
};

/* A decoded instruction. */
struct insn {
    uint32_t word;
    uint8_t cost;
    uint8_t src[MAX_SOURCES];
    uint8_t dst[2];
    struct operand vsrc[MAX_VSOURCES];
    struct operand vdst;
    int8_t accumulator; /* index in vsrc of the operand that is also the destination, or -1 */
    uint8_t scalar_accumulator; /* register of a scalar FMA's addend, or REG_NONE */
    uint8_t stored;             /* sources of a store's data: bits 0 to 3 of src, 4 to 7 of vsrc */
    uint8_t access;
    uint8_t eew;   /* element width index of a memory access or fixed-width operation; 255: SEW */
    uint8_t lmul;  /* LMUL index if the word fixes it; 255: vtype's */
    uint8_t fixed; /* registers of a SPAN_FIXED operand */
    uint8_t fields;
    bool shows_vl; /* unmasked unit-stride: its accesses count vl */
    uint8_t mark;
    bool conditional;
    uint8_t jump; /* enum jump; a call keeps the return address in a register */
    bool calls;
    /* Addresses: base + offset, and the constant that this instruction adds to a register. */
    uint8_t base;
    int32_t offset;
    uint8_t bumped;
    int32_t bump;
    uint8_t copied;   /* dst[0] becomes this register plus `bump` */
    bool writes_back; /* dst[1] is the base, which the access changes at once */
    /* vsetvli and similar ones. */
    uint8_t vset;
    uint16_t vtypei;
    uint32_t avl;
    int32_t li; /* constant put in dst[0] when is_li */
    bool is_li;
};

/* Decodes one instruction; the words' width in bytes is 2 or 4. */
typedef void (*decode_fn)(uint32_t word, unsigned width, struct insn *out);
struct decoder {
    const char *target; /* QEMU's target name */
    decode_fn decode;
    bool has_vtype;
};
extern const struct decoder *const decoders[];

/* The vector state that the instructions of a block depend on. */
struct vstate {
    uint8_t sew; /* index */
    int8_t lmul; /* log2 */
    uint32_t vl;
    bool known;
};

struct span_of {
    uint8_t base;
    uint8_t count;
};

/* An instruction resolved for one vector state, for a pipeline. */
struct uop {
    const vec *occupancy;
    const vec *also_occupancy;
    const vec *latency;
    const vec *forward;    /* latency seen through the accumulator operand of the next FMA */
    const vec *slot;       /* issue time taken */
    const vec *beyond;     /* added to a line's arrival: the delay beyond a scalar load's */
    const vec *step;       /* cycles between the registers of a group if results are chained */
    const vec *misaligned; /* of a contiguous vector access that crosses `boundary`, or NULL */
    const vec *split;      /* of a vector access whose elements are misaligned */
    uint16_t piece;        /* bytes of the access, at most `boundary` */
    uint8_t element;       /* bytes of an element, less one */
    struct span_of src[MAX_SOURCES + MAX_VSOURCES];
    struct span_of acc;
    struct span_of dst[3];
    const vec *moved; /* latency of `base` */
    uint8_t base;     /* the register that an access also changes, or REG_NONE */
    uint8_t nsrc;
    uint8_t ndata; /* the last ones of src: data that a store may await after its issue */
    uint8_t ndst;
    uint8_t cost;
    uint8_t unit;
    uint8_t shared;       /* a second unit, in use in scenarios with shared ports */
    uint8_t also;         /* another unit, busy for `also_occupancy` */
    bool fits, also_fits; /* starts only if the rest of the unit's cycle is enough */
    bool behind_fma;      /* a load that an earlier multiply-add may delay */
    bool multiplies;      /* such a multiply-add */
    bool serialises;      /* starts after all earlier ones end; later ones start after its end */
    uint8_t access;
    uint8_t lmul;
    uint8_t mark;
    bool vector;
    int16_t hint_from; /* a prefetch: the block's access that gives its address, or -1 */
    int32_t hint_delta;
};

/* A cache line that an instruction touched, in order; `elements`: the accesses to this line. */
struct touched {
    uint64_t address; /* of the first access */
    uint16_t op;
    uint16_t elements;
    uint16_t parts; /* which sixteenths of the line */
};

#endif
