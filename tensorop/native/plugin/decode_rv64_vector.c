/* The vector extension 1.0, from the encodings of its specification. */
#include "decode_rv64.h"

void rv64_vector_access(uint32_t w, struct insn *o, enum access access) {
    static const uint8_t eew_of_width[8] = {0, 255, 255, 255, 255, 1, 2, 3};
    static const enum cost loads[4] = {COST_vload, COST_vload_indexed, COST_vload_strided,
                                       COST_vload_indexed};
    static const enum cost stores[4] = {COST_vstore, COST_vstore_indexed, COST_vstore_strided,
                                        COST_vstore_indexed};
    unsigned data = bits(w, 11, 7), mop = bits(w, 27, 26), how = bits(w, 24, 20);
    unsigned fields = bits(w, 31, 29) + 1;
    bool masked = !bits(w, 25, 25), indexed = mop & 1;
    uint8_t span = SPAN_EEW;

    memory(o, access == ACCESS_LOAD ? loads[mop] : stores[mop], access, REG_SINK, bits(w, 19, 15),
           0);
    if (access == ACCESS_STORE)
        o->src[1] = REG_NONE;
    o->eew = eew_of_width[bits(w, 14, 12)];
    o->fields = fields;
    if (mop == 0 && how == 8) { /* whole registers */
        span = SPAN_FIXED;
        o->fixed = fields;
        o->fields = 1;
        o->lmul = LMUL_M1 + (fields >= 8 ? 3 : fields >= 4 ? 2 : fields >= 2 ? 1 : 0);
    } else if (mop == 0 && how == 11) { /* a mask */
        span = SPAN_ONE;
        o->lmul = LMUL_M1;
        o->fields = 1;
    } else {
        if (fields > 1)
            o->cost = access == ACCESS_LOAD ? COST_vload_segment : COST_vstore_segment;
        o->shows_vl = mop == 0 && !masked;
        o->src[2] = REG_VTYPE;
        if (mop == 2)
            o->src[1] = xsrc(how);
        if (indexed)
            span = SPAN_LMUL;
    }
    if (access == ACCESS_LOAD)
        o->vdst = (struct operand){data, span};
    else {
        o->vsrc[0] = (struct operand){data, span};
        o->stored = 1 << 4;
    }
    if (indexed)
        o->vsrc[1] = (struct operand){how, SPAN_EEW};
    if (masked)
        o->vsrc[2] = (struct operand){0, SPAN_ONE};
}

/* Operands vd, vs2, vs1 of an arithmetic instruction; `one` is vs1, in its register file. */
static void arithmetic(uint32_t w, struct insn *o, enum cost cost, enum span d, enum span s2,
                       enum span s1) {
    unsigned funct3 = bits(w, 14, 12), one = bits(w, 19, 15);
    o->cost = cost;
    o->vdst = (struct operand){bits(w, 11, 7), d};
    o->vsrc[0] = (struct operand){bits(w, 24, 20), s2};
    o->src[2] = REG_VTYPE;
    if (funct3 <= 2)
        o->vsrc[1] = (struct operand){one, s1};
    else if (funct3 == 5)
        o->src[0] = REG_F + one;
    else if (funct3 != 3)
        o->src[0] = xsrc(one);
    if (!bits(w, 25, 25))
        o->vsrc[2] = (struct operand){0, SPAN_ONE};
}

static void accumulating(uint32_t w, struct insn *o, enum cost cost, enum span d) {
    arithmetic(w, o, cost, d, SPAN_LMUL, SPAN_LMUL);
    o->vsrc[3] = o->vdst;
    o->accumulator = 3;
}

static void unary(uint32_t w, struct insn *o, enum cost cost, enum span d, enum span s2) {
    arithmetic(w, o, cost, d, s2, SPAN_NONE);
    o->vsrc[1] = (struct operand){0, SPAN_NONE};
}

static void to_scalar(uint32_t w, struct insn *o, uint8_t reg) {
    unary(w, o, COST_vmove, SPAN_NONE, SPAN_ONE);
    o->dst[0] = reg;
}

static void from_scalar(uint32_t w, struct insn *o) {
    arithmetic(w, o, COST_vmove, SPAN_ONE, SPAN_NONE, SPAN_NONE);
}

static void plain(uint32_t w, struct insn *o, enum cost cost) {
    arithmetic(w, o, cost, SPAN_LMUL, SPAN_LMUL, SPAN_LMUL);
}

static void reduction(uint32_t w, struct insn *o, enum cost cost) {
    arithmetic(w, o, cost, SPAN_ONE, SPAN_LMUL, SPAN_ONE);
}

static void decode_opf(uint32_t w, struct insn *o) {
    unsigned funct6 = bits(w, 31, 26), vs1 = bits(w, 19, 15);
    bool vv = bits(w, 14, 12) == 1;
    switch (funct6) {
    case 0x00:
    case 0x02:
    case 0x04:
    case 0x06:
    case 0x08 ... 0x0a:
    case 0x24:
    case 0x27:
        plain(w, o, COST_vfadd);
        break;
    case 0x01:
    case 0x03:
    case 0x05:
    case 0x07:
        reduction(w, o, funct6 == 3 ? COST_vreduce_ordered : COST_vreduce);
        break;
    case 0x0e ... 0x0f:
        plain(w, o, COST_vslide);
        break;
    case 0x10:
        if (vv)
            to_scalar(w, o, REG_F + bits(w, 11, 7));
        else
            from_scalar(w, o);
        break;
    case 0x12: /* conversions: single width, widening, narrowing */
        unary(w, o, COST_vfadd, (vs1 & 0x18) == 8 ? SPAN_WIDE : SPAN_LMUL,
              (vs1 & 0x18) == 16 ? SPAN_WIDE : SPAN_LMUL);
        break;
    case 0x13:
        unary(w, o, vs1 == 0 ? COST_vfdiv : COST_vfadd, SPAN_LMUL, SPAN_LMUL);
        break;
    case 0x17:
        if (bits(w, 25, 25)) {
            arithmetic(w, o, COST_vsplat, SPAN_LMUL, SPAN_NONE, SPAN_NONE);
        } else
            plain(w, o, COST_valu);
        break;
    case 0x18 ... 0x19:
    case 0x1b ... 0x1d:
    case 0x1f:
        arithmetic(w, o, COST_vmask, SPAN_ONE, SPAN_LMUL, SPAN_LMUL);
        break;
    case 0x20 ... 0x21:
        plain(w, o, COST_vfdiv);
        break;
    case 0x28 ... 0x2f:
        accumulating(w, o, vv ? COST_vfma : COST_vfma_scalar, SPAN_LMUL);
        break;
    case 0x30:
    case 0x32:
    case 0x38:
        arithmetic(w, o, COST_vfadd, SPAN_WIDE, SPAN_LMUL, SPAN_LMUL);
        break;
    case 0x31:
    case 0x33:
        reduction(w, o, funct6 == 0x33 ? COST_vreduce_ordered : COST_vreduce);
        break;
    case 0x34:
    case 0x36:
        arithmetic(w, o, COST_vfadd, SPAN_WIDE, SPAN_WIDE, SPAN_LMUL);
        break;
    case 0x3b ... 0x3f:
        accumulating(w, o, COST_vfwma, SPAN_WIDE);
        break;
    }
}

static void decode_opi(uint32_t w, struct insn *o) {
    unsigned funct6 = bits(w, 31, 26), funct3 = bits(w, 14, 12), one = bits(w, 19, 15);
    bool vv = funct3 == 0;
    switch (funct6) {
    case 0x00 ... 0x07:
    case 0x09 ... 0x0b:
    case 0x10:
    case 0x12:
    case 0x14 ... 0x15:
    case 0x20 ... 0x23:
    case 0x25:
    case 0x28 ... 0x2b:
        plain(w, o, COST_valu);
        break;
    case 0x0c:
        plain(w, o, COST_vgather);
        break;
    case 0x0e:
        if (vv)
            arithmetic(w, o, COST_vgather, SPAN_LMUL, SPAN_LMUL, SPAN_EI16);
        else
            plain(w, o, COST_vslide);
        break;
    case 0x0f:
        plain(w, o, COST_vslide);
        break;
    case 0x11:
    case 0x13:
    case 0x18 ... 0x1f:
        arithmetic(w, o, COST_vmask, SPAN_ONE, SPAN_LMUL, SPAN_LMUL);
        break;
    case 0x17: /* vmv.v.* is the unmasked form of vmerge */
        if (bits(w, 25, 25))
            arithmetic(w, o, vv ? COST_valu : COST_vsplat, SPAN_LMUL, SPAN_NONE, SPAN_LMUL);
        else
            plain(w, o, COST_valu);
        break;
    case 0x27:
        if (funct3 == 3) { /* vmv<n>r.v */
            o->cost = COST_valu;
            o->fixed = one + 1;
            o->lmul = LMUL_M1 + (one >= 7 ? 3 : one >= 3 ? 2 : one >= 1 ? 1 : 0);
            o->vdst = (struct operand){bits(w, 11, 7), SPAN_FIXED};
            o->vsrc[0] = (struct operand){bits(w, 24, 20), SPAN_FIXED};
        } else
            plain(w, o, COST_vmul);
        break;
    case 0x2c ... 0x2f:
        arithmetic(w, o, COST_valu, SPAN_LMUL, SPAN_WIDE, SPAN_LMUL);
        break;
    case 0x30 ... 0x31:
        reduction(w, o, COST_vreduce);
        break;
    case 0x35:
        arithmetic(w, o, COST_valu, SPAN_WIDE, SPAN_LMUL, SPAN_LMUL);
        break;
    }
}

static void decode_opm(uint32_t w, struct insn *o) {
    unsigned funct6 = bits(w, 31, 26), vs1 = bits(w, 19, 15);
    bool vv = bits(w, 14, 12) == 2;
    switch (funct6) {
    case 0x00 ... 0x07:
        reduction(w, o, COST_vreduce);
        break;
    case 0x08 ... 0x0b:
        plain(w, o, COST_valu);
        break;
    case 0x0e ... 0x0f:
        plain(w, o, COST_vslide);
        break;
    case 0x10:
        if (vv)
            to_scalar(w, o, xdst(bits(w, 11, 7)));
        else
            from_scalar(w, o);
        break;
    case 0x12: /* extensions from a half, a quarter, an eighth; Zvbb's unary operations */
        unary(w, o, COST_valu, SPAN_LMUL,
              vs1 >= 8   ? SPAN_LMUL
              : vs1 >= 6 ? SPAN_HALF
              : vs1 >= 4 ? SPAN_QUARTER
                         : SPAN_EIGHTH);
        break;
    case 0x14: /* set-before-first and kin, viota, vid */
        if (vs1 >= 16)
            unary(w, o, COST_valu, SPAN_LMUL, vs1 == 16 ? SPAN_ONE : SPAN_NONE);
        else
            unary(w, o, COST_vmask, SPAN_ONE, SPAN_ONE);
        break;
    case 0x17:
        arithmetic(w, o, COST_vgather, SPAN_LMUL, SPAN_LMUL, SPAN_ONE);
        break;
    case 0x18 ... 0x1f:
        arithmetic(w, o, COST_vmask, SPAN_ONE, SPAN_ONE, SPAN_ONE);
        o->lmul = LMUL_M1;
        break;
    case 0x20 ... 0x23:
        plain(w, o, COST_vdiv);
        break;
    case 0x24 ... 0x27:
        plain(w, o, COST_vmul);
        break;
    case 0x29:
    case 0x2b:
    case 0x2d:
    case 0x2f:
        accumulating(w, o, COST_vmacc, SPAN_LMUL);
        break;
    case 0x30 ... 0x33:
        arithmetic(w, o, COST_valu, SPAN_WIDE, SPAN_LMUL, SPAN_LMUL);
        break;
    case 0x34 ... 0x37:
        arithmetic(w, o, COST_valu, SPAN_WIDE, SPAN_WIDE, SPAN_LMUL);
        break;
    case 0x38:
    case 0x3a ... 0x3b:
        arithmetic(w, o, COST_vmul, SPAN_WIDE, SPAN_LMUL, SPAN_LMUL);
        break;
    case 0x3c ... 0x3f:
        accumulating(w, o, COST_vwmacc, SPAN_WIDE);
        break;
    }
}

static void decode_vset(uint32_t w, struct insn *o) {
    unsigned rd = bits(w, 11, 7), rs1 = bits(w, 19, 15);
    o->cost = COST_vset;
    o->dst[0] = xdst(rd);
    o->dst[1] = REG_VTYPE;
    if (bits(w, 31, 30) == 3) {
        o->vset = VSET_IMMEDIATE;
        o->vtypei = bits(w, 29, 20);
        o->avl = rs1;
        return;
    }
    o->src[0] = xsrc(rs1);
    o->vset = rs1 ? VSET_REGISTER : rd ? VSET_MAX : VSET_KEEP;
    if (rs1)
        o->cost = COST_vset_register;
    o->avl = rs1;
    if (!bits(w, 31, 31))
        o->vtypei = bits(w, 30, 20);
    else {
        o->vset = VSET_DYNAMIC;
        o->cost = COST_vset_register;
        o->src[1] = xsrc(bits(w, 24, 20));
    }
}

void rv64_vector(uint32_t w, struct insn *o) {
    o->cost = COST_vunknown;
    switch (bits(w, 14, 12)) {
    case 0:
    case 3 ... 4:
        decode_opi(w, o);
        break;
    case 1:
    case 5:
        decode_opf(w, o);
        break;
    case 2:
    case 6:
        decode_opm(w, o);
        break;
    default:
        decode_vset(w, o);
    }
}
