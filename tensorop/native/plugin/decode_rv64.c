/* RV64GC, from the encodings of the RISC-V unprivileged ISA manual. */
#include "decode_rv64.h"

static void three(struct insn *o, enum cost cost, unsigned rd, unsigned rs1, unsigned rs2) {
    o->cost = cost;
    o->dst[0] = xdst(rd);
    o->src[0] = xsrc(rs1);
    o->src[1] = xsrc(rs2);
}

static void addi(struct insn *o, unsigned rd, unsigned rs1, int32_t immediate) {
    three(o, COST_alu, rd, rs1, 0);
    if (rs1 == 0) {
        o->is_li = true;
        o->li = immediate;
    } else {
        if (rd == rs1)
            o->bumped = REG_X + rd;
        o->copied = REG_X + rs1;
        o->bump = immediate;
    }
}

static void load(struct insn *o, unsigned rd, unsigned rs1, int32_t offset) {
    memory(o, COST_load, ACCESS_LOAD, xdst(rd), rs1, offset);
}

static void store(struct insn *o, unsigned rs2, unsigned rs1, int32_t offset) {
    memory(o, COST_store, ACCESS_STORE, xsrc(rs2), rs1, offset);
}

static void fload(struct insn *o, unsigned rd, unsigned rs1, int32_t offset) {
    memory(o, COST_fload, ACCESS_LOAD, REG_F + rd, rs1, offset);
}

static void fstore(struct insn *o, unsigned rs2, unsigned rs1, int32_t offset) {
    memory(o, COST_fstore, ACCESS_STORE, REG_F + rs2, rs1, offset);
}

static void branch(struct insn *o, unsigned rs1, unsigned rs2) {
    three(o, COST_branch, 0, rs1, rs2);
    o->conditional = true;
}

/* Calls keep the return address in x1 or x5, by the manual's hints for return stacks. */
static bool is_link(unsigned r) { return r == 1 || r == 5; }

static void jump(struct insn *o, enum jump how, unsigned rd, unsigned rs1) {
    three(o, COST_branch, rd, rs1, 0);
    o->jump = how;
    o->calls = is_link(rd);
    if (how == JUMP_REGISTER && is_link(rs1) && !o->calls)
        o->jump = JUMP_RETURN;
}

static void decode_compressed(uint32_t w, struct insn *o) {
    unsigned rd = bits(w, 11, 7), rs2 = bits(w, 6, 2);
    unsigned p1 = 8 + bits(w, 9, 7), p2 = 8 + bits(w, 4, 2);
    int32_t imm6 = sign(bits(w, 12, 12) << 5 | bits(w, 6, 2), 6);
    int32_t offset_w = bits(w, 12, 10) << 3 | bits(w, 6, 6) << 2 | bits(w, 5, 5) << 6;
    int32_t offset_d = bits(w, 12, 10) << 3 | bits(w, 6, 5) << 6;
    int32_t sp_lw = bits(w, 12, 12) << 5 | bits(w, 6, 4) << 2 | bits(w, 3, 2) << 6;
    int32_t sp_ld = bits(w, 12, 12) << 5 | bits(w, 6, 5) << 3 | bits(w, 4, 2) << 6;
    int32_t sp_sw = bits(w, 12, 9) << 2 | bits(w, 8, 7) << 6;
    int32_t sp_sd = bits(w, 12, 10) << 3 | bits(w, 9, 7) << 6;
    switch (bits(w, 1, 0) << 3 | bits(w, 15, 13)) {
    case 0: /* addi4spn; the all-zero word is illegal */
        if (w)
            three(o, COST_alu, p2, 2, 0);
        break;
    case 1:
        fload(o, p2, p1, offset_d);
        break;
    case 2:
        load(o, p2, p1, offset_w);
        break;
    case 3:
        load(o, p2, p1, offset_d);
        break;
    case 4: /* Zcb: byte and half-word accesses */
        if (bits(w, 12, 11) == 0)
            load(o, p2, p1, bits(w, 5, 5) << 1);
        else
            store(o, p2, p1, bits(w, 5, 5) << 1);
        break;
    case 5:
        fstore(o, p2, p1, offset_d);
        break;
    case 6:
        store(o, p2, p1, offset_w);
        break;
    case 7:
        store(o, p2, p1, offset_d);
        break;
    case 8:
        addi(o, rd, rd, imm6);
        break;
    case 9:
        three(o, COST_alu, rd, rd, 0);
        break;
    case 10:
        addi(o, rd, 0, imm6);
        break;
    case 11: /* lui, or addi16sp */
        if (rd == 2)
            addi(o, 2, 2,
                 sign(bits(w, 12, 12) << 9 | bits(w, 6, 6) << 4 | bits(w, 5, 5) << 6 |
                          bits(w, 4, 3) << 7 | bits(w, 2, 2) << 5,
                      10));
        else
            three(o, COST_alu, rd, 0, 0);
        break;
    case 12:
        if (bits(w, 11, 10) == 3 && !(bits(w, 12, 12) && bits(w, 6, 5) == 3))
            three(o, bits(w, 12, 12) && bits(w, 6, 5) == 2 ? COST_mul : COST_alu, p1, p1, p2);
        else
            three(o, COST_alu, p1, p1, 0);
        break;
    case 13:
        jump(o, JUMP_DIRECT, 0, 0);
        break;
    case 14 ... 15:
        branch(o, p1, 0);
        break;
    case 16:
        three(o, COST_alu, rd, rd, 0);
        break;
    case 17:
        fload(o, rd, 2, sp_ld);
        break;
    case 18:
        load(o, rd, 2, sp_lw);
        break;
    case 19:
        load(o, rd, 2, sp_ld);
        break;
    case 20:
        if (rs2)
            three(o, COST_alu, rd, bits(w, 12, 12) ? rd : 0, rs2);
        else if (rd) {
            jump(o, JUMP_REGISTER, bits(w, 12, 12), rd);
        } else
            o->cost = COST_system;
        break;
    case 21:
        fstore(o, rs2, 2, sp_sd);
        break;
    case 22:
        store(o, rs2, 2, sp_sw);
        break;
    case 23:
        store(o, rs2, 2, sp_sd);
        break;
    }
}

static void decode_fp(uint32_t w, struct insn *o) {
    static const enum cost costs[32] = {
        [0] = COST_fadd,     [1] = COST_fadd,    [2] = COST_fma,     [3] = COST_fdiv,
        [4] = COST_fmove,    [5] = COST_fmove,   [8] = COST_fadd,    [0x0b] = COST_fdiv,
        [0x14] = COST_fmove, [0x18] = COST_fadd, [0x1a] = COST_fadd, [0x1c] = COST_fmove,
        [0x1e] = COST_fmove};
    unsigned operation = bits(w, 31, 27);
    if (!costs[operation])
        return;
    o->cost = operation == 2 ? COST_fadd : costs[operation];
    o->eew = bits(w, 26, 25) == 1 ? 3 : 2;
    bool to_int = operation == 0x14 || operation == 0x18 || operation == 0x1c;
    bool from_int = operation == 0x1a || operation == 0x1e;
    o->dst[0] = to_int ? xdst(bits(w, 11, 7)) : REG_F + bits(w, 11, 7);
    o->src[0] = from_int ? xsrc(bits(w, 19, 15)) : REG_F + bits(w, 19, 15);
    if (operation <= 5 && operation != 0x0b)
        o->src[1] = REG_F + bits(w, 24, 20);
    if (operation == 0x14)
        o->src[1] = REG_F + bits(w, 24, 20);
}

static void decode_immediate(uint32_t w, struct insn *o) {
    unsigned rd = bits(w, 11, 7), funct3 = bits(w, 14, 12), rs1 = bits(w, 19, 15);
    int32_t immediate = sign(bits(w, 31, 20), 12);
    if (rd == 0 && rs1 == 0 && funct3 == 2 &&
        (immediate == 1041 || immediate == 1042 || immediate == 1044 || immediate == 1045)) {
        o->cost = COST_system;
        o->mark = immediate == 1041   ? MARK_BEGIN
                  : immediate == 1042 ? MARK_END
                  : immediate == 1044 ? MARK_WARM
                                      : MARK_FORGET;
    } else if (rd == 0 && funct3 == 6) { /* prefetch.{i,r,w} are ORI hints */
        unsigned kind = bits(w, 24, 20);
        o->cost = kind == 0 || kind == 1 || kind == 3 ? COST_prefetch : COST_alu;
        o->src[0] = xsrc(rs1);
        o->base = REG_X + rs1;
        o->offset = immediate & ~31;
        if (kind == 0) /* of instructions: no data line */
            o->base = REG_NONE;
    } else if (funct3 == 0)
        addi(o, rd, rs1, immediate);
    else
        three(o, COST_alu, rd, rs1, 0);
}

static void decode_word(uint32_t w, struct insn *o) {
    unsigned rd = bits(w, 11, 7), funct3 = bits(w, 14, 12), rs1 = bits(w, 19, 15);
    unsigned rs2 = bits(w, 24, 20);
    bool scalar_width = funct3 >= 1 && funct3 <= 4;
    int32_t store_offset = sign(bits(w, 31, 25) << 5 | rd, 12);
    switch (bits(w, 6, 2)) {
    case 0x00:
        load(o, rd, rs1, sign(bits(w, 31, 20), 12));
        break;
    case 0x01:
        if (scalar_width)
            fload(o, rd, rs1, sign(bits(w, 31, 20), 12));
        else
            rv64_vector_access(w, o, ACCESS_LOAD);
        break;
    case 0x03:
        o->cost = COST_fence;
        break;
    case 0x04:
        decode_immediate(w, o);
        break;
    case 0x05:
    case 0x0d:
        three(o, COST_alu, rd, 0, 0);
        break;
    case 0x06:
        three(o, COST_alu, rd, rs1, 0);
        break;
    case 0x08:
        store(o, rs2, rs1, store_offset);
        break;
    case 0x09:
        if (scalar_width)
            fstore(o, rs2, rs1, store_offset);
        else
            rv64_vector_access(w, o, ACCESS_STORE);
        break;
    case 0x0b:
        memory(o, COST_atomic, ACCESS_LOAD, xdst(rd), rs1, 0);
        o->src[1] = xsrc(rs2);
        break;
    case 0x0c:
    case 0x0e:
        three(o, bits(w, 31, 25) != 1 ? COST_alu : funct3 >= 4 ? COST_div : COST_mul, rd, rs1, rs2);
        break;
    case 0x10 ... 0x13:
        o->cost = COST_fma;
        o->eew = bits(w, 26, 25) == 1 ? 3 : 2;
        o->dst[0] = REG_F + rd;
        o->src[0] = REG_F + rs1;
        o->src[1] = REG_F + rs2;
        o->scalar_accumulator = REG_F + bits(w, 31, 27);
        break;
    case 0x14:
        decode_fp(w, o);
        break;
    case 0x15:
        rv64_vector(w, o);
        break;
    case 0x18:
        branch(o, rs1, rs2);
        break;
    case 0x19:
        jump(o, JUMP_REGISTER, rd, rs1);
        break;
    case 0x1b:
        jump(o, JUMP_DIRECT, rd, 0);
        break;
    case 0x1c:
        o->cost = COST_system;
        o->dst[0] = xdst(rd);
        o->src[0] = funct3 && funct3 < 4 ? xsrc(rs1) : REG_NONE;
        break;
    }
}

static void decode(uint32_t word, unsigned width, struct insn *out) {
    if (width == 2)
        decode_compressed(word, out);
    else
        decode_word(word, out);
}

const struct decoder decoder_rv64 = {"riscv64", decode, true};
