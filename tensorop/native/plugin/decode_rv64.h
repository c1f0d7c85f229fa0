/* Encodings shared by the scalar and the vector half of the RISC-V decoder. */
#ifndef BOARD_DECODE_RV64_H
#define BOARD_DECODE_RV64_H

#include "board.h"

static inline unsigned bits(uint32_t w, int high, int low) {
    return (w >> low) & ((1u << (high - low + 1)) - 1);
}

static inline int32_t sign(uint32_t value, int width) {
    return (int32_t)(value << (32 - width)) >> (32 - width);
}

static inline uint8_t xsrc(unsigned r) { return r ? REG_X + r : REG_NONE; }
static inline uint8_t xdst(unsigned r) { return r ? REG_X + r : REG_SINK; }

static inline void memory(struct insn *o, enum cost cost, enum access access, uint8_t data,
                          unsigned rs1, int32_t offset) {
    o->cost = cost;
    o->access = access;
    o->src[0] = xsrc(rs1);
    if (access == ACCESS_LOAD)
        o->dst[0] = data;
    else {
        o->src[1] = data;
        o->stored = 1 << 1;
    }
    o->base = REG_X + rs1;
    o->offset = offset;
}

void rv64_vector_access(uint32_t w, struct insn *o, enum access access);
void rv64_vector(uint32_t w, struct insn *o);

#endif
