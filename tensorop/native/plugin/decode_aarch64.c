/* AArch64 with Advanced SIMD, from the encoding index of the Arm Architecture Reference Manual.
 * A 64-bit vector register counts as LMUL mf2, a 128-bit one as m1, a pair of them as m2. */
#include "board.h"

static unsigned bits(uint32_t w, int high, int low) {
    return (w >> low) & ((1u << (high - low + 1)) - 1);
}

static int32_t sign(uint32_t value, int width) {
    return (int32_t)(value << (32 - width)) >> (32 - width);
}

/* Register 31 is zero or the stack pointer, which are always ready. */
static uint8_t xsrc(unsigned r) { return r < 31 ? REG_X + r : REG_NONE; }
static uint8_t xdst(unsigned r) { return r < 31 ? REG_X + r : REG_SINK; }
static uint8_t vreg(unsigned r) { return REG_V + r; }

static void three(struct insn *o, enum cost cost, uint8_t d, uint8_t n, uint8_t m) {
    o->cost = cost;
    o->dst[0] = d;
    o->src[0] = n;
    o->src[1] = m;
}

static void decode_immediate(uint32_t w, struct insn *o) {
    unsigned d = bits(w, 4, 0), n = bits(w, 9, 5);
    switch (bits(w, 25, 23)) {
    case 0 ... 1:
        three(o, COST_alu, xdst(d), REG_NONE, REG_NONE);
        break;
    case 2: {
        int32_t immediate = (int32_t)(bits(w, 21, 10) << (bits(w, 22, 22) ? 12 : 0));
        three(o, COST_alu, xdst(d), xsrc(n), REG_NONE);
        if (bits(w, 29, 29))
            o->dst[1] = REG_FLAGS;
        if (d < 31 && n < 31) {
            if (d == n)
                o->bumped = REG_X + d;
            o->copied = REG_X + n;
            o->bump = bits(w, 30, 30) ? -immediate : immediate;
        }
        break;
    }
    case 4:
        three(o, COST_alu, xdst(d), xsrc(n), REG_NONE);
        if (bits(w, 30, 29) == 3)
            o->dst[1] = REG_FLAGS;
        break;
    case 5: /* movk keeps the rest of its register */
        three(o, COST_alu, xdst(d), bits(w, 30, 29) == 3 ? xsrc(d) : REG_NONE, REG_NONE);
        break;
    case 6:
        three(o, COST_alu, xdst(d), xsrc(n), bits(w, 30, 29) == 1 ? xsrc(d) : REG_NONE);
        break;
    case 7:
        three(o, COST_alu, xdst(d), xsrc(n), xsrc(bits(w, 20, 16)));
        break;
    }
}

static void decode_register(uint32_t w, struct insn *o) {
    unsigned d = bits(w, 4, 0), n = bits(w, 9, 5), m = bits(w, 20, 16);
    three(o, COST_alu, xdst(d), xsrc(n), xsrc(m));
    if (!bits(w, 28, 28)) {
        bool arithmetic = bits(w, 24, 24);
        if (arithmetic ? bits(w, 29, 29) : bits(w, 30, 29) == 3)
            o->dst[1] = REG_FLAGS;
        return;
    }
    if (bits(w, 24, 24)) {
        o->cost = COST_mul;
        o->src[2] = xsrc(bits(w, 14, 10));
        return;
    }
    switch (bits(w, 24, 21)) {
    case 0:
        o->src[2] = REG_FLAGS;
        if (bits(w, 29, 29))
            o->dst[1] = REG_FLAGS;
        break;
    case 2:
        o->dst[0] = REG_FLAGS;
        o->src[2] = REG_FLAGS;
        if (bits(w, 11, 11))
            o->src[1] = REG_NONE;
        break;
    case 4:
        o->src[2] = REG_FLAGS;
        break;
    case 6:
        if (bits(w, 30, 30))
            o->src[1] = REG_NONE;
        else if (bits(w, 15, 11) == 1)
            o->cost = COST_div;
        break;
    }
}

static void decode_branch(uint32_t w, struct insn *o) {
    three(o, COST_branch, REG_SINK, REG_NONE, REG_NONE);
    if (bits(w, 31, 24) == 0x54) {
        o->src[0] = REG_FLAGS;
        o->conditional = true;
    } else if (bits(w, 30, 26) == 5) {
        o->jump = JUMP_DIRECT;
        o->calls = bits(w, 31, 31);
        if (o->calls)
            o->dst[0] = REG_X + 30;
    } else if (bits(w, 30, 25) == 0x1a || bits(w, 30, 25) == 0x1b) {
        o->src[0] = xsrc(bits(w, 4, 0));
        o->conditional = true;
    } else if (bits(w, 31, 25) == 0x6b) {
        o->src[0] = xsrc(bits(w, 9, 5));
        o->jump = bits(w, 24, 21) == 2 ? JUMP_RETURN : JUMP_REGISTER;
        o->calls = bits(w, 24, 21) == 1;
        if (o->calls)
            o->dst[0] = REG_X + 30;
    } else {
        o->cost = COST_system;
        if ((w & 0xfffff01f) == 0xd503301f)
            o->cost = COST_fence;
        else if ((w & 0xfffff01f) == 0xd503201f) {
            unsigned hint = bits(w, 11, 5);
            o->mark = hint == 100   ? MARK_BEGIN
                      : hint == 101 ? MARK_END
                      : hint == 103 ? MARK_WARM
                      : hint == 104 ? MARK_FORGET
                                    : MARK_NONE;
        } else if (bits(w, 31, 20) == 0xd53)
            o->dst[0] = xdst(bits(w, 4, 0));
    }
}

static uint8_t lmul_of_bytes(unsigned bytes) {
    return bytes <= 8    ? LMUL_M1 - 1
           : bytes <= 16 ? LMUL_M1
           : bytes <= 32 ? LMUL_M1 + 1
           : bytes <= 64 ? LMUL_M1 + 2
                         : LMUL_M1 + 3;
}

/* Data registers of an access; `bytes` of each. Up to a single is scalar, beyond it vector. */
static void data(struct insn *o, bool vector_file, bool is_load, unsigned bytes, unsigned first,
                 unsigned count) {
    bool vector = vector_file && bytes >= 8;
    o->access = is_load ? ACCESS_LOAD : ACCESS_STORE;
    if (!vector_file)
        o->cost = is_load ? COST_load : COST_store;
    else if (!vector)
        o->cost = is_load ? COST_fload : COST_fstore;
    else
        o->cost = is_load ? COST_vload : COST_vstore;
    o->eew = 2;
    if (vector) {
        o->lmul = lmul_of_bytes(bytes * count);
        o->fixed = (uint8_t)count;
        if (is_load)
            o->vdst = (struct operand){(uint8_t)first, SPAN_FIXED};
        else
            o->vsrc[0] = (struct operand){(uint8_t)first, SPAN_FIXED};
    } else if (is_load)
        o->dst[0] = vector_file ? vreg(first) : xdst(first);
    else
        o->src[1] = vector_file ? vreg(first) : xsrc(first);
    if (!is_load)
        o->stored = vector ? 1 << 4 : 1 << 1;
}

static void address(struct insn *o, unsigned base, int32_t offset) {
    o->src[0] = xsrc(base);
    o->base = REG_X + base;
    o->offset = offset;
}

static void write_back(struct insn *o, unsigned base, int32_t by) {
    o->bumped = REG_X + base;
    o->bump = by;
    o->dst[1] = xdst(base);
    o->writes_back = true;
}

static void decode_pair(uint32_t w, struct insn *o) {
    bool v = bits(w, 26, 26);
    unsigned opc = bits(w, 31, 30), n = bits(w, 9, 5), t = bits(w, 4, 0), t2 = bits(w, 14, 10);
    unsigned bytes = v ? 4u << opc : opc & 2 ? 8 : 4;
    int32_t offset = sign(bits(w, 21, 15), 7) * (int32_t)bytes;
    unsigned mode = bits(w, 24, 23);
    bool is_load = bits(w, 22, 22);
    data(o, v, is_load, bytes, t, 1);
    if (v && bytes >= 8) {
        o->lmul = lmul_of_bytes(2 * bytes);
        if (is_load)
            o->dst[0] = vreg(t2);
        else {
            o->vsrc[1] = (struct operand){(uint8_t)t2, SPAN_FIXED};
            o->stored |= 1 << 5;
        }
    } else if (is_load) {
        o->vdst = (struct operand){0, SPAN_NONE};
        if (mode & 1)
            o->bumped = REG_NONE;
        else
            o->dst[1] = v ? vreg(t2) : xdst(t2);
    } else {
        o->src[2] = v ? vreg(t2) : xsrc(t2);
        o->stored |= 1 << 2;
    }
    address(o, n, mode == 1 ? 0 : offset);
    if (mode == 1 || mode == 3)
        write_back(o, n, offset);
}

static void decode_single(uint32_t w, struct insn *o) {
    bool v = bits(w, 26, 26);
    unsigned size = bits(w, 31, 30), opc = bits(w, 23, 22), n = bits(w, 9, 5), t = bits(w, 4, 0);
    unsigned scale = v && (opc & 2) ? 4 : size;
    bool is_load = v ? opc & 1 : opc != 0;
    bool unsigned_offset = bits(w, 24, 24);
    if (!v && size == 3 && opc == 2) {
        o->cost = COST_prefetch;
        address(o, n, (int32_t)(bits(w, 21, 10) << 3));
        if (!unsigned_offset || t >= 16) { /* register offset; stores' and others' hints */
            o->base = unsigned_offset && t < 24 ? o->base : REG_NONE;
            if (!unsigned_offset)
                o->src[1] = xsrc(bits(w, 20, 16));
        }
        return;
    }
    data(o, v, is_load, 1u << scale, t, 1);
    if (unsigned_offset)
        address(o, n, (int32_t)(bits(w, 21, 10) << scale));
    else if (bits(w, 21, 21)) {
        address(o, n, 0);
        o->src[2] = xsrc(bits(w, 20, 16));
        o->base = REG_NONE;
        if (bits(w, 11, 10) == 0) { /* an atomic: loads the old value */
            o->cost = COST_atomic;
            o->access = ACCESS_LOAD;
            o->dst[0] = xdst(t);
        }
    } else {
        int32_t offset = sign(bits(w, 20, 12), 9);
        unsigned mode = bits(w, 11, 10);
        address(o, n, mode == 1 ? 0 : offset);
        if (mode == 1 || mode == 3)
            write_back(o, n, offset);
    }
}

static void decode_structures(uint32_t w, struct insn *o) {
    static const uint8_t registers[16] = {4, 0, 4, 0, 3, 0, 3, 1, 2, 0, 2, 0, 0, 0, 0, 0};
    unsigned n = bits(w, 9, 5), t = bits(w, 4, 0), m = bits(w, 20, 16), count, bytes, total;
    bool is_load = bits(w, 22, 22), single = bits(w, 24, 24), interleaved;
    if (single) {
        unsigned opcode = bits(w, 15, 13), element = opcode >= 6 ? bits(w, 11, 10) : opcode >> 1;
        if (opcode < 6 && element == 2 && bits(w, 10, 10))
            element = 3;
        count = 1 + bits(w, 21, 21) + (opcode & 1) * 2;
        bytes = 8;
        total = count << element;
        interleaved = count > 1;
    } else {
        count = registers[bits(w, 15, 12)];
        bytes = bits(w, 30, 30) ? 16 : 8;
        total = bytes * count;
        interleaved = !(bits(w, 15, 12) & 2);
        if (!count)
            return;
    }
    data(o, true, is_load, bytes, t, count);
    if (interleaved)
        o->cost = is_load ? COST_vload_segment : COST_vstore_segment;
    address(o, n, 0);
    if (single && is_load && bits(w, 15, 13) < 6) /* a lane: the rest of the register stays */
        o->vsrc[0] = (struct operand){(uint8_t)t, SPAN_FIXED};
    if (bits(w, 23, 23)) {
        write_back(o, n, (int32_t)total);
        if (m != 31) {
            o->src[2] = xsrc(m);
            o->bumped = REG_NONE;
        }
    }
}

static void decode_memory(uint32_t w, struct insn *o) {
    bool v = bits(w, 26, 26);
    unsigned t = bits(w, 4, 0);
    switch (bits(w, 29, 28)) {
    case 0:
        if (v)
            decode_structures(w, o);
        else { /* exclusive, acquire and release, compare and swap */
            data(o, false, bits(w, 22, 22), 8, t, 1);
            o->cost = COST_atomic;
            address(o, bits(w, 9, 5), 0);
        }
        break;
    case 1:
        if (!bits(w, 24, 24)) { /* literal */
            data(o, v, true, v ? 4u << bits(w, 31, 30) : 8, t, 1);
            if (!v && bits(w, 31, 30) == 3) {
                o->cost = COST_prefetch;
                o->access = ACCESS_NONE;
                o->dst[0] = REG_SINK;
            }
        } else { /* acquire and release with an offset */
            data(o, v, bits(w, 23, 22) != 0, 8, t, 1);
            o->cost = COST_atomic;
            address(o, bits(w, 9, 5), 0);
        }
        break;
    case 2:
        decode_pair(w, o);
        break;
    case 3:
        decode_single(w, o);
        break;
    }
}

/* A SIMD instruction on registers of `q` x 64 + 64 bits. */
static void simd(uint32_t w, struct insn *o, enum cost cost, int sources, bool reads_destination) {
    o->cost = cost;
    o->lmul = LMUL_M1 - !bits(w, 30, 30);
    o->vdst = (struct operand){bits(w, 4, 0), SPAN_ONE};
    if (sources >= 1)
        o->vsrc[0] = (struct operand){bits(w, 9, 5), SPAN_ONE};
    if (sources >= 2)
        o->vsrc[1] = (struct operand){bits(w, 20, 16), SPAN_ONE};
    if (reads_destination) {
        o->vsrc[3] = o->vdst;
        o->accumulator = 3;
    }
}

static void three_same(uint32_t w, struct insn *o) {
    unsigned opcode = bits(w, 15, 11);
    bool u = bits(w, 29, 29), high = bits(w, 23, 23);
    if (opcode >= 24) {
        o->eew = bits(w, 22, 22) ? 3 : 2;
        if (opcode == 25 && !u)
            simd(w, o, COST_vfma, 2, true);
        else if (opcode == 29 && !u)
            simd(w, o, COST_vfwma, 2, true);
        else if (opcode == 31 && u && !high)
            simd(w, o, COST_vfdiv, 2, false);
        else
            simd(w, o, COST_vfadd, 2, false);
    } else if (opcode == 18)
        simd(w, o, COST_vmacc, 2, true);
    else if (opcode == 19)
        simd(w, o, COST_vmul, 2, false);
    else
        simd(w, o, COST_valu, 2, opcode == 3 && u);
}

static void decode_copy(uint32_t w, struct insn *o) {
    unsigned kind = bits(w, 14, 11);
    if (bits(w, 29, 29)) { /* ins from an element */
        simd(w, o, COST_vgather, 1, true);
        return;
    }
    simd(w, o, COST_vsplat, 1, kind == 3);
    if (kind == 1 || kind == 3) {
        o->vsrc[0] = (struct operand){0, SPAN_NONE};
        o->src[0] = xsrc(bits(w, 9, 5));
        o->cost = kind == 3 ? COST_vmove : COST_vsplat;
    } else if (kind == 5 || kind == 7) {
        o->cost = COST_vmove;
        o->vdst = (struct operand){0, SPAN_NONE};
        o->dst[0] = xdst(bits(w, 4, 0));
    }
}

static void by_element(uint32_t w, struct insn *o) {
    static const enum cost costs[16] = {
        [0x0] = COST_vmacc, [0x1] = COST_vfma,  [0x2] = COST_vwmacc, [0x3] = COST_vwmacc,
        [0x4] = COST_vmacc, [0x5] = COST_vfma,  [0x6] = COST_vwmacc, [0x7] = COST_vwmacc,
        [0x8] = COST_vmul,  [0x9] = COST_vfadd, [0xa] = COST_vmul,   [0xb] = COST_vmul,
        [0xc] = COST_vmul,  [0xd] = COST_vmacc, [0xe] = COST_vmacc,  [0xf] = COST_vmacc};
    enum cost cost = costs[bits(w, 15, 12)];
    if (bits(w, 15, 12) % 4 == 0 && !bits(w, 29, 29) && bits(w, 15, 12) < 8)
        cost = COST_vfwma;
    bool accumulates =
        cost == COST_vfma || cost == COST_vfwma || cost == COST_vmacc || cost == COST_vwmacc;
    simd(w, o, cost == COST_vfma ? COST_vfma_scalar : cost, 2, accumulates);
    if (bits(w, 23, 22) == 1) /* half words are indexed in registers 0 to 15 */
        o->vsrc[1].reg = bits(w, 19, 16);
    if (cost == COST_vfma || cost == COST_vfadd)
        o->eew = bits(w, 23, 22) == 3 ? 3 : 2;
}

static void decode_simd(uint32_t w, struct insn *o) {
    if (bits(w, 24, 24)) {
        if (!bits(w, 10, 10))
            by_element(w, o);
        else if (bits(w, 22, 19) == 0) /* a constant; orr and bic keep the rest */
            simd(w, o, COST_valu, 0, bits(w, 12, 12) && bits(w, 15, 12) < 12);
        else /* shifts; sri, sli and the accumulating ones read their destination */
            simd(w, o, COST_valu, 1,
                 bits(w, 15, 11) == 2 || bits(w, 15, 11) == 6 ||
                     (bits(w, 29, 29) && (bits(w, 15, 11) == 8 || bits(w, 15, 11) == 10)));
        return;
    }
    if (bits(w, 21, 21) && bits(w, 10, 10))
        three_same(w, o);
    else if (bits(w, 21, 21) && !bits(w, 11, 11)) {
        unsigned opcode = bits(w, 15, 12);
        bool accumulates = opcode == 5 || (opcode >= 8 && opcode <= 11);
        simd(w, o,
             opcode >= 8 && opcode <= 11 ? COST_vwmacc
             : opcode >= 12              ? COST_vmul
                                         : COST_valu,
             2, accumulates);
    } else if (bits(w, 21, 21)) { /* one source: across the lanes, or each of them */
        bool across = bits(w, 20, 17) == 8, fp = bits(w, 16, 12) >= 12;
        bool narrows_high = bits(w, 16, 12) == 18 && bits(w, 30, 30);
        bool root = bits(w, 29, 29) && bits(w, 16, 12) == 31 && bits(w, 23, 23);
        simd(w, o,
             across ? COST_vreduce
             : root ? COST_vfdiv
             : fp   ? COST_vfadd
                    : COST_valu,
             1, narrows_high);
    } else if (bits(w, 10, 10) && bits(w, 15, 15)) /* dot products and matrix forms */
        simd(w, o, COST_vmacc, 2, true);
    else if (bits(w, 10, 10))
        decode_copy(w, o);
    else if (bits(w, 15, 15))
        o->cost = COST_vunknown;
    else /* zip, uzp, trn, ext, tbl */
        simd(w, o, COST_vgather, 2, false);
}

static void decode_scalar_fp(uint32_t w, struct insn *o) {
    unsigned d = bits(w, 4, 0), n = bits(w, 9, 5), m = bits(w, 20, 16);
    o->eew = bits(w, 23, 22) == 1 ? 3 : 2;
    if (bits(w, 24, 24)) {
        three(o, COST_fma, vreg(d), vreg(n), vreg(m));
        o->scalar_accumulator = vreg(bits(w, 14, 10));
        return;
    }
    if (!bits(w, 21, 21)) { /* fixed point */
        bool to_int = bits(w, 20, 19) == 3;
        three(o, COST_fadd, to_int ? xdst(d) : vreg(d), to_int ? vreg(n) : xsrc(n), REG_NONE);
        return;
    }
    switch (bits(w, 11, 10)) {
    case 1:
        three(o, COST_fmove, REG_FLAGS, vreg(n), vreg(m));
        o->src[2] = REG_FLAGS;
        return;
    case 2:
        three(o, bits(w, 15, 12) == 1 ? COST_fdiv : COST_fadd, vreg(d), vreg(n), vreg(m));
        return;
    case 3:
        three(o, COST_fmove, vreg(d), vreg(n), vreg(m));
        o->src[2] = REG_FLAGS;
        return;
    }
    if (bits(w, 12, 12))
        three(o, COST_fmove, vreg(d), REG_NONE, REG_NONE);
    else if (bits(w, 13, 13))
        three(o, COST_fmove, REG_FLAGS, vreg(n), bits(w, 3, 3) ? REG_NONE : vreg(m));
    else if (bits(w, 14, 14))
        three(o, bits(w, 20, 15) == 3 ? COST_fdiv : COST_fmove, vreg(d), vreg(n), REG_NONE);
    else {
        unsigned opcode = bits(w, 18, 16);
        bool from_int = opcode == 2 || opcode == 3 || opcode == 7;
        three(o, opcode >= 6 ? COST_fmove : COST_fadd, from_int ? vreg(d) : xdst(d),
              from_int ? xsrc(n) : vreg(n), REG_NONE);
    }
}

static void decode_fp(uint32_t w, struct insn *o) {
    unsigned top = bits(w, 31, 24);
    o->cost = COST_vunknown;
    if ((top & 0x7e) == 0x1e)
        decode_scalar_fp(w, o);
    else if ((top & 0x9e) == 0x0e)
        decode_simd(w, o);
    else if ((top & 0xde) == 0x5e) { /* scalar forms: the vector encoding with one lane */
        decode_simd(w & ~0x10000000u, o);
        o->lmul = LMUL_M1 - 1;
    }
}

static void decode(uint32_t w, unsigned width, struct insn *o) {
    (void)width;
    switch (bits(w, 28, 25)) {
    case 0x2:
        o->cost = COST_vunknown; /* SVE */
        o->lmul = LMUL_M1;
        break;
    case 0x08 ... 0x09:
        decode_immediate(w, o);
        break;
    case 0x0a ... 0x0b:
        decode_branch(w, o);
        break;
    case 0x04:
    case 0x06:
    case 0x0c:
    case 0x0e:
        decode_memory(w, o);
        break;
    case 0x05:
    case 0x0d:
        decode_register(w, o);
        break;
    case 0x07:
    case 0x0f:
        decode_fp(w, o);
        break;
    }
}

const struct decoder decoder_aarch64 = {"aarch64", decode, false};
